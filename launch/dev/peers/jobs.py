"""Whole jobs of `tandem run` over texts of this repository, for scripts that measure them."""
import json
import os
import resource
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
TANDEM = os.path.join(TOP, "launch", "tandem")
WORDS = [word for name in ("LICENSE", "launch/bench/README.md") for word in open(os.path.join(TOP, name), encoding="utf-8").read().split()]


def text(first, words):
    """So many words, from some place of the texts on."""
    return " ".join(WORDS[(first + i) % len(WORDS)] for i in range(words))


class Jobs:
    def __init__(self, options, work):
        self.options, self.work, self.count = options, work, 0

    def run(self, lines, *more):
        """Runs a job over these lines; its results, figures, seconds, and the memory of its largest process in MB."""
        self.count += 1
        name = os.path.join(self.work, str(self.count))
        with open(name + ".in", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        command = [TANDEM, "run", "--prompts", name + ".in", "--output", name + ".out", "--stats", name + ".json", "--quiet", *self.options, *more]
        began = time.monotonic()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        took = time.monotonic() - began
        if done.returncode != 0:
            sys.exit(f"exit {done.returncode} of {' '.join(command)}: {done.stderr.strip()[-500:]}")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        with open(name + ".out", encoding="utf-8") as file:
            results = [json.loads(line) for line in file]
        for result in results:
            if result["finish_reason"] == "error":
                sys.exit(result["error"])
        with open(name + ".json", encoding="utf-8") as file:
            return results, json.load(file), took, peak


def figure(stats, key):
    return stats.get(key, stats.get("totals", {}).get(key))
