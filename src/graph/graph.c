/* Implements the graph as a container: arrays of instructions and operands, interned names, labels, outputs,
 * assignments.
 *
 * Everything that is recorded ends in append() here, by way of sgm_record (record.c) or of the sources
 * (sources.c). Clearing keeps all memory, so that recording the same network again allocates nothing. The
 * first failure stays in the graph (keep_error): later calls return nothing at once, so that a function that
 * records is checked once at its end. While the graph compares (rerecord.c), appending only advances a count
 * as long as the same things are recorded. */
#include "graph/graph_internal.h"

#include <stdatomic.h>
#include <stdio.h>

/* Serials begin at 1 and are unique in the process; threads record graphs of their own at the same time. */
static uint64_t next_serial(void)
{
    static atomic_uint_fast64_t newest;
    return atomic_fetch_add_explicit(&newest, 1, memory_order_relaxed) + 1;
}

sgm_graph *sgm_graph_create(void)
{
    sgm_graph *graph = sgm__calloc(1, sizeof(sgm_graph));
    if (graph == NULL)
        return NULL;
    graph->serial = next_serial();
    /* offset 0 of the names is "" */
    sgm__text_append_bytes(&graph->names, "", 1);
    if (graph->names.failed) {
        sgm_graph_free(graph);
        return NULL;
    }
    return graph;
}

/* Constants that are kept for comparing lie behind constant_count, and are dropped first. */
static void free_constants(sgm_graph *graph)
{
    sgm__graph_drop_kept(graph);
    for (size_t i = 0; i < graph->constant_count; i++)
        sgm_tensor_free(graph->constants[i]);
    graph->constant_count = 0;
}

void sgm_graph_free(sgm_graph *graph)
{
    if (graph == NULL)
        return;
    free_constants(graph);
    sgm__free(graph->instructions);
    sgm__free(graph->operands);
    sgm__free(graph->sources);
    sgm__free(graph->constants);
    sgm__free(graph->outputs);
    sgm__free(graph->assignments);
    sgm__text_free(&graph->names);
    sgm__free(graph->slots);
    sgm__graph_free_attributes(graph);
    sgm__free(graph);
}

/* Attributes are kept for the next recording as long as they are not too many; names are forgotten, the
 * memory stays. */
void sgm_graph_clear(sgm_graph *graph)
{
    if (graph == NULL)
        return;
    free_constants(graph);
    graph->serial = next_serial();
    graph->count = graph->operand_count = graph->output_count = graph->assignment_count = 0;
    graph->source_count = 0;
    graph->names.length = 1;
    graph->name_count = 0;
    if (graph->slot_count > 0)
        memset(graph->slots, 0, graph->slot_count * sizeof *graph->slots);
    graph->names.failed = false;
    if (graph->attribute_count > SGM__MAXIMUM_ATTRIBUTES)
        sgm__graph_free_attributes(graph);
    graph->label[0] = '\0';
    graph->label_depth = graph->label_name = 0;
    graph->status = SGM_OK;
    graph->message[0] = '\0';
}

sgm_status sgm_graph_status(const sgm_graph *graph)
{
    if (graph == NULL)
        return sgm__fail_null("the graph is NULL");
    return graph->status == SGM_OK ? SGM_OK : sgm_fail(graph->status, "%s", graph->message);
}

/* Keeps the thread's newest error as the graph's, unless the graph has one already. Returns a value that is
 * nothing. */
static sgm_value keep_error(sgm_graph *graph)
{
    if (graph != NULL && graph->status == SGM_OK) {
        graph->status = sgm_last_status() != SGM_OK ? sgm_last_status() : SGM_ERROR_ARGUMENT;
        snprintf(graph->message, sizeof graph->message, "%s", sgm_last_error());
    }
    return (sgm_value){-1};
}

/* Names the layer that records, so that an operation's rule need not know where it is. */
sgm_value sgm_graph_fail(sgm_graph *graph, sgm_status status, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (graph != NULL && graph->label[0] != '\0')
        sgm_fail(status, "layer %s: %s", graph->label, text);
    else
        sgm_fail(status, "%s", text);
    return keep_error(graph);
}

/* --- names --- */

/* The slot that has the text, or else the free slot where it belongs (linear probing; half of the slots are
 * free). Texts are compared by content, as slots hold offsets in graph->names, whose memory moves. */
