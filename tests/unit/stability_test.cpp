// What sums up stability in a number: ramps, bisection over depth, removed layers, the landscape along the gradient.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../process.h"
#include "../small_run.h"
#include "core/text.h"
#include "lab/find.h"
#include "lab/landscape.h"
#include "lab/removal.h"

using namespace normlab;

namespace {

std::vector<double> curve(const std::vector<std::pair<int, double>>& pieces) {
  std::vector<double> out;
  for (const auto& [count, value] : pieces) out.insert(out.end(), static_cast<std::size_t>(count), value);
  return out;
}

RunOptions options(const ScratchDirectory& here) {
  RunOptions o;
  o.out = here.path();
  o.quiet = true;
  return o;
}

}  // namespace

TEST_CASE("a ramp ends where the smoothed loss leaves its best for good by a quarter of the descent") {
  // 4 -> 2: the bound is 0.5 above 2. After the jump at step 51 the mean over 10 steps is 2.2, 2.4, 2.6.
  const RampEnd lost = ramp_end(curve({{10, 4}, {40, 2}, {50, 4}}), 3);
  CHECK(lost.trained);
  CHECK(lost.lost);
  CHECK(lost.last_good == 52);
  // A spike that returns is none; it comes back within 0.5 when three of the ten steps are left: step 78.
  const RampEnd back = ramp_end(curve({{10, 4}, {40, 2}, {20, 4}, {30, 2}}), 3);
  CHECK_FALSE(back.lost);
  CHECK(back.last_good == 100);
  CHECK(ramp_end(curve({{10, 4}, {40, 2}, {20, 4}, {7, 2}}), 3).last_good == 52);
  CHECK(ramp_end(curve({{10, 4}, {40, 2}, {20, 4}, {8, 2}}), 3).last_good == 78);
}

TEST_CASE("a ramp whose loss stops being a number ends there, one that never comes below the entropy did not train") {
  std::vector<double> losses = curve({{10, 4}, {40, 2}});
  losses.insert(losses.end(), {std::nan(""), 2, 2});
  const RampEnd end = ramp_end(losses, 3);
  CHECK(end.lost);
  CHECK(end.last_good == 50);
  CHECK(ramp_end(curve({{10, 4}, {40, 2}}), 2.05).trained);        // 2 < 0.98 2.05 = 2.009
  CHECK_FALSE(ramp_end(curve({{10, 4}, {40, 2}}), 2.03).trained);  // 1.989
  CHECK(ramp_end({std::nan("")}, 3).last_good == 0);
  CHECK(ramp_end({std::nan("")}, 3).lost);
}

TEST_CASE("the deepest model that trains is found by halving") {
  for (const int64_t limit : {1, 2, 13, 32, 63}) {
    int asked = 0;
    const DeepestResult found = deepest(1, 64, 1, [&](int64_t depth) { return ++asked, depth <= limit; });
    CHECK(found.trains == limit);
    CHECK(found.fails == limit + 1);
    CHECK(asked <= 8);  // both ends and log2(64)
  }
  CHECK(deepest(4, 64, 1, [](int64_t depth) { return depth <= 3; }).trains == 0);
  CHECK(deepest(4, 64, 1, [](int64_t depth) { return depth <= 3; }).fails == 4);
  CHECK(deepest(4, 64, 1, [](int64_t) { return true; }).trains == 64);
  CHECK_FALSE(deepest(4, 64, 1, [](int64_t) { return true; }).fails);
  const DeepestResult rough = deepest(1, 64, 10, [](int64_t depth) { return depth <= 40; });
  CHECK(rough.trains <= 40);
  CHECK(rough.fails.value() > 40);
  CHECK(rough.fails.value() - rough.trains <= 10);
}

