/* The n-th call out of our code fails, for n = 1, 2, 3, ... until a run makes fewer calls: memory, files, mappings, threads. Each n is a
 * process of its own, forked from one that has everything ready, so that thousands take seconds.
 *
 * A run must end well or say why it did not: no crash, no hang, nothing kept that was taken; either a status that is not OK and exactly one
 * line with "error: " on stderr, or an OK status and the output of an undisturbed run.
 *
 * Memory: where no sanitizer is in the way, malloc and its kin are replaced for the whole process, so that what the libraries allocate
 * fails as well; under one only the calls of our own code are. Files: the calls of our own code (fail_calls.c). */
#ifndef TANDEM_TESTS_FAULT_FAIL_NTH_H
#define TANDEM_TESTS_FAULT_FAIL_NTH_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

/* Does the same thing every time: opens, uses and releases. The digest of what came of it goes to *output when it is OK. */
typedef enum status fail_run(uint64_t *output);

struct fail_scenario {
    const char *name;
    fail_run *run;
    /* Before and after it, where nothing fails; may be NULL. `collect` adds the digest of what lies in files, after a run that was OK. */
    void (*prepare)(void);
    uint64_t (*collect)(void);
};

/* Fails the calling cmocka test when some n breaks the promise. Every n up to `all`; from there on a spread of as many again, or, with
 * TANDEM_LONG=1, every one. */
void fail_nth(const struct fail_scenario *scenario, int all);

/* For fail_calls.c: counts a call that may fail; 1 when this is the one. */
int fail_now(const char *call);
/* Allocations and mappings that live. */
extern volatile long fail_live;

#endif
