// layers.csv: every quantity against loops written here, and that looking moves nothing.
#include <cmath>
#include <numbers>

#include "../probe_rig.h"
#include "../process.h"
#include "../stopped_run.h"
#include "core/parallel.h"
#include "core/text.h"
#include "lab/run.h"
#include "report/csv.h"

using namespace normlab;

namespace {

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) sum += x[j] * y[j];
  return sum;
}

double cosine(const std::vector<double>& x, const std::vector<double>& y) {
  return dot(x, y) / std::sqrt(dot(x, x) * dot(y, y));
}

}  // namespace

TEST_CASE("the stream and a branch of known content: sizes, similarity, angle") {
  for (const std::vector<std::string>& data :
       std::vector<std::vector<std::string>>{{}, {"run.seed=2"}, {"data.validation=0", "eval.every=50"}}) {
    INFO(join(data, " "));
    std::vector<std::string> sets = data;
    sets.push_back("model.placement=pre");
    constexpr std::size_t kSequences = 2, kTime = 8;
    ProbeRig rig(sets, kSequences);
    // A branch that gives 0.5 everywhere: no weight, a bias.
    rig.fill("layers.0.attention.out.weight", 0);
    rig.fill("layers.0.attention.out.bias", 0.5);
    const auto x = rig.embedded();
    REQUIRE(x.size() == kSequences * kTime);
    const double n = static_cast<double>(x.size()), width = static_cast<double>(x[0].size());
    double squares = 0, most = 0, pairs = 0, angles = 0;
    for (std::size_t t = 0; t < x.size(); ++t) {
      squares += dot(x[t], x[t]);
      std::vector<double> after = x[t];
      for (double& value : after) most = std::max(most, std::abs(value)), value += 0.5;
      angles += std::acos(cosine(x[t], after)) / std::numbers::pi;
      for (std::size_t u = 0; u < x.size(); ++u) pairs += u != t && u / kTime == t / kTime ? cosine(x[t], x[u]) : 0;
    }
    const std::vector<ProbeRow> rows = rig.probe.measure();
    REQUIRE(rows.size() == 4);
    CHECK((rows[0].layer == 0 && rows[0].sublayer == "attention" && rows[3].layer == 1 && rows[3].sublayer == "ffn"));
    const ProbeRow& r = rows[0];
    CHECK(r.stream_rms == Approx(std::sqrt(squares / (n * width))).epsilon(1e-6));
    CHECK(r.stream_max == Approx(most).epsilon(1e-6));
    CHECK(r.branch_rms == Approx(0.5).epsilon(1e-6));
    CHECK(r.branch_max == 0.5);
    CHECK(r.branch_ratio == Approx(0.5 / std::sqrt(squares / (n * width))).epsilon(1e-6));
    CHECK(r.token_similarity == Approx(pairs / (n * (kTime - 1))).margin(1e-6));
    CHECK(r.angular_distance == Approx(angles / n).epsilon(1e-5));
    CHECK(!r.update_in);  // nothing remembered
    CHECK((!rows[1].attention_entropy && !rows[1].attention_logit_max));
  }
}

TEST_CASE("a branch of zeros leaves the stream where it was") {
  ProbeRig rig({"model.placement=pre"});
  rig.fill("layers.1.ffn.down.weight", 0);
  const ProbeRow r = rig.probe.measure()[3];
  CHECK((r.branch_rms == 0 && r.branch_max == 0 && r.branch_ratio == 0));
  CHECK(r.angular_distance == Approx(0).margin(1e-4));  // acos near 1 turns 1e-8 into 1e-4
}

TEST_CASE("gradient norms: of the stream, which the positions' gradient repeats, and of the weight groups") {
  ProbeRig rig({"model.placement=post"});
  const std::vector<ProbeRow> rows = rig.probe.measure();
  // The same loss through a plainly planned graph. With one sequence every position's embedding has the gradient of the
  // stream at its place.
  ParamStore& store = rig.trainer.params();
  Graph graph(store, {1, rig.model.context});
  build_decoder(graph, rig.model);
  graph.plan(Plan::training);
  graph.allocate_shared();
  graph.prepare();
  Workspace work(graph);
  Pass pass;
  pass.tokens = rig.tokens.data(), pass.targets = rig.targets.data();
  pass.loss_scale = 1 / static_cast<double>(rig.tokens.size());
  graph.forward(work, pass);
  graph.backward(work, pass);
  const auto norm = [&](const std::vector<std::string>& names) {
    double sum = 0;
    for (const std::string& name : names) {
      const int p = store.find(name);
      REQUIRE(p >= 0);
      for (int64_t i = 0; i < store.spec(p).shape.count(); ++i)
        sum += static_cast<double>(work.gradient(p)[i]) * static_cast<double>(work.gradient(p)[i]);
    }
    return std::sqrt(sum);
  };
  CHECK(rows[0].stream_grad == Approx(norm({"embedding.position.weight"})).epsilon(1e-6));
  CHECK(rows[0].stream_grad > 0);
  const std::string a = "layers.1.attention.", f = "layers.1.ffn.";
  CHECK(rows[2].grad_in == Approx(norm({a + "q.weight", a + "k.weight", a + "v.weight"})).epsilon(1e-6));
  CHECK(rows[2].grad_out == Approx(norm({a + "out.weight"})).epsilon(1e-6));
  CHECK(rows[3].grad_in == Approx(norm({f + "up.weight"})).epsilon(1e-6));
  CHECK(rows[3].grad_out == Approx(norm({f + "down.weight"})).epsilon(1e-6));
}

