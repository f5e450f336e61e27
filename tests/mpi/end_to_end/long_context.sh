#!/usr/bin/env bash
# A context of 131,072 tokens in a whole job: a prompt of 40,000 (TANDEM_WIDE=1: 100,000) is read to its end under default options, and with a
# watchdog of 2 s; one token too many is one line. long_context.sh BIN default|small TEST, test_long_context, which writes the model.
. "$(dirname "$0")/job.sh"
length=40000
[ -z "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] || length=100000
[ "$2" = small ] && length=20000
"$3" write "$WORK" || exit
long=(--target "$WORK/long.bin" --draft "$WORK/long.bin" --context 131072 --verifiers 2 --drafters 1 --max-tokens 8 --ignore-eos --hash-logits)

# line COUNT: a prompt of so many tokens.
line() {
    awk -v count="$1" 'BEGIN { printf "{\"prompt_tokens\": [3"; for (i = 1; i < count; i++) printf ", %d", (i * i + int(i / 7)) % 32; print "]}" }'
}

line $length >"$WORK/one.in"
for options in "" "--prefill-chunk 48 --threads 2"; do
    name=reads${options:+-in-other-parts}
    checks=$((checks + 1))
    job "$name" "${long[@]}" --prompts "$WORK/one.in" --watchdog 2 $options || fail "$name: exit $?: $(head -n 5 "$WORK/$name.err")"
done
same reads-in-other-parts reads
checks=$((checks + 1))
grep -q '"finish_reason":"length"' "$WORK/reads.jsonl" || fail "the completion did not come to its end: $(cut -c 1-300 "$WORK/reads.jsonl")"

line 131072 >"$WORK/whole.in"
CODE=0
job whole "${long[@]}" --prompts "$WORK/whole.in" || CODE=$?
checks=$((checks + 1))
cat "$WORK/whole.err" "$WORK/whole.jsonl" 2>/dev/null | grep -q 'the prompt has 131072 tokens, the context has room for 131071 and one new one' ||
    fail "a prompt without room for a token (exit $CODE): $(head -n 3 "$WORK/whole.err" | cut -c 1-300)"
checks=$((checks + 1))
CODE=0
job beyond "${long[@]}" --context 131073 --prompts "$WORK/one.in" || CODE=$?
{ [ $CODE != 0 ] && grep -q 'a context of 131073 tokens was asked for, the model has 131072' "$WORK/beyond.err"; } ||
    fail "a context beyond the model's (exit $CODE): $(head -n 3 "$WORK/beyond.err")"
finish
