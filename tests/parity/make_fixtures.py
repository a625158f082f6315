#!/usr/bin/env python3
"""Writes tests/fixtures/*.txt: what PyTorch computes, for tests/unit/parity_*_test.cpp to compare with. Run again only to change the
cases; needs Python 3.11 and PyTorch 1.12 or later. Everything is computed in float64 from values that float32 holds exactly.

A line is a name, a shape ("2x5x12") and the values. Names say the case: "layernorm.x", or for models the settings that differ from BASE,
separated by ";".
"""
import math
import tomllib
from pathlib import Path

import torch
import torch.nn.functional as F

import torch_decoder as decoder

FOLDER = Path(__file__).resolve().parent.parent / "fixtures"
BASE = {
    "model": {"layers": 2, "width": 16, "heads": 2, "kv_heads": 2, "ffn_width": 32, "context": 8, "activation": "gelu", "position": "learned",
              "norm": "layernorm", "placement": "pre", "final_norm": "auto", "qk_norm": "none", "qk_norm_over": "head", "qk_norm_at": "before_rope",
              "v_norm": "none", "attention_scale": None, "attention_scale_learned": False, "attention_cap": 0.0, "logit_cap": 0.0, "bias": True, "tie_embeddings": False},
    "norm": {"eps": "auto", "affine": True, "groups": 4, "momentum": 0.1, "masked": True},
    "placement": {"alpha": "auto", "embedding_norm": False},
    "train": {"lr": 5e-3, "batch": 4, "steps": 20, "betas": (0.9, 0.999), "eps": 1e-8},
}
VOCABULARY = 11
NORMS = ["layernorm", "rmsnorm", "batchnorm", "groupnorm", "instancenorm", "none"]
PLACEMENTS = ["post", "pre", "deepnorm", "sandwich", "none"]
# Norms over few channels are chaotic: with 4 groups of 4, PyTorch's own float32 is off by 1e-3 after 20 updates.
VARIANTS = [f"model.norm={norm};model.placement={placement}" + (";norm.groups=2" if norm == "groupnorm" else "")
            for placement in PLACEMENTS for norm in NORMS] + [
    *(f"model.activation={name}" for name in ("relu", "gelu_tanh", "silu", "swiglu", "geglu")),
    *(f"model.position={name}" for name in ("sinusoidal", "rope", "none")),
    "model.kv_heads=1;model.qk_norm=rmsnorm;model.position=rope",
    "model.qk_norm=layernorm",
    "model.qk_norm=groupnorm;norm.groups=2;model.norm=groupnorm",
    "model.bias=false;model.tie_embeddings=true",
    "norm.affine=false;model.norm=batchnorm;norm.momentum=0.5;norm.masked=false;model.bias=false",
    *(f"model.norm=batchnorm;model.placement={name};model.bias=false" for name in ("post", "pre", "deepnorm")),
    "norm.eps=0.1;model.norm=instancenorm;norm.masked=false",
    "model.placement=deepnorm;placement.alpha=1.5;model.final_norm=on",
    "model.final_norm=off",
]
GRADIENTS = ["embedding.token.weight", "layers.0.attention.q.bias", "layers.1.ffn.up.bias"]  # of the first update, per placement


class Writer:
    def __init__(self, name, about):
        self.path, self.lines = FOLDER / name, [f"# {about}", "# Written by tests/parity/make_fixtures.py."]

    def add(self, name, values, digits=17):
        values = torch.as_tensor(values, dtype=torch.float64).detach()
        shape = "x".join(map(str, values.shape)) or "1"
        self.lines.append(" ".join([name, shape, *(format(v, f".{digits}g") for v in values.flatten().tolist())]))

    def save(self):
        FOLDER.mkdir(exist_ok=True)
        self.path.write_text("\n".join(self.lines) + "\n", encoding="ascii")
        print(self.path.name, self.path.stat().st_size)


def exact(values, digits=4):
    """Decimals short enough for a small file, as the float64 of the float32 nearest to them."""
    return torch.tensor([float(f"{v:.{digits}f}") for v in values.flatten().tolist()]).float().double().reshape(values.shape)


def normal(generator, *shape, scale=1.0):
    return exact(scale * torch.randn(*shape, generator=generator, dtype=torch.float64))


