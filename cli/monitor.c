/* `sigma monitor`: serves a page over a folder of runs.
 *
 * The server and the page are in src/monitors/runs; this file reads the arguments and lends the server a
 * reader of configurations, since YAML is known to the command only. The runs themselves are read from
 * their files; the processes that train need not exist any more. To watch one training from its own
 * process see `sigma train --monitor`. */
#include "cli.h"
#include "monitors/runs/runs.h"
#include "runs/flat.h"

#include <stdio.h>

static const char usage_text[] =
    "Usage: sigma monitor RUNS [--port PORT] [--tokens FILE]\n\n"
    "Serves a page over the runs in a folder and its sub-folders, those that run and those that are over:\n"
    "a table of configurations and metrics, charts that compare them, what was done to each, and replays\n"
    "of it; notes, tags and stars; renaming, archiving and deleting.\n"
    "It prints an address for one click, which is for you alone, and stays until Ctrl-C.\n\n"
    "  --port PORT    another one than the first free one from 8080 on\n"
    "  --tokens FILE  tokens for others, a line each: ROLE TOKEN [NAME]; with the role look nothing can be\n"
    "                 changed, with steer neither deleted nor replayed, admin is as the one printed\n\n"
    "To watch and steer one training, see 'sigma train --help', --monitor.\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

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
    const char *tokens_file = NULL;
    char *tokens = NULL;
    const argument_rule rules[] = {{"--port", ARGUMENT_PORT, &port},
                                   {"--tokens", ARGUMENT_TEXT, &tokens_file}};
    arguments a = {.rules = rules, .rule_count = 2, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        if (a.word_count != 1)
            code = usage_error("monitor", "expected one folder of runs, got %zu words", a.word_count);
        else if (tokens_file != NULL && (tokens = read_tokens(tokens_file)) == NULL)
            code = report_error("monitor", CLI_FAILED);
        else
            code = serve(&(sgm__runs_options){.folder = a.words[0],
                                              .configuration = flat_configuration,
                                              .replay = replay_words,
                                              .tokens = tokens,
                                              .port = (int)port});
    }
    sgm__free(tokens);
    arguments_free(&a);
    return code;
}
