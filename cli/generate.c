/* `sigma generate`: a trained network continues a text.
 *
 * The generator of the library (src/infer/generator.c) reads the text and draws tokens; this file opens
 * the checkpoint and the tokenizer that belongs to it, encodes the text, and prints each token as it is
 * drawn. With --numbers tokens are numbers on both sides and no tokenizer is needed. A model of others has
 * its own tokenizer, of <sigma/tokenizer.h>. */
#include "cli.h"

#include <sigma/tokenizer.h>
#include <stdio.h>

static const char usage_text[] =
    "Usage: sigma generate CHECKPOINT|FOLDER [--text TEXT] [--count N] [--seed N] [--tokenizer FILE]\n"
    "                      [--temperature T] [--top-k K] [--top-p P] [--min-p P] [--greedy]\n"
    "                      [--repetition-penalty P] [--chat] [--system TEXT] [--stop TEXT]\n"
    "                      [--numbers] [--int8]\n\n"
    "Continues a text: the network reads it, one of the tokens that may follow is drawn by their\n"
    "probabilities and read in turn. The same seed says the same. Takes networks whose input is a sequence\n"
    "of tokens and whose output is a probability for each, such as those of 'data: {text: FILE}'.\n"
    "A model of others also ends by itself, with the token that ends a text.\n\n"
    "  --text TEXT        the beginning; a line end if not given\n"
    "  --chat             TEXT is what a user says, and the answer is printed: the chat is written by the\n"
    "                     template of a model of others\n"
    "  --system TEXT      of --chat: what the assistant is told before\n"
    "  --count N          so many tokens more at most; 200 if not given\n"
    "  --stop TEXT        ends before this text\n"
    "  --temperature T    1 takes the probabilities as they are, less is surer, more is bolder\n"
    "  --top-k K          only the K likeliest tokens\n"
    "  --top-p P          only as many of the likeliest as have the probability P together\n"
    "  --min-p P          only tokens at least P times as likely as the likeliest\n"
    "  --repetition-penalty P\n"
    "                     logits of tokens that came already are divided by P if positive, multiplied by it\n"
    "                     if negative: above 1 against repetitions\n"
    "  --greedy           always the likeliest\n"
    "  --seed N           of what is drawn; 0 if not given\n"
    "  --tokenizer FILE   of 'sigma tokenize', or the folder of a model of others; that of the run's "
    "training\n"
    "                     data, of the model that 'sigma import' read, or bytes, if not given\n"
    "  --numbers          tokens are numbers, with spaces between them, in TEXT and in what is printed\n"
    "  --int8             dynamic quantization: weights of dense and recurrent layers and of attention are\n"
    "                     rounded to 8 bits in advance, their inputs while they are computed, so that a\n"
    "                     quarter of the bytes are read for a token; 'sigma eval --int8' tells the error\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* What was asked for, and what was opened for it. Numbers that are 0 stand for the library's default. */
typedef struct generation {
    saved s;
    const char *text, *system, *stop;
    char *tokenizer_path;
    sgm_tokenizer *tokenizer;         /* NULL: tokens are numbers, or those of a model of others */
    sgm_pretrained_tokenizer *others; /* of a model of others */
    sgm_pretrained_stream *stream;    /* what turns its tokens into text */
    int64_t end;                      /* its token that ends a text; -1: none */
    sgm__text held;                   /* with --stop: what may be its beginning */
    bool stopped;                     /* the text of --stop came */
    sgm_generator *generator;
    int64_t count, seed;
    double temperature, top_p, min_p, repetition_penalty;
    int64_t top_k;
    bool greedy, numbers, int8, chat;
} generation;

/* How much of the end of a text may be the beginning of `stop`. */
static size_t overlap(const sgm__text *text, const char *stop)
{
    size_t length = strlen(stop) - 1;
    length = length < text->length ? length : text->length;
    while (length > 0 && memcmp(text->data + text->length - length, stop, length) != 0)
        length--;
    return length;
}

