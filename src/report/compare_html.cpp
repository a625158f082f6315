#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/text.h"
#include "report/chart_text.h"
#include "report/compare.h"
#include "report/layers.h"
#include "report/phase_map.h"

namespace normlab {

namespace {

constexpr std::size_t kMany = 28;    // runs: as many as there are colours and dashes
constexpr std::size_t kCurves = 14;  // of many runs that are shown as curves
constexpr std::size_t kLayered = 7;  // runs in a chart by layer: one per colour, as dashes tell the sub-layers apart

constexpr const char* kPageCss = R"(
:root{color-scheme:light dark}
body{margin:0;background:#fff;color:#222;font:16px/1.5 Helvetica,Arial,"DejaVu Sans",sans-serif}
main{max-width:60rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;margin:.5rem 0}
h2{font-size:1.15rem;margin:2rem 0 .5rem}
p,ul{margin:.4rem 0}
.quiet{color:#666}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .7rem;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
th{font-weight:600;border-bottom:2px solid #bbb}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:#fff}
td:first-child{font-weight:600}
.text{text-align:left}
.swatch{vertical-align:middle;margin-right:.5rem}
.verdict{display:inline-block;padding:0 .5rem;border-radius:.7rem;border:1px solid #888}
.stable{color:#00623f;border-color:#00946a}
.spiked,.stalled{color:#7a4b00;border-color:#c98500}
.diverged{color:#9c2f00;border-color:#d55e00}
figure{margin:.5rem 0}
figure svg{display:block;max-width:100%;height:auto}
figure.map svg{max-width:none}
.small{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr));gap:.5rem}
.small figure{margin:0;min-width:0}
.keys{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.875rem}
.keys li{overflow-wrap:anywhere}
.narrow{display:none}
@media (max-width:700px){.wide{display:none}.narrow{display:block}main{padding:.6rem}
.names th:first-child,.names td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:7rem;max-width:11rem}}
summary{cursor:pointer}
#tip{position:fixed;z-index:1;display:none;pointer-events:none;padding:.3rem .6rem;border:1px solid #999;border-radius:.3rem;
background:#fff;font-size:.8rem;line-height:1.4;white-space:pre;font-variant-numeric:tabular-nums}
@media (prefers-color-scheme:dark){
body,th:first-child,td:first-child,#tip{background:#16191d;color:#d8dce1}
th,td{border-color:#333940}
.quiet{color:#9aa1a9}
.stable{color:#5fd3ab}.spiked,.stalled{color:#f0b429}.diverged{color:#ff9466}
}
)";

// Extras on top of a page that is complete without them: values under the pointer, runs switched off by a click on
// their key. The values are read back from the curves, so the page carries the data once.
constexpr const char* kPageScript = R"(
const tip = document.getElementById('tip');
for (const svg of document.querySelectorAll('figure svg[data-plot]')) {
  const [x0, x1] = svg.dataset.x.split(' ').map(Number), [y0, y1] = svg.dataset.y.split(' ').map(Number);
  const [left, top, width, height] = svg.dataset.plot.split(' ').map(Number), log = svg.dataset.log === '1';
  const unit = svg.dataset.unit, grain = unit === 'step' ? 1 : 2;
  const value = y => log ? y0 * Math.pow(y1 / y0, 1 - y / height) : y0 + (y1 - y0) * (1 - y / height);
  const curves = [...svg.querySelectorAll('.series')].filter(g => g.querySelector('title') && !g.querySelector('.raw')).map(g => ({
    group: g, name: g.querySelector('title').textContent,
    points: [...g.querySelectorAll('path')].flatMap(path =>
      [...path.getAttribute('d').matchAll(/[ML](-?[\d.]+) (-?[\d.]+)/g)].map(m => [Number(m[1]), Number(m[2])]))}));
  svg.addEventListener('pointermove', event => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const x = at.x - left, inside = x >= 0 && x <= width && at.y >= top && at.y <= top + height;
    const rows = [];
    for (const curve of inside ? curves : []) {
      if (curve.group.style.display === 'none' || !curve.points.length) continue;
      const near = curve.points.reduce((a, b) => Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a);
      if (Math.abs(near[0] - x) > 8) continue;
      const shown = near[1] < 0 ? '> ' + y1.toPrecision(4) : near[1] > height ? '< ' + y0.toPrecision(4) : value(near[1]).toPrecision(4);
      rows.push([near[1], shown + '  ' + curve.name]);
    }
    tip.style.display = rows.length ? 'block' : 'none';
    if (!rows.length) return;
    rows.sort((a, b) => a[0] - b[0]);
    tip.textContent = unit + ' ' + Math.round(grain * (x0 + (x1 - x0) * x / width)) / grain + '\n' + rows.map(row => row[1]).join('\n');
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + 'px';
  });
  svg.addEventListener('pointerleave', () => tip.style.display = 'none');
}
for (const key of document.querySelectorAll('.key')) {
  const same = kind => key.closest('section').querySelectorAll(`${kind}[data-series="${key.dataset.series}"]`);
  const toggle = () => {
    const hide = key.getAttribute('aria-pressed') === 'true';
    for (const g of same('.series')) g.style.display = hide ? 'none' : '';
    for (const k of same('.key')) { k.setAttribute('aria-pressed', String(!hide)); k.style.opacity = hide ? .35 : 1; }
  };
  for (const [name, given] of [['role', 'button'], ['tabindex', '0'], ['aria-pressed', 'true']]) key.setAttribute(name, given);
  key.style.cursor = 'pointer';
  key.addEventListener('click', toggle);
  key.addEventListener('keydown', event => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); toggle(); } });
}
)";

std::string swatch(std::size_t i) {
  return str("<svg class=\"swatch normlab-chart\" width=\"26\" height=\"8\" aria-hidden=\"true\"><path class=\"line ",
             series_class(i), "\" d=\"M0 4L26 4\" fill=\"none\"/></svg>");
}

std::string badge(const std::string& verdict) {
  const std::string text = xml_escape(verdict);
  return verdict == "-" ? text : str("<span class=\"verdict ", text, "\">", text, "</span>");
}

// `shown`: the runs with a curve. The keys that differ, the last columns of the rows, have a table of their own on the
// page, unless its columns would be too many.
std::string results_table(const std::vector<Run>& runs, const std::vector<Run>& shown, std::string_view metric) {
  const std::vector<std::vector<std::string>> rows = compare_rows(runs, metric);
  const std::size_t columns = rows[0].size() - (runs.size() > kMany ? 0 : compare_configs(runs).different.size());
  std::string html = "<div class=\"scroll\"><table class=\"names\">\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string cell = i == 0 ? "th" : "td";
    const auto curve = std::find_if(shown.begin(), shown.end(), [&](const Run& run) { return run.name == rows[i][0]; });
    html += "<tr>";
    for (std::size_t column = 0; column < columns; ++column) {
      const std::string& text = rows[i][column];
      const bool key = i > 0 && column == 0 && curve != shown.end();
      const std::string content = key ? swatch(static_cast<std::size_t>(curve - shown.begin())) + xml_escape(text)
                                  : i > 0 && column == 1 ? badge(text)
                                                         : xml_escape(text);
      html += str("<", cell, column == 1 ? " class=\"text\">" : ">", content, "</", cell, ">");
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string paragraphs(const std::vector<std::string>& lines) {
  std::string html;
  for (const std::string& line : lines) html += str("<p class=\"quiet\">", xml_escape(line), "</p>\n");
  return html;
}

// A chart drawn for a desk and one drawn for a phone: scaled down, the letters of the former would be too small to
// read.
std::string figures(const std::vector<Run>& runs, std::string_view metric, std::int64_t smooth, bool log_y) {
  return str("<figure class=\"wide\">\n", compare_svg(runs, metric, {smooth, log_y, 920}),
             "</figure>\n<figure class=\"narrow\">\n", compare_svg(runs, metric, {smooth, log_y, 400}), "</figure>\n");
}

std::string verdicts(const std::vector<Run>& runs) {
  std::string html;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].verdict == "-") continue;
    html += str("<li><strong>", xml_escape(runs[i].name), "</strong> ", badge(runs[i].verdict), " ",
                xml_escape(runs[i].reason), "</li>\n");
  }
  return html.empty() ? html : str("<h2>Verdicts</h2>\n<ul>\n", html, "</ul>\n");
}

std::string config_table(const std::vector<Run>& runs, const std::vector<std::string>& keys) {
  std::string html = "<div class=\"scroll\"><table><tr><th>key</th>";
  for (const Run& run : runs) html += str("<th>", xml_escape(run.name), "</th>");
  html += "</tr>\n";
  for (const std::string& key : keys) {
    html += str("<tr><td>", xml_escape(key), "</td>");
    for (const Run& run : runs) {
      const auto found = run.config.find(key);
      html += str("<td>", found == run.config.end() ? "-" : xml_escape(found->second), "</td>");
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string configs(const std::vector<Run>& runs) {
  const auto configured = std::find_if(runs.begin(), runs.end(), [](const Run& run) { return !run.config.empty(); });
  if (configured == runs.end()) return {};
  const ConfigKeys keys = compare_configs(runs);
  std::string html = "<h2>Configuration</h2>\n";
  if (keys.different.empty()) html += "<p>No key differs.</p>\n";
  if (!keys.different.empty() && runs.size() <= kMany) html += config_table(runs, keys.different);
  for (const Run& run : runs) {
    if (run.config.empty()) html += str("<p class=\"quiet\">", xml_escape(run.name), ": no configuration known.</p>\n");
  }
  if (keys.same.empty()) return html;
  html += str("<details><summary>The ", keys.same.size(),
              " keys in which they agree</summary>\n<div class=\"scroll\"><table>\n");
  for (const std::string& key : keys.same) {
    html += str("<tr><td>", xml_escape(key), "</td><td class=\"text\">", xml_escape(configured->config.at(key)),
                "</td></tr>\n");
  }
  return html + "</table></div></details>\n";
}

// Folded, where it would fill screens.
std::string folded(bool fold, const std::string& summary, const std::string& html) {
  return fold ? str("<details><summary>", summary, "</summary>\n", html, "</details>\n") : html;
}

std::string map_section(const PhaseMap& map) {
  return str("<section>\n<figure class=\"map wide scroll\">\n", map_svg(map, {false, 920}),
             "</figure>\n<figure class=\"map narrow scroll\">\n", map_svg(map, {false, 360}),
             "</figure>\n</section>\n");
}

std::string layers_section(const std::vector<Run>& runs, std::string_view metric) {
  std::vector<Run> probed;
  for (const Run& run : runs) {
    for (const Run& one : run.seeds.empty() ? std::vector<Run>{run} : run.seeds) {
      if (std::filesystem::exists(one.path / "layers.csv")) probed.push_back(one);
    }
  }
  const std::size_t count = probed.size();
  probed = spread_of(probed, metric, kLayered);
  std::vector<LayerProfile> profiles;
  for (const Run& run : probed) {
    LayerProfile profile = load_layers(run.path, run.name);
    if (!profile.steps.empty()) profiles.push_back(std::move(profile));
  }
  if (profiles.empty()) return {};
  std::string charts;
  std::vector<std::string> names;
  for (const std::string& column : layer_quantities(profiles[0])) {
    const auto has = [&](const LayerProfile& profile) { return profile.rows.has(column); };
    if (!std::all_of(profiles.begin(), profiles.end(), has)) continue;
    const LayerTable table = layer_table(profiles, column);
    names = table.names;
    const auto measured = [](const LayerRow& row) {
      return std::any_of(row.values.begin(), row.values.end(), [](const auto& value) { return value.has_value(); });
    };
    if (std::none_of(table.rows.begin(), table.rows.end(), measured)) continue;
    charts += str("<figure>\n", chart_svg(layers_chart(table, 440, false, true)), "</figure>\n");
  }
  std::string html = "<section>\n<h2>By layer</h2>\n<p class=\"quiet\">";
  html += profiles.size() == 1 ? xml_escape(profiles[0].name) + " as probed after the steps below."
                               : "Each run as last probed.";
  if (count > probed.size())
    html += str(" Of ", count, " runs with probes these ", probed.size(),
                ", at equal distances from the best final value to the worst.");
  html +=
      " Lines of the branches: attention solid, feed-forward dashed. The attention of layer n stands at n, its "
      "feed-forward sub-layer at n + ½.</p>\n<ul class=\"keys\">\n";
  for (std::size_t i = 0; i < names.size(); ++i)
    html += str("<li class=\"key\" data-series=\"", i, "\">", swatch(i), xml_escape(names[i]), "</li>\n");
  return html + "</ul>\n<div class=\"small\">\n" + charts + "</div>\n</section>\n";
}

}  // namespace

std::vector<Run> spread_of(const std::vector<Run>& runs, std::string_view metric, std::size_t most) {
  if (runs.size() <= most) return runs;
  std::vector<double> finals;
  for (const Run& run : runs) {
    const double last = curve_facts(run_curve(run, metric)).last;
    finals.push_back(std::isfinite(last) ? last : std::numeric_limits<double>::infinity());
  }
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return finals[a] < finals[b]; });
  std::vector<Run> spread;
  for (std::size_t i = 0; i < most; ++i) spread.push_back(runs[order[i * (runs.size() - 1) / (most - 1)]]);
  return spread;
}

std::string compare_html(const std::vector<Run>& runs, std::string_view metric, std::int64_t smooth,
                         const PhaseMap* map) {
  const bool many = runs.size() > kMany;
  const std::vector<Run> shown = many ? spread_of(runs, metric, kCurves) : runs;
  const std::string title =
      runs.size() == 1 ? str("Run ", xml_escape(runs[0].name)) : str("Comparison of ", runs.size(), " runs");
  std::string html =
      str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
          "content=\"width=device-width,initial-scale=1\">\n<title>",
          title, "</title>\n<style>", kPageCss, "</style>\n</head>\n<body>\n<main>\n<h1>", title, "</h1>\n");
  if (map != nullptr) html += map_section(*map);
  html +=
      folded(many, str("Table of the ", runs.size(), " runs"),
             results_table(runs, shown, metric) +
                 "<p class=\"quiet\">First, best (smallest) and final (mean of the last 20 rows) training loss; val "
                 "loss as reported at the end.</p>\n" +
                 paragraphs(compare_notes(runs, metric)));
  html += str("<section>\n<h2>", xml_escape(metric_title(metric)), "</h2>\n");
  if (many) {
    html += str("<p class=\"quiet\">", shown.size(), " of the ", runs.size(),
                " runs, at equal distances from the best final value to the worst.</p>\n");
  }
  html += figures(shown, metric, smooth, false);
  if (smooth > 1) {
    html += str("<p class=\"quiet\">Strong: mean over the last ", smooth,
                " steps up to each step. Faint: every step.</p>\n");
  }
  html += str("<h2>", xml_escape(metric_title(metric)), ", logarithmic</h2>\n", figures(shown, metric, smooth, true),
              "</section>\n");
  html += layers_section(runs, metric);
  html += folded(many, "Verdicts and configuration", verdicts(runs) + configs(runs));
  html += str("</main>\n<div id=\"tip\"></div>\n<script>", kPageScript, "</script>\n</body>\n</html>\n");
  return html;
}

}  // namespace normlab
