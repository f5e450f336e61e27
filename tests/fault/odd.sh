#!/usr/bin/env bash
# What a machine may be like, and its user: languages with a decimal comma or a Turkish i, ranks that stand still for seconds, a clock that is set again
# and again, jobs beside each other in one folder. None of it changes a byte of the output. Also what a comparison says of how well it knows.
# odd.sh BIN default|small CLOCK, the library that makes the clock jump, or nothing.
. "$(dirname "$0")/inject.sh"
CLOCK=${3-}
CODE=0 TOOK=0
mkdir "$WORK/bin" "$WORK/tmp" "$WORK/locales"
cp "$SOURCE/launch/tandem" "$BIN"/tandem-* "$WORK/bin/" # as installed
tandem=$WORK/bin/tandem
prompts=40 tokens=24
[ "$2" = small ] && prompts=16 tokens=8
head -n $prompts "$PROMPTS" >"$WORK/some.in"
head -n 4 "$PROMPTS" >"$WORK/short.in"
cat >"$WORK/job.conf" <<END
[ranks]
verifiers = 2
[sampling]
temperature = 0.8
top-p = 0.95
min-p = 0.01
seed = 3
[speculation]
accept = coupled
draft-length = 4
END
drawn=(--config "$WORK/job.conf" --prompts "$WORK/short.in" --max-tokens 16 --plain-results --quiet)

# --- languages

# whole NAME: the job through the launcher and by the line itself; a batch script; all in this shell's language.
whole() {
    local name=$1
    CODE=0
    (cd "$WORK" && TMPDIR=$WORK/tmp timeout -k 5 120 "$tandem" run "${drawn[@]}" --output "$name.run.jsonl" --stats "$name.run.json" 2>"$name.err" >"$name.out") || CODE=$?
    expect "$name" "tandem run: expected exit 0" '[ $CODE = 0 ]'
    CODE=0
    job "$name.line" "${drawn[@]}" || CODE=$?
    expect "$name" "mpirun: expected exit 0" '[ $CODE = 0 ]'
    "$tandem" sbatch --print "${drawn[@]}" --output "$WORK/batch.jsonl" --sbatch-options "--time=1:30" >"$WORK/$name.script" 2>>"$WORK/$name.err"
    (cd "$SOURCE" && "$BIN/tandem-verifier" --dry-run "${drawn[@]}" --top-p 0.9 --stats "$WORK/x" >"$WORK/$name.dry" 2>>"$WORK/$name.err")
}

# alike NAME FILE: C.FILE was made under C, NAME.FILE under NAME, and they are equal.
alike() { expect "$1" "$2 is not what it is under C: $(diff "$WORK/C.$2" "$WORK/$1.$2" | head -n 4 | cut -c 1-200)" "[ -s '$WORK/C.$2' ] && cmp -s '$WORK/C.$2' '$WORK/$1.$2'"; }
# page NAME: a report of the bench, written in this shell's language.
page() {
    cp -r "$WORK/bench" "$WORK/$1.bench"
    rm -f "$WORK/$1.bench"/report.* "$WORK/$1.bench/summary.json"
    "$tandem" report --noise-limit 1000 "$WORK/$1.bench" >"$WORK/$1.page.out" 2>"$WORK/$1.page.err"
    cat "$WORK/$1.bench"/report.* "$WORK/$1.bench/summary.json" "$WORK/$1.bench/rounds.csv" 2>&1 | sed "s#$WORK/$1.bench#BENCH#g" >"$WORK/$1.pages"
}

languages=()
for language in de_DE tr_TR; do
    if localedef -i $language -f UTF-8 "$WORK/locales/$language.UTF-8" >"$WORK/localedef" 2>&1; then
        languages+=("$language")
    else
        echo "not tried: $language, whose sources are not there (Debian: locales)"
    fi
done
export LOCPATH=$WORK/locales
spoken() { LC_ALL=$1.UTF-8 bash -c "$2" 2>/dev/null; }
for language in ${languages[@]+"${languages[@]}"}; do # else nothing is shown
    case $language in
    de_DE) expect $language "its numbers have no comma here" '[ "$(spoken de_DE "printf %.1f 1,5")" = 1,5 ]' ;;
    tr_TR) expect $language "its i is not its own here" '[ "$(spoken tr_TR "x=i; echo \${x^}")" = İ ]' ;;
    esac
