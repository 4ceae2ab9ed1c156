/* attention: each position takes from the values what its query finds among the keys, softmax(q k' /
 * sqrt(d)) v (Vaswani et al., 2017).
 *
 * sgm_attention is composed of products and a softmax. self_attention is the same with several heads,
 * where queries, keys and values lie side by side as one product made them, (batch..., time, 3 *
 * features): it stays an instruction, and handlers with a kernel do it head by head without moving
 * anything; for the others it is composed block by block (compose), so that memory grows with the length
 * of a sequence, not with its square. attention_at is that of queries at places of a sequence whose later
 * keys and values do not exist yet: handlers with a kernel do not read those. packed_attention is a causal
 * self_attention of which each position sees nothing before a first one, so that several sequences stand in
 * one row without seeing each other. Layers with attention are in
 * src/network/layers/attention.c. */
#include "ops/rules.h"

#include <math.h>

static const int32_t last[] = {-1};

/* The score of a pair that does not count (a position that comes later): its exponential is 0, and no
 * infinity appears anywhere, which handlers look for. */
#define HIDDEN -1e30

/* x / sqrt(features): scores of independent numbers then have the variance 1, whatever the features. */
static sgm_value scaled(sgm_graph *graph, sgm_value x, int64_t features)
{
    return sgm_multiply(graph, x, sgm_number(graph, 1 / sqrt((double)features)));
}

/* Softmax of the scores of queries (..., t, d) and keys (..., s, d): (..., t, s). Causal: position first +
 * t sees those up to and with it. `again`: the same values by other instructions (the keys are scaled
 * instead of the queries), so that they are no duplicates of the forward pass, whose values would have to
 * be kept until then. `starts`, (batch, 1, t, 1): the first position that each query sees; nothing: all do
 * from the first of all on. */
static sgm_value weigh(sgm_graph *graph, sgm_value queries, sgm_value keys, bool causal, int64_t first,
                       sgm_value starts, bool again)
{
    sgm_shape shape = sgm_value_type(graph, queries).shape;
    int64_t features = shape.dims[shape.rank - 1];
    sgm_value *one = again ? &keys : &queries;
    *one = scaled(graph, *one, features);
    sgm_value scores = sgm_matmul(graph, queries, sgm_transpose(graph, keys));
    if (!causal)
        return sgm_softmax(graph, scores);
    sgm_shape wide = sgm_value_type(graph, scores).shape;
    sgm_shape square = sgm_shape_create(2, wide.dims + (wide.rank > 2 ? wide.rank - 2 : 0));
    sgm_value places = sgm_iota(graph, SGM_INT32, &square, 0);
    if (first > 0)
        places = sgm_add(graph, places, sgm_number(graph, (double)first));
    sgm_value keyed = sgm_iota(graph, SGM_INT32, &square, 1);
    sgm_value seen = sgm_less_equal(graph, keyed, places);
    if (sgm_value_exists(starts))
        seen = sgm_logical_and(graph, seen, sgm_greater_equal(graph, keyed, starts));
    return sgm_softmax(graph, sgm_select(graph, sgm_broadcast(graph, seen, &wide), scores,
                                         sgm_filled_like(graph, scores, HIDDEN)));
}

/* Whether the three shapes fit: equal leading dimensions, equal features of queries and keys, equal
 * lengths of keys and values, none of them empty. */
static bool fits(const sgm_shape *q, const sgm_shape *k, const sgm_shape *v, bool causal)
{
    int32_t rank = q->rank;
    bool equal = rank >= 2 && k->rank == rank && v->rank == rank;
    for (int32_t i = 0; i + 2 < rank && equal; i++)
        equal = q->dims[i] == k->dims[i] && q->dims[i] == v->dims[i];
    return equal && q->dims[rank - 1] == k->dims[rank - 1] && q->dims[rank - 1] > 0 &&
           k->dims[rank - 2] == v->dims[rank - 2] && k->dims[rank - 2] > 0 &&
           (!causal || q->dims[rank - 2] == k->dims[rank - 2]);
}

