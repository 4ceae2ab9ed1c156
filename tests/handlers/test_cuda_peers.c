/* Sums over several devices, through the CUDA plug-in, on the stand-in for NCCL. */
#include "cuda_driver_test.h"

#include <pthread.h>

#define MAXIMUM 3
#define FIRST 40000 /* elements: more than the stand-in shows at once */
#define SECOND 7

typedef struct peer {
    const sgm_device_driver *driver;
    void *self, *buffer;
    unsigned char invitation[SGM_DEVICE_INVITATION];
    uint32_t number, of;
    double seconds;
    bool narrow; /* sums fewer elements than the others */
    bool absent; /* joins, and sums nothing */
    int sums;
    sgm_device_result result;
    char message[SGM_DEVICE_MESSAGE];
    pthread_t thread;
} peer;

static void open_peers(peer *peers, uint32_t count, double seconds)
{
    unsigned char invitation[SGM_DEVICE_INVITATION];
    use_three_devices();
    memset(peers, 0, count * sizeof *peers);
    DONE(load()->invite(invitation, message));
    for (uint32_t i = 0; i < count; i++) {
        peers[i].driver = open_cuda(i, &peers[i].self);
        peers[i].number = i;
        peers[i].of = count;
        peers[i].seconds = seconds;
        peers[i].sums = 1;
        memcpy(peers[i].invitation, invitation, sizeof invitation);
        DONE(peers[i].driver->allocate(peers[i].self, (FIRST + SECOND) * sizeof(float), &peers[i].buffer,
                                       message));
    }
}

static void close_peers(const peer *peers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        peers[i].driver->release(peers[i].self, peers[i].buffer);
        peers[i].driver->close(peers[i].self);
    }
}

/* Joins, sums so often and leaves; `result` is that of the first that failed. */
static void *take_part(void *argument)
{
    peer *p = argument;
    const sgm_device_addend addends[] = {{{p->buffer, 0}, p->narrow ? FIRST - 1 : FIRST},
                                         {{p->buffer, FIRST * sizeof(float)}, SECOND}};
    p->result = p->driver->join(p->self, p->invitation, p->number, p->of, p->seconds, p->message);
    for (int i = 0; i < p->sums && !p->absent && p->result == SGM_DEVICE_OK; i++)
        p->result = p->driver->sum(p->self, addends, 2, SGM_DEVICE_FLOAT32, p->seconds, p->message);
    return NULL;
}

static void start(peer *peers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        CHECK_INT(pthread_create(&peers[i].thread, NULL, take_part, &peers[i]), 0);
}

static void *leave(void *argument)
{
    const peer *p = argument;
    p->driver->leave(p->self);
    return NULL;
}

static void end(peer *peers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        pthread_join(peers[i].thread, NULL);
    for (uint32_t i = 0; i < count; i++)
        CHECK_INT(pthread_create(&peers[i].thread, NULL, leave, &peers[i]), 0);
    for (uint32_t i = 0; i < count; i++)
        pthread_join(peers[i].thread, NULL);
}

static void fill(const peer *p)
{
    static float values[FIRST + SECOND];
    for (int i = 0; i < FIRST + SECOND; i++)
        values[i] = (float)(i % 97) * (float)(p->number + 1);
    DONE(p->driver->write(p->self, (sgm_device_place){p->buffer, 0}, values, sizeof values, message));
}

/* After so many sums of `count` peers. */
static void check_sums(const peer *p, uint32_t count, int sums)
{
    static float values[FIRST + SECOND];
    double factor = (double)count * (count + 1) / 2;
    for (int i = 1; i < sums; i++)
        factor *= count;
    DONE(p->driver->read(p->self, (sgm_device_place){p->buffer, 0}, values, sizeof values, message));
    for (int i = 0; i < FIRST + SECOND; i++)
        CHECK_NEAR(values[i], factor * (i % 97), 0);
}

static void go(peer *peers, uint32_t count)
{
    start(peers, count);
    end(peers, count);
}

/* All have done it. */
static void go_well(peer *peers, uint32_t count, int sums)
{
    go(peers, count);
    for (uint32_t i = 0; i < count; i++) {
        if (peers[i].result != SGM_DEVICE_OK)
            TEST_FAIL("%s", peers[i].message);
        check_sums(&peers[i], count, sums);
    }
    close_peers(peers, count);
}

/* Before all others: what is loaded once stays. */
TEST(without_nccl_a_sentence_says_so)
{
    char place[32];
    unsigned char identity[SGM_DEVICE_IDENTITY];
    void *self;
    sgm_device_info info;
    use_three_devices();
    hide_nccl(place);
    const sgm_device_driver *driver = load();
    DONE(driver->open(0, &self, &info, message));
    REFUSED(driver->identify(self, identity, message), SGM_DEVICE_ABSENT, "there is no libnccl.so.2");
    REFUSED(driver->invite((unsigned char[SGM_DEVICE_INVITATION]){0}, message), SGM_DEVICE_ABSENT,
            "libnccl2");
    driver->close(self);
    show_nccl(place);
}

