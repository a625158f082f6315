#include "lab/probe.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/parallel.h"
#include "core/text.h"
#include "report/csv.h"

namespace normlab {

const char kLayersHeader[] =
    "step,layer,sublayer,stream_rms,stream_max,branch_rms,branch_max,branch_ratio,stream_grad,grad_in,grad_out,"
    "update_in,update_out,gain_mean,gain_std,attention_entropy,attention_logit_max,token_similarity,"
    "angular_distance\n";

std::string layers_row(int64_t step, const ProbeRow& r) {
  return csv_row(step, r.layer, r.sublayer, r.stream_rms, r.stream_max, r.branch_rms, r.branch_max, r.branch_ratio,
                 r.stream_grad, r.grad_in, r.grad_out, r.update_in, r.update_out, r.gain_mean, r.gain_std,
                 r.attention_entropy, r.attention_logit_max, r.token_similarity, r.angular_distance);
}

namespace {

constexpr int64_t kMostSequences = 4, kMostOfABatch = 16;

double wide(real x) { return static_cast<double>(x); }

double dot(const real* x, const real* y, int64_t n) {
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += wide(x[j]) * wide(y[j]);
  return sum;
}

double sum_squares(const ConstView& x) {
  double sum = 0;
  for (int64_t r = 0; r < x.rows; ++r) sum += dot(x.row(r), x.row(r), x.cols);
  return sum;
}

double rms(const ConstView& x) { return std::sqrt(sum_squares(x) / static_cast<double>(x.rows * x.cols)); }

// The largest |x|; NaN where there is one.
double largest(const ConstView& x) {
  double most = 0;
  for (int64_t r = 0; r < x.rows; ++r)
    for (int64_t j = 0; j < x.cols; ++j)
      if (!(std::abs(wide(x.row(r)[j])) <= most)) most = std::abs(wide(x.row(r)[j]));
  return most;
}

// cos of the angle between two rows; 0 where one of them is zero.
double cosine(const real* x, const real* y, int64_t n) {
  const double size = std::sqrt(dot(x, x, n)) * std::sqrt(dot(y, y, n));
  return size == 0 ? 0 : dot(x, y, n) / size;
}

// Mean cosine between the rows of different positions of a sequence, from the sum of the unit vectors:
// |sum u|^2 = sum |u|^2 + sum over pairs.
double similarity(const ConstView& x, int64_t time) {
  if (time < 2) return 1;
  double total = 0;
  for (int64_t first = 0; first < x.rows; first += time) {
    std::vector<double> sum(static_cast<std::size_t>(x.cols), 0.0);
    double units = 0;
    for (int64_t t = 0; t < time; ++t) {
      const real* row = x.row(first + t);
      const double length = std::sqrt(dot(row, row, x.cols));
      if (length == 0) continue;
      for (int64_t j = 0; j < x.cols; ++j) sum[static_cast<std::size_t>(j)] += wide(row[j]) / length;
      units += 1;
    }
    double square = 0;
    for (const double s : sum) square += s * s;
    total += (square - units) / static_cast<double>(time * (time - 1));
  }
  return total / static_cast<double>(x.rows / time);
}

double angle(const ConstView& x, const ConstView& y) {
  double sum = 0;
  for (int64_t r = 0; r < x.rows; ++r)
    sum += std::acos(std::clamp(cosine(x.row(r), y.row(r), x.cols), -1.0, 1.0)) / std::numbers::pi;
  return sum / static_cast<double>(x.rows);
}

}  // namespace

int64_t Probe::sequences_for(const ModelConfig& model, int64_t batch) {
  return std::min(batch, needs_whole_batch(model) ? kMostOfABatch : kMostSequences);
}

Probe::Probe(const ModelConfig& model, ParamStore& store, const Corpus& corpus, uint64_t seed, int64_t sequences)
    : model_(model), store_(&store) {
  model_.dropout = 0;
  graph_ = std::make_unique<Graph>(store, Graph::Sizes{sequences, model.context}, model.precision);
  decoder_ = build_decoder(*graph_, model_);
  graph_->plan(Plan::training, false);  // every value and gradient stays readable
  const Batches batches(corpus, seed, model.context);
  const auto positions = static_cast<std::size_t>(sequences * model.context);
  tokens_.resize(positions), targets_.resize(positions);
  for (int64_t s = 0; s < sequences; ++s) {
    int32_t *tokens = tokens_.data() + s * model.context, *targets = targets_.data() + s * model.context;
    if (corpus.validation().empty())
      batches.train(0, s, tokens, targets);
    else
      batches.validation(s, sequences, tokens, targets);
  }
}

double Probe::memory() const {
  const int64_t elements = graph_->workspace_elements() + graph_->shared_elements() + 2 * store_->total();
  return static_cast<double>(elements) * sizeof(real);  // the two: gradients, and the copy of remember()
}

void Probe::remember() {
  const real* first = std::as_const(*store_).value(0) - store_->offset(0);
  before_.assign(first, first + store_->total());
}

double Probe::loss_and_gradient() {
  if (work_ == nullptr) {
    graph_->allocate_shared();
    work_ = std::make_unique<Workspace>(*graph_);
  }
  Pass pass;
  pass.again = true;  // running statistics stay
  pass.tokens = tokens_.data();
  pass.targets = targets_.data();
  const auto valid = std::count_if(targets_.begin(), targets_.end(), [](int32_t t) { return t >= 0; });
  pass.loss_scale = 1 / static_cast<double>(valid);
  graph_->prepare();
  graph_->forward(*work_, pass);
  graph_->backward(*work_, pass);
  return static_cast<double>(graph_->loss(*work_)) / static_cast<double>(valid);
}

std::vector<double> Probe::gradient() const {
  std::vector<double> all;
  for (int p = 0; p < store_->count(); ++p) {
    if (!store_->spec(p).trainable) continue;
    const real* g = work_->gradient(p);
    all.insert(all.end(), g, g + store_->spec(p).shape.count());
  }
  return all;
}

std::vector<ProbeRow> Probe::measure() {
  loss_and_gradient();
  std::vector<ProbeRow> rows(decoder_.sublayers.size());
  parallel_for(static_cast<int64_t>(rows.size()), [&](int64_t i) {
    const SublayerVars& s = decoder_.sublayers[static_cast<std::size_t>(i)];
    ProbeRow& row = rows[static_cast<std::size_t>(i)];
    const bool attention = s.name == "attention";
    const Group in = attention ? group(s, {"q", "k", "v"}) : group(s, {"up", "gate"});
    const Group out = attention ? group(s, {"out"}) : group(s, {"down"});
    row.layer = s.layer;
    row.sublayer = s.name;
    row.grad_in = gradient_norm(in), row.grad_out = gradient_norm(out);
    row.update_in = relative_update(in), row.update_out = relative_update(out);
    measure_stream(s, row);
    measure_gains(s, row);
    if (attention) measure_attention(s, row);
  });
  return rows;
}

Probe::Group Probe::group(const SublayerVars& s, std::initializer_list<const char*> names) const {
  Group g;
  for (const char* name : names) {
    const int p = store_->find(str("layers.", s.layer, ".", s.name, ".", name, ".weight"));
    if (p >= 0) g.matrices.push_back(p);
  }
  return g;
}

double Probe::gradient_norm(const Group& g) const {
  double sum = 0;
  for (const int p : g.matrices) sum += dot(work_->gradient(p), work_->gradient(p), store_->spec(p).shape.count());
  return std::sqrt(sum);
}

std::optional<double> Probe::relative_update(const Group& g) const {
  if (before_.empty()) return std::nullopt;
  double change = 0, size = 0;
  for (const int p : g.matrices) {
    const real *now = std::as_const(*store_).value(p), *then = before_.data() + store_->offset(p);
    for (int64_t i = 0; i < store_->spec(p).shape.count(); ++i) {
      const double moved = wide(now[i]) - wide(then[i]);
      change += moved * moved;
      size += wide(now[i]) * wide(now[i]);
    }
  }
  return std::sqrt(change) / std::sqrt(size);
}

void Probe::measure_stream(const SublayerVars& s, ProbeRow& row) const {
  const ConstView in = graph_->value(*work_, s.stream_in), branch = graph_->value(*work_, s.branch_out);
  row.stream_rms = rms(in), row.stream_max = largest(in);
  row.branch_rms = rms(branch), row.branch_max = largest(branch);
  row.branch_ratio = row.branch_rms / row.stream_rms;
  row.stream_grad = std::sqrt(sum_squares(graph_->gradient(*work_, s.stream_in)));
  row.token_similarity = similarity(in, model_.context);
  row.angular_distance = angle(in, graph_->value(*work_, s.stream_out));
}

// Gains are the vectors named weight under the sub-layer: of its norms, those of queries and keys included.
void Probe::measure_gains(const SublayerVars& s, ProbeRow& row) const {
  const std::string under = str("layers.", s.layer, ".", s.name, ".");
  std::vector<double> gains;
  for (int p = 0; p < store_->count(); ++p) {
    const ParamSpec& spec = store_->spec(p);
    if (spec.shape.rank() != 1 || !spec.trainable || spec.name.rfind(under, 0) != 0 || !spec.name.ends_with(".weight"))
      continue;
    const real* values = std::as_const(*store_).value(p);
    gains.insert(gains.end(), values, values + spec.shape.count());
  }
  if (gains.empty()) return;
  const double count = static_cast<double>(gains.size());
  double sum = 0, squares = 0;
  for (const double gain : gains) sum += gain;
  for (const double gain : gains) squares += (gain - sum / count) * (gain - sum / count);
  row.gain_mean = sum / count;
  row.gain_std = std::sqrt(squares / count);
}

// Entropy of each query's probabilities over its t + 1 keys, divided by ln(t + 1), the entropy of looking everywhere
// alike; the first position has no choice and does not count.
void Probe::measure_attention(const SublayerVars& s, ProbeRow& row) const {
  const ConstView q = graph_->value(*work_, s.q), k = graph_->value(*work_, s.k);
  const int64_t time = model_.context, width = model_.width / model_.heads, sharing = model_.heads / model_.kv_heads;
  const double cap = s.scores.cap, scale = s.scores.scale.value_or(1 / std::sqrt(static_cast<double>(width)));
  double entropies = 0, count = 0, most = 0;
  std::vector<double> logits(static_cast<std::size_t>(time));
  for (int64_t r = 0; r < q.rows; ++r) {
    const int64_t t = r % time;
    for (int64_t h = 0; h < model_.heads; ++h) {
      double top = -INFINITY, sum = 0, weighted = 0;
      for (int64_t u = 0; u <= t; ++u) {
        double logit = scale * dot(q.row(r) + h * width, k.row(r - t + u) + h / sharing * width, width);
        if (cap > 0) logit = cap * std::tanh(logit / cap);
        logits[static_cast<std::size_t>(u)] = logit;
        top = std::max(top, logit);
        if (!(std::abs(logit) <= most)) most = std::abs(logit);
      }
      if (t == 0) continue;
      for (int64_t u = 0; u <= t; ++u) {
        const double below = logits[static_cast<std::size_t>(u)] - top, e = std::exp(below);
        sum += e, weighted += e * below;
      }
      entropies += (std::log(sum) - weighted / sum) / std::log(static_cast<double>(t + 1));
      count += 1;
    }
  }
  if (count > 0) row.attention_entropy = entropies / count;
  row.attention_logit_max = most;
}

}  // namespace normlab
