"""The placements of normlab in PyTorch, written from their documented formulas: the vectors each declares in a layer, and what it does
around and inside the branches."""
import math
import re

FINAL_NORM = {"post": False, "pre": True, "deepnorm": False, "sandwich": True, "residual": False, "subln": True, "reordered": True,
              "lns": True, "scaled_pre": True, "layerscale": True, "rezero": False, "skipinit": False, "normformer": True, "keel": False,
              "b2t": False, "mixln": True, "hybridnorm": True, "tfixup": False, "admin": False, "parallel": True, "none": False}
# Norm sites of both branches; what differs by layer or branch is in norm_sites.
NORM_SITES = {"post": ["norm_post"], "pre": ["norm_in"], "deepnorm": ["norm_post"], "sandwich": ["norm_in", "norm_out"],
              "residual": ["norm_post"], "subln": ["norm_in", "norm_mid"], "reordered": ["norm_out"], "lns": ["norm_in"],
              "scaled_pre": ["norm_in"], "layerscale": ["norm_in"], "b2t": ["norm_post"], "admin": ["norm_post"]}
OPTIONS = ["alpha", "beta", "scale", "gamma", "gain", "scale_skip", "share", "first_pre", "embedding_norm", "omega", "profile", "norms"]


def option(config, name):
    value = config["placement"][name]
    return (2 * config["model"]["layers"]) ** 0.25 if value == "auto" else value  # DeepNorm's alpha; `normlab check` resolves all


def is_post(config, layer):
    """Whether Mix-LN wires this layer as Post-Norm."""
    return layer < math.floor(option(config, "share") * config["model"]["layers"] + 1e-9)


def at_layer(config, layer):
    """The config with the norm and the placement that model.layer_norm and model.layer_placement give this layer."""
    model = dict(config["model"])
    for key in ("norm", "placement"):
        for entry in model.get("layer_" + key, []):
            name, first, last = re.fullmatch(r"(\w+):(\d+)(?:-(\d+))?", entry).groups()
            if int(first) <= layer <= int(last or first):
                model[key] = name
    return config | {"model": model}


def norm_sites(config, layer):
    """Site -> "width", "hidden", "head" or "kv_head": the norms of one layer."""
    kind = config["model"]["placement"]
    if kind == "mixln":
        sites = ["norm_post" if is_post(config, layer) else "norm_in"]
    else:
        sites = NORM_SITES.get(kind, [])
    out = {f"{branch}.{site}": "hidden" if (branch, site) == ("ffn", "norm_mid") else "width" for branch in ("attention", "ffn") for site in sites}
    if kind == "normformer":
        out = {"attention.norm_in": "width", "attention.norm_out": "width", "ffn.norm_in": "width", "ffn.norm_mid": "hidden"}
    if kind == "parallel":
        out = {site: "width" for site in ("attention.norm_in", "ffn.norm_in")[: option(config, "norms")]}
    if kind == "keel":
        out = {site: "width" for site in ("attention.norm_in", "attention.norm_post", "ffn.norm_in", "ffn.norm_post")}
        if layer == 0:
            del out["attention.norm_post"]
    if kind == "hybridnorm":
        out = {"attention.norm_q": "head", "attention.norm_k": "kv_head", "attention.norm_v": "kv_head", "ffn.norm_in": "width"}
        if layer == 0 and option(config, "first_pre"):
            out["attention.norm_in"] = "width"
    return out


def first_norms(config):
    """Norms before the first layer of the placement."""
    return ["embedding.norm"] if config["model"]["placement"] == "sandwich" and option(config, "embedding_norm") else []


def last_norms(config):
    """Norms after its last layer, the final norm aside."""
    return ["dual_norm"] if config["model"]["placement"] == "residual" else []


def learned(config):
    """Name -> shape: the learned weights of one layer."""
    m = config["model"]
    width = (m["width"],)
    return {
        "layerscale": {"attention.gamma": width, "ffn.gamma": width},
        "rezero": {"attention.alpha": (1,)},
        "skipinit": {"attention.alpha": (1,), "ffn.alpha": (1,)},
        "normformer": {"attention.head_scale": (m["heads"],)}
        | ({"ffn.skip_scale": width} if m["placement"] == "normformer" and option(config, "scale_skip") else {}),
        "admin": {"attention.omega": width, "ffn.omega": width},
    }.get(m["placement"], {})


def measured(config):
    """The vectors that start from measured values: Admin's omega, sub-layer by sub-layer."""
    if config["model"]["placement"] != "admin" or not option(config, "profile"):
        return []
    return [f"layers.{i}.{branch}.omega" for i in range(config["model"]["layers"]) for branch in ("attention", "ffn")]


