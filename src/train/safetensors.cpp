#include "train/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/digest.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

namespace {

constexpr std::size_t kMostHeader = 100u << 20;  // the format's own limit
constexpr std::string_view kZeros = "0000000000000000";
constexpr std::string_view kFormat = "normlab";  // of a file written here; one without a checksum has lost it
constexpr std::string_view kMark = "\"checksum\":\"";

static_assert(std::endian::native == std::endian::little, "safetensors are written as they lie in memory");

// The values' bytes as fp32: where they lie, or in the double build from a copy that `held` keeps.
std::string_view as_fp32(const real* values, int64_t count, std::vector<std::string>& held) {
  const std::size_t size = static_cast<std::size_t>(count) * sizeof(float);
  if constexpr (sizeof(real) == sizeof(float)) return {reinterpret_cast<const char*>(values), size};
  std::string& out = held.emplace_back(size, '\0');
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(values[i]);
    std::memcpy(out.data() + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
  }
  return out;
}

}  // namespace

const TensorBytes* SafetensorsFile::find(std::string_view name) const {
  const auto at = index.find(name);
  return at == index.end() ? nullptr : &tensors[at->second];
}

void SafetensorsFile::add(TensorBytes tensor) {
  index.emplace(tensor.name, tensors.size());
  tensors.push_back(std::move(tensor));
}

void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file) {
  Json header = Json::object();
  Json metadata = Json::object();
  for (const auto& [key, value] : file.metadata) metadata.set(key, value);
  metadata.set("format", kFormat);
  metadata.set("checksum", kZeros);
  header.set("__metadata__", std::move(metadata));
  std::vector<std::string> held;
  held.reserve(file.tensors.size());  // its strings must not move
  std::vector<std::string_view> pieces(2);
  int64_t offset = 0;
  for (const TensorBytes& t : file.tensors) {
    Json shape = Json::array();
    for (int i = 0; i < t.shape.rank(); ++i) shape.items.emplace_back(t.shape[i]);
    const std::string_view data = pieces.emplace_back(as_fp32(t.data, t.shape.count(), held));
    Json offsets = Json::array();
    offsets.items.emplace_back(offset);
    offset += static_cast<int64_t>(data.size());
    offsets.items.emplace_back(offset);
    Json entry = Json::object();
    entry.set("dtype", "F32");
    entry.set("shape", std::move(shape));
    entry.set("data_offsets", std::move(offsets));
    header.set(t.name, std::move(entry));
  }
  std::string text = dump_json(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // the data start stays aligned
  uint64_t sum = fnv1a(text);
  for (const std::string_view piece : pieces) sum = fnv1a(piece, sum);  // the first two are still empty
  text.replace(text.find(str(kMark, kZeros)) + kMark.size(), kZeros.size(), hex(sum));
  const uint64_t size = text.size();
  pieces[0] = {reinterpret_cast<const char*>(&size), sizeof size};
  pieces[1] = text;
  write_file_atomically(path, pieces);
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

SafetensorsFile parse_safetensors(std::string_view content, const std::string& name) {
  const auto fail = [&](std::string_view what) { throw IoError(str(name, ": ", what)); };
  uint64_t size = 0;
  if (content.size() < sizeof size) fail("not a safetensors file: too short");
  std::memcpy(&size, content.data(), sizeof size);
  if (size > kMostHeader || size > content.size() - sizeof size)
    fail("not a safetensors file, or truncated: the header does not fit");
  std::string text(content.substr(sizeof size, size));
  const std::string_view data = content.substr(sizeof size + size);
  const Json header = parse_json(trim(text), name);
  if (header.kind != Json::Kind::kObject) fail("the header is not an object");

  SafetensorsFile file;
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const auto& [key, value] : header.members) {
    if (key == "__metadata__") {
      for (const auto& [meta, content_of] : value.members) file.metadata[meta] = content_of.string;
      continue;
    }
    const Json *type = value.find("dtype"), *shape = value.find("shape"), *offsets = value.find("data_offsets");
    if (type == nullptr || shape == nullptr || offsets == nullptr || offsets->items.size() != 2)
      fail(str("tensor ", quote(key), " lacks dtype, shape or data_offsets"));
    if (type->string != "F32") fail(str("tensor ", quote(key), " is ", quote(type->string), "; only F32 is read"));
    TensorBytes tensor;
    tensor.name = key;
    if (shape->items.size() > 4) fail(str("tensor ", quote(key), " has more than 4 dimensions"));
    int64_t dims[4] = {}, count = 1;
    for (std::size_t i = 0; i < shape->items.size(); ++i) {
      dims[i] = shape->items[i].integer.value_or(-1);
      if (dims[i] < 0 || dims[i] > (int64_t{1} << 40) || (dims[i] > 0 && count > (int64_t{1} << 40) / dims[i]))
        fail(str("tensor ", quote(key), " has an impossible shape"));
      count *= dims[i];
    }
    switch (shape->items.size()) {
      case 0: tensor.shape = {}; break;
      case 1: tensor.shape = {dims[0]}; break;
      case 2: tensor.shape = {dims[0], dims[1]}; break;
      case 3: tensor.shape = {dims[0], dims[1], dims[2]}; break;
      default: tensor.shape = {dims[0], dims[1], dims[2], dims[3]};
    }
    const auto begin = offsets->items[0].integer.value_or(-1), end = offsets->items[1].integer.value_or(-1);
    if (begin < 0 || end < begin || static_cast<uint64_t>(end) > data.size() || end - begin != count * 4) {
      fail(str("damaged or truncated: the data of tensor ", quote(key), " do not fit"));
    }
    tensor.values = std::string(data.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    ranges.emplace_back(begin, end);
    file.add(std::move(tensor));
  }
  std::sort(ranges.begin(), ranges.end());
  std::size_t expected = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != expected) fail("damaged: the data of its tensors overlap or leave gaps");
    expected = end;
  }
  if (expected != data.size()) fail("damaged: bytes behind the last tensor");
  const auto format = file.metadata.find("format");
  if (const auto sum = file.metadata.find("checksum"); sum == file.metadata.end()) {
    if (format != file.metadata.end() && format->second == kFormat) fail("damaged: the checksum is missing");
  } else {
    const std::size_t at = text.find(str(kMark, sum->second));
    if (at == std::string::npos || sum->second.size() != kZeros.size()) fail("damaged: unreadable checksum");
    text.replace(at + kMark.size(), kZeros.size(), kZeros);
    if (hex(fnv1a(data, fnv1a(text))) != sum->second) fail("damaged: the checksum does not hold");
    file.metadata.erase(sum);
  }
  return file;
}

void copy_tensor(const SafetensorsFile& file, const std::string& path, std::string_view name, const Shape& shape,
                 real* to) {
  const TensorBytes* tensor = file.find(name);
  if (tensor == nullptr) throw IoError(str(path, ": tensor ", quote(name), " is missing"));
  if (tensor->shape != shape) {
    throw IoError(str(path, ": tensor ", quote(name), " is ", tensor->shape.text(), ", not ", shape.text()));
  }
  for (int64_t i = 0; i < shape.count(); ++i) {
    float value = 0;
    std::memcpy(&value, tensor->values.data() + static_cast<std::size_t>(i) * sizeof value, sizeof value);
    to[i] = static_cast<real>(value);
  }
}

}  // namespace normlab
