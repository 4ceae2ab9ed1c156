/* Reads the metrics, changes and log lines of a run, as far as they have been written.
 *
 * sgm__run_read_metrics follows metrics.jsonl as it grows: it remembers the offset up to which complete
 * lines were read (run->read) and keeps only the newest value and the extremes of each metric.
 * sgm__run_all_metrics reads the whole file for one answer. Lines that are no JSON object are counted and
 * left out, since a run may be writing one, or a crash may have cut one. */
#include "journal/run_lines.h"
#include "monitors/runs/runs_internal.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

/* Limits in bytes: of metrics read in one scan, of changes, and of log lines for one answer; rows of curves.
 */
#define MAXIMUM_AT_ONCE ((off_t)16 << 20)
#define MAXIMUM_CHANGES ((size_t)4 << 20)
#define MAXIMUM_ROWS 20000
#define MAXIMUM_LOG ((size_t)96 << 10)

/* The mark is updated in any case, so a change is noticed once. */
bool sgm__run_is_same(sgm__run_mark *mark, const struct stat *info)
{
    bool same = mark->inode == info->st_ino && mark->size == info->st_size &&
                mark->changed.tv_sec == info->st_mtim.tv_sec &&
                mark->changed.tv_nsec == info->st_mtim.tv_nsec;
    *mark = (sgm__run_mark){info->st_ino, info->st_size, info->st_mtim};
    return same;
}

/* Takes a number of a line. Metrics beyond the limit are ignored. */
static void take_number(void *user, const char *name, size_t length, double value)
{
    sgm__run *run = user;
    bool is_new;
    sgm__run_column *column = sgm__run_column_of(&run->metrics, name, length, &is_new);
    if (column == NULL)
        return;
    column->newest = value;
    column->minimum = value < column->minimum ? value : column->minimum;
    column->maximum = value > column->maximum ? value : column->maximum;
}

static void take_line(void *user, char *line, size_t length, off_t offset)
{
    (void)offset;
    sgm__run *run = user;
    if (line != NULL && sgm__run_line_numbers(line, length, take_number, run))
        run->lines++;
    else
        run->bad++;
}

/* Forgets everything: the file is another one. */
static void begin_anew(sgm__run *run)
{
    run->read = 0;
    run->reading = false;
    run->lines = run->bad = 0;
    sgm__run_columns_free(&run->metrics);
}

/* The next line of a text from *start on, without its end; moves *start behind it. NULL: there is no more
 * that is complete. */
static const char *next_line(const char *text, size_t length, size_t *start, size_t *line)
{
    const char *begin = *start < length ? text + *start : NULL;
    const char *end = begin != NULL ? memchr(begin, '\n', length - *start) : NULL;
    if (end == NULL)
        return NULL;
    *line = (size_t)(end - begin);
    *start += *line + 1;
    return begin;
}

/* Whether the file has been replaced or rewritten rather than continued: another inode, a smaller size, or
 * the same size with another time. `before` has time 0 if the file was read in part only; then an equal
 * size says nothing. */
static bool is_another(const sgm__run_mark *before, const struct stat *info)
{
    bool was_read = before->changed.tv_sec != 0 || before->changed.tv_nsec != 0;
    return before->inode != info->st_ino || info->st_size < before->size ||
           (was_read && info->st_size == before->size);
}

/* A portion at most is read in one scan, so that a page does not wait for a huge file; the mark's time is
 * then set to 0, so that the next scan goes on. */
bool sgm__run_read_metrics(sgm__run *run, int folder)
{
    struct stat info;
    int file = sgm__runs_open_file(folder, SGM__METRICS_FILE, &info);
    if (file < 0) {
        bool was = run->metrics_mark.inode != 0;
        begin_anew(run);
        run->metrics_mark = (sgm__run_mark){0};
        return was;
    }
    sgm__run_mark before = run->metrics_mark;
    if (sgm__run_is_same(&run->metrics_mark, &info)) {
        close(file);
        return false;
    }
    if (is_another(&before, &info))
        begin_anew(run);
    off_t end = info.st_size - run->read > MAXIMUM_AT_ONCE ? run->read + MAXIMUM_AT_ONCE : info.st_size;
    sgm_status status = sgm__run_each_line(file, run->read, end, take_line, run, &run->read);
    run->reading = status == SGM_OK && end < info.st_size;
    if (status != SGM_OK || run->reading)
        run->metrics_mark.changed = (struct timespec){0}; /* the next scan reads on */
    close(file);
    return true;
}

/* --- all of a run --- */

/* The rows of one answer. */
typedef struct rows {
    int file;
    sgm__run_columns names;
    json_t *columns[SGM__RUNS_MAXIMUM_METRICS]; /* of `names`: arrays that `all` has; as long as `count` */
    json_t *all;
    size_t count, number, stride; /* rows, lines, and of how many lines one becomes a row */
    off_t left;                   /* the last line that became none; -1: the last line has become one */
} rows;

