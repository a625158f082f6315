#include "normlab/graph.h"

#include <limits>
#include <utility>

#include "core/parallel.h"
#include "core/text.h"
#include "kernels/kernels.h"

namespace normlab {

namespace {

// Rows whose length is a large multiple of 64 elements get 16 more: power-of-two strides make rows collide in the cache
// sets.
int64_t row_stride(int64_t cols) {
  if (cols < 16) return cols;
  const int64_t rounded = (cols + 15) / 16 * 16;
  return rounded >= 256 && rounded % 64 == 0 ? rounded + 16 : rounded;
}

}  // namespace

const Shape& Var::shape() const { return graph->shape(id); }

// ---- recording
// ---------------------------------------------------------------------------------------------------------

Graph::Scope::Scope(Graph& graph, std::string_view part) : graph_(graph), before_(graph.path_.size()) {
  if (!graph.path_.empty()) graph.path_ += '.';
  graph.path_ += part;
}

Graph::Scope::~Scope() { graph_.path_.resize(before_); }

std::string Graph::path(std::string_view leaf) const {
  return path_.empty() ? std::string(leaf) : str(path_, ".", leaf);
}

void Graph::fail(std::string_view what) const { throw ShapeError(str(path_.empty() ? "model" : path_, ": ", what)); }

Var Graph::param(const ParamSpec& spec) {
  const int index = store_->declare(spec);
  if (param_vars_.count(index) > 0) fail(str("parameter ", spec.name, " is used twice"));
  Tensor t;
  t.shape = spec.shape;
  t.stride = spec.shape.cols();
  t.groups = 1;
  t.root = static_cast<int32_t>(tensors_.size());
  t.param = index;
  t.wants_grad = spec.trainable;
  tensors_.push_back(t);
  param_vars_.emplace(index, t.root);
  return {this, t.root};
}

Var Graph::shared_param(std::string_view name) const {
  const auto at = param_vars_.find(store_->find(name));
  if (at == param_vars_.end()) fail(str("parameter ", name, " is not part of this graph"));
  return {const_cast<Graph*>(this), at->second};
}

Var Graph::append(std::unique_ptr<Op> op, const std::vector<Var>& inputs, const Shape& shape) {
  Tensor t;
  t.shape = shape;
  t.stride = row_stride(shape.cols());
  t.groups = 1;
  t.root = static_cast<int32_t>(tensors_.size());
  t.producer = static_cast<int32_t>(nodes_.size());
  Node node;
  node.op = std::move(op);
  node.output = t.root;
  for (const Var x : inputs) {
    if (x.graph != this) fail(str(node.op->name(), ": an input belongs to another graph or is absent"));
    node.inputs.push_back(x.id);
    t.wants_grad = t.wants_grad || tensor(x.id).wants_grad;
  }
  // A result of its first input's shape takes over the layout too, so that split and merge stay free.
  if (!inputs.empty()) {
    const Tensor& first = tensor(inputs[0].id);
    if (first.shape == shape && (first.param < 0 || first.groups > 1)) t.stride = first.stride, t.groups = first.groups;
  }
  node.accumulate.assign(inputs.size(), 0);
  node.rounds = rounds_results();
  if (in_segment_) node.segment = static_cast<int>(segments_.size()) - 1;
  nodes_.push_back(std::move(node));
  tensors_.push_back(t);
  return {this, t.root};
}

Var Graph::add_view(Var x, const Shape& shape, int64_t groups) {
  Tensor t = tensor(x.id);
  t.shape = shape;
  t.groups = groups;
  t.root = tensor(x.id).root;
  tensors_.push_back(t);
  return {this, static_cast<int32_t>(tensors_.size() - 1)};
}

Var Graph::split(Var x, int64_t groups) {
  const Shape& s = x.shape();
  if (s.rank() != 3 || tensor(x.id).groups != 1) fail(str("split needs a (B, T, C) tensor, not ", s.text()));
  if (groups < 1 || s[2] % groups != 0) fail(str("width ", s[2], " does not divide into ", groups, " groups"));
  return add_view(x, {s[0], s[1], groups, s[2] / groups}, groups);
}

Var Graph::merge(Var x) {
  const Shape s = x.shape();
  if (s.rank() != 4 || tensor(x.id).groups != s[2]) fail(str("merge needs a split tensor, not ", s.text()));
  return add_view(x, {s[0], s[1], s[2] * s[3]}, 1);
}

void Graph::set_loss(Var loss) {
  loss_ = loss;
  keep(loss);
  nodes_[static_cast<std::size_t>(tensor(loss.id).producer)].rounds = false;
}

void Graph::round(Var x) {
  const int32_t producer = tensor(tensor(x.id).root).producer;
  if (producer >= 0) nodes_[static_cast<std::size_t>(producer)].rounds = bf16_;
}

void Graph::keep(Var x) { tensor(tensor(x.id).root).kept = true; }

double Graph::forward_flops() const {
  double sum = 0;
  for (const Node& node : nodes_) sum += node.op->flops();
  return sum;
}

// ---- replay
// ------------------------------------------------------------------------------------------------------------

void Graph::allocate_shared() { shared_ = Slab(shared_elements_); }

void Graph::prepare() {
  parallel_for_elements(shared_elements_, ops(), [&](int64_t i) {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    if (node.op->shared() == 0) return;
    const real* inputs[8] = {};
    for (std::size_t j = 0; j < node.inputs.size() && j < 8; ++j) {
      const Tensor& t = tensor(node.inputs[j]);
      if (t.param >= 0) inputs[j] = std::as_const(*store_).value(t.param);
    }
    node.op->prepare(inputs, shared_.data() + node.shared_offset);
  });
}

void Graph::run_forward(const Node& node, Workspace& work, const Pass& pass) const {
  node.op->forward(OpContext(*this, node, work, pass));
  if (node.rounds) round_to_bf16(view(work, node.output));
}

void Graph::forward(Workspace& work, const Pass& pass) const {
  for (const Node& node : nodes_) run_forward(node, work, pass);
}

void Graph::backward(Workspace& work, const Pass& pass) const {
  *grad_view(work, loss_.id).data = static_cast<real>(pass.loss_scale);
  Pass again = pass;
  again.again = true;
  int recomputed = -1;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    if (!node.runs_backward) continue;
    if (recompute_ && node.segment >= 0 && node.segment != recomputed) {
      recomputed = node.segment;
      const Range range = segments_[static_cast<std::size_t>(recomputed)];
      for (int j = range.begin; j < range.end; ++j) run_forward(nodes_[static_cast<std::size_t>(j)], work, again);
    }
    if (node.rounds) round_to_bf16(grad_view(work, node.output));  // complete: all readers of this result have run
    node.op->backward(OpContext(*this, node, work, pass));
  }
}

