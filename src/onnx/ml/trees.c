/* Build functions of TreeEnsembleRegressor and TreeEnsembleClassifier, and the operation that walks the
 * trees.
 *
 * The attributes are lists with an entry for each node of all trees. They become three constant tables here,
 * in which nodes name each other by their place: what the operation reads is checked once, when it is
 * recorded. It has no gradient. */
#include "onnx/ml/ml.h"

#include <math.h>
#include <stdlib.h>

/* How an example goes on from a node: by comparing a feature with the node's number. */
typedef enum mode { LEAF, LEQ, LT, GTE, GT, EQ, NEQ, MODE_COUNT } mode;
static const char *const mode_names[MODE_COUNT] = {"LEAF",      "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                                   "BRANCH_GT", "BRANCH_EQ",  "BRANCH_NEQ"};
/* What the weights of the leaves become, in the order of the texts in build_trees. */
typedef enum aggregate { SUM, AVERAGE, MINIMUM, MAXIMUM } aggregate;

/* Columns of the table of nodes. Of a leaf TRUE and FALSE are its first weight and the one behind its last.
 */
enum { MODE, FEATURE, TRUE, FALSE, MISSING, COLUMNS };
/* Inputs of the operation: data (examples, features); nodes (nodes, COLUMNS) int64; numbers (nodes); weights
 * (weights); their targets int64; the first nodes of the trees int64. */
enum { DATA, NODES, NUMBERS, WEIGHTS, TARGETS, ROOTS, INPUTS };

/* --- the operation --- */

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    *result = (sgm_type){SGM_FLOAT32, sgm_shape_of(inputs[DATA].shape.dims[0], attributes->integers[0])};
    return SGM_OK;
}

static bool goes_true(const int64_t *node, double x, double number)
{
    if (isnan(x))
        return node[MISSING] != 0;
    switch ((mode)node[MODE]) {
    case LEQ:
        return x <= number;
    case LT:
        return x < number;
    case GTE:
        return x >= number;
    case GT:
        return x > number;
    case EQ:
        return x == number;
    default:
        return x != number;
    }
}

/* The leaf of one tree for one example; NULL: the nodes lead in a circle. */
static const int64_t *find_leaf(const sgm_kernel_call *call, int64_t example, int64_t root)
{
    const sgm_array *data = &call->inputs[DATA];
    const int64_t *nodes = call->inputs[NODES].data;
    int64_t features = data->shape.dims[1], at = root;
    for (int64_t steps = call->inputs[NODES].shape.dims[0]; steps > 0; steps--) {
        const int64_t *node = nodes + at * COLUMNS;
        if (node[MODE] == LEAF)
            return node;
        double x = sgm_array_load(data, example * features + node[FEATURE]);
        at = goes_true(node, x, ((const double *)call->inputs[NUMBERS].data)[at]) ? node[TRUE] : node[FALSE];
    }
    return NULL;
}

static double combined(aggregate how, double old, double weight)
{
    return how == MINIMUM ? fmin(old, weight) : how == MAXIMUM ? fmax(old, weight) : old + weight;
}

/* Integers: targets, the aggregate. */
static sgm_status forward(const sgm_kernel_call *call)
{
    int64_t targets = call->attributes->integers[0], examples = call->inputs[DATA].shape.dims[0];
    int64_t trees = call->inputs[ROOTS].shape.dims[0];
    aggregate how = (aggregate)call->attributes->integers[1];
    double first = how == MINIMUM ? INFINITY : how == MAXIMUM ? -INFINITY : 0;
    for (int64_t i = 0; i < examples * targets; i++)
        sgm_array_store(&call->output, i, first);
    for (int64_t i = 0; i < examples * trees; i++) {
        const int64_t *leaf =
            find_leaf(call, i / trees, ((const int64_t *)call->inputs[ROOTS].data)[i % trees]);
        if (leaf == NULL)
            return sgm_fail(SGM_ERROR_FORMAT, "the nodes of tree %lld lead in a circle",
                            (long long)(i % trees));
        for (int64_t k = leaf[TRUE]; k < leaf[FALSE]; k++) {
            int64_t at = i / trees * targets + ((const int64_t *)call->inputs[TARGETS].data)[k];
            double weight = ((const double *)call->inputs[WEIGHTS].data)[k];
            sgm_array_store(&call->output, at, combined(how, sgm_array_load(&call->output, at), weight));
        }
    }
    for (int64_t i = 0; how == AVERAGE && i < examples * targets; i++)
        sgm_array_store(&call->output, i, sgm_array_load(&call->output, i) / (double)trees);
    return SGM_OK;
}

static const sgm_op op_trees = {.api = SGM_OP_API,
                                .name = "onnx_trees",
                                .doc = "weights of the leaves that examples reach in trees",
                                .min_inputs = INPUTS,
                                .max_inputs = INPUTS,
                                .infer = infer,
                                .forward = forward};