/* Prints a text, of which with --stop what may be its beginning waits for more. False: that text has come,
 * the output is closed, or there is no memory. */
static bool say(generation *g, const char *text, size_t size)
{
    if (g->stop == NULL) {
        fwrite(text, 1, size, stdout);
    } else {
        sgm__text_append_bytes(&g->held, text, size);
        const char *found =
            g->held.length > 0 ? memmem(g->held.data, g->held.length, g->stop, strlen(g->stop)) : NULL;
        size_t ready =
            found != NULL ? (size_t)(found - g->held.data) : g->held.length - overlap(&g->held, g->stop);
        g->stopped = found != NULL;
        if (ready > 0) {
            fwrite(g->held.data, 1, ready, stdout);
            g->held.length -= ready;
            memmove(g->held.data, g->held.data + ready, g->held.length);
        }
    }
    fflush(stdout);
    return !g->stopped && !g->held.failed && ferror(stdout) == 0;
}

/* The generator's callback for each token. A token may be part of a character only, so bytes are written
 * as they are. A network may have more tokens than the tokenizer; those print nothing. False ends the
 * generation: at the end of a text, out of memory, or the output is closed. */
static bool print_token(void *user, int64_t token)
{
    generation *g = user;
    if (g->others != NULL) {
        const char *text = token != g->end ? sgm_pretrained_stream_next(g->stream, token) : NULL;
        return text != NULL && say(g, text, strlen(text));
    }
    if (g->tokenizer == NULL) {
        printf(" %lld", (long long)token);
        fflush(stdout);
        return ferror(stdout) == 0;
    }
    if (token >= sgm_tokenizer_vocabulary(g->tokenizer))
        return true;
    size_t size;
    char *bytes = sgm_tokenizer_decode(g->tokenizer, &token, 1, &size);
    bool goes_on = bytes != NULL && say(g, bytes, size);
    sgm_string_free(bytes);
    return goes_on;
}

/* Where the tokenizer of a model of others is: the folder of --tokenizer, or the one that 'sigma import'
 * kept, or that of the run's chats; sgm__free. NULL: there is none, or no memory. */
static char *folder_of_others(const generation *g)
{
    if (g->tokenizer_path != NULL)
        return has_tokenizer(g->tokenizer_path) ? sgm__strdup(g->tokenizer_path) : NULL;
    char *folder = saved_tokenizer(&g->s);
    return folder == NULL && g->s.has_config && g->s.c.data.training.chats != NULL
               ? sgm__strdup(g->s.c.data.training.tokenizer)
               : folder;
}

static sgm_status open_others(generation *g, const char *folder)
{
    g->others = sgm_pretrained_tokenizer_open(folder);
    if (g->others != NULL)
        g->stream = sgm_pretrained_stream_create(g->others, .skip_special = true);
    g->end = g->others != NULL ? sgm_pretrained_tokenizer_end(g->others) : -1;
    return g->stream != NULL ? SGM_OK : sgm__last_failure();
}

/* The tokenizer of --tokenizer, else that of the run's training data, else that of a model of others, else
 * bytes. One of ours must have as many tokens as the network knows (experiment_check_tokens), otherwise the
 * text would be nonsense. */
static sgm_status open_tokenizer(generation *g)
{
    if (g->numbers)
        return SGM_OK;
    if (g->tokenizer_path != NULL || !g->s.has_config || g->s.c.data.training.tokenizer == NULL ||
        g->s.c.data.training.chats != NULL) {
        char *folder = folder_of_others(g);
        sgm_status status = folder != NULL ? open_others(g, folder) : SGM_OK;
        sgm__free(folder);
        if (g->others != NULL || status != SGM_OK)
            return status;
    }
    data_config named = {.tokenizer = g->tokenizer_path};
    const data_config *data = g->tokenizer_path == NULL && g->s.has_config ? &g->s.c.data.training : &named;
    g->tokenizer = experiment_tokenizer(data);
    if (g->tokenizer == NULL)
        return sgm__last_failure();
    if (experiment_check_tokens(g->s.network, g->tokenizer, data->tokenizer) == SGM_OK)
        return SGM_OK;
    return sgm_fail(sgm_last_status(),
                    "%s; --tokenizer names another, --numbers takes and prints numbers of tokens",
                    sgm_last_error());
}

