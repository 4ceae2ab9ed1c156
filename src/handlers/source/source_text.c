/* Expressions and statements of C: numbers, elements of arrays, loops; and the dialect of C.
 *
 * Every expression is a string in one of the writer's rooms, a ring (sgm__source_format): no memory is to be
 * freed, and an expression lives long enough to become part of a line. An index expression NULL means 0, so
 * that axes of length 1 leave nothing in the text. The dialect of devices is in
 * handlers/device/code/code_text.c.
 */
#include "handlers/source/source.h"
#include "tensor/tensor_internal.h"

#include <math.h>
#include <stdio.h>

const char *sgm__source_format(sgm__source_writer *w, const char *format, ...)
{
    char *room = w->rooms[w->next_room++ % SGM__SOURCE_ROOMS];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(room, SGM__SOURCE_ROOM, format, arguments);
    va_end(arguments);
    w->failed = w->failed || length < 0 || length >= SGM__SOURCE_ROOM;
    return room;
}

/* A line may have several expressions, hence its larger buffer. */
static void write_line(sgm__source_writer *w, const char *format, va_list arguments, const char *end)
{
    char line[4 * SGM__SOURCE_ROOM];
    int length = vsnprintf(line, sizeof line, format, arguments);
    w->failed = w->failed || length < 0 || (size_t)length >= sizeof line;
    sgm__text_append(&w->text, "%*s%s%s\n", 4 * w->depth, "", line, end);
}

void sgm__source_line(sgm__source_writer *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(w, format, arguments, "");
    va_end(arguments);
}

void sgm__source_need(sgm__source_writer *w, sgm__source_function function)
{
    w->functions |= (uint32_t)1 << function;
}

int32_t sgm__source_operand(const sgm__source_writer *w, int32_t node, int32_t number)
{
    return w->plan->operands[w->plan->nodes[node].first_input + number];
}

/* --- blocks --- */

void sgm__source_open(sgm__source_writer *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(w, format, arguments, " {");
    va_end(arguments);
    w->depth++;
    w->opened++;
}

/* A loop of one turn would only add noise to the text. */
const char *sgm__source_loop(sgm__source_writer *w, const char *variable, int64_t count)
{
    if (count == 1)
        return NULL;
    sgm__source_open(w, "for (%s %s = 0; %s < %lld; %s++)", w->dialect->counter, variable, variable,
                     (long long)count, variable);
    return variable;
}

void sgm__source_block(sgm__source_writer *w)
{
    if (w->opened > 0)
        return;
    sgm__source_line(w, "{");
    w->depth++;
    w->opened++;
}

void sgm__source_close(sgm__source_writer *w, int32_t count)
{
    for (; count > 0; count--) {
        w->depth--;
        w->opened--;
        sgm__source_line(w, "}");
    }
}

int32_t sgm__source_loops(sgm__source_writer *w, const sgm_shape *shape, int32_t first, int32_t count,
                          const char **index)
{
    static const char *const variables[] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"};
    _Static_assert(sizeof variables / sizeof *variables == SGM_MAX_RANK, "a variable for each axis");
    int32_t before = w->opened;
    for (int32_t i = first; i < first + count; i++)
        index[i] = sgm__source_loop(w, variables[i], shape->dims[i]);
    return w->opened - before;
}

/* Devices make work-items of turns; C nests loops. */
void sgm__source_turns(sgm__source_writer *w, const sgm_shape *shape, uint32_t axes, const char **index)
{
    if (w->dialect->turns != NULL) {
        w->dialect->turns(w, shape, axes, index);
        return;
    }
    for (int32_t i = 0; i < shape->rank; i++)
        if ((axes >> i & 1) != 0)
            sgm__source_loops(w, shape, i, 1, index);
}

/* --- types and numbers --- */

/* bfloat16 is computed in float; the smallest integers are unsigned char. */
const char *sgm__source_type_name(const sgm__source_writer *w, sgm_dtype dtype)
{
    if (dtype == w->request->real)
        return w->real;
    switch ((int)dtype) {
    case SGM_FLOAT32:
    case SGM_BFLOAT16:
        return "float";
    case SGM_FLOAT64:
        return "double";
    case SGM_INT64:
        return "int64_t";
    case SGM_INT32:
        return "int32_t";
    default:
        return "unsigned char";
    }
}

