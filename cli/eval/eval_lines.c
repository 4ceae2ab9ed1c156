/* What `sigma eval MODEL FILE.jsonl` measures of a model of others, or of a run on chats, by what the model
 * is for: of one that says the next token the perplexity of what it is to learn of chats, completions and
 * texts; of one with classes what is measured of classes. */
#include "eval/eval.h"

#include <float.h>
#include <math.h>
#include <sigma/chats.h>
#include <sigma/text_data.h>

/* --- which data it is --- */

bool eval_lines_takes(const saved *s, const char *file)
{
    const data_config *training = &s->c.data.training;
    char *tokenizer = ends_with(file, ".jsonl") ? saved_tokenizer(s) : NULL;
    const bool is_model = tokenizer != NULL && s->c.data.pipeline == NULL && !data_config_has_texts(training);
    sgm__free(tokenizer);
    return is_model || (ends_with(file, ".jsonl") && training->chats != NULL);
}

/* The model that the network is of; NULL, with or without an error: it is none. The caller frees it. */
static sgm_pretrained *open_model(const saved *s)
{
    char *path = saved_model(s);
    sgm_pretrained *model = path != NULL ? sgm_pretrained_open(path) : NULL;
    sgm__free(path);
    return model;
}

/* The classes of a model, in the configuration, which prints and finds them there. */
static sgm_status take_classes(saved *s, const sgm_pretrained *model)
{
    text_list *names = &s->c.data.training.class_names;
    const int64_t count = sgm_pretrained_describe(model)->classes;
    for (int64_t i = (int64_t)names->count; i < count; i++) {
        const char *name = sgm_pretrained_class(model, i);
        char *own = name != NULL ? sgm__strdup(name) : sgm__format("LABEL_%lld", (long long)i);
        if (own == NULL ||
            sgm__reserve(&names->items, &names->capacity, names->count + 1, sizeof *names->items) != SGM_OK) {
            sgm__free(own);
            return SGM_ERROR_MEMORY;
        }
        names->items[names->count++] = own;
    }
    return SGM_OK;
}

static sgm_status refuse(const saved *s, const char *task)
{
    if (strcmp(task, "embed") == 0)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "'%s' makes vectors of texts, which have no cost here: 'sigma finetune' with lines of "
            "anchor and positive trains and measures them",
            s->checkpoint);
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "'%s' is a model to %s, which is not measured; lines are for models that say the next "
                    "token or have classes, as 'sigma finetune' makes of an encoder",
                    s->checkpoint, task);
}

/* What the lines are must be what the model is for. */
static sgm_status check_lines(const saved *s, const char *file, const char *task)
{
    const bool generates = strcmp(task, "generate") == 0;
    const sgm_text_lines lines = sgm_text_lines_of(file);
    if (lines == SGM_TEXT_LINES_FAILED)
        return sgm__last_failure();
    if (!generates && strcmp(task, "classify") != 0)
        return refuse(s, task);
    if (generates == (lines == SGM_TEXT_LINES_OTHERS) && lines != SGM_TEXT_LINES_PAIRS)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s: '%s' is a model to %s, which is measured by lines with %s",
                    file, s->checkpoint, task,
                    generates ? "messages, prompt and completion, or text" : "text and label");
}

/* Describes the file in *data, as data.training would; owned by the caller are its texts. */
static sgm_status describe(saved *s, const char *file, data_config *data)
{
    sgm_pretrained *model = open_model(s);
    const char *task = model != NULL ? sgm_pretrained_describe(model)->task : "generate";
    sgm_status status = check_lines(s, file, task);
    const bool classifies = status == SGM_OK && strcmp(task, "classify") == 0;
    if (classifies)
        status = take_classes(s, model);
    if (status == SGM_OK) {
        *(classifies ? &data->labelled_texts : &data->chats) = (char *)(uintptr_t)file;
        data->tokenizer = s->c.data.training.tokenizer != NULL ? sgm__strdup(s->c.data.training.tokenizer)
                                                               : saved_tokenizer(s);
        data->window =
            s->c.data.training.window != OPTION_UNSET ? s->c.data.training.window : text_steps(s->network);
        status = data->tokenizer != NULL ? SGM_OK : sgm__last_failure();
    }
    sgm_pretrained_free(model);
    return status;
}

