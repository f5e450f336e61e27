/* A backend says how a number is computed and on which memory. It is a table of coarse operations: coarse enough for each to be
 * one fused kernel, few enough to read. The transformer over them is written once, in common/model/forward.c. The table has parts by what they serve:
 * memory, linear maps, the step, the blocks of a layer, the cache, output rows and what is asked of them, drafts without the host, the device,
 * and single rows of logits on the host.
 *
 * All arrays are row-major float32 in the device's memory (the CPU's is the host's) unless said otherwise. "rows" are the tokens fed in one
 * step, of one or several sequences; struct rows, shapes and options lie in the host's memory.
 * Every operation gives each row the same bits whatever other rows, threads or ranks share the step; the CPU backend gives the
 * same bits on every instruction set as well. No operation allocates. A context is used by one thread at a time (it may own a
 * pool of threads that it uses inside an operation). A device may still be at work when an operation returns: embed begins a step, finish
 * waits for its end and tells what failed.
 */
#ifndef TANDEM_COMMON_BACKEND_BACKEND_H
#define TANDEM_COMMON_BACKEND_BACKEND_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/sample/row.h"
#include "common/sample/sampling.h"
#include <stddef.h>
#include <stdint.h>

/* How weights are stored. DTYPE_F8 is what safetensors call F8_E4M3 (Micikevicius et al. 2022), with the scales that such files have beside it: rows
 * of blocks of 128 values, each a float32 and then 128 bytes, and a value is the byte's times the float32, rounded once. A block of which a byte is
 * not a number, or the scale not below DTYPE_F8_SCALE, is not a number. Those from DTYPE_Q8_0 on are ggml's quantised ones and, not of ggml, Q4_Z, 4
 * bits with a zero point, as AWQ and GPTQ keep them (F16 d, a byte z of 0 to 15, then as Q4_0; a value is d (q - z)): rows of blocks of 32 or, the
 * k-quants from DTYPE_Q2_K on, 256 values. In each DTYPE_BLOCK values are integers q of some bits with scales and, of some, minima: struct
 * dtype_part. Not every backend packs them (see `linear.packs`): for the others, whoever packs a matrix widens its rows. */
enum dtype {
    DTYPE_F32,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_F8,
    DTYPE_Q8_0,
    DTYPE_Q4_0,
    DTYPE_Q4_1,
    DTYPE_Q5_0,
    DTYPE_Q5_1,
    DTYPE_Q4_Z,
    DTYPE_Q2_K,
    DTYPE_Q3_K,
    DTYPE_Q4_K,
    DTYPE_Q5_K,
    DTYPE_Q6_K,
    DTYPES,
    DTYPE_E4M3 = DTYPES, /* of caches alone: a byte of F8 and no scale */
    DTYPES_ALL
};
enum { DTYPE_BLOCK = 32, DTYPE_BLOCK_F8 = 128, DTYPE_BLOCK_MOST = 256 };
#define DTYPE_F8_SCALE 0x1p64f /* times 448, and 2^8 (cpu/matrix.h), a float32 that leaves room for sums */

/* What DTYPE_BLOCK neighbours of a quantised row are: value k is (d scale[h]) q[k] + m least[h] in float32, h = k / 16, which rounds once, in the sum
 * (where there is no minimum, in the product). d and m are the file's F16, for a k-quant those of all 256. Of F8 q are the bytes, and d, m, scale and
 * least are 0. */
struct dtype_part {
    uint16_t d, m; /* bits */
    int has_least; /* else m and least are 0, and nothing is added */
    int8_t scale[2], least[2];
    int8_t zero; /* Q4_Z: what was taken away from each q */
    int8_t q[DTYPE_BLOCK];
    float f8_scale; /* F8: of the block; NaN where it is not a number */
};

