/* Functions and macros that costs share: their targets, sums over an example, arguments, and the macro that
 * defines their type. Internal.
 *
 * A cost takes the prediction (batch, ...) as its only input and asks for the targets as a field of the
 * data. It gives (batch), one number for each example, which src/network/record.c averages, or one number in
 * all. The functions here (cost_parts.c) know sequences, where only the steps below an example's length
 * count: all means of steps are over the steps that count. */
#ifndef SGM_NETWORK_LAYERS_COSTS_H
#define SGM_NETWORK_LAYERS_COSTS_H

#include "network/network_internal.h"
#include "ops/rules.h"

/* The field that the argument "targets" names, in the prediction's shape, with zeros at steps that do not
 * count; nothing on failure. */
sgm_value sgm__cost_targets(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction);
/* The targets of a cost of classes: a share for each class, in the prediction's shape. Flags say what the
 * data has: shares, or one number of a class for each place of the prediction; without a flag, those with
 * further dimensions than (batch, classes) have numbers, as sequences do. */
sgm_value sgm__cost_shares(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction);
/* The same targets as they are in the data: a number of a class for each place (batch, places...), whole;
 * nothing if they are shares, or on failure. */
sgm_value sgm__cost_classes(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction);
/* (batch, steps...) to (batch): the mean over the steps. Where only some of them count, an example's is as
 * much larger as makes the mean over the batch one over all steps that count. */
sgm_value sgm__cost_mean_of_steps(sgm_layer_call *call, sgm_graph *graph, sgm_value x);
/* The cross-entropy (batch) of classes by their numbers, of which negative ones do not count: the mean over
 * the others, in the same way. */
sgm_value sgm__cost_of_known_classes(sgm_layer_call *call, sgm_graph *graph, sgm_value logits);
/* (batch, features...) to (batch); steps that do not count are zeros. */
sgm_value sgm__cost_sum_of_examples(sgm_layer_call *call, sgm_graph *graph, sgm_value x);
/* The mean over all elements of a value that has the prediction's shape, one number; (batch) where only some
 * steps count. */
sgm_value sgm__cost_mean(sgm_layer_call *call, sgm_graph *graph, sgm_value x);
/* Zeros in the place of steps that do not count, if `x` (batch, steps...) comes from a sequence with lengths.
 */
sgm_value sgm__cost_counted(sgm_layer_call *call, sgm_graph *graph, sgm_value x);
/* Values of the examples (batch, ...) times the field of weights that the argument "weights" names; as they
 * are if it names none. Means and sums above have been weighted. */
sgm_value sgm__cost_weighted(sgm_layer_call *call, sgm_graph *graph, sgm_value x);
/* Over the last dimension, which goes away or stays as 1. */
sgm_value sgm__cost_sum_of_last(sgm_graph *graph, sgm_value x, bool keep);
/* max(margin - x, 0), squared if the layer's flag `squared` is set. */
sgm_value sgm__cost_margin(const sgm_layer_call *call, sgm_graph *graph, sgm_value x);

#define SGM__COST_ARGUMENTS                                                                                  \
    {.name = "targets",                                                                                      \
     .kind = SGM_KIND_TEXT,                                                                                  \
     .default_text = "targets",                                                                              \
     .doc = "the field of the data with what should come out"},                                              \
        {.name = "importance",                                                                               \
         .kind = SGM_KIND_NUMBER,                                                                            \
         .minimum = 0,                                                                                       \
         .maximum = 1e12,                                                                                    \
         .default_value = 1,                                                                                 \
         .doc = "the factor of this cost in the total",                                                      \
         .live = true},                                                                                      \
    {                                                                                                        \
        .name = "weights", .kind = SGM_KIND_TEXT,                                                            \
        .doc = "a field of the data with a factor for the cost of each example; none if not given"           \
    }
#define SGM__COST_CLASSES                                                                                    \
    {.name = "classes",                                                                                      \
     .kind = SGM_KIND_BOOLEAN,                                                                               \
     .doc = "the targets are numbers of classes, from 0; so they are without a flag after (batch, time, "    \
            "classes)"},                                                                                     \
    {                                                                                                        \
        .name = "shares", .kind = SGM_KIND_BOOLEAN,                                                          \
        .doc = "the targets are a share for each class; so they are without a flag after (batch, classes)"   \
    }
#define SGM__COST_MARGIN                                                                                     \
    {                                                                                                        \
        .name = "margin", .kind = SGM_KIND_NUMBER, .minimum = 1e-6, .maximum = 1e6, .default_value = 1,      \
        .doc = "how far right and wrong must lie apart to cost nothing", .live = true                        \
    }
#define SGM__COST_SQUARED                                                                                    \
    {                                                                                                        \
        .name = "squared", .kind = SGM_KIND_BOOLEAN, .doc = "what is missing from the margin is squared"     \
    }

/* The type of a cost: `text` is its name and that of its forward function, `table` its arguments,
 * `prediction` what makes the network's output of the prediction (NULL: nothing). */
#define SGM__COST(text, words, table, extra_flags, prediction, ...)                                          \
    const sgm_layer_type sgm__layer_##text = {.api = SGM_LAYER_API,                                          \
                                              .flags = SGM_LAYER_COST | (extra_flags),                       \
                                              .name = #text,                                                 \
                                              .doc = words,                                                  \
                                              .arguments = table,                                            \
                                              .argument_count = sizeof table / sizeof table[0],              \
                                              .min_inputs = 1,                                               \
                                              .max_inputs = 1,                                               \
                                              .forward = text,                                               \
                                              .predict = prediction,                                         \
                                              __VA_ARGS__}

#endif