def measured_start(streams, branches):
    """Their values, from the streams that enter the sub-layers and the branches' outputs while all of them are 1."""
    return [math.sqrt(streams[0].var(unbiased=False) + sum(f.var(unbiased=False) for f in branches[:i])) if i > 0 else 1.0
            for i in range(len(branches))]


class Placement:
    """norm(site, x), head_norm(site, x, heads): the norm with the parameters of that name."""

    def __init__(self, config, weights, norm, head_norm):
        self.config, self.weights, self.norm, self.head_norm = config, weights, norm, head_norm
        self.kind, self.heads, self.kv_heads = (config["model"][key] for key in ("placement", "heads", "kv_heads"))

    def start(self, x, at=""):
        """x and what else the stream carries."""
        if self.kind == "residual":
            return x, option(self.config, "scale") * x
        return (self.norm(at + "embedding.norm", x) if first_norms(self.config) else x), None

    def finish(self, x, y, at=""):
        return self.norm(at + "dual_norm", y) + x if self.kind == "residual" else x

    def sublayer(self, layer, name, branch, x, y):
        """The stream after one sub-layer. branch(x) is attention or the feed-forward."""
        at = f"layers.{layer}.{name}."
        attention = name == "attention"
        norm, weight = (lambda site, z: self.norm(at + site, z)), (lambda leaf: self.weights[at + leaf])
        choose = lambda key: option(self.config, key)
        kind = self.kind
        if kind == "mixln":
            kind = "post" if is_post(self.config, layer) else "pre"
        if kind in ("pre", "subln"):
            return x + branch(norm("norm_in", x)), y
        if kind == "post":
            return norm("norm_post", x + branch(x)), y
        if kind == "deepnorm":
            return norm("norm_post", choose("alpha") * x + branch(x)), y
        if kind == "sandwich":
            return x + norm("norm_out", branch(norm("norm_in", x))), y
        if kind == "residual":
            f = branch(x)
            return norm("norm_post", x + f), y + choose("scale") * f
        if kind == "reordered":
            return x + norm("norm_out", branch(x)), y
        if kind == "lns":
            return x + branch(norm("norm_in", x) / math.sqrt(layer + 1)), y
        if kind == "scaled_pre":
            return choose("alpha") * x + branch(norm("norm_in", x)), y
        if kind == "layerscale":
            return x + weight("gamma") * branch(norm("norm_in", x)), y
        if kind == "rezero":
            return x + self.weights[f"layers.{layer}.attention.alpha"] * branch(x), y
        if kind == "skipinit":
            return x + weight("alpha") * branch(x), y
        if kind == "normformer":
            if attention:
                return x + norm("norm_out", branch(norm("norm_in", x))), y
            skip = weight("skip_scale") * x if choose("scale_skip") else x
            return skip + branch(norm("norm_in", x)), y
        if kind == "keel":
            total = (1 if layer == 0 else choose("alpha")) * x + branch(norm("norm_in", x))
            return total if layer == 0 and attention else norm("norm_post", total), y
        if kind == "parallel":  # y: what both branches read and the sum so far
            if attention:
                read = norm("norm_in", x)
                return x, (read, x + branch(read))
            return y[1] + branch(y[0] if choose("norms") == 1 else norm("norm_in", x)), None
        if kind == "b2t":
            return (norm("norm_post", x + branch(x)), x) if attention else (norm("norm_post", y + x + branch(x)), None)
        if kind == "hybridnorm":
            pre = layer == 0 and choose("first_pre")
            if pre:
                return x + branch(norm("norm_in", x)), y
            n = x if attention else norm("norm_in", x)
            return n + branch(n), y
        if kind == "admin":
            return norm("norm_post", weight("omega") * x + branch(x)), y
        return x + branch(x), y  # none, tfixup

    def projected(self, at, q, k, v):
        """Queries, keys and values after their projections."""
        if self.kind != "hybridnorm":
            return q, k, v
        return tuple(self.head_norm(at + site, x, heads) for site, x, heads in
                     (("norm_q", q, self.heads), ("norm_k", k, self.kv_heads), ("norm_v", v, self.kv_heads)))

    def mixed(self, at, x):
        """The heads' outputs, before the output projection."""
        if self.kind == "normformer":
            return (x.unflatten(-1, (self.heads, -1)) * self.weights[at + "head_scale"].unsqueeze(-1)).flatten(-2)
        return self.norm(at + "norm_mid", x) if self.kind == "subln" else x

    def hidden(self, at, x):
        """The feed-forward's channels, before its second matrix."""
        return self.norm(at + "norm_mid", x) if self.kind in ("subln", "normformer") else x
