/* Models: a network, a trainer and data from tensors, in three calls (include/sigma/environment.h).
 *
 * A convenience over the other public functions, for programs that have all of their data in memory. The
 * first training creates the trainer, because the input's shape is known only then, and adds an input
 * layer and a cost where the layers have none. The environment owns the model, the trainer is one of the
 * environment's and is marked `held`, so that nobody removes it. */
#include "environment/model.h"
#include "network/network_internal.h"
#include "trainer/trainer.h"

#include <math.h>
#include <stdio.h>

static void release_model(void *model)
{
    sgm_model *self = model;
    sgm_layer_free(self->layers);
    sgm__free(self);
}

sgm_model *sgm__model_create(sgm_env *env, sgm_layer *layers)
{
    sgm_model *model = sgm__calloc(1, sizeof *model);
    if (model == NULL) {
        sgm_layer_free(layers);
        return NULL;
    }
    model->env = env;
    model->layers = layers;
    return sgm__env_own(env, model, release_model) == SGM_OK ? model : NULL;
}

/* Takes the layers, also on failure. */
sgm_model *sgm_sequential_with(sgm_env *env, sgm_layer *const *layers, size_t count)
{
    sgm_layer *chain = sgm_chain_with(layers, count);
    if (env == NULL || sgm__env_check(env) != SGM_OK) {
        sgm_layer_free(chain);
        if (env == NULL)
            sgm__fail_null("a model expects an environment, got NULL");
        return NULL;
    }
    sgm_model *model = chain != NULL ? sgm__model_create(env, chain) : NULL;
    if (model == NULL)
        sgm__env_keep(env, sgm_last_status());
    return model;
}

/* Whether the tree of layers has one with this type name (NULL: any) or with one of these flags. */
static bool has_type(const sgm_layer *layer, const char *name, uint32_t flags)
{
    if (layer->type != NULL &&
        ((name != NULL && strcmp(layer->type->name, name) == 0) || (layer->type->flags & flags) != 0))
        return true;
    for (size_t i = 0; i < layer->child_count; i++)
        if (has_type(layer->children[i], name, flags))
            return true;
    return false;
}

/* Puts an input of the features' shape without the batch axis in front, and a mean squared error behind,
 * where there is no layer for that. Takes `layers`. A failed part is NULL, which sgm_chain_with reports. */
static sgm_network *complete(sgm_layer *layers, const sgm_shape *features)
{
    sgm_layer *parts[3];
    size_t count = 0;
    sgm_layer_options options = {.struct_size = sizeof options};
    for (int32_t i = 1; i < features->rank; i++)
        options.shape[i - 1] = features->dims[i];
    if (!has_type(layers, "input", 0))
        parts[count++] = sgm_layer_create("input", &options);
    bool has_cost = has_type(layers, NULL, SGM_LAYER_COST);
    parts[count++] = layers;
    if (!has_cost)
        parts[count++] = sgm_mean_squared();
    sgm_layer *chain = sgm_chain_with(parts, count);
    return chain != NULL ? sgm_network_create(chain) : NULL;
}

/* The tensor as (examples, ...), with a reference of the caller's own. A tensor of rank 1 holds one number
 * for each example and becomes (examples, 1). `what` names the tensor in messages. */
static sgm_tensor *as_examples(sgm_tensor *tensor, const char *what)
{
    if (tensor == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected a tensor (examples, ...), got NULL", what);
        return NULL;
    }
    const sgm_shape *shape = sgm_tensor_shape(tensor);
    if (shape->rank < 1 || shape->dims[0] < 1) {
        char text[128];
        sgm_fail(SGM_ERROR_SHAPE, "%s: expected a tensor (examples, ...), got the shape %s", what,
                 sgm_shape_text(shape, text, sizeof text));
        return NULL;
    }
    if (shape->rank > 1)
        return sgm_tensor_retain(tensor);
    sgm_shape column = sgm_shape_of(shape->dims[0], 1);
    return sgm_tensor_reshape(tensor, &column);
}

