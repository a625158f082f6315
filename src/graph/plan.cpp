// Memory planning: every value, saved buffer, gradient and scratch is an interval of ticks. Forward of node i is tick
// i, its backward tick 2N - 1 - i. Intervals that do not overlap share memory.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "normlab/graph.h"

namespace normlab {

namespace {

constexpr int64_t kLine = 16;  // elements; keeps every tensor on its own cache lines in either precision

struct Interval {
  int64_t first, last, size;
  int64_t* offset;
};

// Free memory by offset, neighbours joined, and by size; best fit, the lowest of several.
class FreeList {
 public:
  int64_t take(int64_t size) {
    if (const auto best = by_size_.lower_bound({size, 0}); best != by_size_.end()) {
      const auto [whole, offset] = *best;
      remove(offset, whole);
      if (whole > size) add(offset + size, whole - size);
      return offset;
    }
    // Nothing fits: grow, starting inside a free block at the end if there is one.
    int64_t offset = end_;
    if (!by_offset_.empty()) {
      const auto [last, room] = *by_offset_.rbegin();
      if (last + room == end_) offset = last, remove(last, room);
    }
    end_ = offset + size;
    return offset;
  }

  void give(int64_t offset, int64_t size) {
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [before, room] = *std::prev(next);
      if (before + room == offset) remove(before, room), offset = before, size += room;
    }
    if (next != by_offset_.end()) {
      const auto [after, room] = *next;
      if (offset + size == after) remove(after, room), size += room;
    }
    add(offset, size);
  }

  int64_t end() const { return end_; }

 private:
  void add(int64_t offset, int64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(int64_t offset, int64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

int64_t place(std::vector<Interval>& intervals, bool reuse) {
  std::stable_sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return a.first != b.first ? a.first < b.first : a.size > b.size;
  });
  FreeList memory;
  std::multimap<int64_t, std::pair<int64_t, int64_t>> living;  // last tick -> {offset, size}
  for (const Interval& interval : intervals) {
    while (reuse && !living.empty() && living.begin()->first < interval.first) {
      memory.give(living.begin()->second.first, living.begin()->second.second);
      living.erase(living.begin());
    }
    const int64_t size = (interval.size + kLine - 1) / kLine * kLine;
    *interval.offset = memory.take(size);
    living.emplace(interval.last, std::pair(*interval.offset, size));
  }
  return memory.end();
}

bool reads(Needs needs, Needs what) { return (static_cast<unsigned>(needs) & static_cast<unsigned>(what)) != 0; }

}  // namespace

void Graph::mark_gradient_writers() {
  for (Tensor& t : tensors_) t.grad_written = false;
  tensor(loss_.id).grad_written = true;  // seeded by backward()
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    node.runs_backward = tensor(node.output).grad_written && tensor(node.output).wants_grad;
    if (!node.runs_backward) continue;
    for (std::size_t j = 0; j < node.inputs.size(); ++j) {
      if (!tensor(node.inputs[j]).wants_grad) continue;
      Tensor& root = tensor(tensor(node.inputs[j]).root);
      node.accumulate[j] = root.grad_written ? 1 : 0;
      root.grad_written = true;
    }
  }
}

// Roots that only nodes of the producer's own segment touch.
std::vector<bool> Graph::tensors_of_one_segment() const {
  std::vector<bool> inner(tensors_.size(), false);
  for (const Node& node : nodes_) inner[static_cast<std::size_t>(node.output)] = node.segment >= 0;
  for (const Node& node : nodes_) {
    for (const int32_t id : node.inputs) {
      const Tensor& root = tensor(tensor(id).root);
      if (root.producer >= 0 && nodes_[static_cast<std::size_t>(root.producer)].segment != node.segment)
        inner[static_cast<std::size_t>(tensor(id).root)] = false;
    }
  }
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    if (tensors_[id].kept) inner[id] = false;
  }
  return inner;
}

