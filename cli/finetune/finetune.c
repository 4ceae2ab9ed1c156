/* `sigma finetune`: a training on chats, on texts with classes or on pairs of texts that goes on from a model
 * of others, or from a run.
 *
 * The command writes a configuration (describe) and trains it as `sigma train` does: the run keeps it as
 * config.yaml, which trains the same again. */
#include "finetune/finetune.h"
#include "config/config_checks.h"
#include "text/json_text.h"
#include "train.h"

#include <sigma/models.h>
#include <stdio.h>

/* Learning rates of AdamW: of all parameters, and of adapters, which begin with nothing. */
#define LEARNING_RATE 2e-5
#define LEARNING_RATE_OF_ADAPTERS 2e-4
#define WARM_UP 0.1 /* epochs */
#define RANK 8
#define EPOCHS 3
#define BATCH 4
#define BATCH_OF_ENCODERS 16 /* texts, or pairs, each of which is two texts or three */
/* Of an encoder with classes: the matrices of its blocks, and the new layers, which adapters would leave as
 * they began. */
#define MATRICES_OF_ENCODERS "attention* hidden* projection*"
#define NEW_LAYERS "pooler.* classifier.*"
#define FILE_NAME "finetune.yaml" /* of the configuration; the run is named after it */

static const char usage_text[] =
    "Usage: sigma finetune MODEL --data FILE.jsonl [KEY=VALUE ...] [--validation FILE|SHARE] [--into DIR]\n"
    "                      [--epochs N] [--learning-rate R] [--batch N] [--context N] [--lora[=RANK]]\n"
    "                      [--int8] [--packing] [--sample PROMPT ...] [--chat] [--tokenizer FILE] "
    "[--resume]\n"
    "                      [--quiet] [--monitor[=PORT]]\n\n"
    "Trains a model on the lines of FILE.jsonl. MODEL is a folder of transformers, a file "
    "MODEL.gguf,\n"
    "what 'sigma import' wrote, or a run. Of a model that says the next token each line is one of\n\n"
    "  {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}, {\"role\": \"assistant\", \"content\": "
    "\"...\"}]}\n"
    "  {\"prompt\": \"...\", \"completion\": \"...\"}\n"
    "  {\"text\": \"...\"}\n\n"
    "Answers, completions and texts are learnt; what is asked is only read. Of an encoder (BERT, MiniLM,\n"
    "RoBERTa, DistilBERT) all lines are one of\n\n"
    "  {\"text\": \"...\", \"label\": \"...\"}                          classes, by a new last layer\n"
    "  {\"text\": \"...\", \"pair\": \"...\", \"label\": \"...\"}           the same of two texts each\n"
    "  {\"anchor\": \"...\", \"positive\": \"...\"}                    vectors: a text is to be near its "
    "like,\n"
    "  {\"anchor\": \"...\", \"positive\": \"...\", \"negative\": \"...\"}  and far from all others\n\n"
    "The run keeps the configuration as config.yaml; KEY=VALUE changes it, with the keys of\n"
    "'sigma train --help'.\n\n"
    "  --data FILE          what to learn\n"
    "  --validation FILE    measures the loss on other lines after each epoch; or on a share of the last "
    "lines "
    "of\n"
    "                       the data, such as 0.1, which are not trained on then\n"
    "  --into DIR           the folder of the run (default runs/NAME-TIME)\n"
    "  --epochs N           passes over the data; 3 if not given\n"
    "  --learning-rate R    the largest, to which it rises in a tenth of an epoch, to fall as a cosine; 2e-5 "
    "if\n"
    "                       not given, 2e-4 of adapters\n"
    "  --batch N            examples of an update; 4 if not given, of an encoder 16 texts or pairs\n"
    "  --context N          tokens of an example; if not given, the model's, 1024 at most, or the run's\n"
    "  --lora[=RANK]        trains low-rank adapters of all matrices, of rank 8 if not given; the model "
    "stays "
    "as it\n"
    "                       is, but for new layers. A run with adapters is trained on with these, with or "
    "without\n"
    "                       the option. The key adapters says more:\n"
    "                       'adapters=lora(16, on=\"*attention*\")'\n"
    "  --int8               with --lora: the matrices that are adapted are kept as 8 bits, a quarter of the "
    "memory, and\n"
    "                       dequantized in each product\n"
    "  --packing            several short examples in one row of the context, which do not see each other: "
    "--batch\n"
    "                       counts rows then\n"
    "  --sample PROMPT      after each epoch, and its validation, goes on with this text: in the log, on the "
    "page "
    "and in\n"
    "                       samples.jsonl of the run; may be given several times. The key sample says more\n"
    "  --chat               of --sample: the prompts are what a user says, in the model's template\n"
    "  --tokenizer FILE     tokenizer.json, vocab.json or vocab.txt, or a folder with one; the model's if "
    "not "
    "given\n"
    "  --resume             go on from the checkpoint in DIR: options that are left out, also --data, are "
    "those of\n"
    "                       the run; which lines are held out for validation cannot change\n"
    "  --quiet              results only, no progress\n"
    "  --monitor[=PORT]     watch and steer it in a browser: prints the address\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted (a checkpoint was "
    "written,\nif training had begun).\n";

