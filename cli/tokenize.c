/* `sigma tokenize`: learns a tokenizer from a text and saves it.
 *
 * The method is byte pair encoding (Sennrich et al., 2016, on bytes) in src/data/tokens; this file reads
 * the text, saves the tokens, and prints how well they compress it. `sigma train` takes the file as
 * data.tokenizer, `sigma generate` as --tokenizer. */
#include "cli.h"

#include <stdio.h>

static const char usage_text[] =
    "Usage: sigma tokenize TEXT --output FILE [--vocabulary N]\n\n"
    "Learns N tokens (byte pair encoding): the 256 bytes, and pairs of tokens that are often side by side, "
    "so\n"
    "that a text is fewer of them. Any text can be written with them. FILE is for 'data: {text: ...,\n"
    "tokenizer: FILE}' of 'sigma train' and for 'sigma generate'.\n\n"
    "  --output FILE      the tokens; an old file is replaced\n"
    "  --vocabulary N     so many; 1000 if not given, at least 256\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* Encodes the text once, to say how many tokens it has become. */
static sgm_status tokenize(const char *path, const char *output, int64_t vocabulary)
{
    char *text;
    size_t size;
    SGM_TRY(sgm__file_read(path, MAXIMUM_OF_TEXT, &text, &size));
    sgm_tokenizer *tokenizer = sgm_tokenizer_learn(text, size, vocabulary);
    sgm_tensor *tokens = tokenizer != NULL ? sgm_tokenizer_encode(tokenizer, text, size) : NULL;
    sgm_status status = tokens != NULL ? sgm_tokenizer_save(tokenizer, output) : sgm__last_failure();
    if (status == SGM_OK) {
        int64_t count = sgm_tensor_shape(tokens)->dims[0];
        printf("%lld tokens in %s; the text's %zu bytes are %lld of them, %.2f bytes each\n",
               (long long)sgm_tokenizer_vocabulary(tokenizer), output, size, (long long)count,
               (double)size / (double)count);
    }
    sgm_tensor_free(tokens);
    sgm_tokenizer_free(tokenizer);
    sgm__free(text);
    return status;
}

int tokenize_run(int argc, char **argv)
{
    const char *output = NULL;
    int64_t vocabulary = 1000;
    const argument_rule rules[] = {{"--output", ARGUMENT_TEXT, &output},
                                   {"--vocabulary", ARGUMENT_COUNT, &vocabulary}};
    arguments a = {.rules = rules, .rule_count = 2, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        if (a.word_count != 1 || output == NULL)
            code = usage_error("tokenize", "expected a text and --output FILE");
        else
            code = tokenize(a.words[0], output, vocabulary) == SGM_OK ? CLI_OK
                                                                      : report_error("tokenize", CLI_FAILED);
    }
    arguments_free(&a);
    return code;
}
