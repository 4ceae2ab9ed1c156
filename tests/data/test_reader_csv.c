/* The csv reader: cells, separators, ragged rows, places in messages. */
#include "reader_test.h"

TEST(csv_cells)
{
    sgm_reader *reader = sgm_csv_reader(memory("\xEF\xBB\xBFname,value,note\n"
                                               " a , 1.5 ,\"x, \"\"y\"\"\nz\"\r\n"
                                               "\n   \n"
                                               "b,?,\r"
                                               "\" c \"  ,  , last one"),
                                        .skip_rows = 1, .missing = "?");
    sgm_examples r;
    CHECK_OK(sgm_reader_read(reader, 2, &r));
    CHECK_INT(r.count, 2);
    CHECK_INT(r.columns, 3);
    CHECK_INT(r.first_line, 2);
    CHECK(r.values == NULL);
    CHECK_STR(cell(&r, 0, 0), "a");
    CHECK_STR(cell(&r, 0, 1), "1.5");
    CHECK_STR(cell(&r, 0, 2), "x, \"y\"\nz");
    CHECK_STR(cell(&r, 1, 0), "b");
    CHECK_STR(cell(&r, 1, 1), NULL);
    CHECK_STR(cell(&r, 1, 2), NULL);
    CHECK_OK(sgm_reader_read(reader, 2, &r));
    CHECK_INT(r.count, 1);
    CHECK_INT(r.first_line, 7);
    CHECK_STR(cell(&r, 0, 0), " c ");
    CHECK_STR(cell(&r, 0, 1), NULL);
    CHECK_STR(cell(&r, 0, 2), "last one");
    CHECK_OK(sgm_reader_read(reader, 2, &r));
    CHECK_INT(r.count, 0);
    CHECK_OK(sgm_reader_rewind(reader));
    CHECK_OK(sgm_reader_read(reader, 9, &r));
    CHECK_INT(r.count, 3);
    sgm_reader_free(reader);
}

TEST(csv_separators)
{
    sgm_examples r;
    sgm_reader *reader = sgm_csv_reader(memory("  1 \t 2   3  \n\"4 4\"\t5 6\n"), .separator = ' ');
    CHECK_OK(sgm_reader_read(reader, 9, &r));
    CHECK_INT(r.count, 2);
    CHECK_INT(r.columns, 3);
    CHECK_STR(cell(&r, 0, 0), "1");
    CHECK_STR(cell(&r, 0, 2), "3");
    CHECK_STR(cell(&r, 1, 0), "4 4");
    CHECK_STR(cell(&r, 1, 2), "6");
    sgm_reader_free(reader);
    reader = sgm_csv_reader(memory("1\t\t2 3\n\t\t\n"), .separator = '\t');
    CHECK_OK(sgm_reader_read(reader, 9, &r));
    CHECK_INT(r.count, 2);
    CHECK_STR(cell(&r, 0, 1), NULL);
    CHECK_STR(cell(&r, 0, 2), "2 3");
    CHECK_STR(cell(&r, 1, 2), NULL);
    sgm_reader_free(reader);
    CHECK_ERROR(sgm_csv_reader(memory("a"), .separator = '"'), "separator");
    CHECK_ERROR(sgm_csv_reader(memory("a"), .separator = '\n'), "separator");
}

static int ragged_warnings;

static void count_warnings(void *user, sgm_log_level level, const char *component, const char *message)
{
    (void)user, (void)component;
    ragged_warnings += level == SGM_LOG_WARNING && strstr(message, "m.txt: line ") != NULL;
}

TEST(csv_ragged_rows)
{
    sgm_examples r;
    sgm_reader *reader = sgm_csv_reader(memory("# header\n1,2\n3,4\n5\n6,7\n8,9,10\n"), .skip_rows = 1);
    CHECK_OK(sgm_reader_read(reader, 2, &r));
    CHECK_ERROR(sgm_reader_read(reader, 2, &r),
                "m.txt: line 4: 2 columns were expected as in line 2, 1 came");
    CHECK_CONTAINS(sgm_last_error(), "skip_ragged");
    sgm_reader_free(reader);
    reader =
        sgm_csv_reader(memory("# header\n1,2\n3,4\n5\n6,7\n8,9,10\n"), .skip_rows = 1, .skip_ragged = true);
    sgm_set_logger(count_warnings, NULL, SGM_LOG_WARNING);
    CHECK_OK(sgm_reader_read(reader, 9, &r));
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    CHECK_INT(ragged_warnings, 2);
    CHECK_INT(r.count, 3);
    CHECK_STR(cell(&r, 2, 0), "6");
    sgm_reader_free(reader);
}

static void check_csv_error(const char *text, size_t length, const char *part)
{
    sgm_examples r;
    sgm_reader *reader = sgm_csv_reader(sgm_memory_source("bad.csv", text, length), .skip_rows = 0);
    CHECK_ERROR(sgm_reader_read(reader, 100, &r), part);
    sgm_reader_free(reader);
}

TEST(csv_errors_name_the_place)
{
    check_csv_error("a,b\nc,\"d\ne,f\n", 12,
                    "bad.csv: line 2, column 1 (from 0): the quote (\") that opens the cell is never");
    check_csv_error("a,\"b\rc\r\nd\"\nc,\"d", 15, /* the cell has three lines */
                    "bad.csv: line 4, column 1 (from 0): the quote (\") that opens the cell is never");
    check_csv_error("a,b\nc,\"d\"e\n", 11,
                    "bad.csv: line 2, column 1 (from 0): the end of the cell was expected");
    check_csv_error("a,b\nc,d\0\n", 9,
                    "bad.csv: line 2, column 1 (from 0): text was expected, a zero byte came at byte 7");
    static char row[20 << 20];
    memset(row, 'x', sizeof row);
    row[0] = '"';
    check_csv_error(row, sizeof row, "bad.csv: line 1: the row has more than 16777216 bytes");
}

TEST(csv_over_buffer_borders)
{
    static char text[400000];
    size_t length = 0;
    for (int i = 0; i < 20000; i++)
        length += (size_t)sprintf(text + length, "%d,\"q%d\"\r\n", i, i * 7);
    sgm_reader *reader = sgm_csv_reader(sgm_memory_source("long.csv", text, length), .skip_rows = 0);
    sgm_examples r;
    char expected[32];
    int64_t done = 0;
    for (;;) {
        CHECK_OK(sgm_reader_read(reader, 777, &r));
        if (r.count == 0)
            break;
        CHECK_INT(r.first_line, done + 1);
        for (int64_t i = 0; i < r.count; i++, done++) {
            sprintf(expected, "%d", (int)done);
            CHECK_STR(cell(&r, i, 0), expected);
            sprintf(expected, "q%d", (int)done * 7);
            CHECK_STR(cell(&r, i, 1), expected);
        }
    }
    CHECK_INT(done, 20000);
    sgm_reader_free(reader);
}
