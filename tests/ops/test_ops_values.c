/* Operations against numbers from elsewhere: tables, other libraries' documentation, hand calculation. */
#include "op_values.h"

#include "base/base.h"

#define NUMBERS(...) op_constant(g, SGM_FLOAT64, NULL, OP_LIST(__VA_ARGS__))
#define MATRIX(rows, columns, ...) op_constant(g, SGM_FLOAT64, OP_DIMS(rows, columns), OP_LIST(__VA_ARGS__))
#define INTEGERS(...) op_constant(g, SGM_INT64, NULL, OP_LIST(__VA_ARGS__))

TEST(functions_have_their_tabulated_values)
{
    sgm_graph *g = sgm_graph_create();
    op_expect(g, sgm_erf(g, NUMBERS(0.5, 1, -2)),
              OP_LIST(0.5204998778130465, 0.8427007929497149, -0.9953222650189527));
    g = sgm_graph_create();
    op_expect(g, sgm_gelu(g, NUMBERS(1, -2, 0)), OP_LIST(0.8413447460685429, -0.04550026389635842, 0));
    g = sgm_graph_create();
    op_expect(g, sgm_sigmoid(g, NUMBERS(2, 0, 900)), OP_LIST(0.8807970779778823, 0.5, 1));
    g = sgm_graph_create();
    op_expect(g, sgm_silu(g, NUMBERS(2)), OP_LIST(1.7615941559557649));
    g = sgm_graph_create();
    op_expect(g, sgm_softplus(g, NUMBERS(0, 1000, -1000)), OP_LIST(0.6931471805599453, 1000, 0));
    g = sgm_graph_create();
    op_expect(g, sgm_leaky_relu(g, NUMBERS(2, 0, -3)), OP_LIST(2, 0, -0.03));
    g = sgm_graph_create();
    op_expect(g, sgm_elu(g, NUMBERS(1000, 0, -1, -1000)), OP_LIST(1000, 0, -0.6321205588285577, -1));
}

TEST(softmax_neither_overflows_nor_loses_small_chances)
{
    sgm_graph *g = sgm_graph_create();
    op_expect(g, sgm_softmax(g, NUMBERS(1, 2, 3)),
              OP_LIST(0.09003057317038046, 0.24472847105479767, 0.6652409557748219));
    g = sgm_graph_create();
    op_expect(g, sgm_softmax(g, NUMBERS(1000, 1001)), OP_LIST(0.2689414213699951, 0.7310585786300049));
    g = sgm_graph_create();
    op_expect(g, sgm_log_softmax(g, NUMBERS(-1000, 0)), OP_LIST(-1000, 0));
    g = sgm_graph_create();
    op_expect(g, sgm_softmax_cross_entropy_values(g, MATRIX(2, 2, 0, 0, 0, 1000), MATRIX(2, 2, 1, 0, 1, 0)),
              OP_LIST(0.6931471805599453, 1000));
}

TEST(gradients_at_kinks_are_those_that_the_headers_promise)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value x = NUMBERS(0, 1, -1);
    op_expect(g, op_gradient(g, sgm_relu(g, x), x), OP_LIST(0, 1, 0));
    g = sgm_graph_create(), x = NUMBERS(0, 1, -1);
    op_expect(g, op_gradient(g, sgm_leaky_relu(g, x), x), OP_LIST(0.01, 1, 0.01));
    g = sgm_graph_create(), x = NUMBERS(1000, -1000, -1);
    op_expect(g, op_gradient(g, sgm_elu(g, x), x), OP_LIST(1, 0, 0.36787944117144233));
    g = sgm_graph_create(), x = NUMBERS(0);
    op_expect(g, op_gradient(g, sgm_sigmoid(g, x), x), OP_LIST(0.25));
    g = sgm_graph_create(), x = NUMBERS(0);
    op_expect(g, op_gradient(g, sgm_softplus(g, x), x), OP_LIST(0.5));
    g = sgm_graph_create(), x = NUMBERS(-1000);
    op_expect(g, op_gradient(g, sgm_sigmoid(g, x), x), OP_LIST(0));
    g = sgm_graph_create(), x = NUMBERS(2, 5, 5, 1);
    op_expect(g, op_gradient(g, sgm_reduce_max(g, x, NULL, 0, false), x), OP_LIST(0, 0.5, 0.5, 0));
    g = sgm_graph_create(), x = NUMBERS(3, 3);
    op_expect(g, op_gradient(g, sgm_maximum(g, x, NUMBERS(3, 4)), x), OP_LIST(1, 0));
    g = sgm_graph_create(), x = NUMBERS(3, 3);
    op_expect(g, op_gradient(g, sgm_minimum(g, NUMBERS(3, 4), x), x), OP_LIST(0, 1));
}

