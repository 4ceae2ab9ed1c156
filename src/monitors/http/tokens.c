/* Tokens: who may ask, in which role, and how often.
 *
 * The first is the administrator's, which is in the printed address. Others come as a text, a line each:
 * "ROLE TOKEN", and perhaps a name, which stands for the asker in the journal. Each has a page token of its
 * own, so that a browser has the role of the token that it came with. All tokens are compared with what was
 * sent, each in constant time, so that answers tell nothing of how much of a token is right. */
#include "monitors/http/http_internal.h"

#include <ctype.h>
#include <errno.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <sys/random.h>

#define SHORTEST_TOKEN 16

/* getrandom with flags 0 waits at boot until the system's generator is seeded, so a token is never
 * guessable. */
sgm_status sgm__http_random_token(char *text)
{
    unsigned char bytes[SGM__HTTP_TOKEN_BYTES];
    for (size_t have = 0; have < sizeof bytes;) {
        ssize_t count = getrandom(bytes + have, sizeof bytes - have, 0);
        if (count < 0 && errno != EINTR)
            return sgm_fail(SGM_ERROR_STATE, "the system gives no random numbers for a token: %s",
                            sgm__errno_text(errno));
        have += count > 0 ? (size_t)count : 0;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)bytes[i]);
    return SGM_OK;
}

sgm_status sgm__http_check_token(const char *token)
{
    size_t length = strlen(token);
    bool good = length >= SHORTEST_TOKEN && length <= SGM__HTTP_LONGEST_TOKEN &&
                strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == length;
    return good
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "a token has %d to %d of the characters A-Z a-z 0-9 - _, as 'openssl rand -hex 16' "
                          "prints one",
                          SHORTEST_TOKEN, SGM__HTTP_LONGEST_TOKEN);
}

/* --- the text --- */

/* The next word of a line; false: there is none. */
static bool next_word(const char **at, const char *end, char *word, size_t room)
{
    while (*at < end && isspace((unsigned char)**at))
        ++*at;
    const char *start = *at;
    while (*at < end && !isspace((unsigned char)**at))
        ++*at;
    size_t length = (size_t)(*at - start);
    snprintf(word, room, "%.*s", (int)(length < room ? length : room), start);
    return length > 0;
}

static bool is_name(const char *name)
{
    for (const char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("-_.@", *c) == NULL)
            return false;
    return strlen(name) < SGM__HTTP_NAME_SIZE;
}

/* Reads a line that is not empty. Messages must not have the token. */
static sgm_status read_line(const char *at, const char *end, sgm__http_token *token)
{
    char role[16], text[SGM__HTTP_LONGEST_TOKEN + 2], name[SGM__HTTP_NAME_SIZE + 1], more[2];
    next_word(&at, end, role, sizeof role);
    SGM_TRY(sgm__role_parse(role, &token->role));
    if (!next_word(&at, end, text, sizeof text))
        return sgm_fail(SGM_ERROR_FORMAT, "there is no token behind the role '%s'", role);
    SGM_TRY(sgm__http_check_token(text));
    snprintf(token->text, sizeof token->text, "%.*s", SGM__HTTP_LONGEST_TOKEN, text);
    if (next_word(&at, end, name, sizeof name)) {
        if (!is_name(name) || next_word(&at, end, more, sizeof more))
            return sgm_fail(SGM_ERROR_FORMAT, "a name is one word of at most %d of A-Z a-z 0-9 - _ . @",
                            SGM__HTTP_NAME_SIZE - 1);
        snprintf(token->name, sizeof token->name, "%.*s", SGM__HTTP_NAME_SIZE - 1, name);
    }
    return SGM_OK;
}

sgm_status sgm__http_tokens_read(const char *text, sgm__http_token *tokens, size_t *count)
{
    int number = 1;
    for (const char *at = text; at != NULL && *at != '\0'; number++) {
        const char *end = at + strcspn(at, "\n"), *first = at;
        while (first < end && isspace((unsigned char)*first))
            first++;
        if (first < end && *first != '#') {
            sgm__http_token token = {0};
            if (*count == SGM__HTTP_TOKENS)
                return sgm_fail(SGM_ERROR_ARGUMENT, "there are at most %d tokens", SGM__HTTP_TOKENS);
            if (read_line(first, end, &token) != SGM_OK)
                return sgm__fail_within("line %d of the tokens", number);
            for (size_t i = 0; i < *count; i++)
                if (strcmp(tokens[i].text, token.text) == 0)
                    return sgm_fail(SGM_ERROR_ARGUMENT, "line %d of the tokens: the token is there already",
                                    number);
            tokens[(*count)++] = token;
        }
        at = *end != '\0' ? end + 1 : end;
    }
    return SGM_OK;
}

sgm_status sgm__http_tokens_check(const char *text)
{
    sgm__http_token tokens[SGM__HTTP_TOKENS];
    size_t count = 1; /* the server's own */
    return sgm__http_tokens_read(text, tokens, &count);
}

sgm_status sgm__http_tokens_make(sgm__http *server)
{
    const sgm__http_options *options = &server->options;
    sgm__http_token *first = &server->tokens[0];
    first->role = SGM__ROLE_ADMIN;
    if (options->token != NULL)
        snprintf(first->text, sizeof first->text, "%s", options->token);
    else
        SGM_TRY(sgm__http_random_token(first->text));
    size_t count = 1;
    SGM_TRY(sgm__http_tokens_read(options->tokens, server->tokens, &count));
    for (; server->token_count < count; server->token_count++) {
        sgm__http_token *token = &server->tokens[server->token_count];
        SGM_TRY(sgm__http_random_token(token->page));
        sgm__rate_begin(&token->changes, options->changes_per_second);
    }
    return SGM_OK;
}

void sgm__http_tokens_free(sgm__http *server)
{
    for (size_t i = 0; i < server->token_count; i++)
        sgm__rate_end(&server->tokens[i].changes);
}

/* --- looking for one --- */

bool sgm__http_is_same(const char *given, const char *right)
{
    size_t length = strlen(right);
    return given != NULL && strlen(given) == length && memeql_sec(given, right, length) != 0;
}

/* No comparison is left out, whichever token is right. */
sgm__http_token *sgm__http_token_find(sgm__http *server, const char *given, bool page)
{
    sgm__http_token *found = NULL;
    for (size_t i = 0; i < server->token_count; i++)
        if (sgm__http_is_same(given, page ? server->tokens[i].page : server->tokens[i].text))
            found = &server->tokens[i];
    return found;
}
