// The configuration: every key there and back, and the exact words of every refusal.
#include "train/run_config.h"

#include <cmath>
#include <limits>
#include <locale>
#include <map>

#include "../test.h"
#include "core/files.h"
#include "core/text.h"
#include "train/combinations.h"

using namespace normlab;

namespace {

RunConfig config_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  return resolve(parse_config(text, "c.toml", sets).settings);
}

std::string error_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  try {
    config_of(text, sets);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return error.what();
  }
  return "no error";
}
std::string set_error_of(const std::string& set) { return error_of("", {set}); }

// A value of the field's type other than its current one, as TOML.
std::string other_value(const Field& f) {
  if (f.key == "model.kv_heads" || f.key == "model.ffn_width") return "2";  // 0 stands for what follows from other keys
  if (const auto* i = std::get_if<int64_t*>(&f.value))
    return str(**i == static_cast<int64_t>(f.min) ? **i + 1 : static_cast<int64_t>(f.min));
  if (const auto* b = std::get_if<bool*>(&f.value)) return **b ? "false" : "true";
  if (std::holds_alternative<std::array<double, 2>*>(f.value)) return "[0.25, 0.75]";
  if (const auto* s = std::get_if<std::string*>(&f.value)) {
    for (const std::string& choice : f.choices) {
      if (choice != **s) return "\"" + choice + "\"";
    }
    return f.choices.empty() ? "\"other text\"" : "";
  }
  if (std::holds_alternative<std::vector<std::string>*>(f.value)) return "";  // layer_ranges_test.cpp
  if (!f.choices.empty()) return "\"" + f.choices.back() + "\"";              // a word among a norm's options
  if (f.on_off) return *std::get<double*>(f.value) != 0 ? "false" : "true";
  const auto above = static_cast<int64_t>(f.min) + 1;
  if (f.whole) return std::to_string(std::to_string(above) == f.text() ? above - 1 : above);
  return number((f.min + std::min(f.max, 1.0)) / 4 + 0.001);
}

std::string value_of(RunConfig config, const std::string& key) {
  for (const Field& f : fields(config)) {
    if (f.key == key) return f.text();
  }
  return "absent";
}

// What a key needs beside it to be a valid configuration.
std::string company_of(const std::string& key, const std::string& value) {
  if (key == "model.width") return "model.heads = 1\n";
  if (key == "train.weight_decay") return "train.optimizer = \"adamw\"\n";
  if (key == "train.momentum") return "train.optimizer = \"sgd\"\n";
  if (key == "train.min_lr") return "train.lr = 1\ntrain.schedule = \"cosine\"\n";
  if (key == "data.path" || value == "\"text\"" || value == "\"tokens\"")
    return "data.source = \"text\"\ndata.path = \"f.txt\"\n";
  if (key == "norm.statistics") return "run.precision = \"bf16\"\n";
  if (key == "data.states") return "data.branches = 2\n";
  return "";
}

}  // namespace

TEST_CASE("every key of every norm and placement changes one value, which the dump writes and reads back") {
  std::vector<std::string> bases;
  for (const NormDef* norm : all_norms()) bases.push_back(str("model.norm = \"", norm->name, "\"\n"));
  for (const Placement* placement : all_placements())
    bases.push_back(str("model.placement = \"", placement->name, "\"\n"));
  for (const std::string& base : bases) {
    RunConfig standard = config_of(base);
    CHECK(dump(config_of(dump(standard))) == dump(standard));
    for (const Field& f : fields(standard)) {
      const std::string value = other_value(f);
      if (value.empty() || f.key == "model.norm" || f.key == "model.placement") continue;
      std::string text = base + company_of(f.key, value);
      if (text.find(f.key + " =") == std::string::npos) text += f.key + " = " + value + "\n";
      if (f.key == "model.width" && base.find("groupnorm") != std::string::npos) text += "norm.groups = 1\n";
      INFO(text);
      const RunConfig changed = config_of(text);
      CHECK(value_of(changed, f.key) != value_of(standard, f.key));
      CHECK(dump(config_of(dump(changed))) == dump(changed));
      CHECK(dump(config_of(dump(changed, true))) == dump(changed));
      bool named = false;
      for (const Difference& d : differences(standard, changed)) named = named || d.key == f.key;
      CHECK(named);
    }
  }
}

