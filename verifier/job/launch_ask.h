/* What the words of sbatch ask SLURM for, as far as ranks depend on it: devices and memory of a group of nodes. Plain numbers; pure. The last of an
 * option counts, as it does for sbatch; what it does not know it leaves to sbatch and never refuses. */
#ifndef TANDEM_VERIFIER_JOB_LAUNCH_ASK_H
#define TANDEM_VERIFIER_JOB_LAUNCH_ASK_H

#include <stdint.h>

/* Of each: -1 where it is not asked for. Sizes are in bytes. */
struct launch_ask {
    int nodes;             /* --nodes, -N; of a range the fewest */
    int tasks;             /* those of the script, or --ntasks, -n */
    int tasks_per_node;    /* --ntasks-per-node */
    int cpus;              /* of a task: those of the script, or --cpus-per-task, -c; 1 where neither says so */
    int devices;           /* --gpus, -G: on all nodes together */
    int node_devices;      /* --gpus-per-node, --gres=gpu */
    int task_devices;      /* --gpus-per-task */
    int64_t node_memory;   /* --mem; 0: all that a node has */
    int64_t cpu_memory;    /* --mem-per-cpu */
    int64_t device_memory; /* --mem-per-gpu, of a node's own memory */
};

/* Reads words that white space separates, for a group of so many tasks, each of so many cpus (0: not said). */
void launch_ask_read(struct launch_ask *ask, const char *text, int tasks, int cpus);
/* Devices on all nodes together: 0 where none are asked for, -1 where that is not known (by --gpus-per-node without --nodes). */
int launch_ask_devices(const struct launch_ask *ask);
/* Bytes of memory on all nodes together, and for one task at most; -1 where that is not known. */
int64_t launch_ask_memory(const struct launch_ask *ask);
int64_t launch_ask_task_memory(const struct launch_ask *ask);

#endif
