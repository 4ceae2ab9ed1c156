/* `sigma serve`: predictions of a trained network over HTTP.
 *
 * The server is src/monitors/serve, with the rules of safety of the monitors' HTTP server (this machine
 * only, a token). A model of ONNX that becomes no network is run as it is. This file opens the checkpoint,
 * passes on what the run's configuration says about inputs and classes, prints the address and an example for
 * curl, and waits for a signal. With --openai the server is openai/. */
#include "monitors/serve/serve.h"
#include "cli.h"
#include "config/start/onnx_model.h"
#include "data/kinds/kind.h"
#include "monitors/serve/rows.h"
#include "openai/openai.h"
#include "text/json_text.h"
#include "texts/served.h"
#include "texts/texts.h"

#include <stdio.h>
#include <unistd.h>

static const char usage_text[] =
    "Usage: sigma serve CHECKPOINT|FOLDER|MODEL.onnx [--port PORT] [--token-file FILE] "
    "[--unknown=ignore|refuse]\n"
    "                   [--int8] [--openai [--tokenizer FILE]]\n\n"
    "Serves predictions of a trained network in JSON over HTTP, at this machine only, until Ctrl-C:\n\n"
    "  POST /api/predict  {\"input\": [EXAMPLE, ...]} -> {\"output\": [...], \"class\": [...], \"label\": "
    "[...]}\n"
    "                     lengths: [N, ...] where the input has some; labels: [...] of a network with ctc\n"
    "  GET /api/model     shapes, layers, classes, precision\n"
    "  GET /              a page to try it\n\n"
    "An example is a list of numbers, or of lists, of the network's input; they are scaled by\n"
    "input_range where the training data of the run were.\n"
    "Of a network that was trained on a table by its columns' names it is also an object, {\"age\": 3.5,\n"
    "\"town\": \"Bonn\"}, with null where there is no value; predicted numbers have the units of the table.\n"
    "To an encoder that 'sigma import' or 'sigma finetune' read with its tokenizer it is also a text,\n"
    "\"...\", or of a pair {\"text\": \"...\", \"pair\": \"...\"}; not to one that fills in masked words.\n"
    "MODEL.onnx has one input, and answers as 'sigma predict' does: 'class' is what the model tells.\n"
    "To a network that was trained on folders of files the body is such a file (image/png, image/jpeg,\n"
    "audio/wav, audio/flac, text/plain), or a form with files (curl -F picture=@cat.png).\n\n"
    "With --openai a network that continues or embeds texts answers what programs for OpenAI's API ask:\n\n"
    "  POST /v1/chat/completions, /v1/completions, /v1/embeddings; GET /v1/models\n\n"
    "It prints an address for one click, and a line for curl: both have the token, without which every\n"
    "request is refused.\n\n"
    "  --port PORT        another one than the first free one from 8080 on\n"
    "  --token-file FILE  the token is the first line of a file (16 or more of A-Z a-z 0-9 - _); else a new\n"
    "                     one each time\n"
    "  --unknown=ignore   of a table by names: categories that were in no training row count as null; if "
    "not\n"
    "                     given, --unknown=refuse, they are an error\n"
    "  --int8             dynamic quantization: weights of dense and recurrent layers and of attention are\n"
    "                     rounded to 8 bits in advance, their inputs while they are computed: faster;\n"
    "                     'sigma eval --int8' tells the error\n"
    "  --openai           answer as OpenAI's API does: the address that is printed is the base_url of "
    "client\n"
    "                     programs, the token their api_key\n"
    "  --tokenizer FILE   with --openai: as 'sigma generate' takes it\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* A token file is one line. */
#define LONGEST_TOKEN_FILE 4096

/* The first line of a file; sgm__free. NULL: an error says why. The server checks the characters. */
static char *read_token(const char *path)
{
    char *text;
    size_t length;
    if (sgm__file_read(path, LONGEST_TOKEN_FILE, &text, &length) != SGM_OK)
        return NULL;
    text[strcspn(text, "\r\n")] = '\0';
    return text;
}

