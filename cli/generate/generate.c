/* `sigma generate`: a trained network continues a text, or several.
 *
 * The generator of the library (src/infer/generator.c) reads texts and draws tokens; this file reads the
 * command line, opens the checkpoint and the tokenizer that belongs to it, and goes on with one text. */
#include "generate/generate.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static const char usage_text[] =
    "Usage: sigma generate CHECKPOINT|FOLDER|MODEL.gguf [--text TEXT | --texts FILE] [--count N] [--seed N]\n"
    "                      [--temperature T] [--top-k K] [--top-p P] [--min-p P] [--greedy]\n"
    "                      [--repetition-penalty P] [--beams N] [--length-penalty P] [--batch N]\n"
    "                      [--chat] [--system TEXT] [--stop TEXT ...] [--tokenizer FILE] [--numbers] "
    "[--int8]\n\n"
    "Continues a text: the network reads it, one of the tokens that may follow is drawn by their\n"
    "probabilities and read in turn. The same seed says the same. Takes networks whose input is a sequence\n"
    "of tokens and whose output is a probability for each, such as those of 'data: {text: FILE}'.\n"
    "FOLDER is one of a run or of transformers. A model of others, as MODEL.gguf is, also ends by itself,\n"
    "with the token that ends a text.\n\n"
    "  --text TEXT        the beginning; a line end if not given ('-': all of the standard input)\n"
    "  --texts FILE       each line of FILE is a text to continue ('-': standard input); a line of JSON is\n"
    "                     printed for each, {\"text\": TEXT, \"continuation\": TEXT}\n"
    "  --batch N          so many lines of FILE side by side; 8 if not given\n"
    "  --chat             TEXT is what a user says, and the answer is printed: the chat is written by the\n"
    "                     template of a model of others\n"
    "  --system TEXT      of --chat: instructions of the assistant\n"
    "  --count N          so many tokens more at most; 200 if not given\n"
    "  --stop TEXT        ends before this text; may be given several times: before the first that comes\n"
    "  --temperature T    1 takes the probabilities as they are, less is surer, more is bolder\n"
    "  --top-k K          only the K likeliest tokens\n"
    "  --top-p P          only as many of the likeliest as have the probability P together\n"
    "  --min-p P          only tokens at least P times as likely as the likeliest\n"
    "  --repetition-penalty P\n"
    "                     logits of tokens that came already are divided by P if positive, multiplied by it\n"
    "                     if negative: above 1 against repetitions\n"
    "  --greedy           always the likeliest\n"
    "  --beams N          nothing is drawn: the N likeliest texts so far are kept at each step, and the\n"
    "                     best that ends is printed\n"
    "  --length-penalty P of --beams: the sum of a text's logarithms is divided by its length to the\n"
    "                     power P: above 0 favours long texts, below 0 short ones; 1 if not given\n"
    "  --seed N           of what is drawn; 0 if not given\n"
    "  --tokenizer FILE   of 'sigma tokenize', or the folder of a model of others; that of the run's "
    "training\n"
    "                     data, of the model that 'sigma import' read, or bytes, if not given\n"
    "  --numbers          tokens are numbers, with spaces between them, in TEXT and in what is printed\n"
    "  --int8             dynamic quantization: weights of dense and recurrent layers and of attention are\n"
    "                     rounded to 8 bits in advance, their inputs while they are computed, so that a\n"
    "                     quarter of the bytes are read for a token; 'sigma eval --int8' tells the error\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

speech generate_speech(const generation *g, bool (*say)(void *user, const char *text, size_t size),
                       void *user)
{
    return (speech){
        .codec = &g->codec, .stops = g->stops.items, .stop_count = g->stops.count, .say = say, .user = user};
}

sgm_generation_options generate_options(const generation *g, void *user)
{
    sgm_generation_options how = g->how;
    how.told = speech_take;
    how.user = user;
    how.ends = g->codec.ends;
    how.end_count = how.beams > 1 ? g->codec.end_count : 0;
    return how;
}

