/* A trained network for other programs.
 *
 *     sgm_export_onnx(trainer, "digits.onnx");                (for other runtimes; see sigma/onnx.h)
 *     sgm_export_c(trainer, "digits.c", .name = "digits");    (for places where no library can be)
 *
 * The file is C99, calls no library and takes no memory: weights are constant arrays, and what is computed
 * has its places in one static array, as they were planned. It says at its top how it is used:
 *
 *     int digits_predict(const float *inputs, float *outputs);
 */
#ifndef SIGMA_EXPORT_H
#define SIGMA_EXPORT_H

#include <sigma/training.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_export_c_options {
    size_t struct_size;
    const char *name; /* what all names begin with: letters, digits and _; default "model" */
    int64_t batch;    /* examples that one call of predict takes; default 1 */
    int64_t
        train; /* examples of one call of train_step; default 0: there is none, and weights are constant */
} sgm_export_c_options;
/* Writes the network with the parameters of now, through a temporary file. With `train` also a function that
 * does what a step of the trainer does: forward, gradients, the optimiser's update, with the same random
 * numbers. Networks in bfloat16 are written in float32. Errors name what cannot be written and its layer:
 * operations that come from outside the library without being composed, argsort, inverse and determinant;
 * networks that are recorded anew at each iteration; gradients that are accumulated over several
 * minibatches. */
SGM_API sgm_status sgm_export_c_file(sgm_trainer *trainer, const char *path,
                                     const sgm_export_c_options *options);
#define sgm_export_c(trainer, ...) SGM_EXPORT_C(trainer, __VA_ARGS__, )
#define SGM_EXPORT_C(trainer, path, ...)                                                                     \
    sgm_export_c_file(trainer, path, SGM_OPTIONS(sgm_export_c_options, __VA_ARGS__))

typedef struct sgm_export_onnx_options {
    size_t struct_size;
    const char *name; /* of the graph in the file; default: the trainer's */
    int64_t batch;    /* examples in a prediction; default 0: any number */
} sgm_export_onnx_options;
/* Writes what the network predicts as an ONNX model of opset 17: inputs and outputs under their names,
 * parameters as initialisers under theirs ("2-dense.weights"). Networks in bfloat16 are written in float32.
 * An error names the operation that ONNX does not have, and its layer, or what depends on the number of
 * examples in a way that needs `batch`. */
SGM_API sgm_status sgm_export_onnx_file(sgm_trainer *trainer, const char *path,
                                        const sgm_export_onnx_options *options);
#define sgm_export_onnx(...) SGM_EXPORT_ONNX(__VA_ARGS__, )
#define SGM_EXPORT_ONNX(trainer, path, ...)                                                                  \
    sgm_export_onnx_file(trainer, path, SGM_OPTIONS(sgm_export_onnx_options, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
