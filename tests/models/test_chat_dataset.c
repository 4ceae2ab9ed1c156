/* Chats as data: what is read, what of it is learnt, and what is said of lines that are none. */
#include "models/tokenizers.h"

#include <sigma/chats.h>

#define CHAT                                                                                                 \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"one\"}, {\"role\": \"assistant\", \"content\": "    \
    "\"two\"}, {\"role\": \"user\", \"content\": \"three\"}, {\"role\": \"assistant\", \"content\": "        \
    "\"four\"}]}\n"
#define READ                                                                                                 \
    "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>\n<|im_start|>user\nthree"         \
    "<|im_end|>\n<|im_start|>assistant\nfour<|im_end|>"

/* The tokens of GPT-2, and chats by a template of chats.json. */
static sgm_pretrained_tokenizer *chatting_by(size_t entry, const char *family)
{
    const char *folder = new_folder();
    json_t *root = data_json("gpt2.json"), *entries = data_json("chats.json");
    json_t *config = json_pack("{s:s, s:s}", "eos_token", "</s>", "chat_template",
                               text_in(json_array_get(entries, entry), "template"));
    sgm_pretrained_tokenizer *tokenizer;
    write_json(folder, "tokenizer.json", root);
    write_json(folder, "tokenizer_config.json", config);
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(folder));
    CHECK_STR(sgm_pretrained_tokenizer_chat_family(tokenizer), family);
    json_decref(config);
    json_decref(entries);
    json_decref(root);
    return tokenizer;
}

static sgm_pretrained_tokenizer *chatting(void)
{
    return chatting_by(0, "chatml");
}

static char path[300];

static void write_lines(const char *lines)
{
    const char *folder = new_folder();
    write_file(folder, "chats.jsonl", lines, strlen(lines));
    snprintf(path, sizeof path, "%s/chats.jsonl", folder);
}

/* The text of the tokens of one example that are not negative. */
static char *text_of(const sgm_pretrained_tokenizer *tokenizer, sgm_dataset *data, const char *field,
                     int64_t example, int64_t count)
{
    const sgm_block *block;
    sgm_tensor *values;
    int64_t tokens[256], used = 0;
    CHECK_OK(sgm_dataset_fetch_block(data, 0, &block));
    CHECK_OK(values = sgm_block_field(block, field));
    const int64_t window = sgm_tensor_shape(values)->dims[1];
    const float *from = (const float *)sgm_tensor_const_data(values) + example * window;
    for (int64_t i = 0; i < count && i < window; i++)
        if (from[i] >= 0)
            tokens[used++] = (int64_t)from[i];
    sgm_dataset_release_block(data, block);
    return sgm_pretrained_tokenizer_decode(tokenizer, tokens, (size_t)used, NULL);
}

static void check_text(const sgm_pretrained_tokenizer *tokenizer, sgm_dataset *data, const char *field,
                       int64_t example, int64_t count, const char *expected)
{
    char *text = text_of(tokenizer, data, field, example, count);
    CHECK_STR(text, expected);
    sgm_string_free(text);
}

TEST(answers_are_learnt)
{
    sgm_pretrained_tokenizer *tokenizer = chatting();
    sgm_chat_counts counts;
    sgm_dataset *data;
    write_lines(CHAT "\n{\"prompt\": \"2 + 2 =\", \"completion\": \" 4\"}\n{\"text\": \"a b c\"}\n");
    CHECK_OK(data = sgm_chat_dataset("chats", tokenizer, path, .window = 200, .counts = &counts));
    CHECK_INT(counts.examples, 3);
    CHECK_INT(counts.cut + counts.left_out, 0);
    check_text(tokenizer, data, "targets", 0, 200, "two<|im_end|>\nfour<|im_end|>\n");
    check_text(tokenizer, data, "targets", 1, 200, " 4</s>");
    check_text(tokenizer, data, "targets", 2, 200, " b c</s>");
    sgm_dataset_free(data);
    sgm_pretrained_tokenizer_free(tokenizer);
}

/* What is learnt of a chat of two answers, in a row of so many tokens. */
static void check_answers(size_t entry, const char *family, int64_t window, const char *learnt)
{
    sgm_pretrained_tokenizer *tokenizer = chatting_by(entry, family);
    sgm_dataset *data;
    write_lines(CHAT);
    CHECK_OK(data = sgm_chat_dataset("chats", tokenizer, path, .window = window));
    check_text(tokenizer, data, "targets", 0, window, learnt);
    sgm_dataset_free(data);
    sgm_pretrained_tokenizer_free(tokenizer);
}

