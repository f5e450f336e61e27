/* Layer 0 for rules whose chances are no sixteenths: of every hand of drafts the coins at which the real accept_decide changes its mind are found by
 * halving, the verdict is taken in each of the boxes between them, and the weights of the last token are read off the real draws in the same way. The
 * law of all sequences of tokens must then be the target's, on random pairs of a few tokens, for both forms that a row has and for point masses. And
 * how many drafts each rule accepts is compared, where theory says which is more.
 *
 * The functions of common/base/rng.h are defined here, and the linker takes these: coins and noise are dealt, not drawn. */
#include "common/sample/rule.h"
#include "tests/law/dealt_draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 3, MOST_DRAFT = 3, ROWS = MOST_DRAFT + 1, CELLS = 81, PAIRS = 40, HALVINGS = 50 };
#define ABSENT 1e6f /* noise that no token wins against */
#define FAR    30.0 /* what loses with this much more noise has no weight */
#define NEAR   2e-5 /* noise is a float, and so is a logit */

static struct {
    double coin[ROWS];
    float noise[VOCAB];
    int wrong; /* a coin of another purpose, or of another index than the rule says */
    const struct sampling *sampling;
} deal;

double rng_coin(const struct rng_key *key, enum rng_purpose purpose, uint32_t index)
{
    deal.wrong += purpose != RNG_ACCEPT || index != rule_coin(deal.sampling, (int)key->position);
    return deal.coin[key->position];
}

double rng_uniform(const struct rng_key *key, enum rng_purpose purpose)
{
    return rng_coin(key, purpose, 0);
}

float rng_gumbel(const struct rng_key *key, enum rng_purpose purpose, uint32_t token)
{
    (void)key;
    deal.wrong += purpose != RNG_RESIDUAL;
    return deal.noise[token];
}

/* A pair of models: rows depend on the token before them. */
struct pair {
    double p[ROWS][VOCAB][VOCAB];
    uint32_t q[MOST_DRAFT][VOCAB][VOCAB]; /* weights; they sum to MESSAGE_Q_SUM */
};

/* A round on it. */
struct run {
    const struct pair *pair;
    struct sampling sampling;
    enum target_row_kind kind;
    int point; /* q is the point mass on its largest weight */
    int drafts;
    double law[CELLS], accepted;
};

static uint32_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* Some tokens have p = 0 or q = 0; where `same`, p = q. */
static void fill_pair(struct pair *pair, uint64_t seed)
{
    uint64_t state = seed;
    int same = seed % 7 == 6;

    for (int at = 0; at < ROWS; at++)
        for (int before = 0; before < VOCAB; before++) {
            uint32_t p[VOCAB], q[VOCAB], all_p = 0, all_q = 0;

            for (int v = 0; v < VOCAB; v++) {
                p[v] = next(&state) % 5 == 0 && v < VOCAB - 1 ? 0 : 1 + next(&state) % 1000;
                q[v] = next(&state) % 5 == 0 && v > 0 ? 0 : 1 + next(&state) % 1000;
                all_p += p[v];
                all_q += q[v];
            }
            for (int v = VOCAB - 1, left = MESSAGE_Q_SUM; v >= 0 && at < MOST_DRAFT; v--) {
                uint32_t share = (uint32_t)((uint64_t)q[v] * MESSAGE_Q_SUM / all_q);

                pair->q[at][before][v] = v == 0 ? (uint32_t)left : share;
                left -= (int)share;
            }
            for (int v = 0; v < VOCAB; v++)
                pair->p[at][before][v] = same && at < MOST_DRAFT ? (double)pair->q[at][before][v] / MESSAGE_Q_SUM : (double)p[v] / all_p;
        }
}

static int point_token(const struct run *run, int at, int before)
{
    const uint32_t *q = run->pair->q[at][before];
    int best = 0;

    for (int v = 1; v < VOCAB; v++)
        best = q[v] > q[best] ? v : best;
    return best;
}

static double q_of(const struct run *run, int at, int before, int token)
{
    return run->point ? token == point_token(run, at, before) : (double)run->pair->q[at][before][token] / MESSAGE_Q_SUM;
}

/* One row as the lead has it. */
struct row {
    struct target_row target;
    struct support q;
    struct scored_token best[VOCAB];
    double p[VOCAB];
    float logit[VOCAB];
    int32_t id[VOCAB];
    uint32_t weight[VOCAB];
};

