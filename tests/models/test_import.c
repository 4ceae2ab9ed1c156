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