TEST_CASE("a resolved configuration holds the values that follow from others") {
  const RunConfig c = config_of("[model]\nlayers = 8\nwidth = 32\nheads = 2\nplacement = \"deepnorm\"\n");
  CHECK(c.kv_heads == 2);
  CHECK(c.ffn_width == 128);
  CHECK(c.norm_eps == 1e-6);
  CHECK(value_of(c, "placement.alpha") == "2.0");                   // (2 8)^(1/4)
  CHECK(value_of(c, "placement.beta").substr(0, 8) == "0.353553");  // 64^(-1/4)
  CHECK(config_of("[model]\nnorm = \"layernorm\"\n").norm_eps == 1e-5);
  CHECK(config_of("[model]\nnorm = \"layernorm\"\n[norm]\neps = 1e-3\n").norm_eps == 1e-3);
  // An "auto" that was resolved stays what it was.
  CHECK(differences(c, config_of(dump(c))).empty());
}

TEST_CASE("differences name each key with both values, absent ones too") {
  const auto d = differences(config_of(""), config_of("[model]\nnorm = \"groupnorm\"\nlayers = 3\n"));
  std::map<std::string, std::string> found;
  for (const Difference& one : d) found[one.key] = one.first + " -> " + one.second;
  CHECK(found == std::map<std::string, std::string>{{"model.layers", "24 -> 3"},
                                                    {"model.norm", "\"rmsnorm\" -> \"groupnorm\""},
                                                    {"norm.eps", "1e-06 -> 1e-05"},
                                                    {"norm.eps_position", "\"inside\" -> absent"},
                                                    {"norm.groups", "absent -> 4"},
                                                    {"norm.unit_offset", "false -> absent"}});
}

TEST_CASE("an unknown key, section or value is an error with its place and the nearest valid name") {
  CHECK(error_of("[model]\nnrom = \"rmsnorm\"\n") ==
        "c.toml:2:1: unknown key 'model.nrom' (did you mean 'model.norm'?)");
  CHECK(error_of("[train]\n  learning_rte = 1e-3\n").rfind("c.toml:2:3: unknown key 'train.learning_rte'", 0) == 0);
  CHECK(error_of("[train]\nlr-max = 1\n").rfind("c.toml:2:1: unknown key 'train.lr-max'", 0) == 0);
  CHECK(error_of("[modle]\nlayers = 2\n") == "c.toml:2:1: unknown key 'modle.layers' (did you mean 'model.layers'?)");
  CHECK(error_of("layers = 2\n") == "c.toml:1:1: unknown key 'layers'; keys stand in sections such as [model]");
  std::vector<std::string> norms;
  for (const NormDef* norm : all_norms()) norms.emplace_back(norm->name);
  CHECK(error_of("[model]\nnorm = \"rmsnrom\"\n") ==
        "c.toml:2:1: 'model.norm' is 'rmsnrom' (did you mean 'rmsnorm'?); expected one of: " + join(norms, ", "));
  CHECK(error_of("[model]\nqk_norm = \"batchnorm\"\n").find("expected one of: layernorm, rmsnorm, groupnorm, ") !=
        std::string::npos);
  CHECK(error_of("[norm]\neps_position = \"outsid\"\n") ==
        "c.toml:2:1: 'norm.eps_position' is 'outsid' (did you mean 'outside'?); expected one of: inside, outside, "
        "clamped");
  CHECK(error_of("[norm]\neps_position = 1\n") == "c.toml:2:1: 'norm.eps_position' must be a string in quotes, not 1");
}

TEST_CASE("an unknown key cannot send control characters to the terminal") {
  CHECK(error_of("[run]\n\"\\u001b[31mred\" = 1\n").find("unknown key 'run.\\x1b[31mred'") != std::string::npos);
}

