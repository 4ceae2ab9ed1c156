/* Reports values as lines: "optimiser.learning_rate = 0.01, training.loss = 0.25" (value_reporter), and
 * how all reporters of this folder write a line (sgm__report).
 *
 * The line goes to the function of the options, else to the log. Means over many iterations and times are
 * in reporters.c, metrics of data in metric_report.c, tensors as pictures in text_art.c. In the background
 * the function is called on the hook's thread, and values are copies as of the event. */
#include "base/log_sink.h"
#include "hooks/hook_text.h"
#include "hooks_ready/reporting.h"

/* The self. It is only read during a call, so workers share it (no copy()), and there is no state. */
typedef struct reporter {
    char **list; /* of identifiers, may have wildcards; NULL at the end; all in one piece of memory */
    size_t count;
    sgm_value_reporter_options options;
} reporter;

/* Local hooks begin with "worker 1: ". The options' function is called without any lock of the library. */
sgm_status sgm__report(const sgm_value_reporter_options *options, const sgm_hook_call *call, const char *what)
{
    char worker[32];
    sgm__hook_worker_text(call, worker, sizeof worker);
    char *line = options->with_time ? sgm__format("%sepoch %lld, iteration %lld: %s", worker,
                                                  (long long)call->epoch, (long long)call->iteration, what)
                                    : sgm__format("%s%s", worker, what);
    if (!line)
        return SGM_ERROR_MEMORY;
    if (options->report)
        options->report(options->user, line);
    else
        sgm__log_note(call->trainer, "%s", line);
    sgm__free(line);
    return SGM_OK;
}

bool sgm__reports_alike(const sgm_value_reporter_options *a, const sgm_value_reporter_options *b)
{
    return a->report == b->report && a->user == b->user && a->with_time == b->with_time;
}

/* Appends "IDENTIFIER = VALUE". A number has 6 digits here; sgm_content_describe would write all that it
 * has. */
static void describe(sgm__text *line, const sgm_match *match)
{
    if (line->length > 0)
        sgm__text_append(line, ", ");
    if (match->content.kind == SGM_KIND_NUMBER) {
        sgm__text_append(line, "%s = %.6g", match->identifier, match->content.as.number);
        return;
    }
    char *text = sgm_content_describe(&match->content);
    if (text)
        sgm__text_append(line, "%s = %s", match->identifier, text);
    else
        line->failed = true;
    sgm_string_free(text);
}

/* Appends all that matches one identifier, in the registry's order. */
static sgm_status describe_matches(sgm__text *line, sgm_hook_call *call, const char *identifier)
{
    sgm_matches matches;
    SGM_TRY(sgm_registry_resolve(call->registry, identifier, &matches));
    for (size_t i = 0; i < matches.count; i++)
        describe(line, &matches.items[i]);
    sgm_matches_free(&matches);
    return SGM_OK;
}

/* invoke(): one line for all identifiers. Before any of them has a value there is nothing to report, and
 * no line. */
static sgm_status report(void *state, sgm_hook_call *call)
{
    const reporter *self = state;
    sgm__text line = {0};
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < self->count && status == SGM_OK; i++)
        status = describe_matches(&line, call, self->list[i]);
    if (status == SGM_OK && line.failed)
        status = SGM_ERROR_MEMORY;
    if (status == SGM_OK && line.length > 0)
        status = sgm__report(&self->options, call, line.data);
    sgm__text_free(&line);
    return status;
}

/* The identifiers are compared by the engine, among what the hooks read. */
static bool is_equal(const void *a, const void *b)
{
    const reporter *left = a, *right = b;
    return sgm__reports_alike(&left->options, &right->options);
}

/* `options.only_if` is not freed here: it belongs to the hook. */
static void free_reporter(void *state)
{
    reporter *self = state;
    if (!self)
        return;
    if (self->options.release)
        self->options.release(self->options.user);
    sgm__free(self->list);
    sgm__free(self);
}

static const sgm_hook_type reporter_type = {.api = SGM_HOOK_API,
                                            .name = "value_reporter",
                                            .doc = "reports values as lines",
                                            .invoke = report,
                                            .equal = is_equal,
                                            .free = free_reporter};

/* The identifiers of a text as a list. sgm__words puts the pointers and the copied text into one
 * allocation. */
static sgm_status split(reporter *self, const char *identifiers)
{
    self->list = sgm__words(identifiers, &self->count);
    if (!self->list)
        return SGM_ERROR_MEMORY;
    return self->count > 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "a value reporter needs identifiers, as in \"training.loss optimiser.*\"");
}

/* `user` is released and the criteria are freed on every way out; sgm_hook_create takes both over, also
 * when it fails. */
sgm_hook *sgm_value_reporter_with(const char *identifiers, sgm_time_step when,
                                  const sgm_value_reporter_options *given)
{
    sgm_value_reporter_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_value_reporter") != SGM_OK)
        return NULL;
    reporter *self = sgm__calloc(1, sizeof *self);
    if (!self) {
        if (options.release)
            options.release(options.user);
        sgm_criteria_free(options.only_if);
        return NULL;
    }
    self->options = options;
    if (split(self, identifiers) != SGM_OK) {
        free_reporter(self);
        sgm_criteria_free(options.only_if);
        return NULL;
    }
    return sgm_hook_create(&reporter_type, self, .when = when, .reads = (const char *const *)self->list,
                           .background = options.background, .only_if = options.only_if);
}

/* Texts report to the log: a function cannot be named in them. */
static sgm_hook *parse_reporter(const sgm__call *call, sgm_time_step when)
{
    return sgm_value_reporter(sgm__call_text(call, "values"), when,
                              .with_time = sgm__call_flag(call, "with_time"),
                              .background = sgm__call_flag(call, "background"));
}

/* `values` comes first: its list ends at the first comma behind which no identifier can stand. */
const sgm__hook_row sgm__value_reporter_row = {
    .name = "value_reporter",
    .example = "value_reporter(training.loss optimiser.learning_rate)",
    .doc = "logs values by name, as in \"training.loss = 0.25\"",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"values", SGM_KIND_TEXT, .identifier = true, .list = true, .required = true,
                   .doc = "training.loss optimiser.*rate"},
                  {"with_time", SGM_KIND_BOOLEAN, .doc = "begins with epoch and iteration"},
                  {"background", SGM_KIND_BOOLEAN, .doc = "on a thread of its own"}},
    .create = parse_reporter,
};
