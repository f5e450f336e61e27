#!/usr/bin/env bash
# kill -9 of the lead or of mpirun at random moments, and starts with --resume until the job is done: no result is lost, none is there twice,
# the output is that of an undisturbed job. killed.sh BIN default|small [SEED]. 20 kills; with TANDEM_LONG=1 300.
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/batch.sh"
seeded "${3:-}"
INPUT=$WORK/in.jsonl
wanted=20 tokens=32
[ "$2" = small ] && wanted=3 tokens=4
[ "${TANDEM_LONG:-}" = 1 ] && wanted=300
head -n 50 "$PROMPTS" >"$INPUT"
kills=0

# look NAME: what was in the journal is there still, byte for byte: from its first result on it only grows. A last line that was cut off may
# go. The lock is waited for: ranks outlive their mpirun by a moment, and may even come to the end of the job and remove the journal.
look() {
    local journal=$WORK/job.jsonl.journal
    {
        flock -w 60 9 || fail "$1: the ranks outlive mpirun by more than 60 s"
        [ -e "$journal" ] || return
        checks=$((checks + 1))
        head -n "$(wc -l <"$WORK/before")" "$journal" | cmp -s - "$WORK/before" || fail "$1: the journal lost what it had"
        head -n "$(wc -l <"$journal")" "$journal" >"$WORK/before"
        had=$(grep -c '^{"index"' "$WORK/before")
        [ "$had" -gt 0 ] || : >"$WORK/before" # without results the next start writes the header anew
    } 9<"$journal"
}

# has_ranks PID: is any process below this mpirun alive?
has_ranks() {
    local child children=''
    read -r children 2>/dev/null <"/proc/$1/task/$1/children"
    for child in $children; do grep -qs '^State:.Z' "/proc/$child/status" || return 0; done
    return 1
}

# end_hung PID: ends an mpirun that stays for ten seconds after its ranks: that of Open MPI 4.1 may wait for a lock of its own in PMIx_server_finalize
# for ever when a rank was killed. The launcher does the same for users (watch_mpirun).
end_hung() {
    local i hanging=0
    for ((i = 0; i < 1000; i++)); do
        kill -0 "$1" 2>/dev/null || return
        if has_ranks "$1"; then hanging=0; else hanging=$((hanging + 1)); fi
        [ $hanging -lt 100 ] || { kill -KILL "$1"; echo "$name: mpirun stayed after its ranks"; return; }
        sleep 0.1
    done
}

# killed NAME OPTION...: one job, killed again and again, at most 12 times.
killed() {
    local name=$1 had=0 times=0 starts=0 pid
    shift
    rm -f "$WORK"/job.*
    : >"$WORK/before"
    while :; do
        starts=$((starts + 1))
        [ "$starts" -le 24 ] || { fail "$name: not done after 24 starts, of which 12 were killed: $(head -n 5 "$WORK/job.err")"; return; }
        start job --resume "$@"
        if [ "$times" -lt 12 ] && [ "$kills" -lt "$wanted" ]; then
            [ "$(random 6)" = 0 ] || await_results job $((had + $(random 5)))
            sleep 0.0"$(random 10)"
            pid=$PID
            if [ "$(random 2)" = 0 ]; then pid=$(ranks tandem-verifier | head -n 1); fi
            kill -KILL "${pid:-$PID}" 2>/dev/null
            times=$((times + 1))
            kills=$((kills + 1))
            end_hung "$PID"
        fi
        ended 120
        [ -e "$WORK/job.jsonl.journal" ] && look "$name"
        [ "$CODE" = 0 ] && break
        case $CODE in
        64 | 65 | 66 | 70 | 74 | 76)
            fail "$name: a start after a kill ended with $CODE: $(head -n 5 "$WORK/job.err")"
            return
            ;;
        esac
    done
    checks=$((checks + 1))
    cmp -s "$WORK/job.jsonl" "$WORK/reference.jsonl" || fail "$name: the output differs from that of an undisturbed job"
}

while [ "$kills" -lt "$wanted" ] && [ "$failures" = 0 ]; do
    run reference --max-tokens "$tokens" --solo --verifiers 1
    killed solo --max-tokens "$tokens" --solo --verifiers 1
    run reference --max-tokens "$tokens" --accept coupled --temperature 0.9 --seed "$kills" --solo --verifiers 1
    killed coupled --max-tokens "$tokens" --accept coupled --temperature 0.9 --seed "$kills" --verifiers 2 --drafters 1
done 2>/dev/null
echo "$kills kills"
finish
