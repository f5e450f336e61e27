#!/usr/bin/env python3
"""Makes the golden models in few bits: a tiny seeded model in each way in which published folders keep 4 or 8 bits, packed by the libraries that
make such folders, and what transformers computes with the folder once it has loaded it. See README.md for how to run it."""

import json
import pathlib
import shutil

import compressed_tensors
import gptqmodel
import numpy
import torch
import transformers
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
from gptqmodel.nn_modules.qlinear.torch import TorchLinear
from gptqmodel.quantization import QuantizeConfig
from gptqmodel.utils.model import convert_gptq_v2_to_v1_format_module
from gptqmodel.nn_modules.qlinear.torch_awq import AwqTorchLinear
from safetensors.torch import save_file

MODELS = pathlib.Path(__file__).parent / "quantised"
TOKENS = 48
EVERY = 31  # so many rows of a map lie between two whose values are kept
GROUP = 128
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 128, "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False, "bos_token_id": 1,
    "eos_token_id": 2}
FP8_MOST = 448.0


def new_model(seed):
    """Weights as large as those of the other golden models, and of uneven size from row to row and group to group, so that a scale in a wrong place
    shows."""
    generator = torch.Generator().manual_seed(seed)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG)).eval()
    for name, tensor in sorted(model.state_dict().items()):
        noise = torch.randn(tensor.shape, generator=generator)
        if "norm" in name:
            noise = 1 + 0.25 * noise
        elif "_proj" in name:
            rows, columns = tensor.shape
            uneven = torch.exp(0.5 * torch.randn(rows, columns // GROUP, generator=generator)).repeat_interleave(GROUP, 1)
            noise = 0.05 * noise * uneven + 0.01 * torch.randn(rows, 1, generator=generator)
        else:
            noise = 0.4 * noise
        tensor.copy_(noise.to(torch.float16))
    return model


def maps(model):
    return {name: module for name, module in model.named_modules() if name.endswith("_proj")}


def rounded_to_4_bits(weight, symmetric):
    """scales, zeros: [rows][groups], of round to nearest."""
    groups = weight.reshape(weight.shape[0], -1, GROUP)
    if symmetric:
        scales = (groups.abs().amax(2) / 7.5).to(torch.float16).to(torch.float32)
        return scales, torch.full_like(scales, 8)
    least, most = groups.amin(2).clamp(max=0), groups.amax(2).clamp(min=0)
    scales = ((most - least) / 15).to(torch.float16).to(torch.float32)
    return scales, torch.round(-least / scales).clamp(0, 15)


def packed_maps(model, row, symmetric, **terms):
    """By a library's own packer.  row: its class of a map"""
    weights = {}
    for name, module in maps(model).items():
        rows, columns = module.weight.shape
        scales, zeros = rounded_to_4_bits(module.weight.data, symmetric)
        packed = row(bits=4, group_size=GROUP, sym=symmetric, desc_act=False, in_features=columns, out_features=rows, register_buffers=True, **terms)
        # What the grid does not have is cut off here: packers take it that a quantiser has done so.
        low, high = -zeros * scales, (15 - zeros) * scales
        groups = module.weight.data.reshape(rows, -1, GROUP)
        linear = torch.nn.Linear(columns, rows, bias=False)
        linear.weight.data = torch.minimum(torch.maximum(groups, low[:, :, None]), high[:, :, None]).reshape(rows, columns)
        packed.pack(linear, scales, zeros, torch.arange(columns, dtype=torch.int32) // GROUP)
        if row is TorchLinear: # as files have it: a zero point less one
            convert_gptq_v2_to_v1_format_module(packed, QuantizeConfig(bits=4, group_size=GROUP, sym=symmetric, desc_act=False))
        weights.update({f"{name}.{key}": tensor for key, tensor in packed.state_dict().items() if key != "bias"})
    return weights


def fp8(weight, scale):
    return (weight / scale).clamp(-FP8_MOST, FP8_MOST).to(torch.float8_e4m3fn)


def fp8_blocks(model):
    """As DeepSeek and Qwen publish it."""
    weights = {}
    for name, module in maps(model).items():
        rows, columns = module.weight.shape
        blocks = module.weight.data.reshape(rows // GROUP if rows >= GROUP else 1, -1, columns // GROUP, GROUP)
        scales = blocks.abs().amax((1, 3)) / FP8_MOST
        weights[f"{name}.weight"] = fp8(blocks, scales[:, None, :, None]).reshape(rows, columns)
        weights[f"{name}.weight_scale_inv"] = scales
    return weights


def compressed(model):
    """As llm-compressor publishes it: a scale for each row."""
    weights = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel", "dynamic": False}
    inputs = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "token", "dynamic": True}
    config = QuantizationConfig(config_groups={"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": inputs}},
                                ignore=["lm_head"], quantization_status="compressed", format="float-quantized")
    apply_quantization_config(model, config)
    for name, module in maps(model).items():
        module.weight_scale.data = (module.weight.data.abs().amax(1, keepdim=True) / FP8_MOST).to(module.weight_scale.dtype)
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    return {name: tensor for name, tensor in model.state_dict().items() if "_proj" in name}, json.loads(config.model_dump_json(exclude_none=True))


def make(name, seed):
    model = new_model(seed)
    rest = {name: tensor.to(torch.float16) for name, tensor in model.state_dict().items() if "_proj" not in name}
    if name == "awq":
        weights = packed_maps(model, AwqTorchLinear, False)
        quantisation = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm", "modules_to_not_convert": None}
    elif name == "gptq":
        weights = packed_maps(model, TorchLinear, True)
        quantisation = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": True, "desc_act": False, "checkpoint_format": "gptq"}
    elif name == "gptq-asymmetric":
        weights = packed_maps(model, TorchLinear, False)
        quantisation = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": False, "desc_act": False, "checkpoint_format": "gptq"}
    elif name == "fp8":
        weights = fp8_blocks(model)
        quantisation = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [GROUP, GROUP]}
    else:
        weights, quantisation = compressed(model)
    folder = MODELS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_json(folder / "config.json", {**CONFIG, "torch_dtype": "float16", "quantization_config": quantisation})
    save_file({key: tensor.contiguous() for key, tensor in {**rest, **weights}.items()}, folder / "model.safetensors", {"format": "pt"})
    return folder


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


@torch.no_grad()
def loaded(folder):
    """The folder as transformers loads it, each map widened to float32: what it makes of unit vectors is its weights."""
    options = {}
    if folder.name == "fp8":
        options["quantization_config"] = transformers.FineGrainedFP8Config(weight_block_size=(GROUP, GROUP), dequantize=True)
    if folder.name == "compressed-tensors":
        options["quantization_config"] = transformers.CompressedTensorsConfig(run_compressed=False)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float16, device_map="cpu", attn_implementation="eager", **options)
    plain = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG, attn_implementation="eager")).eval()
    weights = {name: tensor.to(torch.float32) for name, tensor in model.state_dict().items() if "_proj" not in name}
    for name, module in maps(model).items():
        weights[f"{name}.weight"] = module(torch.eye(module.in_features, dtype=torch.float16)).T.to(torch.float32)
    plain.load_state_dict(weights)
    return plain


