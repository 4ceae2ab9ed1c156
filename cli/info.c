/* `sigma info`: what this machine and this installation have.
 *
 * Lists handlers with what they found (each is created for a moment), layers, optimisers, places where
 * data is looked for, environment variables and ready-made datasets; with an option all of a kind. With a
 * name it says what that is (names/kinds.h). With a path it shows into how many threads a training step is
 * divided (inspect_threads in inspect/). Nothing is fetched or changed. */
#include "cli.h"
#include "config/options.h"
#include "data/dataset.h"
#include "inspect/inspect.h"
#include "names/kinds.h"
#include "text/call_text.h"

#include <sigma/monitor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "Usage: sigma info [NAME|CHECKPOINT|FOLDER]\n"
    "       sigma info FILE.yaml [KEY=VALUE ...]\n"
    "       sigma info --layers|--costs|--activations|--optimisers|--schedules|--initialisers|--modifiers|\n"
    "                  --hooks|--metrics|--rules|--augmentations|--operators|--handlers|--keys|\n"
    "                  --names\n\n"
    "Shows the version, the handlers with what they found on this machine (processor, libraries, devices),\n"
    "where data is looked for, the variables that count, and the ready-made datasets. Of a NAME, such as "
    "dense,\n"
    "adam, f1, cpu or data.batch: what it does, its arguments, its formula, an example. An argument, or a "
    "word\n"
    "that is given as one, such as bfloat16, leads to what takes it, and a name of another program to what "
    "it\n"
    "is called here. Of a checkpoint, folder or file: among how many threads a training "
    "step is\n"
    "divided, and the estimate that decided it; KEY=VALUE overrides the file.\n\n"
    "  --layers and so on  list all of a kind: hooks and augmentations with their arguments, --keys all keys "
    "of a\n"
    "                      file, --names the names of other programs, and what they mean here\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage.\n";

