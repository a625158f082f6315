// The safetensors file format (https://github.com/huggingface/safetensors, "Format"): 8 bytes little-endian header
// size, a JSON header
// {"name": {"dtype", "shape", "data_offsets"}, "__metadata__": {text: text}}, then the tensors' bytes. fp32 only.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/shape.h"

namespace normlab {

struct TensorBytes {
  std::string name;
  Shape shape;
  const real* data = nullptr;  // when writing
  std::string values;          // when read: little-endian fp32
};

struct SafetensorsFile {
  std::vector<TensorBytes> tensors;
  std::map<std::string, std::string> metadata;

  void add(TensorBytes tensor);
  const TensorBytes* find(std::string_view name) const;  // nullptr where there is none

  std::map<std::string, std::size_t, std::less<>> index;  // name -> place among the tensors
};

// Writes atomically. Metadata "format" = "normlab" and "checksum" are added: FNV-1a (64 bit) over header and data,
// itself counted as zeros.
void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file);

// Reads all of a file. Anything that is not a whole, sound file is an IoError naming the path; a checksum must hold,
// and files of this tool must have one.
SafetensorsFile read_safetensors(const std::filesystem::path& path);
SafetensorsFile parse_safetensors(std::string_view content, const std::string& name);

// Copies a read tensor into `to` (count elements); IoError where the shape differs.
void copy_tensor(const SafetensorsFile& file, const std::string& path, std::string_view name, const Shape& shape,
                 real* to);

}  // namespace normlab
