/* Columns of texts in a pipeline: tokens and lengths, what is cut and what fills up, what is kept as JSON
 * with the tokenizer in it, what is proposed and what is refused. */
#include "base/allocator.h"
#include "base/base.h"
#include "data_test.h"
#include <sigma/table.h>

static const char letters[] = "mood,age,letter,body_length\n"
                              "glad,3,abc,1\n"
                              "sad,4,\"one, two\n\xc3\xa9\",2\n"
                              "glad,5,,3\n"
                              "sad,6,NA,4\n"
                              "sad,7,12,5\n";

static sgm_table *letters_table(void)
{
    const char *path = data_path("letters.csv");
    CHECK_OK(sgm__file_write_atomic(path, letters, strlen(letters)));
    sgm_table *table = sgm_table_open(path);
    CHECK(table != NULL);
    return table;
}

/* All rows of a file, as one block. */
static sgm_block *read_rows(sgm_pipeline *pipeline, const char *name)
{
    sgm_block *block = NULL;
    sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, data_path(name));
    CHECK(extractor != NULL);
    CHECK_OK(sgm_extractor_extract(extractor, 100, &block));
    sgm_extractor_free(extractor);
    return block;
}

/* The tokens of a row are those of this text, and the rest of the window is `fill`. */
static void check_text(const sgm_block *block, const char *field, int64_t row, const sgm_tokenizer *tokenizer,
                       const char *text, int64_t fill)
{
    char length[40];
    snprintf(length, sizeof length, "%s_length", field);
    sgm_tensor *tokens = sgm_block_field(block, field);
    sgm_tensor *expected = sgm_tokenizer_encode(tokenizer, text, strlen(text));
    int64_t window = sgm_tensor_shape(tokens)->dims[1], count = sgm_tensor_shape(expected)->dims[0];
    count = count < window ? count : window;
    CHECK_INT((int64_t)sgm_tensor_get(sgm_block_field(block, length), &row), count);
    for (int64_t i = 0; i < window; i++)
        CHECK_INT((int64_t)sgm_tensor_get(tokens, (int64_t[]){row, i}),
                  i < count ? (int64_t)sgm_tensor_get(expected, &i) : fill);
    sgm_tensor_free(expected);
}

TEST(texts_become_bytes)
{
    sgm_table *table = letters_table();
    CHECK_INT(sgm_table_column_at(table, 2)->longest, 11);
    CHECK_INT(sgm_table_column_at(table, 1)->longest, 0);
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"mood"}, .text_columns = {"letter"});
    sgm_table_free(table);
    CHECK(pipeline != NULL);
    CHECK_INT(sgm_pipeline_width(pipeline, "letter"), 11); /* the longest */
    CHECK_INT(sgm_pipeline_width(pipeline, "letter_length"), 1);
    CHECK_INT(sgm_pipeline_width(pipeline, "inputs"), 2);
    sgm_block *block = read_rows(pipeline, "letters.csv");
    sgm_tokenizer *bytes = sgm_byte_tokenizer();
    static const char *const texts[] = {"abc", "one, two\n\xc3\xa9", "", "", "12"};
    CHECK_INT(block->count, 5);
    CHECK_INT(sgm_tensor_shape(sgm_block_field(block, "letter_length"))->rank, 1);
    for (int64_t i = 0; i < 5; i++)
        check_text(block, "letter", i, bytes, texts[i], 256);
    sgm_tokenizer_free(bytes);
    sgm_block_free(block);
    sgm_pipeline_free(pipeline);
}

TEST(longer_texts_are_cut)
{
    sgm_table *table = letters_table();
    sgm_pipeline *pipeline =
        sgm_pipeline_fit(table, .targets = {"mood"}, .text_columns = {"letter", "age"}, .window = 4);
    sgm_block *block = read_rows(pipeline, "letters.csv");
    sgm_tokenizer *bytes = sgm_byte_tokenizer();
    check_text(block, "letter", 0, bytes, "abc", 256);
    check_text(block, "letter", 1, bytes, "one, two", 256);
    check_text(block, "age", 3, bytes, "6", 256); /* a number, read as the text that it is */
    sgm_tokenizer_free(bytes);
    sgm_block_free(block);
    sgm_pipeline_free(pipeline);
    sgm_table_free(table);
}

#define SONG "row, row, row your boat, gently down the stream, merrily merrily merrily down"

/* A tokenizer is copied, and its tokens are those that it gives without a pipeline. Of a text without an end
 * only the beginning is read. */
