"""What `tandem gpu-check` does (launch/tandem): builds for the device, checks on it that the backend computes what it should, measures, and
writes down both.

python3 check.py [--output FOLDER] [--programs FOLDER] [--seconds N] [--only PART[,PART]] [--list]

Every part has a share of the time, ends in one line, and leaves the others alone. Exit: 0 when every part that could be run held, 1 when one
did not, 64 usage, 69 no device.
"""
import argparse
import importlib.util
import os
import re
import shutil
import site
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE) # which python3 -I leaves out

import report
from run_parts import Failure, Skip, Turn, call, figures, last_line, take_turns

TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.join(TOP, "build", "cuda")
BUILT = ["tandem-drafter", "tandem-verifier", "bench_gpu", "teacher_forced", "bench_bandwidth", "device_tests"]
# Tests that do without what a machine may lack: NCCL, or memory that processes share (CUDA IPC). Their reasons are told.
MAY_SKIP = {"test_group_cuda_1_device"}
THREADS = str(min(16, os.cpu_count() or 1))


def build(check, deadline):
    """For this device alone: the preset's other architectures take time and do not run here."""
    major, _, minor = check.device.get("compute_cap", "9.0").partition(".")
    architecture = f"{major}{minor}{'a' if (major, minor) == ('9', '0') else ''}-real"
    call(["cmake", "-S", TOP, "--preset", "cuda", "-DTANDEM_WERROR=OFF", f"-DCMAKE_CUDA_ARCHITECTURES={architecture}"], deadline, cwd=TOP)
    call(["ninja", "-C", BUILD, "--quiet", *BUILT], deadline)
    check.report.versions["nvcc"] = last_line(call(["nvcc", "--version"], deadline))
    check.report.versions["tandem"] = last_line(call([check.program("tandem-verifier"), "--version"], deadline))
    return f"for sm_{architecture}"


def tests(check, deadline):
    """Every operation against the CPU's, and whole decodes: all that ctest knows as `gpu`."""
    text = call(["ctest", "--test-dir", BUILD, "-L", "^gpu$", "--output-on-failure", "--no-tests=error", "-j", "2"], deadline, accept=(0, 8))
    ran = re.findall(r"^ *\d+/\d+ Test +#\d+: (\S+) .*?(Passed|\*\*\*\S+)", text, re.M)
    skipped = [name for name, how in ran if how == "***Skipped" and name in MAY_SKIP]
    bad = [f"{name} {how.strip('*')}" for name, how in ran if how != "Passed" and name not in skipped]
    if bad or not ran:  # one that skips where there is a device has not tested
        raise Failure(", ".join(bad) or "there are no such tests", text)
    return f"{len(ran) - len(skipped)} programs passed" + "".join(f"; {name} skipped: {why_skipped(name)}" for name in skipped)


def why_skipped(name):
    """A test's own words, of what ctest keeps of the last run."""
    try:
        with open(os.path.join(BUILD, "Testing", "Temporary", "LastTest.log"), errors="replace") as file:
            told = re.search(rf"Testing: {re.escape(name)}\n(?:(?!.*Testing: ).*\n)*?skipped: (.*)", file.read())
    except OSError:
        told = None
    return told.group(1) if told else "it does not say why"


def sanitizer(check, deadline):
    """Out-of-bounds accesses and races in shared memory, over steps of 1 to 64 rows of a small model."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(tool):
        raise Skip("compute-sanitizer is not there")
    for kind in ("memcheck", "racecheck"):
        work = [check.program("bench_gpu"), "steps", "tiny", "contexts=16,300", "repetitions=1"]
        try:
            call([tool, "--tool", kind, "--error-exitcode", "9", *work], deadline)
        except Failure as failure:
            if "not supported" in str(failure) + failure.said:
                raise Skip(f"compute-sanitizer: {failure}") from None
            raise Failure(f"{kind}: {failure}") from None
    return "memcheck and racecheck have found nothing"


def decodes(check, deadline):
    """Whole decodes on the device, each token fed to the CPU's backend as well."""
    text = call([check.program("teacher_forced")], deadline, cwd=TOP)
    check.add_figures("decodes", "embedded", text)
    return last_line(text)


def job(check, words, deadline):
    """A job of both roles; the programs know the line for mpirun."""
    line = call([check.program("tandem-verifier"), "--dry-run", "--backend", "cuda", *words], deadline)
    return call(["bash", "-c", f"exec {line.strip().splitlines()[-1]}"], deadline, cwd=TOP)


