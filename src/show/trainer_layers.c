/* The network in the registry: facts, layers with their arguments, costs with their importance.
 *
 * A layer's argument that is live (dropout's rate) can be set: the programs are recorded anew with it. The
 * value of each cost for the newest minibatch is an output of the program where there are several costs,
 * or one with an importance other than 1; else it is the loss itself and costs nothing. Parameters of
 * layers come later, once the session has them (trainer_states.c), into the same registries
 * network.layers.LAYER. */
#include "show/show.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"

#include <math.h>
#include <stdio.h>

#define LAYERS "network.layers."
#define COSTS "optimiser.costs."

/* An argument's row as registries show it: a list is a text there, and an argument that is not live is
 * read-only. */
static sgm_option row_of(const sgm_option *argument)
{
    sgm_option row = *argument;
    if (row.list) {
        row.kind = SGM_KIND_TEXT;
        row.minimum = row.maximum = 0;
    }
    row.read_only = !row.live;
    if (row.doc == NULL)
        row.doc = "an argument of the layer";
    return row;
}

/* --- arguments --- */

/* The index of the layer in "network.layers.LAYER.NAME", and NAME. It is looked up each time: the network
 * may be another one than when the entry was bound. */
static size_t layer_of(const sgm__bound *bound, const char **name)
{
    const sgm_network *network = sgm__learner_of(bound->trainer)->network;
    const char *layer = bound->identifier + strlen(LAYERS);
    const char *dot = strchr(layer, '.');
    size_t length = (size_t)(dot - layer), index = 0;
    const char *known;
    while ((known = sgm_network_layer_name(network, index)) != NULL &&
           (strlen(known) != length || memcmp(known, layer, length) != 0))
        index++;
    *name = dot + 1;
    return index;
}

static sgm_status get_argument(const sgm__bound *bound, sgm_content *content)
{
    const char *name;
    size_t layer = layer_of(bound, &name);
    return sgm_network_get_argument(sgm__learner_of(bound->trainer)->network, layer, name, content);
}

/* The argument is part of the programs, so these are recorded anew. */
static sgm_status set_argument(const sgm__bound *bound, const sgm_content *content)
{
    const char *name;
    size_t layer = layer_of(bound, &name);
    SGM_TRY(sgm_network_set_argument(sgm__learner_of(bound->trainer)->network, layer, name, content));
    sgm__trainer_forget_programs(bound->trainer);
    return SGM_OK;
}

static const sgm__access live_argument = {.get = get_argument, .set = set_argument},
                         fixed_argument = {.get = get_argument};

/* Shows all arguments of a layer's type. */
static sgm_status publish_arguments(sgm_trainer *trainer, sgm_registry *registry, const char *prefix,
                                    const sgm_layer_type *type)
{
    for (size_t i = 0; i < type->argument_count; i++) {
        sgm_option made = row_of(&type->arguments[i]);
        const sgm_option *row = sgm__trainer_keep_row(trainer, &made);
        if (row == NULL)
            return SGM_ERROR_MEMORY;
        SGM_TRY(sgm__publish_value(trainer, registry, prefix, row,
                                   row->live ? &live_argument : &fixed_argument, NULL));
    }
    return SGM_OK;
}

/* --- costs --- */

static const sgm_option partial_row = {.name = "partial",
                                       .kind = SGM_KIND_NUMBER,
                                       .read_only = true,
                                       .doc = "this cost of the newest minibatch, without its importance"};
static const sgm_option importance_row = {.name = "importance",
                                          .kind = SGM_KIND_NUMBER,
                                          .read_only = true,
                                          .doc = "the factor of this cost in the total"};

/* `row` of the entry is the cost, whose value the training's thread sets after each step. */
static sgm_status get_partial(const sgm__bound *bound, sgm_content *content)
{
    const sgm__cost *cost = bound->row;
    *content = sgm_number_content(cost->newest);
    return SGM_OK;
}

static sgm_status get_one(const sgm__bound *bound, sgm_content *content)
{
    (void)bound;
    *content = sgm_number_content(1);
    return SGM_OK;
}

static const sgm__access partial_access = {.get = get_partial}, one_access = {.get = get_one};

/* Adds a cost to the learner's list, with the names of its outputs in the programs; its value is NaN until
 * a step has computed it. The costs are allocated one by one, as entries point to them. */
static sgm_status add_cost(sgm_trainer *trainer, const char *layer, sgm__cost **cost)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    SGM_TRY(
        sgm__reserve(&learner->costs, &learner->cost_capacity, learner->cost_count + 1, sizeof(sgm__cost *)));
    *cost = sgm__calloc(1, sizeof(sgm__cost));
    if (*cost == NULL)
        return SGM_ERROR_MEMORY;
    (*cost)->newest = NAN;
    (*cost)->output = sgm__format(SGM__COST_PREFIX "%s", layer);
    (*cost)->part = sgm__format(SGM__COST_PART_PREFIX "%s", layer);
    learner->costs[learner->cost_count++] = *cost;
    return (*cost)->output != NULL && (*cost)->part != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Shows a cost as optimiser.costs.LAYER. Its importance is an argument of the layer: both entries have the
 * same identifier for the journal, network.layers.LAYER.importance. A layer without that argument has
 * importance 1. */
