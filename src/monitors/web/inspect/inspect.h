/* Looking into a network while it trains: what its sources share. Values are copied between two steps; all
 * that takes time is done with the copies. Internal. */
#ifndef SGM_MONITORS_WEB_INSPECT_INSPECT_H
#define SGM_MONITORS_WEB_INSPECT_INSPECT_H

#include "monitors/web/web_internal.h"

/* The notation of its network, to be freed with sgm_string_free; with the lock. */
sgm_status sgm__inspect_notation(const sgm__web_trainer *watched, char **notation);
/* A whole number of the query, `default_value` without one. */
sgm_status sgm__inspect_count(const sgm__http_request *request, const char *name, int64_t default_value,
                              int64_t minimum, int64_t maximum, int64_t *value);
/* The one in the query; give it back. */
sgm_status sgm__inspect_borrow(sgm__web *web, const sgm__http_request *request, sgm__web_trainer **watched);

/* "[28,28]" from dimension `first` on. */
void sgm__inspect_append_shape(sgm__text *text, const sgm_shape *shape, int32_t first);
/* Four digits, as pictures need. */
void sgm__inspect_append_short(sgm__text *text, double value);

/* inspect_network.c */
sgm_status sgm__inspect_network(void *web, const sgm__http_request *request, sgm__http_answer *answer);

/* inspect_histogram.c. A copy of a tensor of the trainer's registry; free `values`. */
typedef struct sgm__inspect_copy {
    sgm_tensor *values;
    int64_t iteration; /* when it was made */
    double seconds;    /* that a step could have had to wait for it */
} sgm__inspect_copy;
sgm_status sgm__inspect_tensor(sgm__web_trainer *watched, const char *identifier, sgm__inspect_copy *copy);
sgm_status sgm__inspect_histogram(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__inspect_watch(void *web, const sgm__http_request *request, sgm__http_answer *answer);
typedef struct sgm__inspect_sampler sgm__inspect_sampler; /* the part's state */
sgm_status sgm__inspect_create(sgm__web *web, void **state);
void sgm__inspect_free(void *state);
void sgm__inspect_tick(sgm__web *web, void *state);
sgm_status sgm__inspect_attach(sgm__web_trainer *watched, void **state);
void sgm__inspect_progress(sgm__web_trainer *watched, void *state, const sgm_training_progress *progress);
void sgm__inspect_free_trainer(void *state);

/* inspect_data.c */
sgm_status sgm__inspect_data(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__inspect_confusion(void *web, const sgm__http_request *request, sgm__http_answer *answer);

/* inspect_picture.c */
sgm_status sgm__inspect_picture(void *web, const sgm__http_request *request, sgm__http_answer *answer);

#endif
