/* Models: the short way. The same parts, in three lines.
 *
 *     sgm_model *model = sgm_sequential(env, sgm_dense(.size = 10, .activation = "relu"),
 *                                       sgm_dense(.size = 3), sgm_softmax_cross_entropy());
 *     sgm_model_train(model, features, labels, .epochs = 50);
 *     sgm_tensor *prediction = sgm_model_predict(model, samples);
 */
#ifndef SIGMA_MODEL_H
#define SIGMA_MODEL_H

#include <sigma/environment.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_model sgm_model;

/* Takes the layers; an input layer is put in front if there is none, mean_squared at the end if there is no
 * cost. The model belongs to the environment. */
SGM_API sgm_model *sgm_sequential_of(sgm_env *env, sgm_layer *const *layers, size_t count);
#define sgm_sequential(env, ...) sgm_sequential_of(env, SGM_LAYERS(__VA_ARGS__))

typedef struct sgm_model_options {
    size_t struct_size;
    int64_t epochs;           /* default 10; training again goes on */
    int64_t batch;            /* examples of a minibatch, default 32 */
    sgm_optimiser *optimiser; /* taken; default adam; a later training that gives one fails */
} sgm_model_options;
/* features: (examples, ...), labels: (examples, ...). */
#define sgm_model_train(model, features, ...) SGM_MODEL_TRAIN(model, features, __VA_ARGS__, )
#define SGM_MODEL_TRAIN(model, features, labels, ...)                                                        \
    sgm_model_train_options(model, features, labels, SGM_OPTIONS(sgm_model_options, __VA_ARGS__))
SGM_API sgm_status sgm_model_train_options(sgm_model *model, sgm_tensor *features, sgm_tensor *labels,
                                           const sgm_model_options *options);
/* (examples, ...): a new tensor. */
SGM_API sgm_tensor *sgm_model_predict(sgm_model *model, sgm_tensor *samples);
SGM_API sgm_status sgm_model_evaluate(sgm_model *model, sgm_tensor *features, sgm_tensor *labels,
                                      sgm_metrics *metrics);
SGM_API sgm_trainer *
sgm_model_trainer(sgm_model *model); /* for saving, loading, looking; NULL before the first training */

#ifdef __cplusplus
}
#endif
#endif
