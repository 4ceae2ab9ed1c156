/* Makes the library's parts of a configuration, and checks that data and network fit together.
 *
 * Declared and explained in experiment.h; called by the subcommands. A dataset goes from a source (file)
 * through a reader and an extractor, whose fields are called "inputs" and "targets", to a dataset, of
 * which a part may be taken. Constructors of the library take the object that they wrap, and pass a NULL
 * on as a failure, so chains of them need one check at the end.
 *
 * To compare shapes the network is recorded once for one example (recorded_network): shapes of inputs and
 * targets are then those of the graph's values without the batch axis. */
#include "config/experiment.h"
#include "config/arguments.h"
#include "config/files.h"
#include "data/read/source.h"
#include "network/rerecord.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Between an archive and the name of an array in it. */
#define NPZ_ARRAY ".npz:"

bool is_numpy(const char *path)
{
    return ends_with(path, ".npy") || ends_with(path, ".npz") || strstr(path, NPZ_ARRAY) != NULL;
}

/* The file's name ends before the ':' of ".npz:". */
sgm_reader *numpy_reader(const char *path)
{
    const char *name = strstr(path, NPZ_ARRAY);
    if (name == NULL)
        return sgm_npy_reader(sgm__path_source(path), NULL);
    name += strlen(NPZ_ARRAY);
    char *file = sgm__strndup(path, (size_t)(name - 1 - path));
    sgm_reader *reader = file != NULL ? sgm_npy_reader(sgm__path_source(file), name) : NULL;
    sgm__free(file);
    return reader;
}

sgm_source *file_source(const char *path)
{
    return sgm__unpacked_path_source(path);
}

/* The array in a file as the one field `field`. What is not NumPy's is taken as idx (MNIST's format),
 * possibly compressed. */
static sgm_extractor *array_data(const char *path, const char *field)
{
    if (is_numpy(path))
        return sgm_array_extractor(numpy_reader(path), .regions = {{.field = field}});
    return sgm_array_extractor(sgm_idx_reader(file_source(path)), .regions = {{.field = field}});
}

bool experiment_range(const data_config *data, double *minimum, double *maximum)
{
    const text_list *range = &data->input_range;
    return range->count == 2 && sgm__parse_double(range->items[0], minimum) &&
           sgm__parse_double(range->items[1], maximum);
}

/* The extractor for a table, for arrays or for files. Targets that are class numbers become one-hot
 * vectors, and inputs are scaled from input_range to 0..1. */
sgm_extractor *experiment_extractor(const data_group *group, const data_config *data)
{
    sgm_extractor *extractor;
    if (data_config_is_named(data))
        return named_table_extractor(group, data);
    if (data_config_files(data) != NULL)
        return files_extractor(group, data, NULL);
    if (data->csv != NULL) {
        extractor = table_extractor(data);
    } else {
        extractor = array_data(data->inputs, "inputs");
        if (data->targets != NULL)
            extractor = sgm_merge_extractor(extractor, array_data(data->targets, "targets"));
        for (size_t i = 0; i < data->arrays.count; i++)
            extractor =
                sgm_merge_extractor(extractor, array_data(data->arrays.values[i], data->arrays.keys[i]));
    }
    int32_t classes =
        data->classes != OPTION_UNSET ? (int32_t)data->classes : (int32_t)data->class_names.count;
    if (classes > 0)
        extractor = sgm_one_hot(extractor, .field = "targets", .classes = classes);
    double minimum, maximum;
    if (experiment_range(data, &minimum, &maximum))
        extractor = sgm_normalise(extractor, .field = "inputs", .input_min = minimum, .input_max = maximum);
    return extractor;
}

/* Gives the dataset names of its classes, which monitors and reports show, or its pipeline, which has them.
 * Takes the dataset; NULL on failure. */
static sgm_dataset *name_classes(sgm_dataset *dataset, const data_group *group, const data_config *data)
{
    bool has_pipeline = data_config_has_pipeline(data);
    if (dataset == NULL || (!has_pipeline && data->class_names.count == 0))
        return dataset;
    if (has_pipeline && sgm_dataset_set_pipeline(dataset, group->pipeline) == SGM_OK)
        return dataset;
    if (has_pipeline) {
        sgm_dataset_free(dataset);
        return NULL;
    }
    const char **names = table_class_names(data);
    sgm_status status = names != NULL ? sgm_dataset_set_class_names(dataset, names) : SGM_ERROR_MEMORY;
    sgm__free(names);
    if (status == SGM_OK)
        return dataset;
    sgm_dataset_free(dataset);
    return NULL;
}

