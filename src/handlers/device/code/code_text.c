/* The text of kernels: parameters, numbers of work-items, and how elements are loaded and stored (the dialect
 * of devices).
 *
 * Sizes and strides are numbers in the text, while where values lie comes as parameters, so that equal layers
 * share kernels. A pointer is declared restrict unless it overlaps with another one that is written. Two
 * kernels with equal text and group size are one.
 */
#include "handlers/device/code/code_internal.h"

static sgm__device_render *render_of(sgm__source_writer *w)
{
    return (sgm__device_render *)w;
}

const char *sgm__device_counter(const sgm__device_render *r)
{
    return r->writer.dialect->counter;
}

/* The type of an element in memory; what it is computed in is sgm__source_type_name. */
static const char *memory_type(sgm_dtype dtype)
{
    switch ((int)dtype) {
    case SGM_FLOAT32:
        return "float";
    case SGM_FLOAT64:
        return "double";
    case SGM_BFLOAT16:
        return "uint16_t";
    case SGM_INT64:
        return "int64_t";
    case SGM_INT32:
        return "int32_t";
    default:
        return "uint8_t";
    }
}

/* --- parameters --- */

static const char *const names[SGM__DEVICE_PARAMETERS] = {
    "x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10", "x11", "x12", "x13", "x14",
    "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29",
    "x30", "x31", "x32", "x33", "x34", "x35", "x36", "x37", "x38", "x39", "x40", "x41", "x42", "x43", "x44",
    "x45", "x46", "x47", "x48", "x49", "x50", "x51", "x52", "x53", "x54", "x55", "x56", "x57", "x58", "x59"};

/* Whether two parameters are the same pointer: equal kind, type and place. */
static bool is_same(const sgm__device_parameter *a, const sgm__device_parameter *b)
{
    if (a->argument.kind != b->argument.kind || strcmp(a->type, b->type) != 0)
        return false;
    if (a->place == NULL || b->place == NULL)
        return a->argument.offset == b->argument.offset;
    return a->place->store == b->place->store && a->place->index == b->place->index &&
           a->place->offset == b->place->offset;
}

/* The name of a parameter, which is added if it is new. Too many parameters make the step fail. */
static const char *add_parameter(sgm__device_render *r, const sgm__device_parameter *added)
{
    for (int32_t i = 0; i < r->parameter_count; i++) {
        sgm__device_parameter *known = &r->parameters[i];
        if (!is_same(known, added))
            continue;
        known->written = known->written || added->written;
        known->span.first = sgm__minimum(known->span.first, added->span.first);
        known->span.last = known->span.last > added->span.last ? known->span.last : added->span.last;
        return names[i];
    }
    if (r->parameter_count == SGM__DEVICE_PARAMETERS) {
        r->writer.failed = true;
        return names[0];
    }
    r->parameters[r->parameter_count] = *added;
    return names[r->parameter_count++];
}

/* The pointer to a node's memory begins at its first element, so no offset is written into the text. */
static const char *array(sgm__source_writer *w, int32_t number, bool written, const char **begin)
{
    const sgm__node *node = &w->plan->nodes[number];
    sgm__device_parameter added = {.argument = {.kind = SGM__DEVICE_NODE, .node = number},
                                   .type = memory_type(node->type.dtype),
                                   .place = &node->place,
                                   .span = sgm__node_span(node),
                                   .written = written};
    *begin = NULL;
    w->failed = w->failed || node->place.store == SGM__STORE_NONE;
    return add_parameter(render_of(w), &added);
}

const char *sgm__device_scratch(sgm__device_render *r, int64_t offset, const char *type, bool written)
{
    return add_parameter(
        r, &(sgm__device_parameter){.argument = {.kind = SGM__DEVICE_SCRATCH, .node = -1, .offset = offset},
                                    .type = type,
                                    .written = written});
}

int64_t sgm__device_take_scratch(sgm__device_render *r, int64_t bytes)
{
    int64_t offset = r->scratch;
    r->scratch = (r->scratch + bytes + 255) / 256 * 256;
    if (r->scratch > r->code->scratch_bytes)
        r->code->scratch_bytes = r->scratch;
    return offset;
}

const char *sgm__device_fault(sgm__device_render *r)
{
    return add_parameter(r, &(sgm__device_parameter){.argument = {.kind = SGM__DEVICE_FAULT, .node = -1},
                                                     .type = "int32_t",
                                                     .written = true});
}

/* A constant number, unless a user may change it between equal plans: that would be another text for each
 * value. */
static const char *known(sgm__source_writer *w, int32_t number)
{
    return w->plan->nodes[number].place.live ? NULL : sgm__source_constant(w, number);
}

/* --- work-items --- */

