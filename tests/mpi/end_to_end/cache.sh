#!/usr/bin/env bash
# Keys and values in bf16, in whole jobs: drafts change nothing, whatever the ranks; memory is half. cache.sh BIN
. "$(dirname "$0")/job.sh"
head -n 16 "$PROMPTS" >"$WORK/few.in"
over=(--prompts "$WORK/few.in" --max-tokens 48 --hash-logits --verbose)
narrow=("${over[@]}" --cache bf16)

# run NAME OPTION...
run() {
    local name=$1
    shift
    job "$name" "$@" || fail "$name: exit $?: $(cat "$WORK/$name.err")"
}

# drafted NAME OPTION...: what --solo gives, by drafts.
drafted() {
    local name=$1
    shift
    run "$name" "${narrow[@]}" "$@"
    same "$name" solo
    checks=$((checks + 1))
    [ "0$(figure "$name" accepted)" -gt 0 ] || fail "$name: no draft was ever accepted"
}

# megabytes NAME: of the target's cache on the first verifier, in tenths.
megabytes() { sed -nE 's/.*, ([0-9]+)\.([0-9]) MB of cache, .*/\1\2/p' "$WORK/$1.err" | head -n 1; }

run wide --solo --verifiers 1 --max-sequences 4 "${over[@]}"
run solo --solo --verifiers 1 --max-sequences 4 "${narrow[@]}"
drafted one --verifiers 1
drafted two --verifiers 2 --draft-length 7 --max-sequences 8 --threads 2
drafted four --verifiers 4 --drafters 2
drafted copies --verifiers 2 --draft lookup
drafted layers --verifiers 1 --draft self:layers=3
checks=$((checks + 4))
[ "$(figure solo logits_hash)" != "$(figure wide logits_hash)" ] || fail "the logits are those of a cache in float32"
found=$(megabytes solo) expected=$(($(megabytes wide) / 2))
[ $((found - expected)) -ge -1 ] && [ $((found - expected)) -le 1 ] || fail "$found tenths of a MB of cache, expected $expected"
[ "$(figure solo cache)" = bf16 ] || fail "the figures do not say that the cache is in bf16"
[ -z "$(figure wide cache)" ] || fail "the figures say of what the cache is where nothing was asked for"

# Drawn tokens, too.
narrow+=(--accept coupled --temperature 0.8 --seed 3)
run solo --solo --verifiers 1 "${narrow[@]}"
drafted coupled --verifiers 2

# refused PATTERN OPTION...
refused() {
    local pattern=$1
    shift
    checks=$((checks + 1))
    "$BIN/tandem-verifier" --dry-run --prompt Hello "$@" >"$WORK/out" 2>"$WORK/err"
    [ $? = 64 ] && [ "$(wc -l <"$WORK/err")" = 1 ] && grep -Eq -- "$pattern" "$WORK/err" || fail "$*: $(cat "$WORK/err")"
}
refused "cache is 'f16', expected auto.f32.bf16" --cache f16
refused "--cache f32 is for the CPU backend, expected --backend cpu, not cuda" --cache f32 --backend cuda
finish
