/* The chance that one full run of all tests gives a false alarm is below 1e-9, by proof: it is shared out evenly over the statistics that are
 * compared with a bound, and no test may compare more of them than its share. */
#ifndef TANDEM_TESTS_LAW_BUDGET_H
#define TANDEM_TESTS_LAW_BUDGET_H

#define BUDGET_RUN 1e-9

/* Statistics of one full run. */
enum {
    BUDGET_JOINT = 2 * 64,
    BUDGET_VOCABULARY = 64,
    BUDGET_SPEED = 64,
    BUDGET_ADAPTIVE = 40,
    BUDGET_RULES = 160,
    BUDGET_JOB = 32,        /* whole jobs under mpirun */
    BUDGET_ELSEWHERE = 224, /* tests outside this folder */
    BUDGET_STATISTICS = BUDGET_JOINT + BUDGET_VOCABULARY + BUDGET_SPEED + BUDGET_ADAPTIVE + BUDGET_RULES + BUDGET_JOB + BUDGET_ELSEWHERE,
};

/* The chance that one statistic passes its bound. */
#define BUDGET_ALARM (BUDGET_RUN / BUDGET_STATISTICS)

/* Under a sanitizer the tests look for other faults: few requests do, and power is shown by the plain build. The bounds hold for every N. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { BUDGET_SANITIZED = 1 };
#else
enum { BUDGET_SANITIZED = 0 };
#endif

#endif
