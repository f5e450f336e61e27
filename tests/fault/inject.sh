# Sourced by the tests of this folder: jobs in the background, their ranks, and what is done to them. Nothing waits without a deadline.
. "$(dirname "${BASH_SOURCE[0]}")/../mpi/end_to_end/job.sh"

# start NAME OPTION...: a job in the background, its mpirun line changed by the sed program CHANGE, its recorders in $WORK/NAME.rec; sets MPIRUN_PID. Whatever happens, it ends.
start() {
    local name=$1 line
    shift
    line=$("$BIN/tandem-verifier" --dry-run --output "$WORK/$name.jsonl" --stats "$WORK/$name.json" --recorder "$WORK/$name.rec" "$@" \
        2>"$WORK/$name.err" | sed "${CHANGE-}") || return
    eval "exec_line=($line)"
    timeout -k 5 300 "${exec_line[@]}" >"$WORK/$name.out" 2>>"$WORK/$name.err" &
    TIMEOUT_PID=$!
    MPIRUN_PID=
    await "mpirun of $name" 'MPIRUN_PID=$(children_of $TIMEOUT_PID) && [ -n "$MPIRUN_PID" ]'
}

parent_of() { awk '$1 == "PPid:" { print $2 }' "/proc/$1/status"; }

# ranks_of PROGRAM: the processes of the job that run it, in order of rank. A rank is the child of its keeper.
ranks_of() {
    local child
    for child in $(children_of "$MPIRUN_PID"); do
        if [ "$(program_of "$child")" = tandem-keeper ] && [ "$1" != tandem-keeper ]; then child=$(children_of "$child"); fi
        [ "$(program_of "$child")" = "$1" ] && echo "$child"
    done
}

everybody() { ranks_of tandem-keeper; ranks_of tandem-drafter; ranks_of tandem-verifier; }

# await_results NAME COUNT: until the job's journal has so many results (its first line is a header).
await_results() { await "$2 results of $1" "has_lines '$WORK/$1.jsonl.journal' $(($2 + 1))"; }

# ended WITHIN: waits for the job with a deadline in seconds; sets CODE and TOOK (ms since the call).
ended() {
    local began=${EPOCHREALTIME/[.,]/}
    checks=$((checks + 1))
    TOOK=0
    while kill -0 "$TIMEOUT_PID" 2>/dev/null && [ $TOOK -lt $(($1 * 1000)) ]; do
        nap 0.02
        TOOK=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
    done
    if kill -0 "$TIMEOUT_PID" 2>/dev/null; then
        fail "the job did not end within $1 s"
        kill -TERM "$TIMEOUT_PID"
    fi
    wait "$TIMEOUT_PID"
    CODE=$?
}

# gone PID...: none of them is left.
gone() {
    local pid
    checks=$((checks + 1))
    for pid in "$@"; do
        await "the end of process $pid" "! [ -d /proc/$pid ]" || kill -KILL "$pid"
    done
}

# expect NAME WHAT TEST: one check.
expect() {
    checks=$((checks + 1))
    eval "$3" || fail "$1: $2 (exit $CODE, $TOOK ms): $(tail -n 5 "$WORK/$1.err")"
}

# said NAME COUNT PATTERN: so many lines of stderr match.
said() { expect "$1" "expected $2 lines '$3'" "[ \$(grep -c -- '$3' '$WORK/$1.err') = $2 ]"; }

# lost NAME REASON: the figures count one lost drafter, and say why.
lost() { expect "$1" "expected one lost drafter that $2" "[ \"\$(sed -n 's/^ *\"reason\": \"\\(.*\\)\",\$/\\1/p' '$WORK/$1.json')\" = '$2' ]"; }