sgm_value sgm_attention(sgm_graph *graph, sgm_value queries, sgm_value keys, sgm_value values, bool causal)
{
    char q[SGM__TYPE_TEXT], k[SGM__TYPE_TEXT], v[SGM__TYPE_TEXT];
    if (!sgm__can_record(graph, "attention", queries) || !sgm__can_record(graph, "attention", keys) ||
        !sgm__can_record(graph, "attention", values))
        return (sgm_value){-1};
    sgm_type query = sgm_value_type(graph, queries), key = sgm_value_type(graph, keys),
             value = sgm_value_type(graph, values);
    if (!fits(&query.shape, &key.shape, &value.shape, causal))
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "attention: wants queries (..., t, d), keys (..., s, d) and values (..., s, "
                              "e)%s, got %s, %s and %s",
                              causal ? " with t = s, as it is causal" : "", sgm__type_text(&query, q),
                              sgm__type_text(&key, k), sgm__type_text(&value, v));
    return sgm_matmul(graph, weigh(graph, queries, keys, causal, 0, (sgm_value){-1}, false), values);
}

/* --- self_attention; integers: heads, causal --- */

/* (batch..., time, 3 * features) gives (batch..., time, features). */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    char text[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_float(&inputs[0]));
    SGM_TRY(sgm__want_integers(attributes, 2));
    int32_t rank = inputs[0].shape.rank;
    int64_t heads = attributes->integers[0], wide = rank >= 2 ? inputs[0].shape.dims[rank - 1] : 0;
    if (rank < 2 || rank > SGM_MAX_RANK - 1 || wide == 0 || wide % 3 != 0 ||
        inputs[0].shape.dims[rank - 2] == 0)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "wants queries, keys and values side by side (..., time, 3 * features), got %s",
                        sgm__type_text(&inputs[0], text));
    if (heads < 1 || wide / 3 % heads != 0)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "%lld heads do not divide %lld features: choose a number of heads that does",
                        (long long)heads, (long long)(wide / 3));
    *result = inputs[0];
    result->shape.dims[rank - 1] = wide / 3;
    return SGM_OK;
}

/* The input of self_attention, taken apart into heads. */
typedef struct parts {
    int64_t batch, time, features, heads;
    bool causal;
    sgm_shape whole;   /* (batch..., time, 3 * features) */
    sgm_value q, k, v; /* (batch, heads, time, features of a head) */
    sgm_value starts;  /* (batch, 1, time, 1), int32; nothing: all see from the first position on */
} parts;

/* (batch..., time, count * features) to (batch, heads, time, features of a head), for one of the `count`. */
static sgm_value split(sgm_graph *graph, const parts *p, sgm_value x, int64_t count, int64_t index)
{
    sgm_shape apart = sgm_shape_of(p->batch, p->time, count, p->heads, p->features / p->heads);
    sgm_shape one = sgm_shape_of(p->batch, p->time, p->heads, p->features / p->heads);
    x = sgm_slice(graph, sgm_reshape(graph, x, &apart), 2, index, index + 1, 1);
    return sgm_permute(graph, sgm_reshape(graph, x, &one), (const int32_t[]){0, 2, 1, 3});
}

/* The inverse of split(), for one of queries, keys and values. */
static sgm_value join(sgm_graph *graph, const parts *p, sgm_value x)
{
    sgm_shape shape = p->whole;
    shape.dims[shape.rank - 1] = p->features;
    return sgm_reshape(graph, sgm_permute(graph, x, (const int32_t[]){0, 2, 1, 3}), &shape);
}

/* Slices and permutations are views, so this costs nothing in handlers that need it. */
static parts split_all(sgm_graph *graph, sgm_value x, const sgm_attributes *attributes)
{
    parts p = {
        .batch = 1, .heads = attributes->integers[0], .causal = attributes->integers[1] != 0, .starts = {-1}};
    p.whole = sgm_value_type(graph, x).shape;
    for (int32_t i = 0; i + 2 < p.whole.rank; i++)
        p.batch *= p.whole.dims[i];
    p.time = p.whole.dims[p.whole.rank - 2];
    p.features = p.whole.dims[p.whole.rank - 1] / 3;
    p.q = split(graph, &p, x, 3, 0);
    p.k = split(graph, &p, x, 3, 1);
    p.v = split(graph, &p, x, 3, 2);
    return p;
}

/* Some rows of queries after the other, so that scores take memory by the length of a sequence, not by its
 * square (Rabe and Staats, 2021); their gradient computes them again (Dao et al., 2022). 128 rows make
 * products that are large enough to be fast. */
#define BLOCK 128

/* Rows first to stop - 1 of the queries, and how many keys these see: causal ones see no key behind their
 * own. */
