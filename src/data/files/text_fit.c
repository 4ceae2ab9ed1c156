/* Makes a pipeline of texts: their window and their tokenizer. */
#include "data/files/files.h"
#include "data/kinds/text.h"
#include <sigma/text_files.h>

/* Bytes of the longest file, as far as the window of options that say nothing goes. */
static sgm_status find_window(const sgm_files *files, int32_t *window)
{
    double longest = 1;
    for (int64_t i = 0; i < sgm_files_count(files); i++) {
        sgm__file_size size;
        SGM_TRY(sgm__texts.measure(sgm_files_path(files, i), &size));
        longest = size.numbers[0] > longest ? size.numbers[0] : longest;
    }
    *window = longest < SGM__DEFAULT_WINDOW ? (int32_t)longest : SGM__DEFAULT_WINDOW;
    return SGM_OK;
}

static sgm_status fit(sgm__text_form *form, const sgm_files *files, const sgm_text_options *options)
{
    SGM_TRY(sgm__files_check_fit(files, &sgm__texts, &(const sgm__files_part){0}, "sgm_text_pipeline"));
    if (options->window != 0)
        SGM_TRY(sgm__token_window_check(options->window));
    form->window = (int32_t)options->window;
    if (form->window == 0)
        SGM_TRY(find_window(files, &form->window));
    form->tokenizer =
        options->tokenizer != NULL ? sgm__tokenizer_copy(options->tokenizer) : sgm_byte_tokenizer();
    return form->tokenizer != NULL ? SGM_OK : sgm__last_failure();
}

sgm_pipeline *sgm_text_pipeline_with(const sgm_files *files, const sgm_text_options *given)
{
    sgm_text_options options;
    sgm__text_form form = {0};
    if (sgm__options_read(&options, sizeof options, given, "sgm_text_pipeline") != SGM_OK ||
        fit(&form, files, &options) != SGM_OK)
        return NULL;
    return sgm__files_pipeline(files, &form);
}
