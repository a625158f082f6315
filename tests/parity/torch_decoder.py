"""The decoder of normlab in PyTorch: a function of the resolved config (nested dictionaries, as `normlab check` prints it) and of weights
by name. Written from the documented formulas and weight names, with PyTorch's own functions wherever it has one."""
import math

import torch
import torch.nn.functional as F

import torch_placements as placements

NORM_EPS = {"layernorm": 1e-5, "rmsnorm": 1e-6, "batchnorm": 1e-5, "groupnorm": 1e-5, "instancenorm": 1e-5, "prmsnorm": 1e-8,
            "crmsnorm": 1e-5, "scalenorm": 1e-3, "l2norm": 1e-3, "groupnorm_time": 1e-5, "adanorm": 1e-5, "dyt": 0.0, "derf": 0.0, "powernorm": 1e-3, "none": 0.0}
TOKEN_NORMS = ("layernorm", "rmsnorm", "groupnorm", "prmsnorm", "crmsnorm", "scalenorm", "l2norm", "adanorm", "dyt", "derf", "none")
# What an option is where the config does not name it. Norms that read the same one share it, q/k norms too.
NORM_OPTIONS = {"bias": True, "unit_offset": False, "eps_position": "inside", "groups": 4, "share": 0.0625, "scale": 1.0, "slope": 0.1, "detach": True}
WITHOUT_BIAS = ("rmsnorm", "prmsnorm", "crmsnorm", "scalenorm", "l2norm")
POSITIONS = ("learned", "sinusoidal", "rope", "none")
ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "swiglu": F.silu,  # of the gate
    "geglu": F.gelu,
}
GATED = ("swiglu", "geglu")


def apply_norm(kind, options, x, weights, site, valid, training):
    """x (.., C) through the norm whose parameters are weights[site + ".weight"] and so on; `valid` (B, T) marks positions with a target."""
    if kind == "none":
        return x
    options = NORM_OPTIONS | options
    width = x.shape[-1]
    eps = options["eps"]
    gain, bias = weights.get(site + ".weight"), weights.get(site + ".bias")
    if options["unit_offset"] and gain is not None and kind in ("layernorm", "rmsnorm"):
        gain = 1 + gain
    if kind == "layernorm":
        return F.layer_norm(x, (width,), gain, bias, eps)
    if kind == "rmsnorm":
        square, position = x.pow(2).mean(-1, keepdim=True), options["eps_position"]
        if position == "inside":
            return affine(x / torch.sqrt(square + eps), gain)
        return affine(x / (square.sqrt() + eps) if position == "outside" else x / square.sqrt().clamp_min(eps), gain)
    if kind == "prmsnorm":
        part = x[..., : max(1, math.ceil(options["share"] * width - 1e-9))]
        return affine(x / torch.sqrt(part.pow(2).mean(-1, keepdim=True) + eps), gain)
    if kind == "crmsnorm":
        whole = torch.cat((x, -x.sum(-1, keepdim=True)), -1)
        return affine((whole / torch.sqrt(whole.pow(2).mean(-1, keepdim=True) + eps))[..., :-1], gain)
    if kind == "scalenorm":
        return F.normalize(x, dim=-1, eps=eps) * (math.sqrt(width) if gain is None else gain)
    if kind == "l2norm":
        return affine(F.normalize(x, dim=-1, eps=eps), gain)
    if kind == "groupnorm":
        return F.group_norm(x.reshape(-1, width), options["groups"], gain, bias, eps).reshape(x.shape)
    if kind == "groupnorm_time":
        return F.group_norm(x.transpose(1, 2), options["groups"], gain, bias, eps).transpose(1, 2)
    if kind == "adanorm":
        h = F.layer_norm(x, (width,), eps=eps)
        factor = options["scale"] * (1 - options["slope"] * h)
        return (factor.detach() if options["detach"] else factor) * h
    if kind == "dyt":
        return affine(torch.tanh(weights[site + ".alpha"] * x), gain, bias)
    if kind == "derf":
        return affine(torch.erf(weights[site + ".alpha"] * x + weights[site + ".shift"]), gain, bias)
    if kind == "powernorm":
        parts = x.unflatten(-1, (options["groups"], -1))
        scaled = (parts / torch.sqrt(parts.pow(2).mean(-1, keepdim=True) + eps)).flatten(-2)
        return affine(power_norm(scaled, weights, site, valid | (not options["masked"]), options, training), gain, bias)
    masked = options["masked"] and not bool(valid.all())
    if kind == "instancenorm":
        if not masked:
            return F.instance_norm(x.transpose(1, 2), weight=gain, bias=bias, eps=eps).transpose(1, 2)
        return affine(standardized(x, *masked_moments(x, valid, (1,))[:2], eps), gain, bias)
    mean, var = weights[site + ".running_mean"], weights[site + ".running_var"]
    if not masked or not training:
        return F.batch_norm(x.reshape(-1, width), mean, var, gain, bias, training, options["momentum"], eps).reshape(x.shape)
    batch_mean, batch_var, count = masked_moments(x, valid, (0, 1))
    with torch.no_grad():
        mean.lerp_(batch_mean.flatten(), options["momentum"])
        var.lerp_((batch_var * count / (count - 1)).flatten(), options["momentum"])
    return affine(standardized(x, batch_mean, batch_var, eps), gain, bias)