static bool print_part(void *user, const char *text, size_t size)
{
    (void)user;
    fwrite(text, 1, size, stdout);
    fflush(stdout);
    return ferror(stdout) == 0;
}

/* Prints the text and what follows. */
static sgm_status go_on(const generation *g)
{
    speech s = generate_speech(g, print_part, NULL);
    sgm_tensor *begin = tokens_of(g, g->text);
    sgm_status status = begin != NULL ? speech_begin(&s) : sgm__last_failure();
    if (status == SGM_OK) {
        const span of = tokens_span(g, begin, 0);
        if (g->text != NULL && !g->chat)
            fputs(g->text, stdout);
        sgm_generation_options options = generate_options(g, &s);
        status = sgm_generator_generate(g->generator, of.begin, of.begin_count, NULL, of.count, &options);
        sgm_status said = speech_end(&s);
        status = status == SGM_OK ? said : status;
        putchar('\n');
        fflush(stdout);
        if (status == SGM_OK)
            tokens_tell_end(g, &of, &s, 0);
    }
    sgm_tensor_free(begin);
    speech_free(&s);
    return status;
}

/* A generator of as many sequences as there are beams, or lines side by side. */
static sgm_status open_generator(generation *g)
{
    const bool has_beams = g->how.beams > 1;
    int64_t sequences = has_beams ? g->how.beams : g->texts != NULL ? g->batch : 1;
    g->generator = sgm_generator_create(g->s.trainer, .sequences = sequences);
    if (g->generator != NULL)
        return SGM_OK;
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the network does not continue texts, 'sigma predict' is for it: %s",
                        sgm_last_error());
    if (sequences > 1 && sgm_last_status() == SGM_ERROR_ARGUMENT)
        return sgm_fail(SGM_ERROR_ARGUMENT, "--%s %lld: %s; take fewer", has_beams ? "beams" : "batch",
                        (long long)sequences, sgm_last_error());
    return sgm__last_failure();
}

/* Goes on with what was asked for. */
static sgm_status generate_all(generation *g)
{
    SGM_TRY(open_generator(g));
    sgm_status status = g->texts != NULL ? texts_generate(g) : go_on(g);
    if (g->codec.others != NULL && status != SGM_OK && strstr(sgm_last_error(), " is no token: ") != NULL)
        return sgm_fail(
            status,
            "%s; the tokenizer is of another model than the network: --tokenizer names the folder of its "
            "own, --numbers takes and prints numbers of tokens",
            sgm_last_error());
    return status;
}

static sgm_status check_purpose(const saved *s, const char *path)
{
    const char *purpose = purpose_of(path);
    if (!purpose_is_to_continue(purpose))
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "'%s' does not continue texts, it %s: use 'sigma predict'",
                        path, purpose);
    return network_takes_tokens(s->network)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_UNSUPPORTED,
                          "'%s' takes numbers, not texts, as it has no layer embedding: use 'sigma predict'",
                          path);
}

/* The whole standard input, but for the line end behind it, becomes the text. */
static sgm_status read_text(generation *g)
{
    char part[65536];
    size_t got;
    if (g->text == NULL || strcmp(g->text, "-") != 0)
        return SGM_OK;
    while ((got = fread(part, 1, sizeof part, stdin)) > 0)
        sgm__text_append_bytes(&g->input, part, got);
    if (ferror(stdin))
        return sgm_fail(SGM_ERROR_FILE, "cannot read the standard input");
    if (g->input.failed)
        return sgm__fail_memory(g->input.length);
    if (g->input.length > 0 && g->input.data[g->input.length - 1] == '\n')
        g->input.data[--g->input.length] = '\0';
    if (g->input.length == 0 || strlen(g->input.data) < g->input.length)
        return sgm_fail(SGM_ERROR_FORMAT, "--text -: the standard input %s",
                        g->input.length == 0 ? "is empty" : "has a zero byte in it, so that it is no text");
    g->text = g->input.data;
    return SGM_OK;
}

