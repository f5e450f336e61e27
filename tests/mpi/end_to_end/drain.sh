#!/usr/bin/env bash
# SIGUSR1 at any time, to any rank, to mpirun or to launch/tandem: the job ends with 75, --resume goes on, and the output is that of an
# undisturbed job, to the byte. drain.sh BIN default|small FAILING_DISK [SEED]: small is for builds that run fifty times slower.
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/batch.sh"
DISK=$3
seeded "${4:-}"
INPUT=$WORK/in.jsonl
prompts=40 rounds=1 tokens=32
[ -z "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] || prompts=60 tokens=48
[ "$2" = small ] && prompts=24 tokens=16
[ "${TANDEM_LONG:-}" = 1 ] && rounds=20
head -n "$prompts" "$PROMPTS" >"$INPUT"
echo '{"prompt": 7}' >>"$INPUT" # an error is a result, too

# The programs and the script, as they are installed.
mkdir "$WORK/bin"
cp "$SOURCE/launch/tandem" "$WORK/bin/"
ln -s "$BIN/tandem-verifier" "$BIN/tandem-drafter" "$WORK/bin/"

# whom KIND: the process to tell.
whom() {
    case $1 in
    tandem | mpirun) echo "$PID" ;;
    lead) ranks tandem-verifier | head -n 1 ;;
    follower) ranks tandem-verifier | tail -n 1 ;;
    drafter) ranks tandem-drafter | head -n 1 ;;
    esac
}

# Until PID is the launcher, which it is not before the test's own shell has become it, and heeds SIGUSR1, or has ended; at most 30 s.
await_trap() {
    local i caught

    for ((i = 0; i < 3000; i++)); do
        caught=0
        ! grep -qs "$WORK/bin/tandem" "/proc/$PID/cmdline" || caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$PID/status" 2>/dev/null)
        [ $((0x${caught:-0} & 0x200)) != 0 ] && return
        kill -0 "$PID" 2>/dev/null || return
        nap 0.01
    done
    fail "launch/tandem never heeded SIGUSR1"
}

# drain KIND OPTION...: drains a job at random moments, goes on until it is complete, and compares.
drain() {
    local kind=$1 times=0 pid most had=0
    shift
    rm -f "$WORK"/job.*
    while :; do
        if [ "$kind" = tandem ]; then
            "$WORK/bin/tandem" run --prompts "$INPUT" --plain-results --quiet --output "$WORK/job.jsonl" --resume --drain-seconds 0.0"$(random 10)" "$@" \
                >"$WORK/job.out" 2>"$WORK/job.err" </dev/null &
            PID=$!
        else
            start job --resume --drain-seconds 0.0"$(random 10)" "$@"
        fi
        if [ "$times" -lt 3 ]; then
            most=$((had + 1 + $(random 8)))
            [ "$kind" != tandem ] || await_trap # from then on it may be told, whatever is known of the job
            if [ "$kind" = tandem ] && [ "$times" = 0 ]; then
                sleep 0."$(random 10)"
            else
                await_results job "$most"
                sleep 0.0"$(random 10)"
            fi
            pid=$(whom "$kind")
            [ -z "$pid" ] || kill -USR1 "$pid" 2>/dev/null
        fi
        ended 120
        # An mpirun that is told after its ranks have ended dies of it; all is there then. (The launcher knows better.)
        [ "$kind$CODE" != mpirun138 ] || [ ! -e "$WORK/job.jsonl" ] || CODE=0
        [ "$CODE" = 75 ] || break
        check "$kind: an output before all results are there" [ ! -e "$WORK/job.jsonl" ]
        had=$(grep -c '^{"index"' "$WORK/job.jsonl.journal" 2>/dev/null) || had=0
        times=$((times + 1))
        drained=$((drained + 1))
    done
    check "$kind $*: exit $CODE, expected 0" [ "$CODE" = 0 ]
    check "$kind $*: the output differs from that of an undisturbed job" cmp -s "$WORK/job.jsonl" "$WORK/reference.jsonl"
    check "$kind $*: the journal is left" [ ! -e "$WORK/job.jsonl.journal" ]
}

drained=0
coupled=(--accept coupled --temperature 0.8 --seed 5 --max-tokens "$tokens" --verifiers 2 --drafters 1)
rm -f "$WORK"/reference*
run reference "${coupled[@]}" --solo --stats "$WORK/reference.json"
check "the reference: exit $CODE" [ "$CODE" = 0 ]
for ((round = 0; round < rounds; round++)); do
    for kind in tandem mpirun lead follower drafter; do
        drain "$kind" "${coupled[@]}"
    done
done
echo "$drained drains"
check "no job was drained" [ "$drained" -ge "$rounds" ]