TEST(tokenizers_are_kept)
{
    sgm_tokenizer *tokenizer = sgm_tokenizer_learn(SONG, strlen(SONG), 280);
    int64_t vocabulary = sgm_tokenizer_vocabulary(tokenizer);
    sgm_table *table = letters_table();
    sgm_pipeline *fitted = sgm_pipeline_fit(table, .targets = {"mood"}, .text_columns = {"letter"},
                                            .tokenizer = tokenizer, .window = 30);
    sgm_table_free(table);
    char *json = sgm_pipeline_json(fitted);
    CHECK(strstr(json, "\"tokenizer\":[[") != NULL);
    CHECK(strstr(json, "{\"name\":\"letter\",\"kind\":\"text\",\"field\":\"letter\",\"window\":30}") != NULL);
    sgm_pipeline *again = sgm_pipeline_parse(json);
    char *second = sgm_pipeline_json(again), *network = sgm_pipeline_network(again);
    CHECK_STR(second, json);
    char *embedding = sgm__format("input(30, name=\"letter\") + embedding(%d, 16)", (int)vocabulary + 1);
    CHECK(strstr(network, embedding) != NULL);
    sgm__free(embedding);
    sgm_string_free(network);
    sgm_string_free(second);
    sgm_pipeline_free(fitted);
    size_t size = 1000000;
    char *endless = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        endless[i] = SONG[i % strlen(SONG)];
    endless[size] = '\0';
    const char *const names[] = {"letter", "age", "body_length"}, *const cells[] = {"your boat!", "3", "1",
                                                                                    endless,      "4", NULL};
    sgm_block *block = sgm_pipeline_apply(again, names, 3, cells, 2);
    CHECK(block != NULL);
    check_text(block, "letter", 0, tokenizer, "your boat!", vocabulary);
    check_text(block, "letter", 1, tokenizer, endless, vocabulary);
    free(endless);
    sgm_block_free(block);
    sgm_pipeline_free(again);
    sgm_string_free(json);
    sgm_tokenizer_free(tokenizer);
}

TEST(networks_are_proposed)
{
    sgm_table *table = letters_table();
    sgm_pipeline *one = sgm_pipeline_fit(table, .targets = {"mood"}, .text_columns = {"letter"},
                                         .drop = {"age", "body_length"}),
                 *two = sgm_pipeline_fit(table, .targets = {"age"}, .text_columns = {"letter"},
                                         .embedding = {{"mood"}});
    char *alone = sgm_pipeline_network(one), *beside = sgm_pipeline_network(two);
    CHECK(strncmp(alone, "branch0 = input(11, name=\"letter\") + embedding(257, 16) + ", 58) == 0);
    CHECK(strstr(alone, "concatenate") == NULL);
    CHECK(strstr(alone, "; branch0 + dense(2) + softmax_cross_entropy") != NULL);
    CHECK(strstr(beside, "; others = concatenate(branch0, branch3) + dense(64, relu) + dense(64, relu); "
                         "concatenate(branch1, others) + dense(1) + mean_squared") != NULL);
    sgm_string_free(alone);
    sgm_string_free(beside);
    sgm_pipeline_free(one);
    sgm_pipeline_free(two);
    sgm_table_free(table);
}

TEST(a_missing_text_may_be_refused)
{
    sgm_table *table = letters_table();
    sgm_pipeline *pipeline =
        sgm_pipeline_fit(table, .targets = {"mood"}, .text_columns = {"letter"}, .impute = SGM_IMPUTE_REFUSE);
    sgm_table_free(table);
    sgm_block *block = NULL;
    sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, data_path("letters.csv"));
    CHECK(sgm_extractor_extract(extractor, 100, &block) != SGM_OK);
    CHECK(strstr(sgm_last_error(), "letters.csv: line 5, column 'letter': the value is missing") != NULL);
    sgm_extractor_free(extractor);
    sgm_pipeline_free(pipeline);
}

TEST(options_are_checked)
{
    sgm_table *table = letters_table();
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"mood"}, .text_columns = {"leter"}), "text_columns: ");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"mood"}, .text_columns = {"mood"}),
                "column 'mood' is a target, and named once more");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"mood"}, .text_columns = {"letter"}, .drop = {"letter"}),
                "text_columns: column 'letter' is named once more");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"mood"}, .text_columns = {"letter"}, .window = -1),
                "a window of 1 to 1048576 tokens was expected, -1 came");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"mood"}, .window = 4),
                "tokenizer and window are for text_columns, of which there are none");
    sgm_table_free(table);
    const char *rows = "inputs,y\na long text that is no category,1\n";
    CHECK_OK(sgm__file_write_atomic(data_path("t.csv"), rows, strlen(rows)));
    table = sgm_table_open(data_path("t.csv"));
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"y"}, .text_columns = {"inputs"}),
                "a field cannot be called 'inputs'");
    sgm_table_free(table);
}

