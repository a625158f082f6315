#include "app/commands.h"

#include <algorithm>
#include <cstdio>

#include "core/parallel.h"
#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

namespace {

constexpr OptionDef kSet = {"--set", "KEY=VALUE", "override a key of the config, as section.key=value; may repeat",
                            true};
constexpr OptionDef kOut = {"--out", "DIR", "directory below which runs are written (default \"runs\")"};
constexpr OptionDef kThreads = {"--threads", "N",
                                "threads (default: OMP_NUM_THREADS, else the processors allowed here)"};
constexpr OptionDef kStrict = {"--strict", "", "exit code 3 unless the verdict is stable"};
constexpr OptionDef kQuiet = {"--quiet", "", "no progress, no messages"};

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {"run",
       "CONFIG",
       "train one model from a config file",
       1,
       1,
       {kSet,
        kOut,
        kThreads,
        {"--resume", "", "go on with an interrupted run"},
        {"--overwrite", "", "replace an earlier run"},
        kStrict,
        kQuiet},
       command_run},
      {"sweep",
       "CONFIG",
       "train every combination of the [sweep] lists; finished runs are skipped, interrupted ones go on",
       1,
       1,
       {kSet,
        kOut,
        kThreads,
        {"--overwrite", "", "run all again"},
        {"--shard", "I/N", "only every N-th combination, from the I-th; slurm: as this task of a job array"},
        {"--dry-run", "", "print the combinations, run nothing"},
        kStrict,
        kQuiet},
       command_sweep},
      {"compare",
       "RUN_DIR|METRICS_CSV...",
       "runs side by side: table, and a chart where asked\nA CSV needs the columns step and loss; other tools' files "
       "will do.",
       1,
       10000,
       {{"--metric", "NAME", "column to compare (default loss)"},
        {"--smooth", "K", "mean over K steps, the raw curve behind it (default 1)"},
        {"--mean", "", "average runs that differ in run.seed only, with 95 % confidence intervals"},
        {"--map", "X_KEY[,Y_KEY]", "final values and verdicts over the keys of a sweep, instead of curves"},
        {"--layers", "COLUMN", "a column of layers.csv by layer, instead of curves"},
        {"--log", "", "logarithmic axis (or colours of the map) in the SVG"},
        {"--svg", "FILE", "write the chart"},
        {"--html", "FILE", "write a page with table, charts and configs; with --map the map too"},
        {"--csv", "FILE", "write what is shown as one table"},
        {"--table", "FILE", "write one line per run as CSV: verdict, losses, the config keys that differ"},
        {"--sensitivity", "KEY", "how much the final loss depends on a key (train.lr), instead of the table"}},
       command_compare},
      {"check",
       "CONFIG",
       "resolved config, parameters, memory, FLOPs; trains nothing, writes nothing",
       1,
       1,
       {kSet},
       command_check},
      {"list",
       "[norms|placements|inits|optimizers|schedules|data|kernels]",
       "what a config can name",
       0,
       1,
       {},
       command_list},
      {"data",
       "CONFIG",
       "facts of the corpus, or the token ids of batches as CSV",
       1,
       1,
       {kSet, {"--batches", "N", "print step,sequence,position,input,target of the first N updates"}},
       command_data},
      {"sample",
       "RUN_DIR",
       "text from a trained model",
       1,
       1,
       {{"--prompt", "TEXT", "text to go on from"},
        {"--length", "N", "tokens to add (default 400)"},
        {"--temperature", "T", "0 = always the likeliest token (default 1)"},
        {"--seed", "S", "of the draws (default 1)"},
        kThreads},
       command_sample},
      {"gradcheck",
       "",
       "finite differences in double against every backward; prints the worst relative error of each case",
       0,
       0,
       {{"--norm", "NAME", "only cases of this norm"},
        {"--placement", "NAME", "only cases of this placement"},
        kThreads},
       command_gradcheck},
      {"probe",
       "CONFIG",
       "signal and gradients layer by layer at initialisation: a table, and all quantities in NAME-probe/layers.csv",
       1,
       1,
       {kSet, kOut, kThreads},
       command_probe},
      {"find",
       "lr|depth CONFIG",
       "the largest learning rate that a ramp from 0 to train.lr bears, or the deepest model that trains, by "
       "bisection\nA depth whose run exists in NAME-depth is not trained again.",
       2,
       2,
       {kSet,
        kOut,
        kThreads,
        {"--least", "N", "layers to begin with (default 1)"},
        {"--most", "N", "layers to end with (default 256)"},
        {"--within", "N", "stop when the answer is known to so many layers (default 1)"},
        {"--overwrite", "", "replace an earlier ramp"},
        kQuiet},
       command_find},
      {"removal",
       "RUN_DIR",
       "validation loss of a trained model with each layer left out in turn",
       1,
       1,
       {kThreads, {"--csv", "FILE", "write layer,loss,damage"}},
       command_removal},
      {"landscape",
       "CONFIG",
       "train, and every so often look at loss and gradient along steps against the gradient: "
       "NAME-landscape/landscape.csv",
       1,
       1,
       {kSet, kOut, kThreads, {"--every", "N", "steps between looks (default: a twentieth of the run)"}, kQuiet},
       command_landscape},
      {"invariance",
       "",
       "what each norm is deaf to and what it listens to, measured: shift, scale, order of channels, mode, other "
       "sequences, the future",
       0,
       0,
       {{"--csv", "FILE", "write the table"}, {"--svg", "FILE", "draw which outputs move when one input changes"}},
       command_invariance},
      {"bench",
       "[gemm|norms|attention|elementwise|step|zoo|depth]...",
       "speed as ratios to this machine's FMA peak and copy bandwidth, measured in turns with it",
       0,
       7,
       {kThreads,
        {"--seconds", "S", "per measurement (default 0.05; never fewer than five repetitions)"},
        {"--csv", "FILE", "write the table as CSV"},
        {"--peers", "", "the same training steps in PyTorch, where it is installed"}},
       command_bench},
      {"export",
       "RUN_DIR|CONFIG FILE.safetensors",
       "weights of a trained run, or of a config at initialisation",
       2,
       2,
       {kSet},
       command_export},
  };
  return table;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

