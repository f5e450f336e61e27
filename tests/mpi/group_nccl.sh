#!/usr/bin/env bash
# The group over NCCL when something goes wrong: each call fails, at once or later, on each rank; is never done; does not return; devices are
# shared; the library is missing or too old. The job must end within its deadline, with the documented code, and with one line that names the
# call, the rank and the device. Several jobs at once: most of the time they wait for deadlines. group_nccl.sh JOB FOLDER_OF_THE_FAKE MPIRUN...
set -u
JOB=$1
FAKE=$2
shift 2
MPIRUN=("$@")
TOP=$(mktemp -d)
trap 'rm -rf "$TOP"' EXIT
export LD_LIBRARY_PATH=$FAKE
DEADLINE=60 # seconds; far above what any ending takes
AT_ONCE=3
HOST=$(hostname | cut -c 1-63)
failures=0
checks=0
running=0
scenes=0

# scene COMMAND...: with a folder of its own, beside others; its checks and failures go to COUNTS there.
scene() {
    scenes=$((scenes + 1))
    [ $running -lt $AT_ONCE ] || wait -n
    running=$((running < AT_ONCE ? running + 1 : AT_ONCE))
    (
        WORK=$TOP/$scenes
        mkdir "$WORK"
        export TMPDIR=$WORK FAKE_NCCL_TRACE=$WORK/trace
        "$@"
        echo $checks $failures >"$WORK/counts"
    ) </dev/null >"$TOP/$scenes.out" &
}

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
    [ ! -e "${WORK-}/err" ] || sed 's/^/    /' "$WORK/err" | head -n 12
}

# run RANKS FAULT ARGUMENT...: runs a job with this fault; returns its exit code.
run() {
    local ranks=$1 fault=$2
    shift 2
    rm -f "$WORK/trace"
    FAKE_NCCL=$fault timeout -k 5 $DEADLINE "${MPIRUN[@]}" -np "$ranks" "$JOB" "$@" </dev/null >"$WORK/out" 2>"$WORK/err"
}

# ends WHAT CODE EXPECTED [PATTERN]...: the last job ended with this code and one line of error, which has every pattern.
ends() {
    local what=$1 code=$2 expected=$3 pattern
    shift 3
    checks=$((checks + 1))
    [ "$code" = "$expected" ] || { fail "$what: exit code $code, expected $expected"; return; }
    [ "$(grep -c 'error: ' "$WORK/err")" = 1 ] || { fail "$what: $(grep -c 'error: ' "$WORK/err") lines of error, expected one"; return; }
    for pattern; do
        grep 'error: ' "$WORK/err" | grep -q -- "$pattern" || fail "$what: the line has not '$pattern'"
    done
}

# bitten WHAT CODE: the watchdog of some rank ended the last job; others may have said the same before it was over.
bitten() {
    checks=$((checks + 1))
    [ "$2" = 76 ] || fail "$1: exit code $2, expected 76"
    grep -q 'error: no progress for' "$WORK/err" || fail "$1: no line says so"
}

# aborted RANKS WHAT: each rank of the last job aborted its communicator, and none ended a child in order.
aborted() {
    checks=$((checks + 1))
    [ "$(sort -u "$WORK/trace" | grep -c ' ncclCommAbort$')" = "$1" ] || fail "$2: not every rank aborted"
    grep -q ' a child ends in order$' "$WORK/trace" && fail "$2: a broken communicator was ended in order"
}

# where RANK: as a line of error has it.
where() { printf 'on rank %d (host %s, device %d \\[0000:%x:00.0\\] pretended)' "$1" "$HOST" "$1" $((24 + $1)); }

