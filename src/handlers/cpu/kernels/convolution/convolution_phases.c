/* Sorts the pixels of rows and channels by the stride of a window; see convolution_phases.h. */
#include "handlers/cpu/kernels/convolution/convolution_phases.h"
#include "tensor/tensor_internal.h"

void sgm__phases_inside(const sgm__window *w, int axis, int64_t phase, int64_t count, int64_t *first,
                        int64_t *last)
{
    int64_t stride = w->stride[axis], before = w->before[axis] - phase;
    *first = before > 0 ? sgm__minimum((before + stride - 1) / stride, count) : 0;
    int64_t end = w->in[axis] + before;
    *last = end > 0 ? sgm__minimum((end + stride - 1) / stride, count) : 0;
    if (*last < *first)
        *last = *first;
}

sgm__phases sgm__phases_make(const sgm__convolution *c)
{
    const sgm__window *w = &c->window;
    int64_t reach = sgm__phases_reach(w, 1), stride = w->stride[1];
    sgm__phases p = {.count = sgm__minimum(stride, reach + 1), .pitch = w->out[1] + reach / stride};
    bool fours = stride == 4 && sgm__convolution_tiles(c)->split_fours != NULL;
    if ((stride != 2 && !fours) || p.count != stride)
        return p;
    p.all = true;
    for (int i = 0; i < stride; i++) {
        int64_t last;
        p.turn[i] = (w->before[1] + i) % stride;
        sgm__phases_inside(w, 1, p.turn[i], p.pitch, &p.left[i], &last);
        int64_t count = last - p.left[i];
        p.all = p.all && (i == 0 || count == p.whole);
        p.whole = i == 0 ? count : sgm__minimum(p.whole, count);
    }
    return p;
}

/* `count` elements, `stride` apart, of a row of an image. */
static void copy_apart(const sgm__convolution *c, unsigned char *to, const unsigned char *image,
                       int64_t stride, int64_t count)
{
    if (c->pairs == NULL) {
        sgm__cpu_copy_row(to, 1, image, stride, count, c->size);
        return;
    }
    float *singles = (float *)(void *)to;
    const uint16_t *halves = (const uint16_t *)(const void *)image;
    for (int64_t i = 0; i < count; i++)
        singles[i] = sgm__bfloat16_to_float(halves[i * stride]);
}

/* Where pixel `index` of a row lies in its phases, in bytes. */
static int64_t turn_at(const sgm__convolution *c, const sgm__phases *p, int64_t apart, int index)
{
    return (p->turn[index] * apart + p->left[index]) * (int64_t)c->size;
}

void sgm__phases_split(const sgm__convolution *c, const sgm__phases *p, int64_t apart, unsigned char *to,
                       const unsigned char *image)
{
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size, first, last;
    const sgm__tiles *tiles = sgm__convolution_tiles(c);
    if (p->whole > 0) {
        void *turns[SGM__PHASES_TURNS];
        for (int i = 0; i < w->stride[1]; i++)
            turns[i] = to + turn_at(c, p, apart, i);
        if (w->stride[1] == 2)
            tiles->split_pairs(p->whole, turns[0], turns[1], image);
        else
            tiles->split_fours(p->whole, turns, image);
    }
    for (int64_t k = 0; k < p->count && !p->all; k++) {
        sgm__phases_inside(w, 1, k, p->pitch, &first, &last);
        first += p->whole;
        if (first < last)
            copy_apart(c, to + (k * apart + first) * size,
                       image + sgm__phases_unpadded(w, 1, k, first) * (int64_t)c->stored, w->stride[1],
                       last - first);
    }
}

void sgm__phases_join(const sgm__convolution *c, const sgm__phases *p, int64_t apart, unsigned char *image,
                      const unsigned char *from)
{
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size, first, last;
    if (p->whole > 0) {
        const void *turns[SGM__PHASES_TURNS];
        for (int i = 0; i < w->stride[1]; i++)
            turns[i] = from + turn_at(c, p, apart, i);
        if (w->stride[1] == 2)
            c->tiles->join_pairs(p->whole, image, turns[0], turns[1]);
        else
            c->tiles->join_fours(p->whole, image, turns);
    }
    for (int64_t k = 0; k < p->count && !p->all; k++) {
        sgm__phases_inside(w, 1, k, p->pitch, &first, &last);
        first += p->whole;
        if (first < last)
            sgm__cpu_copy_row(image + sgm__phases_unpadded(w, 1, k, first) * size, w->stride[1],
                              from + (k * apart + first) * size, 1, last - first, c->size);
    }
}

/* Rows of a phase. */
static int64_t rows_of(const sgm__window *w)
{
    return w->out[0] + sgm__phases_reach(w, 0) / w->stride[0];
}

int64_t sgm__phases_plane(const sgm__convolution *c)
{
    return rows_of(&c->window) * sgm__phases_make(c).pitch;
}

void sgm__phases_copy(const sgm__convolution *c, unsigned char *to, const unsigned char *image)
{
    const sgm__window *w = &c->window;
    sgm__phases p = sgm__phases_make(c);
    int64_t size = (int64_t)c->size, rows = rows_of(w), plane = rows * p.pitch, first, last;
    int64_t phases = sgm__minimum(w->stride[0], sgm__phases_reach(w, 0) + 1);
    memset(to, 0, (size_t)(phases * p.count * plane + SGM__PHASES_SLACK) * c->size);
    for (int64_t phase = 0; phase < phases; phase++, to += p.count * plane * size) {
        sgm__phases_inside(w, 0, phase, rows, &first, &last);
        for (int64_t i = first; i < last; i++)
            sgm__phases_split(c, &p, plane, to + i * p.pitch * size,
                              image + sgm__phases_unpadded(w, 0, phase, i) * w->in[1] * (int64_t)c->stored);
    }
}
