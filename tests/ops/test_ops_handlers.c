/* Every handler against the reference in double precision: all operations, shapes, and operands that are
 * views.
 */
#include "../handlers/devices.h"
#include "op_program.h"
#include "test.h"

typedef struct trial {
    const op_case *c;
    int32_t variant;
    op_view view;
    sgm_dtype dtype;
} trial;

static const char *const views[] = {"as they are", "permuted", "sliced", "flipped", "repeated"};

/* Runs a trial; the output's values and type. NULL after a failed check. */
static double *run_trial(sgm_handler *handler, const trial *t, sgm_dtype dtype, const op_data *data,
                         size_t *count, sgm_dtype *result)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value inputs[OP_MAX_INPUTS];
    for (int32_t i = 0; i < t->c->input_count; i++) {
        sgm_shape shape = op_input_shape(t->c, t->variant, i);
        inputs[i] =
            sgm_input_value(graph, op_names[i], op_dtype(t->c->inputs[i].kind, dtype), &data[i].shape);
        inputs[i] = op_see(graph, inputs[i], &shape, t->view);
    }
    sgm_graph_add_output(graph, "y", t->c->record(graph, inputs, dtype));
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    double *values = NULL;
    if (program != NULL) {
        sgm_status status = SGM_OK;
        for (int32_t i = 0; i < t->c->input_count && status == SGM_OK; i++)
            status = op_feed(session, program, op_names[i], &data[i]);
        if (status == SGM_OK && sgm_session_run(session, program) == SGM_OK)
            values = op_read(session, program, "y", count);
        *result = sgm_program_output_type(program, "y").dtype;
    }
    sgm_session_free(session);
    sgm_graph_free(graph);
    return values;
}

static double tolerance(const trial *t, sgm_dtype result)
{
    double loose = t->c->loose > 0 ? t->c->loose : 1;
    if ((t->c->flags & OP_COPIES) != 0 || !sgm_dtype_is_float(result))
        return 0;
    return loose * (result == SGM_FLOAT64 ? 1e-12 : 2e-6);
}

static void check_trial(sgm_handler *reference, sgm_handler *handler, const trial *t)
{
    sgm__random random = sgm__random_make(11, (uint64_t)t->variant);
    op_data data[OP_MAX_INPUTS];
    for (int32_t i = 0; i < t->c->input_count; i++) {
        sgm_shape shape = op_input_shape(t->c, t->variant, i), fed = op_fed_shape(&shape, t->view);
        data[i] = op_data_create(&t->c->inputs[i], &fed, t->dtype, &random);
    }
    size_t count, expected_count;
    sgm_dtype result, wide;
    double *expected = run_trial(reference, t, SGM_FLOAT64, data, &expected_count, &wide);
    if (expected == NULL)
        TEST_FAIL("%s on the reference: %s", t->c->name, sgm_last_error());
    double *values = run_trial(handler, t, t->dtype, data, &count, &result);
    if (values == NULL)
        TEST_FAIL("%s on %s: %s", t->c->name, sgm_handler_name(handler), sgm_last_error());
    CHECK_INT(count, expected_count);
    for (size_t k = 0; k < count; k++)
        if (!test_near(values[k], expected[k], tolerance(t, result) * (1 + fabs(expected[k]))))
            TEST_FAIL("%s %s, operands %s, %s on %s: element %zu is %.9g, the reference gives %.9g",
                      t->c->name, t->c->input_count > 0 ? op_shape_text(&data[0].shape) : "", views[t->view],
                      sgm_dtype_name(t->dtype), sgm_handler_name(handler), k, values[k], expected[k]);
    for (int32_t i = 0; i < t->c->input_count; i++)
        free(data[i].values);
    free(values);
    free(expected);
}

/* The reference itself needs no long operands, and two views of them are enough. */
static bool is_worthwhile(const trial *t, bool also_long)
{
    sgm_shape shape = op_input_shape(t->c, t->variant, 0);
    return sgm_shape_elements(&shape) < 700 || (also_long && t->view <= OP_PERMUTED);
}

static void check_handler(const char *name, bool also_long)
{
    sgm_handler *reference = sgm_handler_create("reference");
    sgm_handler *handler = sgm_handler_create_with(name, NULL);
    CHECK_OK(reference);
    CHECK_OK(handler);
    for (int32_t i = 0; i < OP_CASES_COUNT; i++)
        for (int32_t variant = 0; variant < op_variants(&op_cases[i], also_long); variant++)
            for (op_view view = OP_PLAIN; view < OP_VIEWS; view++) {
                trial t = {&op_cases[i], variant, view, SGM_FLOAT32};
                if (!is_worthwhile(&t, also_long))
                    continue;
                check_trial(reference, handler, &t);
                t.dtype = SGM_FLOAT64;
                check_trial(reference, handler, &t);
            }
    sgm_handler_free(handler);
    sgm_handler_free(reference);
}

static void check_fully(const char *name)
{
    check_handler(name, true);
}

/* --- at the ends of the number line --- */

static const double extremes[] = {0,    -0.0,     1,         -1,  0.5,  -0.5, 1e-40, -1e-40, 1e-30,
                                  1e30, -1e30,    20,        -20, 87,   88.9, -88.9, -104,   700,
                                  -700, 710,      -750,      1e4, -1e4, 1e8,  2.5,   -2.5,   1e16,
                                  -0.2, INFINITY, -INFINITY, NAN, 0.3,  -3,   1e-8,  3,      0.99};
#define EXTREMES (sizeof extremes / sizeof *extremes)

/* Every extreme number, and for operations of two each with each. */
static void fill_extremes(op_data *data, int32_t input)
{
    for (size_t k = 0; k < EXTREMES * EXTREMES; k++)
        data->values[k] = extremes[input == 0 ? k % EXTREMES : k / EXTREMES];
}

