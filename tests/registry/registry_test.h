/* A tree that the tests of the registry share. */
#ifndef SIGMA_REGISTRY_TEST_H
#define SIGMA_REGISTRY_TEST_H

#include <sigma/registry.h>
#include <stdarg.h>

/* Puts a new registry with these tags (NULL: none) under a name; borrowed from its parent. */
__attribute__((unused)) static sgm_registry *grow(sgm_registry *parent, const char *name, const char *tag,
                                                  const char *second_tag)
{
    sgm_registry *child = sgm_registry_create();
    if (child != NULL && ((tag != NULL && sgm_registry_add_tag(child, tag) != SGM_OK) ||
                          (second_tag != NULL && sgm_registry_add_tag(child, second_tag) != SGM_OK) ||
                          sgm_registry_put(parent, name, child) != SGM_OK)) {
        sgm_registry_free(child);
        return NULL;
    }
    sgm_registry_free(child); /* the parent holds it */
    return child;
}

/* mnist (trainer): cost; optimiser (optimiser): learning_rate, name
 *                  layers: 1-dense (dense, big), 2-dense (dense), 3-dropout (dropout): weights, units
 * iris (trainer):  cost; optimiser: learning_rate */
__attribute__((unused)) static sgm_registry *make_tree(void)
{
    static const char *const layers[][3] = {
        {"1-dense", "dense", "big"}, {"2-dense", "dense", NULL}, {"3-dropout", "dropout", NULL}};
    sgm_registry *root = sgm_registry_create();
    sgm_registry *mnist = grow(root, "mnist", "trainer", NULL);
    sgm_registry_set(mnist, "cost", sgm_number_content(0.5));
    sgm_registry *optimiser = grow(mnist, "optimiser", "optimiser", NULL);
    sgm_registry_set(optimiser, "learning_rate", sgm_number_content(0.01));
    sgm_registry_set(optimiser, "name", sgm_text_content("adam"));
    sgm_registry *all = grow(mnist, "layers", NULL, NULL);
    for (int i = 0; i < 3; i++) {
        sgm_registry *layer = grow(all, layers[i][0], layers[i][1], layers[i][2]);
        sgm_registry_set(layer, "weights", sgm_number_content(i + 1));
        sgm_registry_set(layer, "units", sgm_integer_content(10 * (i + 1)));
    }
    sgm_registry *iris = grow(root, "iris", "trainer", NULL);
    sgm_registry_set(iris, "cost", sgm_number_content(0.25));
    optimiser = grow(iris, "optimiser", NULL, NULL);
    sgm_registry_set(optimiser, "learning_rate", sgm_number_content(0.02));
    return root;
}

/* The identifiers of the matches, with spaces between; "error: ..." when it fails. */
__attribute__((unused)) static const char *identifiers_of(sgm_status status, const sgm_matches *matches)
{
    static _Thread_local char text[2048];
    text[0] = '\0';
    if (status != SGM_OK)
        snprintf(text, sizeof text, "error: %s", sgm_last_error());
    for (size_t i = 0; status == SGM_OK && i < matches->count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? " " : "", matches->items[i].identifier);
    }
    return text;
}

__attribute__((unused)) static const char *resolve(sgm_registry *root, const char *identifier)
{
    sgm_matches matches;
    sgm_status status = sgm_registry_resolve(root, identifier, &matches);
    const char *text = identifiers_of(status, &matches);
    sgm_matches_free(&matches);
    return text;
}

/* The text of an entry, or the error. */
__attribute__((unused)) static const char *described(sgm_registry *registry, const char *name)
{
    static char text[256];
    sgm_content content;
    if (sgm_registry_get(registry, name, &content) != SGM_OK)
        return sgm_last_error();
    char *description = sgm_content_describe(&content);
    snprintf(text, sizeof text, "%s", description);
    sgm_string_free(description);
    sgm_content_clear(&content);
    return text;
}

__attribute__((unused)) static double number_at(sgm_registry *root, const char *identifier)
{
    sgm_content content;
    double value = -1e99;
    if (sgm_registry_resolve_one(root, identifier, &content) == SGM_OK && content.kind == SGM_KIND_NUMBER)
        value = content.as.number;
    sgm_content_clear(&content);
    return value;
}

#endif
