/* tokenizer.json, but for its steps: added tokens, templates, and what all of it is put together by. */
#include "tokenizer/read/json.h"

#include <stdlib.h>
#include <string.h>

static sgm_status read_added_token(sgm_pretrained_tokenizer *tokenizer, const sgm__node *node, uint64_t most)
{
    sgm__added_token token = {0};
    const char *content;
    uint64_t id;
    size_t other_size;
    const char *other;
    uint32_t known;

    if (!json_is_object(node->value))
        return sgm__node_fail(node, SGM_ERROR_TYPE, "expected an object");
    SGM__PASS(sgm__node_text(node, "content", &content, &token.size));
    SGM__PASS(sgm__node_count(node, "id", most, &id));
    SGM__PASS(sgm__node_bool(node, "single_word", false, &token.single_word));
    SGM__PASS(sgm__node_bool(node, "lstrip", false, &token.left));
    SGM__PASS(sgm__node_bool(node, "rstrip", false, &token.right));
    SGM__PASS(sgm__node_bool(node, "special", false, &token.special));
    SGM__PASS(sgm__node_bool(node, "normalized", !token.special, &token.normalized));
    if (token.size == 0)
        return SGM_OK;
    token.id = (uint32_t)id;
    other = sgm__tokenizer_text(tokenizer, (int64_t)id, &other_size);
    if (other && (other_size != token.size || memcmp(other, content, other_size) != 0))
        return sgm__node_fail(node, SGM_ERROR_FORMAT, "token %llu is '%.60s' already, and cannot be '%.60s'",
                              (unsigned long long)id, other, content);
    known = sgm__vocabulary_find(&tokenizer->model.vocabulary, content, token.size);
    if (known == SGM__NONE)
        known = sgm__vocabulary_find(&tokenizer->added.names, content, token.size);
    if (known != SGM__NONE && known != id)
        return sgm__node_fail(node, SGM_ERROR_FORMAT, "'%.60s' is token %u already, and cannot be %llu",
                              content, known, (unsigned long long)id);
    if (sgm__vocabulary_find(&tokenizer->added.names, content, token.size) != SGM__NONE)
        return SGM_OK;
    token.content = (char *)(uintptr_t)content;
    return sgm__tokenizer_add_token(tokenizer, &token);
}

static sgm_status read_added_tokens(sgm_pretrained_tokenizer *tokenizer, const sgm__node *root)
{
    sgm__node list = sgm__node_get(root, "added_tokens");
    uint64_t most;
    if (!list.value)
        return SGM_OK;
    SGM__PASS(sgm__node_array(root, "added_tokens", &list));
    most = tokenizer->model.vocabulary.count + json_array_size(list.value) + SGM__MOST_GAPS;
    most = most < SGM__MOST_TOKENS ? most : SGM__MOST_TOKENS - 1;
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const sgm__node one = sgm__node_at(&list, i);
        SGM__PASS(read_added_token(tokenizer, &one, most));
    }
    return SGM_OK;
}

/* --- templates --- */
/* The numbers of a special token: "special_tokens" says which, for its name. */
static sgm_status add_special(sgm__template *template, const sgm__node *specials, const char *name,
                              uint32_t segment)
{
    const sgm__node special = sgm__node_get(specials, name);
    sgm__node ids;

    if (!json_is_object(special.value))
        return sgm__node_fail(specials, SGM_ERROR_NOT_FOUND,
                              "there is no '%.60s', which the template asks for", name);
    SGM__PASS(sgm__node_array(&special, "ids", &ids));
    if (json_array_size(ids.value) > SGM__MOST_STEPS - template->count)
        return sgm__node_fail(&ids, SGM_ERROR_LIMIT, "more than %d parts", SGM__MOST_STEPS);
    for (size_t i = 0; i < json_array_size(ids.value); i++) {
        const json_t *id = json_array_get(ids.value, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= SGM__MOST_TOKENS)
            return sgm__node_fail(&ids, SGM_ERROR_TYPE, "expected numbers of tokens");
        SGM__PASS(sgm__template_add(
            template, (sgm__template_part){SGM__SPECIAL, (uint32_t)json_integer_value(id), segment}));
    }
    return SGM_OK;
}

static sgm_status read_template_part(sgm__template *template, const sgm__node *specials,
                                     const sgm__node *node)
{
    const sgm__node special = sgm__node_get(node, "SpecialToken"), sequence = sgm__node_get(node, "Sequence");
    const sgm__node *part = special.value ? &special : &sequence;
    const char *name;
    size_t size;
    uint64_t segment;

    if (!json_is_object(part->value))
        return sgm__node_fail(node, SGM_ERROR_TYPE, "expected a SpecialToken or a Sequence");
    SGM__PASS(sgm__node_text(part, "id", &name, &size));
    SGM__PASS(sgm__node_count(part, "type_id", UINT32_MAX, &segment));
    if (template->count >= SGM__MOST_STEPS)
        return sgm__node_fail(node, SGM_ERROR_LIMIT, "more than %d parts", SGM__MOST_STEPS);
    if (special.value)
        return add_special(template, specials, name, (uint32_t)segment);
    if (strcmp(name, "A") != 0 && strcmp(name, "B") != 0)
        return sgm__node_fail(part, SGM_ERROR_FORMAT, "expected the sequence A or B");
    return sgm__template_add(
        template, (sgm__template_part){*name == 'A' ? SGM__TEXT_A : SGM__TEXT_B, 0, (uint32_t)segment});
}

