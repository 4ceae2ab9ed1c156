/* Pieces of a text table: where they end, cells and lines against a reader that goes byte by byte, and the
 * same results with any number of threads. */
#include "base/base.h"
#include "reader_test.h"
#include <sigma/table.h>

#include <math.h>
#include <zlib.h>

#define PIECE 65536 /* as csv_cut.c has it; other sizes would test less, not fail */

/* --- a reference: one byte after the other, by the grammar of csv.h --- */

typedef struct plain_table {
    char *texts[400000]; /* NULL: missing */
    size_t cells;
    int64_t lines[200000]; /* of rows */
    size_t rows;
} plain_table;

static plain_table expected;

static void forget(void)
{
    for (size_t i = 0; i < expected.cells; i++)
        free(expected.texts[i]);
    expected.cells = expected.rows = 0;
}

static bool blank(char byte, char separator)
{
    return (byte == ' ' || byte == '\t') && (byte != separator || separator == ' ');
}

static bool line_end(char byte)
{
    return byte == '\n' || byte == '\r' || byte == '\0';
}

static const char *next_line(const char *at, int64_t *line)
{
    if (*at == '\0')
        return at;
    ++*line;
    return at + (at[0] == '\r' && at[1] == '\n' ? 2 : 1);
}

static const char *plain_cell(const char *at, char separator, int64_t *line)
{
    static char text[1 << 20];
    size_t length = 0;
    if (*at == '"') {
        for (at++; at[0] != '"' || at[1] == '"'; at++) {
            *line += at[0] == '\n' || (at[0] == '\r' && at[1] != '\n');
            text[length++] = *at;
            at += at[0] == '"';
        }
        for (at++; blank(*at, separator) && separator != ' ';)
            at++;
    } else {
        while (!line_end(*at) && *at != separator && !(separator == ' ' && *at == '\t'))
            text[length++] = *at++;
        while (length > 0 && blank(text[length - 1], separator))
            length--;
    }
    text[length] = '\0';
    expected.texts[expected.cells++] = length > 0 ? strdup(text) : NULL;
    return at;
}

static void read_plainly(const char *at, char separator)
{
    int64_t line = 1;
    forget();
    for (;;) {
        while (blank(*at, separator))
            at++;
        if (*at == '\0')
            return;
        if (line_end(*at)) {
            at = next_line(at, &line);
            continue;
        }
        expected.lines[expected.rows++] = line;
        for (;;) {
            at = plain_cell(at, separator, &line);
            if (!line_end(*at) && separator != ' ')
                at++;
            else if (line_end(*at))
                break;
            while (blank(*at, separator))
                at++;
            if (separator == ' ' && line_end(*at))
                break;
        }
        at = next_line(at, &line);
    }
}

/* --- comparisons --- */

static void check_reading(sgm_reader *reader, int64_t count, size_t columns)
{
    size_t row = 0;
    int wrong = 0;
    sgm_examples r;
    for (;;) {
        CHECK_OK(sgm_reader_read(reader, count, &r));
        if (r.count == 0)
            break;
        CHECK_INT(r.columns, (int64_t)columns);
        for (int64_t i = 0; i < r.count && row < expected.rows; i++, row++) {
            wrong += r.lines[i] != expected.lines[row];
            for (size_t k = 0; k < columns; k++) {
                const char *a = r.cells[(size_t)i * columns + k], *b = expected.texts[row * columns + k];
                wrong += (a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0);
            }
        }
    }
    CHECK_INT(wrong, 0);
    CHECK_INT((int64_t)row, (int64_t)expected.rows);
}

static void check_text(const char *text, size_t length, char separator, size_t columns)
{
    read_plainly(text, separator);
    CHECK_INT((int64_t)expected.cells, (int64_t)(expected.rows * columns));
    sgm_reader *reader = sgm_csv_reader(sgm_memory_source("t.csv", text, length), .separator = separator);
    check_reading(reader, 777, columns);
    CHECK_OK(sgm_reader_rewind(reader));
    check_reading(reader, 1000000, columns);
    CHECK_OK(sgm_reader_rewind(reader));
    check_reading(reader, 1, columns);
    sgm_reader_free(reader);
}

/* --- texts --- */

static char text[1 << 20];

