/* Configurations: what is read, what is refused with which place, and texts that mean harm. */
#include "test.h"

#include "config/experiment.h"
#include "text/names.h"

static const char good[] = "network: input(4) + dense(3) + softmax_cross_entropy\n" /* line 1 */
                           "data:\n"                                                /* 2 */
                           "  training: iris\n"
                           "  validation: {dataset: iris, begin: 0.8, share: 0.2}\n"
                           "  batch: 7\n" /* 5 */
                           "optimiser:\n"
                           "  type: momentum\n"
                           "  learning_rate: 0.25\n"
                           "  schedule: {kind: step, period: 2}\n"
                           "initialisers:\n" /* 10 */
                           "  \"*.weights\": he\n"
                           "freeze: [\"1-dense.*\"]\n"
                           "adapters: lora(8, alpha=16, on=\"*attention*\")\n"
                           "epochs: 12\n"
                           "seed: 99\n";

static sgm_status parse_with(config *c, const char *text, const char *argument)
{
    const char *arguments[] = {argument};
    return config_parse(c, "a/b.yaml", text, strlen(text), arguments, argument != NULL ? 1 : 0);
}

static sgm_status refuse(const char *text, const char *argument)
{
    config c;
    sgm_status status = parse_with(&c, text, argument);
    if (status == SGM_OK)
        config_free(&c);
    return status;
}

static long left = -1; /* allocations until one fails; negative: none fails */
static long living;

static void *reallocate(void *user, void *memory, size_t size)
{
    (void)user;
    if (left == 0)
        return NULL;
    if (left > 0)
        left--;
    if (memory == NULL)
        living++;
    return realloc(memory, size > 0 ? size : 1);
}

static void release(void *user, void *memory)
{
    (void)user;
    if (memory != NULL)
        living--;
    free(memory);
}

__attribute__((constructor)) static void use_own_memory(void)
{
    sgm_set_allocator(&(sgm_allocator){reallocate, release, NULL});
}

TEST(values_and_defaults)
{
    config c;
    CHECK_OK(parse_with(&c, good, NULL));
    CHECK_STR(c.name, "b");
    CHECK_STR(c.data.training.dataset, "iris");
    CHECK_NEAR(c.data.validation.begin, 0.8, 0);
    CHECK_INT(c.data.batch, 7);
    CHECK(c.data.shuffle);
    CHECK_STR(c.optimiser.type, "momentum");
    CHECK_NEAR(c.optimiser.learning_rate, 0.25, 0);
    CHECK(isnan(c.optimiser.momentum));
    CHECK_STR(c.optimiser.schedule.kind, "step");
    CHECK_NEAR(c.optimiser.schedule.period, 2, 0);
    CHECK_STR(text_map_get(&c.initialisers, "*.weights"), "he");
    CHECK_INT(c.freeze.count, 1);
    CHECK_INT(c.adapters.count, 1);
    CHECK_STR(c.adapters.items[0], "lora(8, alpha=16, on=\"*attention*\")");
    CHECK(c.operator.type == NULL);
    CHECK_STR(c.freeze.items[0], "1-dense.*");
    CHECK_INT(c.epochs, 12);
    CHECK_INT(c.iterations, OPTION_UNSET);
    CHECK_INT(c.checkpoint_every, 1);
    CHECK_INT(config_precision(&c), SGM_FLOAT32);
    config_free(&c);
}

TEST(arguments_count_more)
{
    static const char *const arguments[] = {"optimiser.learning_rate=0.5",
                                            "optimiser.schedule=cosine",
                                            "data.validation.share=0.1",
                                            "initialisers.1-dense.weights=constant(0.5)",
                                            "initialisers.*.weights=glorot",
                                            "freeze=[a, \"b*\"]",
                                            "network=input(2) + dense(2, relu) + mean_squared",
                                            "data.batch=3"};
    config c;
    CHECK_OK(config_parse(&c, "x.yaml", good, strlen(good), arguments, sizeof arguments / sizeof *arguments));
    CHECK_NEAR(c.optimiser.learning_rate, 0.5, 0);
    CHECK_STR(c.optimiser.schedule.kind, "cosine");
    CHECK_NEAR(c.data.validation.share, 0.1, 0);
    CHECK_NEAR(c.data.validation.begin, 0.8, 0);
    CHECK_STR(text_map_get(&c.initialisers, "1-dense.weights"), "constant(0.5)");
    CHECK_STR(text_map_get(&c.initialisers, "*.weights"), "glorot");
    CHECK_INT(c.freeze.count, 2);
    CHECK_STR(c.freeze.items[1], "b*");
    CHECK_STR(c.network, "input(2) + dense(2, relu) + mean_squared");
    CHECK_INT(c.data.batch, 3);
    config_free(&c);
}

