/* The key `chats` of the section `data`: chats, prompts with completions and texts, which sigma_models makes
 * into examples (sigma/chats.h) by the tokenizer of a model.
 *
 * What follows from the model is written into the configuration before it is checked, so that the run's
 * config.yaml says it. */
#include "config/arguments.h"
#include "config/experiment.h"
#include "config/saved.h"

#include <math.h>
#include <sigma/chats.h>
#include <stdio.h>

#define COST "softmax_cross_entropy"
#define IGNORE "ignore_negative"
#define STARTS "starts=starts"
#define DEFAULT_WINDOW 512

char *model_tokenizer(const char *folder)
{
    if (has_tokenizer(folder))
        return sgm__strdup(folder);
    char *model = sgm__format("%s/model", folder);
    if (model != NULL && has_tokenizer(model))
        return model;
    sgm__free(model);
    return NULL;
}

/* What is no sequence is told when data and network are compared. */
int64_t text_steps(const char *notation)
{
    sgm_network *network = notation != NULL ? sgm_network_parse(notation) : NULL;
    sgm_content shape = {0};
    int64_t steps = 0;
    if (network != NULL && sgm_network_get_argument(network, 0, "shape", &shape) == SGM_OK)
        sgm__parse_int64(shape.as.text, &steps);
    sgm_content_clear(&shape);
    sgm_network_free(network);
    return steps;
}

/* NULL in *text becomes a copy of `given`, if there is one. */
static sgm_status take(char **text, const char *given)
{
    if (*text != NULL || given == NULL)
        return SGM_OK;
    *text = sgm__strdup(given);
    return *text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status complete(data_config *data, const char *tokenizer, int64_t window)
{
    if (!data_config_is_of_model(data))
        return SGM_OK;
    if (data->window == OPTION_UNSET)
        data->window = window > 0 ? window : DEFAULT_WINDOW;
    return take(&data->tokenizer, tokenizer);
}

/* A network without such a cost is compared with the data later. */
static sgm_status ignore_prompts(config *c)
{
    const char *cost = c->network != NULL ? network_find_cost(c->network) : NULL;
    if (cost == NULL || strncmp(cost, COST, strlen(COST)) != 0 || strstr(cost, IGNORE) != NULL)
        return SGM_OK;
    char *network = network_with_argument(c->network, cost, IGNORE);
    if (network == NULL)
        return SGM_ERROR_MEMORY;
    sgm__free(c->network);
    c->network = network;
    return SGM_OK;
}

/* The input tells where examples begin. A network whose first layer is no input is compared with the data
 * later.
 */
static sgm_status take_starts(config *c)
{
    if (c->network == NULL || strncmp(c->network, "input", strlen("input")) != 0 ||
        strstr(c->network, STARTS) != NULL)
        return SGM_OK;
    char *network = network_with_argument(c->network, c->network, STARTS);
    if (network == NULL)
        return SGM_ERROR_MEMORY;
    sgm__free(c->network);
    c->network = network;
    return SGM_OK;
}

/* A network of a run that was packed goes on without. */
static sgm_status drop_starts(config *c)
{
    const char *at = c->network != NULL ? strstr(c->network, ", " STARTS) : NULL;
    if (at == NULL)
        return SGM_OK;
    char *network = sgm__format("%.*s%s", (int)(at - c->network), c->network, at + strlen(", " STARTS));
    if (network == NULL)
        return SGM_ERROR_MEMORY;
    sgm__free(c->network);
    c->network = network;
    return SGM_OK;
}

/* One network is for all sections, so all are packed, or none. */
static sgm_status pack_all(config *c)
{
    data_config *others[] = {&c->data.validation, &c->data.test};
    const char *const names[] = {"validation", "test"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i]->packing && !c->data.training.packing)
            return sgm_fail(
                SGM_ERROR_ARGUMENT,
                "data.%s.packing: the training data are not packed; give data.training.packing, too",
                names[i]);
        others[i]->packing = c->data.training.packing && others[i]->chats != NULL;
    }
    return c->data.training.packing ? take_starts(c) : drop_starts(c);
}

/* Examples of chats are all of one length, and the input of an encoder wants theirs. */
static sgm_status refuse_encoder(const char *notation)
{
    sgm_network *network = notation != NULL ? sgm_network_parse(notation) : NULL;
    sgm_content lengths = {0};
    const bool has_lengths = network != NULL &&
                             sgm_network_get_argument(network, 0, "lengths", &lengths) == SGM_OK &&
                             lengths.kind == SGM_KIND_TEXT && lengths.as.text[0] != '\0';
    sgm_content_clear(&lengths);
    sgm_network_free(network);
    return has_lengths ? sgm_fail(SGM_ERROR_UNSUPPORTED,
                                  "chats and texts alone are for models that say the next token; an encoder "
                                  "learns lines with text and label, or with anchor and positive")
                       : SGM_OK;
}