/* A chat that cannot be written is told of before the network is loaded, which takes seconds. */
static sgm_status check_chat(const generation *g)
{
    sgm_tensor *tokens = g->chat ? tokens_of(g, g->text != NULL ? g->text : "Hello") : NULL;
    const bool is_right = tokens != NULL || !g->chat;
    sgm_tensor_free(tokens);
    return is_right ? SGM_OK : sgm__last_failure();
}

/* The checkpoint is described first, so that a tokenizer that does not fit is found before the network is
 * loaded. Returns an exit code. */
static int generate(const char *checkpoint, generation *g)
{
    sgm_status status = g->texts != NULL ? texts_read(g) : read_text(g);
    if (status == SGM_OK)
        status = saved_describe(&g->s, checkpoint);
    if (status == SGM_OK)
        status = check_purpose(&g->s, checkpoint);
    if (status == SGM_OK)
        status = tokens_open(g);
    if (status == SGM_OK)
        status = check_chat(g);
    if (status == SGM_OK)
        status = saved_load(&g->s);
    if (status == SGM_OK)
        status = saved_infer(&g->s, g->int8);
    if (status == SGM_OK)
        status = generate_all(g);
    int code = status == SGM_OK ? CLI_OK : report_error("generate", CLI_FAILED);
    sgm_generator_free(g->generator);
    text_codec_close(&g->codec);
    texts_free(g);
    sgm__text_free(&g->input);
    saved_close(&g->s);
    return code;
}

/* How tokens are drawn, as the options give it; NULL: not given. */
typedef struct drawing {
    const char *temperature, *top_p, *min_p, *repetition_penalty;
} drawing;

/* The setting of a name. */
static const sgm_setting *setting_of(const char *name)
{
    size_t count, i = 0;
    const sgm_setting *rows = sgm_generation_settings(&count);
    while (strcmp(rows[i].option.name, name) != 0)
        i++;
    return &rows[i];
}

/* Within the same bounds as those of samples in a training. Returns an exit code. */
static int read_drawing(const drawing *given, sgm_generation_options *how)
{
    const struct {
        const char *option, *setting, *text, *remedy;
    } numbers[] = {
        {"--temperature", "temperature", given->temperature,
         "; --greedy takes the likeliest token each time"},
        {"--top-p", "top_p", given->top_p, ""},
        {"--min-p", "min_p", given->min_p, ""},
        {"--repetition-penalty", "repetition_penalty", given->repetition_penalty, ""},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const sgm_setting *row = setting_of(numbers[i].setting);
        const char *text = numbers[i].text;
        double number;
        char least[32], most[32];
        if (text == NULL)
            continue;
        if (!sgm__parse_double(text, &number) ||
            !(number >= row->option.minimum && number <= row->option.maximum))
            return usage_error("generate", "%s: expected a number from %s to %s, got '%s'%s",
                               numbers[i].option, sgm__number_text(row->option.minimum, least, sizeof least),
                               sgm__number_text(row->option.maximum, most, sizeof most), text,
                               numbers[i].remedy);
        const sgm_content content = sgm_number_content(number);
        if (sgm_setting_set(row, how, NULL, &content) != SGM_OK)
            return report_error("generate", CLI_USAGE);
    }
    return CLI_OK;
}

