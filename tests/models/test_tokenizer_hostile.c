/* Tokenizers of strangers: what is wrong in a file is refused with the file, the place and what was expected;
 * nothing takes memory or time that the file has not. */
#include "models/tokenizers.h"

/* A whole tokenizer.json, small, with a step of each kind. */
static const char whole[] =
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"],"
    " \"byte_fallback\": false},\n"
    " \"added_tokens\": [{\"id\": 3, \"content\": \"<s>\", \"special\": true}],\n"
    " \"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \"x\"}, \"content\": \"ab\"},\n"
    " \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\s+\"}, \"behavior\": "
    "\"Removed\"},\n"
    " \"post_processor\": {\"type\": \"TemplateProcessing\","
    " \"single\": [{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", "
    "\"type_id\": 0}}],"
    " \"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"B\", "
    "\"type_id\": 1}}],"
    " \"special_tokens\": {\"<s>\": {\"ids\": [3]}}},\n"
    " \"decoder\": {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}}";

static const char *folder_with(const char *name, const char *text, size_t size)
{
    static const char *folder;
    static const char *last_name;
    if (!folder || strcmp(name, last_name) != 0)
        folder = new_folder();
    last_name = name;
    write_file(folder, name, text, size);
    return folder;
}

/* Opening the file must fail; the error has the message, and the file. */
static void refuse_file(const char *name, const char *text, size_t size, const char *message)
{
    const char *folder = folder_with(name, text, size);
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_ERROR(sgm_pretrained_tokenizer_open(folder), message);
    if (!strstr(sgm_last_error(), path))
        TEST_FAIL("the error \"%s\" does not name the file", sgm_last_error());
}

/* The whole file with the first `old` replaced. */
static const char *changed(const char *old, const char *new)
{
    static char text[1 << 18];
    const char *at = strstr(whole, old);
    if (!at)
        TEST_FAIL("there is no '%s'", old);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, new, at + strlen(old));
    return text;
}

static void refuse(const char *old, const char *new, const char *message)
{
    const char *text = changed(old, new);
    refuse_file("tokenizer.json", text, strlen(text), message);
}

static sgm_pretrained_tokenizer *opened(const char *text)
{
    sgm_pretrained_tokenizer *tokenizer;
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(folder_with("tokenizer.json", text, strlen(text))));
    return tokenizer;
}

TEST(the_whole_file_is_read)
{
    static const int64_t expected[] = {3, 2, 0, 2};
    sgm_pretrained_tokenizer *tokenizer = opened(whole);
    sgm_tensor *ids = sgm_pretrained_tokenizer_encode(tokenizer, "ab ax", 5);
    CHECK_OK(ids);
    CHECK_INT(count_of(ids), 4);
    CHECK(memcmp(sgm_tensor_const_data(ids), expected, sizeof expected) == 0);
    sgm_tensor_free(ids);
    sgm_pretrained_tokenizer_free(tokenizer);
}

