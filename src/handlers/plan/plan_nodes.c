/* Planning, first part: turns the instructions of the lowered graph into nodes with strides.
 *
 * Each instruction becomes a node; movement becomes a view, strides on the memory of another node, its root.
 * Where a kernel needs contiguous operands, or an output or assignment needs memory of its own, copies are
 * added. Sources are bound: inputs and states by name, constants by their contents. Arena offsets are not
 * known yet (plan_places.c); nodes are appended in the order of the graph, so operands have smaller numbers
 * than their readers.
 */
#include "handlers/plan/plan_build.h"

#include "handlers/host.h"
#include "ops/ops.h"
#include "tensor/tensor_internal.h"

/* A right operand that lies transposed in memory and is read by at least this many matrix products is copied
 * once into the order that products want, rather than by each of them: recurrent weights, in each time step
 * of the way back, where that saved a sixth of their time. */
#define MANY_PRODUCTS 4
/* Elements up to which a strided view of a constant that repeats elements is laid out in the plan's constants
 * when planning. More would make the program larger than the copy in each run is worth. */
#define MAXIMUM_REPEATED 16384

/* Whether a node's elements lie in row-major order without gaps. The stride of an axis of length 1 is
 * arbitrary. */
static bool is_contiguous(const sgm__node *node)
{
    int64_t stride = 1;
    for (int32_t i = node->type.shape.rank; i-- > 0;) {
        if (node->type.shape.dims[i] != 1 && node->place.strides[i] != stride)
            return false;
        stride *= node->type.shape.dims[i];
    }
    return true;
}

/* An elementwise operation without a formula for one element, such as a user's with `forward` only, is a
 * kernel. */
bool sgm__plan_is_fusable(const sgm_op *op)
{
    return (op->flags & SGM_OP_ELEMENTWISE) != 0 && op->scalar != NULL;
}

/* Not numbers that are assigned to a state, since other members of the step may still read that state's old
 * value; and not a single number (rank 0), as the seed itself may be made from it in the same step. */
bool sgm__plan_is_drawn(const sgm__plan_build *build, int32_t node)
{
    const sgm__node *n = &build->plan->nodes[node];
    return n->op == &sgm__op_random_uniform && n->type.shape.rank > 0 && build->notes[node].writes < 0 &&
           (build->handler->type->flags & SGM__HANDLER_DRAWS) != 0;
}

bool sgm__plan_is_tiled(const sgm__plan_build *build, int32_t node)
{
    return sgm__plan_is_fusable(build->plan->nodes[node].op) || sgm__plan_is_drawn(build, node);
}

/* Appends a node with contiguous strides, and its notes. `operands` may be NULL if there are none. Pointers
 * to nodes and notes are invalid afterwards, as the arrays may move. */
static sgm_status add_node(sgm__plan_build *build, const sgm__node *node, const int32_t *operands,
                           int32_t *index)
{
    sgm__plan *plan = build->plan;
    size_t needed = (size_t)plan->node_count + 1,
           operand_count = (size_t)plan->operand_count + (size_t)node->input_count;
    SGM_TRY(sgm__reserve(&plan->nodes, &build->node_capacity, needed, sizeof(sgm__node)));
    SGM_TRY(sgm__reserve(&build->notes, &build->notes_capacity, needed, sizeof(sgm__plan_node_notes)));
    SGM_TRY(sgm__reserve(&plan->operands, &build->operand_capacity, operand_count, sizeof(int32_t)));
    *index = plan->node_count++;
    plan->nodes[*index] = *node;
    plan->nodes[*index].first_input = plan->operand_count;
    sgm__contiguous_strides(&node->type.shape, plan->nodes[*index].place.strides);
    if (node->input_count > 0 && operands != NULL)
        memcpy(plan->operands + plan->operand_count, operands, (size_t)node->input_count * sizeof(int32_t));
    plan->operand_count += node->input_count;
    build->notes[*index] = (sgm__plan_node_notes){.root = *index,
                                                  .contiguous = -1,
                                                  .writes = -1,
                                                  .step = -1,
                                                  .position = 0,
                                                  .buffer = -1,
                                                  .last_use = -1};
    return SGM_OK;
}

