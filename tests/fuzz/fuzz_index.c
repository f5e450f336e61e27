/* Any bytes as the index of a sharded checkpoint, beside three shards that are good: it is refused, or every tensor is found. */
#include "common/model/checkpoint.h"
#include "tests/fuzz/fuzz_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Shard 1 holds a and b, shard 2 holds c, shard 3 a again. */
static const char one[] = "\x70\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"BF16\","
                          "\"shape\":[1,2],\"data_offsets\":[8,12]}}   012345678901";
static const char two[] = "\x38\0\0\0\0\0\0\0{\"c\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}     01234567";
static const char three[] = "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}     01234567";

static void put_shards(void)
{
    static int there;

    if (there)
        return;
    there = 1;
    fuzz_folder_show(0, "model.safetensors.index.json", 1);
    fuzz_folder_show(1, "1.safetensors", 1);
    fuzz_folder_show(2, "2.safetensors", 1);
    fuzz_folder_show(3, "3.safetensors", 1);
    fuzz_file(1, (const uint8_t *)one, sizeof one - 1);
    fuzz_file(2, (const uint8_t *)two, sizeof two - 1);
    fuzz_file(3, (const uint8_t *)three, sizeof three - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"a", "b", "c"};
    const struct config config = {.family = &model_families[FAMILY_LLAMA], .tied = 1};
    struct checkpoint *checkpoint;
    int found = 0;

    put_shards();
    fuzz_file(0, bytes, size);
    if (checkpoint_open(fuzz_folder(), &config, &checkpoint) != STATUS_OK)
        return 0;
    for (int i = 0; i < 3; i++)
        found += checkpoint_has(checkpoint, names[i]);
    if (found == 0 || checkpoint_has(checkpoint, "d"))
        abort();
    checkpoint_close(checkpoint);
    return 0;
}
