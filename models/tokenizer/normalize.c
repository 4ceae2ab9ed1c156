#include "tokenizer/normalize.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>
#include <string.h>

void sgm__normalizers_free(sgm__normalizers *normalizers)
{
    for (size_t i = 0; i < normalizers->count; i++) {
        sgm__normalizer *step = &normalizers->steps[i];
        sgm__normal_form_free(step->form);
        sgm__pattern_free(&step->pattern);
        sgm__charsmap_free(&step->charsmap);
        free(step->content);
    }
    free(normalizers->steps);
    *normalizers = (sgm__normalizers){0};
}

sgm_status sgm__replace(const sgm__pattern *pattern, sgm__matcher *matcher, const char *text, size_t size,
                        const char *content, size_t content_size, sgm__buffer *out)
{
    sgm__match match = {0};
    for (size_t done = 0;; done = match.end) {
        SGM__PASS(sgm__pattern_next(pattern, matcher, text, size, &match));
        if (!match.found)
            return sgm__buffer_add(out, text + done, size - done);
        SGM__PASS(sgm__buffer_add(out, text + done, match.start - done));
        SGM__PASS(sgm__buffer_add(out, content, content_size));
    }
}

static sgm_status without(bool (*is_dropped)(uint32_t), const char *text, size_t size, sgm__buffer *out)
{
    size_t at = 0;
    SGM__PASS(sgm__buffer_reserve(out, size));
    while (at < size) {
        const size_t start = at;
        if (!is_dropped(sgm__utf8_next(text, &at)))
            SGM__PASS(sgm__buffer_add(out, text + start, at - start));
    }
    return SGM_OK;
}

static bool is_cleaned_away(uint32_t character)
{
    return character == 0xfffd || sgm__unicode_is_control(character);
}

static sgm_status clean(const char *text, size_t size, sgm__buffer *out)
{
    size_t at = 0;
    SGM__PASS(sgm__buffer_reserve(out, size));
    while (at < size) {
        const size_t start = at;
        const uint32_t character = sgm__utf8_next(text, &at);
        if (is_cleaned_away(character))
            continue;
        SGM__PASS(sgm__unicode_is_space(character) ? sgm__buffer_add(out, " ", 1)
                                                   : sgm__buffer_add(out, text + start, at - start));
    }
    return SGM_OK;
}

static sgm_status space_ideographs(const char *text, size_t size, sgm__buffer *out)
{
    size_t at = 0;
    while (at < size) {
        const size_t start = at;
        const bool is_ideograph = sgm__unicode_is_ideograph(sgm__utf8_next(text, &at));
        if (is_ideograph)
            SGM__PASS(sgm__buffer_add(out, " ", 1));
        SGM__PASS(sgm__buffer_add(out, text + start, at - start));
        if (is_ideograph)
            SGM__PASS(sgm__buffer_add(out, " ", 1));
    }
    return SGM_OK;
}

static sgm_status strip_left(const char *text, size_t size, sgm__buffer *out)
{
    size_t at = 0, start = 0;
    while (start < size && sgm__unicode_is_space(sgm__utf8_next(text, &at)))
        start = at;
    return sgm__buffer_add(out, text + start, size - start);
}

static sgm_status strip_right(const char *text, size_t size, sgm__buffer *out)
{
    while (size > 0) {
        const size_t start = sgm__utf8_before(text, size);
        size_t at = start;
        if (!sgm__unicode_is_space(sgm__utf8_next(text, &at)))
            break;
        size = start;
    }
    return sgm__buffer_add(out, text, size);
}

static sgm_status apply(const sgm__normalizer *step, sgm__matcher *matcher, const char *text, size_t size,
                        sgm__buffer *out)
{
    switch (step->kind) {
    case SGM__NORMAL_FORM:
        return sgm__normal_form_apply(step->form, text, size, out);
    case SGM__LOWERCASE:
        return sgm__lowercase(text, size, out);
    case SGM__STRIP_ACCENTS:
        return without(sgm__unicode_is_mark, text, size, out);
    case SGM__STRIP_NONSPACING:
        return without(sgm__unicode_is_nonspacing_mark, text, size, out);
    case SGM__CLEAN:
        return clean(text, size, out);
    case SGM__SPACE_IDEOGRAPHS:
        return space_ideographs(text, size, out);
    case SGM__REPLACE:
        return sgm__replace(&step->pattern, matcher, text, size, step->content, step->size, out);
    case SGM__PREPEND:
        if (size > 0)
            SGM__PASS(sgm__buffer_add(out, step->content, step->size));
        return sgm__buffer_add(out, text, size);
    case SGM__CHARSMAP:
        return sgm__charsmap_apply(&step->charsmap, text, size, out);
    case SGM__STRIP_LEFT:
        return strip_left(text, size, out);
    case SGM__STRIP_RIGHT:
        break;
    }
    return strip_right(text, size, out);
}

/* Whether a step takes the beginning of a text away. What replaces characters stands for the last one of
 * them. */
static sgm_status drops_beginning(const sgm__normalizer *step, sgm__matcher *matcher, const char *text,
                                  size_t size, bool *drops)
{
    size_t at = 0;
    const uint32_t first = size > 0 ? sgm__utf8_next(text, &at) : 0;
    sgm__match match = {0};

    if (size == 0)
        return SGM_OK;
    switch (step->kind) {
    case SGM__STRIP_ACCENTS:
        *drops |= sgm__unicode_is_mark(first);
        break;
    case SGM__STRIP_NONSPACING:
        *drops |= sgm__unicode_is_nonspacing_mark(first);
        break;
    case SGM__CLEAN:
        *drops |= is_cleaned_away(first);
        break;
    case SGM__STRIP_LEFT:
        *drops |= sgm__unicode_is_space(first);
        break;
    case SGM__REPLACE:
        SGM__PASS(sgm__pattern_next(&step->pattern, matcher, text, size, &match));
        *drops |= match.found && match.start == 0 && match.end > (step->size > 0 ? at : 0);
        break;
    default:
        break;
    }
    return SGM_OK;
}

sgm_status sgm__normalize(const sgm__normalizers *normalizers, sgm__matcher *matcher, const char *text,
                          size_t size, sgm__buffer buffers[2], bool *is_cut)
{
    bool drops = false;
    buffers[0].size = 0;
    SGM__PASS(sgm__buffer_add(&buffers[0], text, size));
    for (size_t i = 0; i < normalizers->count; i++) {
        const sgm__buffer before = buffers[0];
        buffers[1].size = 0;
        SGM__PASS(drops_beginning(&normalizers->steps[i], matcher, before.data, before.size, &drops));
        SGM__PASS(apply(&normalizers->steps[i], matcher, before.data, before.size, &buffers[1]));
        SGM__PASS(sgm__check_growth(size, buffers[1].size));
        buffers[0] = buffers[1];
        buffers[1] = before;
    }
    if (is_cut)
        *is_cut = drops;
    return SGM_OK;
}
