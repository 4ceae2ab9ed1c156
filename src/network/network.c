/* From a description to a network: a list of layers with names, each knowing whose results it takes.
 *
 * sgm_network_create walks the tree of sgm_layer in the order of the text. Each layer becomes an entry,
 * numbered by its place in the text; its inputs are a range of `slots`, which hold numbers of entries.
 * Entries with branches are numbered before their branches but recorded after them, so `order` is a list of
 * its own. Everything that needs no shapes is checked here, with line and column of the text: names, unused
 * values, layers behind costs. Shapes are checked while recording (record.c). */
#include "network/network_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* A value that a statement `name = chain` has defined: the entry whose result the name stands for. */
typedef struct definition {
    const char *name;
    const sgm_layer *node;
    int32_t entry;
    bool used;
} definition;

/* The state that lives only while a network is made; definitions are found by linear search, since there are
 * few. */
typedef struct builder {
    sgm_network *network;
    definition *definitions;
    size_t definition_count, definition_capacity;
    int32_t *ends; /* values of statements that have no name */
    size_t end_count, end_capacity;
} builder;

/* Puts the place in the text, if there is one, before the newest message. */
static sgm_status at(const sgm_layer *node)
{
    if (node->column == 0)
        return sgm_last_status();
    if (node->line > 1)
        return sgm__fail_within("line %d, column %d", node->line, node->column);
    return sgm__fail_within("column %d", node->column);
}

static const sgm_layer_type *type_of(const sgm_network *network, int32_t entry)
{
    return network->entries[entry].layer->type;
}

static bool is_cost(const sgm_network *network, int32_t entry)
{
    return (type_of(network, entry)->flags & SGM_LAYER_COST) != 0;
}

/* --- names --- */

/* "NUMBER-TYPE" for a layer without a name. A '#' in a given name becomes the number, so that copies of a
 * repeated layer have different names. The caller owns the result. */
static char *make_name(const sgm_layer *layer, size_t number)
{
    if (layer->name == NULL)
        return sgm__format("%zu-%s", number, layer->type->name);
    const char *sign = strchr(layer->name, '#');
    if (sign == NULL)
        return sgm__strdup(layer->name);
    return sgm__format("%.*s%zu%s", (int)(sign - layer->name), layer->name, number, sign + 1);
}

static int compare_entries(const void *a, const void *b)
{
    const sgm__entry *const *first = a, *const *second = b;
    return strcmp((*first)->name, (*second)->name);
}

/* Names must be unique, since parameters, outputs and identifiers of arguments are found by them. Sorting
 * keeps this fast for thousands of layers. */
static sgm_status check_names(const sgm_network *network)
{
    const sgm__entry **sorted = sgm__calloc(network->entry_count, sizeof(const sgm__entry *));
    if (sorted == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < network->entry_count; i++)
        sorted[i] = &network->entries[i];
    qsort(sorted, network->entry_count, sizeof(const sgm__entry *), compare_entries);
    sgm_status status = SGM_OK;
    for (size_t i = 1; i < network->entry_count && status == SGM_OK; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0) {
            sgm_fail(SGM_ERROR_ARGUMENT,
                     "there are two layers '%s'; names must be unique, and a '#' in one becomes the layer's "
                     "number",
                     sorted[i]->name);
            status = at(sorted[i]->layer);
        }
    sgm__free(sorted);
    return status;
}

/* Inputs without a name read the field "inputs"; two of them would silently get the same data. */
static sgm_status check_inputs(const sgm_network *network)
{
    size_t unnamed = 0;
    for (size_t i = 0; i < network->entry_count; i++) {
        const sgm_layer *layer = network->entries[i].layer;
        if (layer->type != &sgm__layer_input || layer->name != NULL)
            continue;
        if (++unnamed > 1) {
            sgm_fail(SGM_ERROR_ARGUMENT, "two inputs have no name and would read the same field of the data, "
                                         "'inputs'; name them: input(4, name=left)");
            return at(layer);
        }
    }
    return SGM_OK;
}

/* --- layers --- */

/* Appends an entry whose name is made of its number; inputs are added by schedule(). */
static sgm_status add_entry(sgm_network *network, const sgm_layer *layer, int32_t *entry)
{
    SGM_TRY(sgm__reserve(&network->entries, &network->entry_capacity, network->entry_count + 1,
                         sizeof(sgm__entry)));
    char *name = make_name(layer, network->entry_count);
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    *entry = (int32_t)network->entry_count;
    network->entries[network->entry_count++] = (sgm__entry){.layer = layer, .name = name};
    network->dynamic = network->dynamic || (layer->type->flags & SGM_LAYER_DYNAMIC) != 0;
    return SGM_OK;
}

