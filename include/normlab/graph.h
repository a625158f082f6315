// The recorded graph. A model function runs once and appends ops; after that a step replays them: forward() and
// backward() are loops over an array, in memory planned from lifetimes, without allocation, locks or exceptions.
//
//   ParamStore store;  Graph graph(store, {.batch = 4, .time = 64});
//   Var x = embedding(graph, table);  ...  graph.set_loss(cross_entropy(logits));
//   graph.plan(Plan::training);  store.allocate();  store.initialize(seed);
//   Workspace work(graph);  graph.prepare();  graph.forward(work, pass);  graph.backward(work, pass);
//
// One graph serves many workspaces at once, one per slot of the batch; none of its members changes while they run,
// except states (running statistics), which is why a graph that holds one must see the whole batch in a single
// workspace.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/error.h"
#include "normlab/params.h"
#include "normlab/real.h"
#include "normlab/shape.h"

namespace normlab {

class Graph;
class Workspace;

// A tensor of a graph: a handle, cheap to copy. A default-made Var is "absent" (no bias, no gain).
struct Var {
  Graph* graph = nullptr;
  int32_t id = -1;

  explicit operator bool() const { return graph != nullptr; }
  const Shape& shape() const;
};

// What one pass needs besides memory.
struct Pass {
  bool training = true;              // dropout on, batch statistics; false: running statistics
  const int32_t* tokens = nullptr;   // (B, T)
  const int32_t* targets = nullptr;  // (B, T); -1 = ignored (padding): no loss, not part of masked statistics
  double loss_scale = 1;             // gradient of the loss sum; 1 / number of valid targets of the whole update
  bool again = false;                // forward of a segment repeated for its backward: states have moved already
  bool add_to_gradients = false;     // parameter gradients: false = overwrite (first micro-batch), true = add
  // Keys of the counter-based random numbers of dropout.
  uint64_t seed = 0;
  uint64_t update = 0;
  int64_t first_sequence = 0;  // number, within the update, of this workspace's first sequence
};

class OpContext;

// Which values an op's backward reads; everything else may be overwritten before.
enum class Needs : unsigned { nothing = 0, inputs = 1, output = 2, both = 3 };

// One operation: shape rule in its builder function, formula, forward and backward adjacent in one file. Stateless: all
// it needs arrives by the context, so one op object serves all workspaces at once.
class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;
  virtual void forward(const OpContext& c) const = 0;
  // Writes (or adds to) the gradient of each input it `wants`. A gradient that is not to be accumulated holds garbage
  // before.
  virtual void backward(const OpContext& c) const = 0;
  virtual Needs needs() const { return Needs::inputs; }
  virtual int64_t saved() const { return 0; }  // elements kept from forward to backward
  // The same under Plan::recompute, where memory counts more than time: backward() must then do without the rest.
  virtual int64_t saved_at_least() const { return saved(); }
  virtual int64_t scratch() const { return 0; }  // elements of use within one call
  virtual int64_t shared() const { return 0; }   // elements made by prepare(), one copy for all workspaces
  // After parameters changed: fills `shared` from the values of the parameter inputs.
  virtual void prepare(const real* const* /*inputs*/, real* /*shared*/) const {}
  virtual double flops() const { return 0; }  // of one forward; a backward counts twice that
};

// recompute: as training, but of a segment only what others read is kept; the rest is computed again, to the same bits,
// before its backward (Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost).
enum class Plan { training, recompute, inference };

// Under bf16 every activation and its gradient hold values that a bfloat16 can hold (round to nearest even), and so do
// the operands of matrix products; sums, parameters, their gradients and the insides of norms stay fp32. Memory is not
// saved: values keep their fp32 storage.
enum class Precision { fp32, bf16 };

class Graph {
 public:
  struct Sizes {
    int64_t batch = 1;  // B: sequences in one workspace
    int64_t time = 1;   // T: positions of a sequence
  };
  Graph(ParamStore& store, Sizes sizes, Precision precision = Precision::fp32)
      : store_(&store), sizes_(sizes), bf16_(precision == Precision::bf16) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // ---- recording ----
  // Declares (or finds) the parameter in the store and makes it a tensor. A name serves once per graph, so that no norm
  // or matrix is used twice by accident; `shared_param` is the intended second use (tied embeddings).
  Var param(const ParamSpec& spec);
  Var shared_param(std::string_view name) const;
  Var append(std::unique_ptr<Op> op, const std::vector<Var>& inputs, const Shape& shape);
  // The same memory seen as rows of another length: (B, T, C) <-> (B, T, H, C / H).
  Var split(Var x, int64_t groups);
  Var merge(Var x);
  void set_loss(Var loss);  // shape (1): the sum over valid targets
  void keep(Var x);         // x stays readable after forward
  void need_whole_batch() { whole_batch_ = true; }

  // What is appended while one of these lives belongs together: a layer. See Plan::recompute.
  class Segment {
   public:
    explicit Segment(Graph& graph) : graph_(graph) {
      graph.segments_.push_back({graph.ops(), graph.ops()});
      graph.in_segment_ = true;
    }
    ~Segment() {
      graph_.segments_.back().end = graph_.ops();
      graph_.in_segment_ = false;
    }
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

   private:
    Graph& graph_;
  };

  // Path of the layer being built, for parameter names and messages: Scope s(graph, "layers.3.attention").
  std::string path(std::string_view leaf) const;
  class Scope {
   public:
    Scope(Graph& graph, std::string_view part);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    std::size_t before_;
  };
  [[noreturn]] void fail(std::string_view what) const;  // ShapeError with the path

