/* Everything on the way of a dump is async-signal-safe: no stdio, no memory, numbers made by hand. */
#include "common/base/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct event {
    struct timespec at;
    const char *what;
    int64_t number[3];
};

static struct {
    struct event event[RECORDER_EVENTS];
    _Atomic uint64_t count; /* since the start */
    char folder[512];
    char file[32]; /* in it */
    char who[48];
    int announce;
    _Atomic int state;
    const _Atomic uint32_t *over;
} recorder;

enum state { CLOSED /* or never opened, or dumped: nothing is written */, OPEN, WRITING };

enum { LONGEST_DUMP_MS = 500 };

/* A line in the making. */
struct text {
    char bytes[512];
    size_t count;
};

void recorder_note(const char *what, int64_t a, int64_t b, int64_t c)
{
    uint64_t count = atomic_load_explicit(&recorder.count, memory_order_relaxed);
    struct event *event = &recorder.event[count % RECORDER_EVENTS];

    clock_gettime(CLOCK_REALTIME, &event->at);
    event->what = what;
    event->number[0] = a;
    event->number[1] = b;
    event->number[2] = c;
    atomic_store_explicit(&recorder.count, count + 1, memory_order_release);
}

void recorder_open(const char *folder, int rank, const char *who, int announce)
{
    snprintf(recorder.folder, sizeof recorder.folder, "%s", folder);
    snprintf(recorder.file, sizeof recorder.file, "rank-%04d", rank);
    snprintf(recorder.who, sizeof recorder.who, " rank %d %s: ", rank, who);
    recorder.announce = announce;
    atomic_store(&recorder.state, OPEN);
}

void recorder_close(void)
{
    atomic_store(&recorder.state, CLOSED);
}

void recorder_heed(const _Atomic uint32_t *over)
{
    recorder.over = over;
}

static void add(struct text *text, const char *more)
{
    while (*more != '\0' && text->count < sizeof text->bytes - 1)
        text->bytes[text->count++] = *more++;
}

static void add_number(struct text *text, int64_t number, int digits)
{
    char backwards[24];
    int count = 0;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;

    for (; rest > 0 || count < digits; rest /= 10)
        backwards[count++] = (char)('0' + rest % 10);
    if (number < 0)
        add(text, "-");
    while (count > 0)
        add(text, (char[]){backwards[--count], '\0'});
}

static void add_head(struct text *text, const struct timespec *at)
{
    text->count = 0;
    add_number(text, at->tv_sec, 10);
    add(text, ".");
    add_number(text, at->tv_nsec, 9);
    add(text, recorder.who);
}

static int write_all(int file, const struct text *text)
{
    for (size_t at = 0; at < text->count;) {
        ssize_t written = write(file, text->bytes + at, text->count - at);

        if (written < 0 && errno != EINTR)
            return 0;
        at += written > 0 ? (size_t)written : 0;
    }
    return 1;
}

static int write_event(int file, const struct event *event)
{
    struct text text;
    int number = 0;

    if (event->what == NULL)
        return 1;
    add_head(&text, &event->at);
    for (const char *at = event->what; *at != '\0'; at++)
        if (*at == '#' && number < 3)
            add_number(&text, event->number[number++], 1);
        else
            add(&text, (char[]){*at, '\0'});
    add(&text, "\n");
    return write_all(file, &text);
}

static void announce(void)
{
    struct text text = {.count = 0};

    add(&text, "tandem: what each rank did last: sort ");
    add(&text, recorder.folder);
    add(&text, "/rank-*\n");
    write_all(STDERR_FILENO, &text);
}

/* The folder may lie where anybody can write: it is used only when it is ours, and the file is a new one, whatever stood in its place. */
static int open_file(void)
{
    struct stat found;
    int made = mkdir(recorder.folder, 0700) == 0, file = -1;
    int folder = open(recorder.folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (folder < 0)
        return -1;
    if (fstat(folder, &found) == 0 && found.st_uid == geteuid() && (unlinkat(folder, recorder.file, 0) == 0 || errno == ENOENT))
        file = openat(folder, recorder.file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    close(folder);
    if (file >= 0 && made && recorder.announce)
        announce();
    return file;
}

/* A signal that comes twice reaches two threads, and whoever leaves this folder first ends the process. */
static void await_writer(void)
{
    for (int ms = 0; ms < LONGEST_DUMP_MS && atomic_load(&recorder.state) == WRITING; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void write_dump(const char *why)
{
    uint64_t count = atomic_load(&recorder.count), first = count > RECORDER_EVENTS ? count - RECORDER_EVENTS : 0;
    struct text text;
    struct timespec now;
    int file, written = 1;

    file = open_file();
    if (file < 0)
        return;
    for (uint64_t i = first; i < count && written; i++)
        written = write_event(file, &recorder.event[i % RECORDER_EVENTS]);
    clock_gettime(CLOCK_REALTIME, &now);
    add_head(&text, &now);
    add(&text, "ends: ");
    add(&text, why);
    add(&text, "\n");
    write_all(file, &text);
    close(file);
}

void recorder_dump(const char *why)
{
    int open = OPEN;

    if (recorder.over != NULL && atomic_load(recorder.over))
        return;
    if (!atomic_compare_exchange_strong(&recorder.state, &open, WRITING)) {
        await_writer();
        return;
    }
    write_dump(why);
    atomic_store(&recorder.state, CLOSED);
}
