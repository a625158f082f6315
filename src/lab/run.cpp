#include "lab/run.h"

#include <unistd.h>

#include <chrono>
#include <cmath>

#include "core/files.h"
#include "core/json.h"
#include "core/parallel.h"
#include "core/text.h"
#include "kernels/kernels.h"
#include "lab/probe.h"
#include "lab/progress.h"
#include "lab/row_file.h"
#include "report/csv.h"
#include "train/combinations.h"

namespace normlab {

namespace fs = std::filesystem;

const char kVersion[] = "0.1.0";

namespace {

constexpr const char* kMetricsHeader = "step,tokens,lr,loss,val_loss,grad_norm,param_norm,update_norm\n";
constexpr const char* kTimingHeader = "step,seconds,tokens_per_second\n";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::optional<double> finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

Json number_or_null(std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value) : Json(); }

// One run being written: its files and what is known so far.
class RunDirectory {
 public:
  RunDirectory(const RunConfig& config, const RunOptions& options)
      : config_(config),
        options_(options),
        directory_(options.out / config.name),
        corpus_(load_corpus(data_config(config), config.context)),
        batches_(corpus_, static_cast<uint64_t>(config.seed), config.context),
        metrics_(directory_ / "metrics.csv", kMetricsHeader),
        timing_(directory_ / "timing.csv", kTimingHeader),
        layers_(directory_ / "layers.csv", kLayersHeader) {}

  RunOutcome run() {
    if (fs::is_directory(directory_)) lock_.emplace(directory_);
    check_directory();
    const ModelConfig model = model_config(config_, corpus_.vocabulary());
    require_memory(model);
    warn(model);
    Trainer trainer(model, train_config(config_), &batches_, static_cast<uint64_t>(config_.seed));
    if (options_.resume) continue_from_checkpoint(trainer);
    if (const auto done = finished_before(trainer.steps_done())) {
      keep_config();
      return *done;
    }
    open_files(trainer);
    train(trainer);
    return finish(trainer);
  }

 private:
  void check_directory() {
    std::error_code error;
    const bool present = fs::exists(directory_, error);
    if (present && !fs::is_directory(directory_)) throw UsageError(str(directory_.string(), " is not a directory"));
    if (!present || fs::is_empty(directory_, error)) return;
    const auto holds = [&](const char* name) { return fs::exists(directory_ / name); };
    // The temporary file is what a kill during the very first write leaves.
    if (!holds("config.toml") && !holds("metrics.csv") && !holds("config.toml.tmp")) {
      throw UsageError(str(directory_.string(), " is not empty and holds no run; choose another --out or run.name"));
    }
    const bool own_data =
        !config_.data.path.empty() && fs::equivalent(fs::absolute(config_.data.path).parent_path(), directory_, error);
    if (options_.overwrite && own_data)
      throw UsageError(str(config_.data.path, ": would be overwritten with the run that reads it"));
    if (!options_.overwrite && !options_.resume) {
      throw UsageError(str(directory_.string(),
                           " already holds a run; go on with it by --resume, replace it by --overwrite, or choose "
                           "another --out or run.name"));
    }
  }

  void require_memory(const ModelConfig& model) const {
    Trainer planned(model, train_config(config_), &batches_, 0, false);
    Cost cost = planned.cost();
    if (config_.probe_every > 0) cost.memory += probe_of(model, planned.params()).memory();
    check_memory(cost);
  }

  Probe probe_of(const ModelConfig& model, ParamStore& store) const {
    return {model, store, corpus_, static_cast<uint64_t>(config_.seed), Probe::sequences_for(model, config_.batch)};
  }

  void warn(const ModelConfig& model) const {
    if (options_.quiet) return;
    for (const std::string& text : warnings(config_, model)) message("warning", text.c_str());
  }

  void continue_from_checkpoint(Trainer& trainer) {
    const fs::path path = directory_ / "checkpoint.safetensors";
    if (!fs::exists(path)) {
      const fs::path written = directory_ / "config.toml";
      if (fs::exists(written)) require_same(resolve(read_config(written, {}).settings), written.string());
      // Stopped before its first checkpoint: the same run from the start. One that ended had written one.
      if (fs::exists(directory_ / "summary.json") || (!fs::exists(written) && fs::exists(directory_ / "metrics.csv")))
        throw IoError(str(path.string(), ": is missing, so the run cannot go on; --overwrite runs it again"));
      return;
    }
    const SafetensorsFile file = read_safetensors(path);
    const CheckpointInfo info = checkpoint_info(file, path.string());
    require_same(resolve(parse_config(info.config, path.string(), {}).settings), path.string());
    if (info.data != corpus_.digest()) {
      throw DataError(
          str(path.string(), ": cannot resume: the data are not those of the run (", corpus_.description(), ")"));
    }
    if (info.kernels != kernels().name) {
      throw UsageError(str(path.string(), ": cannot resume with kernels '", kernels().name, "' what ran with '",
                           info.kernels, "': results would match neither; set NORMLAB_KERNELS=", info.kernels));
    }
    load_checkpoint(file, path.string(), trainer);
    metrics_.keep(info.step);
    metrics_.require(info.metrics, info.step);
    timing_.keep(info.step);
    for (const auto& loss : parse_csv(metrics_.kept(), (directory_ / "metrics.csv").string()).numbers("loss"))
      losses_.push_back(loss.value_or(std::nan("")));
    if (config_.probe_every == 0) return;
    layers_.keep(info.step);
    layers_.require(info.layers, info.step);
  }

