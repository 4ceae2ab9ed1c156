/* Arguments of hooks as text: "(training.loss, with_time=true)", read as a row has them, and asked for. */
#include "hooks/hook_text.h"

#include <math.h>
#include <stdio.h>

size_t sgm__hook_argument_count(const sgm__hook_row *row)
{
    size_t count = 0;
    while (row->arguments[count].kind != SGM__ARGUMENT_NONE)
        count++;
    return count;
}

/* SIZE_MAX: there is none. */
static size_t find_argument(const sgm__hook_row *row, const char *name, size_t length)
{
    for (size_t i = 0; row->arguments[i].kind != SGM__ARGUMENT_NONE; i++)
        if (strlen(row->arguments[i].name) == length && memcmp(row->arguments[i].name, name, length) == 0)
            return i;
    return SIZE_MAX;
}

/* --- values --- */

static sgm_status read_word(sgm__phrase *phrase, const char *what, char **text)
{
    if (phrase->kind == SGM__PHRASE_STRING)
        return sgm__phrase_string(phrase, what, text);
    if (phrase->kind != SGM__PHRASE_WORD)
        return sgm__phrase_expected(phrase, what, NULL, 0);
    *text = sgm__strndup(phrase->text + phrase->at, phrase->length);
    if (!*text)
        return SGM_ERROR_MEMORY;
    sgm__phrase_next(phrase);
    return SGM_OK;
}

/* In quotes it must be one, too. */
static sgm_status read_identifier(sgm__phrase *phrase, char **text)
{
    if (phrase->kind != SGM__PHRASE_STRING)
        return sgm__phrase_identifier(phrase, text);
    sgm__phrase before = *phrase;
    SGM_TRY(sgm__phrase_string(phrase, "an identifier", text));
    return sgm__is_identifier(*text)
               ? SGM_OK
               : sgm__phrase_fail(&before, before.at, "'%.60s' is no identifier", *text);
}

static bool is_numeric(const sgm__hook_argument *argument)
{
    return argument->kind == SGM__ARGUMENT_NUMBER || argument->kind == SGM__ARGUMENT_NUMBERS ||
           argument->kind == SGM__ARGUMENT_COUNT;
}

/* Whether a word can only be one more identifier, and no value of the argument that may come next. */
static bool is_identifier_before(const sgm__phrase *phrase, const sgm__hook_argument *next)
{
    char word[64] = "";
    if (phrase->kind != SGM__PHRASE_WORD || phrase->length >= sizeof word)
        return false;
    memcpy(word, phrase->text + phrase->at, phrase->length);
    if (strpbrk(word, ".*") != NULL)
        return next->kind != SGM__ARGUMENT_IDENTIFIER && next->kind != SGM__ARGUMENT_IDENTIFIERS;
    static const char *const flags[] = {"false", "true"};
    return is_numeric(next) || (next->kind == SGM__ARGUMENT_FLAG && sgm__nearest(word, flags, 2) == NULL);
}

/* Takes a comma behind which the list goes on, as in "top_k(validation, 1, 3)": what is there can be no value
 * of the argument that would come `next`, and no argument with its name. */
static bool goes_on(sgm__phrase *phrase, const sgm__hook_argument *next, bool numbers)
{
    sgm__phrase ahead = *phrase;
    if (!sgm__phrase_take(&ahead, ","))
        return false;
    sgm__phrase behind = ahead;
    sgm__phrase_next(&behind);
    if (sgm__phrase_is(&behind, "="))
        return false;
    if (numbers ? ahead.kind != SGM__PHRASE_NUMBER || is_numeric(next) : !is_identifier_before(&ahead, next))
        return false;
    *phrase = ahead;
    return true;
}

