/* Names of other programs: what each means here, what is refused with advice, and that the table names only
 * what there is. Keys of files are tested in tests/cli/test_config.c. */
#include "test.h"

#include "optim/optimiser.h"
#include "text/names.h"
#include <sigma/sigma.h>

static char noted[8192];

static void note(void *user, sgm_log_level level, const char *source, const char *message)
{
    (void)user;
    CHECK_INT(level, SGM_LOG_INFO);
    CHECK_STR(source, "names");
    snprintf(noted + strlen(noted), sizeof noted - strlen(noted), "%s\n", message);
}

static void check_text(const char *given, const char *wanted)
{
    sgm_network *network = sgm_network_parse(given);
    char *text = network != NULL ? sgm_network_text(network) : NULL;
    CHECK(text != NULL);
    CHECK_STR(text, wanted);
    sgm_string_free(text);
    sgm_network_free(network);
}

TEST(layers_of_other_programs_are_taken_for_those_here)
{
    check_text("input(4) + linear(10) + ReLU() + Dense(3, relu) + cross_entropy",
               "input(4) + dense(10) + activation(relu) + dense(3, relu) + softmax_cross_entropy");
    check_text(
        "input(1, 8, 8) + Conv2d(4, kernel_size=3) + BatchNorm2d + max_pool2d(2) + flatten + bce",
        "input(1, 8, 8) + convolution(4, 3) + batch_norm + max_pooling(2) + flatten + binary_cross_entropy");
    check_text("input(4) + dense(units=5, activation=swish) + Dropout(p=0.5) + mse",
               "input(4) + dense(5, silu) + dropout(0.5) + mean_squared");
    check_text("input(4) + concat(dense(1), dense(2)) + mae",
               "input(4) + concatenate(dense(1), dense(2)) + mean_absolute");
    check_text("relu = input(4) + dense(2); relu + mse", "relu = input(4) + dense(2); relu + mean_squared");
}

TEST(options_in_c_take_them_too)
{
    sgm_layer *layer = sgm_layer_create(
        "Linear",
        &(sgm_layer_options){.struct_size = sizeof(sgm_layer_options), .size = 3, .activation = "swish"});
    CHECK(layer != NULL);
    sgm_layer_free(layer);
    sgm_optimiser *optimiser = SGM_OPTIMISER("sgd", .learning_rate = 0.5);
    CHECK(optimiser != NULL);
    CHECK_STR(optimiser->type->name, "gradient_descent");
    sgm_optimiser_free(optimiser);
    sgm_initialiser *initialiser = sgm_initialiser_parse("kaiming_normal");
    CHECK(initialiser != NULL);
    sgm_initialiser_free(initialiser);
    sgm_hook *hook = sgm_hook_parse("EarlyStopping(monitor=val_loss, patience=3)");
    CHECK(hook != NULL);
    CHECK_STR(sgm_hook_name(hook), "early_stopper");
    sgm_hook_free(hook);
    sgm_schedule_kind kind;
    CHECK_OK(sgm_schedule_kind_parse("CosineAnnealingLR", &kind));
    CHECK_INT(kind, SGM_COSINE);
}

TEST(each_name_is_noted_once)
{
    noted[0] = '\0';
    sgm_set_logger(note, NULL, SGM_LOG_INFO);
    check_text("input(4) + fc(3) + fc(2) + l1_loss", "input(4) + dense(3) + dense(2) + mean_absolute");
    check_text("input(4) + fc(3) + mean_squared", "input(4) + dense(3) + mean_squared");
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
    CHECK_STR(noted, "'fc' is called 'dense' here\n'l1_loss' is called 'mean_absolute' here\n");
}

