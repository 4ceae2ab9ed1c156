/* The optimisers: how a parameter follows its gradient, recorded as instructions behind the gradients; and
 * the list of all optimisers, to which programs may add their own.
 *
 * Each function gets one parameter and records its new value; optimiser.c, which calls it, assigns that,
 * clips gradients and adds L2 weight decay before. What an optimiser remembers of a parameter is a slot: a
 * state of the parameter's type that begins as zeros. In the formulas g is the gradient, p the parameter, r
 * the learning rate, t the number of the update from 1, e epsilon, and m, b1 and b2 the options momentum,
 * beta1 and beta2 or the slots of these names; d is the weight decay, but the option decay_rate for adadelta
 * and rmsprop. m' and s' are m and s divided by their bias corrections, 1 - b1^t and 1 - b2^t. Lion, lamb,
 * adafactor and muon were made for large networks. L-BFGS, which looks at all parameters together, is in
 * lbfgs.c. */
#include "optim/gradient_free.h"
#include "optim/updates.h"

#include <float.h>
#include <math.h>

static sgm_value number(const sgm_update_call *call, double value)
{
    return sgm_number(call->graph, value);
}

static sgm_value times(const sgm_update_call *call, sgm_value a, sgm_value b)
{
    return sgm_multiply(call->graph, a, b);
}

/* decay * slot + share * value, which is assigned to the slot. */
static sgm_value blend(const sgm_update_call *call, const char *slot, double decay, double share,
                       sgm_value value)
{
    sgm_value state = sgm_optimiser_slot(call, slot);
    sgm_value blended = sgm_add(call->graph, times(call, state, number(call, decay)),
                                times(call, value, number(call, share)));
    sgm_assign(call->graph, state, blended);
    return blended;
}

/* The parameter after a step against `direction`: p - r direction. */
static sgm_value descend(const sgm_update_call *call, sgm_value direction)
{
    return sgm_subtract(call->graph, call->parameter, times(call, direction, call->learning_rate));
}

/* p - r g */
static sgm_value gradient_descent(const sgm_update_call *call)
{
    return descend(call, call->gradient);
}

/* v = m v + g; p - r v (Polyak, 1964) */
static sgm_value momentum(const sgm_update_call *call)
{
    return descend(call, blend(call, "momentum", call->options->momentum, 1, call->gradient));
}

/* v = m v + g; p - r (g + m v) (Nesterov, 1983, in the form of Sutskever et al., 2013) */
static sgm_value nesterov(const sgm_update_call *call)
{
    sgm_value velocity = blend(call, "momentum", call->options->momentum, 1, call->gradient);
    sgm_value ahead = times(call, velocity, number(call, call->options->momentum));
    return descend(call, sgm_add(call->graph, call->gradient, ahead));
}

/* s = s + g^2; p - r g / sqrt(s + e) (Duchi, Hazan and Singer, 2011) */
static sgm_value adagrad(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    sgm_value squares = blend(call, "squared_gradient", 1, 1, sgm_square(graph, call->gradient));
    sgm_value root = sgm_square_root(graph, sgm_add(graph, squares, number(call, call->options->epsilon)));
    return descend(call, sgm_divide(graph, call->gradient, root));
}

/* s = d s + (1 - d) g^2; u = g sqrt(w + e) / sqrt(s + e); w = d w + (1 - d) u^2; p - r u (Zeiler, 2012) */
static sgm_value adadelta(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    double decay = call->options->decay_rate, epsilon = call->options->epsilon;
    sgm_value squares = blend(call, "squared_gradient", decay, 1 - decay, sgm_square(graph, call->gradient));
    sgm_value old_updates = sgm_optimiser_slot(call, "squared_update");
    sgm_value ratio = sgm_divide(graph, sgm_add(graph, old_updates, number(call, epsilon)),
                                 sgm_add(graph, squares, number(call, epsilon)));
    sgm_value update = times(call, call->gradient, sgm_square_root(graph, ratio));
    blend(call, "squared_update", decay, 1 - decay, sgm_square(graph, update));
    return descend(call, update);
}

