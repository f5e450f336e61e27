/* The room that the context leaves behind each prompt. A request may ask for more tokens than that; it is completed as far as there is room, and
 * whoever asked is told so. Owns nothing and changes nothing; local. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_ROOM_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_ROOM_H

#include "verifier/request/request.h"

/* Warns once where requests ask for more tokens than there is room for: of the first, and how many there are. `called` is what the user calls
 * them, as "--prompts FILE". most: the longest context that the model has. */
void request_room_warn(const struct request_list *list, int context, int most, const char *called);

#endif
