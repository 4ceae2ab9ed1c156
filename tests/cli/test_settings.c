/* One row for each setting: what the command shows, checks and fills in is what the library says. */
#include "test.h"

#include "config/config.h"
#include "optim/optimiser.h"

#include <ctype.h>
#include <math.h>

static char help[32768];

static void fill_help(void)
{
    sgm__text text = {0};
    options_help(&config_table, &text);
    CHECK(text.length < sizeof help);
    memcpy(help, text.data, text.length + 1);
    sgm__text_free(&text);
}

/* "  optimiser.beta1   number   share of ...": the lines of a key as one, with single spaces. */
static const char *help_line(const char *key)
{
    static char line[1024];
    char start[256];
    snprintf(start, sizeof start, "\n  %s ", key);
    const char *found = strstr(help, start);
    CHECK(found != NULL);
    size_t length = 0;
    for (const char *c = found + 1; *c != '\0' && length + 1 < sizeof line; c++) {
        bool ends = *c == '\n' && strncmp(c + 1, "          ", 10) != 0; /* else it goes on below */
        if (ends)
            break;
        if (!isspace((unsigned char)*c) || (length > 0 && line[length - 1] != ' '))
            line[length++] = isspace((unsigned char)*c) ? ' ' : *c;
    }
    line[length] = '\0';
    return line;
}

static const sgm_option *row_of(const option *o)
{
    size_t count;
    const sgm_setting *settings = o->settings(&count);
    const sgm_setting *setting =
        sgm_setting_find(settings, count, o->setting != NULL ? o->setting : o->row.name);
    CHECK(setting != NULL);
    return &setting->option;
}

static void check_help(const char *key, const sgm_option *row)
{
    const char *line = help_line(key);
    char bounds[120];
    CHECK(strstr(line, row->doc) != NULL);
    CHECK(row->unit == NULL || strstr(line, row->unit) != NULL);
    snprintf(bounds, sizeof bounds, row->maximum >= OPTION_ANY ? "[from %.15g" : "[%.15g to %.15g",
             row->minimum, row->maximum);
    CHECK((strstr(line, bounds) != NULL) == (row->minimum != row->maximum));
    for (size_t i = 0; row->choices != NULL && row->choices[i] != NULL; i++)
        CHECK(strstr(line, row->choices[i]) != NULL);
}

/* The rest of an option would say it a second time. */
static void check_says_nothing_itself(const option *o)
{
    CHECK(o->row.doc == NULL && o->row.unit == NULL && o->row.default_text == NULL && o->row.choices == NULL);
    CHECK(o->row.minimum == 0 && o->row.maximum == 0);
}

typedef struct seen {
    const sgm_option *rows[128];
    size_t count;
} seen;

static void check_table(const option_table *table, const char *prefix, seen *all)
{
    for (size_t i = 0; i < table->count; i++) {
        char key[160];
        snprintf(key, sizeof key, "%s%s", prefix, table->rows[i].row.name);
        if (table->rows[i].kind == OPTION_GROUP) {
            char below[200];
            snprintf(below, sizeof below, "%s.", key);
            check_table(table->rows[i].children, below, all);
        }
        if (table->rows[i].kind != OPTION_SETTING)
            continue;
        check_says_nothing_itself(&table->rows[i]);
        check_help(key, row_of(&table->rows[i]));
        all->rows[all->count++] = row_of(&table->rows[i]);
    }
}

static void check_used(const seen *all, const sgm_setting *(*table)(size_t *count), const char *but)
{
    size_t count;
    const sgm_setting *settings = table(&count);
    for (size_t i = 0; i < count; i++) {
        bool is_there = false;
        for (size_t k = 0; k < all->count; k++)
            is_there |= all->rows[k] == &settings[i].option;
        CHECK(is_there || strstr(but, settings[i].option.name) != NULL);
    }
}

TEST(every_setting_of_the_library_is_a_key_with_the_same_row)
{
    seen all = {0};
    fill_help();
    check_table(&config_table, "", &all);
    check_used(&all, sgm_optimiser_settings, "");
    check_used(&all, sgm_schedule_settings, "");
    check_used(&all, sgm_iterator_settings, "");
    check_used(&all, sgm_env_settings, "");
    /* the command has arguments of its own for these */
    check_used(&all, sgm_run_settings, "folder resume catch_interrupt paused");
}

/* The trainer's registry has the very rows. */
TEST(the_registry_has_the_rows_of_the_tables)
{
    size_t count;
    sgm_env *env = sgm_env_create("rows", .handler = "reference");
    sgm_trainer *trainer = sgm_trainer_create(env, "rows");
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), "optimiser", &content));
    const sgm_setting *settings = sgm_optimiser_settings(&count);
    for (size_t i = 0; i < count; i++)
        CHECK(sgm_registry_option(content.as.registry, settings[i].option.name) == &settings[i].option);
    sgm_content_clear(&content);
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), "optimiser.schedule", &content));
    settings = sgm_schedule_settings(&count);
    for (size_t i = 0; i < count; i++)
        CHECK(sgm_registry_option(content.as.registry, settings[i].option.name) == &settings[i].option);
    sgm_content_clear(&content);
    sgm_env_free(env);
}

/* --- bounds: the same in a file, in options and in a set --- */

#define NETWORK "network: input(4) + dense(3) + softmax_cross_entropy\n"

