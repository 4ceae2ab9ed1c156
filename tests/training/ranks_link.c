/* A switch between network namespaces, for systems whose kernel cannot shape links: ranks_link RATE DELAY
 * NAMESPACE...
 *
 * Makes the device sgm0 in each namespace ("." is its own), and passes frames on between them: each port
 * takes RATE bits a second, and what it took arrives DELAY seconds later. One line, "ready", tells when it
 * does. Ends with its input.
 *
 * Systems hand over segments of up to 64 KB, as to a network card that would divide them, and so do we: a
 * switch that copied each packet would take the processor from those it measures.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MAXIMUM_PORTS 16
#define HEAD sizeof(struct virtio_net_hdr) /* how to divide the frame, before it */
#define FRAME (HEAD + 65536 + 64)
#define AROUND 24  /* bytes of the wire for each packet: its gap, preamble and check sum */
#define HEADERS 66 /* of each packet of a segment: Ethernet, IP and TCP with its time stamps */
#define QUEUE 1024 /* frames of a port that are on their way */

typedef struct frame {
    double arrival;
    size_t length;
    unsigned char data[FRAME];
} frame;

typedef struct port {
    int device;
    unsigned char address[6]; /* of who is behind it, learnt from what it sends */
    bool known;
    double busy; /* until when it takes what it has got */
    frame *queue;
    size_t first, count;
} port;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int open_device(const char *space)
{
    char path[256];
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR, .ifr_name = "sgm0"};
    bool here = strcmp(space, ".") == 0;
    snprintf(path, sizeof path, here ? "/proc/self/ns/net" : "/run/netns/%s", space);
    int own = open("/proc/self/ns/net", O_RDONLY), there = open(path, O_RDONLY);
    bool inside = own >= 0 && there >= 0 && setns(there, CLONE_NEWNET) == 0;
    int device = inside ? open("/dev/net/tun", O_RDWR | O_NONBLOCK) : -1; /* belongs to where it is opened */
    if (device < 0 || ioctl(device, TUNSETIFF, &request) != 0 ||
        ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0 ||
        setns(own, CLONE_NEWNET) != 0) {
        fprintf(stderr, "ranks_link: no device in %s: %s\n", space, strerror(errno));
        exit(77);
    }
    close(own);
    close(there);
    return device;
}

/* Bytes on the wire of a frame, which may be of several packets. */
static size_t wire_bytes(const frame *f)
{
    struct virtio_net_hdr head;
    memcpy(&head, f->data, sizeof head);
    size_t length = f->length - HEAD;
    size_t packets = head.gso_type != VIRTIO_NET_HDR_GSO_NONE && head.gso_size > 0
                         ? (length - HEADERS + head.gso_size - 1) / head.gso_size
                         : 1;
    return length + (packets - 1) * HEADERS + packets * AROUND;
}

static void take(port *from, double rate, double delay)
{
    while (from->count < QUEUE) {
        frame *f = &from->queue[(from->first + from->count) % QUEUE];
        ssize_t length = read(from->device, f->data, sizeof f->data);
        if (length < (ssize_t)HEAD + 14)
            return;
        double moment = now();
        memcpy(from->address, f->data + HEAD + 6, 6);
        from->known = true;
        f->length = (size_t)length;
        from->busy = (from->busy > moment ? from->busy : moment) + (double)wire_bytes(f) * 8 / rate;
        f->arrival = from->busy + delay;
        from->count++;
    }
}

static void deliver(port *ports, int count, int from)
{
    port *p = &ports[from];
    for (; p->count > 0 && p->queue[p->first].arrival <= now();
         p->first = (p->first + 1) % QUEUE, p->count--) {
        const frame *f = &p->queue[p->first];
        for (int i = 0; i < count; i++) {
            bool meant = (f->data[HEAD] & 1) != 0 || !ports[i].known ||
                         memcmp(f->data + HEAD, ports[i].address, 6) == 0;
            if (i != from && meant && write(ports[i].device, f->data, f->length) < 0 && errno != EAGAIN &&
                errno != EIO) /* not up yet */
                perror("ranks_link");
        }
    }
}

static double wait_for(const port *ports, int count)
{
    double next = now() + 0.1;
    for (int i = 0; i < count; i++)
        if (ports[i].count > 0 && ports[i].queue[ports[i].first].arrival < next)
            next = ports[i].queue[ports[i].first].arrival;
    return next - now();
}

int main(int argc, char **argv)
{
    static port ports[MAXIMUM_PORTS];
    int count = argc - 3;
    if (count < 2 || count > MAXIMUM_PORTS)
        return 2;
    double rate = atof(argv[1]), delay = atof(argv[2]);
    prctl(PR_SET_TIMERSLACK, 1000UL);
    for (int i = 0; i < count; i++) {
        ports[i].device = open_device(argv[3 + i]);
        ports[i].queue = malloc(QUEUE * sizeof(frame));
        if (ports[i].queue == NULL)
            return 1;
    }
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        struct pollfd waits[MAXIMUM_PORTS + 1] = {{.fd = 0, .events = POLLIN}};
        for (int i = 0; i < count; i++)
            waits[i + 1] =
                (struct pollfd){.fd = ports[i].device, .events = ports[i].count < QUEUE ? POLLIN : 0};
        double rest = wait_for(ports, count);
        struct timespec time = {0, rest > 0 ? (long)(rest * 1e9) : 0};
        if (ppoll(waits, (nfds_t)count + 1, &time, NULL) > 0 && waits[0].revents != 0)
            return 0;
        for (int i = 0; i < count; i++)
            take(&ports[i], rate, delay);
        for (int i = 0; i < count; i++)
            deliver(ports, count, i);
    }
}
