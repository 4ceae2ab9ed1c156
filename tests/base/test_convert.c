/* Conversions between element types, and tensors as text. */
#include "tensor/tensor_internal.h"
#include "test.h"

static double convert(sgm_dtype dtype, double value)
{
    sgm_tensor *scalar = sgm_tensor_create(SGM_FLOAT64, &(sgm_shape){0});
    sgm_tensor_set(scalar, NULL, value);
    sgm_tensor *cast = sgm_tensor_cast(scalar, dtype);
    double result = sgm_tensor_get(cast, NULL);
    sgm_tensor_free(scalar);
    sgm_tensor_free(cast);
    return result;
}

TEST(floats_become_integers_truncated_and_saturated)
{
    CHECK_NEAR(convert(SGM_INT32, 2.9), 2, 0);
    CHECK_NEAR(convert(SGM_INT32, -2.9), -2, 0);
    CHECK_NEAR(convert(SGM_INT32, 1e10), INT32_MAX, 0);
    CHECK_NEAR(convert(SGM_INT32, -1e10), INT32_MIN, 0);
    CHECK_NEAR(convert(SGM_INT32, INFINITY), INT32_MAX, 0);
    CHECK_NEAR(convert(SGM_INT32, -INFINITY), INT32_MIN, 0);
    CHECK_NEAR(convert(SGM_UINT8, 255.9), 255, 0);
    CHECK_NEAR(convert(SGM_UINT8, 300), 255, 0);
    CHECK_NEAR(convert(SGM_UINT8, -0.5), 0, 0);
    CHECK_NEAR(convert(SGM_UINT8, -3), 0, 0);
    CHECK_NEAR(convert(SGM_INT64, -1e300), -0x1p63, 0);
    for (int dtype = 0; dtype < SGM_DTYPE_COUNT; dtype++)
        if (!sgm_dtype_is_float((sgm_dtype)dtype) && dtype != SGM_BOOL)
            CHECK_NEAR(convert((sgm_dtype)dtype, NAN), 0, 0);
}

TEST(the_largest_double_in_int64)
{
    int64_t out = 0;
    double in = 0x1p63;
    sgm__element_convert(SGM_INT64, &out, SGM_FLOAT64, &in);
    CHECK(out == INT64_MAX);
    in = 0x1.fffffffffffffp62;
    sgm__element_convert(SGM_INT64, &out, SGM_FLOAT64, &in);
    CHECK(out == 9223372036854774784);
    in = -0x1p63;
    sgm__element_convert(SGM_INT64, &out, SGM_FLOAT64, &in);
    CHECK(out == INT64_MIN);
}

TEST(bool_is_not_zero)
{
    CHECK_NEAR(convert(SGM_BOOL, 0.25), 1, 0);
    CHECK_NEAR(convert(SGM_BOOL, -3), 1, 0);
    CHECK_NEAR(convert(SGM_BOOL, NAN), 1, 0);
    CHECK_NEAR(convert(SGM_BOOL, 0), 0, 0);
    CHECK_NEAR(convert(SGM_BOOL, -0.0), 0, 0);
    uint8_t odd = 7, byte = 9;
    CHECK_NEAR(sgm__element_load(SGM_BOOL, &odd), 1, 0);
    sgm__element_convert(SGM_UINT8, &byte, SGM_BOOL, &odd);
    CHECK_INT(byte, 1);
}

TEST(integers_stay_exact)
{
    const int64_t values[] = {9007199254740993, -9007199254740993, INT64_MAX, INT64_MIN, 300, -1, 0};
    sgm_shape shape = sgm_shape_of(7);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_INT64, &shape, values);
    sgm_tensor *back = sgm_tensor_slice(tensor, 0, 6, -1, -1), *copy = sgm_tensor_copy(back);
    const int64_t *copied = sgm_tensor_const_data(copy);
    for (int i = 0; i < 7; i++)
        CHECK(copied[i] == values[6 - i]);
    sgm_tensor *narrow = sgm_tensor_cast(tensor, SGM_INT32), *bytes = sgm_tensor_cast(tensor, SGM_UINT8);
    const int32_t *integers = sgm_tensor_const_data(narrow);
    const int32_t expected[] = {INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 300, -1, 0};
    const uint8_t expected_bytes[] = {255, 0, 255, 0, 255, 0, 0}, *small = sgm_tensor_const_data(bytes);
    for (int i = 0; i < 7; i++) {
        CHECK_INT(integers[i], expected[i]);
        CHECK_INT(small[i], expected_bytes[i]);
    }
    sgm_tensor *all[] = {tensor, back, copy, narrow, bytes};
    for (size_t i = 0; i < 5; i++)
        sgm_tensor_free(all[i]);
}

