/* The cores that this process was given by whoever started it. It owns the set, which is looked at once: later a thread may be bound to a part of the
 * cores (common/backend/cpu/nodes.h), and what it starts would take that part for the whole. So the first call comes before that, while one thread
 * runs. It binds nothing itself. And it knows whether other programs keep these cores busy. */
#ifndef TANDEM_COMMON_BASE_CORES_H
#define TANDEM_COMMON_BASE_CORES_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>

/* Those of the caller's thread at the first call; NULL where the system did not say. */
const cpu_set_t *cores_own(void);
/* How many they are; all of this host where the system did not say. */
int cores_count_own(void);
/* Threads for one of `ranks` that share this host's cores, or `asked` where that is above 0; at least 1 and no more than there are of its own. */
int cores_share(int asked, int ranks);
/* Before threads start that are to have them. Asks Linux for short turns: then this process, when it wakes or yields, waits microseconds for
 * programs that never sleep, and not milliseconds. Its share of the cores is the same. Kernels before 6.12 have one length of turn for all. */
void cores_take_short_turns(void);
/* How long a turn of the caller's thread is; 0 where the kernel does not tell, or gives it none by its policy. */
int64_t cores_turn_ns(void);
/* Any thread, from here on. Lets others run: for microseconds, or for a whole turn of a program that never sleeps. */
void cores_yield(void);
/* Has a yield of this process come back late within the last fifth of a second? Then who waits had better sleep until it is woken: Linux takes the
 * rest of its turn from who yields, so that beside such programs each yield costs milliseconds, while a sleeper soon has its core when it wakes. */
int cores_are_taken(int64_t now);
/* How many programs ran on this host in the last minute, on average: before what is measured begins, it has no part in them. -1: not known. */
double cores_load(void);
/* A line for who reads speeds that were measured after such a load; nothing where it is no more than the host has cores, and all speeds are ours. */
void cores_put_busy(double load, FILE *to);

#endif