TEST_CASE("attention: uniform where all scores are equal; entropy and largest logit of known queries and keys") {
  // No norm, no placement's scaling: queries and keys are the embedded stream times their matrices.
  ProbeRig rig({"model.placement=none", "model.norm=none", "model.bias=false", "model.heads=4", "model.kv_heads=2"});
  const auto x = rig.embedded();
  const std::size_t width = 16, head = 4;
  const auto times = [&](const std::string& name, std::size_t t, std::size_t row) {
    double sum = 0;
    for (std::size_t j = 0; j < width; ++j) sum += static_cast<double>(rig.value(name)[row * width + j]) * x[t][j];
    return sum;
  };
  double entropies = 0, most = 0, count = 0;
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t h = 0; h < 4; ++h) {
      std::vector<double> e;
      double sum = 0, entropy = 0;
      for (std::size_t u = 0; u <= t; ++u) {
        double logit = 0;  // heads 0 and 1 share the first keys, 2 and 3 the second
        for (std::size_t d = 0; d < head; ++d)
          logit += times("layers.0.attention.q.weight", t, h * head + d) *
                   times("layers.0.attention.k.weight", u, h / 2 * head + d) / 2;  // sqrt(4)
        most = std::max(most, std::abs(logit));
        sum += e.emplace_back(std::exp(logit));
      }
      if (t == 0) continue;
      for (const double p : e) entropy -= p / sum * std::log(p / sum);
      entropies += entropy / std::log(static_cast<double>(t + 1)), count += 1;
    }
  const ProbeRow r = rig.probe.measure()[0];
  CHECK(r.attention_entropy.value() == Approx(entropies / count).epsilon(1e-5));
  CHECK(r.attention_logit_max.value() == Approx(most).epsilon(1e-5));
  CHECK(r.attention_entropy.value() < 1);

  rig.fill("layers.0.attention.q.weight", 0);
  const ProbeRow uniform = rig.probe.measure()[0];
  CHECK(uniform.attention_entropy.value() == Approx(1));
  CHECK(uniform.attention_logit_max.value() == 0);
}

TEST_CASE("gains of a sub-layer's norms, and how far an update moved its matrices") {
  ProbeRig rig({"model.placement=pre", "train.optimizer=sgd", "train.lr=0.5"});
  for (int64_t j = 0; j < 16; ++j) rig.value("layers.0.ffn.norm_in.weight")[j] = j % 2 == 0 ? 1 : 5;
  rig.probe.remember();
  const auto weights = [&] {
    const real* w = rig.value("layers.0.attention.out.weight");
    return std::vector<double>(w, w + 256);
  };
  const auto before = weights();
  rig.trainer.step();
  const auto after = weights();
  std::vector<double> moved;
  for (std::size_t i = 0; i < after.size(); ++i) moved.push_back(after[i] - before[i]);
  const std::vector<ProbeRow> rows = rig.probe.measure();
  CHECK(rows[0].update_out.value() == Approx(std::sqrt(dot(moved, moved) / dot(after, after))).epsilon(1e-9));
  CHECK(rows[0].update_out.value() > 0);

  ProbeRig still({"model.placement=pre"});
  for (int64_t j = 0; j < 16; ++j) still.value("layers.0.ffn.norm_in.weight")[j] = j % 2 == 0 ? 1 : 5;
  const ProbeRow ffn = still.probe.measure()[1];
  CHECK(ffn.gain_mean.value() == 3);
  CHECK(ffn.gain_std.value() == 2);
  CHECK(!ProbeRig({"model.norm=none"}).probe.measure()[0].gain_mean);
}