TEST(integers_are_rounded_once)
{
    /* Between two floats, just above the middle: by way of a double it would be taken for the middle, and go
     * down to the even one. */
    int64_t value = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1;
    float single;
    sgm__element_convert(SGM_FLOAT32, &single, SGM_INT64, &value);
    CHECK_NEAR(single, 0x1.000002p60, 0);
    uint16_t brain;
    value = ((int64_t)1 << 60) + ((int64_t)1 << 52) + 1;
    sgm__element_convert(SGM_BFLOAT16, &brain, SGM_INT64, &value);
    CHECK_NEAR(sgm__bfloat16_to_float(brain), 0x1.02p60, 0);
    value = -value;
    sgm__element_convert(SGM_BFLOAT16, &brain, SGM_INT64, &value);
    CHECK_NEAR(sgm__bfloat16_to_float(brain), -0x1.02p60, 0);
    value = INT64_MIN;
    sgm__element_convert(SGM_BFLOAT16, &brain, SGM_INT64, &value);
    CHECK_NEAR(sgm__bfloat16_to_float(brain), -0x1p63, 0);
}

TEST(doubles_become_floats)
{
    CHECK_NEAR(convert(SGM_FLOAT32, 0.1), 0.1f, 0);
    CHECK_NEAR(convert(SGM_FLOAT32, 1e300), INFINITY, 0);
    CHECK_NEAR(convert(SGM_FLOAT32, 1e-60), 0, 0);
    CHECK_NEAR(convert(SGM_FLOAT32, NAN), NAN, 0);
}

TEST(bfloat16_rounds_to_nearest_ties_to_even)
{
    /* 8 bits: steps of 2^-7 from 1 to 2 */
    CHECK_NEAR(convert(SGM_BFLOAT16, 1 + 0x1p-8), 1, 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, 1 + 3 * 0x1p-8), 1 + 0x1p-6, 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, 1 + 0x1p-8 + 0x1p-20), 1 + 0x1p-7, 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, -(1 + 3 * 0x1p-8)), -(1 + 0x1p-6), 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, 3.14159265), 3.140625, 0);
    /* so little above the middle that a float does not see it */
    CHECK_NEAR(convert(SGM_BFLOAT16, 1 + 0x1p-8 + 0x1p-45), 1 + 0x1p-7, 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, 1 + 3 * 0x1p-8 - 0x1p-45), 1 + 0x1p-7, 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, 0x1.fep127), 0x1.fep127, 0); /* the largest */
    CHECK_NEAR(convert(SGM_BFLOAT16, 0x1.feffffp127), 0x1.fep127, 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, 0x1.ffp127), INFINITY, 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, -1e300), -INFINITY, 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, 0x1p-133), 0x1p-133, 0); /* the smallest */
    CHECK_NEAR(convert(SGM_BFLOAT16, 0x1p-134), 0, 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, 0x1.0000001p-134), 0x1p-133, 0);
    CHECK_NEAR(convert(SGM_BFLOAT16, 1e-300), 0, 0);
    CHECK(signbit(convert(SGM_BFLOAT16, -0.0)));
}

TEST(every_bfloat16_survives)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float value = sgm__bfloat16_to_float((uint16_t)bits);
        if (isnan(value)) {
            CHECK(isnan(sgm__bfloat16_to_float(sgm__bfloat16_from_float(value))));
        } else {
            CHECK_INT(sgm__bfloat16_from_float(value), bits);
            CHECK_INT(sgm__bfloat16_from_double((double)value), bits);
        }
    }
    float low_payload;
    memcpy(&low_payload, &(uint32_t){0x7F800001}, 4);
    CHECK(isnan(sgm__bfloat16_to_float(sgm__bfloat16_from_float(low_payload))));
}

