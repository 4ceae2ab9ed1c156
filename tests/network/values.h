/* Networks whose values another program has computed (values_torch.py): total, output and gradients of each,
 * on three handlers, with float64 to 1e-10 and with float32 to 1e-5. */
#ifndef SIGMA_TEST_VALUES_H
#define SIGMA_TEST_VALUES_H

#include "test.h"

#include <sigma/handler.h>
#include <sigma/network.h>

#include <math.h>

#define VALUES_MAXIMUM 8

typedef struct values_list {
    const char *name; /* of a field or a parameter; NULL: the end of the list */
    size_t count;
    const double *values;
} values_list;

typedef struct values_case {
    const char *text;
    int64_t batch;
    const values_list *given;    /* fields of the data and parameters */
    const values_list *expected; /* "total", "output", "gradient of NAME" */
} values_case;

typedef struct values_run {
    const values_case *wanted;
    const char *handler_name;
    double tolerance;
    sgm_network *network;
    sgm_graph *graph;
    sgm_handler *handler;
    sgm_session *session;
    sgm_program *program;
    sgm_recording recording;
} values_run;

static const values_list *values_find(const values_list *list, const char *name)
{
    while (list->name != NULL && strcmp(list->name, name) != 0)
        list++;
    if (list->name == NULL)
        TEST_FAIL("no values of '%s' are stored", name);
    return list;
}

static sgm_tensor *values_tensor(const values_run *r, const char *name, sgm_type type)
{
    const values_list *stored = values_find(r->wanted->given, name);
    if ((size_t)sgm_shape_elements(&type.shape) != stored->count)
        TEST_FAIL("%s: '%s' has %lld elements, but %zu are stored", r->wanted->text, name,
                  (long long)sgm_shape_elements(&type.shape), stored->count);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_OK(sgm_tensor_write(tensor, stored->values, stored->count));
    return tensor;
}

/* The total, or what stands for it without a cost: the products of the output with cos(0.9 i), added up. */
static sgm_value values_total(const values_run *r)
{
    if (sgm_value_exists(r->recording.total))
        return r->recording.total;
    sgm_value y = r->recording.outputs[0].value;
    sgm_type type = sgm_value_type(r->graph, y);
    size_t count = (size_t)sgm_shape_elements(&type.shape);
    double *factors = malloc(count * sizeof *factors);
    for (size_t i = 0; i < count; i++)
        factors[i] = cos(0.9 * (double)i);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_OK(sgm_tensor_write(tensor, factors, count));
    sgm_value total = sgm_sum(r->graph, sgm_multiply(r->graph, y, sgm_constant(r->graph, tensor)));
    sgm_tensor_free(tensor);
    free(factors);
    return total;
}

static void values_record(values_run *r, sgm_dtype dtype)
{
    const sgm_recording_options options = {.struct_size = sizeof options,
                                           .batch = r->wanted->batch,
                                           .dtype = dtype,
                                           .training = true,
                                           .costs = true};
    CHECK_OK(sgm_network_record(r->network, r->graph, &options, &r->recording));
    sgm_value total = values_total(r), by[2 * VALUES_MAXIMUM], gradients[2 * VALUES_MAXIMUM];
    char names[2 * VALUES_MAXIMUM][100];
    int32_t count = 0;
    CHECK(r->recording.input_count <= VALUES_MAXIMUM && r->recording.parameter_count <= VALUES_MAXIMUM);
    for (size_t i = 0; i < r->recording.input_count; i++, count++) {
        by[count] = r->recording.inputs[i].value;
        snprintf(names[count], sizeof names[count], "gradient of %s", r->recording.inputs[i].name);
    }
    for (size_t i = 0; i < r->recording.parameter_count; i++) {
        if (!r->recording.parameters[i].trainable)
            continue;
        by[count] = r->recording.parameters[i].value;
        snprintf(names[count], sizeof names[count], "gradient of %s", r->recording.parameters[i].name);
        count++;
    }
    CHECK_OK(sgm_gradients(r->graph, total, by, count, gradients));
    sgm_graph_add_output(r->graph, "total", total);
    sgm_graph_add_output(r->graph, "output", r->recording.outputs[0].value);
    for (int32_t i = 0; i < count; i++)
        sgm_graph_add_output(r->graph, names[i], gradients[i]);
    CHECK_OK(sgm_graph_verify(r->graph));
}