typedef struct block {
    int64_t first, stop, seen; /* rows; keys that they see */
} block;

static block block_at(const parts *p, int64_t first)
{
    int64_t stop = first + BLOCK < p->time ? first + BLOCK : p->time;
    return (block){first, stop, p->causal ? stop : p->time};
}

/* Rows of (batch, heads, time, features of a head); all of them without a slice. */
static sgm_value rows_of(sgm_graph *graph, sgm_value x, int64_t first, int64_t stop)
{
    bool all = first == 0 && stop == sgm_value_type(graph, x).shape.dims[2];
    return all ? x : sgm_slice(graph, x, 2, first, stop, 1);
}

/* Softmax of a block's scores, (batch, heads, rows, seen). */
static sgm_value weights_of(sgm_graph *graph, const parts *p, const block *b, bool again)
{
    sgm_value starts = p->starts;
    if (sgm_value_exists(starts))
        starts = rows_of(graph, starts, b->first, b->stop);
    return weigh(graph, rows_of(graph, p->q, b->first, b->stop), rows_of(graph, p->k, 0, b->seen), p->causal,
                 b->first, starts, again);
}

/* Block after block; a short sequence is one block, and is recorded as plain attention. */
static sgm_value look(sgm_graph *graph, const parts *p)
{
    sgm_value all = {-1};
    for (int64_t first = 0; first < p->time; first += BLOCK) {
        block b = block_at(p, first);
        sgm_value y = sgm_matmul(graph, weights_of(graph, p, &b, false), rows_of(graph, p->v, 0, b.seen));
        all = first == 0 ? y : sgm_concatenate(graph, (const sgm_value[]){all, y}, 2, 2);
    }
    return join(graph, p, all);
}

static sgm_value compose(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                         const sgm_attributes *attributes)
{
    (void)count;
    parts p = split_all(graph, inputs[0], attributes);
    return look(graph, &p);
}

/* --- its gradient: inputs are self_attention's input and the gradient of its result --- */

/* Inputs are self_attention's input and the gradient of its result; the result is the input's gradient. */
static sgm_status infer_gradient(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                 sgm_type *result)
{
    SGM_TRY(infer(inputs, count, attributes, result));
    SGM_TRY(sgm__want_equal(result, &inputs[1]));
    *result = inputs[0];
    return SGM_OK;
}

/* Gradients of queries, keys and values so far, (batch, heads, time, features of a head). */
typedef struct part_gradients {
    sgm_value q, k, v; /* (batch, heads, time, features of a head) */
} part_gradients;

/* Adds what the keys or values that a block sees get to what they have; those that it does not see get 0. */
static sgm_value add_seen(sgm_graph *graph, const parts *p, const block *b, sgm_value all, sgm_value seen)
{
    if (b->seen < p->time)
        seen = sgm_pad(graph, seen, 2, 0, p->time - b->seen, 0);
    return b->first == 0 ? seen : sgm_add(graph, all, seen);
}

/* With weights P, values V and the result's gradient G: dV = P' G, dP = G V', dS = P (dP - rowsum(dP P)),
 * dQ = dS K, dK = dS' Q, where scores are scaled by 1 / sqrt(d). Queries of blocks are concatenated; keys
 * and values add up, as all blocks see them. */
static void add_block(sgm_graph *graph, const parts *p, const block *b, sgm_value whole, part_gradients *all)
{
    sgm_value gradient = rows_of(graph, whole, b->first, b->stop),
              q = rows_of(graph, p->q, b->first, b->stop);
    sgm_value k = rows_of(graph, p->k, 0, b->seen), v = rows_of(graph, p->v, 0, b->seen);
    /* the few of a short sequence are kept */
    sgm_value weights = weights_of(graph, p, b, p->time > BLOCK), transposed = sgm_transpose(graph, weights);
    sgm_value by_weights = sgm_matmul(graph, gradient, sgm_transpose(graph, v));
    sgm_value mean = sgm_reduce_sum(graph, sgm_multiply(graph, by_weights, weights), last, 1, true);
    sgm_value by_scores = sgm_multiply(graph, sgm_subtract(graph, by_weights, mean), weights);
    int64_t features = p->features / p->heads;
    sgm_value by_q = sgm_matmul(graph, scaled(graph, by_scores, features), k);
    sgm_value by_k = sgm_matmul(graph, sgm_transpose(graph, by_scores), scaled(graph, q, features));
    sgm_value by_v = sgm_matmul(graph, transposed, gradient);
    all->q = b->first == 0 ? by_q : sgm_concatenate(graph, (const sgm_value[]){all->q, by_q}, 2, 2);
    all->k = add_seen(graph, p, b, all->k, by_k);
    all->v = add_seen(graph, p, b, all->v, by_v);
}

