/* Checkpoints in parts: what is saved, what fits, what a refusal says, and that it changes nothing. */
#include "by_name.h"
#include "train/train.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64], file[128], other_file[128];

static void open_folder(void)
{
    strcpy(folder, "/tmp/sigma-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(file, sizeof file, "%s/a.safetensors", folder);
    snprintf(other_file, sizeof other_file, "%s/b.safetensors", folder);
}

static void close_folder(void)
{
    unlink(file);
    unlink(other_file);
    CHECK_INT(rmdir(folder), 0);
}

static wave_trainer make(const char *network)
{
    return make_wave_trainer((wave_options){.network = network, .seed = 3});
}

/* The sum of a state's elements, each with a factor of its own: equal for equal states only. */
static double print_of(sgm_trainer *trainer, const char *state)
{
    double values[512], sum = 0;
    sgm_tensor *tensor = sgm_trainer_get(trainer, state);
    CHECK_OK(tensor);
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    for (size_t i = 0; i < count; i++)
        sum += values[i] * (1 + (double)i);
    sgm_tensor_free(tensor);
    return sum;
}

/* --- names --- */

static const struct name_case {
    const char *text;
    unsigned parts;
    const char *message; /* NULL: good */
} name_cases[] = {
    {"network", SGM_PART_NETWORK, NULL},
    {"network parameters", SGM_PART_NETWORK | SGM_PART_PARAMETERS, NULL},
    {"network,random, hooks", SGM_PART_NETWORK | SGM_PART_RANDOM | SGM_PART_HOOKS, NULL},
    {"everything", 255, NULL},
    {"everything -optimiser -position", 255 - SGM_PART_OPTIMISER - SGM_PART_POSITION, NULL},
    {"metrics settings -metrics", SGM_PART_SETTINGS, NULL},
    {"parametres", 0, "did you mean 'parameters'?"},
    {"zzzzzzzzz", 0, "there are network, parameters, optimiser, position, random, hooks, metrics, settings"},
    {"", 0, "no parts are left"},
    {"hooks -hooks", 0, "no parts are left"},
};

TEST(parts_have_names)
{
    for (size_t i = 0; i < sizeof name_cases / sizeof *name_cases; i++) {
        const struct name_case *c = &name_cases[i];
        unsigned parts = 0;
        if (c->message != NULL) {
            CHECK_ERROR(sgm_parts_parse(c->text, &parts), c->message);
            continue;
        }
        CHECK_OK(sgm_parts_parse(c->text, &parts));
        CHECK_INT(parts, c->parts);
    }
    CHECK_STR(sgm_part_name(SGM_PART_METRICS), "metrics");
    CHECK(sgm_part_name(3) == NULL && sgm_part_name(256) == NULL);
}

/* --- saving --- */

static const struct save_case {
    unsigned parts;
    const char *states;
    bool weights, biases, average, slot, random, network;
} save_cases[] = {
    {0, NULL, true, true, true, true, true, true},
    {SGM_PART_PARAMETERS, NULL, true, true, true, false, false, false},
    {SGM_PART_PARAMETERS, "*.weights", true, false, false, false, false, false},
    {SGM_PART_PARAMETERS, "1-*.weights average.*.*", true, false, true, false, false, false},
    {SGM_PART_OPTIMISER | SGM_PART_RANDOM, NULL, false, false, false, true, true, false},
    {SGM_PART_NETWORK, NULL, false, false, false, false, false, true},
    {SGM_PART_EVERYTHING & ~SGM_PART_OPTIMISER, NULL, true, true, true, false, true, true},
};

TEST(what_was_asked_for_is_saved)
{
    open_folder();
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = "input(6) + dense(8) + dropout(0.1) + dense(3) + softmax_cross_entropy",
                       .optimiser = sgm_adam(.learning_rate = 0.01, .average = 0.9)});
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    for (size_t i = 0; i < sizeof save_cases / sizeof *save_cases; i++) {
        const struct save_case *c = &save_cases[i];
        unsigned parts = 0;
        CHECK_OK(sgm_trainer_save_parts(made.trainer, file, .parts = c->parts, .states = c->states));
        CHECK_OK(sgm_checkpoint_parts(file, &parts));
        CHECK_INT(parts, c->parts != 0 ? c->parts : SGM_PART_EVERYTHING);
        sgm_bundle *bundle = sgm_bundle_load(file);
        CHECK_OK(bundle);
        CHECK_INT(sgm_bundle_has(bundle, "1-dense.weights"), c->weights);
        CHECK_INT(sgm_bundle_has(bundle, "3-dense.biases"), c->biases);
        CHECK_INT(sgm_bundle_has(bundle, "average.1-dense.weights"), c->average);
        CHECK_INT(sgm_bundle_has(bundle, "optimiser.momentum.1-dense.weights"), c->slot);
        CHECK_INT(sgm_bundle_has(bundle, "random.step"), c->random);
        CHECK_INT(sgm_bundle_get_text(bundle, "sigma.network") != NULL, c->network);
        sgm_bundle_free(bundle);
    }
    CHECK_ERROR(sgm_trainer_save_parts(made.trainer, file, .states = "*.wieghts"),
                "no state of the trainer matches '*.wieghts'; one is '1-dense.");
    CHECK_ERROR(sgm_trainer_save_parts(made.trainer, file, .states = " "), ".states has no pattern");
    CHECK_ERROR(sgm_trainer_save_parts(made.trainer, file, .parts = 1024), ".parts is 0x400");
    CHECK_ERROR(sgm_trainer_save_parts(made.trainer, NULL), "expected a path, got NULL");
    free_wave_trainer(made);
    close_folder();
}

