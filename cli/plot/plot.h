/* Plots: rectangles, lines, points and texts, written as SVG or as PNG.
 *
 *     plot *drawing = plot_create(300, 200);
 *     plot_rectangle(drawing, 10, 10, 50, 20, 0x3b6fb6);
 *     plot_text(drawing, 35, 20, 12, PLOT_MIDDLE, 0x000000, "dog");
 *     sgm_status status = plot_write(drawing, "dog.svg");
 *     plot_free(drawing);
 *
 * plot.c keeps the shapes in the order in which they are drawn, and writes them as SVG; raster.c draws them
 * into pixels, with the letters of letters.c, and writes these as PNG. Coordinates are pixels from the upper
 * left corner; colours are 0xRRGGBB. Without memory shapes get lost, and plot_write fails. */
#ifndef SGM_CLI_PLOT_PLOT_H
#define SGM_CLI_PLOT_PLOT_H

#include "base/base.h"

typedef enum plot_anchor { PLOT_LEFT, PLOT_MIDDLE, PLOT_RIGHT } plot_anchor; /* what of a text is at x */

typedef enum plot_kind { PLOT_RECTANGLE, PLOT_LINE, PLOT_POINT, PLOT_TEXT } plot_kind;

typedef struct plot_shape {
    plot_kind kind;
    double x, y; /* upper left corner; one end; centre; of a text its anchor, and the middle of its height */
    double width, height; /* of a line: to the other end; of a point: its radius */
    double size;          /* of a text: pixels of its capitals and what hangs below them */
    plot_anchor anchor;
    uint32_t colour;
    char *text; /* owned */
} plot_shape;

typedef struct plot {
    int width, height;
    plot_shape *shapes;
    size_t count, capacity;
    bool failed; /* there was no memory for a shape */
} plot;

/* White. NULL without memory. */
plot *plot_create(int width, int height);
void plot_free(plot *drawing);
void plot_rectangle(plot *drawing, double x, double y, double width, double height, uint32_t colour);
void plot_line(plot *drawing, double x, double y, double to_x, double to_y, uint32_t colour);
void plot_point(plot *drawing, double x, double y, double radius, uint32_t colour);
/* One line of UTF-8; a PNG shows what is not ASCII as '?'. */
void plot_text(plot *drawing, double x, double y, double size, plot_anchor anchor, uint32_t colour,
               const char *text);
/* By the end of the name, .svg or .png; whole or not at all. */
sgm_status plot_write(const plot *drawing, const char *path);
/* Whether a name ends so. */
bool plot_can_write(const char *path);

/* --- raster.c --- */
/* The drawing as a file of PNG: bytes that are appended. */
sgm_status plot_png(const plot *drawing, sgm__text *bytes);

/* --- letters.c --- */
#define LETTER_WIDTH 5
#define LETTER_HEIGHT 8 /* of which one hangs below the line */
/* Columns of a letter of ASCII, the upper pixel in the lowest bit; '?' for other bytes. */
const unsigned char *plot_letter(char letter);

#endif