/* Qwen3 writes the last answer with thoughts, and the others without; all of them are learnt. */
TEST(answers_that_later_messages_change_are_learnt)
{
    check_answers(9, "qwen3", 200, "two<|im_end|>\n<think>\n\n</think>\n\nfour<|im_end|>\n");
}

/* Llama 3.2 writes the day in front. */
TEST(answers_of_chats_with_a_day_are_learnt)
{
    check_answers(11, "llama-3.2", 500, "two<|eot_id|>four<|eot_id|>");
}

TEST(all_is_read)
{
    sgm_pretrained_tokenizer *tokenizer = chatting();
    sgm_chat_counts counts;
    sgm_dataset *data;
    write_lines(CHAT);
    CHECK_OK(data = sgm_chat_dataset("chats", tokenizer, path, .window = 200, .counts = &counts));
    check_text(tokenizer, data, "inputs", 0, counts.tokens, READ);
    sgm_dataset_free(data);
    sgm_pretrained_tokenizer_free(tokenizer);
}

/* The tokens of a text but the last, which is only a target. */
static int64_t inputs_of(const sgm_pretrained_tokenizer *tokenizer, const char *text)
{
    sgm_tensor *tokens = sgm_pretrained_tokenizer_encode(tokenizer, text, strlen(text));
    const int64_t count = tokens != NULL ? sgm_tensor_shape(tokens)->dims[0] - 1 : -1;
    sgm_tensor_free(tokens);
    return count;
}

TEST(long_lines_are_cut_and_counted)
{
    sgm_pretrained_tokenizer *tokenizer = chatting();
    sgm_chat_counts counts;
    sgm_dataset *data;
    write_lines(
        "{\"prompt\": \"a b c d e f g h\", \"completion\": \" i\"}\n{\"text\": \"1 2 3 4 5 6 7 8 9\"}\n");
    CHECK_OK(data = sgm_chat_dataset("chats", tokenizer, path, .window = 4, .counts = &counts));
    CHECK_INT(counts.examples, 1);
    CHECK_INT(counts.cut, 1);
    CHECK_INT(counts.left_out, 1);
    CHECK_INT(counts.tokens, 4);
    CHECK_INT(counts.learnt, 4);
    const int64_t longest[] = {inputs_of(tokenizer, "a b c d e f g h i</s>"),
                               inputs_of(tokenizer, "1 2 3 4 5 6 7 8 9</s>")};
    CHECK_INT(counts.longest, longest[longest[1] > longest[0]]);
    CHECK_INT(counts.unanswered, 0);
    CHECK_INT(counts.behind_line, 1);
    sgm_dataset_free(data);
    sgm_pretrained_tokenizer_free(tokenizer);
}

TEST(lines_without_an_answer_are_told_from_those_whose_answer_is_too_far)
{
    static const char asked[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n";
    sgm_pretrained_tokenizer *tokenizer = chatting();
    sgm_chat_counts counts;
    char lines[4096];
    snprintf(lines, sizeof lines,
             "{\"text\": \"1 2 3\"}\n\n%s{\"prompt\": \"a b c d e f\", \"completion\": \" g\"}\n%s", asked,
             asked);
    write_lines(lines);
    sgm_dataset *data = sgm_chat_dataset("chats", tokenizer, path, .window = 4, .counts = &counts);
    CHECK_OK(data);
    CHECK_INT(counts.examples, 1);
    CHECK_INT(counts.left_out, 3);
    CHECK_INT(counts.unanswered, 2);
    CHECK_INT(counts.unanswered_line, 3);
    CHECK_INT(counts.behind_line, 4);
    sgm_dataset_free(data);
    write_lines(asked);
    CHECK_ERROR(
        sgm_chat_dataset("chats", tokenizer, path, .window = 4),
        "there is nothing to learn: 1 line has no message of the assistant, no completion and no text, or an "
        "empty one");
    CHECK(strstr(sgm_last_error(), "behind token") == NULL);
    write_lines(CHAT CHAT);
    CHECK_ERROR(
        sgm_chat_dataset("chats", tokenizer, path, .window = 2),
        "there is nothing to learn: the answers of 2 lines begin behind token 2: take a longer window, "
        "--context of 'sigma finetune'; the longest line has ");
    write_lines("{\"text\": \"\"}\n{\"text\": \"one\"}\n");
    CHECK_OK(data = sgm_chat_dataset("chats", tokenizer, path, .window = 4, .counts = &counts));
    CHECK_INT(counts.examples, 1);
    CHECK_INT(counts.unanswered_line, 1);
    sgm_dataset_free(data);
    sgm_pretrained_tokenizer_free(tokenizer);
}

TEST(lines_that_are_none_are_named)
{
    static const struct {
        const char *line, *error;
    } cases[] = {
        {"{\"text\": \"a b\"}\n{\"question\": \"a\"}\n",
         ":2: expected an object with messages, with prompt and completion, or with text"},
        {"\n{\"text\"\n", ":2: byte "},
        {"{\"messages\": []}\n", ":1: messages: expected a list of 1 to 10000 messages"},
        {"{\"messages\": [{\"role\": \"tool\", \"content\": \"a\"}]}\n",
         ":1: message 0 of the chat is of 'tool'; expected system, user or assistant"},
        {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}\n",
         ":1: the assistant speaks first"},
        {"{\"prompt\": \"a\", \"completion\": 4}\n", ":1: expected an object"},
        {"\n", "there is nothing to learn"},
    };
    sgm_pretrained_tokenizer *tokenizer = chatting();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_lines(cases[i].line);
        CHECK(sgm_chat_dataset("chats", tokenizer, path) == NULL);
        if (strstr(sgm_last_error(), cases[i].error) == NULL)
            TEST_FAIL("'%s' does not say '%s'", sgm_last_error(), cases[i].error);
    }
    CHECK_ERROR(sgm_chat_dataset("chats", tokenizer, path, .window = 2000000),
                "the window of chats is 1 to 1048576 tokens, not 2000000");
    CHECK_ERROR(sgm_chat_dataset("chats", tokenizer, "/no/such/file"), "cannot read '/no/such/file'");
    sgm_pretrained_tokenizer_free(tokenizer);
}

