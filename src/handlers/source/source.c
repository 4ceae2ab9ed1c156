/* Writes the file of C: interface, memory, states, constants, functions, and one C function for each program.
 *
 * sgm__source_write is the entry. The bodies of all programs are written first, since only they show which
 * constants and functions are needed; then the file is put together in order. Its first part, up to
 * NAME_DECLARATIONS, also serves as a header. Values lie in one static union where the plan has placed them,
 * so the code is not reentrant, and needs no allocation. Loops are written by source_elementwise.c,
 * source_kernels.c and source_windows.c.
 */
#include "handlers/source/source.h"

#include "base/name_index.h"
#include "ops/ops.h"

#include <math.h>
#include <stdio.h>

/* --- a handler to plan for --- */

/* No operation is computed whole. */
static const char *support(void *self, const sgm_op *op, sgm_dtype dtype)
{
    (void)self, (void)op, (void)dtype;
    return "none";
}

const sgm_handler *sgm__source_handler(void)
{
    static const sgm__handler_type type = {.name = "source",
                                           .doc = "written as C",
                                           .flags = SGM__HANDLER_PARTS | SGM__HANDLER_DRAWS,
                                           .support = support};
    static const sgm_handler handler = {.type = &type, .name = "source"};
    return &handler;
}

/* --- states of all programs --- */

/* A state of the file: an array that all programs with a state of that name share. changes: some program
 * writes it. */
typedef struct file_state {
    const char *name;
    char identifier[SGM__SOURCE_NAME];
    sgm_type type;
    bool changes;
} file_state;

/* The file while it is written. `bodies` and `constants` become parts of it at the end. */
typedef struct file {
    const sgm__source_request *request;
    file_state *states; /* with room for the states of all programs, so that it never moves */
    size_t state_count;
    sgm__name_index names, identifiers; /* from a name, or an identifier, to the index in `states` */
    sgm__text bodies, constants;
    uint32_t functions;
} file;

char *sgm__source_identifier(const char *name, char *buffer, size_t size)
{
    size_t length = 0;
    for (; name[length] != '\0' && length + 1 < size; length++)
        buffer[length] = sgm__is_alphanumeric(name[length]) ? name[length] : '_';
    buffer[length] = '\0';
    return buffer;
}

/* Allocates for as many states as the programs have together, though most are shared. */
static sgm_status make_room(file *f)
{
    size_t maximum = 0;
    for (int32_t i = 0; i < f->request->program_count; i++)
        maximum += (size_t)f->request->programs[i].plan->state_count;
    f->states = sgm__calloc(maximum + 1, sizeof *f->states);
    if (f->states == NULL)
        return SGM_ERROR_MEMORY;
    SGM_TRY(sgm__name_index_reserve(&f->names, maximum));
    return sgm__name_index_reserve(&f->identifiers, maximum);
}

/* The state of a name, which collect_states has added. */
static file_state *find_state(const file *f, const char *name)
{
    uintptr_t place = 0;
    sgm__name_index_find(&f->names, name, &place);
    return &f->states[place];
}

/* Different names may give the same identifier ("a.b", "a_b"); the later one gets a number. Eight characters
 * are kept free for it. */
static void choose_identifier(const file *f, file_state *added)
{
    uintptr_t place;
    sgm__source_identifier(added->name, added->identifier, sizeof added->identifier - 8);
    size_t length = strlen(added->identifier), number = f->state_count;
    while (sgm__name_index_find(&f->identifiers, added->identifier, &place))
        snprintf(added->identifier + length, sizeof added->identifier - length, "_%zu", number++);
}

static void add_state(file *f, const char *name, const sgm_type *type)
{
    file_state *added = &f->states[f->state_count];
    *added = (file_state){.name = name, .type = *type};
    choose_identifier(f, added);
    sgm__name_index_add(&f->names, added->name, f->state_count);
    sgm__name_index_add(&f->identifiers, added->identifier, f->state_count);
    f->state_count++;
}

