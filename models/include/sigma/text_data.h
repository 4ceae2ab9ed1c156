/* Texts with their classes, and texts that are like each other, as data for encoders (BERT, MiniLM).
 *
 *     char **classes = sgm_labelled_text_classes("training.jsonl");
 *     sgm_dataset *data = sgm_labelled_text_dataset("training", tokenizer, "training.jsonl", .window = 128,
 *                                                   .classes = (const char *const *)classes);
 *
 * Files are JSON Lines. This header is of the library sigma_models. */
#ifndef SIGMA_TEXT_DATA_H
#define SIGMA_TEXT_DATA_H

#include <sigma/data.h>
#include <sigma/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the lines of a file are. */
typedef enum sgm_text_lines {
    SGM_TEXT_LINES_FAILED,   /* the file cannot be read, or has no line of JSON first; an error says so */
    SGM_TEXT_LINES_OTHERS,   /* neither of the two below: chats, completions, texts (sigma/chats.h) */
    SGM_TEXT_LINES_LABELLED, /* {"text": "...", "label": ...} */
    SGM_TEXT_LINES_PAIRS     /* {"anchor": "...", "positive": "..."} */
} sgm_text_lines;
/* By the first line of a file. */
SGM_API sgm_text_lines sgm_text_lines_of(const char *path);

/* What became of a file. */
typedef struct sgm_text_counts {
    int64_t texts;   /* that became rows ... */
    int64_t cut;     /* ... of them those that were longer than the window */
    int64_t longest; /* the most tokens of one, uncut */
    int64_t tokens;  /* of all, cut */
    int64_t empty;   /* rows whose text, or a text of whose pair, has no characters */
} sgm_text_counts;

typedef struct sgm_text_data_options {
    size_t struct_size;
    int64_t window; /* tokens of a text, 1 to 2^20; default 512 */
    /* Of labelled texts: the classes, NULL at the end; default: those of the file. */
    const char *const *classes;
    sgm_text_counts *counts; /* filled in; NULL: not wanted */
} SGM_BY_NAME sgm_text_data_options;

/* The classes of a file of labelled texts, each once, NULL at the end: labels that are texts, or whole
 * numbers, in the order of their numbers if all are some, else of their bytes. The caller frees it with
 * sgm_text_classes_free. NULL and an error that names file and line; of fewer than two classes, too. */
SGM_API char **sgm_labelled_text_classes(const char *path);
SGM_API void sgm_text_classes_free(char **classes);

/* Whether labelled texts come in pairs, by the first line: {"text": "...", "pair": "...", "label": ...}. */
SGM_API bool sgm_labelled_text_has_pairs(const char *path);

/* A dataset in memory of lines {"text": "...", "label": "..."}, where a label is a text or a whole number.
 * Its fields are inputs (texts, window), tokens, lengths (texts), how many of these count, and targets
 * (texts, classes), a share of 1 for the class; it has the names of the classes. If the first line has a
 * "pair", all have one, which is read behind the text, and there are segments (texts, window): which of the
 * two a token is of. NULL and an error that names
 * file and line; so is a label that is none of the classes. */
#define sgm_labelled_text_dataset(...)                                                                       \
    SGM_WITH_OPTIONS_3(sgm_labelled_text_dataset_with, sgm_text_data_options, __VA_ARGS__)
SGM_API sgm_dataset *sgm_labelled_text_dataset_with(const char *name,
                                                    const sgm_pretrained_tokenizer *tokenizer,
                                                    const char *path, const sgm_text_data_options *options);

/* A dataset in memory of lines {"anchor": "...", "positive": "..."}, each with a "negative" too or none. The
 * texts of a line are examples in a row, which belong together (sgm_dataset_get_group is 2, or 3): inputs
 * (texts, window) and lengths (texts), for a network that ends with the cost info_nce. */
#define sgm_text_pair_dataset(...)                                                                           \
    SGM_WITH_OPTIONS_3(sgm_text_pair_dataset_with, sgm_text_data_options, __VA_ARGS__)
SGM_API sgm_dataset *sgm_text_pair_dataset_with(const char *name, const sgm_pretrained_tokenizer *tokenizer,
                                                const char *path, const sgm_text_data_options *options);
/* How many texts each line of pairs has, by the first one: 2 or 3; 0 and an error. */
SGM_API int64_t sgm_text_pair_size(const char *path);

#ifdef __cplusplus
}
#endif
#endif
