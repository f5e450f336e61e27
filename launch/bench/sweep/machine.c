#include "launch/bench/sweep/machine.h"

#include "common/base/paths.h"
#include "common/file/json_text.h"
#include "common/model/config.h"
#include "common/model/model.h"
#include "common/options/options_paths.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The first line of a stream, without its end; "" when there is none. */
static void first_line(FILE *file, char *line, size_t size)
{
    line[0] = '\0';
    if (file != NULL && fgets(line, (int)size, file) != NULL)
        line[strcspn(line, "\n")] = '\0';
}

static void read_file(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");

    first_line(file, line, size);
    if (file != NULL)
        fclose(file);
}

static void read_processor(char *name, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];

    snprintf(name, size, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(name, size, "%.200s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (file != NULL)
        fclose(file);
}

/* Of the checkout that this program was built in, where git is there. */
static void read_version(char *version, size_t size)
{
    char folder[PATH_MAX], command[PATH_MAX + 100];
    FILE *git;

    version[0] = '\0';
    if (!paths_programs(folder) || strchr(folder, '\'') != NULL)
        return;
    snprintf(command, sizeof command, "git -C '%s' describe --always --dirty --abbrev=12 2>/dev/null </dev/null", folder);
    git = popen(command, "r");
    first_line(git, version, size);
    if (git != NULL)
        pclose(git);
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_text_string(text) : json_null();
}

json_t *machine_describe(void)
{
    char processor[256], version[128], driver[256], load[128];
    struct utsname system = {0};
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

    read_processor(processor, sizeof processor);
    read_version(version, sizeof version);
    read_file("/proc/driver/nvidia/version", driver, sizeof driver);
    read_file("/proc/loadavg", load, sizeof load);
    uname(&system);
    return json_pack("{s:o, s:i, s:f, s:o, s:o, s:o, s:o, s:o}", "processor", json_text_string(processor), "cores",
                     (int)sysconf(_SC_NPROCESSORS_ONLN), "memory_gb", memory / 1e9, "host", json_text_string(system.nodename), "kernel",
                     json_text_string(system.release), "load", text_or_null(load), "driver", text_or_null(driver), "git",
                     text_or_null(version));
}

enum { NAME = PATH_MAX + 64 };

/* A model's name in the report: one whose weights or cache are rounded is another model.  bits: 0, 4 or 8; name: [NAME] */
static void name_model(const char *model, int bits, int cache, char *name)
{
    snprintf(name, NAME, "%s%s%s", model,
             bits == 8   ? ", rounded to Q8_0"
             : bits == 4 ? ", rounded to Q4_0"
                         : "",
             cache == CACHE_BF16   ? ", cache in BF16"
             : cache == CACHE_E4M3 ? ", cache in FP8"
                                   : "");
}

/* way: of a draft; NULL: the target */
static json_t *describe_model(const char *path, const char *name, const struct options_draft *way, int context)
{
    struct config config;
    double hidden, heads, kv, layer, head, weights, operations;

    if (config_read(path, &config) != STATUS_OK)
        return json_null();
    config.layers = way != NULL ? options_draft_layers(way, config.layers) : config.layers;
    hidden = config.hidden;
    heads = (double)config.heads * config.head_dim;
    kv = (double)config.kv_heads * config.head_dim;
    layer = hidden * (2 * heads + 2 * kv) + 3 * hidden * config.ffn; /* q, k, v, out; gate, up, down */
    head = hidden * config.vocab;
    weights = config.layers * layer + head;
    operations = 2 * weights + config.layers * 4.0 * heads * context; /* q k and p v: two operations each */
    return json_pack("{s:o, s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:i}", "path", json_text_string(name), "architecture", config.family->architecture,
                     "layers", config.layers, "hidden", config.hidden, "ffn", config.ffn, "vocab", config.vocab, "parameters",
                     config.layers * (layer + 2 * hidden) + hidden + (config.tied ? 1 : 2) * head, "operations_per_token", operations,
                     "context", context);
}

json_t *machine_target(const struct options *run, int context)
{
    char path[PATH_MAX], name[NAME];

    options_target_path(run, path);
    name_model(path, options_bits(run, 0), run->model.cache, name);
    return describe_model(path, name, NULL, context);
}

json_t *machine_draft(const struct options *run, int context)
{
    const struct options_draft_kind *kind = options_draft_kind(&run->model.draft_way);
    char path[PATH_MAX], way[OPTIONS_DRAFT_TEXT], name[NAME];

    options_draft_path(run, path);
    options_draft_write(&run->model.draft_way, way);
    if (!options_draft_runs_model(&run->model.draft_way))
        return json_pack("{s:s, s:s, s:f, s:f}", "path", way, "architecture", kind->architecture, "parameters", 0.0, "operations_per_token", 0.0);
    name_model(kind->own_model ? path : way, run->model.draft_way.bits > 0 ? 0 : options_bits(run, 1), run->model.cache, name);
    return describe_model(path, name, &run->model.draft_way, context);
}
