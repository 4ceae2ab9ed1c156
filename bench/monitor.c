/* What the web monitor costs a training step: build/release/bench/monitor [ROUNDS [WORKLOAD]]
 *
 * Steps of three networks without a monitor, with one that nobody looks at, with three pages that listen to
 * everything, and with a client that asks for the events and reads none of them; those who listen are
 * processes of their own. Five trainers, two of them without a monitor, take short turns, so that a machine
 * that becomes faster or slower does so for all: a round (default: 60 of them) is a turn of each. What counts
 * is the median of a turn's share in those of its round without a monitor, which must stay within a
 * hundredth; by how much these two differ is what cannot be measured here.
 */
#include "base/base.h"
#include "measure.h"
#include "random_data.h"
#include <sigma/sigma.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define USUAL_ROUNDS 60
#define MAXIMUM_ROUNDS 10000
#define TURN_SECONDS 0.04
#define MAXIMUM_CLIENTS 3
#define MAXIMUM_SHARE 0.01

typedef struct workload {
    const char *name, *network;
    int64_t inputs, classes, batch;
} workload;

static const workload workloads[] = {
    {"iris", "input(4) + dense(12, relu) + dense(10, relu) + dense(3) + softmax_cross_entropy", 4, 3, 10},
    {"small", "input(784) + dense(128, relu) + dense(64, relu) + dense(10) + softmax_cross_entropy", 784, 10,
     64},
    {"large", "input(784) + dense(1024, relu) + dense(1024, relu) + dense(10) + softmax_cross_entropy", 784,
     10, 128},
};
#define WORKLOADS (sizeof workloads / sizeof *workloads)

typedef struct way {
    const char *name;
    bool monitor;
    int clients;
    bool reads;
} way;

static const way ways[] = {{"without", false, 0, false},
                           {"without, another one", false, 0, false},
                           {"with a monitor", true, 0, false},
                           {"with 3 pages", true, 3, true},
                           {"with a client that reads nothing", true, 1, false}};
#define WAYS (sizeof ways / sizeof *ways)

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "monitor: %s\n", sgm_last_error());
    exit(1);
}

/* --- who watches --- */

/* Asks for the events, and reads them until it is killed; or only asks. */
static void watch(const char *url, bool reads)
{
    char buffer[65536], request[512];
    const char *colon = strrchr(url, ':'), *token = strstr(url, "token=") + 6;
    int port = atoi(colon + 1), descriptor = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int length = snprintf(request, sizeof request,
                          "GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer "
                          "%s\r\n\r\n",
                          port, token);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (connect(descriptor, (const struct sockaddr *)&address, sizeof address) != 0 ||
        send(descriptor, request, (size_t)length, 0) != length)
        _exit(1);
    while (reads && recv(descriptor, buffer, sizeof buffer, 0) > 0)
        continue;
    for (;;)
        pause();
}

static void begin_watching(const char *url, const way *w, pid_t *clients)
{
    for (int i = 0; i < w->clients; i++) {
        clients[i] = fork();
        if (clients[i] == 0)
            watch(url, w->reads);
        check(clients[i] > 0);
    }
}

static void end_watching(const way *w, const pid_t *clients)
{
    for (int i = 0; i < w->clients; i++) {
        kill(clients[i], SIGKILL);
        waitpid(clients[i], NULL, 0);
    }
}

/* --- what is watched --- */

/* Seconds of an iteration. */
static double time_steps(sgm_env *env, sgm_trainer *trainer, int64_t steps)
{
    int64_t before;
    check(sgm_registry_get_integer(sgm_trainer_registry(trainer), "iteration", &before) == SGM_OK);
    double start = now();
    check(sgm_env_run(env, .iterations = before + steps) == SGM_OK);
    return (now() - start) / (double)steps;
}

typedef struct runner {
    sgm_env *env;
    sgm_trainer *trainer;
    pid_t clients[MAXIMUM_CLIENTS];
} runner;

