#include "train/checkpoint.h"

#include "core/text.h"
#include "kernels/kernels.h"

namespace normlab {

namespace {

std::string state_name(int state, const std::string& name) { return str("optimizer.", state, ".", name); }

SafetensorsFile weights(const ParamStore& store, const std::string& config) {
  SafetensorsFile file;
  file.metadata["config"] = config;
  for (int p = 0; p < store.count(); ++p) file.add({store.spec(p).name, store.spec(p).shape, store.value(p), {}});
  return file;
}

// At most 2^60, which no run reaches: counting on from there must not pass the largest integer.
int64_t counter(const SafetensorsFile& file, const std::string& path, const std::string& key) {
  const auto at = file.metadata.find(key);
  const auto value = at == file.metadata.end() ? std::nullopt : parse_int(at->second);
  if (!value) throw IoError(str(path, ": not a checkpoint of a run: '", key, "' is missing"));
  if (*value < 0 || *value > int64_t{1} << 60)
    throw IoError(str(path, ": '", key, "' is ", *value, ", which no run can have reached"));
  return *value;
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, Trainer& trainer, const CheckpointInfo& about) {
  const ParamStore& store = trainer.params();
  SafetensorsFile file = weights(store, about.config);
  file.metadata["data"] = about.data;
  file.metadata["metrics"] = about.metrics;
  file.metadata["layers"] = about.layers;
  file.metadata["kernels"] = kernels().name;
  file.metadata["step"] = std::to_string(trainer.steps_done());
  file.metadata["tokens"] = std::to_string(trainer.tokens_seen());
  for (int s = 0; s < trainer.optimizer().states(); ++s) {
    for (int p = 0; p < store.count(); ++p) {
      if (!store.spec(p).trainable) continue;
      file.add({state_name(s, store.spec(p).name),
                store.spec(p).shape,
                trainer.optimizer().state(s).data() + store.offset(p),
                {}});
    }
  }
  write_safetensors(path, file);
}

CheckpointInfo checkpoint_info(const SafetensorsFile& file, const std::string& path) {
  CheckpointInfo info;
  info.step = counter(file, path, "step");
  info.tokens = counter(file, path, "tokens");
  const auto config = file.metadata.find("config");
  if (config == file.metadata.end()) throw IoError(str(path, ": not a checkpoint of a run: 'config' is missing"));
  info.config = config->second;
  for (const auto& [key, to] : {std::pair("data", &info.data), std::pair("kernels", &info.kernels),
                                std::pair("metrics", &info.metrics), std::pair("layers", &info.layers)}) {
    if (const auto at = file.metadata.find(key); at != file.metadata.end()) *to = at->second;
  }
  return info;
}

void load_checkpoint(const SafetensorsFile& file, const std::string& path, Trainer& trainer) {
  const CheckpointInfo info = checkpoint_info(file, path);
  ParamStore& store = trainer.params();
  load_weights(file, path, store);
  for (int s = 0; s < trainer.optimizer().states(); ++s) {
    for (int p = 0; p < store.count(); ++p) {
      if (!store.spec(p).trainable) continue;
      copy_tensor(file, path, state_name(s, store.spec(p).name), store.spec(p).shape,
                  trainer.optimizer().state(s).data() + store.offset(p));
    }
  }
  trainer.restore(info.step, info.tokens);
}

void load_weights(const SafetensorsFile& file, const std::string& path, ParamStore& store) {
  for (int p = 0; p < store.count(); ++p)
    copy_tensor(file, path, store.spec(p).name, store.spec(p).shape, store.value(p));
}

void save_weights(const std::filesystem::path& path, const ParamStore& store, const std::string& config) {
  write_safetensors(path, weights(store, config));
}

}  // namespace normlab