def values_of(model):
    """Of each map in the order of the layers, a row of every so many."""
    parts = [f"self_attn.{part}_proj" for part in "qkvo"] + [f"mlp.{part}_proj" for part in ("gate", "up", "down")]
    rows = [model.get_submodule(f"model.layers.{layer}.{part}").weight[::EVERY] for layer in range(CONFIG["num_hidden_layers"]) for part in parts]
    return numpy.concatenate([row.numpy().ravel() for row in rows])


@torch.no_grad()
def main():
    torch.set_num_threads(1)
    for seed, name in enumerate(["awq", "gptq", "fp8", "compressed-tensors", "gptq-asymmetric"], 1):
        folder = make(name, seed)
        model = loaded(folder)
        generator = torch.Generator().manual_seed(seed)
        tokens = torch.randint(0, CONFIG["vocab_size"], (TOKENS,), generator=generator).tolist()
        logits = model(torch.tensor([tokens]), use_cache=False).logits[0]
        logits.numpy().astype("<f4").tofile(folder / "logits.f32")
        values_of(model).astype("<f4").tofile(folder / "values.f32")
        packages = (transformers, torch, gptqmodel, compressed_tensors)
        golden = {"made_by": {package.__name__: package.__version__.split("+")[0] for package in packages}, "seed": seed, "tokens": tokens,
                  "vocab": CONFIG["vocab_size"], "logits": "logits.f32: little-endian float32 [tokens][vocab]", "every": EVERY,
                  "values": "values.f32: little-endian float32, rows 0, every, 2 every ... of each layer's q, k, v, o, gate, up and down, as loaded"}
        (folder / "golden.json").write_text("{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(item)}" for key, item in golden.items()) + "\n}\n")
        before = new_model(seed)(torch.tensor([tokens]), use_cache=False).logits[0]
        far = (before - logits).square().mean().sqrt() / logits.square().mean().sqrt()
        print(f"{name}: logits {float(logits.std()):.2f} sd, {float(far):.3f} of their size from those before rounding", flush=True)


main()
