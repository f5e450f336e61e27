#include "verifier/job/measuring.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#define CLEAR "\r\033[K"
#define FIRST_NS ((int64_t)1000000000)
#define REDRAW_NS ((int64_t)200 * 1000000)
#define LINE_NS ((int64_t)5 * 1000000000)

static void draw(struct measuring *measuring)
{
    int64_t now = clock_ns();

    if (measuring->to == NULL || now - measuring->said_ns < (!measuring->bar ? LINE_NS : measuring->stands ? REDRAW_NS : FIRST_NS))
        return;
    measuring->said_ns = now;
    measuring->stands = measuring->bar;
    log_clear_lines(measuring->bar && measuring->clears_errors);
    fprintf(measuring->to, "%smeasuring %s: ", measuring->bar ? CLEAR : "", measuring->what);
    if (measuring->read < measuring->reads)
        fprintf(measuring->to, "%lld of %lld prompt tokens read, ", (long long)measuring->read, (long long)measuring->reads);
    fprintf(measuring->to, "%lld of at most %lld tokens%s", (long long)measuring->tokens, (long long)measuring->most, measuring->bar ? "" : "\n");
    fflush(measuring->to);
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
    measuring->what = what;
    measuring->read = measuring->reads = measuring->tokens = measuring->most = 0;
    for (int i = 0; i < requests->count; i++) {
        const struct request *request = &requests->request[i];

        measuring->reads += request->error == NULL && request->max_tokens > 0 ? request->prompt_count : 0;
        measuring->most += request->error == NULL ? request->max_tokens : 0;
    }
    measuring->said_ns = clock_ns();
    measuring->watch = (struct lead_watch){.state = measuring, .read = see_read, .turn = see_turn};
}

void measuring_end(struct measuring *measuring)
{
    if (measuring->stands) {
        fputs(CLEAR, measuring->to);
        fflush(measuring->to);
        log_clear_lines(0);
    }
    measuring->stands = 0;
}
