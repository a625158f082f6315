// The configuration of a run and its one list of fields. Parsing, ranges, --set, help, the resolved dump, sweep axes
// and the check that a resumed run is the same run all walk that list; a new key is one line in fields().
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "config/toml.h"
#include "data/corpus.h"
#include "normlab/model.h"
#include "train/trainer.h"

namespace normlab {

struct RunConfig {
  std::string name = "run";
  int64_t seed = 1;
  std::string precision = "fp32";

  int64_t layers = 24, width = 64, heads = 4, kv_heads = 0, ffn_width = 0, context = 64;
  std::string activation = "gelu", position = "learned", norm = "rmsnorm", placement = "post", final_norm = "auto",
              qk_norm = "none", qk_norm_over = "head", qk_norm_at = "before_rope", v_norm = "none", init = "auto";
  std::vector<std::string> layer_norm, layer_placement;  // ranges of layers; empty: norm and placement everywhere
  bool bias = true, tie_embeddings = false;
  double attention_scale;  // NaN = auto: 1 / sqrt(width / heads)
  bool attention_scale_learned = false;
  double attention_cap = 0, logit_cap = 0;
  double dropout = 0;

  double norm_eps;  // NaN = auto: the norm's own
  bool norm_affine = true, norm_fused = true;
  std::string norm_statistics = "fp32";
  Options norm_options, placement_options;

  DataConfig data;
  int64_t data_seed = 1;

  bool recompute = false;
  int64_t steps = 200, batch = 16, accumulate = 1, slots = 0, warmup = 0;
  std::string optimizer = "adam", schedule = "constant";
  std::array<double, 2> betas = {0.9, 0.999};
  double lr = 1e-3, min_lr = 0, adam_eps = 1e-8, momentum = 0, weight_decay = 0, z_loss = 0, clip = 0;

  int64_t eval_every = 50, eval_batches = 8;
  int64_t checkpoint_every = 0;
  int64_t probe_every = 0;

  RunConfig();
};

// One key. The value points into a RunConfig; NaN in a number that allows it means "auto".
struct Field {
  std::string key;  // "model.layers"
  std::string help;
  std::variant<int64_t*, double*, bool*, std::string*, std::array<double, 2>*, std::vector<std::string>*> value;
  double min = 0, max = 0;           // of numbers, inclusive
  std::vector<std::string> choices;  // of strings, empty = any text; of a number: the words it stands for, by place
  bool allows_auto = false;
  bool whole = false;  // an option kept as a double that must be a whole number, or 0 / 1 for a switch
  bool on_off = false;

  std::string text() const;  // the value as TOML
};

// All keys of `config`, in the order of the file; the options of its norm and placement among them.
std::vector<Field> fields(RunConfig& config);

// Every norm that stands in the stream, and every placement.
std::vector<const NormDef*> norms_of(const RunConfig& config);
std::vector<const Placement*> placements_of(const RunConfig& config);

// A value for a key, and where it was written: "file:line:column" or "--set key".
struct Setting {
  std::string key;
  Toml value;
  std::string where;
};

struct SweepAxis {
  std::string key;
  std::vector<Toml> values;
  std::string where;
};

struct ConfigFile {
  std::vector<Setting> settings;  // all but [sweep], later ones win
  std::vector<SweepAxis> sweep;
};

// Reads a file and adds the --set texts ("section.key=value") behind it. A key twice in the file or twice on the
// command line is an error.
ConfigFile read_config(const std::filesystem::path& path, const std::vector<std::string>& sets);
ConfigFile parse_config(std::string_view text, std::string_view name, const std::vector<std::string>& sets);

// Applies the settings to the defaults and checks every name, type, range and combination.
RunConfig resolve(const std::vector<Setting>& settings);

// norm.eps = "auto": the default of the first norm that reads it: the stream's, those of layers, of queries and keys, of
// values; 0 where none does.
double automatic_eps(const RunConfig& config);

// Resolved, as TOML that gives the same run again; `annotated` adds each key's line of help.
std::string dump(const RunConfig& config, bool annotated = false);

// Every key whose value differs, as TOML.
struct Difference {
  std::string key, first, second;
};
std::vector<Difference> differences(const RunConfig& a, const RunConfig& b);

ModelConfig model_config(const RunConfig& config, int64_t vocabulary);
TrainConfig train_config(const RunConfig& config);
DataConfig data_config(const RunConfig& config);

}  // namespace normlab
