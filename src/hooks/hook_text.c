/* Hooks as text: "every 2 epochs value_reporter(training.loss, with_time=true) if epoch > 3".
 *
 * A text is an optional `local`, an optional time step, the name of a row with its arguments, and an optional
 * condition. This file reads these parts in their order, and lists the rows for `sigma info --hooks`;
 * arguments are read by text/call_text.c, time steps and conditions by src/hooks/when. A text that is a rule
 * ("if loss stalls then stop") goes to sgm__hook_read_rule. */
#include "hooks/hook_text.h"
#include "hooks/when/criteria.h"
#include "text/names.h"

/* A hook's text while it is read. */
typedef struct hook_text {
    const sgm__hook_row *row;
    sgm_time_step when;
    bool has_step; /* the text has a time step */
    sgm__call call;
} hook_text;

/* --- rows --- */

static size_t count_arguments(const sgm__hook_row *row)
{
    size_t count = 0;
    while (row->arguments[count].name != NULL)
        count++;
    return count;
}

/* The row of a name that another program has for a hook; NULL and an error that says what may be meant. */
static const sgm__hook_row *read_foreign(sgm__phrase *phrase, const char *const *names, size_t count)
{
    char word[SGM__CALL_NAME] = "", hint[SGM__NAME_HINT];
    if (phrase->kind == SGM__PHRASE_WORD && phrase->length < sizeof word)
        memcpy(word, phrase->text + phrase->at, phrase->length);
    const char *real = sgm__name_real(SGM__NAME_HOOK, word, names, count, NULL);
    for (size_t i = 0; i < count && real != NULL; i++)
        if (strcmp(names[i], real) == 0) {
            sgm__phrase_next(phrase);
            return sgm__hook_row_at(i);
        }
    if (sgm__name_is_known(SGM__NAME_HOOK, word))
        sgm__phrase_fail(phrase, phrase->at, "unknown hook '%s'%s", word,
                         sgm__name_hint(SGM__NAME_HOOK, word, names, count, hint));
    else
        sgm__phrase_expected(phrase, "the name of a hook, as 'sigma info --hooks' lists them", names, count);
    return NULL;
}

/* NULL: an error that names the nearest. */
static const sgm__hook_row *read_row(sgm__phrase *phrase)
{
    size_t count = 0;
    while (sgm__hook_row_at(count) != NULL)
        count++;
    const char **names = sgm__calloc(count, sizeof *names);
    const sgm__hook_row *row = NULL;
    if (names == NULL)
        return NULL;
    for (size_t i = 0; i < count && row == NULL; i++) {
        names[i] = sgm__hook_row_at(i)->name;
        if (sgm__phrase_take(phrase, names[i]))
            row = sgm__hook_row_at(i);
    }
    if (row == NULL)
        row = read_foreign(phrase, names, count);
    sgm__free(names);
    return row;
}

/* --- whole texts --- */

/* What begins with `if`, or does a rule's action: "after 3 epochs stop"; but "stop()" is the hook. */
static bool is_rule(sgm__phrase phrase)
{
    if (sgm__phrase_is(&phrase, "if"))
        return true;
    return sgm__phrase_take_action(&phrase) && !sgm__phrase_is(&phrase, "(");
}

static sgm_status read_condition(sgm__phrase *phrase, hook_text *text, sgm_criteria **condition)
{
    if (sgm__phrase_take(phrase, "if"))
        SGM_TRY(sgm__criteria_read(phrase, &text->when, &text->has_step, condition));
    if (phrase->kind == SGM__PHRASE_END)
        return SGM_OK;
    return sgm__phrase_expected(phrase, *condition ? "and, or, or the end" : "if, or the end",
                                (const char *const[]){"if", "and", "or"}, 3);
}

/* Makes the hook. `condition` belongs to the hook from then on, and is set to NULL. An error of create() that
 * has no column yet gets that of the name. */
static sgm_status create(const sgm__phrase *phrase, const hook_text *text, sgm_criteria **condition,
                         sgm_hook **hook)
{
    sgm_clear_error();
    *hook = text->row->create(&text->call, text->when);
    if (*hook == NULL)
        return sgm__begins_with(sgm_last_error(), "column ") ? sgm__last_failure()
                                                             : sgm__phrase_within(phrase, text->call.at);
    sgm_criteria *added = *condition;
    *condition = NULL;
    return added != NULL ? sgm__hook_add_condition(*hook, added) : SGM_OK;
}

/* The name, the arguments and the condition. */
static sgm_status read_call(sgm__phrase *phrase, hook_text *text, sgm_hook **hook)
{
    sgm_criteria *condition = NULL;
    text->call.at = phrase->at;
    text->row = read_row(phrase);
    if (text->row == NULL)
        return sgm__last_failure();
    if (!text->has_step)
        text->when = text->row->when;
    text->call.name = text->row->name;
    text->call.rows = text->row->arguments;
    text->call.row_count = count_arguments(text->row);
    SGM_TRY(sgm__call_read(phrase, &text->call));
    sgm_status status = read_condition(phrase, text, &condition);
    if (status == SGM_OK)
        status = create(phrase, text, &condition, hook);
    sgm_criteria_free(condition);
    return status;
}

