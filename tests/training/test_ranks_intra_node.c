/* Ranks of one node: memory of each that all see, and meetings. Here they are threads of one process. */
#include "test.h"

#include "parallel/collective/ranks.h"

#include <unistd.h>

#define RANKS 3
#define ROUNDS 40

/* What brings them together: the memory of all, and a barrier. */
static struct {
    pthread_barrier_t all;
    const void *data[RANKS];
    double sum;
} room;

typedef struct member {
    sgm__ranks ranks;
    double silent_since[RANKS];
    bool willing, absent;
    bool found; /* the others */
    size_t wrong;
    sgm_status status;
    char message[512];
} member;

static sgm_communicator_result start(void *self, const sgm_communicator_work *work, int32_t *ticket,
                                     char *message)
{
    const member *own = self;
    (void)message;
    room.data[own->ranks.rank] = work->data;
    pthread_barrier_wait(&room.all);
    double sum = 0;
    for (int32_t i = 0; i < RANKS; i++) {
        size_t each = work->count;
        if (work->kind == SGM_COMMUNICATOR_SUM)
            sum += *(const double *)room.data[i];
        else if (i != own->ranks.rank)
            memcpy((char *)work->data + (size_t)i * each, (const char *)room.data[i] + (size_t)i * each,
                   each);
    }
    pthread_barrier_wait(&room.all);
    if (work->kind == SGM_COMMUNICATOR_SUM)
        *(double *)work->data = sum;
    *ticket = 0;
    return SGM_COMMUNICATOR_OK;
}

static sgm_communicator_result test(void *self, int32_t ticket, double seconds, bool *done, char *message)
{
    (void)self, (void)message;
    if (ticket == SGM_COMMUNICATOR_NO_WORK)
        usleep((useconds_t)(seconds * 1e6));
    *done = ticket != SGM_COMMUNICATOR_NO_WORK;
    return SGM_COMMUNICATOR_OK;
}

static sgm_communicator_result call(void *self, double seconds, bool *silent, char *message)
{
    (void)self, (void)seconds, (void)message;
    for (int32_t i = 0; i < RANKS; i++)
        silent[i] = i == RANKS - 1;
    return SGM_COMMUNICATOR_OK;
}

static const char *place(void *self, int32_t rank)
{
    static const char *const places[RANKS] = {"thread 0", "thread 1", "thread 2"};
    (void)self;
    return places[rank];
}

static void fail(void *self)
{
    (void)self;
}

static const sgm_communicator table = {.version = SGM_COMMUNICATOR_VERSION,
                                       .name = "threads",
                                       .place = place,
                                       .start = start,
                                       .test = test,
                                       .call = call,
                                       .fail = fail};

/* Runs a member's part in a thread for each of them. */
static void run_all(member *members, void *(*part)(void *))
{
    pthread_t threads[RANKS];
    pthread_barrier_init(&room.all, NULL, RANKS);
    for (int32_t i = 0; i < RANKS; i++) {
        members[i].ranks = (sgm__ranks){.table = &table,
                                        .self = &members[i],
                                        .rank = i,
                                        .count = RANKS,
                                        .options = {.timeout = 0.4},
                                        .silent_since = members[i].silent_since,
                                        .lock = PTHREAD_MUTEX_INITIALIZER};
        CHECK_INT(pthread_create(&threads[i], NULL, part, &members[i]), 0);
    }
    for (int32_t i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&room.all);
}

static void note_failure(member *own, sgm_status status)
{
    own->status = status;
    if (status != SGM_OK)
        snprintf(own->message, sizeof own->message, "%s", sgm_last_error());
}

/* --- blocks --- */

static uint32_t word_of(int32_t rank, int round)
{
    return (uint32_t)(rank * 1000 + round);
}

/* From some bytes to more than two of the largest pages. */
static size_t words_of(int32_t rank, int round)
{
    return round % 8 == 7 ? (size_t)5 << 18 : (size_t)(1 + 700 * rank + 900 * round);
}

