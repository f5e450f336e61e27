#!/usr/bin/env bash
# A file in OpenAI's batch format just runs: each line has its result in OpenAI's format with the texts of our own, a bad one ends nobody else, and a
# job that was drained goes on. Chats are prompts that a template makes. openai.sh BIN
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
    echo '{"custom_id": "live", "method": "POST", "url": "/v1/completions", "body": {"model": "m", "prompt": "x", "stream": true}}'
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
check "the chat line" grep -q '"custom_id":"chat","response":{"status_code":400,.*"message":"line 41: body: the model has no chat template: --template NAME gives one' "$WORK/job.jsonl"
check "the line that is to stream" grep -q '"custom_id":"live","response":{"status_code":400,.*"message":"line 42: body.stream is not supported, expected false"' "$WORK/job.jsonl"
check "the line that is cut" grep -q '"custom_id":null,"response":{"status_code":400,.*"message":"line 43 is not valid JSON' "$WORK/job.jsonl"
check "stderr names the line and the id of a bad request" grep -q 'request 41 ("live"): line 42: body.stream' "$WORK/job.err"
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

# Chats: the base pair has no template, so one is named. The same messages in OpenAI's form, in ours, and as the prompt that the template makes.
{
    echo '{"custom_id": "c", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "Who is there?"}], "max_completion_tokens": 24}}'
    echo '{"custom_id": "parts", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Who is there?"}]}]}}'
    echo '{"custom_id": "tool", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "tool", "content": "x"}]}}'
    echo '{"custom_id": "t", "method": "POST", "url": "/v1/completions", "body": {"prompt": "<|user|>\nWho is there?<|endoftext|>\n<|assistant|>\n"}}'
} >"$WORK/chat.in"
INPUT=$WORK/chat.in
run chat --verifiers 2 --max-tokens 24 --template zephyr
check "chats: exit $CODE" [ "$CODE" = 0 ]
answer() { sed -nE 's/.*"custom_id":"'"$1"'","response":\{"status_code":200,.*"'"$2"'":("([^"\\]|\\.)*").*/\1/p' "$WORK/chat.jsonl"; }
check "a chat has no answer in OpenAI's form" grep -q '"custom_id":"c",.*"object":"chat.completion",.*"message":{"role":"assistant","content":"..*","refusal":null}' "$WORK/chat.jsonl"
check "a chat's answer is $(answer c content), that of its prompt $(answer t text)" [ "$(answer c content)" = "$(answer t text)" ]
check "a chat of parts answers $(answer parts content)" [ "$(answer parts content)" = "$(answer t text)" ]
check "the message of a tool" grep -q '"custom_id":"tool","response":{"status_code":400,.*line 3: body: messages\[0\].role is not' "$WORK/chat.jsonl"
text=$(answer t text)
echo '{"messages": [{"role": "user", "content": "Who is there?"}]}' >"$WORK/own-chat.in"
INPUT=$WORK/own-chat.in
run own-chat --max-tokens 24 --solo --verifiers 1 --template zephyr
check "a chat in our own form: exit $CODE" [ "$CODE" = 0 ]
check "a chat in our own form: $(cat "$WORK/own-chat.jsonl"), expected the text $text" grep -qF "\"text\":$text" "$WORK/own-chat.jsonl"
run marks --max-tokens 24 --solo --verifiers 1 --template chatml # marks that its tokenizer does not know are plain text
check "marks as plain text: exit $CODE" [ "$CODE" = 0 ]
check "marks as plain text: $(cat "$WORK/marks.jsonl")" grep -q '"finish_reason":"[ls]' "$WORK/marks.jsonl"
"$BIN/tandem-verifier" --dry-run --prompts "$INPUT" --template vicuna >"$WORK/out" 2>"$WORK/err"
check "an unknown template: exit $?, expected 64" [ $? = 64 ]
check "an unknown template: $(cat "$WORK/err")" grep -q 'chatml.*zephyr' "$WORK/err"
finish