// Under Plan::recompute every segment plans its inner intervals on its own clock (forward, then backward, of its nodes
// alone), all in one piece of memory that they use one after the other.
void Graph::plan(Plan kind, bool reuse) {
  const bool training = kind != Plan::inference;
  recompute_ = kind == Plan::recompute;
  if (training && !loss_) fail("a training graph needs a loss");
  for (Node& node : nodes_) node.runs_backward = false;
  if (training) mark_gradient_writers();

  const auto count = static_cast<int64_t>(nodes_.size());
  const int64_t end = 2 * count;
  std::vector<int64_t> first(tensors_.size(), 0), last(tensors_.size(), 0), grad_first(tensors_.size(), end);
  const std::vector<bool> inner = recompute_ ? tensors_of_one_segment() : std::vector<bool>(tensors_.size(), false);
  std::vector<Interval> intervals;
  std::vector<std::vector<Interval>> inside(segments_.size());
  shared_elements_ = 0;
  int64_t scratch = 0;  // ops of one workspace run one after the other: one scratch area serves all

  for (int64_t i = 0; i < count; ++i) {
    Node& node = nodes_[static_cast<std::size_t>(i)];
    const bool again = recompute_ && node.segment >= 0;
    const Range range = again ? segments_[static_cast<std::size_t>(node.segment)] : Range{0, static_cast<int>(count)};
    // Ticks on the clock of the whole graph and on that of the segment.
    const int64_t back = end - 1 - i, here = i - range.begin, here_back = 2 * range.end - range.begin - 1 - i;
    const auto extend = [&](int32_t id, bool until_backward) {
      const auto root = static_cast<std::size_t>(tensor(id).root);
      int64_t tick = until_backward ? back : i;
      if (inner[root])
        tick = until_backward ? here_back : here;
      else if (again)
        tick = std::max(tick, end - range.end);  // read, or written, once more just before the segment's backward
      last[root] = std::max(last[root], tick);
    };
    first[static_cast<std::size_t>(node.output)] = inner[static_cast<std::size_t>(node.output)] ? here : i;
    extend(node.output, node.runs_backward && reads(node.op->needs(), Needs::output));
    for (const int32_t id : node.inputs) {
      extend(id, node.runs_backward && reads(node.op->needs(), Needs::inputs));
      if (node.runs_backward && tensor(id).wants_grad) {
        auto& tick = grad_first[static_cast<std::size_t>(tensor(id).root)];
        tick = std::min(tick, back);
      }
    }
    if (const int64_t saved = recompute_ ? node.op->saved_at_least() : node.op->saved(); saved > 0) {
      auto& to = again ? inside[static_cast<std::size_t>(node.segment)] : intervals;
      const int64_t start = again ? here : i, finish = again ? here_back : back;
      to.push_back({start, node.runs_backward ? finish : start, saved, &node.saved_offset});
    }
    scratch = std::max(scratch, node.op->scratch());
    if (node.op->shared() > 0) {
      node.shared_offset = shared_elements_;
      shared_elements_ += (node.op->shared() + kLine - 1) / kLine * kLine;
    }
  }

  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    Tensor& t = tensors_[id];
    if (t.param >= 0 || t.root != static_cast<int32_t>(id)) continue;
    const int64_t elements = t.shape.rows() / t.groups * t.stride;
    const int segment = nodes_[static_cast<std::size_t>(t.producer)].segment;
    auto& to = inner[id] ? inside[static_cast<std::size_t>(segment)] : intervals;
    to.push_back({first[id], t.kept ? end : last[id], elements, &t.offset});
    if (training && t.grad_written) {
      const bool seeded = t.root == loss_.id;
      // The loss gradient is written before the first backward runs.
      intervals.push_back({seeded ? count : grad_first[id], end - 1 - t.producer, elements, &t.grad_offset});
    }
  }

  int64_t room = 0, room_offset = 0;
  for (auto& part : inside) room = std::max(room, place(part, reuse));
  if (room > 0) intervals.push_back({0, end, room, &room_offset});
  scratch_offset_ = place(intervals, reuse);
  for (const auto& part : inside) {
    for (const Interval& interval : part) *interval.offset += room_offset;
  }
  workspace_elements_ = scratch_offset_ + scratch;
}

}  // namespace normlab
