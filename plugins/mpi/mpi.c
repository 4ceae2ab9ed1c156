/* Ranks by MPI: Open MPI, MPICH and what is built like them. Works are non-blocking collectives. */
#include "training/communicator.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MOST_WORKS 256
#define REST 20e-6 /* seconds between two looks: messages go on only while somebody looks */
enum { TAG_CALL = 1, TAG_HERE = 2 };

typedef struct group {
    MPI_Comm works, apart, calls; /* the last one for who asks whom */
    int rank, size;
    MPI_Request requests[MOST_WORKS];
    bool used[MOST_WORKS];
    char (*places)[SGM_COMMUNICATOR_NAME];
    bool *here; /* answered the call of now */
    double looked;
} group;

static char library_name[MPI_MAX_LIBRARY_VERSION_STRING];
static MPI_Op sum_bfloat16;
static bool joined, failed;

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

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        sgm_communicator_result try_result = check(call, #call, message);                                    \
        if (try_result != SGM_COMMUNICATOR_OK)                                                               \
            return try_result;                                                                               \
    } while (0)

/* --- joining and leaving --- */

/* A process that fails leaves without the others' consent: the launcher sees that and ends them. */
static void leave(int status, void *unused)
{
    int initialised = 0, finalised = 0;
    (void)unused;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (initialised && !finalised && !failed && status == 0)
        MPI_Finalize();
}

