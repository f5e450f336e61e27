/* A model is one rank's shard of the weights, packed once, with the shapes that follow from the group. It owns the packed weights, the backend's
 * context and the mapped files. Invariant: immutable after open. It knows no sequences: those are places in a kv_cache, fed by forward. Opening is
 * collective over the group; after that one thread uses it.
 *
 * Shards. Rank r of R owns a consecutive part of the heads, of the ffn channels and of the vocabulary. The embedding is read row by row from the
 * mapped file; a device that drafts by itself has a copy. The two row-parallel maps (out, down) cut their reduced dimension into slices that do not
 * depend on R where R divides them, so that widths that are powers of two give the same bits (and so does 3 where there are 3 kv heads). A width that
 * does not divide the slices, such as 3 for 9 kv heads or 16 for 8, works and has bits of its own. Of more ranks than kv heads several hold the same
 * one. */
#ifndef TANDEM_COMMON_MODEL_MODEL_H
#define TANDEM_COMMON_MODEL_MODEL_H

#include "common/backend/backend.h"
#include "common/base/layer_set.h"
#include "common/group/group.h"
#include "common/model/checkpoint.h"
#include "common/model/config.h"
#include "common/model/model_shard.h"

/* In the order of the choices of --cache: what numbers keys and values are kept as. */
enum cache_choice { CACHE_AUTO, CACHE_F32, CACHE_BF16, CACHE_E4M3 };

/* How far the weights are read: what this rank takes of its files. */
struct model_reading {
    int file, files; /* the one that is read now, from 1, and how many there are */
    size_t bytes, total;
};

struct model_options {
    int threads;
    int max_rows;    /* rows of one step */
    int max_outputs;   /* of these, rows whose logits are asked for; 0: all */
    int context;     /* tokens of a sequence; 0 for the model's own, at most MODEL_DEFAULT_CONTEXT */
    int slots;       /* of the cache that is to fit beside the weights, or 0 */
    int layers;      /* the first so many, then the final norm and the head: 1 .. config.layers; 0 for all */
    struct layer_set skip; /* of these, those that are left out: not all */
    int vocab;       /* ids in use, at most config.vocab; 0 for all. Rows beyond are padding and get no logit */
    const char *isa; /* see backend_options */
    int device;      /* the same */
    int drafts;      /* a device that can draft by itself is to do so, and is given the embeddings for it */
    enum dtype quantise; /* Q8_0 or Q4_0: matrices of more bits are rounded to it, as if the file had them so. DTYPE_F32: none is */
    int cache;           /* enum cache_choice: of its caches' numbers */
    const struct backend *backend; /* NULL for the CPU's */
    int lends;                     /* the weights are to lie where other processes of the host can map them: model->loan */
    const struct arena_loan *loan; /* NULL, or those of the same files that another process lends, which are mapped if they fit, and not read */
    void (*tell)(void *state, const struct model_reading *reading); /* called after each matrix; NULL: nobody is told */
    void *tell_state;
};

enum { MODEL_DEFAULT_CONTEXT = 8192 };

struct model {
    struct config config;
    const struct backend *backend;
    struct backend_context *context;
    char computing[144]; /* on which device, for the watchdog's line; empty where it is the host */
    struct group *group; /* borrowed */
    struct checkpoint *checkpoint;
    struct tensor embedding;
    int drafts;          /* as in struct model_options */
    enum dtype quantise; /* the same */
    int rounded;         /* matrices that had rows to be rounded to it */
    enum dtype cache_dtype; /* of the numbers in its caches */
    const void *table; /* the same in the device's memory, or NULL */
    enum dtype table_dtype;
    struct model_shard shard; /* this rank's part */
    struct layer_shape shape; /* of that part; shape.context is the cache's */
    int longest;              /* tokens that a sequence may have; at most shape.context */
    struct layer_set skip;    /* as in struct model_options; config.layers are those that are left */
    struct layer_weights *layer; /* [config.layers] */
    const float *final_norm;     /* [hidden] */
    struct matrix *head;
    int vocab;       /* ids in use, over all ranks */
    int vocab_first; /* this rank's first id, a multiple of 16 */
    int vocab_count;
    int max_rows, max_outputs; /* of a step; max_outputs is not 0 */
    float *cosine; /* [context][head_dim / 2] */
    float *sine;
    struct arena weights; /* of the device */
    struct arena_loan loan; /* of these; its pid is 0 where they are not lent */
    int borrows;            /* they are another process's */
    struct arena tables;  /* the same */
};

/* Local (every rank of the group opens its own shard). STATUS_NOINPUT, STATUS_DATA, STATUS_USAGE for a width that does not divide. */
enum status model_open(const char *path, struct group *group, const struct model_options *options, struct model **model);
/* The same in two parts, for what is to be done between: model_begin has found all that is wrong with files and shapes and opened the device, but
 * reads no weight; model_load, with the same options, reads them. model_close after either, whatever became of it. */
enum status model_begin(const char *path, struct group *group, const struct model_options *options, struct model **model);
enum status model_load(struct model *model, const struct model_options *options);
void model_close(struct model *model);
/* Local. Whether model_open will find all that it needs for a group of `width` ranks: files, tensors, shapes, dtypes, context. Reads no
 * weights and needs no memory for them. Same statuses. */
enum status model_check(const char *path, int width, const struct model_options *options);
/* Bytes of memory of each rank of such a group, with a cache of options->slots sequences. */
struct model_need {
    size_t weights, cache, activations;
};
/* Local. The same as model_check, and what the first rank will need. */
enum status model_need(const char *path, int width, const struct model_options *options, struct model_need *need);

/* Local. The number of ranks where the model's numbers have bits that only so many give; 0 where they are those of one. */
int model_own_width(const struct model *model);

/* What weights are rounded to that are to have so many bits, 8 or 4; 0: they are not. */
enum dtype model_quantise(int bits);

/* Local. Fills cosine and sine for all places of the context; what model_open ends with, for models that are made by hand. */
enum status model_open_tables(struct model *model);

/* Bytes of what a step has between its operations: so many numbers for each row. */
struct model_activations {
    size_t hidden, heads, ffn;
    size_t all; /* that forward_open takes: three of hidden, two of heads, one of ffn */
};
struct model_activations model_activations(const struct model *model);

/* Rows of a prompt for one step: as many as the backend would like, or the model takes. */
int model_prompt_rows(const struct model *model);

/* Bytes of packed weights and tables that this rank would hold or holds. */
size_t model_bytes(const struct model *model);

#endif
