/* A model of ONNX that is run as it is, for `sigma predict` and `sigma serve`. */
#ifndef SGM_CLI_CONFIG_START_ONNX_MODEL_H
#define SGM_CLI_CONFIG_START_ONNX_MODEL_H

#include "infer/signature.h"
#include <sigma/onnx.h>

typedef struct onnx_model {
    sgm_onnx *onnx;           /* owned; NULL: there is none */
    sgm__signature signature; /* of one input; with several only their number is known */
    /* The class of each example of the newest run (int64), owned; NULL: the model tells none. */
    sgm_tensor *classes;
} onnx_model;

/* Loads a model and describes it. On failure it may be closed as well. */
sgm_status onnx_model_open(onnx_model *m, const char *path, bool int8);
/* The model's predictions for the examples of its one input; NULL and an error. */
sgm_tensor *onnx_model_predict(onnx_model *m, const sgm_tensor *examples);
/* The same for a file with an array for each input, all at once. */
sgm_tensor *onnx_model_predict_archive(onnx_model *m, const char *path);
/* What the model tells of an example of the newest run: false: no class; else its number, and its name if the
 * model names its classes, else NULL. */
bool onnx_model_class(const onnx_model *m, int64_t example, int64_t *number, const char **name);
/* The names of its inputs, for messages; sgm__free. */
char *onnx_model_inputs(const onnx_model *m);
void onnx_model_close(onnx_model *m);

#endif