/* The part `number` of a row in blocks. */
void dtype_part_of(enum dtype dtype, const void *row, size_t number, struct dtype_part *part);
/* Values in each block of the file; 1 where the dtype has none. */
size_t dtype_block(enum dtype dtype);
/* A dtype as which rows of both can be packed with all their values as they are: that of both, or of other rows a wider one; F32: there is none. */
enum dtype dtype_common(enum dtype one, enum dtype other);
/* Of one value; 0 for a dtype of blocks. */
size_t dtype_bytes(enum dtype dtype);
/* Of a row of `columns` values, which are whole blocks where the dtype has any. */
size_t dtype_row_bytes(enum dtype dtype, size_t columns);
/* Whether its numbers are integers of few bits; those of F8 are floats. */
int dtype_is_quantised(enum dtype dtype);
/* Of the number that each value has for itself: 32, 16, 8, 6, ... 2. */
int dtype_bits(enum dtype dtype);
const char *dtype_name(enum dtype dtype);
/* Widens `count` values (of any alignment; whole blocks of a dtype that has any) to float32: exact, with ggml's one rounding of d q + m. */
void dtype_widen(enum dtype dtype, const void *from, float *to /* [count] */, size_t count);
/* The columns [first, first + count) of a row, which need not begin or end with a block. */
void dtype_widen_columns(enum dtype dtype, const void *row, size_t first, size_t count, float *to /* [count] */);
/* One block of Q8_0 or Q4_0 of these values, byte for byte as ggml's reference makes it: d = max |x| / 127 and q = x / d to the nearest, ties away
 * from zero; or d = x / -8 for the first x of largest magnitude and q = min(15, trunc(x / d + 8.5)). d is stored as F16, and the quotients are x
 * times the float32 reciprocal of the d before that. A block with a value that is not finite stands for NaN alone; one whose d is below 2^-126,
 * for zeros. */
void dtype_round(enum dtype dtype, const float *from /* [DTYPE_BLOCK] */, void *block);
/* Puts in place of each value what it is in blocks of `dtype`, made by dtype_round; a last block that is not full is filled with zeros. */
void dtype_round_trip(enum dtype dtype, float *values /* [count] */, size_t count);

enum {
    BACKEND_PANEL = 16,    /* output channels of a panel; keys of a cache tile */
    BACKEND_MAX_ROWS = 64, /* rows of one step and sequence: the ancestor mask has 64 bits */
    BACKEND_MAX_SLICES = 16,
    BACKEND_MAX_TERMS = 64, /* of a tree sum: ranks that compute together */
};

struct backend_context; /* threads, instruction set, scratch */
struct matrix;          /* packed weights of one linear map */

struct backend_options {
    int threads;     /* >= 1, the caller's own included */
    int max_rows;    /* rows of one step over all sequences */
    int max_outputs;   /* of these, rows that a head or a question may be about; 0: all */
    int max_hidden;  /* largest hidden of the layers and heads to be run; 0 when only matmul and the row operations are */
    int max_qkv;     /* largest outputs of a qkv matrix, (heads + 2 kv_heads) head_dim of this rank; or 0 without attention */
    int max_columns; /* most columns of a quantised matrix; or 0 */
    int max_context; /* largest context of a shape; or 0 */
    int max_vocab;   /* most outputs of a head; or 0 */
    const char *isa; /* of the CPU: NULL for the best one, or "scalar", "avx2", "avxvnni", "avx512", "avx512vnni": for tests */
    int device;      /* of several: its number, from 0 */
};