TEST_CASE("a model without its last layer is the shallower model of the same weights") {
  const ScratchDirectory here;
  train_run(small_run(), options(here));
  const TrainedRun run = load_trained_run(here / "small");
  const RemovalResult result = remove_layers(run);
  REQUIRE(result.layers.size() == 2);
  const RunConfig shallow = small_run({"model.layers=1"});
  const Corpus corpus = load_corpus(data_config(shallow), shallow.context);
  const Batches batches(corpus, 1, shallow.context);
  Trainer trainer(model_config(shallow, corpus.vocabulary()), train_config(shallow), &batches, 1);
  load_weights(run.file, run.path, trainer.params());
  trainer.restore(0, 0);
  CHECK(result.layers[1].loss == trainer.evaluate(shallow.eval_batches));
  CHECK(result.layers[1].damage == result.layers[1].loss - result.whole);
  CHECK(result.layers[0].loss != result.layers[1].loss);
  const std::string summary = read_file(here / "small/summary.json");
  CHECK(summary.find(str("\"validation_loss\": ", number(result.whole))) != std::string::npos);
}

TEST_CASE("a layer whose branches weigh nothing is removed without damage") {
  const ScratchDirectory here;
  train_run(small_run({"model.placement=skipinit", "train.steps=1", "train.lr=0"}), options(here));
  for (const LayerRemoval& row : remove_layers(load_trained_run(here / "small")).layers) CHECK(row.damage == 0);
}

TEST_CASE("removal keeps what stands behind the removed layer, and measures nothing anew") {
  // Residual's second stream ends in a norm of the last layer's kind, here LayerNorm with a bias.
  const ScratchDirectory here;
  train_run(
      small_run({"model.placement=residual", "model.layer_norm=[\"rmsnorm:0\",\"layernorm:1\"]", "train.lr=1e-2"}),
      options(here));
  const TrainedRun run = load_trained_run(here / "small");
  REQUIRE(run.file.find("dual_norm.bias") != nullptr);
  ModelConfig model = model_config(run.config, 30);
  model.removed_layer = 1;
  ParamStore store;
  Graph graph(store, {1, model.context});
  build_decoder(graph, model);
  CHECK(store.find("dual_norm.bias") >= 0);
  CHECK(store.find("layers.1.attention.norm_post.weight") < 0);
  CHECK(remove_layers(run).layers.size() == 2);

  const ScratchDirectory profiled;
  train_run(small_run({"model.placement=admin", "placement.profile=true"}), options(profiled));
  const RemovalResult result = remove_layers(load_trained_run(profiled / "small"));
  CHECK(read_file(profiled / "small/summary.json").find(str("\"validation_loss\": ", number(result.whole))) !=
        std::string::npos);
}

TEST_CASE("a landscape without a direction has no bands") {
  const RunConfig config = small_run();
  const Corpus corpus = load_corpus(data_config(config), config.context);
  ParamStore store;
  Probe probe(model_config(config, corpus.vocabulary()), store, corpus, 1, 2);
  store.allocate();
  store.initialize(1);
  std::fill_n(store.value(0), store.spec(0).shape.count(), std::numeric_limits<real>::infinity());
  const LandscapeRow row = landscape(probe, store, 1e-2);
  for (const double value : {row.loss_low, row.loss_high, row.change_low, row.smoothness}) CHECK(std::isnan(value));
}

TEST_CASE("the landscape is that of the tangent for short steps, and moves no parameter") {
  const RunConfig config = small_run();
  const Corpus corpus = load_corpus(data_config(config), config.context);
  const ModelConfig model = model_config(config, corpus.vocabulary());
  ParamStore store;
  Probe probe(model, store, corpus, 1, 4);
  store.allocate();
  store.initialize(1);
  const std::vector<real> before(store.value(0), store.value(0) + store.spec(0).shape.count());
  const double length = 1e-2;
  const LandscapeRow row = landscape(probe, store, length);
  CHECK(std::equal(before.begin(), before.end(), store.value(0)));
  CHECK(probe.loss_and_gradient() == row.loss);
  // Where a loss on the way is no number, so are the bands.
  const LandscapeRow far = landscape(probe, store, 1e38);
  for (const double value : {far.loss_low, far.loss_high, far.change_low, far.change_high, far.smoothness})
    CHECK(std::isnan(value));
  CHECK(std::equal(before.begin(), before.end(), store.value(0)));
  // loss - t |g|^2, t |g| = 1/2 .. 4 lengths; the curvature is the difference: at most half of smoothness (t |g|)^2.
  const double g = row.gradient_norm;
  CHECK(row.loss_high == Approx(row.loss - 0.5 * length * g).margin(row.smoothness * length * length));
  CHECK(row.loss_low == Approx(row.loss - 4 * length * g).margin(row.smoothness * 16 * length * length));
  CHECK(row.loss_low < row.loss_high);
  CHECK(row.loss_high < row.loss);
  CHECK(row.change_low > 0);
  // For short steps the gradient changes in proportion: eight times from 1/2 to 4.
  CHECK(row.change_high / row.change_low == Approx(8).epsilon(0.15));
  CHECK(row.smoothness == Approx(row.change_high / (4 * length)).epsilon(0.15));
}

