/* Writes single operations as ONNX's operators: one function for each kind of operation, named in
 * operators.c.
 *
 * export.c calls sgm__onnx_write_NAME for each instruction, whose output has its name then; the function
 * emits the nodes that compute it. The operations' attributes are documented with each operation in
 * src/ops: for instance slice has the integers axis, start, stop, step. Numbers that depend on the number
 * of examples are computed in the file (sgm__onnx_name_count) or refused (sgm__onnx_want_fixed).
 *
 * Nodes follow opset 17: ReduceSum takes its axes as an input, the other reductions as an attribute. */
#include "onnx/nodes/onnx.h"
#include "ops/window.h"

#include <math.h>

static const sgm__instruction *instruction_of(const sgm__onnx_export *e, sgm_value value)
{
    return &sgm__onnx_written(e)->instructions[value.index];
}

static sgm_value operand(const sgm__onnx_export *e, sgm_value value, int32_t index)
{
    return sgm__onnx_written(e)->operands[instruction_of(e, value)->first_input + index];
}

/* The name of operand `index`, as the file knows it. */
static const char *name_of(sgm__onnx_export *e, sgm_value value, int32_t index)
{
    return sgm__onnx_name(e, operand(e, value, index));
}

static const sgm_shape *shape_of(const sgm__onnx_export *e, sgm_value value)
{
    return &instruction_of(e, value)->type.shape;
}

static const int64_t *integers_of(const sgm__onnx_export *e, sgm_value value)
{
    return instruction_of(e, value)->attributes->integers;
}

/* ONNX's name of the operator of the instruction's row. */
static const char *type_of(const sgm__onnx_export *e, sgm_value value)
{
    return sgm__onnx_operator_for(instruction_of(e, value)->op)->name;
}

/* The node of the row's operator with all operands, whose names `name` gives, and behind them one more input
 * (NULL: none). */
static Onnx__NodeProto *emit_named(sgm__onnx_export *e, sgm_value value,
                                   const char *(*name)(sgm__onnx_export *, sgm_value, int32_t),
                                   const char *more)
{
    int32_t count = instruction_of(e, value)->input_count;
    const char **inputs = sgm__onnx_take(e, ((size_t)count + 1) * sizeof *inputs);
    if (inputs == NULL)
        return NULL;
    for (int32_t i = 0; i < count; i++)
        inputs[i] = name(e, value, i);
    if (more != NULL)
        inputs[count++] = more;
    return sgm__onnx_emit(e, type_of(e, value), sgm__onnx_name(e, value), count, inputs);
}

static Onnx__NodeProto *emit_row(sgm__onnx_export *e, sgm_value value, const char *more)
{
    return emit_named(e, value, name_of, more);
}

/* --- element by element --- */

/* Whether ONNX's own broadcasting of the operands, taken before their broadcasts, gives the shape of the
 * result. If not, at least one of them needs its Expand (a value that was broadcast alone has no other
 * operand to follow). */
static bool broadcasts_itself(const sgm__onnx_export *e, sgm_value value)
{
    sgm_shape shape = {0};
    for (int32_t i = 0; i < instruction_of(e, value)->input_count; i++)
        if (sgm_shape_broadcast(&shape, shape_of(e, sgm__onnx_before_broadcast(e, operand(e, value, i))),
                                &shape) != SGM_OK)
            return false;
    return sgm_shape_equal(&shape, shape_of(e, value));
}

/* The name of an operand of an elementwise operation: before its broadcast where that is enough. */
static const char *element_name(sgm__onnx_export *e, sgm_value value, int32_t index)
{
    sgm_value from = operand(e, value, index);
    return sgm__onnx_name(e, broadcasts_itself(e, value) ? sgm__onnx_before_broadcast(e, from) : from);
}

/* An operation that is the operator of its row, without attributes. Its operands broadcast by themselves. */
sgm_status sgm__onnx_write_same(sgm__onnx_export *e, sgm_value value)
{
    emit_named(e, value, element_name, NULL);
    return SGM_OK;
}

