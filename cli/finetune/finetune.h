/* What the files of `sigma finetune` share.
 *
 * finetune.c reads the command line, describes a training that begins, and trains it; resume.c
 * describes one that goes on, which is what its run's config.yaml says but for what is given anew. */
#ifndef SGM_CLI_FINETUNE_H
#define SGM_CLI_FINETUNE_H

#include "cli.h"

#include <sigma/text_data.h>

/* What was asked for. Texts are argv's; numbers are 0 where they were not given. */
typedef struct finetuning {
    const char *model, *data, *validation, *lora, *tokenizer;
    argument_texts prompts;
    bool chat, int8, packing;
    int64_t epochs, batch, context, rank;
    double learning_rate;
    sgm_text_lines lines; /* what the data is; below: how many texts a line of pairs has, else 1 */
    int64_t group;
    bool is_adapted; /* the model is a run with adapters, which are trained on */
} finetuning;

/* --- finetune.c --- */
/* The key of the data by what its lines are. */
const char *finetune_key(const finetuning *f);
/* The text of the adapters that --lora asks for; sgm__free. NULL: out of memory. */
char *finetune_adapter(const finetuning *f);

/* --- resume.c --- */
/* Describes what the run in `folder`, which has a checkpoint and a config.yaml, does next: in *description
 * what its config.yaml says, in *overrides KEY=VALUE of the options that were given. What cannot change is
 * refused: which lines are held out, and what the checkpoint's network depends on. The caller frees both in
 * any case. */
sgm_status finetune_go_on(const finetuning *f, const char *folder, train_description *description,
                          text_list *overrides);
void finetune_free_overrides(text_list *overrides);

#endif