/* --- what fits --- */

#define SMALL "input(6) + dense(8, tanh) + dense(3) + softmax_cross_entropy"
#define SMALL_RELU "input(6) + dense(8, relu) + dense(3) + softmax_cross_entropy"
#define SMALL_WIDE "input(6) + dense(9, tanh) + dense(3) + softmax_cross_entropy"
#define SMALL_NO_BIAS "input(6) + dense(8, tanh, no_bias) + dense(3) + softmax_cross_entropy"
#define LARGER "input(6) + dense(8, tanh) + dense(4) + dense(3) + softmax_cross_entropy"

static const struct fit_case {
    const char *saved, *network;
    unsigned parts;
    const char *states;
    const char *message; /* NULL: it fits */
} fit_cases[] = {
    {SMALL, SMALL, 0, NULL, NULL},
    {SMALL, SMALL_RELU, 0, NULL, "it is of the network \"" SMALL "\", the trainer has \"" SMALL_RELU "\""},
    {SMALL, SMALL_RELU, SGM_PART_PARAMETERS, NULL, NULL},
    {SMALL, SMALL_WIDE, SGM_PART_PARAMETERS, NULL,
     "does not fit the trainer: '1-dense.weights' is float32 (6, 8), the network wants float32 (6, 9); "
     "'1-dense.biases' is float32 (8,), the network wants float32 (9,); '2-dense.weights' is"},
    {SMALL, SMALL_WIDE, SGM_PART_PARAMETERS, "2-dense.biases", NULL},
    {SMALL, SMALL_WIDE, SGM_PART_PARAMETERS, "2-dense.*", "'2-dense.weights' is float32 (8, 3), the network"},
    {SMALL_NO_BIAS, SMALL, SGM_PART_PARAMETERS, NULL, "'1-dense.biases' is missing: float32 (8,)"},
    {SMALL_NO_BIAS, SMALL, SGM_PART_PARAMETERS, "*.weights", NULL},
    {SMALL, SMALL_NO_BIAS, SGM_PART_PARAMETERS, NULL, "'1-dense.biases' is surplus"},
    {LARGER, SMALL, SGM_PART_PARAMETERS, NULL, "'3-dense.weights' is surplus: the network has no such state"},
    {LARGER, SMALL, SGM_PART_PARAMETERS, "1-*.*", NULL},
    {LARGER, SMALL, SGM_PART_PARAMETERS, "7-*.*", "has no state that matches '7-*.*'"},
    {LARGER, SMALL, 0, NULL, "; and 3 more"},
    {SMALL, SMALL, SGM_PART_OPTIMISER | SGM_PART_POSITION, NULL, NULL},
};

TEST(what_does_not_fit_is_listed_and_changes_nothing)
{
    open_folder();
    for (size_t i = 0; i < sizeof fit_cases / sizeof *fit_cases; i++) {
        const struct fit_case *c = &fit_cases[i];
        wave_trainer from = make(c->saved), to = make(c->network);
        CHECK_OK(sgm_trainer_run(from.trainer, .epochs = 1));
        CHECK_OK(sgm_trainer_save(from.trainer, file));
        CHECK_OK(sgm_trainer_save(to.trainer, other_file));
        sgm_bundle *before = sgm_bundle_load(other_file);
        if (c->message != NULL)
            CHECK_ERROR(sgm_trainer_load_parts(to.trainer, file, .parts = c->parts, .states = c->states),
                        c->message);
        else
            CHECK_OK(sgm_trainer_load_parts(to.trainer, file, .parts = c->parts, .states = c->states));
        CHECK_OK(sgm_trainer_status(to.trainer)); /* a refusal leaves it usable */
        CHECK_OK(sgm_trainer_save(to.trainer, other_file));
        sgm_bundle *after = sgm_bundle_load(other_file);
        bool same = strcmp(sgm_bundle_get_text(before, "sigma.state"),
                           sgm_bundle_get_text(after, "sigma.state")) == 0;
        bool states_only = c->parts == SGM_PART_PARAMETERS;
        CHECK_INT(same, c->message != NULL || states_only);
        sgm_bundle_free(before);
        sgm_bundle_free(after);
        free_wave_trainer(from);
        free_wave_trainer(to);
    }
    close_folder();
}

/* --- precision --- */

static char newest_log[512];

static void keep_log(void *user, sgm_log_level level, const char *component, const char *message)
{
    (void)user;
    (void)component;
    if (level >= SGM_LOG_INFO)
        snprintf(newest_log, sizeof newest_log, "%s", message);
}