/* An example of zeros for a shell, inside double quotes. Longer ones are made by the shell itself (yes,
 * head, paste), so that the line stays short. sgm__free. */
static char *example_of_zeros(int64_t elements)
{
    sgm__text text = {0};
    if (elements > 32)
        sgm__text_append(&text, "$(yes 0 | head -n %lld | paste -sd, -)", (long long)elements);
    for (int64_t i = 0; i < elements && elements <= 32; i++)
        sgm__text_append(&text, "%s0", i > 0 ? "," : "");
    return sgm__text_take(&text);
}

/* The body of a request for a shell, with its quotes: a row without values where the network was trained on a
 * table by its columns' names, a text where it takes texts, else an example of zeros. sgm__free. */
static char *example_body(const sgm__serve *serve, const sgm_pipeline *pipeline)
{
    if (sgm__serve_takes_texts(serve))
        return sgm__strdup("'{\"input\": [\"Hello\"]}'");
    if (pipeline == NULL) {
        char *zeros = example_of_zeros(sgm__serve_elements(serve));
        char *body = zeros != NULL ? sgm__format("\"{\\\"input\\\": [[%s]]}\"", zeros) : NULL;
        sgm__free(zeros);
        return body;
    }
    json_t *row = sgm__serve_empty_row(pipeline);
    char *text = sgm__json_text(row);
    sgm__text body = {0};
    sgm__text_append(&body, "'{\"input\": [");
    for (const char *c = text; c != NULL && *c != '\0'; c++)
        sgm__text_append(&body, *c == '\'' ? "'\\''" : "%c", *c);
    sgm__text_append(&body, "]}'");
    json_decref(row);
    sgm__free(text);
    return sgm__text_take(&body);
}

/* Type and body of a request for curl: a file where the network takes files, else JSON. sgm__free. */
static char *example_arguments(const sgm__serve *serve, const sgm_pipeline *pipeline)
{
    if (pipeline != NULL && strcmp(sgm_pipeline_kind(pipeline), "table") != 0) {
        const sgm__file_names *names = sgm__file_kind_find(sgm_pipeline_kind(pipeline))->names;
        return sgm__format("-F %s=@%s", names->one, names->question);
    }
    char *body = example_body(serve, pipeline);
    char *words = body != NULL ? sgm__format("-H 'Content-Type: application/json' -d %s", body) : NULL;
    sgm__free(body);
    return words;
}

/* The end, where a request still computes with the network: what it uses must not be freed. */
_Noreturn static void leave(void)
{
    fflush(NULL);
    _exit(CLI_OK);
}

/* Signals are blocked before the server starts its threads, and waited for. The token for curl is cut out
 * of the address. */
static int serve_until_signal(const sgm__serve_options *options)
{
    signals_hold();
    sgm__serve *serve = sgm__serve_start(options);
    if (serve == NULL)
        return report_error("serve", CLI_FAILED);
    const char *url = sgm__serve_url(serve), *token = strstr(url, "token=");
    char *example = example_arguments(
        serve, options->trainer != NULL ? sgm_trainer_get_pipeline(options->trainer) : NULL);
    printf("serve: %s\n"
           "curl -H 'Authorization: Bearer %s' %s http://127.0.0.1:%d/api/predict\n"
           "Ctrl-C ends it.\n",
           url, token != NULL ? token + strlen("token=") : "TOKEN", example != NULL ? example : "-d BODY",
           sgm__serve_port(serve));
    sgm__free(example);
    fflush(stdout);
    signals_wait();
    if (!sgm__serve_stop(serve))
        leave();
    return CLI_OK;
}

/* What a client is to be told, with a request for curl. */
static void print_openai(const openai *server)
{
    const char *what = openai_embeds(server) ? "embeddings" : "completions";
    const char *body = openai_embeds(server) ? "\"input\": \"Hello\"" : "\"prompt\": \"Hello\"";
    printf("serve: %s, model %s\n"
           "curl -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{%s}' %s/%s\n"
           "Ctrl-C ends it.\n",
           openai_url(server), openai_model(server), openai_token(server), body, openai_url(server), what);
    fflush(stdout);
}