void Graph::round_to_bf16(const View& x) {
  parallel_for(x.rows, [&](int64_t r) { kernels().round_bf16(x.cols, x.row(r)); });
}

real Graph::loss(const Workspace& work) const { return *view(work, loss_.id).data; }

ConstView Graph::value(const Workspace& work, Var x) const {
  const View v = view(work, x.id);
  return {v.data, v.rows, v.cols, v.stride, v.groups};
}

ConstView Graph::gradient(const Workspace& work, Var x) const {
  const View v = grad_view(work, x.id);
  return {v.data, v.rows, v.cols, v.stride, v.groups};
}

View Graph::view(const Workspace& work, int32_t id) const {
  const Tensor& t = tensor(id);
  real* data = t.param >= 0 ? store_->value(t.param) : const_cast<real*>(work.slab_.data()) + tensor(t.root).offset;
  return {data, t.shape.rows(), t.shape.cols(), t.stride, t.groups};
}

View Graph::grad_view(const Workspace& work, int32_t id) const {
  const Tensor& t = tensor(id);
  auto& w = const_cast<Workspace&>(work);
  real* data = t.param >= 0 ? w.gradient(t.param) : w.slab_.data() + tensor(t.root).grad_offset;
  return {data, t.shape.rows(), t.shape.cols(), t.stride, t.groups};
}

Workspace::Workspace(const Graph& graph, bool with_gradients)
    : store_(&graph.store()),
      slab_(graph.workspace_elements()),
      gradients_(with_gradients ? graph.store().total() : 0) {}

void Workspace::poison() { slab_.fill(std::numeric_limits<real>::quiet_NaN()); }

ConstView OpContext::in(int i) const {
  const View v = graph_.view(work_, node_.inputs[static_cast<std::size_t>(i)]);
  return {v.data, v.rows, v.cols, v.stride, v.groups};
}

View OpContext::state(int i) const { return graph_.view(work_, node_.inputs[static_cast<std::size_t>(i)]); }

View OpContext::out() const { return graph_.view(work_, node_.output); }

ConstView OpContext::grad_out() const {
  const View v = graph_.grad_view(work_, node_.output);
  return {v.data, v.rows, v.cols, v.stride, v.groups};
}

bool OpContext::wants(int i) const {
  return has(i) && graph_.tensor(node_.inputs[static_cast<std::size_t>(i)]).wants_grad;
}

Gradient OpContext::grad(int i) const {
  const auto at = static_cast<std::size_t>(i);
  const bool earlier = node_.accumulate[at] != 0;
  const bool is_param = graph_.tensor(node_.inputs[at]).param >= 0;
  return {graph_.grad_view(work_, node_.inputs[at]), earlier || (is_param && pass.add_to_gradients)};
}

}  // namespace normlab
