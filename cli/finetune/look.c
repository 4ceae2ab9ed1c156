/* What `sigma finetune` looks at before a configuration is made: the model, its adapters, its tokenizer and
 * the data. Messages of the configuration would name a file that nobody wrote. */
#include "finetune/finetune.h"
#include "texts/texts.h"

#include <sigma/models.h>

/* --- adapters --- */

/* Whether an adapter of a run is what --lora asks for: what was not given may be anything. */
static bool is_as_asked(const finetuning *f, const sgm_network *network, size_t index)
{
    sgm_content rank = {0}, quantize = {0};
    const bool is_known = sgm_network_get_adapter(network, index, "rank", &rank) == SGM_OK &&
                          sgm_network_get_adapter(network, index, "quantize", &quantize) == SGM_OK;
    const bool is_int8 =
        quantize.kind == SGM_KIND_TEXT && quantize.as.text != NULL && quantize.as.text[0] != '\0';
    const bool has_rank = f->lora[0] == '\0' || (rank.kind == SGM_KIND_INTEGER && rank.as.integer == f->rank);
    sgm_content_clear(&rank);
    sgm_content_clear(&quantize);
    return is_known && has_rank && (is_int8 || !f->int8);
}

/* Whether --lora, if it was given, asks for no others than these. */
static bool are_as_asked(const finetuning *f, const sgm_network *network)
{
    bool is_good = true;
    for (size_t i = 0; i < sgm_network_adapters(network) && f->lora != NULL; i++)
        is_good = is_good && is_as_asked(f, network, i);
    return is_good;
}

/* --lora asks for other adapters than `run` has; `remedy` is what to do. */
static sgm_status fail_adapters(const finetuning *f, const char *run, const char *remedy)
{
    char *own = adapters_of_run(run);
    sgm_status status = sgm_fail(SGM_ERROR_ARGUMENT, "--lora%s%s%s: the run '%s' has other adapters, %s: %s",
                                 f->lora[0] != '\0' ? "=" : "", f->lora, f->int8 ? " --int8" : "", run,
                                 own != NULL ? own : "", remedy);
    sgm__free(own);
    return status;
}

/* Adapters of the model, where this is a run, are trained on; --lora may ask for no others. */
static sgm_status look_at_adapters(finetuning *f)
{
    sgm_network *network = adapted_network_of_run(f->model);
    const bool is_good = are_as_asked(f, network);
    f->is_adapted = network != NULL;
    sgm_network_free(network);
    if (is_good)
        return SGM_OK;
    char *remedy = sgm__format("without these options they are trained on; others begin with what 'sigma "
                               "export --hf FOLDER %s' writes, where they are part of the weights",
                               f->model);
    sgm_status status = remedy != NULL ? fail_adapters(f, f->model, remedy) : sgm__last_failure();
    sgm__free(remedy);
    return status;
}

/* --lora was given, and the run in `folder` has no adapters, or cannot be read. */
static sgm_status fail_without_adapters(const char *folder)
{
    char *path = saved_path(folder), *network = path != NULL ? sgm_checkpoint_network(path) : NULL;
    sgm_status status =
        network != NULL
            ? sgm_fail(SGM_ERROR_ARGUMENT,
                       "--lora: the run in '%s' trains all parameters, and has no adapters in its "
                       "checkpoint: leave --lora out, or begin another run, --into DIR",
                       folder)
            : sgm__last_failure();
    sgm_string_free(network);
    sgm__free(path);
    return status;
}

/* A run that goes on has the adapters of its checkpoint. */
static sgm_status check_adapters(const finetuning *f, const char *folder)
{
    if (f->lora == NULL)
        return SGM_OK;
    static const char remedy[] =
        "without these options they are trained on; others need another run, --into DIR";
    sgm_network *network = adapted_network_of_run(folder);
    const bool is_adapted = network != NULL, is_good = are_as_asked(f, network);
    sgm_network_free(network);
    return !is_adapted ? fail_without_adapters(folder) : is_good ? SGM_OK : fail_adapters(f, folder, remedy);
}

/* --- the model --- */

/* The data that a network of other inputs than texts learns from, as a file says it. */
static const char *data_for(const char *network)
{
    sgm__signature signature = {0};
    bool is_known = experiment_describe(network, &signature) == SGM_OK && signature.inputs == 1;
    return is_known && signature.example.rank == 1   ? "{csv: FILE.csv, target: COLUMN, scale: none}"
           : is_known && signature.example.rank == 3 ? "{images: FOLDER}"
                                                     : "{inputs: FILE.npy, targets: FILE.npy}";
}

/* A network without tokens learns from tables, pictures or arrays, not from lines. `is_onnx`: `model` is a
 * file, which may have no cost. */
