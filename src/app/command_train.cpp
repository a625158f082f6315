// normlab run, normlab sweep.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "app/commands.h"
#include "core/text.h"
#include "lab/progress.h"
#include "lab/sweep.h"
#include "normlab/error.h"
#include "report/compare.h"

namespace normlab {

namespace {

volatile std::sig_atomic_t signalled = 0;

// The first signal asks for a stop after the step; a second one ends the process as usual.
void on_signal(int which) {
  signalled = 1;
  std::signal(which, SIG_DFL);
}

int exit_code(const Verdict& verdict, bool strict) {
  if (verdict.name == "interrupted") return 130;
  return strict && verdict.name != "stable" ? 3 : 0;
}

// Slurm's and others' shards: I/N, I from 1.
struct Shard {
  int64_t index = 1, count = 1;
};

// Of a Slurm job array: which of its tasks this is (sbatch(1), "OUTPUT ENVIRONMENT VARIABLES").
Shard slurm_shard() {
  const auto variable = [](const char* name) {
    const char* text = std::getenv(name);
    const auto value = parse_int(text == nullptr ? "" : text);
    if (!value) {
      throw UsageError(str("--shard slurm needs ", name, " as an array task has it, not ",
                           text == nullptr ? "nothing" : quote(text)));
    }
    return *value;
  };
  const int64_t id = variable("SLURM_ARRAY_TASK_ID"), first = variable("SLURM_ARRAY_TASK_MIN"),
                step = variable("SLURM_ARRAY_TASK_STEP"), count = variable("SLURM_ARRAY_TASK_COUNT");
  const Shard shard = {step < 1 ? 0 : (id - first) / step + 1, count};
  if (shard.index < 1 || shard.index > shard.count || first + (shard.index - 1) * step != id) {
    throw UsageError(str("--shard slurm: task ", id, " is none of the ", count, " from ", first, " in steps of ", step,
                         "; give --shard I/N for arrays such as 1,5,7"));
  }
  return shard;
}

Shard shard_of(const Arguments& a) {
  if (!a.has("--shard")) return {};
  if (a.text("--shard") == "slurm") return slurm_shard();
  const auto parts = split(a.text("--shard"), '/');
  const auto index = parse_int(parts[0]), count = parts.size() == 2 ? parse_int(parts[1]) : std::nullopt;
  if (!index || !count || *index < 1 || *index > *count) {
    throw UsageError(str("--shard needs I/N with 1 <= I <= N, or slurm, not ", quote(a.text("--shard"))));
  }
  return {*index, *count};
}

}  // namespace

RunOptions run_options(const Arguments& a) {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGHUP, on_signal);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then an error of the write, with its message
  RunOptions options;
  options.out = a.text("--out", "runs");
  options.resume = a.has("--resume");
  options.overwrite = a.has("--overwrite");
  options.quiet = a.has("--quiet");
  options.stop = [] { return signalled != 0; };
  return options;
}

int command_run(const Arguments& a) {
  if (a.has("--resume") && a.has("--overwrite")) throw UsageError("--resume and --overwrite contradict each other");
  use_threads(a);
  const RunConfig config = config_of(a);
  for (const char* name : kRunFiles) {  // config.toml may be: it is written again as it is
    std::error_code error;
    const std::filesystem::path file = std::filesystem::path(a.text("--out", "runs")) / config.name / name;
    if (name != std::string_view("config.toml") && std::filesystem::equivalent(file, a.positional[0], error))
      throw UsageError(str(a.positional[0], ": would be overwritten by the run; put the config elsewhere"));
  }
  const RunOutcome outcome = train_run(config, run_options(a));
  print(str(config.name, ": ", outcome.verdict.name, outcome.already_done ? " (finished before)" : "", " after ",
            outcome.steps, " steps: ", outcome.verdict.reason, "\nloss: first ", fixed(outcome.first_loss, 4),
            ", best ", fixed(outcome.best_loss, 4), ", final ", fixed(outcome.final_loss, 4),
            "\nfiles: ", outcome.directory.string(), "\n"));
  return exit_code(outcome.verdict, a.has("--strict"));
}

int command_sweep(const Arguments& a) {
  use_threads(a);
  const ConfigFile file = read_config(a.positional[0], a.all("--set"));
  if (file.sweep.empty()) throw ConfigError(str(a.positional[0], ": has no [sweep] section; use normlab run"));
  const std::vector<SweepPoint> points = expand(file);
  const Shard shard = shard_of(a);
  RunOptions options = run_options(a);
  options.out /= points[0].sweep;
  options.resume = !options.overwrite;

  std::vector<std::filesystem::path> done;
  bool failed = false, unstable = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (static_cast<int64_t>(i) % shard.count != shard.index - 1) continue;
    const RunConfig& config = points[i].config;
    if (a.has("--dry-run")) {
      print(str((options.out / config.name).string(), "\n"));
      continue;
    }
    const std::string place = str("[", i + 1, " of ", points.size(), "]");
    if (!options.quiet) message(place.c_str(), config.name.c_str());
    try {
      const RunOutcome outcome = train_run(config, options);
      if (outcome.verdict.name == "interrupted") {
        message("interrupted", str(config.name, "; the same command goes on").c_str());
        return 130;
      }
      if (!options.quiet) {
        message(place.c_str(),
                str(config.name, ": ", outcome.verdict.name, outcome.already_done ? " (finished before, skipped)" : "")
                    .c_str());
      }
      unstable = unstable || outcome.verdict.name != "stable";
      done.push_back(outcome.directory);
    } catch (const Error& error) {
      // One failing run must not cost the others.
      failed = true;
      message("failed", str(config.name, ": ", error.what()).c_str());
    }
  }
  if (!done.empty()) print(compare_table(load_runs(done, read_flat_config), "loss"));
  return failed || (a.has("--strict") && unstable) ? 3 : 0;
}

}  // namespace normlab
