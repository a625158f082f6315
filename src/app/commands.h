// The commands behind the table in commands.cpp. Each returns its exit code.
#pragma once

#include "app/cli.h"
#include "lab/run.h"
#include "report/compare.h"

namespace normlab {

int command_run(const Arguments& a);
int command_sweep(const Arguments& a);
int command_compare(const Arguments& a);
int command_check(const Arguments& a);
int command_list(const Arguments& a);
int command_data(const Arguments& a);
int command_sample(const Arguments& a);
int command_export(const Arguments& a);
int command_gradcheck(const Arguments& a);
int command_bench(const Arguments& a);
int command_probe(const Arguments& a);
int command_find(const Arguments& a);
int command_removal(const Arguments& a);
int command_landscape(const Arguments& a);
int command_invariance(const Arguments& a);

// Writes to stdout.
void print(const std::string& text);

// The CONFIG operand, the first unless said, with its --set options, resolved; refuses a [sweep] section.
RunConfig config_of(const Arguments& a, std::size_t operand = 0);

// --out, --resume, --overwrite, --quiet, and a stop after the step in which a signal arrives.
RunOptions run_options(const Arguments& a);

// A run's config.toml as compare shows it, key by key.
FlatConfig read_flat_config(const std::filesystem::path& path);

// UsageError where an output would replace one of the inputs or another output. Empty names are options not given.
void refuse_overwriting(const std::vector<std::filesystem::path>& outputs,
                        const std::vector<std::filesystem::path>& inputs);

// Applies --threads.
void use_threads(const Arguments& a);

}  // namespace normlab
