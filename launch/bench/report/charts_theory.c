/* The paper's figures 2 to 4 (Leviathan et al. 2023): curves of theory over alpha, and where this pair is on them. */
#include "launch/bench/report/charts.h"

#include "launch/bench/report/svg.h"
#include "launch/bench/report/theory.h"
#include <math.h>

enum { CHART_WIDTH = 460, CHART_HEIGHT = 300, CURVE = 1000, GAMMAS = 5 };
static const int gammas[GAMMAS] = {1, 3, 5, 7, 10};

/* From 0 to 1, without its ends. */
static double alpha_at(int i)
{
    return (i + 1) / (CURVE + 1.0);
}

/* One curve; what is higher than the picture is left out. */
static void draw(const struct svg *svg, double (*of)(double alpha, int gamma), int gamma, const char *how)
{
    double alpha[CURVE], value[CURVE];

    for (int i = 0; i < CURVE; i++) {
        alpha[i] = alpha_at(i);
        value[i] = of(alpha[i], gamma);
        value[i] = value[i] > svg->y1 ? NAN : value[i];
    }
    svg_line(svg, alpha, value, CURVE, how);
}

/* Rings, of the fastest length of each group or of all.  of: of a point */
static void mark(const struct svg *svg, const struct charts_point *points, int count, double (*of)(const struct charts_point *point), int all)
{
    for (int i = 0; i < count; i++)
        if (all || points[i].is_fastest)
            svg_dots(svg, &points[i].alpha, (double[]){of(&points[i])}, 1, "pair");
}

static double tokens_of(const struct charts_point *point)
{
    return point->tokens;
}

static double best_gamma_of(const struct charts_point *point)
{
    return point->best_gamma;
}

static double speedup_of(const struct charts_point *point)
{
    return point->speedup;
}

static double without_end(double alpha, int gamma)
{
    (void)gamma;
    return 1 / (1 - alpha);
}

static void draw_tokens(const struct charts_point *points, int count, FILE *to)
{
    struct svg svg;
    char how[16];

    charts_begin(to, "half", "Expected tokens of a round by alpha (the paper's Fig. 2)",
                 "gamma = 1|gamma = 3|gamma = 5|gamma = 7|gamma = 10|gamma without end", "-----t");
    svg_open(&svg, to, CHART_WIDTH, CHART_HEIGHT, "Equation (1), the expected tokens of a round, against alpha, for several gamma");
    svg_span(&svg, 0, 1, 0, 11);
    svg_frame(&svg, "alpha", "tokens of a round (equation 1)", 0);
    for (int g = 0; g < GAMMAS; g++) {
        snprintf(how, sizeof how, "k%d", g);
        draw(&svg, theory_tokens, gammas[g], how);
    }
    draw(&svg, without_end, 0, "k5 dotted");
    mark(&svg, points, count, tokens_of, 1);
    svg_close(&svg);
    charts_end(to, "Rings: what was measured.");
}

static void draw_best_gamma(const struct charts_point *points, int count, FILE *to)
{
    static const double costs[] = {0.01, 0.02, 0.05, 0.1, 0.2};
    double alpha[CURVE], gamma[CURVE];
    struct svg svg;
    char how[16];

    charts_begin(to, "half", "Best draft length by alpha (the paper's Fig. 3)", "c = 0.01|c = 0.02|c = 0.05|c = 0.1|c = 0.2", "");
    svg_open(&svg, to, CHART_WIDTH, CHART_HEIGHT, "The gamma whose improvement by theorem 3.8 is largest, against alpha, for several c");
    svg_span(&svg, 0, 1, 0, 30);
    svg_frame(&svg, "alpha", "best draft length (theorem 3.8)", 0);
    for (int c = 0; c < 5; c++) {
        for (int i = 0; i < CURVE; i++) {
            alpha[i] = alpha_at(i);
            gamma[i] = theory_best_gamma(alpha[i], costs[c], THEORY_MOST_GAMMA);
            gamma[i] = gamma[i] > 30 ? NAN : gamma[i];
        }
        snprintf(how, sizeof how, "k%d", c);
        svg_line(&svg, alpha, gamma, CURVE, how);
    }
    mark(&svg, points, count, best_gamma_of, 0);
    svg_close(&svg);
    charts_end(to, "Rings: what alpha and c were measured with the fastest draft length of each temperature and rule.");
}

/* Drafts that cost nothing, as in the paper's table 1 and figure 4. */
static double free_speed(double alpha, int gamma)
{
    return theory_improvement(alpha, gamma, 0);
}

static double free_operations(double alpha, int gamma)
{
    return theory_operations(alpha, gamma, 0);
}

static void draw_operations(const struct charts_point *points, int count, FILE *to)
{
    struct svg svg;
    char how[16];

    charts_begin(to, "half", "Speed and operations by alpha (the paper's Fig. 4)", "gamma = 1|gamma = 3|gamma = 5|gamma = 7|gamma = 10|operations",
                 "-----d");
    svg_open(&svg, to, CHART_WIDTH, CHART_HEIGHT,
             "Theorems 3.8 and 3.11, the improvement and the factor of operations, against alpha, for several gamma, with drafts that cost nothing");
    svg_span(&svg, 0, 1, 0, 11);
    svg_frame(&svg, "alpha", "times that of the target alone (c = 0)", 0);
    for (int g = 0; g < GAMMAS; g++) {
        snprintf(how, sizeof how, "k%d", g);
        draw(&svg, free_speed, gammas[g], how);
        snprintf(how, sizeof how, "k%d dashed", g);
        draw(&svg, free_operations, gammas[g], how);
    }
    mark(&svg, points, count, speedup_of, 0);
    svg_close(&svg);
    charts_end(to, "Rings: the speedup that was measured with the fastest draft length of each temperature and rule.");
}

void charts_theory(const struct charts_point *points, int count, FILE *to)
{
    if (count == 0)
        return; /* of trees there is no such theory */
    draw_tokens(points, count, to);
    draw_best_gamma(points, count, to);
    draw_operations(points, count, to);
}
