#!/usr/bin/env bash
# kill -9 of the lead or of mpirun at random moments, and starts with --resume until the job is done: no result is lost, none is there twice,
# the output is that of an undisturbed job. killed.sh BIN default|small [SEED]. 20 kills; with TANDEM_LONG=1 300.
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/batch.sh"
seed=${3:-$(date +%s)}
RANDOM=$seed
echo "seed $seed"
INPUT=$WORK/in.jsonl
wanted=20 tokens=32
[ "$2" = small ] && wanted=3 tokens=4
[ "${TANDEM_LONG:-}" = 1 ] && wanted=300
head -n 50 "$PROMPTS" >"$INPUT"
kills=0

# killed NAME OPTION...: one job, killed again and again, at most 12 times.
killed() {
    local name=$1 had=0 times=0 pid before
    shift
    rm -f "$WORK"/job.*
    : >"$WORK/before"
    while :; do
        start job --resume "$@"
        if [ "$times" -lt 12 ] && [ "$kills" -lt "$wanted" ]; then
            [ "$(random 6)" = 0 ] || await_results job $((had + $(random 5)))
            sleep 0.0"$(random 10)"
            pid=$PID
            if [ "$(random 2)" = 0 ]; then pid=$(ranks tandem-verifier | head -n 1); fi
            kill -KILL "${pid:-$PID}" 2>/dev/null
            times=$((times + 1))
            kills=$((kills + 1))
        fi
        ended 120
        # What was there is there still, byte for byte: the journal only grows. A last line that was cut off may be gone.
        if [ -e "$WORK/job.jsonl.journal" ]; then
            before=$(grep -ac '' "$WORK/before") || before=0
            checks=$((checks + 1))
            head -n "$before" "$WORK/job.jsonl.journal" | cmp -s - "$WORK/before" || fail "$name: the journal lost what it had"
            grep -a '}$' "$WORK/job.jsonl.journal" >"$WORK/before"
            had=$(grep -c '^{"index"' "$WORK/before")
        fi
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
