#include "tokenizer/text/characters.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uset.h>
#include <unicode/ustring.h>

static bool came_by(uint32_t character, int major)
{
    UVersionInfo version;
    u_charAge((UChar32)character, version);
    return version[0] > 0 && (version[0] < major || (version[0] == major && version[1] == 0));
}

static bool is_of(uint32_t character, uint32_t categories)
{
    return U_GET_GC_MASK((UChar32)character) & categories;
}

bool sgm__unicode_is_space(uint32_t character)
{
    return character < 0x80 ? character == ' ' || (character >= 9 && character <= 13)
                            : u_isUWhiteSpace((UChar32)character);
}

bool sgm__unicode_is_numeric(uint32_t character)
{
    return character < 0x80 ? character >= '0' && character <= '9' : is_of(character, U_GC_N_MASK);
}

/* U+166D, U+111C9, U+1734, U+1885, U+1886 and U+A9BD have another category since. */
bool sgm__unicode_is_punctuation(uint32_t character)
{
    if (character < 0x80)
        return character > ' ' && character < 0x7f && !u_isalnum((UChar32)character);
    return character == 0x166d || character == 0x111c9 ||
           (is_of(character, U_GC_P_MASK) && came_by(character, 8));
}

bool sgm__unicode_is_control(uint32_t character)
{
    if (character < 0x80)
        return (character < ' ' && character != '\t' && character != '\n' && character != '\r') ||
               character == 0x7f;
    return is_of(character, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK) && came_by(character, 8);
}

bool sgm__unicode_is_nonspacing_mark(uint32_t character)
{
    if (character < 0x300)
        return false;
    if (character == 0x1885 || character == 0x1886 || character == 0xa9bd || character == 0x111c9)
        return false;
    return character == 0x1734 || (is_of(character, U_GC_MN_MASK) && came_by(character, 8));
}

bool sgm__unicode_is_mark(uint32_t character)
{
    if (character < 0x300 || character == 0x111c9)
        return false;
    return character == 0x1cf2 || character == 0x1cf3 ||
           (is_of(character, U_GC_M_MASK) && came_by(character, 9));
}

bool sgm__unicode_is_word(uint32_t character)
{
    if (character < 0x80)
        return u_isalnum((UChar32)character) || character == '_';
    return is_of(character, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
           u_hasBinaryProperty((UChar32)character, UCHAR_ALPHABETIC) ||
           u_hasBinaryProperty((UChar32)character, UCHAR_JOIN_CONTROL);
}

bool sgm__unicode_is_ideograph(uint32_t character)
{
    static const uint32_t ranges[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                         {0x20000, 0x2a6df}, {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf},
                                         {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (character >= ranges[i][0] && character <= ranges[i][1])
            return true;
    return false;
}

struct sgm__normal_form {
    UNormalizer2 *filtered;
    USet *known; /* characters of Unicode 9.0; all others stay as they are */
};

sgm__normal_form *sgm__normal_form_open(const char *name)
{
    static const UChar pattern[] = u"[:age=9.0:]";
    UErrorCode error = U_ZERO_ERROR;
    sgm__normal_form *form = sgm__allocate_zero(1, sizeof *form);
    const UNormalizer2 *whole =
        unorm2_getInstance(NULL, strchr(name, 'K') ? "nfkc" : "nfc",
                           strchr(name, 'D') ? UNORM2_DECOMPOSE : UNORM2_COMPOSE, &error);
    if (!form)
        return NULL;
    form->known = uset_openPattern(pattern, -1, &error);
    if (U_SUCCESS(error)) {
        uset_freeze(form->known);
        form->filtered = unorm2_openFiltered(whole, form->known, &error);
    }
    if (U_SUCCESS(error))
        return form;
    sgm_fail(SGM_ERROR_UNSUPPORTED, "ICU has no tables for %s (%s); is libicu whole?", name,
             u_errorName(error));
    sgm__normal_form_free(form);
    return NULL;
}

void sgm__normal_form_free(sgm__normal_form *form)
{
    if (!form)
        return;
    unorm2_close(form->filtered);
    uset_close(form->known);
    free(form);
}

static bool is_ascii(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

/* The normal form of `size` units in `wide`, added to `out` as UTF-8. */
static sgm_status apply_wide(const sgm__normal_form *form, const UChar *wide, int32_t size, UChar *result,
                             int32_t room, sgm__buffer *out)
{
    UErrorCode error = U_ZERO_ERROR;
    int32_t written = 0;
    const int32_t length = unorm2_normalize(form->filtered, wide, size, result, room, &error);

    SGM__PASS(sgm__buffer_reserve(out, (size_t)length * 3 + 1));
    u_strToUTF8(out->data + out->size, length * 3, &written, result, length, &error);
    if (U_FAILURE(error))
        return sgm_fail(SGM_ERROR_FORMAT, "ICU cannot normalise a text (%s)", u_errorName(error));
    out->size += (size_t)written;
    return SGM_OK;
}

sgm_status sgm__normal_form_apply(const sgm__normal_form *form, const char *text, size_t size,
                                  sgm__buffer *out)
{
    enum { LONGEST = 18 }; /* units that one becomes at most: U+FDFA in NFKD */
    UErrorCode error = U_ZERO_ERROR;
    int32_t units = 0;
    UChar *wide;
    sgm_status status;

    if (is_ascii(text, size))
        return sgm__buffer_add(out, text, size);
    if (size > INT32_MAX / (LONGEST * 3))
        return sgm_fail(SGM_ERROR_LIMIT,
                        "a text of %zu bytes is too long to normalise; at most %d may be one", size,
                        INT32_MAX / (LONGEST * 3));
    if (!(wide = sgm__allocate_zero(size * (LONGEST + 1), sizeof *wide)))
        return SGM_ERROR_MEMORY;
    u_strFromUTF8(wide, (int32_t)size, &units, text, (int32_t)size, &error);
    status = apply_wide(form, wide, units, wide + size, (int32_t)size * LONGEST, out);
    free(wide);
    return status;
}

sgm_status sgm__lowercase(const char *text, size_t size, sgm__buffer *out)
{
    SGM__PASS(sgm__buffer_reserve(out, size * 2));
    for (size_t at = 0; at < size;) {
        const uint32_t character = sgm__utf8_next(text, &at);
        if (character < 0x80) {
            out->data[out->size++] =
                (char)(character >= 'A' && character <= 'Z' ? character + 32 : character);
        } else if (character == 0x130) { /* the only one that becomes two */
            SGM__PASS(sgm__buffer_add(out, "i\u0307", 3));
        } else {
            SGM__PASS(sgm__buffer_put(out, (uint32_t)u_tolower((UChar32)character)));
        }
    }
    return SGM_OK;
}
