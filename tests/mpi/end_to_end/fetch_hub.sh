#!/usr/bin/env bash
# `tandem fetch hf:OWNER/NAME`: models of the Hugging Face hub, which played_hub.py plays on this host: what arrives, what is kept of what was cut, what
# is refused and by which words, who gets the token. Then jobs with what was fetched. fetch_hub.sh BIN CONVERT
. "$(dirname "$0")/job.sh"
CONVERT=$2
python3 -I -c 'import difflib, fcntl, http.server, json, ssl, sys, urllib.request; sys.exit(sys.version_info < (3, 9))' 2>/dev/null ||
    { echo "skipped: python3 with its standard library is not there, in which tandem fetch asks the hub"; exit 77; }
[ -e /etc/ssl/certs ] || { echo "skipped: ca-certificates is not there, by which tandem fetch knows the hub"; exit 77; }
unset HF_HOME HF_TOKEN_PATH NO_PROXY no_proxy https_proxy HTTPS_PROXY ALL_PROXY all_proxy
export XDG_CACHE_HOME=$WORK/cache HF_TOKEN=hf_secretOfTheTest http_proxy=http://127.0.0.1:1 # a hub on this host is asked without a proxy
HUB=$WORK/hub MODELS=$WORK/hub/models
CACHE=$XDG_CACHE_HOME/tandem OWN=$XDG_CACHE_HOME/tandem/.fetch-$(id -u)
mkdir -p "$WORK/bin" "$WORK/share/tandem" "$MODELS/owner" "$MODELS/owner/forms/sub dir" "$MODELS/owner/nothing" "$MODELS/owner/half"
cp "$BIN/tandem-verifier" "$BIN/tandem-drafter" "$SOURCE/launch/tandem" "$WORK/bin/" # as installed
cp -r "$SOURCE/launch/fetch" "$WORK/share/tandem/"
cp -r "$SOURCE/launch/demo/target" "$MODELS/owner/small"
for name in README.md .gitattributes pytorch_model.bin consolidated.safetensors onnx/model.safetensors; do
    install -D /dev/null "$MODELS/owner/small/$name" && echo other >"$MODELS/owner/small/$name"
done
"$CONVERT" "$SOURCE/launch/demo/draft" "$MODELS/owner/forms/tiny-Q8_0.gguf" q8_0 gpt-2 || fail "cannot make the model"
head -c 30000 "$MODELS/owner/forms/tiny-Q8_0.gguf" >"$MODELS/owner/forms/sub dir/other.gguf"
echo none >"$MODELS/owner/nothing/README.md"
cp "$SOURCE/launch/demo/target/model.safetensors" "$MODELS/owner/half/"
for size in 3B 1B; do
    install -D "$MODELS/owner/forms/tiny-Q8_0.gguf" "$MODELS/bartowski/Llama-3.2-$size-Instruct-GGUF/Llama-3.2-$size-Instruct-Q4_K_M.gguf"
done
for size in 1.5 0.5; do
    install -D "$MODELS/owner/forms/tiny-Q8_0.gguf" "$MODELS/Qwen/Qwen2.5-Coder-${size}B-Instruct-GGUF/qwen2.5-coder-${size}b-instruct-q4_k_m.gguf"
done
does() { echo "$1" >"$HUB/does.new" && mv "$HUB/does.new" "$HUB/does"; }
does good
python3 -I "$HERE/played_hub.py" "$HUB" >"$WORK/hub.out" 2>&1 &
PLAYED=$!
disown $PLAYED # no job that the end of this script waits for
trap 'kill $PLAYED 2>/dev/null; rm -rf "$WORK"' EXIT
await "the played hub" '[ -s "$HUB/ports" ]' || { cat "$WORK/hub.out"; finish; }
read -r PORT OTHER <"$HUB/ports"
export HF_ENDPOINT=http://127.0.0.1:$PORT
FORM=hf:owner/forms/tiny-Q8_0.gguf PLACE=$CACHE/hf/owner/forms/tiny-Q8_0.gguf
SIZE=$(stat -c %s "$MODELS/owner/forms/tiny-Q8_0.gguf")
SUM=$(sha256sum <"$MODELS/owner/forms/tiny-Q8_0.gguf") SUM=${SUM%% *}
PARTIAL=$OWN/$SUM.partial

