#include "verifier/job/explain.h"

#include "common/base/visible.h"
#include "verifier/job/colour.h"
#include <string.h>

enum {
    PIECE = 32,  /* bytes of a token that are shown */
    WIDEST = 24, /* columns of the longest token that others are aligned with */
};

/* The token in quotes. Returns how many columns it takes, about. */
static int quote(const struct tokenizer *tokenizer, int32_t token, char out[VISIBLE_QUOTED(PIECE)])
{
    size_t length, at;
    const char *piece = tokenizer_piece(tokenizer, token, 0, 1, &length);
    int columns = 0;

    at = visible_quote(piece, length, PIECE, out);
    for (size_t i = 0; i < at; i++)
        columns += ((unsigned char)out[i] & 0xc0) != 0x80;
    return columns;
}

static int is_tree(const struct explained *explained)
{
    for (int i = 0; i < explained->count; i++)
        if (explained->node[i].parent != i - 1)
            return 1;
    return 0;
}

/* Columns in front of a draft's token: what is behind another stands further right. */
static int indent_of(const struct explained *explained, int node)
{
    return is_tree(explained) ? 2 * explained->node[node].depth : 0;
}

static int width_of(const struct explained *explained, const struct tokenizer *tokenizer)
{
    char text[VISIBLE_QUOTED(PIECE)];
    int width = quote(tokenizer, explained->token, text);

    for (int i = 0; i < explained->count; i++) {
        int columns = indent_of(explained, i) + quote(tokenizer, explained->node[i].token, text);

        width = columns > width && columns <= WIDEST ? columns : width;
    }
    return width;
}

/* Who drafted it, where several kinds do. */
static void write_sources(const struct explained *explained, const struct explained_node *node, FILE *to)
{
    const char *before = "; drafted by ";

    for (int kind = 0; node->source >> kind != 0; kind++)
        if (node->source >> kind & 1) {
            fprintf(to, "%s%s", before, explained->kind[kind]);
            before = ", ";
        }
}

static void write_fate(const struct explained_node *node, const struct tokenizer *tokenizer, FILE *to)
{
    static const char *const fates[] = {[EXPLAINED_ACCEPTED] = "accepted", [EXPLAINED_REJECTED] = "rejected", [EXPLAINED_PASSED] = "not looked at"};
    char own[VISIBLE_QUOTED(PIECE)];

    fputs(fates[node->fate], to);
    if (node->fate == EXPLAINED_PASSED)
        return;
    if (node->own >= 0) {
        quote(tokenizer, node->own, own);
        fprintf(to, node->fate == EXPLAINED_ACCEPTED ? ": it is the target's own token" : ": the target's own token is %s", own);
    } else if (node->coin >= 0 && node->p >= node->q) {
        fputs(": p is not below q", to);
    } else if (node->coin >= 0) {
        fprintf(to, ": coin %.3f %s p / q = %.3f", node->coin, node->fate == EXPLAINED_ACCEPTED ? "<" : ">=", node->p / node->q);
    }
}

void explain_fate(const struct explained *explained, int node, const struct tokenizer *tokenizer, FILE *to)
{
    write_fate(&explained->node[node], tokenizer, to);
    write_sources(explained, &explained->node[node], to);
}

static void write_draft(const struct explained *explained, int i, const struct tokenizer *tokenizer, int width, int colour, FILE *to)
{
    static const char *const colours[] = {[EXPLAINED_ACCEPTED] = COLOUR_GREEN, [EXPLAINED_REJECTED] = COLOUR_RED, [EXPLAINED_PASSED] = COLOUR_SOFT};
    const struct explained_node *node = &explained->node[i];
    char text[VISIBLE_QUOTED(PIECE)];
    int indent = indent_of(explained, i), columns = indent + quote(tokenizer, node->token, text);

    fprintf(to, "  %2d  %*s%s%s%s%*s", i + 1, indent, "", colour ? colours[node->fate] : "", text, colour ? COLOUR_NONE : "",
            columns < width ? width - columns : 0, "");
    if (node->q >= 0)
        fprintf(to, "  q %.4f", node->q);
    if (node->p >= 0)
        fprintf(to, "  p %.4f", node->p);
    fputs("  ", to);
    explain_fate(explained, i, tokenizer, to);
    fputc('\n', to);
}

