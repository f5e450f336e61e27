"""Seeded models in PyTorch, number for number those of seeded.c, and their forward pass, as fast as plain PyTorch has been seen to do it:
fused projections, a static cache, no host in the loop, and a choice of ways that torch_decode.py tries in turn.

Weights, cache and activations are bf16. A step takes tokens and positions as tensors of the device, so that it can be captured in a CUDA
graph and replayed; on a CPU, where there are no graphs, it is called.
"""
import math
import sys
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F

MASK = 0xFFFFFFFF
NUMBERS, LONGEST_ROW, ROW_STEP = 1 << 22, 1 << 14, 8
MATRICES_OF_LAYER = 8
QKV, OUT, GATE, UP, DOWN = range(5)
EMBEDDING, HEAD = 1 << 20, (1 << 20) + 1
GAIN_IN, GAIN_BRANCH, GAIN_HEAD = 1.0, 0.25, 2.5
NORM_EPS, ROPE_THETA = 1e-5, 500000.0


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int


SHAPES = {
    "1b": Shape(16, 2048, 32, 8, 64, 8192, 128256),
    "8b": Shape(32, 4096, 32, 8, 128, 14336, 128256),
    "tiny": Shape(3, 64, 4, 2, 16, 88, 256),
}


def settings_read(words):
    """The words of the command line: a shape, then NAME=VALUE. Contexts beyond the first are for others."""
    settings = {"context": 128, "tokens": 256, "first": 2, "length": 4, "further": 0.1, "turns": 0, "seconds": 120.0, "device": "cuda", "ways": ""}
    if len(words) < 2 or words[1] not in SHAPES:
        sys.exit(f"usage: {words[0]} {'|'.join(SHAPES)} [NAME=VALUE]...")
    for word in words[2:]:
        name, _, value = word.partition("=")
        name = "context" if name == "contexts" else name
        if name not in settings:
            sys.exit(f"{words[0]}: there is no setting '{name}', expected one of {', '.join(settings)}")
        settings[name] = type(settings[name])(value.split(",")[0] if name == "context" else value)
    settings["shape"] = SHAPES[words[1]]
    return settings


def mix(x):
    """The end of MurmurHash3 on numbers of 32 bits, held in 64."""
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & MASK
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & MASK
    return x ^ (x >> 16)


class Seeds:
    def __init__(self, device):
        self.device = device
        self.units = (mix(torch.arange(NUMBERS, device=device)) >> 8).float() * 2.0**-23 - 1.0

    def matrix(self, number, rows, columns, gain, further=1.0):
        scale = torch.tensor(gain * math.sqrt(3.0 / columns), dtype=torch.float32) * torch.tensor(further, dtype=torch.float32)
        table = (self.units * scale.to(self.device)).to(torch.bfloat16)
        first = int(mix(torch.tensor(number + 1)))
        places = mix((torch.arange(rows, device=self.device) + first) & MASK) % ((NUMBERS - LONGEST_ROW) // ROW_STEP)
        return table.unfold(0, columns, ROW_STEP).index_select(0, places).contiguous()

    def embedding(self, rows, columns):
        scale = torch.tensor(math.sqrt(3.0), dtype=torch.float32, device=self.device)
        table = (self.units * scale).to(torch.bfloat16)
        first = int(mix(torch.tensor(EMBEDDING + 1)))
        places = mix((torch.arange(rows, device=self.device) + first) & MASK) % ((NUMBERS - LONGEST_ROW) // ROW_STEP)
        return table.unfold(0, columns, ROW_STEP).index_select(0, places).contiguous()


def norm(x, weight):
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + NORM_EPS)).to(x.dtype) * weight


def rotate(x, cosine, sine):
    """x: [rows][heads][head_dim]; turns the pairs (i, i + head_dim / 2)."""
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1).to(x.dtype)


def attend_grouped(q, keys, values, seen):
    """Reads each key once for all query heads that share it.  q: [rows][heads][dim]  keys, values: [kv_heads][context][dim]"""
    rows, heads, dim = q.shape
    kv_heads, group = keys.shape[0], heads // keys.shape[0]
    q = q.view(rows, kv_heads, group, dim).permute(1, 0, 2, 3).reshape(kv_heads, rows * group, dim)
    scores = torch.bmm(q, keys.transpose(1, 2)).float() * (dim**-0.5)
    scores = scores.view(kv_heads, rows, group, -1).masked_fill(~seen[None, :, None, :], float("-inf"))
    weights = torch.softmax(scores, -1).to(values.dtype).view(kv_heads, rows * group, -1)
    return torch.bmm(weights, values).view(kv_heads, rows, group, dim).permute(1, 0, 2, 3).reshape(rows, heads * dim)


def attend_sdpa(q, keys, values, seen):
    rows, heads, dim = q.shape
    group = heads // keys.shape[0]
    k, v = keys.repeat_interleave(group, 0)[None], values.repeat_interleave(group, 0)[None]
    out = F.scaled_dot_product_attention(q.transpose(0, 1)[None], k, v, attn_mask=seen[None, None])
    return out[0].transpose(0, 1).reshape(rows, heads * dim)