/* Adds the states of a plan, and marks those that the plan overwrites. */
static void collect_states(file *f, const sgm__plan *plan)
{
    uintptr_t place;
    for (int32_t i = 0; i < plan->state_count; i++) {
        const char *name = sgm__plan_string(plan, plan->states[i].name);
        if (!sgm__name_index_find(&f->names, name, &place))
            add_state(f, name, &plan->states[i].type);
    }
    for (int32_t i = 0; i < plan->order_count; i++) {
        const sgm__place *written = &plan->nodes[plan->order[i]].place;
        if (written->store == SGM__STORE_STATE)
            find_state(f, sgm__plan_string(plan, plan->states[written->index].name))->changes = true;
    }
}

/* --- arrays of numbers --- */

/* NaN or infinity in a trained network is a sign that something went wrong. */
static sgm_status check_finite(const char *what, const sgm_array *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(sgm_array_load(values, i)))
            return sgm_fail(SGM_ERROR_NUMERIC,
                            "'%s' has an element that is not finite (number %lld): a trained network was "
                            "expected",
                            what, (long long)i);
    return SGM_OK;
}

static bool are_zero(const sgm_array *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (sgm_array_load(values, i) != 0)
            return false;
    return true;
}

#define LINE 100
/* The elements of an array, in lines of LINE characters. */
static void write_numbers(sgm__source_writer *w, const sgm_array *values, int64_t count, sgm__text *text)
{
    size_t width = 0;
    const unsigned char *element = values->data;
    for (int64_t i = 0; i < count; i++, element += sgm_dtype_size(values->dtype)) {
        const char *number = sgm__source_literal(w, values->dtype, element);
        size_t length = strlen(number);
        bool breaks = width == 0 || width + length + 2 > LINE;
        sgm__text_append(text, "%s%s%s", i > 0 ? "," : "", breaks ? "\n    " : " ", number);
        width = breaks ? 4 + length + 1 : width + length + 2;
    }
    sgm__text_append(text, "\n");
}

/* A state as a static array. One that does not change is const; one that changes and is 0 needs no
 * initialiser. */
static sgm_status write_values(sgm__source_writer *w, const file_state *state, const sgm_array *values,
                               sgm__text *text)
{
    int64_t count = sgm_shape_elements(&state->type.shape);
    char shape[128];
    SGM_TRY(check_finite(state->name, values, count));
    sgm__text_append(text, "/* %s %s */\nstatic %s%s %s_%s[%lld]", state->name,
                     sgm_shape_text(&state->type.shape, shape, sizeof shape), state->changes ? "" : "const ",
                     sgm__source_type_name(w, state->type.dtype), w->request->name, state->identifier,
                     (long long)count);
    if (!state->changes || !are_zero(values, count)) {
        sgm__text_append(text, " = {");
        write_numbers(w, values, count, text);
        sgm__text_append(text, "}");
    }
    sgm__text_append(text, ";\n\n");
    return SGM_OK;
}

static sgm_status write_state(sgm__source_writer *w, const file_state *state, sgm__text *text)
{
    sgm_tensor *tensor = w->request->state(w->request->user, state->name);
    if (tensor == NULL)
        return sgm__last_failure();
    sgm_array values = {.dtype = sgm_tensor_dtype(tensor), .data = sgm_tensor_data(tensor)};
    sgm_status status = write_values(w, state, &values, text);
    sgm_tensor_free(tensor);
    return status;
}

/* A constant of a program as a static const array, named by the number of its node. */
static void write_constant(sgm__source_writer *w, int32_t number, sgm__text *text)
{
    const sgm__node *node = &w->plan->nodes[number];
    int64_t count = sgm_shape_elements(&node->type.shape);
    sgm_array values = {.dtype = node->type.dtype, .data = w->plan->constants + node->place.offset};
    const char *label = sgm__plan_string(w->plan, node->label);
    sgm__text_append(text, "/* a constant%s%s */\nstatic const %s %s_%s_%d[%lld] = {",
                     *label != '\0' ? " of " : "", label, sgm__source_type_name(w, node->type.dtype),
                     w->request->name, w->program->function, number, (long long)count);
    write_numbers(w, &values, count, text);
    sgm__text_append(text, "};\n\n");
}

/* --- functions --- */