/* The attribute says that the result takes the sign of the dividend. */
sgm_status sgm__onnx_write_modulo(sgm__onnx_export *e, sgm_value value)
{
    sgm__onnx_put_integer(e, emit_named(e, value, element_name, NULL), "fmod", integers_of(e, value)[0] == 0);
    return SGM_OK;
}

/* Not(Equal(a, b)) */
sgm_status sgm__onnx_write_not_equal(sgm__onnx_export *e, sgm_value value)
{
    const char *equal =
        sgm__onnx_call(e, NULL, "Equal", element_name(e, value, 0), element_name(e, value, 1), NULL);
    sgm__onnx_call(e, sgm__onnx_name(e, value), "Not", equal, NULL, NULL);
    return SGM_OK;
}

/* An initialiser with a number in the type of the result: elementwise operators of ONNX do not convert
 * types. */
static const char *number_like(sgm__onnx_export *e, sgm_value value, double number)
{
    return sgm__onnx_name_number(e, instruction_of(e, value)->type.dtype, number);
}

/* Log(1 + x), and what the sum lost of a small x by rounding: with k = Clip(x, -1/2, 1/2) that is k - ((1 +
 * k)
 * - 1), and nothing where x is larger. ONNX has no operator that keeps the digits near 0. */
sgm_status sgm__onnx_write_log1p(sgm__onnx_export *e, sgm_value value)
{
    const char *x = name_of(e, value, 0), *one = number_like(e, value, 1);
    const char *logarithm =
        sgm__onnx_call(e, NULL, "Log", sgm__onnx_call(e, NULL, "Add", x, one, NULL), NULL, NULL);
    const char *k =
        sgm__onnx_call(e, NULL, "Clip", x, number_like(e, value, -0.5), number_like(e, value, 0.5));
    const char *sum = sgm__onnx_call(e, NULL, "Add", k, one, NULL);
    const char *kept = sgm__onnx_call(e, NULL, "Sub", sum, one, NULL);
    const char *lost = sgm__onnx_call(e, NULL, "Sub", k, kept, NULL);
    sgm__onnx_call(e, sgm__onnx_name(e, value), "Add", logarithm, lost, NULL);
    return SGM_OK;
}

/* gelu(x) = x / 2 (1 + erf(x / sqrt 2)) (Hendrycks and Gimpel, 2016). ONNX has Gelu from opset 20 on only. */
sgm_status sgm__onnx_write_gelu(sgm__onnx_export *e, sgm_value value)
{
    const char *x = name_of(e, value, 0),
               *half = sgm__onnx_call(e, NULL, "Mul", x, number_like(e, value, 0.5), NULL);
    const char *small = sgm__onnx_call(e, NULL, "Mul", x, number_like(e, value, M_SQRT1_2), NULL);
    const char *error = sgm__onnx_call(e, NULL, "Erf", small, NULL, NULL);
    const char *sum = sgm__onnx_call(e, NULL, "Add", error, number_like(e, value, 1), NULL);
    sgm__onnx_call(e, sgm__onnx_name(e, value), "Mul", half, sum, NULL);
    return SGM_OK;
}

/* Not(IsInf(x) or IsNaN(x)) */
sgm_status sgm__onnx_write_is_finite(sgm__onnx_export *e, sgm_value value)
{
    const char *x = name_of(e, value, 0), *infinite = sgm__onnx_call(e, NULL, "IsInf", x, NULL, NULL);
    const char *none = sgm__onnx_call(e, NULL, "IsNaN", x, NULL, NULL);
    const char *either = sgm__onnx_call(e, NULL, "Or", infinite, none, NULL);
    sgm__onnx_call(e, sgm__onnx_name(e, value), "Not", either, NULL, NULL);
    return SGM_OK;
}

