// Admin's profiled omega: against a forward pass in double, written out; and that measuring moves nothing else.
#include <cmath>
#include <cstring>

#include "../process.h"
#include "../small_run.h"
#include "../stopped_run.h"
#include "core/parallel.h"
#include "core/text.h"
#include "train/safetensors.h"
#include "train/trainer.h"

using namespace normlab;

namespace {

using Row = std::vector<double>;

const std::vector<std::string> kProfiled = {"model.placement=admin", "placement.profile=true"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Start {
  explicit Start(const std::vector<std::string>& sets)
      : config(small_run(sets)),
        corpus(load_corpus(data_config(config), config.context)),
        batches(corpus, 1, config.context),
        trainer(model_config(config, corpus.vocabulary()), train_config(config), &batches, 1) {}
  const ParamSpec& spec(const std::string& name) { return trainer.params().spec(trainer.params().find(name)); }
  const real* values(const std::string& name) {
    INFO(name);
    REQUIRE(trainer.params().find(name) >= 0);
    return trainer.params().value(trainer.params().find(name));
  }
  // W x, without bias.
  Row times(const std::string& name, const Row& x) {
    const real* w = values(name + ".weight");
    Row y(static_cast<std::size_t>(spec(name + ".weight").shape[0]), 0.0);
    for (std::size_t i = 0; i < y.size(); ++i)
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += static_cast<double>(w[i * x.size() + j]) * x[j];
    return y;
  }

  RunConfig config;
  Corpus corpus;
  Batches batches;
  Trainer trainer;
};

Row layernorm(const Row& x) {
  double mean = 0, square = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) square += (v - mean) * (v - mean) / static_cast<double>(x.size());
  Row y;
  for (const double v : x) y.push_back((v - mean) / std::sqrt(square + 1e-5));
  return y;
}

double variance(const Row& x) {
  double mean = 0, square = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) square += (v - mean) * (v - mean) / static_cast<double>(x.size());
  return square;
}

std::vector<real> all_but_omega(Start& s) {
  std::vector<real> out;
  const ParamStore& store = s.trainer.params();
  for (int p = 0; p < store.count(); ++p) {
    if (store.spec(p).name.ends_with("omega")) continue;
    out.insert(out.end(), store.value(p), store.value(p) + store.spec(p).shape.count());
  }
  return out;
}

std::vector<real> omegas(Start& s) {
  std::vector<real> out;
  for (int64_t layer = 0; layer < s.config.layers; ++layer)
    for (const char* name : {"attention", "ffn"}) out.push_back(*s.values(str("layers.", layer, ".", name, ".omega")));
  return out;
}

}  // namespace

TEST_CASE("Admin's omega is the root of the variances so far, and 1 at first") {
  const auto start = find_placement("admin")->measured.start({{0.5, 2}, {9, 3.5}, {9, 4}, {9, 7}});
  REQUIRE(start.size() == 4);
  CHECK(start[0] == 1);
  CHECK(start[1] == Approx(std::sqrt(2.5)));
  CHECK(start[2] == Approx(std::sqrt(6.0)));
  CHECK(start[3] == Approx(std::sqrt(10.0)));
}

TEST_CASE("profiled omegas are those of a forward pass in double, worked out position by position") {
  // With one position attention is its values; the rest is written out below. Post-Norm with omega = 1.
  Start s(kProfiled + std::vector<std::string>{"model.context=1", "model.position=none", "model.activation=relu",
                                               "model.bias=false", "model.norm=layernorm", "model.dropout=0.5",
                                               "model.layers=3", "train.batch=12"});
  std::vector<Row> stream(6), branch(6);
  for (int64_t sequence = 0; sequence < 12; ++sequence) {
    int32_t token = 0, target = 0;
    s.batches.train(1, sequence, &token, &target);
    const real* embedding = s.values("embedding.token.weight") + 16 * token;
    Row x(embedding, embedding + 16);
    for (std::size_t i = 0; i < 6; ++i) {
      const std::string layer = str("layers.", i / 2);
      Row f;
      if (i % 2 == 0) {
        f = s.times(layer + ".attention.out", s.times(layer + ".attention.v", x));
      } else {
        Row hidden = s.times(layer + ".ffn.up", x);
        for (double& h : hidden) h = std::max(h, 0.0);
        f = s.times(layer + ".ffn.down", hidden);
      }
      stream[i].insert(stream[i].end(), x.begin(), x.end());
      branch[i].insert(branch[i].end(), f.begin(), f.end());
      for (std::size_t j = 0; j < 16; ++j) x[j] += f[j];
      x = layernorm(x);
    }
  }
  double sum = variance(stream[0]);
  for (std::size_t i = 0; i < 6; ++i) {
    const std::string name = str("layers.", i / 2, i % 2 == 0 ? ".attention" : ".ffn", ".omega");
    const double wanted = i == 0 ? 1 : std::sqrt(sum);
    sum += variance(branch[i]);
    INFO(name);
    for (int j = 0; j < 16; ++j) CHECK(static_cast<double>(s.values(name)[j]) == Approx(wanted).epsilon(1e-5));
  }
}

