/* Every operation's gradient, and its gradient's gradient, against central differences in double precision.
 */
#include "op_program.h"
#include "test.h"

/* sum(value * random weights): a plain sum would not notice elements that changed places. */
static sgm_value weighted_sum(sgm_graph *graph, sgm_value value, sgm__random *random)
{
    sgm_type type = sgm_value_type(graph, value);
    sgm_tensor *weights = sgm_tensor_create(type.dtype, &type.shape);
    size_t count = (size_t)sgm_shape_elements(&type.shape);
    double *numbers = malloc((count + 1) * sizeof(double));
    for (size_t i = 0; i < count; i++)
        numbers[i] = 0.5 + sgm__random_uniform(random);
    sgm_tensor_write(weights, numbers, count);
    sgm_value sum = sgm_sum(graph, sgm_multiply(graph, value, sgm_constant(graph, weights)));
    sgm_tensor_free(weights);
    free(numbers);
    return sum;
}

/* Records the case into the graph and gives its value; `operands` are its inputs, with random numbers,
 * which are the caller's. */
static sgm_value record(sgm_graph *graph, const op_case *c, int32_t variant, sgm_operand *operands,
                        sgm_tensor **tensors)
{
    sgm__random random = sgm__random_make(7, (uint64_t)variant);
    sgm_value inputs[OP_MAX_INPUTS];
    for (int32_t i = 0; i < c->input_count; i++) {
        sgm_shape shape = op_input_shape(c, variant, i);
        op_data data = op_data_create(&c->inputs[i], &shape, SGM_FLOAT64, &random);
        tensors[i] = sgm_tensor_create(data.dtype, &shape);
        CHECK_OK(tensors[i]);
        CHECK_OK(sgm_tensor_write(tensors[i], data.values, data.count));
        free(data.values);
        inputs[i] = sgm_input_value(graph, op_names[i], data.dtype, &shape);
        operands[i] = (sgm_operand){.value = inputs[i], .at = tensors[i]};
    }
    return c->record(graph, inputs, SGM_FLOAT64);
}

/* The sum of the gradients of the case's value by all its inputs of floats, each with random weights. */
static sgm_value gradients_of(sgm_graph *graph, const op_case *c, sgm_value value,
                              const sgm_operand *operands)
{
    sgm__random random = sgm__random_make(8, 0);
    sgm_value floats[OP_MAX_INPUTS], gradients[OP_MAX_INPUTS], sum = sgm_number(graph, 0);
    int32_t count = 0;
    for (int32_t i = 0; i < c->input_count; i++)
        if (sgm_value_type(graph, operands[i].value).dtype == SGM_FLOAT64)
            floats[count++] = operands[i].value;
    sgm_gradients(graph, weighted_sum(graph, value, &random), floats, count, gradients);
    for (int32_t i = 0; i < count; i++)
        sum = sgm_add(graph, sum, weighted_sum(graph, gradients[i], &random));
    return sum;
}

static void check_case(const op_case *c, int32_t variant, bool second)
{
    sgm_operand operands[OP_MAX_INPUTS];
    sgm_tensor *tensors[OP_MAX_INPUTS];
    sgm_graph *graph = sgm_graph_create();
    sgm_value value = record(graph, c, variant, operands, tensors);
    if (second)
        value = gradients_of(graph, c, value, operands);
    double tolerance = 2e-6 * (c->loose > 0 ? c->loose : 1);
    if (sgm_gradient_check(graph, value, operands, (size_t)c->input_count, .tolerance = tolerance) != SGM_OK)
        TEST_FAIL("%s, shapes %d, %s derivative: %s", c->name, variant, second ? "second" : "first",
                  sgm_last_error());
    CHECK_OK(sgm_graph_verify(graph));
    for (int32_t i = 0; i < c->input_count; i++)
        sgm_tensor_free(tensors[i]);
    sgm_graph_free(graph);
}

TEST(gradients_are_what_differences_say)
{
    for (int32_t i = 0; i < OP_CASES_COUNT; i++)
        for (int32_t variant = 0; variant < op_variants(&op_cases[i], false); variant++) {
            if ((op_cases[i].flags & OP_FIRST) != 0)
                check_case(&op_cases[i], variant, false);
            if ((op_cases[i].flags & OP_SECOND) == OP_SECOND)
                check_case(&op_cases[i], variant, true);
        }
}