/* With one group there is nothing to multiply; work-items behind the last return at once, so such kernels
 * must not have barriers. */
void sgm__device_items(sgm__device_render *r, const char *variable, int64_t count)
{
    const char *counter = sgm__device_counter(r);
    uint32_t group = r->info->group < SGM__DEVICE_GROUP ? r->info->group : SGM__DEVICE_GROUP;
    r->group = count < group ? (uint32_t)count : group;
    r->groups = (count + r->group - 1) / r->group;
    if (r->groups == 1)
        sgm__source_line(&r->writer, "const %s %s = ITEM;", counter, variable);
    else
        sgm__source_line(&r->writer, "const %s %s = (%s)GROUP * %u + ITEM;", counter, variable, counter,
                         r->group);
    if (count % r->group != 0) {
        sgm__source_line(&r->writer, "if (%s >= %lld)", variable, (long long)count);
        sgm__source_line(&r->writer, "    return;");
    }
}

void sgm__device_groups(sgm__device_render *r, const char *variable, int64_t count, uint32_t group)
{
    r->group = group;
    r->groups = count;
    if (variable != NULL)
        sgm__source_line(&r->writer, "const %s %s = GROUP;", sgm__device_counter(r), variable);
}

/* The axes of a shape by the bits in `axes` that are longer than 1. */
sgm__source_walk sgm__device_walk(const sgm_shape *shape, uint32_t axes)
{
    sgm__source_walk walk = {0};
    for (int32_t i = 0; i < shape->rank; i++)
        if ((axes >> i & 1) != 0 && shape->dims[i] != 1) {
            walk.axes[walk.count] = i;
            walk.sizes[walk.count++] = shape->dims[i];
        }
    return walk;
}

/* Lines that take a row-major number apart into the indices of a walk's axes. The first axis needs no
 * remainder, the last no division. */
void sgm__device_unravel(sgm__device_render *r, const char *number, const sgm__source_walk *walk,
                         const char **index)
{
    static const char *const variables[] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"};
    const char *counter = sgm__device_counter(r);
    int64_t below = 1;
    if (walk->count == 1)
        index[walk->axes[0]] = number;
    for (int32_t i = walk->count; i-- > 0 && walk->count > 1;) {
        const char *variable = variables[walk->axes[i]];
        index[walk->axes[i]] = variable;
        if (i == 0)
            sgm__source_line(&r->writer, "const %s %s = %s / %lld;", counter, variable, number,
                             (long long)below);
        else if (below == 1)
            sgm__source_line(&r->writer, "const %s %s = %s %% %lld;", counter, variable, number,
                             (long long)walk->sizes[i]);
        else
            sgm__source_line(&r->writer, "const %s %s = %s / %lld %% %lld;", counter, variable, number,
                             (long long)below, (long long)walk->sizes[i]);
        below *= walk->sizes[i];
    }
}

/* Loops over independent results become work-items: one for each element of the axes. */
static void turns(sgm__source_writer *w, const sgm_shape *shape, uint32_t axes, const char **index)
{
    sgm__device_render *r = render_of(w);
    sgm__source_walk walk = sgm__device_walk(shape, axes);
    int64_t count = 1;
    for (int32_t i = 0; i < walk.count; i++)
        count *= walk.sizes[i];
    sgm__device_items(r, "n", count);
    sgm__device_unravel(r, "n", &walk, index);
}

/* One call of Philox gives four words, for four neighbouring elements. */
void sgm__device_draw_four(sgm__device_render *r, int32_t node, const char *number)
{
    static const char *const none[SGM_MAX_RANK];
    sgm__source_writer *w = &r->writer;
    const char *seed = sgm__source_element(w, sgm__source_operand(w, node, 0), none);
    const char *step = sgm__source_element(w, sgm__source_operand(w, node, 1), none);
    sgm__source_need(w, SGM__SOURCE_DRAW);
    sgm__source_line(w, "uint32_t words%d[4];", node);
    sgm__source_line(w, "sgm_draw((uint64_t)%s, (uint64_t)%s, %lldu, (uint64_t)%s / 4, words%d);", seed, step,
                     (long long)w->plan->nodes[node].attributes.integers[0], number, node);
}