/* Every state of `to`, which was loaded, is that of the file, rounded to nearest. */
static void check_rounded(sgm_trainer *to, const sgm_bundle *saved, sgm_dtype dtype)
{
    for (size_t i = 0; i < sgm_bundle_count(saved); i++) {
        sgm_tensor *value = sgm_bundle_get(saved, sgm_bundle_name_at(saved, i));
        if (!sgm_dtype_is_float(sgm_tensor_dtype(value)))
            continue;
        sgm_tensor *got = sgm_trainer_get(to, sgm_bundle_name_at(saved, i));
        CHECK_OK(got);
        CHECK_INT(sgm_tensor_dtype(got), dtype);
        double wanted[512], is[512];
        size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(value));
        CHECK_OK(sgm_tensor_read(value, wanted, count));
        CHECK_OK(sgm_tensor_read(got, is, count));
        for (size_t k = 0; k < count; k++)
            CHECK_NEAR(is[k], dtype == SGM_FLOAT32 ? (double)(float)wanted[k] : wanted[k], 0);
        sgm_tensor_free(got);
    }
}

TEST(another_precision_is_converted)
{
    const sgm_dtype precisions[] = {SGM_FLOAT64, SGM_FLOAT32};
    open_folder();
    for (int k = 0; k < 2; k++) {
        wave_trainer from = make_wave_trainer((wave_options){.precision = precisions[k], .seed = 3});
        wave_trainer to = make_wave_trainer((wave_options){.precision = precisions[1 - k], .seed = 4});
        CHECK_OK(sgm_trainer_run(from.trainer, .iterations = 5));
        CHECK_OK(sgm_trainer_save(from.trainer, file));
        sgm_bundle *saved = sgm_bundle_load(file);
        newest_log[0] = '\0';
        sgm_set_logger(keep_log, NULL, SGM_LOG_INFO);
        CHECK_OK(sgm_trainer_load(to.trainer, file));
        CHECK(strstr(newest_log, "a.safetensors' is of another precision: ") != NULL);
        CHECK(strstr(newest_log, k == 0 ? " from float64 to float32" : " from float32 to float64") != NULL);
        newest_log[0] = '\0';
        CHECK_OK(sgm_trainer_load(from.trainer, file));
        sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
        CHECK_STR(newest_log, "");
        check_rounded(to.trainer, saved, precisions[1 - k]);
        CHECK_OK(sgm_trainer_run(to.trainer, .iterations = 2));
        sgm_bundle_free(saved);
        free_wave_trainer(from);
        free_wave_trainer(to);
    }
    close_folder();
}

/* Amid an interval each worker has parameters of its own, which are converted with the trainer's. */
TEST(what_workers_have_of_their_own_is_converted)
{
    wave_trainer made[2];
    open_folder();
    for (int i = 0; i < 2; i++) {
        made[i] = make_wave_trainer((wave_options){.precision = i == 0 ? SGM_FLOAT64 : SGM_FLOAT32});
        CHECK_OK(sgm_trainer_set_operator(made[i].trainer, sgm_parameter_operator(.workers = 2, .every = 3)));
    }
    CHECK_OK(sgm_trainer_run(made[0].trainer, .iterations = 4));
    CHECK_OK(sgm_trainer_save(made[0].trainer, file));
    CHECK_OK(sgm_trainer_load(made[1].trainer, file));
    CHECK_OK(sgm_trainer_save(made[1].trainer, other_file));
    sgm_bundle *wide = sgm_bundle_load(file), *narrow = sgm_bundle_load(other_file);
    const char *name = "workers.1.1-dense.biases";
    for (int64_t i = 0; i < 8; i++)
        CHECK_NEAR(sgm_tensor_get(sgm_bundle_get(narrow, name), &i),
                   (float)sgm_tensor_get(sgm_bundle_get(wide, name), &i), 0);
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_trainer_run(made[i].trainer, .iterations = 8));
    CHECK_NEAR(print_of(made[1].trainer, "3-dense.weights"), print_of(made[0].trainer, "3-dense.weights"),
               1e-4);
    sgm_bundle_free(wide);
    sgm_bundle_free(narrow);
    free_wave_trainer(made[0]);
    free_wave_trainer(made[1]);
    close_folder();
}

/* A file with one tensor, for the biases of WAVE_NETWORK's last layer; to be loaded by its pattern. */
static sgm_status load_biases(sgm_trainer *trainer, sgm_dtype dtype, const double *values)
{
    sgm_shape shape = sgm_shape_of(3);
    sgm_tensor *biases = sgm_tensor_create(dtype, &shape);
    CHECK_OK(sgm_tensor_write(biases, values, 3));
    sgm_bundle *bundle = sgm_bundle_create();
    CHECK_OK(sgm_bundle_add(bundle, "3-dense.biases", biases));
    CHECK_OK(sgm_bundle_save(bundle, file));
    sgm_bundle_free(bundle);
    sgm_tensor_free(biases);
    return sgm_trainer_load_parts(trainer, file, .states = "3-*.biases", .parts = SGM_PART_PARAMETERS);
}

