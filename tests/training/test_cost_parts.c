/* Every cost, and several of them, in parts: workers and ranks do what one worker does, whatever a cost is a
 * mean over. */
#include "ranks_test.h"
#include "test.h"

#include "network/network_internal.h"
#include "parallel/collective/ranks.h"
#include "train/train.h"
#include "trainer/trainer_struct.h"
#include <sigma/sigma.h>

#define EXAMPLES 11
#define STEPS 6
#define FLAT "input(4) + dense(5, tanh) + dense(3) + "
#define SERIES                                                                                               \
    "input(6, 4, lengths=steps, name=series) + dense(5, tanh, time_distributed) + dense(3, "                 \
    "time_distributed) + "
#define WHOLE "input(6, 4, name=series) + dense(5, tanh, time_distributed) + dense(3, time_distributed) + "
#define IMAGES "input(6, 4, name=series) + permute(2, 1) + convolution_1d(5, 3, no_bias) + "

typedef struct problem {
    const char *network;
    int64_t batch;                     /* 0: minibatches of 4, 4 and 3 */
    sgm_optimiser *(*optimiser)(void); /* NULL: descent */
} problem;

static sgm_optimiser *descent(void)
{
    return sgm_gradient_descent(.learning_rate = 0.05);
}

static sgm_optimiser *everything(void)
{
    return sgm_adam(.learning_rate = 0.01, .clip_norm = 0.2, .average = 0.9, .accumulate = 2,
                    .weight_decay = 0.01);
}