TEST(powers_of_zero_have_finite_gradients)
{
    sgm_graph *g = sgm_graph_create();
    op_expect(g, sgm_power(g, NUMBERS(0, 0, 2, -2), NUMBERS(0, 2, -1, 3)), OP_LIST(1, 0, 0.5, -8));
    g = sgm_graph_create();
    sgm_value a = NUMBERS(0, 0, 2), b = NUMBERS(0, 2, 3);
    op_expect(g, op_gradient(g, sgm_power(g, a, b), a), OP_LIST(0, 0, 12));
    g = sgm_graph_create(), a = NUMBERS(0, 2), b = NUMBERS(2, 3);
    op_expect(g, op_gradient(g, sgm_power(g, a, b), b), OP_LIST(0, 8 * 0.6931471805599453));
    g = sgm_graph_create(), a = NUMBERS(0, 3);
    op_expect(g, op_gradient(g, sgm_power(g, a, sgm_number(g, 2)), a), OP_LIST(0, 6));
}

TEST(nan_is_passed_on_by_the_larger_and_the_smaller)
{
    sgm_graph *g = sgm_graph_create();
    op_expect(g, sgm_maximum(g, NUMBERS(NAN, 1), NUMBERS(1, NAN)), OP_LIST(NAN, NAN));
    g = sgm_graph_create();
    op_expect(g, sgm_minimum(g, NUMBERS(NAN, 1), NUMBERS(1, NAN)), OP_LIST(NAN, NAN));
    g = sgm_graph_create();
    op_expect(g, sgm_relu(g, NUMBERS(NAN)), OP_LIST(NAN));
    g = sgm_graph_create();
    op_expect(g, sgm_reduce_min(g, NUMBERS(2, NAN, 1), NULL, 0, false), OP_LIST(NAN));
    g = sgm_graph_create();
    op_expect(g, sgm_arg_max(g, NUMBERS(2, NAN, 9, NAN), 0), OP_LIST(1));
    g = sgm_graph_create();
    op_expect(g, sgm_accuracy(g, NUMBERS(2, NAN, 9, NAN), NUMBERS(0, 1, 0, 0)), OP_LIST(1));
    g = sgm_graph_create();
    op_expect(g, sgm_sort(g, NUMBERS(NAN, 2, -INFINITY, 1), 0, false), OP_LIST(-INFINITY, 1, 2, NAN));
}

TEST(accuracy_counts_rows)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value x = MATRIX(4, 3, 1, 2, 0, 5, 5, 1, 0, 0, 1, 9, 8, 7);
    op_expect(g, sgm_accuracy(g, x, MATRIX(4, 3, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1)), OP_LIST(0.5));
    g = sgm_graph_create();
    x = MATRIX(4, 3, 1, 2, 0, 5, 5, 1, 0, 0, 1, 9, 8, 7);
    op_expect(g, sgm_accuracy(g, x, NUMBERS(1.75, 0, -2, 0)), OP_LIST(0.75));
}

/* The example of numpy.take_along_axis. */
TEST(gather_along_takes_by_position)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value a = MATRIX(2, 3, 10, 30, 20, 60, 40, 50), order = sgm_argsort(g, a, 1, false);
    op_expect(g, order, OP_LIST(0, 2, 1, 1, 2, 0));
    g = sgm_graph_create();
    a = MATRIX(2, 3, 10, 30, 20, 60, 40, 50), order = sgm_argsort(g, a, 1, false);
    op_expect(g, sgm_gather_along(g, a, order, 1), OP_LIST(10, 20, 30, 40, 50, 60));
    g = sgm_graph_create();
    op_expect(g, sgm_top_k(g, MATRIX(2, 3, 10, 30, 20, 60, 40, 50), -1, 2), OP_LIST(30, 20, 60, 50));
}

