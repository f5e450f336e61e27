#!/usr/bin/env bash
# tandem layers: what it tells of a set is what tandem alpha finds on the texts that chose nothing, the first layer out is the cheapest on those that
# choose, jobs with such a drafter say what the target says; what is refused. layers.sh BIN default|small
# BUSY_HOST, the library to preload.
. "$(dirname "$0")/job.sh"
amount=$2
BUSY=$3
DEMO=$SOURCE/launch/demo
as_installed
texts=8 tokens=24
[ "$amount" = small ] && texts=4 tokens=8
head -n $texts "$PROMPTS" | sed 's/, *"max_tokens": *[0-9]*//' >"$WORK/some.in"
awk 'NR % 2 == 1' "$WORK/some.in" >"$WORK/choose.in"
awk 'NR % 2 == 0' "$WORK/some.in" >"$WORK/tell.in"
expect() {
    checks=$((checks + 1))
    eval "$2" || fail "$1"
}
# of FILE NUMBER KEY: a figure of the n-th draft of a file.
of() {
    awk -v n="$2" -v key="\"$3\":" '/"draft":/ { d++ } d == n && $1 == key { print $2 + 0; exit }' "$1"
}
set_of() { # NUMBER: the n-th --draft
    sed -n 's/.*"draft": "\(self:skip=[^"]*\)".*/\1/p' "$WORK/layers.json" | sed -n "$1p"
}

LINE=(--target "$DEMO/target" --max-tokens $tokens --ignore-eos)
LD_PRELOAD=$BUSY PRETENDED_LOAD=9999.5 "$tandem" layers "${LINE[@]}" --prompts "$WORK/some.in" --json "$WORK/layers.json" >"$WORK/out" 2>"$WORK/err" || fail "layers: exit $?: $(cat "$WORK/err")"
expect "a busy host is not told of: $(cat "$WORK/out")" 'sed -n 2p "$WORK/out" | grep -q "^This host was busy in the minute before: a load of 9999.5 on "'
expect "three sets of the six layers, each of one more: $(cat "$WORK/layers.json")" \
    '[ "$(grep -c "\"draft\":" "$WORK/layers.json")" = 3 ] && [ "$(of "$WORK/layers.json" 1 layers)$(of "$WORK/layers.json" 2 layers)$(of "$WORK/layers.json" 3 layers)" = 543 ]'
expect "the table does not have them: $(cat "$WORK/out")" '[ "$(grep -cE "^ +[345]  [01]\.[0-9]{3}  .*  self:skip=[0-5+-]+$" "$WORK/out")" = 3 ]'
expect "the best are not said: $(cat "$WORK/out")" '[ "$(grep -cE "^Where (each round waits|none does, at most).*: (--draft|none pays; the nearest is) self:skip=[0-5+-]+, K [1248], [0-9.]+x" "$WORK/out")" = 2 ]'

# Half of the texts say what the choice is worth.
"$tandem" alpha "${LINE[@]}" --temperature 0 --draft "$(set_of 1)" --draft "$(set_of 2)" --draft "$(set_of 3)" --prompts "$WORK/tell.in" --json "$WORK/tell.json" >/dev/null 2>"$WORK/err" ||
    fail "alpha: exit $?: $(cat "$WORK/err")"
for i in 1 2 3; do
    expect "set $i: alpha $(of "$WORK/layers.json" $i alpha), by tandem alpha $(of "$WORK/tell.json" $i alpha)" \
        'awk -v a="$(of "$WORK/layers.json" $i alpha)" -v b="$(of "$WORK/tell.json" $i alpha)" "BEGIN { exit !(a > 0 && a - b < 1e-6 && b - a < 1e-6) }"'
done
# The others chose the first layer that went.
singles=()
for i in 0 1 2 3 4 5; do singles+=(--draft "self:skip=$i"); done
"$tandem" alpha "${LINE[@]}" --temperature 0 "${singles[@]}" --prompts "$WORK/choose.in" --json "$WORK/choose.json" >/dev/null 2>"$WORK/err" || fail "alpha: exit $?: $(cat "$WORK/err")"
best=$(for i in 1 2 3 4 5 6; do echo "$(of "$WORK/choose.json" $i alpha) $((i - 1))"; done | sort -k 1,1nr -k 2,2n | sed -n '1s/.* //p')
expect "the first layer out is in $(set_of 1), the cheapest is $best" '[ "$(set_of 1)" = "self:skip=$best" ]'

# What it found drafts, on its own and rounded, and says what the target says.
job solo --solo "${LINE[@]}" --temperature 0 --prompts "$WORK/some.in" --hash-logits || fail "solo: exit $?: $(cat "$WORK/solo.err")"
for draft in "$(set_of 2)" "$(set_of 1),bits=4" "$(set_of 1),layers=5"; do
    job drafted "${LINE[@]}" --temperature 0 --prompts "$WORK/some.in" --draft "$draft" --draft-length 3 --drafters 1 --verifiers 1 --hash-logits || fail "$draft: exit $?: $(cat "$WORK/drafted.err")"
    same drafted solo
    expect "$draft: no draft was accepted" '[ "$(figure drafted accepted)" -gt 0 ]'
