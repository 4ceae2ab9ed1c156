/* The notation of networks: a parser by recursive descent.
 *
 *     network   = statement {";" statement} [";"]
 *     statement = [word "="] chain
 *     chain     = item {"+" item}
 *     item      = integer "*" item | "(" chain ")" | word ["(" [argument {"," argument}] ")"]
 *     argument  = [word "="] (number | word | string) | word "=" "(" integer {"," integer} ")"
 *     of add and concatenate: word "=" value | chain
 */
#include "network/notation.h"
#include "network/network_internal.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct list {
    sgm_layer **items;
    size_t count, capacity;
} list;

typedef struct parser {
    sgm__lexer lexer;
    sgm__token token; /* the next one */
    bool lines;       /* the text has more than one: messages say which */
    int32_t depth;
    int32_t layers;     /* written so far */
    const char **names; /* defined values; they belong to the definitions in `statements` */
    size_t name_count, name_capacity;
} parser;

/* --- messages --- */

static sgm_status fail_at(const parser *p, const sgm__token *token, sgm_status status, const char *format,
                          ...) SGM_PRINTF(4, 5);

/* Puts the place before the newest message. */
static sgm_status place(const parser *p, const sgm__token *token)
{
    if (p->lines)
        return sgm__fail_within("line %d, column %d", token->line, token->column);
    return sgm__fail_within("column %d", token->column);
}

static sgm_status fail_at(const parser *p, const sgm__token *token, sgm_status status, const char *format,
                          ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    sgm_fail(status, "%s", message);
    place(p, token);
    return status;
}

typedef struct quoted {
    char text[64];
} quoted;

/* A token for a message: short, and without bytes that a terminal would obey. */
static quoted quote(const sgm__token *token)
{
    quoted result;
    if (token->kind == SGM__TOKEN_END) {
        snprintf(result.text, sizeof result.text, "the end of the text");
        return result;
    }
    size_t length = token->length < 40 ? token->length : 40;
    char clean[41];
    for (size_t i = 0; i < length; i++)
        clean[i] = token->start[i] >= ' ' && token->start[i] < 127 ? token->start[i] : '?';
    clean[length] = '\0';
    snprintf(result.text, sizeof result.text, "'%s'%s", clean, token->length > length ? "..." : "");
    return result;
}

/* --- tokens --- */

static void next(parser *p)
{
    p->token = sgm__lexer_next(&p->lexer);
}

static bool is_sign(const sgm__token *token, char sign)
{
    return token->kind == SGM__TOKEN_SIGN && token->sign == sign;
}

static bool accept(parser *p, char sign)
{
    if (!is_sign(&p->token, sign))
        return false;
    next(p);
    return true;
}

/* True if the token after the next one is `sign`. */
static bool sign_follows(const parser *p, char sign)
{
    sgm__lexer copy = p->lexer;
    sgm__token after = sgm__lexer_next(&copy);
    return is_sign(&after, sign);
}

static sgm_status close_bracket(parser *p, const sgm__token *open)
{
    if (accept(p, ')'))
        return SGM_OK;
    return fail_at(p, &p->token, SGM_ERROR_FORMAT, "expected ')' for the '(' at column %d, found %s",
                   open->column, quote(&p->token).text);
}

/* Copies a token; NULL with an error if it is too long to be a name. */
static char *copy_token(const parser *p, const sgm__token *token)
{
    if (token->length > SGM__MAX_NAME) {
        fail_at(p, token, SGM_ERROR_FORMAT, "%s is longer than %d characters", quote(token).text,
                SGM__MAX_NAME);
        return NULL;
    }
    return sgm__strndup(token->start, token->length);
}

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

/* --- arguments --- */

typedef struct value {
    sgm__token token;
    bool is_integer, is_number, is_text;
    int64_t integer;
    double number;
    char text[SGM__MAX_NAME + 1];
} value;

