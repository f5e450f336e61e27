#!/usr/bin/env bash
# Log probabilities of a job: the same to the byte from one verifier and from several, which each know a part of the vocabulary, with drafts and without,
# those of an echoed prompt too, whatever parts it is read in; and none where none are asked for. logprobs.sh BIN
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/batch.sh"
INPUT=$WORK/own.in
head -n 12 "$PROMPTS" | sed 's/}$/, "logprobs": 4}/; 1~2s/}$/, "echo": true}/; 1~4s/}$/, "max_tokens": 0}/' >"$INPUT"
probabilities() { sed -n 's/.*"logprobs":\(.*\),"finish_reason".*/\1/p' "$WORK/$1.jsonl"; } # NAME: of each line
run solo --max-tokens 24 --temperature 0 --solo --verifiers 1
check "solo: exit $CODE" [ "$CODE" = 0 ]
probabilities solo >"$WORK/expected"
check "$(wc -l <"$WORK/expected") lines have log p, expected 12" [ "$(wc -l <"$WORK/expected")" = 12 ]
check "log p of echoed prompts" [ "$(grep -c '"token_logprobs":\[null,-' "$WORK/expected")" = 6 ]
check "an echoed prompt without a completion" [ "$(grep -c '"completion_tokens":0' "$WORK/solo.jsonl")" = 3 ]
number=0
for way in "--verifiers 1" "--verifiers 2 --prefill-chunk 3" "--verifiers 4 --draft-length 3 --max-sequences 2 --threads 2" \
    "--verifiers 2 --draft lookup --draft-length 4 --prefill-chunk 100"; do
    name=drafted$((++number))
    # shellcheck disable=SC2086
    case $way in *lookup*) models=(--target "$SOURCE/launch/demo/target") ;; *) models=() ;; esac
    run $name --max-tokens 24 --temperature 0 ${models[@]+"${models[@]}"} $way
    check "$way: exit $CODE: $(tail -n 3 "$WORK/$name.err")" [ "$CODE" = 0 ]
    probabilities $name >"$WORK/$name.found"
    check "$way: other log p than solo's" cmp "$WORK/expected" "$WORK/$name.found"
done
# A prompt that begins like one before it is read whole where its tokens are asked about, and taken over where they are not.
text="It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife."
INPUT=$WORK/shared.in
for rest in "" ', "echo": true' ''; do echo "{\"prompt\": \"$text\", \"max_tokens\": 4, \"logprobs\": 0$rest}"; done >"$INPUT"
run shared --solo --verifiers 2 --max-sequences 1 --stats "$WORK/shared.json"
check "prompts that begin alike: exit $CODE" [ "$CODE" = 0 ]
check "what was read" [ "$(figure shared prompt_tokens_read)" = $((2 * $(figure shared prefix_tokens_reused))) ]
# On the screen it comes before its completion.
said=$(eval "$("$BIN/tandem-verifier" --dry-run --prompt "The sea was" --echo --max-tokens 4 --verifiers 1 --solo --quiet)")
only=$(eval "$("$BIN/tandem-verifier" --dry-run --prompt "The sea was" --max-tokens 4 --verifiers 1 --solo --quiet)")
check "--prompt --echo: '$said'" [ "$said" = "The sea was$only" ]
said=$(eval "$("$BIN/tandem-verifier" --dry-run --prompt "The sea was" --echo --max-tokens 0 --verifiers 1 --solo --quiet)")
check "--prompt --echo --max-tokens 0: '$said'" [ "$said" = "The sea was" ]
INPUT=$PROMPTS
run none --max-tokens 4 --verifiers 1
check "log p that nobody asked for" [ "$CODE" = 0 ]
check "log p that nobody asked for" [ "$(grep -c logprobs "$WORK/none.jsonl")" = 0 ]
run all --max-tokens 4 --verifiers 1 --logprobs 0
check "--logprobs 0: one number for each token" [ "$(grep -c '"logprobs":{"token_logprobs":\[[-0-9.,e]*\]},' "$WORK/all.jsonl")" = "$(grep -c . "$PROMPTS")" ]
finish