TEST(values_of_wrong_types_are_named)
{
    refuse("\"model\": {", "\"model\": 7, \"other\": {",
           "model: expected an object; is this a tokenizer.json?");
    refuse("\"type\": \"BPE\"", "\"type\": 7", "model.type: expected a text");
    refuse("{\"a\": 0, \"b\": 1, \"ab\": 2}", "[]",
           "model.vocab: expected an object of tokens and their numbers");
    refuse("\"a\": 0", "\"a\": \"0\"", "model.vocab: the number of 'a' is not a whole number");
    refuse("\"a\": 0", "\"a\": 0.5", "the number of 'a' is not a whole number");
    refuse("[\"a b\"]", "{}", "model.merges: expected an array");
    refuse("[\"a b\"]", "[7]", "model.merges[0]: expected two tokens");
    refuse("[\"a b\"]", "[\"a b c\"]", "model.merges[0]: expected two tokens");
    refuse("\"byte_fallback\": false", "\"byte_fallback\": 1", "model.byte_fallback: expected true or false");
    refuse("[{\"id\": 3, \"content\": \"<s>\", \"special\": true}]", "3", "added_tokens: expected an array");
    refuse("{\"id\": 3, \"content\": \"<s>\", \"special\": true}", "3",
           "added_tokens[0]: expected an object");
    refuse("\"id\": 3", "\"id\": \"3\"", "added_tokens[0].id: expected a whole number from 0 to ");
    refuse("\"content\": \"<s>\"", "\"content\": 3", "added_tokens[0].content: expected a text");
    refuse("{\"String\": \"x\"}", "\"x\"",
           "normalizer.pattern: expected {\"String\": ...} or {\"Regex\": ...}");
    refuse("\"Removed\"", "\"Lost\"", "pre_tokenizer.behavior: expected Removed, Isolated, ");
    refuse("\"type_id\": 0", "\"type_id\": -1", "type_id: expected a whole number from 0 to ");
    refuse("\"ids\": [3]", "\"ids\": [\"3\"]",
           "post_processor.special_tokens.<s>.ids: expected numbers of tokens");
    refuse("\"start\": 1", "\"start\": true", "decoder.start: expected a whole number");
}

TEST(what_is_missing_is_named)
{
    refuse("\"model\"", "\"no model\"", "model: expected an object");
    refuse("\"vocab\"", "\"no vocab\"", "model.vocab: expected an object");
    refuse("\"merges\"", "\"no merges\"", "model.merges: expected an array");
    refuse("\"content\": \"<s>\"", "\"none\": \"<s>\"", "added_tokens[0].content: expected a text");
    refuse("\"content\": \"ab\"", "\"none\": \"ab\"", "normalizer.content: expected a text");
    refuse("\"pair\"", "\"no pair\"", "post_processor.pair: expected an array");
    refuse("{\"<s>\": {\"ids\": [3]}}", "{}",
           "post_processor.special_tokens: there is no '<s>', which the template asks for");
    refuse("{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}]",
           "{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}]",
           "post_processor.single: expected the sequence A once");
    refuse("\"id\": \"B\"", "\"id\": \"A\"",
           "post_processor.pair: expected the sequence A and the sequence B once");
    refuse("\"merges\": [\"a b\"]", "\"merges\": [\"a c\"]",
           "model.merges[0]: a merge wants 'c', which is not in the vocabulary");
    refuse("\"merges\": [\"a b\"]", "\"merges\": [[\"b\", \"a\"]]",
           "a merge wants 'ba', which is not in the vocabulary");
    refuse("\"byte_fallback\"", "\"unk_token\": \"<unk>\", \"byte_fallback\"",
           "model.unk_token: '<unk>' is not in the vocabulary");
}

TEST(what_is_not_known_is_refused_by_name)
{
    refuse("\"BPE\"", "\"WordLevel\"",
           "model: the model 'WordLevel' is not supported; BPE, WordPiece and Unigram are");
    refuse("\"Replace\"", "\"Nmt\"", "normalizer: the normalizer 'Nmt' is not supported");
    refuse("\"Split\"", "\"UnicodeScripts\"", "the pre-tokenizer 'UnicodeScripts' is not supported");
    refuse("\"TemplateProcessing\"", "\"Other\"", "the post-processor 'Other' is not supported");
    refuse("\"Strip\"", "\"CTC\"", "the decoder 'CTC' is not supported");
    refuse("\"byte_fallback\"", "\"dropout\": 0.1, \"byte_fallback\"",
           "model.dropout: merges that are left out at random");
    refuse("\\\\s+", "\\\\K", "has \\K at byte 0, which is not supported");
    refuse("\\\\s+", "(", "pre_tokenizer.pattern: ");
}

