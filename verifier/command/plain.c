#include "verifier/command/plain.h"

#include "common/base/median.h"
#include "common/base/try.h"
#include <stdio.h>

#define LONGEST_S 2.0

enum { LEAST = 3, MOST = 15 };

enum status plain_run(struct job *job, struct peers *drafters, const struct request_list *requests)
{
    const struct lead_watch watch = {0};
    struct figures figures;
    double speed[MOST];
    int64_t began = clock_ns();
    int passes = 0;

    while (passes < LEAST || (passes < MOST && (double)(clock_ns() - began) / 1e9 * (passes + 1) / passes < LONGEST_S)) {
        TRY(job_pass(job, requests, drafters, JOB_SOLO, 0, &watch, &figures));
        speed[passes++] = figures_tokens_per_second(&figures);
        if ((double)(clock_ns() - began) / 1e9 > LONGEST_S)
            break;
    }
    median_sort(speed, passes);
    printf("plain_speed=%.6g plain_threads=%d\n", median_of_sorted(speed, passes), job->threads);
    return STATUS_OK;
}
