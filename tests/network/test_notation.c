#include "base/allocator.h"
#include "base/base.h"
#include "test.h"

#include <sigma/network.h>

/* The text that a network gives back, kept until the next call. */
static const char *text_of(sgm_network *network)
{
    static char text[4000];
    CHECK_OK(network);
    char *own = sgm_network_text(network);
    CHECK_OK(own);
    snprintf(text, sizeof text, "%s", own);
    sgm_string_free(own);
    sgm_network_free(network);
    return text;
}

static const char *round_trip(const char *text)
{
    return text_of(sgm_network_parse(text));
}

static void check_error(const char *text, const char *message)
{
    sgm_clear_error();
    sgm_network *network = sgm_network_parse(text);
    if (network != NULL)
        TEST_FAIL("\"%s\" was accepted, expected: %s", text, message);
    if (strcmp(sgm_last_error(), message) != 0)
        TEST_FAIL("\"%s\" gives \"%s\", expected \"%s\"", text, sgm_last_error(), message);
}

static void check_names(const char *text, const char *const *names, size_t count)
{
    sgm_network *network = sgm_network_parse(text);
    CHECK_OK(network);
    CHECK_INT(sgm_network_layers(network), count);
    for (size_t i = 0; i < count; i++)
        CHECK_STR(sgm_network_layer_name(network, i), names[i]);
    CHECK(sgm_network_layer_name(network, count) == NULL);
    sgm_network_free(network);
}
#define CHECK_NAMES(text, ...)                                                                               \
    check_names(text, (const char *const[]){__VA_ARGS__},                                                    \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

TEST(texts_come_back_as_they_are)
{
    static const char *const texts[] = {
        "input(28, 28) + dropout(0.2) + 2 * (dense(100, relu)) + dense(10) + softmax_cross_entropy",
        ("left = input(4, name=left) + dense(8, relu); right = input(3, name=right) + dense(8, relu); "
         "concatenate(left, right) + add(identity, dense(16, tanh) + dense(16)) + dense(3) + "
         "softmax_cross_entropy"),
        "input(4) + dense(3, no_bias=true, name=\"1st\") + output + mean_squared(labels, 0.25)",
        ("input(4) + elementwise(activation=tanh) + flatten + activation(sigmoid) + "
         "squared_difference(importance=2)"),
        "input(2) + 3 * (add(identity, 2 * (dense(2) + dense(2)), name=#-sum))",
        "trunk = input(2) + dense(2); trunk + dense(1) + mean_squared(\"my targets\"); trunk + dense(3)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        CHECK_STR(round_trip(texts[i]), texts[i]);
}

TEST(space_brackets_and_named_arguments_do_not_matter)
{
    const char *plain = "input(28, 28) + 2 * (dense(10, tanh)) + dense(3)";
    CHECK_STR(round_trip("input(28,28)+2*dense(10,tanh)+dense(3)"), plain);
    CHECK_STR(
        round_trip("  input( shape = (28 , 28) )\n + 2*((dense(activation=tanh, size=10)))\t+ (dense(3));"),
        plain);
    CHECK_STR(round_trip("(input(28, 28) + (2 * dense(10, tanh)) + dense(3))"), plain);
    CHECK_STR(round_trip("input(2) + dense(3, no_bias) + dense(4, relu, no_bias)"),
              "input(2) + dense(3, no_bias=true) + dense(4, relu, no_bias=true)");
    CHECK_STR(round_trip("input(2) + dropout(1e-1) + dropout(rate=.25) + dropout(0)"),
              "input(2) + dropout(0.1) + dropout(0.25) + dropout(0)");
}

TEST(layers_are_numbered_by_their_place)
{
    CHECK_NAMES("input(2) + dropout(0.5) + dense(3) + mean_squared", "0-input", "1-dropout", "2-dense",
                "3-mean_squared");
    CHECK_NAMES("input(2) + 2 * (dense(2) + dropout(0.5)) + dense(1)", "0-input", "1-dense", "2-dropout",
                "3-dense", "4-dropout", "5-dense");
    CHECK_NAMES("input(2) + add(identity, dense(2) + concatenate(dense(1), dense(1))) + dense(1)", "0-input",
                "1-add", "2-identity", "3-dense", "4-concatenate", "5-dense", "6-dense", "7-dense");
    CHECK_NAMES("a = input(2, name=x) + dense(2, name=hidden); a + dense(1)", "x", "hidden", "2-dense");
    CHECK_NAMES("input(2) + 2 * dense(2, name=hidden#) + 2 * 2 * dense(1, name=\"#-last\")", "0-input",
                "hidden1", "hidden2", "3-last", "4-last", "5-last", "6-last");
}

TEST(errors_point_at_the_column)
{
    check_error("input(784) + desne(10)", "column 14: unknown layer 'desne' (did you mean 'dense'?)");
    check_error("input(4) + qqqqqqqq", "column 12: unknown layer 'qqqqqqqq'; 'sigma info' lists the layers, "
                                       "and a name must be defined before it is used");
    check_error("input(4) + dense(10, rleu)", "column 22: unknown activation 'rleu' (did you mean 'relu'?)");
    check_error("input(4) + dense(10, activation='relu')",
                "column 33: expected an argument, found '''; names need no quotes, as in dense(8, relu)");
    check_error("input(4) + dense(10, activation=rleu)",
                "column 33: unknown activation 'rleu' (did you mean 'relu'?)");
    check_error("input(4) + dense(10",
                "column 20: expected ')' for the '(' at column 17, found the end of the text");
    check_error("input(4) + 2 * (dense(3)",
                "column 25: expected ')' for the '(' at column 16, found the end of the text");
    check_error("input(4) + add(dense(3) dense(3))",
                "column 25: expected ')' for the '(' at column 15, found 'dense'");
    check_error(
        "input(4) + add(dense(3),\n  dense(3)",
        "line 2, column 11: expected ')' for the '(' at line 1, column 15, found the end of the text");
    check_error("input(4) + dense(3))", "column 20: expected '+', ';' or the end of the text, found ')'");
    check_error("input(4) dense(3)",
                "column 10: a '+' is missing before 'dense': one layer is put behind another by '+'");
    check_error("input(4) + ", "column 12: expected a layer, found the end of the text");
    check_error("", "column 1: expected a layer, found the end of the text");
    check_error("input(4) + + dense(3)", "column 12: expected a layer, found '+'");
    check_error("input(4) + 3", "column 12: expected a layer, found '3'; n copies are written n * (...)");
    check_error("input(4) + dense(\"tanh)", "column 18: this text has no closing quote");
    check_error("input(4) + dense(4, )", "column 21: expected an argument, found ')'");
    check_error("input(4) + \x01", "column 12: expected a layer, found '?'");
    check_error("\xc3\xa4 + dense(3)", "column 1: expected a layer, found '?'");
    check_error("input(4) + mean_squared(\"\xc3\xa4\xc3\xb6\", x, y)",
                "column 34: mean_squared has no use for 'y' here; its arguments are targets, importance, "
                "weights, name, share");
    check_error("input(4) +\n  desne(3)", "line 2, column 3: unknown layer 'desne' (did you mean 'dense'?)");
}

TEST(arguments_are_checked)
{
    check_error("input(4) + dense",
                "column 12: dense needs its argument 'size': the number of outputs of an example");
    check_error("input(4) + dense(relu)",
                "column 12: dense needs its argument 'size': the number of outputs of an example");
    check_error("input(4) + dense(0)",
                "column 18: argument 'size' of dense is 0; it must be between 1 and 1000000000");
    check_error("input(4) + dense(-3)",
                "column 18: argument 'size' of dense is -3; it must be between 1 and 1000000000");
    check_error("input(4) + dense(2.5)",
                "column 18: argument 'size' of dense takes a whole number from 1 to 1000000000, found '2.5'");
    check_error("input(4) + dense(size=two)",
                "column 23: argument 'size' of dense takes a whole number from 1 to 1000000000, found 'two'");
    check_error("input(4) + dense(3, 4)",
                "column 21: argument 'activation' of dense takes a name, found '4'");
    check_error("input(4) + dense(3, size=4)", "column 21: argument 'size' is given twice");
    check_error("input(4) + dense(3, sise=4)",
                "column 21: dense has no argument 'sise' (did you mean 'size'?); it has size, activation, "
                "no_bias, time_distributed, name, share");
    check_error("input(4) + dropout(1)",
                "column 20: argument 'rate' of dropout is 1; it must be between 0 and 0.9999");
    check_error("input(4) + dropout(1e999)", "column 20: '1e999' is not a number");
    check_error("input(4) + dropout(3..4)", "column 20: '3..4' is not a number");
    check_error(
        "input",
        "column 1: input needs its argument 'shape': the dimensions of one example, without the batch");
    check_error("input(1, 2, 3, 4, 5, 6, 7, 8)",
                "column 28: argument 'shape' of input has more than 7 dimensions; the batch is one more");
    check_error("input(4, 0)",
                "column 10: argument 'shape' of input is 0; it must be between 1 and 1000000000");
    check_error("input(1000000000, 1000000000, 1000000000)",
                "column 19: argument 'shape' of input has more elements than memory can address");
    check_error("input(4, name=\"a b\")",
                "column 15: the name of a layer must be 1 to 100 letters, digits, '_' and '-', and "
                "at most one '#', which becomes its number");
    check_error("input(4, name=random)",
                "column 15: a layer cannot be named 'random': the states of random numbers are");
    check_error("input(4) + add",
                "column 15: expected '(' and the branches of add, found the end of the text");
    check_error("input(4) + add()", "column 16: expected a layer, found ')'");
}

TEST(networks_are_checked)
{
    check_error("dense(3)", "column 1: dense has no layer before it; start the chain with input(...) or with "
                            "the name of a value");
    check_error(
        "input(4) + input(4)",
        "column 12: input takes nothing from the layer before it; it can only start a chain or a branch");
    check_error(
        "input(4) + mean_squared + dense(4)",
        "column 27: layer '2-dense' follows the cost '1-mean_squared'; a cost must be the last of its chain");
    check_error(
        "input(4) + add(mean_squared, identity)",
        "column 12: layer '1-add' follows the cost '2-mean_squared'; a cost must be the last of its chain");
    check_error("input(4) + dense(1, name=a) + dense(1, name=a)",
                "column 31: there are two layers 'a'; names must be unique, and a '#' in one becomes the "
                "layer's number");
    check_error("input(4) + 2 * dense(4, name=a)", "column 16: there are two layers 'a'; names must be "
                                                   "unique, and a '#' in one becomes the layer's number");
    check_error("concatenate(input(4), input(3))", "column 23: two inputs have no name and would read the "
                                                   "same field of the data, 'inputs'; name them: "
                                                   "input(4, name=left)");
    check_error("a = input(4); dense(3)", "column 15: dense has no layer before it; start the chain with "
                                          "input(...) or with the name of a value");
    check_error("a = input(4); b = a + dense(3); a + dense(2)",
                "column 15: the value 'b' is never used; use it, or take it out");
}

TEST(names_of_values_are_checked)
{
    check_error("a + dense(3); a = input(4)", "column 1: unknown layer 'a'; 'sigma info' lists the layers, "
                                              "and a name must be defined before it is used");
    check_error("trunk = input(4); trnk + dense(3)",
                "column 19: unknown layer 'trnk' (did you mean 'trunk'?)");
    check_error("a = input(4); a = a + dense(3)", "column 15: 'a' is defined twice");
    check_error("dense = input(4)", "column 1: 'dense' is a layer; choose another name for the value");
    check_error("a = input(4); a(3) + dense(3)",
                "column 15: 'a' is the name of a value, not a layer with arguments");
    check_error("a = input(4); a + dense(3) + a",
                "column 30: 'a' names a value, which can only start a chain or be a branch");
    check_error("a = input(4); a + 2 * (a)",
                "column 24: 'a' names a value, which can only start a chain or be a branch");
    check_error("a = b = input(4)", "column 5: unknown layer 'b'; 'sigma info' lists the layers, and a name "
                                    "must be defined before it is used");
}

TEST(repeats_and_nesting_are_bounded)
{
    check_error("input(4) + 9999999*(dense(4))",
                "column 12: the number of copies must be a whole number from 1 to 20000, found '9999999'");
    check_error("input(4) + 0*(dense(4))",
                "column 12: the number of copies must be a whole number from 1 to 20000, found '0'");
    check_error("input(4) + 2.5*(dense(4))",
                "column 12: the number of copies must be a whole number from 1 to 20000, found '2.5'");
    check_error("input(4) + 10001 * 2 * dense(4)",
                "column 12: the network has more than 20000 layers, with repeats multiplied out");
    check_error("input(4) + 10000 * (10000 * (10000 * (10000 * dense(4))))",
                "column 30: the network has more than 20000 layers, with repeats multiplied out");
    check_error("input(4) + 20000 * dense(4)",
                "column 1: the network has more than 20000 layers, with repeats multiplied out");
    sgm_network *network = sgm_network_parse("input(4) + 9999 * dense(4)");
    CHECK_OK(network);
    CHECK_INT(sgm_network_layers(network), 10000);
    sgm_network_free(network);
}

/* `count` times `part`, between `before` and `after`. */
static char *repeat_text(const char *before, const char *part, size_t count, const char *after)
{
    sgm__text text = {0};
    sgm__text_append(&text, "%s", before);
    for (size_t i = 0; i < count; i++)
        sgm__text_append(&text, "%s", part);
    sgm__text_append(&text, "%s", after);
    return sgm__text_take(&text);
}

static void check_hostile(const char *before, const char *part, size_t count, const char *message)
{
    char *text = repeat_text(before, part, count, "");
    CHECK_ERROR(sgm_network_parse(text), message);
    sgm_string_free(text);
}

TEST(hostile_texts_are_refused)
{
    check_hostile("", "(", 100000, "column 101: layers are nested deeper than 100");
    check_hostile("", "add(", 100000, "layers are nested deeper than 100");
    check_hostile("", "2*", 100000, "layers are nested deeper than 100");
    check_hostile("input(4)", "+identity", 100000, "the network has more than 20000 layers");
    check_hostile("input(", "1,", 100000, "has more than 7 dimensions");
    check_hostile("", "x", 100000, "is longer than 100 characters");
    check_hostile("input(4, name=\"", "x", 100000, "no closing quote");
    check_hostile("input(4) + dropout(", "1", 100000, "is longer than 100 characters");
    check_hostile("", " ", 2000000, "longer than 1048576 bytes");
}

TEST(networks_at_the_limit_of_depth_are_fine)
{
    char *start = repeat_text("input(4) + ", "1 * (", 98, "dense(4)"),
         *text = repeat_text(start, ")", 98, "");
    CHECK_STR(round_trip(text), text);
    sgm_string_free(start);
    sgm_string_free(text);
}

/* Truncations and changed bytes: an answer or an error, but nothing else; what is accepted comes back as text
 * that means the same. */
TEST(mutated_texts_never_crash)
{
    static const char seed[] = "left = input(4, name=left) + dense(8, relu); right = input(3, 3, name=right) "
                               "+ flatten + dense(8, relu, no_bias); "
                               "concatenate(left, right) + 2 * (add(identity, dense(16, tanh) + "
                               "dropout(0.25) + dense(16))) + dense(3) + "
                               "softmax_cross_entropy(targets=\"labels\", importance=1e-1)";
    static const char bytes[] = "()+*,=;\"#- .09e\n\xff\x01zdx";
    sgm__random random = sgm__random_make(7, 0);
    int accepted = 0;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof seed];
        memcpy(text, seed, sizeof seed);
        if (round < (int)sizeof seed)
            text[round] = '\0';
        for (uint64_t i = round % 4 == 0 ? 0 : 1 + sgm__random_below(&random, 3); i > 0; i--)
            text[sgm__random_below(&random, sizeof seed - 1)] =
                bytes[sgm__random_below(&random, sizeof bytes - 1)];
        sgm_clear_error();
        sgm_network *network = sgm_network_parse(text);
        CHECK((network == NULL) == (sgm_last_error()[0] != '\0'));
        if (network == NULL)
            continue;
        accepted++;
        char *once = sgm_network_text(network);
        CHECK_STR(round_trip(once), once);
        sgm_string_free(once);
        sgm_network_free(network);
    }
    CHECK(accepted > 100);
}

