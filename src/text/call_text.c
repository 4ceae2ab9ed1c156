/* The reader of "name(value, key=value)": finds the row that each argument belongs to, reads a value of that
 * row's kind, and fills in the defaults of all others.
 *
 * An argument without a name fills the next row in the order of the table. A list takes several values, with
 * spaces or commas between them; since arguments have commas between them, too, continues_list decides by
 * what may come next whether a comma ends the list. Values are checked where they are read, so that messages
 * have their column. Tokens, and errors with columns, are phrase.c's. */
#include "text/call_text.h"
#include "text/names.h"

#include <math.h>
#include <stdio.h>

/* --- rows --- */

/* SIZE_MAX: there is none. */
static size_t find_row(const sgm__call *call, const char *name, size_t length)
{
    for (size_t i = 0; i < call->row_count; i++)
        if (strlen(call->rows[i].name) == length && memcmp(call->rows[i].name, name, length) == 0)
            return i;
    return SIZE_MAX;
}

static bool is_numeric(const sgm_option *row)
{
    return row->kind == SGM_KIND_NUMBER || row->kind == SGM_KIND_INTEGER;
}

/* True also for a row without bounds, and false for NaN. */
static bool is_within_bounds(const sgm_option *row, double number)
{
    return !isnan(number) &&
           (row->minimum >= row->maximum || (number >= row->minimum && number <= row->maximum));
}

bool sgm__option_has_default(const sgm_option *row)
{
    if (row->required)
        return false;
    if (row->kind == SGM_KIND_TEXT || row->list)
        return row->default_text != NULL;
    return row->kind == SGM_KIND_BOOLEAN || is_within_bounds(row, row->default_value);
}

/* --- values --- */

static sgm_status read_word(sgm__phrase *phrase, char **text)
{
    static const char what[] = "a word, or a text in quotes";
    if (phrase->kind == SGM__PHRASE_STRING)
        return sgm__phrase_string(phrase, what, text);
    if (phrase->kind != SGM__PHRASE_WORD)
        return sgm__phrase_expected(phrase, what, NULL, 0);
    *text = sgm__strndup(phrase->text + phrase->at, phrase->length);
    if (*text == NULL)
        return SGM_ERROR_MEMORY;
    sgm__phrase_next(phrase);
    return SGM_OK;
}

/* A text in quotes must be an identifier, too. */
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

/* Whether a word can only be one more identifier of a list, and no value of the argument that may come next.
 */
static bool is_identifier_before(const sgm__phrase *phrase, const sgm_option *next)
{
    static const char *const flags[] = {"false", "true"};
    char word[64] = "";
    if (phrase->kind != SGM__PHRASE_WORD || phrase->length >= sizeof word)
        return false;
    memcpy(word, phrase->text + phrase->at, phrase->length);
    if (strpbrk(word, ".*") != NULL)
        return !next->identifier;
    return is_numeric(next) || (next->kind == SGM_KIND_BOOLEAN && sgm__nearest(word, flags, 2) == NULL);
}

/* Takes a comma inside a list, as in "top_k(validation, 1, 3)": what follows it is neither a value of the
 * argument that would come `next`, nor an argument with its name, nor the end. Where nothing comes next,
 * whatever follows belongs to the list. */
static bool continues_list(sgm__phrase *phrase, const sgm_option *next, bool numbers)
{
    sgm__phrase ahead = *phrase;
    if (!sgm__phrase_take(&ahead, ","))
        return false;
    sgm__phrase behind = ahead;
    sgm__phrase_next(&behind);
    if (sgm__phrase_is(&behind, "=") || sgm__phrase_is(&ahead, ")"))
        return false;
    bool belongs =
        next->kind == SGM_KIND_NOTHING || (numbers ? ahead.kind == SGM__PHRASE_NUMBER && !is_numeric(next)
                                                   : is_identifier_before(&ahead, next));
    if (belongs)
        *phrase = ahead;
    return belongs;
}

/* With spaces or commas between them; a text in quotes may hold several. */
static sgm_status read_identifiers(sgm__phrase *phrase, const sgm_option *next, char **text)
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
             continues_list(phrase, next, false));
    *text = sgm__text_take(&all);
    return *text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* "a whole number from 1", "a number from -180 to 180": the upper bound only if it is one that a user would
 * think of. */
