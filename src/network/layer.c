/* Descriptions: trees of layers, made by calls or by the notation.
 *
 * Every function that puts layers together takes them, also when it fails, so that calls can be nested
 * without a variable for each layer: sgm_chain(sgm_input(...), sgm_dense(...)). NULL among the layers means
 * that an inner call has failed; it is passed on with that call's message. A node knows how many layers are
 * below it with repeats multiplied out, and how deep it is, so the limits hold before anything is expanded.
 * The notation (notation.c) uses the same functions. What the arguments of a layer may be is checked in
 * arguments.c; how layers become a network is network.c. */
#include "network/network_internal.h"

sgm_layer *sgm__layer_new(sgm__node_kind kind, const sgm_layer_type *type)
{
    sgm_layer *layer = sgm__calloc(1, sizeof(sgm_layer));
    if (layer == NULL)
        return NULL;
    layer->kind = kind;
    layer->type = type;
    layer->times = 1;
    layer->layers = layer->depth = 1;
    if (type != NULL) {
        layer->arguments = sgm__calloc(type->argument_count, sizeof(sgm__argument_value));
        if (layer->arguments == NULL) {
            sgm__free(layer);
            return NULL;
        }
    }
    return layer;
}

/* Frees a node and all below it. Recursion is bounded by SGM__MAX_DEPTH. */
static void release(sgm_layer *layer)
{
    for (size_t i = 0; i < layer->child_count; i++)
        release(layer->children[i]);
    if (layer->type != NULL)
        for (size_t i = 0; i < layer->type->argument_count; i++) {
            sgm__free(layer->arguments[i].text);
            sgm__free(layer->arguments[i].numbers);
        }
    sgm__free(layer->arguments);
    sgm__free(layer->children);
    sgm__free(layer->name);
    sgm__free(layer->share);
    sgm__free(layer);
}

void sgm_layer_free(sgm_layer *layer)
{
    /* what belongs to another description goes with that */
    if (layer != NULL && !layer->owned)
        release(layer);
}

/* A chain in a chain is taken apart: a + (b + c) is the same tree as a + b + c, and its text parses to it
 * again. */
static bool is_spliced(const sgm_layer *parent, const sgm_layer *child)
{
    return parent->kind == SGM__NODE_CHAIN && child->kind == SGM__NODE_CHAIN;
}

/* Refuses what would make something else than a tree (a layer given twice), and statements below chains or
 * branches. */
static sgm_status check_child(const sgm_layer *parent, const sgm_layer *child)
{
    if (child == NULL)
        return sgm__fail_null("a layer to put together is NULL");
    if (child->owned)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "a layer is given a second time; describe it again, or name its value and refer to it");
    bool statement = child->kind == SGM__NODE_DEFINITION && parent->kind == SGM__NODE_STATEMENTS;
    if (child->kind == SGM__NODE_STATEMENTS || (child->kind == SGM__NODE_DEFINITION && !statement))
        return sgm_fail(SGM_ERROR_ARGUMENT, "a definition of a name can only be a statement of its own, not "
                                            "part of a chain, a repeat or a branch");
    return SGM_OK;
}

/* Sets number of layers and depth of a parent, and refuses what a short text could make enormous. A chain
 * that will be spliced does not count as a level. The product cannot overflow: both factors are at most
 * SGM__MAX_LAYERS. */
static sgm_status measure(sgm_layer *parent, sgm_layer *const *children, size_t count)
{
    int64_t layers = parent->kind == SGM__NODE_BRANCHES ? 1 : 0;
    int32_t depth = 0;
    for (size_t i = 0; i < count && layers <= SGM__MAX_LAYERS; i++) {
        int32_t below = children[i]->depth - (is_spliced(parent, children[i]) ? 1 : 0);
        layers += children[i]->layers;
        depth = below > depth ? below : depth;
    }
    layers *= parent->times;
    if (layers > SGM__MAX_LAYERS)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the network has more than %d layers, with repeats multiplied out", SGM__MAX_LAYERS);
    if (depth >= SGM__MAX_DEPTH)
        return sgm_fail(SGM_ERROR_ARGUMENT, "layers are nested deeper than %d", SGM__MAX_DEPTH);
    parent->layers = (int32_t)layers;
    parent->depth = depth + 1;
    return SGM_OK;
}