/* The gradient of queries, keys and values side by side, as the input has them. */
static sgm_value look_gradient(sgm_graph *graph, const parts *p, sgm_value gradient)
{
    part_gradients all = {{-1}, {-1}, {-1}};
    gradient = split(graph, p, gradient, 1, 0);
    for (int64_t first = 0; first < p->time; first += BLOCK) {
        block b = block_at(p, first);
        add_block(graph, p, &b, gradient, &all);
    }
    const sgm_value three[] = {join(graph, p, all.q), join(graph, p, all.k), join(graph, p, all.v)};
    return sgm_concatenate(graph, three, 3, -1);
}

static sgm_value compose_gradient(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                  const sgm_attributes *attributes)
{
    (void)count;
    parts p = split_all(graph, inputs[0], attributes);
    return look_gradient(graph, &p, inputs[1]);
}

const sgm_op sgm__op_self_attention_gradient = {
    SGM__OP("self_attention_gradient", 2,
            "what self_attention's queries, keys and values get of its result's gradient"),
    .compose = compose_gradient, .infer = infer_gradient};

static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[0])
        gradients[0] = sgm_record(graph, &sgm__op_self_attention_gradient,
                                  (sgm_value[]){call->inputs[0], call->gradient}, 2, call->attributes);
}

const sgm_op sgm__op_self_attention = {
    SGM__OP("self_attention", 1,
            "attention of heads whose queries, keys and values lie side by side (Vaswani et al., 2017)"),
    .compose = compose, .infer = infer, .gradient = gradient};

sgm_value sgm_self_attention(sgm_graph *graph, sgm_value x, int64_t heads, bool causal)
{
    return sgm__record_one(graph, &sgm__op_self_attention, x, &SGM__INTEGERS(heads, causal));
}

/* --- packed_attention; integers: heads, causal (1); inputs: self_attention's, starts --- */

/* Starts are (batch..., time) of integers: the first position that each one sees. */
static sgm_status infer_packed(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                               sgm_type *result)
{
    char text[2][SGM__TYPE_TEXT];
    SGM_TRY(infer(inputs, count, attributes, result));
    SGM_TRY(sgm__want_index(&inputs[1]));
    sgm_shape wanted = inputs[0].shape;
    wanted.rank--;
    return sgm_shape_equal(&wanted, &inputs[1].shape)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_SHAPE,
                          "wants the first position that each one sees (..., time), got %s for %s",
                          sgm__type_text(&inputs[1], text[0]), sgm__type_text(&inputs[0], text[1]));
}

/* A position sees itself, whatever its start: there is no softmax of nothing. */
static parts split_packed(sgm_graph *graph, const sgm_value *inputs, const sgm_attributes *attributes)
{
    parts p = split_all(graph, inputs[0], attributes);
    const sgm_shape column = sgm_shape_of(p.batch, 1, p.time, 1), line = sgm_shape_of(1, 1, p.time, 1);
    sgm_value starts = sgm_reshape(graph, sgm_cast(graph, inputs[1], SGM_INT32), &column);
    p.starts = sgm_minimum(graph, starts, sgm_iota(graph, SGM_INT32, &line, 2));
    return p;
}

static sgm_value compose_packed(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                const sgm_attributes *attributes)
{
    (void)count;
    parts p = split_packed(graph, inputs, attributes);
    return look(graph, &p);
}

/* Inputs are those of packed_attention and the gradient of its result. */
static sgm_status infer_packed_gradient(const sgm_type *inputs, int32_t count,
                                        const sgm_attributes *attributes, sgm_type *result)
{
    SGM_TRY(infer_packed(inputs, count, attributes, result));
    SGM_TRY(sgm__want_equal(result, &inputs[2]));
    *result = inputs[0];
    return SGM_OK;
}

static sgm_value compose_packed_gradient(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                         const sgm_attributes *attributes)
{
    (void)count;
    parts p = split_packed(graph, inputs, attributes);
    return look_gradient(graph, &p, inputs[2]);
}