static sgm__name *find_slot(const sgm_graph *graph, const char *text)
{
    size_t mask = graph->slot_count - 1, at = (size_t)sgm__hash_text(text) & mask;
    while (graph->slots[at].text != 0 && strcmp(graph->names.data + graph->slots[at].text, text) != 0)
        at = (at + 1) & mask;
    return &graph->slots[at];
}

/* The slot of an interned name. */
static sgm__name *slot_of(const sgm_graph *graph, int32_t name)
{
    return find_slot(graph, graph->names.data + name);
}

/* Doubles the table when the next name would fill more than half of it. */
static sgm_status make_slots(sgm_graph *graph)
{
    if (2 * (graph->name_count + 1) <= graph->slot_count)
        return SGM_OK;
    sgm__name *old = graph->slots;
    size_t old_count = graph->slot_count, count = old_count > 0 ? 2 * old_count : 64;
    sgm__name *slots = sgm__calloc(count, sizeof *slots);
    if (slots == NULL)
        return SGM_ERROR_MEMORY;
    graph->slots = slots;
    graph->slot_count = count;
    for (size_t i = 0; i < old_count; i++)
        if (old[i].text != 0)
            *slot_of(graph, old[i].text) = old[i];
    sgm__free(old);
    return SGM_OK;
}

int32_t sgm__graph_name(sgm_graph *graph, const char *text)
{
    size_t length = strlen(text);
    if (length == 0)
        return 0;
    if (make_slots(graph) != SGM_OK)
        return -1;
    sgm__name *slot = find_slot(graph, text);
    if (slot->text != 0)
        return slot->text;
    if (graph->names.length + length + 1 > INT32_MAX / 2) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the names of a graph take more than 1 GB");
        return -1;
    }
    int32_t offset = (int32_t)graph->names.length;
    sgm__text_append_bytes(&graph->names, text, length + 1);
    if (graph->names.failed)
        return -1;
    *slot = (sgm__name){.text = offset, .input = -1, .state = -1, .assignment = -1, .output = -1};
    graph->name_count++;
    return offset;
}

const char *sgm__graph_string(const sgm_graph *graph, int32_t name)
{
    return graph->names.data + name;
}

/* Appends as much of the label as fits; a label that is cut off only shortens messages. */
static void append_label(sgm_graph *graph, size_t length, const char *label)
{
    size_t maximum = sizeof graph->label - 1, more = strlen(label);
    if (length > 0 && length < maximum)
        graph->label[length++] = '.';
    more = more < maximum - length ? more : maximum - length;
    memcpy(graph->label + length, label, more);
    graph->label[length + more] = '\0';
}

/* Remembers length and name of the label for the pop. Labels deeper than SGM__MAX_LABEL_DEPTH are counted,
 * but not shown. A failure to intern is the graph's failure, as all other recording. */
void sgm_graph_push_label(sgm_graph *graph, const char *label)
{
    if (graph == NULL)
        return;
    size_t length = strlen(graph->label);
    if (graph->label_depth++ >= SGM__MAX_LABEL_DEPTH)
        return;
    graph->label_starts[graph->label_depth - 1] = (uint16_t)length;
    graph->label_names[graph->label_depth - 1] = graph->label_name;
    if (label != NULL && *label != '\0')
        append_label(graph, length, label);
    int32_t name = sgm__graph_name(graph, graph->label);
    if (name < 0)
        keep_error(graph);
    else
        graph->label_name = name;
}

/* Pops of labels beyond the depth only count down. */
void sgm_graph_pop_label(sgm_graph *graph)
{
    if (graph == NULL || graph->label_depth == 0 || --graph->label_depth >= SGM__MAX_LABEL_DEPTH)
        return;
    graph->label[graph->label_starts[graph->label_depth]] = '\0';
    graph->label_name = graph->label_names[graph->label_depth];
}

/* --- instructions --- */

static bool is_source(const sgm__instruction *instruction)
{
    return instruction->op == &sgm__op_input || instruction->op == &sgm__op_state;
}

/* An input and a state may have the same name; the slot has a number for each. */
static int32_t *source_of(sgm__name *name, const sgm_op *op)
{
    return op == &sgm__op_state ? &name->state : &name->input;
}

/* The number in the slot may be from a recording that was dropped, hence the checks. */
const sgm__instruction *sgm__graph_source(const sgm_graph *graph, const sgm_op *op, int32_t name)
{
    int32_t index = *source_of(slot_of(graph, name), op);
    if (index < 0 || (size_t)index >= graph->count)
        return NULL;
    const sgm__instruction *found = &graph->instructions[index];
    return found->op == op && found->name == name ? found : NULL;
}

