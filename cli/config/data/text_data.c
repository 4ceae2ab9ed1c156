/* The keys `labelled_texts` and `text_pairs` of the section `data`: texts with classes, and texts that are
 * like each other, which sigma_models makes into examples (sigma/text_data.h) for an encoder.
 *
 * What follows from the file and the model is written into the configuration before it is checked, so that
 * the run's config.yaml says it: the classes, the network with a layer for them, or with the cost of pairs.
 */
#include "config/arguments.h"
#include "config/experiment.h"
#include "config/saved.h"

#include <math.h>
#include <sigma/text_data.h>

#define PAIR_COST " + info_nce"
#define TRIPLE_COST PAIR_COST "(group=3)"

bool data_config_has_texts(const data_config *data)
{
    return data->labelled_texts != NULL || data->text_pairs != NULL;
}

bool data_config_is_of_model(const data_config *data)
{
    return data->chats != NULL || data_config_has_texts(data);
}

/* --- the model --- */

/* Whether `from` is a model of others, or a run of one; another run is taken with its network as it is. */
static bool is_from_model(const config *c)
{
    return c->from != NULL && (is_model_of_others(c->from) || is_run_of_model(c->from));
}

/* Whether the classes of an open model are these, in their order. */
static bool has_classes(const sgm_pretrained *model, const text_list *names)
{
    bool equal = sgm_pretrained_describe(model)->classes == (int64_t)names->count;
    for (size_t i = 0; i < names->count && equal; i++) {
        const char *name = sgm_pretrained_class(model, (int64_t)i);
        equal = name != NULL && strcmp(name, names->items[i]) == 0;
    }
    return equal;
}

/* A run was made for so many steps, which `from` keeps; 0: a model of others has its usual ones. */
static int64_t steps_of_run(const char *from)
{
    char *path = !is_model_of_others(from) ? saved_path(from) : NULL;
    char *network = path != NULL ? sgm_checkpoint_network(path) : NULL;
    int64_t steps = network != NULL ? text_steps(network) : 0;
    sgm_string_free(network);
    sgm__free(path);
    return steps;
}

sgm_pretrained *text_data_model(const config *c)
{
    const data_config *data = &c->data.training;
    const bool pairs = data->text_pairs != NULL;
    const int64_t context = data->window != OPTION_UNSET ? data->window : steps_of_run(c->from);
    const bool two = data->labelled_texts != NULL && sgm_labelled_text_has_pairs(data->labelled_texts);
    sgm_pretrained *model =
        sgm_pretrained_open(c->from, .context = context, .task = pairs ? "embed" : NULL, .pairs = two);
    if (model == NULL || pairs || has_classes(model, &data->class_names))
        return model;
    sgm_pretrained_free(model);
    return sgm_pretrained_open(c->from, .context = context, .task = "classify",
                               .classes = (int64_t)data->class_names.count,
                               .class_names = (const char *const *)data->class_names.items, .pairs = two);
}

/* Other tasks have other inputs, or none that is a text. */
static sgm_status check_model(const sgm_pretrained *model, const char *from)
{
    const sgm_pretrained_info *info = sgm_pretrained_describe(model);
    if (info->tokens > 0 && (strcmp(info->task, "embed") == 0 || strcmp(info->task, "classify") == 0))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "'%s' is a model to %s; classes of texts and pairs are learnt by encoders, as BERT, "
                    "RoBERTa and DistilBERT are",
                    from, info->task);
}

/* --- the classes --- */

static bool is_among(const sgm_pretrained *model, const char *name)
{
    const char *known;
    for (int64_t i = 0; (known = sgm_pretrained_class(model, i)) != NULL; i++)
        if (strcmp(known, name) == 0)
            return true;
    return false;
}

/* Whether a model, all of whose classes have names, tells all these apart. */
static bool knows_all(const sgm_pretrained *model, char *const *names)
{
    const int64_t count = sgm_pretrained_describe(model)->classes;
    bool all = count > 0;
    for (int64_t i = 0; i < count && all; i++)
        all = sgm_pretrained_class(model, i) != NULL;
    for (size_t i = 0; names[i] != NULL && all; i++)
        all = is_among(model, names[i]);
    return all;
}

static sgm_status add_name(text_list *names, const char *name)
{
    char *copy = sgm__strdup(name);
    if (copy == NULL ||
        sgm__reserve(&names->items, &names->capacity, names->count + 1, sizeof *names->items) != SGM_OK) {
        sgm__free(copy);
        return SGM_ERROR_MEMORY;
    }
    names->items[names->count++] = copy;
    return SGM_OK;
}

