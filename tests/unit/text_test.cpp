#include "core/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <thread>

#include "../test.h"
#include "core/files.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "normlab/error.h"

using namespace normlab;

namespace {

// A folder of its own that is gone at the end of the test.
struct Scratch {
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "normlab-text-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

template <class Action>
std::string io_failure(const Action& action) {
  try {
    action();
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& piece) { return text.find(piece) != std::string::npos; }

}  // namespace

TEST_CASE("numbers are written shortest and read back exactly") {
  CHECK(number(0.1) == "0.1");
  CHECK(number(0.1f) == "0.1");
  CHECK(number(10000.0) == "10000");
  CHECK(number(1e-6) == "1e-06");
  CHECK(number(-0.0) == "-0");
  CHECK(number(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(number(-std::numeric_limits<double>::quiet_NaN()) == "nan");
  CHECK(str("a", 1, ' ', true, std::int64_t{-2}, 0.5f, std::string("b")) == "a1 true-20.5b");
  const Rng rng(1, stream_id("test/number"));
  int wrong = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double value = std::ldexp(rng.uniform(i) - 0.5, static_cast<int>(rng.below(i, 2000)) - 1000);
    wrong += parse_double(number(value)) != value;
  }
  CHECK(wrong == 0);
}

TEST_CASE("numbers for people are rounded, grouped and given units") {
  CHECK(fixed(3.14159, 2) == "3.14");
  CHECK(fixed(2.0, 0) == "2");
  CHECK(fixed(std::numeric_limits<double>::infinity(), 2) == "inf");
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(grouped(-123456) == "-123,456");
  CHECK(bytes(1023) == "1023 B");
  CHECK(bytes(1024) == "1.00 KiB");
  CHECK(bytes(3.0 * 1024 * 1024 * 1024) == "3.00 GiB");
}

TEST_CASE("parsing takes the whole text or nothing") {
  CHECK(parse_double("1e-5") == 1e-5);
  CHECK(parse_double("+1.5") == 1.5);
  CHECK(std::isnan(parse_double("nan").value_or(0)));
  CHECK(parse_double("-inf") == -std::numeric_limits<double>::infinity());
  for (const char* text : {"", " 1", "1 ", "1,5", "+-1", "++1", "0x10", "1e", "1e999", "one"})
    CHECK_FALSE(parse_double(text).has_value());
  CHECK(parse_int("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  for (const char* text : {"", "9223372036854775808", "+1", "1.0", "1e3", " 1", "0x1"})
    CHECK_FALSE(parse_int(text).has_value());
}

TEST_CASE("text is split, joined, trimmed, lowered and quoted") {
  CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(split("", ',') == std::vector<std::string>{""});
  CHECK(join({"a", "b"}, ", ") == "a, b");
  CHECK(trim(" \t a b\r\n") == "a b");
  CHECK(trim(" \n").empty());
  CHECK(lower("RmsNorm-\xc3\x84") == "rmsnorm-\xc3\x84");
  CHECK(quote(std::string("a\r\xff")) == "'a\\x0d\\xff'");
  CHECK(quote(std::string_view("abcdef"), 3) == "'abc...'");
  CHECK(quote(std::string_view("abc"), 3) == "'abc'");
}

TEST_CASE("the nearest valid name is offered only where it is near") {
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("nrom", "norm") == 1);  // a swap of neighbours
  CHECK(edit_distance("NORM", "norm") == 0);
  CHECK(did_you_mean("model.nrom", {"model.norm", "model.heads"}) == " (did you mean 'model.norm'?)");
  CHECK(did_you_mean("xyz", {"model.norm"}).empty());
  CHECK(did_you_mean("ab", {"ax", "ay"}) == " (did you mean 'ax'?)");
}

TEST_CASE("Philox gives the known answers published with Random123") {
  using Block = std::array<std::uint32_t, 4>;
  const std::uint32_t ones = 0xffffffffu;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a random number is a function of seed, stream, step and index as documented") {
  CHECK(stream_id("") == 0x811c9dc5);  // published FNV-1a values
  CHECK(stream_id("a") == 0xe40c292c);
  CHECK(stream_id("foobar") == 0xbf9cf968);
  // The third known answer above, through its place in counter and key.
  const Rng rng(0x299f31d0a4093822, 0x13198a2e, 0x03707344);
  const std::uint64_t index = 0x85a308d3243f6a88;
  CHECK(rng.bits(index) == 0x94fdccebd16cfe09);
  CHECK(rng.uniform(index) == 0x94fdccebd16cfe09p-64 - 0x609p-64);  // the lowest 11 bits are dropped
  CHECK(rng.below(index, std::uint64_t{1} << 36) == 0x94fdccebd);   // the top 36 bits
  // sqrt(-2 ln u) cos(2 pi v), u from the first two words, v from the last two; worked out in 50 decimals.
  CHECK(rng.normal(index) == Approx(0.65864476904733045488).epsilon(1e-14));
}

// For n independent numbers the mean of f has standard deviation sqrt(var f / n); six of them are allowed.
TEST_CASE("uniform numbers have the moments of [0, 1)") {
  const Rng rng(7, stream_id("test/uniform"));
  const int n = 200000;
  double sum = 0, squares = 0, least = 1, most = 0;
  for (int i = 0; i < n; ++i) {
    const double u = rng.uniform(static_cast<std::uint64_t>(i));
    sum += u, squares += (u - 0.5) * (u - 0.5);
    least = std::min(least, u), most = std::max(most, u);
  }
  CHECK(least >= 0.0);
  CHECK(most < 1.0);
  CHECK(std::abs(sum / n - 0.5) < 6 * std::sqrt(1.0 / 12 / n));
  CHECK(std::abs(squares / n - 1.0 / 12) < 6 * std::sqrt((1.0 / 80 - 1.0 / 144) / n));
}

TEST_CASE("normal numbers have the first four moments of the normal distribution") {
  const Rng rng(7, stream_id("test/normal"));
  const int n = 200000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (int i = 0; i < n; ++i) {
    const double x = rng.normal(static_cast<std::uint64_t>(i));
    m1 += x, m2 += x * x, m3 += x * x * x, m4 += x * x * x * x;
  }
  // E x^2 = 1, E x^4 = 3, E x^6 = 15, E x^8 = 105.
  CHECK(std::abs(m1 / n) < 6 * std::sqrt(1.0 / n));
  CHECK(std::abs(m2 / n - 1) < 6 * std::sqrt(2.0 / n));
  CHECK(std::abs(m3 / n) < 6 * std::sqrt(15.0 / n));
  CHECK(std::abs(m4 / n - 3) < 6 * std::sqrt(96.0 / n));
}

TEST_CASE("whole numbers below a bound are equally likely") {
  const Rng rng(7, stream_id("test/below"));
  const int n = 70000;
  std::array<int, 7> counts{};
  int low_third = 0, outside = 0;
  const std::uint64_t third = std::uint64_t{1}
                              << 62;  // a remainder modulo 3 * 2^62 would fall below 2^62 half of the time
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t small = rng.below(i, 7), large = rng.below(i, 3 * third);
    outside += small >= 7 || large >= 3 * third;
    if (small < 7) ++counts[small];
    low_third += large < third;
  }
  CHECK(outside == 0);
  for (const int count : counts) CHECK(std::abs(count - n / 7.0) < 6 * std::sqrt(n * (1.0 / 7) * (6.0 / 7)));
  CHECK(std::abs(low_third - n / 3.0) < 6 * std::sqrt(n * (1.0 / 3) * (2.0 / 3)));
  CHECK(rng.below(0, 1) == 0);
}

TEST_CASE("a file is read back as written, and one that cannot be read is named with the reason") {
  const Scratch scratch;
  const std::string content = std::string("a\r\n\0\xff", 5) + std::string(200000, 'x');
  write_file_atomically(scratch.path / "f", content);
  CHECK(read_file(scratch.path / "f") == content);
  CHECK_FALSE(std::filesystem::exists(scratch.path / "f.tmp"));
  const auto missing = scratch.path / "missing.toml";
  CHECK(io_failure([&] { read_file(missing); }) == missing.string() + ": cannot open: No such file or directory");
  CHECK(io_failure([&] { read_file(scratch.path); }) == scratch.path.string() + ": cannot read: Is a directory");
}

TEST_CASE("a link stays a link and a pipe a pipe when they are written to") {
  const Scratch scratch;
  write_file_atomically(scratch.path / "target", "old");
  std::filesystem::create_symlink("target", scratch.path / "link");
  write_file_atomically(scratch.path / "link", "new");
  CHECK(std::filesystem::is_symlink(scratch.path / "link"));
  CHECK(read_file(scratch.path / "target") == "new");
  const std::string pipe = (scratch.path / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file_atomically(pipe, "through");
  char got[16] = {};
  CHECK(::read(reader, got, sizeof got) == 7);
  CHECK(std::string(got) == "through");
  ::close(reader);
  CHECK(std::filesystem::is_fifo(pipe));
}

TEST_CASE("a directory is held by one at a time") {
  const Scratch scratch;
  {
    const DirectoryLock first(scratch.path);
    CHECK(contains(io_failure([&] { DirectoryLock(scratch.path); }), "in use by another process"));
  }
  CHECK(io_failure([&] { DirectoryLock(scratch.path); }) == "no error");
}

TEST_CASE("a write that fails leaves the old file and no temporary one") {
  const Scratch scratch;
  const auto file = scratch.path / "f";
  write_file_atomically(file, "old");
  CHECK(contains(io_failure([&] { write_file_atomically(scratch.path / "no" / "f", "new"); }), "No such file"));
  CHECK(contains(io_failure([&] { write_file_atomically(scratch.path / "d" / ".." / "f", "new"); }), "No such file"));

  // The disk is full half way, as a limit on the size of files has it.
  struct rlimit before {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit tight = before;
  tight.rlim_cur = 4096;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &tight) == 0);
  const std::string message = io_failure([&] { write_file_atomically(file, std::string(100000, 'n')); });
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(message == file.string() + ".tmp: cannot write: File too large");
  CHECK(read_file(file) == "old");
  CHECK_FALSE(std::filesystem::exists(file.string() + ".tmp"));

  // The name is taken by a folder, so the last step, renaming, fails.
  std::filesystem::create_directories(scratch.path / "folder" / "inside");
  CHECK(
      contains(io_failure([&] { write_file_atomically(scratch.path / "folder", "new"); }), "cannot open for writing"));
  CHECK_FALSE(std::filesystem::exists(scratch.path / "folder.tmp"));
  CHECK(std::filesystem::exists(scratch.path / "folder" / "inside"));
}

TEST_CASE("lines are appended at once, and a full disk is an error that names the file") {
  const Scratch scratch;
  const auto file = scratch.path / "metrics.csv";
  {
    LineFile lines(file);
    lines.append("step,loss\n");
    CHECK(read_file(file) == "step,loss\n");  // while it is still open
    LineFile moved(std::move(lines));
    moved.append("1,2.5\n");
  }
  LineFile again(file);
  again.append("2,2.25\n");
  CHECK(read_file(file) == "step,loss\n1,2.5\n2,2.25\n");
  CHECK(contains(io_failure([&] { LineFile lines(scratch.path / "no" / "f"); }), "cannot open for writing"));
  if (std::filesystem::exists("/dev/full")) {
    LineFile full("/dev/full");
    CHECK(io_failure([&] { full.append("x\n"); }) == "/dev/full: cannot write: No space left on device");
  }
}

TEST_CASE("a parallel loop meets each index once with any number of threads", "[threads]") {
  const int before = threads();
  for (const int wanted : {1, 2, 3, 7}) {
    const int in_force = set_threads(wanted);
    CHECK((in_force == wanted || in_force == 1));
    CHECK(threads() == in_force);
    for (const std::int64_t count : {0, 1, 2, 6, 7, 8, 1000}) {
      std::vector<int> met(static_cast<std::size_t>(count), 0);
      parallel_for(count, [&](std::int64_t i) { ++met[static_cast<std::size_t>(i)]; });
      CHECK(met == std::vector<int>(static_cast<std::size_t>(count), 1));
    }
  }
  set_threads(before);
}

TEST_CASE("a parallel loop inside a parallel loop runs serially and in order on its own thread", "[threads]") {
  const int before = threads();
  const bool spread = set_threads(3) > 1;
  CHECK_FALSE(in_parallel());
  std::array<std::vector<std::int64_t>, 6> order;
  std::array<int, 6> foreign{};
  std::array<bool, 6> knew{};
  parallel_for(6, [&](std::int64_t i) {
    const auto item = static_cast<std::size_t>(i);
    const auto self = std::this_thread::get_id();
    knew[item] = in_parallel();
    parallel_for(50, [&](std::int64_t j) {
      order[item].push_back(j);
      foreign[item] += std::this_thread::get_id() != self;
    });
  });
  CHECK_FALSE(in_parallel());
  std::vector<std::int64_t> all;
  for (std::int64_t j = 0; j < 50; ++j) all.push_back(j);
  for (std::size_t item = 0; item < 6; ++item) {
    CHECK(order[item] == all);
    CHECK(foreign[item] == 0);
    CHECK(knew[item] == spread);
  }
  set_threads(before);
}