class Power(torch.autograd.Function):
    """PowerNorm's step: divides by the running statistic, and has a backward that is no derivative of that."""

    @staticmethod
    def forward(ctx, x, psi2, divisor2, running_gz, valid, decay, eps):
        z = x / torch.sqrt(divisor2 + eps)
        ctx.save_for_backward(z, psi2, valid)
        ctx.running_gz, ctx.decay, ctx.eps = running_gz, decay, eps
        return z

    @staticmethod
    def backward(ctx, dz):
        z, psi2, valid = ctx.saved_tensors
        u = dz - (1 - ctx.decay) * ctx.running_gz * z
        weight = valid.to(z.dtype).unsqueeze(-1)
        ctx.running_gz += (weight * u * z).sum((0, 1)) / weight.sum()
        return u / torch.sqrt(psi2 + ctx.eps), None, None, None, None, None, None


def power_norm(x, weights, site, valid, options, training):
    phi, passes, decay, eps = weights[site + ".running_phi"], weights[site + ".passes"], options["decay"], options["eps"]
    if not training:
        return x / torch.sqrt(phi + eps)
    weight = valid.to(x.dtype).unsqueeze(-1)
    psi2 = (weight * x.pow(2)).sum((0, 1)) / weight.sum()
    with torch.no_grad():
        passes += 1
        early, before = passes.item() <= options["warmup"], phi.clone()
        if early:
            phi.lerp_(psi2, 1 / passes.item())
        phi.lerp_(psi2, 1 - decay)
    if not options["running"]:
        return x / torch.sqrt(psi2 + eps)
    return Power.apply(x, psi2.detach(), psi2.detach() if early else before, weights[site + ".running_gz"], valid, decay, eps)


def masked_moments(x, valid, over):
    """Mean, biased variance and count over the valid positions only."""
    weight = valid.to(x.dtype).unsqueeze(-1)
    count = weight.sum(over, keepdim=True)
    mean = (weight * x).sum(over, keepdim=True) / count
    return mean, (weight * (x - mean).pow(2)).sum(over, keepdim=True) / count, count


def standardized(x, mean, var, eps):
    return (x - mean) / torch.sqrt(var + eps)


def affine(x, gain, bias=None):
    y = x if gain is None else x * gain
    return y if bias is None else y + bias


def capped(x, cap):
    return cap * torch.tanh(x / cap) if cap > 0 else x