/* Adds a node that copies `source` into contiguous memory of its own. */
static sgm_status add_copy(sgm__plan_build *build, int32_t source, int32_t *copy)
{
    const sgm__node *original = &build->plan->nodes[source];
    sgm__node node = {.op = &sgm__op_copy,
                      .type = original->type,
                      .input_count = 1,
                      .label = original->label,
                      .place = {.store = SGM__STORE_ARENA}};
    return add_node(build, &node, &source, copy);
}

/* Makes room for `bytes` of constants in all. The block is as a handler of the host allocates it, so that
 * such a one can use it (session.c). */
static sgm_status reserve_constants(sgm__plan_build *build, size_t bytes)
{
    sgm__plan *plan = build->plan;
    void *grown;
    if (plan->constants != NULL && bytes <= build->constant_capacity)
        return SGM_OK;
    SGM_TRY(sgm__host_allocate(NULL, bytes, &grown));
    if (plan->constants != NULL)
        memcpy(grown, plan->constants, (size_t)plan->constant_bytes);
    sgm__host_release(NULL, plan->constants);
    plan->constants = grown;
    build->constant_capacity = bytes;
    return SGM_OK;
}

/* Appends zeroed room to the plan's constants and returns its place. Every constant begins at a multiple of
 * 64 bytes. */
static sgm_status add_constant_bytes(sgm__plan_build *build, size_t bytes, sgm__place *place)
{
    sgm__plan *plan = build->plan;
    size_t end = sgm__align((size_t)plan->constant_bytes + bytes);
    if (end > build->constant_capacity)
        SGM_TRY(reserve_constants(build, end + end / 2));
    *place = (sgm__place){.store = SGM__STORE_CONSTANT, .offset = plan->constant_bytes};
    plan->constant_bytes = (int64_t)end;
    return SGM_OK;
}

/* Replaces a strided view of a constant by a contiguous constant, so that no step has to copy it in each
 * run. */
static sgm_status lay_out_constant(sgm__plan_build *build, int32_t source, int32_t *copy)
{
    const sgm__node view = build->plan->nodes[source];
    sgm__node node = {.op = &sgm__op_constant, .type = view.type, .label = view.label};
    size_t size = sgm_dtype_size(view.type.dtype);
    SGM_TRY(add_constant_bytes(build, (size_t)sgm_shape_elements(&view.type.shape) * size, &node.place));
    node.place.live = build->plan->nodes[build->notes[source].root].place.live;
    SGM_TRY(add_node(build, &node, NULL, copy));
    unsigned char *from;
    SGM_TRY(sgm__plan_lend_constant(build->plan, build->notes[source].root, &from));
    sgm__copy_strided(&view.type.shape, view.type.dtype, build->plan->constants + node.place.offset,
                      build->plan->nodes[*copy].place.strides, view.type.dtype,
                      from + build->notes[source].view_offset * (int64_t)size, view.place.strides);
    return SGM_OK;
}

/* Replaces *node by a node with contiguous memory: itself, or a copy, which is made once and shared by all
 * readers. */
static sgm_status make_contiguous(sgm__plan_build *build, int32_t *node)
{
    const sgm__node *view = &build->plan->nodes[*node];
    if (is_contiguous(view))
        return SGM_OK;
    if (build->notes[*node].contiguous < 0) {
        int32_t copy;
        const sgm__node *root = &build->plan->nodes[build->notes[*node].root];
        int64_t elements = sgm_shape_elements(&view->type.shape);
        bool constant = root->place.store == SGM__STORE_CONSTANT &&
                        (elements <= MAXIMUM_REPEATED || elements <= sgm_shape_elements(&root->type.shape));
        SGM_TRY(constant ? lay_out_constant(build, *node, &copy) : add_copy(build, *node, &copy));
        build->notes[*node].contiguous = copy;
        build->notes[copy].is_again = build->notes[*node].is_again;
    }
    *node = build->notes[*node].contiguous;
    return SGM_OK;
}

/* --- views --- */

/* Finds strides that show the memory of `base` in another shape. False: no strides do, and the elements must
 * be copied.
 *
 * Axes of length 1 are dropped, then axes are matched from the left in the smallest groups of equal size: (6,
 * 4) as (2, 12) is one group of both axes, (6, 4) as (2, 3, 4) is two. Within a group of old axes each must
 * continue the next one without a gap; then the new axes of the group get row-major strides on the stride of
 * the group's last axis.
 */
