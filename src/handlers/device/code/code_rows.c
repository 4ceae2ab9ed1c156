/* Softmax, layer norm, RMS norm, the cross entropy of softmax and their gradients: operations on rows of the
 * last axis.
 *
 * Each operation is a recipe: sums or maxima over the row, numbers computed from them, then the results. On
 * graphics cards a group computes a row, and sums over it with a tree in local memory; on a computer's own
 * processor one work-item does, with vectors. Sums are always added in the same order.
 */
#include "handlers/device/code/code_internal.h"

#define LANES 16 /* numbers of a VECTOR, on a computer's own processor */

/* One entry of a recipe. SUM and LARGEST make a variable from all elements of the row; neighbouring SUMs
 * share one pass over it. LET computes a variable from others. EACH computes the result's elements, ROW the
 * row's only result. */
typedef enum pass_kind { END, SUM, LARGEST, LET, EACH, ROW } pass_kind;

/* In texts, $a, $b and $c are elements of the first three operands, $C is the third operand's number for the
 * row, # the row's length and ! epsilon. */
typedef struct pass {
    pass_kind kind;
    const char *name, *text;
} pass;

#define MAXIMUM_PASSES 12
typedef struct recipe {
    const sgm_op *op;
    pass passes[MAXIMUM_PASSES];
} recipe;

/* Softmax subtracts the row's largest element, so that exp cannot overflow. */
#define LOWERED                                                                                              \
    {LARGEST, "m", "$a"},                                                                                    \
    {                                                                                                        \
        SUM, "s", "sgm_exp($a - m)"                                                                          \
    }
#define SCALE                                                                                                \
    {                                                                                                        \
        LET, "scale", "1 / sgm_sqrt(v / # + !)"                                                              \
    }
/* The variance from squared distances to the mean, which does not cancel as the mean of squares would. */
#define CENTRED {LET, "m", "t / #"}, {SUM, "v", "($a - m) * ($a - m)"}, SCALE
#define SQUARED                                                                                              \
    {                                                                                                        \
        SUM, "v", "$a * $a"                                                                                  \
    }
/* The second operand of the norms' gradients is the norm's result, the third its gradient. */
static const recipe recipes[] = {
    {&sgm__op_softmax, {LOWERED, {EACH, NULL, "sgm_exp($a - m) / s"}}},
    {&sgm__op_log_softmax, {LOWERED, {LET, "l", "sgm_log(s)"}, {EACH, NULL, "$a - m - l"}}},
    {&sgm__op_softmax_cross_entropy,
     {LOWERED,
      /* Everything is halved, as the distance of two numbers may be twice the largest float. */
      {LET, "h", "0.5f"},
      {LET, "l", "sgm_log(s)"},
      {SUM, "t", "$b == 0 ? $b : $b * ($a * h - m * h - l * h)"},
      {ROW, NULL, "-t / h"}}},
    {&sgm__op_softmax_cross_entropy_gradient,
     {LOWERED, {SUM, "t", "$b"}, {EACH, NULL, "(sgm_exp($a - m) / s * t - $b) * $C"}}},
    {&sgm__op_layer_norm, {{SUM, "t", "$a"}, CENTRED, {EACH, NULL, "($a - m) * scale"}}},
    {&sgm__op_layer_norm_gradient,
     {{SUM, "t", "$a"},
      {SUM, "u", "$c"},
      {SUM, "q", "$c * $b"},
      CENTRED,
      {LET, "mean", "u / #"},
      {LET, "share", "q / #"},
      {EACH, NULL, "($c - mean - $b * share) * scale"}}},
    {&sgm__op_rms_norm, {SQUARED, SCALE, {EACH, NULL, "$a * scale"}}},
    {&sgm__op_rms_norm_gradient,
     {SQUARED,
      {SUM, "q", "$c * $b"},
      SCALE,
      {LET, "share", "q / #"},
      {EACH, NULL, "($c - $b * share) * scale"}}},
};

/* What a recipe is written for: the node, the length of rows, the type of sums. */
typedef struct row {
    int32_t node;
    int64_t size;
    const char *type;
    uint32_t group; /* work-items of a row; 1 on a computer's own processor */
} row;

