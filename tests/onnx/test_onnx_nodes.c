/* ONNX's node tests: docs/onnx.md says which are refused, and that is checked here. */
#include "node_tests.h"

#define DOCUMENT "docs/onnx.md"
#define LIST_BEGIN "<!-- node tests that are refused -->"

typedef enum outcome { PASSED, DIFFERS, REFUSED } outcome;

/* NumPy's allclose with the tolerances of ONNX's own runner; other types are equal. What is expected is read
 * as the library reads it, narrow types in the wider ones that hold them. */
static bool is_close(const sgm_tensor *actual, const sgm_tensor *expected)
{
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(expected));
    bool same = sgm_tensor_dtype(actual) == sgm_tensor_dtype(expected) &&
                sgm_shape_equal(sgm_tensor_shape(actual), sgm_tensor_shape(expected));
    double *a = calloc(count + 1, sizeof *a), *b = calloc(count + 1, sizeof *b);
    same =
        same && sgm_tensor_read(actual, a, count) == SGM_OK && sgm_tensor_read(expected, b, count) == SGM_OK;
    bool exact = !sgm_dtype_is_float(sgm_tensor_dtype(expected));
    for (size_t i = 0; i < count && same; i++)
        same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) ||
               (!exact && fabs(a[i] - b[i]) <= 1e-7 + 1e-3 * fabs(b[i]));
    free(a);
    free(b);
    return same;
}

static outcome compare_outputs(sgm_onnx *model, const char *test)
{
    for (size_t i = 0; sgm_onnx_output_at(model, i) != NULL; i++) {
        sgm_tensor *expected = read_tensor(test, "output", i);
        sgm_tensor *actual = expected != NULL ? sgm_onnx_get(model, sgm_onnx_output_at(model, i)) : NULL;
        bool equal = actual != NULL && is_close(actual, expected);
        sgm_tensor_free(actual);
        sgm_tensor_free(expected);
        if (!equal)
            return expected == NULL ? REFUSED : DIFFERS;
    }
    return PASSED;
}

static outcome run_node_test(const char *test, const char *handler)
{
    char path[512];
    snprintf(path, sizeof path, TEST_DATA "/%s/model.onnx", test);
    sgm_onnx *model = sgm_onnx_load(path, .handler = handler, .threads = 1);
    if (model == NULL)
        return REFUSED;
    outcome result = PASSED;
    for (size_t i = 0; sgm_onnx_input_at(model, i, NULL) != NULL && result == PASSED; i++) {
        sgm_tensor *input = read_tensor(test, "input", i);
        if (input == NULL || sgm_onnx_set(model, sgm_onnx_input_at(model, i, NULL), input) != SGM_OK)
            result = REFUSED;
        sgm_tensor_free(input);
    }
    if (result == PASSED && sgm_onnx_run(model) != SGM_OK)
        result = REFUSED;
    if (result == PASSED)
        result = compare_outputs(model, test);
    sgm_onnx_free(model);
    return result;
}

/* The words of the document behind the mark. */
static char *read_documented(void)
{
    char *text;
    size_t length;
    CHECK_OK(sgm__file_read(DOCUMENT, 1 << 20, &text, &length));
    char *list = strstr(text, LIST_BEGIN);
    CHECK(list != NULL);
    memmove(text, list, strlen(list) + 1);
    return text;
}

static bool is_documented(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if (isspace((unsigned char)at[-1]) && (at[length] == '\0' || isspace((unsigned char)at[length])))
            return true;
    return false;
}

/* Of "align_corners" with scales that give a size with a fraction two expect what no runtime gives: ONNX's
 * formula has the fraction, ONNX Runtime and PyTorch have the whole size, as here. And one has the bits of
 * bfloat16 as uint16, though it declares bfloat16. */
static bool is_otherwise_everywhere(const char *name)
{
    return strcmp(name, "resize_downsample_scales_linear_align_corners") == 0 ||
           strcmp(name, "resize_downsample_scales_cubic_align_corners") == 0 ||
           strcmp(name, "cast_FLOAT_to_BFLOAT16") == 0;
}

/* Values that are wrong are never right, whatever the document says; a refusal says why. */
static bool is_as_documented(const char *group, const char *test, const char *documented, int *passed)
{
    char path[512], name[512];
    snprintf(path, sizeof path, "%s/%s", group, test);
    bool node = strcmp(group, "node") == 0;
    snprintf(name, sizeof name, "%s%s%s", node ? "" : group, node ? "" : "/", test + strlen("test_"));
    sgm_clear_error();
    outcome result = run_node_test(path, "cpu");
    *passed += result == PASSED;
    if (result == DIFFERS && is_otherwise_everywhere(name))
        return !is_documented(documented, name);
    if (result != DIFFERS && (result != REFUSED || *sgm_last_error() != '\0') &&
        (result == REFUSED) == is_documented(documented, name))
        return true;
    printf("%s: %s, but " DOCUMENT " has %s: %s\n", name,
           result == PASSED    ? "passes"
           : result == DIFFERS ? "gives wrong values"
                               : "is refused",
           is_documented(documented, name) ? "it" : "it not", result == REFUSED ? sgm_last_error() : "");
    return false;
}

TEST(tests_pass_as_documented)
{
    char *documented = NULL;
    int wrong = 0;
    for (size_t g = 0; g < GROUP_COUNT; g++) {
        struct dirent **list;
        int count = list_node_tests(test_groups[g], &list), passed = 0;
        if (documented == NULL)
            documented = read_documented();
        for (int i = 0; i < count; i++)
            wrong += !is_as_documented(test_groups[g], list[i]->d_name, documented, &passed);
        printf("%s: %d of %d tests pass\n", test_groups[g], passed, count);
        free_node_tests(list, count);
    }
    sgm__free(documented);
    CHECK_INT(wrong, 0);
}

/* The reference handler gives the same; a few operators are enough, for it is slow. */
TEST(some_node_tests_pass_on_the_reference_handler)
{
    static const char *const tests[] = {"node/test_lstm_defaults",
                                        "node/test_conv_with_strides_padding",
                                        "node/test_gathernd_example_int32",
                                        "node/test_layer_normalization_default_axis",
                                        "node/test_top_k",
                                        "node/test_slice_neg_steps"};
    struct dirent **list;
    int count = list_node_tests("node", &list);
    free_node_tests(list, count);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (run_node_test(tests[i], "reference") != PASSED)
            TEST_FAIL("%s: %s", tests[i], sgm_last_error());
}
