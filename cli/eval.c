/* sigma eval: loss and accuracy of a checkpoint. */
#include "cli.h"

#include <math.h>
#include <stdio.h>

static const char usage_text[] =
    "Usage: sigma eval CHECKPOINT|FOLDER [--data NAME] [--json]\n\n"
    "Measures a trained network: loss, and accuracy where the targets are classes.\n\n"
    "  --data NAME  a ready-made dataset ('sigma info' lists them), or training, validation, test as the\n"
    "               run's config.yaml has them; default: validation and test\n"
    "  --json       one object a line\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

static void print_json(const char *name, const sgm_metrics *metrics)
{
    printf("{\"data\": ");
    print_json_text(name);
    printf(", \"loss\": ");
    print_json_number(metrics->loss);
    printf(", \"accuracy\": ");
    print_json_number(metrics->accuracy);
    printf(", \"records\": %lld}\n", (long long)metrics->records);
}

static sgm_status measure(const saved *s, const char *name, bool json)
{
    sgm_dataset *dataset = saved_dataset(s, name);
    if (dataset != NULL && experiment_check(s->network, dataset) != SGM_OK) {
        sgm_dataset_free(dataset);
        return sgm__fail_within("data '%s'", name);
    }
    sgm_iterator *iterator = dataset != NULL ? experiment_measuring(dataset, &s->c) : NULL;
    sgm_metrics metrics;
    sgm_status status =
        iterator != NULL ? sgm_trainer_evaluate(s->trainer, iterator, &metrics) : sgm__last_failure();
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
    if (status == SGM_OK && json)
        print_json(name, &metrics);
    else if (status == SGM_OK)
        print_metrics(name, &metrics);
    return status;
}

static int eval(const char *path, const char *name, bool json)
{
    saved s;
    if (saved_open(&s, path) != SGM_OK)
        return report_error("eval", CLI_FAILED);
    bool validation = !data_config_is_empty(&s.c.data.validation),
         test = !data_config_is_empty(&s.c.data.test);
    int code = CLI_OK;
    if (name == NULL && !validation && !test)
        code = usage_error("eval", "%s names no validation or test data: say which with --data NAME", path);
    else if (name != NULL ? measure(&s, name, json) != SGM_OK
                          : (validation && measure(&s, "validation", json) != SGM_OK) ||
                                (test && measure(&s, "test", json) != SGM_OK))
        code = report_error("eval", CLI_FAILED);
    saved_close(&s);
    return code;
}

int eval_run(int argc, char **argv)
{
    const char *name = NULL;
    bool json = false;
    const argument_rule rules[] = {{"--data", ARGUMENT_TEXT, &name}, {"--json", ARGUMENT_FLAG, &json}};
    arguments a = {.rules = rules, .rule_count = 2, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code))
        code = a.word_count == 1
                   ? eval(a.words[0], name, json)
                   : usage_error("eval", "expected one checkpoint or folder, got %zu", a.word_count);
    arguments_free(&a);
    return code;
}
