#!/usr/bin/env bash
# A drafter that is silent, stopped or slow costs only speed; one that dies ends the job at once and leaves nothing behind.
# faults.sh BIN default|small: small is for builds that run fifty times slower.
. "$(dirname "$0")/job.sh"
options=(--prompts "$PROMPTS" --max-tokens 64 --max-sequences 2 --hash-logits)
if [ "$2" = small ]; then
    head -n 60 "$PROMPTS" >"$WORK/few.in"
    options=(--prompts "$WORK/few.in" --max-tokens 16 --max-sequences 2 --hash-logits)
fi

# start NAME OPTION...: a job in the background; sets MPIRUN_PID.
start() {
    local name=$1 line
    shift
    line=$("$BIN/tandem-verifier" --dry-run --output "$WORK/$name.jsonl" --stats "$WORK/$name.json" "$@" 2>"$WORK/$name.err") || return
    eval "exec_line=($line)"
    "${exec_line[@]}" >"$WORK/$name.out" 2>>"$WORK/$name.err" &
    MPIRUN_PID=$!
}

# Children of mpirun whose program is $1.
ranks_of() {
    local child

    for child in $(cat "/proc/$MPIRUN_PID/task/$MPIRUN_PID/children"); do
        [ "$(cat "/proc/$child/comm")" = "$1" ] && echo "$child"
    done
}

# Waits until the journal of $1 has $2 lines, at most 30 s.
await_lines() {
    local i

    for i in {1..3000}; do
        [ -f "$1.journal" ] && [ "$(wc -l <"$1.journal")" -ge "$2" ] && return
        sleep 0.01
    done
    fail "$1 never had $2 lines"
}

# ended WITHIN: waits for mpirun with a deadline in seconds; sets CODE.
ended() {
    local i

    for ((i = 0; i < $1 * 10; i++)); do
        kill -0 "$MPIRUN_PID" 2>/dev/null || break
        sleep 0.1
    done
    checks=$((checks + 1))
    if kill -0 "$MPIRUN_PID" 2>/dev/null; then
        fail "the job did not end within $1 s"
        kill -TERM "$MPIRUN_PID"
    fi
    wait "$MPIRUN_PID"
    CODE=$?
}

gone() {
    local pid i

    checks=$((checks + 1))
    for pid in "$@"; do
        for i in {1..50}; do
            [ -d "/proc/$pid" ] || continue 2
            sleep 0.1
        done
        fail "process $pid is still there"
        kill -KILL "$pid"
    done
}

job solo --solo --verifiers 1 "${options[@]}" || fail "solo: exit $?"

# Takes everything, answers nothing.
job silent --verifiers 2 --drafters 1 --silent-drafter yes "${options[@]}" || fail "silent: exit $?"
same silent solo
checks=$((checks + 1))
[ "0$(figure silent fallback_rounds)" -gt 0 ] || fail "silent: no fallback round was counted"

# Too slow for its deadline, again and again.
job late --verifiers 1 --drafters 2 --draft-deadline 0.2 "${options[@]}" || fail "late: exit $?"
same late solo

# Stopped in the middle for good.
start stopped --verifiers 2 --drafters 1 "${options[@]}"
await_lines "$WORK/stopped.jsonl" 10
ranks="$(ranks_of tandem-drafter) $(ranks_of tandem-verifier)"
kill -STOP $(ranks_of tandem-drafter) || fail "no drafter to stop"
ended 60
checks=$((checks + 1))
[ "$CODE" = 0 ] || fail "a stopped drafter: exit $CODE: $(cat "$WORK/stopped.err")"
same stopped solo
gone $ranks
checks=$((checks + 1))
grep -q "does not answer in time" "$WORK/stopped.err" || fail "a stopped drafter was not told of: $(cat "$WORK/stopped.err")"

# Stopped, and let go on: its sequences are opened anew.
start resumed --verifiers 1 --drafters 1 "${options[@]}"
await_lines "$WORK/resumed.jsonl" 10
drafter=$(ranks_of tandem-drafter)
kill -STOP "$drafter"
await_lines "$WORK/resumed.jsonl" 30
kill -CONT "$drafter"
ended 60
checks=$((checks + 1))
[ "$CODE" = 0 ] || fail "a drafter that was stopped and went on: exit $CODE: $(cat "$WORK/resumed.err")"
same resumed solo
last=$(sed -nE '$s/.*"accepted":([0-9]+).*/\1/p' "$WORK/resumed.jsonl")
checks=$((checks + 1))
[ "${last:-0}" -gt 0 ] || fail "a drafter that went on was not used again"

# Killed: mpirun ends the job.
start killed --verifiers 2 --drafters 1 "${options[@]}"
await_lines "$WORK/killed.jsonl" 10
ranks="$(ranks_of tandem-drafter) $(ranks_of tandem-verifier)"
kill -KILL $(ranks_of tandem-drafter)
ended 10
checks=$((checks + 1))
[ "$CODE" != 0 ] || fail "a killed drafter: exit 0"
gone $ranks
finish
