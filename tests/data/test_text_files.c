/* Folders of texts and their pipelines: tokens of files and of bytes in memory, what is kept as JSON, and
 * what is refused. */
#include "base/allocator.h"
#include "base/base.h"
#include "data_test.h"
#include <sigma/text_files.h>

static void write_text(const char *class, const char *name, const char *bytes, size_t size)
{
    char path[512];
    mkdir(data_path("mails"), 0755);
    snprintf(path, sizeof path, "%s/%s", data_path("mails"), class);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s", data_path("mails"), class, name);
    CHECK_OK(sgm__file_write_atomic(path, bytes, size));
}

/* Four texts, one of them empty and one of bytes that are no UTF-8. */
static sgm_files *mails(void)
{
    write_text("dull", "1.txt", "minutes", 7);
    write_text("dull", "2.TXT", "", 0);
    write_text("dear", "1.txt", "\xff\xfe!", 3);
    write_text("dear", "2.txt", "come and see", 12);
    write_text("dear", "note.log", "passed over", 11);
    sgm_files *files = sgm_files_open(data_path("mails"), "texts");
    CHECK(files != NULL);
    return files;
}

/* The inputs of an example are this text and what fills up. */
static void check_inputs(const sgm_block *block, int64_t example, const char *text, size_t size)
{
    sgm_tensor *inputs = sgm_block_field(block, "inputs");
    int64_t window = sgm_tensor_shape(inputs)->dims[1];
    for (int64_t i = 0; i < window; i++)
        CHECK_INT((int64_t)sgm_tensor_get(inputs, (int64_t[]){example, i}),
                  (size_t)i < size ? (unsigned char)text[i] : 256);
}

TEST(files_become_bytes)
{
    sgm_files *files = mails();
    CHECK_INT(sgm_files_count(files), 4);
    sgm_pipeline *pipeline = sgm_text_pipeline(files);
    CHECK(pipeline != NULL);
    sgm_files_free(files);
    CHECK_STR(sgm_pipeline_kind(pipeline), "texts");
    CHECK_INT(sgm_pipeline_width(pipeline, "inputs"), 12);
    sgm_block *block = NULL;
    sgm_extractor *extractor = sgm_files_extractor(pipeline, data_path("mails"));
    CHECK_OK(sgm_extractor_extract(extractor, 9, &block));
    CHECK_INT(block->count, 4);
    /* classes alternate: dear, dull, dear, dull */
    check_inputs(block, 0, "\xff\xfe!", 3);
    check_inputs(block, 1, "minutes", 7);
    check_inputs(block, 2, "come and see", 12);
    check_inputs(block, 3, "", 0);
    sgm_block_free(block);
    sgm_extractor_free(extractor);
    char *network = sgm_pipeline_network(pipeline);
    CHECK(strncmp(network, "input(12) + embedding(257, 16) + permute(2, 1) + ", 49) == 0);
    CHECK(strstr(network, " + dense(2) + softmax_cross_entropy") != NULL);
    sgm_string_free(network);
    sgm_pipeline_free(pipeline);
}