/* A dataset with the fields "inputs" and "targets"; the dataset copies the tensors as float32. */
static sgm_dataset *dataset_of(sgm_tensor *features, sgm_tensor *labels)
{
    static const char *const fields[] = {"inputs", "targets"};
    sgm_tensor *tensors[2] = {as_examples(features, "features"), NULL};
    tensors[1] = tensors[0] != NULL ? as_examples(labels, "labels") : NULL;
    sgm_dataset *dataset = tensors[1] != NULL ? sgm_dataset_create_from("model", fields, tensors, 2) : NULL;
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return dataset;
}

/* The first trainer is called "model", later ones "model-2" and so on. */
sgm_status sgm__model_create_trainer(sgm_model *model)
{
    char name[40] = "model";
    int64_t number = sgm__env_number(model->env);
    if (number > 1)
        snprintf(name, sizeof name, "model-%lld", (long long)number);
    model->trainer = sgm_trainer_create(model->env, name);
    if (model->trainer == NULL)
        return sgm_last_status();
    sgm__membership_of(model->trainer)->held = true;
    return SGM_OK;
}

/* Before the first training of a trainer without an optimiser. Takes it. */
static sgm_status give_optimiser(sgm_trainer *trainer, sgm_optimiser *optimiser)
{
    return sgm_trainer_set_optimiser(trainer, optimiser != NULL ? optimiser : sgm_adam(.learning_rate = 0));
}

sgm_model *sgm_model_of(sgm_env *env, sgm_trainer *trainer)
{
    if (env == NULL || trainer == NULL) {
        sgm__fail_null(env == NULL ? "a model expects an environment, got NULL"
                                   : "a model expects a trainer, got NULL");
        return NULL;
    }
    if (sgm__env_check(env) != SGM_OK)
        return NULL;
    if (sgm_env_trainer(env, sgm_trainer_name(trainer)) != trainer || sgm__membership_of(trainer)->held) {
        sgm_fail(SGM_ERROR_STATE, "the trainer '%s' is of another environment, or of a model already",
                 sgm_trainer_name(trainer));
        return NULL;
    }
    sgm_model *model = sgm__model_create(env, NULL);
    if (model == NULL)
        return NULL;
    model->trainer = trainer;
    sgm__membership_of(trainer)->held = true;
    return model;
}

/* Takes the optimiser. Results of the setters are not checked one by one: the trainer keeps its first
 * failure, and the run reports it. */
static sgm_status make_trainer(sgm_model *model, sgm_tensor *features, sgm_optimiser *optimiser)
{
    sgm_tensor *examples = as_examples(features, "features");
    sgm_status status = examples != NULL ? sgm__model_create_trainer(model) : sgm_last_status();
    if (status != SGM_OK) {
        sgm_tensor_free(examples);
        sgm_optimiser_free(optimiser);
        return status;
    }
    sgm_layer *layers = model->layers;
    model->layers = NULL;
    sgm_trainer_adopt_network(model->trainer, complete(layers, sgm_tensor_shape(examples)));
    sgm_tensor_free(examples);
    return give_optimiser(model->trainer, optimiser);
}

static bool has_optimiser(const sgm_model *model)
{
    return model->trainer != NULL && sgm__learner_of(model->trainer)->optimiser != NULL;
}

/* Takes the optimiser. Epochs count on from those of earlier trainings, since a run ends at an absolute
 * number of epochs. Defaults: 10 epochs, minibatches of 32. */
static sgm_status train(sgm_model *model, sgm_tensor *features, sgm_tensor *labels,
                        const sgm_model_options *options)
{
    if (options->epochs < 0 || options->batch < 0) {
        sgm_optimiser_free(options->optimiser);
        return sgm_fail(SGM_ERROR_ARGUMENT, "epochs and batch must be at least 1");
    }
    if (model->trainer == NULL)
        SGM_TRY(make_trainer(model, features, options->optimiser));
    else if (!has_optimiser(model))
        SGM_TRY(give_optimiser(model->trainer, options->optimiser));
    sgm_dataset *dataset = dataset_of(features, labels);
    if (dataset == NULL)
        return sgm_last_status();
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = options->batch > 0 ? options->batch : 32,
                                             .seed = sgm__env_seed(model->env));
    sgm_dataset_free(dataset);
    SGM_TRY(sgm_trainer_set_data(model->trainer, iterator));
    int64_t epochs = options->epochs > 0 ? options->epochs : 10;
    sgm__settings_of(model->trainer)->inference = 0; /* what predicts during the run reads what is trained */
    SGM_TRY(sgm_trainer_run(model->trainer, .epochs = model->epochs + epochs));
    model->epochs += epochs;
    return SGM_OK;
}