static sgm_status read_hook(const char *text, sgm_hook **hook)
{
    sgm__phrase phrase;
    SGM_TRY(sgm__phrase_begin(&phrase, text));
    hook_text parts = {.row = NULL};
    if (sgm__phrase_is_step(&phrase)) {
        SGM_TRY(sgm__phrase_step(&phrase, &parts.when));
        parts.has_step = true;
    }
    if (is_rule(phrase)) {
        *hook = sgm__hook_read_rule(text);
        return *hook != NULL ? SGM_OK : sgm__last_failure();
    }
    sgm_status status = read_call(&phrase, &parts, hook);
    sgm__call_free(&parts.call);
    return status;
}

/* The rest is read with spaces in the place of "local", so that columns stay. */
static sgm_status read_local(const sgm__phrase *phrase, sgm_hook **hook)
{
    char *rest = sgm__strdup(phrase->text);
    if (!rest)
        return SGM_ERROR_MEMORY;
    memset(rest + phrase->at, ' ', phrase->length);
    sgm_status status = read_hook(rest, hook);
    sgm__free(rest);
    SGM_TRY(status);
    *hook = sgm_hook_make_local(*hook);
    return *hook ? SGM_OK : sgm__phrase_within(phrase, phrase->at);
}

/* The text that the hook is kept by has the real names. */
static sgm_status set_text(sgm_hook *hook, const char *text, const sgm__names_replaced *replaced)
{
    if (replaced->count == 0)
        return sgm__hook_set_text(hook, text);
    char *real = sgm__names_replace(text, replaced);
    sgm_status status = real != NULL ? sgm__hook_set_text(hook, real) : SGM_ERROR_MEMORY;
    sgm__free(real);
    return status;
}

sgm_hook *sgm_hook_parse(const char *text)
{
    sgm__phrase phrase;
    sgm__names_replaced replaced;
    sgm_hook *hook = NULL;
    sgm_status status = sgm__phrase_begin(&phrase, text);
    sgm__names_begin(&replaced);
    if (status == SGM_OK)
        status = sgm__phrase_is(&phrase, "local") ? read_local(&phrase, &hook) : read_hook(text, &hook);
    sgm__names_end(&replaced);
    if (status == SGM_OK)
        status = set_text(hook, text, &replaced);
    if (status == SGM_OK)
        return hook;
    sgm_hook_free(hook);
    return NULL;
}

/* --- help --- */

const char *sgm_hook_name_at(size_t index)
{
    const sgm__hook_row *row = sgm__hook_row_at(index);
    return row != NULL ? row->name : NULL;
}

/* What a value looks like: "TEXT", "mean|standard_deviation". */
static void append_value(sgm__text *text, const sgm_option *row)
{
    static const char *const kinds[][2] = {[SGM_KIND_BOOLEAN] = {"true|false", "true|false"},
                                           [SGM_KIND_INTEGER] = {"COUNT", "NUMBERS"},
                                           [SGM_KIND_NUMBER] = {"NUMBER", "NUMBERS"},
                                           [SGM_KIND_TEXT] = {"TEXT", "TEXT"}};
    if (row->identifier)
        sgm__text_append(text, "%s", row->list ? "IDENTIFIERS" : "IDENTIFIER");
    else if (row->choices == NULL)
        sgm__text_append(text, "%s", kinds[row->kind][row->list]);
    for (size_t i = 0; row->choices != NULL && row->choices[i] != NULL; i++)
        sgm__text_append(text, "%s%s", i > 0 ? "|" : "", row->choices[i]);
}

static void append_default(sgm__text *text, const sgm_option *row)
{
    if (!sgm__option_has_default(row))
        sgm__text_append(text, "...");
    else if (row->default_text != NULL)
        sgm__text_append(text, "%s", row->default_text);
    else if (row->kind == SGM_KIND_BOOLEAN)
        sgm__text_append(text, "%s", row->default_value != 0 ? "true" : "false");
    else
        sgm__append_number(text, row->default_value);
}

static void append_usage(sgm__text *text, const sgm__hook_row *row)
{
    sgm__text_append(text, "%s[", row->global ? "" : "[local] ");
    sgm__append_step(text, &row->when);
    sgm__text_append(text, "] %s(", row->name);
    for (size_t i = 0; row->arguments[i].name != NULL; i++) {
        const sgm_option *argument = &row->arguments[i];
        sgm__text_append(text, "%s", i > 0 ? ", " : "");
        if (argument->required) {
            append_value(text, argument);
        } else {
            sgm__text_append(text, "%s=", argument->name);
            append_default(text, argument);
        }
    }
    sgm__text_append(text, ") [if CONDITION]\n    %s\n", row->doc);
}

char *sgm_hook_help(const char *name)
{
    sgm__phrase phrase;
    const sgm__hook_row *row = sgm__phrase_begin(&phrase, name) == SGM_OK ? read_row(&phrase) : NULL;
    if (row == NULL)
        return NULL;
    sgm__text text = {0};
    append_usage(&text, row);
    for (size_t i = 0; row->arguments[i].name != NULL; i++) {
        const sgm_option *argument = &row->arguments[i];
        sgm__text_append(&text, "    %-16s ", argument->name);
        append_value(&text, argument);
        if (argument->minimum < argument->maximum && !argument->list &&
            argument->maximum < (double)SGM__PHRASE_MAXIMUM_COUNT)
            sgm__text_append(&text, " from %.15g to %.15g", argument->minimum, argument->maximum);
        sgm__text_append(&text, ": %s\n", argument->doc);
    }
    return sgm__text_take(&text);
}
