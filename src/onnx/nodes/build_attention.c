/* Build functions of Attention and RotaryEmbedding.
 *
 * Queries, keys and values are (batch, heads, positions, features) here; (batch, positions, heads *
 * features), which the nodes take as well, is brought to that form and back. What forbids a query to see a
 * key is a bias of minus infinity that is added to the product. Called by import.c through operators.c. */
#include "onnx/nodes/onnx.h"

#include <math.h>

static int64_t dim(const sgm__onnx_node *n, sgm_value value, int32_t axis)
{
    return sgm__onnx_type(n, value).shape.dims[axis];
}

/* (batch, positions, heads * features) to (batch, heads, positions, features). */
static sgm_value split_heads(sgm__onnx_node *n, sgm_value x, int64_t heads)
{
    sgm_shape s = sgm__onnx_type(n, x).shape;
    if (s.rank == 4)
        return x;
    if (s.rank != 3 || heads < 1 || s.dims[2] % heads != 0)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "%lld heads of %d dimensions", (long long)heads,
                              s.rank);
    x = sgm_reshape(n->graph, x, SGM__ONNX_SHAPE(s.dims[0], s.dims[1], heads, s.dims[2] / heads));
    return sgm_permute(n->graph, x, (const int32_t[]){0, 2, 1, 3});
}

static sgm_value join_heads(sgm__onnx_node *n, sgm_value x)
{
    sgm_shape s = sgm__onnx_type(n, x).shape;
    x = sgm_permute(n->graph, x, (const int32_t[]){0, 2, 1, 3});
    return sgm_reshape(n->graph, x,
                       SGM__ONNX_SHAPE(s.dims[0], s.dims[2], sgm__onnx_times(s.dims[1], s.dims[3])));
}

/* Each head `times` times, one after the other: several heads of queries share one of keys. */
static sgm_value repeat_heads(sgm__onnx_node *n, sgm_value x, int64_t times)
{
    sgm_shape s = sgm__onnx_type(n, x).shape;
    if (times == 1)
        return x;
    x = sgm_reshape(n->graph, x, SGM__ONNX_SHAPE(s.dims[0], s.dims[1], 1, s.dims[2], s.dims[3]));
    x = sgm_broadcast(n->graph, x, SGM__ONNX_SHAPE(s.dims[0], s.dims[1], times, s.dims[2], s.dims[3]));
    return sgm_reshape(n->graph, x,
                       SGM__ONNX_SHAPE(s.dims[0], sgm__onnx_times(s.dims[1], times), s.dims[2], s.dims[3]));
}

/* --- what a query does not see --- */

/* Inputs of Attention. */
enum { QUERIES, KEYS, VALUES, MASK, PAST_KEYS, PAST_VALUES, FILLED };

/* 0 where it is seen, minus infinity elsewhere, in the type of the queries. */
static sgm_value bias_of(sgm__onnx_node *n, sgm_value seen)
{
    sgm_graph *g = n->graph;
    sgm_value zero = sgm__onnx_cast_like(g, sgm_number(g, 0), n->inputs[QUERIES]);
    return sgm_select(g, seen, zero, sgm_number(g, -INFINITY));
}

/* A bias on top of another one, which may be none. */
static sgm_value join(sgm__onnx_node *n, sgm_value bias, sgm_value seen)
{
    sgm_value own = bias_of(n, seen);
    return sgm_value_exists(bias) ? sgm_add(n->graph, bias, own) : own;
}

/* The mask as a bias for `keys` keys: those that it has not are not seen. */
static sgm_value mask_bias(sgm__onnx_node *n, int64_t keys)
{
    sgm_graph *g = n->graph;
    sgm_value mask = sgm__onnx_in(n, MASK);
    if (!sgm_value_exists(mask))
        return mask;
    if (sgm__onnx_type(n, mask).dtype == SGM_BOOL)
        mask = bias_of(n, mask);
    sgm_shape s = sgm__onnx_type(n, mask).shape;
    int64_t have = s.rank > 0 ? s.dims[s.rank - 1] : keys;
    if (have >= keys || have == 1)
        return mask;
    s.dims[s.rank - 1] = keys - have;
    sgm_value rest = sgm_broadcast(g, sgm__onnx_cast_like(g, sgm_number(g, -INFINITY), mask), &s);
    return sgm_concatenate(g, (const sgm_value[]){mask, rest}, 2, s.rank - 1);
}

/* The place of each query among the keys: (queries, keys), or (batch, 1, queries, keys) where each example
 * has another number of keys that are filled. Queries follow the keys of the past, or are the last of the
 * filled ones. */
static sgm_value places_of_queries(sgm__onnx_node *n, const sgm_shape *grid, int64_t past)
{
    sgm_graph *g = n->graph;
    sgm_value place = sgm_iota(g, SGM_INT64, grid, 0), filled = sgm__onnx_in(n, FILLED);
    if (!sgm_value_exists(filled))
        return past == 0 ? place : sgm_add(g, place, sgm_number(g, (double)past));
    sgm_value before = sgm_subtract(g, filled, sgm_number(g, (double)grid->dims[0]));
    return sgm_add(g, place, sgm_reshape(g, before, SGM__ONNX_SHAPE(-1, 1, 1, 1)));
}

