// The safetensors format, byte by byte, and every way a file can be damaged.
#include "train/safetensors.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "../process.h"
#include "core/json.h"
#include "core/text.h"
#include "normlab/error.h"

using namespace normlab;

namespace {

const std::vector<real> kMatrix = {1, -2, real(0.5), 3, real(1e-30), 7}, kVector = {-1, 4};

std::string sample_file(const ScratchDirectory& here) {
  SafetensorsFile file;
  file.metadata["config"] = "[run]\nname = \"a\"\n";
  file.metadata["step"] = "17";
  file.add({"head.weight", {2, 3}, kMatrix.data(), {}});
  file.add({"final_norm.weight", {2}, kVector.data(), {}});
  write_safetensors(here / "w.safetensors", file);
  return read_file(here / "w.safetensors");
}

// A file around a header, with `data` bytes behind it.
std::string file_of(const std::string& header, const std::string& data = "") {
  const std::uint64_t size = header.size();
  std::string out(sizeof size, '\0');
  for (std::size_t i = 0; i < sizeof size; ++i) out[i] = static_cast<char>(size >> (8 * i) & 0xff);
  return out + header + data;
}

std::string error_of(const std::string& content) {
  try {
    parse_safetensors(content, "w");
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

float float_at(const std::string& bytes, std::size_t at) {
  float value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("a written file is what the safetensors format says, byte by byte") {
  const ScratchDirectory here;
  const std::string bytes = sample_file(here);
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 8; ++i) size |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  CHECK(size % 8 == 0);
  REQUIRE(bytes.size() == 8 + size + 8 * 4);
  CHECK(bytes[8] == '{');
  const Json header = parse_json(trim(bytes.substr(8, size)), "header");
  const Json& metadata = *header.find("__metadata__");
  CHECK(metadata.find("config")->string == "[run]\nname = \"a\"\n");
  CHECK(metadata.find("step")->string == "17");
  const Json &matrix = *header.find("head.weight"), &vector = *header.find("final_norm.weight");
  CHECK(matrix.find("dtype")->string == "F32");
  CHECK(dump_json(*matrix.find("shape")) == "[2,3]");
  CHECK(dump_json(*matrix.find("data_offsets")) == "[0,24]");
  CHECK(dump_json(*vector.find("shape")) == "[2]");
  CHECK(dump_json(*vector.find("data_offsets")) == "[24,32]");
  for (std::size_t i = 0; i < 6; ++i) CHECK(float_at(bytes, 8 + size + 4 * i) == static_cast<float>(kMatrix[i]));
  for (std::size_t i = 0; i < 2; ++i) CHECK(float_at(bytes, 8 + size + 24 + 4 * i) == static_cast<float>(kVector[i]));
}

TEST_CASE("a file made by another tool is read: blanks in the header, no checksum, tensors in any order") {
  const std::string data("\0\0\x80\x3f\0\0\0\xc0\0\0\xc0\x7f", 12);  // 1, -2, nan
  const SafetensorsFile file =
      parse_safetensors(file_of("{ \"b\": {\"dtype\":\"F32\", \"shape\":[1,2], \"data_offsets\":[0,8]},\n "
                                "\"a\":{\"shape\":[],\"data_offsets\":[8,12],\"dtype\":\"F32\"}}   ",
                                data),
                        "w");
  real values[2] = {};
  copy_tensor(file, "w", "b", {1, 2}, values);
  CHECK(values[0] == 1);
  CHECK(values[1] == -2);
  copy_tensor(file, "w", "a", {}, values);
  CHECK(std::isnan(values[0]));
  CHECK(file.find("c") == nullptr);
}

TEST_CASE("what is written is read back bit for bit, odd values and odd texts too") {
  const ScratchDirectory here;
  const std::vector<real> odd = {-0.0f, std::numeric_limits<real>::infinity(), -std::numeric_limits<real>::infinity(),
                                 real(1e-45), real(3.4028235e38)};
  SafetensorsFile file;
  file.metadata["config"] = "text with \"checksum\":\"0000000000000000\" and \\ and \n and \xc3\xa9";
  file.add({"odd \"name\"", {5}, odd.data(), {}});
  file.add({"empty", {0}, odd.data(), {}});
  write_safetensors(here / "w", file);
  const SafetensorsFile read = read_safetensors(here / "w");
  CHECK(read.metadata.at("config") == file.metadata.at("config"));
  std::vector<real> values(5);
  copy_tensor(read, "w", "odd \"name\"", {5}, values.data());
  CHECK(std::memcmp(values.data(), odd.data(), 5 * sizeof(real)) == 0);
  CHECK(read.find("empty")->values.empty());
}

TEST_CASE("a file cut at any length is refused") {
  const ScratchDirectory here;
  const std::string bytes = sample_file(here);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    if (error_of(bytes.substr(0, length)).rfind("w: ", 0) != 0) FAIL_CHECK("cut at " << length);
  }
  CHECK(error_of(bytes + std::string(1, '\0')) == "w: damaged: bytes behind the last tensor");
  CHECK(error_of(bytes) == "no error");
}

TEST_CASE("a file with any one bit flipped is refused") {
  const ScratchDirectory here;
  const std::string bytes = sample_file(here);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    if (error_of(damaged).rfind("w: ", 0) != 0)
      FAIL_CHECK("bit " << bit % 8 << " of byte " << bit / 8 << " of " << bytes.size());
  }
}

TEST_CASE("headers that lie about their data are refused before anything is taken from them") {
  const auto tensor = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return file_of("{\"a\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}",
                   "12345678");
  };
  CHECK(error_of(tensor("F32", "[2]", "[0,8]")) == "no error");
  CHECK(error_of(tensor("F16", "[4]", "[0,8]")) == "w: tensor 'a' is 'F16'; only F32 is read");
  for (const auto& [shape, offsets] :
       std::vector<std::pair<std::string, std::string>>{{"[2]", "[0,12]"},
                                                        {"[3]", "[0,8]"},
                                                        {"[2]", "[8,0]"},
                                                        {"[2]", "[-8,0]"},
                                                        {"[2]", "[0.0,8.0]"},
                                                        {"[2]", "[0,18446744073709551616]"}}) {
    INFO(shape << " " << offsets);
    CHECK(error_of(tensor("F32", shape, offsets)) == "w: damaged or truncated: the data of tensor 'a' do not fit");
  }
  for (const std::string shape :
       {"[-2]", "[\"2\"]", "[4611686018427387904,4]", "[1099511627777]", "[65536,65536,65536]", "[2.5]"}) {
    CHECK(error_of(tensor("F32", shape, "[0,8]")) == "w: tensor 'a' has an impossible shape");
  }
  CHECK(error_of(tensor("F32", "[1,1,1,1,2]", "[0,8]")) == "w: tensor 'a' has more than 4 dimensions");
  CHECK(error_of(tensor("F32", "[1]", "[0,4]")) == "w: damaged: bytes behind the last tensor");
  const std::string two =
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
      "offsets\":";
  CHECK(error_of(file_of(two + "[4,8]}}", "12345678")) == "no error");
  CHECK(error_of(file_of(two + "[0,4]}}", "1234")) == "w: damaged: the data of its tensors overlap or leave gaps");
  CHECK(error_of(file_of(two + "[8,12]}}", "123456789012")) ==
        "w: damaged: the data of its tensors overlap or leave gaps");
  CHECK(error_of(file_of("{\"a\":{\"dtype\":\"F32\"}}")) == "w: tensor 'a' lacks dtype, shape or data_offsets");
  CHECK(error_of(file_of("[1]")) == "w: the header is not an object");
  CHECK(error_of(std::string(8, '\xff') + "{}") == "w: not a safetensors file, or truncated: the header does not fit");
  CHECK(error_of("short") == "w: not a safetensors file: too short");
}

TEST_CASE("a tensor that is missing or has another shape is named") {
  const ScratchDirectory here;
  const SafetensorsFile file = parse_safetensors(sample_file(here), "w");
  const auto error = [&](const std::string& name, const Shape& shape) {
    std::vector<real> values(static_cast<std::size_t>(shape.count()));
    try {
      copy_tensor(file, "w", name, shape, values.data());
    } catch (const IoError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK(error("head.weight", {2, 3}) == "no error");
  CHECK(error("head.bias", {3}) == "w: tensor 'head.bias' is missing");
  CHECK(error("head.weight", {3, 2}) == "w: tensor 'head.weight' is (2, 3), not (3, 2)");
}
