/* Floor 0: what every part stands on. Internal. */
#ifndef SGM_BASE_BASE_H
#define SGM_BASE_BASE_H

#include <pthread.h>
#include <sigma/log.h>
#include <sigma/task.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* --- errors (error.c) --- */
/* sgm_fail() sets the thread's error. sgm__fail_memory() does so without allocating. */
sgm_status sgm__fail_memory(size_t size);
/* Puts "where: " before the newest message, so that outer layers can name the object; returns the status. */
sgm_status sgm__fail_within(const char *format, ...) SGM_PRINTF(1, 2);
/* The newest failure is about an example of a minibatch, from 0: outer layers, which know where minibatches
 * come from, can name it. Kept by sgm__fail_within; -1: about none, or none was named. */
sgm_status sgm__fail_example(int64_t example);
int64_t sgm__failed_example(void);
/* What fails returns no SGM_OK. The compiler and the analyser would have to look into another file for that.
 */
static inline sgm_status sgm__failed(sgm_status status)
{
    if (status == SGM_OK)
        __builtin_unreachable();
    return status;
}
#define sgm_fail(...) sgm__failed(sgm_fail(__VA_ARGS__))
#define sgm__fail_memory(size) sgm__failed(sgm__fail_memory(size))
#define sgm__fail_within(...) sgm__failed(sgm__fail_within(__VA_ARGS__))
#define sgm__fail_example(example) sgm__failed(sgm__fail_example(example))
/* The status of a call that gave NULL. */
static inline sgm_status sgm__last_failure(void)
{
    sgm_status status = sgm_last_status();
    return status != SGM_OK ? status : SGM_ERROR_STATE;
}
/* For an argument that is NULL: that of the failed call which should have made it, else `message`. */
static inline sgm_status sgm__fail_null(const char *message)
{
    sgm_status status = sgm_last_status();
    return status != SGM_OK ? status : sgm_fail(SGM_ERROR_ARGUMENT, "%s", message);
}
/* Returns from the caller with the status of a call that failed. */
#define SGM_TRY(call)                                                                                        \
    do {                                                                                                     \
        sgm_status sgm_try_status = (call);                                                                  \
        if (sgm_try_status != SGM_OK)                                                                        \
            return sgm_try_status;                                                                           \
    } while (0)

/* --- options (options.c) --- */
/* Copies a caller's options, whose first member is struct_size, into `own` of `size` bytes. What an older
 * struct does not have is zero; `given` NULL: all is. */
sgm_status sgm__options_read(void *own, size_t size, const void *given, const char *what);

/* --- memory (memory.c): every allocation of the library goes through these; failures set the error --- */
void *sgm__alloc(size_t size);                /* uninitialised; size 0 gives a valid pointer */
void *sgm__calloc(size_t count, size_t size); /* overflow-checked, zeroed */
void *sgm__realloc(void *memory, size_t size);
void sgm__free(void *memory);
void *sgm__alloc_aligned(size_t size); /* 64-byte aligned; free with sgm__free_aligned */
void sgm__free_aligned(void *memory);
char *sgm__strdup(const char *text); /* NULL in, NULL out (without an error) */
char *sgm__strndup(const char *text, size_t length);
/* Grows `*items` so that it holds `needed` entries of `size` bytes; `*capacity` is kept up to date. */
sgm_status sgm__reserve(void *items, size_t *capacity, size_t needed, size_t size);
bool sgm__mul_overflows(size_t a, size_t b, size_t *product);
bool sgm__add_overflows(size_t a, size_t b, size_t *sum);

/* --- strings (text.c) --- */
typedef struct sgm__text {
    char *data; /* always terminated once anything was appended */
    size_t length, capacity;
    bool failed; /* an allocation failed; further appends do nothing */
} sgm__text;
void sgm__text_append(sgm__text *text, const char *format, ...) SGM_PRINTF(2, 3);
void sgm__text_vappend(sgm__text *text, const char *format, va_list arguments) SGM_PRINTF(2, 0);
void sgm__text_append_bytes(sgm__text *text, const char *bytes, size_t length);
char *sgm__text_take(sgm__text *text); /* the string (caller frees), NULL when failed; resets `text` */
void sgm__text_free(sgm__text *text);
/* The words between spaces, tabs and line ends, NULL behind the last; one block for sgm__free. `count` and
 * `text` may be NULL. */
