/* Parses identifiers with wildcards and tags, such as "*<trainer>.optimiser.learning_rate", into parts.
 *
 * Each part becomes a pattern for the name of an entry (pattern.c) and a list of tags that the registry in
 * that entry must have. resolver.c walks a tree with the parts, observe.c compares the way to a changed entry
 * with them. All strings of the result point into one copy of the text, in which dots, commas and brackets
 * have become string ends; a second copy stays whole for messages. */
#include "registry/pattern.h"

#include "registry/registry_internal.h"

#define MAXIMUM_BYTES 1000 /* of an identifier */

/* Cuts off the spaces around the text, in place. */
static char *trim(char *text)
{
    while (sgm__is_space(*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && sgm__is_space(text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

/* Splits a list "a,b" at its commas. The tags of all parts lie in one array; a part knows its range in it. */
static sgm_status parse_tags(sgm__identifier *identifier, sgm__part *part, char *list)
{
    part->first_tag = identifier->tag_count;
    for (char *next = list; next != NULL;) {
        char *tag = next;
        next = strchr(tag, ',');
        if (next != NULL)
            *next++ = '\0';
        tag = trim(tag);
        if (sgm__check_name("tag", tag) != SGM_OK)
            return sgm__fail_within("identifier '%s'", identifier->text);
        SGM_TRY(sgm__reserve((void *)&identifier->tags, &identifier->tag_capacity, identifier->tag_count + 1,
                             sizeof *identifier->tags));
        identifier->tags[identifier->tag_count++] = tag;
        part->tag_count++;
    }
    return SGM_OK;
}

/* Splits "name*<a,b>" into pattern and tags; "<a,b>" alone means any name. Tags need a '*' in the pattern: a
 * name that is known exactly needs no condition. */
static sgm_status split_tags(sgm__identifier *identifier, sgm__part *part, char *text)
{
    char *open = strchr(text, '<'), *close = strchr(text, '>');
    part->pattern = trim(text);
    if (open == NULL && close == NULL)
        return SGM_OK;
    if (open == NULL || close == NULL || close < open)
        return sgm_fail(SGM_ERROR_ARGUMENT, "identifier '%s': tags of part %zu are not between '<' and '>'",
                        identifier->text, identifier->count + 1);
    if (*trim(close + 1) != '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "identifier '%s': expected '.' or the end after '>' of part %zu",
                        identifier->text, identifier->count + 1);
    *open = *close = '\0';
    part->pattern = trim(text);
    if (part->pattern[0] == '\0')
        part->pattern = "*";
    if (strchr(part->pattern, '*') == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "identifier '%s': tags need a '*' before them, as in '%s*<...>'",
                        identifier->text, part->pattern);
    return parse_tags(identifier, part, open + 1);
}

/* The number of parts grows only when one is complete, so messages count from `count` + 1. */
static sgm_status parse_part(sgm__identifier *identifier, char *text)
{
    sgm__part *part = &identifier->parts[identifier->count];
    SGM_TRY(split_tags(identifier, part, text));
    if (part->pattern[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "identifier '%s': part %zu is empty; '*' stands for any name",
                        identifier->text, identifier->count + 1);
    if (sgm__pattern_check(part->pattern) != SGM_OK)
        return sgm__fail_within("identifier '%s'", identifier->text);
    identifier->count++;
    return SGM_OK;
}

/* Cuts the storage at its dots. `end` lets a message repeat the text behind a part that was not found. */
static sgm_status parse(sgm__identifier *identifier)
{
    for (char *next = identifier->storage; next != NULL;) {
        char *part = next;
        next = strchr(part, '.');
        size_t end = next != NULL ? (size_t)(next - identifier->storage) : strlen(identifier->text);
        if (next != NULL)
            *next++ = '\0';
        if (identifier->count == SGM__MAXIMUM_LEVELS)
            return sgm_fail(SGM_ERROR_ARGUMENT, "identifier '%.100s' has more than %d parts",
                            identifier->text, SGM__MAXIMUM_LEVELS);
        identifier->parts[identifier->count].end = end;
        SGM_TRY(parse_part(identifier, part));
    }
    return SGM_OK;
}

/* *identifier belongs to the caller (sgm__identifier_free); NULL on failure. The two copies of the text
 * may be cut and quoted independently. */
sgm_status sgm__identifier_parse(const char *text, sgm__identifier **identifier)
{
    *identifier = NULL;
    if (text == NULL || text[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected an identifier, got %s",
                        text == NULL ? "NULL" : "nothing");
    if (strnlen(text, MAXIMUM_BYTES + 1) > MAXIMUM_BYTES)
        return sgm_fail(SGM_ERROR_ARGUMENT, "identifier '%.20s...' is longer than %d bytes", text,
                        MAXIMUM_BYTES);
    sgm__identifier *made = sgm__calloc(1, sizeof *made);
    if (made == NULL)
        return SGM_ERROR_MEMORY;
    made->text = sgm__strdup(text);
    made->storage = sgm__strdup(text);
    sgm_status status = made->text != NULL && made->storage != NULL ? parse(made) : SGM_ERROR_MEMORY;
    if (status != SGM_OK) {
        sgm__identifier_free(made);
        return status;
    }
    *identifier = made;
    return SGM_OK;
}

void sgm__identifier_free(sgm__identifier *identifier)
{
    if (identifier == NULL)
        return;
    sgm__free(identifier->text);
    sgm__free(identifier->storage);
    sgm__free((void *)identifier->tags);
    sgm__free(identifier);
}

/* Tags restrict registries only: an entry of another kind matches by its name alone. An entry of kind
 * registry that is empty so far has no tags. */
bool sgm__identifier_matches(const sgm__identifier *identifier, size_t level, const char *name,
                             const sgm__core *child, bool is_registry)
{
    const sgm__part *part = &identifier->parts[level];
    if (!sgm__pattern_matches(part->pattern, name))
        return false;
    if (level + 1 < identifier->count && child == NULL)
        return false;
    for (size_t i = 0; i < part->tag_count && is_registry; i++)
        if (child == NULL || !sgm__core_has_tag(child, identifier->tags[part->first_tag + i]))
            return false;
    return true;
}

/* The same name always gives the same part; two different names may give the same one. */
char *sgm__identifier_part(const char *name)
{
    char *part = sgm__strdup(name);
    for (char *c = part; c != NULL && *c != '\0'; c++)
        if (!sgm__is_alphanumeric(*c) && *c != '_' && *c != '-')
            *c = '_';
    return part;
}