def record(out, case, f, inputs, generator, mask=None):
    """The inputs, a random cotangent, f(inputs) and the gradients of sum(cotangent * f)."""
    leaves = {name: value.clone().requires_grad_(True) for name, value in inputs.items()}
    y = f(*leaves.values())
    cotangent = normal(generator, *y.shape)
    if mask is not None:  # no cotangent where nothing depends on the output
        cotangent = cotangent * mask.unsqueeze(-1)
    y.backward(cotangent)
    for name, value in leaves.items():
        out.add(f"{case}.{name}", value, 9)
        out.add(f"{case}.d{name}", value.grad)
    out.add(f"{case}.cotangent", cotangent, 9)
    out.add(f"{case}.y", y)


def norms():
    out, g = Writer("norms.txt", "Norms: x (B, T, C), gain, bias, a cotangent, the output and the gradients."), torch.Generator().manual_seed(1)
    batch, time, width, groups = 3, 5, 12, 4
    x, gain, bias = normal(g, batch, time, width, scale=1.5), 1 + normal(g, width, scale=0.3), normal(g, width, scale=0.3)
    gain = exact(gain)
    far = x.clone()
    far[0, 1] = exact(far[0, 1] + 100)  # a row far from zero
    rms = lambda x, gain: x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * gain
    record(out, "rmsnorm", rms, {"x": far, "gain": gain}, g)
    affine = {"x": far, "gain": gain, "bias": bias}
    record(out, "layernorm", lambda x, a, b: F.layer_norm(x, (width,), a, b, 1e-5), affine, g)
    record(out, "groupnorm", lambda x, a, b: F.group_norm(x.reshape(-1, width), groups, a, b, 1e-5).reshape(x.shape), affine, g)
    affine["x"] = x

    def over_time(x, gain, bias):
        return F.instance_norm(x.transpose(1, 2), weight=gain, bias=bias, eps=1e-5).transpose(1, 2)

    record(out, "instancenorm", over_time, affine, g)

    running = torch.zeros(width).double(), torch.ones(width).double()

    def over_batch(x, gain, bias, training=True):  # what BatchNorm1d calls; all positions count, so its input is (B T, C)
        return F.batch_norm(x.reshape(-1, width), *running, gain, bias, training, 0.1, 1e-5).reshape(x.shape)

    def add_running(case):
        out.add(case + ".running_mean", running[0])
        out.add(case + ".running_var", running[1])

    record(out, "batchnorm", over_batch, affine, g)
    add_running("batchnorm")
    record(out, "batchnorm_eval", lambda x, a, b: over_batch(x, a, b, training=False), affine, g)

    # Masked: PyTorch's norms see the valid positions only.
    mask = torch.ones(batch, time, dtype=torch.bool)
    mask[0, 3:] = mask[2, 1] = False
    out.add("mask", mask)

    def masked_batch(x, gain, bias):
        y = torch.zeros_like(x)
        y[mask] = F.batch_norm(x[mask], *running, gain, bias, True, 0.1, 1e-5)
        return y

    def masked_time(x, gain, bias):
        y = torch.zeros_like(x)
        for b in range(batch):
            y[b, mask[b]] = F.instance_norm(x[b, mask[b]].T[None], weight=gain, bias=bias, eps=1e-5)[0].T
        return y

    record(out, "batchnorm_masked", masked_batch, affine, g, mask=mask)  # goes on from the running statistics above
    add_running("batchnorm_masked")
    record(out, "instancenorm_masked", masked_time, affine, g, mask=mask)
    out.save()


def ops():
    out, g = Writer("ops.txt", "Operations: inputs, a cotangent, the output and the gradients."), torch.Generator().manual_seed(2)
    batch, time, heads, kv_heads, head_width = 2, 7, 4, 2, 3
    # One head per key first against PyTorch's own layer, with identities as its matrices.
    width = heads * head_width
    layer = torch.nn.MultiheadAttention(width, heads, bias=False, batch_first=True).double()
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.eye(width).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(width))
    q, k, v = (normal(g, batch, time, width) for _ in range(3))
    theirs = layer(q, k, v, attn_mask=torch.ones(time, time, dtype=torch.bool).triu(1), need_weights=False)[0]
    assert torch.allclose(decoder.causal_attention(q, k, v, heads, heads), theirs, rtol=1e-12, atol=1e-12)
    inputs = {"q": q, "k": exact(k[..., : kv_heads * head_width]), "v": exact(v[..., : kv_heads * head_width])}
    record(out, "attention", lambda q, k, v: decoder.causal_attention(q, k, v, heads, kv_heads), inputs, g)
    record(out, "rope", lambda x: decoder.rotate(x, 3), {"x": normal(g, batch, time, 12)}, g)

    points = torch.cat((torch.linspace(-7, 7, 57), torch.tensor([-1e4, -30.0, -0.01, 0.01, 30.0, 1e4]))).double()
    for name in ("gelu", "gelu_tanh", "silu"):
        record(out, name, decoder.ACTIVATIONS[name], {"x": exact(points).reshape(1, 1, -1)}, g)

    logits = normal(g, batch, time, VOCABULARY, scale=3.0).requires_grad_(True)
    targets = torch.randint(VOCABULARY, (batch, time), generator=g)
    targets[0, 5:] = targets[1, 2] = -1
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    loss.backward()
    for name, value in (("logits", logits), ("targets", targets)):
        out.add("cross_entropy." + name, value, 9)
    out.add("cross_entropy.loss", loss)
    out.add("cross_entropy.dlogits", logits.grad)
    out.save()