/* A comment before each step: its layer, its first four operations and its shape. */
static void write_comment(sgm__source_writer *w, const sgm__step *step)
{
    const sgm__node *last = &w->plan->nodes[w->plan->order[step->first + step->count - 1]];
    const char *label = sgm__plan_string(w->plan, last->label);
    char shape[128];
    sgm__text names = {0};
    for (int32_t p = 0; p < step->count && p < 4; p++)
        sgm__text_append(&names, "%s%s", p > 0 ? ", " : "",
                         w->plan->nodes[w->plan->order[step->first + p]].op->name);
    sgm__source_line(w, "/* %s%s%s%s -> %s */", label, *label != '\0' ? ": " : "",
                     names.data != NULL ? names.data : "", step->count > 4 ? ", ..." : "",
                     sgm_shape_text(&last->type.shape, shape, sizeof shape));
    sgm__text_free(&names);
}

static sgm_status write_steps(sgm__source_writer *w)
{
    for (int32_t s = 0; s < w->plan->step_count; s++) {
        const sgm__step *step = &w->plan->steps[s];
        w->opened = 0;
        write_comment(w, step);
        SGM_TRY(step->kind == SGM__STEP_ELEMENTWISE ? sgm__source_write_elementwise(w, s)
                                                    : sgm__source_write_kernel(w, s));
    }
    return SGM_OK;
}

/* Copies the outputs into the caller's arrays, at the end of a function. */
static void write_outputs(sgm__source_writer *w)
{
    for (int32_t i = 0; i < w->plan->output_count; i++) {
        const sgm__binding *output = &w->plan->outputs[i];
        int64_t count = sgm_shape_elements(&output->type.shape);
        if (count == 1) {
            sgm__source_line(w, "%s[0] = %s;", w->program->outputs[i],
                             sgm__source_flat(w, output->node, NULL));
            continue;
        }
        sgm__source_line(w, "for (%s i = 0; i < %lld; i++)", w->dialect->counter, (long long)count);
        sgm__source_line(w, "    %s[i] = %s;", w->program->outputs[i],
                         sgm__source_flat(w, output->node, "i"));
    }
}

static sgm_status note_arrays(sgm__source_writer *w)
{
    const sgm__plan *plan = w->plan;
    w->constants = sgm__calloc((size_t)plan->node_count + 1, sizeof(bool));
    w->inputs = sgm__calloc((size_t)plan->input_count + 1, sizeof(bool));
    w->states = sgm__calloc((size_t)plan->state_count + 1, sizeof *w->states);
    return w->constants != NULL && w->inputs != NULL && w->states != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* The head of a function. Inputs that are expressions are no parameters. */
static void write_signature(sgm__source_writer *w, sgm__text *text)
{
    const sgm__source_program *program = w->program;
    const char *separator = "";
    sgm__text_append(text, "int %s_%s(", w->request->name, program->function);
    for (int32_t i = 0; i < program->plan->input_count; i++) {
        const sgm__source_input *input = &program->inputs[i];
        const char *type = sgm__source_type_name(w, program->plan->inputs[i].type.dtype);
        if (input->expression)
            continue;
        sgm__text_append(text, input->number ? "%s%s %s" : "%sconst %s *%s", separator, type, input->name);
        separator = ", ";
    }
    for (int32_t i = 0; i < program->plan->output_count; i++) {
        const char *type = sgm__source_type_name(w, program->plan->outputs[i].type.dtype);
        sgm__text_append(text, "%s%s *%s", separator, type, program->outputs[i]);
        separator = ", ";
    }
    sgm__text_append(text, ")");
}

/* The function around w->text. Parameters that no step reads are cast to void, so that compilers do not
 * warn. */
static void write_body(sgm__source_writer *w, sgm__text *text)
{
    write_signature(w, text);
    sgm__text_append(text, "\n{\n");
    for (int32_t i = 0; i < w->plan->input_count; i++)
        if (!w->inputs[i] && !w->program->inputs[i].expression)
            sgm__text_append(text, "    (void)%s;\n", w->program->inputs[i].name);
    sgm__text_append(text, "%s", w->text.data != NULL ? w->text.data : "");
    if (w->program->last != NULL)
        sgm__text_append(text, "    %s\n", w->program->last);
    sgm__text_append(text, "    return 0;\n}\n");
}

static void free_writer(sgm__source_writer *w)
{
    sgm__free(w->step_of);
    sgm__free(w->constants);
    sgm__free(w->inputs);
    sgm__free(w->states);
    sgm__text_free(&w->text);
    w->step_of = NULL;
    w->constants = w->inputs = NULL;
    w->states = NULL;
}

/* Prepares the writer for another program; what belongs to the file (functions, failed) stays. */
static void begin_program(sgm__source_writer *w, const sgm__source_program *program)
{
    free_writer(w);
    w->program = program;
    w->plan = program->plan;
    w->depth = 1;
}

/* Writes the function of one program, then the constants that it turned out to use. */
static sgm_status write_program(file *f, sgm__source_writer *w, const sgm__source_program *program)
{
    begin_program(w, program);
    SGM_TRY(sgm__source_note_steps(w));
    SGM_TRY(note_arrays(w));
    for (int32_t i = 0; i < w->plan->state_count; i++)
        snprintf(w->states[i], sizeof w->states[i], "%s",
                 find_state(f, sgm__plan_string(w->plan, w->plan->states[i].name))->identifier);
    SGM_TRY(write_steps(w));
    write_outputs(w);
    write_body(w, &f->bodies);
    for (int32_t i = 0; i < w->plan->node_count; i++)
        if (w->constants[i])
            write_constant(w, i, &f->constants);
    sgm__text_append(&f->bodies, "\n");
    if (w->failed || w->text.failed)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "an expression of the program is too long for a line of C");
    return SGM_OK;
}

