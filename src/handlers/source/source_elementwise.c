/* Elementwise steps: one loop computes all members of a step for an element, then stores those that lie in
 * memory.
 *
 * Each operation has a formula, a text with places for its operands. A member is a local constant v0, v1,
 * ..., by its place in the step. Integers keep the rule of the library: those of fewer than 64 bits are
 * computed in 64 and limited to their range, int64 wraps around, which C leaves undefined for signed numbers,
 * so those are computed as unsigned. Devices use the same formulas.
 */
#include "handlers/source/source.h"
#include "ops/ops.h"

/* $a, $b and $c stand for the operands, $F for the prefix of functions. `of_integers` is another formula for
 * integers, NULL: the same. If `grows` it is that of int64, and narrower integers use `text` in 64 bits. */
typedef struct formula {
    const sgm_op *op;
    const char *text, *of_integers;
    uint32_t functions;
    bool grows; /* the result for integers may be outside of their type's range */
} formula;

/* Formulas that call a function, that are the same for all types (PLAIN), that may leave an integer's range
 * (GROWS), that are one call. */
#define NEEDS(name) ((uint32_t)1 << SGM__SOURCE_##name)
#define PLAIN(name, text)                                                                                    \
    {                                                                                                        \
        &sgm__op_##name, text, NULL, 0, false                                                                \
    }
#define GROWS(name, text, of_unsigned)                                                                       \
    {                                                                                                        \
        &sgm__op_##name, text, "(int64_t)(" of_unsigned ")", 0, true                                         \
    }
#define CALL(name, FUNCTION, function)                                                                       \
    {                                                                                                        \
        &sgm__op_##name, "$F" function "($a)", NULL, NEEDS(FUNCTION), false                                  \
    }
static const formula formulas[] = {
    GROWS(negate, "-$a", "0 - (uint64_t)$a"),
    GROWS(absolute, "$a < 0 ? -$a : $a", "$a < 0 ? 0 - (uint64_t)$a : (uint64_t)$a"),
    PLAIN(sign, "($a > 0) - ($a < 0)"),
    PLAIN(copy, "$a"),
    PLAIN(stop_gradient, "$a"),
    PLAIN(logical_not, "!$a"),
    {&sgm__op_is_nan, "$a != $a", "0", 0, false},
    {&sgm__op_is_finite, "$a - $a == 0", "1", 0, false},
    CALL(square_root, SQRT, "sqrt"),
    CALL(exp, EXP, "exp"),
    CALL(log, LOG, "log"),
    CALL(log1p, LOG1P, "log1p"),
    CALL(sin, SIN, "sin"),
    CALL(cos, COS, "cos"),
    CALL(tan, TAN, "tan"),
    CALL(asin, ASIN, "asin"),
    CALL(acos, ACOS, "acos"),
    CALL(atan, ATAN, "atan"),
    CALL(tanh, TANH, "tanh"),
    CALL(erf, ERF, "erf"),
    CALL(sigmoid, SIGMOID, "sigmoid"),
    CALL(gelu, GELU, "gelu"),
    CALL(gelu_gradient, GELU_GRADIENT, "gelu_gradient"),
    {&sgm__op_floor, "$Ffloor($a)", "$a", NEEDS(FLOOR), false},
    {&sgm__op_power, "$Fpower($a, $b)", NULL, NEEDS(POWER), false},
    GROWS(add, "$a + $b", "(uint64_t)$a + (uint64_t)$b"),
    GROWS(subtract, "$a - $b", "(uint64_t)$a - (uint64_t)$b"),
    GROWS(multiply, "$a * $b", "(uint64_t)$a * (uint64_t)$b"),
    PLAIN(divide, "$a / $b"),
    {&sgm__op_maximum, "$a >= $b || $a != $a ? $a : $b", "$a >= $b ? $a : $b", 0, false},
    {&sgm__op_minimum, "$a <= $b || $a != $a ? $a : $b", "$a <= $b ? $a : $b", 0, false},
    PLAIN(equal, "$a == $b"),
    PLAIN(not_equal, "$a != $b"),
    PLAIN(less, "$a < $b"),
    PLAIN(less_equal, "$a <= $b"),
    PLAIN(greater, "$a > $b"),
    PLAIN(greater_equal, "$a >= $b"),
    PLAIN(logical_and, "$a && $b"),
    PLAIN(logical_or, "$a || $b"),
    PLAIN(select, "$a ? $b : $c"),
};

/* NULL: the operation is not in the table. */
static const formula *find_formula(const sgm_op *op)
{
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        if (formulas[i].op == op)
            return &formulas[i];
    return NULL;
}