/* Numbers of --text as a list of tokens; NULL and an error if one is not whole. */
static sgm_tensor *read_numbers(const char *text)
{
    size_t count;
    char **words = sgm__words(text, &count);
    sgm_shape shape = sgm_shape_of((int64_t)count);
    sgm_tensor *tokens = words != NULL ? sgm_tensor_create(SGM_INT64, &shape) : NULL;
    for (size_t i = 0; i < count && tokens != NULL; i++)
        if (!sgm__parse_int64(words[i], (int64_t *)sgm_tensor_data(tokens) + i)) {
            sgm_fail(SGM_ERROR_ARGUMENT, "--text: expected whole numbers, got '%s'", words[i]);
            sgm_tensor_free(tokens);
            tokens = NULL;
        }
    sgm__free(words);
    return tokens;
}

/* The chat up to the beginning of the answer. */
static sgm_tensor *read_chat(const generation *g)
{
    const sgm_chat_message messages[] = {{"system", g->system}, {"user", g->text}};
    size_t first = g->system != NULL ? 0 : 1;
    if (g->others == NULL) {
        sgm_fail(SGM_ERROR_UNSUPPORTED,
                 "--chat is for models of others, whose tokenizers say how chats are written");
        return NULL;
    }
    char *text = sgm_pretrained_tokenizer_chat(g->others, messages + first, 2 - first, true);
    sgm_tensor *tokens =
        text != NULL ? sgm_pretrained_tokenizer_encode(g->others, text, strlen(text), .no_special = true)
                     : NULL;
    sgm_string_free(text);
    return tokens;
}

/* The tokens to begin with. Without a text it is a line end, or token 0. */
static sgm_tensor *read_beginning(const generation *g)
{
    if (g->chat)
        return read_chat(g);
    const char *text = g->text != NULL ? g->text : g->numbers ? "0" : "\n";
    if (g->others != NULL)
        return sgm_pretrained_tokenizer_encode(g->others, text, strlen(text));
    return g->numbers ? read_numbers(text) : sgm_tokenizer_encode(g->tokenizer, text, strlen(text));
}

/* Prints the beginning and generates. */
static sgm_status go_on(generation *g)
{
    sgm_tensor *begin = read_beginning(g);
    if (begin == NULL)
        return sgm__last_failure();
    if (g->text != NULL && !g->chat)
        fputs(g->text, stdout);
    sgm_status status = sgm_generator_generate(
        g->generator, sgm_tensor_const_data(begin), (size_t)sgm_tensor_shape(begin)->dims[0], NULL,
        (size_t)g->count,
        SGM_GENERATION(.seed = (uint64_t)g->seed, .temperature = g->temperature, .top_k = g->top_k,
                       .top_p = g->top_p, .min_p = g->min_p, .repetition_penalty = g->repetition_penalty,
                       .greedy = g->greedy, .told = print_token, .user = g));
    const char *rest = g->stream != NULL ? sgm_pretrained_stream_end(g->stream) : NULL;
    if (!g->stopped && rest != NULL)
        say(g, rest, strlen(rest));
    if (!g->stopped && g->held.length > 0)
        fwrite(g->held.data, 1, g->held.length, stdout);
    putchar('\n');
    sgm_tensor_free(begin);
    if (g->others != NULL && status != SGM_OK && strstr(sgm_last_error(), " is no token: ") != NULL)
        return sgm_fail(
            status,
            "%s; the tokenizer is of another model than the network: --tokenizer names the folder of its "
            "own, --numbers takes and prints numbers of tokens",
            sgm_last_error());
    return status;
}

