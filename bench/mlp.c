/* Time of a training step of dense layers with relu, softmax cross-entropy and SGD on one handler.
 *
 *   mlp [-h handler] [-t threads] [-d openblas|onednn|own] [-l 784,1024,1024,10] [-b 100] [-s steps] [-p]
 * [-m] [-w]
 *
 * -l: sizes of the input and of the layers, -b: size of the batch, -p: print the program, -m: print only the
 * median in ms, -w: mixed precision, layers in bfloat16 as networks record them.
 */
#include "measure.h"
#include <sigma/graph.h>
#include <sigma/handler.h>

#include "base/base.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAXIMUM_LAYERS 16
static int64_t sizes[MAXIMUM_LAYERS + 1] = {784, 1024, 1024, 10};
static int64_t batch = 100;
static int layers = 3;
static bool mixed;

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "mlp: %s\n", sgm_last_error());
    exit(1);
}

static void record_step(sgm_graph *graph)
{
    sgm_shape shape = sgm_shape_of(batch, sizes[0]), target_shape = sgm_shape_of(batch, sizes[layers]);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &shape);
    sgm_value targets = sgm_input_value(graph, "targets", SGM_FLOAT32, &target_shape);
    sgm_value parameters[2 * MAXIMUM_LAYERS], gradients[2 * MAXIMUM_LAYERS];
    for (int i = 0; i < layers; i++) {
        char name[16];
        sgm_shape weights = sgm_shape_of(sizes[i], sizes[i + 1]), biases = sgm_shape_of(sizes[i + 1]);
        snprintf(name, sizeof name, "w%d", i);
        parameters[2 * i] = sgm_state(graph, name, SGM_FLOAT32, &weights);
        snprintf(name, sizeof name, "b%d", i);
        parameters[2 * i + 1] = sgm_state(graph, name, SGM_FLOAT32, &biases);
        sgm_dtype dtype = mixed ? SGM_BFLOAT16 : SGM_FLOAT32;
        sgm_value w = sgm_cast(graph, parameters[2 * i], dtype),
                  b = sgm_cast(graph, parameters[2 * i + 1], dtype);
        x = sgm_add(graph, sgm_matmul(graph, sgm_cast(graph, x, dtype), w), b);
        if (i + 1 < layers)
            x = sgm_relu(graph, x);
    }
    x = sgm_cast(graph, x, SGM_FLOAT32);
    sgm_value cost = sgm_mean(graph, sgm_softmax_cross_entropy_values(graph, x, targets));
    sgm_gradients(graph, cost, parameters, 2 * layers, gradients);
    for (int i = 0; i < 2 * layers; i++)
        sgm_assign(
            graph, parameters[i],
            sgm_subtract(graph, parameters[i], sgm_multiply(graph, sgm_number(graph, 0.1), gradients[i])));
    sgm_graph_add_output(graph, "cost", cost);
    check(sgm_graph_status(graph) == SGM_OK);
}

static sgm_tensor *random_tensor(sgm__random *random, int64_t rows, int64_t columns, double scale)
{
    sgm_shape shape = rows > 0 ? sgm_shape_of(rows, columns) : sgm_shape_of(columns);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    check(tensor != NULL);
    float *values = sgm_tensor_data(tensor);
    for (int64_t i = 0; i < (rows > 0 ? rows : 1) * columns; i++)
        values[i] = (float)(sgm__random_normal(random) * scale);
    return tensor;
}

static void set_parameters(sgm_session *session, sgm__random *random)
{
    for (int i = 0; i < layers; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        sgm_tensor *weights = random_tensor(random, sizes[i], sizes[i + 1], sqrt(2.0 / (double)sizes[i]));
        check(sgm_session_set(session, name, weights) == SGM_OK);
        snprintf(name, sizeof name, "b%d", i);
        sgm_tensor *biases = random_tensor(random, 0, sizes[i + 1], 0);
        check(sgm_session_set(session, name, biases) == SGM_OK);
        sgm_tensor_free(weights);
        sgm_tensor_free(biases);
    }
}

static void feed_batch(sgm_session *session, sgm_program *program, sgm__random *random)
{
    sgm_tensor *x = random_tensor(random, batch, sizes[0], 1);
    sgm_tensor *targets = random_tensor(random, batch, sizes[layers], 0);
    for (int64_t i = 0; i < batch; i++)
        ((float *)sgm_tensor_data(
            targets))[i * sizes[layers] + (int64_t)sgm__random_below(random, (uint64_t)sizes[layers])] = 1;
    check(sgm_session_feed(session, program, "x", x) == SGM_OK);
    check(sgm_session_feed(session, program, "targets", targets) == SGM_OK);
    sgm_tensor_free(x);
    sgm_tensor_free(targets);
}

static void read_sizes(const char *text)
{
    int count = 0;
    for (char *end; count <= MAXIMUM_LAYERS; text = end + 1) {
        sizes[count++] = strtoll(text, &end, 10);
        if (*end != ',')
            break;
    }
    layers = count - 1;
}

static void measure(sgm_session *session, sgm_program *program, int steps, bool only_median)
{
    double *times = sgm__calloc((size_t)steps, sizeof *times), first = 0, last = 0;
    check(times != NULL);
    for (int i = 0; i < steps; i++) {
        double begin = sgm__now();
        check(sgm_session_run(session, program) == SGM_OK);
        times[i] = sgm__now() - begin;
        check(sgm_session_read_number(session, program, "cost", i == 0 ? &first : &last) == SGM_OK);
    }
    double middle = median(times, (size_t)steps);
    if (only_median)
        printf("%.4g\n", middle * 1e3);
    else
        printf("step: median %.3f ms, best %.3f ms, 90 %% below %.3f ms; cost %.6f to %.6f in %d steps\n",
               middle * 1e3, times[0] * 1e3, times[steps * 9 / 10] * 1e3, first, last, steps);
    sgm__free(times);
}

int main(int count, char **arguments)
{
    sgm_handler_options options = {.struct_size = sizeof options};
    const char *name = "cpu";
    int steps = 200, option;
    bool print = false, only_median = false;
    while ((option = getopt(count, arguments, "h:t:d:l:b:s:pmw")) != -1) {
        if (option == 'h')
            name = optarg;
        else if (option == 't')
            options.threads = atoi(optarg);
        else if (option == 'd')
            options.dense = optarg;
        else if (option == 'l')
            read_sizes(optarg);
        else if (option == 'b')
            batch = atoll(optarg);
        else if (option == 's')
            steps = atoi(optarg) > 0 ? atoi(optarg) : 1;
        else if (option == 'p')
            print = true;
        else if (option == 'm')
            only_median = true;
        else if (option == 'w')
            mixed = true;
        else
            return 2;
    }
    sgm_handler *handler = sgm_handler_create_with(name, &options);
    check(handler != NULL);
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    check(session != NULL && graph != NULL);
    sgm__random random = sgm__random_make(1, 0);
    record_step(graph);
    set_parameters(session, &random);
    sgm_program *program = sgm_session_prepare(session, graph);
    check(program != NULL);
    feed_batch(session, program, &random);
    char *text = print ? sgm_program_text(program) : sgm_handler_describe(handler);
    if (!only_median)
        fputs(text, stdout);
    sgm_string_free(text);
    measure(session, program, steps, only_median);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
    return 0;
}