def lossless(check, deadline):
    return last_line(job(check, ["--check", "quick", "--drafters", "1", "--verifiers", "1"], deadline))


def replays(check, deadline):
    """Steps that are recorded and whose kernels overlap, against steps without: bits."""
    text = call([check.program("bench_gpu"), "replays", "1b", "contexts=128", "repetitions=10000", f"threads={THREADS}"], deadline)
    check.add_figures("replays", "1b", text)
    counts = [value for figure, _, _, value, _ in figures(text) if figure == "replays"]
    if not counts:
        raise Failure("it printed no replays")
    return f"{counts[0]:.0f} replayed steps of 1 to 64 rows have the bits of steps without recording and overlap"


def bandwidth(check, deadline):
    text = call([check.program("bench_bandwidth")], deadline)
    check.add_figures("bandwidth", "device", text)
    value = check.report.value("read_bandwidth", "device", "4096", "best")
    if value is None:
        raise Failure("it printed no read_bandwidth")
    check.report.add("summary", "device", "read_bandwidth", value, "GB/s")
    return f"reads {value:.0f} GB/s"


def steps(model):
    def part(check, deadline):
        check.add_figures(f"steps {model}", model, call([check.program("bench_gpu"), "steps", model, f"threads={THREADS}"], deadline))
        told = []
        for context in ("128", "2048", "8192"):
            one = check.report.value("step", model, "1", context)
            for rows in ("8", "16"):
                many = check.report.value("step", model, rows, context)
                if one and many:
                    check.report.add("summary", model, f"v{rows}", many / one, "steps", "", context)
                    told.append(f"v({rows}) {many / one:.3f}")
        prompt = check.report.value("prompt", model, "512", "8192")
        if prompt:
            check.report.add("summary", model, "prompt", 8192e6 / prompt, "tokens/s", "", "8192")
        if not told:
            raise Failure("it printed no steps")
        return ", ".join(told[:2]) + " at context 128"

    return part


def leading_equal(turns):
    """How many of the first tokens that two programs decoded agree, and of how many."""
    said = []
    for turn in turns:
        words = [remark.split()[1:] for remark in turn.remarks if remark.startswith("tokens:")]
        said.append(words[-1] if words else [])
    most = min(map(len, said))
    return next((i for i in range(most) if said[0][i] != said[1][i]), most), most


def against_torch(check, name, model, words, script, deadline):
    """{figure: (median, ...)} of ours and PyTorch's, which take turns."""
    turns = [Turn("ours", [check.program("bench_gpu"), *words, f"threads={THREADS}", "turns=1"])]
    if check.torch:
        left = max(5, (deadline - time.monotonic()) / 3)
        ways = [f"ways={check.best_way[model]}"] if model in check.best_way else []
        turns.append(Turn("PyTorch", [sys.executable, os.path.join(HERE, script), *words[1:], "turns=1", f"seconds={left:.0f}", *ways]))
    try:
        results, failed = take_turns(turns, 5, deadline, check.look_at_load)
    finally:
        for turn in turns:
            turn.close()
    medians = {turn.name: check.report.add_turns(name, model, turn.name, results[turn.name]) for turn in turns}
    if "ours" in failed or not medians["ours"]:
        raise Failure(failed.get("ours", "it printed no figures"))
    if len(turns) > 1:
        check.remember(f"{name} PyTorch", turns[1].remarks)
        for remark in turns[1].remarks:  # what is fastest for one part is not looked for again in the next
            if remark.startswith("PyTorch "):
                check.best_way[model] = remark.split(", ")[-1]
        equal, most = leading_equal(turns)
        if most:
            check.report.add(name, model, "first_tokens_equal", equal, f"of {most}")
    return medians["ours"], medians.get("PyTorch") or {}, failed.get("PyTorch", "" if check.torch else check.no_torch)


def decode(model):
    def part(check, deadline):
        ours, theirs, why = against_torch(check, f"decode {model}", model, ["decode", model, "contexts=128", "tokens=256"], "torch_decode.py",
                                          deadline)
        rate, peak = ours["decode"][0], check.report.value("read_bandwidth", "device", "4096", "best")
        told = [f"{rate:.0f} tokens/s"]
        check.report.add("summary", model, "tokens_per_second", rate, "tokens/s", "", "128")
        if peak:
            share = rate * ours["step_bytes"][0] / (peak * 1e9)
            check.report.add("summary", model, "of_bandwidth", share, "of reads", "", "128")
            told.append(f"{100 * share:.0f} % of the bandwidth")
        if "decode" in theirs:
            check.report.add("summary", model, "against_pytorch", rate / theirs["decode"][0], "x", "", "128")
            told.append(f"{rate / theirs['decode'][0]:.2f}x PyTorch's {theirs['decode'][0]:.0f}")
        else:
            told.append(f"PyTorch: {why}")
        return ", ".join(told)

    return part


