#include "allocator.h"
#include "tensor/tensor_internal.h"
#include "test.h"

/* A tensor of 0, 1, 2, ... */
static sgm_tensor *count_up(sgm_dtype dtype, sgm_shape shape)
{
    double values[1000];
    size_t count = (size_t)sgm_shape_elements(&shape);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)i;
    sgm_tensor *tensor = sgm_tensor_create(dtype, &shape);
    CHECK_OK(sgm_tensor_write(tensor, values, count));
    return tensor;
}

static void check_values(const sgm_tensor *tensor, size_t count, const double *expected)
{
    double values[1000];
    CHECK_OK(tensor);
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(values[i], expected[i], 0);
}

#define CHECK_VALUES(tensor, ...)                                                                            \
    check_values(tensor, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

static void check_shape(const sgm_tensor *tensor, const char *expected)
{
    char text[128];
    CHECK_STR(sgm_shape_text(sgm_tensor_shape(tensor), text, sizeof text), expected);
}

/* --- making, sharing, freeing --- */

TEST(created_tensors_are_zero_and_aligned)
{
    sgm_shape shape = sgm_shape_of(2, 3);
    for (int dtype = 0; dtype < SGM_DTYPE_COUNT; dtype++) {
        sgm_tensor *tensor = sgm_tensor_create((sgm_dtype)dtype, &shape);
        CHECK_VALUES(tensor, 0, 0, 0, 0, 0, 0);
        CHECK_INT((uintptr_t)sgm_tensor_data(tensor) % 64, 0);
        CHECK_INT(sgm_tensor_dtype(tensor), dtype);
        CHECK_INT(sgm_tensor_strides(tensor)[0], 3);
        CHECK_INT(sgm_tensor_strides(tensor)[1], 1);
        CHECK(sgm_tensor_is_contiguous(tensor));
        sgm_tensor_free(tensor);
    }
}

TEST(values_are_copied_in)
{
    int64_t values[] = {1, -9007199254740993, INT64_MAX, INT64_MIN};
    sgm_shape shape = sgm_shape_of(4);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_INT64, &shape, values);
    values[0] = 5;
    const int64_t *data = sgm_tensor_const_data(tensor);
    CHECK_INT(data[0], 1);
    CHECK(data[1] == -9007199254740993 && data[2] == INT64_MAX && data[3] == INT64_MIN);
    sgm_tensor_free(tensor);
    CHECK_ERROR(sgm_tensor_create_from(SGM_INT64, &shape, NULL), "32 bytes of values");
}

TEST(impossible_tensors_are_refused)
{
    sgm_shape negative = sgm_shape_of(2, -3), rank = sgm_shape_create(9, (int64_t[9]){0});
    sgm_shape overflow = sgm_shape_of(INT64_MAX, 2), bytes = sgm_shape_of(INT64_MAX / 2);
    sgm_shape hidden = sgm_shape_of(0, INT64_MAX, INT64_MAX), none = sgm_shape_create(2, NULL),
              good = sgm_shape_of(2);
    CHECK_ERROR(sgm_tensor_create(SGM_FLOAT32, &negative), "-3 as dimension 1 of (2, -3)");
    CHECK_ERROR(sgm_tensor_create(SGM_FLOAT32, &rank), "0 to 8 dimensions, got 9");
    CHECK_ERROR(sgm_tensor_create(SGM_FLOAT32, &overflow), "more elements than");
    CHECK_ERROR(sgm_tensor_create(SGM_FLOAT32, &bytes), "more elements than");
    CHECK_ERROR(sgm_tensor_create(SGM_FLOAT32, &hidden), "more elements than");
    CHECK_ERROR(sgm_tensor_create(SGM_FLOAT32, &none), "dimensions");
    CHECK_ERROR(sgm_tensor_create(SGM_FLOAT32, NULL), "got NULL");
    CHECK_ERROR(sgm_tensor_create((sgm_dtype)99, &good), "got the number 99");
    CHECK_ERROR(sgm_tensor_create((sgm_dtype)-1, &good), "got the number -1");
}