static bool reshape_strides(const sgm__node *base, const sgm_shape *shape, int64_t *strides)
{
    sgm_shape old = {0};
    int64_t old_strides[SGM_MAX_RANK] = {0};
    for (int32_t i = 0; i < base->type.shape.rank; i++)
        if (base->type.shape.dims[i] != 1) {
            old_strides[old.rank] = base->place.strides[i];
            old.dims[old.rank++] = base->type.shape.dims[i];
        }
    if (sgm_shape_elements(shape) == 0) {
        sgm__contiguous_strides(shape, strides);
        return true;
    }
    int32_t i = 0, k = 0;
    while (i < old.rank && k < shape->rank) {
        int32_t i_end = i + 1, k_end = k + 1;
        int64_t old_size = old.dims[i], new_size = shape->dims[k];
        while (old_size != new_size) {
            if (old_size < new_size)
                old_size *= old.dims[i_end++];
            else
                new_size *= shape->dims[k_end++];
        }
        for (int32_t a = i; a + 1 < i_end; a++)
            if (old_strides[a] != old_strides[a + 1] * old.dims[a + 1])
                return false;
        int64_t stride = old_strides[i_end - 1];
        for (int32_t a = k_end; a-- > k;) {
            strides[a] = stride;
            stride *= shape->dims[a];
        }
        i = i_end;
        k = k_end;
    }
    for (; k < shape->rank; k++) /* only axes of length 1 are left */
        strides[k] = 1;
    return true;
}

/* Repeated axes, and axes that the base does not have, get stride 0. */
static void broadcast_strides(const sgm__node *base, const sgm_shape *shape, int64_t *strides)
{
    int32_t missing = shape->rank - base->type.shape.rank;
    for (int32_t i = 0; i < shape->rank; i++) {
        bool repeated = i < missing || base->type.shape.dims[i - missing] == 1;
        strides[i] = repeated ? 0 : base->place.strides[i - missing];
    }
}

/* The strides of a view on `base`, and the offset in elements from the base's first element to the view's.
 * False: the base must be contiguous first (reshape), or the operation is no known view. */
static bool view_layout(const sgm__instruction *view, const sgm__node *base, int64_t *offset,
                        int64_t *strides)
{
    const int64_t *integers = view->attributes->integers;
    *offset = 0;
    if (view->op == &sgm__op_reshape)
        return reshape_strides(base, &view->type.shape, strides);
    if (view->op == &sgm__op_broadcast) {
        broadcast_strides(base, &view->type.shape, strides);
        return true;
    }
    memcpy(strides, base->place.strides, SGM_MAX_RANK * sizeof(int64_t));
    if (view->op == &sgm__op_permute) {
        for (int32_t i = 0; i < view->type.shape.rank; i++)
            strides[i] = base->place.strides[integers[i]];
    } else if (view->op == &sgm__op_slice) {
        *offset = integers[1] * strides[integers[0]];
        if (__builtin_mul_overflow(strides[integers[0]], integers[3], &strides[integers[0]]))
            strides[integers[0]] = 0; /* with such a step the slice has one element only */
    } else if (view->op == &sgm__op_flip) {
        int64_t size = view->type.shape.dims[integers[0]];
        *offset = size > 0 ? (size - 1) * strides[integers[0]] : 0;
        strides[integers[0]] *= -1;
    } else {
        return false;
    }
    return true;
}

/* Adds a view. Views of views refer to the root directly, with offsets added up. */
static sgm_status add_view(sgm__plan_build *build, const sgm__instruction *instruction, const sgm__node *node,
                           int32_t base, int32_t *index)
{
    int64_t offset, strides[SGM_MAX_RANK] = {0};
    if (!view_layout(instruction, &build->plan->nodes[base], &offset, strides)) {
        SGM_TRY(make_contiguous(build, &base));
        if (!view_layout(instruction, &build->plan->nodes[base], &offset, strides))
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "operation %s says that it is a view, but of no known kind",
                            instruction->op->name);
    }
    SGM_TRY(add_node(build, node, &base, index));
    memcpy(build->plan->nodes[*index].place.strides, strides, sizeof strides);
    build->notes[*index].root = build->notes[base].root;
    build->notes[*index].view_offset = build->notes[base].view_offset + offset;
    return SGM_OK;
}

/* --- sources --- */

