/* Arguments that the command adds to the cost of a network, in its text. */
#include "base/characters.h"
#include "config/experiment.h"

static bool is_word(char c)
{
    return sgm__is_alphanumeric(c) || c == '_';
}

/* The next place of a word in a text; NULL: there is none. */
static const char *find_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        if ((at == text || !is_word(at[-1])) && !is_word(at[length]))
            return at;
    return NULL;
}

const char *network_find_cost(const char *network)
{
    const char *found = NULL;
    for (size_t i = 0; sgm_layer_type_at(i) != NULL; i++) {
        const sgm_layer_type *type = sgm_layer_type_at(i);
        const char *at = (type->flags & SGM_LAYER_COST) != 0 ? find_word(network, type->name) : NULL;
        if (at != NULL && (found != NULL || find_word(at + strlen(type->name), type->name) != NULL))
            return NULL;
        found = at != NULL ? at : found;
    }
    return found;
}

char *network_with_argument(const char *network, const char *cost, const char *argument)
{
    sgm__text text = {0};
    const char *behind = cost;
    while (is_word(*behind))
        behind++;
    const char *end = behind;
    int depth = 0;
    if (*behind == '(')
        do {
            depth += (*end == '(') - (*end == ')');
            end++;
        } while (depth > 0 && *end != '\0');
    bool has_arguments = end > behind + 2;
    sgm__text_append_bytes(&text, network, (size_t)(has_arguments ? end - 1 - network : behind - network));
    sgm__text_append(&text, "%s%s)%s", has_arguments ? ", " : "(", argument, end);
    return sgm__text_take(&text);
}
