#include "common/backend/cpu/nodes.h"

#include "common/base/cores.h"
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <pthread.h>
#include <stdlib.h>

enum { UNEVEN_THREADS = 4 }; /* threads of a node from which on one more or less makes little difference */

static hwloc_topology_t load(const cpu_set_t *own)
{
    hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology) != 0) {
        hwloc_bitmap_free(cores);
        return NULL;
    }
    if (cores == NULL || hwloc_topology_load(topology) != 0 ||
        hwloc_cpuset_from_glibc_sched_affinity(topology, cores, own, sizeof *own) != 0 ||
        hwloc_topology_restrict(topology, cores, 0) != 0) {
        hwloc_topology_destroy(topology);
        topology = NULL;
    }
    hwloc_bitmap_free(cores);
    return topology;
}

/* A node without cores is memory that other nodes' cores use, such as HBM or CXL. */
static int has_own_cores(hwloc_obj_t node, const hwloc_obj_t *before, int count, hwloc_topology_t topology)
{
    if (hwloc_bitmap_iszero(node->cpuset))
        return 0;
    for (int i = 0; i < count; i++)
        if (hwloc_bitmap_isequal(node->cpuset, before[i]->cpuset))
            return 0;
    for (hwloc_obj_t other = NULL; (other = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, other)) != NULL;)
        if (!hwloc_bitmap_iszero(other->cpuset) && !hwloc_bitmap_isequal(other->cpuset, node->cpuset) &&
            hwloc_bitmap_isincluded(other->cpuset, node->cpuset))
            return 0;
    return 1;
}

void nodes_find(const cpu_set_t *own, struct nodes *nodes)
{
    hwloc_topology_t topology = load(own);
    hwloc_obj_t node[NODES_MOST], next = NULL;
    int count = 0;

    *nodes = (struct nodes){.count = 1};
    if (topology == NULL)
        return;
    while (count < NODES_MOST && (next = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, next)) != NULL)
        if (has_own_cores(next, node, count, topology)) {
            hwloc_cpuset_to_glibc_sched_affinity(topology, next->cpuset, &nodes->cores[count], sizeof nodes->cores[count]);
            node[count++] = next;
        }
    nodes->count = count > 1 ? count : 1;
    hwloc_topology_destroy(topology);
}

static int is_even(int threads, int nodes)
{
    return threads % nodes == 0 || threads >= UNEVEN_THREADS * nodes;
}

int nodes_places(const struct nodes *nodes, int threads, cpu_set_t *place)
{
    int64_t cores = 0;

    if (nodes->count == 1 || !is_even(threads, nodes->count))
        return 1;
    for (int i = 0; i < nodes->count; i++)
        cores += CPU_COUNT(&nodes->cores[i]);
    for (int t = 0; t < threads; t++) {
        int64_t core = (2 * t + 1) * cores / (2 * threads);
        int i = 0;

        while (i < nodes->count - 1 && core >= CPU_COUNT(&nodes->cores[i]))
            core -= CPU_COUNT(&nodes->cores[i++]);
        place[t] = nodes->cores[i];
    }
    return nodes->count;
}

static struct nodes own_nodes;

/* Read once, as it takes milliseconds. */
static void look_at_own(void)
{
    const cpu_set_t *own = cores_own();

    own_nodes.count = 1;
    if (own != NULL)
        nodes_find(own, &own_nodes);
}

static void settle_part(void *argument, int thread)
{
    const cpu_set_t *place = argument;

    sched_setaffinity(0, sizeof place[thread], &place[thread]); /* may be refused: then threads run unbound */
}

int nodes_settle(struct pool *pool)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    cpu_set_t *place = calloc((size_t)pool_threads(pool), sizeof *place);
    int nodes = 1;

    pthread_once(&once, look_at_own);
    if (place != NULL)
        nodes = nodes_places(&own_nodes, pool_threads(pool), place);
    if (nodes > 1)
        pool_run(pool, settle_part, place);
    free(place);
    return nodes;
}
