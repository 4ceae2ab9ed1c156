/* What a training on files of pictures has made of how a picture becomes the input, and of the names of
 * classes: a folder that is written back says so, since the model's own files say what was before. */
#include "import/pretrained.h"

#include <sigma/files.h>
#include <sigma/table.h>
#include <stdlib.h>
#include <string.h>

static sgm_status write_json(const char *folder, const char *name, const json_t *json)
{
    char *text = json_dumps(json, JSON_INDENT(2));
    sgm_status status = text != NULL ? sgm__write_file(folder, name, text, strlen(text))
                                     : sgm_fail(SGM_ERROR_MEMORY, "no memory for %s", name);
    free(text);
    return status;
}

/* The size under the keys of the two processors of transformers that scale both sides, or the shorter one.
 * Takes over `sides`. */
static bool put_size(json_t *processor, const json_t *pipeline, json_t *sides)
{
    const json_t *shortest = json_object_get(pipeline, "shortest");
    json_t *more = shortest != NULL
                       ? json_pack("{s:s, s:{s:I}, s:b, s:o}", "image_processor_type",
                                   "MobileNetV2ImageProcessor", "size", "shortest_edge",
                                   json_integer_value(shortest), "do_center_crop", 1, "crop_size", sides)
                       : json_pack("{s:s, s:o}", "image_processor_type", "ViTImageProcessor", "size", sides);
    bool done = more != NULL && json_object_update(processor, more) == 0;
    json_decref(more);
    return done;
}

/* preprocessor_config.json of a pipeline. Of the filters that transformers has for all kinds of pictures the
 * bilinear one, which takes areas into account where it makes pictures smaller, is the next to an average of
 * areas. NULL: out of memory. */
static json_t *describe_processor(const json_t *pipeline)
{
    const char *filter = json_string_value(json_object_get(pipeline, "filter"));
    json_t *processor =
        json_pack("{s:b, s:i, s:b, s:f, s:b, s:O, s:O}", "do_resize", 1, "resample",
                  filter != NULL && strcmp(filter, "bicubic") == 0 ? 3 : 2, "do_rescale", 1, "rescale_factor",
                  1.0 / 255, "do_normalize", 1, "image_mean", json_object_get(pipeline, "mean"), "image_std",
                  json_object_get(pipeline, "deviation"));
    json_t *sides = json_pack("{s:O, s:O}", "height", json_object_get(pipeline, "height"), "width",
                              json_object_get(pipeline, "width"));
    if (processor != NULL && sides != NULL && put_size(processor, pipeline, sides))
        return processor;
    json_decref(processor);
    return NULL;
}

/* config.json with the names of a pipeline's classes. NULL: out of memory. */
static json_t *rename_classes(const json_t *config, const json_t *classes)
{
    json_t *copy = json_deep_copy(config), *names = json_object(), *numbers = json_object();
    bool done = copy != NULL && names != NULL && numbers != NULL;
    for (size_t i = 0; done && i < json_array_size(classes); i++) {
        const char *name = json_string_value(json_array_get(classes, i));
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        done = name != NULL && json_object_set_new(names, number, json_string(name)) == 0 &&
               json_object_set_new(numbers, name, json_integer((json_int_t)i)) == 0;
    }
    done = done && json_object_set(copy, "id2label", names) == 0 &&
           json_object_set(copy, "label2id", numbers) == 0;
    json_decref(names);
    json_decref(numbers);
    if (done)
        return copy;
    json_decref(copy);
    return NULL;
}

static sgm_status write_pipeline(const sgm_pretrained *p, const json_t *pipeline, const char *folder)
{
    json_t *processor = describe_processor(pipeline);
    json_t *config = rename_classes(p->config, json_object_get(pipeline, "classes"));
    sgm_status status = processor != NULL && config != NULL
                            ? write_json(folder, "preprocessor_config.json", processor)
                            : sgm_fail(SGM_ERROR_MEMORY, "no memory for the settings of pictures");
    if (status == SGM_OK)
        status = write_json(folder, "config.json", config);
    json_decref(processor);
    json_decref(config);
    return status;
}

/* Whether files of the model make the same inputs as those of the trainer, for classes of the same names. */
static bool is_of_model(const sgm_pretrained *p, const char *text)
{
    if (!p->description.picture.processed)
        return false;
    sgm_pipeline *pipeline = sgm__classes_pipeline(p);
    char *own = pipeline != NULL ? sgm_pipeline_json(pipeline) : NULL;
    bool same = own != NULL && strcmp(own, text) == 0;
    sgm_string_free(own);
    sgm_pipeline_free(pipeline);
    return same;
}

sgm_status sgm__export_pictures(const sgm_pretrained *p, sgm_trainer *trainer, const char *folder)
{
    const sgm_pipeline *pipeline = sgm_trainer_get_pipeline(trainer);
    if (pipeline == NULL || strcmp(sgm_pipeline_kind(pipeline), "pictures") != 0 ||
        strcmp(p->description.task, "classify") != 0)
        return SGM_OK;
    char *text = sgm_pipeline_json(pipeline);
    if (text == NULL)
        return sgm_last_status();
    sgm_status status = SGM_OK;
    if (!is_of_model(p, text)) {
        json_t *json = json_loads(text, 0, NULL);
        status = json != NULL ? write_pipeline(p, json, folder)
                              : sgm_fail(SGM_ERROR_MEMORY, "no memory for the settings of pictures");
        json_decref(json);
    }
    sgm_string_free(text);
    return status;
}
