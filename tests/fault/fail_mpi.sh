#!/usr/bin/env bash
# The n-th call of each function of MPI fails on one rank of a job of one drafter and one verifier. The job must end with equal output, or
# with a documented code and a line that says why; never hang, never crash. fail_mpi.sh BIN SHIM: by default each function's first and last
# call; TANDEM_LONG=1: the first 40 of each, and 20 spread over the rest. Several jobs at once: what ends by an error waits for mpirun's seconds of
# grace and for deadlines, and computes nothing meanwhile.
. "$(dirname "${BASH_SOURCE[0]}")/../mpi/end_to_end/job.sh"
SHIM=$2
DEADLINE=120 # seconds; far above what any ending takes
AT_ONCE=4 # of `beside`
head -n 2 "$PROMPTS" >"$WORK/in.jsonl"
OPTIONS=(--prompts "$WORK/in.jsonl" --accept coupled --temperature 0.8 --max-tokens 12 --drafters 1 --verifiers 1 --watchdog 20)

# shimmed NAME PROGRAM VARIABLE=VALUE...: a job in which the ranks of PROGRAM have the shim. Returns its exit code.
shimmed() {
    local name=$1 program=$2 line
    shift 2
    line=$("$BIN/tandem-verifier" --dry-run --output "$WORK/$name.jsonl" "${OPTIONS[@]}" 2>"$WORK/$name.err") || return
    line=${line//" $BIN/tandem-$program "/" env LD_PRELOAD=$SHIM $* $BIN/tandem-$program "}
    eval "timeout -k 5 $DEADLINE $line" </dev/null >"$WORK/$name.out" 2>>"$WORK/$name.err"
}

numbers() { # COUNT: which calls of so many are made to fail
    if [ "${TANDEM_LONG:-}" ]; then
        { seq 1 40; for i in $(seq 1 20); do echo $((40 + ($1 - 40) * i / 20)); done; } | awk -v most="$1" '$1 >= 1 && $1 <= most' | sort -nu
    else
        printf '%d\n' 1 "$1" | sort -nu
    fi
}

# judged NAME PROGRAM FUNCTION N COUNT: a job in which that call fails, and what is wrong with how it ended; $WORK/felt has those that felt it.
judged() {
    local name=$1 what="call $4 of $5 of $3 of the $2" code
    checks=$((checks + 1))
    shimmed "$name" "$2" "FAIL_MPI='$3 $4'"
    code=$?
    case $code in
    0) results_of "$WORK/$name.jsonl" | cmp -s - "$WORK/reference.results" || fail "$what: another output" ;;
    70 | 74 | 76)
        echo "$what" >>"$WORK/felt"
        grep -q "error: .*$3" "$WORK/$name.err" || fail "$what: no line names it:" "$(cat "$WORK/$name.err")"
        ;;
    124 | 137) fail "$what: it hung:" "$(cat "$WORK/$name.err")" ;;
    *) fail "$what: exit code $code:" "$(head -n 5 "$WORK/$name.err")" ;;
    esac
    rm -f "$WORK/$name".*
}

job reference "${OPTIONS[@]}" || { echo "the reference job failed: $(cat "$WORK/reference.err")"; exit 1; }
results_of "$WORK/reference.jsonl" >"$WORK/reference.results"
for program in drafter verifier; do
    shimmed counted $program FAIL_MPI_COUNTS="$WORK/$program.counts" || fail "$program: the shim alone changes the job"
    grep -q MPI_Isend "$WORK/$program.counts" || { echo "the shim was not loaded: $(cat "$WORK/counted.err")"; exit 1; }
    checks=$((checks + 1))
    grep 'without an unwinder' "$WORK/counted.err" && fail "a $program that crashes while MPI starts may hang in its stack trace"
    while read -r function count; do
        for n in $(numbers "$count"); do beside judged $program-$function-$n $program "$function" "$n" "$count"; done
    done <"$WORK/$program.counts"
done
together
touch "$WORK/felt"
ended=$(wc -l <"$WORK/felt")
echo "$((checks - 2)) calls failed, $ended of the jobs ended with an error"
[ "$ended" -gt 0 ] || fail "no failure was felt"

# A rank that stops behind MPI_Finalize, when the others are gone: its keeper ends it, and the job.
for program in drafter verifier; do
    checks=$((checks + 1))
    shimmed stops $program FAIL_MPI_STOPS=1
    code=$?
    [ $code = 76 ] || fail "a $program that hangs behind MPI_Finalize: expected exit 76, got $code"
    grep -q 'a rank hangs at the very end' "$WORK/stops.err" || fail "nobody says that a $program hangs:" "$(cat "$WORK/stops.err")"
    results_of "$WORK/stops.jsonl" | cmp -s - "$WORK/reference.results" || fail "a $program that hangs at its end: another output"
    rm -f "$WORK"/stops.*
done

# A drafter that dies when all have come to the end, before it leaves: the job is done.
checks=$((checks + 1))
shimmed dies drafter FAIL_MPI_DIES=1
code=$?
[ $code = 0 ] || fail "a drafter that dies between the end and MPI_Finalize: expected exit 0, got $code:" "$(cat "$WORK/dies.err")"
results_of "$WORK/dies.jsonl" | cmp -s - "$WORK/reference.results" || fail "a drafter that dies at the end: another output"

# A drafter that was lost, and comes to the end late: nothing ends it there, which srun would take for a job that failed.
checks=$((checks + 1))
OPTIONS+=(--silent-drafter yes --draft-length 4)
shimmed late drafter FAIL_MPI_LATE=1 FAIL_MPI_COUNTS="$WORK/late.counts"
code=$?
[ $code = 0 ] || fail "a lost drafter that comes late to the end: expected exit 0, got $code:" "$(cat "$WORK/late.err")"
grep -q "does not answer in time" "$WORK/late.err" || fail "the silent drafter was not lost"
[ -s "$WORK/late.counts" ] || fail "a lost drafter that comes late to the end was ended by the others"
finish
