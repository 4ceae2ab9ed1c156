/* Models that are damaged: an error that says something, or outputs that can be read, and nothing is left
 * behind. */
#include "node_tests.h"
#include "stored_cases.h"

/* Shapes that a damaged model asks for may be as large as they like: what has no room here is an error. */
#define MAXIMUM_MEMORY ((size_t)1 << 26)

static atomic_long alive; /* allocations */

static void *reallocate(void *user, void *memory, size_t size)
{
    (void)user;
    void *grown = size <= MAXIMUM_MEMORY ? realloc(memory, size) : NULL;
    if (grown != NULL && memory == NULL)
        atomic_fetch_add(&alive, 1);
    return grown;
}

static void release(void *user, void *memory)
{
    (void)user;
    if (memory != NULL)
        atomic_fetch_sub(&alive, 1);
    free(memory);
}

__attribute__((constructor)) static void limit_memory(void)
{
    static const sgm_allocator limited = {reallocate, release, NULL};
    sgm_set_allocator(&limited);
}

/* How models ended. */
static int failed, ran;

/* The newest call failed, and says why. */
static void note_failure(const char *test)
{
    if (sgm_last_status() == SGM_OK || strlen(sgm_last_error()) < 10)
        TEST_FAIL("%s: a failure without a message: '%s'", test, sgm_last_error());
    failed++;
}

/* All outputs are there, each an array whose elements can be read. */
static void note_outputs(const char *test, sgm_onnx *model)
{
    for (size_t i = 0; sgm_onnx_output_at(model, i) != NULL; i++) {
        sgm_tensor *output = sgm_onnx_get(model, sgm_onnx_output_at(model, i));
        if (output == NULL && sgm_last_status() != SGM_ERROR_MEMORY)
            TEST_FAIL("%s: it ran, but output %zu is missing: %s", test, i, sgm_last_error());
        size_t count = output != NULL ? (size_t)sgm_shape_elements(sgm_tensor_shape(output)) : 0;
        double *values = malloc((count + 1) * sizeof *values);
        if (output != NULL)
            CHECK_OK(sgm_tensor_read(output, values, count));
        free(values);
        sgm_tensor_free(output);
    }
    ran++;
}

/* Sets what it can from the test's data, as `change` (NULL: not at all) makes it, and runs. Frees the model.
 */
static void try_model(const char *test, sgm_onnx *model, void (*change)(sgm_tensor *, sgm__random *),
                      sgm__random *random)
{
    if (model == NULL) {
        note_failure(test);
        return;
    }
    for (size_t i = 0; sgm_onnx_input_at(model, i, NULL) != NULL; i++) {
        sgm_tensor *input = read_tensor(test, "input", i);
        if (input != NULL && change != NULL)
            change(input, random);
        if (input != NULL)
            sgm_onnx_set(model, sgm_onnx_input_at(model, i, NULL), input);
        sgm_tensor_free(input);
    }
    sgm_clear_error();
    if (sgm_onnx_run(model) == SGM_OK)
        note_outputs(test, model);
    else
        note_failure(test);
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
    snprintf(path, sizeof path, TEST_DATA "/%s/model.onnx", test);
    CHECK_OK(sgm__file_read(path, 1 << 26, &bytes, &length));
    char *copy = malloc(length + 1);
    for (int i = 0; i < times; i++) {
        size_t kept = sgm__random_below(random, 8) == 0 ? 1 + sgm__random_below(random, length) : length;
        memcpy(copy, bytes, length);
        damage(copy, kept, random);
        sgm_clear_error();
        try_model(
            test,
            sgm_onnx_parse(
                copy, kept,
                &(sgm_onnx_options){.struct_size = sizeof(sgm_onnx_options), .handler = "cpu", .threads = 1}),
            NULL, random);
    }
    free(copy);
    sgm__free(bytes);
}

/* Whole numbers that shapes, axes, places and counts do not expect. */
static void set_extremes(sgm_tensor *tensor, sgm__random *random)
{
    static const double extremes[] = {-1, 0, 1, 2, 7, -9, 1000, 65536, INT32_MAX, 1e12, -0x1p63, 0x1p62};
    double values[64];
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
    if (sgm_dtype_is_float(sgm_tensor_dtype(tensor)) || count == 0 ||
        count > sizeof values / sizeof values[0])
        return;
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    values[sgm__random_below(random, count)] =
        extremes[sgm__random_below(random, sizeof extremes / sizeof extremes[0])];
    CHECK_OK(sgm_tensor_write(tensor, values, count));
}

