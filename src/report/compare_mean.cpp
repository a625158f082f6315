// Means over runs that differ in nothing but their seed, and how far the mean can be trusted.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include "core/text.h"
#include "normlab/error.h"
#include "report/compare.h"

namespace normlab {

namespace {

// What two runs must have in common to be of one mean; "" where nothing is known of the run.
std::string identity(const Run& run) {
  std::string text;
  for (const auto& [key, value] : run.config) {
    if (key != "run.seed" && key != "run.name") text += str(key, " = ", value, "\n");
  }
  return text;
}

std::string seed_of(const Run& run) {
  const auto found = run.config.find("run.seed");
  return found == run.config.end() ? "" : found->second;
}

// What the names have in common: the parts between commas that are the same in all (the names of a sweep), else what
// they begin with, else the first name.
std::string common_name(const std::vector<Run>& runs) {
  std::vector<std::string> parts;
  for (const std::string& part : split(runs[0].name, ',')) {
    const auto has_part = [&](const Run& run) {
      const std::vector<std::string> own = split(run.name, ',');
      return std::find(own.begin(), own.end(), part) != own.end();
    };
    if (std::all_of(runs.begin(), runs.end(), has_part)) parts.push_back(part);
  }
  if (!parts.empty()) return join(parts, ",");
  std::string start = runs[0].name;
  bool inside_number = false;
  for (const Run& run : runs) {
    while (run.name.compare(0, start.size(), start) != 0) start.pop_back();
  }
  const auto digit = [](const std::string& text, std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  for (const Run& run : runs) inside_number = inside_number || digit(run.name, start.size());
  while (inside_number && !start.empty() && digit(start, start.size() - 1)) start.pop_back();
  // Not in the middle of a character, and no sign that led to the seed.
  while (!start.empty() && (static_cast<unsigned char>(start.back()) >= 0x80 ||
                            std::string_view("-_=.,/ ").find(start.back()) != std::string_view::npos)) {
    start.pop_back();
  }
  return start.empty() ? runs[0].name : start;
}

std::string common_verdict(const std::vector<Run>& runs) {
  std::vector<std::string> names;
  std::map<std::string, int> counts;
  for (const Run& run : runs) {
    if (counts[run.verdict]++ == 0) names.push_back(run.verdict);
  }
  if (names.size() == 1) return names[0];
  std::vector<std::string> parts;
  for (const std::string& name : names) parts.push_back(str(counts[name], " ", name));
  return join(parts, ", ");
}

// The mean of what is known, and where it is the same in all that thing itself, without rounding.
std::optional<double> mean_of(const std::vector<Run>& runs, std::optional<double> Run::*member) {
  double sum = 0, first = 0;
  int n = 0;
  bool same = true;
  for (const Run& run : runs) {
    if (!(run.*member)) continue;
    if (n++ == 0) first = *(run.*member);
    same = same && *(run.*member) == first;
    sum += *(run.*member);
  }
  if (n == 0) return std::nullopt;
  return same ? first : sum / n;
}

// One run that stands for several: in its table every column that all of them have, each cell a mean over the runs that
// have a value there.
Run mean_run(std::vector<Run> runs) {
  Run mean;
  mean.name = common_name(runs);
  mean.path = runs[0].path;
  mean.verdict = common_verdict(runs);
  mean.config = runs[0].config;
  std::vector<std::string> names, seeds;
  for (const Run& run : runs) names.push_back(run.name), seeds.push_back(seed_of(run));
  mean.reason = str("mean over ", join(names, ", "));
  mean.config["run.seed"] = join(seeds, ", ");
  mean.validation_loss = mean_of(runs, &Run::validation_loss);
  mean.context_free_entropy = mean_of(runs, &Run::context_free_entropy);
  mean.entropy_rate = mean_of(runs, &Run::entropy_rate);
  mean.vocabulary = mean_of(runs, &Run::vocabulary);

  std::set<double> steps;
  for (const Run& run : runs) steps.insert(run.steps.begin(), run.steps.end());
  mean.steps.assign(steps.begin(), steps.end());
  mean.metrics.file = mean.name;
  mean.metrics.columns = {"step"};
  for (const double step : mean.steps) mean.metrics.cells.push_back({step_text(step)});
  mean.metrics.lines.assign(mean.steps.size(), 0);
  mean.seeds = std::move(runs);
  for (const std::string& column : mean.seeds[0].metrics.columns) {
    const auto has_it = [&](const Run& run) { return run.metrics.has(column); };
    if (column == "step" || !std::all_of(mean.seeds.begin(), mean.seeds.end(), has_it)) continue;
    const SeedSpread spread = seed_spread(mean, column);
    mean.metrics.columns.push_back(column);
    for (std::size_t row = 0, at = 0; row < mean.steps.size(); ++row) {
      const bool measured = at < spread.steps.size() && spread.steps[at] == mean.steps[row];
      mean.metrics.cells[row].push_back(measured ? number(spread.mean[at++]) : "");
    }
  }
  return mean;
}

}  // namespace

double student_t_95(std::int64_t degrees) {
  // P(|t| <= x) with x = sqrt(degrees) tan(angle) is a finite sum (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4), which
  // grows with the angle.
  const auto probability = [&](double angle) {
    const double cosine = std::cos(angle);
    double sum = 0, term = degrees % 2 == 1 ? cosine : 1;
    for (std::int64_t k = degrees % 2 == 1 ? 1 : 0; k < degrees - 1; k += 2) {
      sum += term;
      term *= cosine * cosine * static_cast<double>(k + 1) / static_cast<double>(k + 2);
    }
    return degrees % 2 == 1 ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
  };
  double low = 0, high = std::numbers::pi / 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (probability(middle) < 0.95 ? low : high) = middle;
  }
  return std::sqrt(static_cast<double>(degrees)) * std::tan(low);
}

Interval mean_interval(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Interval interval;
  for (const double value : values) interval.mean += value / n;
  if (values.size() < 2 || !std::isfinite(interval.mean)) return interval;
  double squares = 0;
  for (const double value : values) squares += (value - interval.mean) * (value - interval.mean);
  interval.half_width = student_t_95(static_cast<std::int64_t>(values.size()) - 1) * std::sqrt(squares / (n - 1) / n);
  return interval;
}

SeedSpread seed_spread(const Run& run, std::string_view metric, std::int64_t window) {
  std::map<double, std::vector<double>> values;
  for (const Run& seed : run.seeds) {
    const Curve curve = run_curve(seed, metric);
    const std::vector<double> smooth = smoothed(curve, window);
    for (std::size_t i = 0; i < smooth.size(); ++i) values[curve.steps[i]].push_back(smooth[i]);
  }
  SeedSpread spread;
  for (const auto& [step, here] : values) {
    const Interval interval = mean_interval(here);
    spread.steps.push_back(step);
    spread.mean.push_back(interval.mean);
    spread.half_width.push_back(interval.half_width);
    spread.n.push_back(static_cast<std::int64_t>(here.size()));
  }
  return spread;
}

std::vector<Run> mean_over_seeds(const std::vector<Run>& runs) {
  std::vector<std::string> identities;
  std::vector<std::vector<Run>> groups;
  for (const Run& run : runs) {
    const std::string own = identity(run);
    const auto known = own.empty() ? identities.end() : std::find(identities.begin(), identities.end(), own);
    if (known == identities.end()) {
      identities.push_back(own);
      groups.push_back({run});
      continue;
    }
    std::vector<Run>& group = groups[static_cast<std::size_t>(known - identities.begin())];
    for (const Run& other : group) {
      if (seed_of(other) == seed_of(run)) {
        throw UsageError(str("runs ", quote(other.name, 200), " and ", quote(run.name, 200),
                             " have the same configuration and the same run.seed = ", seed_of(run),
                             ": counted twice, a mean would look surer than it is"));
      }
    }
    group.push_back(run);
  }
  std::vector<Run> means;
  for (std::vector<Run>& group : groups) {
    means.push_back(group.size() == 1 ? std::move(group[0]) : mean_run(std::move(group)));
  }
  // Two means may have the same in common.
  std::map<std::string, int> counts, seen;
  for (const Run& run : means) ++counts[run.name];
  for (Run& run : means) {
    if (const std::string name = run.name; counts[name] > 1) run.name = str(name, " (", ++seen[name], ")");
  }
  return means;
}

std::vector<std::string> mean_notes(const Run& run, std::string_view metric) {
  std::vector<std::string> stretches;
  const SeedSpread spread = seed_spread(run, metric);
  for (std::size_t i = 0; i < spread.n.size(); ++i) {
    const bool last = i + 1 == spread.n.size() || spread.n[i + 1] != spread.n[i];
    if (last) stretches.push_back(str("n = ", spread.n[i], " to step ", step_text(spread.steps[i])));
  }
  std::vector<std::string> names, notes;
  for (const Run& seed : run.seeds) names.push_back(seed.name);
  std::string text = str(run.name, " is the mean over ", join(names, ", "));
  if (!stretches.empty()) text += str("; ", metric, ": ", join(stretches, ", "));
  notes.push_back(text + ".");
  for (const Run& seed : run.seeds) {
    std::optional<double> from;
    const std::string trouble = non_finite_text(run_curve(seed, metric), from);
    if (!trouble.empty()) notes.push_back(str(seed.name, ": ", metric, " ", trouble, "; where it is, so is the mean."));
  }
  const auto known = std::count_if(run.seeds.begin(), run.seeds.end(),
                                   [](const Run& seed) { return seed.validation_loss.has_value(); });
  if (known > 0 && static_cast<std::size_t>(known) < run.seeds.size())
    notes.push_back(str(run.name, ": the val loss is that of ", known, " of ", run.seeds.size(), " runs."));
  return notes;
}

}  // namespace normlab