static int serve_openai_until_signal(const openai_options *options)
{
    signals_hold();
    openai *server = openai_start(options);
    if (server == NULL)
        return report_error("serve", CLI_FAILED);
    print_openai(server);
    signals_wait();
    if (!openai_stop(server))
        leave();
    return CLI_OK;
}

/* Names of the classes, where the pipeline or the run's training data have some; else NULL. They live as long
 * as *dataset, which the caller frees. */
static const char *const *class_names(saved *s, sgm_dataset **dataset)
{
    *dataset = NULL;
    if (s->c.data.pipeline != NULL)
        return sgm_pipeline_classes(s->c.data.pipeline);
    const bool has_classes =
        s->has_config && s->c.data.training.chats == NULL; /* whose reading warns of lines */
    *dataset = has_classes ? saved_dataset(s, "training") : NULL;
    return *dataset != NULL ? sgm_dataset_get_class_names(*dataset) : NULL;
}

/* What was asked for. */
typedef struct serving {
    const char *checkpoint, *tokenizer;
    int64_t port;
    char *token; /* NULL: a random one */
    bool ignores_unknown, int8, openai;
} serving;

static int serve_predictions(saved *s, const serving *asked, bool takes_texts)
{
    served_texts texts = {0};
    if (takes_texts && served_texts_open(&texts, s) != SGM_OK) {
        served_texts_close(&texts);
        return report_error("serve", CLI_FAILED);
    }
    sgm_dataset *dataset = NULL;
    const data_config *data = &s->c.data.training;
    /* Labels are known without their texts, which need not be there. */
    const char **labels = data->labelled_texts != NULL ? table_class_names(data) : NULL;
    sgm__serve_options options = {.trainer = s->trainer,
                                  .network = s->network,
                                  .precision = config_precision(&s->c),
                                  .classes = labels != NULL          ? labels
                                             : texts.classes != NULL ? (const char *const *)texts.classes
                                                                     : class_names(s, &dataset),
                                  .texts = served_texts_hook(&texts),
                                  .ignores_unknown = asked->ignores_unknown,
                                  .port = (int)asked->port,
                                  .token = asked->token};
    /* Requests have numbers as the run's files had them, and the server scales them. */
    options.scales = saved_range(s, &options.minimum, &options.maximum);
    int code = serve_until_signal(&options);
    sgm_dataset_free(dataset);
    sgm__free(labels);
    served_texts_close(&texts);
    return code;
}

/* The server's predictions of a model of ONNX. */
static sgm_tensor *predict_onnx(void *user, const sgm_tensor *examples, const sgm_tensor **classes)
{
    onnx_model *m = user;
    sgm_tensor *predictions = onnx_model_predict(m, examples);
    *classes = m->classes;
    return predictions;
}

/* The names of classes that a model has, NULL behind the last; sgm__free. NULL: out of memory. */
static const char **onnx_class_names(const onnx_model *m)
{
    size_t count = 0;
    while (sgm_onnx_class_at(m->onnx, count) != NULL)
        count++;
    const char **names = sgm__calloc(count + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < count; i++)
        names[i] = sgm_onnx_class_at(m->onnx, i);
    return names;
}

static sgm_status open_onnx(onnx_model *m, const serving *asked)
{
    SGM_TRY(onnx_model_open(m, asked->checkpoint, asked->int8));
    if (m->signature.inputs == 1)
        return SGM_OK;
    char *inputs = onnx_model_inputs(m);
    sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "'%s' has %zu inputs (%s), and a server takes the examples of one; 'sigma predict %s FILE.npz' takes "
        "an array for each",
        asked->checkpoint, m->signature.inputs, inputs != NULL ? inputs : "", asked->checkpoint);
    sgm__free(inputs);
    return SGM_ERROR_UNSUPPORTED;
}

