/* Texts with classes and pairs of texts as data: rows, lengths, targets, groups, and what is said of lines
 * that are none. */
#include "models/tokenizers.h"

#include <sigma/text_data.h>

/* WordPiece, with [CLS] before a text and [SEP] behind it. */
static sgm_pretrained_tokenizer *words(void)
{
    static const char list[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\ne\n";
    static const char config[] = "{\"model_type\": \"bert\"}";
    const char *folder = new_folder();
    sgm_pretrained_tokenizer *tokenizer;
    write_file(folder, "vocab.txt", list, sizeof list - 1);
    write_file(folder, "config.json", config, sizeof config - 1);
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(folder));
    return tokenizer;
}

static char path[300];

static void write_lines(const char *lines)
{
    const char *folder = new_folder();
    write_file(folder, "texts.jsonl", lines, strlen(lines));
    snprintf(path, sizeof path, "%s/texts.jsonl", folder);
}

/* All numbers of a field, in their order. */
static void check_field(sgm_dataset *data, const char *field, const double *expected, size_t count)
{
    const sgm_block *block;
    double numbers[64];
    CHECK_OK(sgm_dataset_fetch_block(data, 0, &block));
    sgm_tensor *values = sgm_block_field(block, field);
    CHECK_OK(values);
    CHECK_INT(sgm_shape_elements(sgm_tensor_shape(values)), count);
    CHECK_OK(sgm_tensor_read(values, numbers, count));
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(numbers[i], expected[i], 0);
    sgm_dataset_release_block(data, block);
}

TEST(texts_have_classes)
{
    sgm_pretrained_tokenizer *tokenizer = words();
    sgm_text_counts counts;
    sgm_dataset *data;
    write_lines(
        "{\"text\": \"a b\", \"label\": \"sad\"}\n\n{\"label\": \"glad\", \"text\": \"c\", \"more\": 1}\n"
        "{\"text\": \"a b c d\", \"label\": \"glad\"}\n");
    CHECK_INT(sgm_text_lines_of(path), SGM_TEXT_LINES_LABELLED);
    CHECK_OK(data = sgm_labelled_text_dataset("texts", tokenizer, path, .window = 4, .counts = &counts));
    CHECK_INT(counts.texts, 3);
    CHECK_INT(counts.cut, 1);
    CHECK_INT(counts.longest, 6);
    CHECK_INT(counts.tokens, 11);
    check_field(data, "inputs", (const double[]){2, 4, 5, 3, 2, 6, 3, 0, 2, 4, 5, 3}, 12);
    check_field(data, "lengths", (const double[]){4, 3, 4}, 3);
    check_field(data, "targets", (const double[]){0, 1, 1, 0, 1, 0}, 6);
    const char *const *names = sgm_dataset_get_class_names(data);
    CHECK_STR(names[0], "glad");
    CHECK_STR(names[1], "sad");
    CHECK(names[2] == NULL);
    CHECK_INT(sgm_dataset_get_group(data), 1);
    sgm_dataset_free(data);
    CHECK_OK(data = sgm_labelled_text_dataset("texts", tokenizer, path, .window = 4,
                                              .classes = (const char *const[]){"sad", "mad", "glad", NULL}));
    check_field(data, "targets", (const double[]){1, 0, 0, 0, 0, 1, 0, 0, 1}, 9);
    sgm_dataset_free(data);
    sgm_pretrained_tokenizer_free(tokenizer);
}

static void check_classes(const char *lines, const char *const *expected)
{
    size_t count = 0;
    write_lines(lines);
    char **classes = sgm_labelled_text_classes(path);
    CHECK_OK(classes);
    for (; expected[count] != NULL; count++)
        CHECK_STR(classes[count], expected[count]);
    CHECK(classes[count] == NULL);
    sgm_text_classes_free(classes);
}

TEST(classes_are_in_order)
{
    check_classes("{\"text\": \"a\", \"label\": 10}\n{\"text\": \"a\", \"label\": 9}\n"
                  "{\"text\": \"a\", \"label\": -1}\n{\"text\": \"a\", \"label\": \"9\"}\n",
                  (const char *const[]){"-1", "9", "10", NULL});
    check_classes("{\"text\": \"a\", \"label\": 10}\n{\"text\": \"a\", \"label\": 9}\n"
                  "{\"text\": \"a\", \"label\": \"09\"}\n",
                  (const char *const[]){"09", "10", "9", NULL});
}

/* Editors of Windows put a byte order mark before a file; chats that were judged have labels. */
TEST(what_lines_are_is_told_by_the_first_one)
{
    check_classes("\xEF\xBB\xBF{\"text\": \"a\", \"label\": 0}\n{\"text\": \"a\", \"label\": 1}\n",
                  (const char *const[]){"0", "1", NULL});
    CHECK_INT(sgm_text_lines_of(path), SGM_TEXT_LINES_LABELLED);
    write_lines("\xEF\xBB\xBF\n{\"anchor\": \"a\", \"positive\": \"b\"}\n");
    CHECK_INT(sgm_text_lines_of(path), SGM_TEXT_LINES_PAIRS);
    write_lines("{\"prompt\": \"a\", \"completion\": \"b\", \"label\": true}\n");
    CHECK_INT(sgm_text_lines_of(path), SGM_TEXT_LINES_OTHERS);
    write_lines("{\"messages\": [], \"label\": 1, \"anchor\": 2}\n");
    CHECK_INT(sgm_text_lines_of(path), SGM_TEXT_LINES_OTHERS);
    write_lines("{\"text\": \"a\", \"label\": \"x\"}\n\xEF\xBB\xBF{\"text\": \"a\", \"label\": \"y\"}\n");
    CHECK_ERROR(sgm_labelled_text_classes(path), ":2: byte");
}