sgm_status sgm__onnx_write_cast(sgm__onnx_export *e, sgm_value value)
{
    sgm__onnx_put_integer(e, emit_row(e, value, NULL), "to",
                          sgm__onnx_type_number(instruction_of(e, value)->type.dtype));
    return SGM_OK;
}

/* --- along axes --- */

/* The axes of a reduction's bit mask as a list; returns how many. */
static int32_t axes_of(int64_t mask, int64_t *axes)
{
    int32_t count = 0;
    for (int32_t i = 0; i < SGM_MAX_RANK; i++)
        if ((mask >> i & 1) != 0)
            axes[count++] = i;
    return count;
}

/* An empty list would mean all axes, unless noop_with_empty_axes is set. */
sgm_status sgm__onnx_write_reduce_sum(sgm__onnx_export *e, sgm_value value)
{
    int64_t axes[SGM_MAX_RANK];
    const int64_t *integers = integers_of(e, value);
    int32_t count = axes_of(integers[0], axes);
    Onnx__NodeProto *node = emit_row(e, value, sgm__onnx_name_integers(e, axes, count));
    sgm__onnx_put_integer(e, node, "keepdims", integers[1]);
    if (count == 0)
        sgm__onnx_put_integer(e, node, "noop_with_empty_axes", 1);
    return SGM_OK;
}

/* Maximum and minimum. Without noop_with_empty_axes (opset 18) a reduction over no axis has to be an
 * Identity. */
sgm_status sgm__onnx_write_reduce(sgm__onnx_export *e, sgm_value value)
{
    int64_t axes[SGM_MAX_RANK];
    const int64_t *integers = integers_of(e, value);
    int32_t count = axes_of(integers[0], axes);
    if (count == 0) {
        sgm__onnx_call(e, sgm__onnx_name(e, value), "Identity", name_of(e, value, 0), NULL, NULL);
        return SGM_OK;
    }
    Onnx__NodeProto *node = emit_row(e, value, NULL);
    sgm__onnx_put_integers(e, node, "axes", axes, count);
    sgm__onnx_put_integer(e, node, "keepdims", integers[1]);
    return SGM_OK;
}

/* ArgMax and ArgMin; the axis goes away, as in the library. */
sgm_status sgm__onnx_write_place(sgm__onnx_export *e, sgm_value value)
{
    Onnx__NodeProto *node = emit_row(e, value, NULL);
    sgm__onnx_put_integer(e, node, "axis", integers_of(e, value)[0]);
    sgm__onnx_put_integer(e, node, "keepdims", 0);
    return SGM_OK;
}

sgm_status sgm__onnx_write_cumulative_sum(sgm__onnx_export *e, sgm_value value)
{
    const int64_t *integers = integers_of(e, value);
    Onnx__NodeProto *node = emit_row(e, value, sgm__onnx_name_number(e, SGM_INT64, (double)integers[0]));
    sgm__onnx_put_integer(e, node, "reverse", integers[1]);
    return SGM_OK;
}

/* Operations that work on the last axis: softmax and log_softmax. */
sgm_status sgm__onnx_write_last_axis(sgm__onnx_export *e, sgm_value value)
{
    sgm__onnx_put_integer(e, emit_row(e, value, NULL), "axis", -1);
    return SGM_OK;
}

/* LayerNormalization demands a scale as its second input: ones, as the library's operation has none. */
sgm_status sgm__onnx_write_layer_norm(sgm__onnx_export *e, sgm_value value)
{
    const sgm__instruction *instruction = instruction_of(e, value);
    int64_t size = instruction->type.shape.dims[instruction->type.shape.rank - 1];
    sgm_tensor *ones = sgm_tensor_create(instruction->type.dtype, SGM__ONNX_SHAPE(size));
    for (int64_t i = 0; i < size && ones != NULL; i++)
        sgm_tensor_set(ones, &i, 1);
    Onnx__NodeProto *node = emit_row(e, value, sgm__onnx_name_tensor(e, ones));
    sgm__onnx_put_integer(e, node, "axis", -1);
    sgm__onnx_put_number(e, node, "epsilon", instruction->attributes->numbers[0]);
    return SGM_OK;
}

