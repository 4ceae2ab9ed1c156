/* Reads and writes settings: rows whose values are members of structs of options, such as
 * sgm_optimiser_options.
 *
 * One table of rows for each struct (src/optim/option_tables.c and others) has bounds, defaults and choices;
 * the command, configurations, monitors and the checks of constructors read and write the members by it, by
 * offset and size, with memcpy since the struct's type is not known here. The kind of a row and the size of
 * its member decide how the member is stored: an integer is int or int64_t, a text is a const char * or, if
 * it has choices and the size of an int, the number of a choice. Entries of registries are in entry.c. */
#include "registry/registry_internal.h"

#include <stdio.h>

/* NULL: there is no row of that name, or the name is NULL. */
const sgm_setting *sgm_setting_find(const sgm_setting *settings, size_t count, const char *name)
{
    for (size_t i = 0; i < count && name != NULL; i++)
        if (strcmp(settings[i].option.name, name) == 0)
            return &settings[i];
    return NULL;
}

/* A member of the size of int is an int, any other an int64_t. */
static int64_t read_integer(const void *member, size_t size)
{
    int64_t wide;
    int narrow;
    if (size == sizeof narrow) {
        memcpy(&narrow, member, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, member, sizeof wide);
    return wide;
}

/* The value has passed the row's bounds, which an int must hold. */
static void write_integer(void *member, size_t size, int64_t value)
{
    int narrow = (int)value;
    if (size == sizeof narrow)
        memcpy(member, &narrow, sizeof narrow);
    else
        memcpy(member, &value, sizeof value);
}

/* Whether the member holds the number of a choice, not a text. */
static bool is_choice(const sgm_setting *setting)
{
    return setting->option.choices != NULL && setting->size == sizeof(int);
}

/* The number that stands for a choice: its index, or the table's own numbers (an enum with gaps). */
static int64_t number_of(const sgm_setting *setting, int64_t index)
{
    return setting->numbers != NULL ? setting->numbers[index] : index;
}

/* The text of the choice with this number; for an unknown number the first one, which stands for 0, the
 * default. */
static const char *choice_of(const sgm_setting *setting, int64_t number)
{
    const char *const *choices = setting->option.choices;
    for (int64_t i = 0; choices[i] != NULL; i++)
        if (number_of(setting, i) == number)
            return choices[i];
    return choices[0];
}

/* `text` has been checked to be one of the choices, so the last one needs no comparison. */
static int64_t choice_number(const sgm_setting *setting, const char *text)
{
    const char *const *choices = setting->option.choices;
    int64_t index = 0;
    while (choices[index + 1] != NULL && strcmp(choices[index], text) != 0)
        index++;
    return number_of(setting, index);
}

/* The content is a copy that belongs to the caller; a NULL text reads as "". */
sgm_status sgm_setting_get(const sgm_setting *setting, const void *options, sgm_content *content)
{
    const char *member = (const char *)options + setting->offset;
    const char *text;
    double number;
    bool flag;
    switch (setting->option.kind) {
    case SGM_KIND_BOOLEAN:
        memcpy(&flag, member, sizeof flag);
        *content = sgm_boolean_content(flag != setting->inverted);
        return SGM_OK;
    case SGM_KIND_INTEGER:
        *content = sgm_integer_content(read_integer(member, setting->size));
        return SGM_OK;
    case SGM_KIND_NUMBER:
        memcpy(&number, member, sizeof number);
        *content = sgm_number_content(number);
        return SGM_OK;
    case SGM_KIND_TEXT:
        if (is_choice(setting))
            text = choice_of(setting, read_integer(member, setting->size));
        else
            memcpy(&text, member, sizeof text);
        return sgm__content_copy(&(sgm_content){SGM_KIND_TEXT, {.text = text != NULL ? text : ""}}, false,
                                 content);
    case SGM_KIND_NOTHING:
    case SGM_KIND_TENSOR:
    case SGM_KIND_REGISTRY:
        break;
    }
    *content = (sgm_content){0};
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "setting '%s': %s cannot be a member of options",
                    setting->option.name, sgm__kind_article(setting->option.kind));
}

/* A text without choices is stored as the pointer that the content has: the caller keeps it alive. */
sgm_status sgm_setting_set(const sgm_setting *setting, void *options, const char *identifier,
                           const sgm_content *content)
{
    char *member = (char *)options + setting->offset;
    sgm_content value;
    bool flag;
    if (identifier == NULL)
        identifier = setting->option.name;
    SGM_TRY(sgm__kind_convert(setting->option.kind, identifier, content, &value));
    SGM_TRY(sgm__option_check(&setting->option, identifier, &value));
    switch (value.kind) {
    case SGM_KIND_BOOLEAN:
        flag = value.as.boolean != setting->inverted;
        memcpy(member, &flag, sizeof flag);
        return SGM_OK;
    case SGM_KIND_INTEGER:
        write_integer(member, setting->size, value.as.integer);
        return SGM_OK;
    case SGM_KIND_NUMBER:
        memcpy(member, &value.as.number, sizeof value.as.number);
        return SGM_OK;
    case SGM_KIND_TEXT:
        if (is_choice(setting))
            write_integer(member, setting->size, choice_number(setting, value.as.text));
        else
            memcpy(member, &value.as.text, sizeof value.as.text);
        return SGM_OK;
    case SGM_KIND_NOTHING:
    case SGM_KIND_TENSOR:
    case SGM_KIND_REGISTRY:
        break;
    }
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s: %s cannot be a member of options", identifier,
                    sgm__kind_article(value.kind));
}

/* 0 stands for "not given" in all structs of options, even where it is outside of the bounds. */
sgm_status sgm__setting_check(const sgm_setting *setting, const void *options, const char *what)
{
    char identifier[256];
    sgm_content content;
    if (setting->option.kind != SGM_KIND_INTEGER && setting->option.kind != SGM_KIND_NUMBER)
        return SGM_OK;
    SGM_TRY(sgm_setting_get(setting, options, &content));
    double number = content.kind == SGM_KIND_INTEGER ? (double)content.as.integer : content.as.number;
    if (number == 0)
        return SGM_OK;
    snprintf(identifier, sizeof identifier, "%s: %s", what, setting->option.name);
    return sgm__option_check(&setting->option, identifier, &content);
}
