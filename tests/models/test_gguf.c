/* Files of GGUF (gguf_models.py) against the folders that have the same weights, and against what the package
 * gguf makes of numbers in blocks. */
#include "models/compare.h"
#include "models/gguf_files.h"

/* The same network in the same words, but for what the folder has and the file does not: its precision. */
static void compare_networks(const char *name, bool has_tokenizer)
{
    sgm_pretrained *file = sgm_pretrained_open(file_of(name)), *folder = sgm_pretrained_open(path_of(name));
    CHECK_OK(file);
    CHECK_OK(folder);
    CHECK_STR(sgm_pretrained_network(file), sgm_pretrained_network(folder));
    const sgm_pretrained_info *own = sgm_pretrained_describe(file), *other = sgm_pretrained_describe(folder);
    CHECK_STR(own->architecture, other->architecture);
    CHECK_STR(own->task, "generate");
    CHECK_INT(own->parameters, other->parameters);
    CHECK_INT(own->longest, other->longest);
    CHECK_INT(own->tokens, 61);
    if (has_tokenizer)
        CHECK_STR(own->tokenizer, file_of(name));
    else
        CHECK(own->tokenizer == NULL);
    sgm_pretrained_free(file);
    sgm_pretrained_free(folder);
}

TEST(files_are_read_as_the_folders_of_the_same_models)
{
    static const char *const names[] = {"llama", "llama3", "llama_linear", "qwen2",
                                        "qwen3", "gpt2",   "gpt2_half"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sgm_bundle *expected = expected_of(names[i]);
        sgm_env *env = sgm_env_create("gguf");
        sgm_model *model = sgm_model_import(env, file_of(names[i]), .context = TIME);
        CHECK_OK(model);
        compare_scores(names[i], model, sgm_bundle_get(expected, "inputs"), expected);
        compare_networks(names[i], strcmp(names[i], "llama") == 0 || strcmp(names[i], "gpt2") == 0);
        sgm_env_free(env);
        sgm_bundle_free(expected);
    }
}

/* Of Q8_0 in the first block, the embedding and the output, of Q4_0 in the second. */
TEST(numbers_in_blocks_are_those_of_the_package)
{
    sgm_bundle *expected = sgm_bundle_load(GGUF "blocks.safetensors");
    sgm_env *env = sgm_env_create("blocks");
    sgm_trainer *trainer = sgm_trainer_create(env, "blocks");
    sgm_pretrained *pretrained = sgm_pretrained_open(GGUF "blocks.gguf", .context = TIME);
    const char *folder = new_folder();
    char path[300];
    CHECK_OK(expected);
    CHECK_OK(pretrained);
    CHECK_OK(sgm_pretrained_load(pretrained, trainer));
    CHECK_OK(sgm_pretrained_export(pretrained, trainer, folder));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    sgm_bundle *written = sgm_bundle_load(path);
    CHECK_OK(written);
    for (size_t i = 0; i < sgm_bundle_count(written); i++) {
        const char *name = sgm_bundle_name_at(written, i);
        const sgm_tensor *own = sgm_bundle_get(written, name), *other = sgm_bundle_get(expected, name);
        CHECK_OK(other);
        CHECK(sgm_shape_equal(sgm_tensor_shape(own), sgm_tensor_shape(other)));
        size_t size = (size_t)sgm_shape_elements(sgm_tensor_shape(own)) * sizeof(float);
        if (memcmp(sgm_tensor_const_data(own), sgm_tensor_const_data(other), size) != 0)
            TEST_FAIL("'%s' has other numbers", name);
    }
    CHECK_INT(sgm_bundle_count(written), 2 * 9 + 2);
    sgm_model *model = sgm_model_of(env, trainer);
    compare_scores("blocks", model, sgm_bundle_get(expected, "inputs"), expected);
    compare_training("blocks", trainer, sgm_bundle_get(expected, "batches"), expected);
    sgm_bundle_free(written);
    sgm_pretrained_free(pretrained);
    sgm_env_free(env);
    sgm_bundle_free(expected);
}