/* A metric that appears in a later row has null in all rows before. */
static void add_number(void *user, const char *name, size_t length, double value)
{
    rows *r = user;
    bool is_new;
    const sgm__run_column *column = sgm__run_column_of(&r->names, name, length, &is_new);
    if (column == NULL)
        return;
    json_t **list = &r->columns[column - r->names.columns];
    if (is_new) {
        json_object_set_new(r->all, column->name, *list = json_array());
        for (size_t i = 0; i < r->count; i++)
            json_array_append_new(*list, json_null());
    }
    if (json_array_size(*list) == r->count) /* the first of that name */
        json_array_append_new(*list, json_real(value));
}

/* Every metric without a number in this line gets null. */
static void add_row(rows *r, char *line, size_t length)
{
    if (!sgm__run_line_numbers(line, length, add_number, r))
        return;
    r->count++;
    for (size_t i = 0; i < r->names.count; i++)
        if (json_array_size(r->columns[i]) < r->count)
            json_array_append_new(r->columns[i], json_null());
}

static void add_line(void *user, char *line, size_t length, off_t offset)
{
    rows *r = user;
    bool is_row = r->number++ % r->stride == 0;
    r->left = is_row ? -1 : offset;
    if (is_row && line != NULL)
        add_row(r, line, length);
}

static void add_last(void *user, char *line, size_t length, off_t offset)
{
    (void)offset;
    if (line != NULL)
        add_row(user, line, length);
}

/* Takes every stride-th line, and the last one always. How many lines there are is taken from what a scan has
 * read, which is all or, of a file that it has not come to the end of yet, a part. */
sgm_status sgm__run_all_metrics(const sgm__run *run, int folder, json_t **columns)
{
    struct stat info;
    off_t next;
    rows r = {
        .file = sgm__runs_open_file(folder, SGM__METRICS_FILE, &info), .all = json_object(), .left = -1};
    sgm_status status = r.all != NULL ? SGM_OK : sgm__fail_memory(64);
    double share = r.file >= 0 && run->read > 0 ? (double)info.st_size / (double)run->read : 0;
    r.stride = (size_t)((double)(run->lines + run->bad) * share) / MAXIMUM_ROWS + 1;
    if (r.file >= 0 && status == SGM_OK)
        status = sgm__run_each_line(r.file, 0, info.st_size, add_line, &r, &next);
    if (status == SGM_OK && r.left >= 0)
        status = sgm__run_each_line(r.file, r.left, r.left + 1, add_last, &r, &next);
    if (r.file >= 0)
        close(r.file);
    sgm__run_columns_free(&r.names);
    if (status != SGM_OK) {
        json_decref(r.all);
        r.all = NULL;
    }
    *columns = r.all;
    return status;
}

/* Only the end of the file is read, so the first line may be incomplete; it is then no JSON and left out. A
 * beginning, an end or a checkpoint is no change. */
sgm_status sgm__run_changes(int folder, json_t **changes)
{
    char *text;
    size_t length, line, start = 0;
    SGM_TRY(sgm__runs_read(folder, SGM__JOURNAL_FILE, MAXIMUM_CHANGES, &text, &length));
    *changes = json_array();
    for (const char *at; (at = next_line(text, length, &start, &line)) != NULL;) {
        json_t *change = json_loadb(at, line, 0, NULL);
        const char *event = json_string_value(json_object_get(change, "event"));
        if (event != NULL && strcmp(event, sgm__entry_event(SGM__ENTRY_VALUE)) == 0)
            json_array_append(*changes, change);
        json_decref(change);
    }
    sgm__free(text);
    return *changes != NULL ? SGM_OK : sgm__fail_memory(64);
}

/* A line as JSON; if it is no UTF-8, every byte that is not ASCII becomes '?'. */
static json_t *text_of(char *line, size_t length)
{
    json_t *text = json_stringn(line, length);
    if (text != NULL)
        return text;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] >= 0x80 || line[i] == '\0')
            line[i] = '?';
    return json_stringn(line, length);
}

sgm_status sgm__run_log(int folder, json_t **lines, bool *cut)
{
    char *text;
    size_t length, start = 0;
    SGM_TRY(sgm__runs_read(folder, SGM__LOG_FILE, MAXIMUM_LOG, &text, &length));
    *lines = json_array();
    *cut = length == MAXIMUM_LOG;
    if (*cut) { /* skips the incomplete first line */
        const char *end = memchr(text, '\n', length);
        start = end != NULL ? (size_t)(end - text) + 1 : 0;
    }
    while (start < length) {
        const char *end = memchr(text + start, '\n', length - start);
        size_t line = end != NULL ? (size_t)(end - (text + start)) : length - start;
        json_array_append_new(*lines, text_of(text + start, line));
        start += line + 1;
    }
    sgm__free(text);
    return *lines != NULL ? SGM_OK : sgm__fail_memory(64);
}
