/* Costs: PyTorch's values and gradients (costs_torch.py); what they refuse; their arguments in the notation.
 */
#include "network/costs_torch.h"
#include "network/layer_bench.h"

TEST(costs_are_those_of_pytorch)
{
    VALUES_CHECK(costs_torch);
}

TEST(nothing_overflows)
{
    bench b = open_text("input(2) + focal(gamma=3, alpha=0)", 2, true);
    FEED(&b, "inputs", 1000, -1000, 1000, -1000);
    FEED(&b, "targets", 1, 0, 0, 1);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", 1000);
    stop(&b);
    b = open_text("input(2) + softmax_cross_entropy(gamma=0.5)", 2, true);
    FEED(&b, "inputs", 1000, -1000, 1000, -1000);
    FEED(&b, "targets", 1, 0, 0, 1);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", 1000);
    stop(&b);
    b = open_text("input(2) + cosine_distance", 1, true);
    FEED(&b, "inputs", 0, 0);
    FEED(&b, "targets", 1, 2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", 1);
    stop(&b);
}

/* Python, in double: the mean over the examples of a weight times the example's cost; of squared_difference
 * the sum. */
TEST(examples_have_weights)
{
    static const struct {
        const char *cost;
        double total;
    } cases[] = {{"mean_squared(weights=w)", 0.520833333333},
                 {"root_mean_squared(weights=w)", 0.721687836487},
                 {"squared_difference(weights=w)", 3.125},
                 {"mean_absolute(weights=w)", 0.5},
                 {"softmax_cross_entropy(weights=w)", 0.405114281760},
                 {"binary_cross_entropy(weights=w)", 1.093652442555}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char network[80];
        snprintf(network, sizeof network, "input(2) + %s", cases[i].cost);
        bench b = open_text(network, 3, true);
        FEED(&b, "inputs", 1, -2, 0.5, 0.25, 3, 1);
        FEED(&b, "targets", 0, 1, 1, 0, 1, 0);
        FEED(&b, "w", 0, 2, 0.5);
        CHECK_OK(sgm_session_run(b.session, b.program));
        CHECK_OUTPUT(&b, "total", cases[i].total);
        stop(&b);
    }
    check_text(sgm_chain(sgm_input(.shape = {3}), sgm_huber(.weights = "w")), "input(3) + huber(weights=w)");
    check_record_error("input(2) + triplet(weights=w)", "triplet: compares examples with each other");
}

/* Python: (s + (y - t)^2 / e^s) / 2 with s of at least log(epsilon), its mean. */
TEST(gaussian_likelihood)
{
    static const struct {
        const char *cost;
        double total;
    } cases[] = {{"gaussian_nll", 0.356330188216},
                 {"gaussian_nll(weights=w)", 0.508480174182},
                 {"gaussian_nll(epsilon=2)", 0.605870272784}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char network[80];
        snprintf(network, sizeof network, "input(4) + %s", cases[i].cost);
        bench b = open_text(network, 2, true);
        FEED(&b, "inputs", 0.5, -1, 0.2, -0.7, 2, 0.3, 1.5, 0);
        FEED(&b, "targets", 1, -1.5, 0, 0.8);
        if (strstr(network, "weights") != NULL)
            FEED(&b, "w", 0.5, 1.5);
        CHECK_OK(sgm_session_run(b.session, b.program));
        CHECK_OUTPUT(&b, "total", cases[i].total);
        stop(&b);
    }
    check_record_error("input(3) + gaussian_nll",
                       "gaussian_nll: expected a mean and a logarithm of a variance for each target");
}

TEST(a_triplet_needs_another_class)
{
    bench b = open_text("input(2) + triplet(margin=100)", 3, true);
    FEED(&b, "inputs", 1, 2, 3, 4, 5, 6);
    FEED(&b, "targets", 7, 7, 7);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", 0);
    stop(&b);
    check_record_error(
        "input(2, 4) + triplet",
        "triplet: expected (batch, features), whose classes are targets, or (batch, 3, features)");
}

TEST(what_is_compared_comes_in_groups)
{
    bench b = open_text("input(2) + info_nce", 1, true);
    FEED(&b, "inputs", 1, 2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", 0);
    stop(&b);
    b = open_text("input(2) + info_nce", 4, true);
    FEED(&b, "inputs", 0, 0, 1, 2, 1e-30, 0, -3, 1); /* vectors without a direction have cosines of 0 */
    CHECK_OK(sgm_session_run(b.session, b.program));
    stop(&b);
    check_record_error("input(1, 4) + info_nce",
                       "info_nce: expected (batch, features), of which some in a row belong together");
    check_record_error("input(2, 4) + info_nce(weights=w)", "info_nce: compares examples with each other");
    check_record_error("input(3) + info_nce(group=4)",
                       "info_nce: 4 examples in a row belong together (group), and a minibatch of 2 is no "
                       "multiple of that");
}

TEST(there_is_a_weight_for_each_class)
{
    check_record_error("input(4) + softmax_cross_entropy(class_weights=(1, 2, 3))",
                       "softmax_cross_entropy: there are 3 class_weights for 4 classes");
    CHECK_ERROR(
        sgm_network_parse("input(2) + softmax_cross_entropy(class_weights=(1, -2))"),
        "argument 'class_weights' of softmax_cross_entropy is -2; it must be between 0 and 1000000000000");
    CHECK_ERROR(sgm_network_parse("input(2) + softmax_cross_entropy(class_weights=(1, more))"),
                "argument 'class_weights' of softmax_cross_entropy takes numbers from 0 to 1000000000000, "
                "found 'more'");
    CHECK_ERROR(sgm_network_parse("input(2) + softmax_cross_entropy(class_weights=(1, 2)"), "expected ')'");
    CHECK_ERROR(sgm_network_parse("input(2) + softmax_cross_entropy(class_weights=1, class_weights=2)"),
                "argument 'class_weights' is given twice");
    CHECK_ERROR(sgm_network_parse("input(2) + softmax_cross_entropy(label_smoothing=1)"),
                "between 0 and 0.9999");
}

TEST(calls_and_notation_say_the_same)
{
    static const double weights[] = {1, 2.5, 1e-3};
    const char *text = "input(3) + softmax_cross_entropy(label_smoothing=0.1, class_weights=(1, 2.5, 0.001))";
    check_text(sgm_layer_parse(text), text);
    check_text(sgm_chain(sgm_input(.shape = {3}),
                         sgm_softmax_cross_entropy(.class_weights = weights, .class_weight_count = 3,
                                                   .label_smoothing = 0.1)),
               text);
    text = "input(1) + softmax_cross_entropy(class_weights=2)";
    check_text(sgm_layer_parse(text), text);
    check_text(sgm_chain(sgm_input(.shape = {3}), sgm_huber(.delta = 0.5, .targets = "y")),
               "input(3) + huber(y, delta=0.5)");
    check_text(sgm_chain(sgm_input(.shape = {3}), sgm_hinge(.margin = 2, .squared = true)),
               "input(3) + hinge(margin=2, squared=true)");
    CHECK_ERROR(sgm_mean_absolute(.margin = 2), "mean_absolute has no option 'margin'");
}

TEST(arguments_of_numbers_can_be_read)
{
    sgm_network *network = sgm_network_parse("input(2) + softmax_cross_entropy(class_weights=(1, 2.5))");
    sgm_content content;
    CHECK_ERROR(sgm_network_get_argument(network, 1, "class_weights", NULL),
                "expected a place for the content");
    CHECK_ERROR(sgm_network_set_argument(network, 1, "importance", NULL), "expected a content, got NULL");
    CHECK_OK(sgm_network_get_argument(network, 1, "class_weights", &content));
    CHECK_STR(content.as.text, "(1, 2.5)");
    sgm_content_clear(&content);
    content = sgm_text_content("(1, 1)");
    CHECK_ERROR(sgm_network_set_argument(network, 1, "class_weights", &content),
                "1-softmax_cross_entropy.class_weights is read-only");
    content = sgm_number_content(0.25);
    CHECK_OK(sgm_network_set_argument(network, 1, "label_smoothing", &content));
    sgm_network_free(network);
}
