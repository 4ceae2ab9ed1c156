/* Views: datasets that show a share of the examples of each block of their base, or some of its blocks.
 *
 * A view copies nothing and reads nothing: it maps its own block index to one of its base's, fetches a range
 * there, and narrows the run. So training and test parts of a dataset that does not fit in memory share its
 * blocks. A base may be a view itself. Also here: sgm_dataset_fetch_block and sgm_dataset_release_block,
 * which hand out blocks to programs; iterators use ranges (dataset.c:sgm__dataset_fetch_range) instead, since
 * these allocate nothing. Invariant: no block of a view of examples is empty, as 0 examples mean the end to
 * everything that reads blocks. */
#include "data/dataset_internal.h"

#include <math.h>

/* --- which examples a share is --- */

/* Where the fraction of a block of `count` examples lies: round(fraction * count), kept within the block. The
 * begin of one view and the end of the one before must give the same number, or examples would be in both or
 * in neither, although begin + share (0.7 + 0.2) differs from the literal 0.9 in the last bits. Just below
 * one half, such a difference would round to two numbers; the 1e-6 moves the border to where no fraction that
 * a person writes comes near. */
static int64_t place(double fraction, int64_t count)
{
    double exact = floor(fraction * (double)count + 0.5 + 1e-6);
    return exact < 0 ? 0 : exact > (double)count ? count : (int64_t)exact;
}

static void share_of(const sgm_dataset *view, int64_t count, int64_t *begin, int64_t *end)
{
    const int64_t group = sgm_dataset_get_group(view);
    *begin = group * place(view->begin, count / group);
    *end = group * place(view->begin + view->share, count / group);
}

/* Finds the base's block that is block `index` of a view of examples, by going over the base's blocks in
 * order and leaving out those of which the view has no example. *block becomes -1 past the last one. Under
 * the view's mutex, which is held while the base reads: other threads need the same result. */
static sgm_status map_examples(sgm_dataset *view, int64_t index, int64_t *block)
{
    *block = -1;
    while ((int64_t)view->mapped_count <= index) {
        int64_t examples, begin, end;
        SGM_TRY(sgm__dataset_block_examples(view->base, view->mapped_until, &examples));
        if (examples == 0)
            return SGM_OK;
        share_of(view, examples, &begin, &end);
        if (begin < end) {
            SGM_TRY(sgm__reserve(&view->mapped, &view->mapped_capacity, view->mapped_count + 1,
                                 sizeof *view->mapped));
            view->mapped[view->mapped_count++] = view->mapped_until;
        }
        view->mapped_until++;
    }
    *block = view->mapped[index];
    return SGM_OK;
}

/* The base's block for block `index` of any view, -1 past the last one of the view. Whether the base has that
 * block is for the base to say. The bound is compared by division, since first + index * interval might
 * overflow. */
static sgm_status map_index(sgm_dataset *view, int64_t index, int64_t *block)
{
    if (view->kind == SGM__VIEW_BLOCKS) {
        int64_t limit = view->end < 0 ? INT64_MAX : view->end;
        *block = index >= 0 && view->first < limit && index <= (limit - 1 - view->first) / view->interval
                     ? view->first + index * view->interval
                     : -1;
        return SGM_OK;
    }
    pthread_mutex_lock(&view->mutex);
    sgm_status status = map_examples(view, index, block);
    pthread_mutex_unlock(&view->mutex);
    return status;
}

/* If the base is a view, its range begins somewhere in a block, so the share is counted from the range's
 * begin.
 */
sgm_status sgm__view_fetch_range(sgm_dataset *view, int64_t index, sgm__example_range *range)
{
    int64_t block, begin, end;
    SGM_TRY(map_index(view, index, &block));
    if (block < 0)
        return SGM_OK;
    SGM_TRY(sgm__dataset_fetch_range(view->base, block, range));
    if (range->block && view->kind == SGM__VIEW_EXAMPLES) {
        share_of(view, range->end - range->begin, &begin, &end);
        range->end = range->begin + end;
        range->begin += begin;
    }
    return SGM_OK;
}

sgm_status sgm__view_block_examples(sgm_dataset *view, int64_t index, int64_t *examples)
{
    int64_t block, begin, end;
    SGM_TRY(map_index(view, index, &block));
    if (block < 0)
        return SGM_OK;
    SGM_TRY(sgm__dataset_block_examples(view->base, block, examples));
    if (view->kind == SGM__VIEW_EXAMPLES) {
        share_of(view, *examples, &begin, &end);
        *examples = end - begin;
    }
    return SGM_OK;
}

/* The row is counted from the view's share in the block, so the share's begin is added before the base is
 * asked. */
