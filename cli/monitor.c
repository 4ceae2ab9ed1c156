/* `sigma monitor`: serves a page over a folder of runs.
 *
 * The server and the page are in src/monitors/runs; this file reads the arguments and lends the server a
 * reader of configurations, since YAML is known to the command only. The runs themselves are read from
 * their files; the processes that train need not exist any more. To watch one training from its own
 * process see `sigma train --monitor`. */
#include "cli.h"
#include "config/yaml_tree.h"
#include "monitors/runs/runs.h"

#include <stdio.h>

static const char usage_text[] =
    "Usage: sigma monitor RUNS [--port PORT]\n\n"
    "Serves a page over the runs in a folder and its sub-folders, those that run and those that are over:\n"
    "a table of configurations and metrics, charts that compare them, what was done to each, and replays\n"
    "of it; notes, tags and stars; renaming, archiving and deleting.\n"
    "It prints an address for one click, which is for you alone, and stays until Ctrl-C.\n\n"
    "  --port PORT    another one than the first free one from 8080 on\n\n"
    "To watch and steer one training, see 'sigma train --help', --monitor.\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* --- a configuration as one flat object --- */

/* A scalar as JSON. Only unquoted ones may be numbers or truth values; quoted ones are texts. */
static json_t *value_of(const yaml_node *node)
{
    int64_t whole;
    double number;
    if (node->plain && sgm__parse_int64(node->text, &whole))
        return json_integer(whole);
    if (node->plain && sgm__parse_double(node->text, &number))
        return json_real(number);
    if (node->plain && (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0))
        return json_boolean(node->text[0] == 't');
    return json_string(node->text);
}

/* Whether a node is a list whose items are all scalars. */
static bool is_plain_list(const yaml_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->children[i]->kind != YAML_TEXT)
            return false;
    return node->kind == YAML_LIST;
}

/* A list of scalars as one text, "a, b". */
static void put_list(json_t *flat, const char *name, const yaml_node *node)
{
    sgm__text text = {0};
    for (size_t i = 0; i < node->count; i++)
        sgm__text_append(&text, "%s%s", i > 0 ? ", " : "", node->children[i]->text);
    json_object_set_new(flat, name, json_string(text.data != NULL ? text.data : ""));
    sgm__text_free(&text);
}

/* Adds all values below `node` to `flat` under dotted names: {optimiser: {type: adam}} becomes
 * "optimiser.type". Items of lists that contain lists or maps are numbered from 1. */
static void flatten(json_t *flat, const char *name, const yaml_node *node)
{
    if (node->kind == YAML_TEXT) {
        json_object_set_new(flat, name, value_of(node));
        return;
    }
    if (is_plain_list(node)) {
        put_list(flat, name, node);
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        const char *dot = *name != '\0' ? "." : "";
        char *inner = node->kind == YAML_MAP ? sgm__format("%s%s%s", name, dot, node->keys[i]->text)
                                             : sgm__format("%s%s%zu", name, dot, i + 1);
        if (inner != NULL)
            flatten(flat, inner, node->children[i]);
        sgm__free(inner);
    }
}

/* The configuration of a run as one flat object; NULL and an error if the file is no YAML. Called by the
 * server's thread (sgm__runs_options). A configuration that is not a map gives an empty object. */
static json_t *read_configuration(const char *text, size_t length)
{
    yaml_node *tree = yaml_tree_parse("config.yaml", text, length);
    if (tree == NULL)
        return NULL;
    json_t *flat = json_object();
    if (flat == NULL)
        sgm__fail_memory(64);
    else if (tree->kind == YAML_MAP)
        flatten(flat, "", tree);
    yaml_tree_free(tree);
    return flat;
}

/* --- the command --- */

/* Runs until a signal. Signals are blocked before the server starts its thread. */
static int serve(const sgm__runs_options *options)
{
    signals_hold();
    sgm__runs *runs = sgm__runs_start(options);
    if (runs == NULL)
        return report_error("monitor", CLI_FAILED);
    printf("monitor: %s\nCtrl-C ends it.\n", sgm__runs_url(runs));
    fflush(stdout);
    signals_wait();
    sgm__runs_stop(runs);
    return CLI_OK;
}

/* This program, for replays that are asked for on the page. */
static const char *const replay_words[] = {"/proc/self/exe", "replay", NULL};

int monitor_run(int argc, char **argv)
{
    int64_t port = 0;
    const argument_rule rules[] = {{"--port", ARGUMENT_PORT, &port}};
    arguments a = {.rules = rules, .rule_count = 1, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        if (a.word_count != 1)
            code = usage_error("monitor", "expected one folder of runs, got %zu words", a.word_count);
        else
            code = serve(&(sgm__runs_options){.folder = a.words[0],
                                              .configuration = read_configuration,
                                              .replay = replay_words,
                                              .port = (int)port});
    }
    arguments_free(&a);
    return code;
}