# holds WHAT COMMAND: the command is true.
holds() {
    checks=$((checks + 1))
    eval "$2" || fail "$1: $(cat "$WORK/err")"
}
# fetch CODE FILES PATTERN OPTION...: what it ends with, how many files were asked for, and its last line of stderr.
fetch() {
    local code=$1 files=$2 pattern=$3 found
    shift 3
    : >"$HUB/log"
    timeout -k 5 60 "$WORK/bin/tandem" fetch "$@" >"$WORK/out" 2>"$WORK/err" </dev/null
    found=$?
    cat "$WORK/out" "$WORK/err" >>"$WORK/said"
    holds "fetch $*: exit $found, expected $code" "[ $found = $code ]"
    holds "fetch $*: $(grep -c '/resolve/' "$HUB/log") files, expected $files" '[ "$(grep -c "^hub .*/resolve/" "$HUB/log")" = '"$files ]"
    holds "fetch $*: expected '$pattern'" 'tail -n 1 "$WORK/err" | grep -qE "^tandem: .*$pattern"'
    holds "fetch $*: a control character" '! LC_ALL=C grep -q "[^ -~]" "$WORK/err"'
}
# refused CODE WORD FILES PATTERN [NAME]: the same where the hub does WORD; nothing is there then.
refused() {
    does "$2"
    fetch "$1" "$3" "$4" "${5-$FORM}"
    holds "$2: left $(ls -AR "$CACHE")" '[ "$(find "$CACHE" -name "*.partial" -o -path "$CACHE/hf/*" -type f | wc -l)" = 0 ] && [ ! -e "$WORK/escaped.safetensors" ]'
    does good
}

# Names, none of which the hub hears of.
long=$(printf '%300s' '' | tr ' ' a)
for name in hf: hf:owner hf:owner/ hf:/etc/passwd hf:../x hf:owner/.. hf:owner/small/../x hf:owner/small//x hf:owner/small/ hf:owner/small/. hf:owner/small@ \
    hf:owner/small@../x $'hf:owner/small/a\nb' $'hf:own\x1b[2Jer/small' "hf:owner/small/$long" "hf:$long/small" $'hf:owner/small/a\xff'; do
    fetch 64 0 "names nothing of the hub, expected hf:OWNER/NAME, hf:OWNER/NAME/FILE or hf:OWNER/NAME@REVISION$" "$name"
    holds "'$name' was asked for" '[ ! -s "$HUB/log" ] && [ "$(wc -l <"$WORK/err")" = 1 ]'
done