static float widen(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* To nearest, halves to even; what is no number stays so. */
static uint16_t narrow(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static void add_bfloat16(void *from, void *to, int *count, MPI_Datatype *type)
{
    const uint16_t *a = from;
    uint16_t *b = to;
    (void)type;
    for (int i = 0; i < *count; i++)
        b[i] = narrow(widen(a[i]) + widen(b[i]));
}

/* Open MPI sums in place by a tree, in which each link is used one way at a time. Rabenseifner's algorithm
 * (2004) uses both ways, and its latency grows with the logarithm of the ranks. */
static void prefer_algorithm(void)
{
    setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3", 0);
}

static sgm_communicator_result join(char *message)
{
    int initialised = 0, given = 0, length = 0;
    if (joined)
        return SGM_COMMUNICATOR_OK;
    MPI_Initialized(&initialised);
    if (!initialised) {
        prefer_algorithm();
        TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given));
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

static void close_link(void *self)
{
    group *l = self;
    if (l == NULL)
        return;
    for (int i = 0; i < MOST_WORKS && !failed; i++)
        if (l->used[i])
            failed = true; /* somebody did not come: do not wait for all at the end either */
    if (!failed && l->calls != MPI_COMM_NULL)
        MPI_Comm_free(&l->calls);
    if (!failed && l->apart != MPI_COMM_NULL)
        MPI_Comm_free(&l->apart);
    if (!failed && l->works != MPI_COMM_NULL)
        MPI_Comm_free(&l->works);
    free(l->places);
    free(l->here);
    free(l);
}

static sgm_communicator_result open_communicators(group *l, char *message)
{
    char own[SGM_COMMUNICATOR_NAME] = "", host[64] = "";
    TRY(MPI_Comm_dup(MPI_COMM_WORLD, &l->works));
    TRY(MPI_Comm_set_errhandler(l->works, MPI_ERRORS_RETURN));
    TRY(MPI_Comm_dup(l->works, &l->apart));
    TRY(MPI_Comm_dup(l->works, &l->calls));
    TRY(MPI_Comm_rank(l->works, &l->rank));
    TRY(MPI_Comm_size(l->works, &l->size));
    l->places = calloc((size_t)l->size, sizeof *l->places);
    l->here = calloc((size_t)l->size, sizeof *l->here);
    if (l->places == NULL || l->here == NULL) {
        snprintf(message, SGM_COMMUNICATOR_MESSAGE, "out of memory");
        return SGM_COMMUNICATOR_FAILED;
    }
    gethostname(host, sizeof host - 1);
    snprintf(own, sizeof own, "%s, process %ld", host, (long)getpid());
    TRY(MPI_Allgather(own, sizeof own, MPI_BYTE, l->places, sizeof own, MPI_BYTE, l->works));
    return SGM_COMMUNICATOR_OK;
}

static sgm_communicator_result open_link(void **self, int32_t *rank, int32_t *size, char *message)
{
    sgm_communicator_result result = join(message);
    if (result != SGM_COMMUNICATOR_OK)
        return result;
    group *l = calloc(1, sizeof *l);
    if (l == NULL) {
        snprintf(message, SGM_COMMUNICATOR_MESSAGE, "out of memory");
        return SGM_COMMUNICATOR_FAILED;
    }
    l->works = l->apart = l->calls = MPI_COMM_NULL;
    result = open_communicators(l, message);
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

static const char *place(void *self, int32_t rank)
{
    const group *l = self;
    return l->places[rank];
}

/* --- works --- */

/* `test` waits for what begins here. NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
static sgm_communicator_result start(void *self, const sgm_communicator_work *work, int32_t *ticket,
                                     char *message)
{
    static const struct {
        MPI_Datatype type;
    } types[] = {{MPI_FLOAT}, {MPI_DOUBLE}, {MPI_UINT16_T}, {MPI_BYTE}};
    group *l = self;
    int32_t free_one = 0;
    MPI_Datatype type = types[work->type].type;
    MPI_Op sum = work->type == SGM_COMMUNICATOR_BFLOAT16 ? sum_bfloat16 : MPI_SUM;
    while (free_one < MOST_WORKS && l->used[free_one])
        free_one++;
    if (free_one == MOST_WORKS || work->count > INT_MAX) {
        snprintf(message, SGM_COMMUNICATOR_MESSAGE,
                 "too much at once: %llu elements, at most %d works are under way",
                 (unsigned long long)work->count, MOST_WORKS);
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
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* --- who is there --- */

/* Does not wait: who is addressed may never take it. NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
static int send_sign(group *l, int to, int tag)
{
    MPI_Request request;
    int code = MPI_Isend(NULL, 0, MPI_BYTE, to, tag, l->calls, &request);
    return code == MPI_SUCCESS ? MPI_Request_free(&request) : code;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* Answers those who call, and notes who answers. */
static sgm_communicator_result listen(group *l, char *message)
{
    for (;;) {
        int there = 0;
        MPI_Status status;
        TRY(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, l->calls, &there, &status));
        if (!there)
            return SGM_COMMUNICATOR_OK;
        TRY(MPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, l->calls, MPI_STATUS_IGNORE));
        if (status.MPI_TAG == TAG_CALL)
            TRY(send_sign(l, status.MPI_SOURCE, TAG_HERE));
        else
            l->here[status.MPI_SOURCE] = true;
    }
}

/* A short rest is one, instead of what the system finds convenient. */
static void rest_exactly(void)
{
    static _Thread_local bool set;
    if (!set)
        prctl(PR_SET_TIMERSLACK, 1000UL);
    set = true;
}

static sgm_communicator_result test(void *self, int32_t ticket, double seconds, bool *done, char *message)
{
    group *l = self;
    double began = 0, rest = REST;
    rest_exactly();
    for (;;) {
        int ended = 0;
        if (ticket != SGM_COMMUNICATOR_NO_WORK) {
            TRY(MPI_Test(&l->requests[ticket], &ended, MPI_STATUS_IGNORE));
            l->used[ticket] = !ended;
        }
        *done = ended != 0;
        if (ended || seconds <= 0)
            return SGM_COMMUNICATOR_OK;
        double moment = now();
        began = began > 0 ? began : moment;
        if (moment - began >= seconds)
            return SGM_COMMUNICATOR_OK;
        if (moment - l->looked > 0.02) {
            l->looked = moment;
            sgm_communicator_result result = listen(l, message);
            if (result != SGM_COMMUNICATOR_OK)
                return result;
        }
        /* Others may need this processor more. */
        pause_for(rest);
        rest = moment - began > 1 ? 1e-3 : REST;
    }
}

static sgm_communicator_result call(void *self, double seconds, bool *silent, char *message)
{
    group *l = self;
    double until = now() + seconds;
    int missing = l->size - 1;
    memset(l->here, 0, (size_t)l->size * sizeof *l->here);
    l->here[l->rank] = true;
    for (int i = 0; i < l->size; i++)
        if (i != l->rank)
            TRY(send_sign(l, i, TAG_CALL));
    while (missing > 0 && now() < until) {
        sgm_communicator_result result = listen(l, message);
        if (result != SGM_COMMUNICATOR_OK)
            return result;
        missing = 0;
        for (int i = 0; i < l->size; i++)
            missing += !l->here[i];
        pause_for(1e-3);
    }
    for (int i = 0; i < l->size; i++)
        silent[i] = !l->here[i];
    return SGM_COMMUNICATOR_OK;
}

static void fail(void *self)
{
    (void)self;
    failed = true;
}

__attribute__((visibility("default"))) const sgm_communicator *sgm_plugin_mpi(void);

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
