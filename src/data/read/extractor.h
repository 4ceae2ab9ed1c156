/* Extractors from the inside: a chain of parts, the first of which reads. Internal to the data pipeline. */
#ifndef SGM_DATA_READ_EXTRACTOR_H
#define SGM_DATA_READ_EXTRACTOR_H

#include "data/block/block.h"

/* --- extractors (extractor.c) --- */

/* What the library's own kinds have beside the public type. */
typedef struct sgm__extractor_parts {
    const sgm_extractor_type *type;
    void *self;
    sgm_extractor *parent, *second; /* `second`: of a merge */
    sgm_status (*rewind)(void *self);
    /* Reads by itself: passes over up to `count` examples without making a block; fewer only at the end. */
    sgm_status (*skip)(void *self, int64_t count, int64_t *skipped);
    /* Gives one block for each of its parent's, with as many examples: passing over is the parent's work. */
    bool follows_parent;
    void (*passed_over)(void *self); /* told that a block went by unseen; NULL: needs not know */
} sgm__extractor_parts;
sgm_extractor *sgm__extractor_create(const sgm__extractor_parts *parts);
/* Lets adaptive preprocessors learn, in blocks of `count` examples (0: as many as fit in a few megabytes). */
sgm_status sgm__extractor_fit(sgm_extractor *extractor, int64_t count);
/* Like extract, without the block. */
sgm_status sgm__extractor_skip(sgm_extractor *extractor, int64_t count, int64_t *skipped);
/* State of the whole chain: for each adaptive part, innermost first, a count and that many numbers. */
sgm_status sgm__extractor_get_state(sgm_extractor *extractor, double *numbers, size_t *count);
sgm_status sgm__extractor_set_state(sgm_extractor *extractor, const double *numbers, size_t count);
/* Reads a few megabytes at a time from a reader, however many examples are asked for. */
typedef struct sgm__chunks {
    sgm_reader *reader;
    int64_t size; /* examples of the next chunk; 0 at first */
} sgm__chunks;
sgm_status sgm__chunks_read(sgm__chunks *chunks, int64_t count, sgm_examples *examples);
sgm_status sgm__chunks_rewind(sgm__chunks *chunks);
sgm_status sgm__chunks_skip(sgm__chunks *chunks, int64_t count, int64_t *skipped);

#endif
