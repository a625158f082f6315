// What people get wrong in a configuration, for every key at once: numbers that do not fit, misspelt words, the line
// ends and encodings of other systems.
#include <clocale>
#include <locale>

#include "../small_run.h"
#include "../test.h"
#include "core/text.h"
#include "lab/sweep.h"

using namespace normlab;

namespace {

RunConfig config_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  return resolve(parse_config(text, "c.toml", sets).settings);
}

std::string error_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  try {
    expand(parse_config(text, "c.toml", sets));
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    CHECK(std::string(error.what()).find_first_of("\r\n") == std::string::npos);
    return error.what();
  }
  return "no error";
}

// "norm = X" of a norm or placement that has options, so that these are among the keys.
std::vector<std::string> bases() {
  std::vector<std::string> out = {""};
  for (const NormDef* norm : all_norms()) {
    if (!norm->options.empty()) out.push_back(str("model.norm = \"", norm->name, "\"\n"));
  }
  for (const Placement* placement : all_placements()) {
    if (!placement->options.empty()) out.push_back(str("model.placement = \"", placement->name, "\"\n"));
  }
  return out;
}

// body(base, field) for every key of every norm and placement.
template <class Body>
void for_each_field(const Body& body) {
  for (const std::string& base : bases()) {
    RunConfig config = config_of(base);
    for (const Field& f : fields(config)) {
      INFO(base << f.key);
      if (base.find(f.key + " =") == std::string::npos) body(base, f);
    }
  }
}

std::string with_crlf(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return out;
}

bool is_integer(const Field& f) { return std::holds_alternative<int64_t*>(f.value) || f.whole; }

}  // namespace

TEST_CASE("no integer key takes a number that does not fit 64 bits, its own range, or that is no integer") {
  int checked = 0;
  for_each_field([&](const std::string& base, const Field& f) {
    if (!is_integer(f)) return;
    ++checked;
    for (const char* value : {"9223372036854775808", "18446744073709551616", "-9223372036854775809",
                              "99999999999999999999999", "0x8000000000000000", "-1", "1e3", "2.5", "true", "\"3\""}) {
      INFO(value);
      const std::string message = error_of(base + f.key + " = " + value + "\n");
      CHECK(message.rfind("c.toml:", 0) == 0);
      CHECK(error_of(base, {f.key + "=" + value}) != "no error");
    }
    // The largest integer there is: exact, or out of the key's range, and then told so.
    const std::string message = error_of(base + f.key + " = 9223372036854775807\n");
    if (f.max < 9e18) CHECK(message.find(str("'", f.key, "' must be ")) != std::string::npos);
  });
  CHECK(checked >= 20);
  CHECK(config_of("run.seed = 9223372036854775807\n").seed == 9223372036854775807);
  CHECK(config_of("data.seed = 9223372036854775807\n").data_seed == 9223372036854775807);
  CHECK(config_of("run.seed = 4294967296\n").seed == 4294967296);
}

TEST_CASE("no number key takes text, a switch, nan, infinity or a decimal comma") {
  int checked = 0;
  for_each_field([&](const std::string& base, const Field& f) {
    const bool number = std::holds_alternative<double*>(f.value) && !f.whole && !f.on_off;
    if (!number) return;
    ++checked;
    for (const char* value : {"\"1e-5\"", "true", "nan", "inf", "-inf", "0,1", ".5", "1.", "1.e-5", "1e", "1__0"}) {
      INFO(value);
      CHECK(error_of(base + f.key + " = " + value + "\n").rfind("c.toml:", 0) == 0);
    }
  });
  CHECK(checked >= 12);
}

TEST_CASE("every switch takes true and false and nothing else, in the file and from --set") {
  int checked = 0;
  for_each_field([&](const std::string& base, const Field& f) {
    if (!std::holds_alternative<bool*>(f.value) && !f.on_off) return;
    ++checked;
    for (const char* value : {"0", "1", "\"yes\"", "\"false\"", "False", "TRUE", "no", "fals", "1.0"}) {
      INFO(value);
      CHECK(error_of(base + f.key + " = " + value + "\n").rfind("c.toml:", 0) == 0);
      CHECK(error_of(base, {f.key + "=" + value}).rfind("--set " + f.key, 0) == 0);
    }
    CHECK(error_of(base, {f.key + "="}).rfind("--set " + f.key, 0) == 0);
    CHECK(error_of(base, {f.key}).rfind("--set needs section.key=value", 0) == 0);
    for (const char* value : {"true", "false"}) {
      INFO(value);
      CHECK(error_of(base + f.key + " = " + value + "\n") == error_of(base, {f.key + "=" + value}));
    }
  });
  CHECK(checked >= 5);
  CHECK(config_of("model.bias = true\n", {"model.bias=false"}).bias == false);
}

