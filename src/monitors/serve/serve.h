/* Serves the predictions of a trained network over HTTP, for the command `sigma serve` (cli/serve.c).
 *
 * Uses the server of monitors/http/, with its rules of access. Predictions (POST /api/predict) are made
 * one after the other, on one thread, with all threads of the trainer's handler; the description of the
 * network (GET /api/model) is told beside that. A program is compiled for 1, 2, 4, ... examples, and
 * requests are filled up to the next of these, so there are few programs whatever sizes come. Internal. */
#ifndef SGM_MONITORS_SERVE_SERVE_H
#define SGM_MONITORS_SERVE_SERVE_H

#include "base/base.h"
#include <sigma/training.h>

#define SGM__SERVE_MAXIMUM_EXAMPLES 512 /* in one request */

typedef struct sgm__serve sgm__serve;

/* What predicts in the place of a trainer, such as a model of ONNX. */
typedef struct sgm__serve_model {
    /* The predictions (count, ...) of examples (count, ...) in float64, a new tensor; into `classes` the
     * class of each, as the model tells it (count, int64), borrowed until the next call, or NULL: it tells
     * none. NULL and an error. Called on one thread. NULL in the place of `predict`: the trainer predicts. */
    sgm_tensor *(*predict)(void *user, const sgm_tensor *examples, const sgm_tensor **classes);
    void *user;
    sgm_shape example; /* the shape of one */
} sgm__serve_model;

/* What predicts texts, for a network of tokens. NULL in the place of `predict`: texts are refused. */
typedef struct sgm__serve_texts {
    /* The predictions (count, ...) of `count` texts, each with a second one beside it or NULL in `pairs`; a
     * new tensor. NULL and an error that names the text by its number, from 0. Called on one thread. */
    sgm_tensor *(*predict)(void *user, const char *const *texts, const char *const *pairs, size_t count);
    void *user;
} sgm__serve_texts;
/* What is served, and how. Texts and names are copied; the trainer stays the caller's. */
typedef struct sgm__serve_options {
    sgm_trainer *trainer;   /* must exist, and must not be trained, until sgm__serve_stop; NULL: a model */
    sgm__serve_model model; /* in its place */
    const char *network;    /* its notation, or a description of the model */
    sgm_dtype precision;    /* of the trainer's environment, for the description */
    /* Names of the classes, NULL behind the last; NULL: responses have numbers only. */
    const char *const *classes;
    /* Inputs are mapped from minimum..maximum to 0..1 before they reach the network, as in its training. */
    bool scales;
    double minimum, maximum;
    bool ignores_unknown; /* of a table by names: categories that the pipeline does not know are missing */
    sgm__serve_texts texts;
    int port;          /* 0: the first free one from 8080 on */
    const char *token; /* NULL: a random one */
    double hurry;      /* for tests, as in sgm__http_options */
} sgm__serve_options;
/* Predicts once, so that a network that cannot predict is reported at the start. NULL: failed, with an
 * error. */
sgm__serve *sgm__serve_start(const sgm__serve_options *options);
/* The address of a page that explains how to predict; it contains the token. */
const char *sgm__serve_url(const sgm__serve *serve);
int sgm__serve_port(const sgm__serve *serve);
/* How many numbers one example of the input has. */
int64_t sgm__serve_elements(const sgm__serve *serve);
/* Whether an example may be a text: there is what predicts texts, and the network gives something for each of
 * them, not for each of its tokens. */
bool sgm__serve_takes_texts(const sgm__serve *serve);
/* False: a prediction does not end in time; its thread still uses the trainer, which must not be freed. NULL
 * is allowed. */
bool sgm__serve_stop(sgm__serve *serve);

#endif
