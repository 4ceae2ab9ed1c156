/* GET /api/data: examples of the data with their predictions; GET /api/confusion: the confusion matrix.
 *
 * Both are a pass over a dataset of the trainer, with a copy of the network that predicts in batches
 * beside the training (example_pass.h). */
#include "monitors/web/inspect/example_pass.h"
#include "monitors/web/inspect/inspect.h"

#include <math.h>

/* Classes of a confusion matrix. */
#define MAXIMUM_CLASSES 256
/* Examples that a matrix counts, usually and at most. */
#define DEFAULT_EXAMPLES 2000
#define MAXIMUM_EXAMPLES 1000000
/* Examples that an answer names of each pair (target, prediction), and in all. */
#define MISTAKES 12
#define MAXIMUM_MISTAKES 4000
/* Examples in an answer, the numbers of their inputs in all, and outputs of each. */
#define MAXIMUM_ITEMS 200
#define MAXIMUM_VALUES (1 << 21)
#define WIDEST 1000

/* --- which classes are predicted as which --- */

/* A confusion matrix in the making. */
typedef struct confusion {
    int64_t classes, counted, right;
    int64_t *counts;    /* (classes, classes): [target][prediction] */
    sgm__text examples; /* mistakes: [target,prediction,index],... */
    int64_t example_count;
} confusion;

static bool has_class(void *user, int64_t index, int64_t target)
{
    (void)user, (void)index;
    return target >= 0;
}

/* The first few examples of each mistake are named, so that people can look at them. */
static sgm_status count_example(void *user, const sgm__example_pass *own, const sgm__example *taken)
{
    confusion *all = user;
    (void)own;
    int64_t *cell = &all->counts[taken->target * all->classes + taken->prediction];
    if (taken->target != taken->prediction && *cell < MISTAKES && all->example_count < MAXIMUM_MISTAKES)
        sgm__text_append(&all->examples, all->example_count++ > 0 ? ",[%lld,%lld,%lld]" : "[%lld,%lld,%lld]",
                         (long long)taken->target, (long long)taken->prediction, (long long)taken->index);
    ++*cell;
    all->counted++;
    all->right += taken->target == taken->prediction;
    return SGM_OK;
}

static void append_matrix(sgm__text *text, const confusion *all)
{
    sgm__text_append(text, ",\"matrix\":[");
    for (int64_t i = 0; i < all->classes; i++) {
        sgm__text_append(text, i > 0 ? ",[" : "[");
        for (int64_t k = 0; k < all->classes; k++)
            sgm__text_append(text, k > 0 ? ",%lld" : "%lld", (long long)all->counts[i * all->classes + k]);
        sgm__text_append(text, "]");
    }
    sgm__text_append(text, "]");
}

static sgm_status give_confusion(const sgm__example_pass *own, const confusion *all, sgm__http_answer *answer)
{
    sgm__text text = {0};
    sgm__example_pass_append_head(&text, own);
    sgm__web_append_member(&text, "counted", (double)all->counted);
    sgm__web_append_member(&text, "right", (double)all->right);
    append_matrix(&text, all);
    sgm__text_append(&text, ",\"examples\":[%s]}", all->examples.data != NULL ? all->examples.data : "");
    return sgm__web_answer(answer, &text);
}

/* The matrix of at most `maximum` examples, taken evenly from all of the data. */
static sgm_status confuse(sgm__example_pass *own, int64_t maximum, sgm__http_answer *answer)
{
    confusion all = {.classes = sgm__example_pass_classes(own)};
    const sgm__example_looker who = {
        .maximum = maximum, .wants = has_class, .take = count_example, .user = &all};
    if (!own->classifies || all.classes > MAXIMUM_CLASSES)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "there is a matrix for networks that put each example in one of at most %d classes",
                        MAXIMUM_CLASSES);
    all.counts = sgm__calloc((size_t)(all.classes * all.classes), sizeof *all.counts);
    sgm_status status = all.counts != NULL ? sgm__example_pass_look(own, &who) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = give_confusion(own, &all, answer);
    sgm__free(all.counts);
    sgm__text_free(&all.examples);
    return status;
}

sgm_status sgm__inspect_confusion(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    int64_t maximum;
    SGM_TRY(sgm__inspect_count(request, "examples", DEFAULT_EXAMPLES, 1, MAXIMUM_EXAMPLES, &maximum));
    sgm__example_pass *own = sgm__example_pass_begin(watched, request, NULL);
    if (own == NULL)
        return sgm__last_failure();
    sgm_status status = confuse(own, maximum, answer);
    sgm__example_pass_free(own);
    return status;
}

/* --- examples themselves --- */

/* Which examples a request wants: either those with given numbers, or `count` from `from` on, perhaps of
 * one class. */
typedef struct selection {
    int64_t from, class, count;   /* class -1: examples of all classes */
    int64_t asked[MAXIMUM_ITEMS]; /* indices of single examples */
    size_t asked_count;
    /* How many were found so far, and the index at which a further request goes on. */
    int64_t wanted, next;
    sgm__text items; /* JSON of the examples */
} selection;

