/* What a server knows of its network, and the numbers of a request. Internal to src/monitors/serve. */
#ifndef SGM_MONITORS_SERVE_NUMBERS_H
#define SGM_MONITORS_SERVE_NUMBERS_H

#include "data/kinds/kind.h"
#include "infer/signature.h"
#include "monitors/http/http.h"
#include "monitors/serve/serve.h"

#include <jansson.h>

/* All that a request needs; constant after the start. */
struct sgm__serve {
    sgm_trainer *trainer; /* NULL: `model` predicts */
    sgm__serve_model model;
    sgm_pipeline *pipeline;      /* of a table by names, or of files, a reference; NULL: there is none */
    const sgm__file_kind *takes; /* what the pipeline is of; NULL: no files */
    char **classes;              /* NULL behind the last; NULL: no names */
    sgm__serve_texts texts;
    bool scales, ignores_unknown;
    double minimum, maximum;
    bool tells; /* the model tells classes */
    sgm_network *network;
    sgm__signature signature;
    int64_t elements; /* numbers of one example of the input */
    bool wide;        /* outputs are float64 and are written with all of their digits */
    char *about_text; /* the response of /api/model, from jansson */
    size_t about_length;
    sgm__http *http;
};

/* The next power of two: the number of examples that a program is compiled for. */
int64_t sgm__serve_rounded(int64_t examples);
/* Fails if a request has too many examples. */
sgm_status sgm__serve_check_count(int64_t count);
/* The type of the input tensor: a model has a type of its own, to which no digits may be lost on the way. */
sgm_dtype sgm__serve_dtype(const sgm__serve *serve);
/* Makes the input tensor (sgm__serve_rounded(*count), ...). Rows beyond the *count examples of the request
 * repeat the first one, so that they cost nothing but time and cause no infinities. */
sgm_status sgm__serve_read_examples(const sgm__serve *serve, const json_t *body, sgm_tensor **inputs,
                                    int64_t *count);
/* Reads how many steps of each example count, as sgm__serve_rounded(count) numbers that the caller frees;
 * NULL: all steps of all examples. Examples beyond the request have the length of the first. */
sgm_status sgm__serve_read_lengths(const sgm__serve *serve, const json_t *body, int64_t count,
                                   double **lengths);

#endif
