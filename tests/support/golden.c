#include "tests/support/golden.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void golden_path(const char *name, char path[GOLDEN_PATH])
{
    assert_in_range(snprintf(path, GOLDEN_PATH, TANDEM_SOURCE_DIR "/%s", name), 1, GOLDEN_PATH - 1);
}

int golden_shared(const char *name, char path[GOLDEN_PATH])
{
    assert_in_range(snprintf(path, GOLDEN_PATH, TANDEM_SOURCE_DIR "/../shared/data/%s", name), 1, GOLDEN_PATH - 1);
    if (access(path, R_OK) == 0)
        return 1;
    print_message("skipped: %s is not here\n", path);
    return 0;
}

json_t *golden_json(const char *path)
{
    json_error_t error;
    json_t *value = json_load_file(path, 0, &error);

    if (value == NULL)
        fail_msg("%s:%d: %s", path, error.line, error.text);
    return value;
}

json_t *golden_lines(const char *path)
{
    json_t *lines = json_array(), *value;
    FILE *file = fopen(path, "r");
    json_error_t error;

    if (file == NULL || lines == NULL) {
        fail_msg("cannot read %s", path);
        return NULL;
    }
    while ((value = json_loadf(file, JSON_DISABLE_EOF_CHECK, &error)) != NULL)
        assert_int_equal(json_array_append_new(lines, value), 0);
    if (!feof(file))
        fail_msg("%s, value %zu: %s", path, json_array_size(lines), error.text);
    fclose(file);
    return lines;
}

int32_t *golden_ids(const json_t *array, int *count)
{
    size_t size = json_array_size(array);
    int32_t *ids = calloc(size + 1, sizeof *ids);

    assert_true(json_is_array(array) && ids != NULL);
    for (size_t i = 0; i < size; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    *count = (int)size;
    return ids;
}

double golden_number(const json_t *value)
{
    assert_true(json_is_number(value));
    return json_number_value(value);
}

char *golden_bytes(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes;
    long end;

    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < 0) {
        fail_msg("cannot read %s", path);
        return NULL;
    }
    rewind(file);
    bytes = malloc((size_t)end + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)end, file), end);
    fclose(file);
    bytes[end] = '\0';
    *size = (size_t)end;
    return bytes;
}

float *golden_floats(const char *path, size_t count)
{
    size_t size;
    float *floats = (float *)(void *)golden_bytes(path, &size);

    assert_int_equal(size, count * sizeof *floats);
    return floats;
}

double golden_difference(const float *a, const float *b, size_t count)
{
    double largest = 0;

    for (size_t i = 0; i < count; i++) {
        double difference = fabs((double)a[i] - (double)b[i]);

        if (!(difference <= largest))
            largest = isfinite(difference) ? difference : INFINITY;
    }
    return largest;
}

double golden_apart(const float *a, const float *b, size_t count)
{
    double difference = 0, size = 0;

    for (size_t i = 0; i < count; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / size);
}
