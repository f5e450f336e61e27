#include "tests/support/corpus_file.h"

#include "common/corpus/datastore.h"
#include "common/corpus/ngram_count.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void corpus_file_make(const char *made_by, int order, int vocab, int tokens, char *path)
{
    const struct ngram_terms terms = {.order = order, .vocab = vocab, .tokenizer = 77};
    int32_t *text = malloc((size_t)tokens * sizeof *text);
    struct texts texts = {0};
    uint32_t seed = 5;
    void *bytes;
    size_t size;
    int file;

    assert_non_null(text);
    for (int i = 0; i < tokens; i++) {
        seed = seed * 1664525 + 1013904223;
        text[i] = i > 0 && seed >> 24 < 150 ? (text[i - 1] + 13) % vocab : (int32_t)(seed >> 16) % vocab;
    }
    assert_int_equal(texts_add(&texts, text, (size_t)tokens), STATUS_OK);
    free(text);
    assert_int_equal(strcmp(made_by, "ngram") == 0 ? ngram_count(&texts, &terms, &bytes, &size)
                                                   : datastore_make(&texts, vocab, terms.tokenizer, &bytes, &size),
                     STATUS_OK);
    texts_release(&texts);
    strcpy(path, "/tmp/tandem-corpus-XXXXXX");
    file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
    free(bytes);
}