/* --- the interface --- */

/* A #define for the number of elements of an array parameter. */
static void write_size(const sgm__source_writer *w, const char *function, const char *parameter,
                       const sgm_type *type, sgm__text *text)
{
    char upper[2][SGM__SOURCE_NAME], shape[128];
    sgm__text_append(text, "#define %s_%s_%s %lld /* %s */\n", w->capitals,
                     sgm__source_capitals(function, upper[0], sizeof upper[0]),
                     sgm__source_capitals(parameter, upper[1], sizeof upper[1]),
                     (long long)sgm_shape_elements(&type->shape),
                     sgm_shape_text(&type->shape, shape, sizeof shape));
}

/* The bytes of the largest arena: programs run one after the other and share memory. */
static int64_t memory_of(const sgm__source_request *request)
{
    int64_t bytes = 64;
    for (int32_t i = 0; i < request->program_count; i++)
        if (request->programs[i].plan->arena_bytes > bytes)
            bytes = request->programs[i].plan->arena_bytes;
    return bytes;
}

/* Whether some program has values of a type in the arena, so that the union needs a member for it. */
static bool uses(const sgm__source_request *request, sgm_dtype dtype)
{
    for (int32_t i = 0; i < request->program_count; i++)
        for (int32_t k = 0; k < request->programs[i].plan->node_count; k++) {
            const sgm__node *node = &request->programs[i].plan->nodes[k];
            if (node->place.store == SGM__STORE_ARENA && node->type.dtype == dtype)
                return true;
        }
    return false;
}

/* The declarations of all functions, with sizes of their arrays. */
static void write_declarations(file *f, sgm__source_writer *w, sgm__text *text)
{
    const sgm__source_request *request = f->request;
    for (int32_t i = 0; i < request->program_count; i++) {
        const sgm__source_program *program = &request->programs[i];
        const sgm__plan *plan = program->plan;
        w->program = program;
        sgm__text_append(text, "/* %s */\n", program->doc);
        write_signature(w, text);
        sgm__text_append(text, ";\n");
        for (int32_t k = 0; k < plan->input_count; k++)
            if (!program->inputs[k].number && !program->inputs[k].expression)
                write_size(w, program->function, program->inputs[k].name, &plan->inputs[k].type, text);
        for (int32_t k = 0; k < plan->output_count; k++)
            write_size(w, program->function, program->outputs[k], &plan->outputs[k].type, text);
        sgm__text_append(text, "\n");
    }
}