static void run_with_extremes(const char *test, sgm__random *random)
{
    char path[512];
    snprintf(path, sizeof path, TEST_DATA "/%s/model.onnx", test);
    sgm_clear_error();
    try_model(test, sgm_onnx_load(path, .handler = "cpu", .threads = 1), set_extremes, random);
}

/* Of so many models; if nearly all ended in one way, the others would not have been looked at. */
static void check_ends(int tried, long before)
{
    CHECK_INT(failed + ran, tried);
    CHECK(failed > tried / 20 && ran > tried / 20);
    CHECK_INT(alive, before);
}

TEST(inputs_that_decide_may_be_anything)
{
    struct dirent **list;
    const char *wish = getenv("SIGMA_FUZZ");
    int count = list_node_tests("node", &list), times = wish != NULL ? atoi(wish) : 2;
    sgm__random random = sgm__random_make(wish != NULL ? (uint64_t)sgm__now() : 1, 1);
    long before = alive;
    failed = ran = 0;
    for (int i = 0; i < count * times; i++) {
        char test[300];
        snprintf(test, sizeof test, "node/%s", list[i % count]->d_name);
        run_with_extremes(test, &random);
    }
    check_ends(count * times, before);
    free_node_tests(list, count);
}

/* Runs one stored case with a damaged model, and its inputs where they still fit. */
static void damage_stored(reader *r, sgm__random *random)
{
    const sgm_onnx_options options = {.struct_size = sizeof options, .handler = "cpu", .threads = 1};
    block name = next_block(r), bytes = next_block(r);
    char text[128], *copy = malloc(bytes.length + 1);
    snprintf(text, sizeof text, "%.*s", (int)name.length, (const char *)name.bytes);
    memcpy(copy, bytes.bytes, bytes.length);
    damage(copy, bytes.length, random);
    sgm_clear_error();
    sgm_onnx *model = sgm_onnx_parse(copy, bytes.length, &options);
    bool loaded = model != NULL;
    for (size_t i = 0, count = next_block(r).bytes[0]; i < count; i++) {
        block given = next_block(r);
        sgm_tensor *input = loaded ? sgm_onnx_parse_tensor(given.bytes, given.length) : NULL;
        if (input != NULL && sgm_onnx_input_at(model, i, NULL) != NULL)
            sgm_onnx_set(model, sgm_onnx_input_at(model, i, NULL), input);
        sgm_tensor_free(input);
    }
    for (size_t i = 0, count = next_block(r).bytes[0]; i < count; i++)
        next_block(r);
    if (loaded)
        sgm_clear_error();
    if (loaded && sgm_onnx_run(model) == SGM_OK)
        note_outputs(text, model);
    else
        note_failure(text);
    sgm_onnx_free(model);
    free(copy);
}

TEST(damaged_cases_that_are_stored_are_errors)
{
    char *bytes;
    const char *wish = getenv("SIGMA_FUZZ");
    int times = wish != NULL ? atoi(wish) : 2, tried = 0;
    sgm__random random = sgm__random_make(wish != NULL ? (uint64_t)sgm__now() : 1, 2);
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
    long before = alive;
    failed = ran = 0;
    for (int i = 0; i < times; i++) {
        reader r = open_stored_cases(&bytes);
        for (; r.at < r.end; tried++)
            damage_stored(&r, &random);
        sgm__free(bytes);
    }
    check_ends(tried, before);
}

/* SIGMA_FUZZ: how many of each model, for a longer search than a test should take. */
TEST(damaged_models_are_errors)
{
    struct dirent **list;
    const char *wish = getenv("SIGMA_FUZZ");
    int count = list_node_tests("node", &list), times = wish != NULL ? atoi(wish) : 1;
    sgm__random random = sgm__random_make(wish != NULL ? (uint64_t)sgm__now() : 1, 0);
    long before = alive;
    int tried = 0;
    failed = ran = 0;
    for (int i = 0; i < count; i += wish != NULL ? 1 : 3) {
        char test[300];
        snprintf(test, sizeof test, "node/%s", list[i]->d_name);
        damage_model(test, &random, times);
        tried += times;
    }
    check_ends(tried, before);
    free_node_tests(list, count);
}
