// normlab find, normlab removal, normlab landscape.
#include <cmath>

#include "app/commands.h"
#include "core/files.h"
#include "core/text.h"
#include "lab/find.h"
#include "lab/landscape.h"
#include "lab/progress.h"
#include "lab/removal.h"
#include "normlab/error.h"
#include "report/csv.h"

namespace normlab {

namespace {

constexpr int kInterrupted = 130;

int interrupted() {
  message("interrupted", "the same command goes on");
  return kInterrupted;
}

std::vector<double> column(const std::filesystem::path& metrics, const char* name) {
  std::vector<double> out;
  for (const auto& value : read_csv(metrics).numbers(name)) out.push_back(value.value_or(std::nan("")));
  return out;
}

// Trains with the rate rising from train.lr / train.steps to train.lr in a straight line.
int find_lr(const Arguments& a, RunConfig config) {
  for (const char* option : {"--least", "--most", "--within"})
    if (a.has(option)) throw UsageError(str(option, " goes with find depth, not with find lr"));
  if (config.warmup != 0 || config.schedule != "constant")
    throw ConfigError("find lr sets the rate's course: leave train.warmup and train.schedule as they are by default");
  config.warmup = config.steps;
  config.name += "-ramp";
  RunOptions options = run_options(a);
  options.resume = !options.overwrite;
  const RunOutcome outcome = train_run(config, options);
  if (outcome.verdict.name == "interrupted") return interrupted();
  const std::filesystem::path metrics = outcome.directory / "metrics.csv";
  const std::vector<double> losses = column(metrics, "loss"), rates = column(metrics, "lr");
  const Corpus corpus = load_corpus(data_config(config), config.context);
  const RampEnd end = ramp_end(losses, corpus.context_free_entropy());
  const auto rate = [&](std::int64_t step) { return number(rates[static_cast<std::size_t>(step - 1)]); };
  std::string text;
  if (!end.trained)
    text = str("none: the loss never came clearly below ", fixed(corpus.context_free_entropy(), 4),
               ", the context-free entropy; give the ramp more steps");
  else if (!end.lost)
    text = str("at least ", rate(end.last_good), ": it held out to the end of the ramp");
  else
    text = str(rate(end.last_good), ", at step ", end.last_good, " of ", config.steps);
  print(str("largest tolerable rate: ", text, "\nfiles: ", outcome.directory.string(), "\n"));
  return 0;
}

int find_depth(const Arguments& a) {
  const int64_t least = a.integer("--least", 1, 1, 100000), most = a.integer("--most", 256, 1, 100000),
                within = a.integer("--within", 1, 1, 100000);
  if (least > most) throw UsageError(str("--least ", least, " lies above --most ", most));
  if (a.has("--overwrite")) throw UsageError("--overwrite goes with find lr; remove the runs of find depth by hand");
  const ConfigFile file = read_config(a.positional[1], a.all("--set"));
  RunOptions options = run_options(a);
  options.out /= config_of(a, 1).name + "-depth";
  options.resume = true;  // what an earlier search has done serves again
  struct Interrupted {};
  const auto trains = [&](int64_t layers) {
    // Resolved anew, so that rules that depend on the depth do.
    std::vector<Setting> settings = file.settings;
    settings.push_back({"model.layers", parse_toml_value(std::to_string(layers), "find depth"), "find depth"});
    RunConfig config = resolve(settings);
    config.name = str("layers=", layers);
    const RunOutcome outcome = train_run(config, options);
    if (outcome.verdict.name == "interrupted") throw Interrupted{};
    print(
        str(layers, layers == 1 ? " layer: " : " layers: ", outcome.verdict.name, ", ", outcome.verdict.reason, "\n"));
    return outcome.verdict.name == "stable" || outcome.verdict.name == "spiked";
  };
  try {
    const DeepestResult found = deepest(least, most, within, trains);
    print(str("deepest that trains: ",
              found.trains == 0 ? str("none; ", least, " fails")
              : found.fails     ? str(found.trains, "; ", *found.fails, " fails")
                                : str("at least ", most),
              "\nfiles: ", options.out.string(), "\n"));
  } catch (const Interrupted&) {
    return interrupted();
  }
  return 0;
}

}  // namespace

int command_find(const Arguments& a) {
  use_threads(a);
  if (a.positional[0] == "lr") return find_lr(a, config_of(a, 1));
  if (a.positional[0] == "depth") return find_depth(a);
  throw UsageError(str("find lr or find depth, not ", quote(a.positional[0])));
}

int command_removal(const Arguments& a) {
  use_threads(a);
  refuse_overwriting({a.text("--csv")}, {a.positional[0]});
  const RemovalResult result = remove_layers(load_trained_run(a.positional[0]));
  print(str("whole model: validation loss ", fixed(result.whole, 4), "\nlayer    loss  damage\n"));
  std::string csv = kRemovalHeader;
  for (const LayerRemoval& row : result.layers) {
    csv += removal_row(row);
    const std::string layer = std::to_string(row.layer);
    print(str(std::string(5 - std::min<std::size_t>(5, layer.size()), ' '), layer, "  ", fixed(row.loss, 4), "  ",
              fixed(row.damage, 4), "\n"));
  }
  if (a.has("--csv")) write_file_atomically(a.text("--csv"), csv);
  return 0;
}

int command_landscape(const Arguments& a) {
  use_threads(a);
  const RunConfig config = config_of(a);
  const std::filesystem::path directory = std::filesystem::path(a.text("--out", "runs")) / (config.name + "-landscape");
  if (std::filesystem::exists(directory / "metrics.csv"))
    throw UsageError(str(directory.string(), " holds a run; choose another --out or run.name"));
  refuse_overwriting({directory / "landscape.csv"}, {a.positional[0], config.data.path});
  const int64_t every = a.integer("--every", std::max<int64_t>(1, config.steps / 20), 1, 1000000000);
  const Corpus corpus = load_corpus(data_config(config), config.context);
  const ModelConfig model = model_config(config, corpus.vocabulary());
  if (!a.has("--quiet"))
    for (const std::string& text : warnings(config, model)) message("warning", text.c_str());
  const auto seed = static_cast<uint64_t>(config.seed);
  const Batches batches(corpus, seed, config.context);
  Cost cost = Trainer(model, train_config(config), &batches, seed, false).cost();
  check_memory(cost);
  Trainer trainer(model, train_config(config), &batches, seed);
  Probe probe(model, trainer.params(), corpus, seed, Probe::sequences_for(model, config.batch));
  Progress progress(config.steps, 0, !a.has("--quiet"));
  std::string csv = kLandscapeHeader;
  for (int64_t step = 1; step <= config.steps; ++step) {
    const StepResult done = trainer.step();
    progress.show(step, done.loss, 0);
    if (!done.trouble.empty()) {
      message("diverged", str("at step ", step, ": ", done.trouble).c_str());
      break;
    }
    if (step % every != 0 && step != 1) continue;
    LandscapeRow row = landscape(probe, trainer.params(), done.update_norm);
    row.step = step;
    csv += landscape_row(row);
    print(str("step ", step, ": loss ", fixed(row.loss, 4), ", along the gradient ", fixed(row.loss_low, 4), " to ",
              fixed(row.loss_high, 4), ", smoothness ", number(static_cast<float>(row.smoothness)), "\n"));
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw IoError(str(directory.string(), ": cannot create directory: ", error.message()));
  write_file_atomically(directory / "landscape.csv", csv);
  print(str("file: ", (directory / "landscape.csv").string(), "\n"));
  return 0;
}

}  // namespace normlab
