#!/usr/bin/env bash
# Drafts without a model: a file made of a target's own results makes its texts in fewer rounds, and where tokens are compared they are those of --solo, by
# chains and by trees; what no file can be made of, and a file that does not fit, is one line. corpus.sh BIN default|small: small is for builds that run fifty
# times slower, in which fewer jobs run.
. "$(dirname "$0")/job.sh"
amount=$2
[ "$amount" != small ] || { head -n 4 "$FEW" >"$WORK/fewer.in" && FEW=$WORK/fewer.in; }

# refused CODE PATTERN COMMAND...: one line on stderr.
refused() {
    local code=$1 pattern=$2 had=0
    shift 2
    "$@" >"$WORK/said.out" 2>"$WORK/said" </dev/null || had=$?
    checks=$((checks + 1))
    [ $had = "$code" ] && [ "$(wc -l <"$WORK/said")" = 1 ] && grep -q -- "$pattern" "$WORK/said" ||
        fail "$*: exit $had, expected $code and a line with '$pattern', got: $(cat "$WORK/said")"
}
# expect WHAT COMMAND...: it holds.
expect() {
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" || fail "$what"
}

ngram="$BIN/tandem-corpus ngram" datastore="$BIN/tandem-corpus datastore"
common=(--prompts "$FEW" --max-tokens 24 --hash-logits --draft-length 4)
job solo "${common[@]}" --solo
printf '%s\n\n%s\n' "It was a dark and stormy night; the rain fell in torrents." "A second paragraph." >"$WORK/other.txt"
$ngram --output "$WORK/own.ngram" "$WORK/solo.jsonl" "$FEW" >"$WORK/made" || fail "no table: exit $?"
$ngram --order=2 --output="$WORK/other.ngram" -- "$WORK/other.txt" >/dev/null || fail "no table of plain text: exit $?"
$datastore --output "$WORK/own.store" "$WORK/solo.jsonl" "$FEW" >"$WORK/made.store" || fail "no datastore: exit $?"
$datastore --output "$WORK/other.store" "$WORK/other.txt" >/dev/null || fail "no datastore of plain text: exit $?"
expect "what it says of the datastore: $(cat "$WORK/made.store")" grep -qE '^.*/own.store: [0-9]+ tokens, [0-9]+\.[0-9] MB$' "$WORK/made.store"
expect "what it says of the table: $(cat "$WORK/made")" grep -qE '^.*/own.ngram: order 4, of [0-9]+ tokens, [0-9]+\.[0-9] MB$' "$WORK/made"

# Chains, branches and trees.
job own "${common[@]}" --draft "ngram:$WORK/own.ngram"
job found "${common[@]}" --draft "retrieval:$WORK/own.store"
job found-tree "${common[@]}" --draft "retrieval:$WORK/own.store" --tree dynamic --draft-length 12
for name in own found found-tree; do same $name solo; done
expect "rounds by the target's own texts: $(figure found rounds), expected fewer than half of $(figure solo rounds)" \
    [ $((2 * $(figure found rounds))) -lt "$(figure solo rounds)" ]
expect "rounds by the target's own n-grams: $(figure own rounds), expected fewer than half of $(figure solo rounds)" \
    [ $((2 * $(figure own rounds))) -lt "$(figure solo rounds)" ]