nothing_is_wrong() { # RANKS
    local rank
    run $1 "" || fail "$1 ranks: nothing is wrong, and it fails"
    checks=$((checks + 1))
    [ "$(grep -c " a child ends in order" "$WORK/trace")" = $1 ] || fail "$1 ranks: communicators are not ended in order"
    [ "$(grep -c " ncclCommDestroy" "$WORK/trace")" = $((2 * $1)) ] || fail "$1 ranks: the parents of communicators are not ended in order"
    # as nccl-tests shows it
    for rank in $(seq 0 $(($1 - 1))); do
        grep -qE "#  Rank  $rank Group  0 Pid +[0-9]+ on +$HOST device  $rank \[0000:$(printf %x $((24 + rank))):00.0\] pretended" \
            "$WORK/err" || fail "$1 ranks: the map lacks rank $rank"
    done
}
a_call_fails() { # RANKS RANK CALL DEED [ARGUMENT]...
    run $1 "$2 $3 1 $4=2" "${@:5}"
    ends "$1 ranks, $3, $4" $? 74 "$3 failed $(where $2): unhandled system error (as the fake was told); look at the network"
    [ $3/$4 = ncclCommInitRankConfig/fail ] || aborted $1 "$1 ranks, $3, $4"
}
a_peer_is_lost() { # RANKS RANK SUM
    run $1 "$2 $3 4 later=6"
    ends "a peer is lost during sum 4 of $1 ranks" $? 74 "$3 failed $(where $2): remote process exited" "look for the first error of the others"
    aborted $1 "a lost peer of $1 ranks"
}
an_error_afterwards() { # RANKS RANK SUM
    run $1 "$2 $3 4 async=1"
    ends "sum 4 of $1 ranks fails after its call, when the device is idle" $? 74 "a sum over NCCL failed $(where $2): unhandled cuda error"
    aborted $1 "a sum of $1 ranks that fails after its call"
}
no_memory() { # RANKS RANK
    run $1 "$2 ncclMemAlloc 1 fail=1"
    ends "no memory on rank $2 of $1" $? 74 "ncclMemAlloc failed $(where $2): unhandled cuda error"
}
never_split() { # RANKS RANK
    run $1 "$2 ncclCommSplit 1 stuck" patience=1
    ends "a communicator that is never split, $1 ranks" $? 76 "ncclCommSplit is not done in time on rank [0-9] (host"
    aborted $1 "a communicator that is never split, $1 ranks"
}
never_made() { # RANKS RANK
    run $1 "$2 ncclCommInitRankConfig 1 stuck" patience=1
    ends "a communicator that is never made, $1 ranks" $? 76 "ncclCommInitRankConfig is not done in time on rank [0-9] (host"
}
is_bitten() { # WHAT RANKS FAULT ARGUMENT...
    run "$2" "$3" "${@:4}"
    bitten "$1" $?
}
no_unique_id() { # RANKS
    run $1 "0 ncclGetUniqueId 1 fail=3"
    ends "no unique id for $1 ranks" $? 74 "ncclGetUniqueId failed on rank 0 (host" "internal error"
}
one_device() { # RANKS
    run $1 "" same-device
    ends "$1 ranks on one device" $? 64 "ranks 0 and 1 on host $HOST have the same device 0 \[0000:18:00.0\] pretended"
    grep -q ncclCommInit "$WORK/trace" && fail "$1 ranks on one device: NCCL was asked all the same"
}
one_device_under_two_names() { # NAMES
    run 2 "" $1
    ends "2 ranks on one device, $1" $? 64 "ranks 0 and 1 on host $HOST have the same device"
}
too_old() {
    FAKE_NCCL_VERSION=21700 run 2 ""
    ends "a library that is too old" $? 64 "libnccl.so.2 is version 21700, expected NCCL 2.18 or later"
}
two_versions() {
    timeout -k 5 $DEADLINE "${MPIRUN[@]}" -np 1 env FAKE_NCCL_VERSION=22809 "$JOB" : -np 1 env FAKE_NCCL_VERSION=22703 "$JOB" </dev/null >"$WORK/out" 2>"$WORK/err"
    ends "two versions" $? 64 "rank 0 on host .* has NCCL 2.28 and rank 1 on host .* has 2.27"
}
no_library() {
    mkdir "$WORK/broken"
    : >"$WORK/broken/libnccl.so.2"
    LD_LIBRARY_PATH=$WORK/broken run 2 ""
    ends "no library" $? 64 "verifiers on several GPUs need NCCL, and it cannot be loaded (.*libnccl.so.2.*): install"
}

for ranks in 2 3; do
    sum=ncclAllReduce
    [ $ranks = 3 ] && sum=ncclAllGather
    scene nothing_is_wrong $ranks
    for rank in 0 $((ranks - 1)); do
        for call in ncclCommInitRankConfig ncclCommSplit ncclCommWindowRegister $sum; do
            for deed in fail later; do scene a_call_fails $ranks $rank $call $deed; done
        done
        scene a_peer_is_lost $ranks $rank $sum
        scene an_error_afterwards $ranks $rank $sum
        scene no_memory $ranks $rank
        scene never_made $ranks $rank
        scene never_split $ranks $rank
    done
    scene is_bitten "a call that does not return, $ranks ranks" $ranks "1 ncclCommInitRankConfig 1 hang" patience=1 watchdog=1
    scene is_bitten "a sum that is never done, $ranks ranks" $ranks "0 $sum 3 stuck" watchdog=1
    scene is_bitten "a sum that does not return, $ranks ranks" $ranks "1 $sum 3 hang" watchdog=1
    scene is_bitten "a rank that does not come to a sum of $ranks" $ranks "" watchdog=1 absent=1
    scene no_unique_id $ranks
    scene one_device $ranks
done
# Sums that are too large to be gathered, of more than two ranks.
large=numbers=1200000
for rank in 0 2; do
    for call in ncclGroupStart ncclSend ncclRecv ncclGroupEnd; do scene a_call_fails 3 $rank $call fail $large; done
    scene a_call_fails 3 $rank ncclGroupEnd later $large
done
scene is_bitten "slices that are never exchanged" 3 "0 ncclGroupEnd 2 stuck" watchdog=1 $large
scene is_bitten "a rank that does not come to a sum in slices" 3 "" watchdog=1 absent=1 $large
scene one_device_under_two_names parts
scene one_device_under_two_names one-uuid
scene too_old
scene two_versions
scene no_library
wait
for ((i = 1; i <= scenes; i++)); do
    cat "$TOP/$i.out"
    read -r a b <"$TOP/$i/counts" || fail "scene $i did not come to its end"
    checks=$((checks + a)) failures=$((failures + b))
done
printf '%d checks, %d failed\n' "$checks" "$failures"
[ "$failures" = 0 ]