TEST(movement_puts_elements_where_they_belong)
{
    sgm_graph *g = sgm_graph_create();
    op_expect(g, sgm_pad(g, NUMBERS(1, 2, 3), 0, 1, 2, 1), OP_LIST(0, 1, 0, 2, 0, 3, 0, 0));
    g = sgm_graph_create();
    op_expect(g, sgm_slice(g, NUMBERS(0, 1, 2, 3, 4, 5, 6), 0, -6, -1, 3), OP_LIST(1, 4));
    g = sgm_graph_create();
    op_expect(g, sgm_flip(g, MATRIX(2, 2, 1, 2, 3, 4), 0), OP_LIST(3, 4, 1, 2));
    g = sgm_graph_create();
    op_expect(g, sgm_transpose(g, MATRIX(2, 3, 1, 2, 3, 4, 5, 6)), OP_LIST(1, 4, 2, 5, 3, 6));
    g = sgm_graph_create();
    op_expect(g, sgm_scatter_add(g, NUMBERS(1, 2, 4), INTEGERS(2, 0, 2), 0, 4), OP_LIST(2, 0, 5, 0));
    g = sgm_graph_create();
    op_expect(g, sgm_cumulative_sum(g, NUMBERS(1, 2, 4), 0, true), OP_LIST(7, 6, 4));
    g = sgm_graph_create();
    op_expect(g, sgm_one_hot_values(g, INTEGERS(2, 0, 3), 3, SGM_INT32), OP_LIST(0, 0, 1, 1, 0, 0, 0, 0, 0));
    g = sgm_graph_create();
    op_expect(g, sgm_concatenate(g, (sgm_value[]){MATRIX(2, 1, 1, 2), MATRIX(2, 2, 3, 4, 5, 6)}, 2, 1),
              OP_LIST(1, 3, 4, 2, 5, 6));
}

/* 2^53 + 1 is no double. */
/* One index, as a place is. */
static sgm_value index_of(sgm_graph *g, double index)
{
    return sgm_reshape(g, op_constant(g, SGM_INT64, NULL, OP_LIST(index)), &(const sgm_shape){.rank = 0});
}

TEST(a_part_is_written_at_its_place)
{
    sgm_graph *g = sgm_graph_create();
    op_expect(g, sgm_write_at(g, NUMBERS(1, 2, 3, 4, 5), NUMBERS(8, 9), index_of(g, 3), 0),
              OP_LIST(1, 2, 3, 8, 9));
    g = sgm_graph_create();
    op_expect(g, sgm_write_at(g, MATRIX(2, 3, 1, 2, 3, 4, 5, 6), MATRIX(2, 1, 8, 9), index_of(g, 1), -1),
              OP_LIST(1, 8, 3, 4, 9, 6));
    g = sgm_graph_create(); /* gradients: nothing where it was replaced; what it became */
    sgm_value all = MATRIX(2, 3, 1, 2, 3, 4, 5, 6), part = MATRIX(2, 2, 0, 0, 0, 0);
    sgm_value y =
        sgm_multiply(g, sgm_write_at(g, all, part, index_of(g, 1), 1), MATRIX(2, 3, 10, 20, 30, 40, 50, 60));
    op_expect(g, op_gradient(g, y, all), OP_LIST(10, 0, 0, 40, 0, 0));
    g = sgm_graph_create();
    all = MATRIX(2, 3, 1, 2, 3, 4, 5, 6), part = MATRIX(2, 2, 0, 0, 0, 0);
    y = sgm_multiply(g, sgm_write_at(g, all, part, index_of(g, 1), 1), MATRIX(2, 3, 10, 20, 30, 40, 50, 60));
    op_expect(g, op_gradient(g, y, part), OP_LIST(20, 30, 50, 60));
}

/* The query and the keys are chosen so that the scores are 0, ln 2 and ln 4: weights 1 : 2, of the first two
 * alone, and 1 : 2 : 4. */
