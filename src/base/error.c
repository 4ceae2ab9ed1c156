/* Keeps the newest failure of each thread: a status, a message, and perhaps the number of an example.
 *
 * The message lies in a fixed thread-local buffer, so that reporting a failure needs no memory and cannot
 * fail itself. sgm_fail writes it where the failure happens; outer layers put the name of their object in
 * front with sgm__fail_within, so that a finished message reads from the outside inwards ("trainer 'a': layer
 * 2: ..."). Success does not clear the error: it is the newest failure, not the state of the last call.
 * Functions are defined with their names in parentheses because base.h has macros of the same names. */
#include "base/base.h"

#include <stdio.h>

/* bytes with the terminating 0; longer messages are cut off and end in "..." */
#define MESSAGE_SIZE 1024

static _Thread_local char last_message[MESSAGE_SIZE];
static _Thread_local sgm_status last_status = SGM_OK;
/* the example of a minibatch that the failure is about, -1: none was named */
static _Thread_local int64_t blamed_example = -1;

/* Overwrites the last bytes of a message that was cut off with "...". The dots move left to the first byte of
 * a UTF-8 character (continuation bytes are 10xxxxxx), so that no half character stays before them. */
static void mark_truncation(char *message, size_t size)
{
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)message[end] & 0xC0u) == 0x80u)
        end--;
    memcpy(message + end, "...", 4);
}

/* Formats into a second buffer first: the arguments may point into the old message, as in sgm__fail_within,
 * and vsnprintf must not read what it writes. */
static void set_message(const char *format, va_list arguments)
{
    char message[MESSAGE_SIZE];
    int length = vsnprintf(message, sizeof message, format, arguments);
    if (length < 0)
        message[0] = '\0';
    else if ((size_t)length >= sizeof message)
        mark_truncation(message, sizeof message);
    memcpy(last_message, sgm__make_printable(message), strlen(message) + 1);
}

const char *sgm_status_text(sgm_status status)
{
    switch (status) {
#define STATUS_CASE(code, value, text)                                                                       \
    case SGM_##code:                                                                                         \
        return text;
        SGM_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

const char *sgm_last_error(void)
{
    return last_message;
}

sgm_status sgm_last_status(void)
{
    return last_status;
}

void sgm_clear_error(void)
{
    last_message[0] = '\0';
    last_status = SGM_OK;
    blamed_example = -1;
}

/* A caller that passes SGM_OK (a status it got from elsewhere) still reports a failure: SGM_ERROR_STATE
 * stands in, so that no failing path can return SGM_OK. */
sgm_status(sgm_fail)(sgm_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_message(format, arguments);
    va_end(arguments);
    last_status = status != SGM_OK ? status : SGM_ERROR_STATE;
    blamed_example = -1;
    return last_status;
}

sgm_status(sgm__fail_example)(int64_t example)
{
    blamed_example = example;
    return last_status;
}

int64_t sgm__failed_example(void)
{
    return blamed_example;
}

sgm_status(sgm__fail_memory)(size_t size)
{
    return sgm_fail(SGM_ERROR_MEMORY, "cannot allocate %zu bytes: free memory, or use smaller sizes", size);
}

/* `where` is formatted before sgm_fail reads last_message, and the example's number is saved around the call,
 * because sgm_fail resets it. */
sgm_status(sgm__fail_within)(const char *format, ...)
{
    char where[MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(where, sizeof where, format, arguments);
    va_end(arguments);
    if (length < 0)
        where[0] = '\0';
    else if ((size_t)length >= sizeof where)
        mark_truncation(where, sizeof where);
    int64_t example = blamed_example;
    sgm_status status = sgm_fail(last_status, "%s: %s", where, last_message);
    blamed_example = example;
    return status;
}
