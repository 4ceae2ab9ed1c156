/* Parses the header of .npy files, the text of a Python dictionary: {'descr': '<f4', 'fortran_order': False,
 * 'shape': (3, 4), }.
 *
 * It is parsed as exactly that, by recursive descent: each of the three keys once, in any order, no other
 * key. Python itself would evaluate the text; anything that is not the header of a plain array is refused
 * with the number of the offending character. The bytes around the header are read by the callers
 * (src/data/read, src/persistence/npz.c), and files are written in src/persistence/npy_save.c. */
#include "tensor/npy.h"

/* The parser: a place in the header's text, and what has been found so far. */
typedef struct npy_header {
    const char *name; /* of the file */
    const char *text, *at;
    bool has_descr, has_order, has_shape;
    sgm__npy_header found;
} npy_header;

/* Names the character (from 1) at which something else was expected. */
static sgm_status fail_header(const npy_header *header, const char *expected)
{
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: in the npy header, at its character %d, %s was expected, '%.12s' came; the file is damaged, or "
        "was not written by NumPy",
        header->name, (int)(header->at - header->text) + 1, expected, header->at);
}

static void skip_blanks(npy_header *header)
{
    header->at += strspn(header->at, " \t\n");
}

/* Skips blanks and then `token`, if it comes next. */
static bool accept(npy_header *header, const char *token)
{
    size_t length = strlen(token);
    skip_blanks(header);
    if (strncmp(header->at, token, length) != 0)
        return false;
    header->at += length;
    return true;
}

/* Reads a quoted text of at most size - 1 bytes. Escapes are not interpreted: neither keys nor types have
 * any. */
static sgm_status parse_string(npy_header *header, char *out, size_t size)
{
    skip_blanks(header);
    char quote = *header->at;
    if (quote != '\'' && quote != '"')
        return fail_header(header, "a quoted text");
    const char *end = strchr(header->at + 1, quote);
    if (end == NULL || (size_t)(end - header->at) > size)
        return fail_header(header, "a short quoted text");
    size_t length = (size_t)(end - header->at - 1);
    memcpy(out, header->at + 1, length);
    out[length] = '\0';
    header->at = end + 1;
    return SGM_OK;
}

/* Digits only: no sign, and no overflow beyond int64. */
static sgm_status parse_dimension(npy_header *header, int64_t *dimension)
{
    const char *start = header->at;
    *dimension = 0;
    while (sgm__is_digit(*header->at))
        if (__builtin_mul_overflow(*dimension, (int64_t)10, dimension) ||
            __builtin_add_overflow(*dimension, *header->at++ - '0', dimension))
            return fail_header(header, "a dimension below 2^63");
    if (header->at == start)
        return fail_header(header, "a dimension");
    if (*header->at == 'L') /* as Python 2 wrote long numbers */
        header->at++;
    return SGM_OK;
}

/* A tuple as Python writes it: (), (3,), (3, 4), (3, 4,). In Python "(3)" is a number and no tuple, so one
 * dimension without a comma is an error. */
static sgm_status parse_shape(npy_header *header)
{
    if (!accept(header, "("))
        return fail_header(header, "a shape such as (3, 4)");
    bool has_comma = true;
    while (!accept(header, ")")) {
        if (!has_comma)
            return fail_header(header, "a comma or a closing parenthesis");
        if (header->found.shape.rank == SGM_MAX_RANK)
            return fail_header(header, "the end of the shape after at most 8 dimensions");
        SGM_TRY(parse_dimension(header, &header->found.shape.dims[header->found.shape.rank++]));
        has_comma = accept(header, ",");
    }
    if (header->found.shape.rank == 1 && !has_comma)
        return fail_header(header, "a comma in the shape of one dimension");
    return SGM_OK;
}

/* A list instead of a text describes structured elements, which get a message of their own. */
static sgm_status parse_descr(npy_header *header)
{
    skip_blanks(header);
    if (*header->at == '[')
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: a plain number type was expected, the array has structured elements; save each "
                        "of its fields as an array of its own",
                        header->name);
    return parse_string(header, header->found.descr, sizeof header->found.descr);
}

/* One of the three keys with its value; a key that comes twice is refused like an unknown one. */
static sgm_status parse_entry(npy_header *header)
{
    char key[32];
    const char *start = header->at;
    SGM_TRY(parse_string(header, key, sizeof key));
    if (!accept(header, ":"))
        return fail_header(header, "a colon");
    if (strcmp(key, "descr") == 0 && !header->has_descr) {
        header->has_descr = true;
        return parse_descr(header);
    }
    if (strcmp(key, "shape") == 0 && !header->has_shape) {
        header->has_shape = true;
        return parse_shape(header);
    }
    if (strcmp(key, "fortran_order") == 0 && !header->has_order) {
        header->has_order = true;
        header->found.is_fortran = accept(header, "True");
        return header->found.is_fortran || accept(header, "False") ? SGM_OK
                                                                   : fail_header(header, "True or False");
    }
    header->at = start;
    return fail_header(header, "one of the keys descr, fortran_order and shape, each once,");
}

/* A comma behind the last entry is allowed, as Python writes one. */
static sgm_status parse_header(npy_header *header)
{
    if (!accept(header, "{"))
        return fail_header(header, "{");
    for (bool has_comma = true; !accept(header, "}");) {
        if (!has_comma)
            return fail_header(header, "a comma or }");
        SGM_TRY(parse_entry(header));
        has_comma = accept(header, ",");
    }
    skip_blanks(header);
    if (*header->at != '\0')
        return fail_header(header, "nothing but blanks after }");
    if (!header->has_descr || !header->has_order || !header->has_shape)
        return fail_header(header, "descr, fortran_order and shape before the end");
    return SGM_OK;
}

sgm_status sgm__npy_header_parse(const char *name, const char *text, sgm__npy_header *header)
{
    npy_header place = {.name = name, .text = text, .at = text};
    SGM_TRY(parse_header(&place));
    *header = place.found;
    return SGM_OK;
}
