/* `sigma import`: a model of others becomes the folder of a run, which all other subcommands take.
 *
 * The reading is that of sigma_models. The folder is written under another name and renamed at the end, so
 * that there is a whole one or none. */
#include "cli.h"
#include <sigma/models.h>
#include <sigma/tokenizer.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage_text[] =
    "Usage: sigma import FOLDER|MODEL.gguf|MODEL.onnx [--into DIR] [--context N] [--task TASK]\n"
    "                    [--classes N] [--peft DIR]\n\n"
    "Reads a model as the library transformers keeps it, a folder with config.json and *.safetensors, as\n"
    "llama.cpp does, MODEL.gguf, or a file MODEL.onnx, says what it found, and writes the folder of a run:\n"
    "predict, eval, generate, serve, export and inspect take it, and a training begins from it with\n"
    "'from: DIR'. 'sigma export' writes such a model back: --hf, --gguf, --onnx.\n"
    "Nothing is fetched from a network.\n\n"
    "  --into DIR      the folder to make (default runs/NAME-TIME)\n"
    "  --context N     steps of a sequence (default: those of the model, at most 1024)\n"
    "  --task TASK     what it is for, where the folder leaves it open; of MODEL.onnx: classify, where its\n"
    "                  output is one of logits\n"
    "  --classes N     begins the last layer of a folder's model anew, for so many classes\n"
    "  --peft DIR      with adapters, as the library PEFT keeps them, and for the classes that they are "
    "for\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage.\n\nArchitectures: ";

/* Those of 'sigma finetune --lora', for the memory that they take. */
#define USUAL_ADAPTERS "lora(8)"

/* What was asked for, and what is made of it. */
typedef struct import {
    const char *path, *into;
    const char *task, *peft;
    int64_t context, classes;
    sgm_pretrained *model;
    config c;
    sgm_env *env;
    sgm_trainer *trainer;
} import;

/* The usage and the architectures; sgm_string_free. NULL: out of memory. */
static char *full_help(void)
{
    sgm__text out = {0};
    sgm__text_append(&out, "%s", usage_text);
    for (size_t i = 0; sgm_architecture_at(i) != NULL; i++)
        sgm__text_append(&out, "%s%s", i > 0 ? ", " : "", sgm_architecture_at(i));
    sgm__text_append(&out, "\n");
    return sgm__text_take(&out);
}

/* The last part of the path, in characters that a trainer's name may have; sgm__free. */
static char *name_of(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    char *name = sgm__strndup(path + start, end - start);
    for (char *c = name; c != NULL && *c != '\0'; c++)
        *c = sgm__is_alphanumeric(*c) || *c == '_' ? *c : '-';
    return name;
}

static sgm_status configure(import *m)
{
    const sgm_pretrained_info *info = sgm_pretrained_describe(m->model);
    char *base = name_of(m->path);
    char *name = base != NULL ? sgm__format("name=%s", base) : NULL;
    char *network = sgm__format("network=%s", sgm_pretrained_network(m->model));
    const char *overrides[] = {name, network, "precision=float64"};
    sgm_status status = name != NULL && network != NULL ? config_parse(&m->c, m->path, "{}", 2, overrides,
                                                                       info->precision == SGM_FLOAT64 ? 3 : 2)
                                                        : sgm__last_failure();
    sgm__free(network);
    sgm__free(name);
    sgm__free(base);
    return status;
}

/* What a step of training takes, of so many examples at a time; false and an error. */
static bool measure_training(import *m, int64_t batch, char text[32])
{
    sgm_program_memory memory;
    if (sgm_trainer_set_optimiser(m->trainer, sgm_adamw(.learning_rate = 0)) != SGM_OK ||
        sgm_trainer_memory(m->trainer, batch, &memory) != SGM_OK)
        return false;
    sgm_bytes_text((double)(memory.state + memory.arena + memory.constants), text, 32);
    return true;
}

/* Why it cannot be trained as it is, and what makes it so. */
static void tell_no_cost(const import *m)
{
    bool is_onnx = strcmp(sgm_pretrained_describe(m->model)->architecture, "onnx") == 0;
    printf("training: it has no cost to be trained by: %s\n",
           is_onnx
               ? "--task classify adds one, where its output is one of scores of classes; else write one, "
                 "such as mean_squared_error, at the end of its network"
               : "'sigma finetune' of texts adds one; else write one at the end of its network");
}

/* Of PEFT, or of a run that is imported again. */
static bool is_adapted(const import *m)
{
    char *notation = sgm_trainer_network(m->trainer);
    sgm_network *network = notation != NULL ? sgm_network_parse(notation) : NULL;
    const bool has_adapters = sgm_network_adapters(network) > 0;
    sgm_network_free(network);
    sgm_string_free(notation);
    return has_adapters;
}

