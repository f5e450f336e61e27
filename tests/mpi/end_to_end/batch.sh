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

# ended SECONDS: waits for PID; sets CODE.
ended() {
    local i

    for ((i = 0; i < $1 * 20; i++)); do
        kill -0 "$PID" 2>/dev/null || break
        sleep 0.05
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

    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
        echo "$child"
        descendants "$child"
    done
}

# ranks PROGRAM: the processes of that name below PID, in order of rank.
ranks() {
    local pid

    for pid in $(descendants "$PID"); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] && echo "$pid"
    done
}

# await_results NAME N: until the journal has N results, or the job is at its end, at most 60 s.
await_results() {
    local i

    for ((i = 0; i < 6000; i++)); do
        [ "$(grep -c '^{"index"' "$WORK/$1.jsonl.journal" 2>/dev/null)" -ge "$2" ] 2>/dev/null && return
        kill -0 "$PID" 2>/dev/null || return
        sleep 0.01
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