def speculation(model, first, further):
    def part(check, deadline):
        words = ["speculation", model, "contexts=128", "tokens=256", f"first={first}", f"further={further}", "length=4"]
        ours, theirs, why = against_torch(check, f"speculation {model}", model, words, "torch_speculation.py", deadline)
        for figure in ("speculation", "acceptance", "tokens_per_round", "draft_step", "verify", "round_overhead"):
            value, _, _, unit = ours[figure]
            check.report.add("summary", model, figure, value, unit, "", "128")
        told = f"{ours['speculation'][0]:.0f} tokens/s, {ours['acceptance'][0]:.3f} of drafts accepted"
        if "speculation" not in theirs:
            return f"{told}, PyTorch: {why}"
        ratio = ours["speculation"][0] / theirs["speculation"][0]
        check.report.add("summary", model, "speculation_against_pytorch", ratio, "x", "", "128")
        return f"{told}, {ratio:.2f}x PyTorch's {theirs['speculation'][0]:.0f} at {theirs['acceptance'][0]:.3f}"

    return part


def pair(check, deadline):
    """The embedded pair, drafter and verifier as two processes on one device."""
    told = []
    for mode, words in (("solo", ["--solo"]), ("speculative", ["--drafters", "1"])):
        stats = os.path.join(check.scratch, f"pair-{mode}.json")
        job(check, ["--verifiers", "1", "--threads", "1", "--prompts", os.path.join(TOP, "launch", "demo", "prompts.jsonl"), "--output",
             os.path.join(check.scratch, f"{mode}.jsonl"), "--max-sequences", "1", "--max-tokens", "128", "--stats", stats, "--quiet", *words],
            deadline)
        with open(stats) as file:
            found = re.search(r'"tokens_per_second": ([0-9.]+)', file.read())
        if found is None:
            raise Failure(f"{stats} has no tokens_per_second")
        check.report.add("summary", "pair", mode, float(found.group(1)), "tokens/s")
        told.append(f"{mode} {float(found.group(1)):.0f} tokens/s")
    return ", ".join(told)


# Name, most seconds, what it does. In this order, so that what is cut at the end is what is missed least.
PARTS = [
    ("build", 300, build),
    ("tests", 120, tests),
    ("decodes", 45, decodes),
    ("bandwidth", 20, bandwidth),
    ("decode 1b", 75, decode("1b")),
    ("decode 8b", 75, decode("8b")),
    ("replays", 40, replays),
    ("steps 1b", 25, steps("1b")),
    ("steps 8b", 40, steps("8b")),
    ("speculation 1b", 60, speculation("1b", 2, 0.1)),
    ("speculation 8b", 60, speculation("8b", 2, 0.1)),
    ("pair", 30, pair),
    ("lossless", 75, lossless),
    ("sanitizer", 60, sanitizer),
]
KEPT = ["decode 1b", "decode 8b"]  # the comparison with PyTorch: no part before them may take its time


def kept_after(name, chosen):
    """Seconds that the parts behind this one are sure of."""
    names = [part for part, _, _ in chosen]
    return sum(most for part, most, _ in chosen[names.index(name) + 1:] if part in KEPT)


