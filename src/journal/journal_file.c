/* Appends lines to a journal and reads them, both with checksums; see journal_file.h. */
#include "journal/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define DIGITS 8 /* hexadecimal digits of a CRC-32 */
#define SEAL ",\"checksum\":\""
/* What every line ends in: the seal, its digits, and this. */
#define END "\"}"
#define SEAL_LENGTH (sizeof SEAL - 1)
#define END_LENGTH (sizeof END - 1)
#define TAIL (SEAL_LENGTH + DIGITS + END_LENGTH)

static const char first_before[DIGITS + 1] = "00000000";

/* The checksum of a line's text up to its seal, behind a line whose checksum has the digits `before`. */
static uint32_t checksum_of(const char *before, const char *text, size_t length)
{
    uint32_t checksum = (uint32_t)crc32_z(0, (const Bytef *)before, DIGITS);
    return (uint32_t)crc32_z(checksum, (const Bytef *)text, length);
}

/* Where the digits of a line's checksum begin; NULL: it has none. `length`: without the line's end. */
static const char *digits_of(const char *line, size_t length)
{
    if (length < TAIL + 1)
        return NULL;
    const char *tail = line + length - TAIL, *digits = tail + SEAL_LENGTH;
    bool sealed = memcmp(tail, SEAL, SEAL_LENGTH) == 0 && memcmp(digits + DIGITS, END, END_LENGTH) == 0;
    for (size_t i = 0; sealed && i < DIGITS; i++)
        sealed = strchr("0123456789abcdef", digits[i]) != NULL && digits[i] != '\0';
    return sealed ? digits : NULL;
}

/* --- appending --- */

static sgm_status fail_file(const char *doing, const char *path)
{
    return sgm_fail(SGM_ERROR_FILE, "cannot %s '%s': %s", doing, path, sgm__errno_text(errno));
}

/* Cuts off what stands behind the last line end; *size becomes the file's size. */
static sgm_status cut_torn_line(int file, const char *path, off_t *size)
{
    char last = '\n';
    off_t whole = *size;
    while (whole > 0 && pread(file, &last, 1, whole - 1) == 1 && last != '\n')
        whole--;
    if (whole == *size)
        return SGM_OK;
    if (ftruncate(file, whole) != 0)
        return fail_file("shorten", path);
    sgm__log(SGM_LOG_WARNING, NULL, "the last line of '%s' was not whole and is removed", path);
    *size = whole;
    return SGM_OK;
}

/* The digits of the last line's checksum; zeros where there is none. */
static void read_last_digits(int file, off_t size, char before[DIGITS + 1])
{
    char tail[TAIL + 1];
    memcpy(before, first_before, DIGITS + 1);
    if (size < (off_t)sizeof tail || pread(file, tail, sizeof tail, size - (off_t)sizeof tail) != sizeof tail)
        return;
    memcpy(before, tail + SEAL_LENGTH, DIGITS);
}

static sgm_status append(int file, const char *path, const char *object)
{
    char before[DIGITS + 1];
    size_t length = strlen(object) - 1; /* without the closing brace */
    off_t size = lseek(file, 0, SEEK_END);
    SGM_TRY(size >= 0 ? cut_torn_line(file, path, &size) : fail_file("read", path));
    read_last_digits(file, size, before);
    char *line = sgm__format("%.*s" SEAL "%08x" END "\n", (int)length, object,
                             (unsigned)checksum_of(before, object, length));
    if (line == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__write_fully(file, line, strlen(line)) ? SGM_OK : fail_file("write", path);
    sgm__free(line);
    return status;
}

sgm_status sgm__journal_append(const char *folder, const char *object)
{
    char *path = sgm__format("%s/" SGM__JOURNAL_FILE, folder);
    if (path == NULL)
        return SGM_ERROR_MEMORY;
    int file = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    sgm_status status = file >= 0 ? append(file, path, object) : fail_file("open", path);
    if (file >= 0)
        close(file);
    sgm__free(path);
    return status;
}

/* --- reading --- */

typedef struct reading {
    const char *path, *warn_as;
    char before[DIGITS + 1]; /* the checksum of the line before */
    sgm__journal_line_function function;
    void *user;
} reading;

/* What is wrong with a line; NULL: nothing. Sets what the next line has to follow. */
static const char *check_line(reading *r, const char *line, size_t length, bool ended)
{
    const char *digits = digits_of(line, length);
    if (!ended)
        return "it is cut off";
    if (digits == NULL)
        return "it does not end in a checksum";
    char wanted[DIGITS + 1];
    snprintf(wanted, sizeof wanted, "%08x",
             (unsigned)checksum_of(r->before, line, (size_t)(digits - line) - SEAL_LENGTH));
    bool right = memcmp(wanted, digits, DIGITS) == 0;
    memcpy(r->before, digits, DIGITS);
    return right ? NULL
                 : "its checksum is another: it was changed, or lines before it were removed, added or moved";
}

/* Reports damage: an error, or a warning after which the line is used as far as it can be. */
static sgm_status report(const reading *r, int64_t number, const char *damage)
{
    if (r->warn_as == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s', line %lld: %s", r->path, (long long)number, damage);
    sgm__log(SGM_LOG_WARNING, r->warn_as, "'%s', line %lld: %s; no replay reads further", r->path,
             (long long)number, damage);
    return SGM_OK;
}

/* Gives a line to the function. One that it cannot read is damage as well. */
static sgm_status give_line(const reading *r, int64_t number, const json_t *line)
{
    sgm_status status = r->function(r->user, number, line);
    if (status != SGM_ERROR_FORMAT)
        return status;
    char *damage = sgm__strdup(sgm_last_error());
    status = report(r, number, damage != NULL ? damage : "it cannot be read");
    sgm__free(damage);
    return status;
}

static sgm_status read_line(reading *r, int64_t number, const char *text, size_t length, bool ended)
{
    const char *damage = check_line(r, text, length, ended);
    if (damage != NULL)
        SGM_TRY(report(r, number, damage));
    json_t *line = json_loadb(text, length, 0, NULL);
    sgm_status status = SGM_OK;
    if (json_is_object(line))
        status = give_line(r, number, line);
    else if (damage == NULL)
        status = report(r, number, "it is no JSON object");
    json_decref(line);
    return status;
}

static sgm_status read_lines(reading *r, const char *text, size_t length)
{
    int64_t number = 1;
    for (size_t start = 0; start < length; number++) {
        const char *end = memchr(text + start, '\n', length - start);
        size_t size = end != NULL ? (size_t)(end - (text + start)) : length - start;
        SGM_TRY(read_line(r, number, text + start, size, end != NULL));
        start += size + 1;
    }
    return SGM_OK;
}

sgm_status sgm__journal_read(const char *folder, const char *warn_as, sgm__journal_line_function function,
                             void *user)
{
    char *text, *path = sgm__format("%s/" SGM__JOURNAL_FILE, folder);
    size_t length;
    sgm_status status = path != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && sgm__file_exists(path)) {
        reading r = {.path = path, .warn_as = warn_as, .function = function, .user = user};
        memcpy(r.before, first_before, sizeof r.before);
        status = sgm__file_read(path, SGM__JOURNAL_LARGEST, &text, &length);
        if (status == SGM_OK) {
            status = read_lines(&r, text, length);
            sgm__free(text);
        }
    }
    sgm__free(path);
    return status;
}
