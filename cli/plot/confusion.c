/* A confusion matrix as a heat map: how many of each true class (a row) were predicted as which (a column).
 */
#include "plot/eval_plot.h"
#include "plot/plot.h"

#include <math.h>
#include <stdio.h>

#define MAXIMUM_CLASSES 200
#define MARGIN 16.0
#define TITLE 44.0 /* height of what is above the matrix, and of what is below */
#define TEXT 12.0
#define LETTER 7.0 /* width of a letter of a text, about */
#define LONGEST_NAME 20
#define BLACK 0x222222u
#define WHITE 0xffffffu
#define FULL 0x1f4e8cu /* a share of 1 */

typedef struct matrix {
    const sgm_tensor *counts;
    const char *const *names; /* NULL: numbers */
    int64_t classes;
    double cell, left; /* width of a cell, and where the first column begins */
    bool are_numbered; /* columns have numbers, since the names are too long */
} matrix;

static int64_t count_at(const matrix *m, int64_t row, int64_t column)
{
    return (int64_t)sgm_tensor_get(m->counts, (const int64_t[]){row, column});
}

/* A name cut to LONGEST_NAME characters, with the number in front where columns have numbers. */
static void label_of(const matrix *m, int64_t class, char *text, size_t size)
{
    const char *name = m->names != NULL ? m->names[class] : "";
    size_t length = sgm__utf8_prefix(name, LONGEST_NAME);
    if (m->are_numbered || m->names == NULL)
        snprintf(text, size, "%lld %.*s%s", (long long)class, (int)length, name,
                 name[length] != '\0' ? "..." : "");
    else
        snprintf(text, size, "%.*s%s", (int)length, name, name[length] != '\0' ? "..." : "");
}

/* Between white and FULL. */
static uint32_t shade(double share)
{
    uint32_t colour = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double full = (double)(FULL >> shift & 255);
        colour |= (uint32_t)lround(255 + share * (full - 255)) << shift;
    }
    return colour;
}

/* The widest label decides where the matrix begins. */
static void lay_out(matrix *m)
{
    size_t longest = 1;
    char text[96];
    m->cell = fmax(5, fmin(64, 560 / (double)m->classes));
    for (int64_t i = 0; i < m->classes; i++) {
        label_of(m, i, text, sizeof text);
        longest = strlen(text) > longest ? strlen(text) : longest;
    }
    m->are_numbered = m->names == NULL || (double)longest * LETTER > m->cell;
    m->left = MARGIN + ((double)longest + 4) * LETTER;
}

static void draw_row(const matrix *m, plot *drawing, int64_t row)
{
    char text[96];
    int64_t all = 0;
    double y = TITLE + (double)row * m->cell;
    for (int64_t i = 0; i < m->classes; i++)
        all += count_at(m, row, i);
    for (int64_t i = 0; i < m->classes; i++) {
        int64_t count = count_at(m, row, i);
        double share = all > 0 ? (double)count / (double)all : 0, x = m->left + (double)i * m->cell;
        plot_rectangle(drawing, x, y, m->cell - 1, m->cell - 1,
                       count > 0 ? shade(0.08 + 0.92 * share) : 0xf4f4f4);
        snprintf(text, sizeof text, "%lld", (long long)count);
        if (count > 0 && (double)strlen(text) * LETTER < m->cell)
            plot_text(drawing, x + m->cell / 2, y + m->cell / 2, TEXT, PLOT_MIDDLE,
                      share > 0.5 ? WHITE : BLACK, text);
    }
    label_of(m, row, text, sizeof text);
    if (m->cell >= TEXT - 1)
        plot_text(drawing, m->left - 6, y + m->cell / 2, TEXT, PLOT_RIGHT, BLACK, text);
}

static void draw_columns(const matrix *m, plot *drawing)
{
    char text[96];
    double below = TITLE + (double)m->classes * m->cell;
    for (int64_t i = 0; i < m->classes; i++) {
        if (m->are_numbered)
            snprintf(text, sizeof text, "%lld", (long long)i);
        else
            label_of(m, i, text, sizeof text);
        if ((double)strlen(text) * LETTER <= m->cell + 1)
            plot_text(drawing, m->left + ((double)i + 0.5) * m->cell, below + 10, TEXT, PLOT_MIDDLE, BLACK,
                      text);
    }
    plot_text(drawing, m->left + (double)m->classes * m->cell / 2, below + 28, TEXT, PLOT_MIDDLE, BLACK,
              "predicted");
}

static void draw_title(const matrix *m, plot *drawing)
{
    char text[96];
    int64_t all = 0, right = 0;
    for (int64_t i = 0; i < m->classes; i++)
        for (int64_t k = 0; k < m->classes; k++) {
            all += count_at(m, i, k);
            right += i == k ? count_at(m, i, k) : 0;
        }
    snprintf(text, sizeof text, "accuracy %.2f %% (%lld of %lld)",
             all > 0 ? 100 * (double)right / (double)all : 0.0, (long long)right, (long long)all);
    plot_text(drawing, m->left, 16, TEXT + 3, PLOT_LEFT, BLACK, text);
    plot_text(drawing, m->left - 6, TITLE - 10, TEXT, PLOT_RIGHT, BLACK, "true");
}

sgm_status plot_confusion(const sgm_tensor *confusion, const char *const *classes, const char *path)
{
    matrix m = {.counts = confusion, .names = classes, .classes = sgm_tensor_shape(confusion)->dims[0]};
    if (m.classes > MAXIMUM_CLASSES)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "--plot: at most %d classes can be drawn, there are %lld",
                        MAXIMUM_CLASSES, (long long)m.classes);
    lay_out(&m);
    double side = (double)m.classes * m.cell;
    plot *drawing = plot_create((int)(m.left + fmax(side, 220) + MARGIN), (int)(TITLE + side + TITLE));
    if (drawing == NULL)
        return SGM_ERROR_MEMORY;
    draw_title(&m, drawing);
    for (int64_t i = 0; i < m.classes; i++)
        draw_row(&m, drawing, i);
    draw_columns(&m, drawing);
    sgm_status status = plot_write(drawing, path);
    plot_free(drawing);
    return status;
}
