/* Operations on tensors at once. Expected values are those of libm and of arithmetic by hand. */
#include "test.h"

#include <pthread.h>
#include <sigma/sigma.h>

static sgm_tensor *numbers(const sgm_shape *shape, const double *values)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, shape);
    CHECK_OK(tensor);
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)sgm_shape_elements(shape)));
    return tensor;
}
#define ROW(...)                                                                                             \
    numbers(&(sgm_shape){1, {(int64_t)SGM_SHAPE_COUNT(__VA_ARGS__)}}, (const double[]){__VA_ARGS__})
#define SQUARE(...) numbers(&(sgm_shape){2, {2, 2}}, (const double[]){__VA_ARGS__})

/* Compares, and frees. */
static void check(sgm_tensor *tensor, const double *expected, size_t count)
{
    double values[16];
    CHECK_OK(tensor);
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    for (size_t i = 0; i < count; i++)
        if (!test_near(values[i], expected[i], 1e-12))
            TEST_FAIL("element %zu is %.17g, expected %.17g", i, values[i], expected[i]);
    sgm_tensor_free(tensor);
}
#define CHECK_VALUES(tensor, ...)                                                                            \
    check(tensor, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

TEST(operations_give_their_values)
{
    sgm_handler *h = sgm_handler_create("cpu", .threads = 1);
    sgm_tensor *a = ROW(1, 2, 4), *b = ROW(0.5, -1, 3), *s = SQUARE(2, 1, 1, 3), *v = ROW(3, 5);
    CHECK_VALUES(sgm_eager_add(h, a, b), 1.5, 1, 7);
    CHECK_VALUES(sgm_eager_subtract(h, a, b), 0.5, 3, 1);
    CHECK_VALUES(sgm_eager_multiply(h, a, b), 0.5, -2, 12);
    CHECK_VALUES(sgm_eager_divide(h, a, b), 2, -2, 4 / 3.0);
    CHECK_VALUES(sgm_eager_maximum(h, a, b), 1, 2, 4);
    CHECK_VALUES(sgm_eager_exp(h, b), exp(0.5), exp(-1), exp(3));
    CHECK_VALUES(sgm_eager_log(h, a), 0, log(2), log(4));
    CHECK_VALUES(sgm_eager_square(h, b), 0.25, 1, 9);
    CHECK_VALUES(sgm_eager_dot(h, a, b), 10.5);
    CHECK_VALUES(sgm_eager_sum(h, a), 7);
    CHECK_VALUES(sgm_eager_mean(h, a), 7 / 3.0);
    CHECK_VALUES(sgm_eager_transpose(h, s), 2, 1, 1, 3);
    CHECK_VALUES(sgm_eager_matmul(h, s, s), 5, 5, 5, 10);
    CHECK_VALUES(sgm_eager_solve(h, s, v), 0.8, 1.4);
    CHECK_VALUES(sgm_eager_determinant(h, s), 5);
    CHECK_VALUES(sgm_eager_inverse(h, s), 0.6, -0.2, -0.2, 0.4);
    CHECK_VALUES(sgm_eager_reduce_sum(h, s, (const int32_t[]){0}, 1, false), 3, 4);
    CHECK_VALUES(sgm_eager_reduce_max(h, s, (const int32_t[]){1}, 1, true), 2, 3);
    CHECK_VALUES(sgm_eager_reduce_variance(h, a, NULL, 0, false), 14 / 9.0);
    CHECK_VALUES(sgm_eager_arg_max(h, b, 0), 2);
    CHECK_VALUES(sgm_eager_flip(h, a, 0), 4, 2, 1);
    CHECK_VALUES(sgm_eager_sort(h, b, 0, true), 3, 0.5, -1);
    CHECK_VALUES(sgm_eager_clip(h, b, 0, 1), 0.5, 0, 1);
    CHECK_VALUES(sgm_eager_concatenate(h, (const sgm_tensor *const[]){a, v}, 2, 0), 1, 2, 4, 3, 5);
    sgm_tensor *less = sgm_eager_less(h, b, a), *at = sgm_tensor_cast(v, SGM_INT64);
    CHECK_INT(sgm_tensor_dtype(less), SGM_BOOL);
    CHECK_VALUES(sgm_eager_select(h, less, b, a), 0.5, -1, 3);
    CHECK_OK(sgm_tensor_write(at, (const double[]){2, 0}, 2));
    CHECK_VALUES(sgm_eager_gather(h, a, at, 0), 4, 1);
    sgm_tensor *all[] = {a, b, s, v, less, at};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sgm_tensor_free(all[i]);
    sgm_handler_free(h);
}

/* float32 beside a float64 of rank 0; a view, read by its strides; shapes that broadcast. */
TEST(numbers_views_and_shapes_adapt)
{
    sgm_handler *h = sgm_handler_create("reference");
    sgm_shape scalar = sgm_scalar_shape();
    sgm_tensor *two = numbers(&scalar, (const double[]){2}), *s = SQUARE(1, 2, 3, 4);
    sgm_tensor *half = sgm_tensor_cast(s, SGM_FLOAT32), *doubled = sgm_eager_multiply(h, half, two);
    CHECK_INT(sgm_tensor_dtype(doubled), SGM_FLOAT32);
    CHECK_VALUES(doubled, 2, 4, 6, 8);
    sgm_tensor *column = sgm_tensor_slice(s, 1, 1, 2, 1);
    CHECK_VALUES(sgm_eager_add(h, s, column), 3, 4, 7, 8);
    CHECK_VALUES(sgm_eager_power(h, two, two), 4);
    sgm_tensor *all[] = {two, s, half, column};
    for (size_t i = 0; i < 4; i++)
        sgm_tensor_free(all[i]);
    sgm_handler_free(h);
}

static double thrice(const double *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return 3 * inputs[0];
}

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

static const sgm_op thrice_op = {.api = SGM_OP_API,
                                 .flags = SGM_OP_ELEMENTWISE,
                                 .name = "thrice",
                                 .doc = "3 x",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .infer = infer,
                                 .scalar = thrice};

/* Every elementwise operation of the table, by its name, gives what its formula does. */
TEST(operations_of_the_table_are_found_by_name)
{
    CHECK_OK(sgm_register_op(&thrice_op));
    sgm_handler *h = sgm_handler_create("reference");
    sgm_tensor *x = ROW(0.25, 0.75), *y = ROW(0.5, 2);
    const sgm_tensor *operands[] = {x, y};
    const sgm_op *op;
    int seen = 0;
    bool own = false;
    for (size_t i = 0; (op = sgm_op_at(i)) != NULL; i++) {
        if ((op->flags & SGM_OP_ELEMENTWISE) == 0 || op->scalar == NULL || op->min_inputs > 2 ||
            strncmp(op->name, "logical", 7) == 0 || strcmp(op->name, "cast") == 0)
            continue;
        sgm_tensor *result = sgm_eager_op(h, op->name, operands, op->min_inputs, NULL);
        sgm_attributes none = {.integer_count = 0};
        CHECK_VALUES(result, op->scalar((const double[]){0.25, 0.5}, &none),
                     op->scalar((const double[]){0.75, 2}, &none));
        own = own || op == &thrice_op;
        seen++;
    }
    CHECK(seen > 25 && own);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_handler_free(h);
}

static sgm_value norm(sgm_graph *graph, const sgm_value *operands, int32_t count, void *user)
{
    *(int32_t *)user = count;
    return sgm_square_root(graph, sgm_dot(graph, operands[0], operands[0]));
}

static sgm_value nothing(sgm_graph *graph, const sgm_value *operands, int32_t count, void *user)
{
    (void)graph, (void)operands, (void)count, (void)user;
    return (sgm_value){-1};
}

TEST(whatever_can_be_recorded_is_computed)
{
    sgm_handler *h = sgm_handler_create("cpu", .threads = 2);
    sgm_tensor *x = ROW(3, 4);
    int32_t count = 0;
    CHECK_VALUES(sgm_eager(h, norm, &count, (const sgm_tensor *const[]){x}, 1), 5);
    CHECK_INT(count, 1);
    CHECK_ERROR(sgm_eager(h, nothing, NULL, (const sgm_tensor *const[]){x}, 1),
                "eager function: its function recorded no value");
    sgm_tensor_free(x);
    sgm_handler_free(h);
}

TEST(mistakes_name_the_operation)
{
    sgm_handler *h = sgm_handler_create("cpu", .threads = 1);
    sgm_tensor *two = ROW(1, 2), *three = ROW(1, 2, 3), *s = SQUARE(1, 2, 2, 4);
    CHECK_ERROR(sgm_eager_dot(h, two, three), "eager dot: ");
    CHECK_ERROR(sgm_eager_add(h, two, three), "(2,) and (3,)");
    CHECK_ERROR(sgm_eager_add(h, two, NULL), "eager add: operand 1 is NULL");
    CHECK_ERROR(sgm_eager_exp(NULL, two), "eager exp: it needs a handler");
    CHECK_ERROR(sgm_eager_inverse(h, s), "singular");
    CHECK_ERROR(sgm_eager_op(h, "tanhh", (const sgm_tensor *const[]){two}, 1, NULL), "tanh");
    sgm_tensor_free(two);
    sgm_tensor_free(three);
    sgm_tensor_free(s);
    sgm_handler_free(h);
}

static void *compute_often(void *handler)
{
    for (int i = 1; i <= 20; i++) {
        sgm_tensor *x = ROW(i, 2 * i);
        CHECK_VALUES(sgm_eager_sum(handler, x), 3 * i);
        sgm_tensor_free(x);
    }
    return NULL;
}

TEST(threads_share_a_handler)
{
    sgm_handler *h = sgm_handler_create("cpu", .threads = 2);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, compute_often, h), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    sgm_handler_free(h);
}
