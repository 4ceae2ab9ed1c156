/* Values over time: the newest ones of each number in a ring, and, if wanted, all of them in a file
 * (time_series).
 *
 * A series is left as shared.IDENTIFIER_series, float64 (n, 2) of iteration and value, oldest first, for
 * monitors and other hooks; FILE.csv in the run's folder has a line "iteration,identifier,value" for each
 * value. The rings are part of checkpoints. After a resume from an earlier iteration, lines of the file
 * that are newer than that are dropped, so ring and file have each iteration once. A worker of an operator
 * has series and a file of its own. */
#include "hooks/hook_text.h"
#include "journal/run_lines.h"

#include <math.h>
#include <sigma/hooks.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_CAPACITY 1000
#define MAXIMUM_CAPACITY 1000000
#define LARGEST_FILE ((size_t)1 << 30)      /* bytes that a resume reads: about 30 million values */
#define HEADER "iteration,identifier,value" /* first line of the file */

/* The newest values of one number. */
typedef struct series {
    char *identifier;    /* NULL: loaded, and not seen yet */
    double identity;     /* hash of the identifier: its name in checkpoints, which hold numbers only */
    double *points;      /* a ring of `capacity` pairs, iteration and value */
    int64_t next, count; /* pairs: where the next one goes, and how many there are */
} series;

/* The self. `all` has a series for each identifier that had a value so far; patterns may match more later. */
typedef struct time_series {
    char **list; /* of identifiers, NULL at the end */
    char *file;  /* its name without what comes behind; NULL: none */
    int64_t capacity;
    series *all;
    size_t count, room;
    bool file_begun; /* by this process: newer lines of an earlier one are dropped */
} time_series;

/* --- rings --- */

/* 32 bits of a hash: a double holds them exactly. */
static double identity_of(const char *identifier)
{
    return (double)(uint32_t)sgm__hash_text(identifier);
}

/* NULL: no memory. The pointer is valid until the next series is added. */
static series *add_series(time_series *self, double identity)
{
    if (sgm__reserve(&self->all, &self->room, self->count + 1, sizeof(series)) != SGM_OK)
        return NULL;
    series *made = &self->all[self->count];
    *made = (series){.identity = identity, .points = sgm__calloc((size_t)self->capacity, 2 * sizeof(double))};
    if (!made->points)
        return NULL;
    self->count++;
    return made;
}

/* The series of an identifier; a new one if there is none. One that came from a checkpoint is recognised
 * by its hash, and gets its identifier at its first value after the resume. NULL: no memory. */
static series *find_series(time_series *self, const char *identifier)
{
    double identity = identity_of(identifier);
    series *found = NULL;
    for (size_t i = 0; i < self->count && !found; i++) {
        series *each = &self->all[i];
        if (each->identifier ? strcmp(each->identifier, identifier) == 0 : each->identity == identity)
            found = each;
    }
    if (!found)
        found = add_series(self, identity);
    if (found && !found->identifier && !(found->identifier = sgm__strdup(identifier)))
        return NULL;
    return found;
}

/* Overwrites the oldest pair of a full ring. */
static void add_point(const time_series *self, series *to, double iteration, double value)
{
    to->points[2 * to->next] = iteration;
    to->points[2 * to->next + 1] = value;
    to->next = (to->next + 1) % self->capacity;
    if (to->count < self->capacity)
        to->count++;
}

/* The i-th oldest pair. */
static const double *point_at(const time_series *self, const series *from, int64_t i)
{
    return from->points + 2 * ((from->next - from->count + i + self->capacity) % self->capacity);
}

/* Leaves a copy of the ring, oldest first. The copy is made anew at each value, since readers may keep the
 * tensor that they got. */