/* The fewest digits that read back as this float: 9 always do. printf may write a comma, by the locale. */
static void float_text(float value, char *buffer, size_t size)
{
    double again;
    for (int digits = 6; digits <= 9; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        for (char *c = text; *c != '\0'; c++)
            if (*c == ',') /* a locale's decimal point */
                *c = '.';
        snprintf(buffer, size, "%s", text);
        if (sgm__parse_double(text, &again) && (float)again == value)
            return;
    }
}

/* NaN and infinity are written as divisions, for which no header is needed. */
const char *sgm__source_number(sgm__source_writer *w, sgm_dtype dtype, double value)
{
    char text[40];
    const char *end = dtype == SGM_FLOAT64 ? "" : "f";
    if (isnan(value))
        return sgm__source_format(w, "(0.0%s / 0.0%s)", end, end);
    if (isinf(value))
        return sgm__source_format(w, "(%s1.0%s / 0.0%s)", value < 0 ? "-" : "", end, end);
    if (dtype != SGM_FLOAT64)
        float_text((float)value, text, sizeof text);
    else
        sgm__number_text(value, text, sizeof text);
    const char *point = strpbrk(text, ".e") != NULL ? "" : ".0";
    return sgm__source_format(w, value < 0 ? "(%s%s%s)" : "%s%s%s", text, point, end);
}

/* Integers do not go through double, which does not hold every int64; the smallest cannot be written as one
 * number in C. */
const char *sgm__source_literal(sgm__source_writer *w, sgm_dtype dtype, const void *element)
{
    int64_t whole;
    if (sgm_dtype_is_float(dtype))
        return sgm__source_number(w, dtype, sgm__element_load(dtype, element));
    sgm__element_convert(SGM_INT64, &whole, dtype, element);
    if (whole == INT64_MIN)
        return "(-9223372036854775807 - 1)";
    return sgm__source_format(w, whole < 0 ? "(%lld)" : "%lld", (long long)whole);
}

/* --- elements --- */

/* An expression with a sum or a choice is put in brackets. */
const char *sgm__source_times(sgm__source_writer *w, const char *a, int64_t factor)
{
    if (a == NULL || factor == 0)
        return NULL;
    if (factor == 1)
        return a;
    bool simple = strpbrk(a, " ?") == NULL;
    return sgm__source_format(w, simple ? "%s * %lld" : "(%s) * %lld", a, (long long)factor);
}

const char *sgm__source_plus(sgm__source_writer *w, const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    return sgm__source_format(w, "%s + %s", a, b);
}

/* Whether all elements are one number in memory. */
static bool is_single(const sgm__node *node)
{
    for (int32_t i = 0; i < node->type.shape.rank; i++)
        if (node->type.shape.dims[i] != 1 && node->place.strides[i] != 0)
            return false;
    return true;
}

const char *sgm__source_constant(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = &w->plan->nodes[number];
    if (node->place.store != SGM__STORE_CONSTANT || !is_single(node))
        return NULL;
    return sgm__source_literal(w, node->type.dtype, w->plan->constants + node->place.offset);
}

/* In C a value is an array (the union's member of its type, a parameter, a state, a constant) and an offset.
 * If the type of numbers may be wider than planned, NAME_SCALE stands before offsets of other types: those of
 * reals are counted in elements anyway. */
