/* Status codes and error messages.
 *
 * A function that can fail returns sgm_status; a constructor returns NULL. The message of the newest failure
 * on this thread is sgm_last_error(): what was expected, what came instead, and what to do.
 */
#ifndef SIGMA_STATUS_H
#define SIGMA_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SGM_API __attribute__((visibility("default")))
#define SGM_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define SGM_API
#define SGM_PRINTF(text, first)
#endif

/* Functions with options are macros over a function that takes a struct:
 *     sgm_csv_reader(source, .skip_rows = 1)
 * What is not given is zero, which means the default. The library copies the struct.
 *
 * The functions under the macros take a pointer to the struct (NULL: all defaults). Called directly, as C++
 * must, the struct is zeroed and its struct_size set to sizeof it: by that the library knows which options
 * the caller was compiled with, and so a newer library serves older programs. 0 there is an error. */
#define SGM_WITH_OPTIONS(function, type, ...) SGM_WITH_OPTIONS_BEHIND(function, type, __VA_ARGS__, )
#define SGM_WITH_OPTIONS_BEHIND(function, type, first, ...) function(first, SGM_OPTIONS(type, __VA_ARGS__))
/* The options' struct. A value without a name, as in sgm_minibatches(data, 64), would stand for another
 * option in another version: it does not compile by gcc and clang; others make the
 * size 0, and the function fails. */
#define SGM_OPTIONS(type, ...)                                                                               \
    (&(const type){.struct_size = SGM_OPTIONS_SIZE(type, #__VA_ARGS__ "."), __VA_ARGS__})
#if defined(__GNUC__) && !defined(__cplusplus)
#define SGM_OPTIONS_SIZE(type, text)                                                                         \
    (sizeof(type) + 0 * __extension__ sizeof(struct {                                                        \
                        int size;                                                                            \
                        _Static_assert(__builtin_strncmp(text, ".", 1) == 0,                                 \
                                       "options have names, as .name = value");                              \
                    }))
#else
#define SGM_OPTIONS_SIZE(type, text) ((text)[0] == '.' ? sizeof(type) : 0)
#endif

#define SGM_VERSION_MAJOR 0
#define SGM_VERSION_MINOR 1
#define SGM_VERSION_PATCH 0

/* code, value, text */
#define SGM_STATUS_LIST(X)                                                                                   \
    X(OK, 0, "ok")                                                                                           \
    X(ERROR_ARGUMENT, -1, "invalid argument")                                                                \
    X(ERROR_SHAPE, -2, "shapes do not fit")                                                                  \
    X(ERROR_TYPE, -3, "types do not fit")                                                                    \
    X(ERROR_MEMORY, -4, "out of memory")                                                                     \
    X(ERROR_FILE, -5, "file cannot be read or written")                                                      \
    X(ERROR_FORMAT, -6, "malformed data")                                                                    \
    X(ERROR_NOT_FOUND, -7, "not found")                                                                      \
    X(ERROR_UNSUPPORTED, -8, "not supported")                                                                \
    X(ERROR_NUMERIC, -9, "not a finite number")                                                              \
    X(ERROR_NETWORK, -10, "network transfer failed")                                                         \
    X(ERROR_STATE, -11, "not possible in the current state")                                                 \
    X(ERROR_INTERRUPTED, -12, "interrupted")

typedef enum sgm_status {
#define SGM_STATUS_ENUM(code, value, text) SGM_##code = (value),
    SGM_STATUS_LIST(SGM_STATUS_ENUM)
#undef SGM_STATUS_ENUM
} sgm_status;

/* A short text for a code; any thread. */
SGM_API const char *sgm_status_text(sgm_status status);
/* Message of the newest failure on this thread, "" if there was none; valid until the next failure here. */
SGM_API const char *sgm_last_error(void);
SGM_API sgm_status sgm_last_status(void);
SGM_API void sgm_clear_error(void);
/* Reports a failure from an extension (operation, reader, callback); returns `status`. */
SGM_API sgm_status sgm_fail(sgm_status status, const char *format, ...) SGM_PRINTF(2, 3);

/* The version of the library that runs, which may differ from the header's. */
SGM_API const char *sgm_version(void);

/* Memory: set once before the first other call. Functions follow realloc and free; `user` is passed through.
 */
typedef struct sgm_allocator {
    void *(*reallocate)(void *user, void *memory, size_t size);
    void (*release)(void *user, void *memory);
    void *user;
} sgm_allocator;
SGM_API void sgm_set_allocator(const sgm_allocator *allocator); /* NULL: the C library's */

#ifdef __cplusplus
}
#endif
#endif
