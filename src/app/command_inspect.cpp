// normlab check, normlab list, normlab data.
#include <algorithm>
#include <cmath>
#include <functional>

#include "app/commands.h"
#include "core/text.h"
#include "kernels/kernels.h"
#include "lab/progress.h"
#include "lab/run.h"
#include "lab/sweep.h"
#include "normlab/error.h"

namespace normlab {

namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 2, width), ' ');
  return text;
}

std::string_view fill_name(ParamSpec::Fill fill) {
  switch (fill) {
    case ParamSpec::Fill::constant: return "constant";
    case ParamSpec::Fill::normal: return "normal";
    case ParamSpec::Fill::uniform: return "uniform";
    case ParamSpec::Fill::truncated: return "truncated normal";
  }
  return "";
}

// What is drawn, matrices (and biases, under some inits) of equal role and distribution in one line: "query
// 24 x (64, 64)  normal, std 0.125".
std::string matrices(const ParamStore& store) {
  struct Line {
    Role role;
    Shape shape;
    ParamSpec::Fill fill;
    double std;
    int64_t count;
  };
  std::vector<Line> lines;
  int64_t vectors = 0, vector_elements = 0, states = 0;
  for (int p = 0; p < store.count(); ++p) {
    const ParamSpec& spec = store.spec(p);
    if (spec.role == Role::vector) {
      (spec.trainable ? vectors : states) += 1;
      vector_elements += spec.trainable ? spec.shape.count() : 0;
      if (spec.fill == ParamSpec::Fill::constant) continue;
    }
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& l) {
      return l.role == spec.role && l.shape == spec.shape && l.fill == spec.fill && l.std == spec.std;
    });
    if (same != lines.end())
      ++same->count;
    else
      lines.push_back({spec.role, spec.shape, spec.fill, spec.std, 1});
  }
  std::string out;
  for (const Line& l : lines) {
    out += str("#   ", padded(l.role == Role::vector ? "bias" : role_name(l.role), 20),
               padded(str(l.count, " x ", l.shape.text()), 20), fill_name(l.fill), ", std ", fixed(l.std, 6), "\n");
  }
  out += str("#   ", padded("vectors", 20), vectors, " gains and biases, ", grouped(vector_elements),
             " elements, without weight decay", states > 0 ? str("; ", states, " running statistics") : "", "\n");
  return out;
}

// "; layers 0-2, 5" for those of `layers` that fit; "" where none is counted.
std::string layers_where(int64_t layers, const std::function<bool(int64_t)>& fits) {
  std::vector<std::string> ranges;
  for (int64_t first = 0; first < layers; ++first) {
    if (!fits(first)) continue;
    int64_t last = first;
    while (last + 1 < layers && fits(last + 1)) ++last;
    ranges.push_back(first == last ? std::to_string(first) : str(first, "-", last));
    first = last;
  }
  return ranges.empty() ? "" : str("; layers ", join(ranges, ", "));
}

void print_check(const RunConfig& config) {
  const Corpus corpus = load_corpus(data_config(config), config.context);
  const ModelConfig model = model_config(config, corpus.vocabulary());
  const Trainer trainer(model, train_config(config), nullptr, 0, false);
  const Cost cost = trainer.cost();
  const double tokens = static_cast<double>(config.batch * config.context);
  print(dump(config, true));
  print("\n");
  for (const NormDef* norm : norms_of(model)) {
    print(str("# norm            ", norm->formula, norm->default_eps > 0 ? str(", eps ", model.norm.eps) : "",
              layers_where(model.layer_norms.empty() ? 0 : model.layers,
                           [&](int64_t layer) { return model.norm_of(layer).def == norm; }),
              "\n"));
  }
  for (const Placement* placement : placements_of(model)) {
    const DepthGain* gain = gain_of(*model.init, *placement);
    print(str("# placement       ", placement->formula,
              layers_where(model.layer_placements.empty() ? 0 : model.layers,
                           [&](int64_t layer) { return &model.placement_of(layer) == placement; }),
              "\n# init gains      ", gain == nullptr ? "none" : gain->rule, "\n"));
    if (is_measured(*placement, model.placement_options))
      print(str("# measured        ", placement->measured.vector,
                " starts from the variances of a forward pass of the first batch\n"));
  }
  print(str("# init            ", model.init->formula, "\n"));
  print(str("# final norm      ", has_final_norm(model) ? "on" : "off", "\n# data            ", corpus.description(),
            "\n# vocabulary      ", corpus.vocabulary(), "\n# entropy         ",
            fixed(corpus.context_free_entropy(), 4), " nats context-free, ln V ",
            fixed(std::log(static_cast<double>(corpus.vocabulary())), 4), "\n# parameters      ",
            grouped(cost.parameters), "\n"));
  print(matrices(trainer.params()));
  print(str("# memory          ", bytes(cost.memory), " in ", trainer.slots(),
            trainer.slots() == 1 ? " slot" : " slots", "\n# FLOPs per token ",
            grouped(static_cast<int64_t>(cost.flops_per_token)), " forward and backward\n# FLOPs per step  ",
            fixed(cost.flops_per_token * tokens / 1e9, 3), " G for ", grouped(static_cast<int64_t>(tokens)),
            " tokens\n"));
  for (const std::string& text : warnings(config, model)) message("warning", text.c_str());
}