/* Cells of all kinds, line ends of all kinds, now and then lines of blanks. */
static size_t make_text(uint64_t seed, char separator, int columns, size_t size)
{
    static const char *const cells[] = {
        "1",        "-2.5",         "\"\"",    "\"a\"\"b\"", "x\"y",     "\"l\nm\"",         "\"c\r\nd\"",
        "\"e\rf\"", "\"g,h;i\tj\"", "\" k \"", "text",       "\"\"\"\"", "\"n\"\"\no\"\"\"", "Köln",
        "5\""};
    static const char *const ends[] = {"\n", "\r\n", "\n", "\r", "\n\n", "\r\n\r\n", "\n  \n"};
    sgm__random random = sgm__random_make(seed, 0);
    size_t length = 0;
    while (length < size) {
        for (int i = 0; i < columns; i++) {
            bool spaced = sgm__random_below(&random, 9) == 0;
            const char *cell = cells[sgm__random_below(&random, sizeof cells / sizeof *cells)];
            bool empty = separator != ' ' && i > 0 && sgm__random_below(&random, 9) == 0;
            length += (size_t)sprintf(text + length, "%s%s%s", spaced ? " " : "", empty ? "" : cell,
                                      spaced ? "  " : "");
            if (i < columns - 1)
                text[length++] = separator;
        }
        length += (size_t)sprintf(text + length, "%s", ends[sgm__random_below(&random, 7)]);
    }
    return length;
}

TEST(cells_and_lines)
{
    static const char separators[] = {',', ';', '\t', ' '};
    for (uint64_t seed = 0; seed < 24; seed++) {
        char separator = separators[seed % 4];
        size_t columns = 1 + seed % 5, length = make_text(seed, separator, (int)columns, 150000);
        check_text(text, length, separator, columns);
        while (length > 0 && line_end(text[length - 1])) /* the last line without its end */
            text[--length] = '\0';
        check_text(text, length, separator, columns);
    }
    forget();
}

/* Something that must not be cut, at every place around the end of a piece and of a block of 64 bytes. */
TEST(ends_of_pieces)
{
    static const char *const middles[] = {
        "\r\n",       "\r",       "\n",          "\"a\"\"b\"\r\n", "\"\n\"\n", "x\"y\n", "  \"\r\n\" \r\n",
        "\"\"\"\"\n", "\r\n\r\n", "\"\"\"\n\"\n"};
    for (size_t i = 0; i < sizeof middles / sizeof *middles; i++) {
        for (size_t place = PIECE - 140; place < PIECE + 10; place++) {
            size_t length = 0;
            while (length < place) {
                size_t left = place - length;
                length += (size_t)sprintf(text + length, "%.*s\n", left < 9 ? (int)left - 1 : 8, "12345678");
            }
            length += (size_t)sprintf(text + length, "%s1\n\"3\"", middles[i]);
            check_text(text, length, ',', 1);
        }
    }
    forget();
}

TEST(rows_longer_than_a_piece)
{
    size_t length = (size_t)sprintf(text, "a,b\n");
    for (int row = 0; row < 3; row++) {
        length += (size_t)sprintf(text + length, "%d,\"", row);
        for (int i = 0; i < 30000; i++)
            length += (size_t)sprintf(text + length, i % 7 == 0 ? "\"\"\n" : "word,\r\n");
        length += (size_t)sprintf(text + length, "\"\n1,2\n");
    }
    check_text(text, length, ',', 2);
    forget();
}

/* --- threads --- */

static const int32_t thread_counts[] = {1, 2, 5};

/* Twelve pieces with everything that a table can have. */
static const char *mixed_table(const char *name)
{
    sgm__random random = sgm__random_make(3, 0);
    sgm__text content = {0};
    sgm__text_append(&content, "id,x,town,day,note,y\n");
    for (int i = 0; i < 20000; i++) {
        sgm__text_append(&content, "%d,%.17g,%s,%d-%02d-%02d,", i, sgm__random_normal(&random),
                         i % 7 == 0 ? "Bonn" : (i % 5 == 0 ? "\"Ulm, an der Donau\"" : "Köln"), 1990 + i % 30,
                         1 + i % 12, 1 + i % 28);
        if (i % 11 != 0)
            sgm__text_append(&content, i % 3 == 0 ? "\"note\n%d\"" : "n%d", i);
        sgm__text_append(&content, i % 13 == 0 ? ",\r\n" : ",%.3f\n", sgm__random_uniform(&random));
    }
    const char *path = data_path(name);
    CHECK_OK(sgm__file_write_atomic(path, content.data, content.length));
    sgm__text_free(&content);
    return path;
}

