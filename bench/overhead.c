/* What Sigma takes beside the mathematics, each next to what it is meant to take:
 *
 *   overhead [SECONDS]     of each step that is measured (default 0.3)
 *
 * Steps of small networks, bare and through a trainer; a network that is re-recorded at each iteration
 * beside one that is not; compiling; the time from a process's start to the end of its first step; what a
 * meeting of threads costs; the size of the library. Times are medians. Run it in the project's folder.
 */
#include "base/base.h"
#include "handlers/cpu/pool.h"
#include "random_data.h"
#include "steps.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WARM_UP_STEPS 20
#define LOOPS 2000
#define STARTS 15
#define COMPILES 15

#define LARGE "input(784) + dense(1024, relu) + dense(1024, relu)%s + dense(10) + softmax_cross_entropy"
#define SMALL "input(784) + dense(128, relu) + dense(64, relu)%s + dense(10) + softmax_cross_entropy"
#define IRIS "input(4) + dense(12, relu) + dense(10, relu)%s + dense(3) + softmax_cross_entropy"

static double seconds = 0.3;

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "overhead: %s\n", sgm_last_error());
    exit(1);
}

static void print_row(const char *what, double value, const char *unit, double maximum)
{
    printf("  %-58s %9.3f %-4s", what, value, unit);
    if (maximum > 0)
        printf(" at most %g: %s", maximum, value <= maximum ? "met" : "missed");
    printf("\n");
}

/* --- steps --- */

/* Microseconds of a step through a trainer; `again`: recorded anew at each iteration. */
static double trainer_step(const char *notation, int64_t inputs, int64_t classes, int64_t batch, bool again)
{
    char network[256];
    steps timed = {.warm_up = WARM_UP_STEPS,
                   .minimum = 10,
                   .seconds = seconds,
                   .times = sgm__alloc(MAXIMUM_STEPS * sizeof(double))};
    snprintf(network, sizeof network, notation, again ? " + rerecorded" : "");
    sgm_env *env = sgm_env_create("overhead", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "trainer");
    sgm_dataset *data = random_classes(batch * 16, inputs, classes);
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = batch));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.01));
    sgm_trainer_on_progress(trainer, note_step, &timed);
    check(data != NULL && timed.times != NULL &&
          sgm_trainer_run(trainer, .iterations = 1000000000) == SGM_ERROR_INTERRUPTED);
    double middle = median(timed.times, timed.count) * 1e6;
    sgm_env_free(env);
    sgm_dataset_free(data);
    sgm__free(timed.times);
    return middle;
}

/* Gives what it gets; being dynamic, it makes the whole network so. */
static sgm_value pass_on(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call;
    (void)graph;
    (void)count;
    return inputs[0];
}

static const sgm_layer_type rerecorded = {.api = SGM_LAYER_API,
                                          .flags = SGM_LAYER_DYNAMIC,
                                          .name = "rerecorded",
                                          .doc = "nothing, at each iteration anew",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .forward = pass_on};

/* --- bare programs --- */

static void record_iris(sgm_graph *graph, sgm_session *session)
{
    static const int64_t sizes[] = {4, 12, 10, 3};
    static const char *const names[] = {"w0", "b0", "w1", "b1", "w2", "b2"};
    sgm_shape shape = sgm_shape_of(10, 4), classes = sgm_shape_of(10, 3);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &shape), parameters[6], gradients[6];
    sgm_value targets = sgm_input_value(graph, "targets", SGM_FLOAT32, &classes);
    for (int i = 0; i < 6; i++) {
        shape = i % 2 == 0 ? sgm_shape_of(sizes[i / 2], sizes[i / 2 + 1]) : sgm_shape_of(sizes[i / 2 + 1]);
        sgm_tensor *value = sgm_tensor_create(SGM_FLOAT32, &shape);
        check(value != NULL && sgm_session_set(session, names[i], value) == SGM_OK);
        sgm_tensor_free(value);
        parameters[i] = sgm_state(graph, names[i], SGM_FLOAT32, &shape);
    }
    for (int i = 0; i < 3; i++) {
        x = sgm_add(graph, sgm_matmul(graph, x, parameters[2 * i]), parameters[2 * i + 1]);
        x = i < 2 ? sgm_relu(graph, x) : x;
    }
    sgm_value cost = sgm_mean(graph, sgm_softmax_cross_entropy_values(graph, x, targets));
    sgm_gradients(graph, cost, parameters, 6, gradients);
    for (int i = 0; i < 6; i++)
        sgm_assign(
            graph, parameters[i],
            sgm_subtract(graph, parameters[i], sgm_multiply(graph, sgm_number(graph, 0.1), gradients[i])));
    sgm_graph_add_output(graph, "cost", cost);
    check(sgm_graph_status(graph) == SGM_OK);
}

