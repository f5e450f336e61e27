/* What a measurement is asked for on its command line: a mode, a shape, and NAME=VALUE words. Plain data that points into argv; for main alone. */
#ifndef TANDEM_LAUNCH_DEV_GPU_SETTINGS_H
#define TANDEM_LAUNCH_DEV_GPU_SETTINGS_H

#include "launch/dev/gpu/seeded.h"

enum { SETTINGS_CONTEXTS = 8 };

struct settings {
    const char *mode;
    const struct seeded_shape *shape;
    const char *backend;
    int contexts, context[SETTINGS_CONTEXTS]; /* rising */
    int repetitions;
    int tokens; /* to decode */
    int first;  /* layers of the draft */
    int length; /* of a draft, 1 .. BACKEND_MAX_ROWS - 1 */
    float further;
    int threads;
    int turns; /* wait for a line of stdin before each measurement, and go on until its end */
};

/* STATUS_USAGE, with a line that names what is wrong. */
enum status settings_read(int count, char **words, struct settings *settings);
/* With turns: waits for a line; 0 when there is none. Without: 1 the first time. */
int settings_next_turn(const struct settings *settings, int turn);

#endif