const char *finetune_key(const finetuning *f)
{
    return f->lines == SGM_TEXT_LINES_LABELLED ? "labelled_texts"
           : f->lines == SGM_TEXT_LINES_PAIRS  ? "text_pairs"
                                               : "chats";
}

bool finetune_is_of_encoder(const finetuning *f)
{
    return f->lines != SGM_TEXT_LINES_OTHERS;
}

/* The network of a run for other steps of its input, with which that of a model begins; NULL and an error on
 * failure. */
static json_t *network_of_run(const finetuning *f)
{
    static const char input[] = "input(";
    char *checkpoint = saved_path(f->model);
    char *notation = checkpoint != NULL ? sgm_checkpoint_network(checkpoint) : NULL;
    json_t *network = NULL;
    if (notation != NULL && strncmp(notation, input, strlen(input)) != 0) {
        sgm_fail(SGM_ERROR_UNSUPPORTED,
                 "--context: the network of '%s' begins with no input(STEPS), so it keeps its context",
                 f->model);
    } else if (notation != NULL) {
        const char *behind = notation + strlen(input);
        network = json_sprintf("%s%lld%s", input, (long long)f->context, behind + strcspn(behind, ",)"));
    }
    sgm_string_free(notation);
    sgm__free(checkpoint);
    return network;
}

/* The network of a model for another context, which is taken; NULL and an error on failure. A run keeps its
 * own, which may have been changed. */
static json_t *network_for(const finetuning *f)
{
    const bool is_run = !is_model_of_others(f->model);
    if (is_run && !is_run_of_model(f->model)) {
        sgm_fail(
            SGM_ERROR_ARGUMENT,
            "--context: '%s' is no run of a model that was imported, whose longest context would be known: "
            "'network' of a file with 'from: %s' says another one",
            f->model, f->model);
        return NULL;
    }
    sgm_pretrained *model = sgm_pretrained_open(f->model, .context = f->context);
    json_t *network = model == NULL ? NULL
                      : is_run      ? network_of_run(f)
                                    : json_string(sgm_pretrained_network(model));
    sgm_pretrained_free(model);
    return network;
}

/* The section `data`. A share of the lines, at their end, is left to the validation. */
static json_t *data_of(const finetuning *f)
{
    double share = 0;
    const char *key = finetune_key(f);
    const int64_t batch = f->batch > 0 ? f->batch : finetune_is_of_encoder(f) ? BATCH_OF_ENCODERS : BATCH;
    json_t *training = json_pack("{s:s}", key, f->data), *validation = NULL;
    if (f->packing)
        json_object_set_new(training, "packing", json_true());
    if (f->tokenizer != NULL)
        json_object_set_new(training, "tokenizer", json_string(f->tokenizer));
    if (finetune_is_of_encoder(f) && f->context > 0)
        json_object_set_new(training, "window", json_integer(f->context));
    if (f->validation != NULL && sgm__parse_double(f->validation, &share)) {
        json_object_set_new(training, "share", json_real(1 - share));
        validation = json_pack("{s:s, s:f}", key, f->data, "begin", 1 - share);
    } else if (f->validation != NULL) {
        validation = json_pack("{s:s}", key, f->validation);
    }
    return json_pack("{s:o, s:o*, s:I}", "training", training, "validation", validation, "batch",
                     (json_int_t)(batch * f->group));
}

