/* The notation of networks: a parser by recursive descent.
 *
 *     network   = statement {";" statement} [";"]
 *     statement = [word "="] chain
 *     chain     = item {"+" item}
 *     item      = integer "*" item | "(" chain ")" | word ["(" [argument {"," argument}] ")"]
 *     argument  = [word "="] (number | word | string) | word "=" "(" integer {"," integer} ")"
 *     of add and concatenate: word "=" value | chain
 */
#include "network/parser.h"

#include <stdio.h>

/* Layers that were parsed and have no parent yet. The list owns them until gather() or sgm__layer_adopt
 * takes them. */
typedef struct list {
    sgm_layer **items;
    size_t count, capacity;
} list;

/* Takes the layer also on failure. */
static sgm_status add_to_list(list *items, sgm_layer *layer)
{
    sgm_status status = sgm__reserve(&items->items, &items->capacity, items->count + 1, sizeof(sgm_layer *));
    if (status == SGM_OK)
        items->items[items->count++] = layer;
    else
        sgm_layer_free(layer);
    return status;
}

static void free_list(list *items)
{
    for (size_t i = 0; i < items->count; i++)
        sgm_layer_free(items->items[i]);
    sgm__free(items->items);
}

/* --- layers --- */

static sgm_layer *parse_chain(sgm__parser *p);

/* Notes in the node where its text begins, for messages of later stages (network.c). */
static sgm_layer *place_node(sgm_layer *node, const sgm__token *token)
{
    node->line = token->line;
    node->column = token->column;
    return node;
}

/* The arguments of a join: branches, which are chains, and its own arguments by name, in any order. */
static sgm_status parse_branches(sgm__parser *p, sgm_layer *node, list *branches)
{
    sgm__token open = p->token;
    sgm__parser_next(p);
    do {
        if (sgm__parser_is_at_name(p)) {
            SGM_TRY(sgm__parser_named_argument(p, node));
            continue;
        }
        sgm_layer *branch = parse_chain(p);
        if (branch == NULL)
            return sgm_last_status();
        SGM_TRY(add_to_list(branches, branch));
    } while (sgm__parser_accept(p, ','));
    return sgm__parser_close(p, &open);
}

/* Applies the rule of sgm_join_branches, but with the place of the word in the message. */
static sgm_status check_branch_count(const sgm__parser *p, const sgm__token *word, const sgm_layer_type *type,
                                     size_t count)
{
    if (count >= (size_t)type->min_inputs && count <= (size_t)type->max_inputs)
        return SGM_OK;
    return sgm__parser_fail(p, word, SGM_ERROR_FORMAT, "%s joins %d to %d branches, %zu are given",
                            type->name, type->min_inputs, type->max_inputs, count);
}

/* add(...) or concatenate(...). The count in `branches` is set to 0 before sgm__layer_adopt, which owns the
 * branches from then on in both cases, so that free_list frees only those that were not handed over. */
static sgm_layer *parse_join(sgm__parser *p, const sgm_layer_type *type)
{
    sgm__token word = p->token;
    sgm__parser_next(p);
    if (!sgm__token_is(&p->token, '(')) {
        sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT, "expected '(' and the branches of %s, found %s",
                         type->name, sgm__parser_quote(&p->token).text);
        return NULL;
    }
    sgm_layer *node = sgm__layer_new(SGM__NODE_BRANCHES, type);
    if (node == NULL)
        return NULL;
    list branches = {0};
    sgm_status status = parse_branches(p, node, &branches);
    if (status == SGM_OK)
        status = check_branch_count(p, &word, type, branches.count);
    if (status == SGM_OK && (status = sgm__arguments_finish(node)) != SGM_OK)
        sgm__parser_place(p, &word);
    if (status == SGM_OK) {
        size_t count = branches.count;
        branches.count = 0;
        if ((status = sgm__layer_adopt(node, branches.items, count)) != SGM_OK)
            sgm__parser_place(p, &word);
    }
    free_list(&branches);
    if (status == SGM_OK)
        return place_node(node, &word);
    sgm_layer_free(node);
    return NULL;
}

/* A word that names a type of layer: brackets with arguments are optional, required arguments are not.
 * `typed`: the row that the word was found by, NULL for the type's own name. */