sgm_status chats_complete(config *c)
{
    data_config *all[] = {&c->data.training, &c->data.validation, &c->data.test};
    if (!data_config_is_of_model(&c->data.training))
        return SGM_OK;
    if (c->data.training.chats != NULL)
        SGM_TRY(refuse_encoder(c->network));
    int64_t steps = text_steps(c->network);
    char *own = c->from != NULL ? model_tokenizer(c->from) : NULL;
    const char *named = c->data.training.tokenizer;
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == SGM_OK; i++)
        status = complete(all[i], named != NULL ? named : own, steps);
    sgm__free(own);
    if (status == SGM_OK && c->data.training.chats != NULL)
        status = ignore_prompts(c);
    return status == SGM_OK ? pack_all(c) : status;
}

/* Lines are counted before a share of them is taken. */
const char *of_file(const data_config *data)
{
    return isnan(data->begin) && isnan(data->share) ? "" : " of the whole file";
}

const char *lines_place(const char *name, const char *file, char room[32])
{
    static const char *const sections[] = {"training", "validation", "test"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strcmp(name, sections[i]) == 0) {
            snprintf(room, 32, "data.%s", name);
            return room;
        }
    return file;
}

/* "lines of the whole file are", or of one "line is". */
static const char *lines_are(int64_t count, const data_config *data, char *words, size_t size)
{
    snprintf(words, size, "line%s%s %s", count == 1 ? "" : "s", of_file(data), count == 1 ? "is" : "are");
    return words;
}

/* What it costs that rows are longer than what is in them. */
static void hint(const data_config *data, const char *name, const sgm_chat_counts *counts)
{
    if (strcmp(name, "training") == 0 && !data->packing && counts->longest > 0 &&
        2 * counts->longest <= data->window)
        complain("hint: the longest line of data.training%s has %lld tokens, and each is trained as one of "
                 "%lld: --packing, or a --context of fewer, is faster\n",
                 isnan(data->begin) && isnan(data->share) ? "" : ", in the whole file,",
                 (long long)counts->longest, (long long)data->window);
}

/* What of a file is not learnt. */
static void warn(const data_config *data, const char *name, const sgm_chat_counts *counts)
{
    const int64_t behind = counts->left_out - counts->unanswered;
    char words[40], room[32];
    const char *place = lines_place(name, data->chats, room);
    const char *section = place == room ? room : "", *colon = place == room ? ": " : "";
    if (counts->cut > 0)
        complain(
            "warning: %s: %lld of %lld examples%s are cut to %lld tokens; the longest line has %lld: a "
            "longer --context of 'sigma import' or 'sigma finetune' takes more of them, if the model was "
            "trained for so many\n",
            place, (long long)counts->cut, (long long)counts->examples, of_file(data),
            (long long)data->window, (long long)counts->longest);
    if (counts->unanswered > 0)
        complain(
            "warning: %s%s%s:%lld: no message of the assistant, no completion and no text, or an empty one; "
            "%lld %s left out for that\n",
            section, colon, data->chats, (long long)counts->unanswered_line, (long long)counts->unanswered,
            lines_are(counts->unanswered, data, words, sizeof words));
    if (behind > 0)
        complain("warning: %s%s%s:%lld: the answer begins behind token %lld; %lld %s left out for that, "
                 "and the longest line has %lld tokens: --context of 'sigma import' or 'sigma finetune'\n",
                 section, colon, data->chats, (long long)counts->behind_line, (long long)data->window,
                 (long long)behind, lines_are(behind, data, words, sizeof words), (long long)counts->longest);
}

sgm_dataset *chats_dataset(const data_config *data, const char *name)
{
    sgm_chat_counts counts = {0};
    sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(data->tokenizer);
    sgm_dataset *dataset = tokenizer != NULL
                               ? sgm_chat_dataset(name, tokenizer, data->chats, .window = data->window,
                                                  .counts = &counts, .packing = data->packing)
                               : NULL;
    if (dataset != NULL) {
        warn(data, name, &counts);
        hint(data, name, &counts);
    }
    sgm_pretrained_tokenizer_free(tokenizer);
    return dataset;
}