TEST(attention_at_a_place_sees_no_later_one)
{
    for (int place = 0; place < 3; place++) {
        static const double expected[][2] = {{7, 0}, {3, 2.0 / 3}, {17.0 / 7, 6.0 / 7}};
        sgm_graph *g = sgm_graph_create();
        sgm_value q = MATRIX(1, 4, 2, 0, 0, 0), v = MATRIX(3, 2, 7, 0, 1, 1, 2, 1);
        sgm_value k = MATRIX(3, 4, 0, 1, 2, 3, log(2), 0, 9, 9, log(4), 7, 7, 7);
        op_expect(g, sgm_attention_at(g, q, k, v, index_of(g, place)), 2, expected[place]);
    }
}

/* The same query three times, at a place of its own each time. */
TEST(attention_at_places_sees_none_behind_each)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value q = MATRIX(3, 4, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0), v = MATRIX(3, 2, 7, 0, 1, 1, 2, 1);
    sgm_value k = MATRIX(3, 4, 0, 1, 2, 3, log(2), 0, 9, 9, log(4), 7, 7, 7);
    sgm_value places = op_constant(g, SGM_INT64, OP_DIMS(3), OP_LIST(2, 0, 1));
    op_expect(g, sgm_attention_at(g, q, k, v, places), OP_LIST(17.0 / 7, 6.0 / 7, 7, 0, 3, 2.0 / 3));
}

TEST(integers_of_64_bits_stay_exact_where_they_move_and_add_up)
{
    const int64_t large = ((int64_t)1 << 53) + 1, values[] = {large, large - 1, large + 1};
    sgm_graph *g = sgm_graph_create();
    sgm_shape shape = sgm_shape_of(3);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_INT64, &shape, values);
    sgm_value x = sgm_constant(g, tensor), moved;
    sgm_tensor_free(tensor);
    moved = sgm_gather(g, sgm_flip(g, sgm_pad(g, x, 0, 1, 0, 0), 0), INTEGERS(0, 1, 2), 0);
    moved = sgm_sort(g, sgm_concatenate(g, (sgm_value[]){moved, moved}, 2, 0), 0, true);
    sgm_value sum = sgm_reshape(g, sgm_sum(g, moved), OP_DIMS(1));
    sgm_value minimum =
        sgm_reduce_min(g, sgm_select(g, sgm_equal(g, moved, moved), moved, moved), OP_AXES(0), 1, true);
    tensor = op_compute(g, sgm_concatenate(g, (sgm_value[]){moved, sum, minimum}, 3, 0));
    CHECK_OK(tensor);
    const int64_t *results = sgm_tensor_const_data(tensor);
    const int64_t expected[] = {large + 1, large + 1, large,     large,
                                large - 1, large - 1, 6 * large, large - 1};
    for (int i = 0; i < 8; i++)
        CHECK_INT(results[i], expected[i]);
    sgm_tensor_free(tensor);
    sgm_graph_free(g);
}

TEST(casts_truncate_and_saturate)
{
    sgm_graph *g = sgm_graph_create();
    op_expect(g, sgm_cast(g, NUMBERS(-1.9, 1.9, 300, -5, NAN), SGM_UINT8), OP_LIST(0, 1, 255, 0, 0));
    g = sgm_graph_create();
    op_expect(g, sgm_cast(g, NUMBERS(-1.9, 1e10, NAN), SGM_INT32), OP_LIST(-1, 2147483647, 0));
    g = sgm_graph_create(); /* a tie goes to the even neighbour */
    op_expect(g, sgm_cast(g, NUMBERS(1 + 0x1p-8, 1 + 3 * 0x1p-8), SGM_BFLOAT16), OP_LIST(1, 1 + 0x1p-6));
}

