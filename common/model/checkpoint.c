/* Opening goes file by file: map it, let the reader of its format add its tensors to the one table, and at the end sort the
 * table and ask each file once more for its size. After that nothing changes. */
#include "common/model/checkpoint.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/file/file_map.h"
#include "common/model/checkpoint_gguf.h"
#include "common/model/checkpoint_json.h"
#include "common/model/checkpoint_llama2c.h"
#include "common/model/checkpoint_quantised.h"
#include "common/model/checkpoint_table.h"
#include "common/model/checkpoint_unread.h"
#include "common/model/safetensors.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SHARDS_MAX = 1024, INDEX_BYTES_MAX = 64 << 20, SHARD_NAME_MAX = 255, PATH_BYTES = 4096 };

struct checkpoint {
    char *path;
    struct config config;
    struct file_map *files; /* [SHARDS_MAX] */
    int file_count;
    struct checkpoint_table table;
};

static enum status file_add(struct checkpoint *checkpoint, const char *path)
{
    if (checkpoint->file_count == SHARDS_MAX) {
        log_error("%s: one file too many, expected at most %d", path, SHARDS_MAX);
        return STATUS_DATA;
    }
    progress_made("opening the model's files");
    TRY(file_map_open(path, &checkpoint->files[checkpoint->file_count]));
    checkpoint->file_count++;
    return STATUS_OK;
}

/* A shard's name comes from the index: it may name a file of the folder and nothing else. */
static enum status shard_name_check(const char *index, const char *tensor, const json_t *shard, const char **name)
{
    const char *text = json_string_value(shard);

    if (!checkpoint_json_plain(tensor, CHECKPOINT_NAME_MAX)) {
        log_error("%s: a tensor's name is empty, longer than %d bytes or holds control characters", index, CHECKPOINT_NAME_MAX);
        return STATUS_DATA;
    }
    if (text != NULL && checkpoint_json_plain(text, SHARD_NAME_MAX) && strchr(text, '/') == NULL && strstr(text, "..") == NULL) {
        *name = text;
        return STATUS_OK;
    }
    if (text != NULL && checkpoint_json_plain(text, SHARD_NAME_MAX))
        log_error("%s: tensor %s is said to be in \"%s\", expected the name of a file in this folder", index, tensor, text);
    else
        log_error("%s: the shard of tensor %s must be the name of a file in this folder", index, tensor);
    return STATUS_DATA;
}

static int file_of(const struct checkpoint *checkpoint, const char *path)
{
    for (int i = checkpoint->file_count - 1; i >= 0; i--) /* neighbours in the index mostly share the newest */
        if (strcmp(checkpoint->files[i].path, path) == 0)
            return i;
    return -1;
}

static enum status shards_open(struct checkpoint *checkpoint, const char *index, json_t *map)
{
    const char *tensor, *name = NULL;
    char path[PATH_BYTES];
    json_t *shard;
    int there;

    json_object_foreach(map, tensor, shard)
    {
        TRY(shard_name_check(index, tensor, shard, &name));
        snprintf(path, sizeof path, "%s/%s", checkpoint->path, name);
        if (file_of(checkpoint, path) >= 0)
            continue;
        TRY(file_map_exists(path, &there));
        if (!there) {
            log_error("%s: tensor %s is in %s, which is missing", index, tensor, path);
            return STATUS_NOINPUT;
        }
        TRY(file_add(checkpoint, path));
        TRY(safetensors_read(&checkpoint->files[checkpoint->file_count - 1], &checkpoint->table));
    }
    return checkpoint_table_sort(&checkpoint->table);
}

static enum status index_check(const struct checkpoint *checkpoint, const char *index, json_t *map)
{
    const char *tensor;
    json_t *shard;

    json_object_foreach(map, tensor, shard)
    {
        const struct checkpoint_entry *entry = checkpoint_table_find(&checkpoint->table, tensor);
        const char *file = entry == NULL ? NULL : strrchr(entry->file, '/') + 1; /* shards_open joined it */

        if (file == NULL || strcmp(file, json_string_value(shard)) != 0) {
            log_error("%s: tensor %s is not in %s", index, tensor, json_string_value(shard));
            return STATUS_DATA;
        }
    }
    return STATUS_OK;
}

