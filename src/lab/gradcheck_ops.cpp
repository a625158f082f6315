// One or more gradient check cases for every op. A name starts with Op::name().
#include <cmath>

#include "core/text.h"
#include "lab/gradcheck.h"
#include "normlab/ops.h"

namespace normlab {

namespace {

using Ignored = GradcheckCase::Ignored;

double away_from_zero(double z) { return z + std::copysign(0.5, z); }
double positive(double z) { return 1.5 + std::abs(z); }

class Cases {
 public:
  // Sizes B = 2, T = 5 unless changed in what is returned.
  GradcheckCase& operator()(std::string name, std::function<Var(CaseInputs&)> record, Graph::Sizes sizes = {2, 5}) {
    GradcheckCase c;
    c.section = "op";
    c.name = std::move(name);
    c.sizes = sizes;
    c.record = std::move(record);
    all.push_back(std::move(c));
    return all.back();
  }
  std::vector<GradcheckCase> all;
};

// (B, T, C) of the graph.
Var input(CaseInputs& in, const std::string& name, int64_t width, CaseInputs::Fill fill = {}) {
  return in.tensor(name, {in.graph.batch(), in.graph.time(), width}, std::move(fill));
}

void matrices_and_tables(Cases& add_case) {
  add_case("linear: bias", [](CaseInputs& in) {
    return linear(input(in, "x", 6), in.weight("w", {4, 6}), in.weight("b", {4}));
  });
  add_case("linear: no bias", [](CaseInputs& in) { return linear(input(in, "x", 3), in.weight("w", {1, 3}), {}); });
  add_case("linear: many rows, odd widths",
           [](CaseInputs& in) {
             return linear(input(in, "x", 20), in.weight("w", {33, 20}), in.weight("b", {33}));
           },
           {2, 35});
  add_case("embedding: table", [](CaseInputs& in) { return embedding(in.graph, in.weight("table", {7, 6})); });
  add_case("embedding: also the head (tied)", [](CaseInputs& in) {
    const Var table = in.weight("table", {7, 6});
    return linear(embedding(in.graph, table), table, {});
  });
  add_case("add_positions: as many as time", [](CaseInputs& in) {
    return add_positions(input(in, "x", 6), in.weight("table", {5, 6}));
  });
  add_case("add_positions: more than time", [](CaseInputs& in) {
    return add_positions(input(in, "x", 20), in.weight("table", {9, 20}));
  });
  add_case("add_sinusoids: even", [](CaseInputs& in) { return add_sinusoids(input(in, "x", 20)); });
  add_case("add_sinusoids: odd", [](CaseInputs& in) { return add_sinusoids(input(in, "x", 5)); });
}

void elementwise(Cases& add_case) {
  add_case("add: two", [](CaseInputs& in) { return add(input(in, "x", 20), input(in, "y", 20), 0.7, -1.3); });
  add_case("add: one twice", [](CaseInputs& in) {
    const Var x = input(in, "x", 6);
    return add(x, x, 0.7, 2);
  });
  add_case("add: grouped rows with plain ones", [](CaseInputs& in) {
    return add(in.graph.split(input(in, "x", 20), 4), in.tensor("y", {in.graph.batch(), in.graph.time(), 4, 5}));
  });
  add_case("multiply: two", [](CaseInputs& in) { return multiply(input(in, "x", 20), input(in, "y", 20)); });
  add_case("multiply: one twice", [](CaseInputs& in) {
    const Var x = input(in, "x", 6);
    return multiply(x, x);
  });
  add_case("affine: factor and offset", [](CaseInputs& in) { return affine(input(in, "x", 20), -0.6, 0.4); });
  add_case("affine: of a statistic",
           [](CaseInputs& in) { return affine(rms(input(in, "x", 20), 0.1, {.over = Over::time}), 2, 0.5); });
  struct Named {
    Activation f;
    const char* name;
  };
  for (const Named& a :
       {Named{Activation::relu, "relu"}, Named{Activation::gelu, "gelu"}, Named{Activation::gelu_tanh, "gelu_tanh"},
        Named{Activation::silu, "silu"}, Named{Activation::tanh, "tanh"}, Named{Activation::erf, "erf"}}) {
    const Activation f = a.f;
    add_case(str("activation: ", a.name), [f](CaseInputs& in) {
      return activation(input(
                            in, "x", 20, f == Activation::relu ? away_from_zero : [](double z) { return 2 * z; }),
                        f);
    });
  }
  GradcheckCase& detached = add_case("detach: one of two", [](CaseInputs& in) {
    const Var x = input(in, "x", 6);
    return multiply(detach(x), x);
  });
  detached.rough = "leaves a part of the derivative out by design";
  add_case("dropout: training", [](CaseInputs& in) { return dropout(input(in, "x", 20), 0.3); });
  add_case("dropout: evaluation", [](CaseInputs& in) { return dropout(input(in, "x", 6), 0.3); }).training = false;
}

void channels(Cases& add_case) {
  add_case("scale_channels: (B, T, C)",
           [](CaseInputs& in) { return scale_channels(input(in, "x", 20), in.weight("gain", {20})); });
  add_case(
      "scale_channels: 70 channels, heads",
      [](CaseInputs& in) { return scale_channels(in.graph.split(input(in, "x", 140), 2), in.weight("gain", {70})); },
      {1, 2});
  for (const int64_t parts : {1, 4, 20}) {
    add_case(str("scale_parts: ", parts),
             [parts](CaseInputs& in) { return scale_parts(input(in, "x", 20), in.weight("factors", {parts})); });
  }
  add_case("scale_parts: one factor, many rows",
           [](CaseInputs& in) { return scale_parts(input(in, "x", 70), in.weight("factor", {1})); }, {2, 40});
  add_case("scale_parts: within heads", [](CaseInputs& in) {
    return scale_parts(in.graph.split(input(in, "x", 24), 2), in.weight("factors", {3}));
  });
  add_case("shift_channels: (B, T, C)",
           [](CaseInputs& in) { return shift_channels(input(in, "x", 20), in.weight("bias", {20})); });
  add_case("shift_channels: heads", [](CaseInputs& in) {
    return shift_channels(in.graph.split(input(in, "x", 20), 4), in.weight("bias", {5}));
  });
}

void parts_of_channels(Cases& add_case) {
  add_case("scale_channels: one number",
           [](CaseInputs& in) { return scale_channels(input(in, "x", 20), in.weight("gain", {1})); });
  add_case("scale_channels: one number, one channel",
           [](CaseInputs& in) { return scale_channels(input(in, "x", 1), in.weight("gain", {1})); });
  add_case("shift_channels: one number, heads", [](CaseInputs& in) {
    return shift_channels(in.graph.split(input(in, "x", 20), 4), in.weight("bias", {1}));
  });
  add_case("first_channels: some", [](CaseInputs& in) { return first_channels(input(in, "x", 20), 3); });
  add_case("first_channels: heads",
           [](CaseInputs& in) { return first_channels(in.graph.split(input(in, "x", 20), 4), 2); });
  add_case("gather_groups: 4 of 5 channels", [](CaseInputs& in) { return gather_groups(input(in, "x", 20), 4); });
  add_case("scatter_groups: 4 of 5 channels", [](CaseInputs& in) {
    return scatter_groups(in.tensor("x", {in.graph.batch(), 4, 25}), in.graph.time());
  });
}

// center, rms and divide over one kind of statistic. The input of each is a plain tensor, so that each op stands alone.
void statistics(Cases& add_case) {
  struct Kind {
    const char* name;
    Statistic statistic;
    bool heads = false, running = false, training = true;
    Ignored ignored = Ignored::none;
  };
  const Kind kinds[] = {
      {"channels", {.over = Over::channels}},
      {"channels of a head", {.over = Over::channels}, true},
      {"time", {.over = Over::time}},
      {"time, targets ignored, not masked", {.over = Over::time}, false, false, true, Ignored::some},
      {"time, masked", {.over = Over::time, .masked = true}, false, false, true, Ignored::some},
      {"time, masked, a sequence ignored", {.over = Over::time, .masked = true}, false, false, true, Ignored::sequence},
      {"batch", {.over = Over::batch}},
      {"batch, masked", {.over = Over::batch, .masked = true}, false, false, true, Ignored::some},
      {"batch, running, training", {.over = Over::batch}, false, true},
      {"batch, running, masked, training", {.over = Over::batch, .masked = true}, false, true, true, Ignored::some},
      {"batch, running, evaluation", {.over = Over::batch}, false, true, false},
  };
  for (const Kind& k : kinds) {
    const auto add_both = [&](const char* op, std::function<Var(Var, const Statistic&)> f) {
      GradcheckCase& c = add_case(str(op, ": ", k.name), [k, f](CaseInputs& in) {
        Var x = input(in, "x", 20);
        if (k.heads) x = in.graph.split(x, 4);
        Statistic s = k.statistic;
        if (k.running) s.running = in.state("running", {20}, 1);
        return f(x, s);
      });
      c.training = k.training;
      c.ignored = k.ignored;
    };
    add_both("center", [](Var x, const Statistic& s) { return center(x, s); });
    // Alone at evaluation rms is a constant of its input; a product gives the input a gradient again.
    add_both("rms",
             [](Var x, const Statistic& s) { return s.running ? divide(x, rms(x, 0.1, s), s.over) : rms(x, 0.1, s); });
  }
  add_case("center: more than 64 channels",
           [](CaseInputs& in) { return center(input(in, "x", 70), {.over = Over::time}); }, {1, 3});
  add_case("rms: more than 64 channels",
           [](CaseInputs& in) { return rms(input(in, "x", 70), 0.1, {.over = Over::batch}); }, {1, 3});
  add_case("rms: groups of one channel",
           [](CaseInputs& in) { return rms(in.graph.split(input(in, "x", 20), 20), 0.1, {}); });
  add_case("divide: channels", [](CaseInputs& in) {
    return divide(input(in, "x", 20), in.tensor("s", {2, 5, 1}, positive), Over::channels);
  });
  add_case("divide: channels of a head", [](CaseInputs& in) {
    return divide(in.graph.split(input(in, "x", 20), 4), in.tensor("s", {2, 5, 4, 1}, positive), Over::channels);
  });
  add_case("divide: time", [](CaseInputs& in) {
    return divide(input(in, "x", 20), in.tensor("s", {2, 20}, positive), Over::time);
  });
  add_case("divide: batch",
           [](CaseInputs& in) { return divide(input(in, "x", 70), in.tensor("s", {70}, positive), Over::batch); },
           {1, 3});
  add_case("center: split, merged and read whole", [](CaseInputs& in) {
    const Var x = input(in, "x", 20);
    return multiply(in.graph.merge(center(in.graph.split(x, 4), {})), x);
  });
}

void row_norms(Cases& add_case) {
  for (const bool centered : {true, false}) {
    const std::string op = centered ? "layer_norm" : "rms_norm";
    for (const bool gain : {true, false}) {
      for (const bool bias : {true, false}) {
        add_case(str(op, ": ", gain ? "gain" : "no gain", bias ? ", bias" : ", no bias"), [=](CaseInputs& in) {
          const Var x = input(in, "x", 20);
          const Var g = gain ? in.weight("gain", {20}) : Var{};
          return row_norm(x, g, bias ? in.weight("bias", {20}) : Var{}, 1e-5, centered);
        });
      }
    }
    add_case(op + ": 300 rows",
             [=](CaseInputs& in) {
               const Var x = input(in, "x", 3), g = in.weight("gain", {3});
               return row_norm(x, g, in.weight("bias", {3}), 1e-1, centered);
             },
             {2, 150});
    add_case(op + ": heads", [=](CaseInputs& in) {
      return row_norm(in.graph.split(input(in, "x", 20), 4), in.weight("gain", {5}), {}, 1e-5, centered);
    });
  }
}

void attention_and_loss(Cases& add_case) {
  struct Heads {
    int64_t heads, kv_heads, width, time;
  };
  for (const Heads& h : {Heads{4, 2, 3, 5}, Heads{3, 3, 2, 33}, Heads{4, 1, 2, 40}, Heads{2, 2, 1, 70},
                         Heads{2, 1, 3, 1}, Heads{1, 1, 20, 32}}) {
    add_case(str("attention: ", h.heads, " heads, ", h.kv_heads, " kv heads, width ", h.width, ", T = ", h.time),
             [h](CaseInputs& in) {
               const Var q = input(in, "q", h.heads * h.width), k = input(in, "k", h.kv_heads * h.width);
               return attention(q, k, input(in, "v", h.kv_heads * h.width), h.heads, h.kv_heads);
             },
             {2, h.time});
  }
  for (const Scores& scores : {Scores{2.5, 0}, Scores{{}, 0.7}, Scores{3, 1.5}}) {
    add_case(str("attention: scale ", scores.scale ? str(*scores.scale) : "auto", ", cap ", scores.cap),
             [scores](CaseInputs& in) {
               const Var q = input(in, "q", 12), k = input(in, "k", 6);
               return attention(q, k, input(in, "v", 6), 4, 2, scores);
             },
             {2, 19});
  }
  add_case("attention: one tensor three times, capped", [](CaseInputs& in) {
    const Var x = input(in, "x", 6);
    return attention(x, x, x, 2, 2, {{}, 1});
  });
  add_case("attention: one tensor three times", [](CaseInputs& in) {
    const Var x = input(in, "x", 6);
    return attention(x, x, x, 2, 2);
  });
  add_case("rope: 2 heads", [](CaseInputs& in) { return rope(input(in, "x", 20), 2); }, {2, 7});
  add_case("rope: pairs only", [](CaseInputs& in) { return rope(input(in, "x", 6), 3); });
  for (const auto& [name, ignored] : {std::pair{"all targets", Ignored::none},
                                      {"every third ignored", Ignored::some},
                                      {"a sequence ignored", Ignored::sequence}}) {
    add_case(str("cross_entropy: ", name), [](CaseInputs& in) {
      return cross_entropy(input(in, "logits", 7));
    }).ignored = ignored;
  }
  for (const auto& [name, ignored] :
       {std::pair{"all targets", Ignored::none}, {"every third ignored", Ignored::some}}) {
    add_case(str("z_loss: ", name), [](CaseInputs& in) { return z_loss(input(in, "logits", 7)); }).ignored = ignored;
  }
  add_case("cross_entropy: 33 words, logits of size 20", [](CaseInputs& in) {
    return cross_entropy(input(in, "logits", 33, [](double z) { return 10 * z; }));
  }).vocabulary = 33;
}

}  // namespace

std::vector<GradcheckCase> op_cases() {
  Cases cases;
  matrices_and_tables(cases);
  elementwise(cases);
  channels(cases);
  parts_of_channels(cases);
  statistics(cases);
  row_norms(cases);
  attention_and_loss(cases);
  return cases.all;
}

}  // namespace normlab
