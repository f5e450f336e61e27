#!/usr/bin/env bash
# tandem gpu-check where there is no device, and its script with a device and programs that are played: what it says, writes and ends with.
set -u
cd "$(dirname "$0")/../.."
check=launch/dev/gpu/check.py
python3 -I -c 'import argparse, csv, dataclasses, json, queue, re, shutil, signal, statistics, subprocess, threading' 2>/dev/null ||
    { echo "skipped: python3 with its standard library is not there, and gpu-check is written in it"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
expect() { # TEXT COMMAND
    if eval "$2"; then echo "passed: $1"; else echo "FAILED: $1"; failed=1; fi
}

mkdir "$work/without" "$work/with" "$work/programs"
printf '#!/bin/sh\necho "No devices were found"\nexit 6\n' >"$work/without/nvidia-smi"
cat >"$work/with/nvidia-smi" <<'END_OF_PROGRAM'
#!/bin/sh
case "$*" in
*compute_cap*) echo "NVIDIA Played 1, 999.1, 9.0, 1000 MiB, 2000 MHz, 3000 MHz, 700.00 W, Enabled, Disabled" ;;
*) echo "1900 MHz, 3000 MHz, 400.00 W, 50" ;;
esac
END_OF_PROGRAM
chmod +x "$work"/*/nvidia-smi

said=$(PATH="$work/without:$PATH" launch/tandem gpu-check 2>&1)
code=$?
expect "without a device: 69 and one line" '[ $code = 69 ] && [ "$(wc -l <<<"$said")" = 1 ] && [[ $said == *"no NVIDIA device answers"*"nothing was measured" ]]'
said=$(launch/tandem gpu-check --list)
expect "its parts can be listed without one" 'grep -q "^decode 8b: at most" <<<"$said"'
PATH="$work/with:$PATH" python3 -I "$check" --speed >/dev/null 2>&1
expect "an unknown option is a wrong command line" '[ $? = 64 ]'
# Python takes nothing from the folder that this is called in, nor from one that the environment names.
mkdir "$work/trap"
for name in argparse csv json report torch; do echo "open('$work/sprung', 'w')" >"$work/trap/$name.py"; done
said=$(top=$PWD && cd "$work/trap" && PYTHONPATH=$work/trap "$top/launch/tandem" gpu-check --list && PATH="$work/with:$PATH" PYTHONPATH=. "$top/launch/tandem" gpu-check --help)
expect "nothing of the current folder is run" '[ ! -e "$work/sprung" ] && grep -q "^decode 8b: at most" <<<"$said" && grep -q -- "--without-pytorch" <<<"$said"'
said=$(PATH="$work/with:$PATH" python3 -I "$check" --only "bandwidth,nothing" 2>&1)
code=$?
expect "an unknown part beside a known one too, in one line" '[ $code = 64 ] && [[ $said == "tandem: there is no part '"'nothing'"' for --only, expected"* ]] && [ "$(wc -l <<<"$said")" = 1 ]'

cat >"$work/programs/bench_gpu" <<'END_OF_PROGRAM'
#!/usr/bin/env bash
# Decodes of 1b and 8b give 100, 104, 102, 101, 103 tokens/s after 50, which is to warm up; others break.
case "$1 $2" in
"decode 1b" | "decode 8b") ;;
"steps 1b") for rows in 1 8 16; do echo "step,$rows,128,$((1000 + 10 * rows)),us"; done; exit ;;
"steps 8b") sleep 60 ;;
*) echo "broken: it rains"; exit 70 ;;
esac
echo ready
for value in 50 100 104 102 101 103; do
    read -r line || exit
    echo "# tokens: 1 2 3"
    echo "step_bytes,1,128,2000000000,bytes"
    echo "decode,1,128,$value,tokens/s"
    echo "done"
done
[ "$2" = 1b ] && read -r line
END_OF_PROGRAM
printf '#!/bin/sh\necho "read,256,some,100.0,GB/s"\necho "read_bandwidth,4096,best,250.0,GB/s"\n' >"$work/programs/bench_bandwidth"
chmod +x "$work/programs"/*
played() { PATH="$work/with:$PATH" python3 -I "$check" --without-pytorch --programs "$work/programs" --output "$work/$1" --seconds 30 --only "$2" >"$work/$1.out" 2>&1; }

played good "bandwidth,decode 1b,steps 1b"
expect "all that could be run held: 0" '[ $? = 0 ]'
figure() { sed -n "s/^summary,$2,$1,[^,]*,[^,]*,[^,]*,\([^,]*\),.*/\1/p" "$work/good/figures.csv" | head -n 1; }
expect "the rate is the median without the warming up" '[ "$(figure tokens_per_second 1b)" = 102.0 ]'
expect "the share of the bandwidth is bytes x rate / reads" '[ "$(figure of_bandwidth 1b)" = 0.816 ]'
expect "v(8) is the time of 8 rows over that of one" 'awk "BEGIN { v = \"$(figure v8 1b)\" - 1080 / 1010; exit !(v < 1e-9 && v > -1e-9) }"'
expect "bars stand beside figures" 'grep -q "^summary,1b,of_bandwidth,.*,>= 0.7,yes$" "$work/good/figures.csv" && grep -q "^summary,1b,v8,.*,<= 1.05,no$" "$work/good/figures.csv"'
expect "every repetition is kept" '[ "$(grep -c "^decode 1b,1b ours,decode," "$work/good/figures.csv")" = 5 ]'
expect "the device and its load are told" 'python3 -I -c "import json, sys; j = json.load(open(sys.argv[1])); assert j[\"device\"][\"name\"] == \"NVIDIA Played 1\" and j[\"under_load\"][\"clocks.sm\"] == \"1900 MHz\"" "$work/good/check.json"'