/* Classes of the file, or, where the model tells these apart already, all that it does. */
static sgm_status choose_classes(const config *c, char *const *found, text_list *names)
{
    sgm_pretrained *model = is_from_model(c) ? sgm_pretrained_open(c->from) : NULL;
    const bool is_known = model != NULL && knows_all(model, found);
    sgm_status status = model != NULL || !is_from_model(c) ? SGM_OK : sgm__last_failure();
    const char *name;
    for (int64_t i = 0;
         status == SGM_OK && (name = is_known ? sgm_pretrained_class(model, i) : found[i]) != NULL; i++)
        status = add_name(names, name);
    sgm_pretrained_free(model);
    return status;
}

static sgm_status complete_classes(config *c)
{
    data_config *data = &c->data.training;
    if (data->labelled_texts == NULL || data->class_names.count > 0)
        return SGM_OK;
    char **found = sgm_labelled_text_classes(data->labelled_texts);
    sgm_status status = found != NULL ? choose_classes(c, found, &data->class_names) : sgm__last_failure();
    sgm_text_classes_free(found);
    return status;
}

/* --- the network --- */

/* Of `from`; of pairs, each of which is two texts or three, with the cost that compares them. */
static sgm_status complete_network(config *c)
{
    const data_config *data = &c->data.training;
    if (!is_from_model(c) || c->network != NULL)
        return SGM_OK;
    const int64_t group = data->text_pairs != NULL ? sgm_text_pair_size(data->text_pairs) : 2;
    sgm_pretrained *model = group > 0 ? text_data_model(c) : NULL;
    sgm_status status = model != NULL ? check_model(model, c->from) : sgm__last_failure();
    if (model == NULL && strstr(sgm_last_error(), "is not one of this architecture") != NULL)
        return sgm_fail(status,
                        "lines with %s are for encoders (BERT, RoBERTa, DistilBERT); '%s' says the next "
                        "token, which it learns of lines with messages, with prompt and completion, or with "
                        "text alone",
                        data->text_pairs != NULL ? "anchor and positive" : "a label", c->from);
    if (status == SGM_OK) {
        const char *network = sgm_pretrained_network(model);
        c->network = data->text_pairs == NULL
                         ? sgm__strdup(network)
                         : network_with_layer(network, group == 3 ? TRIPLE_COST : PAIR_COST);
        status = c->network != NULL ? SGM_OK : sgm__last_failure();
    }
    sgm_pretrained_free(model);
    return status;
}

sgm_status text_data_complete(config *c)
{
    if (!data_config_has_texts(&c->data.training))
        return SGM_OK;
    SGM_TRY(complete_classes(c));
    return complete_network(c);
}

/* --- the data --- */

/* What of a file is cut, and what it costs that texts are computed as if they were longer. */
static void tell(const data_config *data, const char *name, const sgm_text_counts *counts)
{
    const char *file = data->text_pairs != NULL ? data->text_pairs : data->labelled_texts;
    char room[32];
    if (counts->empty > 0)
        complain("warning: %s: %lld of %lld texts%s are empty, and are learnt like others; take these lines "
                 "out of %s, unless they mean something\n",
                 lines_place(name, file, room), (long long)counts->empty, (long long)counts->texts,
                 of_file(data), file);
    if (counts->cut > 0)
        complain("warning: %s: %lld of %lld texts%s are cut to %lld tokens; the longest has %lld: a longer "
                 "--context of 'sigma finetune', or window of a file, takes more of them\n",
                 lines_place(name, file, room), (long long)counts->cut, (long long)counts->texts,
                 of_file(data), (long long)data->window, (long long)counts->longest);
    else if (strcmp(name, "training") == 0 && 2 * counts->longest <= data->window)
        complain(
            "hint: the longest text of data.training%s has %lld tokens, and each is trained as one of %lld: "
            "a --context of fewer, or window of a file, is faster\n",
            isnan(data->begin) && isnan(data->share) ? "" : ", in the whole file,",
            (long long)counts->longest, (long long)data->window);
}

sgm_dataset *text_dataset(const data_group *group, const data_config *data, const char *name)
{
    sgm_text_counts counts = {0};
    sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(data->tokenizer);
    const char **classes = data->labelled_texts != NULL ? table_class_names(&group->training) : NULL;
    sgm_dataset *dataset = NULL;
    if (tokenizer != NULL && data->text_pairs != NULL)
        dataset = sgm_text_pair_dataset(name, tokenizer, data->text_pairs, .window = data->window,
                                        .counts = &counts);
    else if (tokenizer != NULL && classes != NULL)
        dataset = sgm_labelled_text_dataset(name, tokenizer, data->labelled_texts, .window = data->window,
                                            .classes = classes, .counts = &counts);
    if (dataset != NULL)
        tell(data, name, &counts);
    sgm__free(classes);
    sgm_pretrained_tokenizer_free(tokenizer);
    return dataset;
}