sgm_tokenizer *experiment_tokenizer(const data_config *data)
{
    return data->tokenizer != NULL ? sgm_tokenizer_load(data->tokenizer) : sgm_byte_tokenizer();
}

/* Windows of a text's tokens. The dataset keeps the tokens, not the text or the tokenizer. 0 leaves a
 * value to the library. */
static sgm_dataset *text_data(const data_config *data, const char *name)
{
    char *text;
    size_t size;
    sgm_tokenizer *tokenizer = experiment_tokenizer(data);
    if (tokenizer == NULL || sgm__file_read(data->text, MAXIMUM_OF_TEXT, &text, &size) != SGM_OK) {
        sgm_tokenizer_free(tokenizer);
        return NULL;
    }
    int64_t window = data->window != OPTION_UNSET ? data->window : 0;
    int64_t step = data->step != OPTION_UNSET ? data->step : 0;
    int64_t streams = data->streams != OPTION_UNSET ? data->streams : 0;
    sgm_dataset *dataset = sgm_token_dataset(name, tokenizer, text, size,
                                             SGM_TOKENS(.window = window, .step = step, .streams = streams));
    if (dataset == NULL)
        sgm__fail_within("%s", data->text);
    sgm__free(text);
    sgm_tokenizer_free(tokenizer);
    return dataset;
}

/* The part of the split training data that `data` is. Of files only its own are read. */
static sgm_extractor *part_extractor(const data_group *group, const data_config *data)
{
    const data_config *training = &group->training;
    if (data_config_files(training) != NULL)
        return files_extractor(group, training, data);
    return split_extractor(group, data, experiment_extractor(group, training));
}

/* A shuffled file is one block (block_size -1), so that its order is of all examples and not within
 * blocks. begin and share apply afterwards. */
sgm_dataset *experiment_dataset(const data_group *group, const data_config *data, const char *name,
                                uint64_t seed)
{
    const data_config *source = data;
    if (!data_group_has(group, data)) {
        sgm_fail(SGM_ERROR_NOT_FOUND, "there is no %s data; name some as data.%s", name, name);
        return NULL;
    }
    sgm_dataset *dataset = NULL;
    bool is_part = group->parts != NULL && (data == &group->training || data_config_is_empty(data));
    if (is_part)
        source = &group->training;
    if (data->dataset != NULL) {
        dataset = sgm_dataset_open(data->dataset);
    } else if (data->text != NULL) {
        dataset = text_data(data, name);
    } else if (data->chats != NULL) {
        dataset = chats_dataset(data, name);
    } else if (data_config_has_texts(data)) {
        dataset = text_dataset(group, data, name);
    } else {
        sgm_extractor *extractor =
            is_part ? part_extractor(group, data) : experiment_extractor(group, source);
        if (extractor != NULL && source->shuffled) /* in one block, so that the order is of everything */
            extractor = sgm_shuffle(extractor, .seed = seed);
        if (extractor != NULL)
            dataset = extracted_dataset(group, source, extractor, name);
        dataset = name_classes(dataset, group, source);
    }
    if (dataset == NULL || (isnan(data->begin) && isnan(data->share)))
        return dataset;
    double begin = isnan(data->begin) ? 0 : data->begin;
    sgm_dataset *part =
        sgm_dataset_split_examples(dataset, begin, isnan(data->share) ? 1 - begin : data->share);
    sgm_dataset_free(dataset);
    return part;
}

sgm_env *experiment_env(const config *c)
{
    return sgm_env_create(c->name, .seed = (uint64_t)c->seed, .handler = c->handler,
                          .threads = c->threads != OPTION_UNSET ? (int)c->threads : 0,
                          .precision = config_precision(c), .memory = c->memory);
}

/* The library takes 0 for its default. */
static int64_t given_or_0(int64_t value)
{
    return value != OPTION_UNSET ? value : 0;
}

/* The type none lets an argument take away the operator that a file names. */
bool experiment_has_operator(const operator_config *o)
{
    return o->type != NULL && strcmp(o->type, "none") != 0;
}