static void count_release(void *user)
{
    ++*(int *)user;
}

TEST(wrapped_memory_is_released_with_its_last_view)
{
    float values[] = {1, 2, 3, 4};
    int released = 0;
    sgm_shape shape = sgm_shape_of(2, 2);
    sgm_tensor *tensor = sgm_tensor_wrap(SGM_FLOAT32, &shape, values, count_release, &released);
    CHECK(sgm_tensor_data(tensor) == values);
    sgm_tensor *row = sgm_tensor_slice(tensor, 0, 1, 2, 1);
    CHECK(sgm_tensor_retain(row) == row);
    sgm_tensor_free(tensor);
    sgm_tensor_free(row);
    CHECK_INT(released, 0);
    values[2] = 30;
    CHECK_VALUES(row, 30, 4);
    sgm_tensor_free(row);
    CHECK_INT(released, 1);
}

TEST(wrapping_releases_at_once_when_it_fails)
{
    double values[2] = {0};
    int released = 0;
    sgm_shape shape = sgm_shape_of(1), bad = sgm_shape_of(-1);
    CHECK_ERROR(sgm_tensor_wrap(SGM_FLOAT32, &bad, values, count_release, &released), "-1 as dimension 0");
    CHECK_INT(released, 1);
    CHECK_ERROR(sgm_tensor_wrap(SGM_FLOAT32, &shape, NULL, count_release, &released), "got NULL");
    CHECK_INT(released, 2);
    char *odd = (char *)values + 2;
    CHECK_ERROR(sgm_tensor_wrap(SGM_FLOAT32, &shape, odd, count_release, &released), "aligned to 4 bytes");
    CHECK_INT(released, 3);
    for (long n = 1; n <= 2; n++) {
        allocator_start(n);
        CHECK_ERROR(sgm_tensor_wrap(SGM_FLOAT32, &shape, values, count_release, &released),
                    "cannot allocate");
        CHECK_INT(released, 3 + n);
        CHECK_INT(allocator_live, 0);
        allocator_stop();
    }
}

TEST(null_tensors_pass_the_error_on)
{
    sgm_shape bad = sgm_shape_of(-2), flat = sgm_shape_of(-1);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &bad);
    tensor = sgm_tensor_reshape(sgm_tensor_slice(tensor, 0, 0, 1, 1), &flat);
    CHECK(tensor == NULL && sgm_tensor_copy(tensor) == NULL && sgm_tensor_text(tensor, 5) == NULL);
    CHECK_INT(sgm_tensor_assign(tensor, tensor), SGM_ERROR_SHAPE);
    CHECK(strstr(sgm_last_error(), "(-2,)") != NULL);
    CHECK_ERROR(sgm_tensor_copy(NULL), "expected a tensor, got NULL");
    CHECK_ERROR(sgm_tensor_text(NULL, 5), "expected a tensor, got NULL");
    sgm_tensor_free(NULL);
    CHECK(sgm_tensor_retain(NULL) == NULL);
    CHECK(sgm_tensor_data(NULL) == NULL && sgm_tensor_const_data(NULL) == NULL);
    CHECK_INT(sgm_tensor_dtype(NULL), SGM_FLOAT32);
    CHECK(sgm_tensor_is_contiguous(NULL));
}

/* Every way to run out of memory: an error, and nothing left behind. */
static bool use_tensors(void)
{
    sgm_shape shape = sgm_shape_of(2, 3), flat = sgm_shape_of(6), wide = sgm_shape_of(4, 3, 2);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    sgm_tensor *transposed = sgm_tensor_permute(tensor, (int32_t[]){1, 0});
    sgm_tensor *copied = sgm_tensor_reshape(transposed, &flat);
    sgm_tensor *spread = sgm_tensor_broadcast(transposed, &wide);
    sgm_tensor *cast = sgm_tensor_cast(spread, SGM_INT64);
    sgm_tensor *back = sgm_tensor_slice(copied, 0, 5, -1, -1);
    bool assigned = back && sgm_tensor_assign(back, copied) == SGM_OK;
    char *text = sgm_tensor_text(cast, 10);
    bool good = assigned && text;
    sgm_string_free(text);
    sgm_tensor *all[] = {tensor, transposed, copied, spread, cast, back};
    for (size_t i = 0; i < 6; i++)
        sgm_tensor_free(all[i]);
    return good;
}

