"""Hugging Face's generate, greedy, over prompts of token ids: tokens per second by setting, and how many tokens are those of others.

python3 hugging_face.py TARGET DRAFT PROMPTS.jsonl TOKENS THREADS ALONE.jsonl ASSISTED.jsonl

Lines "figure <tab> who <tab> value", as launch/dev/vs-hugging-face writes them. One prompt after the other; loading and a first prompt are not
counted. ALONE and ASSISTED are results of `tandem run`, with whose tokens those in float32 on one thread are compared, place by place.
"""
import json
import sys
import time

import torch
import transformers

# How the small model drafts: as many tokens as ours at most, or by the library's own defaults, which stop where it is not sure.
WAYS = {
    "4 drafts": {"num_assistant_tokens": 4, "num_assistant_tokens_schedule": "constant", "assistant_confidence_threshold": 0.0},
    "its own number of drafts": {"num_assistant_tokens": 20, "num_assistant_tokens_schedule": "constant", "assistant_confidence_threshold": 0.4},
}


def read(path, key):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)[key] for line in file]


def load(path, dtype):
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=dtype).eval()
    model.generation_config.eos_token_id = None  # all give as many tokens
    return model


def complete(model, prompts, tokens, **options):
    """What follows each prompt."""
    said = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        whole = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False, **options)
        said.append(whole[0, len(prompt):].tolist())
    return said


def measure(figure, who, model, prompts, tokens, **options):
    complete(model, prompts[:1], tokens, **options)
    start = time.perf_counter()
    said = complete(model, prompts, tokens, **options)
    seconds = time.perf_counter() - start
    print(f"{figure}\tpeer, {who}\t{sum(map(len, said)) / seconds:.6g}", flush=True)
    return said


def share(said, others):
    """Percent of the places that have the same token."""
    places = [(a, b) for one, other in zip(said, others, strict=True) for a, b in zip(one, other, strict=True)]
    return 100 * sum(a == b for a, b in places) / len(places)


def main():
    target_path, draft_path, prompts_path, tokens, threads, alone, assisted = sys.argv[1:]
    prompts, tokens = read(prompts_path, "prompt_tokens"), int(tokens)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for dtype in torch.float32, torch.bfloat16:
        target, draft = load(target_path, dtype), load(draft_path, dtype)
        for count in sorted({1, int(threads)}):
            torch.set_num_threads(count)
            setting = f"{str(dtype).removeprefix('torch.')}, {count} thread{'s' if count > 1 else ''}"
            compared = dtype == torch.float32 and count == 1
            said = measure("alone", setting, target, prompts, tokens)
            if compared:
                print(f"same_alone\tpeer\t{share(said, read(alone, 'tokens')):.6g}")
            for way, options in WAYS.items():
                draft.generation_config.update(**options)
                said = measure("assisted", f"{setting}, {way}", target, prompts, tokens, assistant_model=draft)
            if compared:
                print(f"same_assisted\tpeer\t{share(said, read(assisted, 'tokens')):.6g}")


with torch.inference_mode():
    main()