/* Training needs an optimiser, and is measured with adapters, too: this comes after saving, as a run that is
 * imported has neither. */
static void tell_memory(import *m)
{
    char run[32], train[32], adapted[32];
    const sgm_pretrained_info *info = sgm_pretrained_describe(m->model);
    const int64_t number = info->precision == SGM_FLOAT64 ? 8 : 4;
    const bool has_adapters = is_adapted(m);
    printf("memory: %s for its parameters",
           sgm_bytes_text((double)((info->parameters + info->untrained) * number), run, sizeof run));
    bool has_cost = network_has_cost(m->c.network);
    /* Batch norms of one number for each channel need a second example. */
    int64_t batch = has_cost && measure_training(m, 1, train) ? 1 : 2;
    bool is_measured = has_cost && (batch == 1 || measure_training(m, batch, train));
    if (is_measured) {
        printf(", %s to train %s with adamw", train, has_adapters ? "its adapters" : "them");
        if (info->tokens > 0 && !has_adapters &&
            sgm_trainer_adapt(m->trainer, sgm_layer_parse(USUAL_ADAPTERS)) == SGM_OK &&
            measure_training(m, batch, adapted))
            printf(", %s to train " USUAL_ADAPTERS " instead", adapted);
        printf(batch == 1 ? ", one example at a time" : ", two examples at a time, as its batch norms need");
    }
    printf("\n");
    if (!has_cost)
        tell_no_cost(m);
    else if (!is_measured)
        printf("training: %s\n", sgm_last_error());
}

/* Of a model that says the next token: whether chats are read and learnt as they are. */
static void tell_chats(const sgm_pretrained_tokenizer *tokenizer)
{
    const char *family = sgm_pretrained_tokenizer_chat_family(tokenizer);
    if (family != NULL)
        printf("chat template: %s\n", family);
    else
        printf("chat template: %s; lines with prompt and completion are learnt, messages are not\n",
               sgm_pretrained_tokenizer_has_template(tokenizer) ? "not known" : "none");
}

/* NULL: there is none, or it cannot be read. The numbers are of use without texts, so that the latter does
 * not end the import. */
static sgm_pretrained_tokenizer *open_tokenizer(const sgm_pretrained_info *info)
{
    sgm_pretrained_tokenizer *tokenizer =
        info->tokenizer != NULL ? sgm_pretrained_tokenizer_open(info->tokenizer) : NULL;
    if (tokenizer == NULL && info->tokenizer != NULL)
        complain("warning: the tokenizer cannot be read: %s; the model is imported for numbers of tokens "
                 "only: generate, predict, serve and finetune will refuse texts\n",
                 sgm_last_error());
    return tokenizer;
}

static void tell_texts(const sgm_pretrained_info *info)
{
    const char *path = info->tokenizer != NULL ? info->tokenizer : "none is there";
    const char *slash = strrchr(path, '/');
    sgm_pretrained_tokenizer *tokenizer = open_tokenizer(info);
    const bool is_good = info->tokenizer == NULL || tokenizer != NULL;
    printf("context: %lld steps", (long long)info->context);
    if (info->longest > info->context)
        printf("; the model was trained for %lld, which --context chooses", (long long)info->longest);
    printf("\ntokens: %lld, tokenizer: %s%s\n", (long long)info->tokens, slash != NULL ? slash + 1 : path,
           is_good ? "" : ", which cannot be read: no texts");
    if (tokenizer != NULL && strcmp(info->task, "generate") == 0)
        tell_chats(tokenizer);
    sgm_pretrained_tokenizer_free(tokenizer);
}

static void tell_model(const import *m)
{
    const sgm_pretrained_info *info = sgm_pretrained_describe(m->model);
    printf("%s: %s, to %s\n", m->path, info->architecture, info->task);
    printf("parameters: %lld", (long long)info->parameters);
    if (info->untrained > 0)
        printf(", and %lld numbers that are not trained, such as means of batch norms",
               (long long)info->untrained);
    printf("\n");
    if (info->classes > 0)
        printf("classes: %lld\n", (long long)info->classes);
    if (info->height > 0)
        printf("pictures: %lld x %lld pixels\n", (long long)info->width, (long long)info->height);
    else if (info->context > 0)
        tell_texts(info);
}

/* Removes a folder with its files and the folders in it. */
static void remove_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        char *path = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0
                         ? sgm__format("%s/%s", folder, entry->d_name)
                         : NULL;
        if (path != NULL && unlink(path) != 0)
            remove_folder(path);
        sgm__free(path);
    }
    if (entries != NULL)
        closedir(entries);
    rmdir(folder);
}

