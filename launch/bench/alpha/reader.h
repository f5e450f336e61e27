/* A reader is a model that several texts are fed to, one token of each at a time: it owns the model, its cache and the logits of the newest tokens.
 * One process and one thread call it (the backend may use more). Nothing is sampled here. */
#ifndef TANDEM_LAUNCH_BENCH_ALPHA_READER_H
#define TANDEM_LAUNCH_BENCH_ALPHA_READER_H

#include "common/model/forward.h"
#include "common/options/options.h"
#include "common/text/tokenizer.h"

enum { READER_LONGEST = 9 };

struct reader {
    char path[4096];
    struct group self;
    struct tokenizer *tokenizer;
    struct model *model;
    struct kv_cache cache;
    struct forward forward;
    struct arena arena;
    struct rows rows;
    int32_t *asked; /* [max_outputs] */
    float *logits;  /* [max_outputs][vocab] */
    int64_t ns;     /* in steps of one token of each text */
};

/* Threads that a reader computes with. */
int reader_threads(const struct options *options);
/* Opens the draft of the options, of whose ids the first `vocab` are drafted, or the target where `vocab` is 0; with so many slots.
 * outputs: rows of a step of which there are logits, at least as many as slots and READER_LONGEST */
enum status reader_open(struct reader *reader, const struct options *options, int vocab, int slots, int outputs);
void reader_close(struct reader *reader);
/* Feeds tokens[0 .. count) to a slot from its beginning. */
enum status reader_feed(struct reader *reader, int slot, const int32_t *tokens, int count);
/* The same, with the logits behind each token from `first` on: `see` is called for each, in order.  logits: [vocab] */
typedef void reader_seen(void *state, int place, const float *logits);
enum status reader_see(struct reader *reader, int slot, const int32_t *tokens, int count, int first, reader_seen *see, void *state);
/* A step: its rows are added, then run; row i's logits are at reader_logits(reader, i). */
void reader_add(struct reader *reader, int slot, int place, int32_t token);
enum status reader_run(struct reader *reader);
float *reader_logits(const struct reader *reader, int row);
/* The usual time of a step of so many tokens of one text, 1 .. READER_LONGEST, in nanoseconds. Slot 0 is used for it. */
enum status reader_time(struct reader *reader, int rows, double *ns);

#endif
