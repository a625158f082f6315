// What must not move a run: evaluation, checkpoints, interruptions, threads, the locale; for every norm. And what a run
// must keep: the fp32 values behind bf16, the state from before a divergence.
#include <clocale>
#include <cmath>
#include <cstring>
#include <locale>

#include "../process.h"
#include "../small_run.h"
#include "../stopped_run.h"
#include "core/json.h"
#include "core/parallel.h"
#include "core/text.h"
#include "kernels/kernels.h"
#include "lab/run.h"
#include "report/compare.h"
#include "report/csv.h"
#include "train/safetensors.h"

using namespace normlab;

namespace {

void run(const ScratchDirectory& here, const std::vector<std::string>& sets, int stop = 0, bool resume = false) {
  train_run(small_run(sets), stopping_after(here, resume, stop));
}

std::string file(const ScratchDirectory& here, const char* name) { return read_file(here / str("small/", name)); }

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// metrics.csv without the val_loss column.
std::vector<std::string> training_columns(const ScratchDirectory& here) {
  const CsvTable table = read_csv(here / "small/metrics.csv");
  std::vector<std::string> out;
  for (const std::vector<std::string>& row : table.cells) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (table.columns[column] != "val_loss") line += row[column] + ",";
    }
    out.push_back(line);
  }
  return out;
}

// Numbers with a decimal comma and grouped digits, in C++ and, where such a locale is installed, in C.
class GermanLocale {
 public:
  GermanLocale() : before_(std::locale::global(std::locale(std::locale::classic(), new Numbers))) {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"}) {
      if (std::setlocale(LC_ALL, name) != nullptr) return;
    }
    WARN("no C locale with a decimal comma is installed: checked with a C++ locale only");
  }
  ~GermanLocale() {
    std::setlocale(LC_ALL, "C");
    std::locale::global(before_);
  }

 private:
  struct Numbers : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale before_;
};

std::vector<real> values(Trainer& trainer) {
  std::vector<real> out;
  for (int p = 0; p < trainer.params().count(); ++p) {
    const real* from = trainer.params().value(p);
    out.insert(out.end(), from, from + trainer.params().spec(p).shape.count());
  }
  for (int s = 0; s < trainer.optimizer().states(); ++s) {
    Slab& slab = trainer.optimizer().state(s);
    out.insert(out.end(), slab.data(), slab.data() + slab.size());
  }
  return out;
}

bool same(const std::vector<real>& a, const std::vector<real>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(real)) == 0;
}

}  // namespace

TEST_CASE("evaluation and checkpoint intervals change no number of the training, under every norm") {
  set_threads(1);
  for (const NormDef* norm : all_norms()) {
    INFO(norm->name);
    const std::vector<std::string> sets = {str("model.norm=", norm->name), "model.dropout=0.1", "data.padding=0.2"};
    const ScratchDirectory often, seldom, never;
    run(often, sets + std::vector<std::string>{"eval.every=1", "checkpoint.every=1"});
    run(seldom, sets + std::vector<std::string>{"eval.every=7", "eval.batches=5"});
    run(never, sets + std::vector<std::string>{"eval.every=0", "data.seed=1"});
    CHECK(training_columns(often).size() == 20);
    CHECK(training_columns(seldom) == training_columns(often));
    CHECK(training_columns(never) == training_columns(often));
  }
}

TEST_CASE("a run resumed half way ends in the bytes of the straight run, under every norm, in fp32 and in bf16") {
  set_threads(1);
  for (const NormDef* norm : all_norms()) {
    for (const char* precision : {"fp32", "bf16"}) {
      INFO(norm->name << ", " << precision);
      const std::vector<std::string> sets = {str("model.norm=", norm->name), str("run.precision=", precision),
                                             "model.dropout=0.1", "train.accumulate=2", "train.warmup=15"};
      const ScratchDirectory straight, cut;
      run(straight, sets);
      run(cut, sets, 10);
      CHECK(read_csv(cut / "small/metrics.csv").cells.size() == 10);
      run(cut, sets, 0, true);
      for (const char* name : {"metrics.csv", "checkpoint.safetensors", "config.toml"})
        CHECK(file(cut, name) == file(straight, name));
    }
  }
}

TEST_CASE("gains leave 1 in a bf16 run, and the checkpoint keeps the fp32 values behind the rounded ones") {
  // bfloat16 numbers below 1 are 2^-8 apart: twenty updates of 1e-4 round away one by one, but not their sum.
  set_threads(1);
  const ScratchDirectory here;
  run(here, {"run.precision=bf16", "train.lr=1e-4", "train.steps=20"});
  const SafetensorsFile checkpoint = read_safetensors(here / "small/checkpoint.safetensors");
  int gains = 0, moved = 0, finer = 0;
  for (const TensorBytes& tensor : checkpoint.tensors) {
    const bool weight = tensor.name.rfind("layers.", 0) == 0 || tensor.name.rfind("final_norm", 0) == 0;
    if (!weight || tensor.name.find("norm") == std::string::npos) continue;
    std::vector<float> gain(tensor.values.size() / sizeof(float));
    std::memcpy(gain.data(), tensor.values.data(), tensor.values.size());
    for (const float value : gain) {
      float rounded = value;
      kernels().round_bf16(1, &rounded);
      ++gains;
      moved += value != 1.0f ? 1 : 0;
      finer += value != rounded ? 1 : 0;
    }
  }
  CHECK(gains == 5 * 16);  // two per layer and the final one
  CHECK(moved == gains);
  CHECK(finer > gains / 2);
}