static const problem problems[] = {
    {.network = FLAT "squared_difference(targets=numbers)"},
    {.network = FLAT "mean_squared(targets=numbers)"},
    {.network = FLAT "root_mean_squared(targets=numbers)"},
    {.network = FLAT "root_mean_squared(targets=numbers, weights=weight)"},
    {.network = FLAT "mean_absolute(targets=numbers)"},
    {.network = FLAT "huber(targets=numbers, delta=0.5)"},
    {.network = FLAT "cosine_distance(targets=numbers)"},
    {.network = FLAT "dense(6) + gaussian_nll(targets=numbers)"},
    {.network = FLAT "mean_squared(targets=numbers, weights=weight)"},
    {.network = FLAT "squared_difference(targets=numbers, weights=weight)"},
    {.network = SERIES "softmax_cross_entropy(targets=class_steps, weights=weight)"},
    {.network = FLAT "softmax_cross_entropy(targets=shares)"},
    {.network = FLAT
     "softmax_cross_entropy(targets=class, classes, class_weights=(1, 2.5, 0.5), label_smoothing=0.1)"},
    {.network = FLAT "softmax_cross_entropy(targets=class, classes, gamma=2)"},
    {.network = FLAT "activation(softmax) + negative_log_likelihood(targets=class, classes)"},
    {.network = FLAT "kl_divergence(targets=shares)"},
    {.network = FLAT "binary_cross_entropy(targets=bits)"},
    {.network = FLAT "focal(targets=bits)"},
    {.network = FLAT "hinge(targets=bits)"},
    {.network = FLAT "multi_class_hinge(targets=class, classes, squared)"},
    {.network = "input(4) + dense(6, tanh) + reshape(3, 2) + triplet(margin=0.5)"},
    {.network = SERIES "squared_difference(targets=number_steps)"},
    {.network = SERIES "mean_squared(targets=number_steps)"},
    {.network = SERIES "root_mean_squared(targets=number_steps)"},
    {.network = SERIES "root_mean_squared(targets=number_steps, weights=weight)"},
    {.network = SERIES "mean_absolute(targets=number_steps)"},
    {.network = SERIES "huber(targets=number_steps, delta=0.5)"},
    {.network = SERIES "cosine_distance(targets=number_steps)"},
    {.network = SERIES "softmax_cross_entropy(targets=class_steps, class_weights=(1, 2.5, 0.5))"},
    {.network = SERIES "softmax_cross_entropy(targets=share_steps, shares)"},
    {.network = SERIES "activation(softmax) + negative_log_likelihood(targets=class_steps)"},
    {.network = SERIES "kl_divergence(targets=share_steps)"},
    {.network = SERIES "binary_cross_entropy(targets=bit_steps)"},
    {.network = SERIES "focal(targets=bit_steps)"},
    {.network = SERIES "hinge(targets=bit_steps)"},
    {.network = SERIES "multi_class_hinge(targets=class_steps)"},
    {.network = SERIES "ctc(2, targets=labels, blank=2, skip)"},
    {.network = "input(6, 4, lengths=steps, name=series) + dense(1, time_distributed) + "
                "binary_cross_entropy(targets=class_steps)"},
    {.network = WHOLE "squared_difference(targets=number_steps, importance=0.01)"},
    {.network = WHOLE "softmax_cross_entropy(targets=class_steps)"},
    {.network = WHOLE "ctc(2, targets=labels, blank=2, skip)"},
    /* One more example than workers, one example alone, and each optimiser's extras. */
    {.network = FLAT "squared_difference(targets=numbers)", .batch = 5},
    {.network = SERIES "softmax_cross_entropy(targets=class_steps)", .batch = 5},
    {.network = SERIES "softmax_cross_entropy(targets=class_steps)", .batch = 1},
    {.network = FLAT "squared_difference(targets=numbers)", .optimiser = everything},
    {.network = SERIES "mean_squared(targets=number_steps, importance=0.3)", .optimiser = everything},
    /* Several costs that count differently. */
    {.network =
         "h = input(6, 4, lengths=steps, name=series) + dense(5, tanh, time_distributed); "
         "h + dense(3, time_distributed) + softmax_cross_entropy(targets=class_steps, importance=0.5); "
         "h + dense(3, time_distributed) + squared_difference(targets=number_steps, importance=0.01); "
         "h + dense(3, time_distributed) + binary_cross_entropy(targets=bit_steps); "
         "h + global_average_pooling(steps) + dense(3) + mean_squared(targets=numbers, importance=2)"},
    {.network = "h = input(4) + dense(5, tanh); h + dense(3) + squared_difference(targets=numbers, "
                "importance=0.1); "
                "h + dense(3) + softmax_cross_entropy(targets=shares)",
     .optimiser = everything},
    /* Statistics over the minibatch. */
    {.network = "input(4) + dense(5, no_bias) + batch_norm + activation(tanh) + dense(3) + "
                "squared_difference(targets=numbers)"},
    {.network =
         "input(4) + dense(5, no_bias) + batch_norm + activation(tanh) + dense(5, no_bias) + batch_norm + "
         "activation(tanh) + dense(3) + "
         "softmax_cross_entropy(targets=shares)",
     .optimiser = everything},
    {.network = IMAGES "batch_norm + activation(tanh) + flatten + dense(3) + mean_squared(targets=numbers)",
     .batch = 5},
    {.network =
         "input(6, 4, lengths=steps, name=series) + dense(5, time_distributed, no_bias) + batch_norm + "
         "dense(3, time_distributed) + "
         "softmax_cross_entropy(targets=class_steps)"},
    /* Layers from outside: statistics, and a mean over something of its own. */
    {.network = "input(4) + dense(5, tanh) + centred + dense(3) + weighted(targets=numbers)"},
    {.network = "input(4) + dense(5, tanh) + dense(3) + trusted(targets=numbers)"},
};
#define PROBLEMS (sizeof problems / sizeof *problems)

/* --- layers from outside --- */

/* x less its mean over the minibatch. */
static sgm_value forward_centred(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                 int32_t count)
{
    (void)count;
    sgm_value mean = sgm_reduce_mean(graph, inputs[0], (const int32_t[]){0}, 1, true);
    if (sgm_layer_is_part(call))
        mean = sgm_layer_all_reduce(call, graph, sgm_multiply(graph, mean, sgm_layer_share(call, graph)));
    return sgm_subtract(graph, inputs[0], mean);
}

/* The mean of squared differences, each with a weight of its own. */
static sgm_value weigh(sgm_layer_call *call, sgm_graph *graph, sgm_value x, sgm_value targets,
                       sgm_value weights)
{
    sgm_value squares = sgm_square(graph, sgm_subtract(graph, x, targets)), all = sgm_sum(graph, weights);
    sgm_layer_set_count(call, all);
    return sgm_divide(graph, sgm_sum(graph, sgm_multiply(graph, squares, weights)), all);
}

static sgm_value targets_of(sgm_layer_call *call, sgm_graph *graph)
{
    sgm_shape example = sgm_shape_of(3);
    return sgm_layer_field(call, graph, sgm_layer_text(call, "targets"), &example);
}