/* Moves the children into the parent. After measure() only memory can be missing, and then nothing has been
 * moved. */
static sgm_status fill(sgm_layer *parent, sgm_layer *const *children, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += is_spliced(parent, children[i]) ? children[i]->child_count : 1;
    SGM_TRY(measure(parent, children, count));
    parent->children = sgm__calloc(total, sizeof(sgm_layer *));
    if (parent->children == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        sgm_layer *child = children[i];
        if (!is_spliced(parent, child)) {
            parent->children[parent->child_count++] = child;
            continue;
        }
        for (size_t j = 0; j < child->child_count; j++)
            parent->children[parent->child_count++] = child->children[j];
        child->child_count = 0;
        release(child);
    }
    return SGM_OK;
}

/* Frees the layers of a call that has failed. One that is in the list twice is freed once. */
static void free_all(sgm_layer *const *children, size_t count)
{
    for (size_t i = 0; i < count && children != NULL; i++) {
        bool again = false;
        for (size_t j = 0; j < i && !again; j++)
            again = children[j] == children[i];
        if (!again)
            sgm_layer_free(children[i]);
    }
}

/* Marking a child `owned` at once is what finds a layer that is in the list twice: check_child sees it owned
 * at its second place. On failure only the children that were marked here are freed; others belong to
 * somebody else. */
sgm_status sgm__layer_adopt(sgm_layer *parent, sgm_layer *const *children, size_t count)
{
    if (count == 0 || children == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "there are no layers to put together");
    /* the marks tell a layer that comes twice, and which ones to free */
    bool *taken = sgm__calloc(count, sizeof(bool));
    if (taken == NULL) {
        free_all(children, count);
        return SGM_ERROR_MEMORY;
    }
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count; i++) {
        if (status == SGM_OK)
            status = check_child(parent, children[i]);
        taken[i] = children[i] != NULL && !children[i]->owned;
        if (taken[i])
            children[i]->owned = true;
    }
    if (status == SGM_OK)
        status = fill(parent, children, count);
    for (size_t i = 0; i < count && status != SGM_OK; i++)
        if (taken[i])
            release(children[i]);
    sgm__free(taken);
    return status;
}

/* Statements with the description `only`, which has an owner and keeps it, as the first of them. */
static sgm_layer *statements_of(sgm_layer *only)
{
    sgm_layer *above = sgm__layer_new(SGM__NODE_STATEMENTS, NULL);
    if (above == NULL)
        return NULL;
    above->children = sgm__calloc(1, sizeof(sgm_layer *));
    if (above->children == NULL) {
        sgm__free(above);
        return NULL;
    }
    above->children[above->child_count++] = only;
    above->layers = only->layers;
    above->depth = only->depth + 1;
    above->owned = true;
    return above;
}

sgm_status sgm__layer_append(sgm_layer **root, sgm_layer *statement)
{
    if ((*root)->depth >= SGM__MAX_DEPTH)
        return sgm_fail(SGM_ERROR_ARGUMENT, "layers are nested deeper than %d", SGM__MAX_DEPTH);
    sgm_layer *above = (*root)->kind == SGM__NODE_STATEMENTS ? *root : statements_of(*root);
    if (above == NULL)
        return SGM_ERROR_MEMORY;
    *root = above;
    sgm_layer **children = sgm__calloc(above->child_count + 1, sizeof(sgm_layer *));
    if (children == NULL)
        return SGM_ERROR_MEMORY;
    memcpy(children, above->children, above->child_count * sizeof(sgm_layer *));
    sgm__free(above->children);
    above->children = children;
    above->children[above->child_count++] = statement;
    statement->owned = true;
    return SGM_OK;
}

/* A node above `children`; frees all on failure. */
static sgm_layer *above(sgm_layer *node, sgm_layer *const *children, size_t count)
{
    if (node == NULL) {
        free_all(children, count);
        return NULL;
    }
    if (sgm__layer_adopt(node, children, count) == SGM_OK)
        return node;
    sgm_layer_free(node);
    return NULL;
}