# What the hub and the other host refuse.
refused 69 gated 1 "owner/forms is gated \(401\): expected its licence accepted at $HF_ENDPOINT/owner/forms by the account of this token$"
HF_TOKEN='' refused 69 gated-403 1 "owner/forms is gated \(403\): expected its licence accepted at .*/owner/forms, and a token of that account in HF_TOKEN$"
HF_TOKEN='' refused 69 private 0 "owner/forms does not exist or is private \(401\): expected OWNER/NAME as the hub has it, or a token in HF_TOKEN that may read it$"
refused 69 forbidden 0 "owner/forms does not exist or is private \(403\): expected"
refused 64 good 0 "owner/none does not exist \(404\): expected OWNER/NAME, and a revision, as the hub has them$" hf:owner/none
refused 64 good 0 "owner/forms has no file tiny-Q8.gguf, expected one as tiny-Q8_0.gguf" hf:owner/forms/tiny-Q8.gguf
refused 69 many 1 "127.0.0.1:$PORT had too many requests \(429\): try again in 30 s$"
refused 69 many-silent 0 "had too many requests \(429\): try again later$"
refused 69 fault 0 "127.0.0.1:$PORT has a fault of its own \(503\): try again later$"
refused 69 gone 1 "owner/forms lists tiny-Q8_0.gguf, and 127.0.0.1:$PORT answers 404 for it: try again later$"
refused 69 denied 1 "127.0.0.1:$OTHER answers 403, expected a file of owner/forms$"
refused 69 to-http 1 "127.0.0.1:$PORT leads to http://example.invalid, which is not asked: expected https$"
refused 69 to-no-address 1 "cannot reach 127.0.0.1:[0-9]+: Invalid IPv6 URL; expected a network, or a proxy in HTTPS_PROXY$"
refused 69 to-ftp 1 "leads to ftp://127.0.0.1, which is not asked: expected https$"
refused 69 to-file 1 "leads in a circle or to no web address \(302\): expected https$"
refused 69 circle 0 "leads in a circle or to no web address \(302\): expected https$"
# What they say is not so.
refused 65 nonsense 0 "what 127.0.0.1:$PORT lists of owner/forms cannot be read: Expecting value.*; expected names, sizes and checksums of files$"
refused 65 list 0 "lists of owner/forms cannot be read: a value of another kind; expected names, sizes and checksums of files$"
refused 65 names 0 "lists of owner/forms cannot be read: a value of another kind; expected names, sizes and checksums of files$"
refused 69 cutlist 0 "127.0.0.1:$PORT ended the connection after 14 of [0-9]+ bytes of what it lists of owner/forms$"
refused 65 endless 0 "lists of owner/forms is without end, expected 33554432 bytes at most$"
refused 65 unknown 0 "cannot be read: no 'size'; expected names, sizes and checksums of files$"
refused 65 hostile 0 "cannot be read: a file's name is '\.\./\.\./\.\./escaped.safetensors'; expected" hf:owner/small
refused 65 absolute 0 "cannot be read: a file's name is '/tmp/escaped.safetensors'; expected" hf:owner/small
refused 65 control 0 "cannot be read: a file's name is 'a.x1b\[2Jb'; expected"
refused 74 huge 0 "$FORM needs 100000000.0 GB more, and $CACHE has room for"
refused 65 shorter 1 "127.0.0.1:$OTHER sends more of tiny-Q8_0.gguf than $((SIZE - 1000)) bytes, which were listed: it is not kept$"
refused 65 altered 1 "tiny-Q8_0.gguf of owner/forms has another checksum than $SUM: it is not kept$"
refused 65 good 0 "owner/nothing has neither model.safetensors nor a GGUF file, expected one of them$" hf:owner/nothing
refused 65 good 0 "owner/half has no config.json, without which its safetensors cannot be read$" hf:owner/half
refused 64 good 0 "owner/forms has GGUF files alone, expected one of these names$" hf:owner/forms
holds "the names of the forms" 'grep -qx "tandem: hf:owner/forms/sub dir/other.gguf, [0-9]* kB" "$WORK/err" && grep -q "^tandem: $FORM, " "$WORK/err"'
# Nobody answers, and addresses.
HF_ENDPOINT=http://127.0.0.1:1 fetch 69 0 "cannot reach 127.0.0.1:1: Connection refused; expected a network, or a proxy in HTTPS_PROXY$" "$FORM"
HF_ENDPOINT=https://127.0.0.1:$PORT fetch 69 0 "cannot reach 127.0.0.1:$PORT: .*SSL.*; expected a network" "$FORM"
HF_ENDPOINT=https://hub.invalid HTTPS_PROXY=http://127.0.0.1:1 fetch 69 0 "cannot reach .*: Connection refused; expected a network" "$FORM"
for address in http://hub.invalid http://127.0.0.1.hub.invalid file:///etc "http://127.0.0.1:$PORT@hub.invalid"; do
    HF_ENDPOINT=$address fetch 64 0 "HF_ENDPOINT is '$address', expected https://HOST$" "$FORM"