/* --- shapes and parts --- */

/* In Reshape's shape one dimension may be -1: it is deduced, so one open dimension needs no computation.
 * With allowzero a 0 means an empty dimension and not "as before". */
sgm_status sgm__onnx_write_reshape(sgm__onnx_export *e, sgm_value value)
{
    sgm_shape shape = *shape_of(e, value);
    int32_t open = 0;
    for (int32_t i = 0; i < shape.rank; i++)
        if (sgm__onnx_is_open(e, value, i)) {
            shape.dims[i] = -1;
            open++;
        }
    if (open > 1)
        return sgm__onnx_want_fixed(e, value);
    Onnx__NodeProto *node = emit_row(e, value, sgm__onnx_name_integers(e, shape.dims, shape.rank));
    sgm__onnx_put_integer(e, node, "allowzero", 1);
    return SGM_OK;
}

sgm_status sgm__onnx_write_permute(sgm__onnx_export *e, sgm_value value)
{
    sgm__onnx_put_integers(e, emit_row(e, value, NULL), "perm", integers_of(e, value),
                           shape_of(e, value)->rank);
    return SGM_OK;
}

/* A Slice along one axis; `start` and `stop` are names of lists of one integer. */
static sgm_status write_slice(sgm__onnx_export *e, sgm_value value, const char *start, const char *stop,
                              int64_t axis, int64_t step)
{
    const char *inputs[] = {name_of(e, value, 0), start, stop, sgm__onnx_name_integers(e, &axis, 1),
                            sgm__onnx_name_integers(e, &step, 1)};
    sgm__onnx_emit(e, "Slice", sgm__onnx_name(e, value), 5, inputs);
    return SGM_OK;
}

/* A stop at the end of an open axis is written as the largest integer, which Slice takes as the end. */
sgm_status sgm__onnx_write_slice(sgm__onnx_export *e, sgm_value value)
{
    static const int64_t end = INT64_MAX;
    const int64_t *integers = integers_of(e, value);
    sgm_value from = operand(e, value, 0);
    int32_t axis = (int32_t)integers[0];
    bool to_end = sgm__onnx_is_open(e, from, axis) && integers[2] == shape_of(e, from)->dims[axis];
    const char *start = sgm__onnx_name_count(e, integers[1], sgm__onnx_other_integer(e, value, 1));
    const char *stop = to_end ? sgm__onnx_name_integers(e, &end, 1)
                              : sgm__onnx_name_count(e, integers[2], sgm__onnx_other_integer(e, value, 2));
    if (start == NULL || stop == NULL)
        return sgm__onnx_want_fixed(e, value);
    return write_slice(e, value, start, stop, axis, integers[3]);
}

/* A Slice with step -1 from the last entry (-1) to before the first; a stop below the axis is clamped to
 * that. */
sgm_status sgm__onnx_write_flip(sgm__onnx_export *e, sgm_value value)
{
    static const int64_t ends[] = {-1, INT64_MIN};
    return write_slice(e, value, sgm__onnx_name_integers(e, ends, 1), sgm__onnx_name_integers(e, ends + 1, 1),
                       integers_of(e, value)[0], -1);
}

/* Pad takes the sizes before all axes, then those behind all axes; its value is 0 by default. */
sgm_status sgm__onnx_write_pad(sgm__onnx_export *e, sgm_value value)
{
    const int64_t *integers = integers_of(e, value);
    int32_t rank = shape_of(e, value)->rank;
    int64_t sizes[2 * SGM_MAX_RANK] = {0};
    if (integers[3] != 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "ONNX has no operator for zeros between neighbours");
    SGM_TRY(sgm__onnx_want_fixed(e, value));
    sizes[integers[0]] = integers[1];
    sizes[integers[0] + rank] = integers[2];
    emit_row(e, value, sgm__onnx_name_integers(e, sizes, 2 * rank));
    return SGM_OK;
}