static json_t *optimiser_of(const finetuning *f)
{
    double usual = f->lora != NULL || f->is_adapted ? LEARNING_RATE_OF_ADAPTERS : LEARNING_RATE;
    return json_pack("{s:s, s:f, s:f, s:{s:s, s:f}}", "type", "adamw", "learning_rate",
                     f->learning_rate > 0 ? f->learning_rate : usual, "clip_norm", 1.0, "schedule", "kind",
                     "cosine", "warm_up", WARM_UP);
}

/* The text of the adapters that --lora asks for; sgm__free. NULL: out of memory. */
static char *adapter_of(const finetuning *f)
{
    const bool trains_more = f->lines == SGM_TEXT_LINES_LABELLED;
    return sgm__format("lora(%lld, alpha=%lld%s%s)", (long long)f->rank, (long long)(2 * f->rank),
                       f->int8 ? ", quantize=int8" : "",
                       trains_more ? ", on=\"" MATRICES_OF_ENCODERS "\", train=\"" NEW_LAYERS "\"" : "");
}

/* The section `sample`; NULL: nothing is sampled. */
static json_t *sample_of(const finetuning *f)
{
    json_t *prompts = f->prompts.count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < f->prompts.count; i++)
        json_array_append_new(prompts, json_string(f->prompts.items[i]));
    return prompts != NULL ? json_pack("{s:o, s:b}", "prompts", prompts, "chat", f->chat) : NULL;
}

/* --- what the configuration says, in words of the command --- */

/* Keys that options are, where these were given. */
typedef struct option_key {
    const char *key, *option;
    bool is_given;
} option_key;

/* The option of the key that a message begins with; *length of it. NULL: none. */
static const char *option_of(const finetuning *f, const char *message, size_t *length)
{
    const option_key keys[] = {
        {"from", "the model", true},
        {"data.training", "--data", true},
        {"data.training.tokenizer", "--tokenizer", f->tokenizer != NULL},
        {"data.validation", "--validation", f->validation != NULL},
        {"data.batch", "--batch", f->batch > 0},
        {"epochs", "--epochs", f->epochs > 0},
        {"optimiser.learning_rate", "--learning-rate", f->learning_rate > 0},
        {"sample.prompts", "--sample", f->prompts.count > 0},
        {"sample", "--sample", f->prompts.count > 0},
        {"adapters", "--lora", f->lora != NULL},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        *length = strlen(keys[i].key);
        if (keys[i].is_given && strncmp(message, keys[i].key, *length) == 0 &&
            (message[*length] == ':' || message[*length] == '\0'))
            return keys[i].option;
    }
    return NULL;
}

/* A place, or a message behind one, that begins with the file that nobody wrote, FILE:1:80: KEY, without it
 * and with the option that KEY is; sgm__free. NULL: it begins with something else, or out of memory. */
static char *with_option(const finetuning *f, const char *text)
{
    size_t length;
    const char *behind = strncmp(text, FILE_NAME, strlen(FILE_NAME)) == 0 ? strstr(text, ": ") : NULL;
    if (behind == NULL)
        return NULL;
    behind += 2;
    const char *named = option_of(f, behind, &length);
    return named != NULL ? sgm__format("%s%s", named, behind + length) : sgm__strdup(behind);
}

/* Places that messages of the training will have. */
static void name_places(const finetuning *f, config *c)
{
    for (size_t i = 0; i < c->places.count; i++) {
        char *place = with_option(f, c->places.values[i]);
        if (place != NULL) {
            sgm__free(c->places.values[i]);
            c->places.values[i] = place;
        }
    }
}

/* What is wrong with files has another exit code than what is wrong with the configuration. */
static int fail_configuration(const finetuning *f, sgm_status status)
{
    const bool is_of_file =
        status == SGM_ERROR_FILE || status == SGM_ERROR_NOT_FOUND || status == SGM_ERROR_FORMAT;
    char *message = with_option(f, sgm_last_error());
    if (message != NULL)
        sgm_fail(status, "%s", message);
    const bool is_of_argument = strncmp(sgm_last_error(), "argument '", 10) == 0;
    sgm__free(message);
    return report_error("finetune", is_of_file && !is_of_argument ? CLI_FAILED : CLI_USAGE);
}

