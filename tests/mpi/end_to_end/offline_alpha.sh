#!/usr/bin/env bash
# tandem alpha: what it expects is what jobs of the same prompts count, at each rule and draft; a draft that is the target; what is refused.
# offline_alpha.sh BIN default|small BUSY_HOST, the library to preload. TANDEM_WIDE=1 in the environment: half as many tokens again, and jobs of every draft at temperature 0, too.
. "$(dirname "$0")/job.sh"
amount=$2
BUSY=$3
DEMO=$SOURCE/launch/demo
as_installed
head -n 24 "$PROMPTS" >"$WORK/some.in"
ln -s "$DEMO/draft" "$WORK/some.draft"
temperatures=(0 1) tokens=40
[ -z "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] || tokens=64
[ "$amount" = small ] && head -n 8 "$PROMPTS" >"$WORK/some.in" && temperatures=(1)

# of FILE DRAFT KEY: a number of the draft's.
of() {
    awk -v n="$2" -v key="\"$3\":" '/"draft":/ { d++ } d == n && $1 == key { print $2 + 0; exit }' "$1"
}
# place FILE DRAFT PLACE: mean and error of what was accepted at a place.
place() {
    awk -v n="$2" -v place="$3" '/"draft":/ { d++ } /"accepted_at_place"/ { at = 0; inside = 1 } /"tokens_per_round"/ { inside = 0 }
        d == n && inside && /"mean"/ { at++; mean = $2 + 0 } d == n && inside && /"error"/ && at == place { print mean, $2 + 0; exit }' "$1"
}
# among FILE DRAFT CHOICES: the shares at places 1 to 8 of a draft's so many best.
among() {
    awk -v n="$2" -v choices="$3" '/"draft":/ { d++; inside = 0 } /"among_best"/ { inside = 1 } d == n && inside && /"choices"/ { at = $2 + 0 }
        d == n && inside && at == choices && /"mean"/ { printf "%s ", $2 }' "$1"
}
# places FILE DRAFT: the shares that were accepted at places 1 to 8.
places() {
    awk -v n="$2" '/"draft":/ { d++ } /"accepted_at_place"/ { inside = 1 } /"tokens_per_round"/ { inside = 0 } d == n && inside && /"mean"/ { printf "%s ", $2 }' "$1"
}
expect() {
    checks=$((checks + 1))
    eval "$2" || fail "$1"
}

# agrees NAME DRAFT K FILE: a job with K drafts a round against the expectation for its draft, within 4 standard errors of both.
agrees() {
    local name=$1 draft=$2 k=$3 file=$4
    checks=$((checks + 1))
    awk -v name="$name" -v k="$k" -v alpha="$(of "$file" "$draft" alpha)" -v error="$(of "$file" "$draft" alpha_error)" \
        -v rounds="$(figure "$name" full_rounds)" -v tokens="$(figure "$name" full_round_tokens)" \
        -v by_place="$(awk -v n="$draft" -v k="$k" '/"draft":/ { d++ } d == n && /"draft_length":/ { length_ = $2 + 0 } d == n && length_ == k && /"by_place":/ { print $2 + 0; exit }' "$file")" 'BEGIN {
            measured = tokens / rounds
            bound = 4 * sqrt((k / 2.7) ^ 2 / rounds + (k * error) ^ 2) # a round has 1 to k + 1 tokens, which spread by k / 2.7 at most as measured
            printf "%s: %.3f tokens a round in %d rounds, %.3f expected, at most %.3f apart\n", name, measured, rounds, by_place, bound
            exit !(rounds > 30 && alpha > 0 && measured - by_place < bound && by_place - measured < bound)
        }' || fail "$name: the job and what was expected differ"
}

