/* Shapes, panels of channels and tables of offsets that the kernels of convolution share; see convolution.h.
 */
#include "handlers/cpu/kernels/convolution/convolution.h"
#include "ops/ops.h"

sgm__convolution sgm__convolution_make(const sgm__cpu *cpu, sgm_dtype dtype, const sgm__window *window)
{
    bool wide = dtype == SGM_FLOAT64;
    sgm__convolution c = {.window = *window,
                          .tiles = wide ? &cpu->vector->f64 : &cpu->vector->f32,
                          .size = wide ? 8 : 4,
                          .stored = sgm_dtype_size(dtype),
                          .channels = window->channels / window->groups,
                          .filters = window->filters / window->groups,
                          .pixels = window->out[0] * window->out[1],
                          .places = window->size[0] * window->size[1],
                          .plane = window->in[0] * window->in[1]};
    for (int i = 0; i < 2; i++) {
        c.padded[i] = window->in[i] + window->before[i] + window->after[i];
        c.pads = c.pads || c.padded[i] != window->in[i];
    }
    c.padded_plane = c.padded[0] * c.padded[1];
    if (dtype == SGM_BFLOAT16) {
        c.pairs = &cpu->vector->pairs;
        c.widen = sgm__vector_find(cpu->vector, &sgm__op_cast, SGM_BFLOAT16, SGM_FLOAT32);
        c.narrow = sgm__vector_find(cpu->vector, &sgm__op_cast, SGM_FLOAT32, SGM_BFLOAT16);
    }
    return c;
}

int64_t sgm__convolution_panels(const sgm__convolution *c, int64_t lanes)
{
    return (lanes + c->tiles->gather_columns - 1) / c->tiles->gather_columns;
}

sgm__panel sgm__convolution_panel(const sgm__convolution *c, int64_t lanes, int64_t index)
{
    int64_t full = c->tiles->gather_columns, first = index * full;
    sgm__panel p = {.first = first, .count = sgm__minimum(lanes - first, full)};
    bool narrow = p.count <= full / 2;
    p.width = narrow ? full / 2 : full;
    const sgm__tiles *tiles = sgm__convolution_tiles(c);
    p.functions = narrow ? tiles->gather_narrow : tiles->gather_wide;
    return p;
}

int64_t sgm__convolution_width(const sgm__convolution *c, int64_t lanes)
{
    int64_t panels = sgm__convolution_panels(c, lanes);
    if (panels == 0)
        return 0;
    sgm__panel last = sgm__convolution_panel(c, lanes, panels - 1);
    return last.first + last.width;
}

int64_t sgm__convolution_depth(const sgm__convolution *c, int64_t width)
{
    return SGM__CONVOLUTION_PANEL_BYTES / (width * (int64_t)c->size);
}

void sgm__convolution_pixels(const sgm__convolution *c, int64_t *offsets)
{
    for (int64_t i = 0; i < c->window.out[0]; i++)
        for (int64_t k = 0; k < c->window.out[1]; k++)
            *offsets++ = i * c->window.stride[0] * c->padded[1] + k * c->window.stride[1];
}

void sgm__convolution_steps(const sgm__convolution *c, int64_t planes, int64_t *offsets)
{
    for (int64_t channel = 0; channel < planes; channel++)
        for (int64_t i = 0; i < c->window.size[0]; i++)
            for (int64_t k = 0; k < c->window.size[1]; k++)
                *offsets++ = channel * c->padded_plane + i * c->window.dilation[0] * c->padded[1] +
                             k * c->window.dilation[1];
}

/* A row of an image, or of bfloat16 of two. */
static void copy_row(const sgm__convolution *c, unsigned char *to, const unsigned char *image,
                     int64_t partner)
{
    int64_t width = c->window.in[1];
    if (c->pairs == NULL)
        memcpy(to, image, (size_t)width * c->size);
    else
        c->pairs->copy_rows(to, width, image, partner, width, partner != 0 ? 2 : 1);
}

void sgm__convolution_pad(const sgm__convolution *c, unsigned char *to, const unsigned char *image,
                          int64_t count, int64_t partner)
{
    const sgm__window *w = &c->window;
    size_t row = (size_t)w->in[1] * c->size, before = (size_t)w->before[1] * c->size;
    size_t padded_row = (size_t)c->padded[1] * c->size;
    for (int64_t channel = 0; channel < count; channel++) {
        memset(to, 0, (size_t)w->before[0] * padded_row);
        to += (size_t)w->before[0] * padded_row;
        for (int64_t i = 0; i < w->in[0]; i++, to += padded_row, image += (size_t)w->in[1] * c->stored) {
            memset(to, 0, before);
            copy_row(c, to + before, image, partner);
            memset(to + before + row, 0, padded_row - before - row);
        }
        memset(to, 0, (size_t)w->after[0] * padded_row);
        to += (size_t)w->after[0] * padded_row;
    }
}

void sgm__convolution_pad_steps(const sgm__convolution *c, unsigned char *to, const unsigned char *image,
                                int64_t count)
{
    if (c->pairs == NULL) {
        sgm__convolution_pad(c, to, image, count, 0);
        return;
    }
    for (int64_t i = 0; i < count; i += 2, to += (size_t)c->padded_plane * c->size)
        sgm__convolution_pad(c, to, image + (size_t)(i * c->plane) * c->stored, 1,
                             i + 1 < count ? c->plane : 0);
}

void sgm__convolution_rows(const sgm__panel *panel, sgm__gather *tile, const int64_t *rows,
                           const int64_t *c_rows, int64_t count)
{
    int64_t tiles = (count + SGM__GATHER_ROWS - 1) / SGM__GATHER_ROWS;
    for (int64_t i = 0, first = 0; i < tiles; i++) {
        int64_t last = count * (i + 1) / tiles;
        tile->rows = rows + first;
        tile->c_rows = c_rows + first;
        panel->functions[last - first - 1](tile);
        first = last;
    }
}
