/* Heads, positions and norms of models of language: the values and gradients of PyTorch and transformers
 * (heads_torch.py); what they refuse. */
#include "network/heads_torch.h"
#include "network/layer_bench.h"

TEST(heads_positions_and_norms_are_those_of_pytorch)
{
    VALUES_CHECK(heads_torch);
}

/* How many constants a network records. */
static int constants_of(const char *text, bool step)
{
    sgm_network *network = sgm_network_parse(text);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording_options how = {
        .struct_size = sizeof how, .batch = 2, .dtype = SGM_FLOAT32, .training = !step, .step = step};
    sgm_recording recording;
    CHECK_OK(network);
    CHECK_OK(sgm_network_record(network, graph, &how, &recording));
    char *recorded = sgm_graph_text(graph);
    int count = 0;
    for (const char *at = recorded; (at = strstr(at, " = constant")) != NULL; at++)
        count++;
    sgm_string_free(recorded);
    sgm_graph_free(graph);
    sgm_network_free(network);
    return count;
}

TEST(layers_of_the_same_settings_share_the_angles_of_rotary_positions)
{
#define TURNED(settings) " + attention(2, causal, rotary" settings ")"
    CHECK_INT(constants_of("input(5, 8)" TURNED(""), false), 2);
    CHECK_INT(constants_of("input(5, 8)" TURNED("") TURNED(", key_heads=1") TURNED(""), false), 2);
    CHECK_INT(constants_of("input(5, 8)" TURNED("") TURNED("") TURNED(""), true), 2);
    CHECK_INT(constants_of("input(5, 8)" TURNED("") TURNED(", rotary_base=100") TURNED(""), false), 4);
    CHECK_INT(constants_of("input(5, 8)" TURNED("") TURNED(", rotary_factor=2"), false), 4);
    CHECK_INT(constants_of("input(5, 8)" TURNED("") TURNED(", head_size=2"), false), 4);
    CHECK_INT(constants_of("input(5, 8)" TURNED(", rotary_factor=2")
                               TURNED(", rotary_factor=2, rotary_bands=(1, 4, 8)")
                                   TURNED(", rotary_factor=2, rotary_bands=(1, 4, 9)"),
                           false),
              6);
#undef TURNED
}

TEST(what_does_not_fit_is_named)
{
    check_record_error("input(3, 6) + attention(4, causal)", "or give a head_size");
    check_record_error("input(3, 6) + attention(2, rotary, head_size=3)",
                       "attention: rotary turns pairs, but a head has 3 features");
    check_record_error(
        "input(3, 6) + attention(1, rotary, rotary_bands=(1, 4))",
        "attention: rotary_bands wants three numbers, (low, high, places), with low below high");
    check_record_error("input(3, 6) + attention(1, rotary, rotary_bands=(4, 1, 64))", "with low below high");
    check_record_error("input(6, 4) + positions(7, first=2)",
                       "positions: 6 steps do not fit into 7 places from place 2 on; at most 5 do");
    check_record_error("input(6, 4) + positions(2, first=2, same)", "at most 0 do");
    check_record_error("input(3) + learned_tokens(2)",
                       "learned_tokens: expected a sequence (batch, time, features), got (2, 3)");
    check_record_error("input(3, 4) + learned_tokens(2) + select(5)", "there is no place 5 in (2, 5, 4)");
    check_record_error("input(3, 4) + select(3)", "select: there is no place 3 in (2, 3, 4)");
    check_record_error("input(3, 4) + select(0) + select(0) + select(0)",
                       "select: there is no place 0 in (2,)");
}