static sgm_layer *parse_layer(sgm__parser *p, const sgm_layer_type *type, const sgm__name_row *typed)
{
    sgm__token word = p->token;
    if ((type->flags & SGM_LAYER_JOIN) != 0)
        return parse_join(p, type);
    sgm_layer *node = sgm__layer_new(SGM__NODE_LAYER, type);
    if (node == NULL)
        return NULL;
    place_node(node, &word);
    sgm__parser_next(p);
    sgm_status status = sgm__token_is(&p->token, '(') ? sgm__parser_arguments(p, node, typed) : SGM_OK;
    if (status == SGM_OK && (status = sgm__arguments_finish(node)) != SGM_OK)
        sgm__parser_place(p, &word);
    if (status == SGM_OK)
        return node;
    sgm_layer_free(node);
    return NULL;
}

/* The error for a word that is no layer and no value. Always returns NULL. */
static sgm_layer *unknown_layer(const sgm__parser *p, const char *name)
{
    char hint[SGM__NAME_HINT];
    sgm__layer_type_hint(name, p->names, p->name_count, hint);
    sgm__parser_fail(p, &p->token, SGM_ERROR_NOT_FOUND, "unknown layer '%s'%s", name,
                     hint[0] != '\0'
                         ? hint
                         : "; 'sigma info' lists the layers, and a name must be defined before it is used");
    return NULL;
}

/* "relu", with or without empty brackets, is activation(relu). */
static sgm_layer *parse_activation(sgm__parser *p, const sgm_op *op)
{
    sgm__token word = p->token;
    char real[SGM__MAX_NAME + 16], *name = sgm__parser_copy(p, &word);
    snprintf(real, sizeof real, "activation(%s)", op->name);
    sgm__parser_next(p);
    if (sgm__token_is(&p->token, '(') && sgm__parser_sees(p, ')')) {
        sgm__parser_next(p);
        sgm__parser_next(p);
    } else if (sgm__token_is(&p->token, '(')) {
        sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT,
                         "'%s' is an activation, which takes no arguments; as a layer it is %s", name, real);
        sgm__free(name);
        return NULL;
    }
    sgm_layer *node = sgm__layer_new(SGM__NODE_LAYER, sgm__layer_type_find("activation"));
    if (name != NULL && node != NULL && sgm__argument_set_text(node, 0, op->name) == SGM_OK) {
        sgm__name_note(name, real);
        sgm__free(name);
        return place_node(node, &word);
    }
    sgm__free(name);
    sgm_layer_free(node);
    return NULL;
}

/* A word that other programs have for a layer, or an activation in a layer's place. */
static sgm_layer *parse_foreign(sgm__parser *p, const char *name)
{
    const sgm__name_row *row;
    const sgm_layer_type *type = sgm__layer_type_meant(name, &row);
    const sgm_op *op = type == NULL ? sgm__activation_meant(name) : NULL;
    if (op != NULL)
        return parse_activation(p, op);
    if (type == NULL)
        return unknown_layer(p, name);
    return parse_layer(p, type, row);
}

/* Whether an earlier statement of this text has defined the name. */
static bool is_defined(const sgm__parser *p, const char *name)
{
    for (size_t i = 0; i < p->name_count; i++)
        if (strcmp(p->names[i], name) == 0)
            return true;
    return false;
}

/* A word is a layer or a reference. Layers are counted while they are read, so a long text stops at the
 * limit before the tree is built; repeats are multiplied out later, in sgm__layer_adopt. */
static sgm_layer *parse_word(sgm__parser *p)
{
    if (++p->layers > SGM__MAX_LAYERS) {
        sgm__parser_fail(p, &p->token, SGM_ERROR_ARGUMENT, "the network has more than %d layers",
                         SGM__MAX_LAYERS);
        return NULL;
    }
    char *name = sgm__parser_copy(p, &p->token);
    if (name == NULL)
        return NULL;
    const sgm_layer_type *type = sgm__layer_type_find(name);
    sgm_layer *node = NULL;
    if (type != NULL) {
        node = parse_layer(p, type, NULL);
    } else if (!is_defined(p, name)) {
        node = parse_foreign(p, name);
    } else if (sgm__parser_sees(p, '(')) {
        sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT,
                         "'%s' is the name of a value, not a layer with arguments", name);
    } else if ((node = sgm_reference(name)) != NULL) {
        place_node(node, &p->token);
        sgm__parser_next(p);
    }
    sgm__free(name);
    return node;
}

