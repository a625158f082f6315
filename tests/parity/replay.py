#!/usr/bin/env python3
"""Replays a normlab run in PyTorch, from the same weights and batches, and compares the losses.

    replay.py CONFIG [--set section.key=value]... [--normlab PATH]     trains with normlab too, in a temporary directory
    replay.py RUN_DIR [--normlab PATH]                                 compares with the run that is there

Weights come from `normlab export CONFIG`, batches from `normlab data CONFIG --batches`, the resolved config from `normlab check CONFIG`.
Needs Python 3.11 and PyTorch. Exit code: 0 within the tolerance, 1 not, 2 a config that is not supported or a failing command, 77 no PyTorch.
"""
import argparse
import csv
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

try:
    import torch
except ImportError:
    print("SKIPPED, not a pass: PyTorch not found by", sys.executable)
    sys.exit(77)

import torch_decoder as decoder
import torch_placements as placements

OPTIMIZERS = ("adam", "adamw", "sgd")
SCHEDULES = ("constant", "linear", "cosine", "inverse_sqrt", "wsd")
# Every key that can change the numbers must be known here. Sections that are not listed (data, eval, checkpoint, ..) only reach the
# numbers through the batches.
KNOWN = {
    "run": ["name", "seed", "precision"],
    "model": ["layers", "width", "heads", "kv_heads", "ffn_width", "activation", "context", "position", "norm", "placement", "layer_norm",
              "layer_placement", "final_norm", "qk_norm", "qk_norm_over", "qk_norm_at", "v_norm", "attention_scale", "attention_scale_learned",
              "attention_cap", "logit_cap", "bias", "tie_embeddings", "dropout", "init"],
    "norm": ["eps", "affine", "fused", "statistics", "groups", "momentum", "masked", "bias", "unit_offset", "eps_position", "share", "alpha",
             "scale", "slope", "detach", "decay", "warmup", "running"],
    "placement": placements.OPTIONS,
    "train": ["steps", "batch", "accumulate", "slots", "recompute", "optimizer", "lr", "warmup", "schedule", "min_lr", "betas", "eps", "momentum",
              "weight_decay", "z_loss", "clip"],
}


class Refused(Exception):
    pass