def layer_forward(x, positions, seen, cosine, sine, keys, values, attn_norm, qkv, out, mlp_norm, gate_up, down, attend):
    """One layer, weights as arguments: compiled once for all layers."""
    kv_heads, _, dim = keys.shape
    rows = x.shape[0]
    heads = qkv.shape[0] // dim - 2 * kv_heads
    q, k, v = F.linear(norm(x, attn_norm), qkv).split((heads * dim, kv_heads * dim, kv_heads * dim), -1)
    q = rotate(q.view(rows, heads, dim), cosine, sine)
    k = rotate(k.view(rows, kv_heads, dim), cosine, sine)
    keys.index_copy_(1, positions, k.transpose(0, 1))
    values.index_copy_(1, positions, v.view(rows, kv_heads, dim).transpose(0, 1))
    x = x + F.linear(attend(q, keys, values, seen), out)
    gate, up = F.linear(norm(x, mlp_norm), gate_up).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, down)


def head_forward(x, final_norm, head):
    """The most likely token of each row."""
    return F.linear(norm(x, final_norm), head).argmax(-1)


class Model:
    """`layers` from the first; those from `first` on add `further` times as much. `seeds` may be shared by several."""

    def __init__(self, shape, seeds, context, layers=0, first=0, further=1.0):
        self.shape, self.context, device = shape, context, seeds.device
        self.embedding = seeds.embedding(shape.vocab, shape.hidden)
        self.head = seeds.matrix(HEAD, shape.vocab, shape.hidden, GAIN_HEAD)
        ones = torch.ones(shape.hidden, dtype=torch.bfloat16, device=device)
        self.final_norm, self.layers = ones.clone(), []
        inner, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        for i in range(layers or shape.layers):
            at, scaled = i * MATRICES_OF_LAYER, further if first and i >= first else 1.0
            gate = seeds.matrix(at + GATE, shape.ffn, shape.hidden, GAIN_IN)
            up = seeds.matrix(at + UP, shape.ffn, shape.hidden, GAIN_IN)
            weights = (
                ones.clone(),
                seeds.matrix(at + QKV, inner + 2 * kv, shape.hidden, GAIN_IN),
                seeds.matrix(at + OUT, shape.hidden, inner, GAIN_BRANCH, scaled),
                ones.clone(),
                torch.cat((gate, up)),
                seeds.matrix(at + DOWN, shape.hidden, shape.ffn, GAIN_BRANCH, scaled),
            )
            keys = torch.zeros(shape.kv_heads, context, shape.head_dim, dtype=torch.bfloat16, device=device)
            self.layers.append((keys, torch.zeros_like(keys), weights))  # not two views of one: a compiled layer writes to both
        half = shape.head_dim // 2
        exponent = -2.0 * torch.arange(half, dtype=torch.float64) / shape.head_dim
        angle = torch.arange(context).float()[:, None] * (ROPE_THETA**exponent).float()[None, :]
        self.cosine, self.sine = angle.cos().to(device), angle.sin().to(device)
        self.places = torch.arange(context, device=device)

    def step(self, tokens, positions, way, asked=None):
        """The most likely next token of the last `asked` rows (all when None).  tokens, positions: [rows] on the device"""
        x = F.embedding(tokens, self.embedding)
        seen = self.places[None, :] <= positions[:, None]
        cosine, sine = self.cosine[positions][:, None, :], self.sine[positions][:, None, :]
        for keys, values, weights in self.layers:
            x = way.layer(x, positions, seen, cosine, sine, keys, values, *weights, way.attend)
        return way.head(x if asked is None else x[-asked:], self.final_norm, self.head)

    def fill(self, count, way):
        """Feeds the prompt of rig.c to the places before `count`."""
        for at in range(0, count, 64):
            places = torch.arange(at, min(at + 64, count), device=self.places.device)
            self.step(prompt_tokens(self.shape, places), places, way, 1)


def prompt_tokens(shape, places):
    return ((places + 1) * 2654435761 & MASK) % shape.vocab


class Way:
    """How layers are run: as they stand or compiled, and by which attention."""

    def __init__(self, name):
        self.name = name
        how, attend = name.split("-")
        self.attend = {"grouped": attend_grouped, "sdpa": attend_sdpa}[attend]
        options = {"eager": None, "compiled": {}, "tuned": {"mode": "max-autotune-no-cudagraphs"}}[how]
        self.layer = layer_forward if options is None else torch.compile(layer_forward, dynamic=False, **options)
        self.head = head_forward if options is None else torch.compile(head_forward, dynamic=False, **options)


WAYS = ["eager-grouped", "compiled-grouped", "compiled-sdpa", "tuned-grouped", "eager-sdpa"]
EAGER = Way("eager-grouped")


def capture(work, device, reset):
    """Makes `work`, which has all its state on the device, replayable. It runs a few times at first, after which `reset` is called."""
    if device == "cpu":
        work()
        reset()
        return work
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
            reset()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    reset()
    return graph.replay


def synchronize(device):
    if device != "cpu":
        torch.cuda.synchronize()


def best_of(ways, seconds, make):
    """make(way) returns something with .time(): the fastest, by one short measurement each, of the ways that work and were begun in time."""
    best, least, start = None, math.inf, time.monotonic()
    for name in ways:
        if best is not None and time.monotonic() - start > seconds:
            print(f"# {name}: not tried, {seconds:.0f} s have passed", flush=True)
            continue
        try:
            made = make(Way(name))
            took = made.time()
        except Exception as error:  # a way that this version of PyTorch cannot go is no reason to stop
            print(f"# {name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}", flush=True)
            continue
        print(f"# {name}: {took * 1e6:.1f} us", flush=True)
        if took < least:
            best, least = made, took
    if best is None:
        sys.exit("no way to decode works here")
    return best


def turns(settings, measure):
    """Measures once, or, with turns=1, for each line of stdin."""
    if not settings["turns"]:
        measure()
        return
    print("ready", flush=True)
    for _ in sys.stdin:
        measure()
        print("done", flush=True)
