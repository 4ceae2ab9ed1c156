/* Time of a training step of any network, through the trainer, as a user's program would have it: data fed by
 * an iterator, forward, backward, update.
 *
 *   step [-n NOTATION] [-o TYPE] [-b BATCH] [-t THREADS] [-h HANDLER] [-s SECONDS]
 *
 * Prints the median of a step in microseconds, its 10th and 90th percentile, and the process's largest memory
 * in MB. Inputs are uniform random numbers, targets random classes, of as many records as fit a few
 * minibatches.
 */
#include <sigma/sigma.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_STEPS 200000
#define LEAST_STEPS 20
#define WARM_UP_STEPS 5
#define MINIBATCHES 4                 /* of different data */
#define MOST_ITERATIONS 1000000000000 /* never reached: note_step ends the run */

typedef struct timing {
    double seconds; /* to measure for */
    double began, before;
    double *steps;
    int64_t count;
} timing;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "step: %s\n", sgm_last_error());
    exit(1);
}

static bool note_step(void *user, const sgm_training_progress *progress)
{
    timing *t = user;
    double moment = now();
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration > WARM_UP_STEPS &&
        t->count < MOST_STEPS)
        t->steps[t->count++] = moment - t->before;
    if (progress->iteration == WARM_UP_STEPS)
        t->began = moment;
    t->before = now();
    return t->count < LEAST_STEPS || (t->count < MOST_STEPS && moment - t->began < t->seconds);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double peak_megabytes(void)
{
    char line[256];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kilobytes = strtol(line + 6, NULL, 10);
    if (status != NULL)
        fclose(status);
    return (double)kilobytes / 1024;
}

/* Elements of the network's input and of its output. */
static void read_sizes(const char *notation, int64_t *inputs, int64_t *outputs)
{
    sgm_network *network = sgm_network_parse(notation);
    check(network != NULL);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    check(sgm_network_record(network, graph,
                             &(sgm_recording_options){.struct_size = sizeof(sgm_recording_options),
                                                      .batch = 1,
                                                      .dtype = SGM_FLOAT32,
                                                      .costs = true},
                             &recording) == SGM_OK);
    sgm_type input = sgm_value_type(graph, recording.inputs[0].value);
    sgm_type target = sgm_value_type(graph, recording.targets[0].value);
    *inputs = sgm_shape_elements(&input.shape);
    *outputs = sgm_shape_elements(&target.shape);
    sgm_graph_free(graph);
    sgm_network_free(network);
}

static sgm_dataset *random_data(int64_t records, int64_t inputs, int64_t classes)
{
    sgm_shape input_shape = sgm_shape_of(records, inputs), target_shape = sgm_shape_of(records, classes);
    sgm_tensor *x = sgm_tensor_create(SGM_FLOAT32, &input_shape);
    sgm_tensor *y = sgm_tensor_create(SGM_FLOAT32, &target_shape);
    check(x != NULL && y != NULL);
    float *numbers = sgm_tensor_data(x), *targets = sgm_tensor_data(y);
    srand(1);
    for (int64_t i = 0; i < records * inputs; i++)
        numbers[i] = (float)rand() / (float)RAND_MAX;
    for (int64_t i = 0; i < records; i++)
        targets[i * classes + rand() % classes] = 1;
    sgm_dataset *data = sgm_dataset_from("random", (const char *const[]){"inputs", "targets"},
                                         (sgm_tensor *const[]){x, y}, 2);
    check(data != NULL);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    return data;
}

int main(int argc, char **argv)
{
    const char *notation =
        "input(784) + dense(1024, relu) + dense(1024, relu) + dense(10) + softmax_cross_entropy";
    const char *optimiser = "gradient_descent", *handler = "cpu";
    int64_t batch = 100, inputs, outputs;
    int threads = 0;
    timing t = {.seconds = 2};
    for (int option; (option = getopt(argc, argv, "n:o:b:t:h:s:")) != -1;) {
        switch (option) {
        case 'n':
            notation = optarg;
            break;
        case 'o':
            optimiser = optarg;
            break;
        case 'b':
            batch = strtoll(optarg, NULL, 10);
            break;
        case 't':
            threads = (int)strtol(optarg, NULL, 10);
            break;
        case 'h':
            handler = optarg;
            break;
        case 's':
            t.seconds = strtod(optarg, NULL);
            break;
        default:
            fprintf(
                stderr,
                "usage: step [-n NOTATION] [-o TYPE] [-b BATCH] [-t THREADS] [-h HANDLER] [-s SECONDS]\n");
            return 2;
        }
    }
    t.steps = malloc(MOST_STEPS * sizeof(double));
    read_sizes(notation, &inputs, &outputs);
    sgm_env *env = sgm_env_create("bench", .seed = 1, .handler = handler, .threads = threads);
    sgm_trainer *trainer = sgm_trainer_create(env, "step");
    sgm_dataset *data = random_data(batch * MINIBATCHES, inputs, outputs);
    sgm_trainer_network(trainer, notation);
    sgm_trainer_data(trainer, sgm_minibatches(data, .size = batch));
    sgm_trainer_optimiser(trainer, sgm_optimiser_create(optimiser, NULL));
    sgm_trainer_on_progress(trainer, note_step, &t);
    check(t.steps != NULL &&
          sgm_trainer_run(trainer, .iterations = MOST_ITERATIONS) == SGM_ERROR_INTERRUPTED);
    qsort(t.steps, (size_t)t.count, sizeof *t.steps, compare);
    printf("%.3f %.3f %.3f %.1f\n", t.steps[t.count / 2] * 1e6, t.steps[t.count / 10] * 1e6,
           t.steps[t.count * 9 / 10] * 1e6, peak_megabytes());
    sgm_env_free(env);
    sgm_dataset_free(data);
    free(t.steps);
    return 0;
}