static sgm_layer *parse_item(sgm__parser *p);

/* "(" chain ")"; brackets alone make no node. */
static sgm_layer *parse_group(sgm__parser *p)
{
    sgm__token open = p->token;
    sgm__parser_next(p);
    sgm_layer *chain = parse_chain(p);
    if (chain == NULL || sgm__parser_close(p, &open) == SGM_OK)
        return chain;
    sgm_layer_free(chain);
    return NULL;
}

/* integer "*" item. A number that no '*' follows is a layer's argument in the wrong place or a missing '*',
 * hence the hint. */
static sgm_layer *parse_repeat(sgm__parser *p)
{
    sgm__token number = p->token;
    sgm__parsed_value v;
    if (sgm__parser_value(p, &v) != SGM_OK)
        return NULL;
    if (!sgm__parser_accept(p, '*')) {
        sgm__parser_fail(p, &number, SGM_ERROR_FORMAT,
                         "expected a layer, found %s; n copies are written n * (...)",
                         sgm__parser_quote(&number).text);
        return NULL;
    }
    if (!v.is_integer || v.integer < 1 || v.integer > SGM__MAX_LAYERS) {
        sgm__parser_fail(p, &number, SGM_ERROR_ARGUMENT,
                         "the number of copies must be a whole number from 1 to %d, found %s",
                         SGM__MAX_LAYERS, sgm__parser_quote(&number).text);
        return NULL;
    }
    /* brackets are part of the repeat, not one more level */
    sgm_layer *body = sgm__token_is(&p->token, '(') ? parse_group(p) : parse_item(p);
    if (body == NULL)
        return NULL;
    sgm_layer *node = sgm_repeat((int32_t)v.integer, body);
    if (node == NULL) {
        sgm__parser_place(p, &number);
        return NULL;
    }
    return place_node(node, &number);
}

/* One item of a chain. The depth of the recursion is counted here, since every level of nesting passes
 * through an item. */
static sgm_layer *parse_item(sgm__parser *p)
{
    if (p->depth >= SGM__MAX_DEPTH) {
        sgm__parser_fail(p, &p->token, SGM_ERROR_ARGUMENT, "layers are nested deeper than %d",
                         SGM__MAX_DEPTH);
        return NULL;
    }
    p->depth++;
    sgm_layer *node = NULL;
    if (p->token.kind == SGM__TOKEN_WORD)
        node = parse_word(p);
    else if (p->token.kind == SGM__TOKEN_NUMBER)
        node = parse_repeat(p);
    else if (sgm__token_is(&p->token, '('))
        node = parse_group(p);
    else
        sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT, "expected a layer, found %s",
                         sgm__parser_quote(&p->token).text);
    p->depth--;
    return node;
}

/* item {"+" item}. A reference takes nothing from the item before it, so it is refused behind '+'. The item
 * goes into the list before the check, so that the caller frees it. */
static sgm_status parse_items(sgm__parser *p, list *items)
{
    do {
        sgm__token token = p->token;
        sgm_layer *item = parse_item(p);
        if (item == NULL)
            return sgm_last_status();
        bool late = items->count > 0 && item->kind == SGM__NODE_REFERENCE;
        SGM_TRY(add_to_list(items, item));
        if (late)
            return sgm__parser_fail(p, &token, SGM_ERROR_FORMAT,
                                    "%s names a value, which can only start a chain or be a branch",
                                    sgm__parser_quote(&token).text);
    } while (sgm__parser_accept(p, '+'));
    return SGM_OK;
}

/* Puts a list together with `make` (sgm_chain_with or sgm_statements_with), which owns the layers from then
 * on, and notes the place of `token` unless the result is a single layer that has its own. Does nothing but
 * free the list if `status` is a failure. */