done

refused() { # CODE PATTERN COMMAND...
    local code=$1 pattern=$2
    shift 2
    checks=$((checks + 1))
    "$tandem" "$@" >"$WORK/out" 2>"$WORK/err"
    [ $? = "$code" ] && [ "$(wc -l <"$WORK/err")" = 1 ] && grep -Eq -- "$pattern" "$WORK/err" || fail "$*: expected $code and one line with '$pattern': $(cat "$WORK/err")"
}
refused 64 "--draft self: skip names layer 6, expected some of 0 to 5: .*/target has 6 layers$" run "${LINE[@]}" --draft self:skip=2+6 --prompt x
refused 64 "skip names layer 4, expected some of 0 to 3: .*/target has 6 layers, of which layers=.. leaves the first$" run "${LINE[@]}" --draft self:layers=4,skip=4 --prompt x
refused 64 "skip names all 6 layers of .*/target, expected one or more to be left" run "${LINE[@]}" --draft self:skip=0-5 --prompt x
refused 64 "--least is 6 and .*/target has 6 layers, expected fewer" layers "${LINE[@]}" --least 6
refused 64 "--least is 'all', expected a whole number from 1 to 127" layers "${LINE[@]}" --least all
refused 64 "--draft is not for tandem layers, which looks for one" layers "${LINE[@]}" --draft lookup
refused 64 "--draft is not for tandem layers, which looks for one" layers "${LINE[@]}" --draft self
refused 64 "--resume is not for tandem layers, which runs no job" layers "${LINE[@]}" --resume
refused 64 "--draft self has no key '3', expected .*; numbers of a list have [+] between" run "${LINE[@]}" --draft self:skip=2,3 --prompt x
refused 64 "--json is -, expected a file" layers "${LINE[@]}" --json -
refused 64 "--prompt is one text, expected --prompts with two or more" layers "${LINE[@]}" --prompt x
head -n 1 "$WORK/some.in" >"$WORK/one.in"
refused 65 "1 prompt can be completed, expected 2 or more" layers "${LINE[@]}" --prompts "$WORK/one.in"
refused 64 "--dry-run is not for tandem layers, which runs no job" layers "${LINE[@]}" --dry-run
refused 64 "--tokens is '1', expected a whole number from 2" layers "${LINE[@]}" --tokens 1
# Two texts are enough, and so many tokens and no more; of one text there is no error.
"$tandem" layers "${LINE[@]}" --max-tokens 100 --tokens 16 --least 5 --prompts "$WORK/some.in" >"$WORK/out" 2>"$WORK/err" || fail "few tokens: exit $?: $(cat "$WORK/err")"
expect "few tokens: $(cat "$WORK/out")" 'grep -q "^16 tokens of the target.s own in 2 texts" "$WORK/out" && [ "$(grep -cE "^ +5  [01]\.[0-9]{3}      - " "$WORK/out")" = 1 ]'
refused 66 "$WORK/none: No such file" layers "${LINE[@]}" --prompts "$WORK/none"
refused 64 "--prompts needs a value: FILE" layers "${LINE[@]}" --prompts
refused 74 "--json $WORK/none/x: No such file" layers "${LINE[@]}" --json "$WORK/none/x"
cp "$WORK/some.in" "$WORK/kept.in"
refused 64 "--json $WORK/some.in is of what is read here, expected another file" layers "${LINE[@]}" --prompts "$WORK/some.in" --json "$WORK/some.in"
expect "the prompts are as they were" 'cmp -s "$WORK/some.in" "$WORK/kept.in"'
cp -r "$DEMO/target" "$WORK/copy"
refused 64 "--json $WORK/copy/config.json is of what is read here" layers --target "$WORK/copy" --json "$WORK/copy/config.json"
refused 66 "$WORK/none.in: No such file" layers "${LINE[@]}" --prompts "$WORK/none.in" --json "$WORK/left.json"
expect "what failed leaves no file" '[ ! -e "$WORK/left.json" ]'
# A path that is no text is written all the same, and what changes nothing is told.
odd=$WORK/$(printf 'odd\377')
mv "$WORK/copy" "$odd"
"$tandem" layers --target "$odd" --tokens 16 --least 5 --prompts "$WORK/some.in" --json "$WORK/odd.json" --draft-length 3 --temperature 1 >"$WORK/out" 2>"$WORK/err"
expect "an odd path: exit $?: $(cat "$WORK/err")" 'grep -Fq "/odd\\\\xff\"" "$WORK/odd.json"'
expect "told: $(cat "$WORK/err")" 'grep -q -- "--temperature, --draft-length change nothing here: tandem layers runs no rounds, and the target decodes greedily" "$WORK/err"'
finish
