/* sgm_gradient_check: what is right passes, and what is wrong is told with operand, element and numbers. */
#include "test.h"

#include <math.h>
#include <sigma/sigma.h>

static double cube(const double *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return inputs[0] * inputs[0] * inputs[0];
}

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

static sgm_value scaled_square(sgm_graph *graph, const sgm_gradient_call *call, double factor)
{
    sgm_value square = sgm_multiply(graph, sgm_square(graph, call->inputs[0]), sgm_number(graph, factor));
    return sgm_multiply(graph, call->gradient, square);
}

static void right(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    gradients[0] = scaled_square(graph, call, 3);
}

static void wrong(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    gradients[0] = scaled_square(graph, call, 2);
}

#define CUBE(text, function)                                                                                 \
    {                                                                                                        \
        .api = SGM_OP_API, .flags = SGM_OP_ELEMENTWISE, .name = text, .doc = "x^3", .min_inputs = 1,         \
        .max_inputs = 1, .infer = infer, .gradient = function, .scalar = cube                                \
    }
static const sgm_op right_cube = CUBE("right_cube", right), wrong_cube = CUBE("wrong_cube", wrong);

static sgm_tensor *tensor_of(sgm_dtype dtype, const sgm_shape *shape, const double *numbers)
{
    sgm_tensor *tensor = sgm_tensor_create(dtype, shape);
    CHECK_OK(tensor);
    CHECK_OK(sgm_tensor_write(tensor, numbers, (size_t)sgm_shape_elements(shape)));
    return tensor;
}

static const double numbers[] = {0, 0, 0, 2, 0.5, -1};

/* Of op(x) * scale with x of (2, 3), where the gradient of wrong_cube is right at the three zeros. */
static sgm_status check_cube(const sgm_op *op, sgm_dtype dtype, const sgm_shape *given)
{
    sgm_shape shape = sgm_shape_of(2, 3), scalar = sgm_scalar_shape();
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", dtype, &shape), w = sgm_state(graph, "w", dtype, &scalar);
    sgm_tensor *at = tensor_of(SGM_FLOAT64, given != NULL ? given : &shape, numbers),
               *scale = tensor_of(SGM_FLOAT32, &scalar, (const double[]){1.5});
    sgm_value y = sgm_multiply(graph, sgm_record(graph, op, &x, 1, NULL), w);
    const sgm_operand operands[] = {{.value = w, .at = scale}, {.value = x, .at = at}};
    sgm_status status = sgm_gradient_check(graph, y, operands, 2, .tolerance = 1e-7);
    sgm_tensor_free(at);
    sgm_tensor_free(scale);
    sgm_graph_free(graph);
    return status;
}

TEST(a_right_gradient_passes)
{
    CHECK_OK(check_cube(&right_cube, SGM_FLOAT64, NULL));
}

/* The weight of element 3 is 0.5 + (3 * 7919 mod 2003) / 2003 = 1.360709...: times 1.5 * 2 * 4 recorded, and
 * 1.5 * 3 * 4 right. */
TEST(a_wrong_gradient_is_told_with_its_place_and_numbers)
{
    CHECK_INT(check_cube(&wrong_cube, SGM_FLOAT64, NULL), SGM_ERROR_NUMERIC);
    double recorded, differences;
    const char *text = strstr(sgm_last_error(), "gradient by 'x' at element (1, 0): recorded is ");
    CHECK(text != NULL);
    CHECK_INT(sscanf(text, "gradient by 'x' at element (1, 0): recorded is %lf, differences give %lf",
                     &recorded, &differences),
              2);
    double weight = 0.5 + (3 * 7919 % 2003) / 2003.0;
    CHECK_NEAR(recorded, weight * 12, 1e-6);
    CHECK_NEAR(differences, weight * 18, 1e-6);
}