TEST_CASE("an empty table of no section's name is not passed over") {
  CHECK(error_of("[modle]\n") == "c.toml:1:2: unknown key 'modle'; keys stand in sections such as [model]");
  CHECK(error_of("modle = {}\n") == "c.toml:1:1: unknown key 'modle'; keys stand in sections such as [model]");
  CHECK(error_of("[model.layers]\n") == "c.toml:1:8: 'model.layers' must be an integer, not a table");
  CHECK(error_of("[model]\nnorm = {}\n") == "c.toml:2:1: 'model.norm' must be a string in quotes, not a table");
  CHECK(error_of("[model]\n[placement]\n[data]\n[probe]\n") == "no error");
}

TEST_CASE("an eps that fp32 cannot hold is refused, and minus zero is zero") {
  CHECK(error_of("[norm]\neps = 1e-50\n") ==
        "c.toml:2:1: 'norm.eps' must be 0 or at least 1e-37, which fp32 can hold, not 1e-50");
  CHECK(error_of("[norm]\neps = 1e-30\n") == "no error");
  CHECK(dump(config_of("[train]\nz_loss = -0.0\n")) == dump(config_of("[train]\nz_loss = 0.0\n")));
}

TEST_CASE("eps is that of the first norm which reads one") {
  CHECK(config_of("[model]\nnorm = \"dyt\"\n").norm_eps == 0);
  CHECK(config_of("[model]\nnorm = \"dyt\"\nqk_norm = \"rmsnorm\"\n").norm_eps == 1e-6);
  CHECK(config_of("[model]\nnorm = \"none\"\nv_norm = \"layernorm\"\n").norm_eps == 1e-5);
  CHECK(config_of("[model]\nnorm = \"layernorm\"\nqk_norm = \"rmsnorm\"\n").norm_eps == 1e-5);
  CHECK(config_warnings(config_of("[model]\nnorm = \"dyt\"\n[norm]\neps = 1e-3\n")) ==
        std::vector<std::string>{"'norm.eps' has no effect: norm 'dyt' does not read it"});
}

TEST_CASE("options that their norms, inits and placements leave unread are named") {
  const auto warned = [](const std::string& text) { return config_warnings(config_of(text)); };
  using Sentences = std::vector<std::string>;
  CHECK(warned("[model]\nplacement = \"rezero\"\nlayer_norm = [\"layernorm:0-23\"]\n") ==
        Sentences{"'model.layer_norm' has no effect: placement 'rezero' does not read it"});
  CHECK(warned("[model]\nnorm = \"dyt\"\nlayer_norm = [\"layernorm:0-23\"]\n") ==
        Sentences{"'model.norm' has no effect: a model with 'model.layer_norm' and no final norm does not read it"});
  CHECK(warned("[model]\nplacement = \"pre\"\nnorm = \"dyt\"\nlayer_norm = [\"layernorm:0-23\"]\n").empty());
  CHECK(warned("[norm]\naffine = false\nunit_offset = true\n") ==
        Sentences{"'norm.unit_offset' has no effect: a norm with norm.affine = false does not read it"});
  CHECK(warned("[model]\nplacement = \"deepnorm\"\ninit = \"gpt2\"\n[placement]\nbeta = 0.5\n") ==
        Sentences{"'placement.beta' has no effect: init 'gpt2' does not read it"});
  CHECK(warned("[model]\nplacement = \"deepnorm\"\n[placement]\nbeta = 0.5\n").empty());
}

TEST_CASE("norms that need other channels than they get say so") {
  const auto cautions = [](const std::string& text) { return model_warnings(model_config(config_of(text), 10)); };
  CHECK(cautions("[model]\nwidth = 32\nheads = 4\nqk_norm = \"groupnorm\"\n") ==
        std::vector<std::string>{"qk_norm 'groupnorm' over 8 channels: groups of two channels are normed to -1 and 1, "
                                 "whatever they hold"});
  CHECK(cautions("[model]\nwidth = 32\nheads = 4\nnorm = \"groupnorm\"\n").empty());
  CHECK(cautions("[model]\nwidth = 16\nheads = 4\nnorm = \"prmsnorm\"\n") ==
        std::vector<std::string>{
            "norm 'prmsnorm' over 16 channels: it looks at the first channel only and divides by its "
            "size"});
  CHECK(cautions("[model]\nwidth = 17\nheads = 1\nnorm = \"prmsnorm\"\n").empty());
}

