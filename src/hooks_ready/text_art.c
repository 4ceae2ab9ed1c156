/* Tensors as pictures of text: sgm_tensor_art, and the hook that reports such pictures (art_reporter).
 *
 * Meant for a look at an image from a terminal, for example at what target_maximiser has found; the web
 * monitor draws real pictures. A tensor is (rows, columns, channels), (rows, columns) or (columns), of any
 * type. */
#include "base/log_sink.h"
#include "hooks/hook_text.h"

#include <math.h>
#include <sigma/hooks.h>

#define MAXIMUM_CHANNELS 4 /* red, green, blue and opacity: more is no picture */

/* Rows, columns and channels of a tensor: rank 1 is one row, rank 2 has one channel, in rank 3 channels
 * are last. False: it is no picture. */
static bool measure(const sgm_shape *shape, int64_t *rows, int64_t *columns, int64_t *channels)
{
    *rows = shape->rank > 1 ? shape->dims[0] : 1;
    *columns = shape->rank > 1 ? shape->dims[1] : shape->rank == 1 ? shape->dims[0] : 1;
    *channels = shape->rank > 2 ? shape->dims[2] : 1;
    return shape->rank >= 1 && shape->rank <= 3 && *channels >= 1 && *channels <= MAXIMUM_CHANNELS;
}

/* One character pair for each pixel, two because characters are about twice as high as wide. A first pass
 * finds the extremes of the mean over channels, a second one writes (value - minimum) / (maximum -
 * minimum) as one of ten shades. 9.999 instead of 10 keeps the maximum in the last shade. NaN and infinity
 * become '?'. */
static void draw(sgm__text *text, const double *values, int64_t rows, int64_t columns, int64_t channels)
{
    static const char shades[] = " .:-=+*#%@";
    int64_t count = rows * columns;
    double minimum = INFINITY, maximum = -INFINITY;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < count; i++) {
            double value = 0;
            for (int64_t c = 0; c < channels; c++)
                value += values[i * channels + c] / (double)channels;
            if (pass == 0) {
                minimum = value < minimum ? value : minimum;
                maximum = value > maximum ? value : maximum;
                continue;
            }
            double share = maximum > minimum ? (value - minimum) / (maximum - minimum) : 0;
            char shade = isfinite(share) ? shades[(int)(share * 9.999)] : '?';
            sgm__text_append(text, "%c%c%s", shade, shade, (i + 1) % columns == 0 ? "\n" : "");
        }
}

/* The empty text in front makes an allocation, so that a tensor without elements gives "" and not NULL. */
char *sgm_tensor_art(const sgm_tensor *tensor)
{
    int64_t rows, columns, channels;
    if (!tensor || !measure(sgm_tensor_shape(tensor), &rows, &columns, &channels)) {
        char shape[128];
        sgm_fail(SGM_ERROR_SHAPE, "expected a tensor of rank 1 to 3 with at most %d channels, got %s",
                 MAXIMUM_CHANNELS,
                 tensor ? sgm_shape_text(sgm_tensor_shape(tensor), shape, sizeof shape) : "NULL");
        return NULL;
    }
    size_t count = (size_t)(rows * columns * channels);
    double *values = sgm__alloc(count * sizeof(double));
    sgm__text text = {0};
    sgm__text_append(&text, "%s", "");
    if (values && sgm_tensor_read(tensor, values, count) == SGM_OK)
        draw(&text, values, rows, columns, channels);
    sgm__free(values);
    return values ? sgm__text_take(&text) : NULL;
}

/* --- the reporter --- */

/* The self; options as those of all reporters. */
typedef struct art_reporter {
    char *identifier;
    sgm_value_reporter_options options;
} art_reporter;

/* One picture below its identifier, in one piece for the function of the options. */
static sgm_status say(const art_reporter *self, const sgm_hook_call *call, const sgm_match *match)
{
    if (match->content.kind != SGM_KIND_TENSOR)
        return sgm_fail(SGM_ERROR_TYPE, "'%s' is %s, expected a tensor", match->identifier,
                        sgm_kind_name(match->content.kind));
    char *art = sgm_tensor_art(match->content.as.tensor);
    if (!art)
        return sgm_last_status();
    char worker[32];
    sgm__hook_worker_text(call, worker, sizeof worker);
    char *text = self->options.with_time
                     ? sgm__format("%sepoch %lld, iteration %lld: %s\n%s", worker, (long long)call->epoch,
                                   (long long)call->iteration, match->identifier, art)
                     : sgm__format("%s%s\n%s", worker, match->identifier, art);
    sgm_string_free(art);
    if (!text)
        return SGM_ERROR_MEMORY;
    if (self->options.report)
        self->options.report(self->options.user, text);
    else
        sgm__log_note(call->trainer, "%s", text);
    sgm__free(text);
    return SGM_OK;
}

/* invoke(): a picture for each tensor that matches. */
static sgm_status report(void *state, sgm_hook_call *call)
{
    const art_reporter *self = state;
    sgm_matches matches;
    SGM_TRY(sgm_registry_resolve(call->registry, self->identifier, &matches));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        status = say(self, call, &matches.items[i]);
    sgm_matches_free(&matches);
    return status;
}

/* The identifier is compared by the engine, among what the hooks read. */
static bool is_equal(const void *a, const void *b)
{
    const art_reporter *left = a, *right = b;
    return left->options.report == right->options.report && left->options.user == right->options.user &&
           left->options.with_time == right->options.with_time;
}

/* `options.only_if` was handed to the hook, and is NULL here. */
static void free_reporter(void *state)
{
    art_reporter *self = state;
    if (self->options.release)
        self->options.release(self->options.user);
    sgm__free(self->identifier);
    sgm__free(self);
}

/* Without copy() and state: a call only reads the self. */
static const sgm_hook_type art_type = {.api = SGM_HOOK_API,
                                       .name = "art_reporter",
                                       .doc = "reports tensors as pictures of text",
                                       .invoke = report,
                                       .equal = is_equal,
                                       .free = free_reporter};

/* `user` is released and the criteria are freed on every way out; sgm_hook_create takes both over. */
sgm_hook *sgm_art_reporter_with(const char *identifier, sgm_time_step when,
                                const sgm_value_reporter_options *given)
{
    sgm_value_reporter_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_art_reporter") != SGM_OK)
        return NULL;
    art_reporter *self = sgm__calloc(1, sizeof *self);
    if (self) {
        self->options = options;
        self->options.only_if = NULL;
        self->identifier = sgm__strdup(identifier ? identifier : "");
        if (self->identifier) {
            const char *const reads[] = {self->identifier, NULL};
            return sgm_hook_create(&art_type, self, .when = when, .reads = reads, .only_if = options.only_if);
        }
        free_reporter(self);
    } else if (options.release) {
        options.release(options.user);
    }
    sgm_criteria_free(options.only_if);
    return NULL;
}

/* --- as text --- */

static sgm_hook *parse_art(const sgm__call *call, sgm_time_step when)
{
    return sgm_art_reporter(sgm__call_text(call, "value"), when,
                            .with_time = sgm__call_flag(call, "with_time"));
}

const sgm__hook_row sgm__art_reporter_row = {
    .name = "art_reporter",
    .example = "art_reporter(shared.target_*_input)",
    .doc = "logs tensors as pictures of text",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"value", SGM_KIND_TEXT, .identifier = true, .required = true,
                   .doc = "shared.target_*_input"},
                  {"with_time", SGM_KIND_BOOLEAN, .doc = "begins with epoch and iteration"}},
    .create = parse_art,
};