sgm_status sgm__view_number(sgm_dataset *view, int64_t index, int64_t row, int64_t *number)
{
    int64_t block, examples, begin = 0, end;
    SGM_TRY(map_index(view, index, &block));
    if (block < 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "dataset \"%s\" has no block %lld", view->name,
                        (long long)index);
    if (view->kind == SGM__VIEW_EXAMPLES) {
        SGM_TRY(sgm__dataset_block_examples(view->base, block, &examples));
        share_of(view, examples, &begin, &end);
    }
    return sgm__dataset_number(view->base, block, begin + row, number);
}

/* --- making them --- */

/* A view has the name of its base and holds a reference on it. */
static sgm_dataset *create_view(sgm_dataset *base, sgm__dataset_kind kind)
{
    sgm_dataset *view = sgm__dataset_allocate(base->name, kind);
    if (!view)
        return NULL;
    view->base = sgm_dataset_retain(base);
    atomic_fetch_add(&base->views, 1);
    return view;
}

/* The 1e-9 allows for shares that add up to a little more than 1 by rounding. */
sgm_dataset *sgm_dataset_split_examples(sgm_dataset *dataset, double begin, double share)
{
    if (!dataset) {
        sgm__missing_part("sgm_dataset_split_examples: a dataset");
        return NULL;
    }
    if (!(begin >= 0 && share > 0 && begin + share <= 1 + 1e-9)) {
        sgm_fail(
            SGM_ERROR_ARGUMENT,
            "a share of %g of the examples, from %g on, would end at %g: it has to be above 0 and to end "
            "at 1 or before",
            share, begin, begin + share);
        return NULL;
    }
    sgm_dataset *view = create_view(dataset, SGM__VIEW_EXAMPLES);
    if (view) {
        view->begin = begin;
        view->share = share;
    }
    return view;
}

sgm_dataset *sgm_dataset_split_blocks(sgm_dataset *dataset, int64_t begin, int64_t end, int64_t interval)
{
    if (!dataset) {
        sgm__missing_part("sgm_dataset_split_blocks: a dataset");
        return NULL;
    }
    if (begin < 0 || (end != -1 && end < begin) || interval < 1) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "every %lld-th block from %lld to %lld; expected an interval of 1 or more and an end (-1: "
                 "all) not before the begin",
                 (long long)interval, (long long)begin, (long long)end);
        return NULL;
    }
    sgm_dataset *view = create_view(dataset, SGM__VIEW_BLOCKS);
    if (view) {
        view->first = begin;
        view->end = end;
        view->interval = interval;
    }
    return view;
}

/* --- handing out --- */

/* A block of slices: its tensors share the memory of the range's block, which must stay until the part is
 * freed. */
static sgm_block *part_of(const sgm__example_range *range)
{
    sgm_block *part = sgm_block_create(range->end - range->begin);
    for (int32_t i = 0; part && i < range->block->field_count; i++) {
        const sgm_field *field = &range->block->fields[i];
        sgm_tensor *values = sgm_tensor_slice(field->values, 0, range->begin, range->end, 1);
        if (!values || sgm_block_add(part, field->name, values) != SGM_OK) {
            sgm_block_free(part);
            part = NULL;
        }
    }
    return part;
}

/* A part remembers its range in `source`, so that sgm_dataset_release_block can release that one, too. */
const sgm_block *sgm__example_range_block(sgm__example_range *range)
{
    if (range->begin == 0 && range->end == range->block->count)
        return range->block;
    sgm_block *part = part_of(range);
    if (part)
        ((sgm__block *)part)->source = *range;
    else
        sgm__example_range_release(range);
    return part;
}

sgm_status sgm_dataset_fetch_block(sgm_dataset *dataset, int64_t index, const sgm_block **block)
{
    if (!dataset || !block)
        return sgm__missing_part("sgm_dataset_fetch_block: a dataset and a place for the block");
    *block = NULL;
    sgm__example_range range;
    SGM_TRY(sgm__dataset_fetch_range(dataset, index, &range));
    if (!range.block)
        return SGM_OK;
    *block = sgm__example_range_block(&range);
    return *block ? SGM_OK : sgm_last_status();
}

/* The block itself tells what to do: a part has a source range, which is released after the part was freed;
 * any other block is shared and belongs to `owner`, which is the base's base when `dataset` is a view. */
void sgm_dataset_release_block(sgm_dataset *dataset, const sgm_block *block)
{
    if (!dataset || !block)
        return;
    sgm__block *whole = (sgm__block *)(uintptr_t)block;
    if (whole->source.block) {
        sgm__example_range source = whole->source;
        sgm_block_free(&whole->block);
        sgm__example_range_release(&source);
        return;
    }
    sgm__example_range range = {whole->owner, block, 0, block->count};
    sgm__example_range_release(&range);
}