TEST(what_is_written_reads_back)
{
    config c, again;
    CHECK_OK(parse_with(&c, good, "name=a \"quoted\\name: #1"));
    char *text = config_text(&c);
    CHECK_OK(text);
    CHECK_OK(parse_with(&again, text, NULL));
    char *second = config_text(&again);
    CHECK_STR(second, text);
    CHECK_STR(again.name, "a \"quoted\\name: #1");
    CHECK_NEAR(again.data.validation.share, 0.2, 0);
    CHECK_STR(text_map_get(&again.initialisers, "*.weights"), "he");
    sgm_string_free(text);
    sgm_string_free(second);
    config_free(&c);
    config_free(&again);
}

TEST(paths_begin_at_the_file)
{
    static const char text[] =
        "network: input(4) + dense(3) + softmax_cross_entropy\n"
        "data: {training: {csv: table.csv, fields: {inputs: 0-3, targets: 4}, classes: 3}}\n";
    config c;
    CHECK_OK(config_parse(&c, "/some/where/x.yaml", text, strlen(text), NULL, 0));
    CHECK_STR(c.data.training.csv, "/some/where/table.csv");
    CHECK_STR(text_map_get(&c.data.training.fields, "inputs"), "0-3");
    CHECK_INT(c.data.training.classes, 3);
    config_free(&c);
}

#define NETWORK "network: input(4) + dense(3) + softmax_cross_entropy\n"

TEST(mistakes_have_a_place)
{
    CHECK_ERROR(refuse(NETWORK "optimiser:\n  learning_rat: 1\n", NULL),
                "a/b.yaml:3:3: optimiser.learning_rat: unknown key (did you mean 'learning_rate'?)");
    CHECK_ERROR(refuse(NETWORK "epochz: 1\n", NULL),
                "a/b.yaml:2:1: epochz: unknown key (did you mean 'epochs'?)");
    CHECK_ERROR(refuse(NETWORK "zzzzzzzz: 1\n", NULL), "unknown key; there are name, network, data");
    CHECK_ERROR(refuse(NETWORK "epochs: many\n", NULL),
                "a/b.yaml:2:9: epochs: expected a whole number from 1 to 1000000000, got 'many'");
    CHECK_ERROR(refuse(NETWORK "epochs: \"3\"\n", NULL), "got the text '3'");
    CHECK_ERROR(refuse(NETWORK "hooks: [top_k(validation, 1, 3)]\n", NULL),
                "'top_k(validation' ends amid its brackets");
    CHECK_ERROR(refuse(NETWORK "epochs: 3.5\n", NULL), "a whole number");
    CHECK_ERROR(refuse(NETWORK "epochs: 0\n", NULL), "got '0'");
    CHECK_ERROR(refuse(NETWORK "epochs: 99999999999999999999\n", NULL), "a whole number");
    CHECK_ERROR(refuse(NETWORK "epochs:\n", NULL), "got nothing");
    CHECK_ERROR(refuse(NETWORK "epochs: [1]\n", NULL), "got a list");
    CHECK_ERROR(refuse(NETWORK "optimiser: {beta1: 1}\n", NULL), "optimiser.beta1: expected a number from");
    CHECK_ERROR(refuse(NETWORK "optimiser: {beta1: .nan}\n", NULL), "a number");
    CHECK_ERROR(refuse(NETWORK "optimiser: [adam]\n", NULL), "a/b.yaml:2:12: optimiser: expected a map");
    CHECK_ERROR(refuse(NETWORK "data: {shuffle: yes}\n", NULL),
                "data.shuffle: expected true or false, got 'yes'");
    CHECK_ERROR(refuse(NETWORK "adapters: lora(8, alpha=x)\n", NULL),
                "a/b.yaml:2:11: adapters: column 15: argument 'alpha'");
    CHECK_ERROR(refuse(NETWORK "adapters: [dense(8)]\n", NULL),
                "a network is adapted by a layer such as lora(8), not by dense");
    CHECK_ERROR(refuse(NETWORK "freeze: [a, {b: c}]\n", NULL),
                "a/b.yaml:2:13: freeze: expected a list of texts");
    CHECK_ERROR(refuse(NETWORK "initialisers: {\"*\": [he]}\n", NULL), "expected a text, got a list");
    CHECK_ERROR(refuse(NETWORK "seed: 1\nseed: 2\n", NULL),
                "a/b.yaml:3:1: key 'seed' is here twice, first in line 2");
    CHECK_ERROR(refuse("[1, 2]\n", NULL),
                "a/b.yaml:1:1: expected a map of options, got a list; a file of data is named in one");
    CHECK_ERROR(refuse("id,colour,size\n1,red,2\n", NULL),
                "expected a map of options, got 'id,colour,size 1,red,2'");
}