static const struct {
    const char *text, *message;
} advised[] = {
    {"input(4) + Linear(4, 3)", "column 22: dense has no use for '3' here: the number of inputs follows"},
    {"input(3, 8, 8) + conv2d(3, 8, 5)",
     "column 31: convolution has no use for '5' here: the number of input"},
    {"input(3, 8, 8) + MaxPool2d(3, 2)", "max_pooling(3, stride=2)"},
    {"input(4) + BatchNorm1d(4)",
     "column 24: batch_norm has no use for '4' here: the number of channels follows"},
    {"input(4) + MultiheadAttention(8)",
     "unknown layer 'MultiheadAttention' (did you mean 'attention'?): the width"},
    {"input(4) + NLLLoss", "(did you mean 'negative_log_likelihood'?): it takes probabilities"},
    {"input(4) + binary_crossentropy", "(did you mean 'binary_cross_entropy'?): it takes logits"},
    {"input(4) + Sequential", "unknown layer 'Sequential': layers are joined by '+'"},
    {"input(4) + dense(3, use_bias=false)",
     "dense has no argument 'use_bias' (did you mean 'no_bias'?): the flag"},
    {"input(4) + dense(3, input_shape=4)", "the layer input says it: input(28, 28)"},
    {"input(4) + relu(0.1)",
     "'relu' is an activation, which takes no arguments; as a layer it is activation(relu)"},
    {"input(4) + maxpoool2d(2)", "unknown layer 'maxpoool2d'"},
};

TEST(what_is_not_the_same_is_refused_with_advice)
{
    for (size_t i = 0; i < sizeof advised / sizeof *advised; i++)
        CHECK_ERROR(sgm_layer_parse(advised[i].text), advised[i].message);
    CHECK_ERROR(SGM_OPTIMISER("nadam", .learning_rate = 0),
                "unknown optimiser 'nadam' (did you mean 'adam'?)");
    CHECK_ERROR(sgm_initialiser_parse("ones"), "unknown initialiser 'ones': it is constant(1)");
    CHECK_ERROR(sgm_hook_parse("ModelCheckpoint"),
                "unknown hook 'ModelCheckpoint' (did you mean 'best_checkpoints' or 'last_checkpoints'?)");
    CHECK_ERROR(sgm_hook_parse("early_stopper(training.loss, mode=min)"),
                "early_stopper has no argument 'mode' (did you mean 'extremum'?): extremum=minimum");
    CHECK_ERROR(sgm_metric_with("accuracy", "validation", NULL), "it is measured with all data");
}

/* --- the table --- */

static bool is_layer(const char *name)
{
    for (size_t i = 0; sgm_layer_type_at(i) != NULL; i++)
        if (strcmp(sgm_layer_type_at(i)->name, name) == 0)
            return true;
    return false;
}

static bool is_argument(const char *name)
{
    for (size_t i = 0; sgm_layer_type_at(i) != NULL; i++)
        for (size_t k = 0; k < sgm_layer_type_at(i)->argument_count; k++)
            if (strcmp(sgm_layer_type_at(i)->arguments[k].name, name) == 0)
                return true;
    static const char *const of_calls[] = {
        "value", "standard_deviation", "minimum",  "maximum", "tops", "data",
        "limit", "extremum",           "keep_last"};
    for (size_t i = 0; i < sizeof of_calls / sizeof *of_calls; i++)
        if (strcmp(of_calls[i], name) == 0)
            return true;
    return false;
}

static bool is_activation(const char *name)
{
    const sgm_op *op = sgm_find_op(name);
    return op != NULL && (op->flags & SGM_OP_ACTIVATION) != 0;
}

static bool is_optimiser(const char *name)
{
    for (size_t i = 0; sgm_optimiser_type_at(i) != NULL; i++)
        if (strcmp(sgm_optimiser_type_at(i)->name, name) == 0)
            return true;
    return false;
}

static bool is_choice(const char *name)
{
    static const char *const types[] = {"float32", "float64", "bfloat16"};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(types[i], name) == 0)
            return true;
    for (size_t i = 0; sgm__schedule_kind_names[i] != NULL; i++)
        if (strcmp(sgm__schedule_kind_names[i], name) == 0)
            return true;
    return false;
}

static bool is_hook(const char *name)
{
    for (size_t i = 0; sgm_hook_name_at(i) != NULL; i++)
        if (strcmp(sgm_hook_name_at(i), name) == 0)
            return true;
    return false;
}

static bool is_handler(const char *name)
{
    for (size_t i = 0; sgm_handler_name_at(i) != NULL; i++)
        if (strcmp(sgm_handler_name_at(i), name) == 0)
            return true;
    return false;
}

static bool is_augmentation(const char *name)
{
    for (size_t i = 0; sgm_augmentation_at(i) != NULL; i++)
        if (strcmp(sgm_augmentation_at(i)->name, name) == 0)
            return true;
    return false;
}