def optimizers():
    out, g = Writer("optimizers.txt", "Ten updates of a matrix and a vector; weight decay on the matrix only."), torch.Generator().manual_seed(3)
    matrix, vector, rates = normal(g, 3, 5), normal(g, 4), [1e-2 * 0.9**i for i in range(10)]
    gradients = [(normal(g, 3, 5), normal(g, 4)) for _ in rates]
    for name, value in (("matrix", matrix), ("vector", vector), ("rates", rates)):
        out.add(name, value)
    for i, name in enumerate(("matrix_gradients", "vector_gradients")):
        out.add(name, torch.stack([pair[i] for pair in gradients]), 9)
    cases = {
        "adam": lambda p: torch.optim.Adam(p, betas=(0.8, 0.95), eps=1e-6),
        "adamw": lambda p: torch.optim.AdamW([{"params": p[:1], "weight_decay": 0.5}, {"params": p[1:], "weight_decay": 0.0}], betas=(0.8, 0.95), eps=1e-6),
        "sgd": lambda p: torch.optim.SGD(p, lr=1.0),
        "sgd_decay": lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.5),
        "sgd_momentum": lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.9),
    }
    for name, make in cases.items():
        parameters = [matrix.clone().requires_grad_(True), vector.clone().requires_grad_(True)]
        optimizer = make(parameters)
        for rate, pair in zip(rates, gradients):
            for group in optimizer.param_groups:
                group["lr"] = rate
            for parameter, gradient in zip(parameters, pair):
                parameter.grad = gradient.clone()
            if name == "sgd_decay":  # decoupled; PyTorch's own SGD adds the decay to the gradient
                with torch.no_grad():
                    parameters[0].mul_(1 - rate * 0.5)
            optimizer.step()
        out.add(name + ".matrix", parameters[0])
        out.add(name + ".vector", parameters[1])
    out.save()


def schedules():
    out = Writer("schedules.txt", "Learning rates of updates 1, 2, ..: PyTorch's schedulers where they coincide, else the formula in LambdaLR.")
    lr, floor, steps = 0.3, 0.03, 40

    def rates(make, count):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
        scheduler, seen = make(optimizer), []
        for _ in range(count):
            seen.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        return seen

    of = torch.optim.lr_scheduler
    for warmup in (0, 8):
        rise = rates(lambda o: of.LinearLR(o, 1 / warmup, 1.0, warmup - 1), warmup) if warmup else []
        length = steps - warmup
        last_fifth = lambda i: min(1.0, (length - i) / (steps / 5))
        makers = {
            "constant": lambda o: of.LambdaLR(o, lambda i: 1.0),
            "linear": lambda o: of.LinearLR(o, 1.0, floor / lr, length),
            "cosine": lambda o: of.CosineAnnealingLR(o, length, floor),
            "inverse_sqrt": lambda o: of.LambdaLR(o, lambda i: math.sqrt(max(warmup, 1) / (warmup + i + 1))),
            "wsd": lambda o: of.LambdaLR(o, lambda i: (floor + (lr - floor) * last_fifth(i)) / lr),
        }
        for name, make in makers.items():
            out.add(f"{name};{warmup}", rise + rates(make, length))
    out.save()


def parse(settings):
    config = {section: dict(keys) for section, keys in BASE.items()}
    for setting in settings.split(";"):
        key, text = setting.split("=")
        section, name = key.split(".")
        assert name in config[section]
        try:
            config[section][name] = tomllib.loads("value = " + text)["value"]
        except tomllib.TOMLDecodeError:
            config[section][name] = text
    return config