static void fill_row(struct row *row, const struct run *run, int at, int before)
{
    const double *p = run->pair->p[at][before];
    int named = 0;

    *row =
        (struct row){.target = {.kind = run->kind, .best = row->best, .p = row->p, .logit = row->logit}, .q = {.id = row->id, .weight = row->weight}};
    for (int v = 0; v < VOCAB && at < run->drafts; v++)
        if (q_of(run, at, before, v) > 0) {
            row->logit[named] = p[v] > 0 ? (float)log(p[v]) : -INFINITY;
            row->id[named] = v;
            row->weight[named++] = run->pair->q[at][before][v];
        }
    row->q.count = run->point ? 0 : named;
    row->target.count = named;
    for (int v = 0; v < VOCAB && run->kind == TARGET_SUPPORT; v++)
        row->target.entropy -= p[v] > 0 ? p[v] * log(p[v]) : 0;
    if (run->kind == TARGET_SUPPORT)
        return;
    row->target.count = 0;
    for (int v = 0; v < VOCAB; v++)
        if (p[v] > 0) {
            row->best[row->target.count].token = v;
            row->p[row->target.count++] = p[v];
        }
}

/* A round's rows and drafts. */
struct hand {
    struct row row[ROWS];
    struct target_row target[ROWS];
    struct proposal proposal;
};

static struct verdict decide(const struct run *run, const struct hand *hand)
{
    const struct rng_key key = {.seed = 1};

    return accept_decide(&run->sampling, hand->target, &hand->proposal, run->drafts, &key);
}

/* How many are accepted with coin i at u and all others at `others`. */
static int accepted_at(const struct run *run, const struct hand *hand, int i, double u, double others)
{
    for (int c = 0; c < run->drafts; c++)
        deal.coin[c] = c == i ? u : others;
    return decide(run, hand).accepted;
}

/* Where coin i stops to let its draft stand; 1: it always does, or never has a say. */
static double least_of(const struct run *run, const struct hand *hand, int i)
{
    const double ends[] = {0, nextafter(1, 0)};

    for (int o = 0; o < 2; o++) {
        double low = 0, high = ends[1];
        int below = accepted_at(run, hand, i, low, ends[o]);

        if (accepted_at(run, hand, i, high, ends[o]) == below)
            continue;
        for (int h = 0; h < HALVINGS; h++) {
            double middle = (low + high) / 2;

            if (accepted_at(run, hand, i, middle, ends[o]) == below)
                low = middle;
            else
                high = middle;
        }
        return high;
    }
    return 1;
}

/* The token that wins with the dealt noise. */
static int32_t draw(const struct hand *hand, const struct verdict *verdict, const double *p)
{
    const struct row *row = &hand->row[verdict->accepted];
    int32_t drawn = verdict->refused >= 0 ? hand->proposal.token[verdict->refused] : -1;

    return dealt_draw(&row->target, &row->q, drawn, verdict->draw == DRAW_RESIDUAL ? &verdict->residual : NULL, p, deal.noise, VOCAB);
}

/* Weights of the last token, that of the one which wins at equal noise being 1; all 0 where nothing is left of p up to rounding, and all of it is
 * drawn from. */
static void read_weights(const struct hand *hand, const struct verdict *verdict, const double *p, double *weights)
{
    int32_t reference;
    double sum = 0;

    memset(deal.noise, 0, sizeof deal.noise);
    reference = draw(hand, verdict, p);
    for (int v = 0; v < VOCAB; v++) {
        double low = 0, high = FAR;

        weights[v] = reference < 0 ? p[v] : v == reference;
        for (int h = 0; h < HALVINGS && reference >= 0 && v != reference; h++) {
            double middle = (low + high) / 2;

            for (int other = 0; other < VOCAB; other++)
                deal.noise[other] = -ABSENT;
            deal.noise[reference] = 0;
            deal.noise[v] = (float)middle;
            if (draw(hand, verdict, p) == v)
                high = middle;
            else
                low = middle;
            weights[v] = high < FAR ? exp(-high) : 0;
        }
        sum += weights[v];
    }
    for (int v = 0; v < VOCAB; v++)
        weights[v] /= sum;
}

