/* Tables: kinds, ranges, missing cells and categories of columns, separators, headers, and what is refused.
 */
#include "base/base.h"
#include "data_test.h"
#include <sigma/table.h>

#include <math.h>

static const char *path;

/* A file of this name and content in the test's folder. */
static const char *file(const char *name, const char *content)
{
    path = data_path(name);
    CHECK_OK(sgm__file_write_atomic(path, content, strlen(content)));
    return path;
}

static const sgm_table_column *column_of(const sgm_table *table, const char *name)
{
    int64_t index = sgm_table_find_column(table, name);
    return index >= 0 ? sgm_table_column_at(table, (size_t)index) : NULL;
}

static const char *kind_of(const sgm_table *table, const char *name)
{
    return sgm_column_kind_name(column_of(table, name)->kind);
}

TEST(kinds_and_values)
{
    sgm_table *table = sgm_table_open(file("a.csv", "age,town,born,note,none\n"
                                                    "1.5,Bonn,2026-11-23,9,\n"
                                                    "NA,Ulm,1970-01-02 06:00,x,?\n"
                                                    "-2.5,Bonn,2000/02/29,7,null\n"
                                                    "1e1, Bonn ,31.12.1969,,NaN\n"));
    CHECK(table != NULL);
    CHECK_INT(sgm_table_rows(table), 4);
    CHECK_INT((int64_t)sgm_table_columns(table), 5);
    CHECK(sgm_table_has_header(table));
    CHECK_STR(kind_of(table, "age"), "number");
    CHECK_STR(kind_of(table, "town"), "category");
    CHECK_STR(kind_of(table, "born"), "date");
    CHECK_STR(kind_of(table, "note"), "category");
    CHECK_STR(kind_of(table, "none"), "empty");
    const sgm_table_column *age = column_of(table, "age"), *town = column_of(table, "town");
    CHECK_INT(age->missing, 1);
    CHECK_NEAR(age->minimum, -2.5, 0);
    CHECK_NEAR(age->maximum, 10, 0);
    CHECK_NEAR(age->mean, 3, 1e-15);
    /* numpy.std([1.5, -2.5, 10]) */
    CHECK_NEAR(age->standard_deviation, 5.2121652570372965, 1e-14);
    CHECK_INT((int64_t)town->category_count, 2);
    CHECK_STR(town->categories[0].text, "Bonn");
    CHECK_INT(town->categories[0].count, 3);
    CHECK_STR(town->categories[1].text, "Ulm");
    CHECK(isnan(town->mean));
    CHECK_NEAR(column_of(table, "born")->minimum, -1, 0);
    /* date -u -d 2026-11-23 +%s, by 86400 */
    CHECK_NEAR(column_of(table, "born")->maximum, 20780, 0);
    CHECK_NEAR(column_of(table, "born")->mean, (-1 + 1.25 + 11016 + 20780) / 4.0, 1e-10);
    CHECK_INT(column_of(table, "none")->missing, 4);
    CHECK(sgm_table_column_at(table, 5) == NULL);
    CHECK_INT(sgm_table_find_column(table, "twon"), -1);
    CHECK(strstr(sgm_last_error(), "a.csv has no column 'twon'; did you mean 'town'?"));
    sgm_table_free(table);
}

/* What can be read in two ways, or does not exist, is a text. */
TEST(dates_that_are_none)
{
    static const char *const texts[] = {"03/04/2026",       "2026-02-30", "2025-02-29",
                                        "2026-13-01",       "1900-02-29", "2026-11-23x",
                                        "2026-11-23 24:00", "2026-11/23", "1.2.2026"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char content[64];
        snprintf(content, sizeof content, "day\n%s\n", texts[i]);
        sgm_table *table = sgm_table_open(file("d.csv", content));
        CHECK_STR(kind_of(table, "day"), "category");
        sgm_table_free(table);
    }
    sgm_table *table = sgm_table_open(file("d.csv", "day\n2000-02-29T23:59:59.5Z\n0000-03-01\n9999-12-31\n"));
    CHECK_STR(kind_of(table, "day"), "date");
    /* Python: (date(9999, 12, 31) - date(1970, 1, 1)).days; year 0 by the algorithm's own epoch */
    CHECK_NEAR(column_of(table, "day")->maximum, 2932896, 0);
    CHECK_NEAR(column_of(table, "day")->minimum, -719468, 0);
    sgm_table_free(table);
}

