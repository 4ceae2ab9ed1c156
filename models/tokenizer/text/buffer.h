/* Growing memory: texts, and arrays of any type. */
#ifndef SIGMA_MODELS_BUFFER_H
#define SIGMA_MODELS_BUFFER_H

#include <sigma/base.h>

/* A text that grows; no 0 behind it unless one was added. All zero: empty. */
typedef struct sgm__buffer {
    char *data;
    size_t size, room;
} sgm__buffer;

void sgm__buffer_free(sgm__buffer *buffer);
/* Makes room for `more` bytes behind those that are there. */
sgm_status sgm__buffer_reserve(sgm__buffer *buffer, size_t more);
sgm_status sgm__buffer_add(sgm__buffer *buffer, const char *text, size_t size);
/* Adds one character. */
sgm_status sgm__buffer_put(sgm__buffer *buffer, uint32_t character);

/* Makes room for `count` elements of `size` bytes in an array that has room for `*room`; there may be none
 * yet. */
sgm_status sgm__array_reserve(void **array, size_t *room, size_t count, size_t size);
/* Memory for `count` elements, all zero; NULL and an error if there is none. Free with free(). */
void *sgm__allocate_zero(size_t count, size_t size);
/* A copy with a 0 behind; NULL and an error if there is no memory. Free with free(). */
char *sgm__copy_text(const char *text, size_t size);

/* Steps of a file may make a text longer, but none that is meant makes it 64 times as long; an error if one
 * does. */
sgm_status sgm__check_growth(size_t before, size_t now);

/* Passes a failure on. */
#define SGM__PASS(call)                                                                                      \
    do {                                                                                                     \
        const sgm_status sgm__passed = (call);                                                               \
        if (sgm__passed != SGM_OK)                                                                           \
            return sgm__passed;                                                                              \
    } while (0)

#endif