/* The part of the file that a user includes: the type of numbers, declarations, access to the states. */
static void write_interface(file *f, sgm__source_writer *w, sgm__text *text)
{
    const sgm__source_request *request = f->request;
    sgm__text_append(text, "/* %s\n */\n#include <stdint.h>\n\n", request->about);
    if (request->real == SGM_FLOAT32)
        sgm__source_write_template(
            request,
            "#ifndef ~_REAL\n"
            "#define ~_REAL float /* what is computed in; double, if you define it so */\n"
            "#endif\n\n",
            text);
    sgm__text_append(text, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    write_declarations(f, w, text);
    if (request->has_states)
        sgm__source_write_template(request,
                                   "/* What training changes, to keep it or to set it: array number `index`, "
                                   "from 0 on, with its name and\n"
                                   " * its length; NULL: there are no more. */\n"
                                   "@ *$_state(int index, const char **name, long *count);\n"
                                   "/* What training counts, to be kept and set with those arrays. */\n"
                                   "int64_t *$_count(int index, const char **name);\n\n",
                                   text);
    sgm__text_append(text, "%s", request->declarations != NULL ? request->declarations : "");
    sgm__text_append(text, "#ifdef __cplusplus\n}\n#endif\n\n");
}

/* --- memory --- */

/* The union in which all values lie, with an array of each type that is used. A user may define NAME_REAL as
 * double although places are planned for float. Then all byte offsets double, so that no two values overlap:
 * those of reals by their type, those of other types by the factor NAME_SCALE. */
static void write_memory(const file *f, sgm__text *text)
{
    static const struct {
        sgm_dtype dtype;
        const char *member;
        int64_t size;
    } others[] = {{SGM_FLOAT32, "float f", 4},      {SGM_FLOAT64, "double d", 8},
                  {SGM_INT64, "int64_t l", 8},      {SGM_INT32, "int32_t i", 4},
                  {SGM_BOOL, "unsigned char b", 1}, {SGM_UINT8, "unsigned char b", 1}};
    const sgm__source_request *request = f->request;
    bool scaled = request->real == SGM_FLOAT32, bytes = false;
    int64_t size = memory_of(request);
    if (scaled)
        sgm__source_write_template(request,
                                   "/* Places are those of float; with a wider type all are wider. */\n"
                                   "#define ~_SCALE (long)(sizeof(~_REAL) / 4)\n"
                                   "typedef char $_real_is_at_least_a_float[~_SCALE > 0 ? 1 : -1];\n\n",
                                   text);
    sgm__text_append(
        text, "/* All that is computed, each value where it was planned: %lld bytes. */\nstatic union {\n",
        (long long)size);
    char words[64];
    snprintf(words, sizeof words, "    @ r[%lld];\n", (long long)(size / (scaled ? 4 : 8)));
    sgm__source_write_template(request, words, text);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bool byte = others[i].size == 1;
        if (others[i].dtype == request->real || !uses(request, others[i].dtype) || (byte && bytes))
            continue;
        bytes = bytes || byte;
        snprintf(words, sizeof words, scaled ? "    %s[~_SCALE * %lld];\n" : "    %s[%lld];\n",
                 others[i].member, (long long)((size + others[i].size - 1) / others[i].size));
        sgm__source_write_template(request, words, text);
    }
    sgm__source_write_template(request, "} $_memory;\n\n", text);
}

/* The function through which a user saves and restores the arrays that training changes. */
static void write_state_function(const file *f, sgm__text *text)
{
    sgm__source_write_template(f->request,
                               "@ *$_state(int index, const char **name, long *count)\n"
                               "{\n"
                               "    static const struct {\n"
                               "        const char *name;\n"
                               "        @ *values;\n"
                               "        long count;\n"
                               "    } states[] = {\n",
                               text);
    int count = 0;
    for (size_t i = 0; i < f->state_count; i++) {
        const file_state *state = &f->states[i];
        if (!state->changes || state->type.dtype != f->request->real)
            continue;
        sgm__text_append(text, "        {\"%s\", %s_%s, %lld},\n", state->name, f->request->name,
                         state->identifier, (long long)sgm_shape_elements(&state->type.shape));
        count++;
    }
    sgm__text_append(text,
                     "    };\n"
                     "    if (index < 0 || index >= %d)\n"
                     "        return 0;\n"
                     "    *name = states[index].name;\n"
                     "    *count = states[index].count;\n"
                     "    return states[index].values;\n"
                     "}\n\n",
                     count);
}

