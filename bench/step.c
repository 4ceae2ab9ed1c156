/* Time of a training step of any network, through the trainer, as a user's program would have it: data fed by
 * an iterator, forward, backward, update.
 *
 *   step [-n NOTATION] [-v VOCABULARY] [-o TYPE] [-c NORM] [-b BATCH] [-t THREADS] [-p PRECISION]
 *        [-h HANDLER] [-s SECONDS] [-M MEMORY] [-m]
 *
 * Prints the median of a step in microseconds, its 10th and 90th percentile, and the process's largest memory
 * in MB. With -m, for devices, which may be some steps behind, the first number is the mean of all steps.
 * Inputs are uniform random numbers, or with -v whole ones below VOCABULARY; targets random classes, in the
 * form that the cost wants; of as many examples as fit a few minibatches. With -c gradients are clipped to
 * this norm. With -M the step keeps to a budget of memory ("0.5", "500MB"), and two more numbers are the MB
 * that its intermediate values take, and would take without it. With -s 0 it only looks whether the network
 * can be trained. Exit code 3: it cannot.
 */
#include "steps.h"
#include <sigma/sigma.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MINIMUM_STEPS 5
#define WARM_UP_STEPS 5
#define DEVICE_WARM_UP_STEPS 33          /* more than wait in a device's queue */
#define MINIBATCHES 4                    /* of different data */
#define MAXIMUM_ITERATIONS 1000000000000 /* never reached: note_step ends the run */

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "step: %s\n", sgm_last_error());
    exit(1);
}

/* What the network wants to be fed, found by recording it for one example. */
typedef struct wanted {
    sgm_shape input, target; /* of one example */
    int64_t classes;         /* of the output */
    bool numbers;            /* targets are numbers of classes, rather than a share of each */
} wanted;

static sgm_shape of_example(sgm_graph *graph, sgm_value value)
{
    sgm_shape shape = sgm_value_type(graph, value).shape;
    return sgm_shape_create(shape.rank - 1, shape.dims + 1);
}

/* False, after a message, if the network cannot be trained in this precision. */
static bool read_wanted(const char *notation, sgm_dtype precision, wanted *wants)
{
    sgm_network *network = sgm_network_parse(notation);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    bool recorded = network != NULL &&
                    sgm_network_record(network, graph,
                                       &(sgm_recording_options){.struct_size = sizeof(sgm_recording_options),
                                                                .batch = 1,
                                                                .dtype = precision,
                                                                .costs = true},
                                       &recording) == SGM_OK;
    bool good = recorded && recording.input_count > 0 && recording.target_count > 0;
    if (!good)
        fprintf(stderr, "step: %s\n",
                recorded ? "the network has no cost: end it with one" : sgm_last_error());
    if (good) {
        sgm_shape output = of_example(graph, recording.outputs[0].value);
        wants->input = of_example(graph, recording.inputs[0].value);
        wants->target = of_example(graph, recording.targets[0].value);
        wants->classes = output.dims[output.rank - 1];
        wants->numbers = wants->target.rank < output.rank;
    }
    sgm_graph_free(graph);
    sgm_network_free(network);
    return good;
}

static sgm_tensor *tensor_of(int64_t examples, const sgm_shape *example)
{
    int64_t dims[SGM_MAX_RANK] = {examples};
    memcpy(dims + 1, example->dims, (size_t)example->rank * sizeof *dims);
    sgm_shape shape = sgm_shape_create(example->rank + 1, dims);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    check(tensor != NULL);
    return tensor;
}

static sgm_dataset *random_data(int64_t examples, const wanted *wants, int vocabulary)
{
    sgm_tensor *x = tensor_of(examples, &wants->input), *y = tensor_of(examples, &wants->target);
    float *numbers = sgm_tensor_data(x), *targets = sgm_tensor_data(y);
    int64_t inputs = examples * sgm_shape_elements(&wants->input);
    int64_t elements = examples * sgm_shape_elements(&wants->target), classes = wants->classes;
    srand(1);
    for (int64_t i = 0; i < inputs; i++)
        numbers[i] = vocabulary > 0 ? (float)(rand() % vocabulary) : (float)rand() / (float)RAND_MAX;
    if (wants->numbers) {
        for (int64_t i = 0; i < elements; i++)
            targets[i] = (float)(rand() % classes);
    } else {
        for (int64_t i = 0; i < elements; i += classes)
            targets[i + rand() % classes] = 1;
    }
    sgm_dataset *data = sgm_dataset_create_from("random", (const char *const[]){"inputs", "targets"},
                                                (sgm_tensor *const[]){x, y}, 2);
    check(data != NULL);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    return data;
}

