/* `sigma finetune --resume`: what a run goes on with.
 *
 * The run's config.yaml says everything; options that are given anew change it, and what was not given stays.
 * A validation that was forgotten would otherwise be trained on, and measured as if it had not been. */
#include "finetune/finetune.h"
#include "text/json_text.h"

#include <math.h>

/* Shares are given as decimals, and kept as what is left of 1. */
#define NEAR 1e-9

/* --- the list --- */

/* Takes the text; NULL is a failure that was reported. */
static sgm_status add(text_list *overrides, char *text)
{
    if (text == NULL || sgm__reserve(&overrides->items, &overrides->capacity, overrides->count + 1,
                                     sizeof *overrides->items) != SGM_OK) {
        sgm__free(text);
        return sgm__last_failure();
    }
    overrides->items[overrides->count++] = text;
    return SGM_OK;
}

/* --- which lines are trained on --- */

/* The file of a section with lines; NULL: it has none. */
static const char *lines_of(const data_config *data)
{
    return data->chats != NULL            ? data->chats
           : data->labelled_texts != NULL ? data->labelled_texts
                                          : data->text_pairs;
}

static bool holds_out_share(const config *old)
{
    return !isnan(old->data.training.share) || !isnan(old->data.training.begin);
}

/* The validation is of lines of the training's file. */
static bool is_split(const config *old)
{
    const char *training = lines_of(&old->data.training), *validation = lines_of(&old->data.validation);
    return !isnan(old->data.validation.begin) && training != NULL && validation != NULL &&
           strcmp(training, validation) == 0;
}

/* What --validation asks for is what the run has. */
static bool is_own_validation(const char *asked, const config *old)
{
    const data_config *own = &old->data.validation;
    double share;
    if (sgm__parse_double(asked, &share))
        return lines_of(own) != NULL && fabs(own->begin - (1 - share)) < NEAR;
    return isnan(own->begin) && is_same_file(asked, lines_of(own));
}

/* What the lines of a section are; SGM_TEXT_LINES_FAILED: it has none. */
static sgm_text_lines kind_of(const data_config *data)
{
    return data->chats != NULL            ? SGM_TEXT_LINES_OTHERS
           : data->labelled_texts != NULL ? SGM_TEXT_LINES_LABELLED
           : data->text_pairs != NULL     ? SGM_TEXT_LINES_PAIRS
                                          : SGM_TEXT_LINES_FAILED;
}

static const char *name_of(sgm_text_lines kind)
{
    return kind == SGM_TEXT_LINES_OTHERS     ? "chats, completions or texts"
           : kind == SGM_TEXT_LINES_LABELLED ? "texts with labels"
           : kind == SGM_TEXT_LINES_PAIRS    ? "pairs of texts"
                                             : "other data than lines of JSON";
}

/* What the run was trained on as one kind of lines stays of this kind, whatever its first line looks like. */
static sgm_status check_kind(const finetuning *f, const char *folder, const config *old)
{
    const sgm_text_lines own = kind_of(&old->data.training);
    return f->data == NULL || f->lines == own || is_same_file(f->data, lines_of(&old->data.training))
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "--data %s: these are %s, and the run in '%s' learns %s: leave --data out, or "
                          "begin another run, --into DIR",
                          f->data, name_of(f->lines), folder, name_of(own));
}

/* A run may measure on what it learns if it has always done so. */
static sgm_status check_not_learnt(const finetuning *f, const config *old)
{
    double share;
    const char *own = lines_of(&old->data.validation);
    const bool is_file = f->validation != NULL && !sgm__parse_double(f->validation, &share);
    return !is_same_file(f->data, is_file ? f->validation : own) ||
                   is_same_file(own, lines_of(&old->data.training))
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "--data %s: the validation measures on this file, and what is learnt is not held "
                          "out: name other lines to learn, or leave --data out",
                          f->data);
}

/* A file that is gone is taken to have moved to where --data says. A run that measured on nothing may begin
 * to measure on a file of its own, as that was not learnt; not on a share of lines that were. */
static sgm_status check_held_out(const finetuning *f, const char *folder, const config *old)
{
    const char *own = lines_of(&old->data.validation);
    double share;
    const bool is_share = f->validation != NULL && sgm__parse_double(f->validation, &share);
    if (f->validation != NULL && own == NULL && !is_share &&
        !is_same_file(f->validation, lines_of(&old->data.training)))
        return SGM_OK;
    if (f->validation != NULL && !is_own_validation(f->validation, old)) {
        char has[64] = "nothing";
        if (own != NULL && !isnan(old->data.validation.begin))
            snprintf(has, sizeof has, "the last %.4g %% of its lines",
                     100 * (1 - old->data.validation.begin));
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "--validation %s: the run in '%s' holds out %s, and what it learnt cannot be held out "
            "any more: leave --validation out, or begin another run, --into DIR",
            f->validation, folder, own != NULL && isnan(old->data.validation.begin) ? own : has);
    }
    const char *lines = lines_of(&old->data.training);
    const bool has_moved = lines != NULL && !sgm__file_exists(lines);
    return f->data == NULL || !holds_out_share(old) || has_moved || is_same_file(f->data, lines)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "--data %s: the run in '%s' holds out a share of '%s', and another file would be "
                          "split elsewhere: leave --data out, or begin another run, --into DIR",
                          f->data, folder, lines_of(&old->data.training));
}