/* The file that does the same. JSON is YAML, and quotes every name as it is. */
static sgm_status describe(const finetuning *f, train_description *description)
{
    const bool has_network = f->context > 0 && !finetune_is_of_encoder(f);
    json_t *network = has_network ? network_for(f) : NULL;
    if (has_network && network == NULL)
        return sgm__last_failure();
    json_t *root = json_pack("{s:s, s:o*, s:o, s:o, s:o*, s:I}", "from", f->model, "network", network, "data",
                             data_of(f), "optimiser", optimiser_of(f), "sample", sample_of(f), "epochs",
                             (json_int_t)(f->epochs > 0 ? f->epochs : EPOCHS));
    if (root != NULL && f->lora != NULL && !f->is_adapted) {
        char *adapter = adapter_of(f);
        json_object_set_new(root, "adapters", json_pack("[s]", adapter != NULL ? adapter : ""));
        sgm__free(adapter);
    }
    description->file = sgm__strdup(FILE_NAME);
    description->text = root != NULL ? sgm__json_text(root) : NULL;
    json_decref(root);
    if (root == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected paths in UTF-8");
    return description->file != NULL && description->text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Whether a key of the file is among what was given: adapters=... */
static bool has_key(const arguments *a, const char *key)
{
    const size_t length = strlen(key);
    for (size_t i = 0; i < a->word_count; i++)
        if (strncmp(a->words[i], key, length) == 0 && a->words[i][length] == '=')
            return true;
    return false;
}

/* Of what was given, those that stand behind others count. --into is the key `folder`, as --folder of
 * `sigma train`. NULL: out of memory. */
static const char **overrides_of(const arguments *a, const text_list *own, const char *folder, size_t *count)
{
    const char **all = sgm__calloc(own->count + a->word_count + 1, sizeof *all);
    *count = 0;
    for (size_t i = 0; i < own->count && all != NULL; i++)
        all[(*count)++] = own->items[i];
    for (size_t i = 1; i < a->word_count && all != NULL; i++)
        all[(*count)++] = a->words[i];
    if (folder != NULL && all != NULL)
        all[(*count)++] = folder;
    return all;
}

/* Loads what was described, and trains it. */
static int train_described(const arguments *a, const finetuning *f, const train_arguments *given,
                           const train_description *description, const text_list *own)
{
    config c;
    sgm_metrics validation;
    size_t count;
    char *folder = given->folder != NULL ? sgm__format("folder=%s", given->folder) : NULL;
    const char **overrides = overrides_of(a, own, folder, &count);
    sgm_status status =
        overrides != NULL ? description_load(&c, description, overrides, count) : sgm__last_failure();
    sgm__free(overrides);
    sgm__free(folder);
    if (status != SGM_OK)
        return fail_configuration(f, status);
    name_places(f, &c);
    int code = train_configuration(&c, given, &validation);
    config_free(&c);
    return code;
}

/* What begins the run's training again, but for its folder; NULL: out of memory. */
static char *command_of(const finetuning *f)
{
    return f->data != NULL ? sgm__format("finetune %s --data %s", f->model, f->data)
                           : sgm__format("finetune %s", f->model);
}

static int train(const arguments *a, finetuning *f, train_arguments *given)
{
    train_description description = {0};
    text_list own = {0};
    char *command = command_of(f);
    const bool goes_on = given->resume && has_file(given->folder, "checkpoint.safetensors") &&
                         has_file(given->folder, "config.yaml");
    const bool names_tokenizer = f->tokenizer != NULL || has_key(a, "data.training.tokenizer");
    sgm_status status = command == NULL ? sgm__last_failure()
                        : goes_on       ? finetune_look_at_run(f, given->folder)
                                        : finetune_look(f, names_tokenizer);
    if (status == SGM_OK && !goes_on && f->data == NULL)
        status = sgm_fail(SGM_ERROR_ARGUMENT,
                          "'%s' has no checkpoint to go on from, so that the training begins anew: expected "
                          "data to learn, --data FILE.jsonl",
                          given->folder);
    if (status == SGM_OK)
        status = goes_on ? finetune_go_on(f, given->folder, &description, &own) : describe(f, &description);
    given->begun_by = command;
    int code =
        status == SGM_OK ? train_described(a, f, given, &description, &own) : fail_configuration(f, status);
    text_list_clear(&own);
    description_free(&description);
    sgm__free(command);
    return code;
}

static bool check_prompts(const argument_texts *prompts)
{
    for (size_t i = 0; i < prompts->count; i++)
        if (check_prompt(prompts->items[i]) != SGM_OK) {
            usage_error("finetune", "--sample: %s", sgm_last_error());
            return false;
        }
    return true;
}

/* The first word that is a whole number, as of "--lora 4"; NULL: none. */
static const char *number_among(const arguments *a)
{
    int64_t number;
    for (size_t i = 0; i < a->word_count; i++)
        if (sgm__parse_int64(a->words[i], &number))
            return a->words[i];
    return NULL;
}

/* False: the command ends with *code. */
static bool check(const arguments *a, finetuning *f, const train_arguments *given, int *code)
{
    int64_t port;
    double share;
    const char *rank;
    *code = CLI_USAGE;
    if (a->word_count == 0)
        usage_error("finetune", "expected a model: a folder of transformers, or a run");
    else if (f->data == NULL && !given->resume)
        usage_error("finetune", "expected data to learn: --data FILE.jsonl");
    else if (f->validation != NULL && sgm__parse_double(f->validation, &share) && !(share > 0 && share < 1))
        usage_error("finetune", "--validation: expected a file, or a share between 0 and 1, got '%s'",
                    f->validation);
    else if (f->lora != NULL && f->lora[0] != '\0' && (!sgm__parse_int64(f->lora, &f->rank) || f->rank < 1))
        usage_error("finetune", "--lora: expected a rank of at least 1, got '%s'", f->lora);
    else if (f->int8 && f->lora == NULL)
        usage_error("finetune",
                    "--int8: expected with --lora only: what is kept as 8 bits is not trained itself");
    else if (f->lora != NULL && has_key(a, "adapters"))
        usage_error("finetune",
                    "--lora%s: expected without the key adapters, which says all of it: "
                    "'adapters=lora(%lld, alpha=%lld%s)'",
                    f->int8 ? ", --int8" : "", (long long)f->rank, (long long)(2 * f->rank),
                    f->int8 ? ", quantize=int8" : "");
    else if (f->lora != NULL && f->lora[0] == '\0' && (rank = number_among(a)) != NULL)
        usage_error("finetune", "--lora takes its rank behind '=': --lora=%s", rank);
    else if (given->monitor != NULL && given->monitor[0] != '\0' && !parse_port(given->monitor, &port))
        usage_error("finetune", "--monitor: expected a port from 1 to 65535, got '%s'", given->monitor);
    else if (f->chat && f->prompts.count == 0)
        usage_error("finetune", "--chat: expected with --sample only");
    else if (given->resume && given->folder == NULL)
        usage_error("finetune", "--resume goes on in the folder of --into, which is missing");
    else if (given->resume && !sgm__is_folder(given->folder))
        usage_error("finetune",
                    "--resume: there is no folder '%s' of a run; without --resume one begins there",
                    given->folder);
    else if (check_prompts(&f->prompts))
        *code = CLI_OK;
    return *code == CLI_OK;
}

int finetune_run(int argc, char **argv)
{
    finetuning f = {.rank = RANK, .group = 1};
    train_arguments given = {.command = "finetune"};
    const argument_rule rules[] = {
        {"--data", ARGUMENT_TEXT, &f.data},           {"--validation", ARGUMENT_TEXT, &f.validation},
        {"--tokenizer", ARGUMENT_TEXT, &f.tokenizer}, {"--into", ARGUMENT_TEXT, &given.folder},
        {"--epochs", ARGUMENT_COUNT, &f.epochs},      {"--learning-rate", ARGUMENT_NUMBER, &f.learning_rate},
        {"--batch", ARGUMENT_COUNT, &f.batch},        {"--context", ARGUMENT_COUNT, &f.context},
        {"--lora", ARGUMENT_MAYBE, &f.lora},          {"--int8", ARGUMENT_FLAG, &f.int8},
        {"--packing", ARGUMENT_FLAG, &f.packing},     {"--sample", ARGUMENT_TEXTS, &f.prompts},
        {"--chat", ARGUMENT_FLAG, &f.chat},           {"--resume", ARGUMENT_FLAG, &given.resume},
        {"--quiet", ARGUMENT_FLAG, &given.quiet},     {"--monitor", ARGUMENT_MAYBE, &given.monitor},
    };
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code) && check(&a, &f, &given, &code)) {
        f.model = a.words[0];
        code = train(&a, &f, &given);
    }
    arguments_free(&a);
    return code;
}
