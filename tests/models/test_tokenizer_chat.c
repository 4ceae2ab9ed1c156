/* Chats against what transformers writes by the templates of models: tests/cross/make_chats.py. */
#include "models/tokenizers.h"
#include "tokenizer/tokenizer.h"

#include <time.h>

/* A tokenizer with this template, in tokenizer_config.json or in a file of its own. */
static sgm_pretrained_tokenizer *with_template(const json_t *template, bool own_file)
{
    const char *folder = new_folder();
    json_t *root = data_json("gpt2.json");
    json_t *config = json_pack("{s:s, s:{s:s}}", "bos_token", "<s>", "eos_token", "content", "</s>");
    sgm_pretrained_tokenizer *tokenizer;
    if (own_file)
        write_file(folder, "chat_template.jinja", json_string_value(template), json_string_length(template));
    else
        json_object_set(config, "chat_template", (json_t *)(uintptr_t) template);
    write_json(folder, "tokenizer.json", root);
    write_json(folder, "tokenizer_config.json", config);
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(folder));
    json_decref(root);
    json_decref(config);
    return tokenizer;
}

/* At the time that the chat has, or now. */
static void check_chat(const sgm_pretrained_tokenizer *tokenizer, const json_t *chat)
{
    const json_t *list = json_object_get(chat, "messages");
    const json_t *seconds = json_object_get(chat, "seconds");
    const char *expected = text_in(chat, "text");
    const bool answer = json_is_true(json_object_get(chat, "answer"));
    sgm_chat_message messages[8];
    const size_t count = json_array_size(list);
    char *text;
    for (size_t i = 0; i < count; i++)
        messages[i] = (sgm_chat_message){json_string_value(json_array_get(json_array_get(list, i), 0)),
                                         json_string_value(json_array_get(json_array_get(list, i), 1))};
    if (seconds)
        text = sgm__chat_beginning(tokenizer, messages, count, json_integer_value(seconds), count, answer);
    else
        text = sgm_pretrained_tokenizer_chat(tokenizer, messages, count, answer);
    if (!expected)
        CHECK(!text && strstr(sgm_last_error(), "chats with this model are of user and assistant in turns"));
    else
        CHECK_STR(text, expected);
    sgm_string_free(text);
}

TEST(chats_are_those_of_transformers)
{
    json_t *entries = data_json("chats.json"), *entry, *chat;
    size_t i, k;
    setenv("TZ", "<+14>-14", 1); /* that of chats.json, whose day is the next one at noon */
    tzset();
    json_array_foreach(entries, i, entry) for (int own_file = 0; own_file < 2; own_file++)
    {
        sgm_pretrained_tokenizer *tokenizer = with_template(json_object_get(entry, "template"), own_file);
        CHECK_STR(sgm_pretrained_tokenizer_chat_family(tokenizer), text_in(entry, "family"));
        json_array_foreach(json_object_get(entry, "chats"), k, chat) check_chat(tokenizer, chat);
        sgm_pretrained_tokenizer_free(tokenizer);
    }
    CHECK_INT(i, 12);
    json_decref(entries);
}

/* The template that entry `number` of chats.json has. */
static sgm_pretrained_tokenizer *with_entry(size_t number)
{
    json_t *entries = data_json("chats.json");
    sgm_pretrained_tokenizer *tokenizer =
        with_template(json_object_get(json_array_get(entries, number), "template"), false);
    json_decref(entries);
    return tokenizer;
}

static char *hello_at(const sgm_pretrained_tokenizer *tokenizer, time_t now)
{
    return sgm__chat_beginning(tokenizer, &(sgm_chat_message){"user", "Hello"}, 1, now, 1, true);
}

/* Midnight may come between two readings of the clock. */
TEST(the_day_of_a_chat_is_that_of_the_clock)
{
    const sgm_chat_message message = {"user", "Hello"};
    sgm_pretrained_tokenizer *tokenizer = with_entry(11);
    char *before = hello_at(tokenizer, time(NULL));
    char *text = sgm_pretrained_tokenizer_chat(tokenizer, &message, 1, true);
    char *after = hello_at(tokenizer, time(NULL));
    CHECK_STR(text, strcmp(text, before) == 0 ? before : after);
    sgm_string_free(before);
    sgm_string_free(text);
    sgm_string_free(after);
    CHECK_ERROR(hello_at(tokenizer, (time_t)INT64_MAX),
                "the chat has the date of today in it, and the system's clock has none");
    sgm_pretrained_tokenizer_free(tokenizer);
}

