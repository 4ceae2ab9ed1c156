/* The optimisers: how a parameter follows its gradient. g: gradient, p: parameter, r: learning rate, t:
 * number of the update. */
#include "optim/updates.h"

sgm_value sgm__update_number(const sgm_update_call *call, double value)
{
    return sgm_number(call->graph, value);
}

sgm_value sgm__update_times(const sgm_update_call *call, sgm_value a, sgm_value b)
{
    return sgm_multiply(call->graph, a, b);
}

sgm_value sgm__update_blend(const sgm_update_call *call, const char *slot, double decay, double share,
                            sgm_value value)
{
    sgm_value state = sgm_optimiser_slot(call, slot);
    sgm_value blended = sgm_add(call->graph, sgm__update_times(call, state, sgm__update_number(call, decay)),
                                sgm__update_times(call, value, sgm__update_number(call, share)));
    sgm_assign(call->graph, state, blended);
    return blended;
}

static sgm_value go(const sgm_update_call *call, sgm_value direction)
{
    return sgm_subtract(call->graph, call->parameter,
                        sgm__update_times(call, direction, call->learning_rate));
}

/* p - r g */
static sgm_value gradient_descent(const sgm_update_call *call)
{
    return go(call, call->gradient);
}

/* v = m v + g; p - r v (Polyak, 1964) */
static sgm_value momentum(const sgm_update_call *call)
{
    return go(call, sgm__update_blend(call, "momentum", call->options->momentum, 1, call->gradient));
}

/* v = m v + g; p - r (g + m v) (Nesterov, 1983, in the form of Sutskever et al., 2013) */
static sgm_value nesterov(const sgm_update_call *call)
{
    sgm_value velocity = sgm__update_blend(call, "momentum", call->options->momentum, 1, call->gradient);
    sgm_value ahead = sgm__update_times(call, velocity, sgm__update_number(call, call->options->momentum));
    return go(call, sgm_add(call->graph, call->gradient, ahead));
}

/* s = s + g^2; p - r g / sqrt(s + e) (Duchi, Hazan and Singer, 2011) */
static sgm_value adagrad(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    sgm_value squares = sgm__update_blend(call, "squared_gradient", 1, 1, sgm_square(graph, call->gradient));
    sgm_value root =
        sgm_square_root(graph, sgm_add(graph, squares, sgm__update_number(call, call->options->epsilon)));
    return go(call, sgm_divide(graph, call->gradient, root));
}

/* s = d s + (1 - d) g^2; u = g sqrt(w + e) / sqrt(s + e); w = d w + (1 - d) u^2; p - r u (Zeiler, 2012) */
static sgm_value adadelta(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    double decay = call->options->decay_rate, epsilon = call->options->epsilon;
    sgm_value squares =
        sgm__update_blend(call, "squared_gradient", decay, 1 - decay, sgm_square(graph, call->gradient));
    sgm_value old_updates = sgm_optimiser_slot(call, "squared_update");
    sgm_value ratio = sgm_divide(graph, sgm_add(graph, old_updates, sgm__update_number(call, epsilon)),
                                 sgm_add(graph, squares, sgm__update_number(call, epsilon)));
    sgm_value update = sgm__update_times(call, call->gradient, sgm_square_root(graph, ratio));
    sgm__update_blend(call, "squared_update", decay, 1 - decay, sgm_square(graph, update));
    return go(call, update);
}

/* s = d s + (1 - d) g^2; p - r g / (sqrt(s) + e) (Tieleman and Hinton, 2012) */
static sgm_value rmsprop(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    double decay = call->options->decay_rate;
    sgm_value squares =
        sgm__update_blend(call, "squared_gradient", decay, 1 - decay, sgm_square(graph, call->gradient));
    sgm_value root =
        sgm_add(graph, sgm_square_root(graph, squares), sgm__update_number(call, call->options->epsilon));
    return go(call, sgm_divide(graph, call->gradient, root));
}

sgm__bias_corrections sgm__update_corrections(const sgm_update_call *call)
{
    return (sgm__bias_corrections){
        .mean = sgm__update_fed(call->graph, call->parameter, SGM__FED_BIAS_CORRECTION1),
        .squares = sgm__update_fed(call->graph, call->parameter, SGM__FED_BIAS_CORRECTION2)};
}

/* m = b1 m + (1 - b1) g; s = b2 s + (1 - b2) g^2; p - r m' / (sqrt(s') + e), ' divided by 1 - b^t (Kingma and
 * Ba, 2014), in the order of the end of their section 2: with c = sqrt(1 - b2^t), r c m' / (sqrt(s) + c e),
 * so that each parameter is divided once. */
static sgm_value adam(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    const sgm_optimiser_options *options = call->options;
    sgm_value mean = sgm__update_blend(call, "momentum", options->beta1, 1 - options->beta1, call->gradient);
    sgm_value squares = sgm__update_blend(call, "squared_gradient", options->beta2, 1 - options->beta2,
                                          sgm_square(graph, call->gradient));
    sgm__bias_corrections corrections = sgm__update_corrections(call);
    sgm_value root_correction = sgm_square_root(graph, corrections.squares);
    sgm_value rate =
        sgm_divide(graph, sgm__update_times(call, call->learning_rate, root_correction), corrections.mean);
    sgm_value root =
        sgm_add(graph, sgm_square_root(graph, squares),
                sgm__update_times(call, root_correction, sgm__update_number(call, options->epsilon)));
    return sgm_subtract(graph, call->parameter, sgm__update_times(call, sgm_divide(graph, mean, root), rate));
}

