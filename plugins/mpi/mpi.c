/* Carries numbers between processes by MPI (Open MPI, MPICH and what is built like them): the table of
 * functions that the plug-in gives (sgm_plugin_mpi, src/parallel/collective/communicator.h).
 *
 * Which numbers, and when, is decided by src/parallel/collective. A work is a non-blocking collective,
 * which goes on only while somebody calls MPI: `test` looks again and again. Trainers may run side by
 * side, each with communicators of its own (a group), but MPI is initialised with MPI_THREAD_SERIALIZED:
 * one thread at a time calls it, the one that holds `door`, and waiting is done without it. MPI_Init comes
 * once in a process, with the first `open`. */
#include "parallel/collective/communicator.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MAXIMUM_WORKS 256  /* under way at once, of one group */
#define REST 20e-6         /* seconds between two looks: messages go on only while somebody looks */
#define ANSWER_SECONDS 1.0 /* that a rank has to say that it is there */
/* Tags of messages between ranks. While ranks open, these go over MPI_COMM_WORLD, where the program's own
 * messages may be, too: numbers that nobody else is likely to use. */
enum { TAG_CALL = 23171, TAG_HERE = 23172 };

/* What one `open` has given: communicators of its own, so that the works of several trainers are kept
 * apart. `works` carries most; `apart` those works that other ranks may start at another point of the
 * order; `calls` the questions who is there. Requests are indexed by tickets. */
typedef struct group {
    MPI_Comm works, apart, calls; /* the last one for who asks whom */
    int rank, size;
    MPI_Request requests[MAXIMUM_WORKS];
    bool used[MAXIMUM_WORKS];
    char (*places)[SGM_COMMUNICATOR_NAME];
    bool *here;    /* of each rank: it has answered the newest call */
    double looked; /* when calls were last listened for, as now() tells */
} group;

static char library_name[MPI_MAX_LIBRARY_VERSION_STRING];
static MPI_Op sum_bfloat16;
static bool joined, failed; /* of the process: MPI is ready; some rank did not come or has failed */
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;

/* Seconds of a clock that nobody sets. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void pause_for(double seconds)
{
    nanosleep(&(struct timespec){0, (long)(seconds * 1e9)}, NULL);
}

/* MPI's error as a sentence behind the call that failed. */
static sgm_communicator_result check(int code, const char *what, char *message)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return SGM_COMMUNICATOR_OK;
    MPI_Error_string(code, text, &length);
    snprintf(message, SGM_COMMUNICATOR_MESSAGE, "%s: %s", what, text);
    return SGM_COMMUNICATOR_FAILED;
}