/* 2 x^2 is recorded where 3 x^2 is right: farthest off at 5. */
TEST(the_worst_element_is_the_one_that_is_told)
{
    sgm_shape shape = sgm_shape_of(3);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT64, &shape);
    sgm_tensor *at = tensor_of(SGM_FLOAT64, &shape, (const double[]){2, 5, 3});
    const sgm_operand operand = {.value = x, .at = at};
    sgm_gradient_difference worst = {.known = false};
    sgm_value y = sgm_sum(graph, sgm_record(graph, &wrong_cube, &x, 1, NULL));
    CHECK_INT(sgm_gradient_check(graph, y, &operand, 1, .worst = &worst), SGM_ERROR_NUMERIC);
    CHECK(strstr(sgm_last_error(), "gradient by 'x' at element (1,): recorded is 50, differences give 75") !=
          NULL);
    CHECK(strstr(sgm_last_error(), "of 3 elements that are wrong it is the worst") != NULL);
    CHECK(worst.known);
    CHECK_INT(worst.operand, 0);
    CHECK_INT(worst.element, 1);
    CHECK_NEAR(worst.recorded, 50, 1e-9);
    CHECK_NEAR(worst.differences, 75, 1e-6);
    CHECK_NEAR(worst.error, 25.0 / 76, 1e-6);
    sgm_graph_clear(graph);
    x = sgm_input_value(graph, "x", SGM_FLOAT64, &shape);
    const sgm_operand again = {.value = x, .at = at};
    CHECK_OK(sgm_gradient_check(graph, sgm_exp(graph, x), &again, 1, .worst = &worst));
    CHECK(worst.known && worst.error < 2e-6);
    sgm_tensor_free(at);
    sgm_graph_free(graph);
}

TEST(what_cannot_be_checked_is_told)
{
    sgm_shape other = sgm_shape_of(3, 2), scalar = sgm_scalar_shape();
    CHECK_INT(check_cube(&right_cube, SGM_FLOAT32, NULL), SGM_ERROR_TYPE);
    CHECK(strstr(sgm_last_error(), "gradient check: 'w' is float32, too coarse for differences") != NULL);
    CHECK_INT(check_cube(&right_cube, SGM_FLOAT64, &other), SGM_ERROR_SHAPE);
    CHECK(strstr(sgm_last_error(), "gradient check: 'x' is (2, 3), but its tensor is (3, 2)") != NULL);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT64, &scalar), y = sgm_exp(graph, x);
    sgm_tensor *at = tensor_of(SGM_FLOAT64, &scalar, (const double[]){1.5});
    const sgm_operand computed = {.value = y, .at = at}, fixed = {.value = x, .at = at, .fixed = true};
    CHECK_ERROR(sgm_gradient_check(graph, y, &computed, 1, .step = 1e-4),
                "operand 0 is no input and no state of the graph");
    CHECK_ERROR(sgm_gradient_check(graph, y, &fixed, 1, .step = 1e-4),
                "there is no operand of float64 that is not fixed");
    CHECK_ERROR(sgm_gradient_check(graph, y, &fixed, 1, .step = -1),
                "expected a .step and a .tolerance above 0");
    const sgm_operand checked = {.value = x, .at = at};
    CHECK_OK(sgm_gradient_check(graph, y, &checked, 1));
    CHECK_ERROR(sgm_gradient_check(graph, y, &checked, 1), "this graph was checked already");
    sgm_tensor_free(at);
    sgm_graph_free(graph);
}

/* y = x s, and s becomes s + 1 at the end of each run: differences of two runs see the same s. */
TEST(a_state_that_a_run_writes_is_given_again)
{
    sgm_shape scalar = sgm_scalar_shape();
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT64, &scalar);
    sgm_value s = sgm_state(graph, "s", SGM_FLOAT64, &scalar);
    sgm_assign(graph, s, sgm_add(graph, s, sgm_number(graph, 1)));
    sgm_tensor *at = tensor_of(SGM_FLOAT64, &scalar, (const double[]){2});
    const sgm_operand operands[] = {{.value = x, .at = at}, {.value = s, .at = at, .fixed = true}};
    CHECK_OK(sgm_gradient_check(graph, sgm_multiply(graph, x, s), operands, 2, .tolerance = 1e-8));
    sgm_tensor_free(at);
    sgm_graph_free(graph);
}