static sgm_status check_split(const finetuning *f, const char *folder, const config *old)
{
    SGM_TRY(check_kind(f, folder, old));
    SGM_TRY(check_not_learnt(f, old));
    return check_held_out(f, folder, old);
}

/* What the lines are, and of how many texts --batch counts each. */
static sgm_status take_kind(finetuning *f, const config *old)
{
    f->lines = kind_of(&old->data.training);
    if (f->lines == SGM_TEXT_LINES_PAIRS && f->batch > 0 && f->data == NULL)
        f->group = sgm_text_pair_size(old->data.training.text_pairs);
    return f->group > 0 ? SGM_OK : sgm__last_failure();
}

/* --- what the network depends on --- */

static sgm_status check_network(const finetuning *f, const char *folder, const config *old)
{
    const data_config *training = &old->data.training;
    if (f->context > 0 && f->context != training->window)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "--context %lld: the run in '%s' has %lld, which its checkpoint keeps: leave --context "
            "out, or begin another run, --into DIR",
            (long long)f->context, folder, (long long)training->window);
    if (f->packing && !training->packing)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "--packing: the run in '%s' has rows of one example, which its checkpoint keeps: leave "
            "--packing out, or begin another run, --into DIR",
            folder);
    return SGM_OK;
}

/* --- what changes --- */

static sgm_status add_number(text_list *overrides, const char *key, int64_t number)
{
    return number > 0 ? add(overrides, sgm__format("%s=%lld", key, (long long)number)) : SGM_OK;
}

/* A path that the run has under another name is no change. A value that begins with a bracket is a list or a
 * map of YAML, and all others are texts as they are; so such a path begins with its folder. */
static sgm_status add_file(text_list *overrides, const char *key, const char *file, const char *own)
{
    const bool is_bracket = file != NULL && (file[0] == '[' || file[0] == '{');
    return file != NULL && !is_same_file(file, own)
               ? add(overrides, sgm__format("%s=%s%s", key, is_bracket ? "./" : "", file))
               : SGM_OK;
}

/* A list of one text is written as JSON, which quotes it. */
static sgm_status add_list(text_list *overrides, const char *key, const char *const *items, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(items[i]));
    char *text = sgm__json_text(list);
    json_decref(list);
    sgm_status status = text != NULL ? add(overrides, sgm__format("%s=%s", key, text)) : sgm__last_failure();
    sgm__free(text);
    return status;
}

static sgm_status add_data(const finetuning *f, const config *old, text_list *overrides)
{
    char training[64], validation[64];
    snprintf(training, sizeof training, "data.training.%s", finetune_key(f));
    snprintf(validation, sizeof validation, "data.validation.%s", finetune_key(f));
    SGM_TRY(add_file(overrides, training, f->data, lines_of(&old->data.training)));
    if (is_split(old))
        SGM_TRY(add_file(overrides, validation, f->data, lines_of(&old->data.validation)));
    if (f->validation != NULL && lines_of(&old->data.validation) == NULL)
        SGM_TRY(add_file(overrides, validation, f->validation, NULL));
    return add_file(overrides, "data.training.tokenizer", f->tokenizer, old->data.training.tokenizer);
}

static sgm_status add_samples(const finetuning *f, text_list *overrides)
{
    if (f->prompts.count == 0)
        return SGM_OK;
    SGM_TRY(add_list(overrides, "sample.prompts", f->prompts.items, f->prompts.count));
    return f->chat ? add(overrides, sgm__strdup("sample.chat=true")) : SGM_OK;
}

static sgm_status add_options(const finetuning *f, const config *old, text_list *overrides)
{
    SGM_TRY(add_file(overrides, "from", f->model, old->from));
    SGM_TRY(add_data(f, old, overrides));
    SGM_TRY(add_number(overrides, "epochs", f->epochs));
    SGM_TRY(add_number(overrides, "data.batch", f->batch * f->group));
    if (f->learning_rate > 0)
        SGM_TRY(add(overrides, sgm__format("optimiser.learning_rate=%.17g", f->learning_rate)));
    return add_samples(f, overrides);
}

/* A limit of iterations was one of the call that it was given to. */
static sgm_status describe(config *old, const char *file, train_description *description)
{
    old->iterations = OPTION_UNSET;
    description->file = sgm__strdup(file);
    description->text = config_text(old);
    return description->file != NULL && description->text != NULL ? SGM_OK : sgm__last_failure();
}

sgm_status finetune_go_on(finetuning *f, const char *folder, train_description *description,
                          text_list *overrides)
{
    config old;
    char *file = sgm__format("%s/config.yaml", folder);
    sgm_status status = file != NULL ? config_load(&old, file, NULL, 0) : sgm__last_failure();
    if (status == SGM_OK) {
        status = check_split(f, folder, &old);
        if (status == SGM_OK)
            status = check_network(f, folder, &old);
        if (status == SGM_OK)
            status = take_kind(f, &old);
        if (status == SGM_OK)
            status = add_options(f, &old, overrides);
        if (status == SGM_OK)
            status = describe(&old, file, description);
        config_free(&old);
    }
    sgm__free(file);
    return status;
}
