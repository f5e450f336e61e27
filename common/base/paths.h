/* Where the program's own files are: the other programs, the embedded pair, and the tokenizer of a model. Owns nothing: paths are written to the
 * caller's memory. Local. It looks at names and folders, and opens no file. */
#ifndef TANDEM_COMMON_BASE_PATHS_H
#define TANDEM_COMMON_BASE_PATHS_H

#include "common/base/status.h"
#include <stddef.h>

/* The folder that this program is in: folder: [PATH_MAX]. 0, and ".", where the system does not say. */
int paths_programs(char *folder);
/* Path of a part of the embedded pair ("target", "draft", "prompts.jsonl"): beside the installed program, or in the source tree. */
void paths_demo(const char *part, char *path, size_t size);
/* Path of a file of this user's that Tandem keeps and may lose (in XDG_CACHE_HOME or HOME/.cache); 0 where neither is set. */
int paths_cache(const char *name, char *path, size_t size);
/* What `model` of an option means: itself where there is such a file or folder, or where the name is not one of `tandem fetch`; else the file
 * or, of a name of the Hugging Face hub, the folder that was fetched by that name. 0 where that is not there. */
int paths_model(const char *model, char *path, size_t size);
/* The name of the model that drafts for one of `tandem fetch`; NULL: none is known. */
const char *paths_draft_of(const char *model);
/* Warns where `model`, given to --`option`, is both something here, which is taken, and a model that was fetched. NULL: it was not given. */
void paths_tell_taken(const char *option, const char *model);
/* Whether there is something at the path that --`option` was given: STATUS_NOINPUT, with one logged line, where not. NULL: it was not given.
 * others: what the option takes beside models, "a|b|c", for whoever misspelt that; "": nothing */
enum status paths_check(const char *option, const char *model, const char *others);
/* Is there one file or folder that both name? Devices and pipes are none. NULL names nothing. */
int paths_are_one(const char *a, const char *b);
/* Is `end` the end of the path, as ".gguf" is? */
int paths_end_in(const char *path, const char *end);
/* How many GGUF files `model` may mean: 1 for a .gguf file, or as many as a folder without config.json has; 0 for anything else. `path` gets the
 * first one's. */
int paths_gguf(const char *model, char *path, size_t size);
/* The path to give to tokenizer_open for a model: the folder itself, or its GGUF file, or for a llama2.c model.bin the tokenizer.bin, or else
 * the one tok*.bin, that stands beside it. */
void paths_tokenizer(const char *model, char *path, size_t size);

#endif