/* By the targets' own sizes. */
static sgm_value forward_weighted(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                  int32_t count)
{
    (void)count;
    sgm_value targets = targets_of(call, graph);
    return weigh(call, graph, inputs[0], targets, sgm_absolute(graph, targets));
}

/* By weights that are learnt: what is counted has gradients, too. */
static sgm_value forward_trusted(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                 int32_t count)
{
    (void)count;
    return weigh(call, graph, inputs[0], targets_of(call, graph), sgm_exp(graph, inputs[0]));
}

static const sgm_option weighted_arguments[] = {{.name = "targets", .kind = SGM_KIND_TEXT}};
static const sgm_layer_type centred = {.api = SGM_LAYER_API,
                                       .name = "centred",
                                       .doc = "x less its mean over the minibatch",
                                       .min_inputs = 1,
                                       .max_inputs = 1,
                                       .forward = forward_centred};
static const sgm_layer_type weighted = {.api = SGM_LAYER_API,
                                        .flags = SGM_LAYER_COST,
                                        .name = "weighted",
                                        .doc = "a weighted mean of squared differences",
                                        .arguments = weighted_arguments,
                                        .argument_count = 1,
                                        .min_inputs = 1,
                                        .max_inputs = 1,
                                        .forward = forward_weighted};
static const sgm_layer_type trusted = {.api = SGM_LAYER_API,
                                       .flags = SGM_LAYER_COST,
                                       .name = "trusted",
                                       .doc = "a mean of squared differences with weights that are learnt",
                                       .arguments = weighted_arguments,
                                       .argument_count = 1,
                                       .min_inputs = 1,
                                       .max_inputs = 1,
                                       .forward = forward_trusted};

__attribute__((constructor)) static void register_layers(void)
{
    sgm_register_layer(&centred);
    sgm_register_layer(&weighted);
    sgm_register_layer(&trusted);
}

/* --- data --- */

static double number(int64_t i)
{
    return 0.1 * (double)(i / 3) + sin(1.7 * (double)i + 0.3); /* halves of a minibatch are not alike */
}

static double class(int64_t i)
{
    return (double)(i * 7 % 5 % 3);
}

static double share(int64_t i)
{
    static const double shares[] = {0.2, 0.5, 0.3, 0.7, 0.1, 0.2};
    return shares[i % 6];
}

static double bit(int64_t i)
{
    return (double)(i * 11 % 7 % 2);
}

static double step(int64_t i)
{
    return (double)(1 + (i * i + 4) % STEPS);
}

static double label(int64_t i)
{
    return (double)(i * 3 % 4 % 2);
}

/* A field of the data, with the shape of an example. */
typedef struct field {
    const char *name;
    sgm_shape example;
    double (*element)(int64_t);
} field;

static const field fields[] = {
    {"inputs", {.rank = 1, .dims = {4}}, number},
    {"series", {.rank = 2, .dims = {STEPS, 4}}, number},
    {"steps", {.rank = 0}, step},
    {"numbers", {.rank = 1, .dims = {3}}, number},
    {"class", {.rank = 0}, class},
    {"shares", {.rank = 1, .dims = {3}}, share},
    {"bits", {.rank = 1, .dims = {3}}, bit},
    {"weight", {.rank = 1, .dims = {1}}, share},
    {"number_steps", {.rank = 2, .dims = {STEPS, 3}}, number},
    {"labels", {.rank = 1, .dims = {2}}, label},
    {"class_steps", {.rank = 1, .dims = {STEPS}}, class},
    {"share_steps", {.rank = 2, .dims = {STEPS, 3}}, share},
    {"bit_steps", {.rank = 2, .dims = {STEPS, 3}}, bit},
};

static sgm_tensor *fill(const field *wanted)
{
    double values[EXAMPLES * STEPS * 4];
    sgm_shape shape = {.rank = wanted->example.rank + 1, .dims = {EXAMPLES}};
    for (int32_t i = 0; i < wanted->example.rank; i++)
        shape.dims[i + 1] = wanted->example.dims[i];
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, &shape);
    CHECK_OK(tensor);
    for (int64_t i = 0; i < sgm_shape_elements(&shape); i++)
        values[i] = wanted->element(i);
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)sgm_shape_elements(&shape)));
    return tensor;
}