/* Adds the sequences that begin with `count` tokens and go on as the target does. */
static void add(struct run *run, const int *tokens, int count, double weight)
{
    int more[ROWS];

    if (weight == 0)
        return;
    if (count > run->drafts) {
        int cell = 0;

        for (int i = 0; i < count; i++)
            cell = cell * VOCAB + tokens[i];
        run->law[cell] += weight;
        return;
    }
    memcpy(more, tokens, (size_t)count * sizeof *more);
    for (int v = 0; v < VOCAB; v++) {
        more[count] = v;
        add(run, more, count + 1, weight * run->pair->p[count][count == 0 ? 0 : more[count - 1]][v]);
    }
}

/* One hand of drafts, of this weight: all boxes of coins. */
static void judge(struct run *run, const int *drafts, double weight)
{
    struct hand hand = {.proposal = {.count = run->drafts}};
    double least[ROWS], weights[VOCAB];

    for (int i = 0; i <= run->drafts; i++) {
        fill_row(&hand.row[i], run, i, i == 0 ? 0 : drafts[i - 1]);
        hand.target[i] = hand.row[i].target;
        if (i < run->drafts) {
            hand.proposal.token[i] = drafts[i];
            hand.proposal.q[i] = hand.row[i].q;
        }
    }
    for (int i = 0; i < run->drafts; i++)
        least[i] = least_of(run, &hand, i);
    for (int box = 0; box < 1 << run->drafts; box++) {
        int sequence[ROWS + 1];
        double chance = weight;
        struct verdict verdict;

        for (int i = 0; i < run->drafts; i++) {
            chance *= box >> i & 1 ? least[i] : 1 - least[i];
            deal.coin[i] = box >> i & 1 ? least[i] / 3 : (1 + least[i]) / 2;
        }
        if (chance <= 0)
            continue;
        verdict = decide(run, &hand);
        for (int i = 0; i < run->drafts; i++)
            deal.coin[i] = box >> i & 1 ? least[i] * 2 / 3 : (3 + least[i]) / 4;
        assert_int_equal(decide(run, &hand).accepted, verdict.accepted); /* it is one box */
        run->accepted += chance * verdict.accepted;
        memcpy(sequence, drafts, (size_t)verdict.accepted * sizeof *sequence);
        read_weights(&hand, &verdict, run->pair->p[verdict.accepted][verdict.accepted == 0 ? 0 : drafts[verdict.accepted - 1]], weights);
        for (int v = 0; v < VOCAB; v++) {
            sequence[verdict.accepted] = v;
            add(run, sequence, verdict.accepted + 1, chance * weights[v]);
        }
    }
}

static void judge_all(struct run *run)
{
    int hands = 1;

    for (int i = 0; i < run->drafts; i++)
        hands *= VOCAB;
    for (int hand = 0; hand < hands; hand++) {
        int drafts[MOST_DRAFT] = {0};
        double weight = 1;

        for (int i = 0, rest = hand; i < run->drafts && i < MOST_DRAFT; i++, rest /= VOCAB) {
            drafts[i] = rest % VOCAB;
            weight *= q_of(run, i, i == 0 ? 0 : drafts[i - 1], drafts[i]);
        }
        if (weight > 0)
            judge(run, drafts, weight);
    }
}

/* The largest difference from the target's law of any sequence. */
static double largest_error(struct run *run)
{
    int none[1] = {0};
    double largest = 0, target[CELLS];

    deal.sampling = &run->sampling;
    add(run, none, 0, 1);
    memcpy(target, run->law, sizeof target);
    memset(run->law, 0, sizeof run->law);
    run->accepted = 0;
    judge_all(run);
    for (int i = 0; i < CELLS; i++)
        largest = fmax(largest, fabs(run->law[i] - target[i]));
    return largest;
}

static int is_judged(int accept)
{
    return rule_row(accept)->lossless && !rule_row(accept)->matches;
}