/* With spaces or commas between them; a text in quotes may hold several. */
static sgm_status read_identifiers(sgm__phrase *phrase, const sgm__hook_argument *next, char **text)
{
    sgm__text all = {0};
    do {
        char *one = NULL;
        sgm_status status = phrase->kind == SGM__PHRASE_STRING
                                ? sgm__phrase_string(phrase, "identifiers", &one)
                                : sgm__phrase_identifier(phrase, &one);
        if (status == SGM_OK)
            sgm__text_append(&all, "%s%s", all.length > 0 ? " " : "", one);
        sgm__free(one);
        if (status != SGM_OK) {
            sgm__text_free(&all);
            return status;
        }
    } while (phrase->kind == SGM__PHRASE_WORD || phrase->kind == SGM__PHRASE_STRING ||
             goes_on(phrase, next, false));
    *text = sgm__text_take(&all);
    return *text ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status read_numbers(sgm__phrase *phrase, const sgm__hook_argument *next, sgm__hook_value *value)
{
    do {
        if (value->count == SGM__HOOK_MAXIMUM_NUMBERS)
            return sgm__phrase_fail(phrase, phrase->at, "at most %d numbers", SGM__HOOK_MAXIMUM_NUMBERS);
        SGM_TRY(sgm__phrase_number(phrase, &value->numbers[value->count]));
        value->count++;
    } while (phrase->kind == SGM__PHRASE_NUMBER || goes_on(phrase, next, true));
    return SGM_OK;
}

static sgm_status read_choice(sgm__phrase *phrase, const char *const *choices, size_t *choice)
{
    sgm__text known = {0};
    size_t count = 0;
    for (; choices[count]; count++) {
        if (sgm__phrase_take(phrase, choices[count])) {
            *choice = count;
            sgm__text_free(&known);
            return SGM_OK;
        }
        sgm__text_append(&known, "%s%s", count > 0 ? choices[count + 1] ? ", " : " or " : "", choices[count]);
    }
    sgm_status status = sgm__phrase_expected(phrase, known.data ? known.data : "a choice", choices, count);
    sgm__text_free(&known);
    return status;
}

static sgm_status read_whole(sgm__phrase *phrase, const sgm__hook_argument *argument, int64_t *whole)
{
    double number;
    size_t at = phrase->at;
    bool bounded = argument->maximum > 0;
    if (phrase->kind != SGM__PHRASE_NUMBER)
        return sgm__phrase_expected(
            phrase, bounded && argument->minimum == 0 ? "a whole number from 0" : "a whole number from 1",
            NULL, 0);
    SGM_TRY(sgm__phrase_number(phrase, &number));
    if (bounded &&
        (number < (double)argument->minimum || number > (double)argument->maximum || number != floor(number)))
        return sgm__phrase_fail(phrase, at, "expected a whole number from %lld to %lld, not %.10g",
                                (long long)argument->minimum, (long long)argument->maximum, number);
    if (!bounded && (number < 1 || number > (double)SGM__PHRASE_MAXIMUM_COUNT || number != floor(number)))
        return sgm__phrase_fail(phrase, at, "expected a whole number from 1 to %lld, not %.10g",
                                (long long)SGM__PHRASE_MAXIMUM_COUNT, number);
    *whole = (int64_t)number;
    return SGM_OK;
}

/* `next`: what would come behind without a name. */
static sgm_status read_value(sgm__phrase *phrase, const sgm__hook_argument *argument,
                             const sgm__hook_argument *next, sgm__hook_value *value)
{
    static const char *const flags[] = {"false", "true", NULL};
    switch (argument->kind) {
    case SGM__ARGUMENT_IDENTIFIER:
        return read_identifier(phrase, &value->text);
    case SGM__ARGUMENT_IDENTIFIERS:
        return read_identifiers(phrase, next, &value->text);
    case SGM__ARGUMENT_WORD:
        return read_word(phrase, "a word, or a text in quotes", &value->text);
    case SGM__ARGUMENT_NUMBER:
        value->count = 1;
        return sgm__phrase_number(phrase, &value->numbers[0]);
    case SGM__ARGUMENT_NUMBERS:
        return read_numbers(phrase, next, value);
    case SGM__ARGUMENT_COUNT:
        return read_whole(phrase, argument, &value->whole);
    case SGM__ARGUMENT_FLAG:
        return read_choice(phrase, flags, &value->count);
    case SGM__ARGUMENT_CHOICE:
        return read_choice(phrase, argument->choices, &value->count);
    case SGM__ARGUMENT_NONE:
        break;
    }
    return SGM_OK;
}

static sgm_status read_default(const sgm__hook_argument *argument, sgm__hook_value *value)
{
    static const sgm__hook_argument nothing = {0};
    sgm__phrase phrase;
    SGM_TRY(sgm__phrase_begin(&phrase, argument->default_value));
    return read_value(&phrase, argument, &nothing, value);
}

/* --- arguments --- */

/* "name =" goes first; without it the arguments come in the row's order. */
static sgm_status find_place(sgm__phrase *phrase, const sgm__hook_row *row, size_t *position, size_t *place)
{
    const char *names[SGM__HOOK_MAXIMUM_ARGUMENTS];
    size_t count = sgm__hook_argument_count(row);
    sgm__phrase behind = *phrase;
    sgm__phrase_next(&behind);
    for (size_t i = 0; i < count; i++)
        names[i] = row->arguments[i].name;
    if (phrase->kind == SGM__PHRASE_WORD && sgm__phrase_is(&behind, "=")) {
        *place = find_argument(row, phrase->text + phrase->at, phrase->length);
        if (*place == SIZE_MAX) {
            char what[120];
            snprintf(what, sizeof what, "an argument of %s", row->name);
            return sgm__phrase_expected(phrase, what, names, count);
        }
        sgm__phrase_next(&behind);
        *phrase = behind;
        return SGM_OK;
    }
    if (*position >= count)
        return sgm__phrase_fail(phrase, phrase->at,
                                count == 0 ? "%s takes no arguments" : "%s takes at most %zu arguments",
                                row->name, count);
    *place = (*position)++;
    return SGM_OK;
}

/* "column 9: expected ..." becomes "column 9: stop: reason: expected ...". */
static sgm_status name_argument(sgm_status status, const char *hook, const char *argument)
{
    char message[600];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    const char *rest = sgm__begins_with(message, "column ") ? strstr(message, ": ") : NULL;
    return rest ? sgm_fail(status, "%.*s%s: %s: %s", (int)(rest + 2 - message), message, hook, argument,
                           rest + 2)
                : status;
}

static sgm_status read_argument(sgm__phrase *phrase, sgm__hook_text *call, size_t *position)
{
    size_t place = 0, at = phrase->at;
    SGM_TRY(find_place(phrase, call->row, position, &place));
    const sgm__hook_argument *argument = &call->row->arguments[place];
    sgm__hook_value *value = &call->values[place];
    if (value->given)
        return sgm__phrase_fail(phrase, at, "%s is given twice", argument->name);
    value->given = true;
    value->at = phrase->at;
    sgm_status status = read_value(phrase, argument, &call->row->arguments[*position], value);
    return status == SGM_OK ? SGM_OK : name_argument(status, call->row->name, argument->name);
}

static sgm_status read_arguments(sgm__phrase *phrase, sgm__hook_text *call)
{
    size_t position = 0;
    if (!sgm__phrase_take(phrase, "(") || sgm__phrase_take(phrase, ")"))
        return SGM_OK;
    do
        SGM_TRY(read_argument(phrase, call, &position));
    while (sgm__phrase_take(phrase, ","));
    if (!sgm__phrase_take(phrase, ")"))
        return sgm__phrase_expected(phrase, "',' with another argument, or ')'", NULL, 0);
    return SGM_OK;
}

static sgm_status fill_in(const sgm__phrase *phrase, sgm__hook_text *call)
{
    for (size_t i = 0; i < sgm__hook_argument_count(call->row); i++) {
        const sgm__hook_argument *argument = &call->row->arguments[i];
        sgm__hook_value *value = &call->values[i];
        if (value->given)
            continue;
        value->at = call->name_at;
        if (argument->needed)
            return sgm__phrase_fail(phrase, call->name_at, "%s needs %s: %s", call->row->name, argument->name,
                                    argument->doc);
        if (argument->default_value)
            SGM_TRY(read_default(argument, value));
    }
    return SGM_OK;
}

sgm_status sgm__hook_read_arguments(sgm__phrase *phrase, sgm__hook_text *call)
{
    SGM_TRY(read_arguments(phrase, call));
    return fill_in(phrase, call);
}

/* --- what create() asks --- */

static const sgm__hook_value *value_of(const sgm__hook_text *call, const char *name)
{
    static const sgm__hook_value none = {.count = SIZE_MAX};
    size_t place = find_argument(call->row, name, strlen(name));
    if (place == SIZE_MAX || (!call->values[place].given && !call->row->arguments[place].default_value))
        return &none;
    return &call->values[place];
}

bool sgm__hook_has(const sgm__hook_text *call, const char *name)
{
    const sgm__hook_value *value = value_of(call, name);
    return value->text || value->count != SIZE_MAX;
}

const char *sgm__hook_text_of(const sgm__hook_text *call, const char *name)
{
    return value_of(call, name)->text;
}

double sgm__hook_number_of(const sgm__hook_text *call, const char *name)
{
    const sgm__hook_value *value = value_of(call, name);
    return value->count != SIZE_MAX ? value->numbers[0] : NAN;
}

const double *sgm__hook_numbers_of(const sgm__hook_text *call, const char *name, size_t *count)
{
    const sgm__hook_value *value = value_of(call, name);
    *count = value->count != SIZE_MAX ? value->count : 0;
    return value->numbers;
}

int64_t sgm__hook_count_of(const sgm__hook_text *call, const char *name)
{
    return value_of(call, name)->whole;
}

bool sgm__hook_flag_of(const sgm__hook_text *call, const char *name)
{
    return value_of(call, name)->count == 1;
}

size_t sgm__hook_choice_of(const sgm__hook_text *call, const char *name)
{
    return value_of(call, name)->count;
}

sgm_hook *sgm__hook_text_fail(const sgm__hook_text *call, const char *name, const char *format, ...)
{
    char message[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    size_t place = find_argument(call->row, name, strlen(name));
    sgm__phrase_fail(call->phrase, place != SIZE_MAX ? call->values[place].at : call->name_at, "%s: %s: %s",
                     call->row->name, name, message);
    return NULL;
}