/* Appends a string to plan->names; *name is its offset. */
static sgm_status add_name(sgm__plan *plan, const char *text, int32_t *name)
{
    *name = (int32_t)plan->names.length;
    sgm__text_append_bytes(&plan->names, text, strlen(text) + 1);
    return plan->names.failed ? SGM_ERROR_MEMORY : SGM_OK;
}

/* Adds an input or a state to the plan's list of them. */
static sgm_status bind_source(sgm__plan_build *build, const sgm__instruction *instruction, sgm__place *place)
{
    sgm__plan *plan = build->plan;
    bool input = instruction->op == &sgm__op_input;
    int32_t *count = input ? &plan->input_count : &plan->state_count;
    sgm__binding *bindings = input ? plan->inputs : plan->states;
    *place = (sgm__place){.store = input ? SGM__STORE_INPUT : SGM__STORE_STATE, .index = *count};
    bindings[*count] = (sgm__binding){.type = instruction->type, .node = -1};
    SGM_TRY(add_name(plan, sgm__graph_string(build->graph, instruction->name), &bindings[*count].name));
    ++*count;
    return SGM_OK;
}

/* Whether it is a constant whose bytes come when they are asked for. */
static bool is_fill(const sgm__plan_build *build, const sgm__instruction *instruction)
{
    return instruction->op == &sgm__op_constant && instruction->constant >= 0 &&
           sgm__plan_fills_later(build->handler, sgm__type_bytes(&instruction->type));
}

/* Copies a constant's contents into the plan: a tensor, or a single number that is an attribute. */
static sgm_status store_constant(sgm__plan_build *build, const sgm__instruction *instruction,
                                 sgm__place *place)
{
    sgm__plan *plan = build->plan;
    size_t bytes = sgm__type_bytes(&instruction->type);
    if (is_fill(build, instruction))
        return sgm__plan_add_fill(plan, build->graph->constants[instruction->constant], place);
    SGM_TRY(add_constant_bytes(build, bytes, place));
    if (instruction->constant >= 0) {
        const sgm_tensor *tensor = build->graph->constants[instruction->constant];
        memcpy(plan->constants + place->offset, sgm_tensor_const_data(tensor), bytes);
    } else {
        sgm_array array = {.dtype = instruction->type.dtype, .data = plan->constants + place->offset};
        sgm_array_store(&array, 0, instruction->attributes->numbers[0]);
        place->live = sgm__number_is_live(instruction);
    }
    return SGM_OK;
}

static sgm_status add_source(sgm__plan_build *build, const sgm__instruction *instruction, sgm__node *node,
                             int32_t *index)
{
    bool constant = instruction->op == &sgm__op_constant || instruction->op == &sgm__op_number;
    SGM_TRY(constant ? store_constant(build, instruction, &node->place)
                     : bind_source(build, instruction, &node->place));
    return add_node(build, node, NULL, index);
}

/* --- all instructions --- */

/* Whether `value`, the right operand of a product, is worth a contiguous copy; see MANY_PRODUCTS. */
static bool is_transposed_once(const sgm__plan_build *build, const sgm__instruction *product, int32_t value)
{
    const sgm__node *node = &build->plan->nodes[build->node_of[value]];
    return product->op == &sgm__op_matmul && build->products[value] >= MANY_PRODUCTS &&
           node->place.strides[node->type.shape.rank - 1] != 1;
}

static void count_products(sgm__plan_build *build)
{
    for (size_t i = 0; i < build->graph->count; i++) {
        const sgm__instruction *instruction = &build->graph->instructions[i];
        if (instruction->op == &sgm__op_matmul)
            build->products[build->graph->operands[instruction->first_input + 1].index]++;
    }
}

/* Adds a view or a computed node. Operands are made contiguous unless the operation reads by strides:
 * elementwise operations do, and those with SGM_OP_STRIDED. */
