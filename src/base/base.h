/* Declares what every other folder of the library stands on: errors, memory, text, random numbers, files,
 * tasks and the log.
 *
 * The folder src/base includes no header of another folder of src, only public ones of include/sigma. Each
 * section below names the file that implements it. Parts that only few files need have headers of their own:
 * base/clock.h (timed waits), base/turn_lock.h (the trainer's lock), base/name_index.h (hash tables),
 * base/plugin.h (libraries loaded at run time). Internal. */
#ifndef SGM_BASE_BASE_H
#define SGM_BASE_BASE_H

#include "base/characters.h"

#include <locale.h>
#include <pthread.h>
#include <sigma/base.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* --- errors (error.c) --- */
/* sgm_fail sets the thread's error. sgm__fail_memory does so without allocating. */
sgm_status sgm__fail_memory(size_t size);
/* Puts "where: " before the newest message, so that an outer layer can name the object (a file, a layer, a
 * trainer) that an inner one knows nothing of. Returns the status of that failure, unchanged. */
sgm_status sgm__fail_within(const char *format, ...) SGM_PRINTF(1, 2);
/* Notes that the newest failure is about one example of a minibatch (counted from 0): an outer layer, which
 * knows the dataset that the minibatch came from, can then name the example. sgm__fail_within keeps the
 * number, any other failure resets it to -1, which means that no example was named. */
sgm_status sgm__fail_example(int64_t example);
int64_t sgm__failed_example(void);
/* Tells the compiler and the static analyser that a failing function never returns SGM_OK, which they cannot
 * see across files. Without it they follow paths such as "failed, but returned SGM_OK" and warn about values
 * that are not set there. The four macros below wrap each function of this kind. */
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
/* The status to return after a call that gave NULL. SGM_ERROR_STATE covers a call that returned NULL without
 * reporting a failure. */
static inline sgm_status sgm__last_failure(void)
{
    sgm_status status = sgm_last_status();
    return status != SGM_OK ? status : SGM_ERROR_STATE;
}
/* For an argument that is NULL: usually a constructor failed before and its NULL was passed on, so that
 * constructor's failure is reported; only without one is the argument itself the mistake, and `message` says
 * so. */
static inline sgm_status sgm__fail_null(const char *message)
{
    sgm_status status = sgm_last_status();
    return status != SGM_OK ? status : sgm_fail(SGM_ERROR_ARGUMENT, "%s", message);
}
/* Returns from the calling function with the status of `call` if it failed. The caller must own nothing that
 * needs freeing at that point. */
#define SGM_TRY(call)                                                                                        \
    do {                                                                                                     \
        sgm_status sgm_try_status = (call);                                                                  \
        if (sgm_try_status != SGM_OK)                                                                        \
            return sgm_try_status;                                                                           \
    } while (0)

/* --- options (options.c) --- */
/* Copies a caller's options, whose first member is struct_size, into `own` of `size` bytes. Members that an
 * older and therefore shorter struct lacks become zero, which means the default; with `given` NULL all
 * members do. `what` begins the message of a failure. */
sgm_status sgm__options_read(void *own, size_t size, const void *given, const char *what);

/* --- memory (memory.c): every allocation of the library goes through these; failures set the error --- */
void *sgm__alloc(size_t size);                /* uninitialised; size 0 gives a valid pointer */
void *sgm__calloc(size_t count, size_t size); /* overflow-checked, zeroed */
void *sgm__realloc(void *memory, size_t size);
void sgm__free(void *memory);
void *sgm__alloc_aligned(size_t size); /* 64-byte aligned; free with sgm__free_aligned */
/* The same, zeroed; large memory takes pages only where it is written. */
void *sgm__calloc_aligned(size_t size);
void sgm__free_aligned(void *memory);
char *sgm__strdup(const char *text); /* NULL in, NULL out (without an error) */
char *sgm__strndup(const char *text, size_t length);
/* Grows the array at `*items` until it holds `needed` entries of `size` bytes each. `items` is the address of
 * a typed pointer, passed as void *; `*capacity` is kept up to date and counts entries. */
sgm_status sgm__reserve(void *items, size_t *capacity, size_t needed, size_t size);
bool sgm__mul_overflows(size_t a, size_t b, size_t *product);
bool sgm__add_overflows(size_t a, size_t b, size_t *sum);

/* --- strings (text.c) --- */
/* A string that grows; zeroed, it is empty. A failure is kept in `failed`, so that a caller appends freely
 * and checks once at the end (usually by way of sgm__text_take). */
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
bool sgm__begins_with(const char *text, const char *beginning);
/* Splits at spaces, tabs and line ends. The list ends in NULL; list and words are one block, freed with
 * sgm__free. `text` NULL has no words; `count` may be NULL. */
char **sgm__words(const char *text, size_t *count);
char *sgm__format(const char *format, ...) SGM_PRINTF(1, 2);
/* Number of bytes (2 to 4) of the UTF-8 sequence of a character from U+0080 on at the beginning of `text`; 0
 * if there is no valid one. `text` ends in a 0 byte, which also stops the check of a sequence that is cut
 * off. */
size_t sgm__utf8_length(const unsigned char *text);
/* Characters of a text in UTF-8; bytes of its first `characters`, or of all if it has fewer. */
size_t sgm__utf8_count(const char *text);
size_t sgm__utf8_prefix(const char *text, size_t characters);
/* Whether a text is UTF-8 without control characters; line ends and tabs are such. */
bool sgm__is_line(const char *text);
/* Replaces bytes that are not valid UTF-8, and control characters other than line ends and tabs, by '?' in
 * place; returns `text`. Names of files and cells of tables are quoted in messages: without this, a crafted
 * name could move the cursor or retitle the terminal. */