  // While one of these lives, results stay fp32 under Precision::bf16: the inside of a norm. round() makes one of them
  // an activation again.
  class KeepFp32 {
   public:
    explicit KeepFp32(Graph& graph) : graph_(graph), before_(graph.keeps_fp32_) { graph.keeps_fp32_ = true; }
    ~KeepFp32() { graph_.keeps_fp32_ = before_; }
    KeepFp32(const KeepFp32&) = delete;
    KeepFp32& operator=(const KeepFp32&) = delete;

   private:
    Graph& graph_;
    bool before_;
  };
  void round(Var x);

  void plan(Plan kind, bool reuse = true);  // reuse = false gives every interval its own memory (tests)

  // ---- facts ----
  ParamStore& store() const { return *store_; }
  int64_t batch() const { return sizes_.batch; }
  int64_t time() const { return sizes_.time; }
  bool whole_batch() const { return whole_batch_; }
  bool bf16() const { return bf16_; }
  bool rounds_results() const { return bf16_ && !keeps_fp32_; }  // of ops appended now
  const Shape& shape(int32_t id) const { return tensors_[static_cast<std::size_t>(id)].shape; }
  int ops() const { return static_cast<int>(nodes_.size()); }
  const Op& op(int i) const { return *nodes_[static_cast<std::size_t>(i)].op; }
  int64_t workspace_elements() const { return workspace_elements_; }
  int64_t shared_elements() const { return shared_elements_; }
  double forward_flops() const;

  // ---- replay ----
  void allocate_shared();
  void prepare();  // once after every change of the parameters, before the workspaces run
  void forward(Workspace& work, const Pass& pass) const;
  void backward(Workspace& work, const Pass& pass) const;
  real loss(const Workspace& work) const;
  ConstView value(const Workspace& work, Var x) const;
  ConstView gradient(const Workspace& work, Var x) const;  // after backward, of a plan without reuse

 private:
  friend class OpContext;
  friend class Workspace;

  struct Tensor {
    Shape shape;
    int64_t stride = 0, groups = 1;
    int32_t root = -1;      // the tensor whose memory this one sees; itself unless a view
    int32_t producer = -1;  // node; -1 for parameters
    int param = -1;         // index in the store
    bool wants_grad = false;
    bool kept = false;
    bool grad_written = false;
    int64_t offset = -1, grad_offset = -1;  // in the workspace
  };
  struct Node {
    std::unique_ptr<Op> op;
    std::vector<int32_t> inputs;
    int32_t output = -1;
    std::vector<char> accumulate;  // per input: an earlier backward already wrote this gradient
    bool runs_backward = false;
    int segment = -1;
    bool rounds = false;  // the result, and its gradient, to bfloat16
    int64_t saved_offset = -1, shared_offset = -1;
  };

  struct Range {
    int begin, end;  // nodes
  };

  Tensor& tensor(int32_t id) { return tensors_[static_cast<std::size_t>(id)]; }
  const Tensor& tensor(int32_t id) const { return tensors_[static_cast<std::size_t>(id)]; }
  Var add_view(Var x, const Shape& shape, int64_t groups);
  void mark_gradient_writers();
  std::vector<bool> tensors_of_one_segment() const;
  void run_forward(const Node& node, Workspace& work, const Pass& pass) const;
  View view(const Workspace& work, int32_t id) const;
  View grad_view(const Workspace& work, int32_t id) const;
  static void round_to_bf16(const View& x);

  ParamStore* store_;
  Sizes sizes_;
  std::vector<Tensor> tensors_;
  std::vector<Node> nodes_;
  std::string path_;
  std::unordered_map<int, int32_t> param_vars_;
  Var loss_;
  std::vector<Range> segments_;
  bool in_segment_ = false, recompute_ = false;
  bool whole_batch_ = false;
  bool bf16_ = false, keeps_fp32_ = false;
  int64_t workspace_elements_ = 0, scratch_offset_ = 0, shared_elements_ = 0;
  Slab shared_;
};

// Memory of one slot: activations, saved values and activation gradients in one slab, parameter gradients in another.
class Workspace {
 public:
  explicit Workspace(const Graph& graph, bool with_gradients = true);
  real* gradient(int param) { return gradients_.data() + store_->offset(param); }
  const real* gradients() const { return gradients_.data(); }
  real* gradients() { return gradients_.data(); }
  void poison();  // fills activations with NaN: a value read before it is written shows (tests)

 private:
  friend class Graph;
  friend class OpContext;
  const ParamStore* store_;
  Slab slab_, gradients_;
};

// A gradient to write: overwrite, or add where `accumulate`.
struct Gradient {
  View view;
  bool accumulate = false;
};

// What an op sees of one call.
class OpContext {
 public:
  OpContext(const Graph& graph, const Graph::Node& node, Workspace& work, const Pass& pass_)
      : pass(pass_), graph_(graph), node_(node), work_(work) {}
  ConstView in(int i) const;
  View state(int i) const;  // a non-trainable parameter input, writable
  View out() const;
  ConstView grad_out() const;
  bool has(int i) const { return i < static_cast<int>(node_.inputs.size()); }
  bool wants(int i) const;
  Gradient grad(int i) const;
  real* saved() const { return work_.slab_.data() + node_.saved_offset; }
  real* scratch() const { return work_.slab_.data() + graph_.scratch_offset_; }
  const real* shared() const { return graph_.shared_.data() + node_.shared_offset; }
  bool saves_memory() const { return graph_.recompute_; }  // Plan::recompute
  int64_t batch() const { return graph_.batch(); }
  int64_t time() const { return graph_.time(); }

  const Pass& pass;

 private:
  const Graph& graph_;
  const Graph::Node& node_;
  Workspace& work_;
};

}  // namespace normlab