sgm_dataset *eval_lines_dataset(saved *s, const char *file, const char *name)
{
    data_config data = s->c.data.training;
    data.labelled_texts = data.chats = data.tokenizer = NULL;
    data.begin = data.share = NAN;
    sgm_dataset *dataset = NULL;
    if (describe(s, file, &data) == SGM_OK)
        dataset = data.chats != NULL ? chats_dataset(&data, name) : text_dataset(&s->c.data, &data, name);
    sgm__free(data.tokenizer);
    return dataset;
}

/* --- the next token --- */

/* What was counted of all targets that are learnt. */
typedef struct token_sums {
    double surprise; /* the sum of -log of the probability of each */
    int64_t tokens, right;
} token_sums;

/* One place: the probabilities of all tokens, and the one that comes. */
static void add_token(token_sums *sums, const sgm_tensor *outputs, int64_t row, int64_t vocabulary,
                      int64_t target)
{
    int64_t best = 0;
    double highest = -1;
    for (int64_t i = 0; i < vocabulary; i++) {
        const double probability = sgm_tensor_get(outputs, (const int64_t[]){0, row, i});
        best = probability > highest ? i : best;
        highest = probability > highest ? probability : highest;
    }
    /* One that is too small for float32 became 0. */
    sums->surprise -= log(fmax(sgm_tensor_get(outputs, (const int64_t[]){0, row, target}), FLT_MIN));
    sums->right += best == target;
    sums->tokens++;
}

static sgm_status add_example(token_sums *sums, const saved *s, const sgm_block *block)
{
    const sgm_tensor *targets = sgm_block_field(block, "targets");
    sgm_tensor *outputs = targets != NULL ? sgm_trainer_predict_block(s->trainer, block, NULL) : NULL;
    if (outputs == NULL)
        return sgm__last_failure();
    const sgm_shape *shape = sgm_tensor_shape(outputs), *steps = sgm_tensor_shape(targets);
    sgm_status status = SGM_OK;
    if (shape->rank != 3 || shape->dims[1] != steps->dims[1])
        status = sgm_fail(SGM_ERROR_SHAPE, "the network gives no probability of a next token at each place");
    for (int64_t row = 0; row < steps->dims[1] && status == SGM_OK; row++) {
        const int64_t target = (int64_t)sgm_tensor_get(targets, (const int64_t[]){0, row});
        if (target >= shape->dims[2])
            status =
                sgm_fail(SGM_ERROR_ARGUMENT,
                         "the tokenizer has the token %lld, and the network knows %lld: it is of another "
                         "model",
                         (long long)target, (long long)shape->dims[2]);
        else if (target >= 0)
            add_token(sums, outputs, row, shape->dims[2], target);
    }
    sgm_tensor_free(outputs);
    return status;
}

/* Examples come one by one, as their outputs are large: a number for each token of the vocabulary. */
static sgm_status add_all(token_sums *sums, const saved *s, sgm_dataset *dataset, int64_t *examples)
{
    const sgm_block *block = NULL;
    sgm_iterator *each = sgm_minibatches(dataset, .size = 1, .no_shuffle = true);
    sgm_status status = each != NULL ? sgm_iterator_next(each, &block) : sgm__last_failure();
    for (*examples = 0; status == SGM_OK && block != NULL; ++*examples) {
        status = add_example(sums, s, block);
        if (status == SGM_OK)
            status = sgm_iterator_next(each, &block);
    }
    sgm_iterator_free(each);
    return status;
}

static sgm_status measure(const saved *s, sgm_dataset *dataset, sgm_metrics *metrics, int64_t *tokens)
{
    token_sums sums = {0};
    SGM_TRY(add_all(&sums, s, dataset, &metrics->examples));
    metrics->loss = sums.surprise / (double)sums.tokens;
    metrics->accuracy = (double)sums.right / (double)sums.tokens;
    *tokens = sums.tokens;
    return SGM_OK;
}

sgm_status eval_next_tokens(const saved *s, sgm_dataset *dataset, bool int8, sgm_metrics *metrics,
                            sgm_registry *results)
{
    int64_t tokens;
    SGM_TRY(measure(s, dataset, metrics, &tokens));
    if (int8) {
        SGM_TRY(eval_add_trained(s, metrics, results));
        SGM_TRY(saved_infer(s, true));
        SGM_TRY(measure(s, dataset, metrics, &tokens));
    }
    SGM_TRY(eval_add_number(results, "perplexity", exp(metrics->loss), NULL));
    return eval_add_number(results, "tokens", (double)tokens, NULL);
}