/* What is written by the template of an entry of chats.json that stands alone beside tokenizer.json. */
static char *chat_by_file_alone(size_t entry, const char *family, size_t count)
{
    const sgm_chat_message messages[] = {{"user", "Hello"}, {"assistant", "Hi"}};
    const char *folder = new_folder();
    json_t *root = data_json("llama3.json"), *entries = data_json("chats.json");
    const char *template = text_in(json_array_get(entries, entry), "template");
    sgm_pretrained_tokenizer *tokenizer;
    write_json(folder, "tokenizer.json", root);
    write_file(folder, "chat_template.jinja", template, strlen(template));
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(folder));
    CHECK_STR(sgm_pretrained_tokenizer_chat_family(tokenizer), family);
    char *text = sgm_pretrained_tokenizer_chat(tokenizer, messages, count, false);
    sgm_pretrained_tokenizer_free(tokenizer);
    json_decref(root);
    json_decref(entries);
    return text;
}

static void check_file_alone(size_t entry, const char *family, size_t count, const char *expected)
{
    char *text = chat_by_file_alone(entry, family, count);
    CHECK_STR(text, expected);
    sgm_string_free(text);
}

/* As transformers has it: a token that no file names is left out where it is written by itself, and an error
 * where text is joined to it. */
TEST(a_file_of_a_template_needs_no_settings_beside_it)
{
    check_file_alone(0, "chatml", 2,
                     "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi<|im_end|>\n");
    check_file_alone(10, "llama-3.1", 1,
                     "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
                     "2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>"
                     "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>");
    check_file_alone(6, "mistral", 1, "[INST] Hello [/INST]");
    CHECK_ERROR(chat_by_file_alone(6, "mistral", 2),
                "the model's chat template needs the eos_token, which its files do not name; add it to "
                "tokenizer_config.json (in GGUF: tokenizer.ggml.eos_token_id)");
    CHECK_ERROR(chat_by_file_alone(4, "zephyr", 1), "needs the eos_token");
    CHECK_ERROR(chat_by_file_alone(5, "llama-3", 1), "needs the bos_token");
}

/* The tokens that end a text, by files beside a tokenizer; a text of NULL: there is no such file. */
static void check_ends(const char *tokenizer_config, const char *generation, const char *config, size_t count,
                       const int64_t *expected)
{
    const char *const names[] = {"tokenizer_config.json", "generation_config.json", "config.json"};
    const char *const texts[] = {tokenizer_config, generation, config}, *folder = new_folder();
    json_t *root = data_json("llama3.json");
    sgm_pretrained_tokenizer *tokenizer;
    const int64_t *ends;
    size_t found;
    write_json(folder, "tokenizer.json", root);
    for (size_t i = 0; i < 3; i++)
        if (texts[i])
            write_file(folder, names[i], texts[i], strlen(texts[i]));
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(folder));
    CHECK(ends = sgm_pretrained_tokenizer_ends(tokenizer, &found));
    CHECK_INT(found, count);
    CHECK_INT(sgm_pretrained_tokenizer_end(tokenizer), count > 0 ? expected[0] : -1);
    for (size_t i = 0; i < count; i++)
        CHECK_INT(ends[i], expected[i]);
    sgm_pretrained_tokenizer_free(tokenizer);
    json_decref(root);
}

/* In llama3.json <s> is 0, </s> 1 and <|end|> 2. */
TEST(texts_end_with_every_token_that_a_model_names)
{
    static const char named[] = "{\"eos_token\": \"</s>\"}",
                      list[] = "{\"eos_token_id\": [2, 1, 2, 16000000]}";
    static const char one[] = "{\"eos_token_id\": 2}", none[] = "{\"eos_token_id\": null}";
    check_ends(NULL, NULL, NULL, 0, NULL);
    check_ends(named, NULL, NULL, 1, (int64_t[]){1});
    check_ends(named, list, NULL, 2, (int64_t[]){1, 2});
    check_ends(named, NULL, one, 2, (int64_t[]){1, 2});
    check_ends(named, "{\"eos_token_id\": 1}", one, 1, (int64_t[]){1});
    check_ends(named, none, one, 2, (int64_t[]){1, 2});
    check_ends("{}", list, NULL, 2, (int64_t[]){2, 1});
    check_ends(NULL, NULL, one, 1, (int64_t[]){2});
    check_ends("{\"eos_token\": \"no token\"}", one, NULL, 1, (int64_t[]){2});
}

TEST(ends_of_strangers_are_checked)
{
    static const char *const wrong[] = {"\"2\"", "-1", "[1, true]", "{}", "1e300"};
    const char *folder = new_folder();
    json_t *root = data_json("llama3.json");
    char text[100];
    write_json(folder, "tokenizer.json", root);
    json_decref(root);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int size = snprintf(text, sizeof text, "{\"eos_token_id\": %s}", wrong[i]);
        write_file(folder, "generation_config.json", text, (size_t)size);
        CHECK_ERROR(sgm_pretrained_tokenizer_open(folder),
                    i == 2 ? "generation_config.json: eos_token_id[1]: expected the number of a token"
                           : "generation_config.json: eos_token_id: expected the number of a token");
    }
}