static runner begin(const workload *work, const way *w, sgm_dataset *data)
{
    runner made = {.env = sgm_env_create("bench", .seed = 1)};
    made.trainer = sgm_trainer_create(made.env, "trainer");
    sgm_trainer_set_network(made.trainer, work->network);
    sgm_trainer_set_data(made.trainer, sgm_minibatches(data, .size = work->batch));
    sgm_trainer_set_optimiser(made.trainer, sgm_gradient_descent(.learning_rate = 0.001));
    sgm_monitor *monitor = w->monitor ? sgm_web_monitor(.quiet = true) : NULL;
    check(made.env != NULL && (!w->monitor || sgm_env_add_monitor(made.env, monitor) == SGM_OK));
    check(sgm_env_prepare(made.env) == SGM_OK);
    begin_watching(w->monitor ? sgm_web_monitor_url(monitor) : "", w, made.clients);
    return made;
}

static void print_way(const workload *work, size_t index, double *times, double *shares, size_t rounds)
{
    double share = median(shares, rounds) - 1;
    printf("  %-8s %-34s %12.3f us", index == 0 ? work->name : "", ways[index].name,
           median(times, rounds) * 1e6);
    if (index == 0)
        printf("\n");
    else if (index == 1)
        printf(" %+7.2f %%, noise\n", 100 * share);
    else
        printf(" %+7.2f %%, at most 1 %%: %s\n", 100 * share, share <= MAXIMUM_SHARE ? "met" : "missed");
}

static void measure(const workload *work, size_t rounds)
{
    runner runners[WAYS];
    double *times[WAYS], *shares[WAYS];
    sgm_dataset *data = random_classes(work->batch * 200, work->inputs, work->classes);
    check(data != NULL);
    for (size_t i = 0; i < WAYS; i++) {
        runners[i] = begin(work, &ways[i], data);
        times[i] = sgm__calloc(rounds, sizeof(double));
        shares[i] = sgm__calloc(rounds, sizeof(double));
        check(times[i] != NULL && shares[i] != NULL);
        time_steps(runners[i].env, runners[i].trainer, 20);
    }
    double step = time_steps(runners[0].env, runners[0].trainer, 100);
    int64_t steps = 10 + (int64_t)(TURN_SECONDS / step);
    for (size_t i = 0; i < WAYS; i++)
        time_steps(runners[i].env, runners[i].trainer, steps);
    for (size_t round = 0; round < rounds; round++)
        for (size_t turn = 0; turn < WAYS; turn++) {
            size_t i = (turn + round) % WAYS; /* each comes first, at times */
            times[i][round] = time_steps(runners[i].env, runners[i].trainer, steps);
        }
    for (size_t i = 0; i < WAYS; i++)
        for (size_t round = 0; round < rounds; round++)
            shares[i][round] = times[i][round] / (times[0][round] + times[1][round]) * 2;
    for (size_t i = 0; i < WAYS; i++) {
        print_way(work, i, times[i], shares[i], rounds);
        end_watching(&ways[i], runners[i].clients);
        sgm_env_free(runners[i].env);
    }
    for (size_t i = 0; i < WAYS; i++) {
        sgm__free(times[i]);
        sgm__free(shares[i]);
    }
    fflush(stdout);
    sgm_dataset_free(data);
}

int main(int argc, char **argv)
{
    int64_t rounds = USUAL_ROUNDS;
    if (argc > 1 && (!sgm__parse_int64(argv[1], &rounds) || rounds < 1 || rounds > MAXIMUM_ROUNDS)) {
        fprintf(stderr, "monitor: expected 1 to %d rounds, got '%s'\n", MAXIMUM_ROUNDS, argv[1]);
        return 2;
    }
    printf("A training step and the web monitor, %lld rounds of turns of %g s:\n", (long long)rounds,
           TURN_SECONDS);
    for (size_t i = 0; i < WORKLOADS; i++)
        if (argc < 3 || strcmp(argv[2], workloads[i].name) == 0)
            measure(&workloads[i], (size_t)rounds);
    return 0;
}