static void values_give(values_run *r)
{
    const sgm_recording *recording = &r->recording;
    for (size_t i = 0; i < recording->parameter_count; i++) {
        sgm_tensor *tensor = values_tensor(r, recording->parameters[i].name, recording->parameters[i].type);
        CHECK_OK(sgm_session_set(r->session, recording->parameters[i].name, tensor));
        sgm_tensor_free(tensor);
    }
    r->program = sgm_session_prepare(r->session, r->graph);
    CHECK_OK(r->program);
    for (size_t i = 0; i < recording->input_count + recording->target_count; i++) {
        const sgm_named_value *field = i < recording->input_count
                                           ? &recording->inputs[i]
                                           : &recording->targets[i - recording->input_count];
        sgm_tensor *tensor = values_tensor(r, field->name, sgm_value_type(r->graph, field->value));
        CHECK_OK(sgm_session_feed(r->session, r->program, field->name, tensor));
        sgm_tensor_free(tensor);
    }
}

static void values_compare(values_run *r, const values_list *expected)
{
    sgm_type type = sgm_program_output_type(r->program, expected->name);
    if ((size_t)sgm_shape_elements(&type.shape) != expected->count)
        TEST_FAIL("%s: '%s' has %lld elements, expected %zu", r->wanted->text, expected->name,
                  (long long)sgm_shape_elements(&type.shape), expected->count);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    double *values = malloc((expected->count + 1) * sizeof *values);
    CHECK_OK(sgm_session_read(r->session, r->program, expected->name, tensor));
    CHECK_OK(sgm_tensor_read(tensor, values, expected->count));
    for (size_t i = 0; i < expected->count; i++)
        if (!test_near(values[i], expected->values[i], r->tolerance * (1 + fabs(expected->values[i]))))
            TEST_FAIL("%s on %s: element %zu of '%s' is %.17g, expected %.17g", r->wanted->text,
                      r->handler_name, i, expected->name, values[i], expected->values[i]);
    free(values);
    sgm_tensor_free(tensor);
}

static void values_check_on(const values_case *wanted, const char *handler, sgm_dtype dtype, double tolerance)
{
    values_run r = {.wanted = wanted,
                    .handler_name = handler,
                    .tolerance = tolerance,
                    .network = sgm_network_parse(wanted->text),
                    .graph = sgm_graph_create(),
                    .handler = sgm_handler_create_with(handler, NULL)};
    CHECK_OK(r.network);
    r.session = sgm_session_create(r.handler);
    values_record(&r, dtype);
    values_give(&r);
    CHECK_OK(sgm_session_run(r.session, r.program));
    for (const values_list *expected = wanted->expected; expected->name != NULL; expected++)
        values_compare(&r, expected);
    sgm_session_free(r.session);
    sgm_handler_free(r.handler);
    sgm_graph_free(r.graph);
    sgm_network_free(r.network);
}

__attribute__((unused)) static void values_check(const values_case *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        values_check_on(&wanted[i], "reference", SGM_FLOAT64, 1e-10);
        values_check_on(&wanted[i], "debug:reference", SGM_FLOAT64, 1e-10);
        values_check_on(&wanted[i], "cpu", SGM_FLOAT64, 1e-10);
        values_check_on(&wanted[i], "cpu", SGM_FLOAT32, 1e-5);
    }
}
#define VALUES_CHECK(cases) values_check(cases, sizeof(cases) / sizeof *(cases))

#endif