static sgm_status parse_value(parser *p, value *v)
{
    *v = (value){.token = p->token};
    if (p->token.kind == SGM__TOKEN_OPEN_STRING)
        return fail_at(p, &p->token, SGM_ERROR_FORMAT, "this text has no closing quote");
    bool text = p->token.kind == SGM__TOKEN_WORD || p->token.kind == SGM__TOKEN_STRING;
    if (!text && p->token.kind != SGM__TOKEN_NUMBER)
        return fail_at(p, &p->token, SGM_ERROR_FORMAT, "expected an argument, found %s",
                       quote(&p->token).text);
    if (p->token.length > SGM__MAX_NAME)
        return fail_at(p, &p->token, SGM_ERROR_FORMAT, "%s is longer than %d characters",
                       quote(&p->token).text, SGM__MAX_NAME);
    memcpy(v->text, p->token.start, p->token.length);
    v->is_text = text;
    if (!text) {
        v->is_integer = sgm__parse_int64(v->text, &v->integer);
        v->is_number = sgm__parse_double(v->text, &v->number);
        if (!v->is_integer && !v->is_number)
            return fail_at(p, &p->token, SGM_ERROR_FORMAT, "%s is not a number", quote(&p->token).text);
    }
    next(p);
    return SGM_OK;
}

static bool is_boolean(const value *v)
{
    return v->token.kind == SGM__TOKEN_WORD &&
           (strcmp(v->text, "true") == 0 || strcmp(v->text, "false") == 0);
}

static bool fits(sgm_argument_kind kind, const value *v)
{
    switch (kind) {
    case SGM_ARGUMENT_INTEGER:
    case SGM_ARGUMENT_SHAPE:
        return v->is_integer;
    case SGM_ARGUMENT_NUMBER:
        return v->is_number;
    case SGM_ARGUMENT_TEXT:
        return v->is_text;
    case SGM_ARGUMENT_FLAG:
        return is_boolean(v);
    }
    return false;
}

static const char *kind_text(sgm_argument_kind kind)
{
    static const char *const texts[] = {"a whole number", "a number", "a name", "true or false",
                                        "whole numbers"};
    return texts[kind];
}

static sgm_status set_argument(parser *p, sgm_layer *layer, int32_t index, const value *v)
{
    const sgm_argument *argument = &layer->type->arguments[index];
    if (!fits(argument->kind, v))
        return fail_at(p, &v->token, SGM_ERROR_FORMAT, "argument '%s' of %s takes %s, found %s",
                       argument->name, layer->type->name, kind_text(argument->kind), quote(&v->token).text);
    sgm_status status = SGM_OK;
    switch (argument->kind) {
    case SGM_ARGUMENT_INTEGER:
        status = sgm__argument_set_integer(layer, index, v->integer);
        break;
    case SGM_ARGUMENT_NUMBER:
        status = sgm__argument_set_number(layer, index, v->number);
        break;
    case SGM_ARGUMENT_TEXT:
        status = sgm__argument_set_text(layer, index, v->text);
        break;
    case SGM_ARGUMENT_FLAG:
        status = sgm__argument_set_flag(layer, index, v->text[0] == 't');
        break;
    case SGM_ARGUMENT_SHAPE:
        status = sgm__argument_append_dimension(layer, index, v->integer);
        break;
    }
    return status == SGM_OK ? SGM_OK : place(p, &v->token);
}

/* The next argument in the table that takes such a value; `position` moves past it. */
static sgm_status positional(parser *p, sgm_layer *layer, int32_t *position, const value *v)
{
    const sgm_layer_type *type = layer->type;
    int32_t flag = v->token.kind == SGM__TOKEN_WORD ? sgm__argument_find(type, v->text) : -1;
    if (flag >= 0 && type->arguments[flag].kind == SGM_ARGUMENT_FLAG)
        return sgm__argument_set_flag(layer, flag, true) == SGM_OK ? SGM_OK : place(p, &v->token);
    for (int32_t i = *position; i < (int32_t)type->argument_count; i++)
        if (fits(type->arguments[i].kind, v)) {
            /* a shape takes all the numbers that follow */
            *position = type->arguments[i].kind == SGM_ARGUMENT_SHAPE ? i : i + 1;
            return set_argument(p, layer, i, v);
        }
    if (*position < (int32_t)type->argument_count && !(v->is_text && v->token.kind == SGM__TOKEN_WORD))
        return set_argument(p, layer, *position, v);
    char known[300];
    return fail_at(p, &v->token, SGM_ERROR_FORMAT, "%s has no use for %s here; its arguments are %s",
                   type->name, quote(&v->token).text, sgm__arguments_list(type, known, sizeof known));
}

static sgm_status unknown_argument(const parser *p, const sgm_layer_type *type, const sgm__token *token)
{
    char known[300];
    return fail_at(p, token, SGM_ERROR_NOT_FOUND, "%s has no argument %s; it has %s", type->name,
                   quote(token).text, sgm__arguments_list(type, known, sizeof known));
}