/* A text with operands and numbers filled in. `vectors`: $a, $b and $c are LANES neighbours as a vector. */
static const char *fill_in(sgm__device_render *r, const row *d, const char *text, bool vectors)
{
    sgm__source_writer *w = &r->writer;
    const sgm__node *node = sgm__device_node(r, d->node);
    sgm_dtype dtype = node->type.dtype == SGM_FLOAT64 ? SGM_FLOAT64 : SGM_FLOAT32;
    sgm__text out = {0};
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '#') {
            sgm__text_append(&out, "%s", sgm__source_number(w, dtype, (double)d->size));
        } else if (*c == '!') {
            sgm__text_append(&out, "%s", sgm__source_number(w, dtype, node->attributes.numbers[0]));
        } else if (*c != '$') {
            sgm__text_append_bytes(&out, c, 1);
        } else if (*++c == 'C') {
            sgm__text_append(&out, "%s", sgm__source_flat(w, sgm__source_operand(w, d->node, 2), "n"));
        } else {
            const char *begin;
            int32_t operand = sgm__source_operand(w, d->node, *c - 'a');
            if (vectors)
                sgm__text_append(&out, "LOAD_VECTOR(%s + row + e)",
                                 w->dialect->array(w, operand, false, &begin));
            else
                sgm__text_append(&out, "%s", sgm__source_flat(w, operand, "row + e"));
        }
    }
    w->failed = w->failed || out.failed;
    const char *filled = sgm__source_format(w, "%s", out.data != NULL ? out.data : "");
    sgm__text_free(&out);
    return filled;
}

/* A line that adds an element to a sum or compares it with a maximum, the variable `name`. */
static void add_element(sgm__device_render *r, const row *d, const pass *p, const char *name, bool vectors)
{
    sgm__source_writer *w = &r->writer;
    const char *value = fill_in(r, d, p->text, vectors);
    if (p->kind == SUM)
        sgm__source_line(w, "%s += %s;", name, value);
    else
        sgm__source_line(w, "%s = %s > %s ? %s : %s;", name, value, name, value, name);
}

static const char *beginning(const pass *p)
{
    return p->kind == SUM ? "0" : "-INFINITY";
}

/* --- a group for each row --- */

/* The head of a loop over the row's elements of this work-item. */
static void open_elements(sgm__device_render *r, const row *d)
{
    sgm__source_open(&r->writer, "for (int e = ITEM; e < %lld; e += %u)", (long long)d->size, d->group);
}

/* Lines that make one value of the work-items' values by a tree in local memory. The last barrier lets the
 * memory be used again. */
static void share_in_group(sgm__device_render *r, const row *d, const pass *p)
{
    sgm__source_writer *w = &r->writer;
    sgm__source_line(w, "shared[ITEM] = own_%s;", p->name);
    sgm__source_line(w, "BARRIER;");
    sgm__source_open(w, "for (int reach = %u; reach > 0; reach /= 2)", d->group / 2);
    sgm__source_line(w, "if (ITEM < reach)");
    if (p->kind == SUM)
        sgm__source_line(w, "    shared[ITEM] += shared[ITEM + reach];");
    else
        sgm__source_line(w, "    shared[ITEM] = shared[ITEM + reach] > shared[ITEM] ? shared[ITEM + reach] : "
                            "shared[ITEM];");
    sgm__source_line(w, "BARRIER;");
    sgm__source_close(&r->writer, 1);
    sgm__source_line(w, "const %s %s = shared[0];", d->type, p->name);
    sgm__source_line(w, "BARRIER;");
}

/* Lines for `count` sums, or one maximum, in one pass over the row by a group. */
static void gather_in_group(sgm__device_render *r, const row *d, const pass *first, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        sgm__source_line(&r->writer, "%s own_%s = %s;", d->type, first[i].name, beginning(&first[i]));
    open_elements(r, d);
    for (int32_t i = 0; i < count; i++)
        add_element(r, d, &first[i], sgm__source_format(&r->writer, "own_%s", first[i].name), false);
    sgm__source_close(&r->writer, 1);
    for (int32_t i = 0; i < count; i++)
        share_in_group(r, d, &first[i]);
}

/* --- a work-item for each row, with vectors --- */

/* bfloat16 is converted element by element, which vectors cannot do. */
static bool has_vectors(const sgm__device_render *r, const row *d)
{
    bool all = d->size >= LANES;
    for (int32_t k = 0; k < sgm__device_node(r, d->node)->input_count; k++)
        all = all && sgm__device_operand(r, d->node, k)->type.dtype != SGM_BFLOAT16;
    return all;
}

/* The same by one work-item: LANES partial values as a vector, the elements behind the last whole vector,
 * then the lanes in order. */