static sgm_status add_int(int32_t **list, size_t *count, size_t *capacity, int32_t value)
{
    SGM_TRY(sgm__reserve(list, capacity, *count + 1, sizeof(int32_t)));
    (*list)[(*count)++] = value;
    return SGM_OK;
}

/* Appends the entry to the order of recording; its inputs are the slots from `first` on. A value that comes
 * from a cost is refused, because a cost is one number and not recorded for predictions. */
static sgm_status schedule(sgm_network *network, int32_t entry, size_t first)
{
    sgm__entry *added = &network->entries[entry];
    added->first_input = (int32_t)first;
    added->input_count = (int32_t)(network->slot_count - first);
    for (size_t i = first; i < network->slot_count; i++)
        if (is_cost(network, network->slots[i])) {
            sgm_fail(SGM_ERROR_ARGUMENT,
                     "layer '%s' follows the cost '%s'; a cost must be the last of its chain", added->name,
                     network->entries[network->slots[i]].name);
            return at(added->layer);
        }
    return add_int(&network->order, &network->order_count, &network->order_capacity, entry);
}

static sgm_status walk(builder *b, const sgm_layer *node, int32_t incoming, bool may_start, int32_t *result);

/* A single layer. `incoming` is the entry whose value it gets, -1 at the start of a chain. `may_start` says
 * that a source (such as input) or a reference may stand here though a value comes in: at the start of a
 * chain or a branch. */
static sgm_status walk_layer(builder *b, const sgm_layer *node, int32_t incoming, bool may_start,
                             int32_t *result)
{
    sgm_network *network = b->network;
    if (sgm__is_adapter(node)) {
        sgm_fail(SGM_ERROR_ARGUMENT, "%s is a statement of its own: put it at the end, behind a ';'",
                 node->type->name);
        return at(node);
    }
    SGM_TRY(add_entry(network, node, result));
    bool source = node->type->max_inputs == 0;
    if (source && incoming >= 0 && !may_start) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "%s takes nothing from the layer before it; it can only start a chain or a branch",
                 node->type->name);
        return at(node);
    }
    if (!source && incoming < 0 && node->type->min_inputs > 0) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "%s has no layer before it; start the chain with input(...) or with the name of "
                 "a value",
                 node->type->name);
        return at(node);
    }
    size_t first = network->slot_count;
    if (!source && incoming >= 0)
        SGM_TRY(add_int(&network->slots, &network->slot_count, &network->slot_capacity, incoming));
    return schedule(network, *result, first);
}

/* A join: every branch starts from the same incoming value. Results are collected first and become slots
 * together afterwards, because the layers in the branches add slots of their own, and an entry's slots must
 * be contiguous. */
static sgm_status walk_branches(builder *b, const sgm_layer *node, int32_t incoming, int32_t *result)
{
    sgm_network *network = b->network;
    SGM_TRY(add_entry(network, node, result));
    int32_t *branches = sgm__calloc(node->child_count, sizeof(int32_t));
    if (branches == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < node->child_count && status == SGM_OK; i++)
        status = walk(b, node->children[i], incoming, true, &branches[i]);
    size_t first = network->slot_count;
    for (size_t i = 0; i < node->child_count && status == SGM_OK; i++)
        status = add_int(&network->slots, &network->slot_count, &network->slot_capacity, branches[i]);
    sgm__free(branches);
    return status == SGM_OK ? schedule(network, *result, first) : status;
}

/* A name in the place of a layer: no entry is added, the result is the entry that the name was defined for.
 */
static sgm_status walk_reference(builder *b, const sgm_layer *node, int32_t incoming, bool may_start,
                                 int32_t *result)
{
    for (size_t i = 0; i < b->definition_count; i++)
        if (strcmp(b->definitions[i].name, node->name) == 0) {
            if (incoming >= 0 && !may_start) {
                sgm_fail(SGM_ERROR_ARGUMENT,
                         "'%s' names a value, which can only start a chain or be a branch", node->name);
                return at(node);
            }
            b->definitions[i].used = true;
            *result = b->definitions[i].entry;
            return SGM_OK;
        }
    sgm_fail(SGM_ERROR_NOT_FOUND, "there is no value '%s' here; a name must be defined before it is used",
             node->name);
    return at(node);
}

/* Adds the entries of a subtree; *result is the entry whose value the subtree gives. The children of a chain
 * get one another's results; a repeat walks its one child `times` times. */