static sgm_status parse_shape(parser *p, sgm_layer *layer, int32_t index)
{
    sgm__token open = p->token;
    next(p);
    do {
        value v;
        SGM_TRY(parse_value(p, &v));
        SGM_TRY(set_argument(p, layer, index, &v));
    } while (accept(p, ','));
    return close_bracket(p, &open);
}

/* name=value, from the name on. */
static sgm_status parse_named(parser *p, sgm_layer *layer)
{
    sgm__token key = p->token;
    char *name = copy_token(p, &key);
    if (name == NULL)
        return sgm_last_status();
    bool is_name = strcmp(name, "name") == 0;
    int32_t index = sgm__argument_find(layer->type, name);
    sgm__free(name);
    if (!is_name && index < 0)
        return unknown_argument(p, layer->type, &key);
    next(p);
    next(p);
    if (!is_name && layer->arguments[index].given)
        return fail_at(p, &key, SGM_ERROR_FORMAT, "argument %s is given twice", quote(&key).text);
    if (!is_name && layer->type->arguments[index].kind == SGM_ARGUMENT_SHAPE && is_sign(&p->token, '('))
        return parse_shape(p, layer, index);
    value v;
    SGM_TRY(parse_value(p, &v));
    if (!is_name)
        return set_argument(p, layer, index, &v);
    if (!v.is_text)
        return fail_at(p, &v.token, SGM_ERROR_FORMAT, "a layer's name must be text, found %s",
                       quote(&v.token).text);
    return sgm__layer_set_name(layer, v.text) == SGM_OK ? SGM_OK : place(p, &v.token);
}

static bool is_named_argument(const parser *p)
{
    return p->token.kind == SGM__TOKEN_WORD && sign_follows(p, '=');
}

static sgm_status parse_arguments(parser *p, sgm_layer *layer)
{
    sgm__token open = p->token;
    next(p);
    if (accept(p, ')'))
        return SGM_OK;
    int32_t position = 0;
    do {
        if (is_named_argument(p)) {
            SGM_TRY(parse_named(p, layer));
            continue;
        }
        value v;
        SGM_TRY(parse_value(p, &v));
        SGM_TRY(positional(p, layer, &position, &v));
    } while (accept(p, ','));
    return close_bracket(p, &open);
}

/* --- layers --- */

static sgm_layer *parse_chain(parser *p);

static sgm_layer *place_node(sgm_layer *node, const sgm__token *token)
{
    node->line = token->line;
    node->column = token->column;
    return node;
}

/* The arguments of a join: branches, then its own by name. */
static sgm_status parse_branches(parser *p, sgm_layer *node, list *branches)
{
    sgm__token open = p->token;
    next(p);
    do {
        if (is_named_argument(p)) {
            SGM_TRY(parse_named(p, node));
            continue;
        }
        sgm_layer *branch = parse_chain(p);
        if (branch == NULL)
            return sgm_last_status();
        SGM_TRY(add_to_list(branches, branch));
    } while (accept(p, ','));
    return close_bracket(p, &open);
}

static sgm_status check_branch_count(const parser *p, const sgm__token *word, const sgm_layer_type *type,
                                     size_t count)
{
    if (count >= (size_t)type->min_inputs && count <= (size_t)type->max_inputs)
        return SGM_OK;
    return fail_at(p, word, SGM_ERROR_FORMAT, "%s joins %d to %d branches, %zu are given", type->name,
                   type->min_inputs, type->max_inputs, count);
}