TEST(chosen_states_of_another_type_are_converted_or_refused)
{
    open_folder();
    wave_trainer made = make(NULL);
    double got[3];
    const double before = print_of(made.trainer, "3-dense.weights");
    /* Half-way between two of float32, to even; just above; and what bfloat16 holds. */
    CHECK_OK(load_biases(made.trainer, SGM_FLOAT64, (double[]){1 + 0x1p-24, 1 + 0x1.1p-24, -0x1p-140}));
    sgm_tensor *biases = sgm_trainer_get(made.trainer, "3-dense.biases");
    CHECK_OK(sgm_tensor_read(biases, got, 3));
    sgm_tensor_free(biases);
    CHECK(got[0] == 1 && got[1] == 1 + 0x1p-23 && got[2] == -0x1p-140);
    CHECK_OK(load_biases(made.trainer, SGM_BFLOAT16, (double[]){0x1.02p3, -0.5, 0x1p-130}));
    biases = sgm_trainer_get(made.trainer, "3-dense.biases");
    CHECK_OK(sgm_tensor_read(biases, got, 3));
    sgm_tensor_free(biases);
    CHECK(got[0] == 0x1.02p3 && got[1] == -0.5 && got[2] == 0x1p-130);
    CHECK_ERROR(load_biases(made.trainer, SGM_FLOAT64, (double[]){1, 1e39, 2}),
                "'3-dense.biases' is float64 and has numbers that are too large for float32");
    CHECK_ERROR(load_biases(made.trainer, SGM_INT32, (double[]){1, 2, 3}),
                "'3-dense.biases' is int32 (3,), the network wants float32 (3,)");
    CHECK_ERROR(load_biases(made.trainer, SGM_BOOL, (double[]){1, 0, 1}), "'3-dense.biases' is bool (3,)");
    biases = sgm_trainer_get(made.trainer, "3-dense.biases");
    CHECK_NEAR(sgm_tensor_get(biases, (int64_t[]){0}), 0x1.02p3, 0);
    sgm_tensor_free(biases);
    CHECK_NEAR(print_of(made.trainer, "3-dense.weights"), before, 0);
    free_wave_trainer(made);
    close_folder();
}

TEST(a_new_last_layer_keeps_what_was_learnt_before_it)
{
    char *left = NULL;
    open_folder();
    wave_trainer from = make(WAVE_NETWORK);
    wave_trainer to = make("input(6) + dense(8, tanh) + dense(5, relu) + dense(7) + softmax_cross_entropy");
    CHECK_OK(sgm_trainer_run(from.trainer, .epochs = 2));
    CHECK_OK(sgm_trainer_save(from.trainer, file));
    double fresh = print_of(to.trainer, "3-dense.weights");
    CHECK_OK(sgm_trainer_load_parts(to.trainer, file, .parts = SGM_PART_PARAMETERS, .skip_mismatch = true,
                                    .left = &left));
    CHECK_NEAR(print_of(to.trainer, "1-dense.weights"), print_of(from.trainer, "1-dense.weights"), 0);
    CHECK_NEAR(print_of(to.trainer, "2-dense.biases"), print_of(from.trainer, "2-dense.biases"), 0);
    CHECK_NEAR(print_of(to.trainer, "3-dense.weights"), fresh, 0);
    CHECK_STR(left, "'3-dense.weights' is float32 (5, 3), the network wants float32 (5, 7); "
                    "'3-dense.biases' is float32 (3,), the network wants float32 (7,)");
    sgm_string_free(left);
    CHECK_NEAR(number_of(to.trainer, "iteration"), 0, 0);
    CHECK_OK(sgm_trainer_load_parts(from.trainer, file, .skip_mismatch = true, .left = &left));
    CHECK(left == NULL);
    free_wave_trainer(from);
    free_wave_trainer(to);
    from = make("input(6) + elementwise(tanh) + dense(9) + dense(3) + softmax_cross_entropy");
    CHECK_ERROR(sgm_trainer_load_parts(from.trainer, file, .parts = SGM_PART_PARAMETERS,
                                       .skip_mismatch = true, .states = "1-*.* 2-dense.weights"),
                "fits the trainer: '1-dense.weights' is surplus");
    free_wave_trainer(from);
    close_folder();
}

/* A variance over the minibatch wants more than the one example that would do to know the parameters. */
TEST(a_network_that_normalises_over_the_minibatch_is_loaded)
{
    static const char network[] = "input(6) + dense(4) + batch_norm + dense(3) + softmax_cross_entropy";
    open_folder();
    wave_trainer saved = make(network), loaded = make(network);
    CHECK_OK(sgm_trainer_run(saved.trainer, .epochs = 2));
    CHECK_OK(sgm_trainer_save(saved.trainer, file));
    CHECK_OK(sgm_trainer_load(loaded.trainer, file));
    CHECK_NEAR(print_of(loaded.trainer, "2-batch_norm.means"), print_of(saved.trainer, "2-batch_norm.means"),
               0);
    free_wave_trainer(saved);
    free_wave_trainer(loaded);
    close_folder();
}

TEST(parts_that_are_not_there_cannot_be_loaded)
{
    open_folder();
    wave_trainer made = make(NULL);
    CHECK_OK(sgm_trainer_save_parts(made.trainer, file, .parts = SGM_PART_PARAMETERS | SGM_PART_NETWORK));
    CHECK_ERROR(sgm_trainer_load_parts(made.trainer, file, .parts = SGM_PART_PARAMETERS | SGM_PART_HOOKS),
                "was saved without hooks; it has network, parameters");
    CHECK_OK(sgm_trainer_load_parts(made.trainer, file, .parts = SGM_PART_PARAMETERS | SGM_PART_HOOKS,
                                    .skip_mismatch = true));
    CHECK_OK(sgm_trainer_load(made.trainer, file)); /* what the file has */
    free_wave_trainer(made);
    close_folder();
}