TEST_CASE("looking moves nothing: with probes a run writes the same bytes, for any threads", "[threads]") {
  for (const std::vector<std::string>& variant : std::vector<std::vector<std::string>>{
           {"model.norm=rmsnorm", "model.placement=pre", "model.dropout=0.1"},
           {"model.norm=batchnorm", "model.placement=post"},  // with running statistics
           {"run.precision=bf16", "model.activation=swiglu", "model.qk_norm=layernorm"}}) {
    INFO(join(variant, " "));
    std::vector<std::string> probed = variant;
    probed.push_back("probe.every=6");
    const ScratchDirectory plain, one, three;
    set_threads(1);
    train_run(small_run(variant), stopping_after(plain, false));
    train_run(small_run(probed), stopping_after(one, false));
    set_threads(3);
    train_run(small_run(probed), stopping_after(three, false));
    set_threads(1);
    CHECK(read_file(one / "small/metrics.csv") == read_file(plain / "small/metrics.csv"));
    CHECK(!std::filesystem::exists(plain / "small/layers.csv"));
    CHECK(read_file(three / "small/layers.csv") == read_file(one / "small/layers.csv"));
    // The weights: all but the checkpoint's copy of the configuration.
    const SafetensorsFile a = read_safetensors(one / "small/checkpoint.safetensors"),
                          b = read_safetensors(plain / "small/checkpoint.safetensors");
    REQUIRE(a.tensors.size() == b.tensors.size());
    for (std::size_t i = 0; i < a.tensors.size(); ++i) CHECK(a.tensors[i].values == b.tensors[i].values);
    const CsvTable table = read_csv(one / "small/layers.csv");
    CHECK(table.cells.size() == 3 * 4);  // steps 6, 12, 18; two layers of two sub-layers
    CHECK(table.numbers("step").back() == 18);
    for (const char* column : {"stream_rms", "branch_ratio", "stream_grad", "grad_in", "grad_out", "update_in",
                               "update_out", "token_similarity", "angular_distance"})
      for (const auto& value : table.numbers(column)) CHECK((value && std::isfinite(*value)));
  }
}

TEST_CASE("a probed run that is stopped and resumed ends with the straight run's rows") {
  set_threads(1);
  const ScratchDirectory straight, cut;
  const RunConfig config = small_run({"probe.every=3"});
  train_run(config, stopping_after(straight, false));
  train_run(config, stopping_after(cut, false, 7));
  // A kill between the rows of a step and its checkpoint leaves rows that are written again.
  const std::string torn = read_file(cut / "small/layers.csv");
  const std::string last_row = torn.substr(torn.rfind('\n', torn.size() - 2) + 1);
  write_file_atomically(cut / "small/layers.csv", torn + "9" + last_row.substr(last_row.find(',')) + "9,0,atten");
  train_run(config, stopping_after(cut, true, 6));
  train_run(config, stopping_after(cut, true));
  CHECK(read_file(cut / "small/layers.csv") == read_file(straight / "small/layers.csv"));
  CHECK(read_file(cut / "small/metrics.csv") == read_file(straight / "small/metrics.csv"));
}

TEST_CASE("a resume that finds rows of the probed steps missing is refused, and writes nothing") {
  set_threads(1);
  const ScratchDirectory here;
  const RunConfig config = small_run({"probe.every=3"});
  train_run(config, stopping_after(here, false, 7));
  const std::string rows = read_file(here / "small/layers.csv");
  const std::string cut = rows.substr(0, rows.rfind('\n', rows.size() - 2) + 1);
  write_file_atomically(here / "small/layers.csv", cut);
  std::string message;
  try {
    train_run(config, stopping_after(here, true));
  } catch (const IoError& error) {
    message = error.what();
  }
  CHECK(message.find("layers.csv: the rows up to step 7 of the checkpoint are not those the run wrote") != std::string::npos);
  CHECK(read_file(here / "small/layers.csv") == cut);
}

TEST_CASE("normlab probe writes the layers of a config at initialisation and prints them") {
  const ScratchDirectory here;
  write_file_atomically(here / "c.toml", kSmallRun);
  const ProcessResult result = run_tool({"probe", (here / "c.toml").string(), "--out", (here / "out").string()});
  CHECK(result.code == 0);
  CHECK(result.out.find("stream_rms") != std::string::npos);
  const CsvTable table = read_csv(here / "out/small-probe/layers.csv");
  CHECK(table.cells.size() == 4);
  CHECK(table.numbers("step")[0] == 0);
  CHECK(!table.numbers("update_in")[0]);
  CHECK(table.numbers("stream_rms")[0].value() == ProbeRig({}, 4).probe.measure()[0].stream_rms);
}