TEST_CASE("the stability commands run as a user starts them") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun), out = (here / "runs").string();
  const ProcessResult depth =
      run_tool({"find", "depth", config, "--least", "1", "--most", "2", "--out", out, "--quiet"});
  CHECK(depth.code == 0);
  CHECK(depth.out.find("deepest that trains: none; 1 fails") != std::string::npos);  // 20 steps teach nothing
  CHECK(std::filesystem::exists(here / "runs/small-depth/layers=1/summary.json"));
  const ProcessResult lr = run_tool({"find", "lr", config, "--set", "train.lr=0.5", "--out", out, "--quiet"});
  CHECK(lr.code == 0);
  CHECK(lr.out.rfind("largest tolerable rate: ", 0) == 0);
  const std::string metrics = read_file(here / "runs/small-ramp/metrics.csv");
  CHECK(metrics.find("\n1,32,0.025,") != std::string::npos);  // 0.5 / 20
  CHECK(run_tool({"find", "lr", config, "--set", "train.warmup=3", "--out", out}).code == 2);
  CHECK(run_tool({"find", "breadth", config}).code == 2);
  CHECK(run_tool({"find", "depth", config, "--least", "5", "--most", "2"}).code == 2);
  const ProcessResult removal =
      run_tool({"removal", (here / "runs/small-ramp").string(), "--csv", (here / "r.csv").string()});
  CHECK(removal.code == 0);
  CHECK(read_file(here / "r.csv").rfind("layer,loss,damage\n0,", 0) == 0);
  CHECK(run_tool({"landscape", config, "--every", "10", "--out", out, "--quiet"}).code == 0);
  const std::string landscape = read_file(here / "runs/small-landscape/landscape.csv");
  CHECK(landscape.rfind("step,loss,loss_low,loss_high,", 0) == 0);
  CHECK(std::count(landscape.begin(), landscape.end(), '\n') == 4);  // steps 1, 10, 20
}

TEST_CASE("a sweep takes its shard from the variables of a job array") {
  const ScratchDirectory here;
  const std::string sweep = here.write("s.toml", str(kSmallRun, "[sweep]\n\"run.seed\" = [1, 2, 3, 4, 5]\n"));
  const std::vector<std::string> dry = {"sweep", sweep, "--dry-run", "--out", "runs", "--shard", "slurm"};
  const auto task = [&](const char* id) {
    ::setenv("SLURM_ARRAY_TASK_ID", id, 1);
    return run_tool(dry);
  };
  ::setenv("SLURM_ARRAY_TASK_MIN", "10", 1);
  ::setenv("SLURM_ARRAY_TASK_STEP", "5", 1);
  ::setenv("SLURM_ARRAY_TASK_COUNT", "2", 1);
  CHECK(task("10").out == "runs/small/seed=1\nruns/small/seed=3\nruns/small/seed=5\n");
  CHECK(task("15").out == "runs/small/seed=2\nruns/small/seed=4\n");
  CHECK(task("12").code == 2);
  CHECK(task("20").code == 2);
  CHECK(task("x").err == "normlab: --shard slurm needs SLURM_ARRAY_TASK_ID as an array task has it, not 'x'\n");
  for (const char* name :
       {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT"})
    ::unsetenv(name);
  CHECK(run_tool(dry).code == 2);
}
