#!/usr/bin/env bash
# `tandem check` passes on code that is right, and each fault of --break is seen by the check that must see it, with room to spare.
# check.sh BIN default|small: small is for builds that run fifty times slower. TANDEM_WIDE=1 in the environment: every fault, not one for each check;
# further drafters and vocabularies, more contexts.
. "$(dirname "$0")/job.sh"
amount=$2
size=(--check brief)
[ "$amount" = small ] && size=(--check brief --law-contexts 3 --law-samples 400)
[ "${TANDEM_LONG:-}" = 1 ] && size=(--check quick)

# check NAME CODE OPTION...: a check that must end with CODE; what it says goes to $WORK/NAME.{out,err}, its figures to NAME.json.
check() {
    local name=$1 code=$2 line
    shift 2
    checks=$((checks + 1))
    line=$("$BIN/tandem-verifier" --dry-run "${size[@]}" --json "$WORK/$name.json" "$@" 2>"$WORK/$name.err") || { fail "$name: no line"; return; }
    eval "$line" >"$WORK/$name.out" 2>>"$WORK/$name.err"
    [ "$?" = "$code" ] || fail "$name: not exit $code: $(cat "$WORK/$name.out") $(head -n 5 "$WORK/$name.err")"
}

# says NAME PATTERN: a line of its output.
says() {
    checks=$((checks + 1))
    grep -qE "$2" "$WORK/$1.out" || fail "$1 does not say '$2': $(cat "$WORK/$1.out" "$WORK/$1.err")"
}

# holds NAME CHECK true|false
holds() {
    checks=$((checks + 1))
    awk -v check="\"$2\":" -v value="$3" '$1 == check { inside = 1 } inside && $1 == "\"holds\":" { exit !($2 ~ "^" value) }' "$WORK/$1.json" ||
        fail "$1: '$2' does not have holds: $3"
}

# passes NAME OPTION...
passes() {
    local name=$1
    check "$name" 0 "${@:2}"
    says "$name" '^lossless(, coarsely)?: 3 checks hold'
    for each in equality law draws; do holds "$name" "$each" true; done
}

# Is the law's statistic so far beyond its bar that a fresh seed would be seen too? G is about normal with variance 2 (df + 2 lambda), lambda
# about G - df. Four of its deviations for the fresh one, and three for the lambda that is estimated here, which varies as much: the probability
# not to be seen is below 0.001. The sum over texts decides; the worst text only adds to it.
is_far() {
    checks=$((checks + 1))
    awk -v name="$1" '$1 == "\"g\":" && g == "" { g = $2 + 0 } $1 == "\"df\":" { df = $2 + 0 } $1 == "\"g_bar\":" { bar = $2 + 0 }
        END { deviation = sqrt(2 * (df + 2 * (g - df))); far = (g - bar) / deviation
              printf "%s: G %.0f, bar %.0f: %.1f deviations beyond it\n", name, g, bar, far
              exit !(g != "" && far > 7) }' "$WORK/$1.json" || fail "$1 is seen by luck: the sizes of the check have lost their power"
}

# breaks KIND CHECK OPTION...: the fault ends the check with 1, and CHECK is one that saw it.
breaks() {
    check "$1" 10 --verifiers 1 --break "$1" "${@:3}"
    says "$1" "^NOT LOSSLESS, broken on purpose by --break $1 .*seen by .*$2"
    holds "$1" "$2" false
    grep -q '^  "lossless": false' "$WORK/$1.json" || fail "$1: the object calls it lossless"
    grep -q 'NOT LOSSLESS: broken on purpose' "$WORK/$1.err" || fail "$1 does not warn"
    [ "$2" != law ] || [ "$amount" = small ] || is_far "$1"
}

