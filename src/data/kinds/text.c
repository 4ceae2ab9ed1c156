/* Texts as a kind of files (kind.h): their first tokens, and behind them the number that no token has. */
#include "data/kinds/text.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static void release(void *pointer)
{
    sgm_tokenizer_free(((sgm__text_form *)pointer)->tokenizer);
}

static sgm_status check(const void *pointer)
{
    return sgm__token_window_check(((const sgm__text_form *)pointer)->window);
}

static sgm_shape shape(const void *pointer)
{
    return sgm_shape_of(((const sgm__text_form *)pointer)->window);
}

/* --- reading --- */

/* The beginning of a file, at most `most` bytes of it. */
static sgm_status read_beginning(const char *name, size_t most, sgm__bytes *memory)
{
    memory->length = 0;
    SGM_TRY(sgm__bytes_reserve(memory, most));
    FILE *file = fopen(name, "rb");
    if (file == NULL)
        return sgm_fail(errno == ENOENT ? SGM_ERROR_NOT_FOUND : SGM_ERROR_FILE, "cannot open '%s': %s", name,
                        sgm__errno_text(errno));
    memory->length = fread(memory->data, 1, most, file);
    bool failed = ferror(file) != 0;
    fclose(file);
    return failed ? sgm_fail(SGM_ERROR_FILE, "%s: reading failed", name) : SGM_OK;
}

/* A zero byte means that the file is no text, or UTF-16. */
static sgm_status check_bytes(const char *name, const unsigned char *bytes, size_t length)
{
    const unsigned char *zero = length > 0 ? memchr(bytes, 0, length) : NULL;
    return zero == NULL
               ? SGM_OK
               : sgm_fail(
                     SGM_ERROR_FORMAT,
                     "%s: text was expected, a zero byte came at byte %zu; the file is packed, UTF-16, or "
                     "no text at all: unpack it, or save it as UTF-8",
                     name, (size_t)(zero - bytes));
}

static sgm_status read_text(const void *pointer, const sgm_file *file, sgm__bytes *memory, float *inputs)
{
    const sgm__text_form *form = pointer;
    size_t most = sgm__token_window_bytes(form->window), length = file->length;
    const unsigned char *bytes = file->bytes;
    int32_t count;
    if (bytes == NULL) {
        SGM_TRY(read_beginning(file->name, most, memory));
        bytes = memory->data;
        length = memory->length;
    }
    length = length < most ? length : most;
    SGM_TRY(check_bytes(file->name, bytes, length));
    return sgm__token_window(form->tokenizer, bytes, length, form->window, inputs, &count);
}

/* --- JSON: {"window":512,"tokenizer":[[116,104],[256,101]]} --- */

static void put(const void *pointer, json_t *object, bool *failed)
{
    const sgm__text_form *form = pointer;
    sgm__json_put(object, "window", json_integer(form->window), failed);
    sgm__tokenizer_put(form->tokenizer, object, failed);
}

static sgm_status take(void *pointer, const json_t *object)
{
    sgm__text_form *form = pointer;
    SGM_TRY(sgm__json_take_size(object, "window", &form->window));
    form->tokenizer = sgm__tokenizer_take(object);
    return form->tokenizer != NULL ? SGM_OK : sgm__last_failure();
}

static void propose(const void *pointer, sgm__text *text)
{
    const sgm__text_form *form = pointer;
    sgm__token_window_network(form->tokenizer, form->window, NULL, text);
}

/* --- sizes: bytes --- */

static sgm_status measure(const char *path, sgm__file_size *size)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return sgm_fail(SGM_ERROR_FILE, "%s: %s", path, sgm__errno_text(errno));
    *size = (sgm__file_size){{(double)info.st_size, 0}};
    return SGM_OK;
}

/* "12 to 3,400 bytes". */
static void tell(const sgm__file_size *least, const sgm__file_size *most, sgm__text *text)
{
    char number[32];
    if (least->numbers[0] < most->numbers[0])
        sgm__text_append(text, "%s to ", sgm_count_text((int64_t)least->numbers[0], number, sizeof number));
    sgm__text_append(text, "%s bytes", sgm_count_text((int64_t)most->numbers[0], number, sizeof number));
}

static void advise(const sgm__file_size *least, const sgm__file_size *most, sgm__text *text)
{
    (void)least;
    if (most->numbers[0] > SGM__DEFAULT_WINDOW)
        sgm__text_append(text,
                         "of longer texts the first %d bytes are read: window in data.training says how many "
                         "tokens, and a tokenizer makes them reach farther",
                         SGM__DEFAULT_WINDOW);
    else
        sgm__text_append(
            text, "the longest text decides how many bytes an example has; shorter ones are filled up");
}

const sgm__file_kind sgm__texts = {
    .name = "texts",
    .names = &sgm__text_names,
    .media_types = SGM__TEXT_TYPES,
    .form_size = sizeof(sgm__text_form),
    .release = release,
    .check = check,
    .shape = shape,
    .read = read_text,
    .put = put,
    .take = take,
    .members = (const char *const[]){"window", "tokenizer", NULL},
    .network = propose,
    .measure = measure,
    .tell = tell,
    .advise = advise,
};
