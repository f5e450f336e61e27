#!/usr/bin/env bash
# Speculative output equals solo output, token for token, and so do the target's logits at all committed positions: greedy and coupled. Each placement
# of ranks is one job, and its draft lengths and sequences are passes of it.
# equality.sh BIN default|small: how much of the grid is run. TANDEM_WIDE=1 in the environment: twice the prompts in each of its cells, and all 200 of
# 128 tokens in some; TANDEM_LONG=1: in all of them.
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/passes.sh"
few=8 many=24 all=$(wc -l <"$PROMPTS")
[ -z "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] || few=16
over=(--max-sequences 8 --hash-logits --top-p 0.95 --seed 11 --max-tokens 128 --prompts "$WORK/prompts.in")
sed -E "1,${few}s/\}\$/, \"max_tokens\": 48}/" "$PROMPTS" >"$WORK/prompts.in"

# both NAME SOLO LENGTH SEQUENCES PROMPTS: the passes NAME_greedy and NAME_coupled.
both() {
    pass "$1_greedy" "$2" "$3" 0 rejection "$4" "$5"
    pass "$1_coupled" "$2" "$3" 0.8 coupled "$4" "$5"
}

# cell LENGTH SEQUENCES PROMPTS: drafted passes.
cell() { both "k$1_s$2_of_$3" false "$@"; }

# placement VERIFIERS DRAFTERS [OPTION...]: runs the plan there; each pass gave what one verifier gave alone.
placement() {
    local name="v$1_d$2${3:+_$4}" pass
    passes "$name" --verifiers "$1" --drafters "$2" "${over[@]}" "${@:3}"
    for pass in "${pass_names[@]}"; do
        same_pass "$name.$pass" "solo.${pass##*_of_}"
        case $pass in k*) drafted "$name.$pass" ;; esac
    done
}

# solo PROMPTS...: what all others are compared with.
solo() {
    local prompts
    plan
    for prompts; do both "$prompts" true 0 8 "$prompts"; done
    passes solo --verifiers 1 "${over[@]}"
}

# grid PROMPTS: every draft length with every number of verifiers; drafters and sequences at once take turns.
grid() {
    local verifiers drafters length turn=0
    for verifiers in 1 2 4; do
        for drafters in 1 2; do
            plan
            both "solo_of_$1" true 0 8 "$1"
            for length in 1 2 3 4 5 6 7 8; do
                [ $(((length + turn) % 2 + 1)) != $drafters ] || cell $length $(((length / 2 + turn) % 2 * 7 + 1)) "$1"
            done
            placement $verifiers $drafters
        done
        turn=$((turn + 1)) # so that the turns shift against the numbers of verifiers
    done
}

[ "${TANDEM_WIDE:-}" = 1 ] && amount=wide || amount=$2
[ "${TANDEM_LONG:-}" = 1 ] && amount=long
case $amount in
small) # for builds that run fifty times slower
    solo $few
    plan && cell 4 8 $few && placement 1 1
    plan && cell 8 1 $few && placement 2 2
    plan && cell 1 8 $few && placement 4 1
    plan && cell 4 8 $few && placement 1 1 --draft lookup
    plan && cell 4 8 $few && placement 1 2 --merge lookup
    plan && cell 12 8 $few && placement 2 1 --tree dynamic
    ;;
long)
    solo $all
    for verifiers in 1 2 4; do
        for drafters in 1 2; do
            plan
            for length in 1 2 3 4 5 6 7 8; do cell $length 1 "$all"; cell $length 8 "$all"; done
            placement $verifiers $drafters
        done
    done
    ;;
*)
    [ $amount = wide ] && many=$all
    solo $few "$many"
    plan && cell 8 8 "$many" && placement 2 1
    if [ $amount = wide ]; then
        plan && cell 4 8 "$all" && placement 1 1
        plan && cell 5 1 "$all" && placement 2 2
    fi
    grid $few
    plan && cell 12 8 $few && cell 31 1 $few && placement 1 2 --tree dynamic
    plan && cell 9 8 $few && cell 63 1 $few && placement 2 1 --tree top-k
    plan && cell 10 8 $few && placement 1 1 --tree sequoia
    plan && both auto_s8_of_$few false -1 8 $few && placement 1 1 --tree auto
    plan && cell 2 1 $few && cell 16 8 $few && placement 4 1 --tree dynamic:depth=3
    plan && cell 4 1 $few && cell 4 8 $few && placement 1 1 --run-ahead on # by default nobody runs ahead where ranks share cores
    plan && cell 3 8 $few && placement 2 1 --draft self:layers=3 --run-ahead on
    plan && cell 8 8 $few && placement 2 1 --draft lookup --run-ahead on # which has nothing to propose in many rounds
    plan && cell 3 1 $few && placement 1 2 --draft lookup:min=2,max=3
    plan && cell 4 8 $few && placement 2 1 --draft self:layers=3
    plan && cell 4 8 $few && placement 1 2 --draft self:layers=3 --verbose # which map the target's weights
    [ "$(grep -c "tandem-drafter.*MB of weights, which are the target's own copy" "$WORK/v1_d2_self:layers=3.err")" = 2 ] || fail 'two drafters did not map the weights'
    plan && cell 12 8 $few && cell 5 1 $few && placement 2 1 --draft lookahead
    plan && cell 12 8 $few && cell 2 1 $few && placement 1 2 --draft lookup --tree top-k
    plan && cell 8 8 $few && placement 1 1 --cascade lookup
    plan && cell 8 8 $few && placement 1 1 --copy-after 2
    plan && cell 8 8 $few && cell 8 1 $few && placement 1 2 --stop-drafting batch
    plan && cell 8 8 $few && cell 3 1 $few && placement 1 3 --merge lookup --merge self:layers=3
    plan && cell 4 8 $few && placement 2 2 --merge lookup --run-ahead on
    plan && cell 4 8 $few && placement 2 1 --draft-vocabulary 600 # an embedded draft that knows less than a third of its ids
    ;;
esac
finish