std::string options_text(const std::vector<OptionSpec>& options, std::string_view section) {
  std::string out;
  for (const OptionSpec& o : options) {
    const std::vector<std::string> words(o.words.begin(), o.words.end());
    const std::string standard = std::isnan(o.standard)                ? "auto"
                                 : o.kind == OptionSpec::Kind::boolean ? (o.standard != 0 ? "true" : "false")
                                 : o.kind == OptionSpec::Kind::word    ? words[static_cast<std::size_t>(o.standard)]
                                                                       : number(o.standard);
    out += str("                option ", section, ".", o.name, " = ", standard, ": ", o.help,
               words.empty() ? "" : str(": ", join(words, " | ")), "\n");
  }
  return out;
}

void list_norms() {
  for (const NormDef* n : all_norms()) {
    print(str(padded(std::string(n->name), 16), n->formula, "\n                ", n->source, "; eps ", n->default_eps,
              n->eps_reason.empty() ? "" : str(" (", n->eps_reason, ")"),
              n->shift_invariant ? "; invariant to shift" : "",
              n->scale_invariant ? (n->shift_invariant ? " and scale" : "; invariant to scale") : "",
              n->reach == Reach::token ? "" : "; leaks future tokens in a causal model", "\n",
              options_text(n->options, "norm")));
  }
}

void list_placements() {
  for (const Placement* p : all_placements()) {
    print(str(padded(std::string(p->name), 16), p->formula, "\n                ", p->source, "; final norm ",
              p->final_norm ? "on" : "off", "; init gains: ", p->init_gain == nullptr ? "none" : p->init_gain->rule,
              "\n", options_text(p->options, "placement")));
  }
}

void list_inits() {
  for (const InitDef* i : all_inits())
    print(str(padded(std::string(i->name), 16), i->formula, "\n                ", i->source, "\n"));
}

struct Listing {
  std::string_view name;
  void (*print_all)();
};

template <class Registry, class Text>
void print_registry(const Registry& registry, const Text& text) {
  for (const auto& entry : registry) print(str(padded(std::string(entry.name), 16), text(entry), "\n"));
}

const Listing kListings[] = {
    {"norms", list_norms},
    {"placements", list_placements},
    {"inits", list_inits},
    {"optimizers",
     [] { print_registry(all_optimizers(), [](const OptimizerDef& o) { return std::string(o.formula); }); }},
    {"schedules", [] { print_registry(all_schedules(), [](const ScheduleDef& s) { return std::string(s.formula); }); }},
    {"data", [] { print_registry(data_sources(), [](const DataSource& s) { return std::string(s.summary); }); }},
    {"kernels",
     [] {
       for (const KernelTable* k : all_kernels()) {
         print(str(padded(k->name, 16), k->about,
                   !k->supported()   ? " (not supported by this processor)"
                   : k == &kernels() ? " (in use)"
                                     : "",
                   "\n"));
       }
     }},
};

}  // namespace

int command_check(const Arguments& a) {
  const ConfigFile file = read_config(a.positional[0], a.all("--set"));
  if (file.sweep.empty()) {
    print_check(resolve(file.settings));
    return 0;
  }
  // The file alone need not be a whole configuration: the axes are part of it.
  const std::vector<SweepPoint> points = expand(file);
  print_check(points[0].config);
  print(str("# sweep           the first of ", points.size(), " combinations, all valid\n"));
  return 0;
}

int command_list(const Arguments& a) {
  std::vector<std::string> names;
  for (const Listing& listing : kListings) {
    names.emplace_back(listing.name);
    if (a.positional.empty()) print(str(listing.name == "norms" ? "" : "\n", listing.name, ":\n"));
    if (a.positional.empty() || a.positional[0] == listing.name) listing.print_all();
  }
  if (!a.positional.empty() && std::find(names.begin(), names.end(), a.positional[0]) == names.end()) {
    throw UsageError(str("normlab list: unknown list ", quote(a.positional[0]), did_you_mean(a.positional[0], names),
                         "; expected one of: ", join(names, ", ")));
  }
  return 0;
}

int command_data(const Arguments& a) {
  const RunConfig config = config_of(a);
  const Corpus corpus = load_corpus(data_config(config), config.context);
  if (a.has("--batches")) {
    const int64_t updates = a.integer("--batches", 1, 1, 1000000000);
    const Batches batches(corpus, static_cast<uint64_t>(config.seed), config.context);
    std::vector<int32_t> tokens(static_cast<std::size_t>(config.context)), targets(tokens.size());
    print("step,sequence,position,input,target\n");
    for (int64_t step = 1; step <= updates; ++step) {
      for (int64_t sequence = 0; sequence < config.batch; ++sequence) {
        batches.train(step, sequence, tokens.data(), targets.data());
        std::string rows;
        for (std::size_t t = 0; t < tokens.size(); ++t)
          rows += str(step, ",", sequence, ",", t, ",", tokens[t], ",", targets[t], "\n");
        print(rows);
      }
    }
    return 0;
  }
  const auto train = corpus.train().size(), validation = corpus.validation().size();
  print(str("source                ", corpus.description(), "\ntokens                ",
            grouped(static_cast<int64_t>(train + validation)), " (", grouped(static_cast<int64_t>(train)),
            " to train, ", grouped(static_cast<int64_t>(validation)), " to validate)\nvocabulary            ",
            corpus.vocabulary(), "\nln V                  ",
            fixed(std::log(static_cast<double>(corpus.vocabulary())), 4), " nats per token\ncontext-free entropy  ",
            fixed(corpus.context_free_entropy(), 4), "\ngiven one token       ", fixed(corpus.bigram_entropy(), 4),
            "\n"));
  if (corpus.entropy_rate()) print(str("entropy rate          ", fixed(*corpus.entropy_rate(), 4), " (exact)\n"));
  std::vector<int32_t> first(corpus.train().begin(),
                             corpus.train().begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(400, train)));
  print(str("\n", corpus.decode(first), "\n"));
  return 0;
}

}  // namespace normlab