/* The operator takes options.reducer, unless adding to the reducer fails before. */
sgm_operator *experiment_operator(const operator_config *o)
{
    bool gradients = strcmp(o->type, "gradients") == 0, ranks = strcmp(o->type, "mpi") == 0;
    sgm_operator_options options = {.struct_size = sizeof options,
                                    .workers = (int32_t)given_or_0(o->workers),
                                    .share = isnan(o->share) ? 0 : o->share,
                                    .handlers = o->handlers,
                                    .threads = (int32_t)given_or_0(o->threads),
                                    .every = given_or_0(o->every),
                                    .timeout = isnan(o->timeout) ? 0 : o->timeout,
                                    .check_every = given_or_0(o->check_every),
                                    .bucket = given_or_0(o->bucket),
                                    .bfloat16 = o->bfloat16,
                                    .sharded = o->sharded};
    /* Reducers of single parameters are exceptions to a reducer of all, which is the average if none is
     * given. */
    if (o->reducer != NULL || o->reducers.count > 0)
        options.reducer = o->reducer != NULL ? sgm_reducer_parse(o->reducer) : sgm_average_reducer();
    for (size_t i = 0; i < o->reducers.count; i++)
        if (sgm_reducer_add(options.reducer, o->reducers.keys[i], sgm_reducer_parse(o->reducers.values[i])) !=
            SGM_OK) {
            sgm_reducer_free(options.reducer);
            return NULL;
        }
    return ranks       ? sgm_mpi_operator_with(&options)
           : gradients ? sgm_gradient_operator_with(&options)
                       : sgm_parameter_operator_with(&options);
}

bool network_has_cost(const char *notation)
{
    sgm_network *network = sgm_network_parse(notation);
    bool has = network == NULL; /* the trainer tells what is wrong with it */
    for (size_t i = 0; network != NULL && i < sgm_network_layers(network); i++)
        has |= (sgm_network_layer_type(network, i)->flags & SGM_LAYER_COST) != 0;
    sgm_network_free(network);
    return has;
}

/* The network, and what adapts it. */
static sgm_status set_network(sgm_trainer *trainer, const config *c)
{
    sgm_status status = sgm_trainer_set_network(trainer, c->network);
    for (size_t i = 0; i < c->adapters.count && status == SGM_OK; i++)
        status = sgm_trainer_adapt(trainer, sgm_layer_parse(c->adapters.items[i]));
    return status;
}

/* A network that only gives vectors has no use for an optimiser, which would refuse it; others may have
 * averages of the parameters, which belong to the optimiser, as it says. Without them it is left out unless
 * updates are wanted: what it remembers would be memory that nothing uses. */
sgm_status experiment_fill_inference(sgm_trainer *trainer, const config *c, bool updates)
{
    SGM_TRY(set_network(trainer, c));
    return (updates || c->optimiser.average > 0) && network_has_cost(c->network)
               ? sgm_trainer_set_optimiser(trainer, config_optimiser(&c->optimiser))
               : SGM_OK;
}

/* In their order; an exception of nothing needs no other call. */
static sgm_status freeze(sgm_trainer *trainer, const text_list *patterns)
{
    for (size_t i = 0; i < patterns->count; i++) {
        const char *item = patterns->items[i];
        sgm_status status = item[0] == TRAINED_MARK ? sgm_trainer_unfreeze(trainer, item + 1)
                                                    : sgm_trainer_freeze(trainer, item);
        if (status != SGM_OK && status != SGM_ERROR_NOT_FOUND)
            return status;
    }
    sgm_clear_error();
    return SGM_OK;
}

/* The trainer keeps its first failure, so one look at its status at the end suffices; it also takes what
 * the constructors make, NULL included. */
sgm_status experiment_fill(sgm_trainer *trainer, const config *c)
{
    set_network(trainer, c);
    sgm_trainer_set_optimiser(trainer, config_optimiser(&c->optimiser));
    for (size_t i = 0; i < c->initialisers.count; i++)
        sgm_trainer_add_initialiser(trainer, c->initialisers.keys[i],
                                    sgm_initialiser_parse(c->initialisers.values[i]));
    for (size_t i = 0; i < c->modifiers.count; i++)
        sgm_trainer_add_modifier(trainer, c->modifiers.keys[i], sgm_modifier_parse(c->modifiers.values[i]));
    SGM_TRY(freeze(trainer, &c->freeze));
    for (size_t i = 0; i < c->approve.count; i++)
        SGM_TRY(sgm_trainer_require_approval(trainer, c->approve.items[i]));
    if (c->allow_commands)
        sgm_trainer_allow_commands(trainer, c->command_seconds);
    for (size_t i = 0; i < c->webhooks.count; i++)
        SGM_TRY(sgm_trainer_allow_webhook(trainer, c->webhooks.items[i]));
    for (size_t i = 0; i < c->rules.count; i++)
        sgm_trainer_add_hook(trainer, sgm_rule_hook(c->rules.items[i]));
    for (size_t i = 0; i < c->hooks.count; i++)
        sgm_trainer_add_hook(trainer, sgm_hook_parse(c->hooks.items[i]));
    if (experiment_has_operator(&c->operator))
        sgm_trainer_set_operator(trainer, experiment_operator(&c->operator));
    return sgm_trainer_status(trainer);
}

