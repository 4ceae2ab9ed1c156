/* `sigma completion`: what a shell needs to complete command lines.
 *
 * The scripts that it prints are short: at each Tab they ask `sigma completion candidates WORDS...` for what
 * may stand in the place of the last word. The answers come from the tables by which the command reads its
 * arguments, so they are never older than the command, and have what plug-ins add. An answer is a line
 * "WORD<tab>what it is", or ":files<tab>BEGINNING<tab>ENDINGS": files with these endings (none: all), behind
 * a beginning such as "data.training.csv=". */
#include "cli.h"
#include "config/options.h"
#include "data/dataset.h"
#include "names/kinds.h"

#include <stdio.h>
#include <string.h>

static const char usage_text[] =
    "Usage: sigma completion bash|zsh|fish\n\n"
    "Prints a script by which the shell completes command lines of sigma: commands, options, keys of a file "
    "and\n"
    "their values, names of datasets. 'make install' puts it where the shells look for it; without that:\n\n"
    "  bash  source <(sigma completion bash)              in ~/.bashrc\n"
    "  zsh   sigma completion zsh >FOLDER/_sigma          in a folder of $fpath\n"
    "  fish  sigma completion fish >~/.config/fish/completions/sigma.fish\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage.\n";

/* --- the scripts --- */

/* Words are cut at blanks here: bash itself also cuts them at '=' and ':', and then replaces only what is
 * behind the last of these. */
static const char bash_script[] =
    "# Completion of sigma for bash, made by 'sigma completion bash'.\n"
    "_sigma()\n"
    "{\n"
    "    local text=${COMP_LINE:0:COMP_POINT} current line beginning endings path rest\n"
    "    local -a words\n"
    "    read -ra words <<<\"$text\"\n"
    "    [[ $text == *[[:space:]] ]] && words+=('')\n"
    "    current=${words[-1]}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        if [[ $line != :files* ]]; then\n"
    "            COMPREPLY+=(\"${line%%$'\\t'*}\")\n"
    "            continue\n"
    "        fi\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        line=${line#*$'\\t'} beginning=${line%%$'\\t'*} endings=${line#*$'\\t'}\n"
    "        rest=${current#\"$beginning\"}\n"
    "        while IFS= read -r path; do\n"
    "            [[ -d $path || -z $endings || \" $endings \" == *\" ${path##*.} \"* ]] && "
    "COMPREPLY+=(\"$beginning$path\")\n"
    "        done < <(compgen -f -- \"$rest\")\n"
    "    done < <(\"${words[0]}\" completion candidates \"${words[@]:1}\" 2>/dev/null)\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=.] ]] && compopt -o nospace 2>/dev/null\n"
    "    for line in = :; do\n"
    "        [[ $COMP_WORDBREAKS == *\"$line\"* && $current == *\"$line\"* ]] &&\n"
    "            COMPREPLY=(\"${COMPREPLY[@]#\"${current%\"$line\"*}$line\"}\")\n"
    "    done\n"
    "    return 0\n"
    "}\n"
    "complete -F _sigma sigma\n";

static const char zsh_script[] =
    "#compdef sigma\n"
    "# Completion of sigma for zsh, made by 'sigma completion zsh'.\n"
    "_sigma()\n"
    "{\n"
    "    local line word\n"
    "    local -a parts found open\n"
    "    for line in \"${(@f)$(${words[1]} completion candidates \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\"; "
    "do\n"
    "        parts=(\"${(@ps:\\t:)line}\")\n"
    "        if [[ $parts[1] == :files ]]; then\n"
    "            [[ -n $parts[2] ]] && compset -P '*='\n"
    "            if [[ -n $parts[3] ]]; then\n"
    "                _files -g \"*.(${parts[3]// /|})(-.)\"\n"
    "            else\n"
    "                _files\n"
    "            fi\n"
    "        elif [[ -n $line ]]; then\n"
    "            word=${parts[1]//:/\\\\:}${parts[2]:+:$parts[2]}\n"
    "            if [[ $parts[1] == *[=.] ]]; then open+=(\"$word\"); else found+=(\"$word\"); fi\n"
    "        fi\n"
    "    done\n"
    "    (( $#found )) && _describe -t words sigma found\n"
    "    (( $#open )) && _describe -t keys key open -S ''\n"
    "    return 0\n"
    "}\n"
    "if [[ $funcstack[1] == _sigma ]]; then _sigma \"$@\"; else compdef _sigma sigma; fi\n";

static const char fish_script[] =
    "# Completion of sigma for fish, made by 'sigma completion fish'.\n"
    "function __sigma_candidates\n"
    "    set -l current (commandline -ct)\n"
    "    set -l words (commandline -opc)\n"
    "    for line in ($words[1] completion candidates $words[2..-1] \"$current\" 2>/dev/null)\n"
    "        set -l parts (string split \\t -- $line)\n"
    "        if test \"$parts[1]\" != :files\n"
    "            echo $line\n"
    "            continue\n"
    "        end\n"
    "        for path in (__fish_complete_path (string replace -- \"$parts[2]\" '' \"$current\"))\n"
    "            set -l file (string split \\t -- $path)[1]\n"
    "            if test -z \"$parts[3]\"; or string match -q '*/' -- $file; or contains -- (string split -r "
    "-m1 . "
    "-- $file)[-1] (string split ' ' -- $parts[3])\n"
    "                echo $parts[2]$file\n"
    "            end\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c sigma -f -a '(__sigma_candidates)'\n";

