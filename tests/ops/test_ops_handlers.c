/* Every handler against the reference in double precision: all operations, shapes, and operands that are
 * views.
 */
#include "op_program.h"

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
    sgm_output(graph, "y", t->c->record(graph, inputs, dtype));
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

static void check_handler(const char *name)
{
    sgm_handler *reference = sgm_handler_create("reference");
    sgm_handler *handler = sgm_handler_create_options(name, NULL);
    CHECK_OK(reference);
    CHECK_OK(handler);
    for (int32_t i = 0; i < OP_CASES_COUNT; i++)
        for (int32_t variant = 0; variant < op_variants(&op_cases[i]); variant++)
            for (op_view view = OP_PLAIN; view < OP_VIEWS; view++) {
                check_trial(reference, handler, &(trial){&op_cases[i], variant, view, SGM_FLOAT32});
                check_trial(reference, handler, &(trial){&op_cases[i], variant, view, SGM_FLOAT64});
            }
    sgm_handler_free(handler);
    sgm_handler_free(reference);
}

TEST(reference_computes_the_same_in_float32)
{
    check_handler("reference");
}

TEST(reference_computes_the_same_without_fusion)
{
    check_handler("debug:reference");
}

TEST(every_other_handler_agrees_with_the_reference)
{
    int32_t others = 0;
    for (size_t i = 0; sgm_handler_name_at(i) != NULL; i++) {
        const char *name = sgm_handler_name_at(i);
        if (strcmp(name, "reference") == 0 || strcmp(name, "null") == 0 || strncmp(name, "debug", 5) == 0)
            continue;
        others++;
        check_handler(name);
    }
    if (others == 0)
        SKIP("there is no other handler");
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
        sgm_handler *handler = sgm_handler_create_options(sgm_handler_name_at(h), NULL);
        CHECK_OK(handler);
        for (size_t i = 0; sgm_op_at(i) != NULL; i++) {
            const char *support = sgm_handler_support(handler, sgm_op_at(i)->name, SGM_FLOAT32);
            if (support == NULL || strcmp(support, "none") == 0)
                TEST_FAIL("%s on %s: no support", sgm_op_at(i)->name, sgm_handler_name(handler));
        }
        sgm_handler_free(handler);
    }
}
