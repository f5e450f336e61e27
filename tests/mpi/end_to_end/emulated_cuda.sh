#!/usr/bin/env bash
# Whole jobs with the CUDA backend over the emulation: groups over the tests' NCCL. Tiny models. What must hold on a device holds here: drafted
# output has solo's tokens and logits, bit for bit; its tokens are the CPU's choice or near it; a call of NCCL that fails ends the job with its
# code and its line. emulated_cuda.sh BIN EMULATED_BIN FOLDER_OF_THE_FAKE LAW_JOB TEACHER CONVERT
# default|small: small is for builds that run fifty times slower. TANDEM_WIDE=1 in the environment: truncated sampling and four verifiers, too.
. "$(dirname "$0")/job.sh"
BIN=$2
TEACHER=$5 CONVERT=$6
export LD_LIBRARY_PATH=$3 FAKE_NCCL_TRACE=$WORK/trace
"$4" write "$WORK" 1 || exit # a target and a draft of 32 tokens, 4 heads
for i in 5 11 3 29; do echo "{\"prompt_tokens\": [$i, $((i * 7 % 32)), $((i * 5 % 31))]}"; done >"$WORK/prompts.jsonl"
ALL=(--target "$WORK/target.bin" --draft "$WORK/draft.bin" --prompts "$WORK/prompts.jsonl" --max-tokens 14 --ignore-eos --hash-logits --threads 1)

# equal NAME VERIFIERS SUMS OPTION...: a drafted job is solo's on so many verifiers, and its sums went over NCCL, in its window, or by one-shot kernels
# alone, on devices of their own. Solo sums over NCCL: the bits are the same.
equal() {
    local name=$1 verifiers=$2 sums=$3 call=ncclAllReduce how=all-reduce calls
    shift 3
    [ "$verifiers" -gt 2 ] && call=ncclAllGather how='all-gather and tree'
    [ "$sums" = nccl ] || how="$how, up to [0-9]* KiB by one-shot kernels"
    job "solo_$name" --backend cuda --solo --verifiers "$verifiers" --max-sequences 3 --all-reduce nccl "$@" ||
        fail "solo_$name: exit $?: $(head -n 5 "$WORK/solo_$name.err")"
    rm -f "$FAKE_NCCL_TRACE"
    job "drafted_$name" --backend cuda --drafters 1 --verifiers "$verifiers" --draft-length 3 --draft-deadline 60000 \
        --max-sequences 2 --all-reduce "$sums" --verbose "$@" ||
        fail "drafted_$name: exit $?: $(head -n 5 "$WORK/drafted_$name.err")"
    same "drafted_$name" "solo_$name"
    checks=$((checks + 4))
    [ "0$(figure "drafted_$name" accepted)" -gt 0 ] || fail "drafted_$name: no draft was ever accepted"
    calls=$(grep -c " $call$" "$FAKE_NCCL_TRACE")
    if [ "$sums" = nccl ]; then
        [ "$calls" -ge $((verifiers * 2 * $(figure "drafted_$name" rounds) / 2)) ] || fail "drafted_$name: not every step was summed over NCCL"
    else
        # At the start each rank sums once at each of a few sizes.
        [ "$calls" -le $((8 * verifiers)) ] || fail "drafted_$name: $calls sums over NCCL, expected none but the first"
    fi
    grep -q "group over NCCL 2.30.7, symmetric windows, sums by $how\$" "$WORK/drafted_$name.err" || fail "drafted_$name: not by $how"
    [ "$(grep -c '#  Rank .* device .* emulation' "$WORK/drafted_$name.err")" = "$verifiers" ] || fail "drafted_$name: no map of devices"
}

equal greedy 2 nccl "${ALL[@]}"
equal one_shot 2 one-shot "${ALL[@]}"
equal bytes 2 one-shot "${ALL[@]}" --cache fp8
# The target drafts for itself, so what its drafter goes on with is what is committed, and a device copies that branch.
equal ahead 2 nccl "${ALL[@]}" --draft "$WORK/target.bin" --run-ahead on
checks=$((checks + 1))
grep -q "ran ahead: [1-9][0-9]* branches" "$WORK/drafted_ahead.err" || fail "drafted_ahead: nobody ran ahead: $(grep drafter "$WORK/drafted_ahead.err")"
# A drafter on the device of a verifier, which takes turns with it.
checks=$((checks + 2))
job drafted_shared --backend cuda --drafters 1 --verifiers 2 --drafter-devices 0 --verifier-devices 0,1 --draft-length 3 --draft-deadline 60000 \
    --max-sequences 2 --all-reduce one-shot --verbose "${ALL[@]}" || fail "drafted_shared: exit $?: $(head -n 5 "$WORK/drafted_shared.err")"