static sgm_status share_series(const time_series *self, sgm_hook_call *call, const series *from)
{
    char *name = sgm__format("%s_series", from->identifier);
    sgm_shape shape = sgm_shape_of(from->count, 2);
    sgm_tensor *tensor = name ? sgm_tensor_create(SGM_FLOAT64, &shape) : NULL;
    sgm_status status = tensor ? SGM_OK : SGM_ERROR_MEMORY;
    for (char *c = name; c && *c; c++)
        if (*c == '.')
            *c = '_';
    if (tensor) {
        double *to = sgm_tensor_data(tensor);
        for (int64_t i = 0; i < from->count; i++)
            memcpy(to + 2 * i, point_at(self, from, i), 2 * sizeof(double));
        status = sgm_hook_share(call, name, sgm_tensor_content(tensor));
    }
    sgm_tensor_free(tensor);
    sgm__free(name);
    return status;
}

/* --- the file --- */

/* Keeps the lines of iterations before this one; those of a run that was interrupted later are written
 * again. A line without an end was cut off by a crash, and is dropped as well. */
static sgm_status drop_newer(const char *path, int64_t iteration)
{
    char *text, *rest;
    size_t length, kept = 0;
    SGM_TRY(sgm__file_read(path, LARGEST_FILE, &text, &length));
    for (rest = text; *rest;) {
        char *end = strchr(rest, '\n');
        if (!end)
            break;
        size_t line = (size_t)(end - rest) + 1;
        if (sgm__begins_with(rest, HEADER) || strtoll(rest, NULL, 10) < iteration) {
            memmove(text + kept, rest, line);
            kept += line;
        }
        rest = end + 1;
    }
    sgm_status status = sgm__file_write_atomic(path, text, kept);
    sgm__free(text);
    return status;
}

/* At the first value of this process: a new file begins with its header, an old one is cut back. */
static sgm_status begin_file(const char *folder, const char *file, int64_t iteration)
{
    char *path = sgm__format("%s/%s", folder, file);
    sgm_status status = path ? SGM_OK : SGM_ERROR_MEMORY;
    if (path)
        status = sgm__file_exists(path) ? drop_newer(path, iteration)
                                        : sgm__run_folder_append(folder, file, HEADER);
    sgm__free(path);
    return status;
}

/* Appends one line. Without a trainer, in the background, and without a run folder there is no file. */
static sgm_status write_point(time_series *self, const sgm_hook_call *call, const char *identifier,
                              double value)
{
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    if (!self->file || !trainer)
        return SGM_OK;
    const sgm__trainer_view view = sgm__trainer_look(trainer);
    if (!view.folder)
        return SGM_OK;
    char *line = sgm__format("%lld,%s,%.9g", (long long)call->iteration, identifier, value);
    char *file = sgm__trainer_is_replica(trainer)
                     ? sgm__format("%s-worker%d.csv", self->file, (int)view.worker)
                     : sgm__format("%s.csv", self->file);
    sgm_status status = line && file ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && !self->file_begun)
        status = begin_file(view.folder, file, call->iteration);
    self->file_begun = self->file_begun || status == SGM_OK;
    if (status == SGM_OK)
        status = sgm__run_folder_append(view.folder, file, line);
    sgm__free(line);
    sgm__free(file);
    return status;
}

/* --- the hook --- */

/* Adds the value of one match to its series and its file. */
static sgm_status note(time_series *self, sgm_hook_call *call, const sgm_match *match)
{
    double value;
    SGM_TRY(sgm_hook_number(call, match->identifier, &value));
    series *of = find_series(self, match->identifier);
    if (!of)
        return SGM_ERROR_MEMORY;
    add_point(self, of, (double)call->iteration, value);
    SGM_TRY(write_point(self, call, match->identifier, value));
    return share_series(self, call, of);
}

/* invoke(). An identifier without a value adds nothing. */
static sgm_status note_all(void *state, sgm_hook_call *call)
{
    time_series *self = state;
    sgm_status status = SGM_OK;
    for (size_t i = 0; self->list[i] && status == SGM_OK; i++) {
        sgm_matches matches;
        SGM_TRY(sgm_registry_resolve(call->registry, self->list[i], &matches));
        for (size_t j = 0; j < matches.count && status == SGM_OK; j++)
            status = note(self, call, &matches.items[j]);
        sgm_matches_free(&matches);
    }
    return status;
}