/* The formula with its operands; operands are numbers, variables, or elements, which need no brackets. */
static const char *fill_in(sgm__source_writer *w, const char *text, const char *const *operands)
{
    sgm__text out = {0};
    for (const char *c = text; *c != '\0'; c++)
        if (*c != '$')
            sgm__text_append_bytes(&out, c, 1);
        else if (*++c == 'F')
            sgm__text_append(&out, "%s_", w->request->name);
        else
            sgm__text_append(&out, "%s", operands[*c - 'a']);
    w->failed = w->failed || out.failed;
    const char *filled = sgm__source_format(w, "%s", out.data != NULL ? out.data : "");
    sgm__text_free(&out);
    return filled;
}

/* An element converted to another type. Floating point numbers become integers without their fraction; what
 * an integer type could not hold becomes its minimum or maximum. A conversion to a wider type needs no
 * limits. */
static const char *cast_to(sgm__source_writer *w, sgm_dtype from, sgm_dtype to, const char *operand)
{
    bool is_float = sgm_dtype_is_float(from);
    if (to == SGM_BOOL)
        return sgm__source_format(w, "%s != 0", operand);
    if (sgm_dtype_is_float(to) || (!is_float && sgm_dtype_size(to) >= sgm_dtype_size(from)))
        return sgm__source_format(w, "(%s)%s", sgm__source_type_name(w, to), operand);
    sgm__source_need(w, is_float ? SGM__SOURCE_INTEGER : SGM__SOURCE_WITHIN);
    const char *minimum = to == SGM_INT32 ? "-2147483647 - 1" : to == SGM_UINT8 ? "0" : "INT64_MIN";
    const char *maximum = to == SGM_INT32 ? "2147483647" : to == SGM_UINT8 ? "255" : "INT64_MAX";
    return sgm__source_format(w, "(%s)%s_%s(%s, %s, %s)", sgm__source_type_name(w, to), w->request->name,
                              is_float ? "integer" : "within", operand, minimum, maximum);
}

bool sgm__source_is_narrow(sgm_dtype dtype)
{
    return !sgm_dtype_is_float(dtype) && sgm_dtype_size(dtype) < sizeof(int64_t);
}

/* int64 is summed as uint64_t, whose overflow is defined. */
const char *sgm__source_sum_type(const sgm__source_writer *w, sgm_dtype dtype)
{
    if (dtype == SGM_INT64)
        return "uint64_t"; /* unsigned numbers wrap around */
    return sgm__source_type_name(w, sgm__source_is_narrow(dtype) ? SGM_INT64 : dtype);
}

const char *sgm__source_of_sum(sgm__source_writer *w, sgm_dtype dtype, const char *sum)
{
    if (dtype == SGM_INT64)
        return sgm__source_format(w, "(int64_t)(%s)", sum);
    return sgm__source_is_narrow(dtype) ? cast_to(w, SGM_INT64, dtype, sum) : sum;
}

/* Products of int32 are limited as they are added up: the sum of two of the largest would not fit into 64
 * bits. The limits of half the range leave room for one more product. */
void sgm__source_add_product(sgm__source_writer *w, sgm_dtype dtype, const char *a, const char *b)
{
    const char *wide = sgm__source_is_narrow(dtype) ? "(int64_t)" : dtype == SGM_INT64 ? "(uint64_t)" : "";
    if (dtype != SGM_INT32) {
        sgm__source_line(w, "sum += %s%s * %s;", wide, a, b);
        return;
    }
    /* The sum of two of the largest products would not fit into 64 bits. */
    sgm__source_need(w, SGM__SOURCE_WITHIN);
    sgm__source_line(w, "sum = %s_within(sum + %s%s * %s, -INT64_MAX / 2, INT64_MAX / 2);", w->request->name,
                     wide, a, b);
}

/* Whether an operand is a number in the text, and so not NaN. */
static bool is_literal(const char *operand)
{
    return operand != NULL &&
           ((*operand >= '0' && *operand <= '9') || (operand[0] == '(' && operand[1] == '-'));
}

/* An expression for a member. The longer formulas of maximum and minimum, for NaN in the first operand, are
 * used only if that may be NaN. */