/* With the fields that the network's text names. */
static sgm_dataset *make_data(const char *network)
{
    const char *names[SGM_MAX_FIELDS];
    sgm_tensor *tensors[SGM_MAX_FIELDS];
    size_t count = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strstr(network, i == 0 ? "input(4)" : fields[i].name) == NULL)
            continue;
        CHECK(count < SGM_MAX_FIELDS);
        names[count] = fields[i].name;
        tensors[count++] = fill(&fields[i]);
    }
    sgm_dataset *data = sgm_dataset_create_from("parts", names, tensors, count);
    CHECK_OK(data);
    for (size_t i = 0; i < count; i++)
        sgm_tensor_free(tensors[i]);
    return data;
}

/* --- training --- */

typedef struct training {
    sgm_handler *handler;
    sgm_trainer *trainer;
} training;

static training make(const problem *p, const char *handler)
{
    training made = {.handler = sgm_handler_create(handler, .threads = 1)};
    CHECK_OK(made.handler);
    sgm__trainer_settings settings = {.seed = 7, .handler = made.handler, .precision = SGM_FLOAT64};
    made.trainer = sgm__trainer_create("parts", &settings);
    CHECK_OK(made.trainer);
    sgm_dataset *data = make_data(p->network);
    CHECK_OK(sgm_trainer_set_network(made.trainer, p->network));
    CHECK_OK(sgm_trainer_set_data(
        made.trainer, sgm_minibatches(data, .size = p->batch > 0 ? p->batch : 4, .no_shuffle = true)));
    sgm_dataset_free(data);
    CHECK_OK(sgm_trainer_set_optimiser(made.trainer, p->optimiser != NULL ? p->optimiser() : descent()));
    return made;
}

static void free_training(training made)
{
    sgm__trainer_free(made.trainer);
    sgm_handler_free(made.handler);
}

/* What is told after each iteration: the epoch's loss and accuracy so far, and each cost. */
typedef struct told {
    double numbers[512];
    size_t count;
    sgm_trainer *trainer;
} told;

static void tell(told *all, double value)
{
    CHECK(all->count < 512);
    all->numbers[all->count++] = isnan(value) ? -1 : value;
}

static bool listen(void *user, const sgm_training_progress *progress)
{
    told *all = user;
    if (progress->kind != SGM_PROGRESS_ITERATION)
        return true;
    tell(all, progress->training.loss);
    tell(all, progress->training.accuracy);
    tell(all, (double)progress->training.examples);
    tell(all, all->trainer->progress.newest_loss);
    for (size_t i = 0; i < all->trainer->learner.cost_count; i++)
        tell(all, all->trainer->learner.costs[i]->newest);
    return true;
}

static void run(training made, told *all)
{
    *all = (told){.trainer = made.trainer};
    CHECK_OK(sgm_trainer_on_progress(made.trainer, listen, all));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
}

/* Numbers whose exact values rounding alone may part. */
static void check_numbers(const problem *p, const char *what, const double *a, const double *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fabs(a[i] - b[i]) > 1e-12 * fmax(1, fabs(b[i])))
            TEST_FAIL("%s: %s: number %zu is %.17g and not %.17g", p->network, what, i, a[i], b[i]);
}

static void check_told(const problem *p, const told *got, const told *wanted)
{
    CHECK_INT(got->count, wanted->count);
    CHECK(got->count >= 20);
    check_numbers(p, "what is told", got->numbers, wanted->numbers, wanted->count);
}

static void check_state(const problem *p, const char *name, const sgm_tensor *got, const sgm_tensor *wanted)
{
    double a[512], b[512];
    CHECK_OK(got);
    CHECK_OK(wanted);
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(wanted));
    CHECK(count <= 512);
    CHECK_OK(sgm_tensor_read(got, a, count));
    CHECK_OK(sgm_tensor_read(wanted, b, count));
    check_numbers(p, name, a, b, count);
}

static void check_states(const problem *p, sgm_trainer *got, sgm_trainer *wanted)
{
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(wanted->learner.session, i)) != NULL; i++) {
        sgm_tensor *a = sgm_trainer_get(got, name), *b = sgm_trainer_get(wanted, name);
        check_state(p, name, a, b);
        sgm_tensor_free(a);
        sgm_tensor_free(b);
    }
}

/* --- workers --- */

