// Mutated files: the readers of CSV and safetensors answer any bytes with a value or a typed error.
#include "../mutation.h"
#include "../process.h"
#include "report/csv.h"
#include "train/run_config.h"
#include "train/safetensors.h"

using namespace normlab;

namespace {

const std::vector<std::string> kCsvCorpus = {
    "step,tokens,lr,loss,val_loss,grad_norm,param_norm,update_norm\n1,32,0.001,4.64,,1.2,19.7,0.089\n2,64,0.001,nan,3."
    "5,inf,19.7,0.066\n",
    "\xef\xbb\xbfstep , loss\r\n1, 2.5\r\n2,-nan\r\n3,1.#INF\r\n4,\r\n5,1e-300",
    "run,\"a,b\",loss\n\"say \"\"hi\"\"\",1,2\n\"two\nlines\",3,4\n"};

void read_csv_text(const std::string& text) {
  const CsvTable table = parse_csv(text, "m.csv");
  CHECK(table.cells.size() == table.lines.size());
  for (const auto& row : table.cells) CHECK(row.size() == table.columns.size());
  if (!table.has("loss")) return;
  const std::size_t numbers = table.numbers("loss").size();  // outside of CHECK, which would catch its errors
  CHECK(numbers == table.cells.size());
}

void cut_csv_text(const std::string& text) {
  const std::string kept = cut_rows_after(text, 2, "m.csv");
  CHECK((kept.empty() || kept.back() == '\n'));
  const std::string again = cut_rows_after(kept, 2, "m.csv");
  CHECK(again == kept);
}

void read_weights(const std::string& bytes) {
  const SafetensorsFile file = parse_safetensors(bytes, "w.safetensors");
  for (const TensorBytes& tensor : file.tensors)
    CHECK(tensor.values.size() == static_cast<std::size_t>(tensor.shape.count()) * 4);
}

void read_config_text(const std::string& text) {
  const RunConfig config = resolve(parse_config(text, "f.toml", {}).settings);
  const std::string written = dump(config);
  const std::string again = dump(resolve(parse_config(written, "again", {}).settings));
  CHECK(again == written);
}

std::string small_weights() {
  const ScratchDirectory here;
  const std::vector<real> values = {1, 2, 3, 4, 5, 6};
  SafetensorsFile file;
  file.metadata["step"] = "3";
  file.add({"a", {2, 2}, values.data(), {}});
  file.add({"b", {2}, values.data() + 4, {}});
  write_safetensors(here / "w", file);
  return read_file(here / "w");
}

}  // namespace

TEST_CASE("the CSV reader answers any bytes with a whole table or a typed error") {
  const MutationCount count = mutate_and_read(kCsvCorpus, 20000, 3, read_csv_text);
  CHECK(count.accepted > 1000);
  CHECK(count.refused > 1000);
}

TEST_CASE("cutting a CSV after a step answers any bytes with whole lines or a typed error") {
  const MutationCount count = mutate_and_read(kCsvCorpus, 20000, 4, cut_csv_text);
  CHECK(count.accepted > 1000);
  CHECK(count.refused > 1000);
}

TEST_CASE("the safetensors reader answers any bytes with sound tensors or a typed error") {
  // One file with a checksum, which hardly any mutation survives, and ones without.
  const auto foreign = [](const std::string& header, std::size_t bytes) {
    std::string size(8, '\0');
    size[0] = static_cast<char>(header.size());
    return size + header + std::string(bytes, '1');
  };
  const std::vector<std::string> corpus = {
      small_weights(), foreign("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}  ", 24),
      foreign("{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0), foreign("{}", 0)};
  const MutationCount count = mutate_and_read(corpus, 20000, 5, read_weights);
  CHECK(count.accepted > 200);
  CHECK(count.refused > 1000);
}

TEST_CASE("a configuration made of any bytes resolves to one that can be written and read, or is a typed error") {
  const std::vector<std::string> corpus = {
      "[model]\nlayers = 3\nnorm = \"groupnorm\"\n[norm]\ngroups = 2\neps = 1e-3\n[train]\nlr = 1\nbetas = [0.9, "
      "0.95]\n",
      "[run]\nname = \"x-1\"\nseed = 7\n[model]\nplacement = \"deepnorm\"\nwidth = 16\nheads = 2\n[placement]\nalpha = "
      "2\n",
      "train.steps = 10\ntrain.warmup = 3\neval.every = 5\nmodel.dropout = 0.1\n"};
  const MutationCount count = mutate_and_read(corpus, 20000, 6, read_config_text);
  CHECK(count.accepted > 500);
  CHECK(count.refused > 1000);
}
