/* A pass over a dataset of a trainer with a copy of its network: examples with their predictions and, if
 * wanted, with what a layer gives for each.
 *
 *     sgm__example_pass *own = sgm__example_pass_begin(watched, request, NULL);
 *     const sgm__example_looker who = {.maximum = 500, .take = append, .user = &mine};
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
    int64_t examples; /* of the dataset */
    char *data;       /* names of the trainer's datasets, as a JSON array */
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

/* The user of a pass: how it chooses examples, and what receives them. */
typedef struct sgm__example_looker {
    int64_t maximum; /* examples to choose from, evenly from all of the data; 0: all */
    /* Whether this example is to be predicted; NULL: each. */
    bool (*wants)(void *user, int64_t index, int64_t target);
    sgm_status (*take)(void *user, const sgm__example_pass *own, const sgm__example *taken);
    /* No further example is wanted: ends the pass; NULL: the data end it. */
    bool (*has_all)(void *user);
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
/* The classes that the prediction tells apart; a single output tells two. */
int64_t sgm__example_pass_classes(const sgm__example_pass *own);

/* What answers have in common begins with
 *     {"iteration":N,"data":[...],"examples":N,"classes":N,"names":[...]
 * of the copy, of the trainer's datasets, of the pass's one, and of the classes: null for a network that does
 * not classify, their names also if the dataset has not as many. */
void sgm__example_pass_append_head(sgm__text *text, const sgm__example_pass *own);
/* {"index":N,"target":N,"prediction":N of an example; null: it has no such class. A comma comes first if
 * there is text. */
void sgm__example_append_head(sgm__text *text, const sgm__example *taken);
/* The values of one example in a field of a block, borrowed from the block; *count: how many. NULL, with an
 * error: the block has no such field. */
const float *sgm__example_values(const sgm_block *block, const char *field, int64_t row, int64_t *count);

#endif