static enum status index_open(struct checkpoint *checkpoint, const char *index)
{
    json_t *root = NULL, *map;
    enum status status;

    TRY(checkpoint_json_read(index, INDEX_BYTES_MAX, &root));
    map = json_object_get(root, "weight_map");
    if (!json_is_object(map) || json_object_size(map) == 0 || json_object_size(map) > CHECKPOINT_TENSORS_MAX) {
        log_error("%s: key \"weight_map\" must be an object of 1 to %d tensors", index, CHECKPOINT_TENSORS_MAX);
        status = STATUS_DATA;
        goto release;
    }
    TRY_TO(shards_open(checkpoint, index, map), release);
    status = index_check(checkpoint, index, map);
release:
    json_decref(root);
    return status;
}

static enum status folder_open(struct checkpoint *checkpoint)
{
    char path[PATH_BYTES];
    int there;

    snprintf(path, sizeof path, "%s/model.safetensors", checkpoint->path);
    TRY(file_map_exists(path, &there));
    if (there) {
        TRY(file_add(checkpoint, path));
        TRY(safetensors_read(&checkpoint->files[0], &checkpoint->table));
        return checkpoint_table_sort(&checkpoint->table);
    }
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", checkpoint->path);
    TRY(file_map_exists(path, &there));
    if (there)
        return index_open(checkpoint, path);
    log_error("%s has no weights: expected model.safetensors or model.safetensors.index.json", checkpoint->path);
    return STATUS_DATA;
}

static enum status path_open(struct checkpoint *checkpoint, const struct config *config)
{
    char gguf[PATH_BYTES];
    struct stat entry;

    if (stat(checkpoint->path, &entry) != 0) {
        log_error("%s: no such file or folder", checkpoint->path);
        return STATUS_NOINPUT;
    }
    if (paths_gguf(checkpoint->path, gguf, sizeof gguf) == 1) {
        TRY(file_add(checkpoint, gguf));
        TRY(checkpoint_gguf_read(&checkpoint->files[0], config, &checkpoint->table));
        TRY(checkpoint_table_sort(&checkpoint->table));
    } else if (S_ISDIR(entry.st_mode)) {
        TRY(folder_open(checkpoint));
    } else {
        TRY(file_add(checkpoint, checkpoint->path));
        TRY(checkpoint_llama2c_read(&checkpoint->files[0], config, &checkpoint->table));
        TRY(checkpoint_table_sort(&checkpoint->table));
    }
    for (int i = 0; i < checkpoint->file_count; i++)
        TRY(file_map_recheck(&checkpoint->files[i]));
    return STATUS_OK;
}

enum status checkpoint_open(const char *path, const struct config *config, struct checkpoint **checkpoint)
{
    struct checkpoint *opened = calloc(1, sizeof *opened);
    enum status status = STATUS_INTERNAL;

    if (opened == NULL)
        goto no_memory;
    opened->config = *config;
    opened->path = strdup(path);
    opened->files = calloc(SHARDS_MAX, sizeof *opened->files);
    if (opened->path == NULL || opened->files == NULL)
        goto no_memory;
    TRY_TO(path_open(opened, config), close_checkpoint);
    *checkpoint = opened;
    return STATUS_OK;

no_memory:
    log_error("%s: no memory to open it", path);
close_checkpoint:
    checkpoint_close(opened);
    return status;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    for (int i = 0; i < checkpoint->file_count; i++)
        file_map_close(&checkpoint->files[i]);
    checkpoint_table_release(&checkpoint->table);
    free(checkpoint->files);
    free(checkpoint->path);
    free(checkpoint);
}