  // A resume of a run that ended before: its result as it stands. A run that diverged ended too, one row after its last
  // checkpoint.
  std::optional<RunOutcome> finished_before(int64_t steps_done) const {
    const fs::path path = directory_ / "summary.json";
    if (!options_.resume || !fs::exists(path)) return std::nullopt;
    const Json s = summary(path);
    const auto text = [&](const char* key) { return s.find(key) == nullptr ? std::string() : s.find(key)->string; };
    const auto value = [&](const char* key) {
      const Json* v = s.find(key);
      return v == nullptr || v->kind != Json::Kind::kNumber ? std::nan("") : v->number;
    };
    RunOutcome outcome;
    outcome.directory = directory_;
    outcome.already_done = true;
    outcome.verdict = {text("verdict"), text("reason")};
    outcome.steps = s.find("steps") == nullptr ? 0 : s.find("steps")->integer.value_or(0);
    outcome.first_loss = value("first_loss"), outcome.best_loss = value("best_loss"),
    outcome.final_loss = value("final_loss");
    const bool ended = steps_done >= config_.steps || outcome.steps > steps_done;
    if (!ended || outcome.verdict.name == "interrupted") return std::nullopt;
    const fs::path metrics = directory_ / "metrics.csv";
    if (const auto rows = static_cast<int64_t>(read_csv(metrics).cells.size()); rows != outcome.steps) {
      throw IoError(str(metrics.string(), ": has ", rows, " rows, but summary.json tells of ", outcome.steps,
                        " steps; --overwrite runs it again"));
    }
    return outcome;
  }

  static Json summary(const fs::path& path) {
    try {
      return parse_json(read_file(path), path.string());
    } catch (const IoError& error) {
      throw IoError(str(error.what(), "; it is made from the other files: delete it and resume again"));
    }
  }

  // A resumed run must be the same run; only its length may grow, where no rate depends on it, and checkpoints may come
  // at other times.
  void require_same(const RunConfig& before, const std::string& path) const {
    for (const Difference& d : differences(before, config_)) {
      if (d.key == "checkpoint.every") continue;
      if (d.key == "train.steps" && config_.steps > before.steps && !find_schedule(config_.schedule)->uses_steps)
        continue;
      throw ConfigError(str(path, ": cannot resume under another configuration: '", d.key, "' was ", d.first,
                            " and is now ", d.second,
                            d.key == "train.steps" && config_.steps > before.steps
                                ? str(", on which the rates of schedule '", config_.schedule, "' depend")
                                : ""));
    }
  }

  // The config of a finished run as it was; another hand may have changed or removed it.
  void keep_config() const {
    const fs::path path = directory_ / "config.toml";
    if (!fs::exists(path) || read_file(path) != dump(config_)) write_file_atomically(path, dump(config_));
  }

  void open_files(const Trainer& trainer) {
    std::error_code error;
    fs::create_directories(directory_, error);
    if (error) throw IoError(str(directory_.string(), ": cannot create directory: ", error.message()));
    if (!lock_) {
      lock_.emplace(directory_);
      check_directory();  // another process may have been quicker
    }
    if (::access(directory_.c_str(), W_OK) != 0)
      throw IoError(str(directory_.string(), ": the directory is not writable"));
    if (options_.overwrite) {
      require_space(trainer);
      for (const char* name : kRunFiles) fs::remove(directory_ / name, error);
    }
    fs::remove(directory_ / "summary.json", error);
    write_file_atomically(directory_ / "config.toml", dump(config_));
    metrics_.open();
    timing_.open();
    if (config_.probe_every > 0) layers_.open();
  }

  // The old run goes only once the disk has proven to hold the new one's checkpoint.
  void require_space(const Trainer& trainer) const {
    const int64_t elements = trainer.params().total() * (1 + train_config(config_).optimizer->states);
    reserve_space(directory_ / "space.tmp", elements * static_cast<int64_t>(sizeof(float)));
  }