/* `inputs` may point into graph->operands (a caller that records with another instruction's operands), which
 * moves when it grows: then the position is kept and the pointer made anew. Nothing has changed if this
 * fails, except for reserved memory and attributes. */
static sgm_status append(sgm_graph *graph, const sgm__instruction *given, const sgm_value *inputs)
{
    sgm__instruction own = *given, *instruction = &own;
    size_t count = (size_t)own.input_count;
    own.attributes = sgm__graph_attributes(graph, given->attributes);
    if (own.attributes == NULL)
        return sgm__last_failure();
    if (graph->compares && sgm__graph_repeats(graph, instruction, inputs))
        return SGM_OK;
    if (graph->count >= INT32_MAX / 2 || graph->operand_count + count >= INT32_MAX / 2)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a graph cannot have more than %d instructions", INT32_MAX / 2);
    SGM_TRY(sgm__reserve(&graph->instructions, &graph->capacity, graph->count + 1, sizeof(sgm__instruction)));
    bool known = graph->operands != NULL && inputs >= graph->operands &&
                 inputs < graph->operands + graph->operand_count;
    size_t position = known ? (size_t)(inputs - graph->operands) : 0;
    SGM_TRY(sgm__reserve(&graph->operands, &graph->operand_capacity, graph->operand_count + count,
                         sizeof(sgm_value)));
    if (known)
        inputs = graph->operands + position;
    if (is_source(instruction)) {
        SGM_TRY(sgm__reserve(&graph->sources, &graph->source_capacity, graph->source_count + 1,
                             sizeof *graph->sources));
        graph->sources[graph->source_count++] = (int32_t)graph->count;
        *source_of(slot_of(graph, instruction->name), instruction->op) = (int32_t)graph->count;
    }
    sgm__instruction *added = &graph->instructions[graph->count++];
    *added = *instruction;
    added->first_input = (int32_t)graph->operand_count;
    added->label = graph->label_name;
    if (count > 0)
        memcpy(graph->operands + graph->operand_count, inputs, count * sizeof(sgm_value));
    graph->operand_count += count;
    return SGM_OK;
}

sgm_value sgm__graph_append(sgm_graph *graph, const sgm__instruction *instruction, const sgm_value *inputs)
{
    if (append(graph, instruction, inputs) != SGM_OK)
        return keep_error(graph);
    return (sgm_value){(int32_t)graph->count - 1};
}

/* The caller records the instruction that refers to the constant. */
int32_t sgm__graph_add_constant(sgm_graph *graph, sgm_tensor *constant)
{
    if (graph->compares && sgm__graph_repeats_constant(graph, constant))
        return (int32_t)graph->constant_count - 1;
    if (sgm__reserve(&graph->constants, &graph->constant_capacity, graph->constant_count + 1,
                     sizeof(sgm_tensor *)) != SGM_OK) {
        keep_error(graph);
        return -1;
    }
    graph->constants[graph->constant_count] = sgm_tensor_retain(constant);
    return (int32_t)graph->constant_count++;
}

/* --- what a run does with values --- */

/* Names of outputs are unique; the slot of the name has the newest output, which may be stale as in
 * sgm__graph_source. */
void sgm_graph_add_output(sgm_graph *graph, const char *name, sgm_value value)
{
    if (graph == NULL || graph->status != SGM_OK)
        return;
    bool named = name != NULL && *name != '\0';
    if (!named || !sgm_value_exists(value) || (size_t)value.index >= graph->count) {
        sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "output '%s' has no name or no value of this graph",
                       named ? name : "");
        return;
    }
    int32_t text = sgm__graph_name(graph, name);
    if (text < 0) {
        keep_error(graph);
        return;
    }
    int32_t *newest = &slot_of(graph, text)->output;
    if (*newest >= 0 && (size_t)*newest < graph->output_count && graph->outputs[*newest].name == text) {
        sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "there are two outputs '%s'; choose another name", name);
        return;
    }
    if (graph->compares && sgm__graph_repeats_output(graph, (sgm__named){text, value}))
        return;
    if (sgm__reserve(&graph->outputs, &graph->output_capacity, graph->output_count + 1, sizeof(sgm__named)) !=
        SGM_OK) {
        keep_error(graph);
        return;
    }
    *newest = (int32_t)graph->output_count;
    graph->outputs[graph->output_count++] = (sgm__named){text, value};
}