/* Weights to pack. rows[o] points at output channel o's weights, `dtype`, of which the columns [column_first, column_first +
 * columns) are taken; NULL is a row of zeros (padding, computed and ignored). The reduced dimension is cut into `slices` slices:
 * slice i holds the columns [slice_bounds[i], slice_bounds[i + 1]) of those taken. Each output is one chain of fused
 * multiply-adds over each slice in rising order of the column, starting from +0, and the slices are summed by
 * backend_tree_sum. One slice is the plain chain.
 *
 * Where the CPU packs quantised rows, activations are quantised, too: in each slice those of a block of 32 columns of the file (or of the part of
 * it that the slice has) are x = a X with integers X = min(rint(x (-128 / l)), 127), ties to even, and a = l / -128, where l is the one of largest
 * magnitude, of two such the positive one; both are 0 where |l| is at most 2^-100. An output is then one chain over the blocks of each slice in
 * rising order, starting from +0: s = fma(sum of q X, (d scale) a, s), and after it, where the dtype has minima, s = fma(m least, a sum of X, s),
 * with q, d, scale, m and least of dtype_part_of. Of Q2_K, Q3_K, Q5_K and Q6_K, and of rows of several k-quants, a block is s = fma(b, a, s), where b
 * is made of its halves one after the other: b = (sum of q X) (d scale) of the first and fma(sum of q X, d scale, b) of the second, and after each,
 * where there are minima, b = fma(m least, sum of X, b). A block with an activation that is not finite makes the row's outputs NaN.
 *
 * With row_dtype each row is of a dtype of its own. Rows of which `dtype` is the common one (dtype_common) keep their values. Another row is rounded
 * to `dtype`, which is Q8_0 or Q4_0 then, by dtype_round as it is packed: by blocks of the whole row, whatever columns of it are taken, with zeros in
 * a last block that it does not fill. */
struct matrix_source {
    const void *const *rows; /* [outputs] */
    int outputs;
    int columns;
    int column_first;
    enum dtype dtype;
    const enum dtype *row_dtype; /* [outputs], of rows that are there; NULL: all are of `dtype` */
    int row_columns;             /* with row_dtype: of a whole row */
    const int *slice_bounds; /* [slices + 1], NULL when slices is 1 */
    int slices;
    int group; /* of Q4_Z: columns of a row, from the first of the file on, that have one scale and zero point; a multiple of DTYPE_BLOCK, or 0 for
                * that */
};

/* The fixed tree: neighbours are added level by level, an odd last one is carried up. Its value for S numbers equals the tree
 * over R of the trees over S / R consecutive ones when R and S / R are powers of two, which is what makes tensor-parallel
 * widths agree. */
float backend_tree_sum(float *terms /* [count], overwritten */, int count);

/* One rank's shard of the shapes: heads and ffn channels that it owns. Query head h reads key/value head h / (heads / kv_heads). To attend_in
 * either count may be 0: it makes what the shape has. */
struct layer_shape {
    int hidden;   /* of the residual stream, whole on every rank */
    int heads;    /* query heads owned */
    int kv_heads; /* owned */
    int head_dim; /* even */
    int ffn;      /* ffn channels owned */
    int context;  /* places of a sequence in the cache, a multiple of BACKEND_PANEL */
    float norm_eps;
};

struct layer_weights {
    const float *attn_norm; /* [hidden] */
    struct matrix *qkv;     /* hidden -> heads x head_dim of q, then kv_heads x head_dim of k, then the same of v */
    const float *qkv_bias;  /* [(heads + 2 kv_heads) head_dim], or NULL */
    const float *q_norm;    /* [head_dim], RMS norm of each query head before RoPE (Qwen3), or NULL */
    const float *k_norm;    /* [head_dim], or NULL */
    struct matrix *out;     /* heads x head_dim -> hidden: a partial sum, sliced */
    const float *mlp_norm;  /* [hidden] */
    struct matrix *gate_up; /* hidden -> 2 x ffn rounded up to BACKEND_PANEL: 16 gate channels, their 16 up channels, and so on */
    struct matrix *down;    /* ffn -> hidden: a partial sum, sliced */
};

/* One layer of the cache, all slots. How keys lie is the backend's; this is the CPU's way. */
struct cache_layer {
    enum dtype dtype; /* of its numbers */
    void *keys;       /* [slots][kv_heads][context / 16][head_dim][16]: a tile of 16 places has their keys transposed */
    void *values;     /* [slots][kv_heads][context][head_dim] */
};

/* Where a stretch of the cache begins. */
struct cache_place {
    int slot, place;
};

/* The tokens fed in one step. Row i is written at place[i] of its slot's cache and sees there the places [0, base[i]) and, of the 64 from base[i]
 * on, those whose bit is set in ancestors[i] (its own among them). A chain is the special case of bits 0 .. i; where it is longer than
 * BACKEND_MAX_ROWS, the base of its rows moves on by so many. */