TEST(pairs_stay_in_a_row)
{
    sgm_pretrained_tokenizer *tokenizer = words();
    sgm_text_counts counts;
    sgm_dataset *data;
    write_lines("{\"anchor\": \"a\", \"positive\": \"b\"}\n{\"anchor\": \"c\", \"positive\": \"d e\"}\n");
    CHECK_INT(sgm_text_lines_of(path), SGM_TEXT_LINES_PAIRS);
    CHECK_INT(sgm_text_pair_size(path), 2);
    CHECK_OK(data = sgm_text_pair_dataset("pairs", tokenizer, path, .window = 4, .counts = &counts));
    CHECK_INT(counts.texts, 4);
    CHECK_INT(sgm_dataset_get_group(data), 2);
    check_field(data, "inputs", (const double[]){2, 4, 3, 0, 2, 5, 3, 0, 2, 6, 3, 0, 2, 7, 8, 3}, 16);
    check_field(data, "lengths", (const double[]){3, 3, 3, 4}, 4);
    sgm_dataset_free(data);
    write_lines("{\"anchor\": \"a\", \"positive\": \"b\", \"negative\": \"e\"}\n");
    CHECK_INT(sgm_text_pair_size(path), 3);
    CHECK_OK(data = sgm_text_pair_dataset("pairs", tokenizer, path, .window = 3));
    CHECK_INT(sgm_dataset_get_group(data), 3);
    check_field(data, "inputs", (const double[]){2, 4, 3, 2, 5, 3, 2, 8, 3}, 9);
    sgm_dataset_free(data);
    sgm_pretrained_tokenizer_free(tokenizer);
}

TEST(mistakes_have_a_place)
{
    static const struct {
        const char *lines, *message;
        bool pairs;
    } cases[] = {
        {"{\"text\": \"a\", \"label\": 1.5}\n", ":1: expected an object with text and label", false},
        {"{\"text\": \"a\", \"label\": \"\"}\n", ":1: expected an object with text and label", false},
        {"\n{\"label\": \"a\"}\n", ":2: expected an object with text and label", false},
        {"{\"text\": \"a\", \"label\": \"x\"}\n{\"text\": \"a\", \"label\": \"x\"}\n",
         "texts.jsonl: expected texts of at least 2 classes, got 1", false},
        {"{\"text\": \"a\", \"label\": \"x\"}\n[\n", ":2: byte", false},
        {"{\"anchor\": \"a\"}\n", ":1: expected an object with anchor and positive", true},
        {"{\"anchor\": \"a\", \"positive\": 1}\n", ":1: expected an object with anchor and positive", true},
        {"{\"anchor\": \"a\", \"positive\": \"b\", \"negative\": [\"c\"]}\n", "and perhaps negative", true},
        {"{\"anchor\": \"a\", \"positive\": \"b\"}\n"
         "{\"anchor\": \"a\", \"positive\": \"b\", \"negative\": \"c\"}\n",
         ":2: this line has a negative, and the lines before have none", true},
        {"\n", "texts.jsonl: there are no texts", true},
    };
    sgm_pretrained_tokenizer *tokenizer = words();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_lines(cases[i].lines);
        if (cases[i].pairs)
            CHECK_ERROR(sgm_text_pair_dataset("pairs", tokenizer, path), cases[i].message);
        else
            CHECK_ERROR(sgm_labelled_text_dataset("texts", tokenizer, path), cases[i].message);
    }
    write_lines("{\"text\": \"a\", \"label\": \"x\"}\n");
    CHECK_ERROR(
        sgm_labelled_text_dataset("texts", tokenizer, path, .classes = (const char *const[]){"y", "z", NULL}),
        ":1: the label 'x' is none of the 2 classes that are learnt");
    CHECK_ERROR(
        sgm_labelled_text_dataset("texts", tokenizer, path, .classes = (const char *const[]){"x", "x", NULL}),
        "the class 'x' is given twice");
    CHECK_ERROR(sgm_text_pair_dataset("pairs", tokenizer, path, .window = 2000000),
                "the window of texts is 1 to 1048576 tokens, not 2000000");
    CHECK_ERROR(sgm_text_pair_dataset("pairs", NULL, path), "texts need a tokenizer and the path of a file");
    CHECK_INT(sgm_text_lines_of("/no/such/file"), SGM_TEXT_LINES_FAILED);
    write_lines("");
    CHECK_INT(sgm_text_lines_of(path), SGM_TEXT_LINES_FAILED);
    write_lines("{\"text\": \"a\"}\n");
    CHECK_INT(sgm_text_lines_of(path), SGM_TEXT_LINES_OTHERS);
    sgm_pretrained_tokenizer_free(tokenizer);
}
