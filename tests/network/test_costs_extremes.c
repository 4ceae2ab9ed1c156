/* Costs of infinite logits, and of those near float32's largest number: what PyTorch 2.15 gives, and the
 * limit where that gives none (0 times infinity); values and gradients, on each handler that is here. */
#include "handlers/devices.h"
#include "values.h"

#define LARGE 3e38
#define LIST(label, ...)                                                                                     \
    {                                                                                                        \
        label, sizeof((const double[]){__VA_ARGS__}) / sizeof(double), (const double[])                      \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define GIVEN(x, t)                                                                                          \
    .given = (const values_list[])                                                                           \
    {                                                                                                        \
        x, t,                                                                                                \
        {                                                                                                    \
            NULL, 0, NULL                                                                                    \
        }                                                                                                    \
    }
#define EXPECTED(total, gradients)                                                                           \
    .expected = (const values_list[])                                                                        \
    {                                                                                                        \
        total, gradients,                                                                                    \
        {                                                                                                    \
            NULL, 0, NULL                                                                                    \
        }                                                                                                    \
    }
#define X(...) LIST("inputs", __VA_ARGS__)
#define T(...) LIST("targets", __VA_ARGS__)
#define COST(...) LIST("total", __VA_ARGS__)
#define GRADIENTS(...) LIST("gradient of inputs", __VA_ARGS__)

static void check(const values_case *cases, size_t count)
{
    static const char *const handlers[] = {"reference", "cpu", "opencl"};
    for (size_t k = 0; k < sizeof handlers / sizeof *handlers; k++) {
        size_t runs = is_here(handlers[k]) ? count : 0;
        for (size_t i = 0; i < runs; i++) {
            values_check_on(&cases[i], handlers[k], SGM_FLOAT32, 1e-5);
            if (k < 2)
                values_check_on(&cases[i], handlers[k], SGM_FLOAT64, 1e-8);
        }
    }
}
#define CHECK_CASES(...)                                                                                     \
    check((const values_case[]){__VA_ARGS__},                                                                \
          sizeof((const values_case[]){__VA_ARGS__}) / sizeof(values_case))

/* The numbers are those of PyTorch's cross_entropy(ignore_index=-1). */
TEST(negative_classes_do_not_count)
{
    CHECK_CASES({"input(3) + softmax_cross_entropy(ignore_negative)", 2,
                 GIVEN(X(1, -INFINITY, 2, 3, 4, 5), T(0, -1)),
                 EXPECTED(COST(1.3132616875), GRADIENTS(-0.7310585786, 0, 0.7310585786, 0, 0, 0))},
                {"input(2, 2) + softmax_cross_entropy(ignore_negative)", 2,
                 GIVEN(X(1, 2, 0, 0, 3, 1, 5, 5), T(0, -1, 0, -100)),
                 EXPECTED(COST(0.7200948491),
                          GRADIENTS(-0.3655292893, 0.3655292893, 0, 0, -0.0596014611, 0.0596014611, 0, 0))},
                {"input(3) + softmax_cross_entropy(ignore_negative)", 1, GIVEN(X(1, 2, 3), T(-1)),
                 EXPECTED(COST(0), GRADIENTS(0, 0, 0))});
}

TEST(softmax_cross_entropy)
{
    CHECK_CASES({"input(3) + softmax_cross_entropy(classes)", 1, GIVEN(X(1, -INFINITY, 2), T(0)),
                 EXPECTED(COST(1.3132616875), GRADIENTS(-0.7310585786, 0, 0.7310585786))},
                {"input(3) + softmax_cross_entropy", 1, GIVEN(X(1, -INFINITY, 2), T(1, 0, 0)),
                 EXPECTED(COST(1.3132616875), GRADIENTS(-0.7310585786, 0, 0.7310585786))},
                {"input(3) + softmax_cross_entropy(classes)", 1, GIVEN(X(-INFINITY, 1, 0), T(0)),
                 EXPECTED(COST(INFINITY), GRADIENTS(-1, 0.7310585786, 0.2689414214))},
                {"input(3) + softmax_cross_entropy(classes)", 1, GIVEN(X(LARGE, -LARGE, 0), T(0)),
                 EXPECTED(COST(0), GRADIENTS(0, 0, 0))},
                {"input(3) + softmax_cross_entropy", 1, GIVEN(X(LARGE, -LARGE, 0), T(0.5, 0.5, 0)),
                 EXPECTED(COST(LARGE), GRADIENTS(0.5, -0.5, 0))},
                {"input(3) + softmax_cross_entropy(class_weights=(1, 0, 2))", 1,
                 GIVEN(X(1, -INFINITY, 2), T(0.5, 0.5, 0)),
                 EXPECTED(COST(0.65663084), GRADIENTS(-0.3655292893, 0, 0.3655292893))},
                {"input(20) + softmax_cross_entropy(classes)", 1,
                 GIVEN(X(0, .1, .2, -INFINITY, .4, .5, .6, .7, .8, .9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7,
                         1.8, 1.9),
                       T(7)),
                 EXPECTED(COST(3.38428425),
                          GRADIENTS(0.0168351848, 0.0186057566, 0.0205625411, 0, 0.0251151445, 0.0277565273,
                                    0.0306757067, -0.966098101, 0.0374673928, 0.0414078729, 0.0457627769,
                                    0.0505756902, 0.0558947819, 0.0617732875, 0.0682700408, 0.0754500637,
                                    0.0833852161, 0.0921549159, 0.101846933, 0.112558268))});
}

TEST(gamma)
{
    CHECK_CASES({"input(3) + softmax_cross_entropy(classes, gamma=2)", 1, GIVEN(X(1, -INFINITY, 2), T(0)),
                 EXPECTED(COST(0.7018683034), GRADIENTS(-0.768234723, 0, 0.768234723))},
                {"input(3) + softmax_cross_entropy(classes, gamma=2)", 1, GIVEN(X(LARGE, -LARGE, 0), T(0)),
                 EXPECTED(COST(0), GRADIENTS(0, 0, 0))},
                {"input(3) + softmax_cross_entropy(gamma=0.5)", 1, GIVEN(X(LARGE, -INFINITY, 0), T(1, 0, 0)),
                 EXPECTED(COST(0), GRADIENTS(0, 0, 0))});
}

TEST(kl_divergence)
{
    CHECK_CASES({"input(3) + kl_divergence", 1, GIVEN(X(1, -INFINITY, 2), T(0.25, 0, 0.75)),
                 EXPECTED(COST(0.0009265428994), GRADIENTS(0.0189414214, 0, -0.0189414214))},
                {"input(3) + kl_divergence", 1, GIVEN(X(LARGE, -LARGE, 0), T(1, 0, 0)),
                 EXPECTED(COST(0), GRADIENTS(0, 0, 0))});
}

TEST(multi_class_hinge)
{
    CHECK_CASES({"input(3) + multi_class_hinge(classes)", 1, GIVEN(X(1, -INFINITY, 2), T(0)),
                 EXPECTED(COST(2.0 / 3), GRADIENTS(-1.0 / 3, 0, 1.0 / 3))},
                {"input(3) + multi_class_hinge(classes)", 1, GIVEN(X(INFINITY, 1, 2), T(0)),
                 EXPECTED(COST(0), GRADIENTS(0, 0, 0))},
                {"input(3) + multi_class_hinge(classes)", 1, GIVEN(X(LARGE, -LARGE, 2), T(0)),
                 EXPECTED(COST(0), GRADIENTS(0, 0, 0))},
                {"input(3) + multi_class_hinge(classes, squared=true)", 1, GIVEN(X(1, -INFINITY, 2), T(0)),
                 EXPECTED(COST(4.0 / 3), GRADIENTS(-4.0 / 3, 0, 4.0 / 3))},
                {"input(3) + multi_class_hinge(classes, squared=true)", 1,
                 GIVEN(X(INFINITY, 1, -INFINITY), T(0)), EXPECTED(COST(0), GRADIENTS(0, 0, 0))});
}

TEST(binary_cross_entropy)
{
    CHECK_CASES({"input(4) + binary_cross_entropy", 1,
                 GIVEN(X(INFINITY, -INFINITY, LARGE, -LARGE), T(1, 0, 1, 0)),
                 EXPECTED(COST(0), GRADIENTS(0, 0, 0, 0))},
                {"input(2) + binary_cross_entropy", 1, GIVEN(X(INFINITY, 0), T(0, 1)),
                 EXPECTED(COST(INFINITY), GRADIENTS(1, -0.5))},
                {"input(2) + binary_cross_entropy", 1, GIVEN(X(-INFINITY, 0), T(0.5, 0)),
                 EXPECTED(COST(INFINITY), GRADIENTS(-0.5, 0.5))},
                {"input(2) + binary_cross_entropy", 1, GIVEN(X(LARGE, 2), T(0.5, 1)),
                 EXPECTED(COST(1.5e38), GRADIENTS(0.5, -0.1192029220))});
}

TEST(focal)
{
    CHECK_CASES(
        {"input(4) + focal", 1, GIVEN(X(INFINITY, -INFINITY, LARGE, -LARGE), T(1, 0, 1, 0)),
         EXPECTED(COST(0), GRADIENTS(0, 0, 0, 0))},
        {"input(2) + focal(gamma=3, alpha=0)", 1, GIVEN(X(-LARGE, INFINITY), T(1, 1)),
         EXPECTED(COST(LARGE), GRADIENTS(-1, 0))},
        {"input(1) + focal(alpha=0)", 1, GIVEN(X(-INFINITY), T(1)), EXPECTED(COST(INFINITY), GRADIENTS(-1))});
}

TEST(hinge)
{
    CHECK_CASES({"input(4) + hinge", 1, GIVEN(X(INFINITY, -INFINITY, LARGE, -LARGE), T(1, 0, 1, 0)),
                 EXPECTED(COST(0), GRADIENTS(0, 0, 0, 0))},
                {"input(2) + hinge(squared=true)", 1, GIVEN(X(INFINITY, -INFINITY), T(1, 0)),
                 EXPECTED(COST(0), GRADIENTS(0, 0))});
}

TEST(numbers)
{
    CHECK_CASES(
        {"input(3) + huber", 1, GIVEN(X(LARGE, -INFINITY, INFINITY), T(1, 2, 0)),
         EXPECTED(COST(INFINITY), GRADIENTS(1.0 / 3, -1.0 / 3, 1.0 / 3))},
        {"input(2) + root_mean_squared", 1, GIVEN(X(1, -2), T(1, -2)), EXPECTED(COST(0), GRADIENTS(0, 0))},
        {"input(2) + root_mean_squared", 1, GIVEN(X(1e-15, 0), T(0, 0)),
         EXPECTED(COST(7.071067812e-16), GRADIENTS(0.7071067812, 0))},
        {"input(1) + root_mean_squared", 1, GIVEN(X(NAN), T(0)), EXPECTED(COST(NAN), GRADIENTS(NAN))},
        {"input(3) + mean_absolute", 1, GIVEN(X(0, -LARGE, 1), T(0, 2, 0)),
         EXPECTED(COST(1e38), GRADIENTS(0, -1.0 / 3, 1.0 / 3))},
        {"input(3) + cosine_distance", 1, GIVEN(X(LARGE, 1, 0), T(1, 2, 0)),
         EXPECTED(COST(0.5527864045), GRADIENTS(0, 0, 0))},
        {"input(3) + cosine_distance", 1, GIVEN(X(1e18, 0, 0), T(1, 2, LARGE)),
         EXPECTED(COST(1), GRADIENTS(0, 0, -1e-18))},
        {"input(2) + negative_log_likelihood(classes)", 1, GIVEN(X(INFINITY, 0), T(0)),
         EXPECTED(COST(0), GRADIENTS(0, 0))});
}

TEST(ctc)
{
    CHECK_CASES({"input(4, 3) + ctc(2)", 1,
                 GIVEN(X(.5, 1, -INFINITY, .2, -INFINITY, 1, -INFINITY, .1, 1, 1, .3, .2), T(1, 2)),
                 EXPECTED(COST(1.086436779),
                          GRADIENTS(0.354387571, -0.354387571, 0, -0.015975047, 0, 0.015975047, 0,
                                    0.265897399, -0.265897399, -0.16010218, 0.255193824, -0.0950916447))});
}

/* Squared distances beyond 1e30 are distances all the same. */
TEST(triplet)
{
    CHECK_CASES({"input(1) + triplet", 3, GIVEN(X(0, 1e16, 3e16), T(0, 0, 1)),
                 EXPECTED(COST(0), GRADIENTS(0, 0, 0))});
}

/* What does not count is below all that does. */
TEST(the_largest_step)
{
    CHECK_CASES({"input(3, 1, lengths=n) + global_max_pooling(steps)", 1,
                 .given = (const values_list[]){X(-2e38, -1e38, 7), LIST("n", 2), {NULL, 0, NULL}},
                 .expected = (const values_list[]){LIST("output", -1e38), {NULL, 0, NULL}}});
}

/* Targets of steps that do not count may be anything, also no numbers. */
#define PADDED(cost, total, ...)                                                                             \
    {                                                                                                        \
        "input(2, 2, lengths=n) + " cost, 1,                                                                 \
            .given =                                                                                         \
                (const values_list[]){                                                                       \
                    X(.1, .7, .2, .3), T(1, 0, NAN, INFINITY), LIST("n", 1), {NULL, 0, NULL}},               \
            EXPECTED(COST(total), GRADIENTS(__VA_ARGS__, 0, 0))                                              \
    }

TEST(steps_that_do_not_count)
{
    CHECK_CASES(PADDED("mean_squared", 0.65, -0.9, 0.7), PADDED("squared_difference", 1.3, -1.8, 1.4),
                PADDED("root_mean_squared", 0.8062257748, -0.5581563057, 0.4341215711),
                PADDED("mean_absolute", 0.8, -0.5, 0.5), PADDED("huber", 0.325, -0.45, 0.35),
                PADDED("cosine_distance", 0.8585786438, -1.385929291, 0.1979898987),
                PADDED("binary_cross_entropy", 1.747582709, -0.4750208125, 0.6681877722),
                PADDED("focal", 0.4057598441, -0.06496372129, 0.4688954217),
                PADDED("multi_class_hinge(shares, squared=true)", 1.28, -1.6, 1.6),
                PADDED("softmax_cross_entropy(shares)", 1.03748795, -0.6456563062, 0.6456563062),
                PADDED("softmax_cross_entropy(shares, gamma=2, label_smoothing=0.1)", 0.4136212953,
                       -0.5411088346, 0.5411088346),
                PADDED("negative_log_likelihood(shares)", 2.302585093, -10, -0),
                PADDED("kl_divergence", 1.03748795, -0.6456563062, 0.6456563062));
}