static sgm_status refuse_numbers(const char *model, const char *network, bool is_onnx)
{
    if (network_takes_tokens(network))
        return SGM_OK;
    if (is_onnx)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "'%s' takes numbers, not texts; it is trained by 'sigma train' of a file with from: RUN, "
            "of 'sigma import %s --task classify --into RUN', and data: {training: %s}",
            model, model, data_for(network));
    return sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "'%s' takes numbers, not texts; it is trained by 'sigma train' of a file with from: %s and "
        "data: {training: %s}",
        model, model, data_for(network));
}

/* A model of pictures gets a last layer for other classes as it is imported. */
static sgm_status refuse_pictures(const finetuning *f)
{
    const bool is_onnx = ends_with(f->model, ".onnx");
    sgm_pretrained *model = sgm_pretrained_open(f->model);
    sgm_status status = SGM_OK; /* one of others that cannot be opened has an error of its own, later */
    if (model == NULL && is_onnx)
        status = sgm__last_failure();
    else if (model != NULL && sgm_pretrained_describe(model)->height > 0)
        status =
            sgm_fail(SGM_ERROR_UNSUPPORTED,
                     "'%s' is a model of pictures; these are learnt by 'sigma train' of a file with from: "
                     "RUN, of 'sigma import %s --classes N --into RUN', and data: {training: {images: "
                     "FOLDER}}",
                     f->model, f->model);
    else if (model != NULL && is_onnx)
        status = refuse_numbers(f->model, sgm_pretrained_network(model), true);
    sgm_pretrained_free(model);
    return status;
}

/* A run that began with no model of others. */
static sgm_status look_at_run(const finetuning *f)
{
    char *path = saved_path(f->model), *network = path != NULL ? sgm_checkpoint_network(path) : NULL;
    sgm_status status = path != NULL ? SGM_OK : sgm__last_failure();
    if (network != NULL) /* what is no checkpoint has an error of its own, later */
        status = refuse_numbers(f->model, network, false);
    sgm_string_free(network);
    sgm__free(path);
    return status;
}

/* Before a configuration is made of it, whose messages name a file that nobody wrote. */
static sgm_status look_at_model(const finetuning *f)
{
    if (is_model_of_others(f->model) || is_run_of_model(f->model))
        return refuse_pictures(f);
    if (!sgm__is_folder(f->model) && !sgm__file_exists(f->model))
        return sgm_fail(
            SGM_ERROR_NOT_FOUND,
            "there is no '%s'; expected a folder of transformers, what 'sigma import' wrote, or "
            "a run; nothing is fetched from a network: download a model first, as by 'hf download "
            "OWNER/NAME --local-dir FOLDER'",
            f->model);
    return look_at_run(f);
}

/* --- texts --- */

/* What the lines are, by the first one. */
static sgm_status look_at_data(finetuning *f)
{
    if (f->data == NULL) /* of a run that goes on */
        return SGM_OK;
    f->lines = sgm_text_lines_of(f->data);
    if (f->packing && finetune_is_of_encoder(f) && f->lines != SGM_TEXT_LINES_FAILED)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "--packing: is for a model that says the next token; texts of an encoder have rows of "
            "their own");
    f->group = f->lines == SGM_TEXT_LINES_PAIRS ? sgm_text_pair_size(f->data) : 1;
    return f->lines != SGM_TEXT_LINES_FAILED && f->group > 0 ? SGM_OK : sgm__last_failure();
}

/* A run of a model keeps its tokenizer in the folder `model`. Lines that are not for the model are told of
 * later, and need none. */
static sgm_status look_for_tokenizer(const finetuning *f)
{
    char *found = model_tokenizer(f->model);
    const bool is_there = found != NULL, is_run = is_run_of_model(f->model);
    sgm__free(found);
    if (is_there || (!is_run && !is_model_of_others(f->model)) ||
        finetune_is_of_encoder(f) == purpose_is_to_continue(purpose_of(f->model)))
        return SGM_OK;
    char *place = is_run ? sgm__format("%s/model", f->model) : sgm__strdup(f->model);
    sgm_status status =
        place != NULL ? sgm_fail(SGM_ERROR_NOT_FOUND,
                                 NO_TOKENIZER "; put it there, or name another: --tokenizer FILE", place)
                      : sgm__last_failure();
    sgm__free(place);
    return status;
}

static sgm_status check_samples(const finetuning *f)
{
    const char *purpose = f->prompts.count > 0 ? purpose_of(f->model) : NULL;
    return purpose_is_to_continue(purpose)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_UNSUPPORTED,
                          "--sample: '%s' does not continue texts, it %s: leave --sample out", f->model,
                          purpose);
}

sgm_status finetune_look(finetuning *f, bool names_tokenizer)
{
    SGM_TRY(look_at_model(f));
    SGM_TRY(look_at_adapters(f));
    SGM_TRY(check_samples(f));
    SGM_TRY(look_at_data(f));
    return names_tokenizer ? SGM_OK : look_for_tokenizer(f);
}

sgm_status finetune_look_at_run(finetuning *f, const char *folder)
{
    SGM_TRY(look_at_model(f));
    SGM_TRY(check_adapters(f, folder));
    SGM_TRY(check_samples(f));
    return look_at_data(f);
}