static void test_law_rules_exact__every_rule_gives_the_targets_law(void **state)
{
    int rules = 0;

    (void)state;
    deal.wrong = 0;
    for (int accept = 0; accept < ACCEPT_MODES; accept++) {
        double worst = 0;

        if (!is_judged(accept))
            continue;
        for (int i = 0; i < 8 * PAIRS; i++) {
            struct pair pair;
            struct run run = {.pair = &pair,
                              .sampling = sampling_default,
                              .kind = i / ROWS % 2 ? TARGET_SUPPORT : TARGET_LIST,
                              .point = i / (2 * ROWS) % 4 == 0,
                              .drafts = i % ROWS};

            run.sampling.temperature = 1;
            run.sampling.accept = accept;
            fill_pair(&pair, (uint64_t)i);
            worst = fmax(worst, largest_error(&run));
        }
        print_message("%s: no sequence of up to %d tokens is off by more than %.1e\n", rule_name(accept), ROWS, worst);
        assert_true(worst < NEAR);
        rules++;
    }
    assert_true(rules >= 3);
    assert_int_equal(deal.wrong, 0);
}

static double accepted_by(int accept, const struct pair *pair, int drafts)
{
    struct run run = {.pair = pair, .sampling = sampling_default, .kind = TARGET_LIST, .drafts = drafts};

    run.sampling.temperature = 1;
    run.sampling.accept = accept;
    (void)largest_error(&run);
    return run.accepted;
}

/* Sun et al. 2024, theorem 2; Leviathan et al. 2023, appendix A.2. With one draft block verification is Algorithm 1. */
static void test_law_rules_exact__block_accepts_no_fewer_than_rejection_and_that_no_fewer_than_classic(void **state)
{
    double block = 0, rejection = 0, classic = 0;

    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        struct pair pair;
        double of_block, of_rejection, of_classic;
        int drafts = 1 + i % MOST_DRAFT;

        fill_pair(&pair, (uint64_t)i);
        block += of_block = accepted_by(ACCEPT_BLOCK, &pair, drafts);
        rejection += of_rejection = accepted_by(ACCEPT_REJECTION, &pair, drafts);
        classic += of_classic = accepted_by(ACCEPT_CLASSIC, &pair, drafts);
        assert_true(of_block > of_rejection - 1e-9 && of_rejection > of_classic - 1e-9);
        if (drafts == 1)
            assert_true(fabs(of_block - of_rejection) < 1e-9);
    }
    print_message("accepted of 1 to %d drafts: block %.4f, rejection %.4f, classic %.4f\n", MOST_DRAFT, block / PAIRS, rejection / PAIRS,
                  classic / PAIRS);
    assert_true(block > 1.005 * rejection && rejection > 1.1 * classic);
}

/* How often each token comes first. */
static void first_tokens(const struct run *run, double *first)
{
    int behind = 1;

    for (int i = 0; i < run->drafts; i++)
        behind *= VOCAB;
    for (int v = 0; v < VOCAB; v++) {
        first[v] = 0;
        for (int i = 0; i < behind; i++)
            first[v] += run->law[v * behind + i];
    }
}

/* A drafted token stands with min(q, p / L); else what is left of p, max(0, p - L q), comes. */
static void law_under_lenience(const struct pair *pair, double lenience, double *law)
{
    double stands = 0, left = 0, q[VOCAB];
    const double *p = pair->p[0][0];

    for (int v = 0; v < VOCAB; v++) {
        q[v] = (double)pair->q[0][0][v] / MESSAGE_Q_SUM;
        stands += fmin(q[v], p[v] / lenience);
        left += fmax(p[v] - lenience * q[v], 0);
    }
    for (int v = 0; v < VOCAB; v++)
        law[v] = fmin(q[v], p[v] / lenience) + (left > 0 ? (1 - stands) * fmax(p[v] - lenience * q[v], 0) / left : 0);
}

