/* One sorted list of the places of the texts serves all orders: n-grams that begin alike lie side by side, whatever n is. */
#include "common/corpus/ngram_count.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

enum { DISCOUNTS = 3 };

struct counting {
    const int32_t *token; /* [places], and one behind them that is none */
    size_t places;
    int order;
    uint32_t *sorted; /* [places] by the tokens from there on */
    uint32_t *number; /* [places] of the n-gram that begins there, in order; UINT32_MAX: of none */
    uint32_t *count;  /* [places] of each n-gram */
    uint32_t *longer; /* [places] of each n-gram of one token more: where one of it is */
    size_t ngrams, longer_ngrams;
    struct ngram_header header;
    unsigned char *bytes;
    struct ngram_body body;
};

/* Whether n tokens from there on are of one text; the first may be what stands in front of it. */
static int is_whole(const struct counting *counting, size_t place, int n)
{
    for (int i = 1; i < n; i++)
        if (counting->token[place + (size_t)i] == TEXTS_NONE)
            return 0;
    return 1;
}

static int begins_text(const struct counting *counting, size_t place)
{
    return counting->token[place] == TEXTS_NONE;
}

/* Numbers the n-grams, those with what stands in front of a text first, and counts how often each occurs. */
static void number_ngrams(struct counting *counting, int n)
{
    size_t before = counting->places;

    counting->ngrams = 0;
    for (size_t i = 0; i < counting->places; i++) {
        size_t place = counting->sorted[i];

        counting->number[place] = UINT32_MAX;
        if (!is_whole(counting, place, n))
            continue;
        if (before == counting->places || memcmp(counting->token + before, counting->token + place, (size_t)n * sizeof(int32_t)) != 0)
            counting->count[counting->ngrams++] = 0;
        counting->number[place] = (uint32_t)(counting->ngrams - 1);
        counting->count[counting->ngrams - 1]++;
        before = place;
    }
}

/* How many different tokens stood in front of each, for how often it occurred: those n-grams of one token more that end with it. */
static void count_fronts(struct counting *counting)
{
    memset(counting->count, 0, counting->ngrams * sizeof *counting->count);
    for (size_t i = 0; i < counting->longer_ngrams; i++)
        counting->count[counting->number[counting->longer[i] + 1]]++;
}

static void keep_places(struct counting *counting)
{
    for (size_t place = 0; place < counting->places; place++)
        if (counting->number[place] != UINT32_MAX)
            counting->longer[counting->number[place]] = (uint32_t)place;
    counting->longer_ngrams = counting->ngrams;
}

/* D1, D2 and D3 of counts that are 1, 2, and more. Where too few n-grams say so, half of a count goes to shorter ones. */
static void find_discounts(const struct counting *counting, size_t first, double *discount)
{
    double of[DISCOUNTS + 2] = {0}, y;

    for (size_t g = first; g < counting->ngrams; g++)
        if (counting->count[g] <= DISCOUNTS + 1)
            of[counting->count[g]]++;
    y = of[1] > 0 ? of[1] / (of[1] + 2 * of[2]) : 0;
    for (int c = 1; c <= DISCOUNTS; c++) {
        double d = of[c] > 0 ? c - (c + 1) * y * of[c + 1] / of[c] : 0;

        discount[c - 1] = d > 0 && d < c ? d : 0.5 * c;
    }
}

static double discount_of(const double *discount, uint32_t count)
{
    return count == 0 ? 0 : discount[count < DISCOUNTS ? count - 1 : DISCOUNTS - 1];
}

/* The shares of the n-grams [first, last), which are those behind one context, and what is left. */
static float share_out(const struct counting *counting, size_t first, size_t last, const double *discount, float *share)
{
    double total = 0, left = 0;

    for (size_t g = first; g < last; g++)
        total += counting->count[g];
    for (size_t g = first; g < last; g++) {
        double less = discount_of(discount, counting->count[g]);

        left += less;
        share[g - first] = (float)((counting->count[g] - less) / total);
    }
    return (float)(left / total);
}

/* Where the n-grams begin that have no mark of a text's beginning in front: the others were numbered first. */
static size_t first_ngram(const struct counting *counting)
{
    size_t first = 0;

    for (size_t place = 0; place < counting->places; place++)
        if (begins_text(counting, place) && counting->number[place] != UINT32_MAX && counting->number[place] + (size_t)1 > first)
            first = counting->number[place] + (size_t)1;
    return first;
}

