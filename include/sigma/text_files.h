/* Texts: .txt files as inputs of a network. Folders of them, examples and single files are those of
 * sigma/files.h; texts in a column of a table are those of sigma/table.h.
 *
 *     sgm_files *reviews = sgm_files_open("reviews", "texts");         reviews/good/1.txt, reviews/bad/7.txt,
 * ... sgm_pipeline *pipeline = sgm_text_pipeline(reviews, .window = 400);
 *
 * Inputs are (window): the tokens of the text and behind them the number of tokens of the tokenizer (256 for
 * bytes), which fills the window up. Of a longer text the beginning is read. Any bytes will do, UTF-8 or not,
 * but a zero byte is an error; an empty text has no tokens. */
#ifndef SIGMA_TEXT_FILES_H
#define SIGMA_TEXT_FILES_H

#include <sigma/files.h>
#include <sigma/text.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_text_options {
    size_t struct_size;
    const sgm_tokenizer *tokenizer; /* the pipeline keeps a copy. NULL: each byte is a token */
    int64_t window;                 /* default: bytes of the longest file, at most 512 */
} SGM_BY_NAME sgm_text_options;
/* Makes a pipeline of texts, of which none is read. The caller frees it; it does not need the list any more.
 * At least two classes are expected. */
#define sgm_text_pipeline(...) SGM_WITH_OPTIONS(sgm_text_pipeline_with, sgm_text_options, __VA_ARGS__)
SGM_API sgm_pipeline *sgm_text_pipeline_with(const sgm_files *files, const sgm_text_options *options);

#ifdef __cplusplus
}
#endif
#endif
