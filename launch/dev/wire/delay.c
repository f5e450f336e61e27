/* A wire that takes time: two TUN devices, what either sends comes out of the other so many microseconds later. For machines whose kernel has no
 * netem. The devices may be moved to other network namespaces: what was opened stays open.
 *
 *     delay MICROSECONDS DEVICE DEVICE [seconds to live]
 *
 * It prints "ready" once both are there. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 65536, ON_THE_WAY = 256 };

struct packet {
    int64_t due_ns;
    ssize_t bytes;
    char data[LARGEST];
};

/* Packets on their way to one side, first in, first out. */
struct way {
    struct packet packet[ON_THE_WAY];
    int first, count;
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* -1: there is none, and why was said. */
static int open_device(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (device < 0 || ioctl(device, TUNSETIFF, &request) != 0) {
        fprintf(stderr, "delay: %s: %s\n", name, strerror(errno));
        return -1;
    }
    return device;
}

/* Takes what the device has to send, as far as there is room. What a full way leaves behind waits in the device. */
static void take(struct way *way, int from, int64_t delay_ns)
{
    while (way->count < ON_THE_WAY) {
        struct packet *packet = &way->packet[(way->first + way->count) % ON_THE_WAY];

        packet->bytes = read(from, packet->data, sizeof packet->data);
        if (packet->bytes <= 0)
            return;
        packet->due_ns = now_ns() + delay_ns;
        way->count++;
    }
}

/* Hands out what is due. */
static void give(struct way *way, int to)
{
    for (; way->count > 0 && way->packet[way->first].due_ns <= now_ns(); way->count--) {
        ssize_t written = write(to, way->packet[way->first].data, (size_t)way->packet[way->first].bytes);

        (void)written; /* a device that is down loses it, as a wire would */
        way->first = (way->first + 1) % ON_THE_WAY;
    }
}

static int64_t next_due(const struct way *way, int64_t than)
{
    int64_t due = way->count > 0 ? way->packet[way->first].due_ns : than;

    return due < than ? due : than;
}

int main(int argc, char **argv)
{
    static struct way way[2];
    int64_t delay_ns, end_ns;

    if (argc < 4) {
        fprintf(stderr, "usage: delay MICROSECONDS DEVICE DEVICE [SECONDS]\n");
        return 64;
    }
    delay_ns = (int64_t)(strtod(argv[1], NULL) * 1000);
    end_ns = now_ns() + (int64_t)((argc > 4 ? strtod(argv[4], NULL) : 600) * 1e9);
    struct pollfd side[2] = {{.fd = open_device(argv[2]), .events = POLLIN}, {.fd = open_device(argv[3]), .events = POLLIN}};

    if (side[0].fd < 0 || side[1].fd < 0)
        return 77;
    prctl(PR_SET_TIMERSLACK, 1UL);
    puts("ready");
    fflush(stdout);
    for (int64_t now = now_ns(); now < end_ns; now = now_ns()) {
        int64_t left = next_due(&way[0], next_due(&way[1], now + INT64_C(1000000000))) - now;
        struct timespec wait = {left / INT64_C(1000000000), left % INT64_C(1000000000)};

        if (left > 0)
            ppoll(side, 2, &wait, NULL);
        for (int i = 0; i < 2; i++) {
            take(&way[i], side[i].fd, delay_ns);
            give(&way[i], side[1 - i].fd);
        }
    }
    return 0;
}
