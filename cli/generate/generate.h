/* What the files of `sigma generate` share.
 *
 * generate.c reads the command line, opens checkpoint and tokenizer, and goes on with one text; texts.c goes
 * on with those of a file; tokens.c makes tokens of texts, and ../texts/ texts of tokens. */
#ifndef SGM_CLI_GENERATE_GENERATE_H
#define SGM_CLI_GENERATE_GENERATE_H

#include "config/arguments.h"
#include "config/experiment.h"
#include "config/saved.h"
#include "texts/texts.h"

/* What was asked for, and what was opened for it. Numbers that are 0 stand for the library's default. */
typedef struct generation {
    saved s;
    const char *text, *system;
    sgm__text input;      /* the standard input, where it is the text */
    argument_texts stops; /* texts before which it ends */
    const char *texts;    /* a file with a text on each line; NULL: it is one text */
    char **lines;         /* of it, owned */
    size_t line_count;
    const char *tokenizer_path;
    text_codec codec; /* with --numbers without a tokenizer */
    sgm_generator *generator;
    int64_t count, batch;
    sgm_generation_options how; /* tokens are drawn, or beams kept */
    bool numbers, int8, chat;
    bool ends_at_last_place; /* a model of others, which has not learnt texts that begin in their middle */
} generation;
/* What one text begins with, of the tokens that were given, and how many may follow. */
typedef struct span {
    const int64_t *begin;
    size_t begin_count, count;
} span;

/* --- generate.c --- */
/* The subcommand, for main.c's table (cli.h). */
int generate_run(int argc, char **argv);
/* What is said of one text, of which `say` gets the parts. */
speech generate_speech(const generation *g, bool (*say)(void *user, const char *text, size_t size),
                       void *user);
/* How tokens are drawn; `user` is passed to speech_take. */
sgm_generation_options generate_options(const generation *g, void *user);

/* --- tokens.c --- */
/* Opens the tokenizer, unless tokens are numbers. */
sgm_status tokens_open(generation *g);
/* The tokens to begin with, int64 (count), which the caller frees; NULL on failure. Without a text (NULL) it
 * is a line end, or token 0. */
sgm_tensor *tokens_of(const generation *g, const char *text);
/* What is read of the tokens and how many follow. Warns of more tokens than the network has places, of which
 * only the newest are read; `line`, from 1, of the file g->texts. */
span tokens_span(const generation *g, const sgm_tensor *begin, size_t line);
/* Tells that a text ended for want of places. */
void tokens_tell_end(const generation *g, const span *of, const speech *said, size_t line);

/* --- texts.c --- */
/* Reads the lines of the file g->texts, and makes the batch no larger than there are. */
sgm_status texts_read(generation *g);
void texts_free(generation *g);
/* Goes on with each line, and prints one for it. */
sgm_status texts_generate(const generation *g);

#endif