/* --- its tables --- */

/* An entry of the lists, in the order of the number of its tree and then of its node. */
typedef struct key {
    int64_t tree, node;
    size_t place;
} key;

static int compare_keys(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* What is read from the attributes. `weight_keys`: by tree and node, the weights of leaves. */
typedef struct forest {
    size_t count, weight_count;
    key *keys, *weight_keys;
    const int64_t *trees, *true_nodes, *false_nodes, *features, *missing, *targets;
    const Onnx__AttributeProto *modes;
} forest;

/* An attribute with `count` integers; NULL and a failure of the graph. */
static const int64_t *integers(sgm__onnx_node *n, const char *name, size_t count)
{
    const Onnx__AttributeProto *attribute = sgm__onnx_attribute(n, name);
    if (attribute != NULL && attribute->n_ints == count)
        return attribute->ints;
    sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "'%s' should have %zu integers", name, count);
    return NULL;
}

/* `count` floats of an attribute, or of its twin that is a tensor, as float64 in a new tensor; a count of 0:
 * as many as there are. NULL: there are none, or a failure of the graph. */
static sgm_tensor *numbers(sgm__onnx_node *n, const char *name, size_t count)
{
    char twin[64];
    snprintf(twin, sizeof twin, "%s_as_tensor", name);
    const Onnx__AttributeProto *list = sgm__onnx_attribute(n, name), *tensor = sgm__onnx_attribute(n, twin);
    sgm_tensor *given = NULL, *wide = NULL;
    if (list != NULL && list->n_floats > 0)
        given = sgm_tensor_create_from(SGM_FLOAT32, SGM__ONNX_SHAPE((int64_t)list->n_floats), list->floats);
    else if (tensor != NULL && tensor->t != NULL)
        given = sgm__onnx_tensor(tensor->t, NULL);
    else if (count == 0)
        return NULL;
    if (given != NULL)
        wide = sgm_tensor_cast(given, SGM_FLOAT64);
    if (wide != NULL && count > 0 && sgm_shape_elements(sgm_tensor_shape(wide)) != (int64_t)count)
        sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "'%s' should have %zu numbers", name, count);
    else if (wide == NULL)
        sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "'%s' is missing, or cannot be read", name);
    sgm_tensor_free(given);
    return wide;
}

static key *sorted_keys(const int64_t *trees, const int64_t *nodes, size_t count)
{
    key *keys = sgm__alloc((count + 1) * sizeof *keys);
    for (size_t i = 0; keys != NULL && i < count; i++)
        keys[i] = (key){trees[i], nodes[i], i};
    if (keys != NULL && count > 0)
        qsort(keys, count, sizeof *keys, compare_keys);
    return keys;
}

/* The place of a node in the lists; -1: there is no such node. */
static int64_t place_of(const forest *f, int64_t tree, int64_t node)
{
    const key wanted = {tree, node, 0};
    const key *found = bsearch(&wanted, f->keys, f->count, sizeof wanted, compare_keys);
    return found != NULL ? (int64_t)found->place : -1;
}

/* Reads all lists. `kind`: "target" or "class". False on failure. */
static bool read_forest(sgm__onnx_node *n, const char *kind, forest *f)
{
    char names[3][32];
    const char *const parts[] = {"treeids", "nodeids", "ids"};
    for (int i = 0; i < 3; i++)
        snprintf(names[i], sizeof names[i], "%s_%s", kind, parts[i]);
    const Onnx__AttributeProto *all = sgm__onnx_attribute(n, "nodes_treeids");
    const Onnx__AttributeProto *weights = sgm__onnx_attribute(n, names[2]);
    *f = (forest){.count = all != NULL ? all->n_ints : 0,
                  .weight_count = weights != NULL ? weights->n_ints : 0};
    sgm__onnx_attribute(n, "nodes_hitrates"); /* how often nodes were visited */
    sgm__onnx_attribute(n, "nodes_hitrates_as_tensor");
    f->trees = integers(n, "nodes_treeids", f->count);
    f->true_nodes = integers(n, "nodes_truenodeids", f->count);
    f->false_nodes = integers(n, "nodes_falsenodeids", f->count);
    f->features = integers(n, "nodes_featureids", f->count);
    if (sgm__onnx_attribute(n, "nodes_missing_value_tracks_true") != NULL)
        f->missing = integers(n, "nodes_missing_value_tracks_true", f->count);
    f->modes = sgm__onnx_attribute(n, "nodes_modes");
    f->targets = integers(n, names[2], f->weight_count);
    const int64_t *nodes = integers(n, "nodes_nodeids", f->count);
    const int64_t *weight_trees = integers(n, names[0], f->weight_count);
    const int64_t *weight_nodes = integers(n, names[1], f->weight_count);
    if (f->count == 0 || f->modes == NULL || f->modes->n_strings != f->count)
        sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "it has no nodes, or not a mode for each");
    if (n->graph->status != SGM_OK)
        return false;
    f->keys = sorted_keys(f->trees, nodes, f->count);
    f->weight_keys = sorted_keys(weight_trees, weight_nodes, f->weight_count);
    if (f->keys == NULL || f->weight_keys == NULL)
        sgm__onnx_fail(n->graph);
    return n->graph->status == SGM_OK;
}

