/* Lines of numbers are read as jansson reads them, whatever is in them. */
#include "monitors/runs/lines.h"
#include "test.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

/* Notes each number as "name=value;". */
static void note(void *user, const char *name, size_t length, double value)
{
    sgm__text_append(user, "%.*s=%.17g;", (int)length, name, value);
}

static char *by_jansson(const char *line)
{
    sgm__text text = {0};
    const char *name;
    json_t *values = json_loads(line, 0, NULL), *value;
    if (!json_is_object(values))
        sgm__text_append(&text, "none");
    json_object_foreach(values, name, value) if (json_is_number(value))
        note(&text, name, strlen(name), json_number_value(value));
    json_decref(values);
    return text.data != NULL ? sgm__text_take(&text) : sgm__strdup("");
}

TEST(lines_are_read_as_json)
{
    static const char *const lines[] = {
        "{\"epoch\":1,\"loss\":0.1,\"validation.loss\":2.5e-3}",
        " { \"a\" : -0.0 , \"b\":null,\t\"c\":12345678901234567 } ",
        "{\"a\":1e3,\"b\":1E+3,\"c\":-1e-300,\"d\":0.30000000000000004}",
        "{}",
        "{\"a\":01}",
        "{\"a\":-}",
        "{\"a\":.5}",
        "{\"a\":1.}",
        "{\"a\":1e}",
        "{\"a\":1e999}",
        "{\"a\":0x10}",
        "{\"a\":nan}",
        "{\"a\":1,}",
        "{\"a\":1}x",
        "{\"a\":1",
        "{\"a\" 1}",
        "[1,2]",
        "7",
        "nothing",
        "{\"\\u0061\":1,\"b\\\"\":2}",
        "{\"Übung\":1,\"a\":2}",
        "{\"a\":\"text, 7\",\"b\":true,\"c\":[1],\"d\":{\"e\":2},\"f\":3}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[256] = {0};
        snprintf(line, sizeof line - SGM__RUN_LINE_PADDING, "%s\n{\"next\":7}", lines[i]);
        sgm__text text = {0};
        if (!sgm__run_line_numbers(line, strlen(lines[i]), note, &text))
            sgm__text_append(&text, "none");
        char *expected = by_jansson(lines[i]);
        CHECK_STR(text.data != NULL ? text.data : "", expected);
        sgm__free(expected);
        sgm__text_free(&text);
        CHECK(strncmp(line + strlen(lines[i]), "\n{\"next\":7}", 11) == 0);
    }
}

/* Of 10,000 random numbers each is the nearest double, as strtod has it. */
TEST(numbers_are_the_nearest)
{
    sgm__random random = sgm__random_make(3, 0);
    for (int i = 0; i < 10000; i++) {
        char line[96] = {0}, number[40];
        snprintf(number, sizeof number, "%.*g", 1 + (int)sgm__random_below(&random, 17),
                 ldexp(sgm__random_uniform(&random) - 0.5, (int)sgm__random_below(&random, 600) - 300));
        snprintf(line, sizeof line, "{\"x\":%s}", number);
        sgm__text text = {0}, expected = {0};
        CHECK(sgm__run_line_numbers(line, strlen(line), note, &text));
        note(&expected, "x", 1, strtod(number, NULL));
        CHECK_STR(text.data, expected.data);
        sgm__text_free(&text);
        sgm__text_free(&expected);
    }
}

/* Offsets and lengths of the lines, and "-" for what is no line. */
static void tell(void *user, char *line, size_t length, off_t offset)
{
    if (line != NULL)
        sgm__text_append(user, "%lld+%zu ", (long long)offset, length);
    else
        sgm__text_append(user, "%lld- ", (long long)offset);
}

TEST(complete_lines_are_told)
{
    char path[] = "/tmp/sigma-lines-XXXXXX";
    int file = mkstemp(path);
    off_t next = 0;
    sgm__text text = {0};
    CHECK(file >= 0);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(write(file, "{1}\n\n{22}\n{3", 12), 12);
    CHECK_OK(sgm__run_each_line(file, 0, 12, tell, &text, &next));
    CHECK_STR(text.data, "0+3 5+4 ");
    CHECK_INT(next, 10);
    CHECK_INT(write(file, "}\n", 2), 2);
    CHECK_OK(sgm__run_each_line(file, next, 14, tell, &text, &next));
    CHECK_STR(text.data, "0+3 5+4 10+3 ");
    CHECK_INT(next, 14);

    /* Of 5 MB without an end the first 4 are no line, the others one that has an end. */
    char *long_line = malloc(5 << 20);
    CHECK(long_line != NULL);
    memset(long_line, 'x', 5 << 20);
    long_line[(5 << 20) - 1] = '\n';
    CHECK_INT(write(file, long_line, 5 << 20), 5 << 20);
    free(long_line);
    text.length = 0;
    CHECK_OK(sgm__run_each_line(file, next, 14 + (5 << 20), tell, &text, &next));
    CHECK_STR(text.data, "14- 4194318+1048575 ");
    sgm__text_free(&text);
    close(file);
}

TEST(columns_are_found_by_name)
{
    sgm__run_columns columns = {0};
    bool is_new;
    char name[16];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < SGM__RUNS_MAXIMUM_METRICS; i++) {
            int length = snprintf(name, sizeof name, "m%d", i);
            const sgm__run_column *column = sgm__run_column_of(&columns, name, (size_t)length, &is_new);
            CHECK(column != NULL && is_new == (round == 0));
            CHECK_INT(column - columns.columns, i);
        }
    CHECK(sgm__run_column_of(&columns, "more", 4, &is_new) == NULL);
    CHECK(sgm__run_column_of(&columns, "m7x", 2, &is_new) == sgm__run_column_named(&columns, "m7"));
    CHECK(sgm__run_column_named(&columns, "more") == NULL);
    sgm__run_columns_free(&columns);
}