/* By what its reader says. */
static bool is_initialiser(const char *name)
{
    sgm_initialiser *made = sgm_initialiser_parse(name);
    sgm_initialiser_free(made);
    return made != NULL;
}

static bool is_modifier(const char *name)
{
    sgm_modifier *made = sgm_modifier_parse(name);
    sgm_modifier_free(made);
    return made != NULL || strstr(sgm_last_error(), "unknown modifier") == NULL;
}

static bool is_metric(const char *name)
{
    size_t count;
    const char *const *names = sgm_metric_names(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool (*const exists[])(const char *name) = {
    [SGM__NAME_LAYER] = is_layer,       [SGM__NAME_ACTIVATION] = is_activation,
    [SGM__NAME_ARGUMENT] = is_argument, [SGM__NAME_OPTIMISER] = is_optimiser,
    [SGM__NAME_CHOICE] = is_choice,     [SGM__NAME_INITIALISER] = is_initialiser,
    [SGM__NAME_MODIFIER] = is_modifier, [SGM__NAME_METRIC] = is_metric,
    [SGM__NAME_HOOK] = is_hook,         [SGM__NAME_AUGMENTATION] = is_augmentation,
    [SGM__NAME_HANDLER] = is_handler,
};

TEST(the_table_names_what_there_is)
{
    const sgm__name_row *row;
    size_t count = 0;
    for (size_t i = 0; (row = sgm__name_row_at(i)) != NULL; i++, count++) {
        if (row->kind == SGM__NAME_KEY || row->kind == SGM__NAME_VALUE || row->kind == SGM__NAME_COMMAND)
            continue;
        if (row->real != NULL && !exists[row->kind](row->real))
            TEST_FAIL("'%s' of '%s' is not there", row->real, row->typed);
        CHECK(row->real != NULL || row->advice != NULL);
    }
    CHECK(count > 150);
}

/* Else the row would never be found, or would say "'add' is called 'add' here". */
TEST(no_word_of_the_table_is_a_name_here)
{
    const sgm__name_row *row;
    for (size_t i = 0; (row = sgm__name_row_at(i)) != NULL; i++) {
        size_t count;
        if (row->kind == SGM__NAME_KEY || row->kind == SGM__NAME_VALUE || row->kind == SGM__NAME_COMMAND ||
            row->kind == SGM__NAME_ARGUMENT || row->kind == SGM__NAME_INITIALISER ||
            row->kind == SGM__NAME_MODIFIER)
            continue;
        char **words = sgm__words(row->typed, &count);
        for (size_t k = 0; k < count; k++)
            if (exists[row->kind](words[k]) && !(row->numbers > 0 && strcmp(words[k], row->real) == 0))
                TEST_FAIL("'%s' is a name already", words[k]);
        sgm__free(words);
    }
}

/* A word of a trainer's registry means another one only where nothing has that name. */
TEST(identifiers_are_found_by_their_other_names)
{
    sgm_registry *root = sgm_registry_create(), *validation = sgm_registry_create();
    sgm_content content = {0};
    CHECK_OK(sgm_registry_set(validation, "loss", sgm_number_content(2)));
    CHECK_OK(sgm_registry_put(root, "validation", validation));
    CHECK_OK(sgm_registry_resolve_one(root, "val_loss", &content));
    CHECK_NEAR(content.as.number, 2, 0);
    CHECK_OK(sgm_registry_set(root, "val_loss", sgm_number_content(3)));
    CHECK_OK(sgm_registry_resolve_one(root, "val_loss", &content));
    CHECK_NEAR(content.as.number, 3, 0);
    CHECK_ERROR(sgm_registry_resolve_one(root, "val_acc", &content), "nothing matches 'validation.accuracy'");
    sgm_registry_free(validation);
    sgm_registry_free(root);
}

TEST(a_text_is_kept_with_the_real_names)
{
    sgm__names_replaced replaced;
    sgm__names_begin(&replaced);
    sgm_hook *hook = sgm_hook_parse("early_stopping(monitor=val_loss) if loss < 3");
    sgm__names_end(&replaced);
    CHECK(hook != NULL);
    char *text = sgm__names_replace("early_stopping(monitor=val_loss) if loss < 3 \"val_loss\"", &replaced);
    CHECK_STR(text, "early_stopper(value=validation.loss) if training.loss < 3 \"val_loss\"");
    sgm__free(text);
    sgm_hook_free(hook);
}