played bad "bandwidth,speculation 1b,decode 1b,pair"
expect "one part that fails: 1" '[ $? = 1 ]'
expect "it is one line, with the program's own last words" 'grep -q "^tandem: speculation 1b: failed: ours ended with 70: broken: it rains$" "$work/bad.out"'
expect "the others go on" 'grep -q "^tandem: decode 1b: held: " "$work/bad.out" && grep -q "^tandem: pair: failed: .*tandem-verifier is not there" "$work/bad.out"'

python3 -I - <<'END_OF_PROGRAM'
import sys
sys.path.insert(0, "launch/dev/gpu")
import check
turn = lambda *remarks: type("Played", (), {"remarks": list(remarks)})
assert check.leading_equal([turn("x", "tokens: 1 2 3 4"), turn("tokens: 1 2 9 4", "y")]) == (2, 4)
assert check.leading_equal([turn("tokens: 1 2"), turn("tokens: 1 2 3")]) == (2, 2)
assert check.leading_equal([turn("tokens: 1"), turn()]) == (0, 0)
END_OF_PROGRAM
expect "tokens are counted up to the first that differs" '[ $? = 0 ]'
python3 -I - "$work" <<'END_OF_PROGRAM'
import os, sys, time
sys.path.insert(0, "launch/dev/gpu")
import check
chosen = [("a", 5, None), ("decode 1b", 75, None), ("b", 5, None), ("decode 8b", 70, None), ("c", 5, None)]
assert [check.kept_after(name, chosen) for name, _, _ in chosen] == [145, 70, 70, 0, 0]
assert check.kept_after("steps 1b", [("steps 1b", 5, None)]) == 0
# A test that may skip, and says why; one that may not.
check.BUILD = sys.argv[1]
os.makedirs(os.path.join(check.BUILD, "Testing", "Temporary"))
with open(os.path.join(check.BUILD, "Testing", "Temporary", "LastTest.log"), "w") as file:
    file.write("1/2 Testing: test_cuda_head_device\nskipped: not this\n\n2/2 Testing: test_group_cuda_1_device\nx\nskipped: no libnccl.so.2\n")
ran = " 1/2 Test  #1: test_cuda_head_device ....   Passed  1.0 sec\n 2/2 Test  #2: test_group_cuda_1_device ....***Skipped  1.0 sec\n"
check.call = lambda *words, **more: ran
assert check.tests(None, 0) == "1 programs passed; test_group_cuda_1_device skipped: no libnccl.so.2", check.tests(None, 0)
ran = ran.replace("  Passed", "***Skipped")
try:
    check.tests(None, 0)
    sys.exit(1)
except check.Failure as failure:
    assert str(failure) == "test_cuda_head_device Skipped", failure
END_OF_PROGRAM
expect "the comparison with PyTorch keeps its time; a test without NCCL skips with its reason, any other has failed" '[ $? = 0 ]'

start=$SECONDS
PATH="$work/with:$PATH" python3 -I "$check" --without-pytorch --programs "$work/programs" --output "$work/slow" --seconds 4 --only "steps 8b,steps 1b" >"$work/slow.out" 2>&1
expect "what runs over its time is cut, and what has none left too: 1" '[ $? = 1 ] && [ $((SECONDS - start)) -lt 50 ]'
expect "both are said" 'grep -q "^tandem: steps 8b: failed: .*its time was over$" "$work/slow.out" && grep -q "^tandem: steps 1b: " "$work/slow.out"'
exit $failed