struct rows {
    int count;
    int32_t *token;      /* [count] */
    int32_t *position;   /* [count], for RoPE */
    int32_t *slot;       /* [count] */
    int32_t *place;      /* [count] */
    int32_t *base;       /* [count], places of the slot that every row of the step sees */
    uint64_t *ancestors; /* [count] */
};

/* Row r is the i-th of a chain from the place `first` on: sets what it sees. */
static inline void backend_see_chain(struct rows *rows, int r, int first, int i)
{
    rows->base[r] = first + i / BACKEND_MAX_ROWS * BACKEND_MAX_ROWS;
    rows->ancestors[r] = UINT64_MAX >> (BACKEND_MAX_ROWS - 1 - i % BACKEND_MAX_ROWS);
}

/* How many rows a step of so many had best have, at most `most`, where steps of few shapes are recorded: 1, 2, 4 or a multiple of 8, which is what
 * the kernels take at once. */
static inline int backend_padded(int rows, int most)
{
    int padded = rows <= 2 ? rows : rows <= 4 ? 4 : (rows + 7) / 8 * 8;

    return padded < most ? padded : most;
}

/* A query of a row that a head has made. */
struct kept_query {
    int row;     /* of the last head */
    float scale; /* above 0; logits are multiplied by it first */
    struct row_query query;
};

/* A token that the device drafted, and what it drew it from: common/sample/choice.h. */
struct kept_choice {
    int32_t token;
    int32_t count;    /* of q's support; 0 for a point mass */
    int32_t *id;      /* the caller's, [count] of [top] */
    uint32_t *weight; /* the same */
};

/* A sequence for which the device drafts by itself. */
struct kept_draft {
    struct sampling sampling;
    float scale;            /* logits are multiplied by it first */
    struct row_query query; /* of the first token: choice_ask and its key; the positions of the next ones follow */
    int wanted;             /* tokens, at least 1 */
    struct kept_choice *choice; /* [wanted] the answer */
};

struct draft_terms {
    struct kept_draft *drafts;
    int count;      /* sequences; the rows of all steps are at most BACKEND_MAX_ROWS */
    int support;    /* tokens that a q keeps at most */
    int first_rows; /* rows of the first step */
    int hidden;
    enum dtype dtype;  /* of table */
    const void *table; /* [tokens][hidden], in the device's memory */
    float *x;          /* [rows][hidden] that embed wrote */
};

/* What ranks that compute together must know of a device with memory of its own. */
struct backend_device {
    int number;     /* as its runtime counts it, from 0 */
    char name[64];
    char place[32]; /* its bus id, for people */
    char uuid[48];  /* two ranks with the same one have the same device, or the same part of one */
    void *stream;   /* where all operations go, in order */
};

/* What another rank of the host needs to reach memory of this rank's device: to be passed on as it is. */
struct backend_handle {
    unsigned char bytes[64];
};

/* Sums over ranks of one host whose devices reach each other's memory, in one kernel each (one-shot all-reduce). Each rank opens, all give each
 * other their handles, each connects; sums come in the same order on all; when all have left, each closes. */
struct backend_one_shot {
    int most_ranks;
    /* `most`: numbers of a sum. 0, with the reason, where the device has nothing of the kind: the group sums otherwise, and this is no failure. */
    int (*open)(struct backend_context *context, int rank, int size, size_t most, struct backend_handle *handle, const char **reason);
    int (*connect)(struct backend_context *context, const struct backend_handle *handles, const char **reason);
    /* x = the sum, or x += the sum if `adds`: backend_tree_sum over the ranks' partial[i]. May be recorded.  partial, x: [count], which may be
     * the same */
    void (*sum)(struct backend_context *context, const float *partial, size_t count, float *x, int adds);
    /* Waits for all that was asked for, as finish does, and copies to the host: for a proof that sums are right. */
    enum status (*read_back)(struct backend_context *context, const float *from, size_t count, float *to);
    /* What waits for another rank's numbers ends without them. */
    void (*stop)(struct backend_context *context);
    void (*leave)(struct backend_context *context);
    void (*close)(struct backend_context *context);
};