TEST(matrices)
{
    sgm_graph *g = sgm_graph_create();
    op_expect(g, sgm_matmul(g, MATRIX(2, 2, 1, 2, 3, 4), MATRIX(2, 2, 5, 6, 7, 8)), OP_LIST(19, 22, 43, 50));
    g = sgm_graph_create();
    op_expect(g, sgm_determinant(g, MATRIX(3, 3, 2, -3, 1, 2, 0, -1, 1, 4, 5)), OP_LIST(49));
    g = sgm_graph_create(); /* needs other pivots than the diagonal has */
    op_expect(g, sgm_determinant(g, MATRIX(3, 3, 0, 1, 0, 0, 0, 1, 1, 0, 0)), OP_LIST(1));
    g = sgm_graph_create();
    op_expect(g, sgm_determinant(g, MATRIX(2, 2, 1, 2, 2, 4)), OP_LIST(0));
    g = sgm_graph_create();
    op_expect(g, sgm_inverse(g, MATRIX(2, 2, 4, 7, 2, 6)), OP_LIST(0.6, -0.7, -0.2, 0.4));
    g = sgm_graph_create();
    op_expect(g, sgm_inverse(g, MATRIX(3, 3, 0, 1, 0, 0, 0, 1, 1, 0, 0)), OP_LIST(0, 0, 1, 1, 0, 0, 0, 1, 0));
    g = sgm_graph_create();
    op_expect(g, sgm_solve(g, MATRIX(2, 2, 2, 1, 1, 3), NUMBERS(3, 5)), OP_LIST(0.8, 1.4));
}

/* Larger than what is worked on beside the result. */
TEST(large_matrices_are_inverted_in_place)
{
    enum { SIZE = 80 };
    sgm_graph *g = sgm_graph_create();
    sgm_value seed = sgm_cast(g, sgm_number(g, 3), SGM_INT64);
    sgm_value x = sgm_random_uniform(g, seed, seed, 0, SGM_FLOAT64, OP_DIMS(SIZE, SIZE));
    sgm_value rows = sgm_iota(g, SGM_INT32, OP_DIMS(SIZE, SIZE), 0);
    sgm_value unit = sgm_cast(g, sgm_equal(g, rows, sgm_transpose(g, rows)), SGM_FLOAT64);
    sgm_value rest = sgm_subtract(g, sgm_matmul(g, x, sgm_inverse(g, x)), unit);
    sgm_value error = sgm_reduce_max(g, sgm_absolute(g, rest), NULL, 0, false);
    op_expect(g, sgm_less(g, error, sgm_number(g, 1e-9)), OP_LIST(1));
}

/* The result is rounded once: beside the errors of float32 each number is within half a unit of its last
 * place, which is at most 2^-8 of it. */
TEST(large_matrices_of_bfloat16_are_rounded_once)
{
    enum { SIZE = 80 };
    sgm_graph *g = sgm_graph_create();
    sgm_value seed = sgm_cast(g, sgm_number(g, 3), SGM_INT64);
    sgm_value draws = sgm_random_uniform(g, seed, seed, 0, SGM_FLOAT64, OP_DIMS(SIZE, SIZE));
    sgm_value rows = sgm_iota(g, SGM_INT32, OP_DIMS(SIZE, SIZE), 0);
    sgm_value unit = sgm_cast(g, sgm_equal(g, rows, sgm_transpose(g, rows)), SGM_FLOAT64);
    sgm_value x = sgm_cast(g, sgm_add(g, draws, sgm_multiply(g, unit, sgm_number(g, 8))), SGM_BFLOAT16);
    sgm_value exact = sgm_inverse(g, sgm_cast(g, x, SGM_FLOAT64));
    sgm_value error = sgm_subtract(g, sgm_cast(g, sgm_inverse(g, x), SGM_FLOAT64), exact);
    sgm_value half = sgm_multiply(g, sgm_absolute(g, exact), sgm_number(g, 0x1p-8));
    sgm_value beyond = sgm_reduce_max(g, sgm_subtract(g, sgm_absolute(g, error), half), NULL, 0, false);
    op_expect(g, sgm_less(g, beyond, sgm_number(g, 1e-7)), OP_LIST(1));
}

