#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *sgm__new_text(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        sgm_fail(SGM_ERROR_MEMORY, "no memory for a text");
        text = NULL;
    }
    va_end(arguments);
    return text;
}

bool sgm__has_ending(const char *text, const char *ending)
{
    const size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}