TEST(calls_make_the_same_text)
{
    CHECK_STR(
        text_of(sgm_network_create(sgm_chain(sgm_input(.shape = {28, 28}), sgm_dropout(.rate = 0.2),
                                             sgm_repeat(2, sgm_dense(.size = 100, .activation = "relu")),
                                             sgm_dense(.size = 10), sgm_softmax_cross_entropy()))),
        "input(28, 28) + dropout(0.2) + 2 * (dense(100, relu)) + dense(10) + softmax_cross_entropy");
    CHECK_STR(text_of(sgm_network_create(sgm_statements(
                  sgm_definition("left", sgm_chain(sgm_input(.shape = {4}, .name = "left"),
                                                   sgm_dense(.size = 8, .activation = "relu"))),
                  sgm_definition("right", sgm_input(.shape = {3}, .name = "right")),
                  sgm_chain(sgm_concatenate_branches(sgm_reference("left"), sgm_reference("right")),
                            sgm_add_branches(sgm_layer_create("identity", NULL),
                                             sgm_dense(.size = 11, .no_bias = true)),
                            sgm_mean_squared(.targets = "x", .importance = 0.5))))),
              "left = input(4, name=left) + dense(8, relu); right = input(3, name=right); concatenate(left, "
              "right) + "
              "add(identity, dense(11, no_bias=true)) + mean_squared(x, 0.5)");
    CHECK_STR(text_of(sgm_network_create(
                  sgm_chain(sgm_chain(sgm_input(.shape = {2}), sgm_output_layer(.name = "o")),
                            sgm_chain(sgm_elementwise(.size = 2), sgm_activation(.activation = "tanh"),
                                      sgm_layer_parse("dense(3) + dense(1)"))))),
              "input(2) + output(name=o) + elementwise(2) + activation(tanh) + dense(3) + dense(1)");
}