/* A template, and the same with one thing changed. */
TEST(templates_are_known_as_a_whole)
{
    const sgm_chat_message message = {"user", "Hello"};
    json_t *entries = data_json("chats.json");
    const char *template = text_in(json_array_get(entries, 0), "template");
    char changed[1000];
    json_t *string;
    sgm_pretrained_tokenizer *tokenizer;

    snprintf(changed, sizeof changed, "%s ", template);
    tokenizer = with_template(string = json_string(changed), false);
    CHECK(sgm_pretrained_tokenizer_chat_family(tokenizer) == NULL);
    CHECK_ERROR(
        sgm_pretrained_tokenizer_chat(tokenizer, &message, 1, true),
        "the model has a chat template that is not known; known are ChatML as SmolLM and Qwen have it, "
        "Zephyr, Llama 3, 3.1 and 3.2, and Mistral 0.2");
    sgm_pretrained_tokenizer_free(tokenizer);
    json_decref(string);

    snprintf(changed, sizeof changed, "%s\n", template); /* as an editor leaves a file */
    tokenizer = with_template(string = json_string(changed), true);
    CHECK_STR(sgm_pretrained_tokenizer_chat_family(tokenizer), "chatml");
    sgm_pretrained_tokenizer_free(tokenizer);
    json_decref(string);

    tokenizer =
        with_template(string = json_pack("[{s:s, s:s}]", "name", "default", "template", template), false);
    CHECK(sgm_pretrained_tokenizer_chat_family(tokenizer) == NULL);
    sgm_pretrained_tokenizer_free(tokenizer);
    json_decref(string);
    json_decref(entries);

    tokenizer = data_tokenizer("gpt2.json");
    CHECK(sgm_pretrained_tokenizer_chat_family(tokenizer) == NULL);
    CHECK_ERROR(sgm_pretrained_tokenizer_chat(tokenizer, &message, 1, true),
                "the model has no chat template in a tokenizer_config.json or a chat_template.jinja");
    sgm_pretrained_tokenizer_free(tokenizer);
}

/* As transformers writes the settings of a tokenizer whose texts may have any length. */
TEST(a_length_without_limit_is_no_mistake)
{
    static const char settings[] = "{\n  \"bos_token\": \"<s>\",\n  \"eos_token\": \"</s>\",\n"
                                   "  \"model_max_length\": 1000000000000000019884624838656\n}\n";
    const char *folder = new_folder();
    json_t *root = data_json("gpt2.json"), *entries = data_json("chats.json");
    const char *template = text_in(json_array_get(entries, 0), "template");
    sgm_pretrained_tokenizer *tokenizer;
    write_json(folder, "tokenizer.json", root);
    write_file(folder, "tokenizer_config.json", settings, sizeof settings - 1);
    write_file(folder, "chat_template.jinja", template, strlen(template));
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(folder));
    CHECK_STR(sgm_pretrained_tokenizer_chat_family(tokenizer), text_in(json_array_get(entries, 0), "family"));
    sgm_pretrained_tokenizer_free(tokenizer);
    json_decref(root);
    json_decref(entries);
}

TEST(messages_are_checked)
{
    json_t *entries = data_json("chats.json");
    sgm_pretrained_tokenizer *tokenizer =
        with_template(json_object_get(json_array_get(entries, 0), "template"), false);
    const sgm_chat_message tool = {"tool", "x"}, empty = {"user", NULL}, broken = {"user", "\xf0\x9f"};
    CHECK_ERROR(sgm_pretrained_tokenizer_chat(tokenizer, &tool, 1, true),
                "message 0 of the chat is of 'tool'; expected system, user or assistant");
    CHECK_ERROR(sgm_pretrained_tokenizer_chat(tokenizer, &empty, 1, true), "needs a role and a content");
    CHECK_ERROR(sgm_pretrained_tokenizer_chat(tokenizer, &broken, 1, true),
                "message 0 of the chat is no UTF-8");
    CHECK_ERROR(sgm_pretrained_tokenizer_chat(tokenizer, NULL, 0, true), "a chat needs at least one message");
    CHECK_ERROR(sgm_pretrained_tokenizer_chat(NULL, &tool, 1, true), "a chat needs a tokenizer");
    sgm_pretrained_tokenizer_free(tokenizer);
    json_decref(entries);
}