/* Serves a model of ONNX as it is, where the newest error says why it becomes no network; returns an exit
 * code.
 */
static int serve_onnx(const serving *asked)
{
    onnx_model m;
    sgm_log_message(SGM_LOG_INFO, "serve", "runs the model as it is: %s", sgm_last_error());
    sgm_status status = open_onnx(&m, asked);
    const char **names = status == SGM_OK ? onnx_class_names(&m) : NULL;
    char *about = sgm__format("ONNX: %s", asked->checkpoint);
    int code = CLI_FAILED;
    if (names == NULL || about == NULL)
        report_error("serve", CLI_FAILED);
    else
        code = serve_until_signal(&(sgm__serve_options){
            .model = {.predict = predict_onnx, .user = &m, .example = m.signature.example},
            .network = about,
            .precision = SGM_FLOAT32,
            .classes = names,
            .port = (int)asked->port,
            .token = asked->token});
    sgm__free(about);
    sgm__free(names);
    onnx_model_close(&m);
    return code;
}

static int serve_openai(saved *s, const serving *asked)
{
    return serve_openai_until_signal(&(openai_options){.saved = s,
                                                       .path = asked->checkpoint,
                                                       .tokenizer = asked->tokenizer,
                                                       .port = (int)asked->port,
                                                       .token = asked->token});
}

/* Probabilities of the next token are hardly what is wanted of a model that continues texts. */
static void hint_openai(const char *path)
{
    const char *purpose = purpose_of(path);
    if (purpose != NULL && purpose_is_to_continue(purpose))
        complain("hint: '%s' continues texts; 'sigma serve %s --openai' answers with texts, these answers "
                 "are probabilities of tokens\n",
                 path, path);
}

/* Opens the network and serves it; returns an exit code. */
static int serve(const serving *asked)
{
    saved s;
    bool takes_texts = false;
    sgm_status status = saved_describe(&s, asked->checkpoint);
    if (status != SGM_OK && !asked->openai && ends_with(asked->checkpoint, ".onnx"))
        return serve_onnx(asked);
    if (status == SGM_OK && !asked->openai)
        status = served_texts_find(&s, &takes_texts);
    if (status == SGM_OK && !asked->openai)
        hint_openai(asked->checkpoint);
    if (status == SGM_OK)
        status = saved_load(&s);
    if (status == SGM_OK)
        status = saved_infer(&s, asked->int8);
    int code = status != SGM_OK ? report_error("serve", CLI_FAILED)
               : asked->openai  ? serve_openai(&s, asked)
                                : serve_predictions(&s, asked, takes_texts);
    saved_close(&s);
    return code;
}

int serve_run(int argc, char **argv)
{
    const char *token_file = NULL, *unknown = NULL;
    serving asked = {0};
    const argument_rule rules[] = {
        {"--port", ARGUMENT_PORT, &asked.port},     {"--token-file", ARGUMENT_TEXT, &token_file},
        {"--unknown", ARGUMENT_TEXT, &unknown},     {"--int8", ARGUMENT_FLAG, &asked.int8},
        {"--openai", ARGUMENT_FLAG, &asked.openai}, {"--tokenizer", ARGUMENT_TEXT, &asked.tokenizer}};
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code) &&
        unknown_is_ignored("serve", unknown, &asked.ignores_unknown, &code)) {
        asked.checkpoint = a.word_count == 1 ? a.words[0] : NULL;
        if (a.word_count != 1)
            code = usage_error("serve", "expected one checkpoint or folder, got %zu", a.word_count);
        else if (asked.tokenizer != NULL && !asked.openai)
            code = usage_error("serve", "--tokenizer: expected with --openai only");
        else if (asked.openai && unknown != NULL)
            code = usage_error("serve", "--unknown: expected without --openai only");
        else if (token_file != NULL && (asked.token = read_token(token_file)) == NULL)
            code = report_error("serve", CLI_FAILED);
        else
            code = serve(&asked);
        sgm__free(asked.token);
    }
    arguments_free(&a);
    return code;
}