static sgm_status check_model(const sgm_model *model)
{
    if (model == NULL)
        return sgm__fail_null("expected a model, got NULL");
    return sgm__env_check(model->env);
}

/* Takes the optimiser in every case. One that comes too late is no failure of the environment, because
 * nothing was changed. */
sgm_status sgm_model_train_with(sgm_model *model, sgm_tensor *features, sgm_tensor *labels,
                                const sgm_model_options *given)
{
    sgm_model_options options;
    SGM_TRY(sgm__options_read(&options, sizeof options, given, "sgm_model_train"));
    sgm_status status = check_model(model);
    if (status != SGM_OK) {
        sgm_optimiser_free(options.optimiser);
        return status;
    }
    if (has_optimiser(model) && options.optimiser != NULL) {
        sgm_optimiser_free(options.optimiser);
        return sgm_fail(SGM_ERROR_STATE,
                        "only the first training of a model may give an optimiser; leave it out");
    }
    return sgm__env_keep(model->env, train(model, features, labels, &options));
}

sgm_status sgm__model_check_trained(const sgm_model *model)
{
    SGM_TRY(check_model(model));
    return model->trainer != NULL
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE, "the model is not trained yet; call sgm_model_train first");
}

/* Parameters are constants between two trainings (train). */
sgm_status sgm__model_infer(sgm_model *model)
{
    SGM_TRY(sgm__model_check_trained(model));
    return sgm__settings_of(model->trainer)->inference != 0
               ? SGM_OK
               : sgm_trainer_set_inference(model->trainer, .quantize = model->int8 ? "int8" : NULL);
}

sgm_status sgm_model_quantize(sgm_model *model, const char *type)
{
    SGM_TRY(sgm__model_check_trained(model));
    SGM_TRY(sgm_trainer_set_inference(model->trainer, .quantize = type));
    model->int8 = type != NULL;
    return SGM_OK;
}

/* Whole numbers of another shape are a text of another length mostly, which has functions of its own. */
static sgm_status fail_prediction(const sgm_tensor *samples)
{
    return sgm_last_status() == SGM_ERROR_SHAPE && sgm_tensor_dtype(samples) == SGM_INT64
               ? sgm_fail(SGM_ERROR_SHAPE,
                          "%s; tokens of a text of any length are continued by sgm_generator_generate, or "
                          "predicted as a block by sgm_trainer_predict_block",
                          sgm_last_error())
               : sgm_last_status();
}

/* NULL, with an error, before the first training; the caller frees the result. */
sgm_tensor *sgm_model_predict(sgm_model *model, sgm_tensor *samples)
{
    if (sgm__model_infer(model) != SGM_OK)
        return NULL;
    sgm_tensor *examples = as_examples(samples, "samples");
    sgm_tensor *output = examples != NULL ? sgm_trainer_predict(model->trainer, examples, NULL) : NULL;
    if (examples != NULL && output == NULL)
        fail_prediction(samples);
    sgm_tensor_free(examples);
    return output;
}

/* The metrics are NaN unless the function succeeds. The order of examples does not matter, so they are not
 * shuffled. */
sgm_status sgm_model_evaluate(sgm_model *model, sgm_tensor *features, sgm_tensor *labels,
                              sgm_metrics *metrics)
{
    if (metrics == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a place for the metrics was expected, NULL came");
    *metrics = (sgm_metrics){.loss = NAN, .accuracy = NAN};
    SGM_TRY(sgm__model_infer(model));
    sgm_dataset *dataset = dataset_of(features, labels);
    if (dataset == NULL)
        return sgm_last_status();
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 256, .no_shuffle = true);
    sgm_dataset_free(dataset);
    if (iterator == NULL)
        return sgm_last_status();
    sgm_status status = sgm_trainer_evaluate(model->trainer, iterator, metrics);
    sgm_iterator_free(iterator);
    return status;
}

sgm_trainer *sgm_model_trainer(sgm_model *model)
{
    return model != NULL ? model->trainer : NULL;
}