static sgm_status add_computed(sgm__plan_build *build, const sgm__instruction *instruction, sgm__node *node,
                               int32_t *index)
{
    bool strided = sgm__plan_is_fusable(instruction->op) || (instruction->op->flags & SGM_OP_STRIDED) != 0;
    bool view = (instruction->op->flags & SGM_OP_VIEW) != 0;
    int32_t *operands = sgm__alloc((size_t)instruction->input_count * sizeof(int32_t));
    if (operands == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    for (int32_t k = 0; k < instruction->input_count && status == SGM_OK; k++) {
        int32_t value = build->graph->operands[instruction->first_input + k].index;
        operands[k] = build->node_of[value];
        if ((!strided && !view) || (k == 1 && is_transposed_once(build, instruction, value)))
            status = make_contiguous(build, &operands[k]);
    }
    node->place.store = view ? SGM__STORE_NONE : SGM__STORE_ARENA;
    if (status == SGM_OK)
        status = view ? add_view(build, instruction, node, operands[0], index)
                      : add_node(build, node, operands, index);
    sgm__free(operands);
    return status;
}

/* A value that is computed among the rows of a concatenation has the strides of that concatenation's
 * shape. */
static void lay_out_part(sgm__plan_build *build, int32_t value)
{
    int32_t rows = build->buffers[value].rows;
    if (rows >= 0)
        sgm__contiguous_strides(&build->graph->instructions[rows].type.shape,
                                build->plan->nodes[build->node_of[value]].place.strides);
}

/* Translates build->buffers from values to nodes. */
static void note_buffers(sgm__plan_build *build)
{
    for (size_t i = 0; i < build->graph->count; i++) {
        const sgm__plan_buffer *buffer = &build->buffers[i];
        if (buffer->value < 0)
            continue;
        sgm__plan_node_notes *notes = &build->notes[build->node_of[i]];
        notes->buffer = build->node_of[buffer->value];
        notes->buffer_offset =
            buffer->offset * (int64_t)sgm_dtype_size(build->graph->instructions[i].type.dtype);
        build->notes[notes->buffer].is_in_place = true;
    }
}

/* Turns the instruction number `value` into a node. */
static sgm_status add_instruction(sgm__plan_build *build, int32_t value)
{
    const sgm__instruction *instruction = &build->graph->instructions[value];
    sgm__node node = {.op = instruction->op,
                      .attributes = *instruction->attributes,
                      .type = instruction->type,
                      .input_count = instruction->input_count};
    SGM_TRY(add_name(build->plan, sgm__graph_string(build->graph, instruction->label), &node.label));
    if ((instruction->op->flags & SGM_OP_SOURCE) != 0)
        return add_source(build, instruction, &node, &build->node_of[value]);
    if ((instruction->op->flags & SGM_OP_VIEW) != 0)
        node.input_count = 1;
    SGM_TRY(add_computed(build, instruction, &node, &build->node_of[value]));
    build->notes[build->node_of[value]].is_again = instruction->is_again;
    lay_out_part(build, value);
    return SGM_OK;
}

/* Whether a node can be an output as it is: contiguous in the arena. States may be overwritten during the run
 * and inputs may be fed anew before the output is read, so those are copied. */
static bool is_own_memory(const sgm__plan_build *build, int32_t node)
{
    sgm__store store = build->plan->nodes[build->notes[node].root].place.store;
    return store == SGM__STORE_ARENA && is_contiguous(&build->plan->nodes[node]);
}

static sgm_status add_outputs(sgm__plan_build *build)
{
    for (size_t i = 0; i < build->graph->output_count; i++) {
        sgm__binding *output = &build->plan->outputs[i];
        int32_t node = build->node_of[build->graph->outputs[i].value.index];
        if (!is_own_memory(build, node))
            SGM_TRY(add_copy(build, node, &node));
        output->node = node;
        output->type = build->plan->nodes[node].type;
        SGM_TRY(add_name(build->plan, sgm__graph_string(build->graph, build->graph->outputs[i].name),
                         &output->name));
        build->plan->output_count++;
    }
    return SGM_OK;
}

/* Whether a node after `node`, or what is computed when all nodes are done (an output, or another
 * assignment), reads the memory of `state`. */
static bool is_read_later(const sgm__plan_build *build, int32_t state, int32_t node)
{
    const sgm__plan *plan = build->plan;
    const sgm_graph *graph = build->graph;
    for (int32_t i = node + 1; i < plan->node_count; i++)
        for (int32_t k = 0; k < plan->nodes[i].input_count; k++)
            if (build->notes[plan->operands[plan->nodes[i].first_input + k]].root == state)
                return true;
    for (size_t i = 0; i < graph->output_count; i++)
        if (build->notes[build->node_of[graph->outputs[i].value.index]].root == state)
            return true;
    for (size_t i = 0; i < graph->assignment_count; i++)
        if (build->notes[build->node_of[graph->assignments[i].value.index]].root == state)
            return true;
    return false;
}

/* Whether a node can be computed in the memory of the state that it is assigned to, so that it needs neither
 * memory of its own nor a copy: it is an operation that may overwrite its first operand, that operand is this
 * state, and nothing reads the old value through another operand or later. */
static bool overwrites(const sgm__plan_build *build, int32_t node, int32_t state)
{
    const sgm__node *n = &build->plan->nodes[node];
    if ((n->op->flags & SGM_OP_IN_PLACE) == 0 || n->input_count == 0 || n->place.store != SGM__STORE_ARENA ||
        build->notes[node].buffer >= 0)
        return false;
    const int32_t *operands = build->plan->operands + n->first_input;
    bool may = operands[0] == state;
    for (int32_t k = 1; k < n->input_count && may; k++)
        may = build->notes[operands[k]].root != state;
    return may && !is_read_later(build, state, node);
}

/* Gives nodes that overwrite the state that they are assigned to its memory. That those that read the old
 * value before them come before them is seen to by plan_steps.c. Before outputs are added, which are copied
 * if they lie in a state. */
static void place_in_states(sgm__plan_build *build)
{
    for (size_t i = 0; i < build->graph->assignment_count; i++) {
        int32_t node = build->node_of[build->graph->assignments[i].value.index],
                state = build->node_of[build->graph->assignments[i].state.index];
        if (!overwrites(build, node, state))
            continue;
        build->plan->nodes[node].place = build->plan->nodes[state].place;
        build->notes[node].writes = state;
    }
}

/* Adds a copy into the state's memory for every assignment of a value that is not there already. Assignments
 * take effect together, after everything was read: a value that is itself a state's old content (a swap of
 * two states, for instance) is first copied into the arena, since the state may be overwritten by then. That
 * other readers of a state come before its copy is seen to by plan_steps.c. */
static sgm_status add_assignments(sgm__plan_build *build)
{
    size_t count = build->graph->assignment_count;
    int32_t *values = sgm__alloc((count + 1) * sizeof(int32_t));
    if (values == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        values[i] = build->node_of[build->graph->assignments[i].value.index];
        if (build->plan->nodes[build->notes[values[i]].root].op == &sgm__op_state)
            status = add_copy(build, values[i], &values[i]);
    }
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        int32_t state = build->node_of[build->graph->assignments[i].state.index], copy;
        if (build->notes[values[i]].writes == state)
            continue;
        status = add_copy(build, values[i], &copy);
        if (status == SGM_OK) {
            build->plan->nodes[copy].place = build->plan->nodes[state].place;
            build->notes[copy].writes = state;
        }
    }
    sgm__free(values);
    return status;
}