TEST_CASE("measuring moves omega alone, whatever the number of threads, dropout and slots") {
  for (const std::string norm : {"rmsnorm", "batchnorm"}) {
    const std::vector<std::string> sets = {"model.norm=" + norm, "train.accumulate=2"};
    set_threads(1);
    Start profiled(kProfiled + sets), given(std::vector<std::string>{"model.placement=admin"} + sets);
    INFO(norm);
    CHECK((all_but_omega(profiled) == all_but_omega(given)));
    CHECK(omegas(profiled) != omegas(given));
    set_threads(3);
    Start again(kProfiled + sets), dropped(kProfiled + sets + std::vector<std::string>{"model.dropout=0.3"});
    set_threads(1);
    CHECK(omegas(profiled) == omegas(again));
    CHECK(omegas(profiled) == omegas(dropped));
    if (norm == "rmsnorm") {
      Start slots(kProfiled + sets + std::vector<std::string>{"train.slots=1"});
      CHECK(omegas(profiled) == omegas(slots));
    }
  }
}

TEST_CASE("layers of Admin behind others begin with 1 and their own stream") {
  Start s({"model.layers=3", "model.layer_placement=[\"pre:0\", \"admin:1-2\"]", "placement.profile=true"});
  CHECK(*s.values("layers.1.attention.omega") == 1);
  ParamStore& store = s.trainer.params();
  CHECK(store.find("layers.0.attention.omega") == -1);
  const std::vector<std::string> names = {"layers.1.attention.omega", "layers.1.ffn.omega", "layers.2.attention.omega",
                                          "layers.2.ffn.omega"};
  std::vector<double> found;
  for (const std::string& name : names) {
    found.push_back(static_cast<double>(*s.values(name)));
    std::fill_n(store.value(store.find(name)), 16, real(1));
  }
  // The whole batch at once this time.
  Graph graph(store, {4, 8});
  const Decoder decoder = build_decoder(graph, model_config(s.config, s.corpus.vocabulary()));
  graph.plan(Plan::training, false);
  graph.allocate_shared();
  graph.prepare();
  Workspace work(graph);
  std::vector<int32_t> tokens(32), targets(32);
  for (int64_t i = 0; i < 4; ++i) s.batches.train(1, i, tokens.data() + 8 * i, targets.data() + 8 * i);
  Pass pass;
  pass.tokens = tokens.data(), pass.targets = targets.data();
  graph.forward(work, pass);
  const auto variance_of = [&](Var x) {
    Row all;
    const ConstView view = graph.value(work, x);
    for (int64_t r = 0; r < view.rows; ++r)
      for (int64_t c = 0; c < view.cols; ++c) all.push_back(static_cast<double>(view.row(r)[c]));
    return variance(all);
  };
  double sum = variance_of(decoder.sublayers[2].stream_in);
  for (std::size_t i = 1; i < 4; ++i) {
    sum += variance_of(decoder.sublayers[i + 1].branch_out);
    INFO(names[i]);
    CHECK(found[i] == Approx(std::sqrt(sum)).epsilon(1e-5));
  }
}

TEST_CASE("the exported start and a run stopped and gone on with have the profiled omegas") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun), file = (here / "w.safetensors").string();
  std::vector<std::string> words = {"export", config, file};
  for (const std::string& set : kProfiled) words = words + std::vector<std::string>{"--set", set};
  REQUIRE(run_tool(words).code == 0);
  const SafetensorsFile weights = read_safetensors(file);
  Start s(kProfiled);
  for (const std::string name : {"layers.0.ffn.omega", "layers.1.ffn.omega"}) {
    std::vector<real> values(16);
    copy_tensor(weights, "w", name, {16}, values.data());
    CHECK(std::equal(values.begin(), values.end(), s.values(name)));
  }
  const ScratchDirectory whole, pieces;
  train_run(small_run(kProfiled), stopping_after(whole, false));
  train_run(small_run(kProfiled), stopping_after(pieces, false, 5));
  train_run(small_run(kProfiled), stopping_after(pieces, true));
  CHECK(read_file(whole / "small/metrics.csv") == read_file(pieces / "small/metrics.csv"));
  CHECK(read_file(whole / "small/checkpoint.safetensors") == read_file(pieces / "small/checkpoint.safetensors"));
}

TEST_CASE("check tells that omega is measured; an omega that nothing would read is refused") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun);
  const auto check = [&](const std::vector<std::string>& sets) {
    std::vector<std::string> words = {"check", config};
    for (const std::string& set : sets) words = words + std::vector<std::string>{"--set", set};
    return run_tool(words);
  };
  CHECK(check(kProfiled).out.find("# measured        omega starts from") != std::string::npos);
  CHECK(check({"model.placement=admin"}).out.find("# measured") == std::string::npos);
  const ProcessResult refused = check(kProfiled + std::vector<std::string>{"placement.omega=3"});
  CHECK(refused.code == 2);
  CHECK(refused.err ==
        "normlab: --set placement.omega: 'placement.omega' is not read where 'placement.profile' = true; leave it at "
        "\"auto\"\n");
  // The resolved config names omega too, and stays a config.
  CHECK(dump(resolve(parse_config(dump(small_run(kProfiled)), "c", {}).settings)) == dump(small_run(kProfiled)));
}
