/* Ranks the trials of a search, and writes them as a table for people (sgm_search_text) and as results.csv
 * for programs.
 *
 * Both tables have the same order: trials with an objective first, those on higher rungs before others,
 * then by objective (pruned ones, which are on none, by how far they got first); then trials that have none
 * yet; failed ones last. */
#include "environment/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TABLE_FILE "results.csv"
/* Bytes of a cell in the table for people; longer texts end in "...". */
#define WIDEST_CELL 40

const char *sgm_trial_state_name(sgm_trial_state state)
{
    static const char *const names[] = {"waiting", "running", "done", "dropped", "failed"};
    return (size_t)state < sizeof names / sizeof *names ? names[state] : "unknown";
}

bool sgm__search_is_better(const sgm_search *search, double a, double b)
{
    return search->minimum ? a < b : a > b;
}

/* --- order --- */

/* 0: has an objective, 1: has none yet, 2: failed. */
static int kind_of(const sgm__trial *trial)
{
    if (trial->shown.state == SGM_TRIAL_FAILED)
        return 2;
    return isnan(trial->shown.objective) ? 1 : 0;
}

static int compare(const void *left, const void *right)
{
    const sgm__ranked *l = left, *r = right;
    const sgm_trial *a = &l->trial->shown, *b = &r->trial->shown;
    int kind = kind_of(l->trial) - kind_of(r->trial);
    if (kind != 0)
        return kind;
    if (kind_of(l->trial) == 0) {
        if (a->rung != b->rung)
            return a->rung > b->rung ? -1 : 1;
        if (a->rung == 0 && a->epochs != b->epochs)
            return a->epochs > b->epochs ? -1 : 1;
        if (a->objective != b->objective)
            return sgm__search_is_better(l->search, a->objective, b->objective) ? -1 : 1;
    }
    return a->number < b->number ? -1 : 1;
}

sgm__ranked *sgm__search_rank(const sgm_search *search)
{
    sgm__ranked *list = sgm__calloc(search->trial_count + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < search->trial_count; i++)
        list[i] = (sgm__ranked){search, &search->trials[i]};
    if (list != NULL)
        qsort(list, search->trial_count, sizeof *list, compare);
    return list;
}

/* Only a finished rung counts; the number of a higher rung always beats that of a lower one, since it was
 * trained for longer. */
const sgm__trial *sgm__search_best(const sgm_search *search)
{
    const sgm__trial *best = NULL;
    for (size_t i = 0; i < search->trial_count; i++) {
        const sgm__trial *trial = &search->trials[i];
        const sgm_trial *shown = &trial->shown;
        if (shown->state == SGM_TRIAL_FAILED || shown->rung == 0 || isnan(shown->objective))
            continue;
        if (best == NULL || shown->rung > best->shown.rung ||
            (shown->rung == best->shown.rung &&
             sgm__search_is_better(search, shown->objective, best->shown.objective)))
            best = trial;
    }
    return best;
}

/* --- comma-separated --- */

/* Quotes as in RFC 4180: a cell with a comma, a quote or a line break is put in quotes, quotes within are
 * doubled. */
static void append_cell(sgm__text *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        sgm__text_append(out, "%s", text);
        return;
    }
    sgm__text_append(out, "\"");
    for (const char *c = text; *c != '\0'; c++)
        sgm__text_append(out, "%s%c", *c == '"' ? "\"" : "", *c);
    sgm__text_append(out, "\"");
}

/* The objective of a trial without one is an empty cell. */
static void append_row(const sgm_search *search, sgm__text *out, const sgm__trial *trial)
{
    const sgm_trial *shown = &trial->shown;
    sgm__text_append(out, "%lld,", (long long)shown->number);
    if (!isnan(shown->objective))
        sgm__text_append(out, "%.9g", shown->objective);
    for (size_t i = 0; i < search->value_count; i++) {
        sgm__text_append(out, ",");
        append_cell(out, shown->values[i].text);
    }
    sgm__text_append(out, ",%lld,%.3f,%s,", (long long)shown->epochs, shown->seconds,
                     sgm_trial_state_name(shown->state));
    append_cell(out, shown->error != NULL ? shown->error : "");
    sgm__text_append(out, "\n");
}