TEST(texts_are_checked_where_they_stand)
{
    CHECK_ERROR(refuse("seed: 1\nnetwork: input(4) + desne(3)\n", NULL), "a/b.yaml:2:10: network: ");
    CHECK_ERROR(refuse("seed: 1\nnetwork: input(4) + desne(3)\n", NULL), "did you mean 'dense'?");
    CHECK_ERROR(refuse(NETWORK "optimiser: adm\n", NULL),
                "a/b.yaml:2:12: optimiser: unknown optimiser 'adm'");
    CHECK_ERROR(refuse(NETWORK "optimiser: nadam\n", NULL), "did you mean 'adam'?");
    CHECK_ERROR(refuse(NETWORK "optimiser: qqqq\n", NULL),
                "unknown optimiser 'qqqq'; there are gradient_descent, momentum, ");
    CHECK_ERROR(refuse(NETWORK "initialisers: {\"*\": kaimnig}\n", NULL), "unknown initialiser 'kaimnig'");
    CHECK_ERROR(refuse(NETWORK "optimiser: {schedule: cosin}\n", NULL), "did you mean 'cosine'");
    CHECK_ERROR(refuse(NETWORK "initialisers: {\"*\": hee}\n", NULL), "a/b.yaml:2:21: initialisers.*: ");
    CHECK_ERROR(refuse(NETWORK "modifiers: {\"*\": clip(2)}\n", NULL),
                "modifiers.*: column 1: clip needs maximum");
    CHECK_ERROR(refuse(NETWORK "data: {training: irs}\n", NULL), "did you mean 'iris'?");
    CHECK_ERROR(refuse(NETWORK "precision: float23\n", NULL), "did you mean 'float32'?");
    CHECK_ERROR(refuse(NETWORK "memory: -1\n", NULL), "a/b.yaml:2:9: memory: expected a share of what a ");
    CHECK_ERROR(refuse(NETWORK "gradient_checkpointing: true\n", NULL), "it is memory: 0.5, a share of ");
    CHECK_ERROR(refuse(NETWORK "handler: referense\n", NULL), "did you mean 'reference'?");
    CHECK_ERROR(refuse(NETWORK "handler: GPU\n", NULL),
                "a/b.yaml:2:10: handler: there is no handler 'GPU' (did you mean 'opencl' or 'cuda'?); there "
                "are cpu, reference, opencl, cuda, null, and debug:NAME");
    CHECK_ERROR(refuse(NETWORK "operator: {type: gradients, handlers: cpu nvidia}\n", NULL),
                "operator.handlers: there is no handler 'nvidia' (did you mean 'cuda'?)");
    CHECK_ERROR(refuse(NETWORK "data: {training: {csv: a, fields: {inputs: 3-1}}}\n", NULL), "got '3-1'");
}

