/* What the files of `sigma generate` share.
 *
 * generate.c reads the command line, opens checkpoint and tokenizer, and goes on with one text; texts.c goes
 * on with those of a file; tokens.c makes tokens of texts, and speech.c texts of tokens. */
#ifndef SGM_CLI_GENERATE_GENERATE_H
#define SGM_CLI_GENERATE_GENERATE_H

#include "config/arguments.h"
#include "config/experiment.h"
#include "config/saved.h"

#include <sigma/tokenizer.h>

/* What was asked for, and what was opened for it. Numbers that are 0 stand for the library's default. */
typedef struct generation {
    saved s;
    const char *text, *system, *stop;
    const char *texts; /* a file with a text on each line; NULL: it is one text */
    char **lines;      /* of it, owned */
    size_t line_count;
    char *tokenizer_path;
    sgm_tokenizer *tokenizer;         /* NULL: tokens are numbers, or those of a model of others */
    sgm_pretrained_tokenizer *others; /* of a model of others */
    int64_t end;                      /* its token that ends a text; -1: none */
    sgm_generator *generator;
    int64_t count, seed, batch, beams;
    double temperature, top_p, min_p, repetition_penalty, length_penalty;
    int64_t top_k;
    bool greedy, numbers, int8, chat;
} generation;

/* --- generate.c --- */
/* The subcommand, for main.c's table (cli.h). */
int generate_run(int argc, char **argv);
/* How tokens are drawn; `user` is passed to speech_say. */
sgm_generation_options generate_options(const generation *g, void *user);

/* --- tokens.c --- */
/* The tokenizer of --tokenizer, else that of the run's training data, else that of a model of others, else
 * bytes. One of ours must have as many tokens as the network knows (experiment_check_tokens), otherwise the
 * text would be nonsense. */
sgm_status tokens_open(generation *g);
/* The tokens to begin with, int64 (count), which the caller frees; NULL on failure. Without a text (NULL) it
 * is a line end, or token 0. */
sgm_tensor *tokens_of(const generation *g, const char *text);

/* --- speech.c --- */
/* What is said of one text. */
typedef struct speech {
    const generation *g;
    sgm_pretrained_stream *stream; /* what turns tokens of a model of others into text */
    sgm__text held;                /* with --stop: what may be its beginning */
    bool stopped;                  /* the text of --stop came */
    bool collects;                 /* into `said`, instead of the standard output */
    sgm__text said;
} speech;

sgm_status speech_begin(speech *s, const generation *g, bool collects);
/* The generator's callback for each token; `user` is the speech. False ends the text: at its last token, at
 * the text of --stop, out of memory, or the output is closed. */
bool speech_say(void *user, int64_t token);
/* What was held back and comes after all. */
void speech_end(speech *s);
void speech_free(speech *s);

/* --- texts.c --- */
/* Reads the lines of the file g->texts, and makes the batch no larger than there are. */
sgm_status texts_read(generation *g);
void texts_free(generation *g);
/* Goes on with each line, and prints one for it. */
sgm_status texts_generate(const generation *g);

#endif
