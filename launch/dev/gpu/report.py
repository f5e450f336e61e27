"""What a device is, what was measured on it, and the files and the table that say so."""
import csv
import json
import os
import statistics
import subprocess

# The aims for one H200: figure, subject, how it compares, bound.
BARS = {
    ("against_pytorch", "1b"): (">=", 1.25),
    ("against_pytorch", "8b"): (">=", 1.15),
    ("of_bandwidth", "1b"): (">=", 0.70),
    ("of_bandwidth", "8b"): (">=", 0.85),
    ("v8", "1b"): ("<=", 1.05),
    ("v8", "8b"): ("<=", 1.05),
    ("v16", "1b"): ("<=", 1.10),
    ("v16", "8b"): ("<=", 1.10),
    ("speculation_against_pytorch", "1b"): (">=", 1.3),
    ("speculation_against_pytorch", "8b"): (">=", 1.3),
}
DEVICE = ["name", "driver_version", "compute_cap", "memory.total", "clocks.max.sm", "clocks.max.mem", "power.limit", "ecc.mode.current",
          "mig.mode.current"]
LOAD = ["clocks.sm", "clocks.mem", "power.draw", "temperature.gpu"]


def ask_device(fields):
    """{field: text} of the first device, or {} where it does not answer."""
    try:
        text = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"], text=True,
                              capture_output=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(fields, (word.strip() for word in text.splitlines()[0].split(","))))


def bar_of(figure, subject, value):
    """(the bar as text, whether it holds), or ("", None) where there is none."""
    if (figure, subject) not in BARS:
        return "", None
    how, bound = BARS[figure, subject]
    return f"{how} {bound:g}", value >= bound if how == ">=" else value <= bound


class Report:
    def __init__(self, device):
        self.device, self.load, self.versions = device, {}, {}
        self.parts, self.rows = [], []  # (part, outcome, seconds, text), and dicts of figures

    def part(self, name, outcome, seconds, text):
        self.parts.append({"part": name, "outcome": outcome, "seconds": round(seconds, 1), "text": text})

    def add(self, part, subject, figure, value, unit, rows="", context="", repetition=""):
        bar, holds = bar_of(figure, subject, value)
        self.rows.append({"part": part, "subject": subject, "figure": figure, "rows": rows, "context": context, "repetition": repetition,
                          "value": value, "unit": unit, "bar": bar, "holds": "" if holds is None else ("yes" if holds else "no")})

    def add_turns(self, part, subject, program, results):
        """All repetitions of a program as they are; returns {figure: (median, rows, context, unit)}."""
        values = {}
        for i, repetition in enumerate(results):
            for figure, rows, context, value, unit in repetition:
                self.add(part, f"{subject} {program}", figure, value, unit, rows, context, i + 1)
                values.setdefault(figure, []).append((value, rows, context, unit))
        return {figure: (statistics.median(each[0] for each in found), *found[0][1:]) for figure, found in values.items()}

    def value(self, figure, subject, rows="", context=""):
        for row in self.rows:
            if (row["figure"], row["subject"]) == (figure, subject) and str(row["rows"]) == str(rows) and str(row["context"]) == str(context):
                return row["value"]
        return None

    def failed(self):
        return [part for part in self.parts if part["outcome"] == "failed"]

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "figures.csv"), "w", newline="") as file:
            fields = ["part", "subject", "figure", "rows", "context", "repetition", "value", "unit", "bar", "holds"]
            writer = csv.DictWriter(file, fields, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        with open(os.path.join(folder, "check.json"), "w") as file:
            json.dump({"device": self.device, "under_load": self.load, "versions": self.versions, "parts": self.parts,
                       "figures": self.rows}, file, indent=1)
            file.write("\n")

    def table(self):
        lines = ["", f"{'part':<22} {'outcome':<9} {'s':>6}  what"]
        lines += [f"{part['part']:<22} {part['outcome']:<9} {part['seconds']:>6.1f}  {part['text']}" for part in self.parts]
        chosen = [row for row in self.rows if row["part"] == "summary"]
        if chosen:
            lines += ["", f"{'figure':<30} {'model':<6} {'context':>7} {'value':>12} {'unit':<10} {'bar':<8} holds"]
            lines += [f"{row['figure']:<30} {row['subject']:<6} {row['context']:>7} {row['value']:>12.3f} {row['unit']:<10} {row['bar']:<8} {row['holds']}"
                      for row in chosen]
        return "\n".join(lines)