char *sgm__make_printable(char *text);
/* Strict numbers, independent of the locale: the whole of `text` must be one number, with spaces around it
 * allowed. Returns false and leaves `*value` alone otherwise. */
bool sgm__parse_double(const char *text, double *value);
bool sgm__parse_int64(const char *text, int64_t *value);
/* A size with its unit, as sgm_bytes_text writes it: "500MB", "1.5 GB", "200 bytes"; the same if it is none.
 */
bool sgm__parse_bytes(const char *text, double *bytes);
/* Writes the shortest decimal that reads back as exactly `number`, independent of the locale: at most 17
 * significant digits; 32 bytes are enough. Returns `buffer`. */
char *sgm__number_text(double number, char *buffer, size_t size);
/* float_text.c: the shortest decimal that reads back as the same float32, with at most 9 digits; returns
 * `buffer`. */
#define SGM__FLOAT_TEXT 32 /* bytes that are always enough */
char *sgm__float_text(float number, char *buffer, size_t size);
/* The nearest of `names` (count entries) to `name` by edit distance, for "did you mean"; NULL when none is
 * near enough to be a sensible guess. */
const char *sgm__nearest(const char *name, const char *const *names, size_t count);
/* The text of an errno value; any thread. */
const char *sgm__errno_text(int error);
/* Gives the calling thread the C locale, with characters of UTF-8, and returns the one that it had, for
 * uselocale. Around calls of other libraries whose results would depend on the program's locale. */
locale_t sgm__use_c_locale(void);
/* Whether the locale's encoding is UTF-8, by the order of locale(7): the first of LC_ALL, LC_CTYPE and LANG
 * that is set and not empty counts. */
bool sgm__locale_is_utf8(void);

/* --- random numbers (random.c): Philox4x32-10 (Salmon et al., 2011), counter-based: the same (seed, stream,
 * counter) gives the same numbers in any order and on any device --- */
/* The block function: four 32-bit words out of key `seed` and the 128-bit counter made of (`stream`,
 * `counter`). */
void sgm__philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);
/* A generator over the block function. Its five members are the whole state, which checkpoints save: a
 * restored generator goes on with the very next word. */
typedef struct sgm__random {
    uint64_t seed, stream, counter; /* counter: number of blocks taken */
    uint32_t buffer[4];             /* the newest block */
    uint32_t left;                  /* words of the block that were not given out, from its end */
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
/* file_open.c: opens an ordinary file for reading; the one way to open a path that the user gave. Folders are
 * errors, and so is whatever could make the caller wait for ever (a named pipe, a socket, a device); *file is
 * -1 then. A path to what the process was given open (/dev/stdin, /dev/fd/N) is taken whatever it is. */
sgm_status sgm__file_open(const char *path, int *file);
/* As sgm__file_open, as a stream for fread; NULL on failure. */
FILE *sgm__file_open_stream(const char *path);
/* Reads a whole file of at most `limit` bytes; *data ends in an extra 0 byte, free with sgm__free. */
sgm_status sgm__file_read(const char *path, size_t limit, char **data, size_t *length);
/* Writes all, at the file's position, in one call unless the room ends; false: errno tells why. */
bool sgm__write_fully(int file, const void *data, size_t size);
/* Writes through `path`.tmp, fsync, rename and fsync of the folder, so that a reader or a crash sees the old
 * file or the new one, never a part. Devices and pipes are written to directly. */
sgm_status sgm__file_write_atomic(const char *path, const void *data, size_t length);
/* Bytes that stand in a file behind those of the piece before. */
typedef struct sgm__file_piece {
    const void *data;
    size_t size;
} sgm__file_piece;
/* Told of a file that is complete and synchronised, and is to be renamed. */
typedef sgm_status (*sgm__before_rename_function)(void *user, const char *file);
/* The same for a file of `count` pieces, but calls `before_rename` (may be NULL) before the rename; if it
 * fails, the old file stays. Devices and pipes have none. */
sgm_status sgm__file_write_pieces(const char *path, const sgm__file_piece *pieces, size_t count,
                                  sgm__before_rename_function before_rename, void *user);
/* Renames `with`, which must be complete and synchronised, to `path`, and syncs the folder. When the rename
 * fails, `with` is removed. */
sgm_status sgm__file_replace(const char *path, const char *with);
sgm_status sgm__make_folders(const char *path); /* like mkdir -p */
bool sgm__file_exists(const char *path);
bool sgm__is_folder(const char *path);

/* --- tasks (task.c) --- */
/* As sgm_task_watch, but the function is called only when a task begins and ends, not for progress: a task
 * that has only such watchers does not even look at the clock when it counts. The progress itself can still
 * be read through sgm_task_list. */
sgm_status sgm__task_watch_ends(sgm_task_function function, void *user);

/* --- logging (log.c) --- */
#define sgm__log(...) sgm_log_message(__VA_ARGS__)
void sgm__vlog(sgm_log_level level, const char *source, const char *format, va_list arguments);
/* Says whether the terminal shows a line that has no line end (a progress bar): the log then clears that line
 * before it writes a message. */
void sgm__log_line_is_open(bool open);

#endif
