/* An .onnx file as a model of others: its graph becomes a network, and its initialisers parameters. */
#include "import/pretrained.h"

#include <string.h>

bool sgm__is_onnx(const char *path)
{
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".onnx") == 0;
}

static sgm_status check_options(const sgm_pretrained *p, const sgm_pretrained_options *options)
{
    if (options->context != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'%s' is an ONNX model, which has the lengths that it was exported with: "
                        "no context can be chosen",
                        p->path);
    if (options->classes != 0)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "'%s' is an ONNX model, whose classes stay; write the last layer into the network of its "
            "training for others",
            p->path);
    if (options->task != NULL && strcmp(options->task, "classify") != 0 &&
        strcmp(options->task, "predict") != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' is an ONNX model, for 'classify' or 'predict', not '%.60s'",
                        p->path, options->task);
    return SGM_OK;
}

static void fill_info(sgm_pretrained *p)
{
    p->info.architecture = "onnx";
    p->info.task = p->translated.classifies ? "classify" : "predict";
    p->info.precision = SGM_FLOAT32;
    for (size_t i = 0; i < p->translated.count; i++) {
        const sgm_tensor *value = p->translated.values[i].value;
        p->info.parameters += sgm_shape_elements(sgm_tensor_shape(value));
        if (sgm_tensor_dtype(value) == SGM_FLOAT64)
            p->info.precision = SGM_FLOAT64;
    }
    p->info.untrained = p->translated.untrained;
    p->info.parameters -= p->info.untrained;
}

sgm_status sgm__onnx_open(sgm_pretrained *p, const char *path, const sgm_pretrained_options *options)
{
    p->path = sgm__new_text("%s", path);
    if (p->path == NULL)
        return SGM_ERROR_MEMORY;
    p->onnx = true;
    SGM__TRY(check_options(p, options));
    sgm_onnx *model = sgm_onnx_load(path);
    if (model == NULL)
        return sgm_last_status();
    bool classify = options->task != NULL && strcmp(options->task, "classify") == 0;
    sgm_status status = sgm__translate(path, model, classify, &p->translated);
    if (status == SGM_OK)
        status = sgm__translated_check(path, model, &p->translated);
    sgm_onnx_free(model);
    SGM__TRY(status);
    p->network = p->translated.text;
    p->translated.text = NULL;
    fill_info(p);
    return SGM_OK;
}