static const char *formula_of(sgm__source_writer *w, int32_t number, const char *const *operands)
{
    const sgm__node *node = &w->plan->nodes[number];
    sgm_dtype from = w->plan->nodes[sgm__source_operand(w, number, 0)].type.dtype;
    if (node->op == &sgm__op_cast)
        return cast_to(w, from, node->type.dtype, operands[0]);
    const formula *known = find_formula(node->op);
    if (known->grows && sgm__source_is_narrow(from)) {
        const char *wide[] = {sgm__source_format(w, "(int64_t)%s", operands[0]), operands[1]};
        return cast_to(w, SGM_INT64, from, fill_in(w, known->text, wide));
    }
    /* Maximum and minimum: if the first operand cannot be NaN, the shorter formula of integers does. */
    bool pair = operands[1] != NULL;
    bool comparable = !sgm_dtype_is_float(from) || (pair && !known->grows && is_literal(operands[0]));
    bool integers = comparable && known->of_integers != NULL;
    w->functions |= integers ? 0 : known->functions;
    return fill_in(w, integers ? known->of_integers : known->text, operands);
}

/* --- random numbers --- */

/* Four random words, the block of the present element. */
void sgm__source_draw_begin(sgm__source_writer *w, int32_t node)
{
    sgm__source_need(w, SGM__SOURCE_DRAW);
    sgm__source_line(w, "uint32_t words%d[4];", node);
}

/* Lines that draw the next four words whenever a number is a multiple of 4, and an expression for the
 * number's word as a number in [0, 1). */
const char *sgm__source_draw(sgm__source_writer *w, int32_t node, const char *number)
{
    static const char *const none[SGM_MAX_RANK];
    const char *seed = sgm__source_element(w, sgm__source_operand(w, node, 0), none);
    const char *step = sgm__source_element(w, sgm__source_operand(w, node, 1), none);
    number = number != NULL ? number : "0";
    bool simple = strchr(number, ' ') == NULL;
    number = simple ? number : sgm__source_format(w, "(%s)", number);
    sgm__source_line(w, "if (%s %% 4 == 0)", number);
    sgm__source_line(w, "    %s_draw((uint64_t)%s, (uint64_t)%s, %lldu, %s / 4, words%d);", w->request->name,
                     seed, step, (long long)w->plan->nodes[node].attributes.integers[0], number, node);
    return sgm__source_format(w, "(%s)(words%d[%s %% 4] >> 8) / 16777216", w->real, node, number);
}

/* --- the loop --- */

/* Nodes of steps with a kernel are not in step_of: they are always read from memory. */
sgm_status sgm__source_note_steps(sgm__source_writer *w)
{
    const sgm__plan *plan = w->plan;
    size_t nodes = (size_t)plan->node_count + 1;
    w->step_of = sgm__calloc(nodes, 2 * sizeof(int32_t));
    if (w->step_of == NULL)
        return SGM_ERROR_MEMORY;
    w->position_of = w->step_of + nodes;
    for (size_t i = 0; i < nodes; i++)
        w->step_of[i] = -1;
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t p = 0; p < plan->steps[s].count && plan->steps[s].kind == SGM__STEP_ELEMENTWISE; p++) {
            w->step_of[plan->order[plan->steps[s].first + p]] = s;
            w->position_of[plan->order[plan->steps[s].first + p]] = p;
        }
    return SGM_OK;
}

/* Whether axis `axis` of a node continues the axis `next` behind it without a gap. */
static bool goes_on(const sgm__source_writer *w, int32_t node, int32_t axis, int32_t next)
{
    const sgm__node *n = &w->plan->nodes[node];
    return n->place.strides[axis] == n->place.strides[next] * n->type.shape.dims[next];
}

/* random_uniform is no formula of its operands but of the element's number. */
static bool is_drawn(const sgm__node *node)
{
    return node->op == &sgm__op_random_uniform;
}

/* Whether axis `next` continues `axis` for all operands and results of a step, so that one loop does for
 * both. The operands of random_uniform are single numbers and do not matter. */
static bool are_one(const sgm__source_writer *w, int32_t s, int32_t axis, int32_t next)
{
    const sgm__step *step = &w->plan->steps[s];
    for (int32_t p = 0; p < step->count; p++) {
        int32_t number = w->plan->order[step->first + p];
        const sgm__node *node = &w->plan->nodes[number];
        if (node->place.store != SGM__STORE_NONE && !goes_on(w, number, axis, next))
            return false;
        for (int32_t k = 0; k < node->input_count && !is_drawn(node); k++) {
            int32_t operand = sgm__source_operand(w, number, k);
            if (w->step_of[operand] != s && !goes_on(w, operand, axis, next))
                return false;
        }
    }
    return true;
}

/* Joins axes from left to right; axes of length 1 are left out. */
void sgm__source_find_walk(const sgm__source_writer *w, int32_t s, sgm__source_walk *walk)
{
    const sgm_shape *shape = &w->plan->nodes[w->plan->order[w->plan->steps[s].first]].type.shape;
    sgm__source_walk found = {0};
    int32_t last = -1;
    for (int32_t axis = 0; axis < shape->rank; axis++) {
        if (shape->dims[axis] == 1)
            continue;
        bool same = last >= 0 && are_one(w, s, last, axis);
        if (same)
            found.sizes[found.count - 1] *= shape->dims[axis];
        else
            found.sizes[found.count++] = shape->dims[axis];
        found.axes[found.count - 1] = last = axis;
    }
    *walk = found;
}

