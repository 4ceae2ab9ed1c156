/* What the files of `sigma finetune` share.
 *
 * finetune.c reads the command line, describes a training that begins, and trains it; look.c looks at the
 * model and the data before; resume.c describes a training that goes on, which is what its run's config.yaml
 * says but for what is given anew. */
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
bool finetune_is_of_encoder(const finetuning *f);

/* --- look.c --- */
/* Of a training that begins: refuses what the model cannot be or learn; sets what the lines are, and whether
 * the model has adapters. Unless a tokenizer is named, the model must have one. */
sgm_status finetune_look(finetuning *f, bool names_tokenizer);
/* The same of the run in `folder`, which goes on with its adapters and its tokenizer. Without --data the
 * lines are not known yet. */
sgm_status finetune_look_at_run(finetuning *f, const char *folder);

/* --- resume.c --- */
/* Describes what the run in `folder`, which has a checkpoint and a config.yaml, does next: in *description
 * what its config.yaml says, in *overrides KEY=VALUE of the options that were given. What cannot change is
 * refused: which lines are held out, what kind they are of, and what the checkpoint's network depends on.
 * What the lines are is taken from the run. The caller frees both in any case. */
sgm_status finetune_go_on(finetuning *f, const char *folder, train_description *description,
                          text_list *overrides);

#endif
