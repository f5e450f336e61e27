/* What Leviathan, Kalman and Matias 2023 ("Fast Inference from Transformers via Speculative Decoding") predict. alpha: the chance that a draft is
 * accepted, taken as independent and the same everywhere; gamma: the draft length; c: time of one step of the draft model over one of the target;
 * c_hat: the same of arithmetic operations. Owns nothing; pure. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_THEORY_H
#define TANDEM_LAUNCH_BENCH_REPORT_THEORY_H

enum { THEORY_MOST_GAMMA = 64 };

/* Equation (1): expected tokens of a round, (1 - alpha^(gamma + 1)) / (1 - alpha). */
double theory_tokens(double alpha, int gamma);
/* Theorem 3.8: the walltime improvement, tokens / (gamma c + 1). It takes the target's step over gamma + 1 rows to cost what one row costs, and
 * nothing else to take time. */
double theory_improvement(double alpha, int gamma, double c);
/* The same with what those two assumptions leave out: the target's step takes v times its step over one row, and `rest` of that goes elsewhere. */
double theory_improvement_measured(double alpha, int gamma, double c, double v, double rest);
/* Theorem 3.11: the factor of arithmetic operations, (gamma c_hat + gamma + 1) / tokens. */
double theory_operations(double alpha, int gamma, double c_hat);
/* Section 3.4: how often weights are read for a token, over how often the target alone reads its own: the target's once a round, the draft's gamma
 * times. size: the draft's weights over the target's. */
double theory_reads(double alpha, int gamma, double size);
/* Section 3.5: the improvement that no choice of gamma exceeds, that of an oracle which knows how many drafts will be accepted and makes those alone:
 * alpha / (1 - alpha) drafts a round on average, each worth c. Infinite at alpha = 1 and c = 0. */
double theory_oracle(double alpha, double c);
/* The gamma from 0 to `most` whose improvement by theorem 3.8 is largest; 0 where none is above 1. */
int theory_best_gamma(double alpha, double c, int most);

/* The alpha at which equation (1) gives so many tokens a round; 0 and 1 beyond its ends. */
double theory_alpha(double tokens, int gamma);
/* The same for rounds of different lengths. rounds: [most + 1] how many had that gamma; tokens: of all together. */
double theory_alpha_mixed(const double *rounds, int most, double tokens);

#endif