sgm_value sgm__update_decayed(const sgm_update_call *call)
{
    sgm_value shrink =
        sgm__update_times(call, call->learning_rate, sgm__update_number(call, call->options->weight_decay));
    return sgm_subtract(call->graph, call->parameter, sgm__update_times(call, call->parameter, shrink));
}

sgm_value sgm__update_adamw(const sgm_update_call *call)
{
    sgm_update_call decayed = *call;
    decayed.parameter = sgm__update_decayed(call);
    return adam(&decayed);
}

#define TYPE(text, words, function, ...)                                                                     \
    {                                                                                                        \
        .api = SGM_OPTIMISER_API, .name = text, .doc = words, .update = function, .defaults = {              \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
static const sgm_optimiser_type built_in[] = {
    TYPE("gradient_descent", "p - r g", gradient_descent, .learning_rate = 0.01),
    TYPE("momentum", "gradient descent with a velocity", momentum, .learning_rate = 0.01, .momentum = 0.9),
    TYPE("nesterov", "momentum that looks ahead", nesterov, .learning_rate = 0.01, .momentum = 0.9),
    TYPE("adagrad", "steps divided by the root of all squared gradients", adagrad, .learning_rate = 0.01,
         .epsilon = 1e-6),
    TYPE("adadelta", "steps in the parameter's own unit", adadelta, .learning_rate = 1, .decay_rate = 0.9,
         .epsilon = 1e-6),
    TYPE("rmsprop", "steps divided by the root of recent squared gradients", rmsprop, .learning_rate = 0.001,
         .decay_rate = 0.99, .epsilon = 1e-8),
    TYPE("adam", "recent gradients over the root of recent squares", adam, .learning_rate = 0.001,
         .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8),
    TYPE("adamw", "adam with decoupled weight decay", sgm__update_adamw, .learning_rate = 0.001, .beta1 = 0.9,
         .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01),
    TYPE("lion", "steps of one size by the sign of the momentum", sgm__update_lion, .learning_rate = 0.0001,
         .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1),
    TYPE("lamb", "adam whose steps are in proportion to the parameter, for large minibatches",
         sgm__update_lamb, .learning_rate = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6,
         .weight_decay = 0.01),
    {.api = SGM_OPTIMISER_API,
     .name = "adafactor",
     .doc = "adam that remembers rows and columns only",
     .update = sgm__update_adafactor,
     .decoupled = true,
     .defaults = {.learning_rate = 0.01, .decay_rate = 0.8, .epsilon = 1e-3}},
    TYPE("muon", "orthogonal steps of matrices, adamw for the rest", sgm__update_muon, .learning_rate = 0.001,
         .momentum = 0.95, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1),
    {.api = SGM_OPTIMISER_API,
     .name = "lbfgs",
     .doc = "steps of all parameters by what the last ones changed of the gradient, for all data at once",
     .prepare = sgm__prepare_lbfgs,
     .update = sgm__update_lbfgs,
     .defaults = {.learning_rate = 1, .history = 10, .tolerance = 1e-7}},
};
#define BUILT_IN_COUNT (sizeof built_in / sizeof *built_in)
#define MAXIMUM_REGISTERED 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const sgm_optimiser_type *registered[MAXIMUM_REGISTERED];
static size_t registered_count;

const sgm_optimiser_type *sgm_optimiser_type_at(size_t index)
{
    if (index < BUILT_IN_COUNT)
        return &built_in[index];
    pthread_mutex_lock(&lock);
    const sgm_optimiser_type *type =
        index - BUILT_IN_COUNT < registered_count ? registered[index - BUILT_IN_COUNT] : NULL;
    pthread_mutex_unlock(&lock);
    return type;
}

/* The lock is held. */
static sgm_status append(const sgm_optimiser_type *type)
{
    for (size_t i = 0; i < BUILT_IN_COUNT + registered_count; i++) {
        const sgm_optimiser_type *known = i < BUILT_IN_COUNT ? &built_in[i] : registered[i - BUILT_IN_COUNT];
        if (known == type)
            return SGM_OK;
        if (strcmp(known->name, type->name) == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "there is an optimiser '%s' already", type->name);
    }
    if (registered_count == MAXIMUM_REGISTERED)
        return sgm_fail(SGM_ERROR_STATE, "%d optimisers are registered, which is all there is room for",
                        MAXIMUM_REGISTERED);
    registered[registered_count++] = type;
    return SGM_OK;
}

sgm_status sgm_register_optimiser(const sgm_optimiser_type *type)
{
    if (type == NULL || type->api != SGM_OPTIMISER_API || type->name == NULL || type->update == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "an optimiser wants .api = SGM_OPTIMISER_API, a name and an update");
    pthread_mutex_lock(&lock);
    sgm_status status = append(type);
    pthread_mutex_unlock(&lock);
    return status;
}
