/* The vocabulary of a GGUF file in the forms of others. */
#include "test_tokenizer_files.h"

#include "common/file/gguf.h"
#include "common/text/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cmocka needs these four in front of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PIECE_NORMAL = 1 };

/* One piece: its text with U+2581, and with spaces. */
struct entry {
    char mark[512], space[512];
    float score;
    int type;
};

static struct entry *read_entries(const struct gguf *gguf, int *count)
{
    const struct gguf_value *pieces, *scores, *types;
    const unsigned char *at;
    struct entry *entries;

    assert_int_equal(gguf_list(gguf, "tokenizer.ggml.tokens", GGUF_TEXT, GGUF_NEEDED, &pieces), STATUS_OK);
    assert_int_equal(gguf_list(gguf, "tokenizer.ggml.scores", GGUF_F32, GGUF_NEEDED, &scores), STATUS_OK);
    assert_int_equal(gguf_list(gguf, "tokenizer.ggml.token_type", GGUF_I32, GGUF_NEEDED, &types), STATUS_OK);
    *count = (int)pieces->count;
    entries = calloc(pieces->count, sizeof *entries);
    assert_non_null(entries);
    at = pieces->data;
    for (size_t i = 0; i < pieces->count; i++) {
        struct entry *entry = &entries[i];
        struct gguf_text text = gguf_next_text(&at);
        char *to = entry->space;

        assert_true(text.length < sizeof entry->mark);
        memcpy(entry->mark, text.bytes, text.length);
        memcpy(&entry->score, scores->data + 4 * i, sizeof entry->score);
        memcpy(&entry->type, types->data + 4 * i, sizeof entry->type);
        for (const char *from = entry->mark; *from != '\0';) {
            int mark = strncmp(from, "\xE2\x96\x81", 3) == 0;

            *to++ = mark ? ' ' : *from;
            from += mark ? 3 : 1;
        }
    }
    return entries;
}

static void write_bin(const struct entry *entries, int count, const char *path)
{
    FILE *file = fopen(path, "wb");
    int32_t longest = 512;

    assert_non_null(file);
    fwrite(&longest, sizeof longest, 1, file);
    for (int i = 0; i < count; i++) {
        const char *text = i == 1 ? "\n<s>\n" : i == 2 ? "\n</s>\n" : entries[i].space;
        int32_t length = (int32_t)strlen(text);

        fwrite(&entries[i].score, sizeof entries[i].score, 1, file);
        fwrite(&length, sizeof length, 1, file);
        fwrite(text, 1, (size_t)length, file);
    }
    assert_int_equal(fclose(file), 0);
}

static void write_string(FILE *file, const char *text, size_t length)
{
    fputc('"', file);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\')
            fputc('\\', file);
        if ((unsigned char)text[i] < 0x20)
            fprintf(file, "\\u%04x", (unsigned)text[i]);
        else
            fputc(text[i], file);
    }
    fputc('"', file);
}

static const struct entry *sorted_entries;

static int compare_scores(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    float x = sorted_entries[a].score, y = sorted_entries[b].score;

    return x > y ? -1 : x < y ? 1 : (a > b) - (a < b);
}

/* Every cut of a piece into two others is a merge, in the order of the scores: as Hugging Face's converter does it. */
static void write_merges(FILE *file, const struct entry *entries, int count, const struct tokenizer *known)
{
    int *order = calloc((unsigned)count, sizeof *order), ids = 0;
    const char *comma = "";

    for (int i = 0; i < count; i++)
        if (entries[i].type == PIECE_NORMAL)
            order[ids++] = i;
    sorted_entries = entries;
    qsort(order, (size_t)ids, sizeof *order, compare_scores);
    for (int i = 0; i < ids; i++) {
        const char *mark = entries[order[i]].mark, *space = entries[order[i]].space;

        for (size_t m = 1, s = 1; mark[m] != '\0'; m++, s++) {
            char left[512];

            while (((unsigned char)mark[m] & 0xC0) == 0x80) { /* on to the next character, in both spellings */
                s += space[s] != '\0' && ((unsigned char)space[s] & 0xC0) == 0x80;
                m++;
            }
            if (mark[m] == '\0')
                break;
            snprintf(left, sizeof left, "%.*s", (int)s, space);
            if (tokenizer_find(known, left) < 0 || tokenizer_find(known, space + s) < 0)
                continue;
            fprintf(file, "%s[", comma);
            write_string(file, mark, m);
            fputc(',', file);
            write_string(file, mark + m, strlen(mark + m));
            fputc(']', file);
            comma = ",\n";
        }
    }
    free(order);
}

static void write_json(const struct entry *entries, int count, const struct tokenizer *known, const char *path)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    fputs("{\"added_tokens\":[", file);
    for (int i = 0; i < 3; i++) {
        fprintf(file, "%s{\"id\":%d,\"special\":true,\"normalized\":false,\"content\":", i > 0 ? "," : "", i);
        write_string(file, entries[i].mark, strlen(entries[i].mark));
        fputc('}', file);
    }
    fputs("],\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"},"
          "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}]},\"pre_tokenizer\":null,"
          "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}"
          "}],"
          "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[1]}}},"
          "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"},\"content\":\" "
          "\"},"
          "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
          "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":true,\"vocab\":{",
          file);
    for (int i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "", file);
        write_string(file, entries[i].mark, strlen(entries[i].mark));
        fprintf(file, ":%d", i);
    }
    fputs("},\"merges\":[", file);
    write_merges(file, entries, count, known);
    fputs("]}}\n", file);
    assert_int_equal(fclose(file), 0);
}

int test_tokenizer_files_convert_gguf(const char *path, const char *bin, const char *json)
{
    size_t length;
    char *bytes = test_tokenizer_files_read(path, &length);
    struct tokenizer *known;
    struct entry *entries;
    struct gguf gguf;
    int count;

    assert_int_equal(gguf_read(path, bytes, length, &gguf), STATUS_OK);
    entries = read_entries(&gguf, &count);
    write_bin(entries, count, bin);
    assert_int_equal(tokenizer_open(bin, count, &known), STATUS_OK);
    write_json(entries, count, known, json);
    tokenizer_close(known);
    free(entries);
    gguf_release(&gguf);
    free(bytes);
    return count;
}