  void train(Trainer& trainer) {
    Progress progress(config_.steps, trainer.steps_done(), !options_.quiet);
    std::optional<Probe> probe;
    if (config_.probe_every > 0) probe.emplace(probe_of(model_config(config_, corpus_.vocabulary()), trainer.params()));
    while (trainer.steps_done() < config_.steps && !interrupted_) {
      const int64_t tokens_before = trainer.tokens_seen();
      const bool probed = probe && (trainer.steps_done() + 1) % config_.probe_every == 0;
      if (probed) probe->remember();
      const auto start = std::chrono::steady_clock::now();
      const StepResult step = trainer.step();
      const double seconds = seconds_since(start);
      seconds_ += seconds;
      tokens_ += step.tokens - tokens_before;
      losses_.push_back(step.loss);
      trouble_ = step.trouble;

      std::optional<double> validation;
      if (trouble_.empty() && config_.eval_every > 0 && step.step % config_.eval_every == 0)
        validation = evaluate(trainer);
      if (!trouble_.empty()) save(trainer);  // which ends before this row
      metrics_.append(csv_row(step.step, step.tokens, step.lr, step.loss, validation, step.grad_norm, step.param_norm,
                              step.update_norm));
      const double speed = static_cast<double>(step.tokens - tokens_before) / seconds;
      timing_.append(csv_row(step.step, seconds, speed));
      progress.show(step.step, step.loss, speed);
      if (!trouble_.empty()) break;
      if (probed)
        for (const ProbeRow& row : probe->measure()) layers_.append(layers_row(step.step, row));
      interrupted_ = options_.stop != nullptr && options_.stop();
      if (config_.checkpoint_every > 0 && step.step % config_.checkpoint_every == 0 && step.step < config_.steps)
        save(trainer);
    }
    if (trouble_.empty()) save(trainer);
    if (trainer.steps_done() >= config_.steps) interrupted_ = false;  // the signal came during the last step
  }

  void save(Trainer& trainer) const {
    CheckpointInfo about;
    about.config = dump(config_), about.data = corpus_.digest();
    about.metrics = metrics_.digest(), about.layers = layers_.digest();
    save_checkpoint(directory_ / "checkpoint.safetensors", trainer, about);
  }

  std::optional<double> evaluate(Trainer& trainer) const {
    return corpus_.validation().empty() ? std::nullopt : std::optional(trainer.evaluate(config_.eval_batches));
  }

  RunOutcome finish(Trainer& trainer) {
    RunOutcome outcome;
    outcome.directory = directory_;
    outcome.steps = static_cast<int64_t>(losses_.size());
    outcome.verdict = judge(losses_, corpus_.context_free_entropy(), trouble_);
    if (interrupted_) {
      outcome.verdict = {"interrupted", str("before the last of ", config_.steps, " steps; go on with --resume")};
    }
    outcome.first_loss = losses_.empty() ? std::nan("") : losses_.front();
    outcome.best_loss = std::nan("");
    for (const double loss : losses_) {
      if (std::isfinite(loss) && !(outcome.best_loss <= loss)) outcome.best_loss = loss;
    }
    outcome.final_loss = final_loss(losses_);
    write_summary(trainer, outcome);
    return outcome;
  }

  void write_summary(Trainer& trainer, const RunOutcome& outcome) {
    const bool evaluated = outcome.verdict.name != "interrupted" && trouble_.empty();
    const Cost cost = trainer.cost();
    Json s = Json::object();
    s.set("verdict", outcome.verdict.name);
    s.set("reason", outcome.verdict.reason);
    s.set("steps", outcome.steps);
    s.set("first_loss", number_or_null(outcome.first_loss));
    s.set("best_loss", number_or_null(outcome.best_loss));
    s.set("final_loss", number_or_null(outcome.final_loss));
    s.set("validation_loss", number_or_null(evaluated ? evaluate(trainer) : std::nullopt));
    s.set("context_free_entropy", corpus_.context_free_entropy());
    s.set("bigram_entropy", corpus_.bigram_entropy());
    s.set("entropy_rate", number_or_null(corpus_.entropy_rate()));
    s.set("vocabulary", corpus_.vocabulary());
    s.set("parameters", cost.parameters);
    s.set("flops_per_token", cost.flops_per_token);
    s.set("tokens_per_second", number_or_null(finite(static_cast<double>(tokens_) / seconds_)));
    s.set("threads", threads());
    s.set("slots", trainer.slots());
    s.set("kernels", kernels().name);
    s.set("version", kVersion);
    write_file_atomically(directory_ / "summary.json", dump_json(s, 2) + "\n");
  }

  const RunConfig& config_;
  const RunOptions& options_;
  fs::path directory_;
  Corpus corpus_;
  Batches batches_;
  std::optional<DirectoryLock> lock_;
  RowFile metrics_, timing_, layers_;
  std::vector<double> losses_;
  std::string trouble_;
  bool interrupted_ = false;
  double seconds_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace

std::vector<std::string> warnings(const RunConfig& config, const ModelConfig& model) {
  std::vector<std::string> out = config_warnings(config);
  for (std::string& text : model_warnings(model)) out.push_back(std::move(text));
  return out;
}

RunOutcome train_run(const RunConfig& config, const RunOptions& options) { return RunDirectory(config, options).run(); }

TrainedRun load_trained_run(const fs::path& directory) {
  TrainedRun run;
  const fs::path path = directory / "checkpoint.safetensors";
  if (fs::exists(directory) && !fs::exists(path))
    throw IoError(str(directory.string(), ": holds no checkpoint.safetensors; has the run finished?"));
  run.path = path.string();
  run.file = read_safetensors(path);
  run.config = resolve(parse_config(checkpoint_info(run.file, run.path).config, run.path, {}).settings);
  return run;
}

}  // namespace normlab
