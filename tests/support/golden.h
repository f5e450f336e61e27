/* Golden files: what other programs computed, as JSON and raw float32. What is missing or broken ends the test. */
#ifndef TANDEM_TESTS_SUPPORT_GOLDEN_H
#define TANDEM_TESTS_SUPPORT_GOLDEN_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_PATH = 1024 };

/* The path of `name` in the source folder. */
void golden_path(const char *name, char path[GOLDEN_PATH]);
/* The path of `name` in the data that is shared between checkouts; 0, with a printed line, where it is absent. */
int golden_shared(const char *name, char path[GOLDEN_PATH]);

/* The caller gives the values back with json_decref. */
json_t *golden_json(const char *path);
/* Every line of a JSON-lines file, as one array. */
json_t *golden_lines(const char *path);
/* The integers of an array, in memory of malloc; `*count` of them. */
int32_t *golden_ids(const json_t *array, int *count);
double golden_number(const json_t *value);
/* A file of exactly `count` float32, in memory of malloc. */
float *golden_floats(const char *path, size_t count);
/* All bytes of a file, in memory of malloc. */
char *golden_bytes(const char *path, size_t *size);

/* max |a - b|; infinity where either is not finite. */
double golden_difference(const float *a, const float *b, size_t count);
/* How far a is from b, in parts of b: the root of the mean square of a - b over that of b. */
double golden_apart(const float *a, const float *b, size_t count);

#endif