TEST_CASE("a misspelt word is an error with the nearest valid one, for every key that has choices") {
  int checked = 0;
  for_each_field([&](const std::string& base, const Field& f) {
    for (const std::string& choice : f.choices) {
      if (choice.size() < 3) continue;
      ++checked;
      std::string twisted = choice;
      std::swap(twisted[1], twisted[2]);
      if (twisted == choice) twisted += 'x';
      const std::string message = error_of(base + f.key + " = \"" + twisted + "\"\n");
      INFO(message);
      CHECK(message.rfind(str("c.toml:", base.empty() ? 1 : 2, ":"), 0) == 0);
      CHECK(message.find(str(": '", f.key, "' is '", twisted, "' (did you mean '")) != std::string::npos);
    }
  });
  CHECK(checked >= 30);
}

TEST_CASE("a misspelt key is an error with the nearest valid one, for every key, in the file, in a sweep, from --set") {
  for_each_field([&](const std::string& base, const Field& f) {
    std::string twisted = f.key;
    std::swap(twisted[twisted.size() - 1], twisted[twisted.size() - 2]);
    if (twisted == f.key) twisted += 'x';
    const std::string wanted = str("unknown key '", twisted, "' (did you mean '");
    CHECK(error_of(base + twisted + " = 1\n").find(wanted) != std::string::npos);
    CHECK(error_of(base + "[sweep]\n\"" + twisted + "\" = [1]\n").find(wanted) != std::string::npos);
    CHECK(error_of(base, {twisted + "=1"}).find(wanted) != std::string::npos);
  });
  // Keys of other tools that would change the training are not passed over in silence.
  for (const char* key : {"train.loss_scale", "train.grad_scaler", "model.vocab_size", "train.max_steps"}) {
    INFO(key);
    CHECK(error_of(str(key, " = 1\n")).find(str(": unknown key '", key, "'")) != std::string::npos);
  }
}

TEST_CASE("a key twice is an error that names both lines, for every key") {
  for_each_field([&](const std::string& base, const Field& f) {
    const std::string line = f.key + " = " + f.text() + "\n";
    const int first = base.empty() ? 1 : 2;
    const std::string message = error_of(base + line + line);
    INFO(message);
    CHECK(message.rfind(str("c.toml:", first + 1, ":"), 0) == 0);
    CHECK(message.ends_with(str(": duplicate key '", f.key, "' (first at line ", first, ")")));
  });
}

TEST_CASE("byte order mark, CRLF and a missing last line end change neither a config nor a sweep") {
  const std::string text = str(kSmallRun, "[sweep]\n\"train.lr\" = [1e-3, 1e-4]\n\"model.norm\" = [\"layernorm\"]");
  const std::vector<SweepPoint> plain = expand(parse_config(text, "c.toml", {}));
  for (const std::string& other :
       {with_crlf(text), text + "\n", "\xEF\xBB\xBF" + text, "\xEF\xBB\xBF" + with_crlf(text) + "\r\n"}) {
    const std::vector<SweepPoint> points = expand(parse_config(other, "c.toml", {}));
    REQUIRE(points.size() == plain.size());
    for (std::size_t i = 0; i < points.size(); ++i) CHECK(dump(points[i].config) == dump(plain[i].config));
  }
}

TEST_CASE("errors of files with CRLF are one line without a carriage return, at the same place") {
  for (const std::string wrong :
       {"[model]\nnorm = \"rmsnrom\"\n", "[model]\nnorm = rmsnorm\n", "[model]\nnrom = 1\n", "[train]\nlr = 1e-\n",
        "[train]\nlr = 0,1\n", "[model]\nnorm = \"rmsnorm\nlayers = 2\n", "[model\nlayers = 2\n", "[train]\nlr = \n"}) {
    INFO(wrong);
    const std::string message = error_of(wrong);
    CHECK(message != "no error");
    CHECK(error_of(with_crlf(wrong)) == message);
  }
  CHECK(error_of("[model]\rlayers = 2\r") == "c.toml:1:8: a carriage return without a line feed after it");
}
