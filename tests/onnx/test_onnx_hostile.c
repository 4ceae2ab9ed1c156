/* Models that are damaged: an error or some result, but never a crash. */
#include "node_tests.h"

/* Loads it, sets what it can from the test's data, and runs it. */
static void try_model(const char *test, const void *bytes, size_t length)
{
    sgm_onnx *model = sgm_onnx_parse(
        bytes, length,
        &(sgm_onnx_options){.struct_size = sizeof(sgm_onnx_options), .handler = "cpu", .threads = 1});
    if (model == NULL)
        return;
    for (size_t i = 0; sgm_onnx_input_at(model, i, NULL) != NULL; i++) {
        sgm_tensor *input = read_tensor(test, "input", i);
        if (input != NULL)
            sgm_onnx_set(model, sgm_onnx_input_at(model, i, NULL), input);
        sgm_tensor_free(input);
    }
    sgm_onnx_run(model);
    sgm_onnx_free(model);
}

static void damage(char *bytes, size_t length, sgm__random *random)
{
    int flips = 1 + (int)sgm__random_below(random, 3);
    for (int i = 0; i < flips; i++) {
        size_t at = sgm__random_below(random, length);
        unsigned flipped = (unsigned char)bytes[at] ^ (1u << sgm__random_below(random, 8));
        bytes[at] =
            (char)(unsigned char)(sgm__random_below(random, 2) == 0 ? flipped : sgm__random_uint32(random));
    }
}

static void damage_model(const char *test, sgm__random *random, int times)
{
    char path[512];
    char *bytes;
    size_t length;
    snprintf(path, sizeof path, NODE_TESTS "/%s/model.onnx", test);
    CHECK_OK(sgm__file_read(path, 1 << 26, &bytes, &length));
    char *copy = malloc(length + 1);
    for (int i = 0; i < times; i++) {
        size_t kept = sgm__random_below(random, 8) == 0 ? 1 + sgm__random_below(random, length) : length;
        memcpy(copy, bytes, length);
        damage(copy, kept, random);
        try_model(test, copy, kept);
    }
    free(copy);
    sgm__free(bytes);
}

/* SIGMA_FUZZ: how many of each model, for a longer search than a test should take. */
TEST(damaged_models_are_errors)
{
    struct dirent **list;
    const char *wish = getenv("SIGMA_FUZZ");
    int count = list_node_tests(&list), times = wish != NULL ? atoi(wish) : 1;
    sgm__random random = sgm__random_make(wish != NULL ? (uint64_t)sgm__now() : 1, 0);
    for (int i = 0; i < count; i += wish != NULL ? 1 : 3)
        damage_model(list[i]->d_name, &random, times);
    free_node_tests(list, count);
}
