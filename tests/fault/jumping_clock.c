/* Preloaded into the ranks of a job: the clock of the wall is an hour ahead at every second look, as if somebody set it again and again. The
 * monotonic one stays as it is. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

static time_t ahead(void)
{
    static atomic_uint looks;

    return atomic_fetch_add(&looks, 1) % 2 * 3600;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);

    if (clock == CLOCK_REALTIME)
        now->tv_sec += ahead();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;
    int failed = clock_gettime(CLOCK_REALTIME, &exact);

    (void)zone;
    *now = (struct timeval){.tv_sec = exact.tv_sec, .tv_usec = exact.tv_nsec / 1000};
    return failed;
}

time_t time(time_t *at)
{
    struct timespec exact;

    clock_gettime(CLOCK_REALTIME, &exact);
    if (at != NULL)
        *at = exact.tv_sec;
    return exact.tv_sec;
}