static sgm_status write_block(sgm__intra_node *node, const member *own, int round, uint32_t **block,
                              size_t *wrong)
{
    size_t words = words_of(own->ranks.rank, round);
    if (round % 3 == 0 || round % 8 == 7 || round % 8 == 0) {
        *block = sgm__intra_node_block(node, 4, words * sizeof **block);
        if (*block == NULL)
            return sgm_last_status();
        *wrong += (uintptr_t)*block % 64 != 0;
        for (size_t i = 0; i < words; i++)
            *wrong += (*block)[i] != 0;
    }
    for (size_t i = 0; i < (round % 3 == 0 || round % 8 == 7 ? words : 1); i++)
        (*block)[i] = word_of(own->ranks.rank, round);
    return SGM_OK;
}

static sgm_status read_blocks(sgm__intra_node *node, int round, size_t *wrong)
{
    for (int32_t rank = 0; rank < RANKS; rank++) {
        const void *memory = NULL;
        SGM_TRY(sgm__intra_node_look(node, rank, 4, &memory));
        const uint32_t *words = memory;
        for (size_t i = 0; i < (round % 3 == 0 || round % 8 == 7 ? words_of(rank, round) : 1); i++)
            *wrong += words[i] != word_of(rank, round);
    }
    return SGM_OK;
}

static sgm_status exchange(sgm__intra_node *node, member *own)
{
    uint32_t *block = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        SGM_TRY(write_block(node, own, round, &block, &own->wrong));
        SGM_TRY(sgm__intra_node_meet(node, "the blocks"));
        SGM_TRY(read_blocks(node, round, &own->wrong));
        SGM_TRY(sgm__intra_node_meet(node, "the end of a round"));
    }
    return SGM_OK;
}

static void *see_each_other(void *argument)
{
    member *own = argument;
    sgm__intra_node *node = NULL;
    own->ranks.options.timeout = 20;
    sgm_status status = sgm__intra_node_open(&own->ranks, true, &node);
    own->found = node != NULL;
    if (node != NULL)
        status = exchange(node, own);
    note_failure(own, status);
    sgm__intra_node_close(node);
    return NULL;
}

TEST(what_was_written_before_a_meeting_is_seen_after_it)
{
    member members[RANKS] = {0};
    run_all(members, see_each_other);
    for (int32_t i = 0; i < RANKS; i++) {
        CHECK_STR(members[i].message, "");
        CHECK(members[i].found);
        CHECK_INT(members[i].wrong, 0);
    }
}

/* --- who is not there --- */

static void *open_only(void *argument)
{
    member *own = argument;
    sgm__intra_node *node = NULL;
    note_failure(own, sgm__intra_node_open(&own->ranks, own->willing, &node));
    own->found = node != NULL;
    sgm__intra_node_close(node);
    return NULL;
}

TEST(nobody_is_intra_node_when_one_is_not)
{
    member members[RANKS] = {{.willing = true}, {.willing = false}, {.willing = true}};
    run_all(members, open_only);
    for (int32_t i = 0; i < RANKS; i++) {
        CHECK_STR(members[i].message, "");
        CHECK(!members[i].found);
    }
}

static void *meet_once(void *argument)
{
    member *own = argument;
    sgm__intra_node *node = NULL;
    sgm_status status = sgm__intra_node_open(&own->ranks, true, &node);
    if (node != NULL && !own->absent)
        status = sgm__intra_node_meet(node, "the gradients");
    note_failure(own, status);
    pthread_barrier_wait(&room.all);
    sgm__intra_node_close(node);
    return NULL;
}

TEST(who_does_not_come_is_named)
{
    member members[RANKS] = {{.absent = false}, {.absent = false}, {.absent = true}};
    run_all(members, meet_once);
    CHECK_STR(members[2].message, "");
    for (int32_t i = 0; i < 2; i++) {
        CHECK(members[i].status == SGM_ERROR_STATE);
        if (strstr(members[i].message, "has waited for the gradients for 0.4 seconds") == NULL ||
            strstr(members[i].message, "there is no answer from rank 2 (thread 2)") == NULL)
            TEST_FAIL("rank 2 is not named: %s", members[i].message);
    }
}
