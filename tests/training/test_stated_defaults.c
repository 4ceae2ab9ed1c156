/* Defaults that public headers state, against those that the library uses. */
#include "test.h"

#include <sigma/sigma.h>

/* A whole header as text, from the root of the sources, where tests run. */
static char *read_header(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        TEST_FAIL("%s cannot be opened", path);
    static char text[1 << 17];
    const size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    CHECK(size > 0 && size < sizeof text - 1);
    text[size] = '\0';
    return text;
}

static double default_of(const sgm_optimiser_type *type, const char *member)
{
    size_t count;
    const sgm_setting *settings = sgm_optimiser_settings(&count);
    const sgm_setting *setting = sgm_setting_find(settings, count, member);
    if (setting == NULL)
        TEST_FAIL("an optimiser has no setting '%s'", member);
    const char *place = (const char *)&type->defaults + setting->offset;
    return setting->option.kind == SGM_KIND_INTEGER ? (double)*(const int64_t *)place
                                                    : *(const double *)place;
}

/* One row of the table: the type's name, then a number or '-' for each column.
 */
static void check_row(const sgm_optimiser_type *type, char *row, char (*columns)[32], int column_count)
{
    char *rest = row;
    strtok_r(row, " ", &rest);
    for (int i = 0; i < column_count; i++) {
        const char *word = strtok_r(NULL, " \n", &rest);
        if (word == NULL)
            TEST_FAIL("%s: the table has nothing for %s", type->name, columns[i]);
        const double stated = strcmp(word, "-") == 0 ? 0 : strtod(word, NULL);
        if (stated != default_of(type, columns[i]))
            TEST_FAIL("%s: %s is stated as %s, and is %g", type->name, columns[i], word,
                      default_of(type, columns[i]));
    }
}

TEST(optimisers)
{
    char *table = strstr(read_header("include/sigma/optimisers.h"), " *                   learning_rate");
    CHECK(table != NULL);
    char columns[16][32];
    int column_count = 0, length;
    for (table += 2; sscanf(table, "%*[ ]%31[a-z_0-9]%n", columns[column_count], &length) == 1;
         table += length)
        CHECK(++column_count < 16);
    CHECK_INT(column_count, 9);

    const sgm_optimiser_type *type;
    for (size_t i = 0; (type = sgm_optimiser_type_at(i)) != NULL; i++) {
        char name[64], row[256];
        snprintf(name, sizeof name, "\n * %s ", type->name);
        const char *found = strstr(table, name);
        if (found == NULL)
            TEST_FAIL("the table has no %s", type->name);
        snprintf(row, sizeof row, "%.*s", (int)strcspn(found + 3, "\n"), found + 3);
        check_row(type, row, columns, column_count);
    }
}

/* The comment of each member whose setting has a default says it. */
static void check_struct(const char *path, const char *name, const sgm_setting *settings, size_t count)
{
    char *text = strstr(read_header(path), name);
    if (text == NULL)
        TEST_FAIL("%s has no %s", path, name);
    *strstr(text, "\n}") = '\0';
    int compared = 0;
    for (size_t i = 0; i < count; i++) {
        const sgm_option *option = &settings[i].option;
        const bool is_number = option->kind == SGM_KIND_INTEGER || option->kind == SGM_KIND_NUMBER;
        if (!is_number || option->default_value == 0)
            continue;
        char member[64], stated[64];
        /* Users of names know the size of minibatches by a longer one. */
        snprintf(member, sizeof member, " %s;",
                 strcmp(option->name, "minibatch_size") ? option->name : "size");
        snprintf(stated, sizeof stated, "default %.10g", option->default_value);
        const char *comment = strstr(text, member);
        if (comment == NULL)
            TEST_FAIL("%s has no member%s", name, member);
        const char *found = strstr(comment, stated), *end = strstr(comment, "*/");
        if (found == NULL || found > end)
            TEST_FAIL("%s:%s its comment does not say \"%s\"", name, member, stated);
        compared++;
    }
    CHECK(compared > 0);
}

TEST(iterators)
{
    size_t count;
    const sgm_setting *settings = sgm_iterator_settings(&count);
    check_struct("include/sigma/data.h", "typedef struct sgm_iterator_options {", settings, count);
}

TEST(runs)
{
    size_t count;
    const sgm_setting *settings = sgm_run_settings(&count);
    check_struct("include/sigma/training.h", "typedef struct sgm_run_options {", settings, count);
}

TEST(settings_of_all_optimisers)
{
    size_t count;
    const sgm_setting *settings = sgm_optimiser_settings(&count);
    check_struct("include/sigma/optimisers.h", "typedef struct sgm_optimiser_options {", settings, count);
}
