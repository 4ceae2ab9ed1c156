/* What goes on with texts: by drawing (generate.c) and by beams (beams.c). Internal. */
#ifndef SGM_INFER_GENERATE_H
#define SGM_INFER_GENERATE_H

#include "infer/generator.h"

/* Whether tokens that were seen get other chances. */
static inline bool sgm__is_penalised(const sgm_generation_options *options)
{
    return options->repetition_penalty != 0 && options->repetition_penalty != 1;
}

/* Whether a text ends behind this token. */
static inline bool sgm__is_end(const sgm_generation_options *options, int64_t token)
{
    for (size_t i = 0; i < options->end_count; i++)
        if (options->ends[i] == token)
            return true;
    return false;
}

static inline double sgm__length_penalty(const sgm_generation_options *options)
{
    return options->length_penalty != 0 ? options->length_penalty : 1;
}

/* Goes on with one text by options->beams beams, at least 2; the generator has as many sequences, and was
 * reset. */
sgm_status sgm__beams_generate(sgm_generator *g, sgm_continuation *given,
                               const sgm_generation_options *options);

#endif