contexts=(--law-contexts 4)
[ -z "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] || contexts=() # as many as the size has
passes one --verifiers 1 ${contexts[@]+"${contexts[@]}"}
grep -q '^ *"draft": ".*demo/draft"' "$WORK/one.json" || fail "one: the object does not name its draft"
passes two --verifiers 2 --drafters 2 --seed 5 --temperature 1 --top-p 0.95 --repetition-penalty 1.1 --law-contexts 4
passes copies --verifiers 2 --draft lookup --law-contexts 4
grep -q '^ *"draft": "lookup"' "$WORK/copies.json" || fail "copies: the object does not name its draft"
passes joined --verifiers 1 --drafters 2 --accept multistep --temperature 1 --merge self:layers=3 --law-contexts 4 # a q each
says copies 'nothing to draw: [0-9,]+ drafts are copies'
# Of a rule that is not lossless it says by how much: more than chance makes of it, and the less the nearer it is to rejection.
variation_of() { awk '$1 == "\"total_variation\":" { off = $2 + 0 } $1 == "\"total_variation_by_chance\":" { chance = $2 + 0 } END { print off - chance }' "$WORK/$1.json"; }
check lenient 10 --verifiers 1 --accept lenience --lenience 0.2 --temperature 1 --law-contexts 2
check strict 10 --verifiers 1 --accept lenience --lenience 1 --temperature 1 --law-contexts 2
says lenient '^NOT LOSSLESS, by --accept lenience: the law of two tokens is [0-9.]+ % off [(]total variation over [0-9]+ cells; [0-9.]+ % come by chance[)], over 2 texts x '
checks=$((checks + 2))
grep -q '^  "lossless": false' "$WORK/lenient.json" && grep -q '^  "lossless": false' "$WORK/strict.json" || fail "lenience is called lossless"
awk -v lenient="$(variation_of lenient)" -v strict="$(variation_of strict)" 'BEGIN { exit !(lenient > 0.08 && strict < 0.04 && strict > -0.04) }' ||
    fail "off beyond chance: lenience 0.2 by $(variation_of lenient), 1 by $(variation_of strict)"
breaks q-temperature draws --law-contexts 2
breaks accept-all equality --law-contexts 2
breaks stale-path equality --tree dynamic --law-contexts 2
[ "$amount" = small ] || breaks residual-p law --law-samples 1600 # its power needs the samples
if [ "$amount" != small ]; then # of which the law of two tokens shows nothing: how often drafts are accepted by their place does
    check late-accept 10 --verifiers 1 --break late-accept --law-contexts 4 --law-samples 1600
    says late-accept "draft [34] of a proposal accepted \+[0-9]* times beyond"
    says late-accept "^NOT LOSSLESS, broken on purpose by --break late-accept .*seen by law$"
fi
if [ "$amount" != small ] && [ -n "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ]; then
    passes exit --verifiers 1 --draft self:layers=3 --law-contexts 3
    passes siblings --verifiers 2 --accept without-replacement --tree top-k --temperature 1 --law-contexts 3
    passes again --verifiers 1 --accept multistep --tree top-k:depth=2 --temperature 1 --law-contexts 3
    passes leaves --verifiers 2 --accept traversal --tree top-k --temperature 1 --law-contexts 3
    passes sequential --verifiers 1 --accept k-sequential --tree top-k:depth=3 --temperature 1 --law-contexts 3
    passes tree --verifiers 2 --tree top-k --law-contexts 3
    passes block --verifiers 2 --accept block --law-contexts 3 --temperature 1
    passes walk --verifiers 1 --accept walk --law-contexts 3
    passes frequent --verifiers 1 --draft-vocabulary 600 --law-contexts 3 --temperature 1
    passes colder --verifiers 1 --draft-temperature 0.5 --law-contexts 3 --temperature 1
    passes copied --verifiers 1 --copy-first 2 --law-contexts 3 --temperature 1
    passes coldest --verifiers 1 --draft-temperature 0 --law-contexts 3 --temperature 1
    breaks q-top-k draws --law-contexts 2
    breaks stale-row equality --law-contexts 2
    breaks drafter-bonus equality --law-contexts 2
    breaks branch-noise draws --law-contexts 2
    breaks branch-value draws --law-contexts 2
    breaks q-row law --law-samples 4000
    breaks shared-coin law --law-samples 1000
    # Siblings: as many as there may be behind one text; a colder q leaves less behind the first one.
    siblings=(--accept without-replacement --tree top-k:depth=1 --temperature 1 --law-contexts 2 --law-samples 1600)
    breaks sibling-q law "${siblings[@]}" --draft-temperature 0.3
    breaks sibling-p law "${siblings[@]}" --accept multistep --draft-temperature 0.3
    breaks sibling-order law "${siblings[@]}"
    breaks sibling-top-k draws "${siblings[@]}"
fi

# A difference is shown: where, both tokens, how near the target's two best were, both texts.
says accept-all '^  prompt 0, greedy, draft length 1: token [0-9]+ is '
says accept-all "^    the target's two best there are .* apart$"
says accept-all '^    solo    "'
# Without a terminal, too, it says where it is; and where it will take minutes, how long and how to have less. The job is then ended, not waited for.
checks=$((checks + 2))
grep -q '^tandem: checking equality: 1 of 8$' "$WORK/one.err" || fail "one does not say where it is: $(cat "$WORK/one.err")"
line=$("$BIN/tandem-verifier" --dry-run "${size[@]}" --verifiers 1 --law-samples 200000 --law-contexts 1000)
eval "exec $line" >/dev/null 2>"$WORK/long.err" &
for ((i = 0; i < 3000; i++)); do
    ! grep -q 'this check takes about [0-9]* min more; fewer than 200000 --law-samples or 1000' "$WORK/long.err" || break
    nap 0.02
done
[ $i -lt 3000 ] || fail "a check of hours does not say so: $(cat "$WORK/long.err")"
kill $!
wait $!
# stdout has the object alone when it is asked for there.
checks=$((checks + 1))
line=$("$BIN/tandem-verifier" --dry-run "${size[@]}" --verifiers 1 --law-contexts 1 --law-samples 50 --json -) && eval "$line" >"$WORK/stdout" 2>/dev/null
[ "$(head -c 1 "$WORK/stdout")" = '{' ] && [ "$(tail -n 1 "$WORK/stdout")" = '}' ] || fail "--json - does not give one object: $(head -n 3 "$WORK/stdout")"
# Where the law's check could see nothing it is not counted, and no law is off by more than 100 %.
check few 10 --verifiers 1 --law-contexts 1 --law-samples 10
says few '^blind  law'
says few '^NOT SHOWN TO BE LOSSLESS: law: too few samples to see anything'
grep -qE '^ *"smallest_lean": 1(\.0)?,$' "$WORK/few.json" || fail "few: $(grep smallest_ "$WORK/few.json")"
# Where it would see one that leans to the draft, and no other, it says how coarse it is.
check coarse 0 --verifiers 1 --law-contexts 12 --law-samples 40
says coarse '^lossless, coarsely: 3 checks hold .*, smallest TV seen ([5-9][0-9]|100)[.][0-9] %, [1-4][0-9][.][0-9] % towards the draft'
# Where there is next to nothing to copy, next to nothing is drafted: that shows nothing, however many samples there are, and hides no fault.
for word in alpha bravo crane delta eagle frost grape honey ivory joker karma; do echo "{\"prompt\": \"$word unusual zebra\", \"max_tokens\": 8}"; done >"$WORK/rare.in"
check rare 10 --verifiers 1 --drafters 1 --draft lookup:min=4,max=4 --target "$SOURCE/launch/demo/target" --prompts "$WORK/rare.in" --law-contexts 4 --law-samples 100
says rare '^NOT SHOWN TO BE LOSSLESS: '
check rare_broken 10 --verifiers 1 --drafters 1 --draft lookup:min=4,max=4 --target "$SOURCE/launch/demo/target" --prompts "$WORK/rare.in" --law-contexts 4 --law-samples 100 --break residual-p
# A prompt that cannot be completed is left out; none at all is an error. What makes no sense is refused before anything starts.
printf '%s\n' '{"prompt": ""}' '{"prompt": "The sea was"}' >"$WORK/one_good.in"
printf '%s\n' '{"prompt": ""}' >"$WORK/none_good.in"
check one_good 0 --verifiers 1 --prompts "$WORK/one_good.in" --law-contexts 1 --law-samples 400 --quiet
checks=$((checks + 2))
[ "$(wc -l <"$WORK/one_good.out")" = 1 ] && says one_good '^lossless: 3 checks hold' # the result is not what is left out
"$BIN/tandem-verifier" --dry-run --check brief --prompts "$WORK/none_good.in" >"$WORK/none_good.out" 2>"$WORK/none_good.err"
[ "$?" = 65 ] && [ ! -s "$WORK/none_good.out" ] || fail "no prompt that can be completed is not refused with 65: $(cat "$WORK/none_good.err")"
for wrong in "--check quick --solo" "--break q-row" "--check quick --break nothing" "--check quick --target $SOURCE/launch/demo/target"; do
    checks=$((checks + 1))
    # shellcheck disable=SC2086
    "$BIN/tandem-verifier" --dry-run $wrong >/dev/null 2>&1
    [ "$?" = 64 ] || fail "'$wrong' is not refused with 64"
done
finish
