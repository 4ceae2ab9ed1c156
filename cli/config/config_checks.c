/* Checks of texts in a configuration file, called by options.c for the options whose row in a table names
 * them.
 *
 * A text is checked when it is read, so that a mistake is reported with its line and column. Texts in a
 * notation of the library (networks, modifiers, hooks) are parsed and the result is freed: they are parsed
 * again when the experiment is built. */
#include "config/config_checks.h"
#include "config/arguments.h"
#include "config/experiment.h"
#include "config/options.h"
#include "handlers/handler.h"
#include "optim/optimiser.h"
#include "registry/pattern.h"

#include <math.h>
#include <sigma/sigma.h>
#include <stdlib.h>

/* In the order of sgm_sound_features, sgm_scale, sgm_impute and sgm_date_form. */
const char *const features_names[FEATURES_NAMES] = {"log_mel", "waveform"};
const char *const scale_names[SCALE_NAMES] = {"standard", "min_max", "robust", "none"};
const char *const impute_names[IMPUTE_NAMES] = {"mean", "median", "most_frequent", "flag", "refuse"};
const char *const date_names[DATE_NAMES] = {"days", "age", "parts"};

/* Texts in a notation of the library: parsed, and freed. Of a network that is the notation only: shapes need
 * data and are checked by experiment_check. */
#define CHECK_PARSED(name)                                                                                   \
    sgm_status check_##name(const char *value)                                                               \
    {                                                                                                        \
        sgm_##name *parsed = sgm_##name##_parse(value);                                                      \
        bool is_good = parsed != NULL;                                                                       \
        sgm_##name##_free(parsed);                                                                           \
        return is_good ? SGM_OK : sgm__last_failure();                                                       \
    }
CHECK_PARSED(network)
CHECK_PARSED(modifier)
CHECK_PARSED(initialiser)
CHECK_PARSED(reducer)
CHECK_PARSED(rule)
CHECK_PARSED(hook)

sgm_status check_adapter(const char *value)
{
    sgm_network *network = sgm_network_parse("input(1) + dense(1)");
    sgm_status status =
        network != NULL ? sgm_network_adapt(network, sgm_layer_parse(value)) : sgm__last_failure();
    sgm_network_free(network);
    return status;
}

char *real_network(const char *value)
{
    sgm_network *network = sgm_network_parse(value);
    char *text = network != NULL ? sgm_network_text(network) : NULL;
    sgm_network_free(network);
    return text;
}

sgm_status check_network_or_auto(const char *value)
{
    return strcmp(value, "auto") == 0 ? SGM_OK : check_network(value);
}

sgm_status check_column_scale(const char *value)
{
    return check_choice(value, scale_names, SCALE_NAMES);
}

sgm_status check_impute(const char *value)
{
    return check_choice(value, impute_names, IMPUTE_NAMES);
}

sgm_status check_missing_target(const char *value)
{
    static const char *const choices[] = {"refuse", "skip"};
    return check_choice(value, choices, 2);
}

sgm_status check_embedding(const char *value)
{
    int64_t size;
    return strcmp(value, "auto") == 0 || (sgm__parse_int64(value, &size) && size >= 1 && size <= 10000)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "expected the size of an embedding, 1 to 10000, or auto, got '%.40s'", value);
}

/* The reference date of an age is read by the table, which knows how dates are written. */
sgm_status check_dates(const char *value)
{
    size_t length = strlen(value);
    return strncmp(value, "age(", 4) == 0 && length > 5 && value[length - 1] == ')'
               ? SGM_OK
               : check_choice(value, date_names, DATE_NAMES);
}

sgm_status check_decimal(const char *value)
{
    return strcmp(value, ".") == 0 || strcmp(value, ",") == 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "expected \".\" or \",\", got '%.20s'", value);
}

sgm_status check_class_weights(const char *value)
{
    return strcmp(value, "balanced") == 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "expected balanced, got '%.40s'; " CLASS_WEIGHTS_OF_ONES_OWN,
                          value);
}

