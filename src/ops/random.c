/* random_uniform and random_normal: random numbers as a function of seed, step, stream and position, so
 * they are the same on every handler, with any number of threads, and after a resume.
 *
 * The generator is Philox (src/base), counter-based: nothing is remembered between two numbers. The seed
 * is the trainer's, the step counts iterations (src/train/trainer_program.c), the stream tells the layers
 * of a network apart. Numbers have 24 bits also in float64, so that all types draw the same. */
#include "ops/rules.h"

#include <math.h>

#define STREAM_BITS 24 /* of the 64 of the counter; the others number blocks of four words */

/* integers: stream, dtype, dims. Inputs are the seed and the step, each one int64. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    char text[SGM__TYPE_TEXT];
    for (int32_t i = 0; i < count; i++)
        if (inputs[i].dtype != SGM_INT64 || inputs[i].shape.rank != 0)
            return sgm_fail(SGM_ERROR_TYPE, "wants %s as one int64, got %s", i == 0 ? "a seed" : "a step",
                            sgm__type_text(&inputs[i], text));
    SGM_TRY(sgm__read_shape(attributes, 2, &result->shape));
    SGM_TRY(sgm__read_dtype(attributes->integers[1], &result->dtype));
    if (result->dtype != SGM_FLOAT32 && result->dtype != SGM_FLOAT64)
        return sgm_fail(SGM_ERROR_TYPE, "gives float32 or float64, not %s: cast the result",
                        sgm_dtype_name(result->dtype));
    int64_t stream = attributes->integers[0], blocks = (sgm_shape_elements(&result->shape) + 3) / 4;
    if (stream < 0 || stream >> STREAM_BITS != 0 || blocks >> (64 - STREAM_BITS) != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "stream %lld is not between 0 and %d, or the shape is too large",
                        (long long)stream, (1 << STREAM_BITS) - 1);
    return SGM_OK;
}

/* One block of the generator for each four elements. */
static sgm_status forward(const sgm_kernel_call *call)
{
    uint64_t seed = (uint64_t)sgm__array_index(&call->inputs[0], 0);
    uint64_t step = (uint64_t)sgm__array_index(&call->inputs[1], 0);
    uint64_t block = (uint64_t)call->attributes->integers[0] << (64 - STREAM_BITS);
    int64_t count = sgm_shape_elements(&call->output.shape);
    uint32_t words[4] = {0};
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            sgm__philox(seed, step, block++, words);
        sgm_array_store(&call->output, i, (double)(words[i % 4] >> 8) * 0x1p-24);
    }
    return SGM_OK;
}

const sgm_op sgm__op_random_uniform = {
    SGM__OP("random_uniform", 2, "random numbers from 0 to below 1, by seed and step"),
    .flags = SGM_OP_STRIDED, .infer = infer, .forward = forward};

sgm_value sgm_random_uniform(sgm_graph *graph, sgm_value seed, sgm_value step, int64_t stream,
                             sgm_dtype dtype, const sgm_shape *shape)
{
    if (!sgm__rank_fits(graph, "random_uniform", shape))
        return (sgm_value){-1};
    sgm_attributes attributes = SGM__INTEGERS(stream, (int64_t)dtype);
    sgm__add_shape(&attributes, shape);
    return sgm_record(graph, &sgm__op_random_uniform, (sgm_value[]){seed, step}, 2, &attributes);
}

/* Box and Muller's transformation (1958), sqrt(-2 log(1 - u)) cos(2 pi v): the first half of the draws
 * gives lengths, the second angles. 1 - u is never 0; it is at least 2^-24, so no number is beyond 5.8. */
sgm_value sgm_random_normal(sgm_graph *graph, sgm_value seed, sgm_value step, int64_t stream, sgm_dtype dtype,
                            const sgm_shape *shape)
{
    if (!sgm__rank_fits(graph, "random_normal", shape))
        return (sgm_value){-1};
    int64_t count = sgm_shape_elements(shape);
    char text[128];
    if (count < 0 || count > INT64_MAX / 2)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "random_normal: shape %s has a negative dimension or too many elements",
                              sgm_shape_text(shape, text, sizeof text));
    sgm_shape both = sgm_shape_of(2 * count);
    sgm_value draws = sgm_random_uniform(graph, seed, step, stream, dtype, &both);
    sgm_value chance = sgm_subtract(graph, sgm_number(graph, 1), sgm_slice(graph, draws, 0, 0, count, 1));
    sgm_value length =
        sgm_square_root(graph, sgm_multiply(graph, sgm_number(graph, -2), sgm_log(graph, chance)));
    sgm_value angle =
        sgm_multiply(graph, sgm_slice(graph, draws, 0, count, 2 * count, 1), sgm_number(graph, 2 * M_PI));
    return sgm_reshape(graph, sgm_multiply(graph, length, sgm_cos(graph, angle)), shape);
}