static sgm_status walk(builder *b, const sgm_layer *node, int32_t incoming, bool may_start, int32_t *result)
{
    *result = incoming;
    switch (node->kind) {
    case SGM__NODE_LAYER:
        return walk_layer(b, node, incoming, may_start, result);
    case SGM__NODE_BRANCHES:
        return walk_branches(b, node, incoming, result);
    case SGM__NODE_REFERENCE:
        return walk_reference(b, node, incoming, may_start, result);
    case SGM__NODE_CHAIN:
    case SGM__NODE_STATEMENTS:
    case SGM__NODE_DEFINITION:
        for (size_t i = 0; i < node->child_count; i++)
            SGM_TRY(walk(b, node->children[i], *result, may_start && i == 0, result));
        return SGM_OK;
    case SGM__NODE_REPEAT:
        for (int32_t i = 0; i < node->times; i++)
            SGM_TRY(walk(b, node->children[0], *result, may_start && i == 0, result));
        return SGM_OK;
    }
    return SGM_OK;
}

/* --- statements --- */

/* Notes that `node` defines a name. Names are visible only in later statements. */
static sgm_status define(builder *b, const sgm_layer *node, int32_t entry)
{
    for (size_t i = 0; i < b->definition_count; i++)
        if (strcmp(b->definitions[i].name, node->name) == 0) {
            sgm_fail(SGM_ERROR_ARGUMENT, "'%s' is defined twice", node->name);
            return at(node);
        }
    SGM_TRY(
        sgm__reserve(&b->definitions, &b->definition_capacity, b->definition_count + 1, sizeof(definition)));
    b->definitions[b->definition_count++] = (definition){node->name, node, entry, false};
    return SGM_OK;
}

/* The value of a statement without a name is an output, and so is the value of the last statement, named or
 * not. */
static sgm_status walk_statement(builder *b, const sgm_layer *node, bool last)
{
    int32_t entry;
    SGM_TRY(walk(b, node, -1, true, &entry));
    if (node->kind == SGM__NODE_DEFINITION)
        SGM_TRY(define(b, node, entry));
    if (node->kind != SGM__NODE_DEFINITION || last)
        SGM_TRY(add_int(&b->ends, &b->end_count, &b->end_capacity, entry));
    if (node->kind == SGM__NODE_DEFINITION && last)
        b->definitions[b->definition_count - 1].used = true;
    return SGM_OK;
}

/* A value that nothing uses is most likely a typing mistake. Costs and output layers are used by the network
 * itself. */
static sgm_status check_definitions(const builder *b)
{
    for (size_t i = 0; i < b->definition_count; i++) {
        const definition *d = &b->definitions[i];
        bool end = is_cost(b->network, d->entry) || type_of(b->network, d->entry) == &sgm__layer_output;
        if (d->used || end)
            continue;
        sgm_fail(SGM_ERROR_ARGUMENT, "the value '%s' is never used; use it, or take it out", d->name);
        return at(d->node);
    }
    return SGM_OK;
}

/* --- outputs --- */

/* Adds the value of `producer` once. If two rules make it an output, a cost's transformation (such as
 * softmax) is kept. */
static sgm_status add_output(sgm_network *network, int32_t producer, int32_t cost)
{
    for (size_t i = 0; i < network->output_count; i++)
        if (network->outputs[i].producer == producer) {
            if (network->outputs[i].cost < 0)
                network->outputs[i].cost = cost;
            return SGM_OK;
        }
    SGM_TRY(sgm__reserve(&network->outputs, &network->output_capacity, network->output_count + 1,
                         sizeof(sgm__network_output)));
    network->outputs[network->output_count++] = (sgm__network_output){producer, cost};
    return SGM_OK;
}

/* Fixes the order of outputs: first the values that costs judge, in the order of the costs, then output
 * layers, then the values in which statements end. Metrics and predictions rely on the judged value being
 * the first output. */
static sgm_status collect_outputs(builder *b)
{
    sgm_network *network = b->network;
    for (size_t i = 0; i < network->order_count; i++) {
        int32_t entry = network->order[i];
        if (is_cost(network, entry))
            SGM_TRY(add_output(network, network->slots[network->entries[entry].first_input],
                               type_of(network, entry)->predict != NULL ? entry : -1));
    }
    for (size_t i = 0; i < network->order_count; i++)
        if (type_of(network, network->order[i]) == &sgm__layer_output)
            SGM_TRY(add_output(network, network->order[i], -1));
    for (size_t i = 0; i < b->end_count; i++)
        if (!is_cost(network, b->ends[i]))
            SGM_TRY(add_output(network, b->ends[i], -1));
    return SGM_OK;
}