/* What the command line says. */
typedef struct choice {
    const char *notation, *optimiser, *handler, *memory;
    int64_t batch;
    int threads, vocabulary;
    sgm_dtype precision;
    double seconds, clip_norm;
    bool mean;
} choice;

static bool read_arguments(int argc, char **argv, choice *c)
{
    for (int option; (option = getopt(argc, argv, "n:v:o:c:b:t:p:h:s:M:m")) != -1;) {
        switch (option) {
        case 'n':
            c->notation = optarg;
            break;
        case 'v':
            c->vocabulary = (int)strtol(optarg, NULL, 10);
            break;
        case 'o':
            c->optimiser = optarg;
            break;
        case 'c':
            c->clip_norm = strtod(optarg, NULL);
            break;
        case 'b':
            c->batch = strtoll(optarg, NULL, 10);
            break;
        case 't':
            c->threads = (int)strtol(optarg, NULL, 10);
            break;
        case 'p':
            check(sgm_dtype_parse(optarg, &c->precision) == SGM_OK);
            break;
        case 'h':
            c->handler = optarg;
            break;
        case 's':
            c->seconds = strtod(optarg, NULL);
            break;
        case 'M':
            c->memory = optarg;
            break;
        case 'm':
            c->mean = true;
            break;
        default:
            return false;
        }
    }
    return optind == argc && c->batch > 0;
}

int main(int argc, char **argv)
{
    choice c = {.notation =
                    "input(784) + dense(1024, relu) + dense(1024, relu) + dense(10) + softmax_cross_entropy",
                .optimiser = "gradient_descent",
                .handler = "cpu",
                .batch = 100,
                .precision = SGM_FLOAT32,
                .seconds = 2};
    if (!read_arguments(argc, argv, &c)) {
        fprintf(stderr,
                "usage: step [-n NOTATION] [-v VOCABULARY] [-o TYPE] [-c NORM] [-b BATCH] [-t THREADS] "
                "[-p PRECISION] [-h HANDLER] [-s SECONDS] [-M MEMORY] [-m]\n");
        return 2;
    }
    wanted wants;
    if (!read_wanted(c.notation, c.precision, &wants))
        return 3;
    if (c.seconds <= 0)
        return 0;
    steps timed = {.warm_up = c.mean ? DEVICE_WARM_UP_STEPS : WARM_UP_STEPS,
                   .minimum = MINIMUM_STEPS,
                   .seconds = c.seconds,
                   .times = malloc(MAXIMUM_STEPS * sizeof(double))};
    sgm_env *env = sgm_env_create("bench", .seed = 1, .handler = c.handler, .threads = c.threads,
                                  .precision = c.precision, .memory = c.memory);
    check(env != NULL);
    sgm_trainer *trainer = sgm_trainer_create(env, "step");
    sgm_dataset *data = random_data(c.batch * MINIBATCHES, &wants, c.vocabulary);
    sgm_trainer_set_network(trainer, c.notation);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = c.batch));
    sgm_trainer_set_optimiser(trainer, SGM_OPTIMISER(c.optimiser, .clip_norm = c.clip_norm));
    sgm_trainer_on_progress(trainer, note_step, &timed);
    check(timed.times != NULL &&
          sgm_trainer_run(trainer, .iterations = MAXIMUM_ITERATIONS) == SGM_ERROR_INTERRUPTED);
    double middle = median(timed.times, timed.count);
    double step = c.mean ? (timed.before - timed.began) / (double)timed.count : middle;
    printf("%.3f %.3f %.3f %.1f", step * 1e6, timed.times[timed.count / 10] * 1e6,
           timed.times[timed.count * 9 / 10] * 1e6, peak_megabytes());
    sgm_program_memory memory;
    if (c.memory != NULL && sgm_trainer_memory(trainer, c.batch, &memory) == SGM_OK)
        printf(" %.1f %.1f", (double)memory.arena * 1e-6, (double)memory.unsaved * 1e-6);
    printf("\n");
    sgm_env_free(env);
    sgm_dataset_free(data);
    free(timed.times);
    return 0;
}