/* The whole bias; no value: all is seen. */
static sgm_value attention_bias(sgm__onnx_node *n, int64_t queries, int64_t keys, int64_t past)
{
    sgm_graph *g = n->graph;
    sgm_shape grid = sgm_shape_of(queries, keys);
    sgm_value bias = mask_bias(n, keys), key = sgm_iota(g, SGM_INT64, &grid, 1);
    sgm_value place = places_of_queries(n, &grid, past), filled = sgm__onnx_in(n, FILLED);
    int64_t left = sgm__onnx_integer(n, "left_window_size", -1);
    int64_t right = sgm__onnx_integer(n, "right_window_size", -1);
    if (sgm__onnx_integer(n, "is_causal", 0) != 0)
        bias = join(n, bias, sgm_less_equal(g, key, place));
    if (left >= 0)
        bias = join(n, bias, sgm_greater_equal(g, key, sgm_subtract(g, place, sgm_number(g, (double)left))));
    if (right >= 0)
        bias = join(n, bias, sgm_less_equal(g, key, sgm_add(g, place, sgm_number(g, (double)right))));
    if (sgm_value_exists(filled))
        bias = join(n, bias,
                    sgm_less(g, sgm_iota(g, SGM_INT64, SGM__ONNX_SHAPE(keys), 0),
                             sgm_reshape(g, filled, SGM__ONNX_SHAPE(-1, 1, 1, 1))));
    return bias;
}

/* --- attention --- */

/* What the fourth output has. */
enum { PRODUCT, CAPPED, WITH_BIAS, SHARES };

/* softmax along the keys, in the type of `softmax_precision`; a query that sees no key has shares of 0. */
static sgm_value shares_of(sgm__onnx_node *n, sgm_value scores, sgm_value bias)
{
    sgm_graph *g = n->graph;
    int64_t own = sgm__onnx_element(n, n->inputs[QUERIES]);
    int64_t precision = sgm__onnx_integer(n, "softmax_precision", 0);
    bool other = precision != 0 && precision != own;
    sgm_value x = other ? sgm__onnx_cast_to(n, scores, precision, (sgm__onnx_cast_options){0}) : scores;
    sgm_value shares = sgm_softmax(g, x);
    if (other)
        shares = sgm__onnx_cast_to(n, shares, own, (sgm__onnx_cast_options){0});
    if (!sgm_value_exists(bias))
        return shares;
    sgm_value best = sgm_reduce_max(g, bias, (const int32_t[]){-1}, 1, true);
    sgm_value none = sgm_equal(g, best, sgm_number(g, -INFINITY));
    return sgm_select(g, none, sgm_filled_like(g, shares, 0), shares);
}

/* The product of queries and keys, both scaled by the root of the scale, so that neither leaves its type. */
static sgm_value scores_of(sgm__onnx_node *n, sgm_value queries, sgm_value keys)
{
    sgm_graph *g = n->graph;
    double scale = sgm__onnx_number(n, "scale", 1 / sqrt((double)dim(n, queries, 3)));
    double cap = sgm__onnx_number(n, "softcap", 0);
    sgm_value root = sgm_number(g, sqrt(scale));
    keys = sgm_permute(g, keys, (const int32_t[]){0, 1, 3, 2});
    sgm_value scores = sgm_matmul(g, sgm_multiply(g, queries, root), sgm_multiply(g, keys, root));
    if (cap <= 0)
        return scores;
    scores = sgm_tanh(g, sgm_divide(g, scores, sgm_number(g, cap)));
    return sgm_multiply(g, scores, sgm_number(g, cap));
}

/* The keys or values of the past and the new ones. */
static sgm_value with_past(sgm__onnx_node *n, int32_t past, sgm_value x)
{
    sgm_value old = sgm__onnx_in(n, past);
    return sgm_value_exists(old) ? sgm_concatenate(n->graph, (const sgm_value[]){old, x}, 2, 2) : x;
}