/* What PCRE2 would read as something else, without a word. */
TEST(expressions_that_would_mean_something_else_are_refused)
{
    static const struct {
        const char *expression, *what;
    } cases[] = {
        {"\\\\pL", "a property without braces at byte 0"},
        {"[\\\\PL]", "a property without braces at byte 1"},
        {"\\\\x", "a byte that is no character at byte 0"},
        {"\\\\xe9", "a byte that is no character at byte 0"},
        {"\\\\377", "a byte that is no character at byte 0"},
        {"a\\\\E", "\\E at byte 1"},
        {"a{2}?", "a repeat of a repeat at byte 1"},
        {"a{2}+", "a repeat of a repeat at byte 1"},
        {"a(?i)b|c", "options within a group at byte 4"},
        {"(?i)[\\\\p{Lu}]", "a property in a set of both cases at byte 5"},
        {"(a(?i:b[^\\\\P{L}]))", "a property in a set of both cases at byte 9"},
        {"(?i)[[:upper:]]", "letters of one case in a set of both at byte 5"},
    };
    static const char *const taken[] = {"(?i:a)[\\\\p{Lu}]",  "(?i:(?-i:[\\\\p{Lu}]))",
                                        "((?i)a)[\\\\p{Lu}]", "a{2,}?",
                                        "\\\\x7f\\\\177",     "[[:upper:]]"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse("\\\\s+", cases[i].expression, cases[i].what);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        sgm_pretrained_tokenizer_free(opened(changed("\\\\s+", taken[i])));
}

TEST(numbers_of_tokens_are_checked)
{
    refuse("\"b\": 1", "\"b\": 0", "have the same number 0");
    refuse("\"b\": 1", "\"b\": -1",
           "'b' has the number -1; numbers of 3 tokens are from 0 on, without large gaps");
    refuse("\"b\": 1", "\"b\": 16000000", "'b' has the number 16000000");
    refuse("\"b\": 1", "\"b\": 99999999999999", "'b' has the number 99999999999999");
    refuse("\"id\": 3", "\"id\": 16000000", "added_tokens[0].id: expected a whole number from 0 to 10");
    refuse("\"id\": 3", "\"id\": 1", "added_tokens[0]: token 1 is 'b' already, and cannot be '<s>'");
    refuse("\"content\": \"<s>\"", "\"content\": \"ab\"",
           "added_tokens[0]: 'ab' is token 2 already, and cannot be 3");
    refuse("\"ids\": [3]", "\"ids\": [99999999999]", "expected numbers of tokens");
}

TEST(numbers_may_have_gaps)
{
    sgm_pretrained_tokenizer *tokenizer = opened(changed("\"id\": 3", "\"id\": 1000"));
    CHECK_INT(sgm_pretrained_tokenizer_count(tokenizer), 1001);
    CHECK(sgm_pretrained_tokenizer_token(tokenizer, 500) == NULL);
    CHECK_STR(sgm_pretrained_tokenizer_token(tokenizer, 1000), "<s>");
    sgm_pretrained_tokenizer_free(tokenizer);
}

/* A step, `count` times within each other or one after the other. */
static const char *repeated(const char *begin, const char *end, int count)
{
    static char text[1 << 16];
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s", begin);
    for (int i = 0; i < count; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s", end);
    return text;
}

TEST(steps_have_limits)
{
    static char steps[1 << 17];
    refuse("{\"type\": \"Replace\"", repeated("{\"type\": \"Sequence\", \"normalizers\": [", "", 9),
           "no JSON");
    snprintf(steps, sizeof steps, "%s, \"old\": {\"type\": \"Replace\"",
             repeated("{\"type\": \"Sequence\", \"normalizers\": [", "]}", 10));
    refuse("{\"type\": \"Replace\"", steps, "more than 8 sequences within each other");
    snprintf(
        steps, sizeof steps,
        "{\"type\": \"Sequence\", \"normalizers\": [%s{\"type\": \"NFC\"}]}, \"old\": {\"type\": \"Replace\"",
        repeated("{\"type\": \"NFC\"}, ", "", 300));
    refuse("{\"type\": \"Replace\"", steps, "normalizer.normalizers[256]: more than 256 steps");
    refuse("\"content\": \"ab\"",
           "\"content\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
           "normalizer.content: a text of 65 bytes; at most 64 are supported");
    snprintf(steps, sizeof steps, "\"model\": %s", repeated("[", "]", 3000));
    refuse("\"model\": {", steps, "no JSON: maximum parsing depth reached");
}

/* Steps that each double a text; and an expression that takes a time exponential in its length. */
TEST(texts_do_not_explode)
{
    static char steps[1 << 17], text[100];
    static const char doubling[] =
        "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"aa\"}, ";
    sgm_pretrained_tokenizer *tokenizer;
    snprintf(
        steps, sizeof steps,
        "{\"type\": \"Sequence\", \"normalizers\": [%s{\"type\": \"NFC\"}]}, \"old\": {\"type\": \"Replace\"",
        repeated(doubling, "", 200));
    tokenizer = opened(changed("{\"type\": \"Replace\"", steps));
    CHECK_ERROR(sgm_pretrained_tokenizer_encode(tokenizer, "a", 1), "the tokenizer's steps make over ");
    sgm_pretrained_tokenizer_free(tokenizer);

    snprintf(
        steps, sizeof steps,
        "{\"type\": \"Sequence\", \"pretokenizers\": [%s{\"type\": \"Digits\"}]}, \"old\": {\"type\": "
        "\"Split\"",
        repeated("{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}, ", "", 200));
    tokenizer = opened(changed("{\"type\": \"Split\"", steps));
    CHECK_ERROR(sgm_pretrained_tokenizer_encode(tokenizer, "\u00e9", 2), "the tokenizer's steps make over ");
    sgm_pretrained_tokenizer_free(tokenizer);

    tokenizer = opened(changed("\\\\s+", "(?:a|aa|a?a)+b"));
    memset(text, 'a', sizeof text);
    memcpy(text + sizeof text - 2, "cb", 2); /* the end that is looked for is there */
    CHECK_ERROR(sgm_pretrained_tokenizer_encode(tokenizer, text, sizeof text),
                "takes too long at byte 0 of a text of 100 bytes; split the text, or take another tokenizer");
    sgm_pretrained_tokenizer_free(tokenizer);
}

/* Whatever opens must also work. */
static void try(const char *text, size_t size)
{
    static const int64_t tokens[] = {3, 0, 1, 2, 0};
    sgm_pretrained_tokenizer *tokenizer =
        sgm_pretrained_tokenizer_open(folder_with("tokenizer.json", text, size));
    sgm_tensor *ids;
    char *decoded;
    if (!tokenizer)
        return;
    ids = sgm_pretrained_tokenizer_encode(tokenizer, "ab  xa\xff <s>\u00e9", 12);
    decoded = sgm_pretrained_tokenizer_decode(tokenizer, tokens, 5, NULL);
    sgm_string_free(decoded);
    sgm_tensor_free(ids);
    sgm_pretrained_tokenizer_free(tokenizer);
}

TEST(files_cut_anywhere_are_refused)
{
    for (size_t size = 0; size + 1 < sizeof whole; size++)
        refuse_file("tokenizer.json", whole, size, "no JSON");
}

TEST(files_with_one_byte_changed_do_no_harm)
{
    static const char bytes[] = {'"', '9', '-', '[', '}', (char)0xff};
    char text[sizeof whole];
    for (size_t at = 0; at + 1 < sizeof whole; at++)
        for (size_t i = 0; i < sizeof bytes; i++) {
            memcpy(text, whole, sizeof whole);
            text[at] = bytes[i];
            try(text, sizeof whole - 1);
        }
}

TEST(other_models_are_checked_too)
{
    static const char *const files[][2] = {
        {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}}", "model.unk_token: expected a text"},
        {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}, \"unk_token\": \"a\","
         " \"max_input_chars_per_word\": 1001}}",
         "model.max_input_chars_per_word: expected a whole number from 0 to 1000"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": {}}}", "model.vocab: expected an array"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\"]]}}",
         "model.vocab[0]: expected [\"TOKEN\", SCORE]"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 0.5]], \"unk_id\": 1}}",
         "model.unk_id: expected a whole number from 0 to 0"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [], \"unk_id\": 0}}", "model.vocab: no tokens"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": []}, \"normalizer\": {\"type\": \"Precompiled\","
         " \"precompiled_charsmap\": \"#\"}}",
         "normalizer.precompiled_charsmap: byte 0 is no base64"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": []}, \"normalizer\": {\"type\": \"Precompiled\","
         " \"precompiled_charsmap\": \"/////w==\"}}",
         "normalizer.precompiled_charsmap: a table of 4294967295 bytes within 4"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": []}, \"normalizer\": {\"type\": \"Precompiled\","
         " \"precompiled_charsmap\": \"AAAAAP8=\"}}",
         "normalizer.precompiled_charsmap: texts that are no UTF-8"},
        {"[]", "expected an object"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        refuse_file("tokenizer.json", files[i][0], strlen(files[i][0]), files[i][1]);
}