/* Also where more is asked for than there is. */
TEST(what_a_file_lacks_stays_as_it_is)
{
    open_folder();
    wave_trainer small = make(NULL), made = make(NULL);
    CHECK_OK(sgm_trainer_save_parts(small.trainer, file, .parts = SGM_PART_PARAMETERS));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    double slot = print_of(made.trainer, "optimiser.momentum.1-dense.weights");
    CHECK_OK(sgm_trainer_load_parts(made.trainer, file, .parts = SGM_PART_EVERYTHING, .skip_mismatch = true));
    CHECK_INT(made.trainer->position.iteration, 6);
    CHECK_INT(made.trainer->position.updates, 6);
    CHECK_NEAR(print_of(made.trainer, "optimiser.momentum.1-dense.weights"), slot, 0);
    CHECK_NEAR(print_of(made.trainer, "1-dense.weights"), print_of(small.trainer, "1-dense.weights"), 0);
    free_wave_trainer(small);
    free_wave_trainer(made);
    close_folder();
}

/* Twenty layers are more than a message has room for; they differ in the last. */
TEST(long_networks_are_told_where_they_differ)
{
    char network[1024] = "input(6)";
    open_folder();
    for (int i = 0; i < 20; i++)
        strcat(network, " + dense(13, tanh)");
    const size_t common = strlen(network);
    strcat(network, " + dense(3) + softmax_cross_entropy");
    wave_trainer one = make(network);
    strcpy(network + common, " + dense(4) + dense(3) + softmax_cross_entropy");
    wave_trainer other = make(network);
    CHECK_OK(sgm_trainer_save(one.trainer, file));
    CHECK_ERROR(sgm_trainer_load(other.trainer, file), "it is of the network \"... ");
    CHECK_ERROR(sgm_trainer_load(other.trainer, file),
                "dense(13, tanh) + dense(3) + softmax_cross_entropy\", the trainer has \"... ");
    CHECK_ERROR(sgm_trainer_load(other.trainer, file),
                "dense(13, tanh) + dense(4) + dense(3) + softmax_cross_entropy\"");
    free_wave_trainer(one);
    free_wave_trainer(other);
    close_folder();
}

TEST(a_single_difference_is_told_too)
{
    char *left = NULL;
    open_folder();
    wave_trainer one = make("input(6) + dense(3, tanh) + softmax_cross_entropy"),
                 other = make("input(6) + dense(3, relu) + softmax_cross_entropy");
    CHECK_OK(sgm_trainer_save(one.trainer, file));
    CHECK_OK(sgm_trainer_load_parts(other.trainer, file, .parts = SGM_PART_PARAMETERS | SGM_PART_NETWORK,
                                    .skip_mismatch = true, .left = &left));
    CHECK(left != NULL && strstr(left, "it is of the network \"input(6) + dense(3, tanh)") != NULL);
    sgm_string_free(left);
    free_wave_trainer(one);
    free_wave_trainer(other);
    close_folder();
}

TEST(a_run_goes_on_only_from_a_whole_checkpoint)
{
    char path[160], metrics[160];
    open_folder();
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", folder);
    wave_trainer made = make(NULL);
    CHECK_OK(sgm_trainer_save_parts(made.trainer, path, .parts = SGM_PART_PARAMETERS | SGM_PART_NETWORK));
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1, .folder = folder, .resume = true),
                "was saved without optimiser, position");
    free_wave_trainer(made);
    unlink(path);
    unlink(metrics);
    close_folder();
}

TEST(another_optimiser_does_not_take_the_memory)
{
    open_folder();
    wave_trainer from = make(NULL);
    wave_trainer to = make_wave_trainer((wave_options){.optimiser = sgm_adam(.learning_rate = 0.01)});
    CHECK_OK(sgm_trainer_run(from.trainer, .epochs = 1));
    CHECK_OK(sgm_trainer_save(from.trainer, file));
    CHECK_ERROR(sgm_trainer_load_parts(to.trainer, file, .parts = SGM_PART_PARAMETERS | SGM_PART_OPTIMISER),
                "it was trained with the optimiser momentum, the trainer has adam");
    CHECK_NEAR(number_of(to.trainer, "updates"), 0, 0);
    free_wave_trainer(to);
    to = make(NULL);
    CHECK_OK(sgm_trainer_load_parts(to.trainer, file, .parts = SGM_PART_PARAMETERS | SGM_PART_OPTIMISER));
    CHECK_NEAR(number_of(to.trainer, "updates"), 4, 0);
    CHECK_NEAR(number_of(to.trainer, "iteration"), 0, 0);
    CHECK_NEAR(print_of(to.trainer, "optimiser.momentum.1-dense.weights"),
               print_of(from.trainer, "optimiser.momentum.1-dense.weights"), 0);
    free_wave_trainer(from);
    free_wave_trainer(to);
    close_folder();
}