/* s = d s + (1 - d) g^2; p - r g / (sqrt(s) + e) (Tieleman and Hinton, 2012) */
static sgm_value rmsprop(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    double decay = call->options->decay_rate;
    sgm_value squares = blend(call, "squared_gradient", decay, 1 - decay, sgm_square(graph, call->gradient));
    sgm_value root = sgm_add(graph, sgm_square_root(graph, squares), number(call, call->options->epsilon));
    return descend(call, sgm_divide(graph, call->gradient, root));
}

/* The bias corrections of adam, 1 - beta1^t and 1 - beta2^t: computed in double and fed, as float32 loses
 * them (sgm__fed_value). */
typedef struct bias_corrections {
    sgm_value mean, squares;
} bias_corrections;

static bias_corrections corrections_of(const sgm_update_call *call)
{
    return (bias_corrections){
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
    sgm_value mean = blend(call, "momentum", options->beta1, 1 - options->beta1, call->gradient);
    sgm_value squares = blend(call, "squared_gradient", options->beta2, 1 - options->beta2,
                              sgm_square(graph, call->gradient));
    bias_corrections corrections = corrections_of(call);
    sgm_value root_correction = sgm_square_root(graph, corrections.squares);
    sgm_value rate = sgm_divide(graph, times(call, call->learning_rate, root_correction), corrections.mean);
    sgm_value root = sgm_add(graph, sgm_square_root(graph, squares),
                             times(call, root_correction, number(call, options->epsilon)));
    return sgm_subtract(graph, call->parameter, times(call, sgm_divide(graph, mean, root), rate));
}

/* p (1 - r d): the parameter after decoupled weight decay. */
static sgm_value decayed_parameter(const sgm_update_call *call)
{
    sgm_value shrink = times(call, call->learning_rate, number(call, call->options->weight_decay));
    return sgm_subtract(call->graph, call->parameter, times(call, call->parameter, shrink));
}

/* Adam on p (1 - r d) (Loshchilov and Hutter, 2017). */
static sgm_value adamw(const sgm_update_call *call)
{
    sgm_update_call decayed = *call;
    decayed.parameter = decayed_parameter(call);
    return adam(&decayed);
}

static sgm_value plus(const sgm_update_call *call, sgm_value a, sgm_value b)
{
    return sgm_add(call->graph, a, b);
}

static sgm_value scaled(const sgm_update_call *call, sgm_value value, double factor)
{
    return times(call, value, number(call, factor));
}

/* The L2 norm of all elements together: a number of rank 0. */
static sgm_value norm(const sgm_update_call *call, sgm_value value)
{
    return sgm_square_root(call->graph, sgm_sum(call->graph, sgm_square(call->graph, value)));
}

/* p (1 - r d) - r sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g (Chen et al., 2023) */
static sgm_value lion(const sgm_update_call *call)
{
    const sgm_optimiser_options *options = call->options;
    sgm_value old = sgm_optimiser_slot(call, "momentum");
    sgm_value direction =
        plus(call, scaled(call, old, options->beta1), scaled(call, call->gradient, 1 - options->beta1));
    blend(call, "momentum", options->beta2, 1 - options->beta2, call->gradient);
    sgm_value step = times(call, sgm_sign(call->graph, direction), call->learning_rate);
    return sgm_subtract(call->graph, decayed_parameter(call), step);
}

/* u = m' / (sqrt(s') + e) + d p; p - r u |p| / |u|, where the factor |p| / |u| is 1 if one of the norms is 0
 * (You et al., 2019) */
static sgm_value lamb(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    const sgm_optimiser_options *options = call->options;
    sgm_value zero = number(call, 0);
    sgm_value mean = blend(call, "momentum", options->beta1, 1 - options->beta1, call->gradient);
    sgm_value squares = blend(call, "squared_gradient", options->beta2, 1 - options->beta2,
                              sgm_square(graph, call->gradient));
    bias_corrections corrections = corrections_of(call);
    mean = sgm_divide(graph, mean, corrections.mean);
    squares = sgm_divide(graph, squares, corrections.squares);
    sgm_value root = plus(call, sgm_square_root(graph, squares), number(call, options->epsilon));
    sgm_value update =
        plus(call, sgm_divide(graph, mean, root), scaled(call, call->parameter, options->weight_decay));
    sgm_value length = norm(call, call->parameter), step = norm(call, update);
    sgm_value both = sgm_logical_and(graph, sgm_greater(graph, length, zero), sgm_greater(graph, step, zero));
    sgm_value one = sgm_filled_like(graph, length, 1);
    sgm_value ratio =
        sgm_divide(graph, sgm_select(graph, both, length, one), sgm_select(graph, both, step, one));
    return sgm_subtract(graph, call->parameter, times(call, update, times(call, ratio, call->learning_rate)));
}

/* The parameter's shape as rows and columns: its first dimension, and all others. */
static sgm_shape matrix_shape(const sgm_update_call *call)
{
    sgm_shape shape = sgm_value_type(call->graph, call->parameter).shape;
    int64_t elements = sgm_shape_elements(&shape);
    return sgm_shape_of(shape.dims[0], shape.dims[0] > 0 ? elements / shape.dims[0] : 0);
}

static bool is_matrix(const sgm_update_call *call)
{
    sgm_shape shape = sgm_value_type(call->graph, call->parameter).shape;
    return shape.rank > 1 && sgm_shape_elements(&shape) > 0;
}

/* --- adafactor (Shazeer and Stern, 2018) --- */

/* A moving average, which is assigned to the slot: slot + (value - slot) t^-decay_rate. The factor
 * t^-decay_rate is 1 at the first update, so the slot begins as the first value and needs no bias correction;
 * it falls with t, so the average moves more and more slowly. */
static sgm_value slowing_average(const sgm_update_call *call, const char *slot, sgm_value value)
{
    sgm_graph *graph = call->graph;
    sgm_shape shape = sgm_value_type(graph, value).shape;
    sgm_value state = sgm_optimiser_slot_shaped(call, slot, &shape);
    sgm_value part = sgm_power(graph, call->step, number(call, -call->options->decay_rate));
    sgm_value now = plus(call, state, times(call, sgm_subtract(graph, value, state), part));
    sgm_assign(graph, state, now);
    return now;
}

/* s of each element, estimated from the moving averages of the means of rows and of columns: its row's, times
 * its column's, divided by the mean of all rows' */
static sgm_value factored_squares(const sgm_update_call *call, sgm_value squares, double minimum)
{
    static const int32_t axes[] = {0, 1, 2, 3, 4, 5, 6, 7};
    sgm_graph *graph = call->graph;
    int32_t rank = sgm_value_type(graph, squares).shape.rank;
    sgm_value rows =
        slowing_average(call, "row_squares", sgm_reduce_mean(graph, squares, axes + 1, rank - 1, true));
    sgm_value columns =
        slowing_average(call, "column_squares", sgm_reduce_mean(graph, squares, axes, 1, true));
    sgm_value mean = sgm_maximum(graph, sgm_mean(graph, rows), number(call, minimum));
    return times(call, sgm_divide(graph, rows, mean), columns);
}

/* u = g / sqrt(s); p (1 - r d) - max(e, rms(p)) min(r, 1 / sqrt(t)) u / max(1, rms(u)) */
static sgm_value adafactor(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    sgm_type type = sgm_value_type(graph, call->parameter);
    double minimum = type.dtype == SGM_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
    double size = sqrt((double)sgm_shape_elements(&type.shape));
    sgm_value squares = sgm_square(graph, call->gradient);
    squares = is_matrix(call) ? factored_squares(call, squares, minimum)
                              : slowing_average(call, "squared_gradient", squares);
    squares = sgm_maximum(graph, squares, number(call, minimum * minimum));
    sgm_value update = sgm_divide(graph, call->gradient, sgm_square_root(graph, squares));
    sgm_value bound = sgm_maximum(graph, scaled(call, norm(call, update), 1 / size), number(call, 1));
    sgm_value root = sgm_square_root(graph, call->step);
    sgm_value rate = sgm_minimum(graph, call->learning_rate, sgm_divide(graph, number(call, 1), root));
    sgm_value scale = sgm_maximum(graph, scaled(call, norm(call, call->parameter), 1 / size),
                                  number(call, call->options->epsilon));
    sgm_value factor = sgm_divide(graph, times(call, scale, rate), bound);
    return sgm_subtract(graph, decayed_parameter(call), times(call, update, factor));
}

/* --- muon (Jordan, 2024) --- */

/* U V' of a matrix U S V', nearly: five steps of Newton and Schulz with his coefficients. */
static sgm_value orthogonal(const sgm_update_call *call, sgm_value matrix)
{
    sgm_graph *graph = call->graph;
    sgm_shape shape = sgm_value_type(graph, matrix).shape;
    bool tall = shape.dims[0] > shape.dims[1];
    sgm_value x = tall ? sgm_transpose(graph, matrix) : matrix;
    x = sgm_divide(graph, x, sgm_maximum(graph, norm(call, x), number(call, 1e-7)));
    for (int32_t i = 0; i < 5; i++) {
        sgm_value gram = sgm_matmul(graph, x, sgm_transpose(graph, x));
        sgm_value change =
            plus(call, scaled(call, gram, -4.7750), scaled(call, sgm_matmul(graph, gram, gram), 2.0315));
        x = plus(call, scaled(call, x, 3.4445), sgm_matmul(graph, change, x));
    }
    return tall ? sgm_transpose(graph, x) : x;
}

/* v = m v + (1 - m) g; O = orthogonal(m v + (1 - m) g); p (1 - r d) - r 0.2 sqrt(max(rows, columns)) O. The
 * factor makes a step about as long as one of adamw, so that one learning rate suits both (Liu et al., 2025).
 */
static sgm_value muon(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    double momentum = call->options->momentum;
    if (!is_matrix(call))
        return adamw(call);
    sgm_shape matrix = matrix_shape(call), whole = sgm_value_type(graph, call->parameter).shape;
    sgm_value velocity = blend(call, "momentum", momentum, 1 - momentum, call->gradient);
    sgm_value ahead =
        plus(call, scaled(call, velocity, momentum), scaled(call, call->gradient, 1 - momentum));
    sgm_value direction = orthogonal(call, sgm_reshape(graph, ahead, &matrix));
    double longer = (double)(matrix.dims[0] > matrix.dims[1] ? matrix.dims[0] : matrix.dims[1]);
    sgm_value step = times(call, sgm_reshape(graph, direction, &whole),
                           scaled(call, call->learning_rate, 0.2 * sqrt(longer)));
    return sgm_subtract(graph, decayed_parameter(call), step);
}

/* --- the list --- */

#define TYPE(text, words, update_rule, function, ...)                                                        \
    {                                                                                                        \
        .api = SGM_OPTIMISER_API, .name = text, .doc = words, .formula = update_rule, .update = function,    \
        .defaults = {                                                                                        \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
static const sgm_optimiser_type built_in[] = {
    TYPE("gradient_descent", "the plain method", "p - r g", gradient_descent, .learning_rate = 0.01),
    TYPE("momentum", "gradient descent with a velocity", "v = m v + g; p - r v", momentum,
         .learning_rate = 0.01, .momentum = 0.9),
    TYPE("nesterov", "momentum that looks ahead", "v = m v + g; p - r (g + m v)", nesterov,
         .learning_rate = 0.01, .momentum = 0.9),
    TYPE("adagrad", "steps divided by the root of all squared gradients",
         "s = s + g^2; p - r g / sqrt(s + e)", adagrad, .learning_rate = 0.01, .epsilon = 1e-6),
    TYPE("adadelta", "steps in the parameter's own unit",
         "s = d s + (1 - d) g^2; u = g sqrt(w + e) / sqrt(s + e); w = d w + (1 - d) u^2; p - r u", adadelta,
         .learning_rate = 1, .decay_rate = 0.9, .epsilon = 1e-6),
    TYPE("rmsprop", "steps divided by the root of recent squared gradients",
         "s = d s + (1 - d) g^2; p - r g / (sqrt(s) + e)", rmsprop, .learning_rate = 0.001,
         .decay_rate = 0.99, .epsilon = 1e-8),
    TYPE("adam", "recent gradients over the root of recent squares",
         "m = b1 m + (1 - b1) g; s = b2 s + (1 - b2) g^2; p - r m' / (sqrt(s') + e), ' divided by 1 - b^t",
         adam, .learning_rate = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8),
    TYPE("adamw", "adam with decoupled weight decay", "adam on p (1 - r d), d the weight decay", adamw,
         .learning_rate = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01),
    TYPE("lion", "steps of one size by the sign of the momentum",
         "p (1 - r d) - r sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g", lion, .learning_rate = 0.0001,
         .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1),
    TYPE("lamb", "adam whose steps are in proportion to the parameter, for large minibatches",
         "u = m' / (sqrt(s') + e) + d p; p - r u |p| / |u|, m and s as in adam", lamb, .learning_rate = 0.001,
         .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6, .weight_decay = 0.01),
    {.api = SGM_OPTIMISER_API,
     .name = "adafactor",
     .doc = "adam that remembers rows and columns only",
     .formula = "u = g / sqrt(s); p (1 - r d) - max(e, rms(p)) min(r, 1 / sqrt(t)) u / max(1, rms(u))",
     .update = adafactor,
     .decoupled = true,
     .defaults = {.learning_rate = 0.01, .decay_rate = 0.8, .epsilon = 1e-3}},
    TYPE("muon", "orthogonal steps of matrices, adamw for the rest",
         "v = m v + (1 - m) g; p (1 - r d) - r 0.2 sqrt(max(rows, columns)) orthogonal(m v + (1 - m) g)",
         muon, .learning_rate = 0.001, .momentum = 0.95, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8,
         .weight_decay = 0.1),
    {.api = SGM_OPTIMISER_API,
     .name = "lbfgs",
     .doc = "steps of all parameters by what the last ones changed of the gradient, for all data at once",
     .formula = "p - r H g, H from the last steps and what each changed of g",
     .prepare = sgm__prepare_lbfgs,
     .update = sgm__update_lbfgs,
     .defaults = {.learning_rate = 1, .history = 10, .tolerance = 1e-7}},
    {.api = SGM_OPTIMISER_API,
     .name = "random_search",
     .doc = "the best of some points around the present one, without gradients",
     .formula = "the best of p and p + r z of each candidate, z normally distributed",
     .search = &sgm__random_search,
     .defaults = {.learning_rate = 0.05}},
    {.api = SGM_OPTIMISER_API,
     .name = "cma_es",
     .doc = "points from a normal distribution that follows the better half of them, without gradients",
     .formula =
         "p + s sum w y, of the better candidates p + s y, y from N(0, C); C and s follow them, s begins "
         "as r",
     .search = &sgm__cma_es,
     .defaults = {.learning_rate = 0.5}},
};
#define BUILT_IN_COUNT (sizeof built_in / sizeof *built_in)
#define MAXIMUM_REGISTERED 32

/* Types that programs have added. Entries are only added, and belong to the programs. */
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

/* Adds a type whose name no other type has; adding a type again does nothing. The caller holds the lock. */
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
    if (type == NULL || type->api != SGM_OPTIMISER_API || type->name == NULL ||
        (type->update == NULL) == (type->search == NULL))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "an optimiser wants .api = SGM_OPTIMISER_API, a name, and an update or a search");
    const sgm_gradient_free_method *search = type->search;
    if (search != NULL &&
        (search->numbers == NULL || search->scratch == NULL || search->ask == NULL || search->tell == NULL))
        return sgm_fail(SGM_ERROR_ARGUMENT, "optimiser '%s': a search wants numbers, scratch, ask and tell",
                        type->name);
    pthread_mutex_lock(&lock);
    sgm_status status = append(type);
    pthread_mutex_unlock(&lock);
    return status;
}
