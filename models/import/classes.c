/* The classes of a model: their names, the pipeline by which files of pictures become its input, and a last
 * layer for other classes. */
#include "import/pretrained.h"

#include <sigma/table.h>
#include <stdlib.h>
#include <string.h>

/* --- names --- */

/* The name of a class by "id2label"; NULL: config.json has no such texts. */
static const char *label_of(const sgm_pretrained *p, int64_t class)
{
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)class);
    return json_string_value(json_object_get(json_object_get(p->config, "id2label"), number));
}

const char *sgm_pretrained_class(const sgm_pretrained *p, int64_t index)
{
    return p != NULL && index >= 0 && index < p->description.classes ? label_of(p, index) : NULL;
}

/* A list of names that differ: one that an earlier class has, as in ImageNet, gets its number, and one that
 * is missing is "LABEL_3". NULL: out of memory. */
static json_t *class_names(const sgm_pretrained *p)
{
    json_t *names = json_array(), *seen = json_object();
    for (int64_t i = 0; names != NULL && i < p->description.classes; i++) {
        const char *label = label_of(p, i);
        char *name = label == NULL                          ? sgm__new_text("LABEL_%lld", (long long)i)
                     : json_object_get(seen, label) != NULL ? sgm__new_text("%s (%lld)", label, (long long)i)
                                                            : sgm__new_text("%s", label);
        bool failed = name == NULL || json_object_set_new(seen, name, json_true()) != 0 ||
                      json_array_append_new(names, json_string(name)) != 0;
        free(name);
        if (failed) {
            json_decref(names);
            names = NULL;
        }
    }
    json_decref(seen);
    return names;
}

/* --- the pipeline of pictures --- */

/* Without classes if the network ends before them. NULL: out of memory. */
static json_t *describe_pipeline(const sgm_pretrained *p)
{
    const sgm__picture *picture = &p->description.picture;
    json_t *pipeline = json_pack(
        "{s:i, s:s, s:I, s:I, s:I, s:s, s:[fff], s:[fff]}", "version", 1, "kind", "pictures", "width",
        (json_int_t)picture->width, "height", (json_int_t)picture->height, "channels",
        (json_int_t)picture->channels, "filter", picture->filter, "mean", picture->mean[0], picture->mean[1],
        picture->mean[2], "deviation", picture->deviation[0], picture->deviation[1], picture->deviation[2]);
    if (pipeline != NULL && picture->shortest > 0)
        json_object_set_new(pipeline, "shortest", json_integer(picture->shortest));
    if (pipeline == NULL || strcmp(p->description.task, "classify") != 0 ||
        json_object_set_new(pipeline, "classes", class_names(p)) == 0)
        return pipeline;
    json_decref(pipeline);
    return NULL;
}

sgm_pipeline *sgm__classes_pipeline(const sgm_pretrained *p)
{
    json_t *described = describe_pipeline(p);
    char *text = described != NULL ? json_dumps(described, JSON_COMPACT) : NULL;
    sgm_pipeline *pipeline = text != NULL ? sgm_pipeline_parse(text) : NULL;
    if (text == NULL)
        sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of classes");
    free(text);
    json_decref(described);
    return pipeline;
}

sgm_status sgm__classes_give_pipeline(const sgm_pretrained *p, sgm_trainer *trainer)
{
    if (!p->description.picture.processed)
        return SGM_OK;
    sgm_pipeline *pipeline = sgm__classes_pipeline(p);
    sgm_status status = pipeline != NULL ? sgm_trainer_set_pipeline(trainer, pipeline) : sgm_last_status();
    sgm_pipeline_free(pipeline);
    return status;
}

/* --- other classes --- */

static const sgm__weight *find_head(const sgm_pretrained *p, const char *parameter)
{
    const sgm__architecture *a = p->architecture;
    for (size_t i = 0; i < a->weight_count; i++)
        if ((a->weights[i].head || a->weights[i].before_head) && strcmp(a->weights[i].own, parameter) == 0)
            return &a->weights[i];
    return NULL;
}

/* Where a file was saved without a head, names lack the prefix that they have beside one. */
static sgm_status put_prefix(sgm_pretrained *p)
{
    const char *prefix = p->architecture->prefix;
    for (size_t i = 0; i < p->stored_count; i++)
        if (strncmp(p->stored[i].name, prefix, strlen(prefix)) == 0)
            return SGM_OK;
    for (size_t i = 0; i < p->stored_count; i++) {
        char *name = sgm__new_text("%s%s", prefix, p->stored[i].name);
        if (name == NULL)
            return SGM_ERROR_MEMORY;
        free(p->stored[i].name);
        p->stored[i].name = name;
    }
    return sgm__stored_sort(p);
}

/* Whether the files have the tensor, perhaps without the prefix. */
static bool is_there(const sgm_pretrained *p, const char *name)
{
    const char *prefix = p->architecture->prefix;
    size_t length = strlen(prefix);
    return sgm__stored_find(p, name) != NULL ||
           (strncmp(name, prefix, length) == 0 && sgm__stored_find(p, name + length) != NULL);
}

/* The tensor of a new last layer takes the place of the old one, or is one more. */
static sgm_status begin_tensor(sgm_pretrained *p, const sgm__weight *weight, sgm_shape shape)
{
    if (weight->before_head && is_there(p, weight->theirs[0]))
        return SGM_OK;
    if (weight->transposed)
        shape = sgm_shape_of(shape.dims[1], shape.dims[0]);
    sgm__stored *stored = sgm__stored_find(p, weight->theirs[0]);
    if (stored != NULL) {
        stored->shape = shape;
        stored->anew = true;
        return SGM_OK;
    }
    SGM__TRY(put_prefix(p));
    SGM__TRY(sgm__stored_add(
        p, weight->theirs[0],
        (sgm__stored){.dtype = p->stored[0].dtype, .half = p->stored[0].half, .shape = shape, .anew = true}));
    return sgm__stored_sort(p);
}

/* config.json names the new classes and the class of transformers that has them. */
static sgm_status rename_classes(sgm_pretrained *p)
{
    json_t *names = json_object(), *numbers = json_object();
    bool failed = false;
    for (int64_t i = 0; i < p->description.wanted_classes; i++) {
        char number[24], label[32];
        const char *name = p->description.wanted_names != NULL ? p->description.wanted_names[i] : label;
        snprintf(number, sizeof number, "%lld", (long long)i);
        snprintf(label, sizeof label, "LABEL_%lld", (long long)i);
        failed |= json_object_set_new(names, number, json_string(name)) != 0 ||
                  json_object_set_new(numbers, name, json_integer(i)) != 0;
    }
    failed |=
        json_object_set_new(p->config, "id2label", names) != 0 ||
        json_object_set_new(p->config, "label2id", numbers) != 0 ||
        json_object_set_new(p->config, "architectures", json_pack("[s]", p->architecture->classifier)) != 0;
    json_object_del(p->config, "num_labels");
    json_object_del(p->config, "problem_type"); /* of the classes before, perhaps several at once */
    return failed ? sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of classes") : SGM_OK;
}

sgm_status sgm__classes_begin(sgm_pretrained *p, const sgm_recording *recording)
{
    if (p->description.wanted_classes == 0)
        return SGM_OK;
    for (size_t i = 0; i < recording->parameter_count; i++) {
        const sgm_parameter *parameter = &recording->parameters[i];
        const sgm__weight *weight = find_head(p, parameter->name);
        if (weight != NULL)
            SGM__TRY(begin_tensor(p, weight, parameter->type.shape));
    }
    return rename_classes(p);
}