static void gather_in_lanes(sgm__device_render *r, const row *d, const pass *first, int32_t count)
{
    sgm__source_writer *w = &r->writer;
    bool vectors = has_vectors(r, d);
    for (int32_t i = 0; i < count; i++) {
        sgm__source_line(w, "%s %s = %s;", d->type, first[i].name, beginning(&first[i]));
        if (vectors)
            sgm__source_line(w, "VECTOR(%s) all_%s = %s;", d->type, first[i].name, beginning(&first[i]));
    }
    if (vectors) {
        sgm__source_open(w, "for (int e = 0; e < %lld; e += %d)", (long long)(d->size / LANES * LANES),
                         LANES);
        for (int32_t i = 0; i < count; i++)
            add_element(r, d, &first[i], sgm__source_format(w, "all_%s", first[i].name), true);
        sgm__source_close(&r->writer, 1);
    }
    sgm__source_open(w, "for (int e = %lld; e < %lld; e++)",
                     (long long)(vectors ? d->size / LANES * LANES : 0), (long long)d->size);
    for (int32_t i = 0; i < count; i++)
        add_element(r, d, &first[i], first[i].name, false);
    sgm__source_close(&r->writer, 1);
    for (int32_t i = 0; i < count && vectors; i++) {
        const char *name = first[i].name;
        sgm__source_line(w, "STORE_VECTOR(all_%s, lanes);", name);
        sgm__source_line(w, "for (int l = 0; l < %d; l++)", LANES);
        if (first[i].kind == SUM)
            sgm__source_line(w, "    %s += lanes[l];", name);
        else
            sgm__source_line(w, "    %s = lanes[l] > %s ? lanes[l] : %s;", name, name, name);
    }
}

/* --- the kernel --- */

/* Lines for the result's elements. */
static void write_each(sgm__device_render *r, const row *d, const pass *p)
{
    sgm__source_writer *w = &r->writer;
    const char *begin;
    int64_t from = 0;
    if (d->group > 1) {
        open_elements(r, d);
    } else {
        if (has_vectors(r, d)) {
            from = d->size / LANES * LANES;
            sgm__source_line(w, "for (int e = 0; e < %lld; e += %d)", (long long)from, LANES);
            const char *value = fill_in(r, d, p->text, true);
            sgm__source_line(w, "    STORE_VECTOR(%s, %s + row + e);", value,
                             w->dialect->array(w, d->node, true, &begin));
        }
        sgm__source_open(w, "for (int e = %lld; e < %lld; e++)", (long long)from, (long long)d->size);
    }
    sgm__source_store_flat(w, d->node, "row + e", fill_in(r, d, p->text, false));
    sgm__source_close(&r->writer, 1);
}

/* Lines for the row's only result, which one work-item of the group writes. */
static void write_row(sgm__device_render *r, const row *d, const char *value)
{
    if (d->group > 1)
        sgm__source_line(&r->writer, "if (ITEM == 0)");
    r->writer.depth += d->group > 1;
    sgm__source_store_flat(&r->writer, d->node, "n", value);
    r->writer.depth -= d->group > 1;
}

/* How many sums from here on are made in one pass. */
static int32_t together(const pass *first)
{
    int32_t count = 1;
    while (first->kind == SUM && first[count].kind == SUM)
        count++;
    return count;
}

static void write_passes(sgm__device_render *r, const row *d, const recipe *made)
{
    sgm__source_writer *w = &r->writer;
    for (const pass *p = made->passes; p < made->passes + MAXIMUM_PASSES && p->kind != END; p++) {
        if (p->kind == SUM || p->kind == LARGEST) {
            int32_t count = together(p);
            if (d->group > 1)
                gather_in_group(r, d, p, count);
            else
                gather_in_lanes(r, d, p, count);
            p += count - 1;
        } else if (p->kind == LET) {
            sgm__source_line(w, "const %s %s = %s;", d->type, p->name, fill_in(r, d, p->text, false));
        } else if (p->kind == EACH) {
            write_each(r, d, p);
        } else {
            write_row(r, d, fill_in(r, d, p->text, false));
        }
    }
}

/* A group has 32 work-items, or more, up to SGM__DEVICE_GROUP, as long as each has at least two elements. */
sgm_status sgm__device_write_rows(sgm__device_render *r, int32_t number)
{
    sgm__source_writer *w = &r->writer;
    const sgm_type *x = &sgm__device_operand(r, number, 0)->type;
    const recipe *made = recipes;
    while (made->op != sgm__device_node(r, number)->op)
        made++;
    row d = {.node = number,
             .size = x->shape.dims[x->shape.rank - 1],
             .type = sgm__source_type_name(w, x->dtype),
             .group = r->info->is_processor ? 1 : 32};
    while (!r->info->is_processor && d.group < SGM__DEVICE_GROUP && d.group < r->info->group &&
           4 * d.group <= d.size)
        d.group *= 2;
    sgm__device_begin(r);
    sgm__device_groups(r, "n", sgm_shape_elements(&x->shape) / d.size, d.group);
    sgm__source_line(w, "const %s row = n * %lld;", sgm__device_counter(r), (long long)d.size);
    if (d.group > 1)
        sgm__source_line(w, "LOCAL %s shared[%u];", d.type, d.group);
    else if (has_vectors(r, &d))
        sgm__source_line(w, "%s lanes[%d];", d.type, LANES);
    write_passes(r, &d, made);
    return sgm__device_end(r);
}