static void check_workers(const char *handler, const char *handlers, int32_t workers)
{
    for (size_t i = 0; i < PROBLEMS; i++) {
        const problem *p = &problems[i];
        training one = make(p, "reference"), several = make(p, handler);
        told wanted, got;
        CHECK_OK(sgm_trainer_set_operator(several.trainer,
                                          sgm_gradient_operator(.workers = workers, .handlers = handlers)));
        run(one, &wanted);
        run(several, &got);
        check_told(p, &got, &wanted);
        check_states(p, several.trainer, one.trainer);
        free_training(one);
        free_training(several);
    }
}

TEST(two_workers_do_what_one_does_with_every_cost)
{
    check_workers("reference", NULL, 2);
}

TEST(four_workers_do_what_one_does_with_every_cost)
{
    check_workers("cpu", NULL, 4);
}

TEST(workers_of_several_handlers_do_what_one_does_with_every_cost)
{
    check_workers("cpu", "reference cpu debug:cpu", 3);
}

/* A cost that the table above does not have is a cost that nobody has looked at. */
TEST(each_cost_of_the_library_is_in_the_table)
{
    const sgm_layer_type *type;
    for (size_t i = 0; (type = sgm_layer_type_at(i)) != NULL; i++) {
        char text[128];
        bool is_there = (type->flags & SGM_LAYER_COST) == 0 ||
                        strcmp(type->name, "info_nce") == 0; /* refuses parts, as is checked below */
        snprintf(text, sizeof text, "+ %s(", type->name);
        for (size_t k = 0; k < PROBLEMS && !is_there; k++)
            is_there = strstr(problems[k].network, text) != NULL;
        if (!is_there)
            TEST_FAIL("%s is in no problem", type->name);
    }
}

/* --- ranks --- */

static bool by_messages;

static void train_as_rank(int32_t workers)
{
    for (size_t i = 0; i < PROBLEMS; i++) {
        training made = make(&problems[i], "cpu");
        sgm_operator *ranks = sgm_mpi_operator(.workers = workers, .timeout = 20, .bucket = 1024);
        told all;
        char name[48];
        CHECK_OK(ranks);
        CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
        sgm__trainer_ranks(made.trainer)->options.messages = by_messages;
        run(made, &all);
        if (sgm_operator_rank(ranks) == sgm_operator_ranks(ranks) - 1) {
            CHECK_OK(sgm_trainer_save(made.trainer, rank_file(i)));
            snprintf(name, sizeof name, "%zu.told", i);
            FILE *file = fopen(rank_path(name), "w");
            CHECK(file != NULL);
            for (size_t k = 0; k < all.count; k++)
                fprintf(file, "%.17g\n", all.numbers[k]);
            fclose(file);
        }
        free_training(made);
    }
}

RANK_PART(ranks_of_one_node)
{
    train_as_rank(1);
}

RANK_PART(ranks_of_one_node_of_two_workers)
{
    train_as_rank(2);
}

RANK_PART(ranks_by_messages)
{
    by_messages = true;
    train_as_rank(2);
}

static void read_told(size_t index, told *all)
{
    char name[48];
    snprintf(name, sizeof name, "%zu.told", index);
    FILE *file = fopen(rank_path(name), "r");
    CHECK(file != NULL);
    *all = (told){0};
    while (all->count < 512 && fscanf(file, "%lf", &all->numbers[all->count]) == 1)
        all->count++;
    fclose(file);
}

static void check_ranks(int count, const char *part)
{
    need_ranks();
    open_folder();
    run_ranks(count, part);
    for (size_t i = 0; i < PROBLEMS; i++) {
        const problem *p = &problems[i];
        training one = make(p, "cpu");
        const char *name;
        told wanted, got;
        run(one, &wanted);
        read_told(i, &got);
        check_told(p, &got, &wanted);
        sgm_bundle *bundle = sgm_bundle_load(rank_file(i));
        CHECK_OK(bundle);
        for (size_t k = 0; (name = sgm_session_state_at(one.trainer->learner.session, k)) != NULL; k++) {
            sgm_tensor *own = sgm_trainer_get(one.trainer, name);
            check_state(p, name, sgm_bundle_get(bundle, name), own);
            sgm_tensor_free(own);
        }
        sgm_bundle_free(bundle);
        free_training(one);
    }
    close_folder();
}

TEST(two_ranks_do_what_one_worker_does_with_every_cost)
{
    check_ranks(2, "ranks_of_one_node");
}

/* The last minibatch has 3 examples for 8 workers. */
TEST(four_ranks_of_two_workers_do_what_one_worker_does_with_every_cost)
{
    check_ranks(4, "ranks_of_one_node_of_two_workers");
}