/* A tied model's classifier is its embedding, whatever else the file may hold under the classifier's name. */
static const struct checkpoint_entry *entry_of(const struct checkpoint *checkpoint, const char *name)
{
    if (checkpoint->config.tied && strcmp(name, checkpoint->config.family->names->part[FAMILY_HEAD].name) == 0)
        return NULL;
    return checkpoint_table_find(&checkpoint->table, name);
}

static enum status shape_refuse(const struct checkpoint_entry *entry, int64_t rows, int64_t columns)
{
    char found[256] = "", expected[64];
    int used = 0;

    for (int i = 0; i < entry->dims; i++)
        used += snprintf(found + used, sizeof found - (size_t)used, i == 0 ? "%lld" : ", %lld", (long long)entry->shape[i]);
    snprintf(expected, sizeof expected, columns == 1 ? "%lld" : "%lld, %lld", (long long)rows, (long long)columns);
    log_error("%s: tensor %s has shape [%s], expected [%s]", entry->file, entry->name, found, expected);
    return STATUS_DATA;
}

enum status checkpoint_find(const struct checkpoint *checkpoint, const char *name, int64_t rows, int64_t columns, struct tensor *tensor)
{
    const struct checkpoint_entry *entry = entry_of(checkpoint, name);
    enum dtype dtype = DTYPE_F32;
    int found;

    TRY(checkpoint_quantised_find(&checkpoint->table, &checkpoint->config.quantisation, name, rows, columns, tensor, &found));
    if (found)
        return STATUS_OK;
    if (entry == NULL) {
        log_error("%s: tensor %s is missing", checkpoint->path, name);
        return STATUS_DATA;
    }
    if (!checkpoint_table_dtype(entry, &dtype)) {
        log_error("%s: tensor %s is %s, expected F32, F16 or BF16%s", entry->file, entry->name, entry->dtype,
                  entry->has_blocks && entry->dims == 2 ? ", or Q8_0, Q5_0, Q5_1, Q4_0, Q4_1, or Q2_K to Q6_K" : "");
        return STATUS_DATA;
    }
    if (!(entry->dims == 2 && entry->shape[0] == rows && entry->shape[1] == columns) &&
        !(entry->dims == 1 && entry->shape[0] == rows && columns == 1))
        return shape_refuse(entry, rows, columns);
    *tensor = (struct tensor){.data = entry->data, .dtype = dtype, .rows = rows, .columns = columns};
    return STATUS_OK;
}

int checkpoint_has(const struct checkpoint *checkpoint, const char *name)
{
    return entry_of(checkpoint, name) != NULL;
}

void checkpoint_warn_unread(const struct checkpoint *checkpoint)
{
    const struct config *config = &checkpoint->config;
    int count;
    const struct checkpoint_entry *unread = checkpoint_unread_first(&checkpoint->table, config, &count);
    char others[32] = "";

    if (unread == NULL)
        return;
    if (count > 1)
        snprintf(others, sizeof others, " (and %d more)", count - 1);
    log_file_warning(
        "%s: tensor %s%s is left out: %s of %d layer%s has none of that name, and if the config's %s is not the model's, what it says is wrong",
        unread->file, unread->name, others, config->family->architecture, config->layers, config->layers == 1 ? "" : "s",
        checkpoint_unread_key(unread, config));
}

const char *checkpoint_path(const struct checkpoint *checkpoint)
{
    return checkpoint->path;
}

int checkpoint_files(const struct checkpoint *checkpoint)
{
    return checkpoint->file_count;
}

int checkpoint_file_of(const struct checkpoint *checkpoint, const void *data)
{
    for (int i = 0; i < checkpoint->file_count; i++) {
        const unsigned char *bytes = checkpoint->files[i].bytes;

        if ((const unsigned char *)data >= bytes && (const unsigned char *)data < bytes + checkpoint->files[i].size)
            return i;
    }
    return 0;
}

const void *checkpoint_row(const struct tensor *tensor, int64_t row)
{
    return (const unsigned char *)tensor->data + (size_t)row * dtype_row_bytes(tensor->dtype, (size_t)tensor->columns);
}