/* Gather and Concat, whose first integer is the axis. */
sgm_status sgm__onnx_write_along(sgm__onnx_export *e, sgm_value value)
{
    sgm__onnx_put_integer(e, emit_row(e, value, NULL), "axis", integers_of(e, value)[0]);
    return SGM_OK;
}

/* A constant 0, 1, 2, ... along the axis, with size 1 along the others, and an Expand to the whole shape.
 * A shape with an open dimension is refused. */
sgm_status sgm__onnx_write_iota(sgm__onnx_export *e, sgm_value value)
{
    const int64_t *integers = integers_of(e, value);
    const sgm_shape *shape = shape_of(e, value);
    sgm_shape line = {.rank = shape->rank};
    int32_t axis = (int32_t)integers[1];
    for (int32_t i = 0; i < line.rank; i++) {
        line.dims[i] = i == axis ? shape->dims[i] : 1;
        if (sgm__onnx_is_open(e, value, i))
            return sgm__onnx_want_fixed(e, value);
    }
    sgm_tensor *numbers = sgm_tensor_create(instruction_of(e, value)->type.dtype, &line);
    for (int64_t i = 0; i < line.dims[axis] && numbers != NULL; i++) {
        int64_t at[SGM_MAX_RANK] = {0};
        at[axis] = i;
        sgm_tensor_set(numbers, at, (double)i);
    }
    sgm__onnx_call(e, sgm__onnx_name(e, value), "Expand", sgm__onnx_name_tensor(e, numbers),
                   sgm__onnx_name_integers(e, shape->dims, shape->rank), NULL);
    return SGM_OK;
}

/* OneHot takes the two levels as a list {off, on}: a new tensor is zeros, so only the second is set. */
sgm_status sgm__onnx_write_one_hot(sgm__onnx_export *e, sgm_value value)
{
    sgm_dtype dtype = instruction_of(e, value)->type.dtype;
    sgm_tensor *levels = sgm_tensor_create(dtype, SGM__ONNX_SHAPE(2));
    if (levels != NULL)
        sgm_tensor_set(levels, &(int64_t){1}, 1);
    const char *depth = sgm__onnx_name_number(e, SGM_INT64, (double)integers_of(e, value)[1]);
    sgm__onnx_call(e, sgm__onnx_name(e, value), "OneHot", name_of(e, value, 0), depth,
                   sgm__onnx_name_tensor(e, levels));
    return SGM_OK;
}

/* TopK with all entries of the axis gives them in order; its second output is the places. Both are stable:
 * equal entries keep the lower index first. The count is an initialiser, so the axis must not be open. */
sgm_status sgm__onnx_write_argsort(sgm__onnx_export *e, sgm_value value)
{
    const int64_t *integers = integers_of(e, value);
    int64_t size = shape_of(e, value)->dims[integers[0]];
    if (sgm__onnx_is_open(e, value, (int32_t)integers[0]))
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "it orders the examples");
    Onnx__NodeProto *node =
        sgm__onnx_emit(e, "TopK", NULL, 2,
                       (const char *const[]){name_of(e, value, 0), sgm__onnx_name_integers(e, &size, 1)});
    sgm__onnx_put_integer(e, node, "axis", integers[0]);
    sgm__onnx_put_integer(e, node, "largest", integers[1]);
    return sgm__onnx_put_outputs(e, node, 2, sgm__onnx_name(e, value));
}

/* --- products and windows --- */

/* The name of an operand of a matrix product. MatMul broadcasts leading dimensions by itself, but not the
 * last two: those must be equal before and after the broadcast. */