static sgm_status publish_cost(sgm_trainer *trainer, const char *layer, const sgm_layer_type *type,
                               const char *layer_prefix)
{
    sgm_registry *registry;
    sgm__cost *cost;
    char prefix[256];
    SGM_TRY(add_cost(trainer, layer, &cost));
    SGM_TRY(sgm__publish_child(sgm__registry_of(trainer), "optimiser", "optimiser", &registry));
    SGM_TRY(sgm__publish_child(registry, "costs", "costs", &registry));
    SGM_TRY(sgm__publish_child(registry, layer, type->name, &registry));
    snprintf(prefix, sizeof prefix, COSTS "%s.", layer);
    SGM_TRY(sgm__publish_value(trainer, registry, prefix, &partial_row, &partial_access, cost));
    for (size_t i = 0; i < type->argument_count; i++) {
        sgm_option made = row_of(&type->arguments[i]);
        if (strcmp(made.name, importance_row.name) != 0 || made.kind != SGM_KIND_NUMBER)
            continue;
        const sgm_option *row = sgm__trainer_keep_row(trainer, &made);
        return row != NULL ? sgm__publish_value(trainer, registry, layer_prefix, row,
                                                row->live ? &live_argument : &fixed_argument, NULL)
                           : SGM_ERROR_MEMORY;
    }
    return sgm__publish_value(trainer, registry, prefix, &importance_row, &one_access, NULL);
}

/* --- the network --- */

static const sgm_option notation_row = {
    .name = "notation", .kind = SGM_KIND_TEXT, .read_only = true, .doc = "the layers as they were described"};
static const sgm_option count_row = {.name = "parameter_count",
                                     .kind = SGM_KIND_INTEGER,
                                     .read_only = true,
                                     .doc = "numbers in all parameters; known once the trainer is prepared"};

static sgm_status get_notation(const sgm__bound *bound, sgm_content *content)
{
    char *text = sgm_network_text(sgm__learner_of(bound->trainer)->network);
    *content = (sgm_content){SGM_KIND_TEXT, {.text = text}};
    return text != NULL ? SGM_OK : sgm_last_status();
}

/* The shapes of parameters are known once the network was recorded. */
static sgm_status get_count(const sgm__bound *bound, sgm_content *content)
{
    const sgm_recording *recording = &sgm__learner_of(bound->trainer)->recording;
    int64_t count = 0;
    for (size_t i = 0; i < recording->parameter_count; i++)
        count += sgm_shape_elements(&recording->parameters[i].type.shape);
    *content = sgm_integer_content(count);
    return recording->input_count + recording->parameter_count > 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE, "the trainer is not prepared yet, so nobody knows the shapes");
}

static const sgm__access notation_access = {.get = get_notation}, count_access = {.get = get_count};

/* A tag that tells whether data enter here, leave here, or neither, or whether this is a cost. */
static const char *place_of(const sgm_layer_type *type)
{
    return (type->flags & SGM_LAYER_COST) != 0 ? "cost"
           : type->max_inputs == 0             ? "external_input"
           : strcmp(type->name, "output") == 0 ? "external_output"
                                               : "internal";
}

/* Shows a layer, tagged with its type, "layer" and its place: patterns find layers by each of these. */
static sgm_status publish_layer(sgm_trainer *trainer, sgm_registry *layers, size_t index)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    const char *name = sgm_network_layer_name(learner->network, index);
    const sgm_layer_type *type = sgm_network_layer_type(learner->network, index);
    sgm_registry *layer;
    char prefix[256];
    snprintf(prefix, sizeof prefix, LAYERS "%s.", name);
    SGM_TRY(sgm__publish_child(layers, name, type->name, &layer));
    SGM_TRY(sgm_registry_add_tag(layer, "layer"));
    SGM_TRY(sgm_registry_add_tag(layer, place_of(type)));
    SGM_TRY(publish_arguments(trainer, layer, prefix, type));
    return (type->flags & SGM_LAYER_COST) != 0 ? publish_cost(trainer, name, type, prefix) : SGM_OK;
}

/* Entries that point to these costs must be gone, or go with the registry. */
static void forget_costs(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    for (size_t i = 0; i < learner->cost_count; i++) {
        sgm__free(learner->costs[i]->output);
        sgm__free(learner->costs[i]->part);
        sgm__free(learner->costs[i]);
    }
    learner->cost_count = 0;
}

/* Removes the entries of the network that was there before, also gradients and updates of its parameters.
 * `published` 0: states are shown anew. */
static sgm_status take_out_old(sgm_trainer *trainer)
{
    static const char *const below[] = {"costs", "gradients", "updates"};
    sgm_registry *optimiser;
    if (sgm_registry_has(sgm__registry_of(trainer), "network"))
        SGM_TRY(sgm_registry_remove(sgm__registry_of(trainer), "network"));
    SGM_TRY(sgm__publish_child(sgm__registry_of(trainer), "optimiser", "optimiser", &optimiser));
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (sgm_registry_has(optimiser, below[i]))
            SGM_TRY(sgm_registry_remove(optimiser, below[i]));
    forget_costs(trainer);
    sgm__learner_of(trainer)->published = 0;
    return SGM_OK;
}

/* Called whenever the trainer gets another network, or loses it. */
sgm_status sgm__trainer_publish_network(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    sgm_registry *network, *layers;
    SGM_TRY(take_out_old(trainer));
    if (learner->network == NULL)
        return SGM_OK;
    SGM_TRY(sgm__publish_child(sgm__registry_of(trainer), "network", "network", &network));
    SGM_TRY(sgm__publish_value(trainer, network, "network.", &notation_row, &notation_access, NULL));
    SGM_TRY(sgm__publish_value(trainer, network, "network.", &count_row, &count_access, NULL));
    SGM_TRY(sgm__publish_child(network, "layers", "layers", &layers));
    for (size_t i = 0; i < sgm_network_layers(learner->network); i++)
        SGM_TRY(publish_layer(trainer, layers, i));
    return SGM_OK;
}

void sgm__trainer_unpublish_network(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    forget_costs(trainer);
    sgm__free(learner->costs);
    for (size_t i = 0; i < learner->row_count; i++)
        sgm__free(learner->rows[i]);
    sgm__free(learner->rows);
}
