/* What to say of a key that no line of input can have: what other programs mean by it, or the known key that is spelled most like it. Constant data;
 * pure. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_KEYS_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_KEYS_H

enum { REQUEST_KEYS_WORDS = 640 };

/* Does it mean something in a line, here or to other programs? */
int request_keys_knows(const char *key);

/* Writes what follows the name of a key that no line can have. 1 where other programs know it: what is here in its place. 0: the key that is spelled
 * nearly so ("; did you mean ..."), or all. */
int request_keys_explain(const char *key, char words[REQUEST_KEYS_WORDS]);

#endif