def command(arguments, *rest, to=None):
    line = [arguments.normlab, *map(str, rest)]
    for setting in arguments.set:
        line += ["--set", setting]
    done = subprocess.run(line, stdout=to or subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Refused(f"{' '.join(line)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def read_safetensors(path):
    """8 bytes length, a JSON header with dtype, shape and data_offsets of each tensor, then the data."""
    content = Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", content)
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            raise Refused(f"tensor {name} is {entry['dtype']}, not F32")
        first, last = entry["data_offsets"]
        tensors[name] = torch.frombuffer(bytearray(data[first:last]), dtype=torch.float32).reshape(entry["shape"])
    return tensors


def require_supported(config):
    model, train = config["model"], config["train"]
    for section, keys in KNOWN.items():
        for key in config.get(section, {}):
            if key not in keys:
                raise Refused(f"key {section}.{key} is not known to the replay")
    choices = {
        "run.precision": ("fp32",), "model.norm": tuple(decoder.NORM_EPS), "model.qk_norm": decoder.TOKEN_NORMS,
        "model.v_norm": decoder.TOKEN_NORMS, "model.qk_norm_over": ("head", "width"), "model.qk_norm_at": ("before_rope", "after_rope"),
        "model.placement": tuple(placements.FINAL_NORM), "model.position": decoder.POSITIONS, "model.activation": tuple(decoder.ACTIVATIONS),
        "train.optimizer": OPTIMIZERS, "train.schedule": SCHEDULES,
    }
    for key, allowed in choices.items():
        section, name = key.split(".")
        if config[section][name] not in allowed:
            raise Refused(f"{key} = {config[section][name]!r} has no counterpart in the replay (it has {', '.join(allowed)})")
    if model["dropout"] > 0:
        raise Refused(f"model.dropout = {model['dropout']}: the masks of normlab's random numbers cannot be drawn in PyTorch; replay with 0")
    if train["batch"] % train["accumulate"] != 0:
        raise Refused("train.batch is not a multiple of train.accumulate")


def load_weights(path, config, dtype):
    tensors = read_safetensors(path)
    if "embedding.token.weight" not in tensors:
        raise Refused(f"{path} has no embedding.token.weight")
    expected = decoder.shapes(config, tensors["embedding.token.weight"].shape[0])
    found = {name: tuple(t.shape) for name, t in tensors.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise Refused(f"tensor {name}: the export has {found.get(name, 'none')}, the documented model {expected.get(name, 'none')}")
    return {name: t.to(dtype).requires_grad_(not decoder.is_state(name)) for name, t in tensors.items()}


def read_batches(path, config, steps):
    """Step by step (tokens, targets), both (batch, context); every cell must be there once."""
    batch, context = config["train"]["batch"], config["model"]["context"]
    with open(path, newline="") as file:
        rows = csv.reader(file)
        if next(rows) != ["step", "sequence", "position", "input", "target"]:
            raise Refused(f"{path}: unexpected header")
        for step in range(1, steps + 1):
            tokens, targets = (torch.full((batch * context,), -2, dtype=torch.long) for _ in range(2))
            for cell in range(batch * context):
                at, sequence, position, token, target = map(int, next(rows))
                if (at, sequence, position) != (step, cell // context, cell % context):
                    raise Refused(f"{path}: step {at}, sequence {sequence}, position {position} is out of order")
                tokens[cell], targets[cell] = token, target
            yield tokens.view(batch, context), targets.view(batch, context)


class Replay:
    def __init__(self, config, weights):
        self.config, self.weights = config, weights
        train = config["train"]
        self.trained = [w for w in weights.values() if w.requires_grad]
        optimizer, betas = train["optimizer"], tuple(train["betas"])
        if optimizer == "sgd":
            self.optimizer = torch.optim.SGD(self.trained, lr=0.0, momentum=train["momentum"])
        elif optimizer == "adam":
            self.optimizer = torch.optim.Adam(self.trained, lr=0.0, betas=betas, eps=train["eps"])
        else:
            groups = [{"params": [w for w in self.trained if w.dim() >= 2], "weight_decay": train["weight_decay"]},
                      {"params": [w for w in self.trained if w.dim() < 2], "weight_decay": 0.0}]
            self.optimizer = torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=train["eps"])

    def step(self, update, tokens, targets):
        """Returns learning rate, loss and gradient norm of one update."""
        train = self.config["train"]
        valid, loss = int((targets >= 0).sum()), 0.0
        self.optimizer.zero_grad(set_to_none=True)
        micro = train["batch"] // train["accumulate"]
        for x, y in zip(tokens.split(micro), targets.split(micro)):  # a norm over the batch sees one micro-batch at a time
            entropy, log_z_squared = decoder.loss_sums(self.config, self.weights, x, y)
            objective = entropy + train["z_loss"] * log_z_squared if train["z_loss"] > 0 else entropy
            (objective / valid).backward()
            loss += entropy.item() / valid
        gradients = [w.grad for w in self.trained if w.grad is not None]
        norm = math.sqrt(sum(g.double().pow(2).sum().item() for g in gradients))
        rate = decoder.learning_rate(train, update)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return rate, loss, norm
        if 0 < train["clip"] < norm:
            for g in gradients:
                g.mul_(train["clip"] / norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if train["optimizer"] == "sgd" and train["weight_decay"] > 0:  # decoupled, on matrices: torch.optim.SGD adds it to the gradient
            with torch.no_grad():
                for w in self.trained:
                    if w.dim() >= 2:
                        w.mul_(1 - rate * train["weight_decay"])
        self.optimizer.step()
        return rate, loss, norm


def check_measured_start(config, weights, tokens, targets, tolerance):
    """The exported vectors whose start is measured, against a float64 pass of the first batch."""
    names = placements.measured(config)
    if not names:
        return True
    ones = {name: (torch.ones_like(w) if name in names else w.clone()).double() for name, w in weights.items()}
    micro, passes = config["train"]["batch"] // config["train"]["accumulate"], []
    with torch.no_grad():
        for x, y in zip(tokens.split(micro), targets.split(micro)):
            passes.append([])
            decoder.loss_sums(config, ones, x, y, seen=passes[-1])
    streams, branches = ([torch.cat([p[i][side] for p in passes]) for i in range(len(names))] for side in (0, 1))
    worst = max((weights[name] / value - 1).abs().max().item() for name, value in zip(names, placements.measured_start(streams, branches)))
    print(f"{'FAILED' if worst > tolerance else 'ok'}: measured starts are within {worst:.2e} of PyTorch's float64")
    return worst <= tolerance


def difference(ours, theirs):
    if not (math.isfinite(ours) and math.isfinite(theirs)):
        return 0.0 if math.isfinite(ours) == math.isfinite(theirs) else math.inf
    return abs(ours - theirs) / max(abs(theirs), 1e-300) if ours != theirs else 0.0


def compare(arguments, config, rows, replays, batches):
    """Steps every replay along the rows; replays: {dtype: Replay}. The last one decides."""
    seen, worst = 0, {(dtype, key): (0.0, 0) for dtype in replays for key in ("lr", "loss", "grad_norm")}
    rounding = (0.0, 0)  # float32 against float64, both PyTorch
    for update, ((tokens, targets), row) in enumerate(zip(batches, rows), 1):
        seen += int((targets >= 0).sum())
        if int(row["step"]) != update or int(row["tokens"]) != seen:
            print(f"FAILED: row {update} says step {row['step']}, tokens {row['tokens']}; PyTorch has {seen} targets")
            return 1
        losses = []
        for dtype, replay in replays.items():
            for key, theirs in zip(("lr", "loss", "grad_norm"), replay.step(update, tokens, targets)):
                worst[dtype, key] = max(worst[dtype, key], (difference(float(row[key]), theirs), update), key=lambda pair: pair[0])
                losses += [theirs] if key == "loss" else []
        rounding = max(rounding, (difference(losses[0], losses[-1]), update), key=lambda pair: pair[0])
        if arguments.verbose:
            print(f"step {update}: normlab {row['loss']}, PyTorch {', '.join(map(repr, losses))}")
    texts = {key: f"{value:.2e}" + (f" at step {step}" if value else "") for key, (value, step) in worst.items()}
    for dtype in replays:
        bad = worst[dtype, "loss"][0] > arguments.tolerance or worst[dtype, "lr"][0] > 1e-12
        print(f"{'FAILED' if bad else 'ok'}: worst relative loss difference {texts[dtype, 'loss']} over {len(rows)} steps against PyTorch "
              f"{torch.__version__} {dtype} (tolerance {arguments.tolerance:g}); gradient norm {texts[dtype, 'grad_norm']}; "
              f"learning rate {texts[dtype, 'lr']}")
    if bad and len(replays) == 1:
        print("add --double to see whose rounding it is: where PyTorch's own float32 is as far from its float64, the config is ill-conditioned")
    if len(replays) > 1:
        print(f"for scale: the loss of PyTorch float32 is up to {rounding[0]:.2e} (step {rounding[1]}) from its float64")
    return 1 if bad else 0


def run(arguments, folder):
    source = Path(arguments.config)
    metrics = Path(arguments.metrics) if arguments.metrics else None
    if source.is_dir():
        source, metrics = source / "config.toml", metrics or source / "metrics.csv"
    config = tomllib.loads(command(arguments, "check", source))
    require_supported(config)
    command(arguments, "export", source, folder / "weights.safetensors")
    dtypes = {"float32": torch.float32} | ({"float64": torch.float64} if arguments.double else {})
    replays = {name: Replay(config, load_weights(folder / "weights.safetensors", config, dtype)) for name, dtype in dtypes.items()}
    if metrics is None:
        command(arguments, "run", source, "--out", folder / "runs", "--quiet")
        metrics = folder / "runs" / config["run"]["name"] / "metrics.csv"
    with open(metrics, newline="") as file:
        rows = list(csv.DictReader(file))[: arguments.steps]
    if not rows:
        raise Refused(f"{metrics} has no rows")
    with open(folder / "batches.csv", "w") as file:
        command(arguments, "data", source, "--batches", len(rows), to=file)
    weights = load_weights(folder / "weights.safetensors", config, torch.float32)
    started = check_measured_start(config, weights, *next(read_batches(folder / "batches.csv", config, 1)), arguments.tolerance)
    return int(not started) | compare(arguments, config, rows, replays, read_batches(folder / "batches.csv", config, len(rows)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", metavar="CONFIG|RUN_DIR")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="passed on to every normlab command")
    parser.add_argument("--normlab", default=os.environ.get("NORMLAB", "normlab"), help="the program (default: NORMLAB, else from PATH, else build/normlab)")
    parser.add_argument("--metrics", help="an existing metrics.csv of this config, instead of a run")
    parser.add_argument("--steps", type=int, help="replay only the first steps")
    parser.add_argument("--double", action="store_true", help="PyTorch in float64 too, which then decides")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--verbose", action="store_true", help="both losses of every step")
    arguments = parser.parse_args()
    built = Path(__file__).resolve().parents[2] / "build" / "normlab"
    if shutil.which(arguments.normlab) is None:
        if arguments.normlab != "normlab" or not built.exists():
            print(f"replay.py: {arguments.normlab} is not there; build it, or name it by --normlab", file=sys.stderr)
            return 2
        arguments.normlab = str(built)
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="normlab-replay-"))
    try:
        return run(arguments, folder)
    except (Refused, OSError) as error:
        print(f"replay.py: {error}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