/* --- answers --- */

/* What is asked for: the words behind `sigma`, the last of which is to be completed. */
typedef struct request {
    const char *const *words;
    size_t count;
    const char *current;
    const char *before; /* an option of the command: the word in front of the current one is this */
    bool wants_value;   /* of it */
    size_t positional;  /* words of the command that are no options, before the current one */
} request;

/* A candidate `beginning``word`, if the current word begins it. */
static void offer_behind(const request *r, const char *beginning, const char *word, const char *doc)
{
    size_t length = strlen(beginning);
    if (strncmp(r->current, beginning, length) == 0 && sgm__begins_with(word, r->current + length))
        printf("%s%s\t%.*s\n", beginning, word, (int)strcspn(doc, "\n\t"), doc);
}

static void offer(const request *r, const char *word, const char *doc)
{
    offer_behind(r, "", word, doc);
}

static void offer_files(const char *beginning, const char *endings)
{
    printf(":files\t%s\t%s\n", beginning, endings);
}

/* Options only where one is begun: they would hide everything else. */
static void take_option(void *user, const char *name, const char *doc, bool has_value)
{
    request *r = user;
    if (r->before != NULL && strcmp(r->before, name) == 0)
        r->wants_value = has_value;
    if (r->current[0] == '-')
        offer(r, name, doc);
}

/* Counts words, without the values of options. */
typedef struct counting {
    const char *word;
    bool has_value;
} counting;

static void take_kind(void *user, const char *name, const char *doc, bool has_value)
{
    counting *c = user;
    (void)doc;
    if (strcmp(c->word, name) == 0)
        c->has_value = has_value;
}

static size_t count_words(const request *r, const subcommand *command)
{
    size_t count = 0;
    for (size_t i = 1; i + 1 < r->count; i++) {
        counting c = {.word = r->words[i]};
        if (c.word[0] != '-')
            count++;
        else
            arguments_list(command->run, command->name, take_kind, &c);
        i += c.has_value;
    }
    return count;
}

/* --- values --- */

static void offer_datasets(const request *r)
{
    size_t count;
    const char *const *names = sgm_dataset_names(&count);
    for (size_t i = 0; i < count; i++)
        offer(r, names[i], "a ready-made dataset");
}

static void offer_metrics(const request *r)
{
    size_t count;
    const char *const *names = sgm_metric_names(&count);
    for (size_t i = 0; i < count; i++)
        offer(r, names[i], "a metric");
}

/* The value of an option, by its name; most are files. */
static void offer_option_value(const request *r)
{
    static const char *const levels[] = {"debug", "info", "warning", "error", "off"};
    static const char *const parts[] = {"training", "validation", "test"};
    static const char *const roles[] = {"look", "steer", "admin"};
    if (strcmp(r->before, "--log-level") == 0) {
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
            offer(r, levels[i], "");
    } else if (strcmp(r->before, "--data") == 0) {
        for (size_t i = 0; i < 3; i++)
            offer(r, parts[i], "data of the run");
        offer_datasets(r);
    } else if (strcmp(r->before, "--metrics") == 0) {
        offer_metrics(r);
    } else if (strcmp(r->before, "--role") == 0) {
        for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
            offer(r, roles[i], "what an agent may do");
    } else {
        offer_files("", strcmp(r->before, "--plugin") == 0 ? "so" : "");
    }
}

/* The value behind "KEY=". */
static void offer_value(const request *r, const option *given, const char *beginning)
{
    const option o = option_complete(given);
    if (o.kind == OPTION_PATH || o.is_path) {
        offer_files(beginning, "");
    } else if (o.kind == OPTION_FLAG) {
        offer_behind(r, beginning, "true", "");
        offer_behind(r, beginning, "false", "");
    }
    for (size_t i = 0; o.row.choices != NULL && o.row.choices[i] != NULL; i++)
        offer_behind(r, beginning, o.row.choices[i], "");
    for (size_t i = 0; o.name_at != NULL && o.name_at(i) != NULL; i++)
        offer_behind(r, beginning, o.name_at(i), "");
}

/* Keys of a table and what is below, as "KEY=". */
static void offer_keys(const request *r, const option_table *table, const char *prefix)
{
    for (size_t i = 0; i < table->count; i++) {
        char key[120];
        snprintf(key, sizeof key, "%s%s%s", prefix, table->rows[i].row.name,
                 table->rows[i].kind == OPTION_GROUP ? "." : "=");
        if (table->rows[i].kind != OPTION_GROUP) {
            const option o = option_complete(&table->rows[i]);
            offer(r, key, o.row.doc);
        } else if (sgm__begins_with(r->current, key)) {
            offer_keys(r, table->rows[i].children, key);
        } else {
            offer(r, key, table->rows[i].row.doc);
        }
    }
}

