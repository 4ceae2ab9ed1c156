/* Official cases of ONNX's newer operators and types, and pipelines of scikit-learn (stored_cases.py). */
#include "stored_cases.h"

static sgm_tensor *next_tensor(reader *r)
{
    block b = next_block(r);
    sgm_tensor *tensor = sgm_onnx_parse_tensor(b.bytes, b.length);
    CHECK_OK(tensor);
    return tensor;
}

/* Which case and output the file is at, for messages. */
static void check_output(const char *name, size_t number, const sgm_tensor *actual,
                         const sgm_tensor *expected)
{
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(expected));
    bool rough =
        sgm_tensor_dtype(expected) == SGM_BFLOAT16; /* ONNX's runner allows two units of its last digit */
    double tolerance = sgm_dtype_is_float(sgm_tensor_dtype(expected)) ? rough ? 0x1p-6 : 1e-3 : 0;
    if (sgm_tensor_dtype(actual) != sgm_tensor_dtype(expected) ||
        !sgm_shape_equal(sgm_tensor_shape(actual), sgm_tensor_shape(expected)))
        TEST_FAIL("%s: output %zu has another type or shape", name, number);
    double *a = calloc(2 * count + 1, sizeof *a), *b = a + count;
    CHECK_OK(sgm_tensor_read(actual, a, count));
    CHECK_OK(sgm_tensor_read(expected, b, count));
    for (size_t i = 0; i < count; i++)
        if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) ||
              fabs(a[i] - b[i]) <= 1e-6 + tolerance * fabs(b[i])))
            TEST_FAIL("%s: element %zu of output %zu is %.9g, expected %.9g", name, i, number, a[i], b[i]);
    free(a);
}

static void run_case(reader *r, const char *handler)
{
    char name[128];
    block text = next_block(r), bytes = next_block(r);
    snprintf(name, sizeof name, "%.*s", (int)text.length, (const char *)text.bytes);
    sgm_onnx_options options = {.struct_size = sizeof options, .handler = handler, .threads = 1};
    sgm_onnx *model = sgm_onnx_parse(bytes.bytes, bytes.length, &options);
    if (model == NULL)
        TEST_FAIL("%s: %s", name, sgm_last_error());
    for (size_t i = 0, count = next_block(r).bytes[0]; i < count; i++) {
        sgm_tensor *input = next_tensor(r);
        CHECK_OK(sgm_onnx_set(model, sgm_onnx_input_at(model, i, NULL), input));
        sgm_tensor_free(input);
    }
    if (sgm_onnx_run(model) != SGM_OK)
        TEST_FAIL("%s: %s", name, sgm_last_error());
    for (size_t i = 0, count = next_block(r).bytes[0]; i < count; i++) {
        sgm_tensor *expected = next_tensor(r), *actual = sgm_onnx_get(model, sgm_onnx_output_at(model, i));
        CHECK_OK(actual);
        check_output(name, i, actual, expected);
        sgm_tensor_free(expected);
        sgm_tensor_free(actual);
    }
    sgm_onnx_free(model);
}

static void run_all(const char *handler)
{
    char *bytes;
    int count = 0;
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
    reader r = open_stored_cases(&bytes);
    for (; r.at < r.end; count++)
        run_case(&r, handler);
    CHECK(count > 70);
    sgm__free(bytes);
}

TEST(stored_cases_give_their_outputs)
{
    run_all("cpu");
}

TEST(stored_cases_give_their_outputs_on_the_reference)
{
    run_all("reference");
}

/* The model of the case, where `from` is last replaced by `to`; both are equally long. NULL as of
 * sgm_onnx_parse. */
static sgm_onnx *load_changed(const char *test, const char *from, const char *to)
{
    char *bytes;
    sgm_onnx *model = NULL;
    size_t length = strlen(from);
    bool found = false;
    reader r = open_stored_cases(&bytes);
    while (!found) {
        block name = next_block(&r), file = next_block(&r);
        for (int lists = 0; lists < 2; lists++)
            for (size_t i = next_block(&r).bytes[0]; i > 0; i--)
                next_block(&r);
        found = name.length == strlen(test) && memcmp(name.bytes, test, name.length) == 0;
        if (!found)
            continue;
        unsigned char *start = (unsigned char *)bytes,
                      *at = start + (file.bytes - start) + file.length - length;
        while (memcmp(at, from, length) != 0)
            at--;
        memcpy(at, to, length);
        model = sgm_onnx_parse(file.bytes, file.length, NULL);
    }
    sgm__free(bytes);
    return model;
}