same drafted_shared solo_greedy
[ "$(grep -c "weights, .*cuda, device 0, emulation" "$WORK/drafted_shared.err")" = 2 ] || fail "drafted_shared: not on one device: $(cat "$WORK/drafted_shared.err")"
[ "0$(figure drafted_shared accepted)" -gt 0 ] || fail "drafted_shared: no draft was ever accepted"
# More verifiers than kv heads: each has the one that its query heads read, and so have others. Each token is the CPU's choice, or near it.
mkdir "$WORK/few"
"$4" write "$WORK/few" 1 4 64 2 || exit
FEW_HEADS=("${ALL[@]}" --target "$WORK/few/target.bin" --draft "$WORK/few/draft.bin")
equal few_heads 4 one-shot "${FEW_HEADS[@]}"
checks=$((checks + 1))
paste -d: <(tr -dc '0-9 \n' <"$WORK/prompts.jsonl") <(sed -E 's/.*"index":[0-9]+,.*"tokens":\[([^]]*)\].*/\1/; s/,/ /g' "$WORK/drafted_few_heads.jsonl") |
    sed 's/:/ : /' | "$TEACHER" "$WORK/few/target.bin" 0.05 || fail "few_heads: a token is not the CPU's choice, nor near it"
if [ -n "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ]; then
    equal coupled 2 one-shot "${ALL[@]}" --accept coupled --temperature 0.9 --seed 3
    equal listed 2 nccl "${ALL[@]}" --accept coupled --temperature 0.9 --top-p 0.8 --seed 3
fi
if [ "$7" != small ] && [ -n "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ]; then # the embedded pair on four, of which a step takes a second here
    echo '{"prompt_tokens": [273, 264, 760]}' >"$WORK/one.jsonl"
    equal wide 4 one-shot --prompts "$WORK/one.jsonl" --max-tokens 6 --ignore-eos --hash-logits --threads 1
fi

# Weights in blocks: drafted output is solo's. On two verifiers a shard cuts them (heads of 24 columns), and they are widened, which is said; on one
# none is.
"$CONVERT" "$SOURCE/launch/demo/draft" "$WORK/blocks.gguf" q8_0 gpt-2 || fail "cannot make a GGUF file"
BLOCKS=(--target "$WORK/blocks.gguf" --draft "$WORK/blocks.gguf" --prompts "$WORK/prompts.jsonl" --max-tokens 8 --ignore-eos --hash-logits --threads 1)
equal blocks 2 nccl "${BLOCKS[@]}"
checks=$((checks + 3))
grep -q "2 matrices have rows of several dtypes, .* or their columns cut blocks" "$WORK/drafted_blocks.err" ||
    fail "no line says what a shard cuts: $(cat "$WORK/drafted_blocks.err")"
job blocks_alone --backend cuda --solo --verifiers 1 --verbose "${BLOCKS[@]}" || fail "blocks_alone: exit $?: $(head -n 5 "$WORK/blocks_alone.err")"
! grep -q "cut blocks" "$WORK/blocks_alone.err" || fail "a matrix is widened that nothing cuts"
paste -d: <(tr -dc '0-9 \n' <"$WORK/prompts.jsonl") <(sed -E 's/.*"index":[0-9]+,.*"tokens":\[([^]]*)\].*/\1/; s/,/ /g' "$WORK/blocks_alone.jsonl") |
    sed 's/:/ : /' | "$TEACHER" "$WORK/blocks.gguf" 0.3 || fail "a token is not the choice of the CPU's logits, nor near it"

# Prompts whose tokens are asked about: their logits stay on the device until they are.
sed 's/}$/, "echo": true, "logprobs": 3}/' "$WORK/prompts.jsonl" >"$WORK/echoes.jsonl"
equal echoes 2 nccl "${ALL[@]}" --prompts "$WORK/echoes.jsonl" --plain-results
checks=$((checks + 1))
grep -q '"token_logprobs":\[null,-' "$WORK/solo_echoes.jsonl" &&
    cmp -s <(grep -o '"logprobs":{.*}' "$WORK/solo_echoes.jsonl" | sort) <(grep -o '"logprobs":{.*}' "$WORK/drafted_echoes.jsonl" | sort) ||
    fail "log p of echoed prompts differs: $(head -n 2 "$WORK/solo_echoes.jsonl")"

# Every token of the greedy output against the CPU's logits after the same tokens. The CPU's numbers are others: weights and activations are not
# rounded to bfloat16. The model's logits spread over about 3.
checks=$((checks + 1))
paste -d: <(tr -dc '0-9 \n' <"$WORK/prompts.jsonl") <(sed -E 's/.*"index":[0-9]+,.*"tokens":\[([^]]*)\].*/\1/; s/,/ /g' "$WORK/drafted_greedy.jsonl") |
    sed 's/:/ : /' >"$WORK/taught"
"$TEACHER" "$WORK/target.bin" 0.05 <"$WORK/taught" || fail "a token is not the CPU's choice, nor near it: $(cat "$WORK/taught")"
checks=$((checks + 1)) # and it would be seen
sed -E 's/ 17 / 18 /2' "$WORK/taught" | "$TEACHER" "$WORK/target.bin" 0.05 && fail "another token is not noticed"

# Keys and values are in bf16 there where nothing else is asked for: --resume looks at what they are, not at what was said.
# resumed CODE PATTERN OPTION...: what a job with --resume says of the output of one on devices.
resumed() {
    local code
    checks=$((checks + 1))
    job solo_greedy "${ALL[@]}" --solo --max-sequences 3 --resume "${@:3}"
    code=$?
    [ $code = "$1" ] && grep -q "$2" "$WORK/solo_greedy.err" || fail "--resume ${*:3}: exit code $code: $(head -n 5 "$WORK/solo_greedy.err")"
}
for cache in auto bf16; do
    resumed 0 "is complete .*: nothing to do" --backend cuda --cache $cache
    checks=$((checks + 1))
    ! grep -q "tokens in" "$WORK/solo_greedy.err" || fail "--resume of what is complete has figures of nothing: $(cat "$WORK/solo_greedy.err")"
done
resumed 65 "cache is bf16 there and f32 here" --backend cpu
resumed 65 "cache is bf16 there and fp8 here" --backend cuda --cache fp8

# broken WHAT FAULT CODE PATTERN OPTION...: a job of one drafter and two verifiers in which NCCL does as told.
broken() {
    local code
    checks=$((checks + 1))
    rm -f "$WORK"/broken.*
    FAKE_NCCL=$2 job broken "${ALL[@]}" --backend cuda --drafters 1 --verifiers 2 --all-reduce nccl --watchdog 20 "${@:5}"
    code=$?
    [ $code = "$3" ] || fail "$1: exit code $code, expected $3: $(head -n 5 "$WORK/broken.err")"
    [ "$(grep -c "error: $4" "$WORK/broken.err")" = 1 ] || fail "$1: no line, or several, with '$4': $(head -n 5 "$WORK/broken.err")"
}

host=$(hostname | cut -c 1-63)
broken "no communicator" "2 ncclCommInitRankConfig 1 later=2" 74 "ncclCommInitRankConfig failed on rank 2 (host $host, device 2 \[emulated:2\] emulation)"
broken "a sum of the lead fails" "1 ncclAllReduce 30 fail=1" 74 "ncclAllReduce failed on rank 1 (host $host, device 1 \[emulated:1\] emulation): unhandled cuda error"
broken "a follower loses a peer" "2 ncclAllReduce 30 later=6" 74 "ncclAllReduce failed on rank 2 (host $host, device 2 \[emulated:2\] emulation): remote process exited"
broken "a sum is never done" "1 ncclAllReduce 30 stuck" 76 "no progress for [0-9]* s while computing on device 1 \[emulated:1\] emulation: ending the job" --watchdog 3
# Rank 7 is a verifier, and the eighth device refuses its kernels: the others stop waiting for its numbers, in both kinds of sum.
for sums in nccl one-shot; do
    broken "a device of a follower fails, $sums" "" 70 ".* on device 7 (a broken emulation): refused" --drafters 6 --verifiers 2 --all-reduce $sums
done
# NCCL comes before what takes long, or may not fit: a network that does not work is told first, and what it takes is not free any more.
export EMULATED_MEMORY=400 # MiB, which weights and cache do not fit in
LARGE=(--target "$SOURCE/launch/demo/target" --draft "$SOURCE/launch/demo/draft" --context 1024 --max-sequences 256)
broken "too little memory" "" 70 "this rank's share of the weights, with a cache of" "${LARGE[@]}"
broken "neither a communicator nor memory" "2 ncclCommInitRankConfig 1 later=2" 74 "ncclCommInitRankConfig failed on rank 2" "${LARGE[@]}"
unset EMULATED_MEMORY

# driver WHAT WHERE CODE PATTERN OPTION...: a job of a machine whose driver, or devices, are so (WHERE: NAME=VALUE), says this in one line.
driver() {
    local code
    checks=$((checks + 1))
    (export "$2" && job driver "${ALL[@]}" --drafters 1 --verifiers 1 "${@:5}")
    code=$?
    [ $code = "$3" ] || fail "$1: exit code $code, expected $3: $(head -n 5 "$WORK/driver.err")"
    [ "$(grep -c "$4" "$WORK/driver.err")" = 1 ] || fail "$1: no line, or several, with '$4': $(head -n 5 "$WORK/driver.err")"
}
old="the NVIDIA driver serves CUDA 11.4 and this program is built with CUDA 12.6: install a newer driver"
driver "a driver that is too old" "EMULATED_DRIVER=35 11040 12060" 0 "warning: computing on the CPU: $old"
driver "the same, and devices are asked for" "EMULATED_DRIVER=35 11040 12060" 64 "error: --backend cuda cannot be had on this host: $old" --backend cuda
driver "a driver that is not ready" "EMULATED_DRIVER=802 12040 12060" 0 "warning: computing on the CPU: .*nvidia-fabricmanager has to run"
driver "a device that is too old" "EMULATED_DEVICES=9 1" 0 "warning: computing on the CPU: device 0 cannot be used: its compute capability is 7.5"
driver "the same, and it is asked for" "EMULATED_DEVICES=9 1" 64 "error: --backend cuda cannot be had on this host: device 0 cannot be used" --backend cuda
driver "the same, by its number" "EMULATED_DEVICES=4 6" 64 "error: device 5 cannot be used: its compute capability is 7.5" --backend cuda --verifier-devices 5
checks=$((checks + 2))
EMULATED_DRIVER="35 0 12060" job driver "${ALL[@]}" --drafters 1 --verifiers 1 --verbose || fail "no driver: exit code $?: $(head -n 5 "$WORK/driver.err")"
grep -q "no CUDA here: no NVIDIA driver is installed, or none is passed into this container; computing on the CPU" "$WORK/driver.err" || fail "no driver, and --verbose does not say so"
! grep -q warning "$WORK/driver.err" || fail "no driver is no fault, and a warning says so: $(cat "$WORK/driver.err")"

# One host of two has no driver: nobody waits for the rank there.
# mixed WHAT PATTERN OPTION...
mixed() {
    local code
    checks=$((checks + 1))
    timeout 50 $MPIRUN -np 1 "$BIN/tandem-verifier" "${ALL[@]}" --solo "${@:3}" : -np 1 env EMULATED_DRIVER="35 0 12060" "$BIN/tandem-verifier" "${ALL[@]}" \
        --solo "${@:3}" </dev/null >"$WORK/mixed.out" 2>"$WORK/mixed.err"
    code=$?
    [ $code = 64 ] && [ "$(grep -c "error: $2" "$WORK/mixed.err")" = 1 ] || fail "$1: exit code $code, expected 64: $(head -n 5 "$WORK/mixed.err")"
}
mixed "devices are asked for" "--backend cuda cannot be had on this host: no NVIDIA driver is installed" --backend cuda
mixed "devices where they are" "rank 0 on host .* has a device and rank 1 on host .* computes on the CPU"
driver "devices that are named and of no use" "EMULATED_DRIVER=35 0 12060" 0 "warning: --verifier-devices 3 is of no use here: the target is computed on the CPU" --verifier-devices 3
checks=$((checks + 1))
EMULATED_DRIVER="35 11040 12060" job driver "${ALL[@]}" --draft lookup --drafters 1 --verifiers 1 || fail "lookup: exit code $?: $(head -n 5 "$WORK/driver.err")"
[ "$(grep -c "warning: computing on the CPU" "$WORK/driver.err")" = 1 ] || fail "a drafter without a model: $(head -n 5 "$WORK/driver.err")"

# What is left out of the device's ways changes no bit, and --verbose says what it is.
export TANDEM_CUDA=nograph,nooverlap
equal left_out 2 one-shot "${ALL[@]}"
checks=$((checks + 2))
same drafted_left_out drafted_greedy
grep -q "device 1, emulation, without overlapping kernels, recorded steps, group over" "$WORK/drafted_left_out.err" || fail "--verbose does not say what is left out"
TANDEM_CUDA=nooneshot broken "one-shot sums that are left out" "" 64 "--all-reduce one-shot needs verifiers on one host" --all-reduce one-shot
driver "a word that is none" TANDEM_CUDA=fast 64 "error: TANDEM_CUDA has 'fast', expected some of nooverlap, nograph, nooneshot and noclusters" --backend cuda
unset TANDEM_CUDA

# Nobody reaches the memory of device 5: sums go over NCCL, unless the user wants them otherwise.
broken "one-shot sums where devices do not reach each other" "" 64 "--all-reduce one-shot needs verifiers on one host" --drafters 4 --verifiers 2 --all-reduce one-shot
checks=$((checks + 1))
job apart "${ALL[@]}" --backend cuda --drafters 4 --verifiers 2 --all-reduce auto --verbose || fail "devices apart: exit $?: $(head -n 5 "$WORK/apart.err")"
grep -q "no one-shot sums: No such file" "$WORK/apart.err" || fail "devices apart: no line says why there are no one-shot sums"
finish
