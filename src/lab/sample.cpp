#include "lab/sample.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

namespace {

// Index drawn from softmax(logits / temperature) at the uniform number u.
int32_t draw(const real* logits, int64_t n, double temperature, double u) {
  const real* largest = std::max_element(logits, logits + n);
  if (temperature == 0) return static_cast<int32_t>(largest - logits);
  std::vector<double> weight(static_cast<std::size_t>(n));
  double total = 0;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    total += weight[i] = std::exp((static_cast<double>(logits[i]) - static_cast<double>(*largest)) / temperature);
  }
  double rest = u * total;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    if ((rest -= weight[i]) < 0) return static_cast<int32_t>(i);
  }
  return static_cast<int32_t>(largest - logits);
}

}  // namespace

std::string sample(const TrainedRun& run, const SampleOptions& options) {
  const Corpus corpus = load_corpus(data_config(run.config), run.config.context);
  if (const std::string data = checkpoint_info(run.file, run.path).data; data != corpus.digest()) {
    throw DataError(str(run.path, ": the data are not those the model was trained on (", corpus.description(),
                        "), so its ids would not spell its text"));
  }
  const ModelConfig model = model_config(run.config, corpus.vocabulary());
  ParamStore store;
  Graph graph(store, {1, model.context}, model.precision);
  const Decoder decoder = build_decoder(graph, model);
  graph.keep(decoder.logits);
  graph.plan(Plan::inference);
  store.allocate();
  load_weights(run.file, run.path, store);
  graph.allocate_shared();
  graph.prepare();
  Workspace work(graph, false);

  std::vector<int32_t> ids = corpus.encode(options.prompt);
  if (ids.empty()) ids.push_back(corpus.train()[0]);
  const std::size_t context = static_cast<std::size_t>(model.context);
  const Rng rng(options.seed, stream_id("sample"));
  const int64_t choices = corpus.padding() > 0 ? corpus.pad() : corpus.vocabulary();  // the pad is never text
  std::vector<int32_t> tokens(context), valid(context);
  for (int64_t i = 0; i < options.length; ++i) {
    const std::size_t n = std::min(ids.size(), context);
    std::fill(tokens.begin(), tokens.end(), 0);
    std::fill(valid.begin(), valid.end(), -1);  // positions that are not there yet stay out of masked statistics
    std::copy(ids.end() - static_cast<std::ptrdiff_t>(n), ids.end(), tokens.begin());
    std::fill(valid.begin(), valid.begin() + static_cast<std::ptrdiff_t>(n), 0);
    Pass pass;
    pass.training = false;
    pass.tokens = tokens.data();
    pass.targets = valid.data();
    graph.forward(work, pass);
    const real* logits = graph.value(work, decoder.logits).row(static_cast<int64_t>(n) - 1);
    if (!std::all_of(logits, logits + choices, [](real z) { return std::isfinite(z); }))
      throw Error("the model's output is not finite");
    ids.push_back(draw(logits, choices, options.temperature, rng.uniform(static_cast<uint64_t>(i))));
  }
  return corpus.decode(ids);
}

}  // namespace normlab
