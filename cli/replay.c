/* `sigma replay`: a run once more, with everything that was done to it while it trained.
 *
 * The run's config.yaml describes the training, its journal what was done. Both are read, and the library
 * does it again in a new folder (sgm_replay_of). --list shows what there is. */
#include "journal/history.h"
#include "monitors/task_lines.h"
#include "train.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>

static const char usage_text[] =
    "Usage: sigma replay RUN [--into DIR] [--until ITERATION] [--without NUMBER[,NUMBER ...]] [--inexact]\n"
    "             [--check] [--quiet] [--no-keys] [--monitor[=PORT]] [--monitor-wait]\n"
    "       sigma replay RUN --list [--json]\n\n"
    "Trains again what is in the folder RUN, in a new folder, and does at the same iterations what was done\n"
    "to it: values and tensors that were set, hooks that came or went, resets, restores. The end is RUN's\n"
    "newest checkpoint, with the same bits. Before training begins, all reasons are told why they could not "
    "be\n"
    "the same, such as other data or another processor; each checkpoint is compared with RUN's own.\n\n"
    "  --into DIR     the new run's folder (default runs/NAME-TIME)\n"
    "  --until ITERATION\n"
    "                 end after so many iterations\n"
    "  --without NUMBER[,NUMBER ...]\n"
    "                 leave out what has these numbers in the list: what would have been?\n"
    "  --inexact      train also if the result cannot be the same; why is a warning then\n"
    "  --check        only check whether it can be done: nothing is trained, no folder is made\n"
    "  --list         only list what was done, with numbers\n"
    "  --json         the list as JSON\n"
    "  --quiet        results only, no progress\n"
    "  --no-keys      turn off the keys that steer a training on a terminal\n"
    "  --monitor[=PORT]\n"
    "                 watch it in a browser: prints the address (default: a free port from 8080)\n"
    "  --monitor-wait the same, and the monitor stays when the training has ended\n\n"
    "Exit codes: 0 done (and the checkpoint is the same, without --until, --without and --inexact),\n"
    "1 failed, or another checkpoint, 2 wrong usage, 130 interrupted.\n";

/* --- the list --- */

static void print_list(const sgm_intervention *list, size_t count)
{
    if (count == 0)
        printf("nothing was done to the run but training\n");
    else
        printf("number  branch  epoch  iteration  who       what\n");
    for (size_t i = 0; i < count; i++)
        printf("%6lld  %6lld  %5lld  %9lld  %-8s  %s%s%s\n", (long long)list[i].number,
               (long long)list[i].branch, (long long)list[i].epoch, (long long)list[i].iteration, list[i].who,
               list[i].text, list[i].reason[0] != '\0' ? ": " : "", list[i].reason);
}

