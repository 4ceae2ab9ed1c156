/* Functions that convolutions and poolings share: windows that move over the last one or two axes. Internal.
 *
 * Pairs are (height, width); data of one dimension, (batch, channels, length), has height 1. Integers of the
 * attributes, in this order: size, stride, before, after, dilation, extent (pairs), groups, flag.
 * Convolutions take the size from their weights (0 here), their weights' gradients have it; `extent` is what
 * the gradients by an input cannot know: that input's height and width. The flag: poolings leave padding out
 * of averages.
 */
#ifndef SGM_OPS_WINDOW_H
#define SGM_OPS_WINDOW_H

#include "ops/rules.h"

enum {
    SGM__WINDOW_SIZE = 0,
    SGM__WINDOW_STRIDE = 2,
    SGM__WINDOW_BEFORE = 4,
    SGM__WINDOW_AFTER = 6,
    SGM__WINDOW_DILATION = 8,
    SGM__WINDOW_EXTENT = 10,
    SGM__WINDOW_GROUPS = 12,
    SGM__WINDOW_FLAG = 13,
    SGM__WINDOW_INTEGERS = 14
};

/* A window and what it moves over (`in`) and gives (`out`), whichever of the two an operation computes.
 * Pairs are (height, width). */
typedef struct sgm__window {
    int64_t batch, channels, filters, groups; /* filters: channels of `out`; poolings: as many as channels */
    int64_t in[2], out[2], size[2], stride[2], before[2], after[2], dilation[2];
    bool exclude_padding;
} sgm__window;

/* Each fills in a window from the types of an operation's operands and its attributes, and checks that all
 * of them fit together. `infer` calls them while recording, and kernels once more, which cannot fail then. */
sgm_status sgm__window_convolution(const sgm_type *x, const sgm_type *weights,
                                   const sgm_attributes *attributes, sgm__window *window);
sgm_status sgm__window_input_gradient(const sgm_type *gradient, const sgm_type *weights,
                                      const sgm_attributes *attributes, sgm__window *window);
sgm_status sgm__window_weights_gradient(const sgm_type *x, const sgm_type *gradient,
                                        const sgm_attributes *attributes, sgm__window *window);
sgm_status sgm__window_pooling(const sgm_type *x, const sgm_attributes *attributes, sgm__window *window);
/* `gradient` has the shape of what the pooling gave. */
sgm_status sgm__window_pooling_gradient(const sgm_type *gradient, const sgm_attributes *attributes,
                                        sgm__window *window);

/* (batch, channels, extent) with as many axes as `like`. */
sgm_shape sgm__window_shape(const sgm_type *like, int64_t batch, int64_t channels, const int64_t *extent);
/* Attributes for an operation on `x` from a caller's options; false and the graph's failure if they are
 * wrong. */
bool sgm__window_attributes(sgm_graph *graph, const char *name, sgm_value x,
                            const sgm_window_options *options, sgm_attributes *attributes);
/* The height and width of `x` as extent. */
void sgm__window_set_extent(sgm_attributes *attributes, const sgm_type *x);
void sgm__window_set_size(sgm_attributes *attributes, const sgm_type *weights);

/* The places of a window at one position on one axis. Places `first` to `last` - 1 lie within the data;
 * place k is its element origin + k * dilation. */
typedef struct sgm__window_span {
    int64_t origin, first, last;
} sgm__window_span;
static inline sgm__window_span sgm__window_at(const sgm__window *w, int axis, int64_t position)
{
    sgm__window_span span = {.origin = position * w->stride[axis] - w->before[axis], .last = w->size[axis]};
    int64_t step = w->dilation[axis];
    if (span.origin < 0)
        span.first = (-span.origin + step - 1) / step;
    int64_t fitting = (w->in[axis] - span.origin + step - 1) / step;
    if (span.origin >= w->in[axis])
        fitting = 0;
    span.last = fitting < span.last ? fitting : span.last;
    span.first = span.first < span.last ? span.first : span.last;
    return span;
}

/* The weight of an element in its window's mean: 1 / the number of places, or of those within the data if
 * padding is excluded. */
static inline double sgm__window_share(const sgm__window *w, const sgm__window_span *down,
                                       const sgm__window_span *along)
{
    if (!w->exclude_padding)
        return 1.0 / ((double)w->size[0] * (double)w->size[1]);
    return 1.0 / ((double)(down->last - down->first) * (double)(along->last - along->first));
}

static inline sgm_type sgm__window_type(const sgm_array *array)
{
    return (sgm_type){array->dtype, array->shape};
}

#endif
