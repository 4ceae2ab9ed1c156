/* A pass over a dataset of a trainer with a copy of its network: examples with their predictions and, if
 * wanted, with what a layer gives for each.
 *
 *     sgm__example_pass *own = sgm__example_pass_begin(watched, request, NULL);
 *     const sgm__example_looker who = {.wants = selects, .take = append, .has_all = ends, .user = &mine};
 *     sgm_status status = own != NULL ? sgm__example_pass_look(own, &who) : sgm__last_failure();
 *     if (own != NULL)
 *         sgm__example_pass_free(own);
 *
 * inspect_data.c, inspect_layer.c and inspect_losses.c use it. Exists only within one request. Internal. */
#ifndef SGM_MONITORS_WEB_INSPECT_EXAMPLE_PASS_H
#define SGM_MONITORS_WEB_INSPECT_EXAMPLE_PASS_H

#include "monitors/web/inspect/network_copy.h"
#include "monitors/web/web_internal.h"

/* Examples that are predicted at once; the copy is recorded for this number. */
#define SGM__PASS_BATCH 128
/* Numbers that a layer may give for an example, so that a batch of them takes at most 100 MB. */
#define SGM__PASS_WIDEST 65536

/* An example on its way through a pass: its index in the dataset, its row in the current block, and its
 * classes (-1: none). `outputs` (the prediction) and `layer` (what the layer gives; NULL: none was asked
 * for) point into the pass. */
typedef struct sgm__example {
    int64_t index, row, target, prediction;
    const double *outputs, *layer;
} sgm__example;

/* An output of the copy: `values` has `width` numbers for each example of a batch. */
typedef struct sgm__pass_output {
    sgm_tensor *made;
    double *values;
    int64_t width;
} sgm__pass_output;

typedef struct sgm__example_pass {
    const atomic_bool *ending; /* the server is to stop */
    sgm__web_copy network;
    sgm_program *program;
    sgm_dataset *dataset;
    char *data; /* names of the trainer's datasets, as a JSON array */
    /* Name of the field that the network is trained on. */
    char targets[sizeof((sgm_field *)NULL)->name];
    const char *layer_name; /* the copy's; NULL: no layer was asked for */
    bool classifies;
    sgm_tensor *fed[SGM_MAX_FIELDS];       /* for each input a batch (SGM__PASS_BATCH, ...), float32 */
    sgm__pass_output prediction, layer;    /* the network's first output; that of the layer */
    const sgm_block *block;                /* current block, while it is fetched */
    sgm__example pending[SGM__PASS_BATCH]; /* the first `count` wait for a prediction */
    int64_t count;
} sgm__example_pass;

/* The user of a pass: functions that choose and receive examples. */
typedef struct sgm__example_looker {
    /* Whether this example is to be predicted. */
    bool (*wants)(void *user, int64_t index, int64_t target);
    sgm_status (*take)(void *user, const sgm__example_pass *own, const sgm__example *taken);
    /* No example from `index` on is wanted: ends the pass. */
    bool (*has_all)(void *user, int64_t index);
    void *user;
} sgm__example_looker;

/* Copies the network, and finds the dataset that the request names as `data`. `layer`: NULL, or the name of
 * a layer whose output each example is to have; "": the one that makes the prediction. NULL, with an error:
 * failed. The trainer stays borrowed until the pass is freed, because its handler computes. */
sgm__example_pass *sgm__example_pass_begin(sgm__web_trainer *watched, const sgm__http_request *request,
                                           const char *layer);
/* Ends when the data end, when the looker has all, or with an error when the server stops. */
sgm_status sgm__example_pass_look(sgm__example_pass *own, const sgm__example_looker *who);
void sgm__example_pass_free(sgm__example_pass *own);

/* Whether layer number `index` of the copy gives something for each example; *width: how many numbers. */
bool sgm__example_pass_layer(const sgm__example_pass *own, size_t index, int64_t *width);
/* ,"names":[...] of the classes, if the dataset has as many as the network; null otherwise. */
void sgm__example_pass_append_names(sgm__text *text, const sgm__example_pass *own);
/* The values of one example in a field of a block, borrowed from the block; *count: how many. NULL, with an
 * error: the block has no such field. */
const float *sgm__example_values(const sgm_block *block, const char *field, int64_t row, int64_t *count);

#endif
