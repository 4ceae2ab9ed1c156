/* Convolutions of groups with few channels, depthwise ones above all (forward; gradients are in
 * convolution_slide_gradients.c): the image under some rows of results is copied, with its padding, into an
 * order in which each weight's products are neighbours along a row (sgm__slide_layout), and stays in the
 * first cache while these rows are computed. Results are written where they belong, with bias and limits.
 * Sums depend on shapes alone. */
#include "handlers/cpu/kernels/convolution/convolution_slide.h"

/* Multiply-adds of a task, about; below that the sharing of tasks would show. */
#define TASK_OPERATIONS (1 << 17)
/* Of a band: half of a first cache. */
#define BAND_BYTES (16 << 10)
/* Rows of a band at least, if the result has them: those that a tile computes together. */
#define MINIMUM_ROWS 4
/* Elements behind a band that are 0 and may be read by vectors. */
#define SLACK SGM__ALIGNMENT

/* Rows of the image under `rows` rows of the result. */
static int64_t height_of(const sgm__window *w, int64_t rows)
{
    return (rows - 1) * w->stride[0] + sgm__phases_reach(w, 0) + 1;
}

sgm__slide_layout sgm__slide_layout_make(const sgm__convolution *c)
{
    const sgm__window *w = &c->window;
    sgm__slide_layout l = {.columns = sgm__phases_make(c)};
    l.line = l.columns.count * l.columns.pitch;
    int64_t bytes = l.line * c->channels * (int64_t)c->size, lines = bytes > 0 ? BAND_BYTES / bytes : 0;
    int64_t rows = (lines - sgm__phases_reach(w, 0) - 1) / w->stride[0] + 1;
    rows -= rows % MINIMUM_ROWS;
    l.rows = sgm__minimum(rows > MINIMUM_ROWS ? rows : MINIMUM_ROWS, w->out[0]);
    l.channel = height_of(w, l.rows) * l.line;
    return l;
}

bool sgm__slide_is_faster(const sgm__convolution *c, int64_t lanes)
{
    int64_t vector = c->tiles->vector_lanes, columns = c->window.out[1];
    int64_t slid = c->window.out[0] * ((columns + vector - 1) / vector) * lanes;
    int64_t by_panels = c->pixels * sgm__convolution_width(c, lanes) / vector;
    /* A vector of pixels may be loaded for each multiplication, one of a panel for six: measured, a slid one
     * takes 1.7 (AVX2) to 2.5 times (AVX-512) as long. */
    return 9 * slid <= 4 * by_panels;
}

int64_t sgm__slide_bundle(const sgm__convolution *c)
{
    int64_t operations = c->pixels * c->places * c->channels * c->filters;
    int64_t bundle = operations > 0 ? TASK_OPERATIONS / operations : 1;
    return bundle < 1 ? 1 : sgm__minimum(bundle, c->window.groups);
}

int64_t sgm__slide_bundles(const sgm__convolution *c)
{
    int64_t bundle = sgm__slide_bundle(c);
    return (c->window.groups + bundle - 1) / bundle;
}

/* --- copying --- */

int64_t sgm__slide_room(const sgm__convolution *c, const sgm__slide_layout *l)
{
    return c->channels * l->channel + SLACK;
}

void sgm__slide_clear(const sgm__convolution *c, const sgm__slide_layout *l, unsigned char *own)
{
    memset(own, 0, (size_t)sgm__slide_room(c, l) * c->size);
}

/* `rows` rows of one channel, all of which lie in the image, from its row at `image` on. */
static void copy_rows(const sgm__convolution *c, const sgm__slide_layout *l, unsigned char *to,
                      const unsigned char *image, int64_t rows)
{
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size, first, last;
    if (w->stride[1] == 1) {
        sgm__phases_inside(w, 1, 0, l->columns.pitch, &first, &last);
        c->tiles->copy_lines(to + first * size, l->line, image + sgm__phases_unpadded(w, 1, 0, first) * size,
                             w->in[1], last - first, rows);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        sgm__phases_split(c, &l->columns, l->columns.pitch, to + i * l->line * size,
                          image + i * w->in[1] * size);
}

void sgm__slide_copy(const sgm__convolution *c, const sgm__slide_layout *l, unsigned char *own,
                     const unsigned char *image, int64_t first, int64_t rows)
{
    const sgm__window *w = &c->window;
    int64_t height = height_of(w, rows), top = first * w->stride[0] - w->before[0];
    int64_t begin = top < 0 ? sgm__minimum(-top, height) : 0, end = sgm__minimum(w->in[0] - top, height);
    size_t line = (size_t)l->line * c->size;
    end = end > begin ? end : begin;
    for (int64_t channel = 0; channel < c->channels; channel++) {
        unsigned char *to = own + (size_t)(channel * l->channel) * c->size;
        memset(to, 0, (size_t)begin * line);
        if (end > begin)
            copy_rows(c, l, to + (size_t)begin * line,
                      image + (channel * c->plane + (top + begin) * w->in[1]) * (int64_t)c->size,
                      end - begin);
        memset(to + (size_t)end * line, 0, (size_t)(height - end) * line);
    }
}

void sgm__slide_steps(const sgm__convolution *c, const sgm__slide_layout *l, int64_t *steps)
{
    const sgm__window *w = &c->window;
    for (int64_t j = 0; j < w->size[1]; j++) {
        int64_t column = j * w->dilation[1];
        steps[j] = column % w->stride[1] * l->columns.pitch + column / w->stride[1];
    }
}

/* --- forward --- */

void sgm__slide_forward(const sgm__convolution *c, const int64_t *steps, const unsigned char *image,
                        const unsigned char *weights, const unsigned char *biases, sgm__limits limits,
                        unsigned char *own, unsigned char *to)
{
    const sgm__window *w = &c->window;
    sgm__slide_layout l = sgm__slide_layout_make(c);
    int64_t size = (int64_t)c->size, depth = c->channels * c->places;
    sgm__slide slide = {.columns = w->out[1],
                        .channels = c->channels,
                        .height = w->size[0],
                        .width = w->size[1],
                        .stride = w->stride[0],
                        .dilation = w->dilation[0],
                        .image = own,
                        .channel = l.channel,
                        .line = l.line,
                        .steps = steps,
                        .limits = limits};
    for (int64_t first = 0; first < w->out[0]; first += l.rows) {
        slide.rows = sgm__minimum(l.rows, w->out[0] - first);
        sgm__slide_copy(c, &l, own, image, first, slide.rows);
        for (int64_t filter = 0; filter < c->filters; filter++) {
            slide.weights = weights + filter * depth * size;
            slide.bias = biases != NULL ? biases + filter * size : NULL;
            slide.to = to + (filter * c->pixels + first * w->out[1]) * size;
            c->tiles->slide(&slide);
        }
    }
}
