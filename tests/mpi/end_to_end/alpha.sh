#!/usr/bin/env bash
# The theory beside the count (Leviathan et al. 2023): the share of drafts that stood is the mean of sum min(p, q) over the same drafts
# (Corollary 3.6) within Freedman's bound at the share of the false alarms that tests/law/budget.h gives a statistic, and tokens per round are equation (1) within 5 %. Embedded pair, T = 1.
. "$(dirname "$0")/job.sh"
amount=$2
head -n 60 "$PROMPTS" >"$WORK/some.in"
[ "$amount" = small ] && head -n 8 "$PROMPTS" >"$WORK/some.in"
[ "${TANDEM_LONG:-}" = 1 ] && cp "$PROMPTS" "$WORK/some.in"

# agrees NAME K: prints the figures and checks both statements.
agrees() {
    checks=$((checks + 1))
    awk -v k="$2" -v name="$1" -v alpha="$(figure "$1" alpha)" -v mean="$(figure "$1" mean_sum_min_p_q)" \
        -v error="$(figure "$1" standard_error)" -v accepted="$(figure "$1" accepted)" -v tokens="$(figure "$1" full_round_tokens)" -v rounds="$(figure "$1" full_rounds)" 'BEGIN {
            judged = accepted / alpha
            chance = log(2 / 1.95e-12)
            rate = sqrt(2 * chance / 1000) # 1000: about the variance that is expected; common/base/bounds.c
            bound = (chance + (exp(rate) - 1 - rate) * (error * judged) ^ 2) / rate / judged
            measured = tokens / rounds # of the rounds that had a whole proposal: not the last ones, none that went without
            expected = (1 - alpha ^ (k + 1)) / (1 - alpha)
            printf "%s: alpha %.4f, mean sum min(p, q) %.4f, bound %.4f; tokens per round %.3f, equation (1) %.3f\n",
                name, alpha, mean, bound, measured, expected
            exit !(error > 0 && alpha - mean < bound && mean - alpha < bound && measured < 1.05 * expected && measured > 0.95 * expected)
        }' || fail "$1: count and theory differ"
}

cells=("1 --temperature 1" "8 --temperature 1" "4 --temperature 0.8 --top-p 0.9" "4 --temperature 1 --draft-temperature 0.7")
[ -z "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] || cells+=("4 --temperature 1" "1 --temperature 0.8 --top-p 0.9" "8 --temperature 0.8 --top-p 0.9")
for cell in "${cells[@]}"; do
    # shellcheck disable=SC2086
    job "k${cell// /_}" --prompts "$WORK/some.in" --max-tokens 128 --ignore-eos --seed 5 --verifiers 2 --draft-length $cell || fail "k$cell: exit $?"
    agrees "k${cell// /_}" "${cell%% *}"
done
finish