static char *expectation(const sgm_option *row, bool whole_range, char *buffer, size_t size)
{
    char minimum[32], maximum[32];
    bool bounded = row->minimum < row->maximum;
    snprintf(buffer, size, "%s%s%s%s%s%s%s", row->kind == SGM_KIND_INTEGER ? "a whole number" : "a number",
             bounded ? " from " : "", bounded ? sgm__number_text(row->minimum, minimum, sizeof minimum) : "",
             bounded && whole_range ? " to " : "",
             bounded && whole_range ? sgm__number_text(row->maximum, maximum, sizeof maximum) : "",
             row->unit != NULL ? " " : "", row->unit != NULL ? row->unit : "");
    return buffer;
}

/* A number within the row's bounds, whole if the row wants integers. */
static sgm_status read_number(sgm__phrase *phrase, const sgm_option *row, double *number)
{
    char expected[100];
    size_t at = phrase->at;
    if (phrase->kind != SGM__PHRASE_NUMBER)
        return sgm__phrase_expected(phrase, expectation(row, false, expected, sizeof expected), NULL, 0);
    SGM_TRY(sgm__phrase_number(phrase, number));
    if (!is_within_bounds(row, *number) || (row->kind == SGM_KIND_INTEGER && *number != floor(*number)))
        return sgm__phrase_fail(phrase, at, "expected %s, not %.10g",
                                expectation(row, true, expected, sizeof expected), *number);
    return SGM_OK;
}

static sgm_status read_numbers(sgm__phrase *phrase, const sgm_option *row, const sgm_option *next,
                               sgm__call_value *value)
{
    do {
        SGM_TRY(sgm__reserve(&value->numbers, &value->capacity, value->count + 1, sizeof *value->numbers));
        SGM_TRY(read_number(phrase, row, &value->numbers[value->count]));
        value->count++;
    } while (phrase->kind == SGM__PHRASE_NUMBER || continues_list(phrase, next, true));
    return SGM_OK;
}

/* The place of a word among `choices`, which end in NULL. */
static sgm_status read_choice(sgm__phrase *phrase, const char *const *choices, double *place)
{
    sgm__text known = {0};
    size_t count = 0;
    for (; choices[count] != NULL; count++) {
        if (sgm__phrase_take(phrase, choices[count])) {
            *place = (double)count;
            sgm__text_free(&known);
            return SGM_OK;
        }
        sgm__text_append(&known, "%s%s", count > 0 ? choices[count + 1] != NULL ? ", " : " or " : "",
                         choices[count]);
    }
    sgm_status status =
        sgm__phrase_expected(phrase, known.data != NULL ? known.data : "a choice", choices, count);
    sgm__text_free(&known);
    return status;
}

/* `next`: the row that would be filled by a value behind this one without a name. */
static sgm_status read_value(sgm__phrase *phrase, const sgm_option *row, const sgm_option *next,
                             sgm__call_value *value)
{
    static const char *const flags[] = {"false", "true", NULL};
    value->known = true;
    if (is_numeric(row))
        return row->list ? read_numbers(phrase, row, next, value) : read_number(phrase, row, &value->number);
    if (row->kind == SGM_KIND_BOOLEAN)
        return read_choice(phrase, flags, &value->number);
    if (row->choices != NULL)
        return read_choice(phrase, row->choices, &value->number);
    if (row->identifier)
        return row->list ? read_identifiers(phrase, next, &value->text)
                         : read_identifier(phrase, &value->text);
    return read_word(phrase, &value->text);
}

/* --- arguments --- */

/* The current word without what follows it; "" if it is too long for a name. */
static void copy_word(const sgm__phrase *phrase, char word[SGM__CALL_NAME])
{
    bool fits = phrase->length < SGM__CALL_NAME;
    snprintf(word, SGM__CALL_NAME, "%.*s", fits ? (int)phrase->length : 0, phrase->text + phrase->at);
}