# From the first moment on that the launcher heeds it, when nothing is begun yet.
for ((round = 0; round < 12; round++)); do
    "$WORK/bin/tandem" run --prompts "$INPUT" --quiet --output "$WORK/early.jsonl" >/dev/null 2>"$WORK/early.err" </dev/null &
    PID=$!
    await_trap
    kill -USR1 "$PID"
    ended 60
    check "told as it begins: exit $CODE, expected 75: $(cat "$WORK/early.err")" [ "$CODE" = 75 ]
done

# bash 5.2 parses a trap that comes as it is about to substitute a command as if it were part of that command: the text of ours stands either.
traps=0
while read -r trap; do
    traps=$((traps + 1))
    {
        echo 'set -euo pipefail; say() { :; }'
        echo "$trap"
        echo 'one=$(echo >"$1"; sleep 1)$(echo)'
    } >"$WORK/between.sh"
    rm -f "$WORK/between"
    bash "$WORK/between.sh" "$WORK/between" >"$WORK/between.out" 2>&1 </dev/null &
    PID=$!
    await "the first of two commands" '[ -s "$WORK/between" ]'
    kill -USR1 "$PID"
    ended 60
    check "told between two commands, $trap: exit $CODE, expected 75: $(cat "$WORK/between.out")" [ "$CODE" = 75 ]
done < <(grep -E '^ *trap .*exit 75.* USR1( #.*)?$' "$SOURCE/launch/tandem")
check "traps that end the launcher: $traps, expected 2" [ "$traps" = 2 ]

# Rejection sampling alone, where the text is a function of the seed; a drafter that only listens is told, too.
solo=(--temperature 0.8 --seed 5 --max-tokens "$tokens" --verifiers 1 --solo)
run reference "${solo[@]}"
drain lead "${solo[@]}"
rm -f "$WORK"/job.*
line --output "$WORK/job.jsonl" --max-sequences 1 "${solo[@]}"
options=("${LINE[@]: -$((${#LINE[@]} - $(printf '%s\n' "${LINE[@]}" | grep -n '/tandem-verifier$' | cut -d: -f1)))}")
LINE=($MPIRUN -np 1 "$BIN/tandem-drafter" "${options[@]}" : -np 1 "$BIN/tandem-verifier" "${options[@]}")
paused_line 2 # so many requests are left that it hears of it before the last
told=$(whom drafter)
kill -USR1 "$told"
await "the drafter to hear of it" '[ $((0x$(sed -n "s/^ShdPnd:[[:space:]]*//p" /proc/$told/status) & 0x200)) = 0 ]'
nap 1 # it tells the lead, which cannot be seen
kill -CONT "$LEAD"
ended 60
check "a drafter in solo mode: exit $CODE, expected 75" [ "$CODE" = 75 ]
run job --resume "${solo[@]}" --stats "$WORK/job.json"
check "a drafter in solo mode: the output differs" cmp -s "$WORK/job.jsonl" "$WORK/reference.jsonl"
check "figures: no result was resumed" [ "$(figure job resumed)" -ge 2 ]

# What runs may end: then nothing is left, and the job is done.
head -n 3 "$INPUT" | sed '1s/^{/{"max_tokens": 4, /' >"$WORK/few.jsonl" # once the first has ended, the others run
INPUT=$WORK/few.jsonl
run reference "${solo[@]}" --max-tokens 400
rm -f "$WORK"/job.*
start job "${solo[@]}" --max-tokens 400 --drain-seconds 60
await_results job 1
kill -USR1 "$PID"
ended 120
check "a drain that had time: exit $CODE, expected 0" [ "$CODE" = 0 ]
check "a drain that had time: the output differs" cmp -s "$WORK/job.jsonl" "$WORK/reference.jsonl"

# An mpirun that takes its time after its ranks: a signal that comes then changes nothing.
mkdir "$WORK/slow"
printf '#!/bin/sh\n%s "$@"; code=$?; touch %s; sleep 3; exit $code\n' "$(type -P mpirun)" "$WORK/ranks.ended" >"$WORK/slow/mpirun"
chmod +x "$WORK/slow/mpirun"
rm -f "$WORK"/job.*
PATH=$WORK/slow:$PATH "$WORK/bin/tandem" run --prompts "$INPUT" --plain-results --quiet --output "$WORK/job.jsonl" "${solo[@]}" --max-tokens 400 \
    >"$WORK/job.out" 2>"$WORK/job.err" </dev/null &
PID=$!
await "the ranks to end" '[ -e "$WORK/ranks.ended" ]'
kill -USR1 "$PID"
ended 120
check "a drain after the end: exit $CODE, expected 0" [ "$CODE" = 0 ]
check "a drain after the end: something was said" [ ! -s "$WORK/job.err" ]
check "a drain after the end: the output differs" cmp -s "$WORK/job.jsonl" "$WORK/reference.jsonl"
finish