/* `texts`: how many it is of, each of which must be in it once. */
static sgm_status read_template(sgm__template *template, const sgm__node *node, const char *key, size_t texts)
{
    const sgm__node specials = sgm__node_get(node, "special_tokens");
    size_t counts[2] = {0};
    sgm__node list;
    SGM__PASS(sgm__node_array(node, key, &list));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const sgm__node part = sgm__node_at(&list, i);
        SGM__PASS(read_template_part(template, &specials, &part));
    }
    for (size_t i = 0; i < template->count; i++)
        if (template->parts[i].kind != SGM__SPECIAL)
            counts[template->parts[i].kind == SGM__TEXT_B]++;
    if (counts[0] != 1 || counts[1] != texts - 1)
        return sgm__node_fail(&list, SGM_ERROR_UNSUPPORTED, "expected the sequence %s once",
                              texts == 1 ? "A" : "A and the sequence B");
    return SGM_OK;
}

/* ["[SEP]", 102]: the number. */
static sgm_status read_named_id(const sgm__node *node, const char *key, uint32_t *id)
{
    const sgm__node pair = sgm__node_get(node, key);
    const json_t *number = json_array_get(pair.value, 1);
    if (!json_is_integer(number) || json_integer_value(number) < 0 ||
        json_integer_value(number) >= SGM__MOST_TOKENS)
        return sgm__node_fail(&pair, SGM_ERROR_TYPE, "expected [\"TOKEN\", NUMBER]");
    *id = (uint32_t)json_integer_value(number);
    return SGM_OK;
}

/* BERT: begin A end B end, where B is the second segment; RoBERTa: begin A end end B end, all of one segment.
 */
static sgm_status read_bert_template(sgm_pretrained_tokenizer *tokenizer, const sgm__node *node, bool roberta)
{
    sgm__template *templates[] = {&tokenizer->single, &tokenizer->pair};
    sgm__template_part begin = {SGM__SPECIAL, 0, 0}, end = {SGM__SPECIAL, 0, 0};
    const uint32_t second = roberta ? 0 : 1;

    SGM__PASS(read_named_id(node, "cls", &begin.id));
    SGM__PASS(read_named_id(node, "sep", &end.id));
    for (int i = 0; i < 2; i++) {
        SGM__PASS(sgm__template_add(templates[i], begin));
        SGM__PASS(sgm__template_add(templates[i], (sgm__template_part){SGM__TEXT_A, 0, 0}));
        SGM__PASS(sgm__template_add(templates[i], end));
    }
    if (roberta)
        SGM__PASS(sgm__template_add(&tokenizer->pair, end));
    SGM__PASS(sgm__template_add(&tokenizer->pair, (sgm__template_part){SGM__TEXT_B, 0, second}));
    end.segment = second;
    return sgm__template_add(&tokenizer->pair, end);
}

sgm_status sgm__read_template(sgm_pretrained_tokenizer *tokenizer, const sgm__node *node, int depth)
{
    const char *type;
    size_t size;

    SGM__PASS(sgm__node_text(node, "type", &type, &size));
    if (strcmp(type, "Sequence") == 0) {
        SGM__READ_SEQUENCE(node, "processors", depth, sgm__read_template, tokenizer);
        return SGM_OK;
    }
    if (strcmp(type, "ByteLevel") == 0) /* changes where tokens are said to stand, not the tokens */
        return SGM_OK;
    if (tokenizer->single.count > 0)
        return sgm__node_fail(node, SGM_ERROR_UNSUPPORTED, "a second template is not supported");
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
        return read_bert_template(tokenizer, node, *type == 'R');
    if (strcmp(type, "TemplateProcessing") != 0)
        return sgm__node_fail(node, SGM_ERROR_UNSUPPORTED, "the post-processor '%.60s' is not supported",
                              type);
    SGM__PASS(read_template(&tokenizer->single, node, "single", 1));
    return read_template(&tokenizer->pair, node, "pair", 2);
}

static sgm_status read_root(sgm_pretrained_tokenizer *tokenizer, const sgm__node *root)
{
    const sgm__node model = sgm__node_get(root, "model"), normalizer = sgm__node_get(root, "normalizer"),
                    splitter = sgm__node_get(root, "pre_tokenizer"), decoder = sgm__node_get(root, "decoder"),
                    template = sgm__node_get(root, "post_processor");

    if (!json_is_object(model.value))
        return sgm__node_fail(&model, SGM_ERROR_TYPE, "expected an object; is this a tokenizer.json?");
    SGM__PASS(sgm__read_model(tokenizer, &model));
    SGM__PASS(read_added_tokens(tokenizer, root));
    if (normalizer.value)
        SGM__PASS(sgm__read_normalizer(&tokenizer->normalizers, &normalizer, 0));
    if (splitter.value)
        SGM__PASS(sgm__read_splitter(&tokenizer->splitters, &splitter, 0));
    if (template.value)
        SGM__PASS(sgm__read_template(tokenizer, &template, 0));
    if (decoder.value)
        SGM__PASS(sgm__read_decoder(&tokenizer->decoders, &decoder, 0));
    tokenizer->joins_by_space = !decoder.value;
    return SGM_OK;
}

sgm_status sgm__read_tokenizer_json(sgm_pretrained_tokenizer *tokenizer, const char *path)
{
    json_t *root = sgm__json_load(path);
    const sgm__node node = {root, path, ""};
    const sgm_status status = root ? read_root(tokenizer, &node) : sgm_last_status();
    json_decref(root);
    return status;
}