static const char *array_of(sgm__source_writer *w, int32_t number, bool written, const char **begin)
{
    (void)written;
    const sgm__node *node = &w->plan->nodes[number];
    const char *name = w->request->name;
    int64_t first = node->place.offset / (int64_t)sgm_dtype_size(node->type.dtype);
    bool scaled = false;
    switch (node->place.store) {
    case SGM__STORE_ARENA:
        scaled = node->type.dtype != w->request->real && w->request->real == SGM_FLOAT32;
        name = sgm__source_format(w, "%s_memory.%c", name,
                                  node->type.dtype == w->request->real ? 'r'
                                  : node->type.dtype == SGM_FLOAT32    ? 'f'
                                  : node->type.dtype == SGM_FLOAT64    ? 'd'
                                  : node->type.dtype == SGM_INT64      ? 'l'
                                  : node->type.dtype == SGM_INT32      ? 'i'
                                                                       : 'b');
        break;
    case SGM__STORE_INPUT:
        w->inputs[node->place.index] = true;
        name = w->program->inputs[node->place.index].name;
        break;
    case SGM__STORE_STATE:
        name = sgm__source_format(w, "%s_%s", name, w->states[node->place.index]);
        break;
    case SGM__STORE_CONSTANT: {
        int32_t root = sgm__plan_root(w->plan, number);
        w->constants[root] = true;
        first -= w->plan->nodes[root].place.offset / (int64_t)sgm_dtype_size(node->type.dtype);
        name = sgm__source_format(w, "%s_%s_%d", name, w->program->function, root);
        break;
    }
    case SGM__STORE_NONE:
        w->failed = true;
        break;
    }
    *begin = first == 0 ? NULL
             : scaled   ? sgm__source_format(w, "%s_SCALE * %lld", w->capitals, (long long)first)
                        : sgm__source_format(w, "%lld", (long long)first);
    return name;
}

/* Parameters that are numbers or expressions, and constants with one value. */
static const char *known_number(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = &w->plan->nodes[number];
    if (node->place.store == SGM__STORE_INPUT) {
        const sgm__source_input *input = &w->program->inputs[node->place.index];
        w->inputs[node->place.index] = true;
        w->functions |= input->functions;
        return input->number || input->expression ? input->name : NULL;
    }
    return sgm__source_constant(w, number);
}

static const char *draw(sgm__source_writer *w, int32_t node, const char *number)
{
    return sgm__source_draw(w, node, number);
}

const sgm__source_dialect sgm__source_c = {
    .counter = "long", .array = array_of, .known = known_number, .draw = draw};

/* An element as it lies in memory: by an index for each axis, or by the expression for its number. */
static const char *place_of(sgm__source_writer *w, int32_t number, bool written, const char *const *index,
                            const char *expression)
{
    const sgm__node *node = &w->plan->nodes[number];
    const char *at, *array = w->dialect->array(w, number, written, &at);
    for (int32_t i = 0; i < node->type.shape.rank && index != NULL; i++)
        at = sgm__source_plus(w, at, sgm__source_times(w, index[i], node->place.strides[i]));
    at = sgm__source_plus(w, at, expression);
    return sgm__source_format(w, "%s[%s]", array, at != NULL ? at : "0");
}

/* An element to compute with; on devices bfloat16 is widened to float. */
static const char *load(sgm__source_writer *w, int32_t number, const char *const *index,
                        const char *expression)
{
    const char *known = w->dialect->known(w, number);
    if (known != NULL)
        return known;
    const char *place = place_of(w, number, false, index, expression);
    bool half = w->plan->nodes[number].type.dtype == SGM_BFLOAT16;
    return half ? sgm__source_format(w, "sgm_widen(%s)", place) : place;
}

/* A line that stores an element, narrowed to bfloat16 if need be. */
static void store(sgm__source_writer *w, int32_t number, const char *place, const char *value)
{
    bool half = w->plan->nodes[number].type.dtype == SGM_BFLOAT16;
    sgm__source_line(w, half ? "%s = sgm_narrow(%s);" : "%s = %s;", place, value);
}

const char *sgm__source_element(sgm__source_writer *w, int32_t number, const char *const *index)
{
    return load(w, number, index, NULL);
}

const char *sgm__source_flat(sgm__source_writer *w, int32_t number, const char *expression)
{
    return load(w, number, NULL, expression);
}

void sgm__source_store(sgm__source_writer *w, int32_t number, const char *const *index, const char *value)
{
    store(w, number, place_of(w, number, true, index, NULL), value);
}

void sgm__source_store_flat(sgm__source_writer *w, int32_t number, const char *expression, const char *value)
{
    store(w, number, place_of(w, number, true, NULL, expression), value);
}
