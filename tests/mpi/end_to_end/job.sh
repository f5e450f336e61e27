# Sourced by the tests of this folder. A job is started the way a user would: the mpirun line that --dry-run prints is run as it stands.
#
# BIN is the folder of the two programs, WORK one for files, which is removed at the end.
set -u
BIN=$1
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SOURCE=$(cd "$HERE/../../.." && pwd)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export TMPDIR=$WORK # so that what a broken job leaves behind goes as well
export XDG_CACHE_HOME=/dev/null # no folder: each job begins as the first one does, whatever others timed and saw of drafts
export SHELL=/bin/bash # script's, which is given words as this one quotes them
PROMPTS=$HERE/prompts.jsonl
FEW=$WORK/few.in # a job of 16 lines
head -n 16 "$PROMPTS" >"$FEW"
# What a hand-written line needs on any machine, root or not, few cores or many.
MPIRUN="mpirun -q --oversubscribe --bind-to none --mca pml ob1 --mca btl vader,self --mca btl_vader_single_copy_mechanism none --mca mpi_yield_when_idle 1"
[ "$(id -u)" = 0 ] && MPIRUN="$MPIRUN --allow-run-as-root"
failures=0
checks=0

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}

# beside COMMAND...: runs it in a shell of its own beside at most AT_ONCE - 1 others, for jobs that wait more than they compute: for mpirun, for
# deadlines. What they say and count is taken in by `together`.
AT_ONCE=3
asides=0
beside() {
    asides=$((asides + 1))
    while [ "$(jobs -rp | wc -l)" -ge $AT_ONCE ]; do wait -n; done
    (
        failures=0 checks=0
        # mpirun removes the folder of all its jobs when it is empty, and fails where another one is about to make its own in it.
        export TMPDIR=$WORK/aside.$asides.tmp
        mkdir -p "$TMPDIR"
        "$@"
        echo $checks $failures >"$WORK/aside.$asides.counts"
    ) </dev/null >"$WORK/aside.$asides.out" &
}

# together: waits for all that runs beside; one that did not come to its end is a failure.
together() {
    local held broken
    wait
    while [ $asides -gt 0 ]; do
        cat "$WORK/aside.$asides.out"
        held=0 broken=0
        read -r held broken <"$WORK/aside.$asides.counts" || fail "what ran beside did not come to its end"
        checks=$((checks + held)) failures=$((failures + broken)) asides=$((asides - 1))
    done
}

# nap SECONDS: sleeps without a process of its own, of which a test that waits would start hundreds: nobody writes to what is read here.
exec {NOBODY}<> <(:)
nap() { read -rt "$1" -u "$NOBODY"; :; }

# has_lines FILE COUNT [PREFIX]: it has so many lines that begin so, or more.
has_lines() {
    local line lines=0
    [ -f "$1" ] || return
    while read -r line; do
        case $line in "${3-}"*) lines=$((lines + 1)) ;; esac
    done <"$1"
    [ $lines -ge "$2" ]
}

# children_of PID, program_of PID: nothing where it has ended.
children_of() {
    local list children all=()
    for list in "/proc/$1/task"/*/children; do # without a newline at its end
        children=()
        { read -ra children <"$list"; } 2>/dev/null
        all+=(${children[@]+"${children[@]}"})
    done
    [ ${#all[@]} -gt 0 ] && printf '%s\n' "${all[@]}"
}
program_of() {
    local program
    { read -r program <"/proc/$1/comm"; } 2>/dev/null && echo "$program"
}

# await WHAT TEST [SECONDS]: until TEST holds, at most 60 s.
await() {
    local i
    for ((i = 0; i < 50 * ${3:-60}; i++)); do
        eval "$2" && return
        nap 0.02
    done
    fail "waited ${3:-60} s for $1"
    return 1
}

# seeded [SEED]: RANDOM goes by a seed, which is printed.
seeded() {
    seed=${1:-$(date +%s)}
    RANDOM=$seed
    echo "seed $seed"
}

# Ends the test: 0 when every check held.
finish() {
    together
    printf '%d checks, %d failed\n' "$checks" "$failures"
    [ "$failures" = 0 ]
    exit
}

# Lays the programs out as an installation has them, in $WORK/bin, and sets $tandem.
as_installed() {
    local program
    mkdir "$WORK/bin"
    cp "$SOURCE/launch/tandem" "$WORK/bin/"
    for program in "$BIN"/tandem-*; do ln -s "$program" "$WORK/bin/"; done
    tandem=$WORK/bin/tandem
}

# job NAME OPTION...: runs a job; results, figures and stderr go to $WORK/NAME.{jsonl,json,err}; returns its exit code.
job() {
    local name=$1 line
    shift
    line=$("$BIN/tandem-verifier" --dry-run --output "$WORK/$name.jsonl" --stats "$WORK/$name.json" "$@" 2>"$WORK/$name.err") || return
    eval "$line" >"$WORK/$name.out" 2>>"$WORK/$name.err"
}

# What must be equal between two jobs over the same prompts: index, tokens, reason of each result.
results_of() {
    [ -f "$1" ] && sed -E 's/.*"index":([0-9]+),.*"tokens":(\[[^]]*\]).*"finish_reason":"([a-z]+)".*/\1 \2 \3/' "$1"
}

# figure NAME KEY: a number or a word of the figures.
figure() {
    [ -f "$WORK/$1.json" ] && sed -nE "s/^ *\"$2\": \"?([^\",]*)\"?,?$/\1/p" "$WORK/$1.json" | head -n 1
}

# same NAME REFERENCE: both jobs gave the same tokens, and their targets the same logits.
same() {
    checks=$((checks + 1))
    results_of "$WORK/$1.jsonl" >"$WORK/$1.results"
    results_of "$WORK/$2.jsonl" >"$WORK/$1.expected" # of its own: several may be compared with one reference at a time
    if [ ! -s "$WORK/$1.expected" ]; then
        fail "$2 gave no results: $(cat "$WORK/$2.err")"
    elif ! cmp -s "$WORK/$1.results" "$WORK/$1.expected"; then
        fail "$1 differs from $2:" "$(diff "$WORK/$1.results" "$WORK/$1.expected" | head -n 4 | cut -c 1-200)" "$(head -n 5 "$WORK/$1.err")"
    elif [ "$(figure "$1" logits_hash)" != "$(figure "$2" logits_hash)" ]; then
        fail "$1 has logits_hash $(figure "$1" logits_hash), $2 has $(figure "$2" logits_hash)"
    fi
}