/* Words of random numbers are declared outside of the loop, as they last for four elements. */
static void declare_draws(sgm__source_writer *w, const sgm__step *step)
{
    for (int32_t p = 0; p < step->count; p++)
        if (is_drawn(&w->plan->nodes[w->plan->order[step->first + p]])) {
            sgm__source_block(w);
            sgm__source_draw_begin(w, w->plan->order[step->first + p]);
        }
}

/* The number of an element in row-major order, which decides its random number. */
static const char *number_of(sgm__source_writer *w, const sgm__source_walk *axes, const char *const *index)
{
    const char *number = NULL;
    int64_t below = 1;
    for (int32_t i = axes->count; i-- > 0;) {
        number = sgm__source_plus(w, sgm__source_times(w, index[axes->axes[i]], below), number);
        below *= axes->sizes[i];
    }
    return number;
}

/* A line that computes a member: its operands are members of the same step, or elements in memory. In
 * bfloat16 a member is rounded as it would be in memory, as other steps read it so. */
static void write_member(sgm__source_writer *w, int32_t s, int32_t number, const char *const *index,
                         const char *element)
{
    const sgm__node *node = &w->plan->nodes[number];
    const char *operands[3] = {NULL}, *value;
    if (is_drawn(node)) {
        value = w->dialect->draw(w, number, element);
    } else {
        for (int32_t k = 0; k < node->input_count && k < 3; k++) {
            int32_t operand = sgm__source_operand(w, number, k);
            operands[k] = w->step_of[operand] == s ? sgm__source_format(w, "v%d", w->position_of[operand])
                                                   : sgm__source_element(w, operand, index);
        }
        value = formula_of(w, number, operands);
    }
    if (node->type.dtype == SGM_BFLOAT16) /* round it as memory would */
        value = sgm__source_format(w, "sgm_widen(sgm_narrow(%s))", value);
    sgm__source_line(w, "const %s v%d = %s;", sgm__source_type_name(w, node->type.dtype),
                     w->position_of[number], value);
}

bool sgm__source_has_formula(const sgm_op *op)
{
    return find_formula(op) != NULL || op == &sgm__op_cast;
}

static sgm_status check_formula(sgm__source_writer *w, int32_t number)
{
    const sgm_op *op = w->plan->nodes[number].op;
    char where[320];
    if (sgm__source_has_formula(op) || op == &sgm__op_random_uniform)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "%s: it cannot be written as C: only operations that come with the library, and what is "
                    "composed of them, can",
                    sgm__plan_describe(w->plan, number, where, sizeof where));
}

/* Whether all formulas of a step are known. */
static sgm_status check_step(sgm__source_writer *w, int32_t s)
{
    const sgm__step *step = &w->plan->steps[s];
    for (int32_t p = 0; p < step->count; p++)
        SGM_TRY(check_formula(w, w->plan->order[step->first + p]));
    return SGM_OK;
}

void sgm__source_write_members(sgm__source_writer *w, int32_t s, const sgm__source_walk *walk,
                               const char *const *index)
{
    const sgm__step *step = &w->plan->steps[s];
    for (int32_t p = 0; p < step->count; p++)
        write_member(w, s, w->plan->order[step->first + p], index, number_of(w, walk, index));
    for (int32_t p = 0; p < step->count; p++) {
        int32_t number = w->plan->order[step->first + p];
        if (w->plan->nodes[number].place.store != SGM__STORE_NONE)
            sgm__source_store(w, number, index, sgm__source_format(w, "v%d", p));
    }
}

sgm_status sgm__source_write_elementwise(sgm__source_writer *w, int32_t s)
{
    static const char *const variables[] = {"i", "j", "k", "l", "m", "n", "o", "p", "q", "r"};
    const char *index[SGM_MAX_RANK] = {NULL};
    sgm__source_walk walk;
    SGM_TRY(check_step(w, s));
    sgm__source_find_walk(w, s, &walk);
    declare_draws(w, &w->plan->steps[s]);
    for (int32_t i = 0; i < walk.count; i++)
        index[walk.axes[i]] = sgm__source_loop(w, variables[i], walk.sizes[i]);
    sgm__source_block(w);
    sgm__source_write_members(w, s, &walk, index);
    sgm__source_close(w, w->opened);
    return SGM_OK;
}