if [ "$amount" != small ]; then
    job coupled-solo "${common[@]}" --solo --temperature 0.8 --seed 5 --accept coupled
    job other "${common[@]}" --draft "ngram:$WORK/other.ngram" --run-ahead on
    job tree "${common[@]}" --draft "ngram:$WORK/own.ngram" --tree dynamic --draft-length 12
    job few "${common[@]}" --draft "ngram:$WORK/own.ngram" --draft-vocabulary 300
    job found-ahead "${common[@]}" --draft "retrieval:$WORK/other.store" --run-ahead on
    job random "${common[@]}" --draft random
    for name in other tree few found-ahead random; do same $name solo; done
    job coupled "${common[@]}" --draft "ngram:$WORK/own.ngram" --temperature 0.8 --seed 5 --accept coupled
    same coupled coupled-solo
    job coupled-found "${common[@]}" --draft "retrieval:$WORK/own.store" --temperature 0.8 --seed 5 --accept coupled --tree top-k --draft-length 6
    same coupled-found coupled-solo
    expect "rounds without a draft, which other texts do not have: $(figure found-ahead empty_rounds)" [ "$(figure found-ahead empty_rounds)" -gt 0 ]
    expect "what is random accepted $(figure random accepted) of $(figure random drafted)" [ $((20 * $(figure random accepted))) -lt "$(figure random drafted)" ]
    expect "other n-grams accepted $(figure other accepted), own ones $(figure own accepted)" [ "$(figure other accepted)" -lt "$(figure own accepted)" ]
    expect "a smaller vocabulary accepted $(figure few accepted)" [ "$(figure few accepted)" -lt "$(figure own accepted)" ]

    # Offline the same share is seen.
    "$BIN/tandem-alpha" --draft "ngram:$WORK/own.ngram,retrieval:$WORK/own.store,random" --prompts "$FEW" --max-tokens 24 --temperature 0 >"$WORK/alpha" 2>&1 ||
        fail "alpha: $(cat "$WORK/alpha")"
    expect "alpha of what was made of the same texts above 0.75, and of random below 0.05: $(cat "$WORK/alpha")" \
        awk '/^draft/ { table++ } table == 1 && /own.(ngram|store)/ { good += $2 > 0.75 } table == 1 && /^random/ { good += $2 < 0.05 } END { exit good != 3 }' "$WORK/alpha"

    # A job goes on from its results under the same table alone.
    drawn=("${common[@]}" --quiet --temperature 0.8 --seed 5)
    job drawn "${drawn[@]}" --draft "ngram:$WORK/own.ngram"
    cp "$WORK/own.ngram" "$WORK/mo@ved.ngram"
    line=$("$BIN/tandem-verifier" --dry-run --output "$WORK/drawn.jsonl" --resume "${drawn[@]}" --draft "ngram:$WORK/mo@ved.ngram")
    expect "the same table of another name" eval "$line >'$WORK/said' 2>&1"
    line=$("$BIN/tandem-verifier" --dry-run --output "$WORK/drawn.jsonl" --resume "${drawn[@]}" --draft "ngram:$WORK/other.ngram")
    refused 65 "their draft was another one" bash -c "$line"
fi

# What is wrong is named.
verifier=("$BIN/tandem-verifier" --dry-run --prompt Hello)
head -c 1000 "$WORK/own.ngram" >"$WORK/cut.ngram"
{ head -c 200 "$WORK/own.ngram"; printf x; tail -c +202 "$WORK/own.ngram"; } >"$WORK/changed.ngram"
cp -r "$SOURCE/launch/demo/draft" "$WORK/words" && chmod -R u+w "$WORK/words" && sed -i 's/"!": 4,/"!": 6,/; s/"#": 6,/"#": 4,/' "$WORK/words/tokenizer.json"
$ngram --target "$WORK/words" --output "$WORK/foreign.ngram" "$WORK/other.txt" >/dev/null || fail "no table of another tokenizer: exit $?"
refused 66 "absent.ngram: No such file" "${verifier[@]}" --draft "ngram:$WORK/absent.ngram"
refused 65 "cut.ngram: cut or damaged: 1000 bytes long" "${verifier[@]}" --draft "ngram:$WORK/cut.ngram"
refused 65 "changed.ngram: damaged: it does not have the digest" "${verifier[@]}" --draft "ngram:$WORK/changed.ngram"
refused 65 "foreign.ngram is of another tokenizer than that of the target" "${verifier[@]}" --draft "ngram:$WORK/foreign.ngram"
refused 65 "other.txt: too short for an n-gram table" "${verifier[@]}" --draft "ngram:$WORK/other.txt"
refused 64 "ngram needs a file, as ngram:FILE" "${verifier[@]}" --draft ngram
refused 65 "expected a file that .tandem ngram. wrote" "${verifier[@]}" --draft "ngram:$FEW"
refused 65 "own.ngram: no datastore" "${verifier[@]}" --draft "retrieval:$WORK/own.ngram"
refused 65 "own.store: no n-gram table" "${verifier[@]}" --draft "ngram:$WORK/own.store"
refused 64 "retrieval needs a file, as retrieval:FILE; tandem datastore" "${verifier[@]}" --draft retrieval
refused 64 "unknown option '--order', expected --target, --output or --help" $datastore --order 3 --output "$WORK/none.ngram" "$WORK/other.txt"
refused 64 "expected --output FILE" $ngram "$WORK/other.txt"
refused 64 "other.txt is there and is no file that tandem ngram or tandem datastore made" $ngram --output "$WORK/other.txt" "$WORK/other.txt"
refused 64 "own.ngram is the file of --draft, expected another file" "${verifier[@]}" --draft "ngram:$WORK/own.ngram" --stats "$WORK/own.ngram"
refused 64 "expected a file of texts" $ngram --output "$WORK/none.ngram"
refused 64 "order is '6', expected a whole number from 1 to 5" $ngram --order 6 --output "$WORK/none.ngram" "$WORK/other.txt"
refused 64 "order is '2x'" $ngram --order 2x --output "$WORK/none.ngram" "$WORK/other.txt"
refused 64 "unknown option '--oder', expected --target, --order" $ngram --oder 2 --output "$WORK/none.ngram" "$WORK/other.txt"
refused 64 "output needs a value" $ngram "$WORK/other.txt" --output
refused 66 "absent.txt: No such file" $ngram --output "$WORK/none.ngram" "$WORK/absent.txt"
refused 65 "other.txt.d: not a regular file" $ngram --output "$WORK/none.ngram" "$(mkdir "$WORK/other.txt.d"; echo "$WORK/other.txt.d")"
refused 66 "target nowhere: no such file or folder" $ngram --target nowhere --output "$WORK/none.ngram" "$WORK/other.txt"
refused 74 "cannot be written" $ngram --output "$WORK/absent/none.ngram" "$WORK/other.txt"
printf 'good\nb\xffad\n' >"$WORK/bytes.txt"
refused 65 "bytes.txt: byte 7 of a text is not UTF-8" $ngram --output "$WORK/none.ngram" "$WORK/bytes.txt"
: >"$WORK/empty.txt"
refused 65 "the texts have no token" $ngram --output "$WORK/none.ngram" "$WORK/empty.txt"
printf '{"text":"%04082d"}\n\n\n' 7 >"$WORK/page.jsonl" # just a page, with blank lines at its end
expect "a file of a page, $(wc -c <"$WORK/page.jsonl") bytes, that ends in blank lines" $ngram --output "$WORK/page.ngram" "$WORK/page.jsonl" >/dev/null
printf '{"text":"fine"}\n\n{"text":"b' >"$WORK/lines.jsonl"
refused 65 "lines.jsonl:3: not valid JSON" $ngram --output "$WORK/none.ngram" "$WORK/lines.jsonl"
printf '{"text":"fine"}\n{"error":null,"texts":"wrong"}\n' >"$WORK/lines.jsonl"
refused 65 "lines.jsonl:2: expected an object with a .text., a .prompt. or a .content." $ngram --output "$WORK/none.ngram" "$WORK/lines.jsonl"
# What chats, requests of others, and results of several completions say are texts, too.
printf '%s\n' '{"messages":[{"role":"user","content":"one two"},{"role":"assistant","content":[{"type":"text","text":"three four"}]}]}' \
    '{"id":{"text":"x"},"choices":[{"index":0,"text":"five six","tokens":[1,2]},{"index":1,"text":"seven"}]}' '{"error":"none"}' \
    '{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[]}}]}' '{"body":{"prompt":["a\u0000b"]}}' \
    '{"response":{"body":{"choices":[{"message":{"role":"assistant","content":"eight nine"}}]}}}' >"$WORK/nested.jsonl"
