/* The table of the cpu handler's kernels, one row for each operation that has a faster way than its plain
 * loop.
 *
 * The kernels are in ../kernels/, ../product/ and ../random.c. A new kernel needs a line here and a
 * declaration in one of the headers; compile.c finds it through sgm__cpu_find_kernel, and `support` in
 * cpu.c tells the planner that it exists. Operations without a row run their sgm_op.forward; elementwise
 * operations are loops in vector/vector.c. */
#include "handlers/cpu/kernels/kernels.h"
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/product/codes.h"
#include "handlers/cpu/product/matmul.h"
#include "handlers/cpu/product/quantized.h"
#include "handlers/cpu/run/program.h"
#include "ops/ops.h"

static const sgm__cpu_kernel *const kernels[] = {
    &sgm__cpu_matmul,
    &sgm__cpu_matmul_onednn,
    &sgm__cpu_quantized_matmul,
    &sgm__cpu_code_matmul,
    &sgm__cpu_convolution,
    &sgm__cpu_convolution_input_gradient,
    &sgm__cpu_convolution_weights_gradient,
    &sgm__cpu_convolution_bfloat16,
    &sgm__cpu_convolution_input_gradient_bfloat16,
    &sgm__cpu_convolution_weights_gradient_bfloat16,
    &sgm__cpu_max_pooling,
    &sgm__cpu_max_pooling_gradient,
    &sgm__cpu_average_pooling,
    &sgm__cpu_average_pooling_gradient,
    &sgm__cpu_reduce_sum,
    &sgm__cpu_reduce_max,
    &sgm__cpu_reduce_min,
    &sgm__cpu_softmax,
    &sgm__cpu_log_softmax,
    &sgm__cpu_softmax_cross_entropy,
    &sgm__cpu_softmax_cross_entropy_gradient,
    &sgm__cpu_class_cross_entropy,
    &sgm__cpu_class_cross_entropy_gradient,
    &sgm__cpu_self_attention,
    &sgm__cpu_self_attention_gradient,
    &sgm__cpu_self_attention_bfloat16,
    &sgm__cpu_self_attention_gradient_bfloat16,
    &sgm__cpu_packed_attention,
    &sgm__cpu_packed_attention_gradient,
    &sgm__cpu_packed_attention_bfloat16,
    &sgm__cpu_packed_attention_gradient_bfloat16,
    &sgm__cpu_attention_at,
    &sgm__cpu_layer_norm,
    &sgm__cpu_layer_norm_gradient,
    &sgm__cpu_rms_norm,
    &sgm__cpu_rms_norm_gradient,
    &sgm__cpu_concatenate,
    &sgm__cpu_pad,
    &sgm__cpu_write_at,
    &sgm__cpu_gather,
    &sgm__cpu_scatter_add,
    &sgm__cpu_arg_max,
    &sgm__cpu_arg_min,
    &sgm__cpu_accuracy,
    &sgm__cpu_random_uniform,
};

/* Only products, convolutions and attention of bfloat16 depend on the handler, as bfloat16.c decided: if they
 * go through float32, there is no kernel for them but for products by constants, and the planner puts casts
 * around them. The latter two do unless our own tiles or blocks are there for them. */
static bool is_here(const sgm__cpu *cpu, const sgm__cpu_kernel *kernel, sgm_dtype result)
{
    if (result != SGM_BFLOAT16)
        return true;
    bool own = cpu->products == SGM__BFLOAT16_OWN;
    if (kernel->op == &sgm__op_matmul)
        return kernel == &sgm__cpu_matmul ? own || cpu->reads_halves : cpu->products == SGM__BFLOAT16_ONEDNN;
    return kernel->types != (uint32_t)1 << SGM_BFLOAT16 || own;
}

const sgm__cpu_kernel *sgm__cpu_find_kernel(const sgm__cpu *cpu, const sgm_op *op, sgm_dtype result,
                                            sgm_dtype operand)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        const sgm__cpu_kernel *kernel = kernels[i];
        if (kernel->op == op && is_here(cpu, kernel, result) &&
            (kernel->types >> (kernel->by_operand ? operand : result) & 1) != 0)
            return kernel;
    }
    return NULL;
}
