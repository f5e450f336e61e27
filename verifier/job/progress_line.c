#include "verifier/job/progress_line.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#define CLEAR "\r\033[K"
#define FIRST_NS ((int64_t)1000000000)
#define REDRAW_NS ((int64_t)100 * 1000000)
#define LINE_NS ((int64_t)5 * 1000000000)
#define GUESS_S    10.0 /* what is left is guessed when so many seconds */
#define GUESS_PART 0.01 /* and so much of the work are over */

void progress_line_begin(struct progress_line *line, int at_once)
{
    line->stands = 0;
    line->said_ns = clock_ns() - (at_once && line->redrawn ? FIRST_NS : 0);
}

int progress_line_is_due(const struct progress_line *line)
{
    int64_t pause = !line->redrawn ? LINE_NS : line->stands ? REDRAW_NS : FIRST_NS;

    return line->to != NULL && clock_ns() - line->said_ns >= pause;
}

void progress_line_tell(struct progress_line *line, void (*write)(const void *state, FILE *to), const void *state)
{
    line->said_ns = clock_ns();
    line->stands = line->redrawn;
    log_clear_lines(line->redrawn && line->clears_errors);
    fputs(line->redrawn ? CLEAR : "", line->to);
    write(state, line->to);
    fputs(line->redrawn ? "" : "\n", line->to);
    fflush(line->to);
}

double progress_line_left(double seconds, double done, double all)
{
    return seconds >= GUESS_S && done > 0 && done >= GUESS_PART * all ? seconds * (all - done) / done : -1;
}

void progress_line_clear(struct progress_line *line)
{
    if (!line->stands)
        return;
    line->stands = 0;
    fputs(CLEAR, line->to);
    fflush(line->to);
    log_clear_lines(0);
}
