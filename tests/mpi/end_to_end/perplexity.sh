#!/usr/bin/env bash
# The perplexity of a text: the same line from 1, 2 and 4 verifiers, however windows are read; that of llama.cpp; and the mean of what echoed prompts
# say, token by token. perplexity.sh BIN
. "$(dirname "$0")/job.sh"
TEXT=$SOURCE/LICENSE

# score OPTION...: the last line of a job goes to SAID, its exit code to CODE.
score() {
    local line
    line=$("$BIN/tandem-verifier" --dry-run --perplexity "$TEXT" "$@" 2>"$WORK/err") || fail "--dry-run $*: $(cat "$WORK/err")"
    SAID=$(eval "$line" 2>"$WORK/err")
    CODE=$?
}

# says OPTION...: it ends with 0 and says EXPECTED.
says() {
    checks=$((checks + 1))
    score "$@"
    [ "$CODE" = 0 ] && [ "$SAID" = "$EXPECTED" ] || fail "$*: exit $CODE, '$SAID', expected '$EXPECTED': $(head -n 3 "$WORK/err")"
}

# What llama-perplexity (llama.cpp 0.5.0-dev) says of the same model in F32, its cache too: "PPL = 68.1889 +/- 4.62232", over 33 chunks of 128.
EXPECTED="perplexity 68.1889 +/- 4.6223 over 2,079 tokens in 33 windows of 128"
says --context 128 --verifiers 1
says --context 128 --verifiers 2 --prefill-chunk 7 --max-sequences 3
says --context 128 --verifiers 4 --threads 2 --prefill-chunk 300
says --context 128 --verifiers 1 --drafters 1 --quiet
checks=$((checks + 1))
[ ! -s "$WORK/err" ] || fail "--quiet: $(cat "$WORK/err")"

score --verifiers 1 --stats "$WORK/stats.json"
checks=$((checks + 1))
grep -q ' in 8 windows of 512$' <<<"$SAID" && [ "$(figure stats windows)" = 8 ] && [ "$(figure stats tokens)" = 0 ] && [ "$(figure stats window)" = 512 ] ||
    fail "--stats: '$SAID', $(cat "$WORK/stats.json")"

# What a job of completions or drafts would do otherwise is told, by who starts the ranks or by the lead.
as_installed
checks=$((checks + 3))
"$tandem" run --perplexity "$TEXT" --verifiers 1 --max-tokens 3 --draft auto --drafters 2 --draft-length 3 >"$WORK/out" 2>"$WORK/err" || fail "idle options: exit $?: $(cat "$WORK/err")"
grep -q "^perplexity " "$WORK/out" || fail "idle options: $(cat "$WORK/out")"
for line in "--draft, --draft-length change nothing: nothing is drafted" "--max-tokens changes nothing: a text is scored, and nothing is completed" \
    "--drafters changes nothing: nothing is drafted"; do
    [ "$(grep -c -- ": $line$" "$WORK/err")" = 1 ] || fail "not one line '$line': $(cat "$WORK/err")"
done

# All tokens of a text, then each window of 100 as a prompt that is echoed: of the second half the mean of what they say.
head -c 2000 "$TEXT" >"$WORK/part.txt"
TEXT=$WORK/part.txt
sed 's/\\/\\\\/g; s/"/\\"/g; s/$/\\n/' "$TEXT" | tr -d '\n' | sed 's/\\n$//; s/.*/{"prompt": "&", "echo": true, "max_tokens": 0}\n/' >"$WORK/part.in"
job part --prompts "$WORK/part.in" --verifiers 1 || fail "a part of the text: exit $?: $(cat "$WORK/part.err")"
sed -nE 's/.*"tokens":\[([^]]*)\].*/\1/p' "$WORK/part.jsonl" | awk -F , '{
    for (first = 1; first + 99 <= NF; first += 100) {
        printf "{\"prompt_tokens\": [%s", $first
        for (i = 1; i < 100; i++) printf ",%s", $(first + i)
        print "], \"echo\": true, \"logprobs\": 0, \"max_tokens\": 0}"
    }
}' >"$WORK/windows.in"
job windows --prompts "$WORK/windows.in" --verifiers 2 || fail "windows: exit $?: $(cat "$WORK/windows.err")"
EXPECTED=$(sed -nE 's/.*"token_logprobs":\[([^]]*)\].*/\1/p' "$WORK/windows.jsonl" | awk -F , '
    { for (i = 52; i <= 100; i++) { sum += $i; squares += $i * $i; count++ } }
    END {
        mean = sum / count
        printf "perplexity %.4f +/- %.4f over %d tokens in %d windows of 100", exp(-mean), sqrt((squares / count - mean * mean) / (count - 1)) * exp(-mean), count, NR
    }')
says --context 100 --verifiers 1

# Not the text that is asked for.
refused() { # CODE PATTERN OPTION...
    local code=$1 pattern=$2
    shift 2
    checks=$((checks + 1))
    score "$@"
    [ "$CODE" = "$code" ] && [ -z "$SAID" ] && [ "$(grep -c 'error: ' "$WORK/err")" = 1 ] && grep -q -- "$pattern" "$WORK/err" ||
        fail "$*: exit $CODE, expected $code and '$pattern': $(cat "$WORK/err")"
}
TEXT=$WORK/empty.txt && : >"$TEXT"
refused 65 "--perplexity $TEXT is empty, expected a text" --verifiers 1
TEXT=$WORK/latin.txt && printf 'caf\351 and more' >"$TEXT"
refused 65 "--perplexity $TEXT is not valid UTF-8 (byte 3)" --verifiers 2
TEXT=$WORK/short.txt && echo "Call me" >"$TEXT"
refused 65 "--perplexity $TEXT has [0-9]* tokens, expected at least a window of 512 (--context)" --verifiers 2
TEXT=$WORK
refused 65 "$WORK: not a regular file" --verifiers 1
finish
