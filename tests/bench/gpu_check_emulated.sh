#!/usr/bin/env bash
# All parts of gpu-check that need no compiler of a device and no tool of NVIDIA's, within their caps, with the program's own measurements and jobs over
# the emulation: what they compute is checked, and every line of the report comes from what they print. Shapes, texts and models are tiny, so no figure
# means anything.
# gpu_check_emulated.sh FOLDER_OF_PROGRAMS FOLDER_OF_THE_FAKE_NCCL
set -u
cd "$(dirname "$0")/../.."
bin=$1
python3 -I -c 'import argparse, csv, dataclasses, json, queue, re, shutil, signal, statistics, subprocess, threading' 2>/dev/null ||
    { echo "skipped: python3 with its standard library is not there, and gpu-check is written in it"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1 LD_LIBRARY_PATH=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work XDG_CACHE_HOME=/dev/null
failed=0
expect() { # TEXT COMMAND
    if eval "$2"; then echo "passed: $1"; else echo "FAILED: $1"; failed=1; fi
}

mkdir "$work/with" "$work/programs"
cat >"$work/with/nvidia-smi" <<'END_OF_PROGRAM'
#!/bin/sh
case "$*" in
*compute_cap*) echo "NVIDIA Emulated 1, 999.1, 9.0, 1000 MiB, 2000 MHz, 3000 MHz, 700.00 W, Enabled, Disabled" ;;
*) echo "1900 MHz, 3000 MHz, 400.00 W, 50" ;;
esac
END_OF_PROGRAM
"$bin/law_job" write "$work" 1 || exit # a target and a draft of 32 tokens

# program NAME WORDS: a program that is asked for what a device takes, and does what the emulation can.
program() {
    printf '#!/usr/bin/env bash\nwork=%q bin=%q\n%s\n' "$work" "$bin" "$2" >"$work/programs/$1"
    chmod +x "$work/programs/$1"
}
program bench_gpu 'words=()
for word in "${@:3}"; do
    case $1:$word in
    *:threads=*) ;;
    *:contexts=*) words+=(contexts=16) ;;
    *:tokens=*) words+=(tokens=8) ;;
    *:first=*) words+=(first=1) ;;
    *:repetitions=*) words+=(repetitions=30) ;;
    *) words+=("$word") ;;
    esac
done
[ "$1" != steps ] || words=(contexts=128 repetitions=1)
exec "$bin/bench_gpu_emulated" "$1" tiny ${words[@]+"${words[@]}"}'
program bench_bandwidth '"$bin/bench_bandwidth_emulated" 1 | sed "s/^read_bandwidth,1,/read_bandwidth,4096,/"
exit "${PIPESTATUS[0]}"'
program teacher_forced 'exec "$bin/teacher_forced_emulated" 1 3'
# The 72,000 texts of a check are minutes of the emulation: its part runs, on the CPU. What kernels draw is test_cuda_draft's and test_cuda_evidence's.
program tandem-verifier 'for word in "$@"; do [ "$word" != --check ] || exec "$bin/emulated/tandem-verifier" "$@" --backend cpu --target "$work/target.bin" --draft "$work/draft.bin"; done
exec "$bin/emulated/tandem-verifier" "$@" --target "$work/target.bin" --draft "$work/draft.bin" --max-tokens 6 --prompts "$work/prompts.jsonl"'
chmod +x "$work/with/nvidia-smi"
for i in 5 11 3; do echo "{\"prompt_tokens\": [$i, $((i * 7 % 32))]}"; done >"$work/prompts.jsonl"

PATH="$work/with:$PATH" python3 -I launch/dev/gpu/check.py --without-pytorch --programs "$work/programs" --output "$work/out" \
    --only "decodes,bandwidth,decode 1b,decode 8b,replays,steps 1b,steps 8b,speculation 1b,speculation 8b,pair,lossless,sanitizer" >"$work/said" 2>&1
code=$?
cat "$work/said"
expect "every part held: 0" '[ $code = 0 ]'
expect "each is told, in one line" '[ "$(grep -v "^tandem: sanitizer: " "$work/said" | grep -c "^tandem: [a-z0-9 ]*: held: .")" = 11 ] && grep -qE "^tandem: sanitizer: (skipped|held): " "$work/said"'
expect "the check of the law is told by its own last line" 'grep -q "^tandem: lossless: held: lossless: 3 checks hold (" "$work/said"'
for part in 'decode 1b' 'decode 8b' 'speculation 1b' 'speculation 8b'; do
    expect "$part: five repetitions beside the one to warm up" '[ "$(grep -c "^$part,[18]b ours,${part% *}," "$work/out/figures.csv")" = 5 ]'
done
for figure in tokens_per_second of_bandwidth speculation acceptance tokens_per_round draft_step verify round_overhead v8 v16; do
    expect "$figure of both shapes is among the figures" '[ "$(grep -c "^summary,[18]b,$figure," "$work/out/figures.csv")" = 2 ]'
done
expect "the pair alone and with drafts" '[ "$(grep -cE "^summary,pair,(solo|speculative),[^,]*,[^,]*,[^,]*,[0-9.]+," "$work/out/figures.csv")" = 2 ]'
expect "it is all in check.json, with the device" 'python3 -I -c "import json, sys; j = json.load(open(sys.argv[1])); assert j[\"device\"][\"name\"] == \"NVIDIA Emulated 1\"" "$work/out/check.json"'
exit $failed
