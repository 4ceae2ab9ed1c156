/* A model of others learns answers: low-rank adapters are trained on chats, and become part of the model that
 * is written back.
 *
 *     finetune_chat FOLDER CHATS.jsonl INTO [EPOCHS]
 *
 * FOLDER is a folder of transformers, or a run of 'sigma import'; each line of CHATS.jsonl is
 * {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}, or
 * {"prompt": "...", "completion": "..."}. INTO becomes a folder that transformers reads, too. */
#include <sigma/chats.h>
#include <sigma/models.h>
#include <sigma/sigma.h>

#include <stdio.h>
#include <stdlib.h>

/* What is asked has the target -1, so the model is opened with ignore_negative. */
static sgm_status finetune(sgm_pretrained *model, sgm_trainer *trainer, sgm_dataset *chats, int64_t epochs)
{
    sgm_status status = sgm_pretrained_load(model, trainer);
    if (status == SGM_OK)
        status = sgm_trainer_adapt(trainer, sgm_lora(.rank = 8, .alpha = 16));
    if (status == SGM_OK)
        status = sgm_trainer_set_data(trainer, sgm_minibatches(chats, .size = 4));
    if (status == SGM_OK)
        status = sgm_trainer_set_optimiser(trainer, sgm_adamw(.learning_rate = 2e-4, .clip_norm = 1));
    return status == SGM_OK ? sgm_trainer_run(trainer, .epochs = epochs) : status;
}

/* Loss and accuracy of the tokens that are learnt, after the training. */
static sgm_status measure(sgm_trainer *trainer, sgm_dataset *chats)
{
    sgm_metrics metrics = {0};
    sgm_iterator *rows = sgm_minibatches(chats, .size = 4, .no_shuffle = true);
    sgm_status status = rows != NULL ? sgm_trainer_evaluate(trainer, rows, &metrics) : sgm_last_status();
    if (status == SGM_OK)
        printf("loss %.4f, accuracy %.1f %%\n", metrics.loss, 100 * metrics.accuracy);
    sgm_iterator_free(rows);
    return status;
}

int main(int argc, char **argv)
{
    const int64_t epochs = argc > 4 ? atoll(argv[4]) : 3;
    if (argc < 4 || argc > 5 || epochs < 1) {
        fprintf(stderr, "usage: finetune_chat FOLDER CHATS.jsonl INTO [EPOCHS]\n");
        return 2;
    }
    sgm_env *env = sgm_env_create("finetune_chat", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "chats");
    sgm_pretrained *model = sgm_pretrained_open(argv[1], .ignore_negative = true);
    sgm_pretrained_tokenizer *tokenizer = model != NULL ? sgm_pretrained_tokenizer_open(argv[1]) : NULL;
    sgm_dataset *chats = NULL;
    if (tokenizer != NULL)
        chats =
            sgm_chat_dataset("chats", tokenizer, argv[2], .window = sgm_pretrained_describe(model)->context);
    sgm_status status = chats != NULL ? finetune(model, trainer, chats, epochs) : sgm_last_status();
    if (status == SGM_OK)
        status = measure(trainer, chats);
    if (status == SGM_OK)
        status = sgm_trainer_merge(trainer);
    if (status == SGM_OK)
        status = sgm_pretrained_export(model, trainer, argv[3]);
    if (status != SGM_OK)
        fprintf(stderr, "finetune_chat: %s\n", sgm_last_error());
    sgm_dataset_free(chats);
    sgm_pretrained_tokenizer_free(tokenizer);
    sgm_pretrained_free(model);
    sgm_env_free(env); /* and the trainer */
    return status == SGM_OK ? 0 : 1;
}