TEST(four_ranks_that_send_messages_do_what_one_worker_does_with_every_cost)
{
    check_ranks(4, "ranks_by_messages");
}

/* --- what cannot be divided --- */

static void check_refused(const char *network, sgm_operator *parallel, const char *message)
{
    const problem p = {.network = network};
    training made = make(&p, "reference");
    CHECK_OK(parallel);
    CHECK_OK(sgm_trainer_set_operator(made.trainer, parallel));
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1), message);
    free_training(made);
}

#define COMPARED "input(4) + dense(6, tanh) + triplet(targets=class)"

TEST(a_cost_that_compares_examples_wants_them_all)
{
    check_refused(COMPARED, sgm_gradient_operator(.workers = 2),
                  "layer 2-triplet: triplet: compares the examples of a minibatch, of which a worker of a "
                  "gradient operator has a part: train without workers, or merge parameters, where each "
                  "worker has minibatches of its own");
    check_refused("input(4) + dense(6, tanh) + info_nce", sgm_gradient_operator(.workers = 2),
                  "layer 2-info_nce: info_nce: compares the examples of a minibatch, of which a worker of a "
                  "gradient operator has a part");
    const problem p = {.network = COMPARED};
    training one = make(&p, "reference"), made = make(&p, "reference");
    told wanted, got;
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 1)));
    run(one, &wanted);
    run(made, &got);
    check_told(&p, &got, &wanted);
    free_training(one);
    free_training(made);
    made = make(&p, "reference");
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_parameter_operator(.workers = 2, .every = 1)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    free_training(made);
}

/* One example alone has no variance, whoever has it. */
TEST(batch_norm_of_one_example_fails_as_without_workers)
{
    const problem p = {
        .network = "input(4) + dense(5, no_bias) + batch_norm + dense(3) + mean_squared(targets=numbers)",
        .batch = 1};
    training made = make(&p, "reference");
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    CHECK_ERROR(
        sgm_trainer_run(made.trainer, .epochs = 1),
        "batch_norm: one number for each channel has no variance: take minibatches of more than 1 example");
    free_training(made);
}

#define LOCAL "input(4) + dense(3, no_bias) + batch_norm(local) + mean_squared(targets=numbers)"

/* Each worker by itself is another result, and no result for a part of one example. */
TEST(batch_norm_can_be_local)
{
    const problem small = {.network = LOCAL}, even = {.network = LOCAL, .batch = 6};
    check_refused(small.network, sgm_gradient_operator(.workers = 2),
                  "take minibatches of more than 1 example for each worker, or leave `local` out");
    training one = make(&even, "reference"), two = make(&even, "reference");
    told wanted, got;
    CHECK_OK(sgm_trainer_set_operator(two.trainer, sgm_gradient_operator(.workers = 2)));
    run(one, &wanted);
    run(two, &got);
    CHECK(fabs(got.numbers[0] - wanted.numbers[0]) > 1e-3);
    free_training(one);
    free_training(two);
}

/* A worker that fails does not leave the others waiting for its sums. */
TEST(a_worker_that_fails_amid_a_sum_ends_the_run)
{
    const problem p = {
        .network =
            "input(6, 4, lengths=steps, name=series) + dense(5, time_distributed, no_bias) + batch_norm + "
            "dense(2, time_distributed) + softmax_cross_entropy(targets=class_steps)"};
    training made = make(&p, "cpu");
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1),
                "one_hot, layer 4-softmax_cross_entropy: class 2 is out of range: there are 2 classes");
    free_training(made);
}

/* The first rank has a class that there is not; the second one waits for its sums meanwhile. */
RANK_PART(rank_that_fails)
{
    const problem p = {.network = "input(4) + dense(5, no_bias) + batch_norm + dense(2) + "
                                  "softmax_cross_entropy(targets=class, classes)"};
    training made = make(&p, "cpu");
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_mpi_operator(.timeout = 20)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    free_training(made);
}

TEST(a_rank_that_fails_amid_a_sum_ends_the_run)
{
    need_ranks();
    open_folder();
    int code = wait_ranks(start_ranks(2, "rank_that_fails"), 60);
    CHECK(code != 0 && code != -1);
    if (strstr(ranks_said(), "2 is out of range: layer '4-softmax_cross_entropy' takes whole") == NULL)
        TEST_FAIL("the ranks said: %s", ranks_said());
    close_folder();
}
