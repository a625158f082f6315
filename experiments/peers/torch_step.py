#!/usr/bin/env python3
"""The training step of `normlab bench step` in PyTorch, for `normlab bench --peers`.

    torch_step.py LAYERS WIDTH HEADS CONTEXT BATCH THREADS...

Prints a line "threads seconds" for each thread count: the median time of a step. Pre-RMSNorm decoder with biases, learned positions, exact
GELU, AdamW; written as the usual modules, with the fused q, k, v left apart as in normlab.
"""
import math
import os
import statistics
import sys
import time

# Kernels forced by these would not be the ones the library picks for this machine.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = 64
WARMUP, FEWEST, SECONDS = 1, 3, 1.0


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Layer(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_ffn = RMSNorm(width), RMSNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("future", torch.ones(context, context, dtype=torch.bool).triu(1))

    def attention(self, x):
        batch, length, width = x.shape
        q, k, v = (f(x).view(batch, length, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)).masked_fill(self.future, -math.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attention(self.norm_attention(x))
        return x + self.down(F.gelu(self.up(self.norm_ffn(x))))


class Decoder(nn.Module):
    def __init__(self, layers, width, heads, context):
        super().__init__()
        self.token, self.position = nn.Embedding(VOCABULARY, width), nn.Embedding(context, width)
        self.layers = nn.Sequential(*(Layer(width, heads, context) for _ in range(layers)))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.layers(self.token(tokens) + self.position.weight)))


def main():
    layers, width, heads, context, batch, *thread_counts = map(int, sys.argv[1:])
    torch.manual_seed(1)
    model = Decoder(layers, width, heads, context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens, targets = torch.randint(VOCABULARY, (2, batch, context))

    def step():
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    for threads in thread_counts:
        torch.set_num_threads(threads)
        for _ in range(WARMUP):
            step()
        times, start = [], time.perf_counter()
        while len(times) < FEWEST or time.perf_counter() - start < SECONDS:
            before = time.perf_counter()
            step()
            times.append(time.perf_counter() - before)
        print(threads, statistics.median(times))


if __name__ == "__main__":
    main()