printf '{"text":"%s"}\n' "one two" "three four" "five six" seven 'a\u0000b' "eight nine" >"$WORK/plain.jsonl"
for name in nested plain; do $datastore --output "$WORK/$name.store" "$WORK/$name.jsonl" >/dev/null || fail "$name: exit $?"; done
expect "texts within a line are texts" cmp -s "$WORK/nested.store" "$WORK/plain.store"
# What is no file stays what it is; a link leads to what is written.
mkfifo "$WORK/pipe"
ln -s "$WORK/linked.ngram" "$WORK/link" && : >"$WORK/linked.ngram"
refused 74 "pipe is not a regular file" $ngram --output "$WORK/pipe" "$WORK/other.txt"
expect "a pipe is as before" [ -p "$WORK/pipe" ]
$ngram --output "$WORK/link" "$WORK/other.txt" >/dev/null || fail "through a link: exit $?"
expect "a link is one still, and leads to a table" [ -L "$WORK/link" -a -s "$WORK/linked.ngram" ]
expect "others may read a new table: $(stat -c %a "$WORK/own.ngram")" [ "$(stat -c %a "$WORK/own.ngram")" = 600 ]
ln -s "$WORK/nowhere/table" "$WORK/dangling"
refused 74 "dangling is a link that leads nowhere" $ngram --output "$WORK/dangling" "$WORK/other.txt"
cp "$WORK/other.txt" "$WORK/text.new"
refused 64 "text.new is there and is no file that" $ngram --output "$WORK/text" "$WORK/text.new"
refused 64 "tokenizer.json is there and is no file that" $ngram --target "$WORK/words" --output "$WORK/words/tokenizer.json" "$WORK/other.txt"
$datastore --output "$WORK/foreign.ngram" "$WORK/other.txt" >/dev/null || fail "a datastore in the place of a table: exit $?"
refused 74 "clear_refs cannot be read" $ngram --output /proc/self/clear_refs "$WORK/other.txt"
refused 64 "output is -, expected a file" $ngram --output - "$WORK/other.txt"
refused 64 "unknown option '-x'" $ngram -x --output "$WORK/none.ngram" "$WORK/other.txt"
expect "nothing was written of what is wrong" [ ! -e "$WORK/none.ngram" ]
finish
