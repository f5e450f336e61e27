#!/usr/bin/env bash
# The measurements of launch/dev/gpu at a tiny shape over the emulation: what they compute is right, whatever they say of time.
# gpu_bench.sh FOLDER_OF_PROGRAMS
set -u
cd "$(dirname "$0")/../.."
bin=$1
failed=0
expect() { # TEXT COMMAND
    if eval "$2"; then echo "passed: $1"; else echo "FAILED: $1"; failed=1; fi
}
value() { sed -n "s/^$1,[^,]*,[^,]*,\([^,]*\),.*/\1/p" <<<"$2" | tail -n 1; }
count() { grep -cE "^$1,[0-9]+,[0-9a-z]+,[0-9.e+-]+,[^,]+\$" <<<"$2"; }

steps=$("$bin/bench_gpu_emulated" steps tiny contexts=20 repetitions=1) || failed=1
expect "a step of 1, 2, 4 .. 64 rows" '[ "$(count step "$steps")" = 7 ] && [ "$(count step_without_logits "$steps")" = 7 ]'
expect "a prompt" '[ "$(count prompt "$steps")" = 1 ]'
# 3 layers of (64 x (64 + 2 x 32) + 64 x 64 + 3 x 64 x 88) and a head of 256 x 64 weights of 2 bytes; 3 x 2 x 2 x 16 numbers of 2 bytes a place
expect "the bytes of a step are those of its weights and its cache" '[ "$(sed -n "s/^step_bytes,1,20,\([0-9]*\),bytes/\1/p" <<<"$steps")" = 215552 ]'

cuda=$("$bin/bench_gpu_emulated" decode tiny contexts=16 tokens=8) || failed=1
cpu=$("$bin/bench_gpu_emulated" decode tiny backend=cpu contexts=16 tokens=8) || failed=1
expect "seeded weights say the same on both backends" '[ -n "$(grep "^# tokens: " <<<"$cpu")" ] && [ "$(grep "^# tokens" <<<"$cpu")" = "$(grep "^# tokens" <<<"$cuda")" ]'

turns=$(printf 'go\ngo\n' | "$bin/bench_gpu_emulated" decode tiny backend=cpu contexts=16 tokens=4 turns=1) || failed=1
expect "a measurement for each line of stdin" '[ "$(grep -c "^done$" <<<"$turns")" = 2 ] && [ "$(count decode "$turns")" = 2 ] && grep -q "^ready$" <<<"$turns"'

same=$("$bin/bench_gpu_emulated" speculation tiny contexts=8 tokens=8 first=1 further=0 length=3) || failed=1
expect "every draft of the same model is accepted" '[ "$(value acceptance "$same")" = 1.0000 ] && [ "$(value tokens_per_round "$same")" = 4.0000 ]'
other=$("$bin/bench_gpu_emulated" speculation tiny backend=cpu contexts=8 tokens=200 first=1 further=3 length=3) || failed=1
expect "other layers lose drafts, and the tokens stay those of the target" 'awk "BEGIN { exit !($(value acceptance "$other") < 0.9) }"'

replays=$("$bin/bench_gpu_emulated" replays tiny contexts=8 repetitions=30) || failed=1
expect "recorded steps have the bits of those that are not, which are said to be without" '[ "$(value replays "$replays")" -gt 0 ] && [ "$(grep -c "^# tiny, .* without overlapping kernels, recorded steps$" <<<"$replays")" = 1 ]'
TANDEM_CUDA=nograph "$bin/bench_gpu_emulated" replays tiny contexts=8 repetitions=14 >/dev/null 2>&1
expect "where nothing is recorded nothing was compared" '[ $? = 65 ]'
"$bin/bench_gpu_emulated" replays tiny backend=cpu contexts=8 repetitions=2 >/dev/null 2>&1
expect "a backend that records nothing is a wrong command line" '[ $? = 64 ]'
read=$("$bin/bench_bandwidth_emulated" 1) || failed=1
expect "a reading, a copy and the best reading" '[ "$(count read_bandwidth "$read")" = 1 ] && grep -q "^copy,1," <<<"$read"'

course=$("$bin/teacher_forced_emulated" 1 3) || failed=1
expect "a decode of the embedded pair holds against the CPU" 'grep -q "^6 tokens: .* the same bits at 1, 5 and 64 rows and all at once$" <<<"$course"'

"$bin/bench_gpu_emulated" decode 70b >/dev/null 2>&1
expect "an unknown shape is a wrong command line" '[ $? = 64 ]'
"$bin/bench_gpu_emulated" decode tiny length=64 >/dev/null 2>&1
expect "a value out of its range is a wrong command line" '[ $? = 64 ]'
exit $failed