/* Half an update's gradients are of minibatches that the other training does not go on with. */
TEST(gradients_that_wait_for_their_update_stay_behind)
{
    open_folder();
    wave_trainer from = make_wave_trainer((wave_options){.optimiser = sgm_adam(.accumulate = 4)});
    wave_trainer to = make_wave_trainer((wave_options){.optimiser = sgm_adam(.accumulate = 4)});
    CHECK_OK(sgm_trainer_run(from.trainer, .iterations = 6));
    CHECK_OK(sgm_trainer_save(from.trainer, file));
    CHECK_OK(sgm_trainer_load_parts(to.trainer, file, .parts = SGM_PART_PARAMETERS | SGM_PART_OPTIMISER));
    CHECK_NEAR(print_of(to.trainer, "optimiser.accumulated.1-dense.weights"), 0, 0);
    CHECK_NEAR(print_of(to.trainer, "optimiser.momentum.1-dense.weights"),
               print_of(from.trainer, "optimiser.momentum.1-dense.weights"), 0);
    CHECK_OK(sgm_trainer_run(to.trainer, .iterations = 3));
    CHECK_NEAR(number_of(to.trainer, "updates"), 1, 0); /* that of the file */
    CHECK_OK(sgm_trainer_run(to.trainer, .iterations = 4));
    CHECK_NEAR(number_of(to.trainer, "updates"), 2, 0);
    free_wave_trainer(from);
    free_wave_trainer(to);
    close_folder();
}

TEST(a_file_of_another_program_has_parameters)
{
    open_folder();
    wave_trainer from = make(NULL), to = make(NULL);
    CHECK_OK(sgm_trainer_run(from.trainer, .epochs = 1));
    sgm_bundle *bundle = sgm_bundle_create();
    size_t count;
    const sgm_parameter *parameters = sgm_trainer_parameters(from.trainer, &count);
    for (size_t i = 0; i < count; i++) {
        sgm_tensor *value = sgm_trainer_get(from.trainer, parameters[i].name);
        CHECK_OK(sgm_bundle_add(bundle, parameters[i].name, value));
        sgm_tensor_free(value);
    }
    CHECK_OK(sgm_bundle_save(bundle, file));
    sgm_bundle_free(bundle);
    CHECK_OK(sgm_trainer_load(to.trainer, file));
    CHECK_NEAR(print_of(to.trainer, "2-dense.weights"), print_of(from.trainer, "2-dense.weights"), 0);
    free_wave_trainer(from);
    free_wave_trainer(to);
    close_folder();
}

TEST(averages_begin_at_loaded_parameters)
{
    open_folder();
    wave_trainer from = make(NULL);
    wave_trainer to = make_wave_trainer((wave_options){.optimiser = sgm_adam(.average = 0.9)});
    CHECK_OK(sgm_trainer_run(from.trainer, .epochs = 1));
    CHECK_OK(sgm_trainer_save(from.trainer, file));
    CHECK_OK(sgm_trainer_load_parts(to.trainer, file, .parts = SGM_PART_PARAMETERS));
    CHECK_NEAR(print_of(to.trainer, "average.1-dense.weights"), print_of(from.trainer, "1-dense.weights"), 0);
    free_wave_trainer(from);
    free_wave_trainer(to);
    close_folder();
}

/* --- trainers without a network, and from trainer to trainer --- */

TEST(a_failed_load_leaves_no_network)
{
    open_folder();
    wave_trainer from = make(SMALL), wide = make(SMALL_WIDE);
    sgm__trainer_settings settings = {.seed = 1, .handler = from.handler, .precision = SGM_FLOAT32};
    sgm_trainer *unscheduled = sgm__trainer_create("unscheduled", &settings);
    CHECK_OK(sgm_trainer_save_parts(from.trainer, file, .states = "1-*.*"));
    CHECK_ERROR(sgm_trainer_load(unscheduled, file), "'2-dense.weights' is missing");
    CHECK(unscheduled->learner.network == NULL);
    CHECK_OK(sgm_trainer_freeze(unscheduled, "9-dense.weights"));
    CHECK_OK(sgm_trainer_save(from.trainer, file));
    CHECK_ERROR(sgm_trainer_load(unscheduled, file), "freezing '9-dense.weights' matches no parameter");
    CHECK(unscheduled->learner.network == NULL);
    CHECK_OK(sgm_trainer_unfreeze(unscheduled, "9-dense.weights"));
    CHECK_OK(sgm_trainer_copy_parameters(unscheduled, wide.trainer)); /* no state of the first one is left */
    CHECK_NEAR(print_of(unscheduled, "1-dense.weights"), print_of(wide.trainer, "1-dense.weights"), 0);
    sgm__trainer_free(unscheduled);
    unscheduled = sgm__trainer_create("unscheduled", &settings);
    CHECK_ERROR(sgm_trainer_load_parts(unscheduled, file, .parts = SGM_PART_PARAMETERS),
                "the trainer has no network yet");
    sgm__trainer_free(unscheduled);
    free_wave_trainer(from);
    free_wave_trainer(wide);
    close_folder();
}