static const char *matrix_name(sgm__onnx_export *e, sgm_value value, int32_t index)
{
    sgm_value whole = operand(e, value, index), from = sgm__onnx_before_broadcast(e, whole);
    const sgm_shape *a = shape_of(e, whole), *b = shape_of(e, from);
    bool same = b->rank >= 2;
    for (int32_t i = 1; i <= 2 && same; i++)
        same = a->dims[a->rank - i] == b->dims[b->rank - i];
    return sgm__onnx_name(e, same ? from : whole);
}

/* Whether MatMul's own broadcasting of the leading dimensions gives those of the result: shapes of the
 * operands before their broadcasts, without the last two dimensions, are broadcast and compared. */
static bool leads_itself(const sgm__onnx_export *e, sgm_value value)
{
    sgm_shape all = {0}, want = *shape_of(e, value);
    for (int32_t i = 0; i < 2; i++) {
        sgm_shape lead = *shape_of(e, sgm__onnx_before_broadcast(e, operand(e, value, i)));
        lead.rank = lead.rank > 2 ? lead.rank - 2 : 0;
        if (sgm_shape_broadcast(&all, &lead, &all) != SGM_OK)
            return false;
    }
    want.rank = want.rank > 2 ? want.rank - 2 : 0;
    if (all.rank != want.rank)
        return false;
    for (int32_t i = 0; i < all.rank; i++)
        if (all.dims[i] != want.dims[i])
            return false;
    return true;
}

sgm_status sgm__onnx_write_matmul(sgm__onnx_export *e, sgm_value value)
{
    bool itself = leads_itself(e, value);
    const char *a = itself ? matrix_name(e, value, 0) : name_of(e, value, 0);
    const char *b = itself ? matrix_name(e, value, 1) : name_of(e, value, 1);
    sgm__onnx_call(e, sgm__onnx_name(e, value), "MatMul", a, b, NULL);
    return SGM_OK;
}

/* As runtimes expect dynamic quantization: DynamicQuantizeLinear rounds the left side to codes of uint8, with
 * one scale and zero point for all of it; MatMulInteger multiplies, and both scales bring the sums back. The
 * codes of the weights are the library's, whose 0 is 128. */
sgm_status sgm__onnx_write_quantized_matmul(sgm__onnx_export *e, sgm_value value)
{
    Onnx__NodeProto *rounded =
        sgm__onnx_emit(e, "DynamicQuantizeLinear", NULL, 1, (const char *const[]){name_of(e, value, 0)});
    SGM_TRY(sgm__onnx_put_outputs(e, rounded, 3, NULL));
    const char *scale = rounded->output[1];
    const char *const factors[] = {rounded->output[0], name_of(e, value, 1), rounded->output[2],
                                   sgm__onnx_name_number(e, SGM_UINT8, 128)};
    Onnx__NodeProto *sums = sgm__onnx_emit(e, "MatMulInteger", NULL, 4, factors);
    if (sums == NULL)
        return SGM_ERROR_MEMORY;
    Onnx__NodeProto *numbers = sgm__onnx_emit(e, "Cast", NULL, 1, (const char *const[]){sums->output[0]});
    sgm__onnx_put_integer(e, numbers, "to", sgm__onnx_type_number(instruction_of(e, value)->type.dtype));
    const char *scales = sgm__onnx_call(e, NULL, "Mul", scale, name_of(e, value, 2), NULL);
    if (numbers == NULL)
        return SGM_ERROR_MEMORY;
    sgm__onnx_call(e, sgm__onnx_name(e, value), "Mul", numbers->output[0], scales, NULL);
    return SGM_OK;
}

/* An attribute with one integer for each axis of the window, from number `first` on of the instruction's. The
 * library has pairs (height, width) also for data of one axis, whose entry is then the second of the pair. */
static void put_axes(sgm__onnx_export *e, Onnx__NodeProto *node, sgm_value value, const char *name,
                     int32_t first)
{
    int32_t axes = shape_of(e, value)->rank - 2;
    sgm__onnx_put_integers(e, node, name, integers_of(e, value) + first + 2 - axes, axes);
}