/* Sines of large numbers are left out: what is lost by reducing them to one turn is nobody's error. So is
 * what mish makes of an exponential that became 0, times a number of some hundred. */
static bool is_sensible(const op_case *c, double x)
{
    if (strcmp(c->name, "mish") == 0 && x < -80 && x > -800)
        return false;
    bool turns = strcmp(c->name, "sin") == 0 || strcmp(c->name, "cos") == 0 || strcmp(c->name, "tan") == 0;
    return !turns || fabs(x) < 1e5 || isnan(x);
}

static void check_extremes(sgm_handler *reference, sgm_handler *handler, const op_case *c, sgm_dtype dtype)
{
    op_case line = *c; /* on vectors */
    trial t = {&line, 0, OP_PLAIN, dtype};
    op_data data[OP_MAX_INPUTS];
    sgm__random random = sgm__random_make(1, 1);
    line.flags = 0;
    for (int32_t i = 0; i < c->input_count; i++) {
        line.inputs[i].shape = sgm_shape_of((int64_t)(EXTREMES * EXTREMES));
        data[i] = op_data_create(&line.inputs[i], &line.inputs[i].shape, dtype, &random);
        fill_extremes(&data[i], i);
    }
    size_t count;
    sgm_dtype result;
    double *expected = run_trial(reference, &t, dtype, data, &count, &result);
    double *values = run_trial(handler, &t, dtype, data, &count, &result);
    if (expected == NULL || values == NULL)
        TEST_FAIL("%s: %s", c->name, sgm_last_error());
    double minimum = dtype == SGM_FLOAT32 ? 1.2e-38 : 2.3e-308; /* what is smaller may become 0, */
    double relative = dtype == SGM_FLOAT32 ? 4e-6 : 1e-11;
    for (size_t k = 0; k < count; k++) {
        double x =
            fmin(fmax(fabs(data[0].values[k]), 1), 1000); /* before it is multiplied by x, as in silu */
        if (is_sensible(c, data[0].values[k]) &&
            !test_near(values[k], expected[k], relative * fabs(expected[k]) + minimum * x))
            TEST_FAIL("%s of %g (and %g), %s on %s: %.9g, the reference gives %.9g", c->name,
                      data[0].values[k], extremes[k / EXTREMES], sgm_dtype_name(dtype),
                      sgm_handler_name(handler), values[k], expected[k]);
    }
    for (int32_t i = 0; i < c->input_count; i++)
        free(data[i].values);
    free(values);
    free(expected);
}

static void check_ends(const char *name)
{
    sgm_handler *reference = sgm_handler_create("reference");
    sgm_handler *handler = sgm_handler_create_with(name, NULL);
    CHECK_OK(reference);
    CHECK_OK(handler);
    for (int32_t i = 0; i < OP_CASES_COUNT; i++)
        if ((op_cases[i].flags & OP_SHAPES) != 0 && op_cases[i].inputs[0].kind == OP_FLOATS &&
            op_cases[i].input_count <= 2 && strcmp(op_cases[i].name, "cast") != 0) {
            check_extremes(reference, handler, &op_cases[i], SGM_FLOAT32);
            check_extremes(reference, handler, &op_cases[i], SGM_FLOAT64);
        }
    sgm_handler_free(handler);
    sgm_handler_free(reference);
}

TEST(reference_computes_the_same_in_float32)
{
    check_handler("reference", false);
}

TEST(reference_computes_the_same_without_fusion)
{
    check_handler("debug:reference", false);
}

/* Calls `check` with the name of every handler that computes, but for the reference. */
static void check_others(void (*check)(const char *name))
{
    int32_t others = 0;
    for (size_t i = 0; sgm_handler_name_at(i) != NULL; i++) {
        const char *name = sgm_handler_name_at(i);
        if (strcmp(name, "reference") == 0 || strcmp(name, "null") == 0 || strncmp(name, "debug", 5) == 0 ||
            is_device_name(name))
            continue; /* devices have tests of their own, with many operations in a program */
        others++;
        check(name);
    }
    if (others == 0)
        SKIP("there is no other handler");
}

TEST(every_other_handler_agrees_with_the_reference)
{
    check_others(check_fully);
}

TEST(every_other_handler_agrees_at_the_ends_of_the_number_line)
{
    check_others(check_ends);
}

TEST(every_operation_has_a_case)
{
    for (size_t i = 0; sgm_op_at(i) != NULL; i++) {
        bool found = false;
        for (int32_t k = 0; k < OP_CASES_COUNT && !found; k++)
            found = strcmp(op_cases[k].name, sgm_op_at(i)->name) == 0;
        if (!found)
            TEST_FAIL("%s has no case in op_cases.h", sgm_op_at(i)->name);
    }
}

TEST(every_handler_supports_every_operation)
{
    for (size_t h = 0; sgm_handler_name_at(h) != NULL; h++) {
        if (strcmp(sgm_handler_name_at(h), "null") == 0 || strncmp(sgm_handler_name_at(h), "debug", 5) == 0)
            continue;
        sgm_handler *handler = sgm_handler_create_with(sgm_handler_name_at(h), NULL);
        if (handler == NULL && is_device_name(sgm_handler_name_at(h)))
            continue;
        CHECK_OK(handler);
        for (size_t i = 0; sgm_op_at(i) != NULL; i++) {
            const char *support = sgm_handler_support(handler, sgm_op_at(i)->name, SGM_FLOAT32);
            if (support == NULL || strcmp(support, "none") == 0)
                TEST_FAIL("%s on %s: no support", sgm_op_at(i)->name, sgm_handler_name(handler));
        }
        sgm_handler_free(handler);
    }
}
