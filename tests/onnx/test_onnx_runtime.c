/* What ONNX Runtime gives for single nodes, and what must not be taken for something else. */
#include "base/allocator.h"
#include "base/base.h"
#include "base/folder.h"
#include "onnxruntime_cases.h"
#include "test.h"
#include <sigma/sigma.h>

#define TOLERANCE 1e-5
/* Of numbers near 0. */
#define SMALLEST_DIFFERENCE 1e-8

static void skip_without_onnx(void)
{
    sgm_clear_error();
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
}

/* Integers bit by bit: as double those of 64 bits would be rounded. */
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
        if (isnan(a[i])
                ? !isnan(b[i])
                : a[i] != b[i] && !(fabs(a[i] - b[i]) <= SMALLEST_DIFFERENCE + TOLERANCE * fabs(a[i])))
            TEST_FAIL("%s: element %zu is %.9g, expected %.9g", name, i, b[i], a[i]);
    if (!sgm_dtype_is_float(sgm_tensor_dtype(expected)) &&
        memcmp(sgm_tensor_const_data(expected), sgm_tensor_const_data(actual),
               count * sgm_dtype_size(sgm_tensor_dtype(expected))) != 0)
        TEST_FAIL("%s: integers differ in their last digits", name);
    free(a);
}

static bool has_input(const sgm_onnx *model, const char *name)
{
    for (size_t i = 0; sgm_onnx_input_at(model, i, NULL) != NULL; i++)
        if (strcmp(sgm_onnx_input_at(model, i, NULL), name) == 0)
            return true;
    return false;
}

/* Sets those inputs of a case that the model has. */
static void set_inputs(size_t i, sgm_onnx *model)
{
    for (size_t k = 0; k < 9 && runtime_cases[i].inputs[k].name != NULL; k++) {
        const bytes *tensor = &runtime_cases[i].inputs[k].tensor;
        sgm_tensor *input = sgm_onnx_parse_tensor(tensor->data, tensor->length);
        CHECK_OK(input);
        if (has_input(model, runtime_cases[i].inputs[k].name))
            CHECK_OK(sgm_onnx_set(model, runtime_cases[i].inputs[k].name, input));
        sgm_tensor_free(input);
    }
}

/* The model of a case, with its inputs set. */
static sgm_onnx *open_case(size_t i)
{
    sgm_onnx *model = sgm_onnx_parse(runtime_cases[i].model.data, runtime_cases[i].model.length, NULL);
    CHECK_OK(model);
    set_inputs(i, model);
    return model;
}

TEST(nodes_give_what_onnx_runtime_gives)
{
    skip_without_onnx();
    for (size_t i = 0; i < sizeof runtime_cases / sizeof *runtime_cases; i++) {
        const bytes *output = &runtime_cases[i].output;
        sgm_onnx *model = open_case(i);
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

/* What a model that was imported and exported again gives for the inputs of its case. */
static sgm_tensor *output_of_export(size_t i)
{
    sgm_onnx *model = open_case(i);
    sgm_graph *graph = sgm_graph_create();
    CHECK_OK(sgm_onnx_import(model, graph, 0));
    CHECK_OK(sgm_onnx_export(in_folder("again.onnx"), graph, NULL, .name = "again"));
    sgm_onnx *again = sgm_onnx_load(in_folder("again.onnx"));
    CHECK_OK(again);
    set_inputs(i, again);
    CHECK_OK(sgm_onnx_run(again));
    sgm_tensor *output = sgm_onnx_get(again, "y");
    CHECK_OK(output);
    sgm_onnx_free(again);
    sgm_graph_free(graph);
    sgm_onnx_free(model);
    return output;
}

TEST(models_that_are_exported_again_give_the_same)
{
    skip_without_onnx();
    open_folder();
    for (size_t i = 0; i < sizeof runtime_cases / sizeof *runtime_cases; i++) {
        sgm_tensor *output = output_of_export(i);
        sgm_tensor *expected =
            sgm_onnx_parse_tensor(runtime_cases[i].output.data, runtime_cases[i].output.length);
        check_values(runtime_cases[i].name, expected, output);
        sgm_tensor_free(expected);
        sgm_tensor_free(output);
    }
    close_folder();
}

/* Imports the model, while the allocation `fail_at` (counted from here) fails. */
static sgm_status import_with_failure(sgm_onnx *model, long fail_at)
{
    sgm_graph *graph = sgm_graph_create();
    atomic_store(&allocator_fail_once, true);
    atomic_store(&allocator_fail_at, allocator_calls + fail_at);
    sgm_status status = sgm_onnx_import(model, graph, 0);
    atomic_store(&allocator_fail_at, 0);
    sgm_graph_free(graph);
    return status;
}

/* Whichever allocation fails while a node is recorded, it is told as that, and nothing is left. */
TEST(nodes_tell_of_memory_that_is_not_there)
{
    skip_without_onnx();
    for (size_t i = 0; i < sizeof runtime_cases / sizeof *runtime_cases; i++) {
        allocator_start(0);
        sgm_onnx *model = open_case(i);
        sgm_status status = SGM_ERROR_MEMORY;
        for (long n = 1; status != SGM_OK; n++) {
            status = import_with_failure(model, n);
            if (status != SGM_OK && (status != SGM_ERROR_MEMORY || n > 10000))
                TEST_FAIL("%s: allocation %ld fails with '%s'", runtime_cases[i].name, n, sgm_last_error());
        }
        sgm_onnx_free(model);
        if (allocator_live != 0)
            TEST_FAIL("%s: %ld allocations are left", runtime_cases[i].name, (long)allocator_live);
        allocator_stop();
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

/* Allocations of recording so many rounds. */
static long count_to(int64_t n)
{
    allocator_start(0);
    sgm_onnx *model = sgm_onnx_parse(counting_loop.data, counting_loop.length, NULL);
    sgm_tensor *end = sgm_tensor_create_from(SGM_INT64, &(sgm_shape){0}, &n);
    CHECK_OK(sgm_onnx_set(model, "n", end));
    sgm_graph *graph = sgm_graph_create();
    long before = allocator_calls;
    CHECK_OK(sgm_onnx_import(model, graph, 0));
    long calls = allocator_calls - before;
    sgm_graph_free(graph);
    sgm_tensor_free(end);
    sgm_onnx_free(model);
    CHECK_INT(allocator_live, 0);
    allocator_stop();
    return calls;
}

/* Each round's condition begins where that of the round before ended. */
TEST(rounds_of_a_loop_cost_the_same_however_many_there_are)
{
    skip_without_onnx();
    CHECK(count_to(800) < 5 * count_to(200));
}