/* What is wrong with the options together, as an exit code; CLI_OK: nothing. */
static int check(const generation *g, const argument_texts *texts, const arguments *a)
{
    bool one = g->texts == NULL;
    if (texts->count > 1)
        return usage_error("generate", "--text is given %zu times; several texts are lines of --texts FILE",
                           texts->count);
    if (g->chat && ((g->text == NULL && one) || g->numbers))
        return usage_error("generate",
                           "--chat: expected what the user says, --text TEXT or --texts FILE, and no "
                           "--numbers");
    if (g->system != NULL && !g->chat)
        return usage_error("generate", "--system: expected with --chat only");
    for (size_t i = 0; i < g->stops.count; i++)
        if (g->stops.items[i][0] == '\0' || g->numbers)
            return usage_error("generate", "--stop: expected a text that is not empty, and no --numbers");
    if (g->text != NULL && (!one || g->text[0] == '\0'))
        return one ? usage_error("generate", "--text: expected something to begin with, got ''")
                   : usage_error("generate", "--text, --texts: expected one of them");
    if (g->batch > 0 && (one || g->how.beams > 0))
        return usage_error("generate", "--batch: expected with --texts only, and not with --beams");
    if (g->how.beams > 1 &&
        (g->how.temperature > 0 || g->how.top_k > 0 || g->how.top_p > 0 || g->how.min_p > 0 || g->how.greedy))
        return usage_error("generate",
                           "--beams: expected without --temperature, --top-k, --top-p, --min-p and --greedy, "
                           "as nothing is drawn");
    if (g->how.length_penalty != 0 && g->how.beams < 2)
        return usage_error("generate", "--length-penalty: expected with --beams of 2 or more only");
    if (a->word_count > 1)
        return usage_error("generate",
                           "expected one checkpoint or folder of a run, got '%s' as well; a text to continue "
                           "is given as --text '%s'",
                           a->words[1], a->words[1]);
    return a->word_count == 1 ? CLI_OK
                              : usage_error("generate", "expected one checkpoint or folder of a run");
}

/* A finite number; 0 becomes one that is next to it, as 0 stands for the default. */
static bool read_penalty(const char *text, double *penalty)
{
    bool right = sgm__parse_double(text, penalty) && isfinite(*penalty);
    if (right && *penalty == 0)
        *penalty = DBL_MIN;
    return right;
}

/* All checks come before anything is opened. */
int generate_run(int argc, char **argv)
{
    int64_t number = 0;
    const char *seed = NULL, *length_penalty = NULL;
    generation g = {.how.struct_size = sizeof g.how, .count = 200};
    argument_texts texts = {0};
    drawing given = {0};
    const argument_rule rules[] = {
        {"--text", ARGUMENT_TEXTS, &texts},
        {"--texts", ARGUMENT_TEXT, &g.texts},
        {"--batch", ARGUMENT_COUNT, &g.batch},
        {"--beams", ARGUMENT_COUNT, &g.how.beams},
        {"--length-penalty", ARGUMENT_TEXT, &length_penalty},
        {"--chat", ARGUMENT_FLAG, &g.chat},
        {"--system", ARGUMENT_TEXT, &g.system},
        {"--stop", ARGUMENT_TEXTS, &g.stops},
        {"--count", ARGUMENT_COUNT, &g.count},
        {"--temperature", ARGUMENT_TEXT, &given.temperature},
        {"--top-k", ARGUMENT_COUNT, &g.how.top_k},
        {"--top-p", ARGUMENT_TEXT, &given.top_p},
        {"--min-p", ARGUMENT_TEXT, &given.min_p},
        {"--greedy", ARGUMENT_FLAG, &g.how.greedy},
        {"--seed", ARGUMENT_TEXT, &seed},
        {"--tokenizer", ARGUMENT_TEXT, &g.tokenizer_path},
        {"--numbers", ARGUMENT_FLAG, &g.numbers},
        {"--int8", ARGUMENT_FLAG, &g.int8},
        {"--repetition-penalty", ARGUMENT_TEXT, &given.repetition_penalty},
    };
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        g.text = texts.count > 0 ? texts.items[0] : NULL;
        const bool is_seeded = seed == NULL || sgm__parse_int64(seed, &number);
        g.how.seed = (uint64_t)number;
        if (!is_seeded)
            code = usage_error("generate", "--seed: expected a whole number, got '%s'", seed);
        else if (length_penalty != NULL && !read_penalty(length_penalty, &g.how.length_penalty))
            code = usage_error("generate", "--length-penalty: expected a number, got '%s'", length_penalty);
        else if ((code = read_drawing(&given, &g.how)) == CLI_OK && (code = check(&g, &texts, &a)) == CLI_OK)
            code = generate(a.words[0], &g);
    }
    arguments_free(&a);
    return code;
}
