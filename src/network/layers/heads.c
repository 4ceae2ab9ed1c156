/* The heads of an attention: queries, keys and values between the two projections of attention.c.
 *
 * Each head computes softmax(q k^T / sqrt(size)) v over the steps of a sequence. Three things come before
 * that: queries and keys are turned by their places (rotary.c), keys and values are spread where several
 * heads share them, and steps that do not count are hidden. All of it goes into one self_attention
 * (src/ops/sequences/attention.c), which handlers do without keeping the scores, and which knows no masks but
 * the causal one. Single steps, when a network generates, look at keys and values that are kept in states
 * (look_back). */
#include "network/layers/blocks.h"

#include <math.h>
#include <stdio.h>

/* Added to the score of a step that does not count: the score's exponential is 0 then, without an infinity,
 * which times 0 would be NaN. */
#define HIDDEN (-1e30)

/* One attention that is recorded; sizes are of one head. */
typedef struct heads {
    sgm_layer_call *call;
    sgm_graph *graph;
    int64_t time, count, shared, size; /* heads; those of keys and values; features of one */
} heads;

/* (rows, ...) to (batch, time, count, size) */
static sgm_value apart(const heads *h, sgm_value x, int64_t count, int64_t size)
{
    sgm_shape shape = sgm_shape_of(-1, h->time, count, size);
    return sgm_reshape(h->graph, x, &shape);
}

/* A range of `count` entries of an axis. */
static sgm_value part(const heads *h, sgm_value x, int32_t axis, int64_t start, int64_t count)
{
    return sgm_slice(h->graph, x, axis, start, start + count, 1);
}

/* Keys or values (batch, time, shared, size) to (batch, time, heads, size): each for the heads / shared
 * queries that use it (grouped-query attention, Ainslie et al., 2023). */
static sgm_value spread(const heads *h, sgm_value x)
{
    if (h->shared == h->count)
        return x;
    sgm_shape shape = sgm_value_type(h->graph, x).shape;
    sgm_shape one = sgm_shape_of(shape.dims[0], h->time, h->shared, 1, shape.dims[3]), all = one;
    all.dims[3] = h->count / h->shared;
    x = sgm_broadcast(h->graph, sgm_reshape(h->graph, x, &one), &all);
    return apart(h, x, h->count, shape.dims[3]);
}

/* Appends one feature `more` to every head: of queries 1, of keys 0, or HIDDEN where a step does not count,
 * of values 0. The score q.k thereby gets 1 * HIDDEN added. */
static sgm_value widen(const heads *h, sgm_value x, sgm_value more)
{
    sgm_shape shape = sgm_value_type(h->graph, x).shape;
    shape.dims[3] = 1;
    more = sgm_broadcast(h->graph, sgm_cast(h->graph, more, sgm_value_type(h->graph, x).dtype), &shape);
    return sgm_concatenate(h->graph, (const sgm_value[]){x, more}, 2, 3);
}

/* Heads side by side, (batch, time, 3 * heads * size); of rows with several sequences each sees itself alone.
 */
static sgm_value attend(const heads *h, sgm_value all, bool causal)
{
    sgm_value starts = h->call->network->starts;
    if (!sgm_value_exists(starts))
        return sgm_self_attention(h->graph, all, h->count, causal);
    if (!causal)
        sgm__layer_refuses_packing(h->call, h->graph, "a place sees those behind it; it may be causal");
    return causal ? sgm_packed_attention(h->graph, all, h->count, starts) : (sgm_value){-1};
}

/* The heads' result (batch, time, heads * size) from q, k and v, (batch, time, heads, size) each, which
 * self_attention takes side by side in each row. */
static sgm_value look(const heads *h, sgm_value q, sgm_value k, sgm_value v, int64_t size, bool causal)
{
    sgm_value three[] = {apart(h, q, 1, h->count * size), apart(h, k, 1, h->count * size),
                         apart(h, v, 1, h->count * size)};
    sgm_shape shape = sgm_shape_of(-1, h->time, 3 * h->count * size);
    sgm_value all = sgm_reshape(h->graph, sgm_concatenate(h->graph, three, 3, 3), &shape);
    return attend(h, all, causal);
}

/* Attention over the steps that count. A causal one needs no mask for lengths: steps that count see only
 * earlier ones, which count, too, and results of the others are not used. Otherwise HIDDEN goes into the
 * scores as one more feature (widen), which is cut off again. */
static sgm_value look_at_steps(const heads *h, sgm_value q, sgm_value k, sgm_value v, bool causal)
{
    sgm_value lengths = sgm_layer_lengths(h->call);
    sgm_graph *graph = h->graph;
    if (causal || !sgm_value_exists(lengths))
        return look(h, q, k, v, h->size, causal);
    sgm_shape column = sgm_shape_of(-1, h->time, 1, 1);
    sgm_value counts = sgm_reshape(graph, sgm__layer_steps(graph, lengths, h->time), &column);
    sgm_value none = sgm_number(graph, 0);
    sgm_value hidden = sgm_filled_like(graph, sgm_cast(graph, counts, sgm_layer_dtype(h->call)), HIDDEN);
    hidden = sgm_select(graph, counts, sgm_filled_like(graph, hidden, 0), hidden);
    /* self_attention divides by sqrt(size + 1), the widened size; this factor makes it sqrt(size). */
    q = sgm_multiply(graph, q, sgm_number(graph, sqrt((double)(h->size + 1) / (double)h->size)));
    sgm_value y = look(h, widen(h, q, sgm_number(graph, 1)), widen(h, k, hidden), widen(h, v, none),
                       h->size + 1, false);
    return part(h, apart(h, y, h->count, h->size + 1), 3, 0, h->size);
}