TEST(what_belongs_together)
{
    CHECK_ERROR(refuse("seed: 1\n", NULL), "network: is missing");
    CHECK_ERROR(refuse(NETWORK "data: {training: {dataset: iris, csv: a}}\n", NULL),
                "expected one of dataset, csv");
    CHECK_ERROR(refuse(NETWORK "data: {training: {csv: a}}\n", NULL), "expected a target, such as");
    CHECK_ERROR(refuse(NETWORK "data: {training: {csv: a, fields: {targets: 1}}}\n", NULL),
                "'inputs' is missing: expected columns for inputs");
    CHECK_ERROR(refuse(NETWORK "data: {test: {inputs: a, input_range: [1]}}\n", NULL),
                "expected [minimum, maximum]");
    CHECK_ERROR(
        refuse(NETWORK "data: {training: {dataset: iris, window: 3}}\n", NULL),
        "data.training: tokenizer and window are for text, chats, labelled_texts, text_pairs, text_folder, "
        "and text_columns of a csv");
    CHECK_ERROR(
        refuse(NETWORK "data: {validation: {share: 0.2}}\n", NULL),
        "data.validation: expected one of dataset, csv, inputs, images, sounds, text_folder, text, chats, "
        "labelled_texts, text_pairs beside share");
    CHECK_ERROR(refuse(NETWORK "data: {training: {text_pairs: a, chats: b}}\n", NULL),
                "text_pairs; got 2 of them");
    CHECK_ERROR(refuse(NETWORK "data: {training: {text_pairs: a}}\n", NULL),
                "data.training: texts are read by the tokenizer of a model; name the model, from: FOLDER");
    CHECK_ERROR(refuse(NETWORK "data: {training: {labelled_texts: a, class_names: [a, b], tokenizer: b}, "
                               "validation: {text_pairs: a}}\n",
                       NULL),
                "labelled_texts and text_pairs are measured of a training on the same");
}

TEST(a_group_is_not_ignored_for_want_of_its_first_option)
{
    CHECK_ERROR(refuse(NETWORK "operator: {workers: 2}\n", NULL),
                "a/b.yaml: operator: workers is given, but no type (what workers merge");
    CHECK_ERROR(refuse(NETWORK, "operator.reducers={\"*\": maximum}"), "operator: reducers is given");
    CHECK_ERROR(refuse(NETWORK "start_from: {skip_mismatch: true}\n", NULL),
                "skip_mismatch is given, but no run");
    CHECK_ERROR(refuse(NETWORK "optimiser: {schedule: {period: 2}}\n", NULL),
                "optimiser.schedule: period is given, but no kind");
    CHECK_OK(refuse(NETWORK "optimiser: {schedule: {warm_up: 2}}\n", NULL));
    CHECK_OK(
        refuse(NETWORK "operator: {every: 0}\nstart_from: {skip_mismatch: false}\n", NULL)); /* defaults */
    CHECK_OK(refuse(NETWORK "operator: {type: gradients, workers: 2}\n", NULL));
    CHECK_OK(refuse(NETWORK "operator: {type: gradients, workers: 2}\n", "operator=none"));
}

TEST(mistakes_in_arguments)
{
    CHECK_ERROR(refuse(good, "epochs"), "expected KEY=VALUE");
    CHECK_ERROR(refuse(good, "=3"), "expected KEY=VALUE");
    CHECK_ERROR(refuse(good, "epochs=x"), "argument 'epochs=x': epochs: expected a whole number");
    CHECK_ERROR(refuse(good, "optimisr.beta1=0.5"), "did you mean 'optimiser'?");
    CHECK_ERROR(refuse(good, "epochs.x=1"), "epochs has no keys of its own");
    CHECK_ERROR(refuse(good, "freeze=[a"), "argument 'freeze=[a'");
    CHECK_ERROR(refuse(good, "data={batch: 0}"), "data.batch: expected a whole number");
    CHECK_ERROR(refuse(good, "data.training="), "got nothing");
}

TEST(marks_are_refused)
{
    CHECK_ERROR(refuse("a: &x [1]\nb: *x\n", NULL), "a/b.yaml:1:4: anchors");
    CHECK_ERROR(refuse("b: *x\n", NULL), "a/b.yaml:1:4: anchors");
    CHECK_ERROR(refuse(NETWORK "epochs: !!int 3\n", NULL), "tags");
    CHECK_ERROR(refuse("a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n", NULL), "anchors");
    CHECK_ERROR(refuse(NETWORK "---\nseed: 2\n", NULL), "a second document");
    CHECK_ERROR(refuse("", NULL), "there is nothing in it");
    CHECK_ERROR(refuse("# only a remark\n", NULL), "there is nothing in it");
    CHECK_ERROR(refuse("name: \"a\\0b\"\n", NULL), "zero character");
    CHECK_ERROR(refuse("? [a]\n: 1\n", NULL), "a key must be a word");
    CHECK_ERROR(refuse("name: [a\n", NULL), "a/b.yaml:");
    CHECK_ERROR(refuse("name: \xff\xfe\n", NULL), "a/b.yaml:");
}