/* The attributes `strides` and `pads`, which convolutions and poolings share. ONNX's pads are all befores,
 * then all afters. */
static void put_window(sgm__onnx_export *e, Onnx__NodeProto *node, sgm_value value)
{
    const int64_t *integers = integers_of(e, value);
    int32_t axes = shape_of(e, value)->rank - 2, first = 2 - axes;
    int64_t pads[4];
    for (int32_t i = 0; i < axes; i++) {
        pads[i] = integers[SGM__WINDOW_BEFORE + first + i];
        pads[i + axes] = integers[SGM__WINDOW_AFTER + first + i];
    }
    put_axes(e, node, value, "strides", SGM__WINDOW_STRIDE);
    sgm__onnx_put_integers(e, node, "pads", pads, 2 * axes);
}

/* Without kernel_shape, which ONNX deduces from the weights. */
sgm_status sgm__onnx_write_convolution(sgm__onnx_export *e, sgm_value value)
{
    Onnx__NodeProto *node = emit_row(e, value, NULL);
    put_window(e, node, value);
    put_axes(e, node, value, "dilations", SGM__WINDOW_DILATION);
    sgm__onnx_put_integer(e, node, "group", integers_of(e, value)[SGM__WINDOW_GROUPS]);
    return SGM_OK;
}

/* A transposed convolution, in the library the gradient of a convolution by its input. Several sizes of
 * the result belong to the same window, of which the smallest is
 *
 *     minimum = (x - 1) stride + (weights - 1) dilation + 1 - before - after;
 *
 * what the result has more is ONNX's output_padding. */
sgm_status sgm__onnx_write_transposed(sgm__onnx_export *e, sgm_value value)
{
    const int64_t *integers = integers_of(e, value);
    const sgm_shape *x = shape_of(e, operand(e, value, 0)), *weights = shape_of(e, operand(e, value, 1));
    int32_t axes = x->rank - 2, first = 2 - axes;
    int64_t output_padding[2] = {0};
    for (int32_t i = 0; i < axes; i++) {
        int64_t reach = (weights->dims[i + 2] - 1) * integers[SGM__WINDOW_DILATION + first + i] + 1;
        int64_t minimum = (x->dims[i + 2] - 1) * integers[SGM__WINDOW_STRIDE + first + i] + reach -
                          integers[SGM__WINDOW_BEFORE + first + i] - integers[SGM__WINDOW_AFTER + first + i];
        output_padding[i] = shape_of(e, value)->dims[i + 2] - minimum;
    }
    Onnx__NodeProto *node = emit_row(e, value, NULL);
    put_window(e, node, value);
    put_axes(e, node, value, "dilations", SGM__WINDOW_DILATION);
    sgm__onnx_put_integers(e, node, "output_padding", output_padding, axes);
    sgm__onnx_put_integer(e, node, "group", integers[SGM__WINDOW_GROUPS]);
    return SGM_OK;
}

sgm_status sgm__onnx_write_max_pool(sgm__onnx_export *e, sgm_value value)
{
    Onnx__NodeProto *node = emit_row(e, value, NULL);
    put_window(e, node, value);
    put_axes(e, node, value, "dilations", SGM__WINDOW_DILATION);
    put_axes(e, node, value, "kernel_shape", SGM__WINDOW_SIZE);
    return SGM_OK;
}

/* The library's flag leaves padding out of the mean; ONNX's counts it in. AveragePool has no dilations in
 * opset 17. */
sgm_status sgm__onnx_write_average_pool(sgm__onnx_export *e, sgm_value value)
{
    Onnx__NodeProto *node = emit_row(e, value, NULL);
    put_window(e, node, value);
    put_axes(e, node, value, "kernel_shape", SGM__WINDOW_SIZE);
    sgm__onnx_put_integer(e, node, "count_include_pad", integers_of(e, value)[SGM__WINDOW_FLAG] == 0);
    return SGM_OK;
}
