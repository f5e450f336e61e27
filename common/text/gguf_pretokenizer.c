#include "common/text/gguf_pretokenizer.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdio.h>
#include <string.h>

enum { CUTS = 6 };

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
/* Contractions in either case, then a word with at most one other character in front, then digits. */
#define WORD  "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
#define REST  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "((?=[\\p{L}])([^a-z]))"
#define LOWER "((?=[\\p{L}])([^A-Z]))"
#define CJK   "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
/* The cased letters of DeepSeek's own list. */
#define CASED                                                                                                                              \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-"              \
    "\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}"                 \
    "\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-"               \
    "\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-"                   \
    "\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}"                     \
    "\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-"                   \
    "\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}"                     \
    "\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"                     \
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}"                     \
    "\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-"                   \
    "\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-"                \
    "\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

/* Each expression cuts the pieces that the one before it left: what it matches, and what lies between. */
static const struct kind {
    const char *names; /* of tokenizer.ggml.pre, with spaces around each */
    const char *cuts[CUTS];
    int ignore_merges; /* a piece that is in the vocabulary is that token */
    int add_bos;       /* unless the file says otherwise */
} kinds[] = {
    {" default ", {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}, 0, 0},
    {" gpt-2 phi-2 mpt olmo jais gigachat exaone4 trillion granite-docling ", {GPT2}, 0, 0},
    {" llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 ", {WORD "{1,3}" REST}, 1, 1},
    {" dbrx smaug-bpe chatglm-bpe glm4 ", {WORD "{1,3}" REST}, 0, 0},
    {" qwen2 deepseek-r1-qwen megrez stablelm2 hunyuan solar-open grok-2 ", {WORD REST}, 0, 0},
    {" smollm starcoder refact command-r codeshell exaone minerva-7b ", {"\\p{N}", GPT2}, 0, 0},
    {" falcon ", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}, 0, 0},
    {" deepseek-coder ", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK, "\\p{N}"}, 0, 0},
    {" deepseek-llm ",
     {"[\\r\\n]", "\\s?[" CASED "]+", "\\s?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+", "\\s+$",
      CJK, "\\p{N}+"},
     0,
     0},
    {" deepseek-v3 hunyuan-dense ",
     {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
      "?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|"
      "\\s+(?!\\S)|\\s+"},
     0,
     0},
    {" tekken ",
     {"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|"
      "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
     1,
     1},
};

static const struct kind *kind_of(struct gguf_text name)
{
    char spaced[64];

    if (name.length == 0 || name.length > sizeof spaced - 3 || memchr(name.bytes, ' ', name.length) != NULL)
        return NULL;
    snprintf(spaced, sizeof spaced, " %.*s ", (int)name.length, name.bytes);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(kinds[i].names, spaced) != NULL)
            return &kinds[i];
    return NULL;
}

enum status gguf_pretokenizer_add(const struct gguf *gguf, struct pretokenizer *pretokenizer, int *ignore_merges, int *add_bos)
{
    static const char key[] = "tokenizer.ggml.pre";
    struct gguf_text name = {"default", 7};
    const struct kind *kind;

    TRY(gguf_string(gguf, key, GGUF_OPTIONAL, &name));
    if (gguf_find(gguf, key) == NULL)
        log_file_warning("%s: key %s is missing, so texts are cut as \"default\" says, which is not what newer models were trained with",
                         gguf->name, key);
    kind = kind_of(name);
    if (kind == NULL)
        return gguf_refuse(gguf, key, "the name of a pre-tokenizer that is known (common/text/README.md)");
    for (int i = 0; i < CUTS && kind->cuts[i] != NULL; i++)
        TRY(pretokenizer_add_pattern(pretokenizer, gguf->name, kind->cuts[i], strlen(kind->cuts[i]), 0));
    *ignore_merges = kind->ignore_merges;
    *add_bos = kind->add_bos;
    return STATUS_OK;
}
