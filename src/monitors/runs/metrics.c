/* Reads the metrics, changes and log lines of a run, as far as they have been written.
 *
 * sgm__run_read_metrics follows metrics.jsonl as it grows: it remembers the offset up to which complete
 * lines were read (run->read) and keeps only the newest value and the extremes of each metric.
 * sgm__run_columns reads the whole file for one answer. Lines that are no JSON object are counted and left
 * out, since a run may be writing one, or a crash may have cut one. */
#include "journal/run_lines.h"
#include "monitors/runs/runs_internal.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

/* Limits in bytes: of metrics read in one scan, of metrics for all curves, of changes, and of log lines
 * for one answer; rows of curves. */
#define MAXIMUM_AT_ONCE ((size_t)64 << 20)
#define MAXIMUM_METRICS ((size_t)1 << 30)
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

/* Keeps the maximum (sign 1) or the minimum (sign -1) of one metric. */
static void bound(json_t *bounds, const char *key, json_t *value, int sign)
{
    const json_t *known = json_object_get(bounds, key);
    if (known == NULL || sign * (json_number_value(value) - json_number_value(known)) > 0)
        json_object_set(bounds, key, value);
}

/* Takes the numbers of one line. Metrics beyond the limit are ignored. */
static void take_line(sgm__run *run, const char *line, size_t length)
{
    json_t *values = json_loadb(line, length, 0, NULL), *value;
    const char *key;
    if (!json_is_object(values))
        run->bad++;
    else
        run->lines++;
    json_object_foreach(values, key, value)
    {
        bool known = json_object_get(run->newest, key) != NULL;
        if (!json_is_number(value) || (!known && json_object_size(run->newest) >= SGM__RUNS_MAXIMUM_METRICS))
            continue;
        json_object_set(run->newest, key, value);
        bound(run->minimum, key, value, -1);
        bound(run->maximum, key, value, 1);
    }
    json_decref(values);
}

/* Forgets everything: the file is another one. */
static void begin_anew(sgm__run *run)
{
    run->read = 0;
    run->lines = run->bad = 0;
    json_object_clear(run->newest);
    json_object_clear(run->minimum);
    json_object_clear(run->maximum);
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

/* Takes the complete lines of `text`. `is_all`: the text reaches to the end of the file. If not, a text
 * without a line end would be read again for ever, so it is skipped as one bad line. */
static void take_lines(sgm__run *run, const char *text, size_t length, bool is_all)
{
    size_t start = 0, line;
    for (const char *at; (at = next_line(text, length, &start, &line)) != NULL;)
        if (line > 0)
            take_line(run, at, line);
    if (start == 0 && !is_all) { /* no line of metrics is that long */
        run->bad++;
        start = length;
    }
    run->read += (off_t)start;
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
    size_t left = (size_t)(info.st_size - run->read),
           portion = left < MAXIMUM_AT_ONCE ? left : MAXIMUM_AT_ONCE;
    char *text = sgm__alloc(portion);
    ssize_t count = text != NULL ? pread(file, text, portion, run->read) : -1;
    if (count > 0)
        take_lines(run, text, (size_t)count, portion == left);
    if (count < 0 || portion < left)
        run->metrics_mark.changed = (struct timespec){0}; /* the next scan reads on */
    sgm__free(text);
    close(file);
    return true;
}

/* --- all of a run --- */

/* A column for a metric that appears in a later row: null in all rows before. */
static json_t *new_column(size_t rows)
{
    json_t *column = json_array();
    for (size_t i = 0; i < rows; i++)
        json_array_append_new(column, json_null());
    return column;
}

/* Adds the numbers of a line as row number `rows` to the columns; columns without a number in this line
 * get null. False, and no row: the line is no JSON object. */
static bool add_row(json_t *columns, size_t rows, const char *line, size_t length)
{
    json_t *values = json_loadb(line, length, 0, NULL), *value, *column;
    const char *key;
    bool good = json_is_object(values);
    json_object_foreach(values, key, value)
    {
        if (!json_is_number(value))
            continue;
        column = json_object_get(columns, key);
        if (column == NULL && json_object_size(columns) < SGM__RUNS_MAXIMUM_METRICS)
            json_object_set_new(columns, key, column = new_column(rows));
        if (column != NULL)
            json_array_append(column, value);
    }
    json_decref(values);
    if (good)
        json_object_foreach(columns, key, column) if (json_array_size(column) <= rows)
            json_array_append_new(column, json_null());
    return good;
}

/* Takes every stride-th line, and the last one always. */
sgm_status sgm__run_columns(int folder, json_t **columns)
{
    char *text;
    size_t length, line, start = 0, count = 0, rows = 0, number = 0;
    SGM_TRY(sgm__runs_read(folder, SGM__METRICS_FILE, MAXIMUM_METRICS, &text, &length));
    *columns = json_object();
    for (size_t i = 0; i < length; i++)
        count += text[i] == '\n';
    size_t stride = count / MAXIMUM_ROWS + 1;
    for (const char *at; (at = next_line(text, length, &start, &line)) != NULL; number++)
        if (number % stride == 0 || number + 1 == count)
            rows += add_row(*columns, rows, at, line);
    sgm__free(text);
    return *columns != NULL ? SGM_OK : sgm__fail_memory(64);
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
