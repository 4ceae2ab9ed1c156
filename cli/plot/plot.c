/* The shapes of a plot, and their form as SVG. See plot.h. */
#include "plot/plot.h"
#include "config/arguments.h"

plot *plot_create(int width, int height)
{
    plot *drawing = sgm__calloc(1, sizeof *drawing);
    if (drawing != NULL) {
        drawing->width = width;
        drawing->height = height;
    }
    return drawing;
}

void plot_free(plot *drawing)
{
    if (drawing == NULL)
        return;
    for (size_t i = 0; i < drawing->count; i++)
        sgm__free(drawing->shapes[i].text);
    sgm__free(drawing->shapes);
    sgm__free(drawing);
}

/* Takes the shape. */
static void add(plot *drawing, plot_shape shape)
{
    if (sgm__reserve(&drawing->shapes, &drawing->capacity, drawing->count + 1, sizeof shape) == SGM_OK) {
        drawing->shapes[drawing->count++] = shape;
        return;
    }
    sgm__free(shape.text);
    drawing->failed = true;
}

void plot_rectangle(plot *drawing, double x, double y, double width, double height, uint32_t colour)
{
    add(drawing, (plot_shape){PLOT_RECTANGLE, x, y, width, height, .colour = colour});
}

void plot_line(plot *drawing, double x, double y, double to_x, double to_y, uint32_t colour)
{
    add(drawing, (plot_shape){PLOT_LINE, x, y, to_x - x, to_y - y, .colour = colour});
}

void plot_point(plot *drawing, double x, double y, double radius, uint32_t colour)
{
    add(drawing, (plot_shape){PLOT_POINT, x, y, radius, radius, .colour = colour});
}

void plot_text(plot *drawing, double x, double y, double size, plot_anchor anchor, uint32_t colour,
               const char *text)
{
    char *own = sgm__strdup(text);
    drawing->failed |= own == NULL;
    if (own != NULL)
        add(drawing,
            (plot_shape){PLOT_TEXT, x, y, .size = size, .anchor = anchor, .colour = colour, .text = own});
}

/* --- as SVG --- */

/* A text of XML: what has a meaning there is escaped, and control characters, which it cannot have, are '?'.
 */
static void append_escaped(sgm__text *to, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '&' || *c == '<' || *c == '>')
            sgm__text_append(to, "&%s;", *c == '&' ? "amp" : *c == '<' ? "lt" : "gt");
        else
            sgm__text_append_bytes(to, (unsigned char)*c < ' ' ? "?" : c, 1);
}

static void append_text(sgm__text *to, const plot_shape *shape)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    sgm__text_append(to, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" text-anchor=\"%s\" fill=\"#%06x\">",
                     shape->x, shape->y + shape->size * 0.35, shape->size, anchors[shape->anchor],
                     (unsigned)shape->colour);
    append_escaped(to, shape->text);
    sgm__text_append(to, "</text>\n");
}

static void append_shape(sgm__text *to, const plot_shape *shape)
{
    unsigned colour = shape->colour;
    switch (shape->kind) {
    case PLOT_RECTANGLE:
        sgm__text_append(to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#%06x\"/>\n",
                         shape->x, shape->y, shape->width, shape->height, colour);
        return;
    case PLOT_LINE:
        sgm__text_append(to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#%06x\"/>\n",
                         shape->x, shape->y, shape->x + shape->width, shape->y + shape->height, colour);
        return;
    case PLOT_POINT:
        sgm__text_append(to,
                         "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#%06x\" fill-opacity=\"0.5\"/>\n",
                         shape->x, shape->y, shape->width, colour);
        return;
    case PLOT_TEXT:
        append_text(to, shape);
        return;
    }
}

static void append_svg(sgm__text *to, const plot *drawing)
{
    sgm__text_append(
        to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
        "font-family=\"sans-serif\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        drawing->width, drawing->height, drawing->width, drawing->height);
    for (size_t i = 0; i < drawing->count; i++)
        append_shape(to, &drawing->shapes[i]);
    sgm__text_append(to, "</svg>\n");
}

bool plot_can_write(const char *path)
{
    return ends_with(path, ".svg") || ends_with(path, ".png");
}

sgm_status plot_write(const plot *drawing, const char *path)
{
    sgm__text bytes = {0};
    sgm_status status = drawing->failed ? sgm__fail_memory(drawing->count) : SGM_OK;
    if (status == SGM_OK && ends_with(path, ".png"))
        status = plot_png(drawing, &bytes);
    else if (status == SGM_OK)
        append_svg(&bytes, drawing);
    if (status == SGM_OK && bytes.failed)
        status = sgm__fail_memory(bytes.length);
    if (status == SGM_OK)
        status = sgm__file_write_atomic(path, bytes.data, bytes.length);
    sgm__text_free(&bytes);
    return status;
}
