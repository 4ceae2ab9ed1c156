/* GET /api/data: examples of the data with their predictions; GET /api/confusion: the confusion matrix.
 *
 * Both are a pass over a dataset of the trainer, with a copy of the network that predicts in batches
 * beside the training (network_copy.h). The pass (look) fetches block after block of the dataset, collects
 * the examples that a `looker` wants until a batch is full, predicts, and hands each example with its
 * outputs back to the looker. The dataset is shared with the training; any thread may fetch its blocks. */
#include "monitors/web/inspect/inspect.h"
#include "monitors/web/inspect/network_copy.h"
#include "trainer/trainer_lock.h"

#include <math.h>
#include <stdio.h>

/* Examples that are predicted at once; the copy is recorded for this number. */
#define BATCH 128
/* Classes of a confusion matrix. */
#define MAXIMUM_CLASSES 256
/* Examples that a matrix counts, usually and at most. */
#define USUAL_EXAMPLES 2000
#define MAXIMUM_EXAMPLES 1000000
/* Examples that an answer names of each pair (target, prediction), and in all. */
#define MISTAKES 12
#define MAXIMUM_MISTAKES 4000
/* Examples in an answer, the numbers of their inputs in all, and outputs of each. */
#define MAXIMUM_ITEMS 200
#define MAXIMUM_VALUES (1 << 21)
#define WIDEST 1000

/* An example on its way through a pass: its index in the dataset, its row in the current block, and its
 * classes (-1: none). `outputs` points into the pass. */
typedef struct example {
    int64_t index, row, target, prediction;
    const double *outputs;
} example;

/* A pass over a dataset. Exists only within one request. */
typedef struct pass {
    const atomic_bool *ending; /* the server is to stop */
    sgm__web_copy network;
    sgm_program *program;
    sgm_dataset *dataset;
    char *data; /* names of the trainer's datasets, as a JSON array */
    /* Name of the field that the network is trained on. */
    char targets[sizeof((sgm_field *)NULL)->name];
    int64_t width; /* numbers in the output of one example */
    bool classifies;
    sgm_tensor *fed[SGM_MAX_FIELDS]; /* for each input a batch (BATCH, ...), float32 */
    sgm_tensor *made;
    double *outputs;
    const sgm_block *block; /* current block, while it is fetched */
    example pending[BATCH]; /* the first `count` wait for a prediction */
    int64_t count;
} pass;

/* --- a copy of the network, and the data --- */