TEST(depth_and_size_are_limited)
{
    char *text = malloc(2 * YAML_MAX_BYTES);
    memset(text, '[', 100000);
    CHECK_ERROR(config_parse(&(config){0}, "x", text, 100000, NULL, 0), "levels deep");
    memset(text, ' ', 2 * YAML_MAX_BYTES);
    CHECK_ERROR(config_parse(&(config){0}, "x", text, 2 * YAML_MAX_BYTES, NULL, 0), "at most");
    size_t used = 0;
    text[used++] = '[';
    for (int i = 0; i < YAML_MAX_NODES + 10; i++) {
        text[used++] = 'a';
        text[used++] = ',';
    }
    text[used++] = ']';
    CHECK_ERROR(config_parse(&(config){0}, "x", text, used, NULL, 0), "too much");
    free(text);
}

/* Each allocation fails once: there is a message, and nothing is lost. */
TEST(no_memory)
{
    static const char *const arguments[] = {"freeze=[a, b]", "initialisers.x=he", "seed=4"};
    config c;
    CHECK_OK(config_parse(&c, "x.yaml", good, strlen(good), arguments, 3));
    config_free(&c);
    long before = living;
    bool done = false;
    for (long n = 0; n < 100000 && !done; n++) {
        left = n;
        sgm_clear_error();
        sgm_status status = config_parse(&c, "x.yaml", good, strlen(good), arguments, 3);
        done = left > 0;
        left = -1;
        if (status == SGM_OK)
            config_free(&c);
        else
            CHECK(strlen(sgm_last_error()) > 0);
        CHECK_INT(living, before);
        CHECK(status == SGM_OK || !done);
    }
    CHECK(done);
}

/* Whatever comes, the answer is a configuration or a message, and nothing is lost. */
TEST(an_operator_can_be_left_out)
{
    CHECK(!experiment_has_operator(&(operator_config){.type = NULL}));
    CHECK(!experiment_has_operator(&(operator_config){.type = (char[]){"none"}}));
    CHECK(experiment_has_operator(&(operator_config){.type = (char[]){"mpi"}}));
}

TEST(an_operator_is_a_type_or_a_map)
{
    config c;
    char text[512];
    snprintf(text, sizeof text, "%s", NETWORK "operator: gradients\n");
    CHECK_OK(config_parse(&c, "a.yaml", text, strlen(text), NULL, 0));
    CHECK_STR(c.operator.type, "gradients");
    sgm_operator *made = experiment_operator(&c.operator);
    CHECK_OK(made);
    sgm_operator_free(made);
    config_free(&c);
    snprintf(text, sizeof text, "%s",
             NETWORK "operator: {type: parameters, workers: 2, every: 10, reducer: \"weighted(1, 3)\", "
                     "reducers: {\"*.biases\": maximum}}\n");
    CHECK_OK(config_parse(&c, "a.yaml", text, strlen(text), NULL, 0));
    CHECK_INT(c.operator.every, 10);
    made = experiment_operator(&c.operator);
    CHECK_OK(made);
    sgm_operator_free(made);
    config_free(&c);
    CHECK_ERROR(refuse(NETWORK "operator: gradient\n", NULL), "did you mean 'gradients'");
    CHECK_ERROR(refuse(NETWORK "operator: {type: parameters, reducer: mean}\n", NULL),
                "unknown reducer 'mean'");
}

TEST(cut_and_changed_texts)
{
    char text[sizeof good];
    config c;
    for (size_t length = 0; length < sizeof good; length++) {
        sgm_clear_error();
        if (config_parse(&c, "x", good, length, NULL, 0) == SGM_OK)
            config_free(&c);
        else
            CHECK(strlen(sgm_last_error()) > 0);
    }
    uint64_t state = 1;
    for (int i = 0; i < 5000; i++) {
        memcpy(text, good, sizeof good);
        for (int k = 0; k <= i % 3; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            text[(state >> 33) % (sizeof good - 1)] = (char)(state >> 20);
        }
        sgm_clear_error();
        if (config_parse(&c, "x", text, sizeof good - 1, NULL, 0) == SGM_OK)
            config_free(&c);
        else
            CHECK(strlen(sgm_last_error()) > 0);
    }
}