static void check_same_column(const sgm_table_column *a, const sgm_table_column *b)
{
    CHECK_STR(a->name, b->name);
    CHECK_INT(a->kind, b->kind);
    CHECK_INT(a->missing, b->missing);
    CHECK(memcmp(&a->minimum, &b->minimum, sizeof a->minimum) == 0);
    CHECK(memcmp(&a->maximum, &b->maximum, sizeof a->maximum) == 0);
    CHECK(memcmp(&a->mean, &b->mean, sizeof a->mean) == 0);
    CHECK(memcmp(&a->standard_deviation, &b->standard_deviation, sizeof a->mean) == 0);
    CHECK_INT((int64_t)a->category_count, (int64_t)b->category_count);
    for (size_t i = 0; i < a->category_count && i < b->category_count; i++) {
        CHECK_STR(a->categories[i].text, b->categories[i].text);
        CHECK_INT(a->categories[i].count, b->categories[i].count);
    }
}

TEST(tables_are_the_same_for_all_threads)
{
    const char *path = mixed_table("threads.csv");
    sgm_table *tables[3];
    for (int i = 0; i < 3; i++) {
        tables[i] = sgm_table_open(path, .threads = thread_counts[i]);
        CHECK(tables[i] != NULL);
        CHECK_INT(sgm_table_rows(tables[i]), 20000);
        for (size_t k = 0; k < sgm_table_columns(tables[0]); k++)
            check_same_column(sgm_table_column_at(tables[0], k), sgm_table_column_at(tables[i], k));
        int64_t first[9], other[9];
        CHECK_OK(sgm_table_histogram(tables[0], 1, first, 9));
        CHECK_OK(sgm_table_histogram(tables[i], 1, other, 9));
        CHECK(memcmp(first, other, sizeof first) == 0);
    }
    CHECK_INT((int64_t)sgm_table_column_at(tables[0], 2)->category_count, 3);
    CHECK_STR(sgm_column_kind_name(sgm_table_column_at(tables[0], 4)->kind), "text");
    for (int i = 0; i < 3; i++)
        sgm_table_free(tables[i]);
}

/* All values of an extractor, in blocks of `count`, after passing over the first two blocks. */
static float *extract_all(sgm_extractor *extractor, int64_t count, size_t width, int64_t *rows)
{
    float *values = calloc(25000 * width, sizeof *values);
    *rows = 0;
    for (;;) {
        sgm_block *block;
        CHECK_OK(sgm_extractor_extract(extractor, count, &block));
        if (block == NULL)
            return values;
        const float *inputs = sgm_tensor_data(sgm_block_field(block, "inputs"));
        memcpy(values + (size_t)*rows * width, inputs, (size_t)block->count * width * sizeof *values);
        *rows += block->count;
        sgm_block_free(block);
    }
}

TEST(blocks_are_the_same_for_all_threads_and_sizes)
{
    static const int64_t sizes[] = {100000, 1, 1777};
    const char *path = mixed_table("threads.csv");
    sgm_table *table = sgm_table_open(path);
    sgm_pipeline *pipeline =
        sgm_pipeline_fit(table, .targets = {"town"}, .drop = {"note"}, .impute = SGM_IMPUTE_FLAG);
    size_t width = (size_t)sgm_pipeline_width(pipeline, "inputs");
    float *first = NULL;
    int64_t rows, first_rows = 0;
    for (int i = 0; i < 3; i++) {
        sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, path, .threads = thread_counts[i]);
        float *values = extract_all(extractor, sizes[i], width, &rows);
        CHECK_INT(rows, 20000);
        if (first == NULL) {
            first = values;
            first_rows = rows;
        } else {
            CHECK(rows == first_rows && memcmp(first, values, (size_t)rows * width * sizeof *first) == 0);
            free(values);
        }
        CHECK_OK(sgm_extractor_rewind(extractor)); /* in the middle of a batch, too */
        sgm_block *block;
        CHECK_OK(sgm_extractor_extract(extractor, 10, &block));
        CHECK(memcmp(first, sgm_tensor_data(sgm_block_field(block, "inputs")), 10 * width * sizeof *first) ==
              0);
        sgm_block_free(block);
        sgm_extractor_free(extractor);
    }
    CHECK_NEAR(first[2 * width],
               (2 - sgm_table_column_at(table, 0)->mean) / sgm_table_column_at(table, 0)->standard_deviation,
               1e-6);
    free(first);
    sgm_pipeline_free(pipeline);
    sgm_table_free(table);
}