/* ["training", VALIDATION, ...] */
static sgm_status list_data(pass *own, const sgm_trainer *trainer)
{
    sgm__text text = {0};
    sgm__text_append(&text, "[\"training\"");
    const char *name;
    for (size_t i = 0; (name = sgm__trainer_data_name(trainer, i)) != NULL; i++) {
        sgm__text_append(&text, ",");
        sgm__web_append_text(&text, name);
    }
    sgm__text_append(&text, "]");
    own->data = sgm__text_take(&text);
    return own->data != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* With the trainer's lock. Takes a reference to the dataset of this name; NULL: the first validation set,
 * or the training data without one. */
static sgm_status find_data(pass *own, const sgm__web_trainer *watched, const char *data)
{
    const sgm_trainer *trainer = watched->trainer;
    sgm_iterator *iterator;
    SGM_TRY(list_data(own, trainer));
    if (data == NULL)
        data = sgm__trainer_data_name(trainer, 0);
    if (data == NULL)
        data = "training";
    SGM_TRY(sgm__trainer_find_data(trainer, data, &iterator));
    own->dataset = sgm_dataset_retain(sgm_iterator_dataset(iterator));
    const char *targets = sgm__trainer_look(trainer).target_field;
    snprintf(own->targets, sizeof own->targets, "%s", targets[0] != '\0' ? targets : "targets");
    return SGM_OK;
}

/* Makes the tensors of inputs and outputs, marks the network's first output in the graph and compiles it. */
static sgm_status make_ends(pass *own)
{
    const sgm_recording *recording = &own->network.copied.recording;
    if (recording->input_count == 0 || recording->output_count == 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "this network has no inputs, or no outputs");
    for (size_t i = 0; i < recording->input_count; i++) {
        sgm_type type = sgm_value_type(own->network.copied.graph, recording->inputs[i].value);
        own->fed[i] = sgm_tensor_create(SGM_FLOAT32, &type.shape);
        if (own->fed[i] == NULL)
            return SGM_ERROR_MEMORY;
    }
    const char *name = recording->outputs[0].name;
    sgm_graph_add_output(own->network.copied.graph, name, recording->outputs[0].value);
    own->program = sgm__inference_copy_prepare(&own->network.copied);
    if (own->program == NULL)
        return sgm__last_failure();
    sgm_type type = sgm_program_output_type(own->program, name);
    int64_t elements = sgm_shape_elements(&type.shape);
    own->width = elements / BATCH;
    own->classifies = recording->classifies && type.shape.rank == 2;
    own->made = sgm_tensor_create(type.dtype, &type.shape);
    own->outputs = sgm__calloc((size_t)elements, sizeof *own->outputs);
    return own->made != NULL && own->outputs != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Everything that may fail before the first block. */
static sgm_status prepare(pass *own, sgm__web_trainer *watched, const sgm__http_request *request)
{
    SGM_TRY(sgm__trainer_enter(watched->trainer));
    sgm_status status = find_data(own, watched, sgm__http_query(request, "data", 0));
    sgm__trainer_unlock(watched->trainer);
    SGM_TRY(status);
    SGM_TRY(sgm__web_copy_network(&own->network, watched, BATCH, SGM__WEB_AS_IT_IS));
    return make_ends(own);
}

static void release(pass *own)
{
    for (size_t i = 0; i < SGM_MAX_FIELDS; i++)
        sgm_tensor_free(own->fed[i]);
    sgm_tensor_free(own->made);
    sgm__free(own->outputs);
    sgm__free(own->data);
    sgm_dataset_free(own->dataset);
    sgm__inference_copy_free(&own->network.copied);
    sgm__free(own);
}

/* NULL, with an error: failed. The trainer stays borrowed until the pass is released, because its handler
 * computes. */
static pass *begin(sgm__web_trainer *watched, const sgm__http_request *request)
{
    pass *own = sgm__calloc(1, sizeof *own);
    if (own == NULL)
        return NULL;
    own->ending = request->ending;
    if (prepare(own, watched, request) == SGM_OK)
        return own;
    release(own);
    return NULL;
}

/* Names of the classes, if the dataset has as many as the network; null otherwise. */
static void append_names(sgm__text *text, const pass *own)
{
    const char *const *names = sgm_dataset_get_class_names(own->dataset);
    int64_t classes = own->width > 1 ? own->width : 2, count = 0;
    while (names != NULL && names[count] != NULL)
        count++;
    sgm__text_append(text, ",\"names\":%s", own->classifies && count == classes ? "[" : "null");
    for (int64_t i = 0; own->classifies && count == classes && i < count; i++) {
        sgm__text_append(text, i > 0 ? "," : "");
        sgm__web_append_text(text, names[i]);
        sgm__text_append(text, i == count - 1 ? "]" : "");
    }
}

/* --- examples --- */

/* The values of one example in a field of a block, borrowed from the block; *count: how many. */
static sgm_status values_of(const sgm_block *block, const char *field, int64_t row, const float **values,
                            int64_t *count)
{
    const sgm_tensor *all = sgm_block_field(block, field);
    if (all == NULL)
        return sgm__last_failure();
    *count = sgm_shape_elements(sgm_tensor_shape(all)) / block->count;
    *values = (const float *)sgm_tensor_const_data(all) + row * *count;
    return SGM_OK;
}

/* A single output says whether it is the second class; of several, the largest says which class. */
static int64_t class_of(const double *outputs, int64_t width)
{
    int64_t best = 0;
    if (width == 1)
        return outputs[0] > 0.5;
    for (int64_t i = 1; i < width; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return best;
}

/* The class in an example's targets, which are shares of all classes or the number of one. -1: the network
 * does not classify, or the number is no class. */
static sgm_status target_of(const pass *own, const sgm_block *block, int64_t row, int64_t *target)
{
    const float *values;
    int64_t count, best = 0;
    *target = -1;
    if (!own->classifies)
        return SGM_OK;
    SGM_TRY(values_of(block, own->targets, row, &values, &count));
    if (count != own->width && count != 1)
        return sgm_fail(SGM_ERROR_SHAPE, "targets have %lld numbers, the network gives %lld",
                        (long long)count, (long long)own->width);
    for (int64_t i = 1; i < count; i++)
        if (values[i] > values[best])
            best = i;
    if (own->width == 1)
        *target = values[0] > 0.5F;
    else if (count > 1)
        *target = best;
    else if (values[0] >= 0 && values[0] < (float)own->width)
        *target = (int64_t)values[0];
    return SGM_OK;
}

/* The user of a pass: functions that choose and receive examples. */
typedef struct looker {
    /* Whether this example is to be predicted. */
    bool (*wants)(void *user, int64_t index, int64_t target);
    sgm_status (*take)(void *user, const pass *own, const example *taken);
    /* No example from `index` on is wanted: ends the pass. */
    bool (*has_all)(void *user, int64_t index);
    void *user;
} looker;

/* Copies the pending examples into the input tensors and feeds these to the session. */
static sgm_status feed(const pass *own)
{
    const sgm_recording *recording = &own->network.copied.recording;
    for (size_t i = 0; i < recording->input_count; i++) {
        const float *values;
        float *to = sgm_tensor_data(own->fed[i]);
        int64_t count, wanted = sgm_shape_elements(sgm_tensor_shape(own->fed[i])) / BATCH;
        for (int64_t k = 0; k < own->count; k++) {
            SGM_TRY(values_of(own->block, recording->inputs[i].name, own->pending[k].row, &values, &count));
            if (count != wanted)
                return sgm_fail(SGM_ERROR_SHAPE,
                                "field '%s' has examples of %lld numbers, the network wants %lld",
                                recording->inputs[i].name, (long long)count, (long long)wanted);
            memcpy(to + k * count, values, (size_t)count * sizeof *values);
        }
        SGM_TRY(sgm_session_feed(own->network.copied.session, own->program, recording->inputs[i].name,
                                 own->fed[i]));
    }
    return SGM_OK;
}

/* Predicts the pending examples and hands them on. The batch has a fixed size: rows behind `count` still
 * hold earlier examples, are computed too, and are ignored. */
static sgm_status predict_pending(pass *own, const looker *who)
{
    if (own->count == 0)
        return SGM_OK;
    if (atomic_load(own->ending))
        return sgm_fail(SGM_ERROR_STATE, "the monitor is to stop");
    SGM_TRY(feed(own));
    SGM_TRY(sgm_session_run(own->network.copied.session, own->program));
    SGM_TRY(sgm_session_read(own->network.copied.session, own->program,
                             own->network.copied.recording.outputs[0].name, own->made));
    SGM_TRY(sgm_tensor_read(own->made, own->outputs, (size_t)(own->width * BATCH)));
    for (int64_t i = 0; i < own->count; i++) {
        example *one = &own->pending[i];
        one->outputs = own->outputs + i * own->width;
        one->prediction = own->classifies ? class_of(one->outputs, own->width) : -1;
        SGM_TRY(who->take(who->user, own, one));
    }
    own->count = 0;
    return SGM_OK;
}

/* `first` is the index of the block's first example. Pending examples refer to the block, so the last
 * incomplete batch is predicted before the block is released. */
static sgm_status look_at_block(pass *own, const looker *who, int64_t first)
{
    int64_t target;
    for (int64_t row = 0; row < own->block->count && !who->has_all(who->user, first + row); row++) {
        SGM_TRY(target_of(own, own->block, row, &target));
        if (!who->wants(who->user, first + row, target))
            continue;
        own->pending[own->count++] = (example){.index = first + row, .row = row, .target = target};
        if (own->count == BATCH)
            SGM_TRY(predict_pending(own, who));
    }
    return predict_pending(own, who);
}

/* The pass. Ends when the data end, when the looker has all, or with an error when the server stops. */
static sgm_status look(pass *own, const looker *who)
{
    int64_t first = 0;
    for (int64_t i = 0; !who->has_all(who->user, first); i++) {
        if (atomic_load(own->ending))
            return sgm_fail(SGM_ERROR_STATE, "the monitor is to stop");
        SGM_TRY(sgm_dataset_fetch_block(own->dataset, i, &own->block));
        if (own->block == NULL)
            return SGM_OK;
        sgm_status status = look_at_block(own, who, first);
        first += own->block->count;
        sgm_dataset_release_block(own->dataset, own->block);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* --- which classes are predicted as which --- */

/* A confusion matrix in the making. */
typedef struct confusion {
    int64_t classes, stride, counted, right;
    int64_t *counts;    /* (classes, classes): [target][prediction] */
    sgm__text examples; /* mistakes: [target,prediction,index],... */
    int64_t example_count;
} confusion;

/* Every stride-th example that has a class. */
static bool counts_example(void *user, int64_t index, int64_t target)
{
    const confusion *all = user;
    return index % all->stride == 0 && target >= 0;
}

static bool never(void *user, int64_t index)
{
    (void)user, (void)index;
    return false;
}

/* The first few examples of each mistake are named, so that people can look at them. */
static sgm_status count_example(void *user, const pass *own, const example *taken)
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

static sgm_status give_confusion(const pass *own, confusion *all, int64_t examples, sgm__http_answer *answer)
{
    sgm__text text = {0};
    sgm__text_append(&text, "{\"iteration\":%lld,\"data\":%s", (long long)own->network.iteration, own->data);
    sgm__web_append_member(&text, "classes", (double)all->classes);
    sgm__web_append_member(&text, "examples", (double)examples);
    sgm__web_append_member(&text, "counted", (double)all->counted);
    sgm__web_append_member(&text, "right", (double)all->right);
    append_names(&text, own);
    append_matrix(&text, all);
    sgm__text_append(&text, ",\"examples\":[%s]}", all->examples.data != NULL ? all->examples.data : "");
    return sgm__web_answer(answer, &text);
}

/* The matrix of at most `maximum` examples, taken evenly from all of the data. */
static sgm_status confuse(pass *own, int64_t maximum, sgm__http_answer *answer)
{
    confusion all = {.classes = own->width > 1 ? own->width : 2};
    const looker who = {.wants = counts_example, .take = count_example, .has_all = never, .user = &all};
    int64_t examples;
    if (!own->classifies || all.classes > MAXIMUM_CLASSES)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "there is a matrix for networks that put each example in one of at most %d classes",
                        MAXIMUM_CLASSES);
    SGM_TRY(sgm_dataset_examples(own->dataset, &examples));
    all.stride = (examples + maximum - 1) / maximum;
    all.counts = sgm__calloc((size_t)(all.classes * all.classes), sizeof *all.counts);
    sgm_status status = all.counts != NULL ? look(own, &who) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = give_confusion(own, &all, examples, answer);
    sgm__free(all.counts);
    sgm__text_free(&all.examples);
    return status;
}

sgm_status sgm__inspect_confusion(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    int64_t maximum;
    SGM_TRY(sgm__inspect_count(request, "examples", USUAL_EXAMPLES, 1, MAXIMUM_EXAMPLES, &maximum));
    pass *own = begin(watched, request);
    if (own == NULL)
        return sgm__last_failure();
    sgm_status status = confuse(own, maximum, answer);
    release(own);
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

static bool is_complete(void *user, int64_t index)
{
    const selection *all = user;
    (void)index;
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
static sgm_status append_record(void *user, const pass *own, const example *taken)
{
    selection *all = user;
    sgm__text *text = &all->items;
    const float *values;
    int64_t count;
    SGM_TRY(values_of(own->block, own->network.copied.recording.inputs[0].name, taken->row, &values, &count));
    sgm__text_append(text, text->length > 0 ? ",{\"index\":%lld" : "{\"index\":%lld",
                     (long long)taken->index);
    append_floats(text, "inputs", values, count);
    sgm__web_append_member(text, "target", taken->target >= 0 ? (double)taken->target : NAN);
    sgm__web_append_member(text, "prediction", taken->prediction >= 0 ? (double)taken->prediction : NAN);
    sgm__text_append(text, ",\"outputs\":[");
    for (int64_t i = 0; i < own->width && i < WIDEST; i++) {
        sgm__text_append(text, i > 0 ? "," : "");
        sgm__inspect_append_short(text, taken->outputs[i]);
    }
    sgm__text_append(text, "]");
    if (!own->classifies && values_of(own->block, own->targets, taken->row, &values, &count) == SGM_OK)
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

static sgm_status give_examples(const pass *own, const selection *all, sgm__http_answer *answer)
{
    sgm_shape shape;
    int64_t examples;
    sgm__text text = {0};
    SGM_TRY(sgm_dataset_examples(own->dataset, &examples));
    SGM_TRY(sgm_dataset_field_shape(own->dataset, own->network.copied.recording.inputs[0].name, &shape));
    sgm__text_append(&text, "{\"iteration\":%lld,\"data\":%s,\"shape\":", (long long)own->network.iteration,
                     own->data);
    sgm__inspect_append_shape(&text, &shape, 0);
    sgm__web_append_member(&text, "examples", (double)examples);
    sgm__web_append_member(&text, "next", (double)all->next);
    sgm__web_append_member(&text, "classes",
                           !own->classifies ? NAN
                           : own->width > 1 ? (double)own->width
                                            : 2);
    append_names(&text, own);
    sgm__text_append(&text, ",\"items\":[%s]}", all->items.data != NULL ? all->items.data : "");
    return sgm__web_answer(answer, &text);
}

/* Fewer examples are given if their inputs are so large that an answer would exceed MAXIMUM_VALUES
 * numbers. */
static sgm_status look_up(pass *own, selection *all, sgm__http_answer *answer)
{
    const looker who = {.wants = selects, .take = append_record, .has_all = is_complete, .user = all};
    int64_t elements = sgm_shape_elements(sgm_tensor_shape(own->fed[0])) / BATCH;
    int64_t maximum = elements > 0 && MAXIMUM_VALUES / elements > 0 ? MAXIMUM_VALUES / elements : 1;
    all->count = all->count < maximum ? all->count : maximum;
    all->asked_count = (int64_t)all->asked_count < maximum ? all->asked_count : (size_t)maximum;
    SGM_TRY(look(own, &who));
    return give_examples(own, all, answer);
}

sgm_status sgm__inspect_data(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    selection all = {0};
    SGM_TRY(read_selection(&all, request));
    pass *own = begin(watched, request);
    if (own == NULL)
        return sgm__last_failure();
    sgm_status status = look_up(own, &all, answer);
    sgm__text_free(&all.items);
    release(own);
    return status;
}
