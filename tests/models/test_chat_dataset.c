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

/* The tokens of GPT-2, and chats by ChatML. */
static sgm_pretrained_tokenizer *chatting(void)
{
    const char *folder = new_folder();
    json_t *root = data_json("gpt2.json"), *entries = data_json("chats.json");
    json_t *config = json_pack("{s:s, s:s}", "eos_token", "</s>", "chat_template",
                               text_in(json_array_get(entries, 0), "template"));
    sgm_pretrained_tokenizer *tokenizer;
    write_json(folder, "tokenizer.json", root);
    write_json(folder, "tokenizer_config.json", config);
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(folder));
    CHECK_STR(sgm_pretrained_tokenizer_chat_family(tokenizer), "chatml");
    json_decref(config);
    json_decref(entries);
    json_decref(root);
    return tokenizer;
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
