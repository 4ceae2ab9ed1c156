/* What one thread has seen of a column: kinds of cells, and the different texts with their numbers. See
 * column.h.
 *
 * Nothing here depends on the order in which cells come, so that the tallies of several threads add up to the
 * same whatever each of them has got. Memory is bounded: of the different texts the first SGM_MAX_CATEGORIES
 * are kept, which are dropped when there is one more. */
#include "data/table/column.h"

#include <math.h>

/* --- texts --- */

static void drop_texts(sgm__tally *tally)
{
    for (size_t i = 0; i < tally->category_count; i++)
        sgm__free((char *)(uintptr_t)tally->categories[i].text);
    sgm__free(tally->categories);
    sgm__text_index_free(&tally->index);
    tally->categories = NULL;
    tally->category_count = tally->category_capacity = 0;
}

static sgm_status add_new_text(sgm__tally *tally, const char *text, size_t length, int64_t count)
{
    if (tally->category_count == SGM_MAX_CATEGORIES) {
        drop_texts(tally);
        tally->is_varied = true;
        return SGM_OK;
    }
    SGM_TRY(sgm__reserve(&tally->categories, &tally->category_capacity, tally->category_count + 1,
                         sizeof *tally->categories));
    char *copy = sgm__strndup(text, length);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    tally->categories[tally->category_count++] = (sgm_category){copy, count};
    return sgm__text_index_add(&tally->index, copy, length);
}

/* Adds `count` cells with this text. */
static inline sgm_status add_text(sgm__tally *tally, const char *text, size_t length, int64_t count)
{
    size_t at;
    if (!sgm__text_index_find(&tally->index, text, length, &at))
        return add_new_text(tally, text, length, count);
    tally->categories[at].count += count;
    return SGM_OK;
}

/* --- cells --- */

static sgm_status note_first(sgm__tally *tally, sgm__cell_kind kind, const char *cell, int64_t line)
{
    if (tally->first[kind] != NULL && tally->first_line[kind] <= line)
        return SGM_OK;
    char *copy = sgm__strdup(cell);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    sgm__free(tally->first[kind]);
    tally->first[kind] = copy;
    tally->first_line[kind] = line;
    return SGM_OK;
}

/* Adds a cell of kind `kind` that is not missing. */
static inline sgm_status add_cell(sgm__tally *tally, sgm__cell_kind kind, const char *cell, size_t length,
                                  int64_t line)
{
    if (tally->first[kind] == NULL || line < tally->first_line[kind])
        SGM_TRY(note_first(tally, kind, cell, line));
    if (kind == SGM__CELL_TEXT && (int64_t)length > tally->longest)
        tally->longest = (int64_t)length;
    return tally->is_varied ? SGM_OK : add_text(tally, cell, length, 1);
}

sgm_status sgm__tally_add(sgm__tally *tally, const sgm__cell_format *format, const sgm__csv_rows *rows,
                          size_t column, uint8_t *kinds, double *values)
{
    sgm__cells_read(format, rows, column, rows->count, kinds, values);
    for (int64_t row = 0; row < rows->count; row++) {
        sgm__cell_kind kind = kinds[row];
        tally->counts[kind]++;
        bool says_nothing = kind == SGM__CELL_MISSING ||
                            (kind == SGM__CELL_NUMBER && tally->is_varied && tally->first[kind] != NULL &&
                             tally->first_line[kind] <= rows->lines[row]); /* most cells */
        if (says_nothing)
            continue;
        size_t at = (size_t)(row * rows->columns) + column;
        tally->has_times |= kind == SGM__CELL_DATE && values[row] != floor(values[row]);
        SGM_TRY(add_cell(tally, kind, rows->cells[at], rows->lengths[at], rows->lines[row]));
    }
    return SGM_OK;
}

sgm_status sgm__tally_merge(sgm__tally *tally, const sgm__tally *other)
{
    for (sgm__cell_kind kind = 0; kind < SGM__CELL_KINDS; kind++) {
        tally->counts[kind] += other->counts[kind];
        if (other->first[kind] != NULL)
            SGM_TRY(note_first(tally, kind, other->first[kind], other->first_line[kind]));
    }
    tally->has_times |= other->has_times;
    tally->longest = other->longest > tally->longest ? other->longest : tally->longest;
    if (other->is_varied) {
        drop_texts(tally);
        tally->is_varied = true;
    }
    for (size_t i = 0; i < other->category_count && !tally->is_varied; i++)
        SGM_TRY(add_text(tally, other->categories[i].text, strlen(other->categories[i].text),
                         other->categories[i].count));
    return SGM_OK;
}

void sgm__tally_free(sgm__tally *tally)
{
    drop_texts(tally);
    for (int kind = 0; kind < SGM__CELL_KINDS; kind++)
        sgm__free(tally->first[kind]);
}
