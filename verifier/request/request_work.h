/* How much completing requests takes at most, for who says how far it is. Owns nothing; pure. What was reused or ended early, the caller takes
 * away. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_WORK_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_WORK_H

#include "verifier/request/request.h"

struct request_work {
    int64_t reads; /* tokens of prompts that are read */
    int64_t most;  /* tokens that are generated, at most */
};

/* Nothing for a request that is wrong or asks for no token and no log p. */
struct request_work request_work(const struct request *request);
struct request_work request_work_of_all(const struct request_list *requests);

#endif
