/* Models from checkpoints, and predictions for rows of the table that a model was trained on. See model.h. */
#include "data/table/pipeline.h"
#include "environment/model.h"
#include "trainer/trainer.h"
#include <sigma/environment.h>

#include <math.h>
#include <stdio.h>

/* The file in the folder of a run. */
#define CHECKPOINT "checkpoint.safetensors"
/* Of averages that a loaded model goes on with; predictions alone do not depend on it. */
#define AVERAGE 0.999
#define NUMBER_TEXT 32 /* bytes that hold any number as text */

/* --- loading --- */

/* A trainer must have the precision and the averages of a file before it loads it. */
static sgm_status prepare(sgm_trainer *trainer, const char *path)
{
    sgm_bundle *bundle = sgm_bundle_load(path);
    bool has_averages = false;
    if (bundle == NULL)
        return sgm_last_status();
    for (size_t i = 0; i < sgm_bundle_count(bundle); i++) {
        const char *name = sgm_bundle_name_at(bundle, i);
        const sgm_tensor *tensor = sgm_bundle_get(bundle, name);
        has_averages |= strncmp(name, SGM__AVERAGE_PREFIX, strlen(SGM__AVERAGE_PREFIX)) == 0;
        if (tensor != NULL && sgm_tensor_dtype(tensor) == SGM_FLOAT64)
            sgm__settings_of(trainer)->precision = SGM_FLOAT64;
    }
    sgm_bundle_free(bundle);
    return sgm_trainer_set_optimiser(trainer, sgm_adam(.average = has_averages ? AVERAGE : 0));
}

static sgm_status load(sgm_model *model, const char *path)
{
    char *file = sgm__is_folder(path) ? sgm__format("%s/" CHECKPOINT, path) : sgm__strdup(path);
    sgm_status status = file != NULL ? sgm__model_create_trainer(model) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = prepare(model->trainer, file);
    if (status == SGM_OK)
        status =
            sgm_trainer_load_parts(model->trainer, file, .parts = SGM_PART_NETWORK | SGM_PART_PARAMETERS);
    sgm__free(file);
    return status;
}

sgm_model *sgm_model_load(sgm_env *env, const char *path)
{
    if (env == NULL || path == NULL) {
        sgm__fail_null(env == NULL ? "a model expects an environment, got NULL"
                                   : "sgm_model_load expects the path of a checkpoint or of a run's folder, "
                                     "got NULL");
        return NULL;
    }
    sgm_model *model = sgm__env_check(env) == SGM_OK ? sgm__model_create(env, NULL) : NULL;
    if (model != NULL && sgm__env_keep(env, load(model, path)) == SGM_OK)
        return model;
    return NULL;
}

/* --- cells --- */

sgm_cell sgm_cell_of_text(const char *text)
{
    return (sgm_cell){.text = text};
}

sgm_cell sgm_cell_of_number(double number)
{
    return (sgm_cell){.is_number = true, .number = number};
}

/* The cell as a table has it: `room` holds the text of a number. NULL: there is no value. */
static const char *text_of(const sgm_cell *cell, char decimal, char *room)
{
    if (!cell->is_number)
        return cell->text;
    if (isnan(cell->number))
        return NULL;
    sgm__number_text(cell->number, room, NUMBER_TEXT);
    char *point = strchr(room, '.');
    if (point != NULL)
        *point = decimal;
    return room;
}

/* The examples of the rows, by the pipeline. */
static sgm_block *apply(const sgm_pipeline *pipeline, const char *const *columns, size_t count,
                        const sgm_cell *cells, int64_t rows)
{
    size_t all = count * (size_t)(rows > 0 ? rows : 0);
    const char **texts = sgm__calloc(all + 1, sizeof *texts);
    char(*rooms)[NUMBER_TEXT] = sgm__calloc(all + 1, sizeof *rooms);
    sgm_block *block = NULL;
    if (texts != NULL && rooms != NULL) {
        for (size_t i = 0; i < all; i++)
            texts[i] = text_of(&cells[i], pipeline->format.decimal, rooms[i]);
        block = sgm_pipeline_apply(pipeline, columns, count, texts, rows);
    }
    sgm__free(rooms);
    sgm__free(texts);
    return block;
}

/* --- predictions --- */

/* Predictions in the units of the table, as float64; frees `outputs`, of which NULL passes a failure on. */
static sgm_tensor *in_units(const sgm_pipeline *pipeline, sgm_tensor *outputs)
{
    if (outputs == NULL)
        return NULL;
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    int64_t count = sgm_shape_elements(shape), each = count / shape->dims[0];
    sgm_tensor *restored = sgm_tensor_create(SGM_FLOAT64, shape);
    double *values = restored != NULL ? sgm_tensor_data(restored) : NULL;
    if (values != NULL && sgm_tensor_read(outputs, values, (size_t)count) != SGM_OK) {
        sgm_tensor_free(restored);
        restored = NULL;
    }
    for (int64_t i = 0; restored != NULL && values != NULL && i < count; i++)
        values[i] = sgm_pipeline_restore(pipeline, (size_t)(i % each), values[i]);
    sgm_tensor_free(outputs);
    return restored;
}

/* The pipeline of a model that can predict; NULL and an error. */
static const sgm_pipeline *pipeline_of(const sgm_model *model)
{
    if (sgm__model_check_trained(model) != SGM_OK)
        return NULL;
    const sgm_pipeline *pipeline = sgm_trainer_get_pipeline(model->trainer);
    if (pipeline == NULL)
        sgm_fail(SGM_ERROR_STATE,
                 "the model was not trained on a table by the names of its columns; give it tensors "
                 "(sgm_model_predict)");
    return pipeline;
}

sgm_tensor *sgm_model_predict_rows(sgm_model *model, const char *const *columns, size_t count,
                                   const sgm_cell *cells, int64_t rows)
{
    const sgm_pipeline *pipeline = pipeline_of(model);
    if (pipeline == NULL || sgm__model_infer(model) != SGM_OK)
        return NULL;
    if (columns == NULL || cells == NULL || count == 0 ||
        (uint64_t)rows > SIZE_MAX / NUMBER_TEXT / (count + 1)) {
        sgm_fail(SGM_ERROR_ARGUMENT, "names of columns and a cell for each in every row were expected");
        return NULL;
    }
    sgm_block *block = apply(pipeline, columns, count, cells, rows);
    sgm_tensor *outputs = block != NULL ? sgm_trainer_predict_block(model->trainer, block, NULL) : NULL;
    sgm_block_free(block);
    return in_units(pipeline, outputs);
}

const char *sgm_model_class(const sgm_model *model, const sgm_tensor *predictions, int64_t row)
{
    const sgm_pipeline *pipeline = pipeline_of(model);
    const char *const *classes = pipeline != NULL ? sgm_pipeline_classes(pipeline) : NULL;
    const sgm_shape *shape = predictions != NULL ? sgm_tensor_shape(predictions) : NULL;
    int64_t best = 0;
    if (classes == NULL || shape == NULL || shape->rank != 2 || row < 0 || row >= shape->dims[0] ||
        shape->dims[1] != sgm_pipeline_width(pipeline, "targets"))
        return NULL;
    for (int64_t i = 1; i < shape->dims[1]; i++)
        if (sgm_tensor_get(predictions, (const int64_t[]){row, i}) >
            sgm_tensor_get(predictions, (const int64_t[]){row, best}))
            best = i;
    return classes[best];
}