def causal_attention(q, k, v, heads, kv_heads, scale=None, cap=0.0):
    """(B, T, H dh) (B, T, KV dh) (B, T, KV dh) -> (B, T, H dh)"""
    batch, time, width = q.shape
    head_width = width // heads
    q = q.view(batch, time, heads, head_width).transpose(1, 2)
    k, v = (t.view(batch, time, kv_heads, head_width).transpose(1, 2).repeat_interleave(heads // kv_heads, 1) for t in (k, v))
    scores = capped(q @ k.transpose(-2, -1) * (1 / math.sqrt(head_width) if scale is None else scale), cap)
    future = torch.ones(time, time, dtype=torch.bool).triu(1)
    return (scores.masked_fill(future, -math.inf).softmax(-1) @ v).transpose(1, 2).reshape(batch, time, width)


def rotate(x, heads):
    """Rotary positions: elements i and i + dh / 2 of a head turned by t / 10000^(2 i / dh)."""
    batch, time, width = x.shape
    half = width // heads // 2
    angle = torch.outer(torch.arange(time, dtype=torch.float64), 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half))
    cosine, sine = angle.cos().to(x.dtype)[:, None, :], angle.sin().to(x.dtype)[:, None, :]
    a, b = x.view(batch, time, heads, 2, half).unbind(3)
    return torch.stack((a * cosine - b * sine, a * sine + b * cosine), 3).reshape(batch, time, width)


def sinusoids(time, width, dtype):
    angle = torch.outer(torch.arange(time, dtype=torch.float64), 10000.0 ** (-(torch.arange(width) // 2 * 2).double() / width))
    return torch.where(torch.arange(width) % 2 == 0, angle.sin(), angle.cos()).to(dtype)


def shapes(config, vocabulary):
    """Shape of every tensor the model has, by its documented name; running statistics included."""
    m = config["model"]
    width, kv_width = m["width"], m["width"] // m["heads"] * m["kv_heads"]
    out = {"embedding.token.weight": (vocabulary, width)}

    def norm(site, kind, channels):
        if kind == "none":
            return
        if config["norm"]["affine"] and kind != "adanorm":
            out[site + ".weight"] = (1,) if kind == "scalenorm" else (channels,)
            if kind not in WITHOUT_BIAS and not (kind == "layernorm" and not config["norm"].get("bias", True)):
                out[site + ".bias"] = (channels,)
        for name in {"dyt": ("alpha",), "derf": ("alpha", "shift")}.get(kind, ()):
            out[f"{site}.{name}"] = (1,)
        if kind == "powernorm":
            out[site + ".running_phi"] = out[site + ".last_phi"] = out[site + ".running_gz"] = (channels,)
            out[site + ".passes"] = (1,)
        if kind == "batchnorm":
            out[site + ".running_mean"] = out[site + ".running_var"] = (channels,)

    def linear(name, rows, cols):
        out[name + ".weight"] = (rows, cols)
        if m["bias"]:
            out[name + ".bias"] = (rows,)

    if m["position"] == "learned":
        out["embedding.position.weight"] = (m["context"], width)
    for i in range(m["layers"]):
        at = f"layers.{i}."
        for name, rows in (("q", width), ("k", kv_width), ("v", kv_width), ("out", width)):
            linear(at + "attention." + name, rows, width)
        over_width = m["qk_norm_over"] == "width"
        for name, channels in (("q_norm", width), ("k_norm", kv_width)):
            norm(at + "attention." + name, m["qk_norm"], channels if over_width else width // m["heads"])
        norm(at + "attention.v_norm", m["v_norm"], width // m["heads"])
        if m["attention_scale_learned"]:
            out[at + "attention.scale"] = (1,)
        for name in ("up", "gate") if m["activation"] in GATED else ("up",):
            linear(at + "ffn." + name, m["ffn_width"], width)
        linear(at + "ffn.down", width, m["ffn_width"])
        here, before = placements.at_layer(config, i), placements.at_layer(config, max(i - 1, 0))
        kind, changes = here["model"]["norm"], here["model"]["placement"] != before["model"]["placement"]
        for site in placements.last_norms(before) if changes else []:
            norm(at + "joint." + site, before["model"]["norm"], width)
        for site in placements.first_norms(here) if changes or i == 0 else []:
            norm((at + "joint." if changes else "") + site, kind, width)
        per_head = kind in TOKEN_NORMS  # norms across positions see all heads' channels, each by itself
        channels = {"width": width, "hidden": m["ffn_width"], "head": width // m["heads"] if per_head else width,
                    "kv_head": width // m["heads"] if per_head else kv_width}
        for site, over in placements.norm_sites(here, i).items():
            norm(at + site, kind, channels[over])
        for name, shape in placements.learned(here).items():
            out[at + name] = shape
    last = placements.at_layer(config, m["layers"] - 1)
    for site in placements.last_norms(last):
        norm(site, last["model"]["norm"], width)
    if has_final_norm(config):
        norm("final_norm", m["norm"], width)
    if not m["tie_embeddings"]:
        out["head.weight"] = (vocabulary, width)
    return out


def is_state(name):
    return name.endswith((".running_mean", ".running_var", ".running_phi", ".last_phi", ".running_gz", ".passes"))


def has_final_norm(config):
    model = placements.at_layer(config, config["model"]["layers"] - 1)["model"]
    return placements.FINAL_NORM[model["placement"]] if model["final_norm"] == "auto" else model["final_norm"] == "on"


def loss_sum(config, weights, tokens, targets, training=True):
    """Sum of the cross entropies of all targets that are not -1. tokens, targets: (B, T)."""
    return loss_sums(config, weights, tokens, targets, training)[0]


def loss_sums(config, weights, tokens, targets, training=True, seen=None):
    """That sum, and the sum of (log Z)^2 of the same targets, Z being softmax's divisor. `seen` collects, of every sub-layer, the
    stream that enters and the branch's output."""
    m = config["model"]
    valid = targets >= 0
    dtype = weights["embedding.token.weight"].dtype
    eps = config["norm"]["eps"]
    if eps == "auto":  # one for all norms of the model
        eps = NORM_EPS[next((m[key] for key in ("norm", "qk_norm", "v_norm") if m[key] != "none"), "none")]
    options = config["norm"] | {"eps": eps}

    def norm_of(kind):
        return lambda site, x: apply_norm(kind, options, x, weights, site, valid, training)

    def linear(name, x):
        return F.linear(x, weights[name + ".weight"], weights.get(name + ".bias"))

    def per_head_norm(kind, site, x, heads):
        split = x.reshape(*x.shape[:2], heads, -1)
        return apply_norm(kind, options, split, weights, site, valid, training).reshape(x.shape)

    def head_norm_of(kind):
        return (lambda site, x, heads: per_head_norm(kind, site, x, heads)) if kind in TOKEN_NORMS else lambda site, x, heads: norm_of(kind)(site, x)

    def placement_at(layer):
        here = placements.at_layer(config, layer)
        kind = here["model"]["norm"]
        return placements.Placement(here, weights, norm_of(kind), head_norm_of(kind))

    def qk_norm(at, q, k):
        if m["qk_norm_over"] == "width":
            return norm_of(m["qk_norm"])(at + "q_norm", q), norm_of(m["qk_norm"])(at + "k_norm", k)
        return per_head_norm(m["qk_norm"], at + "q_norm", q, m["heads"]), per_head_norm(m["qk_norm"], at + "k_norm", k, m["kv_heads"])

    def attention(at, x):
        q, k, v = (linear(at + name, x) for name in ("q", "k", "v"))
        v = per_head_norm(m["v_norm"], at + "v_norm", v, m["kv_heads"])
        if m["qk_norm_at"] != "after_rope":
            q, k = qk_norm(at, q, k)
        q, k, v = placement.projected(at, q, k, v)
        if m["position"] == "rope":
            q, k = rotate(q, m["heads"]), rotate(k, m["kv_heads"])
        if m["qk_norm_at"] == "after_rope":
            q, k = qk_norm(at, q, k)
        scale = weights[at + "scale"] if m["attention_scale_learned"] else m["attention_scale"]
        mixed = causal_attention(q, k, v, m["heads"], m["kv_heads"], scale, m["attention_cap"])
        return linear(at + "out", placement.mixed(at, mixed))

    def feed_forward(at, x):
        activation = ACTIVATIONS[m["activation"]]
        hidden = linear(at + "up", x)
        hidden = activation(linear(at + "gate", x)) * hidden if m["activation"] in GATED else activation(hidden)
        return linear(at + "down", placement.hidden(at, hidden))

    x = F.embedding(tokens, weights["embedding.token.weight"])
    if m["position"] == "learned":
        x = x + weights["embedding.position.weight"][: tokens.shape[1]]
    elif m["position"] == "sinusoidal":
        x = x + sinusoids(tokens.shape[1], m["width"], dtype)
    placement = placement_at(0)
    x, carried = placement.start(x)
    for i in range(m["layers"]):
        before, placement = placement, placement_at(i)
        if placement.kind != before.kind:
            x, carried = placement.start(before.finish(x, carried, f"layers.{i}.joint."), f"layers.{i}.joint.")
        for name, branch in (("attention", attention), ("ffn", feed_forward)):
            entered, outputs = x, []

            def run(z):
                outputs.append(branch(f"layers.{i}.{name}.", z))
                return outputs[0]

            x, carried = placement.sublayer(i, name, run, x, carried)
            if seen is not None:
                seen.append((entered, outputs[0]))
    x = placement.finish(x, carried)
    if has_final_norm(config):
        x = norm_of(m["norm"])("final_norm", x)
    logits = F.linear(x, weights["embedding.token.weight" if m["tie_embeddings"] else "head.weight"])
    logits = capped(logits, m["logit_cap"]).flatten(0, 1)
    log_z = logits.logsumexp(-1)[targets.flatten() >= 0]
    return F.cross_entropy(logits, targets.flatten(), ignore_index=-1, reduction="sum"), log_z.pow(2).sum()


def learning_rate(train, update):
    """Rate of update 1, 2, ..: linear warmup, whose first update uses lr / warmup, then the schedule."""
    lr, warmup, steps = train["lr"], train["warmup"], train["steps"]
    if update <= warmup:
        return lr * update / warmup
    done = update - 1 - warmup  # updates since the warmup
    left = max(0.0, 1 - done / max(1, steps - warmup))
    decays = {
        "constant": lambda: 1.0,
        "linear": lambda: left,
        "cosine": lambda: (1 + math.cos(math.pi * (1 - left))) / 2,
        "inverse_sqrt": lambda: math.sqrt(max(warmup, 1) / update),
        "wsd": lambda: min(1.0, max(0.0, steps - (update - 1)) / max(1, steps // 5)),  # the last fifth
    }
    floor = train["min_lr"] if train["schedule"] in ("linear", "cosine", "wsd") else 0.0
    return floor + (lr - floor) * decays[train["schedule"]]()