/* --- one step or a few, with the keys and values of those before --- */

/* The state of keys or values of all places, (batch, shared, places, size), with x (batch, time, shared,
 * size), those of these steps, in their places; the program assigns the result to the state, and writes no
 * other places. */
static sgm_value keep(const heads *h, sgm_value x, sgm_value place, const char *prefix, const char *name)
{
    sgm_graph *graph = h->graph;
    int64_t batch = sgm_value_type(graph, x).shape.dims[0];
    sgm_shape shape = sgm_shape_of(batch, h->shared, h->call->network->steps, h->size);
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    sgm_value state = sgm__layer_cache(h->call, graph, full, &shape);
    sgm_value here = sgm_permute(graph, x, (const int32_t[]){0, 2, 1, 3});
    sgm_value all = sgm_write_at(graph, state, here, place, 2);
    sgm_assign(graph, state, all);
    return all;
}

/* The places of the rows of look_back: those of the steps, again for each head that shares keys. */
static sgm_value places_of_rows(const heads *h)
{
    int64_t groups = h->count / h->shared;
    sgm_value places = sgm__layer_places(h->call, h->graph);
    sgm_shape table = sgm_shape_of(groups, h->time), line = sgm_shape_of(groups * h->time);
    return h->time == 1 ? places : sgm_reshape(h->graph, sgm_broadcast(h->graph, places, &table), &line);
}

/* The queries of these steps (batch, time, heads, size) over the keys and values of these steps and all
 * before, giving (batch * time, heads * size). A step does not look at places behind it, which may not have
 * come yet. Heads that share keys are rows of one attention to them, each with all of its steps. */
static sgm_value look_back(const heads *h, sgm_value q, sgm_value k, sgm_value v, const char *prefix)
{
    static const int32_t swapped[] = {0, 2, 1, 3};
    sgm_graph *graph = h->graph;
    sgm_value place = sgm__layer_place(h->call, graph);
    sgm_shape groups = sgm_shape_of(-1, h->shared, h->count / h->shared * h->time, h->size),
              each = sgm_shape_of(-1, h->count, h->time, h->size),
              rows = sgm_shape_of(-1, h->count * h->size);
    sgm_value keys = keep(h, k, place, prefix, "cache_keys"),
              values = keep(h, v, place, prefix, "cache_values");
    q = sgm_reshape(graph, sgm_permute(graph, q, swapped), &groups);
    sgm_value y = sgm_attention_at(graph, q, keys, values, places_of_rows(h));
    y = sgm_permute(graph, sgm_reshape(graph, y, &each), swapped);
    return sgm_reshape(graph, y, &rows);
}

/* The argument "head_size", or an equal part of the features if it is not given. */
int64_t sgm__layer_head_size(sgm_layer_call *call, int64_t features)
{
    int64_t size = sgm_layer_integer(call, "head_size");
    return size > 0 ? size : features / sgm_layer_integer(call, "heads");
}

/* The argument "key_heads", or as many as heads if it is not given. */
int64_t sgm__layer_key_heads(sgm_layer_call *call)
{
    int64_t shared = sgm_layer_integer(call, "key_heads");
    return shared > 0 ? shared : sgm_layer_integer(call, "heads");
}

/* rms_norm of each head, with the gains "PREFIXNAME_gains" (size) that all heads share. */
static sgm_value norm(const heads *h, sgm_value x, const char *prefix, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s_", prefix, name);
    return sgm__layer_normalise(h->call, h->graph, x, false, false, full,
                                sgm_layer_number(h->call, "epsilon"));
}

/* The plain case goes straight into self_attention, as the projection has q, k and v side by side already.
 * Otherwise the columns are taken apart: first the heads of q, then those of k, then those of v. */
sgm_value sgm__layer_look(sgm_layer_call *call, sgm_graph *graph, sgm_value all, int64_t time, int64_t size,
                          const char *prefix)
{
    heads h = {
        .call = call, .graph = graph, .time = time, .count = sgm_layer_integer(call, "heads"), .size = size};
    h.shared = sgm__layer_key_heads(call);
    bool causal = sgm_layer_flag(call, "causal"), rotary = sgm_layer_flag(call, "rotary");
    bool normed = sgm_layer_flag(call, "query_norm");
    bool masked = sgm_value_exists(sgm_layer_lengths(call)) && !causal;
    sgm_shape sequences = sgm_shape_of(-1, time, 3 * h.count * size);
    sgm_shape rows = sgm_shape_of(-1, h.count * size);
    bool step = sgm_layer_is_step(call);
    if (!causal && sgm__layer_refuses_step(call, graph, "a place sees those behind it; it may be causal"))
        return (sgm_value){-1};
    if (h.shared == h.count && !rotary && !normed && !masked && !step)
        return sgm_reshape(graph, attend(&h, sgm_reshape(graph, all, &sequences), causal), &rows);
    sgm_value x = apart(&h, all, h.count + 2 * h.shared, h.size);
    sgm_value q = part(&h, x, 2, 0, h.count), k = part(&h, x, 2, h.count, h.shared);
    sgm_value v = part(&h, x, 2, h.count + h.shared, h.shared);
    if (normed) {
        q = norm(&h, q, prefix, "query");
        k = norm(&h, k, prefix, "key");
    }
    if (rotary) {
        q = sgm__layer_rotate(call, graph, q);
        k = sgm__layer_rotate(call, graph, k);
    }
    if (step)
        return look_back(&h, q, k, v, prefix);
    return sgm_reshape(graph, look_at_steps(&h, q, spread(&h, k), spread(&h, v), causal), &rows);
}
