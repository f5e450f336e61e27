/* A folder of tandem bench with known numbers, written by hand, for the tests of reports. */
#ifndef TANDEM_TESTS_UNIT_BENCH_FOLDER_H
#define TANDEM_TESTS_UNIT_BENCH_FOLDER_H

/* What differs between folders. */
struct bench_folder {
    char path[64];
    const char *command;
    int lossless;
    int clock_off_us; /* the drafter's clock is measured so much too far behind, by round trips of twice that; passes are apart by four times that */
    int trip_us;      /* its clock's round trips take so much longer; passes are apart by about 1,000 */
    double slower[2]; /* the two repetitions' passes with drafts take so much longer between rounds, microseconds */
};

/* Fills folder->path with a new folder: solo, two drafted tokens and a chosen length at temperature 0, two repetitions, one request of six
 * tokens. Solo rounds take 400 us, drafted ones 600; outside of rounds are 100 us. The drafter's clock is 5 ms ahead. */
void bench_folder_make(struct bench_folder *folder);
/* The lead's trace was full within the last repetition. */
void bench_folder_cut(const struct bench_folder *folder);
void bench_folder_remove(const struct bench_folder *folder);
/* Writes a file of it anew; NULL: removes it. */
void bench_folder_spoil(const struct bench_folder *folder, const char *name, const char *text);

#endif