TEST(peers_sum_what_is_on_their_devices)
{
    for (uint32_t count = 1; count <= MAXIMUM; count++) {
        peer peers[MAXIMUM];
        open_peers(peers, count, 20);
        for (uint32_t i = 0; i < count; i++) {
            peers[i].sums = 3;
            fill(&peers[i]);
        }
        go_well(peers, count, 3);
    }
}

/* From the `first` one on they failed with these words. All can be used after that, and sum anew. */
static void check_failed(peer *peers, uint32_t first, uint32_t count, const char *words)
{
    for (uint32_t i = first; i < count; i++) {
        CHECK_INT(peers[i].result, SGM_DEVICE_FAILED);
        if (strstr(peers[i].message, words) == NULL)
            TEST_FAIL("'%s' is not in '%s'", words, peers[i].message);
    }
    DONE(load()->invite(peers[0].invitation, message));
    for (uint32_t i = 0; i < count; i++) {
        memcpy(peers[i].invitation, peers[0].invitation, sizeof peers[i].invitation);
        peers[i].absent = false;
        peers[i].seconds = 20;
        fill(&peers[i]);
    }
    go_well(peers, count, 1);
}

TEST(a_peer_that_does_not_sum_is_not_waited_for_without_end)
{
    peer peers[MAXIMUM];
    open_peers(peers, MAXIMUM, 0.5);
    peers[0].absent = true;
    go(peers, MAXIMUM);
    CHECK_INT(peers[0].result, SGM_DEVICE_OK);
    check_failed(peers, 1, MAXIMUM, "a sum with the other devices has taken more than 0.5 seconds");
}

TEST(a_peer_that_does_not_join_is_not_waited_for_without_end)
{
    peer peers[2];
    open_peers(peers, 2, 0.5);
    go(&peers[1], 1);
    check_failed(peers, 1, 2,
                 "joining the other devices has taken more than 0.5 seconds: one of the 2 devices");
}

TEST(who_waits_can_be_told_to_give_up)
{
    peer peers[MAXIMUM];
    open_peers(peers, MAXIMUM, 500);
    peers[0].absent = true;
    start(peers, MAXIMUM);
    pthread_join(peers[0].thread, NULL); /* all have joined */
    CHECK_INT(pthread_create(&peers[0].thread, NULL, leave, &peers[0]), 0);
    for (int i = 1; i < MAXIMUM; i++)
        peers[i].driver->give_up(peers[i].self);
    end(peers, MAXIMUM);
    check_failed(peers, 1, MAXIMUM, "was given up, as one of the other devices has failed");
}

TEST(what_nccl_says_is_told)
{
    peer peers[2];
    open_peers(peers, 2, 20);
    peers[0].sums = peers[1].sums = 4;
    setenv("SIGMA_FAKE_NCCL_SUMS", "5", 1); /* two addends each time */
    go(peers, 2);
    unsetenv("SIGMA_FAKE_NCCL_SUMS");
    peers[0].sums = peers[1].sums = 1;
    check_failed(peers, 0, 2,
                 "NCCL: remote process exited or there was a network error: NET/Socket : peer 1 has closed");
}

TEST(one_device_cannot_be_two_peers)
{
    peer peers[2];
    open_peers(peers, 2, 20);
    void *own = peers[1].self, *buffer = peers[1].buffer;
    open_cuda(0, &peers[1].self);
    go(peers, 2);
    peers[1].driver->close(peers[1].self);
    peers[1].self = own;
    peers[1].buffer = buffer;
    check_failed(peers, 0, 2, "invalid usage: Duplicate GPU detected : rank 0 and rank 1");
}

TEST(devices_have_identities)
{
    unsigned char identities[MAXIMUM][SGM_DEVICE_IDENTITY];
    use_three_devices();
    for (uint32_t i = 0; i < MAXIMUM; i++) {
        void *self;
        const sgm_device_driver *driver = open_cuda(i, &self);
        DONE(driver->identify(self, identities[i], message));
        driver->close(self);
        for (uint32_t k = 0; k < i; k++)
            CHECK(memcmp(identities[i], identities[k], SGM_DEVICE_IDENTITY) != 0);
    }
}

TEST(who_has_not_joined_does_not_sum)
{
    void *self, *buffer = NULL;
    const sgm_device_driver *driver = open_cuda(0, &self);
    DONE(driver->allocate(self, 4, &buffer, message));
    const sgm_device_addend addend = {{buffer, 0}, 1};
    REFUSED(driver->sum(self, &addend, 1, SGM_DEVICE_FLOAT32, 1, message), SGM_DEVICE_FAILED,
            "has not joined others");
    driver->release(self, buffer);
    driver->close(self);
}

static void sum_different_lengths(void)
{
    peer peers[2];
    open_peers(peers, 2, 20);
    peers[1].narrow = true;
    go(peers, 2);
}

/* Where the real one would sum nonsense or hang, the stand-in ends the process. */
TEST(sums_of_different_lengths_are_found)
{
    char text[MISTAKE_TEXT];
    use_three_devices();
    make_mistake(sum_different_lengths, text);
    if (strstr(text, "40000") == NULL || strstr(text, "39999") == NULL)
        TEST_FAIL("%s", text);
}
