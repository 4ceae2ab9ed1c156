/* `sigma generate`: a trained network continues a text.
 *
 * The generator of the library (src/infer/generator.c) reads the text and draws tokens; this file opens
 * the checkpoint and the tokenizer that belongs to it, encodes the text, and prints each token as it is
 * drawn. With --numbers tokens are numbers on both sides and no tokenizer is needed. */
#include "cli.h"

#include <stdio.h>

static const char usage_text[] =
    "Usage: sigma generate CHECKPOINT|FOLDER [--text TEXT] [--count N] [--seed N] [--tokenizer FILE]\n"
    "                      [--temperature T] [--top-k K] [--top-p P] [--greedy] [--numbers] [--int8]\n\n"
    "Continues a text: the network reads it, one of the tokens that may follow is drawn by their\n"
    "probabilities and read in turn. The same seed says the same. Takes networks whose input is a sequence\n"
    "of tokens and whose output is a probability for each, such as those of 'data: {text: FILE}'.\n\n"
    "  --text TEXT        the beginning; a line end if not given\n"
    "  --count N          so many tokens more; 200 if not given\n"
    "  --temperature T    1 takes the probabilities as they are, less is surer, more is bolder\n"
    "  --top-k K          only the K likeliest tokens\n"
    "  --top-p P          only as many of the likeliest as have the probability P together\n"
    "  --greedy           always the likeliest\n"
    "  --seed N           of what is drawn; 0 if not given\n"
    "  --tokenizer FILE   of 'sigma tokenize'; that of the run's training data, or bytes, if not given\n"
    "  --numbers          tokens are numbers, with spaces between them, in TEXT and in what is printed\n"
    "  --int8             dynamic quantization: weights of dense and recurrent layers and of attention are\n"
    "                     rounded to 8 bits in advance, their inputs while they are computed, so that a\n"
    "                     quarter of the bytes are read for a token; 'sigma eval --int8' tells the error\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* What was asked for, and what was opened for it. Numbers that are 0 stand for the library's default. */
typedef struct generation {
    saved s;
    const char *text;
    char *tokenizer_path;
    sgm_tokenizer *tokenizer; /* NULL: tokens are numbers */
    sgm_generator *generator;
    int64_t count, seed;
    double temperature, top_p;
    int64_t top_k;
    bool greedy, numbers, int8;
} generation;

/* The generator's callback for each token. A token may be part of a character only, so bytes are written
 * as they are. A network may have more tokens than the tokenizer; those print nothing. False ends the
 * generation: out of memory, or the output is closed. */
static bool print_token(void *user, int64_t token)
{
    const generation *g = user;
    if (g->tokenizer == NULL) {
        printf(" %lld", (long long)token);
    } else if (token < sgm_tokenizer_vocabulary(g->tokenizer)) { /* the network may have room for more */
        size_t size;
        char *bytes = sgm_tokenizer_decode(g->tokenizer, &token, 1, &size);
        if (bytes == NULL)
            return false;
        fwrite(bytes, 1, size, stdout);
        sgm_string_free(bytes);
    }
    fflush(stdout);
    return ferror(stdout) == 0;
}

/* The tokenizer of --tokenizer, else that of the run's training data, else bytes. It must have as many
 * tokens as the network knows (experiment_check_tokens), otherwise the text would be nonsense. */
static sgm_status open_tokenizer(generation *g)
{
    if (g->numbers)
        return SGM_OK;
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

/* Prints the beginning and generates. Without a text it begins with a line end, or with token 0. */
static sgm_status go_on(generation *g)
{
    const char *text = g->text != NULL ? g->text : g->numbers ? "0" : "\n";
    sgm_tensor *begin =
        g->numbers ? read_numbers(text) : sgm_tokenizer_encode(g->tokenizer, text, strlen(text));
    if (begin == NULL)
        return sgm__last_failure();
    if (g->text != NULL)
        fputs(g->text, stdout);
    sgm_status status = sgm_generator_generate(
        g->generator, sgm_tensor_const_data(begin), (size_t)sgm_tensor_shape(begin)->dims[0], NULL,
        (size_t)g->count,
        SGM_GENERATION(.seed = (uint64_t)g->seed, .temperature = g->temperature, .top_k = g->top_k,
                       .top_p = g->top_p, .greedy = g->greedy, .told = print_token, .user = g));
    putchar('\n');
    sgm_tensor_free(begin);
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
    sgm_tokenizer_free(g->tokenizer);
    saved_close(&g->s);
    return code;
}

/* All checks come before anything is opened. */
int generate_run(int argc, char **argv)
{
    const char *seed = NULL;
    generation g = {.count = 200};
    const argument_rule rules[] = {
        {"--text", ARGUMENT_TEXT, &g.text},
        {"--count", ARGUMENT_COUNT, &g.count},
        {"--temperature", ARGUMENT_NUMBER, &g.temperature},
        {"--top-k", ARGUMENT_COUNT, &g.top_k},
        {"--top-p", ARGUMENT_NUMBER, &g.top_p},
        {"--greedy", ARGUMENT_FLAG, &g.greedy},
        {"--seed", ARGUMENT_TEXT, &seed},
        {"--tokenizer", ARGUMENT_TEXT, &g.tokenizer_path},
        {"--numbers", ARGUMENT_FLAG, &g.numbers},
        {"--int8", ARGUMENT_FLAG, &g.int8},
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
