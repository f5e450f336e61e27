#include "verifier/request/request_work.h"

struct request_work request_work(const struct request *request)
{
    if (request->error != NULL || (request->max_tokens <= 0 && request->scores == 0))
        return (struct request_work){0};
    int completions = request->max_tokens > 0 ? request_completions(request) : 1;

    return (struct request_work){.reads = (int64_t)completions * request->prompt_count, .most = (int64_t)completions * request->max_tokens};
}

struct request_work request_work_of_all(const struct request_list *requests)
{
    struct request_work all = {0};

    for (int i = 0; i < requests->count; i++) {
        struct request_work work = request_work(&requests->request[i]);

        all.reads += work.reads;
        all.most += work.most;
    }
    return all;
}
