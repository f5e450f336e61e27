#!/usr/bin/env bash
# Speculative output equals solo output, token for token, and so do the target's logits at all committed positions.
# equality.sh BIN greedy|coupled default|long|small: how much of the grid of draft lengths, verifiers, drafters and sequences is run;
# TANDEM_LONG=1 in the environment: all of it.
. "$(dirname "$0")/job.sh"
mode=$2
amount=$3
[ "${TANDEM_LONG:-}" = 1 ] && amount=long
sampling=()
[ "$mode" = coupled ] && sampling=(--accept coupled --temperature 0.8 --top-p 0.95 --seed 11)

# over SET OPTION...: a job's options for one set of prompts: all is 200 prompts of 128 tokens.
over() {
    case $1 in
    all) set_options=(--prompts "$PROMPTS" --max-tokens 128) ;;
    few) set_options=(--prompts "$WORK/few.in" --max-tokens 48) ;;
    esac
}

solo() {
    over "$1"
    job "solo_$1" --solo --verifiers 1 --max-sequences 8 --hash-logits "${set_options[@]}" "${sampling[@]}" || fail "solo over $1: exit $?"
}

# speculative SET LENGTH VERIFIERS DRAFTERS SEQUENCES [OPTION...]
speculative() {
    local name="$1_k$2_v$3_d$4_s$5${7:+_$7}"

    over "$1"
    job "$name" --draft-length "$2" --verifiers "$3" --drafters "$4" --max-sequences "$5" --hash-logits "${set_options[@]}" "${sampling[@]}" "${@:6}" ||
        fail "$name: exit $?"
    same "$name" "solo_$1"
    checks=$((checks + 1))
    [ "0$(figure "$name" accepted)" -gt 0 ] || fail "$name: no draft was ever accepted"
    rm -f "$WORK/$name".*
}

head -n 16 "$PROMPTS" >"$WORK/few.in"
solo few
case $amount in
small) # for builds that run fifty times slower
    speculative few 4 1 1 8
    speculative few 8 2 2 1
    speculative few 1 4 1 8
    speculative few 4 1 1 8 --draft lookup
    finish
    ;;
default) # every draft length with every number of verifiers; the rest takes turns
    solo all
    speculative all 4 1 1 8
    speculative all 8 2 1 8
    speculative all 5 2 2 1
    speculative few 8 2 1 8 --draft lookup # which has nothing to propose in many rounds
    speculative few 3 1 2 1 --draft lookup:min=2,max=3
    speculative few 4 2 1 8 --draft self:layers=3
    speculative few 4 2 1 8 --draft-vocabulary 600 # an embedded draft that knows less than a third of its ids
    turn=0
    for length in 1 2 3 4 5 6 7 8; do
        for verifiers in 1 2 4; do
            speculative few "$length" "$verifiers" $((turn / 2 % 2 + 1)) $((turn % 2 * 7 + 1))
            turn=$((turn + 1))
        done
        turn=$((turn + 2)) # so that the turns shift against the numbers of verifiers
    done
    ;;
long)
    solo all
    for length in 1 2 3 4 5 6 7 8; do
        for verifiers in 1 2 4; do
            for drafters in 1 2; do
                speculative all "$length" "$verifiers" "$drafters" 1
                speculative all "$length" "$verifiers" "$drafters" 8
            done
        done
    done
    ;;
esac
finish