TEST(parameters_go_from_trainer_to_trainer)
{
    wave_trainer from = make(SMALL), to = make(SMALL_RELU), wide = make(SMALL_WIDE);
    CHECK_OK(sgm_trainer_run(from.trainer, .epochs = 1));
    CHECK_OK(sgm_trainer_copy_parameters(to.trainer, from.trainer));
    CHECK_NEAR(print_of(to.trainer, "2-dense.weights"), print_of(from.trainer, "2-dense.weights"), 0);
    CHECK_NEAR(number_of(to.trainer, "iteration"), 0, 0);
    CHECK_ERROR(sgm_trainer_copy_parameters(wide.trainer, from.trainer), "'waves' does not fit the trainer");
    CHECK_ERROR(sgm_trainer_copy_parameters(to.trainer, NULL), "is NULL");
    CHECK_OK(sgm_trainer_copy_parts(wide.trainer, from.trainer, .parts = SGM_PART_PARAMETERS,
                                    .states = "2-*.biases"));
    CHECK_NEAR(print_of(wide.trainer, "2-dense.biases"), print_of(from.trainer, "2-dense.biases"), 0);
    free_wave_trainer(from);
    free_wave_trainer(to);
    free_wave_trainer(wide);
}

static void *run_for_long(void *trainer)
{
    return sgm_trainer_run((sgm_trainer *)trainer, .epochs = 1000000) == SGM_OK ? trainer : NULL;
}

/* An unscheduled trainer that measures beside a training: each copy is of one moment between two iterations.
 */
TEST(parameters_of_a_running_trainer_are_copied_between_iterations)
{
    wave_trainer from = make(NULL), unscheduled = make(NULL);
    sgm_dataset *held_out = wave_dataset();
    sgm_iterator *iterator = sgm_by_block(held_out);
    pthread_t thread;
    void *ended;
    double newest = 0;
    CHECK_INT(pthread_create(&thread, NULL, run_for_long, from.trainer), 0);
    while (sgm_trainer_get_state(from.trainer) == SGM_TRAINER_IDLE)
        usleep(100);
    for (int i = 0; i < 40; i++) {
        sgm_metrics metrics;
        CHECK_OK(sgm_trainer_copy_parameters(unscheduled.trainer, from.trainer));
        CHECK_OK(sgm_trainer_evaluate(unscheduled.trainer, iterator, &metrics));
        newest = metrics.loss;
    }
    CHECK_OK(sgm_trainer_stop(from.trainer, "seen enough"));
    CHECK_INT(pthread_join(thread, &ended), 0);
    CHECK(ended == from.trainer);
    CHECK(isfinite(newest) && number_of(from.trainer, "iteration") > 0);
    CHECK_NEAR(number_of(unscheduled.trainer, "iteration"), 0, 0);
    sgm_iterator_free(iterator);
    sgm_dataset_free(held_out);
    free_wave_trainer(from);
    free_wave_trainer(unscheduled);
}

TEST(a_whole_copy_goes_on_like_the_original)
{
    wave_trainer from = make(NULL), to = make(NULL);
    CHECK_OK(sgm_trainer_run(from.trainer, .epochs = 3, .iterations = 6));
    CHECK_OK(sgm_trainer_copy_parts(to.trainer, from.trainer));
    CHECK_OK(sgm_trainer_run(from.trainer, .epochs = 3));
    CHECK_OK(sgm_trainer_run(to.trainer, .epochs = 3));
    CHECK_NEAR(print_of(to.trainer, "1-dense.weights"), print_of(from.trainer, "1-dense.weights"), 0);
    free_wave_trainer(from);
    free_wave_trainer(to);
}

/* --- what was measured, shared, and changed --- */

TEST(metrics_and_shared_results_are_there_again)
{
    open_folder();
    wave_trainer both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = make(NULL);
        sgm_dataset *held_out = wave_dataset();
        CHECK_OK(sgm_trainer_add_data(both[i].trainer, "validation", sgm_by_block(held_out)));
        sgm_dataset_free(held_out);
        CHECK_OK(sgm_trainer_add_hook(both[i].trainer,
                                      sgm_accumulator("training.loss", .when = sgm_every(1, SGM_EPOCH))));
        CHECK_OK(sgm_trainer_add_hook(both[i].trainer, sgm_running_time(SGM_ITERATION)));
    }
    CHECK_OK(sgm_trainer_run(both[0].trainer, .epochs = 3, .iterations = 6));
    CHECK_OK(sgm_trainer_save(both[0].trainer, file));
    CHECK_OK(sgm_trainer_load(both[1].trainer, file));
    static const char *const names[] = {"validation.loss", "validation.accuracy", "optimiser.loss",
                                        "shared.training_loss_sum"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(isfinite(number_of(both[0].trainer, names[i])));
        CHECK_NEAR(number_of(both[1].trainer, names[i]), number_of(both[0].trainer, names[i]), 0);
    }
    CHECK(isfinite(number_of(both[0].trainer, "shared.time_iteration_last")));
    CHECK(!has(both[1].trainer, "shared.time_iteration_last")); /* of another run's clock */
    free_wave_trainer(both[0]);
    free_wave_trainer(both[1]);
    close_folder();
}

static void set_rate(sgm_trainer *trainer, double rate)
{
    CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(trainer), "optimiser.learning_rate",
                                      sgm_number_content(rate), NULL, NULL));
}

