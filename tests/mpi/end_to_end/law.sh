#!/usr/bin/env bash
# The law of the output of whole jobs: tiny models, many requests, one drafter and two verifiers under mpirun; first two tokens of every result
# against the exact law (tests/law/law_job.c).
. "$(dirname "$0")/job.sh"
amount=$2
law_job=$3
count=100000
[ "$amount" = small ] && count=500
[ "${TANDEM_LONG:-}" = 1 ] && count=5000000
"$law_job" write "$WORK" "$count" || exit

checks=$((checks + 1))
echo "seed 20240607"
job tiny --target "$WORK/target.bin" --draft "$WORK/draft.bin" --prompts "$WORK/prompts.jsonl" --verifiers 2 --max-sequences 16 \
    --temperature 1 --seed 20240607 --draft-length 2 --max-tokens 3 --ignore-eos --plain-results || fail "exit $?: $(head -n 5 "$WORK/tiny.err")"
printf 'rounds %s, drafted %s, accepted %s\n' "$(figure tiny rounds)" "$(figure tiny drafted)" "$(figure tiny accepted)"
"$law_job" check "$WORK" "$WORK/tiny.jsonl" || fail "the output does not follow the target's law, or there is too little of it"
# Of three tokens two can be drafted. Without drafts the law would hold and nothing would be shown.
[ "$(figure tiny drafted)" -ge "$count" ] || fail "only $(figure tiny drafted) tokens were drafted for $count requests"
finish