TEST(a_vocabulary_without_the_unknown_token_says_so)
{
    sgm_pretrained_tokenizer *tokenizer =
        opened("{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", -1.0]]}}");
    CHECK_ERROR(sgm_pretrained_tokenizer_encode(tokenizer, "ab", 2),
                "the vocabulary has neither 'b' nor a token for what is unknown (unk_id)");
    sgm_pretrained_tokenizer_free(tokenizer);
}

TEST(old_files_are_checked)
{
    const char *folder = new_folder();
    refuse_file("vocab.txt", "[UNK]\n[CLS]\na\n", 14,
                "has no line '[SEP]'; it must be the vocabulary of a BERT");
    refuse_file("vocab.txt", "\xff\n", 2, "is no UTF-8");
    write_file(folder, "vocab.json", "{\"a\": 0, \"b\": 1}", 16);
    CHECK_ERROR(sgm_pretrained_tokenizer_open(folder),
                "merges.txt cannot be opened: No such file or directory");
    write_file(folder, "merges.txt", "#version: 0.2\na\n", 16);
    CHECK_ERROR(sgm_pretrained_tokenizer_open(folder),
                "merges.txt:2: expected two tokens with a space between");
    write_file(folder, "merges.txt", "a b\n", 4);
    CHECK_ERROR(sgm_pretrained_tokenizer_open(folder),
                "merges.txt:1: a merge wants 'ab', which is not in the vocabulary");
    write_file(folder, "vocab.json", "{\"a\": 0, \"b\": 1, \"</s>\": 2}", 27);
    write_file(folder, "merges.txt", "", 0);
    CHECK_ERROR(sgm_pretrained_tokenizer_open(folder),
                "so it is not GPT-2's; its model needs a tokenizer.json");
}

TEST(paths_are_checked)
{
    const char *folder = new_folder();
    char path[300];
    CHECK_ERROR(sgm_pretrained_tokenizer_open(folder), "has no tokenizer.json, vocab.json or vocab.txt");
    CHECK_ERROR(sgm_pretrained_tokenizer_open(""), "needs the path of its folder or file");
    CHECK_ERROR(sgm_pretrained_tokenizer_open(NULL), "needs the path of its folder or file");
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    CHECK_ERROR(sgm_pretrained_tokenizer_open(path), "cannot be opened: No such file or directory");
    write_file(folder, "tokenizer.json", whole, sizeof whole - 1);
    write_file(folder, "tokenizer_config.json", "{\"bos_token\": 3}", 16);
    CHECK_ERROR(sgm_pretrained_tokenizer_open(path), "tokenizer_config.json: bos_token: expected a text");
}
