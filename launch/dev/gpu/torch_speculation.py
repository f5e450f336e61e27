"""Sequential speculation in plain PyTorch, greedy, with a nested pair: a captured graph for the drafts of a round and one for its verification.
Lengths, guesses and what is accepted stay on the device, and the host looks one round behind, so that the device never waits for it.

python3 torch_speculation.py 1b|8b|tiny [NAME=VALUE]...     first=2 further=0.1 length=4 and what torch_decode.py takes

Lines "figure,rows,context,value,unit", as bench_gpu writes them.
"""
import sys
import time

import torch

import torch_model
from torch_decode import Decoder


class Speculator:
    def __init__(self, target, draft, way, context, tokens, length, device):
        self.target, self.draft, self.way, self.device = target, draft, way, device
        self.context, self.tokens, self.length = context, tokens, length
        places = torch.arange(context, device=device)
        self.text = torch.zeros(target.context + length + 2, dtype=torch.int64, device=device)
        self.prompt = torch_model.prompt_tokens(target.shape, places)
        self.tally = torch.zeros(3, dtype=torch.int64, device=device)  # committed tokens, rounds, accepted drafts
        self.rows = torch.arange(length + 1, device=device)
        self.pair = torch.arange(2, device=device)
        self.looks = [torch.zeros(3, dtype=torch.int64, pin_memory=device != "cpu") for _ in range(2)]
        self.reset()
        self.draft_round = torch_model.capture(self.draft_work, device, self.reset)
        self.verify_round = torch_model.capture(self.verify_work, device, self.reset)

    def reset(self):
        self.text[: self.context].copy_(self.prompt)
        self.tally.zero_()
        self.tally[:1].fill_(self.context)

    def draft_work(self):
        """Feeds the two newest committed tokens (the older one may be new to the draft too), then each guess but the last."""
        n = self.tally[:1]
        positions = n - 2 + self.pair
        for i in range(self.length):
            guess = self.draft.step(self.text.index_select(0, positions), positions, self.way, 1)
            positions = n + i
            self.text.index_copy_(0, positions, guess)

    def verify_work(self):
        """Feeds the newest committed token and all guesses. Guesses that stay are the target's own tokens, so all of these are written."""
        n = self.tally[:1]
        positions = n - 1 + self.rows
        best = self.target.step(self.text.index_select(0, positions), positions, self.way)
        guesses = self.text.index_select(0, positions[1:])
        kept = (best[:-1] == guesses).long().cumprod(0).sum(0, keepdim=True)
        self.text.index_copy_(0, positions + 1, best)
        self.tally.add_(torch.cat((kept + 1, torch.ones_like(kept), kept)))

    def run(self):
        """Seconds, committed tokens beyond the prompt, rounds, accepted drafts."""
        self.reset()
        torch_model.synchronize(self.device)
        events = [torch.cuda.Event() for _ in range(2)] if self.device != "cpu" else []
        start, end, rounds = time.perf_counter(), self.context + self.tokens, 0
        while True:
            self.draft_round()
            self.verify_round()
            self.looks[rounds % 2].copy_(self.tally, non_blocking=True)
            if events:
                events[rounds % 2].record()
            rounds += 1
            if rounds < 2:
                continue
            if events:
                events[rounds % 2].synchronize()  # of the round before
            if int(self.looks[rounds % 2][0]) >= end:
                break
        n, all_rounds, accepted = self.tally.tolist()
        return time.perf_counter() - start, n - self.context, all_rounds, accepted

    def time(self):
        self.run()
        seconds, tokens, _, _ = self.run()
        return seconds / tokens


def main():
    settings = torch_model.settings_read(sys.argv)
    shape, device, context, tokens = settings["shape"], settings["device"], settings["context"], settings["tokens"]
    first, length, further = settings["first"], settings["length"], settings["further"]
    torch.set_grad_enabled(False)
    seeds = torch_model.Seeds(device)
    room = (context + tokens + 3 * (length + 1) + 15) // 16 * 16  # a round may be begun after the last token
    target = torch_model.Model(shape, seeds, room, first=first, further=further)
    draft = torch_model.Model(shape, seeds, room, layers=first)
    for model in (target, draft):
        model.fill(context, torch_model.EAGER)
    ways = settings["ways"].split(",") if settings["ways"] else torch_model.WAYS[:-1]
    pair = torch_model.best_of(
        ways, settings["seconds"], lambda way: Speculator(target, draft, way, context, tokens, length, device)
    )
    solo = Decoder(target, pair.way, context, tokens, device)
    print(f"# PyTorch {torch.__version__}, {pair.way.name}", flush=True)

    def measure():
        print(f"solo,1,{context},{tokens / solo.run(tokens)[0]:.2f},tokens/s")
        seconds, said, rounds, accepted = pair.run()
        print(f"speculation,{length + 1},{context},{said / seconds:.2f},tokens/s")
        print(f"acceptance,{length + 1},{context},{accepted / (rounds * length):.4f},of drafts")
        print(f"tokens_per_round,{length + 1},{context},{said / rounds:.4f},tokens", flush=True)

    torch_model.turns(settings, measure)


if __name__ == "__main__":
    main()