/* A table of texts alone says what reads them. */
TEST(texts_alone)
{
    sgm__text rows = {0};
    sgm__text_append(&rows, "story,y\n");
    for (int i = 0; i < 30; i++)
        sgm__text_append(&rows, "a story about %d,%d\n", i, i % 2);
    CHECK_OK(sgm__file_write_atomic(data_path("s.csv"), rows.data, rows.length));
    sgm__text_free(&rows);
    sgm_table *table = sgm_table_open(data_path("s.csv"));
    CHECK_ERROR(
        sgm_pipeline_fit(table, .targets = {"y"}),
        "no column is left to predict the targets from; text_columns: [story] would read its texts as "
        "tokens");
    sgm_table_free(table);
}

static const char kept[] =
    "{\"version\":1,\"header\":true,\"decimal\":\".\",\"tokenizer\":[[97,98],[256,99]],\"columns\":["
    "{\"name\":\"a\",\"kind\":\"text\",\"field\":\"a\",\"window\":8},"
    "{\"name\":\"y\",\"kind\":\"category\",\"field\":\"targets\",\"required\":true,\"categories\":[\"no\","
    "\"yes\"]}]}";

TEST(what_is_kept_is_checked)
{
    static const struct {
        const char *part, *other, *message;
    } cases[] = {
        {"[256,99]", "[257,99]",
         "'tokenizer': a list of pairs of tokens, each of two that are there before it"},
        {"[256,99]", "[256]", "'tokenizer': a list of pairs"},
        {"[256,99]", "[256,-1]", "'tokenizer': a list of pairs"},
        {"[256,99]", "[97,98]", "the pair 97 98 is there twice"},
        {"[[97,98],[256,99]]", "\"words\"", "'tokenizer': a list of pairs"},
        {"\"window\":8", "\"window\":0", "'window': a whole number above 0 was expected"},
        {"\"window\":8", "\"window\":2000000", "a window of 1 to 1048576 tokens was expected"},
        {"\"window\":8", "\"window\":8,\"impute\":1", "'impute' is no member of it"},
        {"\"field\":\"a\"", "\"field\":\"inputs\"", "the field 'inputs' is for no texts"},
        {"\"field\":\"a\"", "\"field\":\"targets\"", "the field 'targets' is for no texts"},
        {"\"field\":\"a\"", "\"field\":\"a name that is nearly too lon\"", "field"},
    };
    sgm_pipeline *good = sgm_pipeline_parse(kept);
    char *json = sgm_pipeline_json(good);
    CHECK_STR(json, kept);
    sgm_string_free(json);
    sgm_pipeline_free(good);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(kept, cases[i].part);
        CHECK(at != NULL);
        char *text =
            sgm__format("%.*s%s%s", (int)(at - kept), kept, cases[i].other, at + strlen(cases[i].part));
        CHECK_ERROR(sgm_pipeline_parse(text), cases[i].message);
        sgm__free(text);
    }
}

/* Without memory at any place: an error, and nothing is lost. */
TEST(no_memory)
{
    sgm_table_free(letters_table());
    sgm_tokenizer *tokenizer = sgm_tokenizer_learn(SONG, strlen(SONG), 260);
    bool done = false;
    for (long n = 1; !done; n++) {
        allocator_start(n);
        sgm_table *table = sgm_table_open(data_path("letters.csv"));
        sgm_pipeline *pipeline = table != NULL
                                     ? sgm_pipeline_fit(table, .targets = {"mood"},
                                                        .text_columns = {"letter"}, .tokenizer = tokenizer)
                                     : NULL;
        char *json = pipeline != NULL ? sgm_pipeline_json(pipeline) : NULL;
        sgm_pipeline *again = json != NULL ? sgm_pipeline_parse(json) : NULL;
        sgm_extractor *extractor =
            again != NULL ? sgm_pipeline_extractor(again, data_path("letters.csv")) : NULL;
        sgm_block *block = NULL;
        if (extractor != NULL && sgm_extractor_extract(extractor, 9, &block) == SGM_OK)
            done = block != NULL;
        sgm_string_free(json);
        sgm_block_free(block);
        sgm_extractor_free(extractor);
        sgm_pipeline_free(pipeline);
        sgm_pipeline_free(again);
        sgm_table_free(table);
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK(n < 5000);
    }
    sgm_tokenizer_free(tokenizer);
}