/* Outside of such a loop of four each element draws its block of four words and takes its own. */
static const char *draw(sgm__source_writer *w, int32_t node, const char *number)
{
    static const char *const none[SGM_MAX_RANK];
    if (render_of(w)->in_fours)
        return sgm__source_format(w, "(%s)(words%d[u] >> 8) / 16777216",
                                  sgm__source_type_name(w, w->plan->nodes[node].type.dtype), node);
    const char *seed = sgm__source_element(w, sgm__source_operand(w, node, 0), none);
    const char *step = sgm__source_element(w, sgm__source_operand(w, node, 1), none);
    sgm__source_need(w, SGM__SOURCE_DRAW);
    return sgm__source_format(w, "(%s)(sgm_word((uint64_t)%s, (uint64_t)%s, %lldu, %s) >> 8) / 16777216",
                              sgm__source_type_name(w, w->plan->nodes[node].type.dtype), seed, step,
                              (long long)w->plan->nodes[node].attributes.integers[0],
                              number != NULL ? number : "0");
}

static const sgm__source_dialect short_indices = {
    .counter = "int", .array = array, .known = known, .draw = draw, .turns = turns};
static const sgm__source_dialect long_indices = {
    .counter = "int64_t", .array = array, .known = known, .draw = draw, .turns = turns};

/* Whether a node has so many elements, or spans so many, that numbers do not fit into int. The last group's
 * work-items may have numbers a little behind the last element. */
static bool is_long(const sgm__node *node)
{
    int64_t maximum = INT32_MAX - (1 << 20);
    sgm__span span = sgm__node_span(node);
    return sgm_shape_elements(&node->type.shape) > maximum ||
           (span.last - span.first) / (int64_t)sgm_dtype_size(node->type.dtype) > maximum;
}

const sgm__source_dialect *sgm__device_dialect(const sgm__plan *plan)
{
    for (int32_t i = 0; i < plan->node_count; i++)
        if (is_long(&plan->nodes[i]))
            return &long_indices;
    return &short_indices;
}

/* --- kernels --- */

void sgm__device_begin(sgm__device_render *r)
{
    sgm__text_free(&r->writer.text);
    r->writer.text = (sgm__text){0};
    r->writer.depth = 1;
    r->writer.opened = 0;
    r->parameter_count = 0;
    r->in_fours = false;
    r->groups = 1;
    r->group = 1;
}

/* Whether a parameter shares bytes with another one, and one of the two is written: then the compiler must
 * keep the order of accesses. */
static bool overlaps(const sgm__device_render *r, int32_t number)
{
    const sgm__device_parameter *a = &r->parameters[number];
    for (int32_t i = 0; i < r->parameter_count; i++) {
        const sgm__device_parameter *b = &r->parameters[i];
        if (i == number || a->place == NULL || b->place == NULL || (!a->written && !b->written))
            continue;
        if (a->place->store == b->place->store && a->place->index == b->place->index &&
            a->span.first < b->span.last && b->span.first < a->span.last)
            return true;
    }
    return false;
}

static bool writes_state(const sgm__device_render *r)
{
    for (int32_t i = 0; i < r->parameter_count; i++) {
        const sgm__device_parameter *p = &r->parameters[i];
        if (p->written && p->place != NULL && p->place->store == SGM__STORE_STATE)
            return true;
    }
    return false;
}

static bool is_of_name(char c)
{
    return sgm__is_alphanumeric(c) || c == '_';
}

/* Whether the text contains a name as a whole identifier. */
static bool has_name(const char *text, const char *name, size_t length)
{
    for (const char *at = text; *at != '\0'; at++)
        if (strncmp(at, name, length) == 0 && !is_of_name(at[length]) && (at == text || !is_of_name(at[-1])))
            return true;
    return false;
}

/* The name that a line "const TYPE NAME = ...;" declares; NULL: the line does something else or declares more
 * than one. */
static const char *declared(const char *line, size_t *length)
{
    line += strspn(line, " ");
    if (strncmp(line, "const ", 6) != 0)
        return NULL;
    const char *equals = strstr(line, " = "), *end = strchr(line, '\n');
    const char *second = equals != NULL ? strstr(equals + 1, " = ") : NULL;
    if (equals == NULL || equals > end || (second != NULL && second < end))
        return NULL;
    const char *name = equals;
    while (name[-1] != ' ' && name[-1] != '*')
        name--;
    *length = (size_t)(equals - name);
    return name;
}

/* Drops lines that declare a variable which no later line reads: writers give each axis a variable, though
 * some are not used. Goes from the last line to the first, as dropping one may make another unread. The
 * result is in `kept`, which has room for the whole body, and is filled from its end. */
static const char *drop_unread(const char *body, size_t length, char *kept)
{
    char *first = kept + length;
    *first = '\0';
    while (length > 0) {
        size_t begin = length - 1, name_length;
        while (begin > 0 && body[begin - 1] != '\n')
            begin--;
        const char *name = declared(body + begin, &name_length);
        if (name == NULL || has_name(first, name, name_length)) {
            first -= length - begin;
            memcpy(first, body + begin, length - begin);
        }
        length = begin;
    }
    return first;
}

