/* What ONNX Runtime gives for single nodes, and what must not be taken for something else. */
#include "base/base.h"
#include "onnxruntime_cases.h"
#include "test.h"
#include <sigma/sigma.h>

#define TOLERANCE 1e-5

static void skip_without_onnx(void)
{
    sgm_clear_error();
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
}

static void check_values(const char *name, const sgm_tensor *expected, const sgm_tensor *actual)
{
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(expected));
    double *a = malloc(2 * count * sizeof *a), *b = a + count;
    if (!sgm_shape_equal(sgm_tensor_shape(expected), sgm_tensor_shape(actual)) ||
        sgm_tensor_dtype(expected) != sgm_tensor_dtype(actual))
        TEST_FAIL("%s: another shape or type", name);
    CHECK_OK(sgm_tensor_read(expected, a, count));
    CHECK_OK(sgm_tensor_read(actual, b, count));
    for (size_t i = 0; i < count; i++)
        if (isnan(a[i]) ? !isnan(b[i]) : a[i] != b[i] && !(fabs(a[i] - b[i]) <= TOLERANCE * (1 + fabs(a[i]))))
            TEST_FAIL("%s: element %zu is %.9g, expected %.9g", name, i, b[i], a[i]);
    free(a);
}

TEST(nodes_give_what_onnx_runtime_gives)
{
    skip_without_onnx();
    for (size_t i = 0; i < sizeof runtime_cases / sizeof *runtime_cases; i++) {
        const bytes *model_bytes = &runtime_cases[i].model, *output = &runtime_cases[i].output;
        sgm_onnx *model = sgm_onnx_parse(model_bytes->data, model_bytes->length, NULL);
        CHECK_OK(model);
        for (size_t k = 0; k < 9 && runtime_cases[i].inputs[k].name != NULL; k++) {
            const bytes *tensor = &runtime_cases[i].inputs[k].tensor;
            sgm_tensor *input = sgm_onnx_parse_tensor(tensor->data, tensor->length);
            CHECK_OK(input);
            CHECK_OK(sgm_onnx_set(model, runtime_cases[i].inputs[k].name, input));
            sgm_tensor_free(input);
        }
        CHECK_OK(sgm_onnx_run(model));
        sgm_tensor *actual = sgm_onnx_get(model, "y");
        sgm_tensor *expected = sgm_onnx_parse_tensor(output->data, output->length);
        CHECK_OK(actual);
        CHECK_OK(expected);
        check_values(runtime_cases[i].name, expected, actual);
        sgm_tensor_free(expected);
        sgm_tensor_free(actual);
        sgm_onnx_free(model);
    }
}

/* Until a graph is there, or an error. */
static sgm_status record(const bytes *model_bytes)
{
    sgm_onnx *model = sgm_onnx_parse(model_bytes->data, model_bytes->length, NULL);
    if (model == NULL)
        return sgm_last_status();
    sgm_graph *graph = sgm_graph_create();
    sgm_status status = sgm_onnx_import(model, graph, 0);
    sgm_graph_free(graph);
    sgm_onnx_free(model);
    return status;
}

TEST(what_is_not_known_is_refused_by_name)
{
    skip_without_onnx();
    for (size_t i = 0; i < sizeof refused_models / sizeof *refused_models; i++) {
        sgm_clear_error();
        CHECK_ERROR(record(&refused_models[i].model), refused_models[i].message);
    }
}