/* The weights of a leaf among the sorted ones. */
static void find_weights(const forest *f, const key *leaf, int64_t *row)
{
    size_t low = 0, high = f->weight_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_keys(&f->weight_keys[middle], leaf) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    row[TRUE] = row[FALSE] = (int64_t)low;
    while ((size_t)row[FALSE] < f->weight_count && compare_keys(&f->weight_keys[row[FALSE]], leaf) == 0)
        row[FALSE]++;
}

static int mode_of(const ProtobufCBinaryData *text)
{
    for (int i = 0; i < MODE_COUNT; i++)
        if (text->len == strlen(mode_names[i]) && memcmp(text->data, mode_names[i], text->len) == 0)
            return i;
    return -1;
}

/* The row of one node. False: its mode, feature or a node that it leads to is unknown. */
static bool fill_row(const forest *f, const key *own, int64_t features, int64_t *row)
{
    size_t i = own->place;
    row[MODE] = mode_of(&f->modes->strings[i]);
    row[FEATURE] = f->features[i];
    row[MISSING] = f->missing != NULL && f->missing[i] != 0;
    if (row[MODE] == LEAF) {
        find_weights(f, own, row);
        return true;
    }
    row[TRUE] = place_of(f, own->tree, f->true_nodes[i]);
    row[FALSE] = place_of(f, own->tree, f->false_nodes[i]);
    return row[MODE] > 0 && row[FEATURE] >= 0 && row[FEATURE] < features && row[TRUE] >= 0 && row[FALSE] >= 0;
}

static sgm_value node_table(sgm__onnx_node *n, const forest *f, int64_t features)
{
    sgm_tensor *table = sgm_tensor_create(SGM_INT64, SGM__ONNX_SHAPE((int64_t)f->count, COLUMNS));
    for (size_t i = 0; table != NULL && i < f->count; i++)
        if (!fill_row(f, &f->keys[i], features,
                      (int64_t *)sgm_tensor_data(table) + f->keys[i].place * COLUMNS)) {
            sgm_graph_fail(n->graph, SGM_ERROR_FORMAT,
                           "node %lld of tree %lld has an unknown mode, feature or way on",
                           (long long)f->keys[i].node, (long long)f->keys[i].tree);
            break;
        }
    return sgm__onnx_constant(n->graph, table);
}

/* A tree begins with its first entry in the lists. */
static sgm_value root_list(sgm__onnx_node *n, const forest *f)
{
    size_t trees = 0;
    int64_t *roots = sgm__alloc(f->count * sizeof *roots);
    for (size_t i = 0; roots != NULL && i < f->count; i++) {
        if (i == 0 || f->keys[i].tree != f->keys[i - 1].tree)
            roots[trees++] = (int64_t)f->keys[i].place;
        else if ((int64_t)f->keys[i].place < roots[trees - 1])
            roots[trees - 1] = (int64_t)f->keys[i].place;
    }
    sgm_value list = roots != NULL ? sgm__onnx_constant_integers(n->graph, roots, (int32_t)trees)
                                   : sgm__onnx_fail(n->graph);
    sgm__free(roots);
    return list;
}

/* The weights and their targets in the order of the leaves. False: a target is none. */
static bool weight_lists(sgm__onnx_node *n, const forest *f, const sgm_tensor *given, int64_t targets,
                         sgm_value inputs[INPUTS])
{
    const sgm_shape *shape = SGM__ONNX_SHAPE((int64_t)f->weight_count);
    sgm_tensor *weights = sgm_tensor_create(SGM_FLOAT64, shape),
               *places = sgm_tensor_create(SGM_INT64, shape);
    bool fits = true;
    for (size_t i = 0; weights != NULL && places != NULL && i < f->weight_count; i++) {
        int64_t target = f->targets[f->weight_keys[i].place];
        fits = fits && target >= 0 && target < targets;
        ((int64_t *)sgm_tensor_data(places))[i] = target;
        ((double *)sgm_tensor_data(weights))[i] =
            ((const double *)sgm_tensor_const_data(given))[f->weight_keys[i].place];
    }
    if (!fits)
        sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "a leaf has a weight for another target than 0 to %lld",
                       (long long)targets - 1);
    inputs[WEIGHTS] = sgm__onnx_constant(n->graph, weights);
    inputs[TARGETS] = sgm__onnx_constant(n->graph, places);
    return n->graph->status == SGM_OK;
}

