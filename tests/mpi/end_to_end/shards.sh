#!/usr/bin/env bash
# Logits do not depend on how the target is cut up to its kv heads, on threads, or on how the input is cut: logits_hash is equal, and hashes of the parts of a
# file sum to that of the whole. shards.sh BIN default|small: small is for builds that run fifty times slower; TANDEM_WIDE=1 in the environment: all
# 200 prompts. Half of them are drawn at temperature 1.
. "$(dirname "$0")/job.sh"
tokens=64 count=32 cut=13
[ "${TANDEM_WIDE:-}${TANDEM_LONG:-}" = "" ] || count=200 cut=77
[ "$2" = small ] && tokens=4
head -n $count "$PROMPTS" | sed '0~2s/}$/, "temperature": 1}/' >"$WORK/all.in"
head -n $cut "$WORK/all.in" >"$WORK/first.in"
tail -n +$((cut + 1)) "$WORK/all.in" >"$WORK/second.in"

# solo NAME OPTION...
solo() {
    local name=$1
    shift
    job "$name" --solo --max-sequences 8 --hash-logits --max-tokens $tokens --seed 5 "$@" || fail "$name: exit $?"
}

solo width1 --verifiers 1 --threads 1 --prompts "$WORK/all.in"
for width in 2 4; do
    solo "width$width" --verifiers "$width" --threads 1 --prompts "$WORK/all.in"
    same "width$width" width1
done
solo threads2 --verifiers 1 --threads 2 --prompts "$WORK/all.in"
same threads2 width1
solo threads3 --verifiers 2 --threads 3 --prompts "$WORK/all.in"
same threads3 width1

# More verifiers than kv heads: each of the four is two neighbours'. Bits are those of the width, drafted as solo.
head -n 6 "$WORK/all.in" >"$WORK/six.in"
solo width8 --verifiers 8 --threads 1 --prompts "$WORK/six.in" --accept coupled
job width8_drafted --verifiers 8 --threads 1 --prompts "$WORK/six.in" --accept coupled --hash-logits --max-sequences 3 --max-tokens $tokens --seed 5 --draft-length 4 \
    --draft-deadline 20000 || fail "width8_drafted: exit $?"
same width8_drafted width8
[ "$(figure width8_drafted accepted)" != 0 ] || fail "width8_drafted: no draft was accepted"

# The file cut in two gives what the whole gives.
solo first --verifiers 1 --prompts "$WORK/first.in"
solo second --verifiers 2 --prompts "$WORK/second.in" --first-index $cut
first=$(figure first logits_hash)
second=$(figure second logits_hash)
sum=$(printf '%016x' $((0x$first + 0x$second)))
checks=$((checks + 2))
[ "$sum" = "$(figure width1 logits_hash)" ] || fail "parts: $first + $second = $sum, the whole has $(figure width1 logits_hash)"
cat "$WORK/first.jsonl" "$WORK/second.jsonl" >"$WORK/both.jsonl"
cmp -s <(results_of "$WORK/both.jsonl") <(results_of "$WORK/width1.jsonl") || fail "parts: their results differ from those of the whole"

head -n 40 "$PROMPTS" >"$WORK/biased.in"
# Each shard biases and bans its own part of the vocabulary, and the drafter all of it: followers and drafter must have heard of every token.
biased=(--prompts "$WORK/biased.in" --accept coupled --temperature 0.9 --seed 6 --top-p 0.95 --frequency-penalty 0.5 --repetition-penalty 1.2
    --logit-bias 0:6 --logit-bias 202:-100 --logit-bias 1748:3 --logit-bias 2047:5 --bad-word "the" --bad-word "of the" --bad-word ", and"
    --stop-token-id 1000 --stop-token-id 17 --stop " and then" --min-tokens 3)
solo biased1 --verifiers 1 "${biased[@]}"
for width in 2 4; do
    solo "biased$width" --verifiers "$width" "${biased[@]}"
    same "biased$width" biased1
done
job biased_drafted --verifiers 2 --draft-length 5 --hash-logits --max-sequences 8 --max-tokens $tokens "${biased[@]}" || fail "biased_drafted: exit $?"
same biased_drafted biased1
[ "$(figure biased_drafted accepted)" != 0 ] || fail "biased_drafted: no draft was accepted"
checks=$((checks + 2))
grep -Eq '"tokens":\[([0-9]+,)*202[],]' "$WORK/biased1.jsonl" && fail "token 202 came in spite of its bias"

# A journal, or a whole output, is gone on with in the same bits alone.
checks=$((checks + 2))
job width8 --solo --max-sequences 8 --hash-logits --max-tokens $tokens --seed 5 --verifiers 4 --threads 1 --prompts "$WORK/six.in" --accept coupled --resume
[ $? = 65 ] && grep -q "verifiers is 8 there and not given here" "$WORK/width8.err" || fail "8 verifiers, gone on with by 4: $(cat "$WORK/width8.err")"
job width1 --solo --max-sequences 8 --hash-logits --max-tokens $tokens --seed 5 --verifiers 4 --threads 1 --prompts "$WORK/all.in" --resume || fail "1 verifier, gone on with by 4: exit $?: $(cat "$WORK/width1.err")"
finish
