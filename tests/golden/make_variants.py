#!/usr/bin/env python3
"""Makes the golden models: one tiny seeded model per variant of the architectures that Tandem reads, and what transformers says
of it in float32 with eager attention. The weights are rounded to the dtype they are stored in before anything is computed, and
the files are read back for the computing, so the goldens belong to the bytes on disk. See README.md for how to run it."""

import json
import pathlib
import shutil
import sys

import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file

MODELS = pathlib.Path(__file__).parent / "models"
TOKENS = 48
GREEDY = 32
# Greedy text is compared exactly, so every step must be decided by more than what two float32 sums may differ by.
LEAST_MARGIN = 0.02
STORED = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

SHAPE = {"hidden_act": "silu", "max_position_embeddings": 128, "rms_norm_eps": 1e-5}
PLAIN = {"rope_theta": 10000.0}
VARIANTS = {
    # name: (model_type, architecture, stored as, shards, keys of config.json)
    "llama2": ("llama", "LlamaForCausalLM", "float16", 1, {
        **SHAPE, "hidden_size": 48, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "vocab_size": 128, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
        **PLAIN, "bos_token_id": 1, "eos_token_id": 2}),
    "llama31": ("llama", "LlamaForCausalLM", "bfloat16", 1, {
        **SHAPE, "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 128, "tie_word_embeddings": False, "rope_theta": 500000.0,
        # With 32 original positions the slow pairs are stretched and some lie in the smooth band, all within 48 tokens.
        "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 32},
        "bos_token_id": 3, "eos_token_id": [4, 5]}),
    "linear": ("llama", "LlamaForCausalLM", "float16", 1, {
        **SHAPE, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 6,
        "num_key_value_heads": 2, "vocab_size": 96, "tie_word_embeddings": True, **PLAIN,
        "rope_scaling": {"type": "linear", "factor": 2.5}, "bos_token_id": 1, "eos_token_id": 2}),
    "mistral": ("mistral", "MistralForCausalLM", "float32", 2, {
        **SHAPE, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 96, "tie_word_embeddings": False, "sliding_window": None,
        "rope_theta": 1000000.0, "bos_token_id": 1, "eos_token_id": 2}),
    "qwen2": ("qwen2", "Qwen2ForCausalLM", "bfloat16", 1, {
        **SHAPE, "hidden_size": 56, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 160, "tie_word_embeddings": True, "use_sliding_window": False,
        "sliding_window": 64, "max_window_layers": 3, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "bos_token_id": 7,
        "eos_token_id": 8}),
    "qwen3": ("qwen3", "Qwen3ForCausalLM", "bfloat16", 1, {
        **SHAPE, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 20, "vocab_size": 128, "tie_word_embeddings": True, "attention_bias": False,
        "use_sliding_window": False, "sliding_window": None, "max_window_layers": 2, "rms_norm_eps": 1e-6,
        # As transformers 5 and later write it.
        "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}, "bos_token_id": None, "eos_token_id": 9}),
    "smollm": ("llama", "LlamaForCausalLM", "bfloat16", 1, {
        **SHAPE, "hidden_size": 72, "intermediate_size": 120, "num_hidden_layers": 3, "num_attention_heads": 9,
        "num_key_value_heads": 3, "head_dim": 8, "vocab_size": 112, "tie_word_embeddings": True, "attention_bias": False,
        "mlp_bias": False, "rope_interleaved": False, "rope_scaling": None, "rope_theta": 100000.0, "bos_token_id": 1,
        "eos_token_id": 2}),
    "yarn": ("qwen3", "Qwen3ForCausalLM", "bfloat16", 1, {
        **SHAPE, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 112, "tie_word_embeddings": True, "attention_bias": False,
        **PLAIN, "bos_token_id": None, "eos_token_id": 9,
        # Of 8 pairs the first keeps its frequency, two lie on the ramp.
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 4.0,
                         "beta_slow": 0.5}}),
    "longrope": ("llama", "LlamaForCausalLM", "bfloat16", 1, {
        **SHAPE, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 112, "tie_word_embeddings": True, **PLAIN,
        # Shorter than the prompt, so that transformers, too, takes the long factors from the first token on.
        "original_max_position_embeddings": 4,
        "rope_scaling": {"type": "longrope", "factor": 2.0, "short_factor": [1.0, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6],
                         "long_factor": [1.0, 1.25, 1.5, 2.0, 3.5, 6.0, 12.0, 30.0]},
        "bos_token_id": 1, "eos_token_id": 2}),
}
# generation_config.json wins over config.json; here it says more than config.json does.
GENERATION = {"qwen2": {"bos_token_id": 7, "eos_token_id": [10, 8], "do_sample": True, "temperature": 0.7, "top_k": 20}}


def random_weights(model, dtype, generator):
    """Every tensor drawn anew, norms and biases too, so that a forgotten one shows; returned as stored."""
    weights = {}
    for name, tensor in sorted(model.state_dict().items()):
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        noise = torch.randn(tensor.shape, generator=generator)
        if "norm" in name:
            noise = 1 + 0.25 * noise
        elif name.endswith("bias"):
            noise = 0.5 * noise
        elif "embed_tokens" in name or "lm_head" in name:
            noise = 0.4 * noise
        else:
            noise = 0.2 * noise
        weights[name] = noise.to(dtype).contiguous()
    return weights


def save_weights(folder, weights, shards):
    if shards == 1:
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        return
    names = sorted(weights)
    cut = [names[len(names) * i // shards:len(names) * (i + 1) // shards] for i in range(shards)]
    index = {"metadata": {"total_size": sum(t.numel() * t.element_size() for t in weights.values())}, "weight_map": {}}
    for i, part in enumerate(cut):
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        save_file({name: weights[name] for name in part}, folder / file, {"format": "pt"})
        index["weight_map"].update({name: file for name in part})
    write_json(folder / "model.safetensors.index.json", index)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_golden(path, value):
    """One key to a line."""
    path.write_text("{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(item)}" for key, item in value.items()) + "\n}\n")


def load_float32(folder):
    """The model of the folder, its stored weights widened to float32, as eager attention computes it."""
    config = transformers.AutoConfig.from_pretrained(folder)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    weights = {}
    for file in sorted(folder.glob("*.safetensors")):
        weights.update({name: tensor.to(torch.float32) for name, tensor in load_file(file).items()})
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected and all(name == "lm_head.weight" and config.tie_word_embeddings for name in missing), (missing, unexpected)
    model.tie_weights()
    return model


@torch.no_grad()
def logits_of(model, tokens):
    return model(torch.tensor([tokens]), use_cache=False).logits[0].to(torch.float32)


def greedy_of(model, prompt):
    """Each step is the full forward over all tokens; no end-of-sequence stops it."""
    tokens, margins = list(prompt), []
    for _ in range(GREEDY):
        best = torch.topk(logits_of(model, tokens)[-1], 2)
        margins.append(round(float(best.values[0] - best.values[1]), 6))
        tokens.append(int(best.indices[0]))
    return tokens[len(prompt):], margins


def make(name, seed):
    model_type, architecture, stored, shards, keys = VARIANTS[name]
    folder = MODELS / name
    generator = torch.Generator().manual_seed(seed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_json(folder / "config.json", {"architectures": [architecture], "model_type": model_type, "torch_dtype": stored, **keys})
    write_json(folder / "generation_config.json",
               GENERATION.get(name, {key: keys[key] for key in ("bos_token_id", "eos_token_id") if keys[key] is not None}))
    blank = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder))
    save_weights(folder, random_weights(blank, STORED[stored], generator), shards)

    model = load_float32(folder)
    tokens = torch.randint(0, keys["vocab_size"], (TOKENS,), generator=generator).tolist()
    logits = logits_of(model, tokens)
    prompt = tokens[:8]
    greedy, margins = greedy_of(model, prompt)
    if min(margins) < LEAST_MARGIN:
        return None
    logits.numpy().astype("<f4").tofile(folder / "logits.f32")
    write_golden(folder / "golden.json", {
        "made_by": {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "numpy": numpy.__version__},
        "seed": seed, "stored": stored, "tokens": tokens, "vocab": keys["vocab_size"],
        "logits": "logits.f32: little-endian float32 [tokens][vocab]", "prompt": prompt, "greedy": greedy, "margins": margins})
    return f"{name}: seed {seed}, logits {float(logits.std()):.2f} sd, {float(logits.abs().max()):.2f} max, margin {min(margins):.3f}"


def main():
    torch.set_num_threads(1)
    for number, name in enumerate(VARIANTS):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        # The first seed whose greedy run never meets a near-tie.
        print(next(line for seed in range(1000 * (number + 1), 1000 * (number + 2)) if (line := make(name, seed))), flush=True)


main()
