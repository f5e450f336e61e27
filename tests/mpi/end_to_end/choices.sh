#!/usr/bin/env bash
# Several completions of a line: each is what the line alone with its seed comes to, at its place in the file, whatever ranks, slots and drafts there are;
# a prompt is read once; a line has its result when all of them have ended, so that a job that was drained or killed goes on from whole lines; and
# what cannot be done with such lines says so. choices.sh BIN FAILING_DISK
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/batch.sh"
DISK=$2
grep -E '^\{[^}]*"prompt": "[^"]{30,}"' "$PROMPTS" | sed -nE 's/.*("prompt": *"([^"\\]|\\.)*").*/\1/p' | head -n 8 >"$WORK/texts"
lines=$(wc -l <"$WORK/texts")
check "there are prompts" [ "$lines" = 8 ]
sed 's/.*/{&}/' "$WORK/texts" >"$WORK/one.in"
sed 's/.*/{&, "n": 3}/' "$WORK/texts" >"$WORK/three.in"
tokens_of() { grep -o '"tokens":\[[^]]*\]' "$1"; }

# choices NAME WAY...: the options of both, and for several completions those of WAY as well.
choices() {
    local name=$1 seed options
    read -ra options <<<"$2"
    shift 2
    INPUT=$WORK/one.in
    for seed in 11 12 13; do
        run "$name-$seed" "${options[@]}" --seed $seed --verifiers 1
        check "$name, seed $seed: exit $CODE" [ "$CODE" = 0 ]
        tokens_of "$WORK/$name-$seed.jsonl" >"$WORK/$name-$seed.tokens"
    done
    paste -d '\n' "$WORK/$name-11.tokens" "$WORK/$name-12.tokens" "$WORK/$name-13.tokens" >"$WORK/$name.expected"
    INPUT=$WORK/three.in
    for way; do
        # shellcheck disable=SC2086
        run job "${options[@]}" --seed 11 $way
        check "$name $way: exit $CODE" [ "$CODE" = 0 ]
        check "$name $way: $(wc -l <"$WORK/job.jsonl") results, expected $lines" [ "$(wc -l <"$WORK/job.jsonl")" = "$lines" ]
        tokens_of "$WORK/job.jsonl" >"$WORK/job.tokens"
        check "$name $way: other tokens than those of lines alone" cmp "$WORK/job.tokens" "$WORK/$name.expected"
    done
}

choices solo "--solo --temperature 0.8 --max-tokens 20" "--verifiers 2" "--verifiers 1 --max-sequences 1" "--verifiers 1 --max-sequences 7"
check "$(sort -u "$WORK/solo.expected" | wc -l) texts differ, expected $((3 * lines))" [ "$(sort -u "$WORK/solo.expected" | wc -l)" = $((3 * lines)) ]
choices rejection "--temperature 0.8 --draft-length 3 --max-tokens 20 --draft-deadline 20000" "--verifiers 2 --max-sequences 2" \
    "--verifiers 1 --drafters 2 --max-sequences 5"
choices coupled "--accept coupled --temperature 0.8 --max-tokens 20" "--verifiers 1" "--verifiers 1 --solo"
choices greedy "--max-tokens 20" "--verifiers 1"
check "at temperature 0 all are equal" [ "$(sort -u "$WORK/greedy.expected" | wc -l)" = "$lines" ]

# A prompt is read once, and what is generated is counted whole.
for n in 1 5; do
    INPUT=$WORK/count-$n.in
    sed "s/.*/{&, \"n\": $n}/" "$WORK/texts" | head -n 1 >"$INPUT"
    run count-$n --solo --verifiers 1 --temperature 1 --ignore-eos --max-tokens 7 --stats "$WORK/count-$n.json"
    check "$n completions: exit $CODE" [ "$CODE" = 0 ]
    check "$n completions: $(figure count-$n tokens) tokens" [ "$(figure count-$n tokens)" = $((7 * n)) ]
    check "$n completions: their usage" grep -q "\"completion_tokens\":$((7 * n))}" "$WORK/count-$n.jsonl"
done
check "tokens of the prompt that were read" [ "$(figure count-5 prompt_tokens_read)" = "$(figure count-1 prompt_tokens_read)" ]
check "tokens that were taken over" [ "$(figure count-5 prefix_tokens_reused)" = $((4 * $(figure count-1 prompt_tokens_read))) ]