TEST_CASE("an option of another norm or placement is refused with its owner") {
  CHECK(error_of("[norm]\ngroups = 2\n") ==
        "c.toml:2:1: norm 'rmsnorm' does not read 'norm.groups' ('groupnorm', 'groupnorm_time', 'powernorm' do)");
  CHECK(error_of("[placement]\nalpha = 2\n") ==
        "c.toml:2:1: placement 'post' does not read 'placement.alpha' ('deepnorm', 'scaled_pre', 'rezero', 'skipinit', "
        "'keel' do)");
  // The one in force, wherever it was chosen.
  CHECK(error_of("[model]\nplacement = \"admin\"\n[placement]\nomega = 2\n", {"model.placement=pre"}) ==
        "c.toml:4:1: placement 'pre' does not read 'placement.omega' ('admin' does)");
  CHECK(error_of("[model]\nnorm = \"groupnorm\"\n[norm]\ngroups = 2\n") == "no error");
}

TEST_CASE("an option belongs to every norm of the model that reads it, QK norms too") {
  const RunConfig c = config_of("[model]\nwidth = 24\nheads = 4\nqk_norm = \"groupnorm\"\n[norm]\ngroups = 3\n");
  CHECK(model_config(c, 10).qk_norm.options.at("groups") == 3);
  CHECK(config_of("[model]\nqk_norm = \"groupnorm\"\n").norm_options.at("groups") == 4);
  CHECK(error_of("[model]\nwidth = 24\nheads = 4\nqk_norm = \"groupnorm\"\n[norm]\ngroups = 4\n") ==
        "c.toml:6:1: 'norm.groups' (4) must divide the width of a head (6), as 'model.qk_norm' is 'groupnorm'");
  CHECK(error_of("[model]\nwidth = 24\nheads = 4\nqk_norm = \"groupnorm\"\n") ==
        "c.toml:4:1: 'norm.groups' (4) must divide the width of a head (6), as 'model.qk_norm' is 'groupnorm'");
}

TEST_CASE("a norm's option that is a word is its place among the words, and is printed as the word") {
  const RunConfig c = config_of("[norm]\neps_position = \"clamped\"\n");
  CHECK(c.norm_options.at("eps_position") == 2);
  CHECK(value_of(c, "norm.eps_position") == "\"clamped\"");
  CHECK(value_of(config_of(dump(c)), "norm.eps_position") == "\"clamped\"");
  CHECK(value_of(resolve(parse_config("", "c.toml", {"norm.eps_position=outside"}).settings), "norm.eps_position") ==
        "\"outside\"");
}

TEST_CASE("norm.affine without effect is a warning, under norms that have neither gain nor bias") {
  const auto warned = [](const std::string& norm) {
    return config_warnings(config_of("[model]\nnorm = \"" + norm + "\"\n[norm]\naffine = false\n"));
  };
  CHECK(warned("layernorm").empty());
  CHECK(warned("adanorm") == std::vector<std::string>{"'norm.affine' has no effect: norm 'adanorm' does not read it"});
}

