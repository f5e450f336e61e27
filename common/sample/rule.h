/* The acceptance rules: one row each, of what both roles, and whoever writes or reads a rule's name, need to know of it. How the verifier decides
 * by a rule is the row of verifier/accept/accept_rule.c. Plain data; pure; compiled for the device, too. */
#ifndef TANDEM_COMMON_SAMPLE_RULE_H
#define TANDEM_COMMON_SAMPLE_RULE_H

#include "common/base/rng.h"
#include "common/sample/sampling.h"
#include "common/sample/tree_shape.h"
#include <stddef.h>

/* How a drafter draws its next token. */
enum rule_draw {
    RULE_DRAWS_ARGMAX, /* a point mass */
    RULE_DRAWS_NOISE,  /* the argmax with the target's own noise: a point mass */
    RULE_DRAWS_Q,      /* from q, which is sent */
};

/* How the drafts that follow one text in a tree are drawn from its q, one after the other. */
enum rule_siblings {
    RULE_SIBLINGS_ANY,     /* the rule asks for no q */
    RULE_SIBLINGS_AGAIN,   /* each from q: the same token may come twice */
    RULE_SIBLINGS_WITHOUT, /* each from q without the tokens of those before it: no token comes twice */
};

struct rule {
    const char *name, *also; /* and another name that it goes by; NULL: none */
    const char *what;      /* one line, for whoever asks for the list */
    const char *source;    /* whose it is */
    int lossless;          /* what comes out has the target's own distribution */
    int needs_q;           /* deciding asks for the q that a token was drawn from; without it drafts are point masses */
    int depends_on_drafts; /* the text, not only its distribution, depends on what was drafted */
    int matches;           /* a draft is accepted if it is the target's own token, which is drawn with RNG_NOISE */
    int overlaps;          /* the overlap of the rows that are tested (accept_overlap) tells how often a tested draft is accepted */
    int trees;             /* it decides about trees, too: where it matches any will do, as what comes out does not depend on them; else .. */
    int merges;            /* it decides about what several drafters propose for one text, each from a q of its own, where it asks for any */
    enum rule_siblings siblings; /* .. the drafts that follow one text are drawn in this way */
    int looks_on;          /* drafts behind the last accepted one are looked at, too: rule_coin */
    int cold;              /* it is another one than greedy at temperature 0, too, where p is that of temperature 1 */
    int usual;             /* a benchmark measures it if it is not told what to measure */
    enum rule_draw draw;
    size_t number; /* offset in struct sampling of the number that belongs to the rule, as lenience's L; 0: none does */
};

/* A rule as a list of rules has it: by its name, or with a number of its own, as "lenience=0.5". */
struct rule_asked {
    int accept;
    double number; /* negative: none was given, the sampling's own holds */
};
enum { RULE_TEXT = 48 };
enum { RULE_COINS = 1 << 16 }; /* of one drafter for a position, at most */

/* The names, in the order of enum accept_mode: for help, and for whoever is told another one. */
#define RULE_NAMES "rejection|coupled|walk|block|classic|lenience|threshold|typical|multistep|without-replacement|k-sequential|traversal"

/* The row that holds for this sampling: at temperature 0 all lossless rules are one, greedy, which nobody can ask for by name. NULL where `accept` is
 * none. */
const struct rule *rule_of(const struct sampling *sampling);
/* Its `draw`, which a device reads, too. */
DEVICE_CODE enum rule_draw rule_draw(const struct sampling *sampling);
/* The index of the coins of a draft that stands `depth` tokens behind the text that it was drafted for: the one that it is drawn with and the one
 * that it is accepted by. Where a rule looks no further than the first draft that it rejects, the coins of the positions behind are still to be used
 * for the next proposal, and the position says all (0). Where it looks on, a coin that a decision has seen must not come again in the next one: it
 * belongs to the position and to the text, which is so many tokens before it. Those of several drafters (sampling->drafter) are others: what one
 * draws says nothing of what another draws. */
DEVICE_CODE uint32_t rule_coin(const struct sampling *sampling, int depth);
/* The same of a node of a tree, where the rule looks on others for each. Nodes with one at each depth before them have a chain's, so that it does not
 * matter whether a chain is told as a tree.  node: the one that is tested, or the one after the parent whose children are drawn, by the index in the
 * proposal */
uint32_t rule_tree_coin(const struct sampling *sampling, int depth, int node);
/* Does it decide about drafts of this shape? A chain suits all; TREE_OWN, any tree of point masses, the rules that compare tokens. */
int rule_takes_shape(const struct rule *rule, enum tree_kind shape);
/* The rule's own row and name, whatever the temperature; NULL where `accept` is none. */
const struct rule *rule_row(int accept);
const char *rule_name(int accept);
/* What to write into `accept` for the first `length` bytes of a name, either one, or -1 when no rule has it. */
int rule_find(const char *name, size_t length);

/* Reads the first `length` bytes of such a text. 1, or 0 with *asked as it was: no rule has the name, or it has no number, or another range. */
int rule_read(const char *text, size_t length, struct rule_asked *asked);
/* Writes it again.  text: [RULE_TEXT] */
void rule_write(const struct rule_asked *asked, char *text);
/* The rule, and its number where one was given. */
void rule_set(const struct rule_asked *asked, struct sampling *sampling);

#endif
