/* Rows without a value in a column that needs one. They are taken out before anything is learnt or made of
 * rows, so that whoever counts rows counts the same ones. See table.h. */
#include "data/table/table.h"

bool sgm__needed_lacks(const sgm__needed *needed, const sgm__cell_format *format, const char *const *cells)
{
    for (size_t i = 0; i < needed->count; i++)
        if (sgm__cell_is_missing(format, cells[needed->columns[i]]))
            return true;
    return false;
}

int64_t sgm__needed_leave_out(const sgm__needed *needed, const sgm__cell_format *format, sgm__csv_rows *rows)
{
    int64_t kept = 0, count = rows->count;
    if (needed->count == 0)
        return 0;
    for (int64_t row = 0; row < count; row++) {
        if (sgm__needed_lacks(needed, format, rows->cells + row * rows->columns))
            continue;
        if (kept < row)
            sgm__csv_rows_keep(rows, row, kept);
        kept++;
    }
    rows->count = kept;
    return count - kept;
}