/* Each line of the text with four blanks in front; empty lines are left out. */
static void print_indented(const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (length > 0)
            printf("    %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

/* Creates each handler to let it describe itself; one that cannot be created is listed with the reason. */
static void print_handlers(void)
{
    printf("handlers\n");
    for (size_t i = 0; sgm_handler_name_at(i) != NULL; i++) {
        const char *name = sgm_handler_name_at(i);
        if (strchr(name, ':') != NULL) /* debug:NAME, for all of them at the end */
            continue;
        printf("  %s\n", name);
        sgm_handler *handler = sgm_handler_create(name);
        char *text = handler != NULL ? sgm_handler_describe(handler) : NULL;
        if (text != NULL)
            print_indented(text);
        else
            printf("    not usable here: %s\n", sgm_last_error());
        sgm_string_free(text);
        sgm_handler_free(handler);
    }
    printf(
        "  debug:NAME\n"
        "    any of these, stopped at NaN, infinity and places outside memory; one instruction at a time\n");
}

/* Names only: the manual explains them, and `sigma train --help` has the options of optimisers. */
static void print_layers_and_optimisers(void)
{
    printf("layers\n ");
    for (size_t i = 0; sgm_layer_type_at(i) != NULL; i++)
        printf(" %s", sgm_layer_type_at(i)->name);
    printf("\noptimisers\n ");
    for (size_t i = 0; sgm_optimiser_type_at(i) != NULL; i++)
        printf(" %s", sgm_optimiser_type_at(i)->name);
    printf("\n");
}

/* Prints a variable that is set. The address of a proxy may have a user and password in front of '@',
 * which are replaced by "***". *first: no variable was printed yet. */
static void print_variable(const char *name, bool *first)
{
    const char *value = getenv(name);
    if (value == NULL || value[0] == '\0')
        return;
    const char *at = strrchr(value, '@');
    bool secret = at != NULL && strstr(name, "proxy") != NULL;
    printf("%s  %s=%s%s\n", *first ? "variables\n" : "", name, secret ? "***" : "", secret ? at : value);
    *first = false;
}

/* A folder's path, or why there is none; sgm_string_free. */
static char *folder_text(sgm_folder folder)
{
    char *path = sgm_folder_path(folder);
    return path != NULL ? path : sgm__strdup("(HOME is not set)");
}

/* Folders in the order in which data is looked for, and the variables that change what the library does,
 * if they are set. */
static void print_places(void)
{
    static const char *const variables[] = {
        "SIGMA_DATA_DIR", "SIGMA_CACHE_DIR", "SIGMA_STATE_DIR", "SIGMA_PLUGIN_PATH", "SIGMA_LOG",
        "SIGMA_LOG_FILE", "http_proxy",      "https_proxy",     "all_proxy",         "no_proxy"};
    char *own = folder_text(SGM_FOLDER_DATA), *cache = folder_text(SGM_FOLDER_CACHE);
    printf("data is looked for in\n  %s\n  %s (what was fetched)\n  data\n  %s\n", own, cache,
           SIGMA_INSTALLED_DATA_DIR);
    bool first = true;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        print_variable(variables[i], &first);
    sgm_string_free(own);
    sgm_string_free(cache);
}

/* What was kept of extracted data in the usual folder. */
static void print_kept(void)
{
    int64_t files, bytes;
    char size[32];
    if (sgm_kept_data_measure(NULL, &files, &bytes) != SGM_OK) {
        sgm_clear_error();
        return;
    }
    printf("extracted data that is kept for other runs\n  %lld file%s, %s%s\n", (long long)files,
           files == 1 ? "" : "s", sgm_bytes_text((double)bytes, size, sizeof size),
           files > 0 ? "; 'sigma data --clear-cache' deletes them" : "");
}

/* Whether the file of a ready-made dataset is on this machine. Only looks, fetches nothing: hence no URL. */
static const char *availability(const char *name)
{
    bool is_fetched;
    const char *file = sgm__dataset_file(name, &is_fetched);
    if (file == NULL)
        return "is computed";
    sgm_source *source = sgm_known_source(file, NULL, NULL);
    bool there = source != NULL && sgm_source_exists(source);
    sgm_source_free(source);
    return there ? "here" : is_fetched ? "is fetched when it is used" : "not found";
}

/* The library's ready-made datasets, and whether their files are here. */
static void print_datasets(void)
{
    size_t count;
    const char *const *names = sgm_dataset_names(&count);
    printf("datasets\n");
    for (size_t i = 0; i < count; i++)
        printf("  %-12s %s\n", names[i], availability(names[i]));
    printf("  %-12s %s\n", "text:PATH", "characters of a file");
}

/* Those of plug-ins. */
static void print_monitors(void)
{
    const sgm_monitor_type *type;
    for (size_t i = 0; (type = sgm_monitor_type_at(i)) != NULL; i++)
        printf("%s  %-12s %s\n", i == 0 ? "monitors\n" : "", type->name, type->doc != NULL ? type->doc : "");
}

/* --- things by their names --- */

/* "a number from 0 to 1", "one of mean, sum", "whole numbers". */
static void append_kind(sgm__text *out, const sgm_option *o)
{
    static const char *const kinds[][2] = {[SGM_KIND_BOOLEAN] = {"true or false", "flags"},
                                           [SGM_KIND_INTEGER] = {"a whole number", "whole numbers"},
                                           [SGM_KIND_NUMBER] = {"a number", "numbers"},
                                           [SGM_KIND_TEXT] = {"a text", "texts"}};
    char minimum[32], maximum[32];
    if (o->identifier)
        sgm__text_append(out, o->list ? "identifiers" : "an identifier");
    else if (o->choices == NULL)
        sgm__text_append(out, "%s", kinds[o->kind][o->list]);
    for (size_t i = 0; o->choices != NULL && o->choices[i] != NULL; i++)
        sgm__text_append(out, "%s%s", i > 0 ? ", " : "one of ", o->choices[i]);
    if (o->minimum < o->maximum && o->maximum < 1e15)
        sgm__text_append(out, " from %s to %s", sgm__number_text(o->minimum, minimum, sizeof minimum),
                         sgm__number_text(o->maximum, maximum, sizeof maximum));
    else if (o->minimum < o->maximum)
        sgm__text_append(out, " from %s", sgm__number_text(o->minimum, minimum, sizeof minimum));
    sgm__text_append(out, "%s%s", o->unit != NULL ? " " : "", o->unit != NULL ? o->unit : "");
}

/* "  size   a whole number from 1 to 1000, required: how many" */
static void print_argument(const sgm_option *o)
{
    sgm__text text = {0};
    char number[32];
    append_kind(&text, o);
    if (o->required)
        sgm__text_append(&text, ", required");
    else if (o->default_text != NULL)
        sgm__text_append(&text, ", default %s", o->default_text);
    else if (sgm__option_has_default(o) && o->kind != SGM_KIND_BOOLEAN)
        sgm__text_append(&text, ", default %s", sgm__number_text(o->default_value, number, sizeof number));
    printf("    %-18s %s: %s\n", o->name, text.data != NULL ? text.data : "", o->doc);
    sgm__text_free(&text);
}

static void print_described(const named_kind *kind, const sgm__described *described)
{
    char *example = named_example(kind, described);
    printf("%s %s: %s\n", kind->name, described->name, described->doc);
    if (described->formula != NULL)
        printf("  formula    %s\n", described->formula);
    if (example != NULL)
        printf("  example    %s\n", example);
    if (described->argument_count > 0)
        printf("  arguments\n");
    for (size_t i = 0; i < described->argument_count; i++)
        print_argument(&described->arguments[i]);
    sgm__free(example);
}

/* Arguments of that name, and those that take it as a choice, below what has them; whether there are some.
 * `behind`: something was printed before. */
static bool print_arguments_of(const char *word, bool behind)
{
    bool found = false;
    for (size_t i = 0; i < named_kind_count; i++) {
        sgm__described described;
        for (size_t k = 0; !named_kinds[i].repeats && named_kinds[i].describe(k, &described); k++) {
            bool told = false;
            for (size_t a = 0; a < described.argument_count; a++) {
                const sgm_option *argument = &described.arguments[a];
                if (strcmp(argument->name, word) != 0 && !option_has_choice(argument, word))
                    continue;
                if (!found)
                    printf("%sarguments\n", behind ? "\n" : "");
                if (!told)
                    printf("  %s %s\n", named_kinds[i].name, described.name);
                print_argument(argument);
                found = told = true;
            }
        }
    }
    return found;
}

/* Prints the rows of that name, an empty line between; whether there are some. */
static bool print_rows(const char *name)
{
    size_t found = 0;
    for (size_t i = 0; i < named_kind_count; i++) {
        sgm__described described;
        if (!named_find(&named_kinds[i], name, &described))
            continue;
        printf("%s", found++ > 0 ? "\n" : "");
        print_described(&named_kinds[i], &described);
    }
    return found > 0;
}

/* Keys of that name, with `choices` those, too, that take it as one; whether there are some. */
static bool print_keys_of(const char *name, bool choices, bool behind)
{
    sgm__text keys = {0};
    bool found = options_help_of(&config_table, name, choices, &keys) > 0 && keys.data != NULL;
    if (found)
        printf("%skeys of a file\n%s", behind ? "\n" : "", keys.data);
    sgm__text_free(&keys);
    return found;
}

/* The names that a word of another program means here, each once: what they are is printed, and why if it is
 * not the same. */
static bool print_meant(const char *word)
{
    const sgm__name_row *row, *other;
    bool found = false;
    for (size_t i = 0; (row = sgm__name_row_at(i)) != NULL; i++) {
        bool told = !sgm__name_row_says(row, word);
        for (size_t k = 0; k < i && !told && row->real != NULL && (other = sgm__name_row_at(k)) != NULL; k++)
            told =
                other->real != NULL && strcmp(other->real, row->real) == 0 && sgm__name_row_says(other, word);
        if (told || row->kind == SGM__NAME_COMMAND)
            continue;
        printf("%s'%s'%s%s%s%s%s\n", found ? "\n" : "", word,
               row->real == NULL ? ""
               : row->near       ? " is likely meant to be "
                                 : " is called ",
               row->real != NULL ? row->real : "", row->real != NULL && !row->near ? " here" : "",
               row->advice != NULL ? ": " : "", row->advice != NULL ? row->advice : "");
        found = true;
        if (row->real != NULL && row->kind != SGM__NAME_VALUE && row->kind != SGM__NAME_ARGUMENT)
            print_keys_of(row->real, false, print_rows(row->real));
    }
    return found;
}

/* With the nearest name of any kind. */
static int fail_unknown(const char *word)
{
    const char *names[1024];
    size_t count = 0;
    for (size_t i = 0; i < named_kind_count; i++) {
        sgm__described described;
        for (size_t k = 0; named_kinds[i].describe(k, &described) && count < 1024; k++)
            names[count++] = described.name;
    }
    const char *near = sgm__nearest(word, names, count);
    return near != NULL ? usage_error("info", "there is nothing named '%s' (did you mean '%s'?)", word, near)
                        : usage_error("info",
                                      "there is nothing named '%s': no file, no folder, and no name here; "
                                      "--layers and so on list them",
                                      word);
}

/* Each with what it does in a line. */
static void print_list(const named_kind *kind)
{
    sgm__described described;
    for (size_t i = 0; kind->describe(i, &described); i++)
        printf("%-26s %s\n", described.name, described.doc);
}

/* Hooks have a text of their own, since a step and a condition belong to it. */
static void print_kind(const named_kind *kind)
{
    sgm__described described;
    bool hooks = strcmp(kind->name, "hook") == 0, whole = strcmp(kind->name, "augmentation") == 0;
    for (size_t i = 0; (hooks || whole) && kind->describe(i, &described); i++) {
        char *text = hooks ? sgm_hook_help(described.name) : NULL;
        printf("%s%s", i > 0 ? "\n" : "", text != NULL ? text : "");
        sgm_string_free(text);
        if (whole)
            print_described(kind, &described);
    }
    if (!hooks && !whole)
        print_list(kind);
}

static void print_keys(void)
{
    sgm__text text = {0};
    options_help(&config_table, &text);
    printf("%s", text.data != NULL ? text.data : "");
    sgm__text_free(&text);
}

/* The table of names of other programs, as the manual has it: first what is taken for what. */
static void print_names(void)
{
    static const char *const kinds[] = {"layer",       "activation", "argument", "optimiser", "choice",
                                        "initialiser", "modifier",   "metric",   "hook",      "augmentation",
                                        "handler",     "key",        "value",    "command"};
    const sgm__name_row *row;
    for (int near = 0; near <= 1; near++) {
        printf("%s\n", near == 0 ? "taken for what it is called here" : "refused, with a hint");
        for (size_t i = 0; (row = sgm__name_row_at(i)) != NULL; i++)
            if (row->near == (near == 1))
                printf("  %s %s: %s%s%s\n", kinds[row->kind], row->typed, row->real != NULL ? row->real : "",
                       row->real != NULL && near == 1 && row->advice != NULL ? "; " : "",
                       near == 1 && row->advice != NULL ? row->advice : "");
    }
}

static void print_machine(void)
{
    printf("sigma %s\n", sgm_version());
    print_handlers();
    print_layers_and_optimisers();
    print_places();
    print_kept();
    print_datasets();
    print_monitors();
}

/* A file goes before a name, and what has the name before where it can be given. */
static int info_of(const char *word, const char *const *overrides, size_t override_count)
{
    bool is_path = sgm__file_exists(word) || sgm__is_folder(word) || strchr(word, '/') != NULL ||
                   ends_with(word, ".yaml") || ends_with(word, ".yml") || ends_with(word, ".safetensors");
    if (is_path)
        return inspect_threads(word, overrides, override_count);
    if (override_count > 0)
        return usage_error("info", "expected one name, checkpoint, folder or file, got %zu",
                           override_count + 1);
    bool row = print_rows(word), known = print_keys_of(word, !row, row) || row;
    bool found = known || print_meant(word);
    if (!row && (known || !found)) /* a name that only others use has been explained by ours */
        found |= print_arguments_of(word, known);
    return found ? CLI_OK : fail_unknown(word);
}

#define MAXIMUM_KINDS 24

/* The options are alternatives. */
int info_run(int argc, char **argv)
{
    bool wanted[MAXIMUM_KINDS] = {false}, keys = false, names = false;
    argument_rule rules[MAXIMUM_KINDS] = {{"--keys", ARGUMENT_FLAG, &keys},
                                          {"--names", ARGUMENT_FLAG, &names}};
    for (size_t i = 0; i < named_kind_count; i++)
        rules[i + 2] = (argument_rule){named_kinds[i].option, ARGUMENT_FLAG, &wanted[i]};
    arguments a = {.rules = rules, .rule_count = named_kind_count + 2, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        size_t kind = 0;
        while (kind < named_kind_count && !wanted[kind])
            kind++;
        code = CLI_OK;
        if (a.word_count > 0)
            code = info_of(a.words[0], a.words + 1, a.word_count - 1);
        else if (keys)
            print_keys();
        else if (names)
            print_names();
        else if (kind < named_kind_count)
            print_kind(&named_kinds[kind]);
        else
            print_machine();
    }
    arguments_free(&a);
    return code;
}