/* check() before the run: entries that exist already and match must be numbers, or empty so far. Names of
 * other kinds fail here through sgm_hook_number, which has the message. */
static sgm_status check_numbers(void *state, sgm_hook_call *call)
{
    time_series *self = state;
    sgm_status status = SGM_OK;
    double value;
    for (size_t i = 0; self->list[i] && status == SGM_OK; i++) {
        sgm_matches matches;
        SGM_TRY(sgm_registry_resolve(call->registry, self->list[i], &matches));
        for (size_t j = 0; j < matches.count && status == SGM_OK; j++) {
            sgm_kind kind = matches.items[j].content.kind;
            if (kind != SGM_KIND_NOTHING && kind != SGM_KIND_NUMBER && kind != SGM_KIND_INTEGER)
                status = sgm_hook_number(call, matches.items[j].identifier, &value);
        }
        sgm_matches_free(&matches);
    }
    return status;
}

/* The identifiers are compared by the engine, among what the hooks read. */
static bool is_equal(const void *a, const void *b)
{
    const time_series *left = a, *right = b;
    bool same_file =
        left->file && right->file ? strcmp(left->file, right->file) == 0 : left->file == right->file;
    return left->capacity == right->capacity && same_file;
}

/* For each series its identity, its number of pairs, and the pairs, oldest first. */
static sgm_status get_state(void *state, double *numbers, size_t *count)
{
    const time_series *self = state;
    *count = 0;
    for (size_t i = 0; i < self->count; i++) {
        const series *each = &self->all[i];
        if (numbers) {
            double *to = numbers + *count;
            to[0] = each->identity;
            to[1] = (double)each->count;
            for (int64_t j = 0; j < each->count; j++)
                memcpy(to + 2 + 2 * j, point_at(self, each, j), 2 * sizeof(double));
        }
        *count += 2 + 2 * (size_t)each->count;
    }
    return SGM_OK;
}

/* Drops all series; the room for them stays. */
static void forget(time_series *self)
{
    for (size_t i = 0; i < self->count; i++) {
        sgm__free(self->all[i].identifier);
        sgm__free(self->all[i].points);
    }
    self->count = 0;
}

/* Rebuilds the rings from a checkpoint. Numbers of pairs are checked against what is there before they are
 * read. With a smaller capacity than the checkpoint's, add_point keeps the newest pairs. */
static sgm_status set_state(void *state, const double *numbers, size_t count)
{
    time_series *self = state;
    forget(self);
    for (size_t at = 0; at < count;) {
        double points = count - at >= 2 ? numbers[at + 1] : -1;
        size_t pairs = count - at >= 2 ? (count - at - 2) / 2 : 0;
        if (!(points >= 0 && points <= (double)pairs && points == floor(points)))
            return sgm_fail(SGM_ERROR_FORMAT, "expected points of a time series");
        series *each = add_series(self, numbers[at]);
        if (!each)
            return SGM_ERROR_MEMORY;
        for (size_t i = 0; i < (size_t)points; i++)
            add_point(self, each, numbers[at + 2 + 2 * i], numbers[at + 3 + 2 * i]);
        at += 2 + 2 * (size_t)points;
    }
    return SGM_OK;
}

/* Also of a self that make() could not finish. */
static void free_series(void *state)
{
    time_series *self = state;
    if (!self)
        return;
    forget(self);
    sgm__free(self->all);
    sgm__free(self->list);
    sgm__free(self->file);
    sgm__free(self);
}

/* Cuts the identifiers at their spaces; false: none came, or memory was short. */
static bool cut(time_series *self, const char *identifiers)
{
    size_t count;
    self->list = sgm__words(identifiers, &count);
    if (self->list && count == 0)
        sgm_fail(SGM_ERROR_ARGUMENT, "time series: expected identifiers of numbers, got none");
    return self->list && count > 0;
}

