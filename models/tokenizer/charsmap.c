/* SentencePiece's replacements of characters, as the library spm_precompiled looks them up. */
#include "tokenizer/normalize.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unicode/ubrk.h>
#include <unicode/utext.h>

static uint32_t little_endian(const unsigned char *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

sgm_status sgm__charsmap_read(sgm__charsmap *charsmap, const unsigned char *bytes, size_t size)
{
    const size_t table = size >= 4 ? little_endian(bytes) : 0;
    if (size == 0)
        return SGM_OK;
    if (size < 4 || table % 4 != 0 || table > size - 4)
        return sgm_fail(SGM_ERROR_FORMAT, "a table of %zu bytes within %zu", table, size);
    if (!sgm__utf8_is_valid((const char *)bytes + 4 + table, size - 4 - table))
        return sgm_fail(SGM_ERROR_FORMAT, "texts that are no UTF-8");
    charsmap->unit_count = table / 4;
    charsmap->size = size - 4 - table + 1;
    charsmap->units = sgm__allocate_zero(charsmap->unit_count, sizeof *charsmap->units);
    charsmap->texts = sgm__copy_text((const char *)bytes + 4 + table, charsmap->size - 1);
    if (!charsmap->units || !charsmap->texts)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < charsmap->unit_count; i++)
        charsmap->units[i] = little_endian(bytes + 4 + 4 * i);
    return SGM_OK;
}

void sgm__charsmap_free(sgm__charsmap *charsmap)
{
    free(charsmap->units);
    free(charsmap->texts);
    *charsmap = (sgm__charsmap){0};
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* What replaces the shortest beginning of `text` that is in the table; NULL: none is. */
static const char *find(const sgm__charsmap *charsmap, const char *text, size_t size)
{
    size_t node = 0;
    uint32_t unit;

    if (charsmap->unit_count == 0)
        return NULL;
    node = offset_of(charsmap->units[0]);
    for (size_t i = 0; i < size && text[i]; i++) {
        node ^= (unsigned char)text[i];
        if (node >= charsmap->unit_count)
            return NULL;
        unit = charsmap->units[node];
        if ((unit & (1u << 31 | 0xff)) != (unsigned char)text[i])
            return NULL;
        node ^= offset_of(unit);
        if (unit >> 8 & 1) {
            const size_t at =
                node < charsmap->unit_count ? charsmap->units[node] & ~(1u << 31) : charsmap->size;
            const bool is_text = at < charsmap->size && ((unsigned char)charsmap->texts[at] & 0xc0) != 0x80;
            return is_text ? charsmap->texts + at : NULL;
        }
    }
    return NULL;
}

/* What a user takes for one character: as a whole where it is short and in the table, else each part of it.
 */
static sgm_status add_grapheme(const sgm__charsmap *charsmap, const char *text, size_t size, sgm__buffer *out)
{
    const char *whole = size < 6 ? find(charsmap, text, size) : NULL;
    size_t at = 0;

    if (whole)
        return sgm__buffer_add(out, whole, strlen(whole));
    while (at < size) {
        const size_t length = sgm__utf8_length(text[at]);
        const char *part = find(charsmap, text + at, length);
        SGM__PASS(part ? sgm__buffer_add(out, part, strlen(part)) : sgm__buffer_add(out, text + at, length));
        at += length;
    }
    return SGM_OK;
}

static sgm_status apply_by_graphemes(const sgm__charsmap *charsmap, UBreakIterator *borders, const char *text,
                                     size_t size, sgm__buffer *out)
{
    int32_t start = ubrk_first(borders), end;
    while ((end = ubrk_next(borders)) != UBRK_DONE) {
        SGM__PASS(add_grapheme(charsmap, text + start, (size_t)(end - start), out));
        SGM__PASS(sgm__check_growth(size, out->size));
        start = end;
    }
    return SGM_OK;
}

sgm_status sgm__charsmap_apply(const sgm__charsmap *charsmap, const char *text, size_t size, sgm__buffer *out)
{
    UErrorCode error = U_ZERO_ERROR;
    UText *opened;
    UBreakIterator *borders;
    sgm_status status;

    if (size > INT32_MAX)
        return sgm_fail(SGM_ERROR_LIMIT,
                        "a text of %zu bytes is too long to normalise; at most %d may be one", size,
                        INT32_MAX);
    opened = utext_openUTF8(NULL, text, (int64_t)size, &error);
    borders = ubrk_open(UBRK_CHARACTER, "", NULL, 0, &error);
    if (U_SUCCESS(error))
        ubrk_setUText(borders, opened, &error);
    status = U_FAILURE(error) ? sgm_fail(SGM_ERROR_UNSUPPORTED,
                                         "ICU cannot split a text into characters (%s)", u_errorName(error))
                              : apply_by_graphemes(charsmap, borders, text, size, out);
    ubrk_close(borders);
    utext_close(opened);
    return status;
}