/* All sources that are constant, but for fills, in one piece of memory at once. */
static sgm_status reserve_sources(sgm__plan_build *build)
{
    size_t bytes = 0;
    for (size_t i = 0; i < build->graph->count; i++) {
        const sgm__instruction *instruction = &build->graph->instructions[i];
        bool constant = instruction->op == &sgm__op_constant || instruction->op == &sgm__op_number;
        if (constant && !is_fill(build, instruction))
            bytes += sgm__align(sgm__type_bytes(&instruction->type));
    }
    return reserve_constants(build, bytes);
}

/* Fills lie behind all that is in the block by now, not between: a page of the system that others have
 * written to is there as a whole. */
static sgm_status place_fills(sgm__plan_build *build)
{
    sgm__plan *plan = build->plan;
    if (plan->fills == NULL)
        return SGM_OK;
    int64_t end = sgm__plan_lay_out_fills(plan, plan->constant_bytes);
    SGM_TRY(reserve_constants(build, (size_t)end));
    plan->constant_bytes = end;
    return SGM_OK;
}

sgm_status sgm__plan_build_nodes(sgm__plan_build *build)
{
    SGM_TRY(reserve_sources(build));
    count_products(build);
    for (int32_t i = 0; i < (int32_t)build->graph->count; i++)
        SGM_TRY(add_instruction(build, i));
    note_buffers(build);
    place_in_states(build);
    SGM_TRY(add_outputs(build));
    SGM_TRY(add_assignments(build));
    return place_fills(build);
}