TEST_CASE("integers, floats and switches accept exactly what they say") {
  CHECK(config_of("[train]\nlr = 1\n").lr == 1);  // an integer is a number
  CHECK(error_of("[model]\nlayers = 2.0\n") == "c.toml:2:1: 'model.layers' must be an integer, not 2.0");
  CHECK(error_of("[model]\nlayers = 2.5\n") == "c.toml:2:1: 'model.layers' must be an integer, not 2.5");
  CHECK(error_of("[model]\nlayers = 1e3\n") == "c.toml:2:1: 'model.layers' must be an integer, not 1000.0");
  CHECK(error_of("[model]\ndropout = true\n") == "c.toml:2:1: 'model.dropout' must be a number, not true");
  for (const std::string value : {"0", "1", "\"yes\"", "\"true\"", "1.0"}) {
    INFO(value);
    CHECK(error_of("[model]\nbias = " + value + "\n").find("'model.bias' must be true or false, not ") !=
          std::string::npos);
  }
  CHECK(error_of("[train]\nlr = \"1e-5\"\n") == "c.toml:2:1: 'train.lr' must be a number, not \"1e-5\"");
  CHECK(error_of("[norm]\neps = \"small\"\n") == "c.toml:2:1: 'norm.eps' must be a number or \"auto\", not \"small\"");
  CHECK(error_of("[model]\nnorm = 3\n") == "c.toml:2:1: 'model.norm' must be a string in quotes, not 3");
  CHECK(error_of("[train]\nbetas = [0.9]\n") ==
        "c.toml:2:1: 'train.betas' must be a list of two numbers, not a list of 1");
  CHECK(error_of("[train]\nbetas = [0.9, \"x\"]\n") ==
        "c.toml:2:1: 'train.betas' must be a list of two numbers, not \"x\"");
  CHECK(error_of("[model]\nnorm = \"batchnorm\"\n[norm]\nmasked = 1\n") ==
        "c.toml:4:1: 'norm.masked' must be true or false, not 1");
  CHECK(error_of("[model]\nnorm = \"groupnorm\"\n[norm]\ngroups = 2.0\n") ==
        "c.toml:4:1: 'norm.groups' must be an integer, not 2.0");
}

TEST_CASE("exponents without a dot are numbers") {
  CHECK(config_of("[train]\nlr = 1e-5\n").lr == 1e-5);
  CHECK(config_of("[train]\nlr = 1E-5\n").lr == 1e-5);
  CHECK(config_of("[train]\nlr = +1e-3\n").lr == 1e-3);
  CHECK(config_of("[model]\nlayers = 1_000\n").layers == 1000);
  CHECK(error_of("[train]\nlr = .5\n").rfind("c.toml:2:6: ", 0) == 0);
  CHECK(error_of("[train]\nlr = 1.e-5\n").rfind("c.toml:2:", 0) == 0);
  CHECK(error_of("[train]\nlr = 0,1\n").rfind("c.toml:2:", 0) == 0);
}

TEST_CASE("a number out of its range is refused with the range") {
  CHECK(error_of("[model]\nlayers = 0\n") == "c.toml:2:1: 'model.layers' must be from 1 to 100000, not 0");
  CHECK(error_of("[model]\nlayers = -1\n") == "c.toml:2:1: 'model.layers' must be from 1 to 100000, not -1");
  CHECK(error_of("[model]\nlayers = 4294967296\n") ==
        "c.toml:2:1: 'model.layers' must be from 1 to 100000, not 4294967296");
  CHECK(error_of("[model]\ndropout = 1\n") == "c.toml:2:1: 'model.dropout' must be from 0 to 0.999, not 1");
  CHECK(error_of("[train]\nlr = -1e-3\n") == "c.toml:2:1: 'train.lr' must be from 0 to 1e+30, not -0.001");
  CHECK(error_of("[train]\nlr = nan\n") == "c.toml:2:1: 'train.lr' must be from 0 to 1e+30, not nan");
  CHECK(error_of("[train]\nlr = inf\n") == "c.toml:2:1: 'train.lr' must be from 0 to 1e+30, not inf");
  CHECK(error_of("[train]\nbetas = [0.9, 1.0]\n") == "c.toml:2:1: 'train.betas' must be from 0 to 0.9999999, not 1.0");
  CHECK(error_of("[run]\nseed = -1\n") == "c.toml:2:1: 'run.seed' must be at least 0, not -1");
  CHECK(config_of("[run]\nseed = 9223372036854775807\n").seed == std::numeric_limits<int64_t>::max());
  CHECK(error_of("[run]\nseed = 9223372036854775808\n").rfind("c.toml:2:8: ", 0) == 0);
  CHECK(error_of("[run]\nseed = 18446744073709551616\n").rfind("c.toml:2:8: ", 0) == 0);
}

