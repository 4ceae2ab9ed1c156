/* Looking into a network while it trains: what the files of the part `inspect` share.
 *
 * inspect.c has the table of the part, inspect_common.c helpers; inspect_network.c describes layers,
 * inspect_histogram.c distributions of tensors, inspect_picture.c shows parameters as pictures,
 * inspect_data.c shows examples with their predictions, inspect_layer.c what a layer gives for examples,
 * inspect_losses.c how wrong it is about each. Common principle: what is needed of a trainer is copied with
 * its lock, between two of its steps; everything that takes time is done with the copies, without the lock.
 * Internal. */
#ifndef SGM_MONITORS_WEB_INSPECT_INSPECT_H
#define SGM_MONITORS_WEB_INSPECT_INSPECT_H

#include "monitors/web/web_internal.h"

/* The notation of the trainer's network; free with sgm_string_free. With the trainer's lock. */
sgm_status sgm__inspect_notation(const sgm__web_trainer *watched, char **notation);
/* A whole number of the query; `default_value` if it is not there. */
sgm_status sgm__inspect_count(const sgm__http_request *request, const char *name, int64_t default_value,
                              int64_t minimum, int64_t maximum, int64_t *value);

/* Appends a shape from dimension `first` on: "[28,28]". */
void sgm__inspect_append_shape(sgm__text *text, const sgm_shape *shape, int32_t first);
/* Appends a number with four significant digits, enough for pictures. */
void sgm__inspect_append_short(sgm__text *text, double value);

/* Functions of routes: what has `watched` is an action of sgm__web_on_trainer.
 *
 * --- inspect_network.c --- */
sgm_status sgm__inspect_network(void *watched, const sgm__http_request *request, sgm__http_answer *answer);

/* --- inspect_histogram.c --- */
/* A copy of a tensor of the trainer's registry. */
typedef struct sgm__inspect_copy {
    sgm_tensor *values; /* freed by the receiver */
    int64_t iteration;  /* at which it was copied */
    double seconds;     /* duration of the copy, for which a training step may have waited */
} sgm__inspect_copy;
/* Copies the tensor of a borrowed trainer; waits for the trainer's lock. */
sgm_status sgm__inspect_tensor(sgm__web_trainer *watched, const char *identifier, sgm__inspect_copy *copy);
sgm_status sgm__inspect_histogram(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__inspect_watch(void *watched, const sgm__http_request *request, sgm__http_answer *answer);
/* The part's state. */
typedef struct sgm__inspect_sampler sgm__inspect_sampler;
sgm_status sgm__inspect_create(sgm__web *web, void **state);
void sgm__inspect_free(void *state);
void sgm__inspect_tick(sgm__web *web, void *state);
sgm_status sgm__inspect_attach(sgm__web_trainer *watched, void **state);
void sgm__inspect_progress(sgm__web_trainer *watched, void *state, const sgm_training_progress *progress);
void sgm__inspect_free_trainer(void *state);

/* --- inspect_data.c --- */
sgm_status sgm__inspect_data(void *watched, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__inspect_confusion(void *watched, const sgm__http_request *request, sgm__http_answer *answer);

/* --- inspect_layer.c --- */
sgm_status sgm__inspect_layer(void *watched, const sgm__http_request *request, sgm__http_answer *answer);

/* --- inspect_losses.c --- */
sgm_status sgm__inspect_losses(void *watched, const sgm__http_request *request, sgm__http_answer *answer);

/* --- inspect_picture.c --- */
sgm_status sgm__inspect_picture(void *watched, const sgm__http_request *request, sgm__http_answer *answer);

#endif