/* Returns from the function with the error if an MPI call fails. */
#define TRY(call)                                                                                            \
    do {                                                                                                     \
        sgm_communicator_result try_result = check(call, #call, message);                                    \
        if (try_result != SGM_COMMUNICATOR_OK)                                                               \
            return try_result;                                                                               \
    } while (0)

/* Makes the call with the door closed behind this thread, and returns its failure. It must not be used
 * while the door is held. */
#define BEHIND_DOOR(call)                                                                                    \
    do {                                                                                                     \
        pthread_mutex_lock(&door);                                                                           \
        sgm_communicator_result door_result = call;                                                          \
        pthread_mutex_unlock(&door);                                                                         \
        if (door_result != SGM_COMMUNICATOR_OK)                                                              \
            return door_result;                                                                              \
    } while (0)

/* --- joining and leaving --- */

/* At the process's exit. After a failure MPI_Finalize would wait for ranks that do not come; a process
 * that ends without it makes the launcher end the others. */
static void leave(int status, void *unused)
{
    int initialised = 0, finalised = 0;
    (void)unused;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (initialised && !finalised && !failed && status == 0)
        MPI_Finalize();
}

/* bfloat16 is the upper half of a float. */
static float widen(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Rounds to nearest, halves to even. NaN keeps a bit of its fraction, or it might become infinity. */
static uint16_t narrow(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* The sum that MPI does not have: each addition in float, rounded to bfloat16. */
static void add_bfloat16(void *from, void *to, int *count, MPI_Datatype *type)
{
    const uint16_t *a = from;
    uint16_t *b = to;
    (void)type;
    for (int i = 0; i < *count; i++)
        b[i] = narrow(widen(a[i]) + widen(b[i]));
}

/* Open MPI sums in place by a tree, in which each link is used one way at a time. Rabenseifner's algorithm
 * (2004) uses both ways, and its latency grows with the logarithm of the ranks. What the user has set
 * stays. */
static void prefer_algorithm(void)
{
    setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3", 0);
}

/* MPI_Init waits for all processes, however long: so it runs on a thread of its own, which is left to
 * itself where not all come. What it returns is handed over here. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t returned;
    int code, given;
    bool done;
} beginning = {.lock = PTHREAD_MUTEX_INITIALIZER, .returned = PTHREAD_COND_INITIALIZER};

static void *initialise(void *unused)
{
    int given = 0, code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    pthread_mutex_lock(&beginning.lock);
    beginning.code = code;
    beginning.given = given;
    beginning.done = true;
    pthread_cond_broadcast(&beginning.returned);
    pthread_mutex_unlock(&beginning.lock);
    return unused;
}

/* Waits at most so long for MPI_Init; false: it has not returned. */
static bool wait_for_beginning(double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    double end = (double)until.tv_nsec * 1e-9 + seconds;
    until.tv_sec += (time_t)end;
    until.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
    pthread_mutex_lock(&beginning.lock);
    for (int error = 0; !beginning.done && error == 0;)
        error = pthread_cond_timedwait(&beginning.returned, &beginning.lock, &until);
    bool done = beginning.done;
    pthread_mutex_unlock(&beginning.lock);
    return done;
}

/* Initialises MPI, within `seconds`. *given: which threads may call it. */
static sgm_communicator_result begin(double seconds, int *given, char *message)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, initialise, NULL);
    if (error != 0) {
        char text[128];
        snprintf(message, SGM_COMMUNICATOR_MESSAGE, "there is no thread for MPI_Init: %s",
                 strerror_r(error, text, sizeof text));
        return SGM_COMMUNICATOR_FAILED;
    }
    pthread_detach(thread);
    if (!wait_for_beginning(seconds)) {
        failed = true;
        snprintf(message, SGM_COMMUNICATOR_MESSAGE,
                 "MPI_Init has waited for %g seconds (operator.timeout): not all processes that the launcher "
                 "has started join; each needs an operator 'mpi', and makes as many of them as the others",
                 seconds);
        return SGM_COMMUNICATOR_FAILED;
    }
    *given = beginning.given;
    return check(beginning.code, "MPI_Init_thread", message);
}

/* Makes MPI ready, once in a process; with the door. A program that has initialised MPI itself keeps it.
 * After a failure there is no second try: MPI cannot be initialised twice. */
static sgm_communicator_result join(double seconds, char *message)
{
    int initialised = 0, given = 0, length = 0;
    if (failed) {
        snprintf(message, SGM_COMMUNICATOR_MESSAGE, "they have failed before");
        return SGM_COMMUNICATOR_FAILED;
    }
    if (joined)
        return SGM_COMMUNICATOR_OK;
    MPI_Initialized(&initialised);
    if (!initialised) {
        prefer_algorithm();
        sgm_communicator_result result = begin(seconds, &given, message);
        if (result != SGM_COMMUNICATOR_OK)
            return result;
        on_exit(leave, NULL);
        TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)); /* where requests tell of errors */
    } else {
        TRY(MPI_Query_thread(&given));
    }
    if (given < MPI_THREAD_SERIALIZED) {
        snprintf(message, SGM_COMMUNICATOR_MESSAGE,
                 "this MPI lets only its first thread call it (MPI_THREAD_SERIALIZED is needed)");
        return SGM_COMMUNICATOR_FAILED;
    }
    TRY(MPI_Op_create(add_bfloat16, 1, &sum_bfloat16));
    MPI_Get_library_version(library_name, &length);
    library_name[strcspn(library_name, ",\n")] = '\0';
    joined = true;
    return SGM_COMMUNICATOR_OK;
}

/* --- works --- */