/* A chain of one layer is that layer, except for a definition, which check_child has to refuse. */
sgm_layer *sgm_chain_with(sgm_layer *const *layers, size_t count)
{
    if (count == 1 && layers != NULL && layers[0] != NULL && !layers[0]->owned &&
        layers[0]->kind != SGM__NODE_DEFINITION)
        return layers[0];
    return above(sgm__layer_new(SGM__NODE_CHAIN, NULL), layers, count);
}

sgm_layer *sgm_repeat(int32_t times, sgm_layer *layer)
{
    if (layer == NULL)
        return NULL;
    if (times < 1 || times > SGM__MAX_LAYERS) {
        sgm_fail(SGM_ERROR_ARGUMENT, "layers can be repeated 1 to %d times, not %d times", SGM__MAX_LAYERS,
                 times);
        sgm_layer_free(layer);
        return NULL;
    }
    sgm_layer *node = sgm__layer_new(SGM__NODE_REPEAT, NULL);
    if (node != NULL)
        node->times = times;
    return above(node, &layer, 1);
}

/* A node for branches of the type `name`, or NULL with an error if that type joins none or not so many. */
static sgm_layer *join(const char *name, size_t count)
{
    const sgm_layer_type *type = name != NULL ? sgm__layer_type_find(name) : NULL;
    if (type == NULL || (type->flags & SGM_LAYER_JOIN) == 0) {
        sgm_fail(SGM_ERROR_NOT_FOUND, "'%s' does not join branches; 'add' and 'concatenate' do",
                 name != NULL ? name : "");
        return NULL;
    }
    if (count < (size_t)type->min_inputs || count > (size_t)type->max_inputs) {
        sgm_fail(SGM_ERROR_ARGUMENT, "%s joins %d to %d branches, %zu are given", name, type->min_inputs,
                 type->max_inputs, count);
        return NULL;
    }
    return sgm__layer_new(SGM__NODE_BRANCHES, type);
}

sgm_layer *sgm_join_branches(const char *name, sgm_layer *const *branches, size_t count)
{
    return above(join(name, count), branches, count);
}

/* A node with a name of a value. The name must be a word of the notation that names no type of layer, or the
 * text of the description would parse to something else. */
static sgm_layer *named(sgm__node_kind kind, const char *name)
{
    if (name == NULL || sgm__name_check(name, "a value", false) != SGM_OK)
        return NULL;
    if (!sgm__is_word(name) || sgm__layer_type_find(name) != NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a value cannot be named '%s': %s", name,
                 sgm__is_word(name) ? "there is a layer of that name"
                                    : "names of values begin with a letter");
        return NULL;
    }
    sgm_layer *node = sgm__layer_new(kind, NULL);
    if (node != NULL && (node->name = sgm__strdup(name)) == NULL) {
        sgm_layer_free(node);
        return NULL;
    }
    return node;
}

sgm_layer *sgm_definition(const char *name, sgm_layer *layer)
{
    if (layer == NULL)
        return NULL;
    return above(named(SGM__NODE_DEFINITION, name), &layer, 1);
}

sgm_layer *sgm_reference(const char *name)
{
    return named(SGM__NODE_REFERENCE, name);
}

sgm_layer *sgm_statements_with(sgm_layer *const *statements, size_t count)
{
    return above(sgm__layer_new(SGM__NODE_STATEMENTS, NULL), statements, count);
}

/* --- one layer from options --- */

/* The error for an option that the layer does not have, with the list of those that it has. */
static sgm_status no_such_option(const sgm_layer *layer, const char *option)
{
    char list[300];
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s has no option '%s'; it has %s", layer->type->name, option,
                    sgm__arguments_list(layer->type, list, sizeof list));
}

/* Options have fixed types in C; an argument of the same name but another kind counts as missing. */
static sgm_status find_option(const sgm_layer *layer, const char *option, sgm__form form, int32_t *argument)
{
    *argument = sgm__argument_find(layer->type, option);
    if (*argument < 0 || sgm__form_of(&layer->type->arguments[*argument]) != form)
        return no_such_option(layer, option);
    return SGM_OK;
}

/* The setters below skip an option that has its zero value: in C that means "not given", so the default of
 * the type's table applies, and any layer accepts it. */
static sgm_status set_text_option(sgm_layer *layer, const char *option, const char *value)
{
    int32_t argument;
    if (value == NULL)
        return SGM_OK;
    SGM_TRY(find_option(layer, option, SGM__FORM_TEXT, &argument));
    return sgm__argument_set_text(layer, argument, value);
}

