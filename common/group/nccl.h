/* The group over NCCL from inside: what its files share. nccl_open.c makes it, nccl.c is the kind, nccl_one_shot.c is about
 * sums without NCCL, nccl_call.c is how a call is made: never
 * for longer than is said, never without looking whether another rank has failed, and with an error that says who, where and what to do.
 *
 * Until it is made the communicator does not block: a call answers "in progress", and is asked again until it is done. Sums go by its child, which
 * blocks (nccl_open.c says why): its calls ask the device and return. A rank on which a call fails aborts
 * its communicator, which stops what runs on the device, and raises the alarm: a message of no bytes to the others, that nobody receives
 * but everybody looks for while waiting. Whoever sees it aborts, too. So no rank is left waiting in a collective that cannot end. */
#ifndef TANDEM_COMMON_GROUP_NCCL_H
#define TANDEM_COMMON_GROUP_NCCL_H

#include "common/group/group.h"
#include "common/group/nccl_library.h"
#include <stdint.h>

struct nccl {
    struct world *world;
    struct group host; /* carries bytes; owned */
    const struct backend *backend;
    struct backend_context *context;
    const struct backend_device *device;
    struct nccl_library library;
    struct nccl_comm *comm; /* NULL before it is made and after it was aborted */
    struct nccl_comm *child; /* being split off: NCCL may write here until it is, or both are aborted */
    MPI_Comm alarm;
    int alarmed;         /* another rank has failed */
    int64_t deadline_ns; /* of the calls now made; 0: the watchdog's alone */
    const char *doing;   /* what the watchdog is told as long as there is a deadline */
    /* Memory of the group: what is summed, and for more than two ranks everybody's of it. */
    char *memory;
    struct nccl_window *window; /* over the memory, or NULL */
    struct arena arena;         /* holds it where NCCL does not */
    size_t lent;                /* bytes of it that group_buffer gives */
    size_t most;                /* floats of a sum at once */
    size_t part;                /* of those that all ranks' are gathered of; more are summed in slices */
    float *gathered;            /* [size][part], or [size] slices of `most` */
    int one_host;               /* all ranks are on one */
    int one_shot;               /* the backend's one-shot sum is open */
    size_t alone;               /* most numbers that it sums; more go over NCCL */
    struct wait_usual step;     /* how long waits for the device are */
    char who[256];              /* this rank and its device, for errors */
    char words[192];            /* for --verbose */
};

extern const struct group_kind nccl_kind;

/* Collective over the group. Opens the backend's one-shot sum where it is wanted and can be, and finds what it is good for. STATUS_USAGE where it is
 * asked for by name and cannot be. */
enum status nccl_one_shot_open(struct nccl *nccl, enum group_sums sums);
/* Collective over GROUP. x: [count] = the sum, by NCCL; at most nccl->most */
enum status nccl_sum_once(struct nccl *nccl, float *x, size_t count);

/* What became of a call that answered `result`: waits while it is in progress. On failure logs `call`, raises the alarm and aborts;
 * STATUS_IO, STATUS_WATCHDOG after the deadline, STATUS_ELSEWHERE when another rank raised it. */
enum status nccl_done(struct nccl *nccl, const char *call, int result);
/* Local. Calls from here on are done within so many seconds, and the watchdog hears what is going on; 0: no deadline but the watchdog's. */
void nccl_patience(struct nccl *nccl, double seconds, const char *doing);
/* Local. Whether another rank has failed. */
int nccl_is_alarmed(struct nccl *nccl);
/* Local. Stops what is under way. */
void nccl_abort(struct nccl *nccl);
/* Local. Ends the communicator, in order where that is possible, and gives back everything but the host's group. */
void nccl_release(struct nccl *nccl);

#endif