/* Starts a collective in a free place, whose index is the ticket. All ranks start the same works of a
 * communicator in the same order; `test` waits for them. Counts are int in MPI, so a work is below 2^31
 * elements. With the door. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
static sgm_communicator_result start_work(group *l, const sgm_communicator_work *work, int32_t *ticket,
                                          char *message)
{
    static const struct {
        MPI_Datatype type;
    } types[] = {{MPI_FLOAT}, {MPI_DOUBLE}, {MPI_UINT16_T}, {MPI_BYTE}};
    int32_t free_one = 0;
    MPI_Datatype type = types[work->type].type;
    MPI_Op sum = work->type == SGM_COMMUNICATOR_BFLOAT16 ? sum_bfloat16 : MPI_SUM;
    while (free_one < MAXIMUM_WORKS && l->used[free_one])
        free_one++;
    if (free_one == MAXIMUM_WORKS || work->count > INT_MAX) {
        snprintf(message, SGM_COMMUNICATOR_MESSAGE,
                 "too much at once: %llu elements, at most %d works are under way",
                 (unsigned long long)work->count, MAXIMUM_WORKS);
        return SGM_COMMUNICATOR_FAILED;
    }
    int count = (int)work->count;
    MPI_Comm among = work->apart ? l->apart : l->works;
    MPI_Request *request = &l->requests[free_one];
    switch (work->kind) {
    case SGM_COMMUNICATOR_SUM:
        TRY(MPI_Iallreduce(MPI_IN_PLACE, work->data, count, type, sum, among, request));
        break;
    case SGM_COMMUNICATOR_REDUCE:
        TRY(MPI_Ireduce(l->rank == work->root ? MPI_IN_PLACE : work->data,
                        l->rank == work->root ? work->data : NULL, count, type, sum, work->root, among,
                        request));
        break;
    case SGM_COMMUNICATOR_BROADCAST:
        TRY(MPI_Ibcast(work->data, count, type, work->root, among, request));
        break;
    case SGM_COMMUNICATOR_GATHER:
        TRY(MPI_Iallgather(MPI_IN_PLACE, 0, type, work->data, count, type, among, request));
        break;
    }
    l->used[free_one] = true;
    *ticket = free_one;
    return SGM_COMMUNICATOR_OK;
}

/* The interface's function: start_work behind the door. */
static sgm_communicator_result start(void *self, const sgm_communicator_work *work, int32_t *ticket,
                                     char *message)
{
    BEHIND_DOOR(start_work(self, work, ticket, message));
    return SGM_COMMUNICATOR_OK;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* --- who is there --- */

/* Sends an empty message without waiting, as the rank that it is for may never take it; MPI frees the request
 * when it is done. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
static int send_sign(group *l, int to, int tag)
{
    MPI_Request request;
    int code = MPI_Isend(NULL, 0, MPI_BYTE, to, tag, l->calls, &request);
    return code == MPI_SUCCESS ? MPI_Request_free(&request) : code;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* Takes all messages of a tag that have come: answers a call, or notes an answer. With the door. */
static sgm_communicator_result hear(group *l, int tag, char *message)
{
    for (;;) {
        int there = 0;
        MPI_Status status;
        TRY(MPI_Iprobe(MPI_ANY_SOURCE, tag, l->calls, &there, &status));
        if (!there)
            return SGM_COMMUNICATOR_OK;
        TRY(MPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, tag, l->calls, MPI_STATUS_IGNORE));
        if (tag == TAG_CALL)
            TRY(send_sign(l, status.MPI_SOURCE, TAG_HERE));
        else
            l->here[status.MPI_SOURCE] = true;
    }
}

/* Answers the ranks that call, and notes those that answer. With the door. */
static sgm_communicator_result listen(group *l, char *message)
{
    sgm_communicator_result result = hear(l, TAG_CALL, message);
    return result == SGM_COMMUNICATOR_OK ? hear(l, TAG_HERE, message) : result;
}

/* Asks all others whether they are there. With the door. */
static sgm_communicator_result call_all(group *l, char *message)
{
    memset(l->here, 0, (size_t)l->size * sizeof *l->here);
    l->here[l->rank] = true;
    for (int i = 0; i < l->size; i++)
        if (i != l->rank)
            TRY(send_sign(l, i, TAG_CALL));
    return SGM_COMMUNICATOR_OK;
}

/* Which ranks do not answer within `seconds`: those that are in `test` or `call` answer, so a silent one
 * is gone, stopped, or busy with something else. It takes no longer than the last answer. */
static sgm_communicator_result call(void *self, double seconds, bool *silent, char *message)
{
    group *l = self;
    double until = now() + seconds;
    int missing = l->size - 1;
    BEHIND_DOOR(call_all(l, message));
    while (missing > 0 && now() < until) {
        BEHIND_DOOR(listen(l, message));
        missing = 0;
        for (int i = 0; i < l->size; i++)
            missing += !l->here[i];
        pause_for(1e-3);
    }
    for (int i = 0; i < l->size; i++)
        silent[i] = !l->here[i];
    return SGM_COMMUNICATOR_OK;
}

/* Makes the system's timers exact to a microsecond for this thread: otherwise it may add 50 microseconds
 * to each rest, more than the rest itself. */
