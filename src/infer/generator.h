/* What a generator is, for the files that read with it (generator_read.c) and draw (generate.c). Internal.
 *
 * A generator reads sequences side by side, each of its own tokens, all at the same place: the states of the
 * recordings have a row for each sequence. Two programs share these states, one that reads a step of each
 * sequence and one that reads a piece of several steps, and gives nothing. */
#ifndef SGM_INFER_GENERATOR_H
#define SGM_INFER_GENERATOR_H

#include "handlers/session.h"
#include <sigma/training.h>

/* A program that reads steps. All NULL: it is not needed. */
typedef struct sgm__reader {
    sgm_network *network; /* holds the names of the recording */
    sgm_graph *graph;
    sgm_recording recording;
    sgm_program *program;
    sgm_tensor *fed; /* tokens (sequences, steps), or one-hot rows (sequences, steps, vocabulary) */
    int64_t steps;   /* at a run */
} sgm__reader;

struct sgm_generator {
    char *notation; /* of the network, and how it is recorded */
    sgm_dtype dtype;
    uint32_t inference; /* SGM__INFERENCE_... */
    bool averaged;      /* with the moving averages of the parameters */
    sgm_session *session;
    sgm__reader one, piece;
    sgm_program *move; /* takes other rows of the states; NULL: not needed yet */
    sgm_graph *mover;  /* its graph */
    int64_t sequences; /* that are read side by side */
    bool one_hot;      /* tokens are fed as one-hot rows, not as numbers */
    bool logits;       /* the probabilities are a softmax, whose input is an output of `one`, too */
    bool pieces; /* all that is kept of the steps before is placed, so that several can be read at once */
    int64_t vocabulary;          /* tokens that the network tells apart */
    int64_t places;              /* how many steps it can look back; 0: any number */
    double *probabilities;       /* (sequences, vocabulary), after the newest step */
    bool *seen;                  /* (sequences, vocabulary): the token was read since the newest reset */
    int64_t *read;               /* (sequences, places): what was read; NULL if there are no places */
    int64_t count;               /* steps since the newest reset, or since room was made */
    bool *kept;                  /* for each parameter of `one`: steps change it, and it begins as zeros */
    bool (*proceed)(void *user); /* asked before each run; NULL: nothing is asked */
    void *proceed_user;
};

/* Outputs of the program of a step, (sequences, vocabulary). */
#define SGM__PROBABILITIES "probabilities"
#define SGM__LOGITS "logits"

/* An error unless it is a generator of one sequence; `function` is who asks. */
sgm_status sgm__generator_is_single(const sgm_generator *g, const char *function);
/* The state of this name becomes a number, int64 of rank 0. */
sgm_status sgm__generator_set_number(sgm_generator *g, const char *state, double number);

/* --- generator_read.c --- */
/* Whether all are tokens of the vocabulary. */
sgm_status sgm__generator_check(const sgm_generator *g, const int64_t *tokens, size_t count);
/* Reads `count` tokens of each sequence, by pieces where it can. */
sgm_status sgm__generator_read_many(sgm_generator *g, const int64_t *const *tokens, int64_t count);
/* Row s of all that the sequences have read becomes what row `rows[s]` was, up to the place where they are.
 */
sgm_status sgm__generator_take_rows(sgm_generator *g, const int64_t *rows);
/* Reads the probabilities, or the logits, that the newest step gave into g->probabilities. */
sgm_status sgm__generator_output(sgm_generator *g, const char *name);

#endif