/* What is at the bounds of numbers and dates, each as the cell of a column by itself. */
TEST(kinds_of_cells)
{
    static const struct {
        const char *cell, *kind;
    } cases[] = {{"5", "number"},
                 {"\" 5\"", "category"},
                 {"\"5 \"", "number"},
                 {"+5", "number"},
                 {"-.5e-3", "number"},
                 {"1e400", "category"},
                 {"0x10", "category"},
                 {"inf", "category"},
                 {"1.", "number"},
                 {".", "category"},
                 {"-", "category"},
                 {"12.34.5", "category"},
                 {"1234-5", "category"},
                 {"1234/5", "category"},
                 {"12.34", "number"},
                 {"12.34567", "number"},
                 {"1999-12-31", "date"},
                 {"31.12.1999", "date"},
                 {"1999-12-32", "category"},
                 {"123456789012345678901234567890", "number"},
                 {"0.1234567890123456789012", "number"},
                 {"#N/A", "empty"},
                 {"nan", "empty"},
                 {"none", "category"},
                 {"NANA", "category"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char content[128];
        snprintf(content, sizeof content, "a,b\n%s,-5\n", cases[i].cell);
        sgm_table *table = sgm_table_open(file("k.csv", content), .header = SGM_HEADER_FIRST_LINE);
        if (strcmp(kind_of(table, "a"), cases[i].kind) != 0)
            TEST_FAIL("'%s' is of kind %s", cases[i].cell, kind_of(table, "a"));
        sgm_table_free(table);
    }
}

TEST(separators_are_found)
{
    static const struct {
        const char *name, *content;
        char separator;
    } cases[] = {{"a.csv", "a;b;c,d\n1;2;3\n", ';'}, {"a.csv", "\"a;;;\",b\n1,2\n", ','},
                 {"a.csv", "a|b\n1|2\n", '|'},       {"a.tsv", "a,a\tb\n1\t2\n", '\t'},
                 {"a.csv", "a\tb\n1\t2\n", '\t'},    {"a.csv", "a\n1\n", ','}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgm_table *table = sgm_table_open(file(cases[i].name, cases[i].content));
        CHECK_INT(sgm_table_separator(table), cases[i].separator);
        CHECK_INT(sgm_table_rows(table), 1);
        sgm_table_free(table);
    }
    sgm_table *table = sgm_table_open(file("a.csv", "a;b\n1,5;2\n-0,25;3\n"), .decimal = ',');
    CHECK_STR(kind_of(table, "a"), "number");
    CHECK_NEAR(column_of(table, "a")->minimum, -0.25, 0);
    CHECK_NEAR(column_of(table, "a")->maximum, 1.5, 0);
    sgm_table_free(table);
    /* 1.234,5 is no number with either sign. */
    table = sgm_table_open(file("a.csv", "a;b\n1.234,5;2\n"), .decimal = ',');
    CHECK_STR(kind_of(table, "a"), "category");
    sgm_table_free(table);
}

TEST(headers)
{
    const char *content = "1,x\n2,y\n";
    sgm_table *table = sgm_table_open(file("h.csv", content));
    CHECK(!sgm_table_has_header(table));
    CHECK_INT(sgm_table_rows(table), 2);
    CHECK_STR(sgm_table_column_at(table, 1)->name, "1");
    sgm_table_free(table);
    table = sgm_table_open(path, .header = SGM_HEADER_FIRST_LINE);
    CHECK_INT(sgm_table_rows(table), 1);
    CHECK_STR(sgm_table_column_at(table, 1)->name, "x");
    sgm_table_free(table);
    table = sgm_table_open(file("h.csv", "a,,c\nx,y,z\n"));
    CHECK_STR(sgm_table_column_at(table, 1)->name, "1");
    CHECK_INT(sgm_table_rows(table), 1);
    sgm_table_free(table);
    table = sgm_table_open(path, .header = SGM_HEADER_NONE);
    CHECK_INT(sgm_table_rows(table), 2);
    sgm_table_free(table);
}

/* A text among many numbers is told; where texts are no exception, none is. */
TEST(exceptions)
{
    sgm__text content = {0};
    sgm__text_append(&content, "many,few,id\n");
    for (int i = 0; i < 30; i++)
        sgm__text_append(&content, "%s,%s,n%d\n",
                         i == 7   ? "seven"
                         : i == 9 ? "2026-01-01"
                                  : "1.5",
                         i % 4 == 0 ? "one" : "1", i);
    sgm_table *table = sgm_table_open(file("e.csv", content.data));
    CHECK_STR(kind_of(table, "many"), "category");
    CHECK_STR(column_of(table, "many")->exception, "seven");
    CHECK_INT(column_of(table, "many")->exception_line, 9);
    CHECK(column_of(table, "few")->exception == NULL);
    CHECK_STR(kind_of(table, "id"), "text"); /* 30 different ones of 30 */
    sgm_table_free(table);
    sgm__text_free(&content);
}

/* Values and texts beyond what is kept: moments stay exact, the histogram keeps its shape. */
TEST(many_rows)
{
    sgm__text content = {0};
    sgm__text_append(&content, "number,text\n");
    const int rows = 200000;
    for (int i = 0; i < rows; i++)
        sgm__text_append(&content, "%d,t%d\n", i, i % 1001);
    sgm_table *table = sgm_table_open(file("m.csv", content.data));
    sgm__text_free(&content);
    CHECK_INT(sgm_table_rows(table), rows);
    const sgm_table_column *number = column_of(table, "number");
    CHECK_NEAR(number->mean, (rows - 1) / 2.0, 1e-6);
    CHECK_NEAR(number->standard_deviation, sqrt(((double)rows * rows - 1) / 12), 1e-6);
    CHECK_INT((int64_t)number->category_count, 0);
    CHECK_STR(kind_of(table, "text"), "text"); /* one text more than are counted */
    int64_t counts[8], sum = 0;
    CHECK_OK(sgm_table_histogram(table, 0, counts, 8));
    for (int i = 0; i < 8; i++)
        sum += counts[i];
    CHECK(sum > 30000 && sum <= 65536);
    for (int i = 0; i < 8; i++)
        CHECK_NEAR((double)counts[i] / (double)sum, 0.125, 1e-3);
    CHECK_INT(sgm_table_histogram(table, 1, counts, 8), SGM_ERROR_ARGUMENT);
    CHECK(strstr(sgm_last_error(), "column 'text' holds neither numbers nor dates"));
    sgm_table_free(table);
}

TEST(histograms_of_few_values)
{
    sgm_table *table = sgm_table_open(file("f.csv", "a,b\n1,5\n1,5\n4,5\n2,5\n"));
    int64_t counts[3];
    CHECK_OK(sgm_table_histogram(table, 0, counts, 3));
    CHECK_INT(counts[0], 2);
    CHECK_INT(counts[1], 1);
    CHECK_INT(counts[2], 1);
    CHECK_OK(sgm_table_histogram(table, 1, counts, 3)); /* no width */
    CHECK_INT(counts[0], 4);
    CHECK_INT(sgm_table_histogram(table, 2, counts, 3), SGM_ERROR_ARGUMENT);
    sgm_table_free(table);
}

TEST(what_is_no_table)
{
    CHECK_ERROR(sgm_table_open(file("x.csv", "a,b,a\n1,2,3\n")),
                "x.csv: the columns 0 and 2 (from 0) are both called 'a'; rename one of them");
    CHECK_ERROR(sgm_table_open(file("x.csv", "\n \n")), "the table is empty: it has no line with a cell");
    CHECK_ERROR(sgm_table_open(file("x.csv", "a,b\n1,2\n3\n")), "line 3: 2 columns were expected");
    sgm_table *table = sgm_table_open(path, .skip_ragged = true);
    CHECK_INT(sgm_table_rows(table), 1);
    sgm_table_free(table);
    CHECK_ERROR(sgm_table_open("nowhere.csv"), "nowhere.csv");
    CHECK_ERROR(sgm_table_open(path, .decimal = ';'), "the sign before decimals is '.' or ','");
    CHECK_ERROR(sgm_table_open(path, .decimal = ',', .separator = ','), "a comma cannot be before decimals");
    CHECK_ERROR(sgm_table_open(NULL), "path");
    sgm_table_free(NULL);
}

/* --- JSON Lines --- */

static const char animals[] = "{\"species\": \"cat\", \"weight\": 4.5, \"2020\": true, \"town\": null}\n"
                              "\n"
                              "{\"weight\": 20, \"species\": \"dog\", \"town\": \"Ulm\"}\r\n"
                              "  {\"species\": \"\", \"weight\": 0.1, \"2020\": false}";

TEST(objects_are_rows)
{
    sgm_table *table = sgm_table_open(file("animals.jsonl", animals));
    CHECK(table != NULL && sgm_table_rows(table) == 3 && sgm_table_columns(table) == 4);
    CHECK(sgm_table_has_header(table) && sgm_table_separator(table) == '\0');
    CHECK_STR(sgm_table_column_at(table, 0)->name, "species");
    CHECK_STR(sgm_table_column_at(table, 2)->name, "2020");
    CHECK_INT(sgm_table_column_at(table, 0)->missing, 1);
    CHECK_INT(sgm_table_column_at(table, 1)->kind, SGM_COLUMN_NUMBER);
    CHECK_NEAR(sgm_table_column_at(table, 1)->mean, 24.6 / 3, 1e-12);
    CHECK_INT(sgm_table_column_at(table, 2)->kind, SGM_COLUMN_CATEGORY);
    CHECK_INT(sgm_table_column_at(table, 3)->missing, 2);
    sgm_pipeline *pipeline =
        sgm_pipeline_fit(table, .targets = {"weight"}, .drop = {"town"}, .scale = SGM_SCALE_NONE);
    sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, data_path("animals.jsonl"));
    sgm_block *block = NULL;
    CHECK_OK(sgm_extractor_extract(extractor, 10, &block));
    CHECK(block != NULL && block->count == 3);
    CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "targets"), (int64_t[]){1, 0}), 20, 0);
    sgm_block_free(block);
    CHECK_OK(sgm_extractor_rewind(extractor));
    CHECK_OK(sgm_extractor_extract(extractor, 2, &block));
    CHECK(block != NULL && block->count == 2);
    sgm_block_free(block);
    sgm_extractor_free(extractor);
    sgm_pipeline_free(pipeline);
    sgm_table_free(table);
}

