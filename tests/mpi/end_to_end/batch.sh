# Sourced after job.sh by the tests of jobs that write to a file: starting in the background, finding ranks, waiting with a deadline.

# line OPTION...: sets LINE to the words of the mpirun line. --plain-results: what is left must be equal to the byte.
line() {
    local text

    text=$("$BIN/tandem-verifier" --dry-run --prompts "$INPUT" --plain-results --quiet "$@") || { fail "--dry-run $*: exit $?"; finish; }
    eval "LINE=($text)"
}

# start NAME OPTION...: a job in the background that writes $WORK/NAME.jsonl; sets PID.
start() {
    local name=$1
    shift
    line --output "$WORK/$name.jsonl" "$@"
    "${LINE[@]}" >"$WORK/$name.out" 2>"$WORK/$name.err" </dev/null &
    PID=$!
}

# paused N OPTION...: as `start job`, and its lead has stopped as the journal has N results, so that the job cannot end before something is done to it;
# sets LEAD. DISK: the library to preload.
paused() {
    local results=$1
    shift
    line --output "$WORK/job.jsonl" "$@"
    paused_line "$results"
}

# paused_line N: of the job whose words LINE has.
paused_line() {
    local stopped='LEAD=$(ranks tandem-verifier | head -n 1) && [ -n "$LEAD" ] && grep -qs "^State:.T" "/proc/$LEAD/status"'
    # The journal begins with its terms.
    env LD_PRELOAD="$DISK" FAILING_CALL=stop FAILING_AT=$(($1 + 1)) FAILING_ERRNO=0 "${LINE[@]}" >"$WORK/job.out" 2>"$WORK/job.err" </dev/null &
    PID=$!
    await "$1 results and the lead to stop" "$stopped"
}

# resume_with SIGNAL: of which the lead that has stopped hears first.
resume_with() {
    kill "-$1" "$LEAD"
    kill -CONT "$LEAD"
}

# ended SECONDS: waits for PID; sets CODE.
ended() {
    local i

    for ((i = 0; i < $1 * 20; i++)); do
        kill -0 "$PID" 2>/dev/null || break
        nap 0.05
    done
    if kill -0 "$PID" 2>/dev/null; then
        fail "the job did not end within $1 s"
        kill -TERM "$PID"
    fi
    wait "$PID" 2>/dev/null
    CODE=$?
}

# run NAME OPTION...: a job in the foreground, with a deadline; sets CODE.
run() {
    start "$@"
    ended 120
}

# descendants PID: all processes below it.
descendants() {
    local child

    for child in $(children_of "$1"); do
        echo "$child"
        descendants "$child"
    done
}

# ranks PROGRAM: the processes of that name below PID, in order of rank.
ranks() {
    local pid

    for pid in $(descendants "$PID"); do
        [ "$(program_of "$pid")" = "$1" ] && echo "$pid"
    done
}

# await_results NAME N: until the journal has N results, or the job is at its end, at most 60 s.
await_results() {
    local i

    for ((i = 0; i < 6000; i++)); do
        has_lines "$WORK/$1.jsonl.journal" "$2" '{"index"' && return
        kill -0 "$PID" 2>/dev/null || return
        nap 0.01
    done
    fail "$1 never had $2 results"
}

# check WHAT COMMAND...: counts a check.
check() {
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" || fail "$what: $(head -n 5 "$WORK/job.err" 2>/dev/null)"
}

# exits CODE WITH...: the job named "job" ended so, and stderr has one error line with that text.
exits() {
    checks=$((checks + 1))
    if [ "$CODE" != "$1" ]; then
        fail "$2: exit $CODE, expected $1: $(head -n 5 "$WORK/job.err")"
    elif [ "$(grep -c 'error: ' "$WORK/job.err")" != 1 ] || ! grep -q -- "$2" "$WORK/job.err"; then
        fail "expected one error line with '$2', got: $(cat "$WORK/job.err")"
    fi
}

# random N: 0 .. N - 1, from the seed that the test prints.
random() { echo $((RANDOM % $1)); }