static bool is_asked_for(const selection *all, int64_t index)
{
    size_t i = 0;
    while (i < all->asked_count && all->asked[i] != index)
        i++;
    return i < all->asked_count;
}

/* Counts what it selects: is_complete then ends the pass. */
static bool selects(void *user, int64_t index, int64_t target)
{
    selection *all = user;
    bool fits = all->asked_count > 0 ? is_asked_for(all, index)
                                     : index >= all->from && (all->class < 0 || target == all->class);
    if (fits)
        all->wanted++;
    all->next = index + 1;
    return fits;
}

static bool is_complete(void *user)
{
    const selection *all = user;
    return all->wanted >= (all->asked_count > 0 ? (int64_t)all->asked_count : all->count);
}

static void append_floats(sgm__text *text, const char *name, const float *values, int64_t count)
{
    sgm__text_append(text, ",\"%s\":[", name);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0)
            sgm__text_append_bytes(text, ",", 1);
        sgm__inspect_append_short(text, values[i]);
    }
    sgm__text_append(text, "]");
}

/* One example: inputs, classes, outputs, and for networks that do not classify also the targets. */
static sgm_status append_record(void *user, const sgm__example_pass *own, const sgm__example *taken)
{
    selection *all = user;
    sgm__text *text = &all->items;
    int64_t count;
    const char *input = own->network.copied.recording.inputs[0].name;
    const float *values = sgm__example_values(own->block, input, taken->row, &count);
    if (values == NULL)
        return sgm__last_failure();
    sgm__example_append_head(text, taken);
    append_floats(text, "inputs", values, count);
    sgm__text_append(text, ",\"outputs\":[");
    for (int64_t i = 0; i < own->prediction.width && i < WIDEST; i++) {
        sgm__text_append(text, i > 0 ? "," : "");
        sgm__inspect_append_short(text, taken->outputs[i]);
    }
    sgm__text_append(text, "]");
    values = own->classifies ? NULL : sgm__example_values(own->block, own->targets, taken->row, &count);
    if (values != NULL)
        append_floats(text, "targets", values, count < WIDEST ? count : WIDEST);
    sgm__text_append(text, "}");
    return text->failed ? SGM_ERROR_MEMORY : SGM_OK;
}

static sgm_status read_selection(selection *all, const sgm__http_request *request)
{
    const char *text;
    double number;
    SGM_TRY(sgm__inspect_count(request, "from", 0, 0, (int64_t)1 << 50, &all->from));
    SGM_TRY(sgm__inspect_count(request, "count", 20, 0, MAXIMUM_ITEMS, &all->count));
    SGM_TRY(sgm__inspect_count(request, "class", -1, -1, (int64_t)1 << 50, &all->class));
    for (size_t i = 0; i < MAXIMUM_ITEMS && (text = sgm__http_query(request, "example", i)) != NULL; i++) {
        if (!sgm__parse_double(text, &number) || !(number >= 0 && number < 1e15) || number != rint(number))
            return sgm_fail(SGM_ERROR_ARGUMENT, "'example' must be the number of an example, not '%.50s'",
                            text);
        if (!is_asked_for(all, (int64_t)number)) /* it is given once, however often it is asked for */
            all->asked[all->asked_count++] = (int64_t)number;
    }
    return SGM_OK;
}

static sgm_status give_examples(const sgm__example_pass *own, const selection *all, sgm__http_answer *answer)
{
    sgm_shape shape;
    sgm__text text = {0};
    SGM_TRY(sgm_dataset_field_shape(own->dataset, own->network.copied.recording.inputs[0].name, &shape));
    sgm__example_pass_append_head(&text, own);
    sgm__text_append(&text, ",\"shape\":");
    sgm__inspect_append_shape(&text, &shape, 0);
    sgm__web_append_member(&text, "next", (double)all->next);
    sgm__text_append(&text, ",\"items\":[%s]}", all->items.data != NULL ? all->items.data : "");
    return sgm__web_answer(answer, &text);
}

/* Fewer examples are given if their inputs are so large that an answer would exceed MAXIMUM_VALUES
 * numbers. */
static sgm_status look_up(sgm__example_pass *own, selection *all, sgm__http_answer *answer)
{
    const sgm__example_looker who = {
        .wants = selects, .take = append_record, .has_all = is_complete, .user = all};
    int64_t elements = sgm_shape_elements(sgm_tensor_shape(own->fed[0])) / SGM__PASS_BATCH;
    int64_t maximum = elements > 0 && MAXIMUM_VALUES / elements > 0 ? MAXIMUM_VALUES / elements : 1;
    all->count = all->count < maximum ? all->count : maximum;
    all->asked_count = (int64_t)all->asked_count < maximum ? all->asked_count : (size_t)maximum;
    SGM_TRY(sgm__example_pass_look(own, &who));
    return give_examples(own, all, answer);
}

sgm_status sgm__inspect_data(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    selection all = {0};
    SGM_TRY(read_selection(&all, request));
    sgm__example_pass *own = sgm__example_pass_begin(watched, request, NULL);
    if (own == NULL)
        return sgm__last_failure();
    sgm_status status = look_up(own, &all, answer);
    sgm__text_free(&all.items);
    sgm__example_pass_free(own);
    return status;
}