/* The same tokens from a file, from bytes in memory, and by a pipeline that was kept. */
TEST(tokenizers_are_kept)
{
    static const char words[] = "come and see, come and see, come and see the minutes";
    sgm_tokenizer *tokenizer = sgm_tokenizer_learn(words, strlen(words), 270);
    int64_t vocabulary = sgm_tokenizer_vocabulary(tokenizer);
    sgm_files *files = mails();
    sgm_pipeline *fitted = sgm_text_pipeline(files, .tokenizer = tokenizer, .window = 5);
    char *json = sgm_pipeline_json(fitted);
    CHECK(strstr(json, "\"kind\":\"texts\",\"window\":5,\"tokenizer\":[[") != NULL);
    CHECK(strstr(json, "\"classes\":[\"dear\",\"dull\"]") != NULL);
    sgm_pipeline *again = sgm_pipeline_parse(json);
    char *second = sgm_pipeline_json(again);
    CHECK_STR(second, json);
    const sgm_file asked[] = {{.name = sgm_files_path(files, 2)},
                              {.name = "bytes", .bytes = "come and see, and more of it", .length = 12}};
    sgm_block *block = sgm_pipeline_files(again, asked, 2);
    CHECK(block != NULL);
    sgm_tensor *inputs = sgm_block_field(block, "inputs"),
               *expected = sgm_tokenizer_encode(tokenizer, "come and see", 12);
    int64_t count = sgm_tensor_shape(expected)->dims[0];
    CHECK(count < 5);
    for (int64_t i = 0; i < 10; i++) {
        int64_t at = i % 5;
        CHECK_INT((int64_t)sgm_tensor_get(inputs, (int64_t[]){i / 5, at}),
                  at < count ? (int64_t)sgm_tensor_get(expected, &at) : vocabulary);
    }
    sgm_tensor_free(expected);
    sgm_block_free(block);
    sgm_string_free(second);
    sgm_string_free(json);
    sgm_pipeline_free(again);
    sgm_pipeline_free(fitted);
    sgm_files_free(files);
    sgm_tokenizer_free(tokenizer);
}

TEST(mistakes_are_told)
{
    sgm_files *files = mails();
    CHECK_ERROR(sgm_text_pipeline(files, .window = -2),
                "a window of 1 to 1048576 tokens was expected, -2 came");
    CHECK_ERROR(sgm_text_pipeline(NULL), "a list of files is needed, got NULL");
    sgm_pipeline *pipeline = sgm_text_pipeline(files, .window = 8);
    sgm_files_free(files);
    const sgm_file zero = {.name = "a.txt", .bytes = "ab\0c", .length = 4}, missing = {.name = "nothing.txt"};
    CHECK_ERROR(
        sgm_pipeline_files(pipeline, &zero, 1),
        "a.txt: text was expected, a zero byte came at byte 2; the file is packed, UTF-16, or no text");
    CHECK_ERROR(sgm_pipeline_files(pipeline, &missing, 1), "cannot open 'nothing.txt'");
    sgm_pipeline_free(pipeline);
    write_text("dear", "letter.pdf", "%PDF", 4);
    CHECK_ERROR(sgm_files_open(data_path("mails"), "texts"), "letter.pdf: TXT texts are read; convert it");
    CHECK_OK(remove(data_path("mails/dear/letter.pdf")) == 0 ? SGM_OK : SGM_ERROR_FILE);
    CHECK_ERROR(
        sgm_pipeline_parse("{\"version\":1,\"kind\":\"texts\",\"window\":0,\"classes\":[\"a\",\"b\"]}"),
        "'window': a whole number");
    CHECK_ERROR(sgm_pipeline_parse("{\"version\":1,\"kind\":\"texts\",\"window\":5,\"tokenizer\":[[1]],"
                                   "\"classes\":[\"a\",\"b\"]}"),
                "'tokenizer': a list of pairs");
}

/* Without memory at any place: an error, and nothing is lost. */
TEST(no_memory)
{
    sgm_files_free(mails());
    bool done = false;
    for (long n = 1; !done; n++) {
        allocator_start(n);
        sgm_files *files = sgm_files_open(data_path("mails"), "texts");
        sgm_pipeline *pipeline = files != NULL ? sgm_text_pipeline(files) : NULL;
        sgm_extractor *extractor =
            pipeline != NULL ? sgm_files_extractor(pipeline, data_path("mails")) : NULL;
        sgm_block *block = NULL;
        if (extractor != NULL && sgm_extractor_extract(extractor, 9, &block) == SGM_OK)
            done = block != NULL;
        sgm_block_free(block);
        sgm_extractor_free(extractor);
        sgm_pipeline_free(pipeline);
        sgm_files_free(files);
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK(n < 5000);
    }
}