/* The first failure of the file is told, whoever comes upon one first, and what is before it is read. */
TEST(failures_are_the_same_for_all_threads)
{
    sgm__text content = {0};
    for (int i = 0; i < 60000; i++)
        sgm__text_append(&content,
                         i == 31000   ? "1,2\n\"a\nb\",x\n"
                         : i == 45000 ? "1\n"
                                      : "%d,\"%d\"\n",
                         i, i);
    for (int i = 0; i < 3; i++) {
        sgm_extractor *extractor = sgm_csv_extractor(
            sgm_csv_reader(sgm_memory_source("f.csv", content.data, content.length), .separator = ','),
            .fields = {{"inputs", 0, 1}}, .threads = thread_counts[i]);
        sgm_block *block;
        int64_t rows = 0;
        for (;;) {
            if (sgm_extractor_extract(extractor, 1000, &block) != SGM_OK)
                break;
            rows += block->count;
            sgm_block_free(block);
        }
        CHECK_CONTAINS(sgm_last_error(), "f.csv: line 31002, column 0 (from 0): \"a\nb\" is not a number");
        CHECK_INT(rows, 31000);
        CHECK(sgm_extractor_extract(extractor, 1000, &block) != SGM_OK); /* it stays one */
        sgm_extractor_free(extractor);
    }
    CHECK_OK(sgm__file_write_atomic(data_path("f.csv"), content.data, content.length));
    for (int i = 0; i < 3; i++) {
        CHECK(sgm_table_open(data_path("f.csv"), .threads = thread_counts[i]) == NULL);
        CHECK_CONTAINS(sgm_last_error(), "f.csv: line 45003: 2 columns were expected as in line 1, 1 came");
    }
    sgm__text_free(&content);
}

static int64_t warned_lines;

static void add_warning(void *user, sgm_log_level level, const char *component, const char *message)
{
    const char *line = strstr(message, "line ");
    (void)user, (void)component;
    if (level == SGM_LOG_WARNING && line != NULL)
        warned_lines = warned_lines * 7 + strtoll(line + 5, NULL, 10); /* their order counts */
}

TEST(rows_left_out_are_told_in_order)
{
    sgm__text content = {0};
    int64_t first = 0;
    for (int i = 0; i < 60000; i++)
        sgm__text_append(&content, i % 7000 == 6999 ? "1\n" : "%d,%d\n", i, i);
    CHECK_OK(sgm__file_write_atomic(data_path("r.csv"), content.data, content.length));
    sgm__text_free(&content);
    for (int i = 0; i < 3; i++) {
        warned_lines = 0;
        sgm_set_logger(add_warning, NULL, SGM_LOG_WARNING);
        sgm_table *table =
            sgm_table_open(data_path("r.csv"), .skip_ragged = true, .threads = thread_counts[i]);
        sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
        CHECK(table != NULL);
        CHECK_INT(sgm_table_rows(table), 60000 - 8);
        sgm_table_free(table);
        first = i == 0 ? warned_lines : first;
        CHECK_INT(warned_lines, first);
    }
    CHECK(first > 0);
}

/* A stream that is unpacked on the way is cut in the same places. */
TEST(packed_files_are_the_same)
{
    char *content;
    size_t length;
    const char *path = mixed_table("threads.csv");
    sgm_table *plain = sgm_table_open(path, .threads = 2);
    CHECK_OK(sgm__file_read(path, 64 << 20, &content, &length));
    gzFile file = gzopen(data_path("threads.csv.gz"), "wb1");
    CHECK_INT(gzwrite(file, content, (unsigned)length), (int64_t)length);
    gzclose(file);
    sgm__free(content);
    sgm_table *packed = sgm_table_open(data_path("threads.csv.gz"), .threads = 2);
    CHECK(packed != NULL);
    for (size_t k = 0; packed != NULL && k < sgm_table_columns(plain); k++)
        check_same_column(sgm_table_column_at(plain, k), sgm_table_column_at(packed, k));
    sgm_table_free(plain);
    sgm_table_free(packed);
}
