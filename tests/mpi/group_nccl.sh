#!/usr/bin/env bash
# The group over NCCL when something goes wrong: each call fails, at once or later, on each rank; is never done; does not return; devices are
# shared; the library is missing or too old. The job must end within its deadline, with the documented code, and with one line that names the
# call, the rank and the device. group_nccl.sh JOB FOLDER_OF_THE_FAKE MPIRUN...
set -u
JOB=$1
FAKE=$2
shift 2
MPIRUN=("$@")
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export TMPDIR=$WORK LD_LIBRARY_PATH=$FAKE FAKE_NCCL_TRACE=$WORK/trace
DEADLINE=60 # seconds; far above what any ending takes
failures=0
checks=0

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
    sed 's/^/    /' "$WORK/err" | head -n 12
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

# aborted RANKS WHAT: each rank of the last job aborted its communicator, and none ended it in order.
aborted() {
    checks=$((checks + 1))
    [ "$(sort -u "$WORK/trace" | grep -c ' ncclCommAbort$')" = "$1" ] || fail "$2: not every rank aborted"
    grep -q ' ncclCommDestroy$' "$WORK/trace" && fail "$2: a broken communicator was ended in order"
}

for ranks in 2 3; do
    sum=ncclAllReduce
    [ $ranks = 3 ] && sum=ncclAllGather
    run $ranks "" || fail "$ranks ranks: nothing is wrong, and it fails"
    checks=$((checks + 1))
    [ "$(grep -c "ncclCommDestroy" "$WORK/trace")" = $ranks ] || fail "$ranks ranks: communicators are not ended in order"
    # as nccl-tests shows it
    for rank in $(seq 0 $((ranks - 1))); do
        grep -qE "#  Rank  $rank Group  0 Pid +[0-9]+ on +$(hostname | cut -c 1-63) device  $rank \[0000:$(printf %x $((24 + rank))):00.0\] pretended" \
            "$WORK/err" || fail "$ranks ranks: the map lacks rank $rank"
    done

    for rank in 0 $((ranks - 1)); do
        where="on rank $rank (host $(hostname | cut -c 1-63), device $rank \[0000:$(printf %x $((24 + rank))):00.0\] pretended)"
        for call in ncclCommInitRankConfig ncclCommWindowRegister $sum; do
            for deed in fail later; do
                run $ranks "$rank $call 1 $deed=2"
                ends "$ranks ranks, $call, $deed" $? 74 "$call failed $where: unhandled system error (as the fake was told); look at the network"
                [ $call/$deed = ncclCommInitRankConfig/fail ] || aborted $ranks "$ranks ranks, $call, $deed"
            done
        done
        run $ranks "$rank $sum 4 later=6"
        ends "a peer is lost during sum 4 of $ranks ranks" $? 74 "$sum failed $where: remote process exited" "look for the first error of the others"
        aborted $ranks "a lost peer of $ranks ranks"
        run $ranks "$rank ncclMemAlloc 1 fail=1"
        ends "no memory on rank $rank of $ranks" $? 74 "ncclMemAlloc failed $where: unhandled cuda error"
        run $ranks "$rank ncclCommInitRankConfig 1 stuck" patience=1
        ends "a communicator that is never made, $ranks ranks" $? 76 "ncclCommInitRankConfig is not done in time on rank [0-9] (host"
    done
    run $ranks "1 ncclCommInitRankConfig 1 hang" patience=1 watchdog=1
    bitten "a call that does not return, $ranks ranks" $?
    run $ranks "0 $sum 3 stuck" watchdog=1
    bitten "a sum that is never done, $ranks ranks" $?
    run $ranks "1 $sum 3 hang" watchdog=1
    bitten "a sum that does not return, $ranks ranks" $?
    run $ranks "" watchdog=1 absent=1
    bitten "a rank that does not come to a sum of $ranks" $?
    run $ranks "0 ncclGetUniqueId 1 fail=3"
    ends "no unique id for $ranks ranks" $? 74 "ncclGetUniqueId failed on rank 0 (host" "internal error"
    run $ranks "" same-device
    ends "$ranks ranks on one device" $? 64 "ranks 0 and 1 on host $(hostname | cut -c 1-63) have the same device 0 \[0000:18:00.0\] pretended"
    grep -q ncclCommInit "$WORK/trace" && fail "$ranks ranks on one device: NCCL was asked all the same"
done

FAKE_NCCL_VERSION=21700 run 2 ""
ends "a library that is too old" $? 64 "libnccl.so.2 is version 21700, expected NCCL 2.18 or later"
rm -f "$WORK/trace"
timeout -k 5 $DEADLINE "${MPIRUN[@]}" -np 1 env FAKE_NCCL_VERSION=22809 "$JOB" : -np 1 env FAKE_NCCL_VERSION=22703 "$JOB" </dev/null >"$WORK/out" 2>"$WORK/err"
ends "two versions" $? 64 "rank 0 on host .* has NCCL 2.28 and rank 1 on host .* has 2.27"
mkdir "$WORK/broken"
: >"$WORK/broken/libnccl.so.2"
LD_LIBRARY_PATH=$WORK/broken run 2 ""
ends "no library" $? 64 "verifiers on several GPUs need NCCL, and it cannot be loaded (.*libnccl.so.2.*): install"

printf '%d checks, %d failed\n' "$checks" "$failures"
[ "$failures" = 0 ]