/* The numbers of a field, (rows, window). */
static void read_field(sgm_dataset *data, const char *field, float *values, size_t count)
{
    const sgm_block *block;
    sgm_tensor *tensor;
    CHECK_OK(sgm_dataset_fetch_block(data, 0, &block));
    CHECK_OK(tensor = sgm_block_field(block, field));
    CHECK_INT(sgm_shape_elements(sgm_tensor_shape(tensor)), count);
    memcpy(values, sgm_tensor_const_data(tensor), count * sizeof *values);
    sgm_dataset_release_block(data, block);
}

#define WINDOW 24

/* Five lines of 14, 16, 8, 6 and 10 tokens, each in the first row of 24 that has room for it.
 * What fills up a row begins by itself. */
TEST(short_lines_stand_in_one_row)
{
    static const char *const lines = "{\"text\": \"1 2 3 4 5 6\"}\n{\"text\": \"2 3 4 5 6 7 8\"}\n{\"text\": "
                                     "\"3 4 5\"}\n{\"text\": \"4 5\"}\n{\"text\": \"5 6 7 8\"}\n";
    static const int64_t rows[] = {0, 1, 0, 1, 2}, firsts[] = {0, 0, 14, 16, 0},
                         tokens[] = {14, 16, 8, 6, 10};
    sgm_pretrained_tokenizer *tokenizer = chatting();
    sgm_chat_counts apart_counts, counts;
    sgm_dataset *apart, *packed;
    float one[3][5 * WINDOW], some[3][3 * WINDOW];
    write_lines(lines);
    CHECK_OK(apart = sgm_chat_dataset("apart", tokenizer, path, .window = WINDOW, .counts = &apart_counts));
    CHECK_OK(packed = sgm_chat_dataset("packed", tokenizer, path, .window = WINDOW, .counts = &counts,
                                       .packing = true));
    CHECK_INT(apart_counts.rows, 5);
    CHECK_INT(apart_counts.tokens, 54);
    CHECK_INT(counts.examples, 5);
    CHECK_INT(counts.rows, 3);
    CHECK_INT(counts.tokens, apart_counts.tokens);
    CHECK_INT(counts.learnt, apart_counts.learnt);
    static const char *const fields[] = {"inputs", "targets", "starts"};
    for (size_t i = 0; i < 3; i++) {
        read_field(packed, fields[i], some[i], (size_t)3 * WINDOW);
        if (i < 2)
            read_field(apart, fields[i], one[i], (size_t)5 * WINDOW);
    }
    for (size_t e = 0; e < 5; e++)
        for (int64_t t = 0; t < tokens[e]; t++) {
            const int64_t at = rows[e] * WINDOW + firsts[e] + t, from = (int64_t)e * WINDOW + t;
            CHECK_NEAR(some[0][at], one[0][from], 0);
            CHECK_NEAR(some[1][at], one[1][from], 0);
            CHECK_NEAR(some[2][at], firsts[e], 0);
        }
    CHECK_NEAR(some[2][0 * WINDOW + 23], 22, 0);
    CHECK_NEAR(some[1][0 * WINDOW + 23], -1, 0);
    CHECK_NEAR(some[2][2 * WINDOW + 23], 10, 0);
    sgm_dataset_free(apart);
    sgm_dataset_free(packed);
    sgm_pretrained_tokenizer_free(tokenizer);
}
