/* Finds files in the body of a request; see files.h.
 *
 * A form is multipart/form-data (RFC 7578): parts between lines of "--" and the boundary that the type names,
 * each with headers, an empty line, and the bytes of a file. */
#include "monitors/serve/files.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LONGEST_BOUNDARY 70 /* by RFC 2046 */
#define FORM "multipart/form-data"

/* Whether the type is one of a list with blanks between them, with or without parameters. */
static bool is_among(const char *type, const char *types)
{
    while (*types != '\0') {
        size_t length = strcspn(types, " ");
        if (strncasecmp(type, types, length) == 0 && strchr("; ", type[length]) != NULL)
            return true;
        types += length + (types[length] == ' ');
    }
    return false;
}

bool sgm__serve_has_files(const sgm__http_request *request)
{
    return is_among(request->type, SGM__SERVE_FILE_TYPES);
}

/* Takes the name. */
static sgm_status add_file(sgm__serve_files *found, char *name, const char *bytes, size_t length)
{
    sgm_status status = name == NULL ? SGM_ERROR_MEMORY : SGM_OK;
    if (status == SGM_OK)
        status = sgm__reserve(&found->files, &found->capacity, found->count + 1, sizeof *found->files);
    if (status == SGM_OK)
        status = sgm__reserve(&found->names, &found->name_capacity, found->count + 1, sizeof *found->names);
    if (status != SGM_OK) {
        sgm__free(name);
        return status;
    }
    found->names[found->count] = name;
    found->files[found->count++] = (sgm_file){.name = name, .bytes = bytes, .length = length};
    return SGM_OK;
}

/* "\r\n--" and the boundary, which ends each part; the first one has no line end before it. */
static sgm_status find_boundary(const char *type, char *line, size_t size)
{
    const char *at = strcasestr(type, "boundary=");
    if (at != NULL)
        at += strlen("boundary=");
    bool is_quoted = at != NULL && *at == '"';
    if (is_quoted)
        at++;
    size_t length = at != NULL ? strcspn(at, is_quoted ? "\"" : "; \t") : 0;
    if (length == 0 || length > LONGEST_BOUNDARY)
        return sgm_fail(SGM_ERROR_FORMAT, "the type of the form names no boundary of 1 to %d characters",
                        LONGEST_BOUNDARY);
    snprintf(line, size, "\r\n--%.*s", (int)length, at);
    return SGM_OK;
}

/* The file's name in the headers of a part; sgm__free. NULL without an error: the part is no file. */
static char *file_name(const char *headers, size_t length)
{
    static const char key[] = "filename=\"";
    const char *at = memmem(headers, length, key, sizeof key - 1);
    if (at == NULL)
        return NULL;
    at += sizeof key - 1;
    size_t room = length - (size_t)(at - headers), size = 0;
    while (size < room && at[size] != '"' && at[size] != '\r')
        size++;
    return sgm__format("%.*s", (int)(size < 200 ? size : 200), at);
}

/* One part: its headers, an empty line, and the bytes. */
static sgm_status add_part(sgm__serve_files *found, const sgm__file_kind *kind, const char *part,
                           size_t length)
{
    const char *end = memmem(part, length, "\r\n\r\n", 4);
    char *name = end != NULL ? file_name(part, (size_t)(end - part)) : NULL;
    if (name == NULL)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "part %zu of the form is no file; send %s as files, such as curl -F %s=@%s",
                        found->count + 1, kind->names->several, kind->names->one, kind->names->question);
    const char *bytes = end + 4;
    return add_file(found, name, bytes, length - (size_t)(bytes - part));
}

static sgm_status find_parts(const sgm__http_request *request, const sgm__file_kind *kind,
                             sgm__serve_files *found)
{
    char line[LONGEST_BOUNDARY + 8];
    SGM_TRY(find_boundary(request->type, line, sizeof line));
    const char *end = request->body + request->length;
    size_t size = strlen(line);
    bool is_begun = request->length >= size && memcmp(request->body, line + 2, size - 2) == 0;
    const char *at = is_begun ? request->body + size - 2 : NULL;
    while (at != NULL && end - at >= 2 && memcmp(at, "--", 2) != 0) {
        const char *next = memmem(at, (size_t)(end - at), line, size);
        if (next == NULL)
            break;
        SGM_TRY(add_part(found, kind, at, (size_t)(next - at)));
        at = next + size;
    }
    if (at == NULL || end - at < 2 || memcmp(at, "--", 2) != 0)
        return sgm_fail(SGM_ERROR_FORMAT, "the form does not end with its boundary, or begins without it");
    return SGM_OK;
}

sgm_status sgm__serve_find_files(const sgm__http_request *request, const sgm__file_kind *kind,
                                 sgm__serve_files *found)
{
    if (!is_among(request->type, FORM) && !is_among(request->type, kind->media_types))
        return sgm_fail(SGM_ERROR_ARGUMENT, "the network takes %s, of one of the types %s or " FORM,
                        kind->names->several, kind->media_types);
    if (!is_among(request->type, FORM))
        return add_file(found, sgm__strdup("the body"), request->body, request->length);
    SGM_TRY(find_parts(request, kind, found));
    return found->count > 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FORMAT, "the form has no file; send %s, such as curl -F %s=@%s",
                          kind->names->several, kind->names->one, kind->names->question);
}

void sgm__serve_files_free(sgm__serve_files *found)
{
    for (size_t i = 0; i < found->count; i++)
        sgm__free(found->names[i]);
    sgm__free(found->names);
    sgm__free(found->files);
    *found = (sgm__serve_files){0};
}