/* The memory that everything lies in which operations read and write. */
struct backend_memory {
    /* STATUS_INTERNAL, with the figures, when `bytes` for `what` are more than is free now. */
    enum status (*check)(struct backend_context *context, const char *what, size_t bytes);
    /* Zeroed memory of the device for an arena. STATUS_INTERNAL, with a line that names `what`, when there is not so much. */
    enum status (*open)(struct backend_context *context, size_t bytes, const char *what, struct arena *arena);
    void (*close)(struct backend_context *context, struct arena *arena);
    /* The same as open of memory that other processes of the host can map, which *loan says; its descriptor is the caller's to close. 0: there is
     * none such. And what another process lends, to be read alone; 0: it cannot be had. NULL where memory is not the host's. */
    int (*lend)(struct backend_context *context, size_t bytes, struct arena *arena, struct arena_loan *loan);
    int (*borrow)(struct backend_context *context, const struct arena_loan *loan, struct arena *arena);
    /* Copies from the host's memory; `from` may go away when it returns. */
    void (*write)(struct backend_context *context, void *to, const void *from, size_t bytes);
};

/* Linear maps: packed once, when a model is opened, then applied in every step; and the sums that make a whole of partial results. */
struct backend_linear {
    unsigned packs; /* bit d: matrix_pack takes rows of dtype d */
    unsigned rounds; /* the same of dtypes that it rounds rows of more bits to */
    int cuts_blocks; /* whether a matrix may begin or end within a block of the file */
    /* Bytes that matrix_pack will take from an arena. */
    size_t (*matrix_bytes)(const struct matrix_source *source);
    /* Packs into the arena; the source may go away afterwards. */
    enum status (*matrix_pack)(struct backend_context *context, const struct matrix_source *source, struct arena *arena,
                               struct matrix **matrix);

    /* to[r] = W from[r], for each of `rows` rows.  from: [rows][columns]  to: [rows][outputs] */
    void (*matmul)(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *to);

    /* x += W from: attend_out or mlp_out and add at once, with their bits, where there is no group to sum over. NULL where it is no faster.
     * from: [rows][columns], as theirs  x: [rows][hidden] */
    void (*matmul_add)(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *x);

    /* x += sum */
    void (*add)(struct backend_context *context, float *x, const float *sum, size_t count);

    /* to[i] = backend_tree_sum over terms[0][i], terms[1][i], ...  terms: [count][size], at most BACKEND_MAX_TERMS  to: [size] */
    void (*tree_sum)(struct backend_context *context, const float *terms, int count, size_t size, float *to);
};

/* How a step begins and ends: embed, the layers, pick and a head, finish. One step at a time. */
struct backend_step {
    int prompt_rows; /* of a prompt that a step had best take, a multiple of BACKEND_MAX_ROWS */

    /* Begins a step of these rows; attend_in, attend and pick of the step are about the same. x[r] = row token[r] of the table.
     * asked: [output_count] indices of rows  table: [tokens][hidden] of `dtype`, in the host's memory, any alignment  x: [rows][hidden] */
    void (*embed)(struct backend_context *context, const struct rows *rows, const int32_t *asked, int output_count, enum dtype dtype,
                  const void *table, int hidden, float *x);

    /* After embed, for steps whose logits the device keeps and that no host takes part in; NULL where it is of no use. Two steps of the same
     * `who`, as many rows (at most BACKEND_MAX_ROWS) and the same `what` (what is asked, by number or digest) ask for the same operations: so the
     * device may have recorded them. Returns 1 when it does them again by itself; else the caller asks for each, and then says `replayed`: that
     * returns 0 when the device could not do them in this way, and the caller asks for each once more. */
    int (*replay)(struct backend_context *context, const void *who, const struct rows *rows, uint64_t what);
    int (*replayed)(struct backend_context *context);

    /* to[i] = x[asked[i]].  asked: [count], as embed was told  to: [count][hidden] */
    void (*pick)(struct backend_context *context, int hidden, const int32_t *asked, int count, const float *x, float *to);

