/* Was each token of a greedy output the target's choice? Feeds prompts and outputs to the target on the CPU and compares each token's logit
 * with the largest: 0 where it is that one, else how near it came. teacher MODEL BOUND: on stdin a line for each prompt, its tokens, a
 * colon, the output's. Exit code 1 when one is farther than the bound. */
#include "tests/support/model_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = BACKEND_MAX_ROWS };

struct verdict {
    int tokens;
    int near; /* not the largest */
    float farthest;
};

/* Returns how many; *prompt are before the colon. */
static int read_tokens(char *line, int32_t *tokens, int *prompt)
{
    int count = 0;

    *prompt = 0;
    for (char *word = strtok(line, " \n"); word != NULL && count < MOST; word = strtok(NULL, " \n"))
        if (strcmp(word, ":") == 0)
            *prompt = count;
        else
            tokens[count++] = (int32_t)strtol(word, NULL, 10);
    return count;
}

static void judge(struct model_rig *rig, const int32_t *tokens, int prompt, int count, struct verdict *verdict)
{
    int vocab = rig->model->vocab_count;
    float *logits = malloc((size_t)(count * vocab) * sizeof *logits);

    assert_non_null(logits);
    model_rig_feed(rig, 0, tokens, count, count, logits);
    for (int i = prompt; i < count; i++) {
        const float *row = logits + (size_t)(i - 1) * (size_t)vocab;
        float gap = row[model_rig_argmax(row, vocab, NULL)] - row[tokens[i]];

        verdict->tokens++;
        verdict->near += gap > 0;
        verdict->farthest = gap > verdict->farthest ? gap : verdict->farthest;
    }
    free(logits);
}

int main(int argc, char **argv)
{
    struct verdict verdict = {0};
    struct model_rig rig;
    char line[4096];

    if (argc != 3)
        return 64;
    model_rig_open(&rig, argv[1], NULL, 1, NULL);
    while (fgets(line, sizeof line, stdin) != NULL) {
        int32_t tokens[MOST];
        int prompt, count = read_tokens(line, tokens, &prompt);

        judge(&rig, tokens, prompt, count, &verdict);
    }
    model_rig_close(&rig);
    printf("%d tokens: %d are not the CPU's largest, the farthest of them %.4f below it (at most %s)\n", verdict.tokens, verdict.near,
           (double)verdict.farthest, argv[2]);
    return verdict.tokens == 0 || (double)verdict.farthest > atof(argv[2]);
}
