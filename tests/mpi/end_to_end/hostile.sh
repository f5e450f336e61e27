#!/usr/bin/env bash
# Files and surroundings that mean harm: each is refused or survived, by name and with the right exit code, and nothing is lost.
. "$(dirname "$0")/job.sh"
TARGET=$SOURCE/launch/demo/target

# expect NAME CODE GOT PATTERN: the exit code, and a line of $WORK/err that says why.
expect() {
    checks=$((checks + 1))
    [ "$2" = "$3" ] || fail "$1: exit $3, expected $2: $(head -n 3 "$WORK/err")"
    [ -z "$4" ] || grep -Eq -- "$4" "$WORK/err" || fail "$1: expected '$4', got: $(head -n 3 "$WORK/err")"
}

alone() {
    "$BIN/tandem-verifier" --solo --max-tokens 4 "$@" >"$WORK/out" 2>"$WORK/err"
}

# A tokenizer that makes tokens which the model does not have.
for id in 2048 900000; do
    cp -r "$TARGET" "$WORK/large-id"
    sed -i "0,/\"added_tokens\": \[/s//\"added_tokens\": [{\"id\": $id, \"content\": \"zzz\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": false},/" \
        "$WORK/large-id/tokenizer.json"
    alone --target "$WORK/large-id" --prompt "a zzz"
    expect "token $id" 65 $? "makes token $id of the prompt, the model has 2048"
    rm -rf "$WORK/large-id"
done

# Weights that are not numbers.
cp -r "$TARGET" "$WORK/nan"
head=$((8 + $(od -An -tu8 -N8 "$TARGET/model.safetensors")))
size=$(stat -c %s "$TARGET/model.safetensors")
{ head -c "$head" "$TARGET/model.safetensors"; head -c $((size - head)) /dev/zero | tr '\0' '\377'; } >"$WORK/nan/model.safetensors"
for temperature in 0 1; do
    alone --target "$WORK/nan" --prompt "The" --temperature "$temperature"
    expect "NaN weights at temperature $temperature" 65 $? "no finite logit"
done

# A name with a NUL keeps its line, and the others theirs.
printf '{"prompt":"The sea","id":"x\\u0000y"}\n{"prompt":"The sea","stop":[]}\n' >"$WORK/nul.in"
alone --prompts "$WORK/nul.in" --output "$WORK/nul.jsonl"
expect "an id with a NUL" 0 $? ""
[ "$(grep -c '"finish_reason":"length"' "$WORK/nul.jsonl")" = 2 ] || fail "an id with a NUL: $(cat "$WORK/nul.jsonl")"

# Prompts from a pipe reach the lead, which is not rank 0.
line=$("$BIN/tandem-verifier" --dry-run --prompts - --max-tokens 4 --output "$WORK/piped.jsonl" 2>"$WORK/err")
eval "$line" <"$WORK/nul.in" >"$WORK/out" 2>"$WORK/err"
expect "prompts from a pipe" 0 $? ""
[ "$(wc -l <"$WORK/piped.jsonl")" = 2 ] || fail "prompts from a pipe: $(wc -l <"$WORK/piped.jsonl") results, expected 2"

# Results over their own prompts, and results that cannot be written.
cp "$WORK/nul.in" "$WORK/same.in"
alone --prompts "$WORK/same.in" --output "$WORK/same.in"
expect "output over prompts" 64 $? "is the file of --prompts"
cmp -s "$WORK/nul.in" "$WORK/same.in" || fail "output over prompts: the prompts are gone"
# kept WHAT FILE OPTION...: refused, because FILE is WHAT, and as it was.
kept() {
    local what=$1 file=$2 before
    shift 2
    before=$(sha256sum "$file")
    alone "$@"
    expect "over $what" 64 $? "$file is $what, expected another file"
    checks=$((checks + 1))
    [ "$(sha256sum "$file")" = "$before" ] || fail "over $what: $file is gone"
}
cp "$TARGET/model.safetensors" "$WORK/model.bin" # a file, as a GGUF is one: what is in it is not looked at
echo "temperature = 0" >"$WORK/some.conf"
cp "$WORK/nul.in" "$WORK/results.jsonl.terms"
kept "the model of --target" "$WORK/model.bin" --target "$WORK/model.bin" --prompts "$WORK/nul.in" --output "$WORK/model.bin"
kept "the model of --target" "$WORK/model.bin" --target "$WORK/model.bin" --prompt "The" --stats "$WORK/model.bin"
kept "the model of --draft" "$WORK/model.bin" --target "$TARGET" --draft "$WORK/model.bin" --prompts "$WORK/nul.in" --output "$WORK/model.bin"
kept "the file of --config" "$WORK/some.conf" --config "$WORK/some.conf" --prompts "$WORK/nul.in" --output "$WORK/some.conf"
kept "the terms of --output" "$WORK/results.jsonl.terms" --prompts "$WORK/results.jsonl.terms" --output "$WORK/results.jsonl"
kept "the terms of --output" "$WORK/results.jsonl.terms" --prompts "$WORK/nul.in" --output "$WORK/results.jsonl" --stats "$WORK/results.jsonl.terms"
"$BIN/tandem-verifier" --solo --prompt "The" --max-tokens 4 >/dev/full 2>"$WORK/err"
expect "a completion to a full disk" 74 $? "could not be written"
alone --prompts "$WORK/nul.in" --output /dev/full
expect "results to a full disk" 74 $? "cannot write results"
finish
