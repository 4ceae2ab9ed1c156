/* Numbers about tensors, and about speed. */
#include "waves.h"

#include <unistd.h>

static double shared(sgm_trainer *trainer, const char *name)
{
    char identifier[160];
    sgm_content content;
    snprintf(identifier, sizeof identifier, "shared.%s", name);
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), identifier, &content));
    CHECK_INT(content.kind, SGM_KIND_NUMBER);
    return content.as.number;
}

static sgm_tensor *set_biases(sgm_trainer *trainer)
{
    const float values[5] = {0, 3, -4, 0, 1};
    sgm_shape shape = sgm_shape_of(5);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &shape, values);
    CHECK_OK(sgm_trainer_set(trainer, "2-dense.biases", tensor));
    return tensor;
}

/* 0, 3, -4, 0, 1 and a learning rate of 0: what they are is known. */
TEST(the_numbers_of_a_tensor)
{
    char folder[] = "/tmp/sigma-statistics-XXXXXX", path[128], line[1024];
    CHECK(mkdtemp(folder) != NULL);
    wave_trainer made =
        make_wave_trainer((wave_options){.optimiser = sgm_gradient_descent(.learning_rate = 1e-30)});
    sgm_tensor_free(set_biases(made.trainer));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_statistics("network.layers.2-dense.biases", sgm_every(1, SGM_EPOCH), .bins = 7)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2, .folder = folder));
    CHECK_NEAR(shared(made.trainer, "network_layers_2-dense_biases_mean"), 0, 1e-12);
    CHECK_NEAR(shared(made.trainer, "network_layers_2-dense_biases_standard_deviation"), sqrt(26.0 / 5),
               1e-12);
    CHECK_NEAR(shared(made.trainer, "network_layers_2-dense_biases_minimum"), -4, 0);
    CHECK_NEAR(shared(made.trainer, "network_layers_2-dense_biases_maximum"), 3, 0);
    CHECK_NEAR(shared(made.trainer, "network_layers_2-dense_biases_norm"), sqrt(26.0), 1e-12);
    CHECK_NEAR(shared(made.trainer, "network_layers_2-dense_biases_not_finite"), 0, 0);
    sgm_content histogram;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer),
                                      "shared.network_layers_2-dense_biases_histogram", &histogram));
    /* Bins of 1 from -4 to 3; the zeros have become +-1e-30 or so. */
    double counts[7];
    CHECK_OK(sgm_tensor_read(histogram.as.tensor, counts, 7));
    CHECK_NEAR(counts[0], 1, 0);
    CHECK_NEAR(counts[3] + counts[4], 2, 0);
    CHECK_NEAR(counts[5], 1, 0);
    CHECK_NEAR(counts[6], 1, 0);
    sgm_content_clear(&histogram);

    snprintf(path, sizeof path, "%s/histograms.jsonl", folder);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    CHECK(fgets(line, sizeof line, file) != NULL);
    CHECK(
        strstr(line,
               "{\"epoch\":1,\"iteration\":4,\"identifier\":\"network.layers.2-dense.biases\",\"elements\":5,"
               "\"not_finite\":0,") == line);
    CHECK(strstr(line, "\"histogram_minimum\":-4.0,\"histogram_maximum\":3.0,\"counts\":[1,0,0,") != NULL);
    CHECK(fgets(line, sizeof line, file) != NULL && strstr(line, "{\"epoch\":2,\"iteration\":8,") == line);
    CHECK(fgets(line, sizeof line, file) == NULL);
    fclose(file);
    free_wave_trainer(made);
    snprintf(path, sizeof path, "rm -r %s", folder);
    CHECK_INT(system(path), 0);
}

/* Beyond given bounds, equal values, NaN. */
TEST(the_edges_of_a_histogram)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    const float values[5] = {2, 2, NAN, 2, 2};
    sgm_shape shape = sgm_shape_of(5);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &shape, values);
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_statistics("shared.x", sgm_every(1, SGM_START), .bins = 2)));
    sgm_registry *root = sgm_trainer_registry(made.trainer);
    sgm_resolve_set_options adding = {.struct_size = sizeof adding, .add_if_missing = true};
    CHECK_OK(sgm_registry_resolve_set(root, "shared.x", sgm_tensor_content(tensor), &adding, NULL));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    CHECK_NEAR(shared(made.trainer, "shared_x_not_finite"), 1, 0);
    CHECK_NEAR(shared(made.trainer, "shared_x_standard_deviation"), 0, 0);
    CHECK_NEAR(shared(made.trainer, "shared_x_zeros"), 0, 0);
    sgm_content histogram;
    double counts[2];
    CHECK_OK(sgm_registry_resolve_one(root, "shared.shared_x_histogram", &histogram));
    CHECK_OK(sgm_tensor_read(histogram.as.tensor, counts, 2));
    CHECK_NEAR(counts[0], 0, 0);
    CHECK_NEAR(counts[1], 4, 0);
    sgm_content_clear(&histogram);
    sgm_tensor_free(tensor);
    free_wave_trainer(made);
    CHECK_ERROR(sgm_statistics("a", sgm_every(1, SGM_EPOCH), .bins = 1001), "1 to 1000 bins");
    CHECK_ERROR(sgm_statistics(" ", sgm_every(1, SGM_EPOCH)), "got none");
}

static sgm_status dawdle(void *self, sgm_hook_call *call)
{
    (void)self, (void)call;
    usleep(2000);
    return SGM_OK;
}
static const sgm_hook_type dawdling = {.api = SGM_HOOK_API, .name = "dawdle", .invoke = dawdle};

/* 2 ms an iteration at least: less than 500 iterations a second, of 10 examples each. */
TEST(throughput_counts_examples_of_running_time)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_throughput(.span = 8, .every = 4)));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&dawdling, NULL)));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 21));
    double iterations = shared(made.trainer, "time_throughput_iterations");
    CHECK(iterations > 0.5 && iterations < 500);
    CHECK_NEAR(shared(made.trainer, "time_throughput_examples"), 10 * iterations, 1e-6 * iterations);
    double waiting = shared(made.trainer, "time_throughput_waiting");
    CHECK(waiting > 0 && waiting < 1);
    double waited = shared(made.trainer, "time_throughput_waited");
    CHECK(waited >= 0 && waited <= 8);
    free_wave_trainer(made);
    CHECK_ERROR(sgm_throughput(.span = 20000), "1 to 10000");
}
