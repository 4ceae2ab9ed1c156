/* Chats and other texts as data for models that say the next token: what is asked is read, and what is
 * answered is learnt.
 *
 *     sgm_model *model = sgm_model_import(env, folder, .context = 512, .ignore_negative = true);
 *     sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(folder);
 *     sgm_dataset *data = sgm_chat_dataset("training", tokenizer, "chats.jsonl", .window = 512);
 *
 * This header is of the library sigma_models. */
#ifndef SIGMA_CHATS_H
#define SIGMA_CHATS_H

#include <sigma/data.h>
#include <sigma/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a file. */
typedef struct sgm_chat_counts {
    int64_t examples;        /* lines that became examples ... */
    int64_t rows;            /* ... in so many rows; without packing as many */
    int64_t cut;             /* ... of them those that were longer than the window */
    int64_t left_out;        /* lines of whose answers nothing is within the window */
    int64_t tokens;          /* of all examples ... */
    int64_t learnt;          /* ... of them those that count in the loss */
    int64_t longest;         /* tokens of the longest line that was read, uncut: the window that takes all */
    int64_t unanswered;      /* of those left out: lines without an answer, or with an empty one */
    int64_t unanswered_line; /* ... and the first of them, from 1 ... */
    int64_t behind_line;     /* ... and the first whose answer begins behind the window; 0: none */
} sgm_chat_counts;

typedef struct sgm_chat_dataset_options {
    size_t struct_size;
    int64_t window;          /* tokens of an example, 1 to 2^20; default 512 */
    sgm_chat_counts *counts; /* filled in; NULL: not wanted */
    bool packing; /* several short examples stand in a row, for networks whose input has starts=starts */
} SGM_BY_NAME sgm_chat_dataset_options;
/* A dataset in memory of a file of JSON Lines, each line one of these:
 *
 *     {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
 *     {"prompt": "...", "completion": "..."}
 *     {"text": "..."}
 *
 * Its fields are inputs (examples, window), tokens, and targets (examples, window), the next token at each
 * place; -1 where that is not to be learnt, which the option ignore_negative of sigma/models.h is for: what
 * is no answer of the assistant (with the end that the template writes behind it), or no completion, and what
 * fills up a short example. Messages are written by the chat template of the tokenizer; a completion and a
 * text get its token for the end of a text. The file is read line by line. NULL and an error that names file
 * and line.
 *
 * With packing an example goes into the first of the newest 64 rows that has room for all of it, else into a
 * new one. A third field, starts (rows, window), has for each place the place at which its example begins. */
#define sgm_chat_dataset(...) SGM_WITH_OPTIONS_3(sgm_chat_dataset_with, sgm_chat_dataset_options, __VA_ARGS__)
SGM_API sgm_dataset *sgm_chat_dataset_with(const char *name, const sgm_pretrained_tokenizer *tokenizer,
                                           const char *path, const sgm_chat_dataset_options *options);

#ifdef __cplusplus
}
#endif
#endif