static sgm_layer *gather(const sgm__parser *p, const sgm__token *token, list *items, sgm_status status,
                         sgm_layer *(*make)(sgm_layer *const *, size_t))
{
    sgm_layer *node = NULL;
    if (status == SGM_OK) {
        node = make(items->items, items->count);
        if (node == NULL)
            sgm__parser_place(p, token);
        else if (node->column == 0)
            place_node(node, token);
        items->count = 0;
    }
    free_list(items);
    return node;
}

static sgm_layer *parse_chain(sgm__parser *p)
{
    sgm__token first = p->token;
    list items = {0};
    sgm_status status = parse_items(p, &items);
    return gather(p, &first, &items, status, sgm_chain_with);
}

/* --- statements --- */

/* The chain behind "name =". The name is noted after the chain is parsed, so that a value cannot refer to
 * itself. It belongs to the node, which lives as long as the parser needs it. */
static sgm_layer *define(sgm__parser *p, const sgm__token *word, char *name)
{
    if (is_defined(p, name)) {
        sgm__parser_fail(p, word, SGM_ERROR_FORMAT, "'%s' is defined twice", name);
        return NULL;
    }
    if (sgm__layer_type_find(name) != NULL) {
        sgm__parser_fail(p, word, SGM_ERROR_FORMAT, "'%s' is a layer; choose another name for the value",
                         name);
        return NULL;
    }
    sgm_layer *chain = parse_chain(p);
    if (chain == NULL)
        return NULL;
    sgm_layer *node = sgm_definition(name, chain);
    if (node == NULL) {
        sgm__parser_place(p, word);
        return NULL;
    }
    if (sgm__reserve(&p->names, &p->name_capacity, p->name_count + 1, sizeof(const char *)) != SGM_OK) {
        sgm_layer_free(node);
        return NULL;
    }
    p->names[p->name_count++] = node->name;
    return place_node(node, word);
}

/* word "=" makes a definition; sgm__parser_is_at_name has seen both tokens, which are skipped here. */
static sgm_layer *parse_statement(sgm__parser *p)
{
    if (!sgm__parser_is_at_name(p))
        return parse_chain(p);
    sgm__token word = p->token;
    char *name = sgm__parser_copy(p, &word);
    if (name == NULL)
        return NULL;
    sgm__parser_next(p);
    sgm__parser_next(p);
    sgm_layer *node = define(p, &word, name);
    sgm__free(name);
    return node;
}

/* All statements up to the end of the text. A last ';' is allowed. Two words in a row most likely lack a
 * '+'. */
static sgm_status parse_statements(sgm__parser *p, list *statements)
{
    do {
        sgm_layer *statement = parse_statement(p);
        if (statement == NULL)
            return sgm_last_status();
        SGM_TRY(add_to_list(statements, statement));
    } while (sgm__parser_accept(p, ';') && p->token.kind != SGM__TOKEN_END);
    if (p->token.kind == SGM__TOKEN_WORD)
        return sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT,
                                "a '+' is missing before %s: one layer is put behind another by '+'",
                                sgm__parser_quote(&p->token).text);
    if (p->token.kind != SGM__TOKEN_END)
        return sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT,
                                "expected '+', ';' or the end of the text, found %s",
                                sgm__parser_quote(&p->token).text);
    return SGM_OK;
}

/* A text with one chain gives that chain; several statements, or one definition, give a node of statements.
 */
sgm_layer *sgm_layer_parse(const char *text)
{
    if (text == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the text of the network is NULL");
        return NULL;
    }
    if (strnlen(text, SGM__MAX_NETWORK_TEXT + 1) > SGM__MAX_NETWORK_TEXT) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the text of the network is longer than %d bytes",
                 SGM__MAX_NETWORK_TEXT);
        return NULL;
    }
    sgm__parser p = {.lexer = {text, 1, 1}, .lines = strchr(text, '\n') != NULL};
    sgm__parser_next(&p);
    sgm__token first = p.token;
    list statements = {0};
    sgm_status status = parse_statements(&p, &statements);
    sgm__free(p.names);
    bool single = statements.count == 1 && statements.items[0]->kind != SGM__NODE_DEFINITION;
    return gather(&p, &first, &statements, status, single ? sgm_chain_with : sgm_statements_with);
}