/* Appends "(PLACE(p0), ...) { ... }". `fault`: the fault words, which must be 0 for the kernel to do
 * anything; NULL: it always runs. */
static void write_kernel(const sgm__device_render *r, const char *fault, sgm__text *text)
{
    sgm__text_append(text, "(");
    for (int32_t i = 0; i < r->parameter_count; i++)
        sgm__text_append(text, "%sPLACE(p%d)", i > 0 ? ", " : "", i);
    sgm__text_append(text, ")\n{\n");
    for (int32_t i = 0; i < r->parameter_count; i++) {
        const sgm__device_parameter *p = &r->parameters[i];
        const char *constant = p->written ? "" : "const ";
        if (overlaps(r, i)) /* volatile, as pointers of different types may share memory */
            sgm__text_append(text, "    volatile GLOBAL %s%s *const x%d = POINTER(%s%s, p%d);\n", constant,
                             p->type, i, constant, p->type, i);
        else
            sgm__text_append(text, "    GLOBAL %s%s *const RESTRICT x%d = POINTER(%s%s, p%d);\n", constant,
                             p->type, i, constant, p->type, i);
    }
    if (fault != NULL)
        sgm__text_append(text, "    if (*%s != 0)\n        return;\n", fault);
    const sgm__text *body = &r->writer.text;
    char *kept = sgm__alloc(body->length + 1);
    text->failed = text->failed || kept == NULL;
    if (kept != NULL && body->length > 0)
        sgm__text_append(text, "%s", drop_unread(body->data, body->length, kept));
    sgm__text_append(text, "}\n\n");
    sgm__free(kept);
}

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a, by Fowler, Noll and Vo */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001B3u;
    return hash;
}

/* Adds the kernel unless an equal one exists; *number is its number. The name is not part of the
 * comparison. */
static sgm_status add_kernel(sgm__device_render *r, const sgm__text *text, int32_t *number)
{
    sgm__device_kernel added = {
        .hash = hash_of(text->data, text->length), .length = text->length, .group = r->group};
    for (int32_t i = 0; i < r->code->kernel_count; i++) {
        const sgm__device_kernel *k = &r->kernels[i];
        if (k->hash == added.hash && k->length == added.length && k->group == added.group &&
            memcmp(r->kernels_text.data + k->offset, text->data, text->length) == 0) {
            *number = i;
            return SGM_OK;
        }
    }
    *number = r->code->kernel_count;
    SGM_TRY(sgm__reserve(&r->kernels, &r->kernel_capacity, (size_t)*number + 1, sizeof *r->kernels));
    added.begin = r->kernels_text.length;
    sgm__text_append(&r->kernels_text, "/* %s */\nKERNEL(%u) sgm_k%d", r->about, r->group, *number);
    added.offset = r->kernels_text.length;
    sgm__text_append_bytes(&r->kernels_text, text->data, text->length);
    r->kernels[r->code->kernel_count++] = added;
    return SGM_OK;
}

/* Adds a launch of the kernel with the present parameters as arguments. */
static sgm_status add_call(sgm__device_render *r, int32_t kernel)
{
    size_t arguments = (size_t)r->argument_count + (size_t)r->parameter_count;
    SGM_TRY(sgm__reserve(&r->code->calls, &r->call_capacity, (size_t)r->call_count + 1,
                         sizeof(sgm__device_call)));
    SGM_TRY(sgm__reserve(&r->code->arguments, &r->argument_capacity, arguments + 1,
                         sizeof(sgm__device_argument)));
    r->code->calls[r->call_count++] = (sgm__device_call){.kernel = kernel,
                                                         .groups = (uint32_t)r->groups,
                                                         .group = r->group,
                                                         .first_argument = r->argument_count,
                                                         .argument_count = r->parameter_count};
    for (int32_t i = 0; i < r->parameter_count; i++)
        r->code->arguments[r->argument_count++] = r->parameters[i].argument;
    return SGM_OK;
}

sgm_status sgm__device_end(sgm__device_render *r)
{
    sgm__source_close(&r->writer, r->writer.opened);
    const char *fault = r->can_fault && writes_state(r) ? sgm__device_fault(r) : NULL;
    r->writer.failed = r->writer.failed || r->groups > INT32_MAX;
    if (r->writer.failed) /* write_step in code.c leaves the step to the host */
        return SGM_OK;
    sgm__text text = {0};
    int32_t kernel;
    write_kernel(r, fault, &text);
    sgm_status status = text.failed || r->writer.text.failed ? SGM_ERROR_MEMORY : SGM_OK;
    if (status == SGM_OK)
        status = add_kernel(r, &text, &kernel);
    sgm__text_free(&text);
    return status == SGM_OK ? add_call(r, kernel) : status;
}