char **sgm__words(const char *text, size_t *count);
char *sgm__format(const char *format, ...) SGM_PRINTF(1, 2);
/* Bytes of the UTF-8 sequence of a character from U+0080 on at `text`, which ends in a 0 byte; 0: none. */
size_t sgm__utf8_length(const unsigned char *text);
/* Names of files and cells of tables stand in messages, and may steer a terminal: what is no UTF-8 and what
 * controls (line ends and tabs apart) becomes '?', in place. Returns `text`. */
char *sgm__make_printable(char *text);
/* Strict numbers, independent of the locale: the whole of `text` (spaces around allowed) must be one number.
 */
bool sgm__parse_double(const char *text, double *value);
bool sgm__parse_int64(const char *text, int64_t *value);
/* The shortest decimal that reads back as `number`, whatever the locale; 32 bytes are enough. Returns the
 * buffer. */
char *sgm__number_text(double number, char *buffer, size_t size);
/* float_text.c: the shortest that reads back as the same float32, in at most 9 digits; returns `buffer`. */
#define SGM__FLOAT_TEXT 32 /* bytes that do */
char *sgm__float_text(float number, char *buffer, size_t size);
/* The nearest of `names` (count entries) to `name` by edit distance, NULL when none is near: "did you mean".
 */
const char *sgm__nearest(const char *name, const char *const *names, size_t count);
/* The text of an errno value; any thread. */
const char *sgm__errno_text(int error);

/* --- random numbers (random.c): Philox4x32-10 (Salmon et al., 2011), counter-based: the same (seed, stream,
 * counter) gives the same numbers in any order and on any device --- */
void sgm__philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);
typedef struct sgm__random {
    uint64_t seed, stream, counter; /* the whole state: saved in checkpoints */
    uint32_t buffer[4];
    uint32_t left;
} sgm__random;
sgm__random sgm__random_make(uint64_t seed, uint64_t stream);
uint32_t sgm__random_uint32(sgm__random *random);
uint64_t sgm__random_below(sgm__random *random, uint64_t bound);     /* unbiased; bound > 0 */
double sgm__random_uniform(sgm__random *random);                     /* [0, 1), 53 bits */
double sgm__random_normal(sgm__random *random);                      /* Box-Muller, one value a call */
uint64_t sgm__hash(const void *bytes, size_t length, uint64_t seed); /* not for security */
uint64_t sgm__hash_text(const char *text);

/* --- clock, processors, files (system.c) --- */
double sgm__now(void);           /* monotonic seconds */
int32_t sgm__processors(void);   /* that this process may use; at least 1 */
uint64_t sgm__memory_size(void); /* bytes that the computer has; UINT64_MAX: it does not say */
/* file_open.c: opens an ordinary file to read it, the one way to do so for a path of the user's: what could
 * make the caller wait (a named pipe, a socket, a device) and folders are errors; *file is -1 then. What the
 * process was given open is taken as it is: /dev/stdin, /dev/fd/N. */
sgm_status sgm__file_open(const char *path, int *file);
/* The same for fread(); NULL on failure. */
FILE *sgm__file_open_stream(const char *path);
/* Reads a whole file of at most `limit` bytes; *data ends in an extra 0 byte, free with sgm__free. */
sgm_status sgm__file_read(const char *path, size_t limit, char **data, size_t *length);
/* Writes through `path`.tmp, fsync, rename, fsync of the folder; straight to a device or a pipe. */
sgm_status sgm__file_write_atomic(const char *path, const void *data, size_t length);
/* Renames `with`, which is whole and synchronised, and syncs the folder; when that fails, `with` is removed.
 */
sgm_status sgm__file_replace(const char *path, const char *with);
sgm_status sgm__make_folders(const char *path); /* like mkdir -p */
bool sgm__file_exists(const char *path);

/* --- tasks (task.c) --- */
/* As sgm_task_watch, but not told of progress, which sgm_tasks gives to who asks: a task that nobody else
 * watches goes on without looking at the clock. */
sgm_status sgm__task_watch_ends(sgm_task_function function, void *user);

/* --- logging (log.c) --- */
#define sgm__log(...) sgm_log_message(__VA_ARGS__)
void sgm__vlog(sgm_log_level level, const char *source, const char *format, va_list arguments);
/* For those who draw a line without an end on the terminal: a message clears it first. */
void sgm__log_line_is_open(bool open);

#endif