static sgm_status set_number_option(sgm_layer *layer, const char *option, double value)
{
    int32_t argument;
    if (value == 0)
        return SGM_OK;
    SGM_TRY(find_option(layer, option, SGM__FORM_NUMBER, &argument));
    return sgm__argument_set_number(layer, argument, value);
}

static sgm_status set_integer_option(sgm_layer *layer, const char *option, int64_t value)
{
    int32_t argument;
    if (value == 0)
        return SGM_OK;
    SGM_TRY(find_option(layer, option, SGM__FORM_INTEGER, &argument));
    return sgm__argument_set_integer(layer, argument, value);
}

static sgm_status set_flag_option(sgm_layer *layer, const char *option, bool value)
{
    int32_t argument;
    if (!value)
        return SGM_OK;
    SGM_TRY(find_option(layer, option, SGM__FORM_FLAG, &argument));
    return sgm__argument_set_flag(layer, argument, true);
}

/* One dimension, or two if the second is not 0; both 0: not given. */
static sgm_status set_pair_option(sgm_layer *layer, const char *option, const int64_t *pair)
{
    int32_t argument;
    for (int32_t i = 0; i < 2 && (pair[0] != 0 || pair[1] != 0) && (i == 0 || pair[1] != 0); i++) {
        SGM_TRY(find_option(layer, option, SGM__FORM_SHAPE, &argument));
        SGM_TRY(sgm__argument_append_dimension(layer, argument, pair[i]));
    }
    return SGM_OK;
}

static sgm_status set_cost_options(sgm_layer *layer, const sgm_layer_options *options)
{
    int32_t argument;
    SGM_TRY(set_flag_option(layer, "classes", options->classes));
    SGM_TRY(set_flag_option(layer, "shares", options->shares));
    SGM_TRY(set_flag_option(layer, "squared", options->squared));
    SGM_TRY(set_number_option(layer, "label_smoothing", options->label_smoothing));
    SGM_TRY(set_number_option(layer, "gamma", options->gamma));
    SGM_TRY(set_number_option(layer, "alpha", options->alpha));
    SGM_TRY(set_number_option(layer, "delta", options->delta));
    SGM_TRY(set_number_option(layer, "epsilon", options->epsilon));
    SGM_TRY(set_number_option(layer, "margin", options->margin));
    for (size_t i = 0; i < options->class_weight_count && options->class_weights != NULL; i++) {
        SGM_TRY(find_option(layer, "class_weights", SGM__FORM_NUMBERS, &argument));
        SGM_TRY(sgm__argument_append_number(layer, argument, options->class_weights[i]));
    }
    SGM_TRY(set_integer_option(layer, "labels", options->labels));
    SGM_TRY(set_integer_option(layer, "blank", options->blank));
    SGM_TRY(set_flag_option(layer, "skip", options->skip));
    SGM_TRY(set_text_option(layer, "targets", options->targets));
    SGM_TRY(set_text_option(layer, "weights", options->weights));
    return set_number_option(layer, "importance", options->importance);
}

static sgm_status set_adapter_options(sgm_layer *layer, const sgm_layer_options *options)
{
    int32_t argument;
    for (int32_t i = 0; i < 2 && options->columns[1] != 0; i++) {
        SGM_TRY(find_option(layer, "columns", SGM__FORM_SHAPE, &argument));
        SGM_TRY(sgm__argument_append_dimension(layer, argument, options->columns[i]));
    }
    SGM_TRY(set_integer_option(layer, "rank", options->rank));
    SGM_TRY(set_number_option(layer, "dropout", options->dropout));
    SGM_TRY(set_flag_option(layer, "rank_stabilised", options->rank_stabilised));
    SGM_TRY(set_text_option(layer, "on", options->on));
    SGM_TRY(set_text_option(layer, "quantize", options->quantize));
    return set_text_option(layer, "train", options->train);
}