/* Each key of the table of names is one of a configuration or of a search, and no word of it is a key where
 * the real one is found. */
TEST(keys_of_other_programs_are_keys_here)
{
    const sgm__name_row *row;
    for (size_t i = 0; (row = sgm__name_row_at(i)) != NULL; i++) {
        const void *base = NULL;
        const char *entry;
        if (row->kind != SGM__NAME_KEY || row->real == NULL)
            continue;
        char *of_data = sgm__format("data.training.%s", row->real);
        bool known = options_find(&config_table, row->real, &base, &entry) != NULL ||
                     options_find(&config_table, of_data, &base, &entry) != NULL ||
                     strcmp(row->real, "trials") == 0; /* of a search: tests/cli/test_search.sh */
        if (!known)
            TEST_FAIL("'%s' of '%s' is no key", row->real, row->typed);
        sgm__free(of_data);
        size_t count;
        char **words = sgm__words(row->typed, &count);
        for (size_t k = 0; k < count; k++)
            if (options_find(&config_table, words[k], &base, &entry) != NULL)
                TEST_FAIL("'%s' is a key already", words[k]);
        sgm__free(words);
    }
}

TEST(keys_and_values_of_other_programs_are_kept_by_their_names_here)
{
    config c;
    static const char text[] = "model: \"input(4) + linear(10, relu) + cross_entropy\"\n"
                               "data: {train: iris, batch_size: 16}\n"
                               "optimizer: {type: sgd, lr: 0.1, scheduler: cosine_annealing}\n"
                               "num_epochs: 3\n"
                               "callbacks: [accuracy, \"early_stopping(monitor=val_loss)\"]\n"
                               "rules: [\"if loss stalls 5 epochs then stop\"]\n"
                               "initializers: {\"*.weights\": xavier_uniform}\n";
    static const char *const arguments[] = {"batch_size=8", "optimizer.lr=0.2", "lr_scheduler.factor=0.5",
                                            "precision=fp64"};
    CHECK_OK(config_parse(&c, "a.yaml", text, strlen(text), arguments, 4));
    char *kept = config_text(&c);
    static const char *const lines[] = {"input(4) + dense(10, relu) + softmax_cross_entropy",
                                        "batch: 8",
                                        "type: gradient_descent",
                                        "learning_rate: 0.2",
                                        "kind: cosine",
                                        "factor: 0.5",
                                        "epochs: 3",
                                        "precision: float64",
                                        "accuracy_reporter",
                                        "early_stopper(value=validation.loss)",
                                        "if training.loss stalls 5 epochs then stop",
                                        "glorot"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strstr(kept, lines[i]) == NULL)
            TEST_FAIL("no '%s' in %s", lines[i], kept);
    CHECK(strstr(kept, "linear") == NULL && strstr(kept, "sgd") == NULL && strstr(kept, "val_loss") == NULL);
    sgm_string_free(kept);
    config_free(&c);
}