const sgm_op sgm__op_packed_attention_gradient = {
    SGM__OP("packed_attention_gradient", 3,
            "what packed_attention's queries, keys and values get of its result's gradient"),
    .compose = compose_packed_gradient, .infer = infer_packed_gradient};

static void gradient_packed(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[0])
        gradients[0] =
            sgm_record(graph, &sgm__op_packed_attention_gradient,
                       (sgm_value[]){call->inputs[0], call->inputs[1], call->gradient}, 3, call->attributes);
}

const sgm_op sgm__op_packed_attention = {
    SGM__OP("packed_attention", 2,
            "causal attention of heads, of which each position sees nothing before a first one"),
    .compose = compose_packed, .infer = infer_packed, .gradient = gradient_packed};

sgm_value sgm_packed_attention(sgm_graph *graph, sgm_value x, int64_t heads, sgm_value starts)
{
    return sgm_record(graph, &sgm__op_packed_attention, (sgm_value[]){x, starts}, 2,
                      &SGM__INTEGERS(heads, 1));
}

/* --- attention_at; inputs: queries, keys, values, place --- */

/* One index, or one for each of the queries (..., t, d). */
static sgm_status want_places(const sgm_type *place, const sgm_shape *queries)
{
    char text[SGM__TYPE_TEXT];
    if (place->shape.rank == 0)
        return sgm__want_place(place);
    SGM_TRY(sgm__want_index(place));
    int64_t count = queries->rank >= 2 ? queries->dims[queries->rank - 2] : 0;
    if (place->shape.rank == 1 && place->shape.dims[0] == count)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE,
                    "wants one index, of rank 0, as the place, or one for each of the %lld queries, got %s",
                    (long long)count, sgm__type_text(place, text));
}

static sgm_status infer_at(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                           sgm_type *result)
{
    (void)count, (void)attributes;
    char q[SGM__TYPE_TEXT], k[SGM__TYPE_TEXT], v[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_float(&inputs[0]));
    SGM_TRY(want_places(&inputs[3], &inputs[0].shape));
    if (!fits(&inputs[0].shape, &inputs[1].shape, &inputs[2].shape, false) ||
        inputs[1].dtype != inputs[0].dtype || inputs[2].dtype != inputs[0].dtype)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "wants queries (..., t, d), keys (..., s, d) and values (..., s, e) of one type, got "
                        "%s, %s and %s",
                        sgm__type_text(&inputs[0], q), sgm__type_text(&inputs[1], k),
                        sgm__type_text(&inputs[2], v));
    int32_t rank = inputs[0].shape.rank;
    *result = inputs[0];
    result->shape.dims[rank - 1] = inputs[2].shape.dims[rank - 1];
    return SGM_OK;
}

/* All scores, of which those behind the place are hidden. Places are looked up in a list of all that there
 * are, so that one out of range is an error. */
static sgm_value compose_at(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                            const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape, keys = sgm_value_type(graph, inputs[1]).shape;
    sgm_shape line = sgm_shape_of(keys.dims[keys.rank - 2]);
    sgm_value places = sgm_iota(graph, SGM_INT64, &line, 0);
    sgm_value queries = scaled(graph, inputs[0], shape.dims[shape.rank - 1]);
    sgm_value scores = sgm_matmul(graph, queries, sgm_transpose(graph, inputs[1]));
    sgm_value newest = sgm_gather(graph, places, inputs[3], 0);
    sgm_shape column = sgm_shape_of(-1, 1);
    if (sgm_value_type(graph, newest).shape.rank == 1)
        newest = sgm_reshape(graph, newest, &column);
    sgm_value seen = sgm_less_equal(graph, places, newest);
    scores = sgm_select(graph, seen, scores, sgm_filled_like(graph, scores, HIDDEN));
    return sgm_matmul(graph, sgm_softmax(graph, scores), inputs[2]);
}

const sgm_op sgm__op_attention_at = {
    SGM__OP("attention_at", 4,
            "attention of queries that see the keys and values up to an index and with it"),
    .compose = compose_at, .infer = infer_at};

sgm_value sgm_attention_at(sgm_graph *graph, sgm_value queries, sgm_value keys, sgm_value values,
                           sgm_value place)
{
    return sgm_record(graph, &sgm__op_attention_at, (sgm_value[]){queries, keys, values, place}, 4, NULL);
}