TEST(types_have_names)
{
    sgm_dtype dtype = SGM_FLOAT32;
    CHECK_OK(sgm_dtype_parse("bfloat16", &dtype));
    CHECK_INT(dtype, SGM_BFLOAT16);
    CHECK_INT(sgm_dtype_size(dtype), 2);
    CHECK_STR(sgm_dtype_name(SGM_UINT8), "uint8");
    CHECK_ERROR(sgm_dtype_parse("flaot32", &dtype), "did you mean 'float32'");
    CHECK_ERROR(sgm_dtype_parse(NULL, &dtype), "expected an element type");
    CHECK_INT(dtype, SGM_BFLOAT16);
    CHECK_INT(sgm_dtype_size((sgm_dtype)50), 0);
    CHECK_STR(sgm_dtype_name((sgm_dtype)-1), "unknown");
}

TEST(shapes)
{
    char text[128];
    sgm_shape shape = sgm_shape_of(100, 784), scalar = sgm_scalar_shape(), empty = sgm_shape_of(3, 0);
    CHECK_STR(sgm_shape_text(&shape, text, sizeof text), "(100, 784)");
    CHECK_STR(sgm_shape_text(&scalar, text, sizeof text), "()");
    CHECK_STR(sgm_shape_text(&shape, text, 5), "(100");
    CHECK_INT(sgm_shape_elements(&shape), 78400);
    CHECK_INT(sgm_shape_elements(&scalar), 1);
    CHECK_INT(sgm_shape_elements(&empty), 0);
    CHECK(sgm_shape_equal(&shape, &(sgm_shape){2, {100, 784}}));
    CHECK(!sgm_shape_equal(&shape, &(sgm_shape){3, {100, 784, 1}}));
}

TEST(shapes_broadcast)
{
    char text[128];
    sgm_shape a = sgm_shape_of(5, 1, 4), b = sgm_shape_of(3, 1), c = sgm_shape_of(2, 4), result;
    sgm_shape zero = sgm_shape_of(0, 1, 1), scalar = sgm_scalar_shape(),
              many = sgm_shape_of((int64_t)1 << 40, 1);
    sgm_shape across = sgm_shape_of((int64_t)1 << 40);
    CHECK_OK(sgm_shape_broadcast(&a, &b, &result));
    CHECK_STR(sgm_shape_text(&result, text, sizeof text), "(5, 3, 4)");
    CHECK_OK(sgm_shape_broadcast(&scalar, &a, &result));
    CHECK(sgm_shape_equal(&result, &a));
    CHECK_OK(sgm_shape_broadcast(&zero, &b, &result));
    CHECK_STR(sgm_shape_text(&result, text, sizeof text), "(0, 3, 1)");
    CHECK_ERROR(sgm_shape_broadcast(&b, &c, &result), "(3, 1) and (2, 4) cannot be broadcast: 3 meets 2");
    CHECK_INT(sgm_last_status(), SGM_ERROR_SHAPE);
    CHECK_ERROR(sgm_shape_broadcast(&many, &across, &result), "more elements than");
}

/* --- text --- */

static void check_text(sgm_dtype dtype, sgm_shape shape, const double *values, int64_t maximum,
                       const char *expected)
{
    sgm_tensor *tensor = sgm_tensor_create(dtype, &shape);
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)sgm_shape_elements(&shape)));
    char *text = sgm_tensor_text(tensor, maximum);
    CHECK_STR(text, expected);
    sgm_string_free(text);
    sgm_tensor_free(tensor);
}

