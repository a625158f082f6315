#include "lab/removal.h"

#include "core/text.h"
#include "report/csv.h"

namespace normlab {

const char kRemovalHeader[] = "layer,loss,damage\n";

std::string removal_row(const LayerRemoval& row) { return csv_row(row.layer, row.loss, row.damage); }

RemovalResult remove_layers(const TrainedRun& run) {
  const Corpus corpus = load_corpus(data_config(run.config), run.config.context);
  if (checkpoint_info(run.file, run.path).data != corpus.digest())
    throw DataError(str(run.path, ": the data are not those the model was trained on (", corpus.description(), ")"));
  if (corpus.validation().empty())
    throw DataError(str(run.path, ": the run has no validation part (data.validation = 0) to measure on"));
  const auto seed = static_cast<uint64_t>(run.config.seed);
  const Batches batches(corpus, seed, run.config.context);
  const auto loss_without = [&](std::int64_t layer) {
    ModelConfig model = model_config(run.config, corpus.vocabulary());
    model.removed_layer = layer;
    for (const Placement* p : placements_of(model))  // starts come with the weights
      if (p->measured.start != nullptr) model.placement_options[std::string(p->measured.option)] = 0;
    Trainer trainer(model, train_config(run.config), &batches, seed);
    load_weights(run.file, run.path, trainer.params());
    trainer.restore(0, 0);
    return trainer.evaluate(run.config.eval_batches);
  };
  RemovalResult result;
  result.whole = loss_without(-1);
  for (std::int64_t layer = 0; layer < run.config.layers; ++layer) {
    const double loss = loss_without(layer);
    result.layers.push_back({layer, loss, loss - result.whole});
  }
  return result;
}

}  // namespace normlab
