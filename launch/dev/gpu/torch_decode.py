"""Greedy decoding of a seeded model in plain PyTorch: a captured graph per token, a static cache, the best of several ways.

python3 torch_decode.py 1b|8b|tiny [NAME=VALUE]...     context=128 tokens=256 turns=0 seconds=120 device=cuda|cpu ways=eager-grouped,...

Lines "figure,rows,context,value,unit", as bench_gpu writes them.
"""
import sys
import time

import torch

import torch_model


class Decoder:
    """Everything that a token changes is on the device; the host only replays."""

    def __init__(self, model, way, context, tokens, device):
        self.model, self.way, self.context, self.tokens, self.device = model, way, context, tokens, device
        first = torch.tensor([context], device=device)
        self.first = torch_model.prompt_tokens(model.shape, first)
        self.token, self.position = self.first.clone(), first.clone()
        self.said = torch.zeros(tokens, dtype=torch.int64, device=device)
        self.count = torch.zeros(1, dtype=torch.int64, device=device)
        self.replay = torch_model.capture(self.work, device, self.reset)

    def work(self):
        best = self.model.step(self.token, self.position, self.way)
        self.said.index_copy_(0, self.count, best)
        self.token.copy_(best)
        self.position.add_(1)
        self.count.add_(1)

    def reset(self):
        self.token.copy_(self.first)
        self.position.fill_(self.context)
        self.count.zero_()

    def run(self, tokens):
        """Seconds for so many tokens, all of them on the host at the end."""
        self.reset()
        torch_model.synchronize(self.device)
        start = time.perf_counter()
        for _ in range(tokens):
            self.replay()
        said = self.said[:tokens].tolist()
        return time.perf_counter() - start, said

    def time(self):
        tokens = min(32, self.tokens)
        self.run(tokens)
        return min(self.run(tokens)[0] for _ in range(2)) / tokens


def main():
    settings = torch_model.settings_read(sys.argv)
    shape, device, context, tokens = settings["shape"], settings["device"], settings["context"], settings["tokens"]
    torch.set_grad_enabled(False)
    model = torch_model.Model(shape, torch_model.Seeds(device), (context + tokens + 15) // 16 * 16)
    model.fill(context, torch_model.EAGER)
    ways = settings["ways"].split(",") if settings["ways"] else torch_model.WAYS
    decoder = torch_model.best_of(ways, settings["seconds"], lambda way: Decoder(model, way, context, tokens, device))
    print(f"# PyTorch {torch.__version__}, {decoder.way.name}", flush=True)

    def measure():
        seconds, said = decoder.run(tokens)
        print(f"# tokens: {' '.join(map(str, said[:16]))}")
        print(f"decode,1,{context},{tokens / seconds:.2f},tokens/s", flush=True)

    torch_model.turns(settings, measure)


if __name__ == "__main__":
    main()