/* Microseconds of a step of the iris network without a trainer. */
static double bare_step(void)
{
    sgm_handler *handler = sgm_handler_create("cpu");
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    double *times = sgm__alloc(MAXIMUM_STEPS * sizeof(double));
    check(handler != NULL && session != NULL && graph != NULL && times != NULL);
    record_iris(graph, session);
    sgm_program *program = sgm_session_prepare(session, graph);
    sgm_shape shapes[] = {sgm_shape_of(10, 4), sgm_shape_of(10, 3)};
    for (int i = 0; i < 2; i++) {
        sgm_tensor *value = sgm_tensor_create(SGM_FLOAT32, &shapes[i]);
        check(sgm_session_feed(session, program, i == 0 ? "x" : "targets", value) == SGM_OK);
        sgm_tensor_free(value);
    }
    int64_t count = 0;
    for (double began = sgm__now(); count < MAXIMUM_STEPS && sgm__now() - began < seconds;) {
        double before = sgm__now(); /* ten together, as a clock takes a part of such a step */
        for (int i = 0; i < 10; i++)
            check(sgm_session_run(session, program) == SGM_OK);
        times[count++] = (sgm__now() - before) / 10;
    }
    double middle = median(times, (size_t)count) * 1e6;
    sgm__free(times);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
    return middle;
}

/* --- compiling --- */

/* Milliseconds from a recorded graph to a program, of the large network; how many states it had to define is
 * not counted. */
static double compile_large(void)
{
    double times[COMPILES];
    sgm_env *env = sgm_env_create("overhead", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "trainer");
    char network[256];
    snprintf(network, sizeof network, LARGE, "");
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.01));
    check(sgm_trainer_prepare(trainer) == SGM_OK);
    for (int i = 0; i < COMPILES; i++) {
        double before = sgm__now();
        sgm_program_memory memory;
        check(sgm_trainer_memory(trainer, 100 + i, &memory) == SGM_OK); /* each size is another program */
        times[i] = sgm__now() - before;
    }
    sgm_env_free(env);
    return median(times, COMPILES) * 1e3;
}

/* --- the start --- */

static int first_step(void)
{
    sgm_env *env = sgm_env_create("start", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "trainer");
    sgm_trainer_set_network(trainer, "input(8, 8) + dense(256, relu) + dropout(0.4) + dense(10) + "
                                     "softmax_cross_entropy");
    sgm_dataset *digits = sgm_dataset_open("digits");
    sgm_trainer_set_data(trainer, sgm_minibatches(digits, .size = 32));
    sgm_trainer_set_optimiser(trainer, sgm_adam());
    check(sgm_trainer_run(trainer, .iterations = 1) == SGM_OK);
    sgm_env_free(env);
    sgm_dataset_free(digits);
    return 0;
}

static void remove_folder(const char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command) != 0)
        fprintf(stderr, "overhead: %s was left behind\n", path);
}