TEST(wrong_objects_are_refused)
{
    CHECK_ERROR(sgm_table_open(file("a.jsonl", "{\"a\": 1}\n{\"a\": 2, \"b\": 3}\n")),
                "line 2: 'b' is no member of the first");
    CHECK_ERROR(sgm_table_open(file("b.jsonl", "{\"a\": 1}\n{\"a\": [2]}\n")),
                "line 2: the member 'a' is a list");
    CHECK_ERROR(sgm_table_open(file("c.jsonl", "{\"a\": 1}\n[1]\n")),
                "line 2: an object in one line was expected");
    CHECK_ERROR(sgm_table_open(file("d.jsonl", "{\"a\": 1}\n\n{\"a\": }\n")), "d.jsonl: line 3, byte 7");
    CHECK_ERROR(sgm_table_open(file("e.jsonl", "{}\n")), "names no column");
    CHECK_ERROR(sgm_table_open(file("f.jsonl", "")), "the table is empty");
    CHECK_ERROR(sgm_table_open(file("g.jsonl", "[\n{\"a\": 1},\n{\"a\": 2}\n]\n")),
                "g.jsonl: line 1, byte 1: ']' expected near end of file; an object in one line was expected");
}

TEST(a_member_without_a_name_is_a_column_by_its_number)
{
    const char *nameless = file("nameless.jsonl", "{\"a\": 1, \"\": 2}\n{\"a\": 2, \"\": 3}\n");
    sgm_table *table = sgm_table_open(nameless);
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"a"}, .scale = SGM_SCALE_NONE);
    sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, nameless);
    sgm_block *block = NULL;
    CHECK_OK(table);
    CHECK_STR(sgm_table_column_at(table, 1)->name, "1");
    CHECK_OK(sgm_extractor_extract(extractor, 10, &block));
    CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "inputs"), (int64_t[]){1, 0}), 3, 0);
    sgm_block_free(block);
    sgm_extractor_free(extractor);
    sgm_pipeline_free(pipeline);
    sgm_table_free(table);
}

TEST(a_byte_order_mark_is_no_part_of_the_first_object)
{
    sgm_table *table = sgm_table_open(file("mark.jsonl", "\xEF\xBB\xBF{\"a\": 1}\n{\"a\": 2}\n"));
    CHECK(table != NULL && sgm_table_rows(table) == 2);
    CHECK_STR(sgm_table_column_at(table, 0)->name, "a");
    sgm_table_free(table);
    CHECK_ERROR(sgm_table_open(file("late.jsonl", "{\"a\": 1}\n\xEF\xBB\xBF{\"a\": 2}\n")),
                "late.jsonl: line 2, byte");
}
