/* A main for a libFuzzer entry where there is no libFuzzer: seeded inputs, some random, some that look like the real thing and were then
 * changed in a few places. `smoke_NAME COUNT`. It finds what a first minute of fuzzing would find; the entries themselves judge. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 4096, CHANGES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Beginnings of what the entries read: JSON of a tokenizer, a safetensors header (its length first), a llama2.c header. */
#define SAMPLE(text) {text, sizeof(text) - 1}

static const struct {
    const char *bytes;
    size_t size;
} samples[] = {
    SAMPLE("{\"version\":\"1.0\",\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true}],\"normalizer\":null,\"pre_tokenizer\":"
           "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"vocab\":{\"<s>\":0,"
           "\"a\":1,\"b\":2,\"ab\":3},\"merges\":[\"a b\"]}}"),
    SAMPLE("{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"<0x00>\":0,\"a\":1},\"merges\":[[\"a\",\"a\"]]}}"),
    SAMPLE("\x70\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"BF16\",\"shape\":[1,2],"
           "\"data_offsets\":[8,12]}} 012345678901"),
    SAMPLE("\x02\x01\x08\x01\x10\x02\x1a\x03"
           "abc\x22\x04\x01\x02\x03\x04\x28\xff\xff\xff\xff\x0f"),
};

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

static size_t make_random(uint64_t *state, uint8_t *bytes)
{
    size_t size = below(state, (size_t)1 << below(state, 13));

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)next(state);
    return size;
}

static size_t make_changed(uint64_t *state, uint8_t *bytes)
{
    size_t which = below(state, sizeof samples / sizeof *samples), front = below(state, 3), size = samples[which].size + front;

    for (size_t i = 0; i < front; i++) /* some entries take their first bytes for choices */
        bytes[i] = (uint8_t)next(state);
    memcpy(bytes + front, samples[which].bytes, samples[which].size);
    for (size_t i = below(state, CHANGES); i > 0; i--) {
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

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
    int nowhere = open("/dev/null", O_WRONLY);

    if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0) /* every refusal is a line */
        return 1;
    for (long i = 0; i < count; i++) {
        uint64_t state = (uint64_t)i;
        uint8_t *bytes = malloc(LONGEST);
        size_t size;

        if (bytes == NULL)
            return 1;
        size = i % 2 == 0 ? make_random(&state, bytes) : make_changed(&state, bytes);
        uint8_t *exact = realloc(bytes, size > 0 ? size : 1); /* so that a read beyond its end is seen */
        if (exact == NULL) {
            free(bytes);
            return 1;
        }
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    close(nowhere);
    printf("%ld inputs\n", count);
    return 0;
}
