/* Models of others against what transformers computes with them (fixtures.py): scores, what is generated,
 * losses of a training; and the way back. */
#include "models/compare.h"

static const char *const names[] = {"gpt2",         "gpt2_half", "llama", "llama3",
                                    "llama_linear", "mistral",   "qwen2", "qwen3"};
#define NAME_COUNT (sizeof names / sizeof *names)

static void compare_generation(sgm_model *model, const sgm_bundle *expected)
{
    sgm_generator *generator = sgm_generator_create(sgm_model_trainer(model));
    CHECK_OK(generator);
    const int64_t *inputs = sgm_tensor_const_data(sgm_bundle_get(expected, "inputs"));
    const int64_t *greedy = sgm_tensor_const_data(sgm_bundle_get(expected, "greedy"));
    int64_t said[TIME - 5];
    CHECK_OK(sgm_generator_generate(generator, inputs, 5, said, TIME - 5, SGM_GENERATION(.greedy = true)));
    for (int i = 0; i < TIME - 5; i++)
        CHECK_INT(said[i], greedy[i]);
    sgm_generator_free(generator);
}

TEST(models_compute_what_transformers_computes)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        sgm_bundle *expected = expected_of(names[i]);
        sgm_env *env = sgm_env_create("import");
        sgm_model *model = sgm_model_import(env, path_of(names[i]), .context = TIME);
        CHECK_OK(model);
        compare_scores(names[i], model, sgm_bundle_get(expected, "inputs"), expected);
        compare_generation(model, expected);
        compare_training(names[i], sgm_model_trainer(model), sgm_bundle_get(expected, "batches"), expected);
        sgm_env_free(env);
        sgm_bundle_free(expected);
    }
}

/* Its network has other widths than the model, which is found when some parameters are set already. */
TEST(a_load_that_fails_leaves_no_zeros)
{
    sgm_env *env = sgm_env_create("import");
    sgm_pretrained *pretrained = sgm_pretrained_open(path_of("gpt2"), .context = TIME);
    sgm_trainer *failed = sgm_trainer_create(env, "failed"), *plain = sgm_trainer_create(env, "plain");
    char network[1000];
    size_t count;
    snprintf(network, sizeof network, "%s", sgm_pretrained_network(pretrained));
    char *width = strstr(network, "dense(64");
    CHECK(width != NULL);
    memcpy(width, "dense(48", 8);
    CHECK_OK(sgm_trainer_set_network(failed, network));
    CHECK_OK(sgm_trainer_set_network(plain, network));
    CHECK_ERROR(sgm_pretrained_load(pretrained, failed), "is not there, or of another shape");
    CHECK_OK(sgm_trainer_prepare(plain));
    const sgm_parameter *parameters = sgm_trainer_parameters(plain, &count);
    CHECK(count > 10);
    for (size_t i = 0; i < count; i++) {
        sgm_tensor *a = sgm_trainer_get(failed, parameters[i].name),
                   *b = sgm_trainer_get(plain, parameters[i].name);
        CHECK_OK(a);
        CHECK_OK(b);
        size_t bytes = (size_t)sgm_shape_elements(&parameters[i].type.shape) * sizeof(float);
        CHECK(memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b), bytes) == 0);
        sgm_tensor_free(a);
        sgm_tensor_free(b);
    }
    sgm_pretrained_free(pretrained);
    sgm_env_free(env);
}

/* transformers takes "rope_scaling" where "rope_parameters" is there too, with the base beside it: in
 * whichever way config.json says what the fixture's does, the scores are those of the fixture. */
TEST(an_older_scaling_of_positions_stands_for_the_newer_settings)
{
    static const char *const ways[] = {
        "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4.0}, \"rope_theta\": 10000.0, "
        "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 77.0}, \"was\": {",
        "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4.0, \"rope_theta\": 10000.0}, "
        "\"rope_theta\": 77.0, \"was\": {",
        "\"rope_scaling\": {}, \"rope_theta\": 77.0, \"rope_parameters\": {"};
    sgm_bundle *expected = expected_of("llama_linear");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *folder = copy_of("llama_linear");
        replace(folder, "config.json", "\"rope_parameters\": {", ways[i]);
        sgm_env *env = sgm_env_create("import");
        sgm_model *model = sgm_model_import(env, folder, .context = TIME);
        CHECK_OK(model);
        compare_scores(ways[i], model, sgm_bundle_get(expected, "inputs"), expected);
        sgm_env_free(env);
    }
    sgm_bundle_free(expected);
}

TEST(a_cost_that_cannot_leave_targets_out_is_refused)
{
    CHECK_ERROR(sgm_pretrained_open(path_of("bert_embed"), .ignore_negative = true),
                "ignore_negative is for networks that end in softmax_cross_entropy");
    sgm_pretrained *model = sgm_pretrained_open(path_of("bert_fill"), .ignore_negative = true);
    CHECK_OK(model);
    CHECK(strstr(sgm_pretrained_network(model), " + softmax_cross_entropy(ignore_negative)") != NULL);
    sgm_pretrained_free(model);
}

/* The targets of rows of tokens, of which some are not learnt: of the first row of each minibatch 7, of the
 * second 5. */
static sgm_tensor *masked_targets(sgm_tensor *rows)
{
    sgm_shape shape = sgm_shape_of(2 * STEPS, TIME);
    sgm_tensor *next = sgm_tensor_slice(rows, 1, 1, TIME + 1, 1);
    sgm_tensor *targets = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_OK(sgm_tensor_assign(targets, next));
    float *values = sgm_tensor_data(targets);
    for (int64_t row = 0; row < 2 * STEPS; row++)
        for (int64_t i = 0; i < TIME; i++)
            if (row % 2 == 0 ? i < 7 : i < 2 || i >= 9)
                values[row * TIME + i] = -1;
    sgm_tensor_free(next);
    return targets;
}

/* The losses are those of transformers 5.24 with labels of -100 at these places, by fixtures.py --masked. */
TEST(masked_targets_cost_what_they_cost_transformers)
{
    static const float masked[STEPS] = {4.116697788F, 3.621187925F, 4.249699116F, 5.001994133F, 4.312429905F,
                                        4.205585480F, 4.481205463F, 4.483486176F, 4.496169567F, 4.402475357F,
                                        4.175280094F, 4.679581642F, 4.491349697F, 4.276369572F, 4.388364792F,
                                        4.213171482F, 3.856389999F, 4.581711769F, 4.428495884F, 4.048947811F};
    sgm_bundle *expected = expected_of("llama");
    sgm_env *env = sgm_env_create("masked");
    sgm_trainer *trainer = sgm_trainer_create(env, "masked");
    sgm_pretrained *model = sgm_pretrained_open(path_of("llama"), .context = TIME, .ignore_negative = true);
    sgm_shape shape = sgm_shape_of(2 * STEPS, TIME + 1);
    sgm_tensor *rows = sgm_tensor_reshape(sgm_bundle_get(expected, "batches"), &shape);
    sgm_tensor *inputs = sgm_tensor_slice(rows, 1, 0, TIME, 1), *targets = masked_targets(rows);
    CHECK_OK(model);
    CHECK_OK(sgm_pretrained_load(model, trainer));
    compare_losses("llama", trainer, inputs, targets, masked);
    sgm_tensor_free(targets);
    sgm_tensor_free(inputs);
    sgm_tensor_free(rows);
    sgm_pretrained_free(model);
    sgm_env_free(env);
    sgm_bundle_free(expected);
}
