/* Turns the outputs of a network that was trained with CTC into labels, by best path decoding.
 *
 * sgm_ctc_decode is public (<sigma/text.h>, which says what the result has) and is also called for networks
 * that are served (src/infer/signature.c). The cost itself is an operation: src/ops/sequences/ctc.c. The
 * likeliest class of each time step is taken, of equal neighbours one is kept, and then the blank is left out
 * (Graves et al., 2006: Connectionist temporal classification, section 3.2). Outputs are (batch, time,
 * classes), as scores, logits or probabilities: only their order counts. */
#include "base/base.h"
#include <sigma/text.h>

/* The class with the largest output at a step of an example; of equal ones the lowest. */
static int64_t likeliest(const sgm_tensor *outputs, int64_t example, int64_t step, int64_t classes)
{
    int64_t best = 0;
    double maximum = sgm_tensor_get(outputs, (const int64_t[]){example, step, 0});
    for (int64_t k = 1; k < classes; k++) {
        double value = sgm_tensor_get(outputs, (const int64_t[]){example, step, k});
        if (value > maximum) {
            maximum = value;
            best = k;
        }
    }
    return best;
}

/* Writes the labels of one example, followed by -1 up to the number of steps. A blank between two equal
 * labels keeps them apart, since neighbours are compared before blanks are left out. */
static void decode_example(const sgm_tensor *outputs, int64_t example, int64_t length, int64_t blank,
                           int64_t *labels)
{
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    int64_t before = -1, count = 0;
    for (int64_t t = 0; t < length; t++) {
        int64_t now = likeliest(outputs, example, t, shape->dims[2]);
        if (now != blank && now != before)
            labels[count++] = now;
        before = now;
    }
    while (count < shape->dims[1])
        labels[count++] = -1;
}

static sgm_status check(const sgm_tensor *outputs, const int64_t *lengths, int64_t blank)
{
    char text[128];
    if (outputs == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_ctc_decode wants outputs (batch, time, classes), not NULL");
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    if (shape->rank != 3 || shape->dims[2] < 1)
        return sgm_fail(SGM_ERROR_SHAPE, "sgm_ctc_decode wants outputs (batch, time, classes), got %s",
                        sgm_shape_text(shape, text, sizeof text));
    if (blank < 0 || blank >= shape->dims[2])
        return sgm_fail(SGM_ERROR_ARGUMENT, "the blank %lld is none of the %lld classes, numbered from 0",
                        (long long)blank, (long long)shape->dims[2]);
    for (int64_t i = 0; i < shape->dims[0] && lengths != NULL; i++)
        if (lengths[i] < 0 || lengths[i] > shape->dims[1])
            return sgm_fail(SGM_ERROR_ARGUMENT, "example %lld has a length of %lld, but there are %lld steps",
                            (long long)i, (long long)lengths[i], (long long)shape->dims[1]);
    return SGM_OK;
}

sgm_tensor *sgm_ctc_decode(const sgm_tensor *outputs, const int64_t *lengths, int64_t blank)
{
    if (check(outputs, lengths, blank) != SGM_OK)
        return NULL;
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    sgm_shape result_shape = sgm_shape_of(shape->dims[0], shape->dims[1]);
    sgm_tensor *result = sgm_tensor_create(SGM_INT64, &result_shape);
    int64_t *labels = result != NULL ? sgm_tensor_data(result) : NULL;
    for (int64_t i = 0; i < shape->dims[0] && result != NULL; i++)
        decode_example(outputs, i, lengths != NULL ? lengths[i] : shape->dims[1], blank,
                       labels + i * shape->dims[1]);
    return result;
}