static void expect_refusal(const char *test, const char *from, const char *to, const char *message)
{
    sgm_onnx *model = load_changed(test, from, to);
    sgm_graph *graph = sgm_graph_create();
    CHECK_OK(model);
    CHECK_ERROR(sgm_onnx_import(model, graph, 1), message);
    sgm_graph_free(graph);
    sgm_onnx_free(model);
}

TEST(sequences_where_tensors_are_expected_are_refused_by_name)
{
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
    expect_refusal("sequences", "newest", "larger",
                   "(SequenceInsert of opset 19): its input 1 is a sequence, where a tensor is");
    expect_refusal("sequences", "same", "rows", "output 'rows' is a sequence, not a tensor");
    expect_refusal("sequences", "single", "newest",
                   "(SequenceAt of opset 19): layer same: its input 0 is a tensor, where a sequence");
}

TEST(classes_that_are_texts_have_their_names)
{
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
    sgm_onnx *model = load_changed("names of classes", "yes", "yes");
    CHECK_OK(model);
    CHECK_STR(sgm_onnx_class_at(model, 0), "no");
    CHECK_STR(sgm_onnx_class_at(model, 1), "");
    CHECK_STR(sgm_onnx_class_at(model, 2), "yes");
    CHECK(sgm_onnx_class_at(model, 3) == NULL);
    CHECK(!sgm_onnx_output_is_class(model, 0));
    CHECK(sgm_onnx_output_is_class(model, 1));
    CHECK(sgm_onnx_output_is_class(model, 2));
    CHECK(!sgm_onnx_output_is_class(model, 3));
    sgm_onnx_free(model);
    model = load_changed("a forest", "label", "label");
    CHECK(sgm_onnx_class_at(model, 0) == NULL);
    CHECK(!sgm_onnx_output_is_class(model, 0));
    sgm_onnx_free(model);
}

TEST(other_texts_than_one_list_of_names_are_refused)
{
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
    CHECK_ERROR(load_changed("names of classes", "yes", "may"),
                "it names 3 classes, from 'no' on, where another part of the model names 3, from 'no' on");
    CHECK_ERROR(load_changed("names of classes", "classes", "unknown"),
                "tensor 'unknown': type string is not supported");
    CHECK_ERROR(load_changed("names of classes", "Identity", "Encoders"), "'Encoders' is not supported");
    CHECK_ERROR(
        load_changed("names of classes", "Identity", "Softplus"),
        "node 1, 'label' (Softplus of opset 19): its input 0, 'told', is of names of classes, with which "
        "nothing can be computed here; export the classifier with whole numbers as classes");
    CHECK_ERROR(
        load_changed("names of classes in a branch", "Squeeze", "Softmax"),
        "node 1, 'chosen' (If of opset 19): node 0, 'by_1' (Softmax of opset 19): its input 0, 'told', is");
    CHECK_ERROR(load_changed("names of classes in a branch", "Identity", "Softplus"),
                "node 2, 'label' (Passes of opset 19): node 1, 'passed' (Softplus of opset 19): its input 0, "
                "'turned', is");
}

TEST(machines_whose_lists_do_not_fit_are_refused)
{
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
    expect_refusal("a machine of probabilities, rbf", "prob_b", "prob_c",
                   "its lists do not fit 3 classes and ");
    expect_refusal("a machine of probabilities, rbf", "vectors_per_class", "vectors_of_classe",
                   "54 'coefficients' for 3 rows of 4 features");
    expect_refusal("a machine of probabilities, rbf", "RBF", "RBX",
                   "'kernel_type' is none of LINEAR, POLY, RBF and SIGMOID");
    expect_refusal("a machine of numbers, rbf", "n_supports", "n_supporte", "for 1 rows of 4 features");
    expect_refusal("a machine of numbers, rbf", "rho", "rha", "it has other than one target, one 'rho'");
    expect_refusal("a machine of numbers, rbf", "kernel_params", "kernel_parama", "it has 0 'kernel_params'");
}

/* The attribute is there, but of another kind than a text. */
TEST(an_equation_that_is_no_text_is_refused)
{
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
    expect_refusal("test_einsum_transpose", "equation\x22", "equation\x62",
                   "an 'equation' of 1 to 255 letters");
}