sgm_trainer *experiment_trainer(sgm_env *env, const config *c)
{
    sgm_trainer *trainer = sgm_trainer_create(env, c->name);
    return trainer != NULL && experiment_fill(trainer, c) == SGM_OK ? trainer : NULL;
}

/* The seed of the run is the seed of the order of examples. */
sgm_status experiment_feed(sgm_trainer *trainer, const config *c, sgm_dataset *training,
                           sgm_dataset *validation)
{
    SGM_TRY(sgm_trainer_set_data(
        trainer, sgm_minibatches(training, .size = c->data.batch, .seed = (uint64_t)c->seed,
                                 .no_shuffle = !c->data.shuffle, .drop_last = c->data.drop_last,
                                 .augment = c->data.augment, .prefetch_threads = c->data.prefetch_threads)));
    return validation != NULL
               ? sgm_trainer_add_data(trainer, "validation", experiment_measuring(validation, c))
               : SGM_OK;
}

/* Measuring needs no gradients, so minibatches are larger than a small training batch; but not where examples
 * are compared with all others of the minibatch, whose loss is one of its size. */
sgm_iterator *experiment_measuring(sgm_dataset *dataset, const config *c)
{
    const bool compares = sgm_dataset_get_group(dataset) > 1;
    return sgm_minibatches(dataset, .size = c->data.batch > 256 || compares ? c->data.batch : 256,
                           .no_shuffle = true);
}

/* A network recorded for one example, with its costs, only to look at shapes and fields. */
typedef struct recorded_network {
    sgm_network *network;
    sgm_graph *graph;
    sgm_recording recording; /* values of inputs and targets in `graph` */
} recorded_network;

static void recorded_close(recorded_network *r)
{
    sgm_graph_free(r->graph);
    sgm_network_free(r->network);
}

/* On failure nothing is left to close. */
static sgm_status recorded_open(recorded_network *r, const char *notation)
{
    sgm_recording_options options = {
        .struct_size = sizeof options, .batch = 1, .dtype = SGM_FLOAT32, .costs = true};
    r->network = sgm_network_parse(notation);
    r->graph = r->network != NULL ? sgm_graph_create() : NULL;
    sgm_status status = r->graph != NULL ? sgm_network_record(r->network, r->graph, &options, &r->recording)
                                         : sgm__last_failure();
    if (status != SGM_OK)
        recorded_close(r);
    return status;
}

/* The shape of a recorded value without its first axis, the batch. */
static sgm_shape example_shape(const recorded_network *r, const sgm_named_value *value)
{
    sgm_shape whole = sgm_value_type(r->graph, value->value).shape;
    return sgm_shape_create(whole.rank - 1, whole.dims + 1);
}

/* Whether a field's examples fit. Rows of a table have one axis; they get their form from the network if
 * they have the right number of elements. */
static bool is_fit(const sgm_shape *there, const sgm_shape *wanted)
{
    return sgm_shape_equal(there, wanted) ||
           (there->rank == 1 && there->dims[0] == sgm_shape_elements(wanted));
}

/* Checks each field that the network wants. */
static sgm_status check_fields(const recorded_network *r, const sgm_named_value *wanted, size_t count,
                               sgm_dataset *dataset)
{
    for (size_t i = 0; i < count; i++) {
        sgm_shape shape = example_shape(r, &wanted[i]), there;
        SGM_TRY(sgm_dataset_field_shape(dataset, wanted[i].name, &there));
        if (!is_fit(&there, &shape))
            return sgm__network_shape_mismatch(r->network, r->graph, wanted[i].name, &there, &shape);
    }
    return SGM_OK;
}

/* Compares the tokenizer with the layers that read tokens or predict them. More tokens than a layer knows
 * are an error, except for bytes (`file` NULL), of which a text may use a part; other differences are a
 * warning, which is printed once. */
static sgm_status check_tokens(const recorded_network *r, const sgm_tokenizer *tokenizer, const char *file)
{
    const char *field, *layer, *name = file != NULL ? file : "of bytes";
    int64_t maximum, tokens = sgm_tokenizer_vocabulary(tokenizer);
    for (size_t i = 0; sgm__network_index_at(r->network, i, &field, &layer, &maximum); i++) {
        if (strcmp(field, "inputs") != 0 && strcmp(field, "targets") != 0)
            continue;
        if (tokens > maximum + 1 && file != NULL)
            return sgm_fail(
                SGM_ERROR_ARGUMENT,
                "the tokenizer %s has %lld tokens, but layer '%s' knows %lld: both must be of one "
                "size",
                name, (long long)tokens, layer, (long long)maximum + 1);
        if (tokens == maximum + 1)
            continue;
        complain("warning: the tokenizer %s has %lld tokens, but layer '%s' knows %lld\n", name,
                 (long long)tokens, layer, (long long)maximum + 1);
        break;
    }
    return SGM_OK;
}