/* The caller frees the text with sgm_string_free; NULL: out of memory. */
char *sgm_search_csv(const sgm_search *search)
{
    sgm__text out = {0};
    sgm__ranked *list = search != NULL ? sgm__search_rank(search) : NULL;
    if (list == NULL)
        return NULL;
    sgm__text_append(&out, "trial,");
    append_cell(&out, search->options.objective);
    for (size_t i = 0; i < search->value_count; i++) {
        sgm__text_append(&out, ",");
        append_cell(&out, search->options.values[i].name);
    }
    sgm__text_append(&out, ",epochs,seconds,state,error\n");
    for (size_t i = 0; i < search->trial_count; i++)
        append_row(search, &out, list[i].trial);
    sgm__free(list);
    return sgm__text_take(&out);
}

/* Replaces the file atomically, so that readers never see half of a table. */
sgm_status sgm__search_write_table(sgm_search *search)
{
    char *path = sgm__format("%s/" TABLE_FILE, search->options.folder), *text = sgm_search_csv(search);
    sgm_status status =
        path != NULL && text != NULL ? sgm__file_write_atomic(path, text, strlen(text)) : sgm__last_failure();
    sgm__free(path);
    sgm_string_free(text);
    search->written = sgm__now();
    return status;
}

/* --- for people --- */

/* Writes one cell into `text` and returns its width in characters. Columns: trial, objective, the values,
 * epochs, seconds, state. `trial` NULL: the heading, which is not shortened. */
static size_t cell(const sgm_search *search, const sgm__trial *trial, size_t column, char *text, size_t size)
{
    const sgm_trial *shown = trial != NULL ? &trial->shown : NULL;
    size_t values = search->value_count;
    static const char *const heads[] = {"epochs", "seconds", "state"};
    if (column == 0)
        shown == NULL ? snprintf(text, size, "trial")
                      : snprintf(text, size, "%lld", (long long)shown->number);
    else if (column == 1 && shown == NULL)
        snprintf(text, size, "%s", search->options.objective);
    else if (column == 1)
        isnan(shown->objective) ? snprintf(text, size, "-") : snprintf(text, size, "%.6g", shown->objective);
    else if (column < values + 2)
        snprintf(text, size, "%s",
                 shown == NULL ? search->options.values[column - 2].name : shown->values[column - 2].brief);
    else if (shown == NULL)
        snprintf(text, size, "%s", heads[column - values - 2]);
    else if (column == values + 2)
        snprintf(text, size, "%lld", (long long)shown->epochs);
    else if (column == values + 3)
        snprintf(text, size, "%.1f", shown->seconds);
    else
        snprintf(text, size, "%s", sgm_trial_state_name(shown->state));
    if (shown != NULL && sgm__utf8_count(text) > WIDEST_CELL)
        memcpy(text + sgm__utf8_prefix(text, WIDEST_CELL - 3), "...", 4);
    return sgm__utf8_count(text);
}

/* One line of the table: the first two columns aligned to the right, the last one without padding, so that
 * an error can follow. */
static void append_line(const sgm_search *search, const sgm__trial *trial, const size_t *widths,
                        size_t columns, sgm__text *out)
{
    char text[256];
    for (size_t c = 0; c < columns; c++) {
        int space = (int)(widths[c] - cell(search, trial, c, text, sizeof text));
        bool last = c + 1 == columns;
        sgm__text_append(out, "%*s%s%*s", c < 2 ? space : 0, "", text, last ? 0 : 2 + (c < 2 ? 0 : space),
                         "");
    }
    if (trial != NULL && trial->error != NULL)
        sgm__text_append(out, ": %s", trial->error);
    sgm__text_append(out, "\n");
}

/* Two passes: widths of all columns, then the lines. Trials that have not begun are only counted. */
char *sgm_search_text(const sgm_search *search)
{
    sgm__text out = {0};
    sgm__ranked *list = search != NULL ? sgm__search_rank(search) : NULL;
    size_t widths[SGM_SEARCH_VALUES + 5], columns, waiting = 0;
    char text[256];
    if (list == NULL)
        return NULL;
    columns = search->value_count + 5;
    for (size_t c = 0; c < columns; c++) {
        widths[c] = cell(search, NULL, c, text, sizeof text);
        for (size_t i = 0; i < search->trial_count; i++) {
            size_t width = cell(search, &search->trials[i], c, text, sizeof text);
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    append_line(search, NULL, widths, columns, &out);
    for (size_t i = 0; i < search->trial_count; i++) {
        const sgm_trial *trial = &list[i].trial->shown;
        bool begun = trial->state != SGM_TRIAL_WAITING || trial->epochs > 0;
        if (begun)
            append_line(search, list[i].trial, widths, columns, &out);
        waiting += !begun;
    }
    if (waiting > 0)
        sgm__text_append(&out, "and %zu that %s not begun\n", waiting, waiting == 1 ? "has" : "have");
    sgm__free(list);
    return sgm__text_take(&out);
}