TEST_CASE("a run repeats bit for bit with more threads than processors, time after time", "[threads]") {
  const std::vector<std::string> sets = {"train.batch=16", "train.slots=16", "model.dropout=0.1", "train.steps=6"};
  set_threads(1);
  const ScratchDirectory one;
  run(one, sets);
  for (int i = 0; i < 3; ++i) {
    const ScratchDirectory many;
    set_threads(16);
    run(many, sets);
    set_threads(1);
    CHECK(file(many, "metrics.csv") == file(one, "metrics.csv"));
    CHECK(file(many, "checkpoint.safetensors") == file(one, "checkpoint.safetensors"));
  }
}

TEST_CASE("a locale with decimal commas changes no byte of a run's files") {
  set_threads(1);
  const std::vector<std::string> sets = {"train.lr=0.0125", "train.steps=12"};
  const ScratchDirectory plain, german;
  run(plain, sets);
  {
    const GermanLocale here;
    run(german, sets);
  }
  for (const char* name : {"metrics.csv", "checkpoint.safetensors", "config.toml"})
    CHECK(file(german, name) == file(plain, name));
  Json a = parse_json(file(plain, "summary.json"), "a"), b = parse_json(file(german, "summary.json"), "b");
  for (Json* summary : {&a, &b})
    std::erase_if(summary->members, [](const auto& member) { return member.first == "tokens_per_second"; });
  CHECK(dump_json(a) == dump_json(b));
  CHECK(parse_csv(file(german, "timing.csv"), "timing.csv").numbers("tokens_per_second").size() == 12);
}

TEST_CASE("a locale with decimal commas changes no byte of tables, charts and pages") {
  set_threads(1);
  const ScratchDirectory here;
  run(here, {"train.lr=0.0125", "train.steps=12"});
  here.write("b.csv", "step,loss\n1,2.5\n10000,1234567.25\n");
  const auto reports = [&] {
    const std::vector<Run> runs = load_runs({here / "small", here / "b.csv"});
    return std::vector<std::string>{compare_table(runs, "loss"), compare_csv(runs, "loss"),
                                    compare_html(runs, "loss", 3), compare_svg(runs, "loss", {2, true, 760})};
  };
  const std::vector<std::string> wanted = reports();
  {
    const GermanLocale german;
    CHECK(reports() == wanted);
  }
  CHECK(wanted[1].find("\n10000,,1234567.25\n") != std::string::npos);
}

TEST_CASE("with accumulation there is one row per update, and grad_norm is the norm before clipping") {
  set_threads(1);
  const ScratchDirectory free, clipped;
  const std::vector<std::string> sets = {"train.accumulate=4", "train.optimizer=sgd", "train.lr=1"};
  run(free, sets);
  run(clipped, sets + std::vector<std::string>{"train.clip=0.01"});
  const CsvTable table = read_csv(clipped / "small/metrics.csv");
  CHECK(table.cells.size() == 20);
  const auto norms = table.numbers("grad_norm"), updates = table.numbers("update_norm"), rates = table.numbers("lr");
  CHECK(norms[0] == read_csv(free / "small/metrics.csv").numbers("grad_norm")[0]);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(*norms[i] > 0.01);
    CHECK(*updates[i] == Approx(*rates[i] * 0.01).epsilon(1e-4));
  }
}

TEST_CASE("a divergence leaves parameters and moments as they were, under every optimizer, clipped or not") {
  set_threads(1);
  for (const OptimizerDef& optimizer : all_optimizers()) {
    for (const char* clip : {"0", "1"}) {
      for (const char* precision : {"fp32", "bf16"}) {
        INFO(optimizer.name << ", clip " << clip << ", " << precision);
        const RunConfig config = small_run({"train.lr=1e30", str("train.optimizer=", optimizer.name),
                                            str("train.clip=", clip), str("run.precision=", precision)});
        const Corpus corpus = load_corpus(data_config(config), config.context);
        const Batches batches(corpus, 1, config.context);
        Trainer trainer(model_config(config, corpus.vocabulary()), train_config(config), &batches, 1);
        StepResult step;
        std::vector<real> before;
        for (int i = 0; i < 20 && step.trouble.empty(); ++i) {
          before = values(trainer);
          step = trainer.step();
        }
        CHECK_FALSE(step.trouble.empty());
        CHECK_FALSE((std::isfinite(step.loss) && std::isfinite(step.grad_norm)));
        CHECK(same(values(trainer), before));
        CHECK(trainer.steps_done() == step.step - 1);
      }
    }
  }
}