TEST_CASE("settings that contradict each other are refused at the place of one of them") {
  CHECK(error_of("[model]\nwidth = 64\nheads = 5\n") ==
        "c.toml:3:1: 'model.width' (64) must be a multiple of 'model.heads' (5)");
  CHECK(error_of("[model]\nkv_heads = 3\n") ==
        "c.toml:2:1: 'model.heads' (4) must be a multiple of 'model.kv_heads' (3)");
  CHECK(error_of("[model]\nwidth = 12\nheads = 4\nposition = \"rope\"\n") ==
        "c.toml:4:1: rotary positions need heads of even width, not 3");
  CHECK(error_of("[train]\naccumulate = 3\n") ==
        "c.toml:2:1: 'train.batch' (16) must be a multiple of 'train.accumulate' (3)");
  CHECK(error_of("[train]\nslots = 3\n") == "c.toml:2:1: a micro-batch of 16 sequences does not divide into 3 slots");
  CHECK(error_of("[model]\nnorm = \"batchnorm\"\n[train]\nslots = 4\n")
            .rfind("c.toml:4:1: norm 'batchnorm' needs the whole batch", 0) == 0);
  CHECK(error_of("[train]\nschedule = \"cosine\"\nmin_lr = 1\n") ==
        "c.toml:3:1: 'train.min_lr' (1) must not exceed 'train.lr' (0.001)");
  CHECK(error_of("[train]\nmin_lr = 1e-4\n") == "c.toml:2:1: schedule 'constant' does not read 'train.min_lr'");
  CHECK(error_of("[train]\nschedule = \"cosine\"\nwarmup = 201\n") ==
        "c.toml:3:1: 'train.warmup' (201) must not exceed 'train.steps' (200) with schedule 'cosine'");
  CHECK(error_of("[train]\nwarmup = 1000\n") == "no error");  // a plain ramp, with a warning
  CHECK(error_of("[train]\nweight_decay = 0.1\n") ==
        "c.toml:2:1: optimizer 'adam' does not read 'train.weight_decay'; adamw does");
  CHECK(error_of("[train]\nmomentum = 0.9\n") ==
        "c.toml:2:1: optimizer 'adam' does not read 'train.momentum'; sgd does");
  CHECK(error_of("[train]\noptimizer = \"sgd\"\nbetas = [0.5, 0.5]\n") ==
        "c.toml:3:1: optimizer 'sgd' does not read 'train.betas'");
  CHECK(error_of("[data]\nsource = \"text\"\n") == "c.toml:2:1: data source 'text' needs 'data.path'");
  CHECK(error_of("[data]\npath = \"x\"\n") == "c.toml:2:1: data source 'stories' does not read 'data.path'");
  CHECK(error_of("[data]\nsource = \"markov\"\nstates = 4\n") ==
        "c.toml:3:1: 'data.branches' (8) must not exceed 'data.states' (4)");
  for (const std::string name : {"", ".", "..", "a/b"}) {
    CHECK(error_of("[run]\nname = \"" + name + "\"\n")
              .rfind("c.toml:2:1: 'run.name' must be a plain directory name of up to 200 bytes, not ", 0) == 0);
  }
}

TEST_CASE(
    "a key twice is an error with both lines, whether in one section, two sections or twice on the command line") {
  CHECK(error_of("[train]\nlr = 1e-3\nlr = 1e-4\n") == "c.toml:3:1: duplicate key 'train.lr' (first at line 2)");
  CHECK(error_of("[train]\nlr = 1\n[model]\n[train]\n")
            .rfind("c.toml:4:2: table 'train' is already defined (line 1)", 0) == 0);
  CHECK(error_of("", {"train.lr=1", "train.lr=2"}) == "--set train.lr is given twice");
}