sgm_status experiment_check_tokens(const char *network, const sgm_tokenizer *tokenizer, const char *file)
{
    recorded_network r;
    SGM_TRY(recorded_open(&r, network));
    sgm_status status = check_tokens(&r, tokenizer, file);
    recorded_close(&r);
    return status;
}

/* Loads the tokenizer that the data name, and checks it. */
static sgm_status check_text(const recorded_network *r, const data_config *data)
{
    sgm_tokenizer *tokenizer = experiment_tokenizer(data);
    if (tokenizer == NULL)
        return sgm__last_failure();
    sgm_status status = check_tokens(r, tokenizer, data->tokenizer);
    sgm_tokenizer_free(tokenizer);
    return status;
}

/* Without examples a loss is no number, and nothing would say so. */
static sgm_status check_examples(sgm_dataset *dataset)
{
    const sgm_block *block = NULL;
    SGM_TRY(sgm_dataset_fetch_block(dataset, 0, &block));
    int64_t count = block != NULL ? block->count : 0;
    if (block != NULL)
        sgm_dataset_release_block(dataset, block);
    return count > 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "there are no examples; where data.split, begin or share makes this part, give "
                          "it a larger share, or more data");
}

sgm_status experiment_check_network(const char *network)
{
    recorded_network r;
    SGM_TRY(recorded_open(&r, network));
    recorded_close(&r);
    return SGM_OK;
}

sgm_status experiment_check_data(const char *network, const data_config *data, sgm_dataset *dataset)
{
    SGM_TRY(check_examples(dataset));
    if (data->text == NULL)
        return SGM_OK;
    recorded_network r;
    SGM_TRY(recorded_open(&r, network));
    sgm_status status = check_text(&r, data);
    recorded_close(&r);
    return status;
}

/* Examples that belong together must be as many in the data as the cost takes for such: the sizes of
 * minibatches would not tell. */
static sgm_status check_group(const recorded_network *r, sgm_dataset *dataset)
{
    const int64_t group = sgm_dataset_get_group(dataset);
    for (size_t i = 0; i < sgm_network_layers(r->network) && group > 1; i++) {
        sgm_content taken = {0};
        if (strcmp(sgm_network_layer_type(r->network, i)->name, "info_nce") != 0)
            continue;
        SGM_TRY(sgm_network_get_argument(r->network, i, "group", &taken));
        if (taken.as.integer != group)
            return sgm_fail(SGM_ERROR_SHAPE,
                            "%lld texts of the data in a row belong together, and the cost takes %lld: "
                            "info_nce(group=%lld), or other data",
                            (long long)group, (long long)taken.as.integer, (long long)group);
    }
    return SGM_OK;
}

/* The recording has inputs and targets in separate lists; each of their fields must be in the dataset. */
sgm_status experiment_check_fit(const char *network, sgm_dataset *dataset)
{
    recorded_network r;
    SGM_TRY(recorded_open(&r, network));
    sgm_status status = check_fields(&r, r.recording.inputs, r.recording.input_count, dataset);
    if (status == SGM_OK)
        status = check_fields(&r, r.recording.targets, r.recording.target_count, dataset);
    if (status == SGM_OK)
        status = check_group(&r, dataset);
    recorded_close(&r);
    return status;
}

sgm_status experiment_check(const char *network, sgm_dataset *dataset)
{
    SGM_TRY(experiment_check_fit(network, dataset));
    return check_examples(dataset);
}

sgm_extractor *experiment_archive(const char *network, const char *path)
{
    recorded_network r;
    sgm_extractor *all = NULL;
    if (recorded_open(&r, network) != SGM_OK)
        return NULL;
    for (size_t i = 0; i < r.recording.input_count; i++) {
        const char *field = r.recording.inputs[i].name;
        char *array = sgm__format("%s:%s", path, field);
        sgm_extractor *next = array != NULL ? array_data(array, field) : NULL;
        all = i == 0 ? next : sgm_merge_extractor(all, next);
        sgm__free(array);
    }
    recorded_close(&r);
    return all;
}

sgm_status experiment_describe(const char *network, sgm__signature *signature)
{
    recorded_network r;
    SGM_TRY(recorded_open(&r, network));
    sgm_status status = sgm__signature_find(r.network, r.graph, &r.recording, signature);
    recorded_close(&r);
    return status;
}