/* Without points; NULL: it failed. */
static time_series *make(const char *identifiers, const char *file, int64_t capacity)
{
    time_series *self = sgm__calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->capacity = capacity;
    self->file = file ? sgm__strdup(file) : NULL;
    if ((!file || self->file) && cut(self, identifiers))
        return self;
    free_series(self);
    return NULL;
}

/* A self for a worker: identifiers that were cut at their spaces are joined, and cut again. */
static void *copy_series(const void *state)
{
    const time_series *from = state;
    sgm__text all = {0};
    for (size_t i = 0; from->list[i]; i++)
        sgm__text_append(&all, "%s%s", i > 0 ? " " : "", from->list[i]);
    char *identifiers = sgm__text_take(&all);
    time_series *self = identifiers ? make(identifiers, from->file, from->capacity) : NULL;
    sgm__free(identifiers);
    return self;
}

/* The only hook of this folder with a state of any size: 16 bytes for each value that is kept. */
static const sgm_hook_type series_type = {.api = SGM_HOOK_API,
                                          .name = "time_series",
                                          .doc = "notes values over time",
                                          .invoke = note_all,
                                          .equal = is_equal,
                                          .get_state = get_state,
                                          .set_state = set_state,
                                          .free = free_series,
                                          .copy = copy_series,
                                          .check = check_numbers};

/* The file's name must not lead out of the run's folder, nor be hidden. */
static bool check(const sgm_time_series_options *options)
{
    const char *file = options->file;
    if (options->capacity >= 1 && options->capacity <= MAXIMUM_CAPACITY &&
        (!file || (file[0] && file[0] != '.' && !strchr(file, '/'))))
        return true;
    sgm_fail(
        SGM_ERROR_ARGUMENT,
        "time series: expected a capacity of 1 to %d and a file's name without a slash or a dot in front; "
        "got %lld and '%s'",
        MAXIMUM_CAPACITY, (long long)options->capacity, file ? file : "");
    return false;
}

/* Priority -100: behind what computes (-500), before what acts. */
sgm_hook *sgm_time_series_with(const char *identifiers, sgm_time_step when,
                               const sgm_time_series_options *given)
{
    sgm_time_series_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_time_series") != SGM_OK)
        return NULL;
    if (options.capacity == 0)
        options.capacity = DEFAULT_CAPACITY;
    time_series *self =
        check(&options) ? make(identifiers ? identifiers : "", options.file, options.capacity) : NULL;
    if (!self)
        return NULL;
    return sgm_hook_create(&series_type, self, .when = when, .reads = (const char *const *)self->list,
                           .priority = -100);
}

/* --- as text --- */

/* The step of the text is the hook's: it decides which iterations the series has. */
static sgm_hook *parse_series(const sgm__call *call, sgm_time_step when)
{
    return sgm_time_series(sgm__call_text(call, "values"), when,
                           .capacity = sgm__call_integer(call, "capacity"),
                           .file = sgm__call_text(call, "file"));
}

/* Every iteration by default; a step in front thins a series out, "every 100 iterations time_series(...)". */
const sgm__hook_row sgm__time_series_row = {
    .name = "time_series",
    .example = "time_series(optimiser.loss, file=loss)",
    .doc = "keeps the newest values of numbers, as shared.IDENTIFIER_series: iteration and value",
    .when = {SGM_ITERATION, 1, 0},
    .arguments = {{"values", SGM_KIND_TEXT, .identifier = true, .list = true, .required = true,
                   .doc = "optimiser.loss"},
                  {"capacity", SGM_KIND_INTEGER, .default_value = 1000, .doc = "how many of each are kept",
                   .minimum = 1, .maximum = MAXIMUM_CAPACITY},
                  {"file", SGM_KIND_TEXT, .doc = "all values also go to FILE.csv in the run's folder"}},
    .create = parse_series,
};