def initial(generator):
    """One set of weights with every parameter any variant has. kv_heads = 1 takes the first rows."""
    full = {}
    for settings in ("model.activation=swiglu;model.qk_norm=layernorm;model.placement=sandwich", "model.placement=post"):
        full.update(decoder.shapes(parse(settings), VOCABULARY))
    weights = {}
    for name, shape in full.items():
        if len(shape) == 2:
            weights[name] = normal(generator, *shape, scale=0.25)
        else:
            is_gain = "norm" in name and name.endswith(".weight")
            weights[name] = exact(float(is_gain) + normal(generator, *shape, scale=0.1))
    return weights


def trajectory(config, start, batches, dtype):
    """Losses of the updates, gradients and gradient norm of the first, and the loss of the first batch in evaluation mode after the last."""
    weights = {}
    for name, shape in decoder.shapes(config, VOCABULARY).items():
        if decoder.is_state(name):
            weights[name] = torch.full(shape, 0.0 if name.endswith("mean") else 1.0, dtype=dtype)
        else:
            weights[name] = start[name][: shape[0]].to(dtype).clone().requires_grad_(True)
    trained = [w for w in weights.values() if w.requires_grad]
    train = config["train"]
    optimizer = torch.optim.Adam(trained, lr=train["lr"], betas=train["betas"], eps=train["eps"])
    losses, gradients = [], None
    for tokens, targets in batches:
        loss = decoder.loss_sum(config, weights, tokens, targets) / (targets >= 0).sum()
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        gradients = gradients or {name: w.grad.clone() for name, w in weights.items() if w.requires_grad}
        optimizer.step()
    tokens, targets = batches[0]
    with torch.no_grad():
        evaluated = decoder.loss_sum(config, weights, tokens, targets, training=False) / (targets >= 0).sum()
    norm = math.sqrt(sum(g.pow(2).sum().item() for g in gradients.values()))
    return losses, gradients, norm, evaluated.item()


def models():
    g, train = torch.Generator().manual_seed(4), BASE["train"]
    out = Writer("models.txt", "A 2-layer decoder: initial weights, batches, and per variant the losses of 20 Adam updates, "
                 "gradients of the first, and the first batch's loss in evaluation mode after the last.")
    start = initial(g)
    for name, value in start.items():
        out.add("weight;" + name, value, 9)
    shape = train["steps"], train["batch"], BASE["model"]["context"]
    tokens = torch.randint(VOCABULARY, shape, generator=g)
    targets = (2 * tokens + torch.arange(shape[2]) % 3 + (torch.rand(shape, generator=g) < 0.2)) % VOCABULARY  # mostly learnable
    lengths = torch.randint(5, shape[2] + 1, shape[:2], generator=g)
    lengths[::2] = shape[2]
    targets[torch.arange(shape[2]) >= lengths.unsqueeze(-1)] = -1  # padding at the ends, in every second batch
    out.add("tokens", tokens)
    out.add("targets", targets)
    worst = 0.0
    for settings in VARIANTS:
        config = parse(settings)
        losses, gradients, norm, evaluated = trajectory(config, start, list(zip(tokens, targets)), torch.float64)
        single = trajectory(config, start, list(zip(tokens, targets)), torch.float32)[0]
        own = max(abs(a - b) / a for a, b in zip(losses, single))
        worst = max(worst, own)
        print(f"{settings}: {losses[0]:.4f} -> {losses[-1]:.4f}, eval {evaluated:.4f}, PyTorch float32 is {own:.1e} off")
        out.add("losses;" + settings, losses)
        out.add("gradient_norm;" + settings, norm)
        # A bias that a later BatchNorm takes out again (of a linear layer; of sandwich's second norm) has no gradient but rounding, which Adam
        # turns into steps. Training does not see them; running statistics lag behind: PyTorch's own float32 evaluation is off by 1e-3 there.
        model = config["model"]
        if model["norm"] != "batchnorm" or not (model["bias"] or model["placement"] == "sandwich"):
            out.add("evaluation;" + settings, evaluated)
        if config["model"]["norm"] in ("layernorm", "rmsnorm") and settings.startswith("model.norm="):
            for name in GRADIENTS:
                out.add(f"gradient;{settings};{name}", gradients[name])
    out.lines.insert(2, f"# PyTorch's own float32 losses are up to {worst:.1e} (relative) from these.")
    out.save()


if __name__ == "__main__":
    torch.set_num_threads(1)
    norms()
    ops()
    optimizers()
    schedules()
    models()
