/* Elementwise steps: a work-item computes all members of a chain for an element. */
#include "handlers/device/code_internal.h"

sgm_status sgm__device_write_elementwise(sgm__device_render *r, int32_t step)
{
    sgm__source_writer *w = &r->writer;
    const char *index[SGM_MAX_RANK] = {NULL};
    sgm__source_walk walk;
    int64_t count = 1;
    sgm__source_find_walk(w, step, &walk);
    for (int32_t i = 0; i < walk.count; i++)
        count *= walk.sizes[i];
    sgm__device_begin(r);
    sgm__device_items(r, "n", count);
    sgm__device_unravel(r, "n", &walk, index);
    sgm__source_write_members(w, step, &walk, index);
    return sgm__device_end(r);
}