/* What follows a draft, or with -1 the newest committed token: each with what follows it right below it, in whatever order they were drafted. */
static void write_children(const struct explained *explained, int parent, const struct tokenizer *tokenizer, int width, int colour, FILE *to)
{
    for (int i = 0; i < explained->count; i++)
        if (explained->node[i].parent == parent) {
            write_draft(explained, i, tokenizer, width, colour, to);
            write_children(explained, i, tokenizer, width, colour, to);
        }
}

/* What is left of p for the last token, as the paper writes it. */
static void write_residual(const struct residual *residual, FILE *to)
{
    char of_p[24] = "p", of_q[72] = "";

    if (residual->several > 0) {
        fputs("drawn from what is left of p: max(0, p", to);
        for (int i = 0; i < residual->several; i++)
            if (residual->share[i].of_q == 1)
                fprintf(to, " - q of %d", residual->share[i].node + 1);
            else
                fprintf(to, " - %.4g q of %d", residual->share[i].of_q, residual->share[i].node + 1);
        fputs("), normalised", to);
        return;
    }
    if (residual->of_p != 1)
        snprintf(of_p, sizeof of_p, "%.4g p", residual->of_p);
    if (residual->of_q != 0 && residual->of_q != 1)
        snprintf(of_q, sizeof of_q, "%.4g ", residual->of_q);
    fputs("drawn from what is left of p: ", to);
    if (residual->of_q == 0)
        fputs(of_p, to);
    else if (residual->most > 0)
        fprintf(to, "max(0, %s - %smin(q, %.4g p))", of_p, of_q, residual->most);
    else
        fprintf(to, "max(0, %s - %sq)", of_p, of_q);
    fprintf(to, "%s, normalised", residual->of_p != 1 ? " where q is above 0, else p" : "");
}

void explain_draw(const struct explained *explained, FILE *to)
{
    if (explained->draw == DRAW_RESIDUAL)
        write_residual(&explained->residual, to);
    else
        fputs(explained->draw == DRAW_PLAIN ? "drawn from p" : "the target's own token", to);
}

static void write_last(const struct explained *explained, const struct tokenizer *tokenizer, int width, int colour, FILE *to)
{
    char text[VISIBLE_QUOTED(PIECE)];
    int columns = quote(tokenizer, explained->token, text);

    fprintf(to, "      %s%s%s%*s  ", colour ? COLOUR_BLUE : "", text, colour ? COLOUR_NONE : "", columns < width ? width - columns : 0, "");
    explain_draw(explained, to);
    fputc('\n', to);
}

static int count_accepted(const struct explained *explained)
{
    int accepted = 0;

    for (int i = 0; i < explained->count; i++)
        accepted += explained->node[i].fate == EXPLAINED_ACCEPTED;
    return accepted;
}

void explain_head(const struct explained *explained, int round, FILE *to)
{
    int accepted = count_accepted(explained);

    fprintf(to, "round %d, %s%s: ", round, explained->rule, is_tree(explained) ? ", a tree" : "");
    if (explained->count > 0)
        fprintf(to, "%d of %d drafts accepted, %d token%s", accepted, explained->count, accepted + 1, accepted > 0 ? "s" : "");
    else
        fputs("no draft, 1 token", to);
}

void explain_end(const struct explained *explained, int kept, const char *before, FILE *to)
{
    if (kept <= count_accepted(explained))
        fprintf(to, "%sthe completion ends with %d of these tokens\n", before, kept);
}

void explain_round(const struct explained *explained, const struct tokenizer *tokenizer, int round, int kept, int colour, FILE *to)
{
    int width = width_of(explained, tokenizer);

    explain_head(explained, round, to);
    fputc('\n', to);
    write_children(explained, -1, tokenizer, width, colour, to);
    write_last(explained, tokenizer, width, colour, to);
    explain_end(explained, kept, "      ", to);
}
