/* A main for a libFuzzer entry where there is no libFuzzer: `smoke_NAME CORPUS` replays every file of the corpus. With TANDEM_LONG=1 in the
 * environment MANY seeded inputs follow, half of them random bytes, half files of the corpus that were changed in a few places: what a first
 * minute of fuzzing would find, and tests/fuzz/run with more inputs wherever there is clang. The entries themselves judge. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 4096, CHANGES = 8, FILES = 512, MANY = 20000 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct sample {
    uint8_t bytes[LONGEST];
    size_t size;
} *samples; /* [sample_count] */
static int sample_count;

static uint64_t next(uint64_t *state) /* splitmix64 */
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static size_t below(uint64_t *state, size_t bound)
{
    return (size_t)(next(state) % bound);
}

/* 0 when a file cannot be read or is too long to belong here. */
static int read_sample(const char *folder, const char *name, struct sample *sample)
{
    char path[4096];
    FILE *file;
    int whole;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (file == NULL)
        return 0;
    sample->size = fread(sample->bytes, 1, LONGEST, file);
    whole = fgetc(file) == EOF && !ferror(file);
    fclose(file);
    return whole;
}

static int read_corpus(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort); /* in one order, so that a seed means one input */

    samples = malloc(FILES * sizeof *samples);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            if (samples == NULL || sample_count == FILES || !read_sample(folder, entries[i]->d_name, &samples[sample_count]))
                return 0;
            sample_count++;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return sample_count > 0;
}

static size_t make_random(uint64_t *state, uint8_t *bytes)
{
    size_t size = below(state, (size_t)1 << below(state, 13));

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)next(state);
    return size;
}

static size_t make_changed(uint64_t *state, uint8_t *bytes)
{
    const struct sample *sample = &samples[below(state, (size_t)sample_count)];
    size_t size = sample->size;

    memcpy(bytes, sample->bytes, size);
    for (size_t i = below(state, CHANGES); i > 0 && size > 0; i--) {
        size_t at = below(state, size);

        switch (below(state, 4)) {
        case 0:
            bytes[at] ^= (uint8_t)(1 << below(state, 8));
            break;
        case 1:
            bytes[at] = (uint8_t)next(state);
            break;
        case 2: /* cut */
            size = at + 1;
            break;
        default: /* say a part twice */
            if (size + size - at <= LONGEST) {
                memmove(bytes + size, bytes + at, size - at);
                size += size - at;
            }
            break;
        }
    }
    return size;
}

/* In memory of its exact size, so that a read beyond its end is seen. */
static int try_one(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);

    if (exact == NULL)
        return 0;
    memcpy(exact, bytes, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

int main(int argc, char **argv)
{
    static uint8_t bytes[LONGEST];
    const char *asked_long = getenv("TANDEM_LONG");
    int count = asked_long != NULL && strcmp(asked_long, "1") == 0 ? MANY : 0;
    int nowhere = open("/dev/null", O_WRONLY);

    if (argc != 2 || !read_corpus(argv[1])) {
        fprintf(stderr, "smoke: expected CORPUS, a folder of 1 to %d files of at most %d bytes\n", FILES, LONGEST);
        return 1;
    }
    if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0) /* every refusal is a line */
        return 1;
    for (int i = 0; i < sample_count; i++)
        if (!try_one(samples[i].bytes, samples[i].size))
            return 1;
    for (int i = 0; i < count; i++) {
        uint64_t state = (uint64_t)i;

        if (!try_one(bytes, i % 2 == 0 ? make_random(&state, bytes) : make_changed(&state, bytes)))
            return 1;
    }
    close(nowhere);
    free(samples);
    printf("%d files of the corpus, %d inputs made of them\n", sample_count, count);
    return 0;
}