TEST(sorting_is_stable_in_long_lines)
{
    enum { SIZE = 1000 };
    sgm_graph *g = sgm_graph_create();
    sgm_value seed = sgm_cast(g, sgm_number(g, 5), SGM_INT64);
    sgm_value draws = sgm_random_uniform(g, seed, seed, 0, SGM_FLOAT64, OP_DIMS(SIZE));
    sgm_value x = sgm_floor(g, sgm_multiply(g, draws, sgm_number(g, 20)));
    sgm_value order = sgm_argsort(g, x, 0, true);
    /* every neighbour is smaller, or equal and from further behind */
    sgm_value sorted = sgm_gather(g, x, order, 0);
    sgm_value step = sgm_subtract(g, sgm_slice(g, sorted, 0, 1, SIZE, 1), sgm_slice(g, sorted, 0, 0, -1, 1));
    sgm_value hop = sgm_subtract(g, sgm_slice(g, order, 0, 1, SIZE, 1), sgm_slice(g, order, 0, 0, -1, 1));
    sgm_value zero = sgm_number(g, 0);
    sgm_value equal = sgm_logical_and(g, sgm_equal(g, step, zero), sgm_greater(g, hop, zero));
    sgm_value right = sgm_logical_or(g, sgm_less(g, step, zero), equal);
    sgm_value positions = sgm_sum(g, order);
    sgm_value all = sgm_cast(g, sgm_reduce_min(g, right, NULL, 0, false), SGM_INT64);
    op_expect(g, sgm_multiply(g, all, positions), OP_LIST(SIZE * (SIZE - 1) / 2));
}

/* The published answer for key 0 and counter 0 (Random123, kat_vectors). */
TEST(random_numbers_are_those_of_philox)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value zero = sgm_cast(g, sgm_number(g, 0), SGM_INT64);
    op_expect(g, sgm_random_uniform(g, zero, zero, 0, SGM_FLOAT32, OP_DIMS(2, 2)),
              OP_LIST(0x6627e8 * 0x1p-24, 0xe169c5 * 0x1p-24, 0xbc57ac * 0x1p-24, 0x9b00db * 0x1p-24));
    uint32_t words[4];
    sgm__philox(5, 7, (uint64_t)3 << 40 | 1, words);
    g = sgm_graph_create();
    sgm_value seed = sgm_cast(g, sgm_number(g, 5), SGM_INT64),
              step = sgm_cast(g, sgm_number(g, 7), SGM_INT64);
    sgm_value draws = sgm_random_uniform(g, seed, step, 3, SGM_FLOAT64, OP_DIMS(6));
    op_expect(g, sgm_slice(g, draws, 0, 4, 6, 1),
              OP_LIST((words[0] >> 8) * 0x1p-24, (words[1] >> 8) * 0x1p-24));
}

TEST(normal_numbers_have_mean_0_and_standard_deviation_1)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value seed = sgm_cast(g, sgm_number(g, 1), SGM_INT64);
    sgm_value x = sgm_random_normal(g, seed, seed, 0, SGM_FLOAT64, OP_DIMS(100, 400));
    sgm_value mean = sgm_absolute(g, sgm_mean(g, x));
    sgm_value spread = sgm_absolute(
        g, sgm_subtract(g, sgm_reduce_standard_deviation(g, x, NULL, 0, false), sgm_number(g, 1)));
    sgm_value fourth = sgm_mean(g, sgm_power(g, x, sgm_number(g, 4))); /* 3 for a normal distribution */
    sgm_value tail = sgm_absolute(g, sgm_subtract(g, fourth, sgm_number(g, 3)));
    sgm_value right =
        sgm_logical_and(g, sgm_less(g, mean, sgm_number(g, 0.02)), sgm_less(g, spread, sgm_number(g, 0.02)));
    op_expect(g, sgm_logical_and(g, right, sgm_less(g, tail, sgm_number(g, 0.2))), OP_LIST(1));
}

TEST(statistics_are_of_the_population)
{
    sgm_graph *g = sgm_graph_create();
    op_expect(g, sgm_reduce_variance(g, MATRIX(2, 4, 1, 2, 3, 4, 2, 2, 2, 2), OP_AXES(1), 1, false),
              OP_LIST(1.25, 0));
    g = sgm_graph_create();
    op_expect(g, sgm_reduce_mean(g, MATRIX(2, 2, 1, 2, 3, 5), OP_AXES(0), 1, true), OP_LIST(2, 3.5));
    g = sgm_graph_create();
    op_expect(g, sgm_reduce_sum(g, op_constant(g, SGM_FLOAT32, OP_DIMS(0, 2), 0, NULL), OP_AXES(0), 1, false),
              OP_LIST(0, 0));
}
