#include "verifier/job/launch_ask.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How the value of an option is read: 2, or 2-4, of which the fewest are sure; 4, a100:4 or a100:2,h100:4; a list of any devices, where
 * gpu, gpu:4, gpu:a100 and gpu:a100:4 are those that count; 64G, which are MiB without a letter. */
enum form { NUMBER, DEVICES, GRES, MEMORY };

static const struct {
    const char *name;
    char letter;
    enum form form;
    size_t at;
} rows[] = {
#define AT(member) offsetof(struct launch_ask, member)
    {"nodes", 'N', NUMBER, AT(nodes)},
    {"ntasks", 'n', NUMBER, AT(tasks)},
    {"ntasks-per-node", 0, NUMBER, AT(tasks_per_node)},
    {"cpus-per-task", 'c', NUMBER, AT(cpus)},
    {"gpus", 'G', DEVICES, AT(devices)},
    {"gpus-per-node", 0, DEVICES, AT(node_devices)},
    {"gpus-per-task", 0, DEVICES, AT(task_devices)},
    {"gres", 0, GRES, AT(node_devices)},
    {"mem", 0, MEMORY, AT(node_memory)},
    {"mem-per-cpu", 0, MEMORY, AT(cpu_memory)},
    {"mem-per-gpu", 0, MEMORY, AT(device_memory)},
#undef AT
};

static int number_of(const char *text)
{
    long number = strtol(text, NULL, 10);

    return number < 0 ? 0 : number > INT_MAX / 2 ? INT_MAX / 2 : (int)number;
}

/* One entry of a list, maybe with the sockets it is for, "gpu:2(S:0-1)". What stands behind its last colon is a number, or names a type, of
 * which there is one. */
static int entry_count(char *entry)
{
    const char *colon, *count;

    entry[strcspn(entry, "(")] = '\0';
    colon = strrchr(entry, ':');
    count = colon != NULL ? colon + 1 : entry;
    return isdigit((unsigned char)*count) ? number_of(count) : 1;
}

static int is_gpu(const char *entry)
{
    entry += strncmp(entry, "gres/", 5) == 0 ? 5 : 0;
    return strncmp(entry, "gpu", 3) == 0 && (entry[3] == '\0' || entry[3] == ':' || entry[3] == '(');
}

static int count_devices(const char *text, enum form form)
{
    char list[256], *rest = list;
    int sum = 0;

    snprintf(list, sizeof list, "%s", text);
    for (char *entry = strsep(&rest, ","); entry != NULL; entry = strsep(&rest, ","))
        if (*entry != '\0' && (form == DEVICES || is_gpu(entry)))
            sum += entry_count(entry);
    return sum;
}

static int64_t bytes_of(const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    double size = strtod(text, &end);
    const char *unit = *end != '\0' ? strchr(units, toupper((unsigned char)*end)) : units + 1;

    if (end == text || !(size >= 0) || size > 1e9 || unit == NULL)
        return -1;
    return (int64_t)(size * (double)(INT64_C(1024) << 10 * (unit - units)));
}

static void take(struct launch_ask *ask, size_t row, const char *value)
{
    char *at = (char *)ask + rows[row].at;

    if (rows[row].form == MEMORY)
        *(int64_t *)(void *)at = bytes_of(value);
    else if (rows[row].form == NUMBER)
        *(int *)(void *)at = number_of(value);
    else
        *(int *)(void *)at = count_devices(value, rows[row].form);
}

/* The value of --name=value, --name value, -xvalue or -x value; NULL where the word is no such option, `next` where it is the word behind.
 */
static const char *value_of(size_t row, const char *word, const char *next)
{
    size_t length = strlen(rows[row].name);

    if (word[0] != '-')
        return NULL;
    if (rows[row].letter != 0 && word[1] == rows[row].letter)
        return word[2] != '\0' ? word + 2 : next;
    if (word[1] != '-' || strncmp(word + 2, rows[row].name, length) != 0)
        return NULL;
    return word[2 + length] == '=' ? word + 3 + length : word[2 + length] == '\0' ? next : NULL;
}

static void take_word(struct launch_ask *ask, const char *word, const char *next)
{
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        const char *value = value_of(row, word, next);

        if (value != NULL)
            take(ask, row, value);
    }
}

void launch_ask_read(struct launch_ask *ask, const char *text, int tasks, int cpus)
{
    char *words = strdup(text), *rest = words, *word = NULL;

    *ask = (struct launch_ask){.nodes = -1,
                               .tasks = tasks,
                               .tasks_per_node = -1,
                               .cpus = cpus > 0 ? cpus : 1,
                               .devices = -1,
                               .node_devices = -1,
                               .task_devices = -1,
                               .node_memory = -1,
                               .cpu_memory = -1,
                               .device_memory = -1};
    for (char *next = strsep(&rest, " \t"); words != NULL && next != NULL; next = strsep(&rest, " \t")) {
        if (*next == '\0')
            continue;
        if (word != NULL)
            take_word(ask, word, next);
        word = next;
    }
    if (word != NULL)
        take_word(ask, word, NULL);
    free(words);
}

/* -1 where SLURM chooses. */
static int nodes_of(const struct launch_ask *ask)
{
    if (ask->nodes > 0 || ask->tasks_per_node <= 0)
        return ask->nodes > 0 ? ask->nodes : -1;
    return (ask->tasks + ask->tasks_per_node - 1) / ask->tasks_per_node;
}

int launch_ask_devices(const struct launch_ask *ask)
{
    int nodes = nodes_of(ask);

    if (ask->devices > 0)
        return ask->devices;
    if (ask->task_devices > 0)
        return ask->task_devices * ask->tasks;
    if (ask->node_devices <= 0)
        return 0;
    return nodes > 0 ? nodes * ask->node_devices : -1;
}

int64_t launch_ask_memory(const struct launch_ask *ask)
{
    int nodes = nodes_of(ask), devices = launch_ask_devices(ask);

    if (ask->node_memory > 0)
        return nodes > 0 ? ask->node_memory * nodes : -1;
    if (ask->cpu_memory > 0)
        return ask->cpu_memory * ask->cpus * ask->tasks;
    return ask->device_memory > 0 && devices > 0 ? ask->device_memory * devices : -1;
}

int64_t launch_ask_task_memory(const struct launch_ask *ask)
{
    return ask->node_memory > 0 ? ask->node_memory : launch_ask_memory(ask);
}