# Whole lines outlive the job: it is killed, goes on, is drained, and goes on; and some lines are wrong.
{
    sed 's/.*/{&, "n": 6, "best_of": 9}/' "$WORK/texts"
    echo '{"id": "most", "prompt": "x", "n": 129}'
    echo '{"id": "few", "prompt": "x", "n": 3, "best_of": 2}'
    echo '{"id": "part", "prompt": "x", "n": 1.5}'
    echo '{"custom_id": "chat", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "x"}], "best_of": 2}}'
    echo '{"custom_id": "text", "method": "POST", "url": "/v1/completions", "body": {"prompt": "The sea was", "n": 2, "best_of": 2}}'
} >"$WORK/many.in"
INPUT=$WORK/many.in
options=(--solo --verifiers 1 --temperature 0.9 --seed 3 --max-tokens 24 --max-sequences 4)
run job "${options[@]}"
check "lines of which some are wrong: exit $CODE" [ "$CODE" = 0 ]
check "n is too large" grep -q '"id":"most",.*"error":"line 9: n is 129, expected a whole number from 1 to 128"' "$WORK/job.jsonl"
check "best_of is too small" grep -q '"id":"few",.*"error":"line 10: best_of is 2, expected at least n, 3"' "$WORK/job.jsonl"
check "n is no whole number" grep -q '"id":"part",.*"error":"line 11: n is 1.5, expected a whole number from 1 to 128"' "$WORK/job.jsonl"
check "best_of of a chat" grep -q '"custom_id":"chat",.*"status_code":400,.*"line 12: unknown key body.best_of"' "$WORK/job.jsonl"
check "two choices in OpenAI's form" grep -q '"custom_id":"text",.*"choices":\[{"index":0,"text":.*{"index":1,"text":' "$WORK/job.jsonl"
check "mean log p of what was chosen" [ "$(grep -c '"mean_logprob":-.*"mean_logprob":-' "$WORK/job.jsonl")" = "$lines" ]
mv "$WORK/job.jsonl" "$WORK/reference.jsonl"
paused 3 "${options[@]}"
kill -9 "$LEAD"
ended 60
check "a job that was killed: exit $CODE" [ "$CODE" != 0 ]
has=$(grep -c '^{"index"' "$WORK/job.jsonl.journal")
check "$has whole results are kept" [ "$has" -ge 3 ]
check "only results with all choices are kept" [ "$(grep '^{"index"' "$WORK/job.jsonl.journal" | grep -vc '{"index":5,"text"\|"error"')" = 0 ]
paused $((has + 2)) "${options[@]}" --resume --drain-seconds 0
resume_with USR1
ended 60
check "a job that was drained: exit $CODE, expected 75" [ "$CODE" = 75 ]
check "a line of which nothing is done has no result" [ ! -e "$WORK/job.jsonl" ]
run job "${options[@]}" --resume
check "resumed: exit $CODE" [ "$CODE" = 0 ]
check "resumed: the output differs" cmp "$WORK/job.jsonl" "$WORK/reference.jsonl"

inode=$(stat -c %i "$WORK/job.jsonl")

# What is finished stays, and is told from what other options would make.
run job "${options[@]}" --resume
check "resumed when all was done: exit $CODE: $(tail -n 1 "$WORK/job.err")" [ "$CODE" = 0 ]
check "what was done has changed" cmp "$WORK/job.jsonl" "$WORK/reference.jsonl"
check "it was done again" [ "$(stat -c %i "$WORK/job.jsonl")" = "$inode" ]
run job "${options[@]}" --resume --n 4
check "resumed with another n: exit $CODE, expected 65" [ "$CODE" = 65 ]
check "another n: $(tail -n 1 "$WORK/job.err")" grep -q "job.jsonl is complete, but of another job: n is 1 there and 4 here" "$WORK/job.err"

# The option holds for lines that say nothing; a prompt of the command line has its choices in a result.
INPUT=$WORK/one.in
# The last seed, which JSON's integers do not reach, in results and stats; the first choice has it, the next one begins anew.
run last --n 2 --seed 18446744073709551615 --solo --verifiers 1 --temperature 0.8 --max-tokens 4 --stats "$WORK/last.json"
check "the last seed: exit $CODE" [ "$CODE" = 0 ]
check "the last seed in results" grep -q '"seed":"18446744073709551615"' "$WORK/last.jsonl"
check "the last seed in the stats: $(grep -o '"seed"[^,]*' "$WORK/last.json")" grep -q '"seed": "18446744073709551615"' "$WORK/last.json"
run option --n 3 --seed 11 --solo --verifiers 1 --temperature 0.8 --max-tokens 20
tokens_of "$WORK/option.jsonl" >"$WORK/option.tokens"
check "--n is n of every line" cmp "$WORK/option.tokens" "$WORK/solo.expected"
said=$(eval "$("$BIN/tandem-verifier" --dry-run --prompt "The sea was" --n 2 --output - --max-tokens 4 --verifiers 1 --solo --quiet)")
check "--prompt --n: $said" [ "$(grep -c '"choices":\[{"index":0,"text".*{"index":1,"text"' <<<"$said")" = 1 ]

# What has one completion of each prompt.
INPUT=$WORK/three.in
run check --check quick
check "a check of several completions: exit $CODE, expected 65" [ "$CODE" = 65 ]
check "a check says why" grep -q 'line 1: n is 3, and a check has one completion of each prompt: expected 1' "$WORK/check.err"
"$BIN/tandem-alpha" --draft lookup --prompts "$INPUT" >"$WORK/alpha.out" 2>"$WORK/alpha.err"
code=$?
check "alpha of several completions: exit $code, expected 65" [ "$code" = 65 ]
check "alpha says why: $(cat "$WORK/alpha.err")" grep -q 'line 1: n is 3, and alpha has one completion of each prompt: expected 1' "$WORK/alpha.err"
finish