TEST(calls_are_checked)
{
    CHECK_ERROR(sgm_dropout(.size = 3), "dropout has no option 'size'; it has rate, seed, name, share");
    CHECK_ERROR(sgm_dropout(), "dropout needs its argument 'rate'");
    CHECK_ERROR(sgm_dense(.size = 3, .activation = "rleu"),
                "unknown activation 'rleu' (did you mean 'relu'?)");
    CHECK_ERROR(sgm_dense(.size = -1), "argument 'size' of dense is -1");
    CHECK_ERROR(sgm_layer_create("desne", NULL), "unknown layer 'desne' (did you mean 'dense'?)");
    CHECK_ERROR(sgm_layer_create("add", NULL), "add joins branches: make it with sgm_join_branches");
    CHECK_ERROR(sgm_join_branches("dense", SGM_LAYERS(sgm_dense(.size = 1))),
                "'dense' does not join branches");
    CHECK_ERROR(sgm_repeat(0, sgm_dense(.size = 1)), "repeated 1 to 20000 times, not 0");
    CHECK_ERROR(sgm_chain_with(NULL, 0), "no layers to put together");
    CHECK_ERROR(sgm_chain(sgm_dense(.size = 3), sgm_definition("a", sgm_dense(.size = 3))),
                "a statement of its own");
    CHECK_ERROR(sgm_definition("dense", sgm_dense(.size = 3)), "there is a layer of that name");
    CHECK_ERROR(sgm_reference("a b"), "the name of a value must be");
    CHECK_ERROR(sgm_network_create(sgm_chain(sgm_input(.shape = {2}), sgm_reference("a"))),
                "there is no value 'a' here");
    CHECK_ERROR(sgm_network_create(sgm_reference("a")), "there is no value 'a' here");
    CHECK_ERROR(sgm_network_create(NULL), "NULL");
    CHECK_ERROR(sgm_network_parse(NULL), "NULL");
}

