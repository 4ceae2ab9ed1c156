/* Confusion matrices as text, for reports and the command line (sgm_confusion_text).
 *
 * Up to 30 classes the whole matrix is written, a line for each target class with the share found (recall)
 * behind it; beyond that, lines would be too wide for a terminal, and only the most frequent mistakes are
 * listed. Any square matrix of counts will do; confusion.c makes those of metrics. Widths are counted in
 * characters of UTF-8, not in bytes. */

#include "base/base.h"
#include "metrics/metrics.h"
#include <stdio.h>

#define WIDEST_MATRIX 30 /* classes */
#define LONGEST_NAME 24  /* characters */
#define MAXIMUM_LINES 10 /* mistakes that are listed */

/* counts[target * classes + prediction]; the pointers are borrowed for the time of one call. */
typedef struct matrix {
    int64_t classes;
    const int64_t *counts;
    const char *const *names; /* NULL: none */
} matrix;

static size_t digits_of(int64_t number)
{
    size_t digits = 1;
    while ((number /= 10) != 0)
        digits++;
    return digits;
}

/* "3 setosa": number and name of a class, the name cut at LONGEST_NAME characters (never within one),
 * padded with spaces to `width` characters. */
static void append_class(sgm__text *text, const matrix *m, int64_t class, size_t width)
{
    size_t length = digits_of(class);
    sgm__text_append(text, "%lld", (long long)class);
    if (m->names != NULL) {
        size_t given = sgm__utf8_count(m->names[class]);
        sgm__text_append(text, " %.*s", (int)sgm__utf8_prefix(m->names[class], LONGEST_NAME),
                         m->names[class]);
        length += 1 + (given < LONGEST_NAME ? given : LONGEST_NAME);
    }
    for (; length < width; length++)
        sgm__text_append(text, " ");
}

/* Characters of the widest class as append_class writes it. */
static size_t class_width(const matrix *m)
{
    size_t widest = 0;
    for (int64_t i = 0; i < m->classes; i++) {
        size_t name = m->names != NULL ? sgm__utf8_count(m->names[i]) : 0;
        size_t width = digits_of(i) + (m->names != NULL) + (name < LONGEST_NAME ? name : LONGEST_NAME);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* One line of the matrix. 0 is written as ".", so that mistakes stand out. A class without examples has no
 * recall. */
static void append_row(sgm__text *text, const matrix *m, int64_t class, size_t head, int width)
{
    int64_t examples = 0, right = m->counts[class * m->classes + class];
    append_class(text, m, class, head);
    for (int64_t i = 0; i < m->classes; i++) {
        int64_t count = m->counts[class * m->classes + i];
        examples += count;
        if (count == 0)
            sgm__text_append(text, " %*s", width, ".");
        else
            sgm__text_append(text, " %*lld", width, (long long)count);
    }
    if (examples > 0)
        sgm__text_append(text, "  %7lld  %5.1f %%\n", (long long)examples,
                         100 * (double)right / (double)examples);
    else
        sgm__text_append(text, "  %7d        -\n", 0);
}

/* Columns are wide enough for the largest count and for the number of the last class in the head line. */
static void append_matrix(sgm__text *text, const matrix *m)
{
    static const char corner[] = "target \\ output";
    int64_t maximum = m->classes - 1;
    size_t head = class_width(m);
    head = head < sizeof corner - 1 ? sizeof corner - 1 : head;
    for (int64_t i = 0; i < m->classes * m->classes; i++)
        maximum = m->counts[i] > maximum ? m->counts[i] : maximum;
    int width = (int)digits_of(maximum) + 1;
    sgm__text_append(text, "%-*s", (int)head, corner);
    for (int64_t i = 0; i < m->classes; i++)
        sgm__text_append(text, " %*lld", width, (long long)i);
    sgm__text_append(text, "  examples   recall\n");
    for (int64_t i = 0; i < m->classes; i++)
        append_row(text, m, i, head, width);
}

/* The most frequent mistakes, most frequent first, of equally frequent ones the first in the matrix: a
 * sorted list of MAXIMUM_LINES places, into which each cell off the diagonal is inserted. */
static void append_mistakes(sgm__text *text, const matrix *m)
{
    int64_t places[MAXIMUM_LINES], found = 0;
    for (int64_t i = 0; i < m->classes * m->classes; i++) {
        if (m->counts[i] == 0 || i / m->classes == i % m->classes)
            continue;
        int64_t at = found;
        while (at > 0 && m->counts[places[at - 1]] < m->counts[i])
            at--;
        if (at == MAXIMUM_LINES)
            continue;
        found += found < MAXIMUM_LINES;
        memmove(&places[at + 1], &places[at], (size_t)(found - 1 - at) * sizeof *places);
        places[at] = i;
    }
    for (int64_t i = 0; i < found; i++) {
        append_class(text, m, places[i] / m->classes, 0);
        sgm__text_append(text, " predicted as ");
        append_class(text, m, places[i] % m->classes, 0);
        sgm__text_append(text, ": %lld\n", (long long)m->counts[places[i]]);
    }
    if (found == 0)
        sgm__text_append(text, "no mistakes\n");
}

/* The cast makes counts of any type contiguous int64. */
char *sgm_confusion_text(const sgm_tensor *confusion, const char *const *classes)
{
    const sgm_shape *shape = confusion != NULL ? sgm_tensor_shape(confusion) : NULL;
    if (shape == NULL || shape->rank != 2 || shape->dims[0] != shape->dims[1] || shape->dims[0] < 1) {
        sgm_fail(SGM_ERROR_SHAPE, "a confusion matrix has as many rows as columns");
        return NULL;
    }
    sgm_tensor *counts = sgm_tensor_cast(confusion, SGM_INT64);
    if (counts == NULL)
        return NULL;
    sgm__text text = {0};
    const matrix m = {shape->dims[0], sgm_tensor_const_data(counts), classes};
    if (m.classes <= WIDEST_MATRIX)
        append_matrix(&text, &m);
    else
        append_mistakes(&text, &m);
    sgm_tensor_free(counts);
    return sgm__text_take(&text);
}