sgm_status check_features(const char *value)
{
    return check_choice(value, features_names, FEATURES_NAMES);
}

sgm_status check_share(const char *value)
{
    double share;
    return sgm__parse_double(value, &share) && share > 0 && share < 1
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "expected a share between 0 and 1, such as 0.8, got '%.20s'",
                          value);
}

sgm_status check_split_by(const char *value)
{
    static const char *const names[] = {"random", "stratified"};
    return check_choice(value, names, sizeof names / sizeof *names);
}

sgm_status check_cache(const char *value)
{
    static const char *const names[] = {"true", "false"};
    return check_choice(value, names, sizeof names / sizeof *names);
}

/* A side of a picture in pixels. */
sgm_status check_side(const char *value)
{
    int64_t side;
    return sgm__parse_int64(value, &side) && side >= 1 && side <= 32768
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "expected pixels, a whole number from 1 to 32768, got '%.20s'",
                          value);
}

sgm_status check_prompt(const char *value)
{
    if (*value == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected something to begin with, got ''");
    while (*value != '\0') {
        bool ascii = (unsigned char)*value < 0x80;
        size_t length = ascii ? 1 : sgm__utf8_length((const unsigned char *)value);
        if (length == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "expected a text in UTF-8");
        if (((unsigned char)*value < ' ' && *value != '\n' && *value != '\t') || *value == 0x7f)
            return sgm_fail(SGM_ERROR_ARGUMENT, "a prompt has no control characters but line ends and tabs");
        value += length;
    }
    return SGM_OK;
}

/* Whether it matches a parameter is known only where there is a network. */
sgm_status check_freeze(const char *value)
{
    return sgm__pattern_check(value + (value[0] == TRAINED_MARK ? 1 : 0));
}

/* A leading '-' takes a part away; the rest is a part's name. */
sgm_status check_part(const char *value)
{
    unsigned parts;
    return sgm_parts_parse(value + (value[0] == '-'), &parts); /* one that is taken away: its name */
}

static sgm_status fail_brackets(const sgm_optimiser_type *type)
{
    char *known = sgm__optimiser_type_settings(type);
    sgm_status status = sgm_fail(
        SGM_ERROR_ARGUMENT, "settings are keys beside the type, {type: %s, learning_rate: 0.1}; it has %s",
        type->name, known != NULL ? known : "");
    sgm__free(known);
    return status;
}

/* Only the type is checked here, settings by optimiser.c. Layers and hooks have theirs in brackets: who
 * writes "adam(learning_rate=0.1)" is told how that is written here. */
sgm_status check_optimiser(const char *value)
{
    size_t length = strcspn(value, "(");
    char *type = sgm__strndup(value, length);
    sgm_optimiser *optimiser = type != NULL ? sgm_optimiser_create(type, NULL) : NULL;
    sgm_status status = optimiser == NULL       ? sgm__last_failure()
                        : value[length] == '\0' ? SGM_OK
                                                : fail_brackets(optimiser->type);
    sgm_optimiser_free(optimiser);
    sgm__free(type);
    return status;
}

sgm_status check_choice(const char *value, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(value, names[i]) == 0)
            return SGM_OK;
    const char *near = sgm__nearest(value, names, count);
    sgm__text known = {0};
    for (size_t i = 0; i < count; i++)
        sgm__text_append(&known, "%s%s", i > 0 ? ", " : "", names[i]);
    sgm_status status =
        near != NULL ? sgm_fail(SGM_ERROR_ARGUMENT, "unknown '%.60s' (did you mean '%s'?)", value, near)
                     : sgm_fail(SGM_ERROR_ARGUMENT, "unknown '%.60s'; there are %s", value,
                                known.data != NULL ? known.data : "");
    sgm__text_free(&known);
    return status;
}

/* The name becomes part of a folder's name, runs/NAME-TIME. */
sgm_status check_name(const char *value)
{
    if (value[0] == '.' || strchr(value, '/') != NULL || strlen(value) > 200)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "expected at most 200 characters without '/', not beginning with '.', got '%.60s'",
                        value);
    return SGM_OK;
}

