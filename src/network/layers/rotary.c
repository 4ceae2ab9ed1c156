/* Rotary position embedding (Su et al., 2021) for the queries and keys of heads.c.
 *
 * The angles of all places are constants of cosines and sines. Layers with the same settings share them
 * within a recording: with a long context they are large and take long to compute, and a model may have a
 * hundred layers. */
#include "network/layers/blocks.h"

#include <math.h>

/* The settings of a layer, for heads of `size` features, at `time` places. */
static sgm__rotation settings_of(const sgm_layer_call *call, int64_t time, int64_t size)
{
    size_t count;
    const double *bands = sgm_layer_numbers(call, "rotary_bands", &count);
    sgm__rotation r = {.time = time,
                       .size = size,
                       .base = sgm_layer_number(call, "rotary_base"),
                       .factor = sgm_layer_number(call, "rotary_factor"),
                       .has_bands = bands != NULL};
    for (size_t i = 0; i < 3 && bands != NULL; i++)
        r.bands[i] = bands[i];
    return r;
}

static bool is_same(const sgm__rotation *a, const sgm__rotation *b)
{
    return a->time == b->time && a->size == b->size && a->base == b->base && a->factor == b->factor &&
           a->has_bands == b->has_bands && a->bands[0] == b->bands[0] && a->bands[1] == b->bands[1] &&
           a->bands[2] == b->bands[2];
}

/* How fast pair i of a head turns, in radians a place: base^(-2 i / size), divided by rotary_factor, so that
 * a model can look farther back than it was trained for. With rotary_bands (low, high, places), as Llama 3.1
 * has them, that is so only for pairs that turn less than `low` times in `places`; those that turn more than
 * `high` times stay as they are, and in between one goes over into the other. */
static double turn_of_pair(const sgm__rotation *r, int64_t i)
{
    double turn = pow(r->base, -2 * (double)i / (double)r->size);
    if (!r->has_bands)
        return turn / r->factor;
    double turns = r->bands[2] * turn / (2 * M_PI);
    double kept = fmin(fmax((turns - r->bands[0]) / (r->bands[1] - r->bands[0]), 0), 1);
    return kept * turn + (1 - kept) * turn / r->factor;
}

/* cos or sin of place * turn_of_pair(i), a constant (time, 1, size / 2) in the master type, since bfloat16
 * would round the angles. Single steps gather the rows of their places from the table of all places. */
static sgm_value wave(sgm_layer_call *call, sgm_graph *graph, const sgm__rotation *r,
                      double (*function)(double))
{
    bool step = sgm_layer_is_step(call);
    int64_t places = step ? call->network->steps : r->time;
    sgm_shape shape = sgm_shape_of(places, 1, r->size / 2);
    sgm_tensor *tensor = sgm_tensor_create(sgm__master_dtype(call->options), &shape);
    for (int64_t i = 0; i < r->size / 2 && tensor != NULL; i++) {
        double turn = turn_of_pair(r, i);
        for (int64_t t = 0; t < places; t++)
            sgm_tensor_set(tensor, (const int64_t[]){t, 0, i}, function((double)t * turn));
    }
    sgm_value value = tensor != NULL
                          ? sgm_constant(graph, tensor)
                          : sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for the turns of %lld places",
                                           (long long)places);
    sgm_tensor_free(tensor);
    return step ? sgm_gather(graph, value, sgm__layer_places(call, graph), 0) : value;
}

/* The tables of the newest recording that have these settings; those of the first layer that asks are made.
 * What a dynamic layer has added is recorded again with it, as the list goes back to the mark before it. */
static sgm__rotation find_rotation(sgm_layer_call *call, sgm_graph *graph, int64_t time, int64_t size)
{
    sgm_network *network = call->network;
    sgm__rotation r = settings_of(call, time, size);
    for (size_t i = 0; i < network->rotation_count; i++)
        if (is_same(&network->rotations[i], &r))
            return network->rotations[i];
    r.cosines = wave(call, graph, &r, cos);
    r.sines = wave(call, graph, &r, sin);
    if (sgm__reserve(&network->rotations, &network->rotation_capacity, network->rotation_count + 1,
                     sizeof *network->rotations) == SGM_OK)
        network->rotations[network->rotation_count++] = r;
    else
        sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for the settings of rotary positions");
    return r;
}

/* Elements i of the first and the second half of a head are rotated together by an angle that is proportional
 * to the place. A product of a query and a key then depends on how far apart they lie, not on where. */
sgm_value sgm__layer_rotate(sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    if (!sgm_value_exists(x))
        return x;
    sgm_type type = sgm_value_type(graph, x);
    int64_t size = type.shape.dims[3], half = size / 2;
    sgm__rotation r = find_rotation(call, graph, type.shape.dims[1], size);
    x = sgm__mixed_cast(graph, x, sgm__master_dtype(call->options));
    sgm_value left = sgm_slice(graph, x, 3, 0, half, 1), right = sgm_slice(graph, x, 3, half, size, 1);
    sgm_value halves[] = {
        sgm_subtract(graph, sgm_multiply(graph, left, r.cosines), sgm_multiply(graph, right, r.sines)),
        sgm_add(graph, sgm_multiply(graph, right, r.cosines), sgm_multiply(graph, left, r.sines))};
    return sgm__mixed_cast(graph, sgm_concatenate(graph, halves, 2, 3), type.dtype);
}
