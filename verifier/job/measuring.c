#include "verifier/job/measuring.h"

#include "verifier/request/request_work.h"

static void write_words(const void *state, FILE *to)
{
    const struct measuring *measuring = state;

    fprintf(to, "measuring %s: ", measuring->what);
    if (measuring->read < measuring->reads)
        fprintf(to, "%lld of %lld prompt tokens read, ", (long long)measuring->read, (long long)measuring->reads);
    fprintf(to, "%lld of at most %lld tokens", (long long)measuring->tokens, (long long)measuring->most);
}

static void draw(struct measuring *measuring)
{
    if (progress_line_is_due(&measuring->line))
        progress_line_tell(&measuring->line, write_words, measuring);
}

static void see_read(void *state, int tokens)
{
    struct measuring *measuring = state;

    measuring->read += tokens;
    draw(measuring);
}

static void see_turn(void *state, const struct figures *figures)
{
    struct measuring *measuring = state;

    measuring->tokens = figures->tokens;
    draw(measuring);
}

void measuring_begin(struct measuring *measuring, const char *what, const struct request_list *requests)
{
    struct request_work work = request_work_of_all(requests);

    measuring->what = what;
    measuring->read = measuring->tokens = 0;
    measuring->reads = work.reads;
    measuring->most = work.most;
    progress_line_begin(&measuring->line, 0);
    measuring->watch = (struct lead_watch){.state = measuring, .read = see_read, .turn = see_turn};
}

void measuring_end(struct measuring *measuring)
{
    progress_line_clear(&measuring->line);
}
