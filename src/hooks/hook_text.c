/* Hooks as text: "every 2 epochs value_reporter(training.loss, with_time=true) if epoch > 3". */
#include "hooks/hook_text.h"
#include "hooks/when/criteria.h"

/* --- rows --- */

/* NULL: an error that names the nearest. */
static const sgm__hook_row *read_row(sgm__phrase *phrase)
{
    const char **names = sgm__calloc(sgm__hook_row_count, sizeof *names);
    const sgm__hook_row *row = NULL;
    if (names == NULL)
        return NULL;
    for (size_t i = 0; i < sgm__hook_row_count && row == NULL; i++) {
        names[i] = sgm__hook_rows[i]->name;
        if (sgm__phrase_take(phrase, names[i]))
            row = sgm__hook_rows[i];
    }
    if (row == NULL)
        sgm__phrase_expected(phrase, "the name of a hook, as 'sigma info --hooks' lists them", names,
                             sgm__hook_row_count);
    sgm__free(names);
    return row;
}

/* --- whole texts --- */

/* What begins with `if`, or does a rule's action: "after 3 epochs stop"; but "stop()" is the hook. */
static bool is_rule(sgm__phrase phrase)
{
    static const char *const actions[] = {"stop", "pause", "reset", "save", "set"};
    if (sgm__phrase_is(&phrase, "if"))
        return true;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (sgm__phrase_take(&phrase, actions[i]))
            return !sgm__phrase_is(&phrase, "(");
    return false;
}

static sgm_status read_condition(sgm__phrase *phrase, sgm__hook_text *call, sgm_criteria **condition)
{
    if (sgm__phrase_take(phrase, "if"))
        SGM_TRY(sgm__criteria_read(phrase, &call->when, &call->has_step, condition));
    if (phrase->kind == SGM__PHRASE_END)
        return SGM_OK;
    return sgm__phrase_expected(phrase, *condition ? "and, or, or the end" : "if, or the end",
                                (const char *const[]){"if", "and", "or"}, 3);
}

static sgm_status create(const sgm__phrase *phrase, const sgm__hook_text *call, sgm_criteria **condition,
                         sgm_hook **hook)
{
    sgm_clear_error();
    *hook = call->row->create(call);
    if (!*hook) {
        bool has_column = sgm__begins_with(sgm_last_error(), "column ");
        return has_column ? sgm__last_failure() : sgm__phrase_within(phrase, call->name_at);
    }
    sgm_criteria *added = *condition;
    *condition = NULL;
    return added ? sgm__hook_add_condition(*hook, added) : SGM_OK;
}

static sgm_status read_call(sgm__phrase *phrase, sgm__hook_text *call, sgm_hook **hook)
{
    sgm_criteria *condition = NULL;
    sgm_time_step written = call->when;
    call->name_at = phrase->at;
    call->row = read_row(phrase);
    if (call->row == NULL)
        return sgm__last_failure();
    call->when = call->has_step ? written : call->row->when;
    SGM_TRY(sgm__hook_read_arguments(phrase, call));
    sgm_status status = read_condition(phrase, call, &condition);
    if (status == SGM_OK)
        status = create(phrase, call, &condition, hook);
    sgm_criteria_free(condition);
    return status;
}

static sgm_status read_hook(const char *text, sgm_hook **hook)
{
    sgm__phrase phrase;
    SGM_TRY(sgm__phrase_begin(&phrase, text));
    sgm__hook_text call = {.phrase = &phrase};
    if (sgm__phrase_is_step(&phrase)) {
        SGM_TRY(sgm__phrase_step(&phrase, &call.when));
        call.has_step = true;
    }
    if (is_rule(phrase)) {
        *hook = sgm__hook_read_rule(text);
        return *hook ? SGM_OK : sgm__last_failure();
    }
    sgm_status status = read_call(&phrase, &call, hook);
    for (size_t i = 0; i < SGM__HOOK_MAXIMUM_ARGUMENTS; i++)
        sgm__free(call.values[i].text);
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

sgm_hook *sgm_hook_parse(const char *text)
{
    sgm__phrase phrase;
    sgm_hook *hook = NULL;
    sgm_status status = sgm__phrase_begin(&phrase, text);
    if (status == SGM_OK)
        status = sgm__phrase_is(&phrase, "local") ? read_local(&phrase, &hook) : read_hook(text, &hook);
    if (status == SGM_OK)
        status = sgm__hook_set_text(hook, text);
    if (status == SGM_OK)
        return hook;
    sgm_hook_free(hook);
    return NULL;
}

/* --- help --- */

const char *sgm_hook_name_at(size_t index)
{
    return index < sgm__hook_row_count ? sgm__hook_rows[index]->name : NULL;
}

static void append_value(sgm__text *text, const sgm__hook_argument *argument)
{
    static const char *const kinds[] = {"",        "IDENTIFIER", "IDENTIFIERS", "TEXT", "NUMBER",
                                        "NUMBERS", "COUNT",      "true|false",  ""};
    if (argument->kind != SGM__ARGUMENT_CHOICE) {
        sgm__text_append(text, "%s", kinds[argument->kind]);
        return;
    }
    for (size_t i = 0; argument->choices[i]; i++)
        sgm__text_append(text, "%s%s", i > 0 ? "|" : "", argument->choices[i]);
}

static void append_usage(sgm__text *text, const sgm__hook_row *row)
{
    sgm__text_append(text, "%s[", row->global ? "" : "[local] ");
    sgm__append_step(text, &row->when);
    sgm__text_append(text, "] %s(", row->name);
    for (size_t i = 0; i < sgm__hook_argument_count(row); i++) {
        const sgm__hook_argument *argument = &row->arguments[i];
        sgm__text_append(text, "%s", i > 0 ? ", " : "");
        if (argument->needed)
            append_value(text, argument);
        else
            sgm__text_append(text, "%s=%s", argument->name,
                             argument->default_value ? argument->default_value : "...");
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
    for (size_t i = 0; i < sgm__hook_argument_count(row); i++) {
        sgm__text_append(&text, "    %-16s ", row->arguments[i].name);
        append_value(&text, &row->arguments[i]);
        if (row->arguments[i].maximum > 0)
            sgm__text_append(&text, " from %lld to %lld", (long long)row->arguments[i].minimum,
                             (long long)row->arguments[i].maximum);
        sgm__text_append(&text, ": %s\n", row->arguments[i].doc);
    }
    return sgm__text_take(&text);
}
