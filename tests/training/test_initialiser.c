/* Initialisers: moments of what they draw, orthogonality, text, and that numbers depend on seed and name
 * only. */
#include "test.h"

#include <sigma/training.h>

#define ROWS 60
#define COLUMNS 50
#define COUNT (ROWS * COLUMNS)

static double values[COUNT];

static void draw(sgm_initialiser *initialiser, uint64_t seed, const char *name)
{
    CHECK_OK(initialiser);
    sgm_shape shape = sgm_shape_of(ROWS, COLUMNS);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, &shape);
    CHECK_OK(sgm_initialiser_fill(initialiser, tensor, ROWS, COLUMNS, seed, name));
    CHECK_OK(sgm_tensor_read(tensor, values, COUNT));
    sgm_tensor_free(tensor);
    sgm_initialiser_free(initialiser);
}

/* Mean and standard deviation within five standard errors. */
static void check_moments(double mean, double standard_deviation)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < COUNT; i++)
        sum += values[i];
    for (int i = 0; i < COUNT; i++)
        squares += (values[i] - sum / COUNT) * (values[i] - sum / COUNT);
    CHECK_NEAR(sum / COUNT, mean, 5 * standard_deviation / sqrt(COUNT));
    CHECK_NEAR(sqrt(squares / COUNT) / standard_deviation, 1, 5 / sqrt(2.0 * COUNT));
}

static void check_range(double minimum, double maximum)
{
    for (int i = 0; i < COUNT; i++)
        CHECK(values[i] >= minimum && values[i] <= maximum);
}

TEST(gaussian)
{
    draw(sgm_gaussian(.standard_deviation = 0.3, .mean = 1), 1, "a");
    check_moments(1, 0.3);
}

TEST(uniform)
{
    draw(sgm_uniform(.minimum = -1, .maximum = 3), 1, "a");
    check_moments(1, 4 / sqrt(12));
    check_range(-1, 3);
}

TEST(truncated_keeps_within_two_deviations)
{
    draw(sgm_truncated(.standard_deviation = 0.5), 1, "a");
    check_moments(0, 0.5 * 0.87962566103423978); /* standard deviation of a normal cut at 2 */
    check_range(-1, 1);
}

TEST(glorot)
{
    draw(sgm_glorot(), 1, "a");
    check_moments(0, sqrt(2.0 / (ROWS + COLUMNS)));
    check_range(-sqrt(6.0 / (ROWS + COLUMNS)), sqrt(6.0 / (ROWS + COLUMNS)));
}

TEST(he)
{
    draw(sgm_he(), 1, "a");
    check_moments(0, sqrt(2.0 / ROWS));
}

TEST(orthogonal_columns)
{
    draw(sgm_orthogonal(.gain = 2), 1, "a");
    for (int i = 0; i < COLUMNS; i++)
        for (int k = 0; k <= i; k++) {
            double product = 0;
            for (int row = 0; row < ROWS; row++)
                product += values[row * COLUMNS + i] * values[row * COLUMNS + k];
            CHECK_NEAR(product, i == k ? 4 : 0, 1e-12);
        }
}

static double position(void *user, const int64_t *indices, const sgm_shape *shape, double random)
{
    CHECK(random >= 0 && random < 1);
    CHECK_INT(shape->rank, 2);
    return *(const double *)user + (double)(indices[0] * COLUMNS + indices[1]);
}

TEST(custom_is_asked_for_each_element)
{
    static double start = 5;
    draw(sgm_custom_initialiser(.function = position, .user = &start), 1, "a");
    for (int i = 0; i < COUNT; i++)
        CHECK_NEAR(values[i], 5 + i, 0);
    CHECK_ERROR(sgm_custom_initialiser(), "wants a function");
}

TEST(numbers_depend_on_seed_and_name)
{
    draw(sgm_he(), 1, "a");
    double first = values[0];
    draw(sgm_he(), 1, "a");
    CHECK(values[0] == first);
    draw(sgm_he(), 2, "a");
    CHECK(values[0] != first);
    draw(sgm_he(), 1, "b");
    CHECK(values[0] != first);
}

TEST(no_options_are_the_defaults)
{
    draw(sgm_he(), 1, "a");
    double first = values[0];
    draw(sgm_initialiser_create("he", NULL), 1, "a");
    CHECK(values[0] == first && first != 0);
}

TEST(what_makes_no_sense_is_refused)
{
    CHECK_ERROR(sgm_initialiser_create(NULL, NULL), "expects a type");
    CHECK_ERROR(sgm_initialiser_parse(NULL), "expects a text");
    CHECK_ERROR(sgm_initialiser_parse("constant(nan)"),
                "column 10: constant: value: expected a number, found 'nan'");
    CHECK_ERROR(sgm_initialiser_parse("uniform(0, 1e999)"),
                "column 12: uniform: maximum: this number is too large for a double");
    CHECK_ERROR(sgm_gaussian(.standard_deviation = -1), "not negative");
    CHECK_ERROR(sgm_initialiser_fill(NULL, NULL, 1, 1, 0, "a"), "one is NULL");
}

TEST(text)
{
    draw(sgm_initialiser_parse("constant(0.25)"), 1, "a");
    check_range(0.25, 0.25);
    draw(sgm_initialiser_parse(" gaussian( standard_deviation = 2, mean=-1 ) "), 1, "a");
    check_moments(-1, 2);
    CHECK_ERROR(sgm_initialiser_parse("gausian"), "did you mean 'gaussian'");
    CHECK_ERROR(sgm_initialiser_parse("gaussian(mean=x)"),
                "column 15: gaussian: mean: expected a number, found 'x'");
    CHECK_ERROR(sgm_initialiser_parse("gaussian(meen=1)"),
                "column 10: expected an argument of gaussian (standard_deviation, mean), found 'meen'; did "
                "you mean 'mean'?");
    CHECK_ERROR(sgm_initialiser_parse("gaussian(1"),
                "column 11: expected ',' with another argument, or ')', found the end");
    CHECK_ERROR(sgm_initialiser_parse("(1)"), "column 1: expected a name, found '('");
    CHECK_ERROR(sgm_initialiser_parse("gaussian(0, 0.1, -5)"),
                "column 18: gaussian takes at most 2 arguments");
    CHECK_ERROR(sgm_initialiser_parse("uniform(gain=2)"),
                "expected an argument of uniform (minimum, maximum), found 'gain'");
    CHECK_ERROR(sgm_initialiser_parse("custom(gain=2)"), "column 8: custom takes no arguments");
    CHECK_ERROR(sgm_initialiser_parse("he(1, gain=2)"), "column 7: gain is given twice");
    CHECK_ERROR(sgm_initialiser_parse("he(1) 2"), "column 7: expected the end, found '2'");
    draw(sgm_initialiser_parse("he(gain=2)"), 1, "a");
}
