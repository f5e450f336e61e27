#!/usr/bin/env bash
# Log probabilities of a job: the same to the byte from one verifier and from several, which each know a part of the vocabulary, with drafts and without;
# and none where none are asked for. logprobs.sh BIN
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/batch.sh"
INPUT=$WORK/own.in
head -n 12 "$PROMPTS" | sed 's/}$/, "logprobs": 4}/' >"$INPUT"
probabilities() { sed -n 's/.*"logprobs":\(.*\),"finish_reason".*/\1/p' "$WORK/$1.jsonl"; } # NAME: of each line
run solo --max-tokens 24 --temperature 0 --solo --verifiers 1
check "solo: exit $CODE" [ "$CODE" = 0 ]
probabilities solo >"$WORK/expected"
check "$(wc -l <"$WORK/expected") lines have log p, expected 12" [ "$(wc -l <"$WORK/expected")" = 12 ]
number=0
for way in "--verifiers 1" "--verifiers 2" "--verifiers 4 --draft-length 3" "--verifiers 2 --draft lookup --draft-length 4"; do
    name=drafted$((++number))
    # shellcheck disable=SC2086
    case $way in *lookup*) models=(--target "$SOURCE/launch/demo/target") ;; *) models=() ;; esac
    run $name --max-tokens 24 --temperature 0 ${models[@]+"${models[@]}"} $way
    check "$way: exit $CODE: $(tail -n 3 "$WORK/$name.err")" [ "$CODE" = 0 ]
    probabilities $name >"$WORK/$name.found"
    check "$way: other log p than solo's" cmp "$WORK/expected" "$WORK/$name.found"
done
INPUT=$PROMPTS
run none --max-tokens 4 --verifiers 1
check "log p that nobody asked for" [ "$CODE" = 0 ]
check "log p that nobody asked for" [ "$(grep -c logprobs "$WORK/none.jsonl")" = 0 ]
run all --max-tokens 4 --verifiers 1 --logprobs 0
check "--logprobs 0: one number for each token" [ "$(grep -c '"logprobs":{"token_logprobs":\[[-0-9.,e]*\]},' "$WORK/all.jsonl")" = "$(grep -c . "$PROMPTS")" ]
finish