/* Leviathan et al. 2023, appendix A.5: the law is another one, and how far it may be off is known. */
static void test_law_rules_exact__under_lenience_no_token_comes_more_often_than_its_share(void **state)
{
    static const double lenience[] = {1, 0.5, 0.1};
    double accepted[3] = {0}, apart[3] = {0};

    (void)state;
    for (int i = 0; i < PAIRS; i++)
        for (int l = 0; l < 3; l++) {
            struct pair pair;
            struct run run = {
                .pair = &pair, .sampling = sampling_default, .kind = i % 2 ? TARGET_SUPPORT : TARGET_LIST, .drafts = 1 + i / 2 % MOST_DRAFT};
            double first[VOCAB], wanted[VOCAB], error;

            run.sampling.temperature = 1;
            run.sampling.accept = ACCEPT_LENIENCE;
            run.sampling.lenience = lenience[l];
            fill_pair(&pair, (uint64_t)i);
            error = largest_error(&run);
            assert_true(l > 0 || error < NEAR);
            first_tokens(&run, first);
            accepted[l] += run.accepted / PAIRS;
            law_under_lenience(&pair, lenience[l], wanted);
            for (int v = 0; v < VOCAB; v++) {
                assert_true(fabs(first[v] - wanted[v]) < NEAR);
                assert_true(first[v] <= pair.p[0][0][v] / lenience[l] + NEAR);
                apart[l] += fabs(first[v] - pair.p[0][0][v]) / 2 / PAIRS;
            }
        }
    print_message("lenience 1, 0.5, 0.1: %.3f, %.3f, %.3f drafts accepted, the first token's law %.4f, %.4f, %.4f off (TV)\n", accepted[0],
                  accepted[1], accepted[2], apart[0], apart[1], apart[2]);
    assert_true(accepted[2] > accepted[1] && accepted[1] > accepted[0] && apart[2] > apart[1] && apart[1] > 0.01);
}

/* A draft above the bound always comes, one that is not never makes another token come less often than p has it. */
static void test_law_rules_exact__under_a_threshold_a_draft_comes_or_the_targets_own_token(void **state)
{
    int above = 0, below = 0;

    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        struct pair pair;
        struct run run = {
            .pair = &pair, .sampling = sampling_default, .kind = i % 2 ? TARGET_SUPPORT : TARGET_LIST, .point = 1, .drafts = 1 + i / 2 % MOST_DRAFT};
        double first[VOCAB];

        run.sampling.temperature = 1;
        run.sampling.accept = ACCEPT_THRESHOLD;
        run.sampling.threshold = 0.4;
        fill_pair(&pair, (uint64_t)i);
        (void)largest_error(&run);
        first_tokens(&run, first);
        for (int v = 0, drafted = point_token(&run, 0, 0), stands = pair.p[0][0][drafted] > 0.4; v < VOCAB; v++) {
            assert_true(fabs(first[v] - (stands ? v == drafted : pair.p[0][0][v])) < NEAR);
            above += stands;
            below += !stands;
        }
    }
    assert_true(above > PAIRS / 2 && below > PAIRS / 2);
}

/* As under a threshold, which is lower where p is spread: so some stand that would not by the entropy of another row. */
static void test_law_rules_exact__typical_drafts_come_or_the_targets_own_token(void **state)
{
    int above = 0, below = 0;

    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        struct pair pair;
        struct run run = {
            .pair = &pair, .sampling = sampling_default, .kind = i % 2 ? TARGET_SUPPORT : TARGET_LIST, .point = 1, .drafts = 1 + i / 2 % MOST_DRAFT};
        double first[VOCAB], entropy = 0;

        run.sampling.temperature = 1;
        run.sampling.accept = ACCEPT_TYPICAL;
        run.sampling.typical_epsilon = 1;
        run.sampling.typical_delta = 0.9;
        fill_pair(&pair, (uint64_t)i);
        (void)largest_error(&run);
        first_tokens(&run, first);
        for (int v = 0; v < VOCAB; v++)
            entropy -= pair.p[0][0][v] > 0 ? pair.p[0][0][v] * log(pair.p[0][0][v]) : 0;
        for (int v = 0, drafted = point_token(&run, 0, 0), stands = pair.p[0][0][drafted] > 0.9 * exp(-entropy); v < VOCAB; v++) {
            assert_true(fabs(first[v] - (stands ? v == drafted : pair.p[0][0][v])) < NEAR);
            above += stands;
            below += !stands;
        }
    }
    assert_true(above > PAIRS / 2 && below > PAIRS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_rules_exact__every_rule_gives_the_targets_law),
        cmocka_unit_test(test_law_rules_exact__under_lenience_no_token_comes_more_often_than_its_share),
        cmocka_unit_test(test_law_rules_exact__typical_drafts_come_or_the_targets_own_token),
        cmocka_unit_test(test_law_rules_exact__under_a_threshold_a_draft_comes_or_the_targets_own_token),
        cmocka_unit_test(test_law_rules_exact__block_accepts_no_fewer_than_rejection_and_that_no_fewer_than_classic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