/* The same for counts (updates, random numbers drawn), which are as much a part of the state as the
 * arrays. */
static void write_count_function(const file *f, sgm__text *text)
{
    sgm__source_write_template(f->request,
                               "int64_t *$_count(int index, const char **name)\n"
                               "{\n"
                               "    static const struct {\n"
                               "        const char *name;\n"
                               "        int64_t *count;\n"
                               "    } counts[] = {\n"
                               "        {\"updates\", $_updates},\n",
                               text);
    int count = 1;
    for (size_t i = 0; i < f->state_count; i++) {
        const file_state *state = &f->states[i];
        if (!state->changes || state->type.dtype != SGM_INT64)
            continue;
        sgm__text_append(text, "        {\"%s\", %s_%s},\n", state->name, f->request->name,
                         state->identifier);
        count++;
    }
    sgm__text_append(text,
                     "    };\n"
                     "    if (index < 0 || index >= %d)\n"
                     "        return 0;\n"
                     "    *name = counts[index].name;\n"
                     "    return counts[index].count;\n"
                     "}\n\n",
                     count);
}

/* --- the file --- */

/* C has no bfloat16; the export records such networks in float32 instead. */
static sgm_status check_types(const sgm__source_request *request)
{
    char where[320];
    for (int32_t i = 0; i < request->program_count; i++) {
        const sgm__plan *plan = request->programs[i].plan;
        for (int32_t k = 0; k < plan->node_count; k++)
            if (plan->nodes[k].type.dtype == SGM_BFLOAT16)
                return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s: C has no bfloat16; export it in float32",
                                sgm__plan_describe(plan, k, where, sizeof where));
    }
    return SGM_OK;
}

/* Bodies first, then the file in its final order. */
static sgm_status write_file(file *f, sgm__source_writer *w, sgm__text *text)
{
    const sgm__source_request *request = f->request;
    SGM_TRY(check_types(request));
    SGM_TRY(make_room(f));
    for (int32_t i = 0; i < request->program_count; i++)
        collect_states(f, request->programs[i].plan);
    for (int32_t i = 0; i < request->program_count; i++)
        SGM_TRY(write_program(f, w, &request->programs[i]));
    write_interface(f, w, text);
    sgm__source_write_template(request, "#ifndef ~_DECLARATIONS\n\n", text);
    write_memory(f, text);
    for (size_t i = 0; i < f->state_count; i++)
        SGM_TRY(write_state(w, &f->states[i], text));
    if (request->has_states) {
        sgm__source_write_template(request, "/* Updates so far. */\nstatic int64_t $_updates[1] = {", text);
        sgm__text_append(text, "%lld};\n\n", (long long)request->updates);
    }
    sgm__text_append(text, "%s", f->constants.data != NULL ? f->constants.data : "");
    sgm__source_write_functions(request, w->functions, text);
    sgm__text_append(text, "%s", f->bodies.data != NULL ? f->bodies.data : "");
    if (request->has_states) {
        write_state_function(f, text);
        write_count_function(f, text);
    }
    sgm__text_append(text, "%s", request->definitions != NULL ? request->definitions : "");
    sgm__text_append(text, "#endif\n");
    return text->failed || f->bodies.failed || f->constants.failed ? SGM_ERROR_MEMORY : SGM_OK;
}

sgm_status sgm__source_write(const sgm__source_request *request, sgm__text *text)
{
    file f = {.request = request};
    sgm__source_writer *w = sgm__calloc(1, sizeof *w);
    if (w == NULL)
        return SGM_ERROR_MEMORY;
    w->dialect = &sgm__source_c;
    w->request = request;
    sgm__source_capitals(request->name, w->capitals, sizeof w->capitals);
    sgm__source_real(request, w->real, sizeof w->real);
    sgm_status status = write_file(&f, w, text);
    free_writer(w);
    sgm__free(w);
    sgm__name_index_free(&f.names);
    sgm__name_index_free(&f.identifiers);
    sgm__free(f.states);
    sgm__text_free(&f.bodies);
    sgm__text_free(&f.constants);
    return status;
}
