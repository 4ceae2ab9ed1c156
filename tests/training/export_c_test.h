/* For tests of exported networks: a trainer on random data, its file of C compiled and loaded. */
#ifndef EXPORT_C_TEST_H
#define EXPORT_C_TEST_H

#include "compiled.h"
#include <sigma/sigma.h>

#define EXPORT_STEPS 5
#define EXPORT_RATE 0.01

typedef struct exported {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_tensor *inputs, *targets;    /* EXPORT_STEPS minibatches; targets NULL: the network has none */
    int64_t input_size, target_size; /* of a minibatch, in elements */
    char path[64];
    void *library;
} exported;

typedef struct export_case {
    const char *network;
    int64_t batch;
    const char *optimiser; /* NULL: momentum */
    int tokens;            /* inputs are numbers below this one; 0: any */
    sgm_dtype precision;   /* float32 is 0 */
    bool fast;             /* compiled with -O2 */
} export_case;

static uint64_t export_seed = 1;
static double export_random(void)
{
    export_seed = export_seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(export_seed >> 40) / (double)(1 << 24);
}

/* Random values; of `tokens` the numbers of rows. */
static sgm_tensor *export_values(sgm_type type, int64_t examples, int tokens)
{
    type.shape.dims[0] = examples;
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    int64_t count = sgm_shape_elements(&type.shape);
    double *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = tokens > 0 ? floor(export_random() * tokens) : 2 * export_random() - 1;
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)count));
    free(values);
    return tensor;
}

/* One class of each row, as shares; single numbers are 0 or 1. */
static sgm_tensor *export_targets(sgm_type type, int64_t examples)
{
    type.shape.dims[0] = examples;
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    int64_t count = sgm_shape_elements(&type.shape), last = type.shape.dims[type.shape.rank - 1];
    double *values = calloc((size_t)count, sizeof *values);
    for (int64_t i = 0; i < count; i += last)
        if (last > 1)
            values[i + (int64_t)(export_random() * (double)last)] = 1;
        else
            values[i] = export_random() > 0.5;
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)count));
    free(values);
    return tensor;
}

static exported export_start(const export_case *c)
{
    exported e = {.path = "/tmp/sigma-export-XXXXXX"};
    sgm_recording recording;
    int file = mkstemp(e.path);
    CHECK(file >= 0);
    close(file);
    sgm_network *network = sgm_network_parse(c->network);
    if (network == NULL)
        TEST_FAIL("%s", sgm_last_error());
    sgm_graph *graph = sgm_graph_create();
    sgm_recording_options options = {.struct_size = sizeof options,
                                     .batch = c->batch,
                                     .dtype = SGM_FLOAT32,
                                     .training = true,
                                     .prefix = ""};
    CHECK_OK(sgm_network_record(network, graph, &options, &recording));
    sgm_type input = sgm_value_type(graph, recording.inputs[0].value);
    sgm_type target = sgm_value_type(graph, recording.targets[0].value);
    e.input_size = sgm_shape_elements(&input.shape);
    e.target_size = sgm_shape_elements(&target.shape);
    e.inputs = export_values(input, EXPORT_STEPS * c->batch, c->tokens);
    e.targets = export_targets(target, EXPORT_STEPS * c->batch);
    const char *const fields[] = {recording.inputs[0].name, recording.targets[0].name};
    sgm_dataset *data = sgm_dataset_create_from("random", fields, (sgm_tensor *[]){e.inputs, e.targets}, 2);
    sgm_graph_free(graph);
    e.env = sgm_env_create("export", .seed = 7, .precision = c->precision);
    e.trainer = sgm_trainer_create(e.env, "t");
    CHECK_OK(sgm_trainer_adopt_network(e.trainer, network));
    sgm_optimiser_options how = {.struct_size = sizeof how, .learning_rate = EXPORT_RATE};
    CHECK_OK(sgm_trainer_set_optimiser(
        e.trainer, sgm_optimiser_create(c->optimiser != NULL ? c->optimiser : "momentum", &how)));
    CHECK_OK(sgm_trainer_set_data(e.trainer, sgm_minibatches(data, .size = c->batch, .no_shuffle = true)));
    sgm_dataset_free(data);
    CHECK_OK(sgm_trainer_prepare(e.trainer));
    return e;
}

__attribute__((unused)) static void export_load(exported *e, const char *more)
{
    char object[80];
    snprintf(object, sizeof object, "%s.so", e->path);
    e->library = load_c_file(e->path, more, object);
}

static void export_end(exported *e)
{
    char path[80];
    if (e->library != NULL)
        dlclose(e->library);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", e->path, i == 0 ? "" : i == 1 ? ".so" : ".o");
        unlink(path);
    }
    sgm_tensor_free(e->inputs);
    sgm_tensor_free(e->targets);
    sgm_env_free(e->env);
}

#endif
