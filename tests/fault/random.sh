#!/usr/bin/env bash
# Faults at random moments of random jobs, which a seed repeats up to timing: no job hangs, each ends as its kind of fault says, and
# what was lost is found again by --resume. random.sh BIN default|small [COUNT [SEED]]; TANDEM_WIDE=1 in the environment: more of them.
. "$(dirname "$0")/inject.sh"
count=${3:-16} watchdog=5 prompts=40 tokens=32
[ -z "${TANDEM_WIDE:-}" ] || count=${3:-40}
[ "${TANDEM_LONG:-}" = 1 ] && count=${3:-1000}
[ "$2" = small ] && count=${3:-6} watchdog=30 tokens=8
seed=${4:-1}
RANDOM=$seed
head -n $prompts "$PROMPTS" >"$WORK/some.in"
greedy=(--prompts "$WORK/some.in" --max-tokens $tokens --max-sequences 2 --watchdog $watchdog)
coupled=("${greedy[@]}" --temperature 0.9 --seed 5 --accept coupled)
job greedy --solo --verifiers 1 "${greedy[@]}" || fail "solo greedy: exit $?"
job coupled --solo --verifiers 1 "${coupled[@]}" || fail "solo coupled: exit $?"

# pick WORD...: one of them, in PICKED: a subshell would draw the same again and again.
pick() { PICKED=${*:$((RANDOM % $# + 1)):1}; }

# whole NAME MODE: its results are those of solo decoding.
whole() {
    checks=$((checks + 1))
    results_of "$WORK/$1.jsonl" >"$WORK/$1.results"
    results_of "$WORK/$2.jsonl" | cmp -s - "$WORK/$1.results" || fail "$1: its results differ from those of solo decoding: $(tail -n 3 "$WORK/$1.err")"
}

# strike MODE VERIFIERS DRAFTERS VICTIM WAY AFTER MOMENT WHICH NAME: one fault, and what became of its job.
strike() {
    local mode=$1 verifiers=$2 drafters=$3 victim=$4 way=$5 after=$6 moment=$7 which=$8 name=$9 everybody pids allowed
    local -n options=$mode
    [ $way != SEGV ] || local -x ASAN_OPTIONS=${ASAN_OPTIONS-}:handle_segv=0 # a sanitizer would make an exit of it
    start "$name" --verifiers "$verifiers" --drafters "$drafters" "${options[@]}"
    if [ $moment = results ]; then
        await_results "$name" 1
    else
        await "the ranks of $name" '[ "$(ranks_of tandem-verifier | wc -l)" = $verifiers ] && [ "$(ranks_of tandem-drafter | wc -l)" = $drafters ]'
    fi
    sleep "$after"
    everybody=$(everybody)
    pids=($(ranks_of $victim))
    [ ${#pids[@]} -gt 0 ] && kill "-$way" "${pids[$((which % ${#pids[@]}))]}" 2>/dev/null
    ended $((watchdog + 90))
    gone $everybody
    echo "$CODE" >>"$WORK/codes"
    # A drafter that is lost before it has joined ends the job, as do verifiers. A job that had ended before the fault came
    # is one that ended well.
    case $way in
    STOP) allowed='0 76' ;;
    KILL) allowed='0 137' ;;
    SEGV) allowed='0 139' ;;
    TERM) allowed='0 143' ;;
    esac
    expect "$name" "$mode, $verifiers + $drafters ranks, $after s after $moment: expected one of exit $allowed" "[[ ' $allowed ' == *\" \$CODE \"* ]]"
    if [ "$victim" = tandem-drafter ] && [ $moment = results ]; then
        # At the very end it may: then the results are there.
        expect "$name" "a lost drafter ended the job" "[ \$CODE = 0 ] || [ -e '$WORK/$name.jsonl' ]"
    fi
    if [ $CODE != 0 ] && ! [ -e "$WORK/$name.jsonl" ]; then job "$name" --resume --verifiers 1 "${options[@]}" || fail "$name, resumed: exit $?"; fi
    whole "$name" "$mode"
    rm -rf "$WORK/$name".*
}

AT_ONCE=2
for ((round = 1; round <= count; round++)); do
    pick greedy coupled && mode=$PICKED
    pick 1 2 && verifiers=$PICKED
    pick 1 1 2 && drafters=$PICKED
    pick tandem-drafter tandem-drafter tandem-drafter tandem-verifier && victim=$PICKED
    pick KILL KILL SEGV TERM STOP && way=$PICKED
    after=0.$((RANDOM % 900 + 100)) # seconds after the first result, or before it
    pick results start && moment=$PICKED
    [ $moment$way = startSTOP ] && way=KILL # what hangs before the first round has a minute
    which=$((RANDOM % 2 + 1))
    beside strike $mode $verifiers $drafters $victim $way $after $moment $which $round-$way-$victim
done
together
printf 'seed %s: %d faults, 0 hangs unless said above;' "$seed" "$count"
sort "$WORK/codes" | uniq -c | awk '{ printf " %d jobs ended with %d;", $1, $2 }'
echo
finish