/* Milliseconds of a whole process, which makes this folder anew; NULL: none. */
static double start_of(const char *const *arguments, const char *folder)
{
    double times[STARTS];
    for (int i = 0; i < STARTS; i++) {
        fflush(stdout);
        if (folder != NULL)
            remove_folder(folder);
        double before = sgm__now();
        pid_t child = fork();
        if (child == 0) {
            if (freopen("/dev/null", "w", stdout) != NULL)
                execv(arguments[0], (char *const *)(uintptr_t)arguments);
            _exit(127);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return -1;
        times[i] = sgm__now() - before;
    }
    return median(times, STARTS) * 1e3;
}

static void print_starts(const char *folder, char *self)
{
    char command[PATH_MAX + 16], runs[] = "/tmp/sigma-overhead-XXXXXX", to[64];
    print_row("a C program's start to the end of its first step",
              start_of((const char *[]){self, "--first", NULL}, NULL), "ms", 50);
    snprintf(command, sizeof command, "%s/../sigma", folder);
    if (access(command, X_OK) != 0 || mkdtemp(runs) == NULL)
        return;
    snprintf(to, sizeof to, "%s/run", runs);
    double took = start_of((const char *[]){command, "train", "examples/digits.yaml", "iterations=1",
                                            "--quiet", "--folder", to, NULL},
                           to);
    if (took >= 0)
        print_row("sigma train of the digits, one step, to its end", took, "ms", 50);
    remove_folder(runs);
}

/* --- threads --- */

static void nothing(void *context, int64_t index, int32_t thread)
{
    (void)context;
    (void)index;
    (void)thread;
}

/* Microseconds of an empty loop of two threads after a pause of so many. */
static double meeting(double pause)
{
    double times[LOOPS];
    sgm__pool *pool = sgm__pool_create(2, false);
    check(pool != NULL);
    for (int i = 0; i < LOOPS; i++) {
        double before = sgm__now();
        while (sgm__now() - before < pause * 1e-6)
            continue;
        before = sgm__now();
        sgm__pool_run(pool, 2, nothing, NULL);
        times[i] = sgm__now() - before;
    }
    sgm__pool_free(pool);
    return median(times, LOOPS) * 1e6;
}

static void print_dynamic(const char *name, const char *notation, int64_t inputs, int64_t classes,
                          int64_t batch, double maximum)
{
    char what[96];
    double once = trainer_step(notation, inputs, classes, batch, false);
    double again = trainer_step(notation, inputs, classes, batch, true);
    snprintf(what, sizeof what, "%s: a step of a trainer", name);
    print_row(what, once, "us", 0);
    snprintf(what, sizeof what, "%s: the same, re-recorded each time", name);
    print_row(what, again, "us", 0);
    snprintf(what, sizeof what, "%s: ratio of the two", name);
    print_row(what, again / once, "", maximum);
}

int main(int argc, char **argv)
{
    char self[PATH_MAX] = "", folder[PATH_MAX], library[PATH_MAX + 32];
    struct stat info;
    if (argc > 1 && strcmp(argv[1], "--first") == 0)
        return first_step();
    if (argc > 1)
        seconds = strtod(argv[1], NULL);
    check(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(folder, sizeof folder, "%s", self);
    dirname(folder);
    check(sgm_register_layer(&rerecorded) == SGM_OK);
    printf("overhead (medians)\n");
    print_row("4-12-10-3, batch 10: a step of a session", bare_step(), "us", 2);
    print_dynamic("4-12-10-3, batch 10", IRIS, 4, 3, 10, 1.1);
    print_dynamic("784-128-64-10, batch 100", SMALL, 784, 10, 100, 1.1);
    print_dynamic("784-1024-1024-10, batch 100", LARGE, 784, 10, 100, 1.1);
    print_row("784-1024-1024-10: recording and compiling a step", compile_large(), "ms", 5);
    print_starts(folder, self);
    print_row("a meeting of two threads that are awake", meeting(0), "us", 0);
    print_row("the same after a pause of 500 us, asleep", meeting(500), "us", 0);
    snprintf(library, sizeof library, "%s/../libsigma.so", folder);
    if (stat(library, &info) == 0)
        print_row("the library, with the names for debugging", (double)info.st_size / 1e6, "MB", 0);
    return 0;
}