/* "KEY=VALUE" of a training. */
static void offer_key(const request *r)
{
    const char *equals = strchr(r->current, '='), *entry;
    const void *base = NULL;
    if (equals == NULL) {
        offer_keys(r, &config_table, "");
        return;
    }
    char *key = sgm__strndup(r->current, (size_t)(equals - r->current));
    char *beginning = sgm__strndup(r->current, (size_t)(equals - r->current) + 1);
    const option *o = key != NULL ? options_find(&config_table, key, &base, &entry) : NULL;
    if (o != NULL && beginning != NULL)
        offer_value(r, o, beginning);
    sgm__free(key);
    sgm__free(beginning);
}

/* --- words of commands --- */

static void offer_trainings(const request *r)
{
    if (r->positional == 0)
        offer_files("", "yaml yml csv tsv");
    else
        offer_key(r);
}

static void offer_run(const request *r)
{
    (void)r;
    offer_files("", "safetensors");
}

static void offer_run_and_files(const request *r)
{
    offer_files("", r->positional == 0 ? "safetensors" : "");
}

static void offer_ctl(const request *r)
{
    if (r->positional == 0)
        offer_run(r);
    for (size_t i = 0; r->positional == 1 && ctl_command_at(i) != NULL; i++)
        offer(r, ctl_command_at(i), "");
    bool attaches = r->positional == 2 && strcmp(r->before, "attach") == 0;
    for (size_t i = 0; attaches && sgm_hook_name_at(i) != NULL; i++)
        offer(r, sgm_hook_name_at(i), "a hook");
}

static void offer_data(const request *r)
{
    offer_datasets(r);
    offer_files("", "");
}

static void offer_names(const request *r)
{
    sgm__described described;
    for (size_t i = 0; i < named_kind_count; i++)
        for (size_t k = 0; named_kinds[i].describe(k, &described); k++)
            offer(r, described.name, described.doc);
}

static void offer_shells(const request *r)
{
    offer(r, "bash", "");
    offer(r, "zsh", "");
    offer(r, "fish", "");
}

static const struct {
    const char *command;
    void (*offer)(const request *r);
} words_of_commands[] = {
    {"train", offer_trainings},     {"search", offer_trainings},
    {"find-rate", offer_trainings}, {"ctl", offer_ctl},
    {"monitor", offer_run},         {"mcp", offer_run},
    {"eval", offer_run_and_files},  {"predict", offer_run_and_files},
    {"export", offer_run},          {"serve", offer_run},
    {"generate", offer_run},        {"tokenize", offer_run_and_files},
    {"inspect", offer_trainings},   {"data", offer_data},
    {"info", offer_names},          {"completion", offer_shells},
};

static void offer_commands(const request *r)
{
    const subcommand *command;
    for (size_t i = 0; (command = subcommand_at(i)) != NULL; i++)
        offer(r, command->name, command->summary);
    if (r->count == 1 && r->current[0] == '-') {
        offer(r, "--help", "the commands");
        offer(r, "--version", "the version");
    }
}

static void offer_all(request *r)
{
    const subcommand *command = NULL;
    if (r->count <= 1 || strcmp(r->words[0], "help") == 0) {
        offer_commands(r);
        return;
    }
    for (size_t i = 0; (command = subcommand_at(i)) != NULL && strcmp(command->name, r->words[0]) != 0; i++)
        ;
    if (command == NULL)
        return;
    r->before = r->words[r->count - 2];
    r->positional = count_words(r, command);
    arguments_list(command->run, command->name, take_option, r);
    if (r->wants_value)
        offer_option_value(r);
    for (size_t i = 0;
         !r->wants_value && r->current[0] != '-' && i < sizeof words_of_commands / sizeof *words_of_commands;
         i++)
        if (strcmp(words_of_commands[i].command, command->name) == 0)
            words_of_commands[i].offer(r);
}

/* --- the command --- */

static int print_script(const char *shell)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(shell, scripts[i].shell) == 0) {
            fputs(scripts[i].script, stdout);
            return CLI_OK;
        }
    return usage_error("completion", "there is no script for '%s'; there are bash, zsh and fish", shell);
}

/* `candidates` takes words that look like options, so it is not read as other arguments are. */
int completion_run(int argc, char **argv)
{
    arguments a = {.help = usage_text};
    int code = CLI_OK;
    if (argc > 1 && strcmp(argv[1], "candidates") == 0) {
        request r = {.words = (const char *const *)argv + 2, .count = (size_t)argc - 2, .current = ""};
        if (r.count > 0)
            r.current = r.words[r.count - 1];
        offer_all(&r);
        return CLI_OK;
    }
    if (arguments_read(&a, argc, argv, &code))
        code = a.word_count == 1 ? print_script(a.words[0])
                                 : usage_error("completion", "expected bash, zsh or fish");
    arguments_free(&a);
    return code;
}