done
export LC_ALL=C
whole C
first=${languages[0]:-C}
# The bench itself under the first of them; its pages under all.
(
    [ $first = C ] || export LC_ALL=$first.UTF-8
    TMPDIR=$WORK/tmp "$tandem" bench --draft-lengths 2 --temperatures 0.5 --accepts rejection --batches 1 --repetitions 2 --requests 2 --max-tokens 8 --noise-limit 1000 \
        --output "$WORK/bench" >"$WORK/bench.out" 2>"$WORK/bench.err"
) || fail "bench under $first: exit $?: $(cat "$WORK/bench.err")"
page C
expect bench "its pages are not those that C makes of it" 'cmp -s "$WORK/bench/report.md" <(sed "s#$WORK/C.bench#$WORK/bench#g" "$WORK/C.bench/report.md")'
for language in ${languages[@]+"${languages[@]}"}; do
    export LC_ALL=$language.UTF-8
    whole $language
    page $language
    export LC_ALL=C
    for file in run.jsonl line.jsonl script pages; do alike $language $file; done
    sed "s#/$language[.]#/C.#g" "$WORK/$language.dry" >"$WORK/$language.plain" && mv "$WORK/$language.plain" "$WORK/$language.dry"
    alike $language dry
    for file in run line; do
        sed -E 's/[0-9]+(\.[0-9]+)?(e-?[0-9]+)?/N/g' "$WORK/C.$file.json" | grep -v 'N,\?$' >"$WORK/C.$file.keys" # figures that are no numbers
        sed -E 's/[0-9]+(\.[0-9]+)?(e-?[0-9]+)?/N/g' "$WORK/$language.$file.json" | grep -v 'N,\?$' | sed "s#/$language[.]#/C.#g" >"$WORK/$language.$file.keys"
        expect $language "the figures have a number with a comma" "grep -q '\"temperature\": 0.8' '$WORK/$language.$file.json' && ! grep -E ': -?[0-9]+,[0-9]' '$WORK/$language.$file.json'"
    done
done

# --- ranks that stand still

some=(--prompts "$WORK/some.in" --max-tokens $tokens --max-sequences 2 --hash-logits)
job undisturbed --solo --verifiers 1 "${some[@]}" || fail "undisturbed: exit $?"

# still NAME PROGRAM NUMBER SECONDS OPTION...: the n-th rank of a program is stopped for that long.
still() {
    local name=$1 program=$2 number=$3 seconds=$4 rank
    shift 4
    start "$name" --verifiers 2 --drafters 1 "${some[@]}" "$@"
    await_results "$name" 2
    everybody=$(everybody)
    rank=$(ranks_of "$program" | sed -n "${number}p")
    kill -STOP "$rank"
    sleep "$seconds"
    # A job does not end without its verifiers. Without its drafter it does, on a machine that is fast enough.
    [ "$program" = tandem-drafter ] && [ ! -e "/proc/$rank" ] || expect "$name" "rank $rank did not stand still" "grep -q '^State:.T' /proc/$rank/status"
    kill -CONT "$rank" 2>/dev/null
    ended 120
    expect "$name" "expected exit 0" '[ $CODE = 0 ]'
    same "$name" undisturbed
    gone $everybody
}
beside still lead tandem-verifier 1 5
beside still follower tandem-verifier 2 5
beside still drafter tandem-drafter 1 5
together
late() { # the drafter alone, beyond any deadline: rounds go on without it
    still late tandem-drafter 1 2 --draft-deadline 50 --draft-length 4
    expect late "no round went on without the drafter" '[ "0$(figure late fallback_rounds)" -gt 0 ]'
}
beside late

# A machine that stands still, or a job that SLURM suspends: whoever waits for a message then takes nobody for lost, however long it takes.
suspended() {
    local line ranks rank
    line="mpirun -q --allow-run-as-root --bind-to none --oversubscribe --mca mpi_yield_when_idle 1 -np 1 $BIN/tandem-latency-verifier : -np 1 $BIN/tandem-latency-drafter"
    TMPDIR=$WORK/tmp timeout -k 5 120 $line >"$WORK/suspended.out" 2>"$WORK/suspended.err" </dev/null &
    TIMEOUT_PID=$!
    await "figures of messages" "grep -q '^[0-9]' '$WORK/suspended.out'"
    ranks=$(children_of "$(children_of $TIMEOUT_PID)")
    kill -STOP $ranks
    sleep 11 # a message has 10 s
    for rank in $ranks; do expect suspended "rank $rank did not stand still" "grep -q '^State:.T' /proc/$rank/status"; done
    kill -CONT $ranks
    ended 120
    expect suspended "expected exit 0" '[ $CODE = 0 ]'
}
beside suspended

# --- a clock that is set

jumps() {
    job jumps --verifiers 2 --drafters 1 "${some[@]}" --environment "LD_PRELOAD=$CLOCK" --draft-length 4 || fail "jumps: exit $?: $(head -n 3 "$WORK/jumps.err")"
    same jumps undisturbed
    expect jumps "a figure is as long as the clock jumped: $(grep -E '[0-9]{9}|: -[0-9]' "$WORK/jumps.json")" \
        '! sed "/version\|bytes\|hash\|identity/d" "$WORK/jumps.json" | grep -qE "wall_s\": [0-9]{4}|_us\": -?[0-9]{9}|\": -[0-9]"'
    expect jumps "drafts were of no use" '[ "0$(figure jumps accepted)" -gt 0 ]'
}
if [ -n "$CLOCK" ]; then
    beside jumps