done
HF_TOKEN=$'hf_secretOfTheTest\nX-Other: 1' fetch 64 0 "HF_TOKEN has no token of the hub, expected one word$" "$FORM"

# Cut, then ended by signals: what came is kept, and nothing of it is sent again. The list of processes does not have the token.
does cut
fetch 69 1 "127.0.0.1:$OTHER ended the connection after $((SIZE / 2)) of $SIZE bytes of tiny-Q8_0.gguf; [0-9]* kB of it are kept, and the same command goes on from there$" "$FORM"
holds "what is kept" '[ "$(stat -c %s "$PARTIAL")" = $((SIZE / 2)) ] && [ ! -e "$PLACE" ]'
does good
fetch 0 1 "$PLACE is there$" "$FORM"
holds "the rest alone is sent" 'grep -qx "other /owner/forms/tiny-Q8_0.gguf 206 bytes=$((SIZE / 2))- $((SIZE - SIZE / 2)) -" "$HUB/log"'
holds "it says what is there" 'grep -qx "tandem: fetching tiny-Q8_0.gguf, [0-9]* kB, [0-9]* kB of it are there" "$WORK/err"'
holds "the file" 'cmp -s "$MODELS/owner/forms/tiny-Q8_0.gguf" "$PLACE" && [ ! -e "$PARTIAL" ]'
fetch 0 0 "$PLACE is there$" "$FORM"
for signal in INT TERM KILL; do
    rm "$PLACE"
    does hang
    set -m
    "$WORK/bin/tandem" fetch "$FORM" >"$WORK/out" 2>"$WORK/err" </dev/null &
    group=$!
    set +m
    await "half a file" '[ -s "$PARTIAL" ]'
    holds "the token is in the list of processes" '! cat /proc/[0-9]*/cmdline 2>/dev/null | grep -q "secret[O]fTheTest"'
    kill "-$signal" -- "-$group"
    wait $group 2>/dev/null
    code=$?
    holds "$signal: exit $code" '[ $signal:$code = INT:130 ] || [ $signal:$code = TERM:143 ] || [ $signal:$code = KILL:137 ]'
    holds "$signal: the file is there" '[ ! -e "$PLACE" ]'
    [ $signal = KILL ] || holds "$signal: what it says" 'tail -n 1 "$WORK/err" | grep -qE "^tandem: ended; [0-9]* kB of it are kept, and the same command goes on from there$"'
    kept=$(stat -c %s "$PARTIAL")
    does good
    fetch 0 1 "$PLACE is there$" "$FORM"
    holds "$signal: the rest alone is sent" 'grep -q " 206 bytes=$kept- $((SIZE - kept)) -$" "$HUB/log"'
done
# The other side sends the whole again; what was kept is another's; it lists more than there is.
rm "$PLACE" && head -c 1000 "$MODELS/owner/forms/tiny-Q8_0.gguf" >"$PARTIAL"
does whole
fetch 0 1 "$PLACE is there$" "$FORM"
holds "the whole" 'grep -q " 200 bytes=1000- $SIZE -$" "$HUB/log"'
does good
rm "$PLACE" && head -c 1000 /dev/zero >"$PARTIAL"
fetch 65 1 "has another checksum than $SUM: it is not kept$" "$FORM"
holds "it is not kept" '[ ! -e "$PARTIAL" ]'
does longer
fetch 69 1 "ended the connection after $SIZE of $((SIZE + 1000)) bytes" "$FORM"
does good
fetch 0 0 "$PLACE is there$" "$FORM" # all of it was kept
printf x >>"$PLACE"
fetch 0 1 "$PLACE is there$" "$FORM"

