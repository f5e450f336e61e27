/* How far logits are from those of the same weights in float32, over so many positions as were added. Of our logits and of a peer's it is this that
 * is measured, so that both figures mean the same. Plain sums; owns nothing; pure but for printing. */
#ifndef TANDEM_LAUNCH_DEV_STEP_DIFFERENCE_H
#define TANDEM_LAUNCH_DEV_STEP_DIFFERENCE_H

/* Positions are those of a text's tokens in chunks of so many, each fed anew behind nothing; the second half of each is compared, as
 * llama-perplexity does. */
enum { DIFFERENCE_CHUNK = 512 };

struct difference {
    int positions;
    int same;       /* positions with the same largest logit */
    double largest; /* of two logits, after each row's mean difference is taken out: a shift of a whole row changes nothing */
    double kl;      /* sum of KL(float32 || other), nats */
};

/* exact, other: [vocab], one position's. */
void difference_add(struct difference *difference, const float *exact, const float *other, int vocab);
/* One JSON object on a line of stdout; `kl` and `same` are there for each position. */
void difference_print(const struct difference *difference);

#endif