/* Checkpoint, configuration, and what writes the model back. */
static sgm_status fill_folder(import *m, const char *folder)
{
    char *checkpoint = sgm__format("%s/checkpoint.safetensors", folder);
    sgm_status status = checkpoint != NULL ? sgm_pretrained_keep(m->model, folder) : sgm__last_failure();
    if (status == SGM_OK)
        status = save_text(folder, "config.yaml", config_text(&m->c));
    if (status == SGM_OK)
        status = sgm_trainer_save_parts(m->trainer, checkpoint,
                                        .parts = SGM_PART_NETWORK | SGM_PART_PARAMETERS | SGM_PART_SETTINGS);
    sgm__free(checkpoint);
    return status;
}

/* Before anything is read, which may take minutes. */
static sgm_status check_folder(const import *m)
{
    return m->into == NULL || access(m->into, F_OK) != 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FILE, "'%s' is there already; --into names another folder", m->into);
}

/* Makes the folder; one that has come meanwhile and is not empty is an error of rename. */
static sgm_status write_folder(import *m)
{
    const char *folder = m->into;
    char *partial = sgm__format("%s.partial", folder);
    if (partial == NULL)
        return sgm__last_failure();
    sgm_status status = sgm__make_folders(partial);
    if (status == SGM_OK) {
        status = fill_folder(m, partial);
        if (status == SGM_OK && rename(partial, folder) != 0)
            status = sgm_fail(SGM_ERROR_FILE, "cannot make '%s': %s", folder, sgm__errno_text(errno));
        if (status != SGM_OK)
            remove_folder(partial);
    }
    sgm__free(partial);
    return status;
}

/* Without --into: a new one in runs/, which is removed again so that it can be made at the end. */
static sgm_status choose_folder(import *m)
{
    if (m->into != NULL)
        return SGM_OK;
    SGM_TRY(train_new_folder(&m->c, "--into"));
    m->into = m->c.folder;
    rmdir(m->into);
    return SGM_OK;
}

/* The adapters are part of the network that config.yaml has. */
static sgm_status adapt(import *m)
{
    SGM_TRY(sgm_pretrained_adapt(m->model, m->trainer, m->peft));
    char *network = sgm_trainer_network(m->trainer);
    sgm__free(m->c.network);
    m->c.network = network != NULL ? sgm__strdup(network) : NULL;
    sgm_string_free(network);
    return m->c.network != NULL ? SGM_OK : sgm__last_failure();
}

static sgm_status load(import *m)
{
    m->model = sgm_pretrained_open(m->path, .context = m->context, .task = m->task, .classes = m->classes,
                                   .peft = m->peft);
    if (m->model == NULL)
        return sgm__last_failure();
    SGM_TRY(configure(m));
    m->env = experiment_env(&m->c);
    m->trainer = m->env != NULL ? sgm_trainer_create(m->env, m->c.name) : NULL;
    if (m->trainer == NULL)
        return sgm__last_failure();
    SGM_TRY(sgm_pretrained_load(m->model, m->trainer));
    if (m->peft != NULL)
        SGM_TRY(adapt(m));
    tell_model(m); /* once nothing can be wrong with the model any more */
    return SGM_OK;
}

static int import_model(import *m)
{
    sgm_status status = check_folder(m);
    if (status == SGM_OK)
        status = load(m);
    if (status == SGM_OK)
        status = choose_folder(m);
    if (status == SGM_OK)
        status = write_folder(m);
    if (status == SGM_OK) {
        tell_memory(m);
        printf("written: %s\n", m->into);
    }
    int code = status == SGM_OK ? CLI_OK : report_error("import", CLI_FAILED);
    sgm_env_free(m->env);
    sgm_pretrained_free(m->model);
    config_free(&m->c);
    return code;
}

int import_run(int argc, char **argv)
{
import m = {0 };
    const argument_rule rules[] = {{"--into", ARGUMENT_TEXT, &m.into},
                                   {"--context", ARGUMENT_COUNT, &m.context},
                                   {"--task", ARGUMENT_TEXT, &m.task},
                                   {"--classes", ARGUMENT_COUNT, &m.classes},
                                   {"--peft", ARGUMENT_TEXT, &m.peft}};
    char *help = full_help();
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = help};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        if (a.word_count != 1)
            code = usage_error("import", "expected the folder of one model");
        else {
            m.path = a.words[0];
            code = import_model(&m);
        }
    }
    arguments_free(&a);
    sgm_string_free(help);
    return code;
}