/* The weights of the leaves for each example and target, plus the base values. */
static sgm_value record(sgm__onnx_node *n, const forest *f, const char *kind, int64_t targets, aggregate how)
{
    sgm_graph *g = n->graph;
    char name[32];
    snprintf(name, sizeof name, "%s_weights", kind);
    sgm_value inputs[INPUTS] = {sgm__onnx_ml_features(n)};
    if (g->status != SGM_OK)
        return (sgm_value){-1};
    sgm_tensor *weights = numbers(n, name, f->weight_count), *base = numbers(n, "base_values", 0);
    inputs[NODES] = node_table(n, f, sgm__onnx_type(n, inputs[DATA]).shape.dims[1]);
    inputs[NUMBERS] = sgm__onnx_constant(g, numbers(n, "nodes_values", f->count));
    inputs[ROOTS] = root_list(n, f);
    bool fits = weights != NULL && g->status == SGM_OK && weight_lists(n, f, weights, targets, inputs);
    sgm_tensor_free(weights);
    const sgm_attributes attributes = {.integer_count = 2, .integers = {targets, how}};
    sgm_value y = fits ? sgm_record(g, &op_trees, inputs, INPUTS, &attributes) : (sgm_value){-1};
    if (base == NULL)
        return y;
    sgm_value values = sgm_cast(g, sgm__onnx_constant(g, base), SGM_FLOAT32);
    return fits ? sgm_add(g, y, values) : y;
}

static sgm_value build_trees(sgm__onnx_node *n, const char *kind, int64_t targets, forest *f)
{
    static const char *const names[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    sgm_value y = {-1};
    int how = -1;
    for (int i = 0; i < 4; i++)
        if (sgm__onnx_text_is(n, "aggregate_function", "SUM", names[i]))
            how = i;
    if (how < 0 || targets < 1)
        return sgm__onnx_unsupported(n, "%lld targets, or an unknown 'aggregate_function'",
                                     (long long)targets);
    if (read_forest(n, kind, f))
        y = record(n, f, kind, targets, (aggregate)how);
    sgm__free(f->keys);
    sgm__free(f->weight_keys);
    return y;
}

sgm_value sgm__onnx_ml_tree_ensemble_regressor(sgm__onnx_node *n)
{
    forest f;
    return sgm__onnx_ml_transformed(n, build_trees(n, "target", sgm__onnx_integer(n, "n_targets", 0), &f));
}

/* Whether all weights are of one of two classes: they then are the score of the second. */
static bool is_binary(const sgm__onnx_node *n, int64_t classes)
{
    const Onnx__AttributeProto *ids = sgm__onnx_attribute(n, "class_ids");
    for (size_t i = 1; ids != NULL && i < ids->n_ints; i++)
        if (ids->ints[i] != ids->ints[0])
            return false;
    return ids != NULL && classes == 2;
}

/* Probabilities of the second class are those of the first taken from 1; other scores have two signs. ONNX
 * Runtime tells them by their weights, which are never negative then. */
static sgm_value both_classes(sgm__onnx_node *n, sgm_value scores)
{
    sgm_graph *g = n->graph;
    const Onnx__AttributeProto *weights = sgm__onnx_attribute(n, "class_weights");
    const Onnx__AttributeProto *ids = sgm__onnx_attribute(n, "class_ids");
    bool positive = sgm__onnx_text_is(n, "post_transform", "NONE", "NONE");
    for (size_t i = 0; weights != NULL && i < weights->n_floats; i++)
        positive = positive && weights->floats[i] >= 0;
    sgm_value second = sgm_slice(g, scores, 1, ids->ints[0], ids->ints[0] + 1, 1);
    sgm_value first = positive ? sgm_subtract(g, sgm_number(g, 1), second) : sgm_negate(g, second);
    return sgm_concatenate(g, (const sgm_value[]){first, second}, 2, 1);
}

sgm_value sgm__onnx_ml_tree_ensemble_classifier(sgm__onnx_node *n)
{
    forest f;
    int64_t classes = sgm__onnx_ml_class_count(n, "classlabels_int64s");
    if (classes < 2)
        return sgm__onnx_unsupported(n, "it has no two classes to tell apart");
    sgm_value scores = build_trees(n, "class", classes, &f);
    if (n->graph->status != SGM_OK)
        return (sgm_value){-1};
    if (is_binary(n, classes))
        scores = both_classes(n, scores);
    scores = sgm__onnx_ml_transformed(n, scores);
    n->outputs[1] = scores;
    return sgm__onnx_ml_classes(n, "classlabels_int64s", scores);
}
