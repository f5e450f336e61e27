#!/usr/bin/env bash
# A file of long prompts that begin alike: what they share is read once, the results are those of each prompt alone, and a lead that reads for longer
# than --watchdog says is not taken for hung. long_prompts.sh BIN default|small
. "$(dirname "$0")/../mpi/end_to_end/job.sh"
prompts=24 shared=960 own=8 watchdog=2 row_ms=1 # the shared tokens alone take six layers of a row's milliseconds each
[ -z "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] || prompts=64
[ "$2" = small ] && prompts=12 watchdog=10 row_ms=4
tokens=(--max-tokens 12 --temperature 0)

# prompt I: of its own tokens the first tells it from all others, so exactly the shared ones are shared.
header=$(for ((k = 0; k < shared; k++)); do printf '%d,' $((300 + k * 37 % 1500)); done)
prompt() {
    local k
    printf '{"prompt_tokens": [%s%d' "$header" $((300 + $1))
    for ((k = 1; k < own; k++)); do printf ',%d' $((400 + ($1 * 7 + k * 11) % 1500)); done
    echo ']}'
}
for ((i = 0; i < prompts; i++)); do prompt $i; done >"$WORK/long.in"
# Alone: one at a time, without drafts, and what would be shared is overwritten between two of them.
while read -r line; do
    echo "$line"
    echo '{"prompt": "The sea was", "max_tokens": 1}'
done <"$WORK/long.in" >"$WORK/alone.in"
job alone --prompts "$WORK/alone.in" "${tokens[@]}" --max-sequences 1 --solo --drafters 1 --verifiers 1 || fail "alone: exit $?: $(cat "$WORK/alone.err")"
results_of "$WORK/alone.jsonl" | awk 'NR % 2 == 1 { $1 = ($1 / 2) ""; print }' >"$WORK/alone.results"

# reads NAME READ REUSED: the job's figures.
reads() {
    checks=$((checks + 1))
    [ "$(figure "$1" prompt_tokens_read)" = "$2" ] || fail "$1: $(figure "$1" prompt_tokens_read) tokens of prompts were read, expected $2"
    [ "$(figure "$1" prefix_tokens_reused)" = "$3" ] || fail "$1: $(figure "$1" prefix_tokens_reused) tokens were taken over, expected $3"
}

# is_alone NAME: each result is that of its prompt alone.
is_alone() {
    checks=$((checks + 1))
    results_of "$WORK/$1.jsonl" >"$WORK/$1.results"
    [ "$(wc -l <"$WORK/$1.results")" = $prompts ] || fail "$1: $(wc -l <"$WORK/$1.results") results of $prompts: $(head -n 5 "$WORK/$1.err")"
    cmp -s "$WORK/$1.results" "$WORK/alone.results" || fail "$1 differs from each alone:" "$(diff "$WORK/$1.results" "$WORK/alone.results" | head -n 4 | cut -c 1-200)"
}

# long NAME OPTION...: the file at once; the newest token of a prompt goes with the first round.
long() {
    local name=$1
    shift
    job "$name" --prompts "$WORK/long.in" "${tokens[@]}" --drafters 1 --verifiers 2 "$@" || fail "$name: exit $?: $(head -n 5 "$WORK/$name.err")"
    is_alone "$name"
    reads "$name" $((shared + prompts * (own - 1))) $(((prompts - 1) * shared))
}

reads alone $((prompts * (shared + own - 1 + 2))) 0
long at-once
long in-chunks --prefill-chunk 16
began=$(date +%s%3N)
SLOW_RANK=1 SLOW_ROW=$row_ms long slowly --watchdog $watchdog
took=$(($(date +%s%3N) - began))
checks=$((checks + 1))
[ $took -gt $((6 * shared * row_ms)) ] && [ $((6 * shared * row_ms)) -gt $((1000 * watchdog)) ] || fail "slowly: it was not slow ($took ms)"
finish