else
    echo "not tried: a clock that jumps, for a sanitizer wants to be the first library itself"
fi
together

# --- jobs beside each other, of one user in one folder

# neighbour NUMBER: one of several, which ends soon.
neighbour() {
    local number=$1
    CODE=0
    (cd "$WORK" && TMPDIR=$WORK/tmp timeout -k 5 120 ./bin/tandem run --prompts short.in --max-tokens $((number + 1)) --output "neighbour$number.jsonl" --quiet --verifiers 1 \
        >"neighbour$number.out" 2>"neighbour$number.err") || CODE=$?
    expect "neighbour$number" "expected exit 0" '[ $CODE = 0 ]'
    expect "neighbour$number" "it is not what the job gives alone" \
        '[ "$(results_of "$WORK/neighbour$number.jsonl" | wc -l)" = 4 ] && cmp -s <(cut_to $((number + 1)) alone) <(cut_to $((number + 1)) neighbour$number)'
}
# cut_to COUNT NAME: index and first tokens of each result.
cut_to() { results_of "$WORK/$2.jsonl" | sed -E "s/^([0-9]+ \[[0-9]+(,[0-9]+){0,$(($1 - 1))}).*/\1/"; }
job alone --prompts "$WORK/short.in" --max-tokens 7 --solo --verifiers 1 || fail "alone: exit $?"
for number in 1 2 3 4 5 6; do beside neighbour $number; done
together

# Open MPI's folder, which the last job in it removes as another one may be about to use it, is each job's own; and nothing of it is left.
sessions() { find "$WORK/tmp" -name 'ompi.*' -type d; }
own() {
    TMPDIR=$WORK/tmp timeout -k 5 120 "$tandem" run --output "$WORK/own.jsonl" --verifiers 2 "${some[@]}" --max-tokens 200 >"$WORK/own.out" 2>"$WORK/own.err" &
    TIMEOUT_PID=$!
    await "a job's session folder" '[ -n "$(sessions)" ]'
    await_results own 1
    expect own "session folders of jobs are in one place: $(sessions)" '[ -z "$(find "$WORK/tmp" -maxdepth 1 -name "ompi.*")" ] && [ "$(stat -c %a "$(dirname "$(sessions)")")" = 700 ]'
    MPIRUN_PID=$(for child in $(children_of "$(children_of $TIMEOUT_PID)"); do [ "$(program_of "$child")" = mpirun ] && echo "$child"; done)
    everybody=$(everybody)
    kill -KILL "$MPIRUN_PID"
    ended 30
    expect own "expected exit 137" '[ $CODE = 137 ]'
    expect own "it left $(sessions)" '[ -z "$(sessions)" ]'
    gone $everybody
}
own

# --- what a comparison says

# compared NAME OPTION...: --compare of a prompt; its table goes to $WORK/NAME.out.
compared() {
    local name=$1
    shift
    CODE=0
    timeout -k 5 120 "$tandem" run --compare --prompt "The sea was" --max-tokens 16 --verifiers 1 --stats "$WORK/$name.json" "$@" >"$WORK/$name.out" 2>"$WORK/$name.err" || CODE=$?
    expect "$name" "expected exit 0" '[ $CODE = 0 ]'
}
compared once --hash-logits
expect once "one pass passes for more: $(cat "$WORK/once.out")" 'grep -qx "  1 pass" "$WORK/once.out" && ! grep -q "median of\|standard error" "$WORK/once.out"'
expect once "one pass has settled" 'grep -q "\"settled\": false" "$WORK/once.json"'
compared often
passes=$(sed -nE 's/^  median of ([0-9]+), spread +[0-9.]+ % +[0-9.]+ %$/\1/p' "$WORK/often.out")
expect often "expected 3 passes or more: $(cat "$WORK/often.out")" '[ "0$passes" -ge 3 ]'
error=$(sed -nE 's/^  its standard error +(not settled)? +([0-9.]+) %$/\2/p' "$WORK/often.out")
settled=$(sed -n 's/^ *"settled": \([a-z]*\).*/\1/p' "$WORK/often.json")
printf '%s passes, standard error %s %%, settled: %s\n' "$passes" "$error" "$settled"
expect often "table and figures disagree, or with the bound: $settled, $error %: $(grep 'standard error' "$WORK/often.out")" \
    'if grep -q "standard error.*not settled" "$WORK/often.out"; then [ $settled = false ] && awk "BEGIN { exit !($error >= 1.0) }"; else [ $settled = true ] && awk "BEGIN { exit !($error <= 1.0) }"; fi'
finish