    /* Ends a step: waits until all of it is done. STATUS_INTERNAL, after a line that names what failed, when any of it failed. */
    enum status (*finish)(struct backend_context *context);
};

/* The blocks of a layer: norm, attention and feed-forward. What is between _in and _out of a block is the backend's own. */
struct backend_layer {
    /* q, k, v = W_qkv norm(x) + b; q, k normed by head where the model does; RoPE; k and v written at the rows' places, in the cache's
     * dtype: to the nearest, ties to even, and NaN stays NaN.
     * Projecting and appending are one operation, for they are one kernel; where they are apart, as in cross-attention, it is called with a part of
     * the shape, and a qkv matrix and bias of that part: without kv_heads it makes q and writes no place, without heads it
     * appends k and v, of rows of their own, and leaves q alone. Each has the bits of all at once.
     * cosine, sine: [context][head_dim / 2]; RoPE turns the pairs (i, i + head_dim / 2).  x: [rows][hidden]
     * q: [rows][heads][head_dim], scaled by 1 / sqrt(head_dim) */
    void (*attend_in)(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                      const struct rows *rows, const float *x, const float *cosine, const float *sine, const struct cache_layer *cache,
                      float *q);

    /* to[r][h] = softmax(q[r][h] K^T) V over the places that row r sees, K and V widened to float32.  q, to: [rows][heads][head_dim]; what is
     * in `to`, in the room of so many float32, is between the backend and its attend_out */
    void (*attend)(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                   const struct rows *rows, const float *q, const struct cache_layer *cache, float *to);

    /* partial = W_out from.  from: [rows][heads][head_dim], as attend left it  partial: [rows][hidden] */
    void (*attend_out)(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                       const float *from, float *partial);

    /* to = silu(W_gate norm(x)) * (W_up norm(x)).  x: [rows][hidden]  to: [rows][ffn], between the backend and its mlp_out */
    void (*mlp_in)(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                   const float *x, float *to);

    /* partial = W_down from.  from: [rows][ffn], as mlp_in left it  partial: [rows][hidden] */
    void (*mlp_out)(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights, int rows,
                    const float *from, float *partial);
};

/* The keys and values that attend_in appends and attend reads. */
struct backend_cache {
    enum dtype dtype; /* of its numbers where none is asked for */
    unsigned dtypes;  /* bit d: they may be of dtype d */

    /* Between steps: the keys and values of `count` places from `from` on are copied to as many from `to` on, none of which is a place that is
     * copied; count may be 0. The steps before it are done with both, those behind it see the copy. */
    void (*copy)(struct backend_context *context, const struct layer_shape *shape, const struct cache_layer *cache, struct cache_place from,
                 struct cache_place to, int count);
};

/* The logits of a step, and what is asked about them. All but `head` is about the logits of the last head: those that the device keeps or, where
 * `fetch` is NULL, those in the host's memory, which are still there, as the head left them. NULL where nothing is answered. */
struct backend_output {
    /* logits = W_head norm(x).  x: [rows][hidden]  logits: [rows][outputs of head], in the host's memory, there when finish says so; or
     * NULL where `fetch` is there: the device keeps them until the next head. Behind ask_begin it may answer as it goes. */
    void (*head)(struct backend_context *context, int hidden, float norm_eps, const float *norm, const struct matrix *head, int rows,
                 const float *x, float *logits);

    /* Answers `count` queries (at least 1, at most max_outputs). first: the id of the rows' first logit, a multiple of 4. The
     * queries stay where they are until finish, which has the answers: max, argmax, winner, logit and best as backend_answer would have them from
     * the scaled row; a device's sum is of the same terms but for their rounding, in an order of its own. */
    void (*ask)(struct backend_context *context, int32_t first, struct kept_query *queries, int count);
    /* The same in three parts, of which the second belongs to what is recorded: before the operations of the step, behind its head, behind
     * replay or what takes its place. ask_begin returns what the second part depends on, for replay.
     * padded: as many are asked, the last one again for each row behind `count`, and have no answer */
    uint64_t (*ask_begin)(struct backend_context *context, int32_t first, struct kept_query *queries, int count, int padded);
    void (*ask_run)(struct backend_context *context);
    void (*ask_end)(struct backend_context *context);

