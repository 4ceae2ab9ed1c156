/* Poolings to a size, upsampling and instance_norm: PyTorch's values and gradients (image_sizes_torch.py);
 * what they refuse. */
#include "network/image_sizes_torch.h"
#include "network/layer_bench.h"

TEST(sizes_are_those_of_pytorch)
{
    VALUES_CHECK(image_sizes_torch);
}

TEST(one_pixel_can_be_enlarged_and_pooled)
{
    bench b = open_text("x = input(1, 1, 1); x + upsampling(2, 3, bilinear); x + adaptive_average_pooling(2)",
                        1, false);
    FEED(&b, "inputs", 5);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 1-upsampling", 5, 5, 5, 5, 5, 5);
    CHECK_OUTPUT(&b, "output 2-adaptive_average_pooling", 5, 5, 5, 5);
    stop(&b);
}

TEST(what_is_no_image_is_refused)
{
    check_record_error("input(4) + adaptive_max_pooling(2)",
                       "adaptive_max_pooling wants examples of (height, width) or (channels, height, width)");
    check_record_error("input(4) + upsampling_1d(2, 3)",
                       "upsampling_1d takes at most 1 number as factor, 2 are given");
    check_record_error(
        "input(4) + instance_norm",
        "instance_norm: a channel of one number has no variance: it wants (batch, channels, ...)");
    check_record_error("input(4) + global_max_pooling",
                       "global_max_pooling wants (batch, channels, ...) with something to pool, got (2, 4)");
    CHECK_ERROR(sgm_network_parse("input(4, 4) + upsampling"), "upsampling needs its argument 'factor'");
}

TEST(calls_and_notation_say_the_same)
{
    check_text(sgm_chain(sgm_input(.shape = {4, 4}), sgm_upsampling(.factor = {2, 3}, .bilinear = true),
                         sgm_adaptive_max_pooling(.size = 5), sgm_adaptive_average_pooling(.size = 2)),
               "input(4, 4) + upsampling(2, 3, bilinear=true) + adaptive_max_pooling(5) + "
               "adaptive_average_pooling(2)");
}