/* Reads optimiser.NAME=VALUE, for a type of optimiser that has the setting. */
static sgm_status read_value(const sgm_setting *setting, double value, config *c)
{
    const sgm_optimiser_type *type = NULL;
    char text[100], argument[200];
    for (size_t i = 0; type == NULL || !sgm__optimiser_type_uses(type, setting); i++)
        CHECK((type = sgm_optimiser_type_at(i)) != NULL);
    snprintf(text, sizeof text, "optimiser=%s", type->name);
    snprintf(argument, sizeof argument, "optimiser.%s=%.17g", setting->option.name, value);
    const char *const arguments[] = {text, argument};
    return config_parse(c, "rows.yaml", NETWORK, strlen(NETWORK), arguments, 2);
}

static void check_refused(const sgm_setting *setting, double value)
{
    config c;
    CHECK(read_value(setting, value, &c) != SGM_OK);
    CHECK(strstr(sgm_last_error(), setting->option.name) != NULL);
}

static void check_accepted(const sgm_setting *setting, double value)
{
    config c;
    CHECK_OK(read_value(setting, value, &c));
    config_free(&c);
}

TEST(files_and_the_library_have_the_same_bounds)
{
    size_t count;
    const sgm_setting *settings = sgm_optimiser_settings(&count);
    for (size_t i = 0; i < count; i++) {
        const sgm_option *row = &settings[i].option;
        check_accepted(&settings[i], row->minimum);
        check_accepted(&settings[i], row->maximum);
        check_refused(&settings[i], row->minimum - 1);
        check_refused(&settings[i],
                      row->kind == SGM_KIND_INTEGER ? row->maximum + 1 : nextafter(row->maximum, INFINITY));
    }
}

TEST(every_row_can_be_a_row_of_a_registry)
{
    const sgm_setting *(*const tables[])(size_t * count) = {sgm_optimiser_settings, sgm_schedule_settings,
                                                            sgm_run_settings, sgm_iterator_settings,
                                                            sgm_env_settings};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        size_t count;
        const sgm_setting *settings = tables[t](&count);
        CHECK(count > 0);
        for (size_t i = 0; i < count; i++)
            CHECK(settings[i].option.doc != NULL && settings[i].size > 0);
    }
}

/* --- values: 0 in a file is 0 --- */

TEST(a_zero_that_is_given_is_a_zero)
{
    config c;
    sgm_content content;
    CHECK_OK(config_parse(&c, "rows.yaml", NETWORK "optimiser: {type: adamw, weight_decay: 0, beta1: 0}\n",
                          strlen(NETWORK "optimiser: {type: adamw, weight_decay: 0, beta1: 0}\n"), NULL, 0));
    sgm_env *env = sgm_env_create("rows", .handler = "reference");
    sgm_trainer *trainer = sgm_trainer_create(env, "rows");
    CHECK_OK(sgm_trainer_set_optimiser(trainer, config_optimiser(&c.optimiser)));
    static const struct {
        const char *identifier;
        double value;
    } expected[] = {{"optimiser.weight_decay", 0}, {"optimiser.beta1", 0}, {"optimiser.beta2", 0.999}};
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), expected[i].identifier, &content));
        CHECK_NEAR(content.as.number, expected[i].value, 0);
    }
    sgm_env_free(env);
    config_free(&c);
}

TEST(defaults_of_types_are_shown_from_their_table)
{
    fill_help();
    CHECK(strstr(help_line("optimiser.learning_rate"),
                 "adadelta, lbfgs 1; rmsprop, adam, adamw, lamb, muon 0.001") != NULL);
    CHECK(strstr(help_line("optimiser.beta2"), "adam, adamw, lamb 0.999; lion 0.99; muon 0.95") != NULL);
    CHECK(strstr(help_line("optimiser.history"), "; lbfgs 10") != NULL);
    CHECK(strstr(help_line("optimiser.type"), "gradient_descent, momentum, nesterov") != NULL);
}

/* --- the manual --- */

/* "optimiser.beta1" in the table; NULL: a group, or nothing. */
static const option *find_key(const char *key)
{
    const option_table *table = &config_table;
    for (;;) {
        size_t length = strcspn(key, "."), i = 0;
        while (i < table->count && (strlen(table->rows[i].row.name) != length ||
                                    memcmp(table->rows[i].row.name, key, length) != 0))
            i++;
        if (i == table->count || key[length] == '\0')
            return i < table->count ? &table->rows[i] : NULL;
        table = table->rows[i].children;
        key += length + 1;
    }
}

/* "| `KEY` | KIND | DEFAULT | ...": kind and default are those of the library. */
static bool check_line(const char *line)
{
    static const char *const kinds[] = {"text", "file", "integer", "number", "flag"};
    char key[128], kind[32], default_value[128];
    if (sscanf(line, "| `%127[a-z_.]` | %31[a-z] | %127[^|]|", key, kind, default_value) != 3)
        return false;
    const option *o = find_key(key);
    if (o == NULL || o->kind != OPTION_SETTING)
        return false;
    const option whole = option_complete(o);
    CHECK_STR(kind, kinds[whole.kind]);
    if (option_default(&whole) != NULL) {
        default_value[strcspn(default_value, " :")] = '\0';
        CHECK_STR(default_value, option_default(&whole));
    }
    return true;
}

TEST(the_manual_has_the_defaults_of_the_tables)
{
    char *text;
    size_t length;
    int checked = 0;
    CHECK_OK(sgm__file_read("docs/manual/06-command.md", 1 << 20, &text, &length));
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        checked += check_line(line);
    CHECK(checked >= 13);
    sgm__free(text);
}
