/* Parses the options in brackets behind a handler's name, see handler_text.h.
 *
 * The grammar is NAME or NAME(option=value, option=value): blanks around words are ignored, an option may
 * occur once, and every message repeats the whole text. Which options there are says the handler's table
 * (sgm__handler_type.settings), which `sigma info` prints, too; texts are checked by the handler itself.
 */
#include "handlers/handler_text.h"

#include "base/base.h"

#include <stdio.h>

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

static sgm_status set_number(const char *text, const sgm_option *option, const char *value, int *to)
{
    int64_t number;
    bool good = sgm__parse_int64(value, &number) && (double)number >= option->minimum &&
                (double)number <= option->maximum;
    if (good)
        *to = (int)number;
    return good ? SGM_OK
                : sgm_fail(SGM_ERROR_ARGUMENT,
                           "handler '%s': %s: expected a whole number from %.0f on, got '%s'", text,
                           option->name, option->minimum, value);
}

/* Another handler that has an option of this name; NULL: none has. */
static const char *owner_of(const char *name)
{
    const sgm_setting *settings;
    sgm__described described;
    size_t count;
    for (size_t i = 0; sgm__handler_describe(i, &described, &settings, &count); i++)
        if (sgm_setting_find(settings, count, name) != NULL)
            return described.name;
    return NULL;
}

/* With the handler that has the option, or the nearest of the type's own, and all of these. */
static sgm_status fail_option(const char *text, const sgm__handler_type *type, const char *name)
{
    const char *owner = owner_of(name), *names[SGM__HANDLER_SETTINGS];
    char list[256] = "";
    const size_t count = type->setting_count;
    for (size_t i = 0, length = 0; i < count && length < sizeof list; i++) {
        names[i] = type->settings[i].option.name;
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
                                   i == 0          ? ""
                                   : i + 1 < count ? ", "
                                                   : " and ",
                                   names[i]);
    }
    if (owner != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "handler '%s': %s has no option '%s', which is one of %s: leave it out, or take that "
                        "handler; there %s %s",
                        text, type->name, name, owner, count == 1 ? "is" : "are", list);
    const char *near = sgm__nearest(name, names, count);
    return sgm_fail(SGM_ERROR_ARGUMENT, "handler '%s': there is no option '%s'%s%s%s; there %s %s", text,
                    name, near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                    near != NULL ? "'?)" : "", count == 1 ? "is" : "are", list);
}

/* Sets one option of *to. Texts are copied into *to, since `value` is on the caller's stack. */
static sgm_status set_option(const char *text, const sgm__handler_type *type, const char *name,
                             const char *value, sgm__handler_text *to)
{
    const sgm_setting *setting = sgm_setting_find(type->settings, type->setting_count, name);
    if (setting == NULL)
        return fail_option(text, type, name);
    const size_t row = (size_t)(setting - type->settings);
    void *member = (char *)&to->options + setting->offset;
    if (to->given[row])
        return sgm_fail(SGM_ERROR_ARGUMENT, "handler '%s': %s is given twice: leave one out", text, name);
    to->given[row] = true;
    if (setting->option.kind == SGM_KIND_BOOLEAN)
        return set_bool(text, name, value, member);
    if (setting->option.kind == SGM_KIND_INTEGER)
        return set_number(text, &setting->option, value, member);
    const char *word = to->words[row];
    memcpy(to->words[row], value, strlen(value) + 1);
    memcpy(member, &word, sizeof word);
    return SGM_OK;
}

sgm_status sgm__handler_text_read(const char *text, const sgm__handler_type *type,
                                  const sgm_handler_options *given, sgm__handler_text *to)
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
        SGM_TRY(set_option(text, type, name, value, to));
        at += part;
    }
    return SGM_OK;
}