/* The row that a name of another program can only mean; SIZE_MAX: there is none. */
static size_t find_meant(const sgm__phrase *phrase, const sgm__call *call)
{
    const char *names[SGM__CALL_ROWS];
    char word[SGM__CALL_NAME];
    copy_word(phrase, word);
    for (size_t i = 0; i < call->row_count; i++)
        names[i] = call->rows[i].name;
    const char *real = sgm__name_real(SGM__NAME_ARGUMENT, word, names, call->row_count, NULL);
    return real != NULL ? find_row(call, real, strlen(real)) : SIZE_MAX;
}

static sgm_status fail_unknown(const sgm__phrase *phrase, const sgm__call *call)
{
    const char *names[SGM__CALL_ROWS];
    char word[SGM__CALL_NAME], hint[SGM__NAME_HINT];
    sgm__text what = {0};
    sgm__text_append(&what, "an argument of %s (", call->name);
    for (size_t i = 0; i < call->row_count; i++) {
        names[i] = call->rows[i].name;
        sgm__text_append(&what, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    sgm__text_append(&what, ")");
    copy_word(phrase, word);
    sgm__name_hint(SGM__NAME_ARGUMENT, word, names, call->row_count, hint);
    sgm_status status =
        sgm__name_is_known(SGM__NAME_ARGUMENT, word) && hint[0] != '\0'
            ? sgm__phrase_fail(phrase, phrase->at, "%s has no argument '%s'%s", call->name, word, hint)
            : sgm__phrase_expected(phrase, what.data != NULL ? what.data : "an argument", names,
                                   call->row_count);
    sgm__text_free(&what);
    return status;
}

/* The row of the current argument: the one that "name =" names, which is skipped, or the next in order. */
static sgm_status find_place(sgm__phrase *phrase, const sgm__call *call, size_t *position, size_t *place)
{
    if (call->row_count == 0)
        return sgm__phrase_fail(phrase, phrase->at, "%s takes no arguments", call->name);
    sgm__phrase behind = *phrase;
    sgm__phrase_next(&behind);
    if (phrase->kind == SGM__PHRASE_WORD && sgm__phrase_is(&behind, "=")) {
        *place = find_row(call, phrase->text + phrase->at, phrase->length);
        if (*place == SIZE_MAX)
            *place = find_meant(phrase, call);
        if (*place == SIZE_MAX)
            return fail_unknown(phrase, call);
        sgm__phrase_next(&behind);
        *phrase = behind;
        return SGM_OK;
    }
    if (*position >= call->row_count)
        return sgm__phrase_fail(phrase, phrase->at, "%s takes at most %zu argument%s", call->name,
                                call->row_count, call->row_count == 1 ? "" : "s");
    *place = (*position)++;
    return SGM_OK;
}

/* "column 9: expected ..." becomes "column 9: stop: reason: expected ...". */
static sgm_status name_argument(sgm_status status, const char *call, const char *argument)
{
    char message[600];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    const char *rest = sgm__begins_with(message, "column ") ? strstr(message, ": ") : NULL;
    return rest != NULL ? sgm_fail(status, "%.*s%s: %s: %s", (int)(rest + 2 - message), message, call,
                                   argument, rest + 2)
                        : status;
}

static sgm_status read_argument(sgm__phrase *phrase, sgm__call *call, size_t *position)
{
    static const sgm_option nothing = {0};
    size_t place = 0, at = phrase->at;
    SGM_TRY(find_place(phrase, call, position, &place));
    const sgm_option *row = &call->rows[place];
    sgm__call_value *value = &call->values[place];
    if (value->given)
        return sgm__phrase_fail(phrase, at, "%s is given twice", row->name);
    value->given = true;
    value->at = phrase->at;
    const sgm_option *next = *position < call->row_count ? &call->rows[*position] : &nothing;
    sgm_status status = read_value(phrase, row, next, value);
    return status == SGM_OK ? SGM_OK : name_argument(status, call->name, row->name);
}

static sgm_status read_arguments(sgm__phrase *phrase, sgm__call *call)
{
    size_t position = 0;
    if (!sgm__phrase_take(phrase, "(") || sgm__phrase_take(phrase, ")"))
        return SGM_OK;
    do
        SGM_TRY(read_argument(phrase, call, &position));
    while (sgm__phrase_take(phrase, ",") && !sgm__phrase_is(phrase, ")"));
    if (!sgm__phrase_take(phrase, ")"))
        return sgm__phrase_expected(phrase, "',' with another argument, or ')'", NULL, 0);
    return SGM_OK;
}

/* Texts and lists are read as if they had been written. */
static sgm_status take_default(const sgm_option *row, sgm__call_value *value)
{
    static const sgm_option nothing = {0};
    sgm__phrase phrase;
    value->known = true;
    value->number = row->default_value;
    if (row->default_text == NULL)
        return SGM_OK;
    SGM_TRY(sgm__phrase_begin(&phrase, row->default_text));
    return read_value(&phrase, row, &nothing, value);
}

static sgm_status fill_in(sgm__call *call)
{
    for (size_t i = 0; i < call->row_count; i++) {
        const sgm_option *row = &call->rows[i];
        sgm__call_value *value = &call->values[i];
        if (value->given)
            continue;
        value->at = call->at;
        if (row->required)
            return sgm__phrase_fail(call->phrase, call->at, "%s needs %s: %s", call->name, row->name,
                                    row->doc);
        if (sgm__option_has_default(row))
            SGM_TRY(take_default(row, value));
    }
    return SGM_OK;
}

sgm_status sgm__call_read_name(sgm__phrase *phrase, char name[SGM__CALL_NAME])
{
    if (phrase->kind != SGM__PHRASE_WORD || phrase->length >= SGM__CALL_NAME)
        return sgm__phrase_expected(phrase, "a name", NULL, 0);
    memcpy(name, phrase->text + phrase->at, phrase->length);
    name[phrase->length] = '\0';
    sgm__phrase_next(phrase);
    return SGM_OK;
}

sgm_status sgm__call_begin(sgm__phrase *phrase, const char *text, char name[SGM__CALL_NAME])
{
    SGM_TRY(sgm__phrase_begin(phrase, text));
    return sgm__call_read_name(phrase, name);
}

sgm_status sgm__call_read(sgm__phrase *phrase, sgm__call *call)
{
    call->phrase = phrase;
    SGM_TRY(read_arguments(phrase, call));
    return fill_in(call);
}

sgm_status sgm__call_finish(sgm__phrase *phrase, sgm__call *call)
{
    SGM_TRY(sgm__call_read(phrase, call));
    return phrase->kind == SGM__PHRASE_END ? SGM_OK : sgm__phrase_expected(phrase, "the end", NULL, 0);
}

void sgm__call_free(sgm__call *call)
{
    for (size_t i = 0; i < call->row_count; i++) {
        sgm__free(call->values[i].text);
        sgm__free(call->values[i].numbers);
    }
}

/* --- what was read --- */

static const sgm__call_value *value_of(const sgm__call *call, const char *name)
{
    static const sgm__call_value none = {.known = false};
    size_t place = find_row(call, name, strlen(name));
    return place != SIZE_MAX ? &call->values[place] : &none;
}

bool sgm__call_has(const sgm__call *call, const char *name)
{
    return value_of(call, name)->known;
}

const char *sgm__call_text(const sgm__call *call, const char *name)
{
    return value_of(call, name)->text;
}

double sgm__call_number(const sgm__call *call, const char *name)
{
    const sgm__call_value *value = value_of(call, name);
    return value->known ? value->number : NAN;
}

const double *sgm__call_numbers(const sgm__call *call, const char *name, size_t *count)
{
    const sgm__call_value *value = value_of(call, name);
    *count = value->count;
    return value->numbers;
}

int64_t sgm__call_integer(const sgm__call *call, const char *name)
{
    return (int64_t)value_of(call, name)->number;
}

bool sgm__call_flag(const sgm__call *call, const char *name)
{
    return value_of(call, name)->number != 0;
}

size_t sgm__call_choice(const sgm__call *call, const char *name)
{
    const sgm__call_value *value = value_of(call, name);
    return value->known ? (size_t)value->number : SIZE_MAX;
}

sgm_status sgm__call_fail(const sgm__call *call, const char *name, const char *format, ...)
{
    char message[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (name == NULL)
        return sgm__phrase_fail(call->phrase, call->at, "%s: %s", call->name, message);
    size_t place = find_row(call, name, strlen(name));
    return sgm__phrase_fail(call->phrase, place != SIZE_MAX ? call->values[place].at : call->at, "%s: %s: %s",
                            call->name, name, message);
}