TEST(keys_that_mean_something_else_are_refused_with_advice)
{
    static const char *const wrong[][2] = {
        {"validation_split: 0.2\n",
         "a/b.yaml:2:1: validation_split: unknown key (did you mean 'data.split'?): it is "
         "the share that trains: data.split: 0.8"},
        {"data: {validation_split: 0.2}\n",
         "data.validation_split: unknown key (did you mean 'data.split'?)"},
        {"loss: mse\n", "loss: unknown key: the cost is the network's last layer"},
        {"metrics: [f1]\n", "metrics: unknown key (did you mean 'hooks'?): hooks: [accuracy_reporter"},
        {"device: gpu\n", "device: unknown key (did you mean 'handler'?): handler: cpu, opencl or cuda"},
        {"optimiser: {betas: 0.9}\n", "optimiser.betas: unknown key: they are optimiser.beta1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *text = sgm__format(NETWORK "%s", wrong[i][0]);
        CHECK_ERROR(refuse(text, NULL), wrong[i][1]);
        sgm__free(text);
    }
}

/* --- settings of an optimiser --- */

#define ADAM_HAS                                                                                             \
    "; it has learning_rate, beta1, beta2, epsilon, weight_decay, clip_value, clip_norm, average, "          \
    "accumulate"

TEST(a_setting_that_the_optimiser_does_not_have_is_refused_with_its_place)
{
    CHECK_ERROR(refuse(NETWORK "optimiser: {type: adam, momentum: 0.9}\n", NULL),
                "a/b.yaml:2:35: optimiser.momentum: the optimiser adam has no momentum" ADAM_HAS);
    CHECK_ERROR(refuse(NETWORK "optimiser:\n  population: 0\n", NULL),
                "a/b.yaml:3:15: optimiser.population: the optimiser adam has no population");
    CHECK_ERROR(refuse(NETWORK "optimiser: {type: cma_es, clip_norm: 1}\n", NULL),
                "a/b.yaml:2:38: optimiser.clip_norm: the optimiser cma_es has no clip_norm; it has "
                "learning_rate, population");
    CHECK_ERROR(refuse(NETWORK "optimiser: adam\n", "optimiser.history=5"),
                "argument 'optimiser.history=5': optimiser.history: the optimiser adam has no history");
    /* The type may come from elsewhere than the setting, and the setting by another program's name. */
    CHECK_ERROR(refuse(NETWORK "optimiser: {type: momentum, momentum: 0.9}\n", "optimiser.type=lion"),
                "a/b.yaml:2:39: optimiser.momentum: the optimiser lion has no momentum");
    CHECK_ERROR(refuse(NETWORK "optimizer: {type: adam, momentum: 0.9}\n", NULL),
                "a/b.yaml:2:35: optimiser.momentum: the optimiser adam has no momentum");
    CHECK_OK(refuse(NETWORK "optimiser: {type: momentum, momentum: 0.9}\n", NULL));
    CHECK_OK(refuse(NETWORK "optimiser: {type: cma_es, population: 0}\n", NULL));
}

TEST(settings_in_brackets_are_told_where_they_belong)
{
    CHECK_ERROR(refuse(NETWORK "optimiser: adam(momentum=0.9)\n", NULL),
                "a/b.yaml:2:12: optimiser: settings are keys beside the type, {type: adam, learning_rate: "
                "0.1}" ADAM_HAS);
    CHECK_ERROR(refuse(NETWORK "optimiser: adamm(momentum=0.9)\n", NULL), "did you mean 'adam'");
}

/* What is written for a run's folder has the settings of its optimiser alone, and can be read again. */
TEST(only_settings_of_the_optimiser_are_written)
{
    config c;
    CHECK_OK(parse_with(&c, NETWORK "optimiser: {type: adam, beta1: 0.8, accumulate: 2}\n", NULL));
    char *text = config_text(&c);
    CHECK(strstr(text, "optimiser:\n  type: adam\n  beta1: 0.8\n  accumulate: 2\n") != NULL);
    CHECK(strstr(text, "population") == NULL);
    CHECK_OK(refuse(text, NULL));
    sgm_string_free(text);
    config_free(&c);
}

/* float32 of 4 x 3 weights and 3 biases, and no means of Adam's; averages belong to the optimiser. */
TEST(inference_has_no_memory_for_an_optimiser)
{
    static const struct {
        const char *text;
        bool updates;
        int64_t times;
    } cases[] = {{"{}", false, 1}, {"{optimiser: adam}", false, 1}, {"{optimiser: adam}", true, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const overrides[] = {"network=input(4) + dense(3) + squared_difference"};
        config c;
        sgm_program_memory memory;
        CHECK_OK(config_parse(&c, "text", cases[i].text, strlen(cases[i].text), overrides, 1));
        sgm_env *env = sgm_env_create("inference", .handler = "cpu");
        sgm_trainer *trainer = sgm_trainer_create(env, "inference");
        CHECK_OK(experiment_fill_inference(trainer, &c, cases[i].updates));
        CHECK_OK(sgm_trainer_memory(trainer, 1, &memory));
        CHECK_INT(memory.state, cases[i].times * 15 * 4);
        sgm_env_free(env);
        config_free(&c);
    }
}
