#!/usr/bin/env bash
# A file in OpenAI's batch format just runs: each line has its result in OpenAI's format with the texts of our own, a bad one ends nobody else, and a
# job that was drained goes on. openai.sh BIN
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/batch.sh"
INPUT=$WORK/own.in
sed -nE 's/.*("prompt": *"([^"\\]|\\.)*").*/{\1}/p' "$PROMPTS" | head -n 40 >"$INPUT"
run own --max-tokens 40 --solo --verifiers 1
check "our own form: exit $CODE" [ "$CODE" = 0 ]

# The same lines, and three that ask for what is not done or cannot be read.
number=0
while read -r line; do
    number=$((number + 1))
    printf '{"custom_id": "r-%d", "method": "POST", "url": "/v1/completions", "body": {"model": "m", "max_tokens": 40, %s}\n' $number "${line#\{}"
done <"$INPUT" >"$WORK/openai.in"
{
    cat "$WORK/openai.in"
    echo '{"custom_id": "chat", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}}'
    echo '{"custom_id": "two", "method": "POST", "url": "/v1/completions", "body": {"model": "m", "prompt": "x", "n": 2}}'
    echo '{"custom_id": "cut'
} >"$WORK/all.in"
INPUT=$WORK/all.in
job=(--verifiers 2 --max-tokens 3) # what a line says counts
run job "${job[@]}"
check "OpenAI's form: exit $CODE" [ "$CODE" = 0 ]
check "OpenAI's form: $(wc -l <"$WORK/job.jsonl") lines, expected $((number + 3))" [ "$(wc -l <"$WORK/job.jsonl")" = $((number + 3)) ]
sed -nE 's/^\{"id":[0-9]+,"index":([0-9]+),"text":("([^"\\]|\\.)*").*"finish_reason":"([a-z]+)".*"prompt_tokens":([0-9]+),"completion_tokens":([0-9]+).*/\1 \2 \4 \5 \6/p' \
    "$WORK/own.jsonl" >"$WORK/own.texts"
sed -nE 's/^\{"id":"batch_req_([0-9]+)","custom_id":"r-[0-9]+","response":\{"status_code":200,.*"text":("([^"\\]|\\.)*").*"finish_reason":"([a-z]+)".*"prompt_tokens":([0-9]+),"completion_tokens":([0-9]+).*/\1 \2 \4 \5 \6/p' \
    "$WORK/job.jsonl" >"$WORK/openai.texts"
check "the texts of both forms differ" cmp "$WORK/own.texts" "$WORK/openai.texts"
check "$(wc -l <"$WORK/own.texts") texts were compared, expected $number" [ "$(wc -l <"$WORK/own.texts")" = "$number" ]
check "the chat line" grep -q '"custom_id":"chat","response":{"status_code":400,.*"message":"line 41: url is /v1/chat/completions' "$WORK/job.jsonl"
check "the line with two choices" grep -q '"custom_id":"two","response":{"status_code":400,.*"message":"line 42: body.n is not supported, expected 1"' "$WORK/job.jsonl"
check "the line that is cut" grep -q '"custom_id":null,"response":{"status_code":400,.*"message":"line 43 is not valid JSON' "$WORK/job.jsonl"
check "stderr names the line and the id of a bad request" grep -q 'request 41 ("two"): line 42: body.n' "$WORK/job.err"
mv "$WORK/job.jsonl" "$WORK/reference.jsonl"

start job "${job[@]}" --resume --drain-seconds 0
await_results job 5
kill -USR1 "$PID" 2>/dev/null
ended 60
check "drained: exit $CODE, expected 75, or 0 where it was done by then" [ "$CODE" = 75 -o "$CODE" = 0 ]
run job "${job[@]}" --resume
check "resumed: exit $CODE" [ "$CODE" = 0 ]
check "resumed: the output differs" cmp "$WORK/job.jsonl" "$WORK/reference.jsonl"
run job "${job[@]}" --resume
check "complete: exit $CODE, expected 0 and nothing to do" [ "$CODE" = 0 ]
finish