# A folder: what is read of it and no more, config.json last, the token to the hub alone.
SMALL=$CACHE/hf/owner/small
does altered
fetch 65 2 "tokenizer.json of owner/small has another checksum" hf:owner/small
holds "no model without config.json" '[ ! -e "$SMALL/config.json" ]'
does good
fetch 0 4 "$SMALL is there$" hf:owner/small
holds "another folder" 'diff -r "$SOURCE/launch/demo/target" "$SMALL"'
holds "config.json comes last" 'grep "/resolve/" "$HUB/log" | tail -n 1 | grep -q "/config.json "'
holds "one line for each file" '[ "$(grep -c "^tandem: fetching " "$WORK/err")" = 4 ] && [ "$(wc -l <"$WORK/err")" = 5 ]'
holds "the token goes to the hub" '! grep "^hub " "$HUB/log" | grep -qv " Bearer hf_secretOfTheTest$"'
holds "and not to the other host" 'grep -q "^other " "$HUB/log" && ! grep "^other " "$HUB/log" | grep -qv " -$"'
fetch 0 0 "$SMALL is there$" hf:owner/small
echo '{"model_max_length": 7}' >"$MODELS/owner/small/tokenizer_config.json" # a new revision
fetch 0 2 "$SMALL is there$" hf:owner/small
holds "what is new, and config.json" '[ "$(grep -cE "/(tokenizer_)?config.json " "$HUB/log")" = 2 ] && cmp -s "$MODELS/owner/small/tokenizer_config.json" "$SMALL/tokenizer_config.json"'
fetch 0 1 "$CACHE/hf/owner/small@v1/config.json is there$" hf:owner/small@v1/config.json
holds "the revision" 'grep -q "^hub /api/models/owner/small/revision/v1[?]" "$HUB/log"'
fetch 0 1 "$CACHE/hf/owner/small@team/next/try/config.json is there$" hf:owner/small@team/next/try/config.json
holds "a branch with slashes" 'grep -q "^hub /api/models/owner/small/revision/team%2Fnext%2Ftry[?]" "$HUB/log"'
fetch 0 5 "$CACHE/hf/owner/small@team/next/try is there$" hf:owner/small@team/next/try
fetch 64 0 "owner/small does not exist \(404\): expected OWNER/NAME, and a revision, as the hub has them$" hf:owner/small@team/none/config.json
does moved
fetch 0 1 "$CACHE/hf/owner/forms/sub dir/other.gguf is there$" "hf:owner/forms/sub dir/other.gguf"
holds "a list that has moved within the hub gets the token, too" '[ "$(grep -c "^hub /api/.* Bearer hf_secretOfTheTest$" "$HUB/log")" = 2 ]'
does good
# The token's other place; none.
mkdir -p "$XDG_CACHE_HOME/huggingface"
echo hf_secretOfTheTest >"$XDG_CACHE_HOME/huggingface/token"
unset HF_TOKEN
fetch 0 0 "$PLACE is there$" "$FORM"
holds "a token from its file" 'grep -q " Bearer hf_secretOfTheTest$" "$HUB/log"'
rm "$XDG_CACHE_HOME/huggingface/token"
fetch 0 0 "$PLACE is there$" "$FORM"
holds "no token" 'grep -q "^hub .* -$" "$HUB/log"'
holds "the token was shown" '! grep -q secretOfTheTest "$WORK/said"'
# A disk that takes no more; folders that are somebody else's.
rm "$PLACE"
(ulimit -f 100; fetch 74 1 "cannot write .*: File too large; 102 kB of it are kept, and the same command goes on from there$" "$FORM"; echo $checks $failures >"$WORK/counts")
read -r checks failures <"$WORK/counts"
fetch 0 1 "$PLACE is there$" "$FORM"
mkdir -p "$WORK/linked" "$WORK/open/hf/owner" "$WORK/theirs"
ln -s "$WORK/theirs" "$WORK/linked/hf"
chmod 777 "$WORK/open/hf/owner"
fetch 74 0 "$WORK/linked/hf is not a folder of this user alone, and nothing is kept there$" "$FORM" --to "$WORK/linked"
fetch 74 0 "$WORK/open/hf/owner is not a folder of this user alone" "$FORM" --to "$WORK/open"
holds "something was kept there" '[ -z "$(ls -A "$WORK/theirs" "$WORK/open/hf/owner" | grep -v :)" ]'
# Python takes nothing from the folder that this is called in.
mkdir "$WORK/trap" && cd "$WORK/trap"
for name in hub ssl json; do echo "open('$WORK/sprung', 'w')" >$name.py; done
fetch 0 1 "there/hf/owner/forms/tiny-Q8_0.gguf is there$" "$FORM" --to there
holds "it ran what lies in the current folder" '[ ! -e "$WORK/sprung" ] && [ ! -e "$WORK/share/tandem/fetch/__pycache__" ]'
cd "$SOURCE"
# A terminal has a bar.
rm "$PLACE"
TERM=xterm timeout -k 5 60 script -qfec "stty cols 100; exec $WORK/bin/tandem fetch $FORM" "$WORK/typed" >/dev/null 2>&1 </dev/null
holds "a bar, cleared at the end: $(cat -A "$WORK/typed")" 'grep -q "tiny-Q8_0.gguf \[.*\] .* of .*B, .*B/s" "$WORK/typed" && grep -q $'"'\r\033\[Ktandem: '"'"$PLACE is there" "$WORK/typed"'
# A pair with a short name.
fetch 0 2 "$CACHE/llama-3.2-draft.gguf is there$" llama-3.2
fetch 65 2 "what came has another SHA-256 than expected, and is not kept: hf:.*1.5b-instruct-q4_k_m.gguf is not [0-9a-f]*, hf:.* is not [0-9a-f]*$" qwen2.5-coder --from hub
holds "it was kept" '[ ! -e "$CACHE/qwen2.5-coder.gguf" ] && [ ! -e "$CACHE/qwen2.5-coder-draft.gguf" ]'
sed -i -E "s/^(qwen2.5-coder.* )[0-9a-f]{64}/\1$(sha256sum <"$PLACE" | cut -d' ' -f1)/" "$WORK/bin/tandem"
fetch 0 2 "$CACHE/qwen2.5-coder-draft.gguf is there$" qwen2.5-coder --from hub
fetch 0 0 "$CACHE/qwen2.5-coder-draft.gguf is there$" qwen2.5-coder --from hub
holds "the pair" 'cmp -s "$PLACE" "$CACHE/llama-3.2.gguf" && cmp -s "$PLACE" "$CACHE/llama-3.2-draft.gguf"'
holds "the list" '"$WORK/bin/tandem" fetch | grep -q "^llama-3.2 .*; it is there: $CACHE/llama-3.2.gguf$"'

# What was fetched is a model, by its name.
text=$("$WORK/bin/tandem" run --quiet --target hf:owner/small --draft "$FORM" --prompt "The sea was" --max-tokens 8 --verifiers 1 2>"$WORK/err")
same=$("$WORK/bin/tandem" run --quiet --prompt "The sea was" --max-tokens 8 --verifiers 1 2>>"$WORK/err")
holds "by name '$text', embedded '$same'" '[ -n "$text" ] && [ "$text" = "$same" ]'
"$WORK/bin/tandem" run --target hf:owner/none --prompt Hi >"$WORK/out" 2>"$WORK/err"
holds "one that is not there: exit $?" 'grep -qE "hf:owner/none has not been fetched yet, expected $CACHE/hf/owner/none: launch/tandem fetch hf:owner/none$" "$WORK/err"'
holds "the played hub broke: $(cat "$WORK/hub.out")" '[ ! -s "$WORK/hub.out" ]'
finish
