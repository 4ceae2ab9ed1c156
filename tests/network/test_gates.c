/* prelu, glu, swiglu, geglu: PyTorch's values and gradients (gates_torch.py); what they refuse. */
#include "network/gates_torch.h"
#include "network/layer_bench.h"

TEST(gates_are_those_of_pytorch)
{
    VALUES_CHECK(gates_torch);
}

TEST(there_must_be_two_halves)
{
    check_record_error("input(5) + glu",
                       "glu: expected (batch, ..., features) with two halves of features, got (2, 5)");
    check_record_error("input(3, 4) + swiglu(channels)",
                       "swiglu: expected (batch, ..., features) with two halves");
    CHECK_ERROR(sgm_network_parse("input(4) + glu(sgmoid)"), "unknown activation 'sgmoid'");
}

TEST(a_slope_begins_at_a_quarter)
{
    bench b = open_text("input(3, 4) + prelu(channels)", 2, false);
    CHECK_STR(b.recording.parameters[0].name, "1-prelu.slopes");
    CHECK_STR(b.recording.parameters[0].initialiser, "constant(0.25)");
    CHECK_INT(b.recording.parameters[0].type.shape.dims[0], 3);
    stop(&b);
}

TEST(calls_and_notation_say_the_same)
{
    check_text(sgm_chain(sgm_input(.shape = {4}), sgm_prelu(.channels = true), sgm_glu(.activation = "tanh")),
               "input(4) + prelu(channels=true) + glu(tanh)");
    check_text(sgm_chain(sgm_input(.shape = {8}), sgm_swiglu(), sgm_geglu()), "input(8) + swiglu + geglu");
}