TEST_CASE("a byte order mark and CRLF line ends change nothing") {
  const std::string text = "[model]\nnorm = \"layernorm\"\nlayers = 3\n[train]\nlr = 1e-5\n";
  std::string crlf = "\xEF\xBB\xBF";
  for (const char c : text) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  CHECK(dump(config_of(crlf)) == dump(config_of(text)));
}

TEST_CASE("a locale with decimal commas changes neither reading nor writing") {
  struct German : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::string text = "[train]\nlr = 0.125\nsteps = 10000\n", wanted = dump(config_of(text));
  const std::locale before = std::locale::global(std::locale(std::locale(), new German));
  const RunConfig config = config_of(text, {"train.clip=2.5"});
  const std::string written = dump(config_of(text));
  std::locale::global(before);
  CHECK(config.lr == 0.125);
  CHECK(config.clip == 2.5);
  CHECK(written == wanted);
  CHECK(written.find("steps = 10000\n") != std::string::npos);
}

TEST_CASE("--set overrides the file and takes numbers, bare words, paths and quoted strings") {
  CHECK(config_of("[train]\nlr = 1e-3\n", {"train.lr=0.5"}).lr == 0.5);
  CHECK(config_of("", {"model.norm=layernorm"}).norm == "layernorm");
  CHECK(config_of("", {"model.norm=\"layernorm\""}).norm == "layernorm");
  CHECK(config_of("", {" model.norm = layernorm "}).norm == "layernorm");
  CHECK(config_of("", {"model.bias=false"}).bias == false);
  CHECK(config_of("", {"train.betas=[0.5, 0.75]"}).betas == std::array<double, 2>{0.5, 0.75});
  CHECK(config_of("", {"data.source=text", "data.path=../my text.txt"}).data.path == "../my text.txt");
  CHECK(config_of("", {"data.source=text", "data.path=a=b"}).data.path == "a=b");
  CHECK(config_of("[data]\nsource = \"stories\"\npath = \"x\"\n", {"data.path="}).data.path.empty());
  CHECK(config_of("", {"run.name=24-layers"}).name == "24-layers");
  CHECK(
      std::isfinite(config_of("", {"model.placement=deepnorm", "placement.alpha=auto"}).placement_options.at("alpha")));
}

TEST_CASE("a wrong --set is refused, and a broken number is not taken for text") {
  CHECK(set_error_of("train.lr") == "--set needs section.key=value, not 'train.lr'");
  CHECK(set_error_of("=3") == "--set needs section.key=value, not '=3'");
  CHECK(set_error_of("model.nrom=x") == "--set model.nrom: unknown key 'model.nrom' (did you mean 'model.norm'?)");
  CHECK(set_error_of("model.norm=rmsnrom")
            .rfind("--set model.norm: 'model.norm' is 'rmsnrom' (did you mean 'rmsnorm'?)", 0) == 0);
  CHECK(set_error_of("train.steps=many") == "--set train.steps: 'train.steps' must be an integer, not \"many\"");
  CHECK(set_error_of("model.bias=False") == "--set model.bias: 'model.bias' must be true or false, not \"False\"");
  CHECK(set_error_of("model.bias=0") == "--set model.bias: 'model.bias' must be true or false, not 0");
  CHECK(set_error_of("model.layers=0") == "--set model.layers: 'model.layers' must be from 1 to 100000, not 0");
  for (const std::string value :
       {"9223372036854775808", "0x8000000000000000", "1_", "-", "1e", "[1", "\"1", "{a", ""}) {
    INFO(value);
    const std::string message = set_error_of("run.seed=" + value);
    CHECK(message.rfind("--set run.seed:1:", 0) == 0);
    CHECK(message.find("must be an integer") == std::string::npos);
  }
  CHECK(set_error_of("train.lr=0,1").rfind("--set train.lr:1:2: ", 0) == 0);
  CHECK(set_error_of("model.norm=\"layernorm").rfind("--set model.norm:1:", 0) == 0);
}