TEST(a_failed_layer_is_passed_on_and_the_others_are_freed)
{
    CHECK_ERROR(
        sgm_network_create(sgm_chain(sgm_input(.shape = {2}), sgm_dropout(.rate = 7), sgm_dense(.size = 1))),
        "argument 'rate' of dropout is 7");
    CHECK_ERROR(sgm_repeat(2, sgm_dropout(.rate = 7)), "argument 'rate' of dropout is 7");
}

TEST(a_layer_given_twice_is_refused)
{
    sgm_layer *layer = sgm_dense(.size = 3);
    CHECK_ERROR(sgm_chain(sgm_input(.shape = {2}), layer, layer), "given a second time");
    layer = sgm_dense(.size = 3);
    sgm_layer *chain = sgm_chain(sgm_input(.shape = {2}), layer);
    CHECK_OK(chain);
    CHECK_ERROR(sgm_chain(sgm_dense(.size = 1), layer), "given a second time");
    CHECK_STR(text_of(sgm_network_create(chain)), "input(2) + dense(3)");
}

TEST(deep_calls_are_refused)
{
    sgm_layer *layer = sgm_dense(.size = 3);
    for (int i = 0; i < 99; i++)
        layer = sgm_repeat(1, layer);
    CHECK_OK(layer);
    CHECK_ERROR(sgm_repeat(1, layer), "layers are nested deeper than 100");
}

/* --- every allocation may fail --- */

TEST(failed_allocations_leave_nothing_behind)
{
    bool done = false;
    for (long limit = 0; !done; limit++) {
        CHECK(limit < 2000);
        allocator_start(limit + 1);
        sgm_network *network = sgm_network_parse(
            "a = input(4, name=x) + dense(3, relu); b = input(3); "
            "add(a, b + 2 * (dense(3) + identity), name=sum) + output + mean_squared(\"my t\")");
        char *text = network != NULL ? sgm_network_text(network) : NULL;
        done = text != NULL;
        sgm_string_free(text);
        sgm_network_free(network);
        allocator_stop();
        CHECK_INT(allocator_live, 0);
    }
    /* the messages that name a nearest word may do without it */
    for (long limit = 0; limit < 40; limit++) {
        allocator_start(limit + 1);
        bool failed = sgm_layer_parse("a = input(4); a + desne(3)") == NULL;
        allocator_stop();
        CHECK(failed);
        CHECK_INT(allocator_live, 0);
    }
}