/* All statements in their order. The last one is the last that is no adapter. */
static sgm_status walk_statements(builder *b, const sgm_layer *root)
{
    size_t count = root->child_count;
    while (count > 0 && sgm__is_adapter(root->children[count - 1]))
        count--;
    for (size_t i = 0; i < root->child_count; i++)
        if (!sgm__is_adapter(root->children[i]))
            SGM_TRY(walk_statement(b, root->children[i], i + 1 == count));
        else if (sgm__network_add_adapter(b->network, root->children[i]) != SGM_OK)
            return at(root->children[i]);
    return SGM_OK;
}

/* Fills the network from the tree. The arrays of recorded values are allocated here once, as the number of
 * entries is final. */
static sgm_status build(builder *b, const sgm_layer *root)
{
    SGM_TRY(root->kind == SGM__NODE_STATEMENTS ? walk_statements(b, root) : walk_statement(b, root, true));
    if (b->network->entry_count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the network has no layers");
    SGM_TRY(check_names(b->network));
    SGM_TRY(check_inputs(b->network));
    SGM_TRY(check_definitions(b));
    SGM_TRY(collect_outputs(b));
    b->network->values = sgm__calloc(b->network->entry_count, sizeof(sgm_value));
    b->network->lengths = sgm__calloc(b->network->entry_count, sizeof(sgm_value));
    b->network->marks = sgm__calloc(b->network->entry_count + 1, sizeof(sgm__layer_mark));
    return b->network->values != NULL && b->network->lengths != NULL && b->network->marks != NULL
               ? SGM_OK
               : SGM_ERROR_MEMORY;
}

/* Takes `layers` also on failure, so that nested calls need no clean-up; only layers that already have an
 * owner stay with it. NULL passes on the error of the call that made it. */
sgm_network *sgm_network_create(sgm_layer *layers)
{
    if (layers == NULL) {
        if (sgm_last_status() == SGM_OK)
            sgm_fail(SGM_ERROR_ARGUMENT, "the layers of the network are NULL");
        return NULL;
    }
    if (layers->owned) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the layers belong to another network or layer; describe them again");
        return NULL;
    }
    sgm_network *network = sgm__calloc(1, sizeof(sgm_network));
    if (network == NULL) {
        sgm_layer_free(layers);
        return NULL;
    }
    network->root = layers;
    builder b = {.network = network};
    sgm_status status = build(&b, layers);
    sgm__free(b.definitions);
    sgm__free(b.ends);
    if (status == SGM_OK) {
        layers->owned = true;
        return network;
    }
    sgm_network_free(network);
    return NULL;
}

sgm_network *sgm_network_parse(const char *text)
{
    sgm_layer *layers = sgm_layer_parse(text);
    return layers != NULL ? sgm_network_create(layers) : NULL;
}

void sgm_network_free(sgm_network *network)
{
    if (network == NULL)
        return;
    for (size_t i = 0; i < network->entry_count; i++) {
        sgm__free(network->entries[i].name);
        sgm__free(network->entries[i].own);
    }
    for (size_t i = 0; i < network->string_count; i++)
        sgm__free(network->strings[i]);
    network->root->owned = false;
    sgm_layer_free(network->root);
    sgm__free(network->entries);
    sgm__free(network->order);
    sgm__free(network->slots);
    sgm__free(network->outputs);
    sgm__free(network->values);
    sgm__free(network->lengths);
    for (size_t i = 0; i < network->memory_count; i++)
        sgm__free(network->memories[i]);
    sgm__free(network->memories);
    sgm__free(network->marks);
    sgm__free(network->adapters);
    sgm__free(network->strings);
    sgm__name_index_free(&network->parameter_index);
    sgm__free(network->parameters);
    sgm__free(network->inputs);
    sgm__free(network->indices);
    sgm__free(network->rotations);
    sgm__free(network->targets);
    sgm__free(network->predictions);
    sgm__free(network->costs);
    sgm__free(network);
}

size_t sgm_network_layers(const sgm_network *network)
{
    return network != NULL ? network->entry_count : 0;
}

const char *sgm_network_layer_name(const sgm_network *network, size_t index)
{
    return network != NULL && index < network->entry_count ? network->entries[index].name : NULL;
}

bool sgm_network_is_dynamic(const sgm_network *network)
{
    return network != NULL && network->dynamic;
}