static void rest_exactly(void)
{
    static _Thread_local bool set;
    if (!set)
        prctl(PR_SET_TIMERSLACK, 1000UL);
    set = true;
}

/* One look, with the door: whether the work is done, and, every 20 ms, whether somebody calls. A work that
 * is done gives its ticket back. */
static sgm_communicator_result look(group *l, int32_t ticket, double moment, bool *done, char *message)
{
    int ended = 0;
    if (ticket != SGM_COMMUNICATOR_NO_WORK) {
        TRY(MPI_Test(&l->requests[ticket], &ended, MPI_STATUS_IGNORE));
        l->used[ticket] = !ended;
    }
    *done = ended != 0;
    if (ended || moment - l->looked <= 0.02)
        return SGM_COMMUNICATOR_OK;
    l->looked = moment;
    return listen(l, message);
}

/* Looks until the work is done or `seconds` are over, with a rest between two looks: other threads may
 * need the processor, and the door. After a second the rest is longer, since the end is far. */
static sgm_communicator_result test(void *self, int32_t ticket, double seconds, bool *done, char *message)
{
    double began = seconds > 0 ? now() : 0, moment = began;
    rest_exactly();
    for (;;) {
        BEHIND_DOOR(look(self, ticket, moment, done, message));
        if (*done || seconds <= 0)
            return SGM_COMMUNICATOR_OK;
        moment = now();
        if (moment - began >= seconds)
            return SGM_COMMUNICATOR_OK;
        /* Others may need this processor more. */
        pause_for(moment - began > 1 ? 1e-3 : REST);
    }
}

/* --- opening and closing --- */

/* Works that are still under way mean that a rank did not come. Communicators are not freed then, as that
 * would wait for all. With the door. */
static void release(group *l)
{
    MPI_Comm *const all[] = {&l->calls, &l->apart, &l->works};
    for (int i = 0; i < MAXIMUM_WORKS; i++)
        failed |= l->used[i]; /* somebody did not come: do not wait for all at the end either */
    for (int i = 0; i < 3 && !failed; i++)
        if (*all[i] != MPI_COMM_NULL && *all[i] != MPI_COMM_WORLD)
            MPI_Comm_free(all[i]);
    free(l->places);
    free(l->here);
    free(l);
}

/* Closes what `open` has given; MPI itself stays until the process ends. */
static void close_link(void *self)
{
    if (self == NULL)
        return;
    pthread_mutex_lock(&door);
    release(self);
    pthread_mutex_unlock(&door);
}

/* The message of an opening that took too long: names the ranks that do not answer, which are not in an
 * opening. */
static sgm_communicator_result fail_opening(group *l, double seconds, char *message)
{
    bool *silent = calloc((size_t)l->size, sizeof *silent);
    if (silent == NULL || call(l, ANSWER_SECONDS, silent, message) != SGM_COMMUNICATOR_OK) {
        free(silent);
        return SGM_COMMUNICATOR_FAILED;
    }
    int length = snprintf(message, SGM_COMMUNICATOR_MESSAGE,
                          "rank %d has waited for %g seconds (operator.timeout), and there is no answer from",
                          l->rank, seconds);
    for (int i = 0; i < l->size && length < SGM_COMMUNICATOR_MESSAGE / 2; i++)
        if (silent[i])
            length += snprintf(message + length, SGM_COMMUNICATOR_MESSAGE - (size_t)length, " rank %d,", i);
    snprintf(message + length, SGM_COMMUNICATOR_MESSAGE - (size_t)length,
             " which has to make as many operators 'mpi' as the others");
    free(silent);
    return SGM_COMMUNICATOR_FAILED;
}

/* Waits for the collective that was begun in place 0. */
static sgm_communicator_result wait_opening(group *l, double until, double seconds, char *message)
{
    bool done = false;
    l->used[0] = true;
    sgm_communicator_result result = test(l, 0, until - now(), &done, message);
    return result != SGM_COMMUNICATOR_OK || done ? result : fail_opening(l, seconds, message);
}

/* With the door. */
static sgm_communicator_result begin_copy(group *l, MPI_Comm from, MPI_Comm *to, char *message)
{
    TRY(MPI_Comm_idup(from, to, &l->requests[0]));
    return SGM_COMMUNICATOR_OK;
}

/* A new communicator must be told to return its errors; the default ends the process. With the door. */
static sgm_communicator_result end_copy(MPI_Comm made, MPI_Comm *to, char *message)
{
    *to = made;
    TRY(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN));
    return SGM_COMMUNICATOR_OK;
}