TEST(texts_line_up_at_the_point)
{
    check_text(SGM_FLOAT32, sgm_shape_of(2, 3), (const double[]){1, 2.5, -3.14159265, 0.1, 10, 1.0 / 3}, 99,
               "[[ 1.          2.5        -3.1415927 ]\n"
               " [ 0.1        10.          0.33333334]]");
    check_text(SGM_FLOAT64, sgm_shape_of(4), (const double[]){1, 0.1 + 0.2, NAN, -INFINITY}, 99,
               "[ 1.   0.3  nan -inf]");
    check_text(SGM_FLOAT64, sgm_shape_of(3), (const double[]){1e10, 1.2345, -1e-5}, 99,
               "[ 1.0000e+10  1.2345e+00 -1.0000e-05]");
    check_text(SGM_FLOAT64, sgm_shape_of(1), (const double[]){1e10}, 99, "[1.e+10]");
    check_text(SGM_BFLOAT16, sgm_shape_of(2), (const double[]){3.14159, 1}, 99, "[3.14 1.  ]");
    check_text(SGM_FLOAT32, sgm_scalar_shape(), (const double[]){0.1}, 99, "0.1");
}

TEST(texts_of_integers_and_bools)
{
    check_text(SGM_INT32, sgm_shape_of(2, 2, 2), (const double[]){5, 6, -7, 8, 9, 10, 11, 12}, 99,
               "[[[ 5  6]\n  [-7  8]]\n\n [[ 9 10]\n  [11 12]]]");
    check_text(SGM_BOOL, sgm_shape_of(2), (const double[]){1, 0}, 99, "[ True False]");
    check_text(SGM_FLOAT32, sgm_shape_of(0, 3), NULL, 99, "[]");
    const int64_t large = 9007199254740993;
    sgm_tensor *scalar = sgm_tensor_create_from(SGM_INT64, &(sgm_shape){0}, &large);
    char *text = sgm_tensor_text(scalar, 1);
    CHECK_STR(text, "9007199254740993");
    sgm_string_free(text);
    sgm_tensor_free(scalar);
}

TEST(long_texts_are_shortened_and_broken)
{
    double values[80];
    for (int i = 0; i < 80; i++)
        values[i] = i;
    check_text(SGM_INT64, sgm_shape_of(8, 10), values, 20,
               "[[ 0  1  2 ...  7  8  9]\n"
               " [10 11 12 ... 17 18 19]\n"
               " [20 21 22 ... 27 28 29]\n"
               " ...\n"
               " [50 51 52 ... 57 58 59]\n"
               " [60 61 62 ... 67 68 69]\n"
               " [70 71 72 ... 77 78 79]]");
    check_text(SGM_UINT8, sgm_shape_of(30), values, 99,
               "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24\n"
               " 25 26 27 28 29]");
}

/* Ties go to the even one; below 2^-14 numbers are wholes of 2^-24; half a step beyond 65504 is infinite. */
TEST(halves_are_rounded_to_nearest)
{
    static const struct {
        float number;
        uint16_t half;
    } cases[] = {{0, 0},
                 {-0.0f, 0x8000},
                 {1, 0x3c00},
                 {-2.5f, 0xc100},
                 {0x1.004p0f, 0x3c01},
                 {0x1.002p0f, 0x3c00},
                 {0x1.006p0f, 0x3c02},
                 {0x1p-24f, 1},
                 {0x1p-25f, 0},
                 {0x1.8p-24f, 2},
                 {65504, 0x7bff},
                 {65519, 0x7bff},
                 {65520, 0x7c00},
                 {INFINITY, 0x7c00}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint16_t half;
        sgm_halves_from_floats(&half, &cases[i].number, 1);
        CHECK_INT(half, cases[i].half);
    }
}

/* All of them, from the last half of the floats' own bytes. */
TEST(halves_become_floats_and_come_back)
{
    enum { ALL = 65536 };
    float *floats = malloc(ALL * sizeof *floats);
    uint16_t *halves = (uint16_t *)floats + ALL, *back = malloc(ALL * sizeof *back);
    for (uint32_t i = 0; i < ALL; i++)
        halves[i] = (uint16_t)i;
    sgm_floats_from_halves(floats, halves, ALL);
    sgm_halves_from_floats(back, floats, ALL);
    for (uint32_t i = 0; i < ALL; i++)
        CHECK_INT(back[i], i);
    CHECK_NEAR(floats[0x3555], 0x1.554p-2, 0);
    free(back);
    free(floats);
}
