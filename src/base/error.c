/* The thread's newest error: a fixed buffer, so that reporting a failure cannot fail itself. */
#include "base/base.h"

#include <stdio.h>

#define MESSAGE_SIZE 1024

static _Thread_local char last_message[MESSAGE_SIZE];
static _Thread_local sgm_status last_status = SGM_OK;
static _Thread_local int64_t blamed_example = -1;

/* Ends a message that was cut off with "...", without leaving half a UTF-8 character behind. */
static void mark_truncation(char *message, size_t size)
{
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)message[end] & 0xC0u) == 0x80u)
        end--;
    memcpy(message + end, "...", 4);
}

/* The arguments may point into the old message, so the new one is built aside. */
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
