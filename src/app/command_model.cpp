// normlab sample, normlab export.
#include "app/commands.h"
#include "core/text.h"
#include "lab/sample.h"
#include "normlab/error.h"

namespace normlab {

int command_sample(const Arguments& a) {
  use_threads(a);
  SampleOptions options;
  options.prompt = a.text("--prompt");
  options.length = a.integer("--length", 400, 1, 1000000);
  options.temperature = a.number("--temperature", 1, 0, 1000);
  options.seed = static_cast<uint64_t>(a.integer("--seed", 1, 0, INT64_MAX));
  print(sample(load_trained_run(a.positional[0]), options) + "\n");
  return 0;
}

int command_export(const Arguments& a) {
  const std::filesystem::path from = a.positional[0], to = a.positional[1];
  refuse_overwriting({to}, {from});
  if (std::filesystem::is_directory(from)) {
    if (a.has("--set")) throw UsageError("--set goes with a config, not with a trained run");
    const TrainedRun run = load_trained_run(from);
    // The checkpoint says how many tokens there are; the data may be gone.
    const TensorBytes* table = run.file.find("embedding.token.weight");
    if (table == nullptr || table->shape.rank() != 2)
      throw IoError(str(run.path, ": tensor 'embedding.token.weight' is missing"));
    Trainer trainer(model_config(run.config, table->shape[0]), train_config(run.config), nullptr, 0);
    load_weights(run.file, run.path, trainer.params());
    save_weights(to, trainer.params(), dump(run.config));
    print(str(to.string(), ": weights of ", from.string(), " after step ", checkpoint_info(run.file, run.path).step,
              "\n"));
    return 0;
  }
  const RunConfig config = config_of(a);
  const Corpus corpus = load_corpus(data_config(config), config.context);
  const ModelConfig model = model_config(config, corpus.vocabulary());
  check_memory(Trainer(model, train_config(config), nullptr, 0, false).cost());
  const auto seed = static_cast<uint64_t>(config.seed);
  const Batches batches(corpus, seed, config.context);
  Trainer trainer(model, train_config(config), &batches, seed);
  save_weights(to, trainer.params(), dump(config));
  print(str(to.string(), ": weights of ", from.string(), " at initialisation\n"));
  return 0;
}

}  // namespace normlab