    /* to = the row, there when finish says so; NULL where all logits are in the host's memory.  to: [outputs of head], there */
    void (*fetch)(struct backend_context *context, int row, float *to);
};

/* Several tokens without the host. embed gets the rows of all steps, step by step; of those behind the first step the tokens are not known
 * yet. `begin` says what is to be drafted; then for each step come the operations of a forward over its rows, x from its first
 * one on, and `step`, which draws a token of each sequence that is still to have one and puts its embedding into x, as the next
 * step's row of that sequence. `end`; finish has the answers. All three are NULL where the host drafts. */
struct backend_draft {
    int needs_table; /* of the embeddings, on the device */
    /* Returns what the steps' operations depend on, for replay. */
    uint64_t (*begin)(struct backend_context *context, const struct draft_terms *terms);
    void (*step)(struct backend_context *context, int step);
    void (*end)(struct backend_context *context);
};

/* A device with memory of its own: functions are NULL where that memory is the host's. */
struct backend_on_device {
    /* The device that all this lies on. */
    const struct backend_device *(*which)(const struct backend_context *context);
    /* Whether all that was asked of the device is done, or has failed; waits for nothing. There where `which` is. */
    int (*idle)(struct backend_context *context);
    const struct backend_one_shot *one_shot; /* or NULL */
};

/* One row of logits in the host's memory, at once: no part of a step. */
struct backend_row {
    /* Its statistics, with these sums.  logits: [count], count >= 1, no NaN (minus infinity is allowed) */
    void (*scan)(struct backend_context *context, const float *logits, int count, enum row_sums sums, struct row_stats *stats);

    /* The Gumbel-max of a row: the largest logits[i] + gumbel(key, purpose, first_token + i), ties to the lowest i,
     * over the i whose bit in `excluded` is clear.  first_token is a multiple of 4.  excluded: [(count + 31) / 32], or NULL.
     * When none has a logit above minus infinity the winner's token is -1. */
    void (*gumbel_max)(struct backend_context *context, const float *logits, int count, int32_t first_token, const struct rng_key *key,
                       enum rng_purpose purpose, const uint32_t *excluded, struct scored_token *winner);

    /* The `wanted` largest logits, largest first, ties to the lower index; returns how many (min(wanted, count)).
     * best: [wanted] */
    int (*top)(struct backend_context *context, const float *logits, int count, int wanted, struct scored_token *best);
};

struct backend {
    const char *name;
    enum status (*open)(const struct backend_options *options, struct backend_context **context);
    void (*close)(struct backend_context *context);
    /* One line for --verbose: instruction set and threads. */
    const char *(*describe)(const struct backend_context *context);

    struct backend_memory memory;
    struct backend_linear linear;
    struct backend_step step;
    struct backend_layer layer;
    struct backend_cache cache;
    struct backend_output output;
    struct backend_draft draft;
    struct backend_on_device device;
    struct backend_row row;
};

/* Answers a query from logits in the host's memory, by the backend's row operations.  logits: [count]  excluded: [(count + 31) / 32] zero
 * before and after, or NULL for a query that excludes nothing */
void backend_answer(const struct backend *backend, struct backend_context *context, const float *logits, int32_t first, int count,
                    uint32_t *excluded, struct row_query *query);
/* Parts of it: sets the bits of the query's tokens, or clears them; writes query->logit from a row that is yet to be scaled. */
void backend_exclude(const struct row_query *query, int32_t first, int count, uint32_t *excluded, int on);
void backend_look_up(struct row_query *query, const float *logits, float scale, int32_t first, int count);

/* How many of the sequences want more than `step` tokens. */
int backend_drafts_at(const struct kept_draft *drafts, int count, int step);

extern const struct backend backend_cpu;
extern const struct backend backend_cuda; /* in builds with TANDEM_CUDA, see choose.h */

#endif