class Check:
    def __init__(self, folder, programs, seconds):
        self.device = report.ask_device(report.DEVICE)
        self.report = report.Report(self.device)
        self.folder, self.programs, self.end = folder, programs, time.monotonic() + seconds
        self.log, self.best_way = [], {}
        self.scratch = os.path.join(TOP, "build", "gpu-check")
        shutil.rmtree(self.scratch, ignore_errors=True)  # journals of an earlier check
        os.makedirs(self.scratch)
        self.torch, self.no_torch = False, "not asked"

    def program(self, name):
        path = os.path.join(self.programs, name)
        if not os.path.exists(path):
            raise Failure(f"{path} is not there: it was not built")
        return path

    def look_for_torch(self):
        # Not -I: it may be among the user's own packages. Nothing of the current folder passes for it.
        look = "import sys; sys.path.remove(''); import torch; assert torch.cuda.is_available(), 'it sees no device'; print(torch.__version__)"
        try:
            self.report.versions["torch"] = last_line(call([sys.executable, "-c", look], min(self.end, time.monotonic() + 60)))
            self.torch = True
        except Failure as failure:
            self.no_torch = str(failure)

    def look_at_load(self):
        self.report.load = report.ask_device(report.LOAD)

    def remember(self, name, remarks):
        self.report.versions[name] = [remark for remark in remarks if not remark.startswith("tokens:")]

    def add_figures(self, part, subject, text):
        for figure, rows, context, value, unit in figures(text):
            self.report.add(part, subject, figure, value, unit, rows, context)

    def run(self, name, most, work, kept):
        start = time.monotonic()
        end = self.end - min(kept, (self.end - start) / 2)  # what is asked for within less time gets its half
        if start >= end:
            outcome, text = "cut", "the time was over before it began"
        else:
            try:
                outcome, text = "held", work(self, min(end, start + most))
            except Skip as skip:
                outcome, text = "skipped", str(skip)
            except Failure as failure:
                outcome, text = "failed", str(failure)
                self.log.append(f"=== {name}: {failure}\n{failure.said}\n")
            except Exception as error:  # a fault of this script is a line too, and the others go on
                outcome, text = "failed", f"{type(error).__name__}: {error}"
        self.report.part(name, outcome, time.monotonic() - start, text)
        print(f"tandem: {name}: {outcome}: {text}", flush=True)


def default_folder(device):
    name = re.sub(r"[^a-z0-9]+", "-", device.get("name", "unknown").lower()).strip("-")
    return os.path.join(TOP, "launch", "bench", "results", f"{name}-{time.strftime('%Y-%m-%d', time.gmtime())}")


def find_nccl():
    """PyTorch brings NCCL along in a folder of its own, where the loader does not look."""
    sys.path.append(site.getusersitepackages()) # python3 -I leaves it out; at the end it hides nothing
    spec = importlib.util.find_spec("nvidia.nccl") if importlib.util.find_spec("nvidia") else None
    for place in (spec.submodule_search_locations or []) if spec else []:
        known = os.environ.get("LD_LIBRARY_PATH", "")
        os.environ["LD_LIBRARY_PATH"] = os.path.join(place, "lib") if not known else known + ":" + os.path.join(place, "lib")


def main():
    parser = argparse.ArgumentParser(prog="tandem gpu-check", allow_abbrev=False)
    parser.add_argument("--output", help="folder for figures.csv and check.json (default: launch/bench/results/DEVICE-DATE)")
    parser.add_argument("--programs", help="folder with programs that are there already; nothing is built then")
    parser.add_argument("--seconds", type=float, default=570.0, help="for all parts together (default: 570)")
    parser.add_argument("--only", default="", help="parts, separated by commas")
    parser.add_argument("--without-pytorch", action="store_true", help="measure nothing beside the program itself")
    parser.add_argument("--list", action="store_true", help="print the parts")
    try:
        options = parser.parse_args()
    except SystemExit as ended:
        return 64 if ended.code else 0
    names = [name for name, _, _ in PARTS]
    unknown = [name for name in options.only.split(",") if options.only and name not in names]
    if unknown:
        print(f"tandem: there is no part '{unknown[0]}' for --only, expected some of: {', '.join(names)}", file=sys.stderr)
        return 64
    chosen = [part for part in PARTS if not options.only or part[0] in options.only.split(",")]
    if options.programs:
        chosen = [part for part in chosen if part[2] is not build]
    if options.list or not chosen:
        print("\n".join(f"{name}: at most {most} s" for name, most, _ in PARTS))
        return 0 if options.list else 64
    device = report.ask_device(report.DEVICE)
    if not device:
        print("tandem: no NVIDIA device answers here (nvidia-smi): nothing was checked, nothing was measured", file=sys.stderr)
        return 69
    find_nccl()
    check = Check(options.output or default_folder(device), options.programs or os.path.join(BUILD, "bin"), options.seconds)
    if not options.without_pytorch:
        check.look_for_torch()
    for name, most, work in chosen:
        check.run(name, most, work, kept_after(name, chosen))
    check.report.write(check.folder)
    if check.log:
        with open(os.path.join(check.folder, "log.txt"), "w") as file:
            file.write("\n".join(check.log))
    print(check.report.table())
    print(f"\nwritten: {check.folder}/figures.csv and check.json")
    return 1 if check.report.failed() or any(part["outcome"] == "cut" for part in check.report.parts) else 0


if __name__ == "__main__":
    sys.exit(main())
