#include "../mutation.h"

#include "config/toml.h"
#include "core/json.h"

using namespace normlab;

namespace {

const std::vector<std::string> kTomlCorpus = {
    "[run]\nname = \"post-24\"  # a comment\nseed = 1\n\n[model]\nlayers = 24\nbias = true\ninit = 'auto'\n",
    "[sweep]\n\"model.placement\" = [\"post\", \"pre\"]\n\"train.warmup\" = [\n  0,  # none\n  200,\n]\n",
    "a.b.c = 1_000\na.b.d = -0x0\n\"q\\u00e9\\n\".'x y' = { k = [1, {z = 2}], m.n = inf }\r\n[a.x]\r\ny = +1.5e-3\n",
    "s = \"\"\"\nline one \\\n   joined\n\"quoted\"\"\"\"\nt = '''raw \\ text'''\nu = 0b1010\nv = "
    "9223372036854775807\nw = nan\n",
    "\xef\xbb\xbfgr\xc3\xb6\xc3\x9f"
    "e = 1979\n"};

const std::vector<std::string> kJsonCorpus = {
    R"({"verdict": "stable", "n": 200, "loss": 1.25e-3, "tags": ["a", null, true, false], "empty": {}, "none": []})",
    R"({"__metadata__":{"format":"normlab"},"head.weight":{"dtype":"F32","shape":[27,64],"data_offsets":[0,6912]}})",
    R"([-0,-1,9223372036854775807, 1E+2, "\ud83d\ude00 \u00e9 \\ \" \/ \b\f\n\r\t", [[[]]], {"a": {"b": {"c": 0.5}}}])",
    "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""};

void read_toml(const std::string& text) {
  try {
    parse_toml(text, "f.toml");
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    CHECK(message.rfind("f.toml:", 0) == 0);
    // Whatever stands in the file, the message is one line of printable ASCII.
    CHECK(message.find_first_not_of(
              " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz"
              "{|}~") == std::string::npos);
    throw;
  }
}

void read_json(const std::string& text) {
  const std::string written = dump_json(parse_json(text, "f.json"));
  CHECK(dump_json(parse_json(written, "again")) == written);
}

}  // namespace

TEST_CASE("the TOML reader answers any bytes with a value or a typed error") {
  const MutationCount count = mutate_and_read(kTomlCorpus, 20000, 1, read_toml);
  CHECK(count.accepted + count.refused == 20000);
  CHECK(count.accepted > 1000);
  CHECK(count.refused > 1000);
}

TEST_CASE("the JSON reader answers any bytes with a typed error or a value that survives writing and reading") {
  const MutationCount count = mutate_and_read(kJsonCorpus, 20000, 2, read_json);
  CHECK(count.accepted + count.refused == 20000);
  CHECK(count.accepted > 1000);
  CHECK(count.refused > 1000);
}
