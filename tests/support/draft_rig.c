#include "tests/support/draft_rig.h"

#include "common/base/digest.h"
#include "tests/support/corpus_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PROMPT = 7, LONG_PROMPT = 75 /* more than a mask has bits */, VOCAB = 128, TEXT = 200000 /* nearly any two tokens follow each other there */ };

static int support_of(const struct draft_rig *rig)
{
    return rig->support > 0 ? rig->support : DRAFT_RIG_SUPPORT;
}

static void open_texts(struct draft_rig *rig, const char *made_by)
{
    const struct draft_parts parts = {.slots = rig->slots, .support = support_of(rig), .runs_ahead = rig->runs_ahead};
    char path[CORPUS_FILE_PATH];

    corpus_file_make(made_by, 4, VOCAB, TEXT, path);
    assert_int_equal(corpus_rows_open(path, made_by, &rig->found), STATUS_OK);
    unlink(path);
    assert_int_equal(draft_open_found(&rig->draft, &rig->found, &parts), STATUS_OK);
}

void draft_rig_open(struct draft_rig *rig, const char *model, const struct backend *backend, int threads, int slots,
                    struct sampling (*sampling_of)(int slot))
{
    const struct model_options options = {.threads = threads, .max_rows = DRAFT_RIG_CONTEXT, .backend = backend, .drafts = 1};
    int32_t prompt[LONG_PROMPT];

    rig->slots = slots;
    group_open_self(&rig->self);
    if (strchr(model, '/') == NULL) {
        open_texts(rig, model);
    } else {
        assert_int_equal(model_open(model, &rig->self, &options, &rig->model), STATUS_OK);
        assert_int_equal(draft_open_model(&rig->draft, rig->model, slots, support_of(rig), rig->runs_ahead), STATUS_OK);
    }
    assert_int_equal(arena_open(&rig->arena, (size_t)slots * mirror_bytes(DRAFT_RIG_CONTEXT), "the mirrors"), STATUS_OK);
    for (int s = 0; s < slots; s++) {
        int count = s == slots - 1 ? LONG_PROMPT : PROMPT;

        for (int i = 0; i < count; i++)
            prompt[i] = (13 * i + 29 * s + 5) % 128;
        const struct open_message open = {.request = 3 + (uint32_t)s,
                                          .line = 3 + (uint32_t)s,
                                          .prompt_count = (uint32_t)count,
                                          .tokens = prompt,
                                          .count = count,
                                          .sampling = sampling_of(s),
                                          .draft_length = 1 + (uint32_t)s};

        mirror_init(&rig->mirror[s], &rig->arena, s, DRAFT_RIG_CONTEXT);
        assert_true(mirror_open(&rig->mirror[s], &open));
        rig->batch[s] = &rig->mirror[s];
    }
}

void draft_rig_close(struct draft_rig *rig)
{
    arena_close(&rig->arena);
    draft_close(&rig->draft);
    model_close(rig->model);
    corpus_rows_close(&rig->found);
    group_close(&rig->self);
}

void draft_rig_propose(struct draft_rig *rig)
{
    struct draft_output *outputs[rig->slots];

    for (int s = 0; s < rig->slots; s++)
        outputs[s] = &rig->output[s];
    assert_int_equal(rig->draft.kind->propose(rig->draft.state, rig->batch, rig->slots, outputs), STATUS_OK);
}

void draft_rig_commit(struct draft_rig *rig, int slot, int accepted, int32_t token, int wanted)
{
    struct mirror *mirror = &rig->mirror[slot];
    int32_t tokens[MESSAGE_MAX_COMMIT];
    struct mirror_move move;

    memcpy(tokens, rig->output[slot].token, (size_t)accepted * sizeof *tokens);
    tokens[accepted] = token;
    const struct commit commit = {.request = mirror->request,
                                  .old_length = (uint32_t)mirror->length,
                                  .accepted = (uint32_t)accepted,
                                  .tokens = tokens,
                                  .count = accepted + 1,
                                  .keep = (uint32_t)(mirror->length + accepted),
                                  .digest = digest_tokens(mirror->digest, tokens, (uint32_t)accepted + 1),
                                  .draft_length = (uint32_t)wanted};

    assert_true(mirror_commit(mirror, &commit, &move));
}
