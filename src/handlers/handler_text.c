/* Parses the options in brackets behind a handler's name, see handler_text.h.
 *
 * The grammar is NAME or NAME(option=value, option=value): blanks around words are ignored, an option may
 * occur once, and every message repeats the whole text. The values of `dense`, `instructions` and
 * `bfloat16` are checked by the cpu handler itself.
 */
#include "handlers/handler_text.h"

#include "base/base.h"

#define BLANKS " \t"

size_t sgm__handler_text_name(const char *text)
{
    return strcspn(text, "(");
}

/* Copies `length` characters without the blanks around them into `word`, which has room for `size` bytes. */
static sgm_status copy_word(const char *text, const char *from, size_t length, char *word, size_t size)
{
    size_t before = strspn(from, BLANKS);
    before = before < length ? before : length;
    from += before;
    length -= before;
    while (length > 0 && strchr(BLANKS, from[length - 1]) != NULL)
        length--;
    if (length >= size)
        return sgm_fail(SGM_ERROR_ARGUMENT, "handler '%s': '%.*s' is too long", text, (int)length, from);
    memcpy(word, from, length);
    word[length] = '\0';
    return SGM_OK;
}

/* Only these two words, so that "yes" or "1" is an error instead of false. */
static sgm_status set_bool(const char *text, const char *name, const char *value, bool *to)
{
    *to = strcmp(value, "true") == 0;
    if (*to || strcmp(value, "false") == 0)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "handler '%s': %s: expected true or false, got '%s'", text, name,
                    value);
}

/* Numbers of devices; 1023 is only a bound against typing errors. */
static sgm_status set_number(const char *text, const char *name, const char *value, int *to)
{
    int64_t number;
    bool good = sgm__parse_int64(value, &number) && number >= 0 && number <= 1023;
    if (good)
        *to = (int)number;
    return good
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "handler '%s': %s: expected a whole number from 0 on, got '%s'",
                          text, name, value);
}

/* The options in the order of option_names: first those of the cpu, from OF_CPU on those of devices. */
enum { DENSE, INSTRUCTIONS, BFLOAT16, APPROXIMATE, EXACT, KEEP_SUBNORMALS, OF_CPU };
enum { DEVICE = OF_CPU, TF32, ALL };
static const char *const option_names[ALL] = {"dense", "instructions",    "bfloat16", "approximate",
                                              "exact", "keep_subnormals", "device",   "tf32"};

/* The nearest word is looked for only among the options [first, end) that this handler has. */
static sgm_status fail_option(const char *text, const char *name, size_t first, size_t end)
{
    const char *near = sgm__nearest(name, option_names + first, end - first);
    return sgm_fail(SGM_ERROR_ARGUMENT, "handler '%s': there is no option '%s'%s%s%s; there are %s", text,
                    name, near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                    near != NULL ? "'?)" : "",
                    first == 0 ? "dense, instructions, bfloat16, approximate, exact and keep_subnormals"
                               : "device and, of cuda alone, tf32");
}

/* Sets one option of *to. Strings are copied into *to, since `value` is on the caller's stack. */
static sgm_status set_option(const char *text, bool of_device, const char *name, const char *value,
                             sgm__handler_text *to)
{
    const size_t first = of_device ? OF_CPU : 0, end = of_device ? ALL : OF_CPU;
    size_t option = first;
    while (option < end && strcmp(name, option_names[option]) != 0)
        option++;
    if (option == end)
        return fail_option(text, name, first, end);
    if ((to->given >> option & 1) != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "handler '%s': %s is given twice: leave one out", text, name);
    to->given |= 1u << option;
    if (option == DEVICE)
        return set_number(text, name, value, &to->options.device);
    bool *switches[ALL] = {[APPROXIMATE] = &to->options.approximate,
                           [EXACT] = &to->options.exact,
                           [KEEP_SUBNORMALS] = &to->options.keep_subnormals,
                           [TF32] = &to->options.tf32};
    if (switches[option] != NULL)
        return set_bool(text, name, value, switches[option]);
    char *rooms[] = {[DENSE] = to->dense, [INSTRUCTIONS] = to->instructions, [BFLOAT16] = to->bfloat16};
    const char **words[] = {[DENSE] = &to->options.dense,
                            [INSTRUCTIONS] = &to->options.instructions,
                            [BFLOAT16] = &to->options.bfloat16};
    memcpy(rooms[option], value, strlen(value) + 1);
    *words[option] = rooms[option];
    return SGM_OK;
}

sgm_status sgm__handler_text_read(const char *text, bool of_device, const sgm_handler_options *given,
                                  sgm__handler_text *to)
{
    *to = (sgm__handler_text){.options = *given};
    const char *at = text + sgm__handler_text_name(text);
    if (*at == '\0')
        return SGM_OK;
    size_t length = strlen(at);
    if (at[length - 1] != ')')
        return sgm_fail(SGM_ERROR_ARGUMENT, "handler '%s': expected ')' at the end", text);
    const char *end = at + length - 1;
    for (at++; at < end; at++) {
        char name[32], value[32];
        size_t part = strcspn(at, ",)"), before = strcspn(at, "=");
        if (before >= part)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "handler '%s': expected 'option=value' between the brackets, got '%.*s'", text,
                            (int)part, at);
        SGM_TRY(copy_word(text, at, before, name, sizeof name));
        SGM_TRY(copy_word(text, at + before + 1, part - before - 1, value, sizeof value));
        SGM_TRY(set_option(text, of_device, name, value, to));
        at += part;
    }
    return SGM_OK;
}