/* Duplicates a communicator, which all ranks do together, without waiting for them in MPI. */
static sgm_communicator_result copy(group *l, MPI_Comm from, MPI_Comm *to, double until, double seconds,
                                    char *message)
{
    MPI_Comm made = MPI_COMM_NULL;
    BEHIND_DOOR(begin_copy(l, from, &made, message));
    sgm_communicator_result result = wait_opening(l, until, seconds, message);
    if (result == SGM_COMMUNICATOR_OK)
        BEHIND_DOOR(end_copy(made, to, message));
    return result;
}

/* Tells all ranks where this one is: its host and process. With the door. */
static sgm_communicator_result begin_places(group *l, char *message)
{
    char *own = l->places[l->rank], host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(own, sizeof *l->places, "%s, process %ld", host, (long)getpid());
    TRY(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, l->places, sizeof *l->places, MPI_BYTE, l->works,
                       &l->requests[0]));
    return SGM_COMMUNICATOR_OK;
}

/* Rank, number of ranks, and the lists that depend on it. With the door. */
static sgm_communicator_result begin_opening(group *l, double seconds, char *message)
{
    sgm_communicator_result result = join(seconds, message);
    if (result != SGM_COMMUNICATOR_OK)
        return result;
    TRY(MPI_Comm_rank(MPI_COMM_WORLD, &l->rank));
    TRY(MPI_Comm_size(MPI_COMM_WORLD, &l->size));
    l->places = calloc((size_t)l->size, sizeof *l->places);
    l->here = calloc((size_t)l->size, sizeof *l->here);
    if (l->places != NULL && l->here != NULL)
        return SGM_COMMUNICATOR_OK;
    snprintf(message, SGM_COMMUNICATOR_MESSAGE, "out of memory");
    return SGM_COMMUNICATOR_FAILED;
}

/* Opens the three communicators one after the other. `calls` is taken into use last: until then questions
 * go over MPI_COMM_WORLD, where also ranks hear them that have come less far. */
static sgm_communicator_result open_all(group *l, double seconds, char *message)
{
    double until = now() + seconds;
    MPI_Comm calls = MPI_COMM_NULL;
    BEHIND_DOOR(begin_opening(l, seconds, message));
    sgm_communicator_result result = copy(l, MPI_COMM_WORLD, &l->works, until, seconds, message);
    if (result == SGM_COMMUNICATOR_OK)
        result = copy(l, l->works, &l->apart, until, seconds, message);
    if (result == SGM_COMMUNICATOR_OK)
        result = copy(l, l->works, &calls, until, seconds, message);
    if (result != SGM_COMMUNICATOR_OK)
        return result;
    BEHIND_DOOR(begin_places(l, message));
    result = wait_opening(l, until, seconds, message);
    l->calls = result == SGM_COMMUNICATOR_OK ? calls : l->calls;
    return result;
}

/* A failed opening fails the process: some ranks may have what others lack. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): `test` has waited for what was begun. */
static sgm_communicator_result open_link(void **self, int32_t *rank, int32_t *size, double seconds,
                                         char *message)
{
    group *l = calloc(1, sizeof *l);
    if (l == NULL) {
        snprintf(message, SGM_COMMUNICATOR_MESSAGE, "out of memory");
        return SGM_COMMUNICATOR_FAILED;
    }
    l->works = l->apart = MPI_COMM_NULL;
    l->calls = MPI_COMM_WORLD; /* until there is one for it */
    sgm_communicator_result result = open_all(l, seconds, message);
    if (result != SGM_COMMUNICATOR_OK) {
        failed = true;
        close_link(l);
        return result;
    }
    *self = l;
    *rank = l->rank;
    *size = l->size;
    return SGM_COMMUNICATOR_OK;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* "host, process 123": all ranks have told each other when they opened. */
static const char *place(void *self, int32_t rank)
{
    const group *l = self;
    return l->places[rank];
}

/* From here on nothing at the process's end waits for the other ranks. */
static void fail(void *self)
{
    (void)self;
    failed = true;
}

__attribute__((visibility("default"))) const sgm_communicator *sgm_plugin_mpi(void);

/* The only name that the plug-in exports. `name` is filled in by the first `open`. */
const sgm_communicator *sgm_plugin_mpi(void)
{
    static const sgm_communicator table = {.version = SGM_COMMUNICATOR_VERSION,
                                           .name = library_name,
                                           .open = open_link,
                                           .close = close_link,
                                           .place = place,
                                           .start = start,
                                           .test = test,
                                           .call = call,
                                           .fail = fail};
    return &table;
}