/* The types that config_operator makes, and none, which takes an operator of the file away in an argument. */
sgm_status check_operator(const char *value)
{
    static const char *const names[] = {"gradients", "parameters", "mpi", "none"};
    return check_choice(value, names, sizeof names / sizeof *names);
}

/* Names of handlers with blanks between them. Only names are checked: no handler is created. */
sgm_status check_handlers(const char *value)
{
    char **names = sgm__words(value, NULL);
    sgm_status status = SGM_OK;
    if (names == NULL)
        return sgm_last_status();
    for (size_t i = 0; status == SGM_OK && names[i] != NULL; i++)
        status = sgm__handler_check_name(names[i]);
    sgm__free(names);
    return status;
}

/* A ready-made dataset or text:PATH. Something that looks like a file gets a hint how files are named. */
sgm_status check_dataset(const char *value)
{
    size_t count;
    const char *const *names = sgm_dataset_names(&count);
    size_t length = strcspn(value, ":");
    bool has_argument = value[length] == ':';
    if (strncmp(value, "text:", 5) == 0)
        return SGM_OK;
    for (size_t i = 0; i < count && has_argument; i++)
        if (strlen(names[i]) == length && memcmp(names[i], value, length) == 0)
            return SGM_OK; /* its own open() knows what may follow the colon */
    sgm_status status = check_choice(value, names, count);
    if (status == SGM_OK || strpbrk(value, "./") == NULL)
        return status;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "there is no dataset '%.60s'; of files: {csv: FILE, target: COLUMN}, "
                    "{inputs: FILE.npy, targets: FILE.npy} or text:FILE",
                    value);
}

/* Texts with commas between them, none empty; the list form of YAML was joined by options.c. */
sgm_status check_texts(const char *value)
{
    char **words = options_split(value);
    bool all = words != NULL;
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        all &= words[i][0] != '\0';
    sgm__free(words);
    return all ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "expected texts with a comma between them, got '%.60s'", value);
}

sgm_status check_separator(const char *value)
{
    return strlen(value) == 1 ? SGM_OK
                              : sgm_fail(SGM_ERROR_ARGUMENT, "expected one character, got '%.20s'", value);
}

/* input_range is a list of texts, so that each is checked as a number here. */
sgm_status check_range_number(const char *value)
{
    double number;
    return sgm__parse_double(value, &number) && isfinite(number)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "expected a number, got '%.40s'", value);
}

/* "4" or "0-3", from 0 on, the last not before the first. A sign is refused, which strtol would take. */
sgm_status check_columns(const char *value)
{
    char *end;
    long first = strtol(value, &end, 10), last = first;
    if (end != value && *end == '-') {
        const char *second = end + 1;
        last = strtol(second, &end, 10);
        if (end == second)
            end = NULL;
    }
    if (value[0] < '0' || value[0] > '9' || end == NULL || *end != '\0' || last < first || last > 1000000)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected columns from 0, such as 0-3 or 4, got '%.40s'", value);
    return SGM_OK;
}

/* The CSV extractor has a fixed number of mappings from texts to numbers. Names of classes take one of
 * them, so one less is left for texts. */
sgm_status check_texts_of(const char *name, const char *role, const data_config *data)
{
    const size_t maximum =
        sizeof(sgm_csv_extractor_options){.struct_size = 0}.mappings / sizeof(sgm_value_mapping) - 1;
    if (data->texts.count > 0 && data->csv == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s.texts: are for csv", name, role);
    if (data->texts.count > maximum)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s.texts: at most %zu, got %zu", name, role, maximum,
                        data->texts.count);
    for (size_t i = 0; i < data->texts.count; i++)
        if (check_columns(data->texts.keys[i]) != SGM_OK)
            return sgm__fail_within("%s: data.%s.texts", name, role);
    return SGM_OK;
}