static sgm_status set_window_options(sgm_layer *layer, const sgm_layer_options *options)
{
    SGM_TRY(set_pair_option(layer, "kernel", options->kernel));
    SGM_TRY(set_pair_option(layer, "stride", options->stride));
    SGM_TRY(set_pair_option(layer, "padding", options->padding));
    SGM_TRY(set_pair_option(layer, "dilation", options->dilation));
    SGM_TRY(set_pair_option(layer, "factor", options->factor));
    SGM_TRY(set_flag_option(layer, "bilinear", options->bilinear));
    SGM_TRY(set_flag_option(layer, "linear", options->linear));
    SGM_TRY(set_integer_option(layer, "groups", options->groups));
    return set_flag_option(layer, "same", options->same);
}

/* Copies every option that is set into an argument of the same name, so one struct of options serves all
 * types of layers. `size` is an integer for most layers and a shape for poolings, which take height and
 * width. */
static sgm_status set_options(sgm_layer *layer, const sgm_layer_options *options)
{
    int32_t argument;
    if (options->name != NULL)
        SGM_TRY(sgm__layer_set_name(layer, options->name));
    if (options->share != NULL)
        SGM_TRY(sgm__layer_set_share(layer, options->share));
    for (int32_t i = 0; i < SGM_MAX_RANK && options->shape[i] != 0; i++) {
        SGM_TRY(find_option(layer, "shape", SGM__FORM_SHAPE, &argument));
        SGM_TRY(sgm__argument_append_dimension(layer, argument, options->shape[i]));
    }
    SGM_TRY(set_integer_option(layer, "vocabulary", options->vocabulary));
    SGM_TRY(set_flag_option(layer, "sparse", options->sparse));
    int32_t size = sgm__argument_find(layer->type, "size");
    if (size >= 0 && sgm__form_of(&layer->type->arguments[size]) == SGM__FORM_SHAPE)
        SGM_TRY(set_pair_option(layer, "size", (const int64_t[]){options->size, 0}));
    else
        SGM_TRY(set_integer_option(layer, "size", options->size));
    SGM_TRY(set_window_options(layer, options));
    SGM_TRY(set_flag_option(layer, "no_bias", options->no_bias));
    SGM_TRY(set_flag_option(layer, "time_distributed", options->time_distributed));
    SGM_TRY(set_flag_option(layer, "channels", options->channels));
    SGM_TRY(set_flag_option(layer, "last", options->last));
    SGM_TRY(set_flag_option(layer, "reverse", options->reverse));
    SGM_TRY(set_flag_option(layer, "bidirectional", options->bidirectional));
    SGM_TRY(set_number_option(layer, "forget_bias", options->forget_bias));
    SGM_TRY(set_text_option(layer, "activation", options->activation));
    SGM_TRY(set_number_option(layer, "rate", options->rate));
    SGM_TRY(set_integer_option(layer, "seed", options->seed));
    SGM_TRY(set_adapter_options(layer, options));
    SGM_TRY(set_text_option(layer, "lengths", options->lengths));
    SGM_TRY(set_text_option(layer, "starts", options->starts));
    SGM_TRY(set_flag_option(layer, "steps", options->steps));
    SGM_TRY(set_integer_option(layer, "streams", options->streams));
    return set_cost_options(layer, options);
}

sgm_layer *sgm_layer_create(const char *name, const sgm_layer_options *options)
{
    const sgm_layer_type *type = name != NULL ? sgm__layer_type_find(name) : NULL;
    char hint[SGM__NAME_HINT];
    if (type == NULL && name != NULL)
        type = sgm__layer_type_meant(name, NULL);
    if (type == NULL) {
        sgm_fail(SGM_ERROR_NOT_FOUND, "unknown layer '%s'%s", name != NULL ? name : "",
                 name != NULL ? sgm__layer_type_hint(name, NULL, 0, hint) : "");
        return NULL;
    }
    if ((type->flags & SGM_LAYER_JOIN) != 0) {
        sgm_fail(SGM_ERROR_ARGUMENT, "%s joins branches: make it with sgm_join_branches", name);
        return NULL;
    }
    sgm_layer_options all;
    if (sgm__options_read(&all, sizeof all, options, name) != SGM_OK)
        return NULL;
    sgm_layer *layer = sgm__layer_new(SGM__NODE_LAYER, type);
    if (layer == NULL)
        return NULL;
    if (set_options(layer, &all) != SGM_OK || sgm__arguments_finish(layer) != SGM_OK) {
        sgm_layer_free(layer);
        return NULL;
    }
    return layer;
}
