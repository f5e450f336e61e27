/* Frames that a hostile peer may send: random bytes, damaged copies of what it has seen on the wire, and well-formed messages that lie. */
#ifndef TANDEM_TESTS_SIMULATION_HOSTILE_H
#define TANDEM_TESTS_SIMULATION_HOSTILE_H

#include "tests/simulation/plan.h"

enum { HOSTILE_SEEN = 16, HOSTILE_BYTES = 2048 };

struct hostile {
    struct message_space *space;
    int seen;
    size_t length[HOSTILE_SEEN]; /* of the last frames on the wire; longer ones are cut */
    unsigned char bytes[HOSTILE_SEEN][HOSTILE_BYTES];
    unsigned char made[HOSTILE_BYTES];
};

void hostile_open(struct hostile *hostile);
void hostile_close(struct hostile *hostile);
void hostile_see(struct hostile *hostile, struct frame frame);
/* The frame lives until the next call. vocab: ids that lies stay below */
struct frame hostile_make(struct hostile *hostile, struct dice *dice, uint64_t run, int vocab);

#endif
