/* Computes and compares checksums in safetensors files: the CRC-32 of each tensor's bytes, and that of the
 * header.
 *
 * Both are texts of the file's metadata, so that it remains a file of the format for every other reader:
 *
 * {"__metadata__":{"sigma.checksum.header":"crc32 1c291ca3","sigma.checksum.tensors":"crc32 ab12...",...
 *
 * The header's checksum covers the header's length and its text, with zeros in place of its own digits, so a
 * flipped bit in a name, a shape or an offset is found before any of them is believed. A CRC-32 finds every
 * single flipped bit. One flipped bit cannot hide both texts, and one without the other counts as damage, so
 * damage does not turn a file into one without checksums either. It is no signature. safetensors_save.c
 * writes with the functions here, safetensors_load.c checks; both keep the header as text, since a parsed and
 * printed header need not have the same bytes. */
#include "persistence/safetensors.h"

#include <stdio.h>
#include <zlib.h>

#define METHOD "crc32"
#define DIGITS SGM__CHECKSUM_DIGITS /* hexadecimal digits of a CRC-32 */
#define KEY_OF_HEADER SGM__CHECKSUM_PREFIX "header"
#define KEY_OF_TENSORS SGM__CHECKSUM_PREFIX "tensors"
/* The first bytes of a header with checksums, up to the digits of its own, and the text between these and the
 * list of the tensors' checksums. That list has a space before each 8 digits, so number i begins at a fixed
 * place. */
#define START "{\"__metadata__\":{\"" KEY_OF_HEADER "\":\"" METHOD " "
#define BETWEEN "\",\"" KEY_OF_TENSORS "\":\"" METHOD
#define REMEDY                                                                                               \
    "take another copy of the file; who changed it on purpose leaves the texts '" SGM__CHECKSUM_PREFIX       \
    "*' of its metadata out"

static const char zeros[DIGITS + 1] = "00000000";

/* For a NULL pointer, which an empty tensor may have, crc32_z would return the initial value and so forget
 * `checksum`. */
static uint32_t extend(uint32_t checksum, const void *bytes, size_t length)
{
    return length > 0 ? (uint32_t)crc32_z(checksum, bytes, length) : checksum;
}

/* For a header that begins with START and its 8 digits. */
static uint32_t checksum_of_header(const char *header, size_t length)
{
    const size_t digits = strlen(START), rest = digits + DIGITS;
    uint64_t stored = length;
    uint32_t checksum = extend(0, &stored, sizeof stored);
    checksum = extend(checksum, header, digits);
    checksum = extend(checksum, zeros, DIGITS);
    return extend(checksum, header + rest, length - rest);
}

/* --- writing --- */

/* The two texts must be the first members of the header's first member: START and BETWEEN count on it. */
bool sgm__checksums_describe(json_t *texts, size_t count)
{
    sgm__text list = {0};
    sgm__text_append(&list, METHOD);
    for (size_t i = 0; i < count; i++)
        sgm__text_append(&list, " %s", zeros);
    bool good = !list.failed &&
                json_object_set_new(texts, KEY_OF_HEADER, json_string(METHOD " 00000000")) == 0 &&
                json_object_set_new(texts, KEY_OF_TENSORS, json_string(list.data)) == 0;
    sgm__text_free(&list);
    return good;
}

static void write_digits(char *target, uint32_t checksum)
{
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%08x", checksum);
    memcpy(target, digits, DIGITS);
}

void sgm__checksums_write(char *header, size_t index, const void *bytes, size_t length)
{
    char *list = header + strlen(START) + DIGITS + strlen(BETWEEN);
    write_digits(list + index * (1 + DIGITS) + 1, extend(0, bytes, length));
}

void sgm__checksums_seal(char *header, size_t length)
{
    write_digits(header + strlen(START), checksum_of_header(header, length));
}

/* --- reading --- */

/* Only the digits that this file writes: no sign, no capitals. sscanf would accept other texts of equal
 * value, and so overlook a flipped bit. */
static bool read_digits(const char *text, uint32_t *checksum)
{
    *checksum = 0;
    for (int i = 0; i < DIGITS; i++) {
        const char *digit = text[i] != '\0' ? strchr("0123456789abcdef", text[i]) : NULL;
        if (digit == NULL)
            return false;
        *checksum = *checksum << 4 | (uint32_t)(digit - "0123456789abcdef");
    }
    return true;
}

sgm_status sgm__checksums_check_header(const json_t *header, const char *text, size_t length, bool *sealed)
{
    const json_t *texts = json_object_get(header, "__metadata__");
    uint32_t expected;
    *sealed = json_object_get(texts, KEY_OF_HEADER) != NULL || json_object_get(texts, KEY_OF_TENSORS) != NULL;
    if (!*sealed)
        return SGM_OK;
    if (length < strlen(START) + DIGITS || memcmp(text, START, strlen(START)) != 0 ||
        !read_digits(text + strlen(START), &expected) || json_object_get(texts, KEY_OF_TENSORS) == NULL)
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "the header is damaged, or another program wrote it: it has no whole checksum; " REMEDY);
    uint32_t found = checksum_of_header(text, length);
    if (found != expected)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "the header is damaged, or another program wrote it: its CRC-32 is %08x, expected "
                        "%08x; " REMEDY,
                        found, expected);
    return SGM_OK;
}

sgm_status sgm__checksums_check_count(const json_t *header, size_t count)
{
    const json_t *list = json_object_get(json_object_get(header, "__metadata__"), KEY_OF_TENSORS);
    if (json_string_length(list) == strlen(METHOD) + count * (1 + DIGITS))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_FORMAT, "'" KEY_OF_TENSORS "' in '__metadata__' is no list of %zu checksums",
                    count);
}

sgm_status sgm__checksums_check_tensor(const json_t *header, size_t index, const void *bytes, size_t length)
{
    const json_t *list = json_object_get(json_object_get(header, "__metadata__"), KEY_OF_TENSORS);
    uint32_t expected, found = extend(0, bytes, length);
    if (!read_digits(json_string_value(list) + strlen(METHOD) + index * (1 + DIGITS) + 1, &expected))
        return sgm_fail(SGM_ERROR_FORMAT, "'" KEY_OF_TENSORS "' in '__metadata__' has no checksum number %zu",
                        index);
    if (found != expected)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "its bytes are damaged: their CRC-32 is %08x, expected %08x; " REMEDY, found,
                        expected);
    return SGM_OK;
}

/* --- of a file --- */

bool sgm__checksum_of_file(const char *path, char digits[SGM__CHECKSUM_DIGITS + 1])
{
    char start[sizeof(uint64_t) + sizeof START - 1 + DIGITS];
    const char *header = start + sizeof(uint64_t);
    FILE *file = sgm__file_open_stream(path);
    if (file == NULL)
        return false;
    bool whole = fread(start, 1, sizeof start, file) == sizeof start;
    fclose(file);
    if (!whole || memcmp(header, START, sizeof START - 1) != 0)
        return false;
    memcpy(digits, header + sizeof START - 1, DIGITS);
    digits[DIGITS] = '\0';
    return true;
}
