/* What the tests of groups share: the job's world and group, numbers to add whose sum shows its order, and how a rank says that something is
 * wrong. It ends the job then, because the others would wait for it. */
#ifndef TANDEM_TESTS_MPI_GROUP_RIG_H
#define TANDEM_TESTS_MPI_GROUP_RIG_H

#include "common/group/group.h"
#include <stdint.h>

enum { GROUP_RIG_RANKS = 8 }; /* at most */

extern struct world world;
extern struct group group;

void check(int good, const char *what, long at);
/* A number that looks random and follows from the three. */
uint32_t mixed(uint32_t a, uint32_t b, uint32_t c);
/* What `rank` gives as number i of operation `number`: of sizes so different that the order of a sum shows. */
float given(int rank, size_t i, int number);
/* What the group's sum of these must be, to the bit. */
float tree(size_t i, int number);

#endif