/* Writes the contexts of a level and the tokens that followed, unless it is NULL. Returns how many contexts there are. */
static size_t walk_level(const struct counting *counting, int n, size_t first, const struct ngram_level *level)
{
    size_t contexts = 0, next = first, before = counting->places, context = (size_t)n - 1;

    for (size_t i = 0; i < counting->places; i++) {
        size_t place = counting->sorted[i];

        if (counting->number[place] != next || next >= counting->ngrams)
            continue;
        if (before == counting->places || memcmp(counting->token + before, counting->token + place, context * sizeof(int32_t)) != 0) {
            if (level != NULL) {
                memcpy(level->context + contexts * context, counting->token + place, context * sizeof(int32_t));
                level->first[contexts] = (uint32_t)(next - first);
            }
            contexts++;
        }
        if (level != NULL)
            level->token[next - first] = counting->token[place + context];
        before = place;
        next++;
    }
    return contexts;
}

/* The numbers and counts of the n-grams of one order, after those of the longer ones. */
static void count_order(struct counting *counting, int n)
{
    number_ngrams(counting, n);
    if (n < counting->order)
        count_fronts(counting);
}

static void fill_level(const struct counting *counting, int n)
{
    size_t first = first_ngram(counting), contexts = counting->header.contexts[n - 2];
    const struct ngram_level *level = &counting->body.level[n - 2];
    double discount[DISCOUNTS];

    walk_level(counting, n, first, level);
    level->first[contexts] = (uint32_t)(counting->ngrams - first);
    find_discounts(counting, first, discount);
    for (size_t c = 0; c < contexts; c++)
        level->left[c] = share_out(counting, first + level->first[c], first + level->first[c + 1], discount, level->share + level->first[c]);
}

static void fill_alone(struct counting *counting)
{
    size_t first = first_ngram(counting), vocab = counting->header.vocab;
    float *share = (void *)counting->longer; /* of the tokens that there are, in order: nothing else needs that room any more */
    double discount[DISCOUNTS];
    float left;

    find_discounts(counting, first, discount);
    left = share_out(counting, first, counting->ngrams, discount, share);
    for (size_t token = 0; token < vocab; token++)
        counting->body.alone[token] = left / (float)vocab;
    for (size_t place = 0; place < counting->places; place++)
        if (!begins_text(counting, place)) /* each writes what any other place of the token does */
            counting->body.alone[counting->token[place]] = left / (float)vocab + share[counting->number[place] - first];
}

/* The sizes of all levels, then all levels. */
static enum status make_table(struct counting *counting)
{
    struct ngram_header *header = &counting->header;
    size_t bytes;

    for (int n = counting->order; n >= 2; n--) {
        number_ngrams(counting, n);
        size_t first = first_ngram(counting);

        header->contexts[n - 2] = walk_level(counting, n, first, NULL);
        header->followers[n - 2] = counting->ngrams - first;
    }
    bytes = ngram_table_bytes(header);
    counting->bytes = calloc(1, sizeof *header + bytes);
    if (counting->bytes == NULL) {
        log_error("no memory for an n-gram table of %zu bytes", sizeof *header + bytes);
        return STATUS_INTERNAL;
    }
    ngram_table_lay_out(header, counting->bytes + sizeof *header, &counting->body);
    for (int n = counting->order; n >= 1; n--) {
        count_order(counting, n);
        if (n >= 2)
            fill_level(counting, n);
        else
            fill_alone(counting);
        keep_places(counting);
    }
    header->digest = ngram_table_digest(header, counting->bytes + sizeof *header);
    memcpy(counting->bytes, header, sizeof *header);
    return STATUS_OK;
}

enum status ngram_count(const struct texts *texts, const struct ngram_terms *terms, void **bytes, size_t *size)
{
    struct counting counting = {.token = texts->token, .places = texts->count, .order = terms->order};
    enum status status = texts_check(texts, terms->vocab);
    uint32_t *room;

    if (status != STATUS_OK)
        return status;
    room = malloc(4 * texts->count * sizeof *room);
    if (room == NULL) {
        log_error("no memory to sort %zu tokens", texts->count);
        return STATUS_INTERNAL;
    }
    counting.sorted = room;
    counting.number = room + texts->count;
    counting.count = room + 2 * texts->count;
    counting.longer = room + 3 * texts->count;
    counting.header = (struct ngram_header){.version = NGRAM_VERSION,
                                            .order = (uint32_t)terms->order,
                                            .vocab = (uint32_t)terms->vocab,
                                            .tokenizer = terms->tokenizer,
                                            .tokens = texts->tokens};
    memcpy(counting.header.magic, NGRAM_MAGIC, sizeof counting.header.magic);
    for (size_t i = 0; i < texts->count; i++)
        counting.sorted[i] = (uint32_t)i;
    texts_sort(texts, counting.sorted, texts->count, terms->order);
    status = make_table(&counting);
    free(room);
    if (status == STATUS_OK) {
        *bytes = counting.bytes;
        *size = sizeof counting.header + ngram_table_bytes(&counting.header);
    }
    return status;
}
