#!/usr/bin/env bash
# Keys and values in bf16 and FP8, in whole jobs: drafts change nothing, greedy and coupled, whatever the ranks; memory is half and a quarter. cache.sh BIN
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/passes.sh"
over=(--prompts "$FEW" --max-tokens 48 --max-sequences 8 --seed 3 --hash-logits --verbose)

# run NAME SEQUENCES LENGTH OPTION...: two passes, drafted unless LENGTH is 0, and what they must be equal to, unless NAME is that.
run() {
    local name=$1 sequences=$2 length=$3 solo=false pass
    shift 3
    [ "$length" != 0 ] || solo=true
    plan
    pass greedy $solo "$length" 0 rejection "$sequences" 16
    pass coupled $solo "$length" 0.8 coupled "$sequences" 16
    passes "$name" "${over[@]}" "$@"
    [ $solo = false ] || return
    for pass in greedy coupled; do
        same_pass "$name.$pass" "$alone.$pass"
        drafted "$name.$pass"
    done
}

# megabytes NAME: of the target's cache on the first verifier, in tenths.
megabytes() { sed -nE 's/.*, ([0-9]+)\.([0-9]) MB of cache, .*/\1\2/p' "$WORK/$1.err" | head -n 1; }

alone=solo
run wide 4 0 --verifiers 1
run solo 4 0 --verifiers 1 --cache bf16
run one 4 4 --verifiers 1 --cache bf16
run two 8 7 --verifiers 2 --threads 2 --cache bf16
run four 4 4 --verifiers 4 --drafters 2 --cache bf16
run copies 4 4 --verifiers 2 --draft lookup --cache bf16
run layers 4 4 --verifiers 1 --draft self:layers=3 --cache bf16
alone=bytes
run bytes 4 0 --verifiers 1 --cache fp8
run bytes_one 4 4 --verifiers 1 --cache fp8
run bytes_two 8 7 --verifiers 2 --threads 2 --cache fp8
checks=$((checks + 7))
cmp -s <(given solo.greedy | grep hash) <(given wide.greedy | grep hash) && fail "the logits are those of a cache in float32"
found=$(megabytes solo) expected=$(($(megabytes wide) / 2))
[ $((found - expected)) -ge -1 ] && [ $((found - expected)) -le 1 ] || fail "$found tenths of a MB of cache, expected $expected"
cmp -s <(given solo.greedy | grep hash) <(given bytes.greedy | grep hash) && fail "the logits of a cache in FP8 are those of one in bf16"
found=$(megabytes bytes) expected=$(($(megabytes wide) / 4))
[ $((found - expected)) -ge -1 ] && [ $((found - expected)) -le 1 ] || fail "$found tenths of a MB of cache in FP8, expected $expected"
head -n 1 "$WORK/bytes.passes" | grep -q '"cache":"fp8"' || fail "the figures do not say that the cache is in FP8"
head -n 1 "$WORK/solo.passes" | grep -q '"cache":"bf16"' || fail "the figures do not say that the cache is in bf16"
head -n 1 "$WORK/wide.passes" | grep -q '"cache":' && fail "the figures say of what the cache is where nothing was asked for"

# refused PATTERN OPTION...
refused() {
    local pattern=$1
    shift
    checks=$((checks + 1))
    "$BIN/tandem-verifier" --dry-run --prompt Hello "$@" >"$WORK/out" 2>"$WORK/err"
    [ $? = 64 ] && [ "$(wc -l <"$WORK/err")" = 1 ] && grep -Eq -- "$pattern" "$WORK/err" || fail "$*: $(cat "$WORK/err")"
}
refused "cache is 'f16', expected auto.f32.bf16.fp8" --cache f16
refused "--cache f32 is for the CPU backend, expected --backend cpu, not cuda" --cache f32 --backend cuda
finish