for temperature in "${temperatures[@]}"; do
    "$tandem" alpha --target "$DEMO/target" --draft "$DEMO/draft,self:layers=3" --draft "self:bits=4,layers=4" --prompts "$WORK/some.in" --ignore-eos --max-tokens $tokens \
        --temperature $temperature --seed 3 --json "$WORK/$temperature.json" >"$WORK/$temperature.txt" 2>"$WORK/err" || fail "alpha at $temperature: exit $?: $(cat "$WORK/err")"
    cat "$WORK/$temperature.txt"
    expect "no speed is predicted: $(tail -n 8 "$WORK/$temperature.txt")" \
        '[ "$(grep -c "\"waits\": [0-9]" "$WORK/$temperature.json")" = 12 ] && tail -n 1 "$WORK/$temperature.txt" | grep -Eq "^v, a step with K drafts over one without: K 1 [0-9.]+, K 2 [0-9.]+, K 4 [0-9.]+, K 8 [0-9.]+$"'
    # The first choice is the greedy one, more of them are no less, and of copies none is known.
    expect "choices: $(cat "$WORK/$temperature.txt")" 'awk -v t="$temperature" "/^The target.s token is among/ { at = NR } at && NR == at + 2 { first = \$(NF - 7); good = first > 0.3 }
        at && NR >= at + 2 && NR <= at + 4 && \$NF != \"-\" { for (i = NF - 6; i <= NF; i++) good = good && \$i >= \$(i - 1) && \$i <= 1; rows++ }
        at && NR > at && NR <= at + 4 && \$NF == \"-\" { unknown++ } END { exit !(good && rows + unknown == 3 && unknown <= 1) }" "$WORK/$temperature.txt"'
    # Greedy drafts are the first choice at every place. More choices at the first are those of a draft wherever it stands, one after the other.
    expect "the first choice by places: $(among "$WORK/$temperature.json" 1 1), $(places "$WORK/$temperature.json" 1)" \
        '[ $temperature != 0 ] || [ "$(among "$WORK/0.json" 1 1)" = "$(places "$WORK/0.json" 1)" ]'
    for draft in 1 2 3; do
        expect "choices of draft $draft by places: $(cat "$WORK/$temperature.json")" '{ awk -v n=$draft "/\"draft\":/ { d++ } /\"guessed_after_all\"/ { inside = 1 } /\"support\"/ { inside = 0 }
                d == n && inside && /^ *[0-9]/ { sum += \$1; print \"G\", sum }" "$WORK/$temperature.json"
            for choices in 1 2 3 4 5; do echo "A $(among "$WORK/$temperature.json" $draft $choices)"; done; } |
            awk "\$1 == \"G\" { guessed[++g] = \$2 } \$1 == \"A\" { a++; bad += NF != 9 || \$2 < 0.2 || \$2 > 1 || \$2 - guessed[a] > 1e-6 || guessed[a] - \$2 > 1e-6
                for (i = 3; i <= 6; i++) bad += \$i + 0 < 0.2 || \$i + 0 > 1 } END { exit !(g == 8 && a == 5 && bad == 0) }"'
    done
    expect "no rows of depths: $(cat "$WORK/$temperature.txt")" '[ "$(grep -cE "^.{32}  [1-5]  ( +[01][.][0-9]{3}){3}" "$WORK/$temperature.txt")" = 15 ]'
    expect "not three drafts: $(cat "$WORK/$temperature.json")" '[ "$(grep -c "\"draft\":" "$WORK/$temperature.json")" = 3 ]'
    number=1
    for draft in "$DEMO/draft" self:layers=3 self:bits=4,layers=4; do
        [ $temperature = 1 ] || [ $number = 1 ] || [ -n "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] || break
        job "t$temperature.$number" --target "$DEMO/target" --draft "$draft" --prompts "$WORK/some.in" --ignore-eos --max-tokens $tokens --temperature $temperature --seed 3 \
            --verifiers 1 --draft-length 4 --draft-deadline 10000 || fail "$draft at $temperature: exit $?: $(cat "$WORK/t$temperature.$number.err")"
        agrees "t$temperature.$number" $number 4 "$WORK/$temperature.json"
        number=$((number + 1))
    done
done

# Drafts with the target's own noise.
"$tandem" alpha --target "$DEMO/target" --draft "$DEMO/draft" --prompts "$WORK/some.in" --ignore-eos --max-tokens $tokens --temperature 1 --accept coupled --seed 3 \
    --json "$WORK/noise.json" >"$WORK/out" || fail "coupled: exit $?"
job coupled --target "$DEMO/target" --draft "$DEMO/draft" --prompts "$WORK/some.in" --ignore-eos --max-tokens $tokens --temperature 1 --accept coupled --seed 3 --verifiers 1 \
    --draft-length 4 --draft-deadline 10000 || fail "coupled: exit $?: $(cat "$WORK/coupled.err")"
agrees coupled 1 4 "$WORK/noise.json"
# D_LK is what p and q say: of the same pair it is the same under either rule, whatever share of drafts the rule accepts.
expect "D_LK: $(of "$WORK/1.json" 1 divergence) by rejection, $(of "$WORK/noise.json" 1 divergence) coupled" \
    'awk -v a="$(of "$WORK/1.json" 1 divergence)" -v b="$(of "$WORK/noise.json" 1 divergence)" -v alpha="$(of "$WORK/noise.json" 1 alpha)" -v error="$(of "$WORK/1.json" 1 alpha_error)" \
        "BEGIN { exit !(a > 0 && b > 0 && a - b < 6 * error && b - a < 6 * error && 1 - alpha != b) }"'

# The target as its own draft: all is accepted where it is greedy, and all that its q keeps where it is not. A copy of itself is never a surprise.
"$tandem" alpha --target "$DEMO/draft" --draft "$DEMO/draft,lookup" --prompts "$WORK/some.in" --max-tokens 32 --json "$WORK/self.json" >"$WORK/out" || fail "itself: exit $?"
expect "its own draft: $(cat "$WORK/self.json")" '[ "$(of "$WORK/self.json" 1 alpha)" = 1 ] && [ "$(place "$WORK/self.json" 1 4)" = "1 0" ]'
expect "of itself, and of copies: $(cat "$WORK/self.json")" '[ "$(among "$WORK/self.json" 1 1)" = "1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, " ] &&
    [ "$(among "$WORK/self.json" 2 5)" = "null, null, null, null, null, null, null, null, " ]'
expect "copies are waited for: $(cat "$WORK/self.json")" \
    'awk "/\"draft\":/ { d++ } d == 2 && /\"waits\"/ { waits = \$2 + 0 } d == 2 && /\"ahead\"/ { n++; if (\$2 + 0 != waits) exit 1 } END { exit n != 4 }" "$WORK/self.json"'
expect "lookup runs a model: $(cat "$WORK/self.json")" '[ "$(of "$WORK/self.json" 2 c)" = 0 ]'
"$tandem" alpha --target "$DEMO/draft" --draft "$DEMO/draft" --prompts "$WORK/some.in" --max-tokens 32 --temperature 1 --json "$WORK/self.json" >"$WORK/out" || fail "itself at 1: exit $?"
expect "its own draft at 1: $(of "$WORK/self.json" 1 alpha)" 'awk -v a="$(of "$WORK/self.json" 1 alpha)" "BEGIN { exit !(a > 0.93 && a < 1) }"'
# A q of another temperature than p's is another q.
"$tandem" alpha --target "$DEMO/draft" --draft "$DEMO/draft" --prompts "$WORK/some.in" --max-tokens 32 --temperature 1 --draft-temperature 0.5 --json "$WORK/cold.json" >"$WORK/out" ||
    fail "a colder draft: exit $?"
expect "a colder draft: $(of "$WORK/cold.json" 1 alpha)" 'awk -v a="$(of "$WORK/cold.json" 1 alpha)" "BEGIN { exit !(a > 0.3 && a < 0.95) }"'
# So many tokens and no more; one line that is wrong is told of, and costs nothing else.
{ head -n 2 "$PROMPTS"; echo '{"promt": "x"}'; } >"$WORK/bad.in"
"$tandem" alpha --prompts "$WORK/bad.in" --tokens 9 --json "$WORK/few.json" >"$WORK/out" 2>"$WORK/err" || fail "few tokens: exit $?"
expect "few tokens: $(head -n 1 "$WORK/out")" 'grep -q "^[1-9][0-9]* tokens of the target.s own in 2 texts" "$WORK/out" && [ "$(awk "/\"tokens\":/ { print \$2 + 0; exit }" "$WORK/few.json")" = 9 ]'
expect "a wrong line: $(cat "$WORK/err")" '[ "$(grep -c "unknown key \"promt\"" "$WORK/err")" = 1 ]'

# Times of a host that does other things, too, are not its own.
pretend() { LD_PRELOAD=$BUSY PRETENDED_LOAD=$1 "$tandem" alpha --draft lookup --prompt a --tokens 4 >"$WORK/out" 2>"$WORK/err"; }
pretend 9999.5
expect "a busy host: exit $?: $(cat "$WORK/out" "$WORK/err")" \
    'sed -n 2p "$WORK/out" | grep -q "^This host was busy in the minute before: a load of 9999.5 on [1-9][0-9]* cores*[.] An idle one has other speeds[.]$"'
pretend 0.5
expect "an idle host: exit $?: $(cat "$WORK/out" "$WORK/err")" '! grep -q "busy" "$WORK/out" && grep -q "^4 tokens of the target.s own" "$WORK/out"'

refused() {
    local code=$1 pattern=$2
    shift 2
    checks=$((checks + 1))
    "$tandem" alpha "$@" >"$WORK/out" 2>"$WORK/err"
    local found=$?
    [ $found = "$code" ] && [ "$(wc -l <"$WORK/err")" = 1 ] && grep -Eq -- "$pattern" "$WORK/err" || fail "$*: exit $found, expected $code and one line with '$pattern': $(cat "$WORK/err")"
}
refused 64 "expected --draft D beside --target" --target "$DEMO/target"
refused 64 "--draft names more than 8 drafts" --draft lookup,lookup,lookup,lookup,lookup,lookup,lookup,lookup,lookup
refused 64 "--draft names lookup twice, expected each draft once" --draft lookup,random,lookup
refused 64 "--draft names lookup:max=4 twice" --draft lookup --draft lookup:max=4
refused 64 "--draft names $WORK/../$(basename "$WORK")/some.draft twice" --target "$DEMO/target" --draft "$WORK/some.draft,$WORK/../$(basename "$WORK")/some.draft"
refused 64 "--tokens is '0', expected a whole number from 1 to" --tokens 0
refused 64 "--draft-temperature is 'x', expected a number from 0 to 100" --draft-temperature x
refused 64 "--json needs a value" --json
refused 64 "--dry-run is not for tandem alpha" --dry-run
refused 64 "--accept is block, which accepts another share of drafts than" --accept block --temperature 1
refused 64 "--output is not for tandem alpha" --output "$WORK/none.jsonl"
refused 64 "--explain-page is not for tandem alpha" --prompt a --explain-page "$WORK/none.html"
refused 64 "--prompts is -, expected a file" --prompts -
refused 64 "--perplexity is not for tandem alpha, which scores no text" --perplexity "$WORK/some.in"
refused 64 "--echo is not for tandem alpha" --echo
refused 64 "--logprobs is not for tandem alpha" --logprobs 2
refused 64 "--explain is not for tandem alpha" --explain
for value in --explain --json; do # which is a text here, and no option
    "$tandem" alpha --draft lookup --prompt "$value" --tokens 4 >"$WORK/out" 2>"$WORK/err"
    expect "$value as a prompt: exit $?: $(cat "$WORK/err")" 'grep -q "^4 tokens of the target.s own in 1 text" "$WORK/out"'
done
"$tandem" alpha --draft lookup --prompts "$WORK/some.in" --tokens 50 --draft-length 2 --draft-temperature 2 --support 64 >"$WORK/out" 2>"$WORK/err"
expect "idle options: exit $?: $(cat "$WORK/err")" '! grep -q "drafts: 2" "$WORK/out" &&
    grep -q -- "--draft-length, --draft-temperature change nothing here: tandem alpha runs no rounds$" "$WORK/err"'
refused 64 "unknown option '--tokns'; did you mean" --tokns 5
cp -r "$DEMO/draft" "$WORK/words" && sed -i 's/"!": 4,/"!": 6,/; s/"#": 6,/"#": 4,/' "$WORK/words/tokenizer.json"
# A norm that is no number makes all logits so.
cp -r "$DEMO/draft" "$WORK/damaged" && chmod -R u+w "$WORK/damaged"
weights=$WORK/damaged/model.safetensors
header=$(od -An -tu8 -N8 "$weights")
place=$(head -c $((8 + header)) "$weights" | grep -ao '"model.norm.weight": *{[^}]*}' | grep -o '[[][0-9]*' | tail -n 1)
printf '\377\177' | dd of="$weights" bs=1 seek=$((8 + header + ${place#[})) conv=notrunc 2>/dev/null
refused 65 "request 0: the target gives no finite logit: its weights are damaged" --target "$WORK/damaged" --draft lookup --temperature 1
for temperature in 0 1; do
    "$tandem" alpha --target "$DEMO/target" --draft "$WORK/damaged,$DEMO/draft" --prompts "$WORK/some.in" --tokens 100 --temperature $temperature >"$WORK/out" 2>"$WORK/err"
    expect "a damaged draft at $temperature: exit $?: $(cat "$WORK/err")" \
        '[ "$(grep -c "warning: --draft $WORK/damaged gives no finite logit: its weights are damaged" "$WORK/err")" = 1 ] && [ "$(grep -c "no finite logit" "$WORK/err")" = 1 ]'
done
refused 65 "have different vocabularies: 2 ids, the first is 4" --target "$DEMO/target" --draft "$WORK/words"
refused 66 "$WORK/none: no such file or folder" --target "$DEMO/target" --draft "$WORK/none"
refused 66 "$WORK/none.jsonl: " --prompts "$WORK/none.jsonl"
refused 74 "--json $WORK/none/a.json: No such file" --tokens 1 --json "$WORK/none/a.json"
"$tandem" alpha --help >"$WORK/out" || fail "--help: exit $?"
expect "--help: $(cat "$WORK/out")" 'grep -q "^Usage: tandem alpha" "$WORK/out" && [ "$(grep -c "^  --" "$WORK/out")" = 3 ]'
finish