/* A state is assigned at most once, a value of exactly its type. */
static bool fits_state(sgm_graph *graph, sgm_value state, sgm_value value)
{
    if (!sgm_value_exists(state) || !sgm_value_exists(value) || (size_t)state.index >= graph->count ||
        (size_t)value.index >= graph->count || graph->instructions[state.index].op != &sgm__op_state) {
        sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                       "only a state of this graph can be assigned, and only a value of it");
        return false;
    }
    const char *name = sgm_value_name(graph, state);
    sgm_type a = graph->instructions[state.index].type, b = graph->instructions[value.index].type;
    if (a.dtype != b.dtype || !sgm_shape_equal(&a.shape, &b.shape)) {
        char old_shape[128], new_shape[128];
        sgm_graph_fail(graph, SGM_ERROR_SHAPE, "state '%s' is %s %s and cannot become %s %s", name,
                       sgm_dtype_name(a.dtype), sgm_shape_text(&a.shape, old_shape, sizeof old_shape),
                       sgm_dtype_name(b.dtype), sgm_shape_text(&b.shape, new_shape, sizeof new_shape));
        return false;
    }
    int32_t newest = slot_of(graph, graph->instructions[state.index].name)->assignment;
    if (newest >= 0 && (size_t)newest < graph->assignment_count &&
        graph->assignments[newest].state.index == state.index) {
        sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "state '%s' is assigned twice", name);
        return false;
    }
    return true;
}

/* Outputs and assignments are recorded in order, and compared while the graph compares. */
void sgm_assign(sgm_graph *graph, sgm_value state, sgm_value value)
{
    if (graph == NULL || graph->status != SGM_OK || !fits_state(graph, state, value))
        return;
    if (graph->compares && sgm__graph_repeats_assignment(graph, (sgm__assignment){state, value}))
        return;
    if (sgm__reserve(&graph->assignments, &graph->assignment_capacity, graph->assignment_count + 1,
                     sizeof(sgm__assignment)) != SGM_OK) {
        keep_error(graph);
        return;
    }
    slot_of(graph, graph->instructions[state.index].name)->assignment = (int32_t)graph->assignment_count;
    graph->assignments[graph->assignment_count++] = (sgm__assignment){state, value};
}

/* --- looking --- */

bool sgm_value_exists(sgm_value value)
{
    return value.index >= 0;
}

int32_t sgm_graph_count(const sgm_graph *graph)
{
    return graph != NULL ? (int32_t)graph->count : 0;
}

/* NULL for a value that is nothing or not of this graph. */
static const sgm__instruction *find(const sgm_graph *graph, sgm_value value)
{
    bool known = graph != NULL && value.index >= 0 && (size_t)value.index < graph->count;
    return known ? &graph->instructions[value.index] : NULL;
}

sgm_type sgm_value_type(const sgm_graph *graph, sgm_value value)
{
    const sgm__instruction *instruction = find(graph, value);
    return instruction != NULL ? instruction->type : (sgm_type){.dtype = SGM_FLOAT32};
}

const sgm_op *sgm_value_op(const sgm_graph *graph, sgm_value value)
{
    const sgm__instruction *instruction = find(graph, value);
    return instruction != NULL ? instruction->op : NULL;
}

const sgm_attributes *sgm_value_attributes(const sgm_graph *graph, sgm_value value)
{
    const sgm__instruction *instruction = find(graph, value);
    return instruction != NULL ? instruction->attributes : NULL;
}

/* The operands lie in the graph's array, which moves when more is recorded. */
int32_t sgm_value_inputs(const sgm_graph *graph, sgm_value value, const sgm_value **inputs)
{
    const sgm__instruction *instruction = find(graph, value);
    int32_t count = instruction != NULL ? instruction->input_count : 0;
    *inputs = count > 0 ? graph->operands + instruction->first_input : NULL;
    return count;
}

const char *sgm_value_name(const sgm_graph *graph, sgm_value value)
{
    const sgm__instruction *instruction = find(graph, value);
    return instruction != NULL ? sgm__graph_string(graph, instruction->name) : "";
}

const char *sgm_value_label(const sgm_graph *graph, sgm_value value)
{
    const sgm__instruction *instruction = find(graph, value);
    return instruction != NULL ? sgm__graph_string(graph, instruction->label) : "";
}