static sgm_layer *parse_join(parser *p, const sgm_layer_type *type)
{
    sgm__token word = p->token;
    next(p);
    if (!is_sign(&p->token, '(')) {
        fail_at(p, &p->token, SGM_ERROR_FORMAT, "expected '(' and the branches of %s, found %s", type->name,
                quote(&p->token).text);
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
        place(p, &word);
    if (status == SGM_OK) {
        size_t count = branches.count;
        branches.count = 0;
        if ((status = sgm__layer_adopt(node, branches.items, count)) != SGM_OK)
            place(p, &word);
    }
    free_list(&branches);
    if (status == SGM_OK)
        return place_node(node, &word);
    sgm_layer_free(node);
    return NULL;
}

static sgm_layer *parse_layer(parser *p, const sgm_layer_type *type)
{
    sgm__token word = p->token;
    if ((type->flags & SGM_LAYER_JOIN) != 0)
        return parse_join(p, type);
    sgm_layer *node = sgm__layer_new(SGM__NODE_LAYER, type);
    if (node == NULL)
        return NULL;
    place_node(node, &word);
    next(p);
    sgm_status status = is_sign(&p->token, '(') ? parse_arguments(p, node) : SGM_OK;
    if (status == SGM_OK && (status = sgm__arguments_finish(node)) != SGM_OK)
        place(p, &word);
    if (status == SGM_OK)
        return node;
    sgm_layer_free(node);
    return NULL;
}

static sgm_layer *unknown_layer(const parser *p, const char *name)
{
    const sgm__token *word = &p->token;
    const sgm_op *op;
    for (size_t i = 0; (op = sgm_op_at(i)) != NULL; i++)
        if ((op->flags & SGM_OP_ACTIVATION) != 0 && strcmp(op->name, name) == 0) {
            fail_at(p, word, SGM_ERROR_NOT_FOUND, "'%s' is an activation; as a layer it is activation(%s)",
                    name, name);
            return NULL;
        }
    const char *nearest = sgm__layer_type_nearest(name, p->names, p->name_count);
    if (nearest != NULL)
        fail_at(p, word, SGM_ERROR_NOT_FOUND, "unknown layer '%s' (did you mean '%s'?)", name, nearest);
    else
        fail_at(p, word, SGM_ERROR_NOT_FOUND, "unknown layer '%s'; a name must be defined before it is used",
                name);
    return NULL;
}

static bool is_defined(const parser *p, const char *name)
{
    for (size_t i = 0; i < p->name_count; i++)
        if (strcmp(p->names[i], name) == 0)
            return true;
    return false;
}

static sgm_layer *parse_word(parser *p)
{
    if (++p->layers > SGM__MAX_LAYERS) {
        fail_at(p, &p->token, SGM_ERROR_ARGUMENT, "the network has more than %d layers", SGM__MAX_LAYERS);
        return NULL;
    }
    char *name = copy_token(p, &p->token);
    if (name == NULL)
        return NULL;
    const sgm_layer_type *type = sgm__layer_type_find(name);
    sgm_layer *node = NULL;
    if (type != NULL) {
        node = parse_layer(p, type);
    } else if (!is_defined(p, name)) {
        node = unknown_layer(p, name);
    } else if (sign_follows(p, '(')) {
        fail_at(p, &p->token, SGM_ERROR_FORMAT, "'%s' is the name of a value, not a layer with arguments",
                name);
    } else if ((node = sgm_reference(name)) != NULL) {
        place_node(node, &p->token);
        next(p);
    }
    sgm__free(name);
    return node;
}

static sgm_layer *parse_item(parser *p);

static sgm_layer *parse_group(parser *p)
{
    sgm__token open = p->token;
    next(p);
    sgm_layer *chain = parse_chain(p);
    if (chain == NULL || close_bracket(p, &open) == SGM_OK)
        return chain;
    sgm_layer_free(chain);
    return NULL;
}

static sgm_layer *parse_repeat(parser *p)
{
    sgm__token number = p->token;
    value v;
    if (parse_value(p, &v) != SGM_OK)
        return NULL;
    if (!accept(p, '*')) {
        fail_at(p, &number, SGM_ERROR_FORMAT, "expected a layer, found %s; n copies are written n * (...)",
                quote(&number).text);
        return NULL;
    }
    if (!v.is_integer || v.integer < 1 || v.integer > SGM__MAX_LAYERS) {
        fail_at(p, &number, SGM_ERROR_ARGUMENT,
                "the number of copies must be a whole number from 1 to %d, found %s", SGM__MAX_LAYERS,
                quote(&number).text);
        return NULL;
    }
    /* brackets are part of the repeat, not one more level */
    sgm_layer *body = is_sign(&p->token, '(') ? parse_group(p) : parse_item(p);
    if (body == NULL)
        return NULL;
    sgm_layer *node = sgm_repeat((int32_t)v.integer, body);
    if (node == NULL) {
        place(p, &number);
        return NULL;
    }
    return place_node(node, &number);
}

static sgm_layer *parse_item(parser *p)
{
    if (p->depth >= SGM__MAX_DEPTH) {
        fail_at(p, &p->token, SGM_ERROR_ARGUMENT, "layers are nested deeper than %d", SGM__MAX_DEPTH);
        return NULL;
    }
    p->depth++;
    sgm_layer *node = NULL;
    if (p->token.kind == SGM__TOKEN_WORD)
        node = parse_word(p);
    else if (p->token.kind == SGM__TOKEN_NUMBER)
        node = parse_repeat(p);
    else if (is_sign(&p->token, '('))
        node = parse_group(p);
    else
        fail_at(p, &p->token, SGM_ERROR_FORMAT, "expected a layer, found %s", quote(&p->token).text);
    p->depth--;
    return node;
}

static sgm_status parse_items(parser *p, list *items)
{
    do {
        sgm__token token = p->token;
        sgm_layer *item = parse_item(p);
        if (item == NULL)
            return sgm_last_status();
        bool late = items->count > 0 && item->kind == SGM__NODE_REFERENCE;
        SGM_TRY(add_to_list(items, item));
        if (late)
            return fail_at(p, &token, SGM_ERROR_FORMAT,
                           "%s names a value, which can only start a chain or be a branch",
                           quote(&token).text);
    } while (accept(p, '+'));
    return SGM_OK;
}

/* Puts a list together with `make`, which owns the layers from then on. */
static sgm_layer *gather(const parser *p, const sgm__token *token, list *items, sgm_status status,
                         sgm_layer *(*make)(sgm_layer *const *, size_t))
{
    sgm_layer *node = NULL;
    if (status == SGM_OK) {
        node = make(items->items, items->count);
        if (node == NULL)
            place(p, token);
        else if (node->column == 0)
            place_node(node, token);
        items->count = 0;
    }
    free_list(items);
    return node;
}

static sgm_layer *parse_chain(parser *p)
{
    sgm__token first = p->token;
    list items = {0};
    sgm_status status = parse_items(p, &items);
    return gather(p, &first, &items, status, sgm_chain_of);
}

/* --- statements --- */

static sgm_layer *define(parser *p, const sgm__token *word, char *name)
{
    if (is_defined(p, name)) {
        fail_at(p, word, SGM_ERROR_FORMAT, "'%s' is defined twice", name);
        return NULL;
    }
    if (sgm__layer_type_find(name) != NULL) {
        fail_at(p, word, SGM_ERROR_FORMAT, "'%s' is a layer; choose another name for the value", name);
        return NULL;
    }
    sgm_layer *chain = parse_chain(p);
    if (chain == NULL)
        return NULL;
    sgm_layer *node = sgm_define(name, chain);
    if (node == NULL) {
        place(p, word);
        return NULL;
    }
    if (sgm__reserve(&p->names, &p->name_capacity, p->name_count + 1, sizeof(const char *)) != SGM_OK) {
        sgm_layer_free(node);
        return NULL;
    }
    p->names[p->name_count++] = node->name;
    return place_node(node, word);
}

static sgm_layer *parse_statement(parser *p)
{
    if (!is_named_argument(p))
        return parse_chain(p);
    sgm__token word = p->token;
    char *name = copy_token(p, &word);
    if (name == NULL)
        return NULL;
    next(p);
    next(p);
    sgm_layer *node = define(p, &word, name);
    sgm__free(name);
    return node;
}

static sgm_status parse_statements(parser *p, list *statements)
{
    do {
        sgm_layer *statement = parse_statement(p);
        if (statement == NULL)
            return sgm_last_status();
        SGM_TRY(add_to_list(statements, statement));
    } while (accept(p, ';') && p->token.kind != SGM__TOKEN_END);
    if (p->token.kind != SGM__TOKEN_END)
        return fail_at(p, &p->token, SGM_ERROR_FORMAT, "expected '+', ';' or the end of the text, found %s",
                       quote(&p->token).text);
    return SGM_OK;
}

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
    parser p = {.lexer = {text, 1, 1}, .lines = strchr(text, '\n') != NULL};
    next(&p);
    sgm__token first = p.token;
    list statements = {0};
    sgm_status status = parse_statements(&p, &statements);
    sgm__free(p.names);
    bool single = statements.count == 1 && statements.items[0]->kind != SGM__NODE_DEFINITION;
    return gather(&p, &first, &statements, status, single ? sgm_chain_of : sgm_statements_of);
}