/* Outputs: the result, the present keys and values, and what qk_matmul_output_mode says. */
sgm_value sgm__onnx_attention(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    bool joined = sgm__onnx_type(n, n->inputs[QUERIES]).shape.rank == 3;
    int64_t mode = sgm__onnx_integer(n, "qk_matmul_output_mode", PRODUCT);
    int64_t key_heads = sgm__onnx_integer(n, "kv_num_heads", 0);
    sgm_value queries = split_heads(n, n->inputs[QUERIES], sgm__onnx_integer(n, "q_num_heads", 0));
    sgm_value keys = with_past(n, PAST_KEYS, split_heads(n, n->inputs[KEYS], key_heads));
    sgm_value values = with_past(n, PAST_VALUES, split_heads(n, n->inputs[VALUES], key_heads));
    if (g->status != SGM_OK)
        return (sgm_value){-1};
    int64_t heads = dim(n, queries, 1), given = dim(n, keys, 1);
    if (given < 1 || heads % given != 0 || dim(n, values, 1) != given || mode < PRODUCT || mode > SHARES)
        return sgm__onnx_unsupported(n, "%lld heads of queries for %lld of keys, or an unknown output mode",
                                     (long long)heads, (long long)given);
    n->outputs[1] = sgm_copy(g, keys);
    n->outputs[2] = sgm_copy(g, values);
    int64_t past = sgm_value_exists(sgm__onnx_in(n, PAST_KEYS)) ? dim(n, n->inputs[PAST_KEYS], 2) : 0;
    sgm_value scores = scores_of(n, queries, repeat_heads(n, keys, heads / given));
    sgm_value bias = attention_bias(n, dim(n, queries, 2), dim(n, keys, 2), past);
    sgm_value biased = sgm_value_exists(bias) ? sgm_add(g, scores, bias) : scores;
    sgm_value shares = shares_of(n, biased, bias);
    n->outputs[3] = sgm_copy(g, mode == SHARES ? shares : mode == WITH_BIAS ? biased : scores);
    sgm_value y = sgm_matmul(g, shares, repeat_heads(n, values, heads / given));
    return joined ? join_heads(n, y) : y;
}

/* --- rotary embedding --- */

/* The cosines or sines of all positions, (batch or 1, 1, positions, features), of a table by position or of
 * one by example and position. */
static sgm_value angles(sgm__onnx_node *n, sgm_value table)
{
    sgm_graph *g = n->graph;
    sgm_value numbers = sgm__onnx_in(n, 3);
    if (sgm_value_exists(numbers)) {
        sgm_value size = sgm__onnx_constant_integers(g, &sgm__onnx_type(n, table).shape.dims[0], 1);
        table = sgm_gather(g, table, sgm__onnx_from_start(g, numbers, size), 0);
    }
    sgm_shape s = sgm__onnx_type(n, table).shape;
    if (s.rank != 3)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "a table of angles of %d dimensions", s.rank);
    return sgm_reshape(g, table, SGM__ONNX_SHAPE(s.dims[0], 1, s.dims[1], s.dims[2]));
}

/* Part `which` of two of the last axis: every second entry, or one half. */
static sgm_value half(sgm_graph *g, sgm_value x, int which, bool interleaved)
{
    int64_t size = sgm_value_type(g, x).shape.dims[3];
    return interleaved ? sgm_slice(g, x, 3, which, size, 2)
                       : sgm_slice(g, x, 3, which * size / 2, (which + 1) * size / 2, 1);
}

/* The inverse of taking both halves. */
static sgm_value join_halves(sgm_graph *g, sgm_value a, sgm_value b, bool interleaved)
{
    sgm_shape s = sgm_value_type(g, a).shape, pair = s;
    if (!interleaved)
        return sgm_concatenate(g, (const sgm_value[]){a, b}, 2, 3);
    pair.rank = 5;
    pair.dims[4] = 1;
    const sgm_value parts[] = {sgm_reshape(g, a, &pair), sgm_reshape(g, b, &pair)};
    s.dims[3] *= 2;
    return sgm_reshape(g, sgm_concatenate(g, parts, 2, 4), &s);
}

/* Pairs of features turn by the angle of their position; features from rotary_embedding_dim on stay. */
sgm_value sgm__onnx_rotary_embedding(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    bool joined = sgm__onnx_type(n, n->inputs[0]).shape.rank == 3;
    bool interleaved = sgm__onnx_integer(n, "interleaved", 0) != 0;
    sgm_value x = split_heads(n, n->inputs[0], sgm__onnx_integer(n, "num_heads", 0));
    sgm_value cosine = angles(n, n->inputs[1]), sine = angles(n, n->inputs[2]);
    if (g->status != SGM_OK)
        return (sgm_value){-1};
    int64_t features = dim(n, x, 3), turning = sgm__onnx_integer(n, "rotary_embedding_dim", 0);
    turning = turning == 0 ? features : turning;
    if (turning < 0 || turning > features || turning % 2 != 0 || dim(n, cosine, 3) != turning / 2)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "%lld of %lld features turn by %lld angles",
                              (long long)turning, (long long)features, (long long)dim(n, cosine, 3));
    sgm_value part = sgm_slice(g, x, 3, 0, turning, 1);
    sgm_value a = half(g, part, 0, interleaved), b = half(g, part, 1, interleaved);
    sgm_value real = sgm_subtract(g, sgm_multiply(g, cosine, a), sgm_multiply(g, sine, b));
    sgm_value imaginary = sgm_add(g, sgm_multiply(g, sine, a), sgm_multiply(g, cosine, b));
    sgm_value y = join_halves(g, real, imaginary, interleaved);
    if (turning < features)
        y = sgm_concatenate(g, (const sgm_value[]){y, sgm_slice(g, x, 3, turning, features, 1)}, 2, 3);
    return joined ? join_heads(n, y) : y;
}