TEST(running_out_of_memory_leaks_nothing)
{
    bool done = false;
    for (long n = 1; !done; n++) {
        CHECK(n < 200);
        sgm_clear_error();
        allocator_start(n);
        done = use_tensors();
        allocator_stop();
        CHECK_INT(allocator_live, 0);
        CHECK_INT(sgm_last_status(), done ? SGM_OK : SGM_ERROR_MEMORY);
        CHECK(done == (allocator_calls < n));
    }
}

static void *retain_and_free(void *tensor)
{
    for (int i = 0; i < 20000; i++) {
        sgm_tensor *view = sgm_tensor_slice(tensor, 0, 0, 1, 1);
        sgm_tensor_free(sgm_tensor_retain(view));
        sgm_tensor_free(view);
    }
    sgm_tensor_free(tensor);
    return NULL;
}

TEST(threads_share_a_tensor)
{
    float value = 1;
    int released = 0;
    sgm_shape shape = sgm_shape_of(1);
    sgm_tensor *tensor = sgm_tensor_wrap(SGM_FLOAT32, &shape, &value, count_release, &released);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, retain_and_free, sgm_tensor_retain(tensor)), 0);
    sgm_tensor_free(tensor);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(released, 1);
}

/* --- views --- */

TEST(slices_step_both_ways)
{
    sgm_tensor *tensor = count_up(SGM_INT32, sgm_shape_of(10));
    static const struct {
        int64_t start, stop, step;
        size_t count;
        double values[10];
    } cases[] = {
        {2, 5, 1, 3, {2, 3, 4}},    {0, 10, 3, 4, {0, 3, 6, 9}}, {1, 10, 3, 3, {1, 4, 7}},
        {9, -1, -4, 3, {9, 5, 1}},  {4, 1, -1, 3, {4, 3, 2}},    {5, 5, 1, 0, {0}},
        {10, 10, 1, 0, {0}},        {5, 5, -1, 0, {0}},          {3, 10, INT64_MAX, 1, {3}},
        {9, -1, INT64_MIN, 1, {9}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgm_tensor *view = sgm_tensor_slice(tensor, 0, cases[i].start, cases[i].stop, cases[i].step);
        check_values(view, cases[i].count, cases[i].values);
        sgm_tensor_free(view);
    }
    sgm_tensor_free(tensor);
}

TEST(slices_outside_are_refused)
{
    sgm_tensor *tensor = count_up(SGM_INT32, sgm_shape_of(2, 10));
    CHECK_ERROR(sgm_tensor_slice(tensor, 2, 0, 1, 1), "axis 2 of the shape (2, 10)");
    CHECK_ERROR(sgm_tensor_slice(tensor, -1, 0, 1, 1), "axis -1");
    CHECK_ERROR(sgm_tensor_slice(tensor, 1, 0, 1, 0), "step 0");
    CHECK_ERROR(sgm_tensor_slice(tensor, 1, 0, 11, 1), "0 <= start <= stop <= size");
    CHECK_ERROR(sgm_tensor_slice(tensor, 1, -1, 3, 1), "0 <= start <= stop <= size");
    CHECK_ERROR(sgm_tensor_slice(tensor, 1, 4, 3, 1), "0 <= start <= stop <= size");
    CHECK_ERROR(sgm_tensor_slice(tensor, 1, 10, 3, -1), "-1 <= stop <= start < size");
    CHECK_ERROR(sgm_tensor_slice(tensor, 1, 3, -2, -1), "-1 <= stop <= start < size");
    CHECK_ERROR(sgm_tensor_slice(tensor, 1, INT64_MIN, INT64_MAX, 1), "cannot slice");
    CHECK_ERROR(sgm_tensor_slice(tensor, 1, INT64_MAX, INT64_MIN, -1), "cannot slice");
    sgm_tensor_free(tensor);
}

TEST(views_of_views_share_memory)
{
    sgm_tensor *tensor = count_up(SGM_FLOAT64, sgm_shape_of(4, 6));
    sgm_tensor *rows = sgm_tensor_slice(tensor, 0, 3, -1, -2); /* rows 3 and 1 */
    sgm_tensor *columns = sgm_tensor_slice(rows, 1, 5, 0, -2); /* columns 5, 3, 1 */
    sgm_tensor *transposed = sgm_tensor_permute(columns, (int32_t[]){1, 0});
    check_shape(transposed, "(3, 2)");
    CHECK_VALUES(transposed, 23, 11, 21, 9, 19, 7);
    CHECK_INT(sgm_tensor_strides(transposed)[0], -2);
    CHECK_INT(sgm_tensor_strides(transposed)[1], -12);
    CHECK(!sgm_tensor_is_contiguous(transposed));
    sgm_tensor_set(transposed, (int64_t[]){2, 1}, 100);
    CHECK_NEAR(sgm_tensor_get(tensor, (int64_t[]){1, 1}), 100, 0);
    sgm_tensor_free(tensor);
    sgm_tensor_free(rows);
    sgm_tensor_free(columns);
    CHECK_VALUES(transposed, 23, 11, 21, 9, 19, 100);
    sgm_tensor_free(transposed);
}

TEST(permutations_are_checked)
{
    sgm_tensor *tensor = count_up(SGM_UINT8, sgm_shape_of(2, 3, 4));
    sgm_tensor *transposed = sgm_tensor_permute(tensor, (int32_t[]){2, 0, 1});
    check_shape(transposed, "(4, 2, 3)");
    CHECK_NEAR(sgm_tensor_get(transposed, (int64_t[]){3, 1, 2}), 23, 0);
    CHECK_NEAR(sgm_tensor_get(transposed, (int64_t[]){1, 0, 2}), 9, 0);
    CHECK_ERROR(sgm_tensor_permute(tensor, (int32_t[]){0, 1, 1}), "got 1 as number 2");
    CHECK_ERROR(sgm_tensor_permute(tensor, (int32_t[]){0, 1, 3}), "got 3");
    CHECK_ERROR(sgm_tensor_permute(tensor, (int32_t[]){-1, 1, 2}), "got -1");
    CHECK_ERROR(sgm_tensor_permute(tensor, NULL), "3 axes");
    sgm_tensor_free(transposed);
    sgm_tensor_free(tensor);
}

TEST(broadcasts_repeat_without_memory)
{
    sgm_shape wide = sgm_shape_of(2, 3, 2), huge = sgm_shape_of(1000000000, 3, 1000),
              bad = sgm_shape_of(2, 2);
    sgm_shape lower = sgm_shape_of(3), empty = sgm_shape_of(0, 3, 5), scalar = sgm_scalar_shape();
    sgm_tensor *tensor = count_up(SGM_FLOAT32, sgm_shape_of(3, 1));
    sgm_tensor *spread = sgm_tensor_broadcast(tensor, &wide);
    CHECK_VALUES(spread, 0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2);
    CHECK_INT(sgm_tensor_strides(spread)[0], 0);
    sgm_tensor *enormous = sgm_tensor_broadcast(tensor, &huge);
    CHECK_NEAR(sgm_tensor_get(enormous, (int64_t[]){999999999, 2, 999}), 2, 0);
    sgm_tensor *nothing = sgm_tensor_broadcast(tensor, &empty);
    CHECK_INT(sgm_shape_elements(sgm_tensor_shape(nothing)), 0);
    CHECK_ERROR(sgm_tensor_broadcast(tensor, &bad), "(3, 1) cannot be broadcast to (2, 2)");
    CHECK_ERROR(sgm_tensor_broadcast(tensor, &lower), "(3, 1) cannot be broadcast to (3,)");
    CHECK_ERROR(sgm_tensor_broadcast(tensor, &scalar), "cannot be broadcast to ()");
    CHECK_ERROR(sgm_tensor_write(spread, (double[12]){0}, 12), "broadcast view");
    CHECK_ERROR(sgm_tensor_assign(spread, spread), "broadcast view");
    sgm_tensor_free(tensor);
    sgm_tensor_free(spread);
    sgm_tensor_free(enormous);
    sgm_tensor_free(nothing);
}

/* --- reshaping --- */

static bool shares(sgm_tensor *view, sgm_tensor *tensor)
{
    return sgm_tensor_data(view) == sgm_tensor_data(tensor);
}

TEST(reshapes_are_views_where_strides_allow)
{
    sgm_shape to_3d = sgm_shape_of(2, -1, 1, 2), split = sgm_shape_of(3, 2, 2, 1), flat = sgm_shape_of(-1);
    sgm_tensor *tensor = count_up(SGM_FLOAT32, sgm_shape_of(3, 4));
    sgm_tensor *plain = sgm_tensor_reshape(tensor, &to_3d);
    check_shape(plain, "(2, 3, 1, 2)");
    CHECK(shares(plain, tensor));
    CHECK_VALUES(plain, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    /* Each second row, its columns backwards: columns can be split, rows and columns cannot be joined. */
    sgm_tensor *back = sgm_tensor_slice(tensor, 1, 3, -1, -1);
    sgm_tensor *cut = sgm_tensor_reshape(back, &split);
    CHECK(shares(cut, back));
    CHECK_VALUES(cut, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8);
    sgm_tensor *joined = sgm_tensor_reshape(back, &flat);
    CHECK(!shares(joined, back));
    CHECK(sgm_tensor_is_contiguous(joined));
    CHECK_VALUES(joined, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8);
    sgm_tensor *all[] = {tensor, plain, back, cut, joined};
    for (size_t i = 0; i < 5; i++)
        sgm_tensor_free(all[i]);
}

/* Whatever the view, a reshape keeps the order of the elements. */
TEST(reshapes_keep_the_order)
{
    const sgm_shape shapes[] = {sgm_shape_of(24),   sgm_shape_of(4, 6),       sgm_shape_of(2, 2, 6),
                                sgm_shape_of(8, 3), sgm_shape_of(1, 3, 1, 8), sgm_shape_of(2, 3, 2, 2),
                                sgm_shape_of(6, 4), sgm_shape_of(12, 2, 1)};
    const int32_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    sgm_tensor *whole = count_up(SGM_FLOAT64, sgm_shape_of(4, 6, 4));
    for (size_t order = 0; order < 6; order++) {
        for (int backwards = 0; backwards < 2; backwards++) {
            sgm_tensor *part =
                backwards ? sgm_tensor_slice(whole, 1, 5, -1, -2) : sgm_tensor_slice(whole, 1, 0, 3, 1);
            sgm_tensor *half = sgm_tensor_slice(part, 2, 0, 4, 2);
            sgm_tensor *view = sgm_tensor_permute(half, orders[order]);
            double expected[24];
            CHECK_OK(sgm_tensor_read(view, expected, 24));
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                sgm_tensor *reshaped = sgm_tensor_reshape(view, &shapes[i]);
                CHECK(sgm_shape_equal(sgm_tensor_shape(reshaped), &shapes[i]));
                check_values(reshaped, 24, expected);
                sgm_tensor_free(reshaped);
            }
            sgm_tensor_free(part);
            sgm_tensor_free(half);
            sgm_tensor_free(view);
        }
    }
    sgm_tensor_free(whole);
}

TEST(reshapes_are_checked)
{
    sgm_shape wrong = sgm_shape_of(5, -1), two = sgm_shape_of(-1, -1), count = sgm_shape_of(2, 5);
    sgm_shape negative = sgm_shape_of(-2, 6), zero = sgm_shape_of(0, -1), one = sgm_shape_of(1, 1);
    sgm_tensor *tensor = count_up(SGM_FLOAT32, sgm_shape_of(3, 4));
    CHECK_ERROR(sgm_tensor_reshape(tensor, &wrong),
                "cannot reshape (3, 4) to (5, -1): expected a shape of 12");
    CHECK_ERROR(sgm_tensor_reshape(tensor, &two), "at most one dimension of -1");
    CHECK_ERROR(sgm_tensor_reshape(tensor, &count), "(2, 5)");
    CHECK_ERROR(sgm_tensor_reshape(tensor, &negative), "got -2");
    CHECK_ERROR(sgm_tensor_reshape(tensor, &zero), "12 elements");
    CHECK_ERROR(sgm_tensor_reshape(tensor, NULL), "got NULL");
    sgm_tensor *none = count_up(SGM_FLOAT32, sgm_shape_of(0, 4));
    sgm_shape four = sgm_shape_of(-1, 4);
    CHECK_ERROR(sgm_tensor_reshape(none, &zero), "cannot reshape (0, 4)");
    sgm_tensor *still_none = sgm_tensor_reshape(none, &four);
    check_shape(still_none, "(0, 4)");
    sgm_tensor *scalar = count_up(SGM_FLOAT32, sgm_scalar_shape()),
               *lifted = sgm_tensor_reshape(scalar, &one);
    check_shape(lifted, "(1, 1)");
    sgm_tensor *all[] = {tensor, none, still_none, scalar, lifted};
    for (size_t i = 0; i < 5; i++)
        sgm_tensor_free(all[i]);
}

/* --- copies between views --- */

TEST(assigning_between_overlapping_views_is_safe)
{
    sgm_tensor *tensor = count_up(SGM_INT32, sgm_shape_of(6));
    sgm_tensor *back = sgm_tensor_slice(tensor, 0, 5, -1, -1);
    CHECK_OK(sgm_tensor_assign(tensor, back));
    CHECK_VALUES(tensor, 5, 4, 3, 2, 1, 0);
    sgm_tensor *head = sgm_tensor_slice(tensor, 0, 0, 5, 1), *tail = sgm_tensor_slice(tensor, 0, 1, 6, 1);
    CHECK_OK(sgm_tensor_assign(tail, head));
    CHECK_VALUES(tensor, 5, 5, 4, 3, 2, 1);
    CHECK_ERROR(sgm_tensor_assign(tensor, tail), "cannot assign the shape (5,) to (6,)");
    sgm_tensor *all[] = {tensor, back, head, tail};
    for (size_t i = 0; i < 4; i++)
        sgm_tensor_free(all[i]);
}

TEST(long_rows_convert_whole)
{
    sgm_tensor *tensor = count_up(SGM_INT32, sgm_shape_of(1000)),
               *real = sgm_tensor_cast(tensor, SGM_FLOAT32);
    sgm_tensor *back = sgm_tensor_slice(real, 0, 999, -1, -3);
    sgm_tensor *integers = sgm_tensor_cast(back, SGM_INT64);
    const int64_t *values = sgm_tensor_const_data(integers);
    for (int64_t i = 0; i < 334; i++)
        CHECK_INT(values[i], 999 - 3 * i);
    sgm_tensor *all[] = {tensor, real, back, integers};
    for (size_t i = 0; i < 4; i++)
        sgm_tensor_free(all[i]);
}

TEST(reading_and_writing_check_the_count)
{
    double values[7] = {0};
    sgm_tensor *tensor = count_up(SGM_FLOAT32, sgm_shape_of(2, 3));
    CHECK_ERROR(sgm_tensor_read(tensor, values, 7), "6 elements of the shape (2, 3), got 7");
    CHECK_ERROR(sgm_tensor_write(tensor, values, 5), "got 5");
    CHECK_ERROR(sgm_tensor_read(tensor, NULL, 6), "got NULL");
    sgm_clear_error();
    CHECK(isnan(sgm_tensor_get(tensor, (int64_t[]){2, 0})));
    CHECK(strstr(sgm_last_error(), "index 2 of axis 0 is outside of the shape (2, 3)") != NULL);
    sgm_tensor_set(tensor, (int64_t[]){0, -1}, 5);
    CHECK(strstr(sgm_last_error(), "index -1 of axis 1") != NULL);
    CHECK_VALUES(tensor, 0, 1, 2, 3, 4, 5);
    sgm_tensor_free(tensor);
}