RunConfig config_of(const Arguments& a, std::size_t operand) {
  const ConfigFile file = read_config(a.positional[operand], a.all("--set"));
  if (!file.sweep.empty())
    throw ConfigError(str(file.sweep[0].where, ": this config has a [sweep] section; use normlab sweep"));
  return resolve(file.settings);
}

void refuse_overwriting(const std::vector<std::filesystem::path>& outputs,
                        const std::vector<std::filesystem::path>& inputs) {
  namespace fs = std::filesystem;
  const auto place = [](const fs::path& p) {
    std::error_code error;
    const fs::path found = fs::weakly_canonical(fs::absolute(p), error);
    return error ? fs::absolute(p).lexically_normal() : found;
  };
  const auto names = [](const fs::path& directory, const fs::path& output) {
    return std::any_of(std::begin(kRunFiles), std::end(kRunFiles),
                       [&](const char* name) { return output == directory / name; });
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty()) continue;
    const fs::path output = place(outputs[i]);
    const auto refuse = [&](const fs::path& input) {
      throw UsageError(
          str(outputs[i].string(), ": would be written over what is read (", input.string(), "); choose another file"));
    };
    for (const fs::path& input : inputs) {
      std::error_code error;
      if (input.empty()) continue;
      if (output == place(input) || (fs::is_directory(input, error) && names(place(input), output))) refuse(input);
    }
    const fs::path run = output.parent_path();
    std::error_code error;
    if (names(run, output) && fs::exists(run / "config.toml", error) && fs::exists(run / "metrics.csv", error))
      throw UsageError(str(outputs[i].string(), ": is a file of the run in ", run.string(), "; choose another"));
    for (std::size_t j = 0; j < i; ++j) {
      if (!outputs[j].empty() && place(outputs[j]) == output)
        throw UsageError(str(outputs[i].string(), ": is named for two outputs"));
    }
  }
}

void use_threads(const Arguments& a) {
  if (a.has("--threads")) set_threads(static_cast<int>(a.integer("--threads", 0, 1, 1024)));
}

}  // namespace normlab