static void print_json(const sgm_intervention *list, size_t count)
{
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(all, json_pack("{s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:b}", "number",
                                             (json_int_t)list[i].number, "branch", (json_int_t)list[i].branch,
                                             "epoch", (json_int_t)list[i].epoch, "iteration",
                                             (json_int_t)list[i].iteration, "event", list[i].event, "who",
                                             list[i].who, "text", list[i].text, "reason", list[i].reason,
                                             "removable", list[i].removable));
    char *text = json_dumps(all, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (text != NULL)
        puts(text);
    free(text);
    json_decref(all);
}

static int print_interventions(const char *run, bool json)
{
    sgm_intervention *list;
    size_t count;
    if (sgm_run_interventions(run, &list, &count) != SGM_OK)
        return report_error("replay", CLI_FAILED);
    if (json)
        print_json(list, count);
    else
        print_list(list, count);
    sgm_interventions_free(list, count);
    return CLI_OK;
}

/* --- the replay --- */

/* The numbers of --without, which the caller frees with sgm__free; false: one is none. */
static bool read_numbers(const char *text, int64_t **numbers, size_t *count)
{
    char *copy = sgm__strdup(text), *rest = copy, *word;
    *numbers = sgm__calloc(strlen(text) + 1, sizeof **numbers);
    *count = 0;
    bool good = copy != NULL && *numbers != NULL;
    while (good && (word = strtok_r(rest, ", ", &rest)) != NULL)
        good = sgm__parse_int64(word, &(*numbers)[(*count)++]) && (*numbers)[*count - 1] > 0;
    sgm__free(copy);
    return good && *count > 0;
}

/* The newest checkpoint that a folder's journal has with this checksum (NULL: with any); NULL: none. */
static const sgm__journal_entry *find_checkpoint(const sgm__history *history, const char *checksum)
{
    for (size_t i = history->held.count; i-- > 0;) {
        const sgm__journal_entry *entry = &history->held.items[i];
        if (entry->kind == SGM__ENTRY_CHECKPOINT &&
            (checksum == NULL || strcmp(entry->checksum, checksum) == 0))
            return entry;
    }
    return NULL;
}

/* Whether the checkpoint that the replay ended with is one that the run wrote at the same place: its newest,
 * or, if the run trains, the newest that it had when the replay began. Journals are compared, as the run's
 * own file may be damaged by now. */
static bool is_same(const char *run, const char *folder)
{
    sgm__history wanted, has;
    bool same = sgm__history_read(run, "replay", &wanted) == SGM_OK;
    same = sgm__history_read(folder, "replay", &has) == SGM_OK && same;
    const sgm__journal_entry *end = same ? find_checkpoint(&has, NULL) : NULL;
    const sgm__journal_entry *of_run = end != NULL ? find_checkpoint(&wanted, end->checksum) : NULL;
    same = of_run != NULL && of_run->branch == end->branch && of_run->epoch == end->epoch &&
           of_run->iteration == end->iteration;
    sgm__history_free(&has);
    sgm__history_free(&wanted);
    return same;
}

/* Says whether the new checkpoint is the one that the run wrote. */
static int tell_result(const char *run, const config *c, const sgm_replay *replay)
{
    if (replay->check)
        printf("the replay can be done%s\n", replay->inexact ? "" : ", bit for bit");
    if (replay->check || replay->until > 0 || replay->without_count > 0)
        return CLI_OK;
    bool same = is_same(run, c->folder);
    printf("the checkpoint is %sthat of %s%s\n", same ? "" : "not ", run, same ? ", bit for bit" : "");
    return same || replay->inexact ? CLI_OK : CLI_FAILED;
}

/* A check has a folder in name only, which is not made. */
static int replay_described(const char *run, const char *into, const train_arguments *given)
{
    config c;
    sgm_metrics validation;
    into = into == NULL && given->replay->check ? "check" : into;
    char *file = file_of(run, "config.yaml"), *folder = sgm__format("folder=%s", into != NULL ? into : "");
    const char *overrides[] = {folder};
    if (file == NULL || folder == NULL || config_load(&c, file, overrides, into != NULL ? 1 : 0) != SGM_OK) {
        sgm__free(folder);
        sgm__free(file);
        return report_error("replay", CLI_USAGE);
    }
    int code = train_configuration(&c, given, &validation);
    if (code == CLI_OK)
        code = tell_result(run, &c, given->replay);
    config_free(&c);
    sgm__free(folder);
    sgm__free(file);
    return code;
}

static int replay_words(const arguments *a, const char *into, const char *without, sgm_replay *replay,
                        train_arguments *given)
{
    int64_t *numbers = NULL, port;
    if (given->monitor != NULL && given->monitor[0] != '\0' && !parse_port(given->monitor, &port))
        return usage_error("replay", "--monitor: expected a port from 1 to 65535, got '%s'", given->monitor);
    if (without != NULL && !read_numbers(without, &numbers, &replay->without_count)) {
        sgm__free(numbers);
        return usage_error("replay", "--without: expected numbers of the list, such as 12,15, got '%s'",
                           without);
    }
    replay->run = a->words[0];
    replay->without = numbers;
    given->replay = replay;
    int code = replay_described(a->words[0], into, given);
    sgm__free(numbers);
    return code;
}

int replay_run(int argc, char **argv)
{
    train_arguments given = {.command = "replay"};
    sgm_replay replay = {.struct_size = sizeof replay};
    const char *into = NULL, *without = NULL;
    bool list = false, json = false;
    const argument_rule rules[] = {
        {"--into", ARGUMENT_TEXT, &into},
        {"--until", ARGUMENT_COUNT, &replay.until},
        {"--without", ARGUMENT_TEXT, &without},
        {"--inexact", ARGUMENT_FLAG, &replay.inexact},
        {"--check", ARGUMENT_FLAG, &replay.check},
        {"--list", ARGUMENT_FLAG, &list},
        {"--json", ARGUMENT_FLAG, &json},
        {"--quiet", ARGUMENT_FLAG, &given.quiet},
        {"--no-keys", ARGUMENT_FLAG, &given.no_keys},
        {"--monitor", ARGUMENT_MAYBE, &given.monitor},
        {"--monitor-wait", ARGUMENT_FLAG, &given.monitor_wait},
    };
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = usage_text};
    int code;
    bool understood = arguments_read(&a, argc, argv, &code);
    if (given.quiet)
        sgm__task_lines_end();
    if (understood && a.word_count != 1)
        code = usage_error("replay", "expected the folder of a run");
    else if (understood && !has_file(a.words[0], "config.yaml"))
        code = usage_error("replay", "'%s' is no folder of a run: it has no config.yaml", a.words[0]);
    else if (understood && json && !list)
        code = usage_error("replay", "--json goes with --list");
    else if (understood && list &&
             (into != NULL || without != NULL || replay.until > 0 || replay.inexact || replay.check))
        code = usage_error("replay", "--list only lists: of the other options it takes --json");
    else if (understood && into != NULL && into[0] == '\0')
        code = usage_error("replay", "--into: expected the name of a folder");
    else if (understood)
        code =
            list ? print_interventions(a.words[0], json) : replay_words(&a, into, without, &replay, &given);
    arguments_free(&a);
    return code;
}