TEST(values_that_were_changed_stay_changed)
{
    open_folder();
    wave_trainer first = make(NULL), same = make(NULL), other = make(NULL);
    CHECK_OK(sgm_trainer_save(first.trainer, other_file));
    set_rate(first.trainer, 0.05);
    set_rate(first.trainer, 0.025);
    CHECK_OK(sgm_trainer_save(first.trainer, file));
    CHECK_OK(sgm_trainer_load(same.trainer, file));
    CHECK_NEAR(number_of(same.trainer, "optimiser.learning_rate"), 0.025, 0);
    CHECK_OK(sgm_trainer_load(same.trainer, other_file)); /* from before the change */
    CHECK_NEAR(number_of(same.trainer, "optimiser.learning_rate"), 0.1, 0);
    CHECK_OK(sgm_trainer_set_optimiser(other.trainer, sgm_momentum(.learning_rate = 0.7)));
    sgm_set_logger(keep_log, NULL, SGM_LOG_WARNING);
    CHECK_OK(sgm_trainer_load(other.trainer, file));
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    CHECK_NEAR(number_of(other.trainer, "optimiser.learning_rate"), 0.7, 0);
    CHECK_STR(newest_log, "optimiser.learning_rate was changed from 0.1 to "
                          "0.025 before the checkpoint, but is set otherwise now: that stays");
    CHECK_OK(sgm_trainer_load_parts(other.trainer, file, .parts = SGM_PART_PARAMETERS));
    free_wave_trainer(first);
    free_wave_trainer(same);
    free_wave_trainer(other);
    close_folder();
}

/* A rule's change is part of the training: what goes on in between knows it. */
TEST(a_resumed_run_keeps_what_a_rule_set)
{
    open_folder();
    wave_trainer whole = make(NULL), first = make(NULL), second = make(NULL);
    sgm_trainer *const all[] = {whole.trainer, first.trainer, second.trainer};
    for (int i = 0; i < 3; i++)
        CHECK_OK(sgm_trainer_add_hook(
            all[i], sgm_rule_hook("every 5 iterations set optimiser.learning_rate *= 0.5")));
    CHECK_OK(sgm_trainer_run(whole.trainer, .epochs = 3));
    CHECK_OK(sgm_trainer_run(first.trainer, .epochs = 3, .iterations = 7));
    CHECK_OK(sgm_trainer_save(first.trainer, file));
    CHECK_OK(sgm_trainer_load(second.trainer, file));
    CHECK_OK(sgm_trainer_run(second.trainer, .epochs = 3));
    CHECK_NEAR(number_of(second.trainer, "optimiser.learning_rate"), 0.025, 0);
    CHECK_NEAR(print_of(second.trainer, "1-dense.weights"), print_of(whole.trainer, "1-dense.weights"), 0);
    free_wave_trainer(whole);
    free_wave_trainer(first);
    free_wave_trainer(second);
    close_folder();
}

/* --- what preprocessors have learnt --- */

/* Its one number is a range's end, which is infinite until a value is seen. */
static sgm_status extract_as_it_is(void *self, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    (void)self;
    return sgm_extractor_extract(parent, count, block);
}

static sgm_status get_learnt(void *self, double *numbers, size_t *count)
{
    *count = 1;
    if (numbers != NULL)
        numbers[0] = *(double *)self;
    return SGM_OK;
}

static sgm_status set_learnt(void *self, const double *numbers, size_t count)
{
    if (count != 1)
        return sgm_fail(SGM_ERROR_FORMAT, "expected one number, got %zu", count);
    *(double *)self = numbers[0];
    return SGM_OK;
}

TEST(what_a_preprocessor_has_learnt_may_be_infinite)
{
    static const sgm_extractor_type type = {
        .name = "learning", .extract = extract_as_it_is, .get_state = get_learnt, .set_state = set_learnt};
    static const char rows[] = "1,2\n3,4\n5,7\n";
    double learnt[2] = {-INFINITY, 0};
    sgm_env *env = sgm_env_create("learning", .seed = 1);
    sgm_trainer *trainers[2];
    open_folder();
    for (int i = 0; i < 2; i++) {
        sgm_extractor *table = sgm_csv_extractor(
            sgm_csv_reader(sgm_memory_source("table", rows, strlen(rows)), .separator = ','),
            .fields = {{"inputs", 0, 0}, {"targets", 1, 1}});
        sgm_dataset *data =
            sgm_dataset_create("table", .extractor = sgm_extractor_create(&type, &learnt[i], table, NULL));
        trainers[i] = sgm_trainer_create(env, i == 0 ? "first" : "second");
        sgm_trainer_set_network(trainers[i], "input(1) + dense(1) + mean_squared");
        sgm_trainer_set_data(trainers[i], sgm_minibatches(data, .size = 3));
        sgm_trainer_set_optimiser(trainers[i], sgm_gradient_descent(.learning_rate = 0.001));
        sgm_dataset_free(data);
        CHECK_OK(sgm_trainer_status(trainers[i]));
    }
    CHECK_OK(sgm_trainer_save(trainers[0], file));
    CHECK_OK(sgm_trainer_load(trainers[1], file));
    CHECK(learnt[1] == learnt[0]);
    sgm_env_free(env);
    close_folder();
}
