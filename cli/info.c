/* `sigma info`: what this machine and this installation have.
 *
 * Lists handlers with what they found (each is created for a moment), layers, optimisers, places where
 * data is looked for, environment variables and ready-made datasets; with an option hooks or
 * augmentations. The lists come from the library's tables.
 * With a path it shows into how many threads a training step is divided (inspect_threads in inspect.c).
 * Nothing is fetched or changed. */
#include "cli.h"
#include "data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "Usage: sigma info [--hooks|--augmentations] [CHECKPOINT|FOLDER|FILE.yaml]\n\n"
    "Shows the version, the handlers with what they found on this machine (processor, libraries, devices),\n"
    "where data is looked for, the variables that count, and the ready-made datasets. Of a checkpoint, "
    "folder or\n"
    "file: among how many threads a training step is divided, and the estimate that decided it.\n\n"
    "  --hooks          list the ready-made hooks, as 'hooks:' in a file and 'sigma ctl FOLDER attach' take "
    "them\n"
    "  --augmentations  list the changes of training data that 'data.augment' in a file takes\n\n"
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

/* Each hook's own help text, with an empty line between them. */
static void print_hooks(void)
{
    for (size_t i = 0; sgm_hook_name_at(i) != NULL; i++) {
        char *text = sgm_hook_help(sgm_hook_name_at(i));
        printf("%s%s", i > 0 ? "\n" : "", text != NULL ? text : sgm_last_error());
        sgm_string_free(text);
    }
}

/* Each augmentation with its arguments, their bounds and defaults. */
static void print_augmentations(void)
{
    const sgm_augmentation_type *type;
    char minimum[32], maximum[32], default_value[32];
    for (size_t i = 0; (type = sgm_augmentation_at(i)) != NULL; i++) {
        printf("%s%s: %s%s\n", i > 0 ? "\n" : "", type->name, type->doc,
               type->pictures ? "; of pictures" : "");
        for (size_t k = 0; k < type->argument_count; k++) {
            const sgm_option *o = &type->arguments[k];
            printf("  %-10s %s to %s%s%s, default %s: %s\n", o->name,
                   sgm__number_text(o->minimum, minimum, sizeof minimum),
                   sgm__number_text(o->maximum, maximum, sizeof maximum), o->unit != NULL ? " " : "",
                   o->unit != NULL ? o->unit : "",
                   sgm__number_text(o->default_value, default_value, sizeof default_value), o->doc);
        }
    }
}

/* The options are alternatives; a path goes first. */
int info_run(int argc, char **argv)
{
    bool hooks = false, augmentations = false;
    const argument_rule rules[] = {{"--hooks", ARGUMENT_FLAG, &hooks},
                                   {"--augmentations", ARGUMENT_FLAG, &augmentations}};
    arguments a = {.rules = rules, .rule_count = 2, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        code = CLI_OK;
        if (a.word_count > 1) {
            code = usage_error("info", "expected one checkpoint, folder or file, got %zu", a.word_count);
        } else if (a.word_count == 1) {
            code = inspect_threads(a.words[0]);
        } else if (hooks) {
            print_hooks();
        } else if (augmentations) {
            print_augmentations();
        } else {
            printf("sigma %s\n", sgm_version());
            print_handlers();
            print_layers_and_optimisers();
            print_places();
            print_kept();
            print_datasets();
        }
    }
    arguments_free(&a);
    return code;
}
