/* Extractors from the inside: a chain of parts that turns what a reader reads into blocks. Internal to
 * src/data.
 *
 * The first part of a chain reads (../csv/extractor_csv.c, extractor_array.c); each further part is a
 * preprocessor around the one before, its parent. A program asks the last part for a block, which asks its
 * parent, and so on. A merge has two parents, `parent` and `second`, so a chain may be a tree. All of it runs
 * on one thread at a time: that of the dataset which has set `busy` (dataset.c). */
#ifndef SGM_DATA_READ_EXTRACTOR_H
#define SGM_DATA_READ_EXTRACTOR_H

#include "data/block/block.h"
#include "data/cache/key.h"

/* --- extractors (extractor.c) --- */

/* The parts of an extractor. Programs give the public type only; the library's own kinds can also skip. */
typedef struct sgm__extractor_parts {
    const sgm_extractor_type *type;
    void *self;
    sgm_extractor *parent, *second; /* `second`: of a merge */
    sgm_status (*rewind)(void *self);
    /* For a part that reads by itself: passes over up to `count` examples without making a block; *skipped is
     * fewer only at the end. */
    sgm_status (*skip)(void *self, int64_t count, int64_t *skipped);
    /* This part gives one block for each block of its parent, with as many examples, so that its parent alone
     * can skip for it. */
    bool follows_parent;
    void (*passed_over)(void *self); /* told after its parent has skipped a block; NULL: it need not know */
    /* Adds what its blocks depend on besides those of its parents: options, sources. NULL: it does not say.
     */
    void (*describe)(const void *self, sgm__key *key);
} sgm__extractor_parts;
/* Takes over `self`, `parent` and `second`, also on failure; copies the type. */
sgm_extractor *sgm__extractor_create(const sgm__extractor_parts *parts);
/* Adds what the blocks of the whole chain depend on. */
void sgm__extractor_describe(const sgm_extractor *extractor, sgm__key *key);
/* The `describe` of a part without options. */
void sgm__extractor_describe_nothing(const void *self, sgm__key *key);
/* Lets all adaptive parts learn that have not learnt yet, innermost first. Each goes over the whole source in
 * blocks of `count` examples (0: as many as fit in a few megabytes) and rewinds it, so this must not be
 * called in the middle of a pass. Once all have learnt it does nothing. */
sgm_status sgm__extractor_fit(sgm_extractor *extractor, int64_t count);
/* Passes over what the next call of sgm_extractor_extract would give; *skipped is its number of examples, 0
 * at the end. */
sgm_status sgm__extractor_skip(sgm_extractor *extractor, int64_t count, int64_t *skipped);
/* The state that the chain has learnt, as numbers: for each adaptive part, innermost first, a count and that
 * many numbers. `numbers` NULL: only *count is set; else *count is the room on entry. */
sgm_status sgm__extractor_get_state(sgm_extractor *extractor, double *numbers, size_t *count);
sgm_status sgm__extractor_set_state(sgm_extractor *extractor, const double *numbers, size_t count);
/* Reads from a reader some megabytes at a time, however many examples are asked for at once: a block of
 * millions of examples then needs no second array of its size in the reader's own type. */
typedef struct sgm__chunks {
    sgm_reader *reader; /* owned by the extractor around */
    /* examples of the next chunk, once the size of an example is known; 0: nothing was read yet */
    int64_t size;
} sgm__chunks;
/* Reads up to `count` examples, often fewer; examples->count is 0 at the end. They are valid until the next
 * call. */
sgm_status sgm__chunks_read(sgm__chunks *chunks, int64_t count, sgm_examples *examples);
sgm_status sgm__chunks_rewind(sgm__chunks *chunks);
sgm_status sgm__chunks_skip(sgm__chunks *chunks, int64_t count, int64_t *skipped);

#endif
