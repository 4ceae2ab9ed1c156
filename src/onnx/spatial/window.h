/* Windows that move over one, two or three axes of data (batch, channels, [[depth,] height,] width).
 *
 * build_window.c reads them from the attributes of nodes; window.c applies them. Internal. */
#ifndef SGM_ONNX_SPATIAL_WINDOW_H
#define SGM_ONNX_SPATIAL_WINDOW_H

#include "onnx/nodes/onnx.h"

#define SGM__ONNX_WINDOW_AXES 3

/* The arrays have an entry for each of the `axes` axes behind batch and channels. `in` is the size of the
 * data, `before` and `after` the padding around it. */
typedef struct sgm__onnx_window {
    int32_t axes;
    int64_t in[SGM__ONNX_WINDOW_AXES], size[SGM__ONNX_WINDOW_AXES];
    int64_t stride[SGM__ONNX_WINDOW_AXES], dilation[SGM__ONNX_WINDOW_AXES];
    int64_t before[SGM__ONNX_WINDOW_AXES], after[SGM__ONNX_WINDOW_AXES];
} sgm__onnx_window;

/* weights: (filters, channels / groups, places of the window ...); biases may be no value. */
sgm_value sgm__onnx_window_convolution(sgm_graph *g, sgm_value x, sgm_value weights, sgm_value biases,
                                       const sgm__onnx_window *w, int64_t groups);
/* weights: (channels, filters / groups, places of the window ...). The padding is cut off the result. */
sgm_value sgm__onnx_window_transposed(sgm_graph *g, sgm_value x, sgm_value weights, const sgm__onnx_window *w,
                                      int64_t groups);
/* Of floats; padding is never the largest element. */
sgm_value sgm__onnx_window_maximum(sgm_graph *g, sgm_value x, const sgm__onnx_window *w);
/* Of the data alone, not of the padding. */
sgm_value sgm__onnx_window_average(sgm_graph *g, sgm_value x, const sgm__onnx_window *w);
sgm_value sgm__onnx_window_sum(sgm_graph *g, sgm_value x, const sgm__onnx_window *w);

#endif
