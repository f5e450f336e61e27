/* The ids of a list of requests. Results are kept by the number of the line, and a journal goes on by it and the line's digest: an id that is there
 * twice mixes up nothing here, but whoever finds results by it loses one. Owns nothing and changes nothing; local. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_IDS_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_IDS_H

#include "verifier/request/request.h"

/* Warns once where a line has the id of an earlier one: of the first that has, and how many there are. `path` is what the user calls the file.
 * STATUS_INTERNAL without memory, logged. */
enum status request_ids_warn(const struct request_list *list, const char *path);

#endif