/* The checkpoint is described first, so that a tokenizer that does not fit is found before the network is
 * loaded. Returns an exit code. */
static int generate(const char *checkpoint, generation *g)
{
    sgm_status status = saved_describe(&g->s, checkpoint);
    if (status == SGM_OK)
        status = open_tokenizer(g);
    if (status == SGM_OK)
        status = saved_load(&g->s);
    if (status == SGM_OK)
        status = saved_infer(&g->s, g->int8);
    if (status == SGM_OK) {
        g->generator = sgm_generator_create(g->s.trainer);
        status = g->generator != NULL ? SGM_OK : sgm__last_failure();
    }
    if (status == SGM_OK)
        status = go_on(g);
    int code = status == SGM_OK ? CLI_OK : report_error("generate", CLI_FAILED);
    sgm_generator_free(g->generator);
    sgm__text_free(&g->held);
    sgm_tokenizer_free(g->tokenizer);
    sgm_pretrained_stream_free(g->stream);
    sgm_pretrained_tokenizer_free(g->others);
    saved_close(&g->s);
    return code;
}

/* All checks come before anything is opened. */
int generate_run(int argc, char **argv)
{
    const char *seed = NULL;
    generation g = {.count = 200, .end = -1};
    const argument_rule rules[] = {
        {"--text", ARGUMENT_TEXT, &g.text},
        {"--chat", ARGUMENT_FLAG, &g.chat},
        {"--system", ARGUMENT_TEXT, &g.system},
        {"--stop", ARGUMENT_TEXT, &g.stop},
        {"--count", ARGUMENT_COUNT, &g.count},
        {"--temperature", ARGUMENT_NUMBER, &g.temperature},
        {"--top-k", ARGUMENT_COUNT, &g.top_k},
        {"--top-p", ARGUMENT_NUMBER, &g.top_p},
        {"--min-p", ARGUMENT_NUMBER, &g.min_p},
        {"--greedy", ARGUMENT_FLAG, &g.greedy},
        {"--seed", ARGUMENT_TEXT, &seed},
        {"--tokenizer", ARGUMENT_TEXT, &g.tokenizer_path},
        {"--numbers", ARGUMENT_FLAG, &g.numbers},
        {"--int8", ARGUMENT_FLAG, &g.int8},
        {"--repetition-penalty", ARGUMENT_NUMBER, &g.repetition_penalty},
    };
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        if (g.temperature > 1e6)
            code = usage_error("generate", "--temperature: expected a number up to 1e6, got '%g'",
                               g.temperature);
        else if (g.top_p > 1)
            code =
                usage_error("generate", "--top-p: expected a number above 0, at most 1, got '%g'", g.top_p);
        else if (g.min_p > 1)
            code =
                usage_error("generate", "--min-p: expected a number above 0, at most 1, got '%g'", g.min_p);
        else if (g.chat && (g.text == NULL || g.numbers))
            code =
                usage_error("generate", "--chat: expected what the user says, --text TEXT, and no --numbers");
        else if (g.system != NULL && !g.chat)
            code = usage_error("generate", "--system: expected with --chat only");
        else if (g.stop != NULL && (*g.stop == '\0' || g.numbers))
            code = usage_error("generate", "--stop: expected a text that is not empty, and no --numbers");
        else if (seed != NULL && !sgm__parse_int64(seed, &g.seed))
            code = usage_error("generate", "--seed: expected a whole number, got '%s'", seed);
        else if (g.text != NULL && g.text[0] == '\0')
            code = usage_error("generate", "--text: expected something to begin with, got ''");
        else if (a.word_count != 1)
            code = usage_error("generate", "expected one checkpoint or folder of a run");
        else
            code = generate(a.words[0], &g);
    }
    arguments_free(&a);
    return code;
}
