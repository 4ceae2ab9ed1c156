#include "base/allocator.h"
#include "test.h"

#include "registry/registry_test.h"

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct rule {
    const char *identifier, *expected;
} rule;

static const rule rules[] = {
    /* one part for each level */
    {"mnist.cost", "mnist.cost"},
    {"mnist", "mnist"},
    {"cost", ""},
    {"mnist.optimiser.learning_rate.more", ""},
    {"mnist.cost.more", ""},
    /* a star anywhere in a part, and only there */
    {"*.cost", "mnist.cost iris.cost"},
    {"m*t.cost", "mnist.cost"},
    {"*is*.cost", "mnist.cost iris.cost"},
    {"*", "mnist iris"},
    {"*.*.learning_rate", "mnist.optimiser.learning_rate iris.optimiser.learning_rate"},
    {"mnist.optimiser.*", "mnist.optimiser.learning_rate mnist.optimiser.name"},
    {"*.learning_rate", ""},
    {"mnist.layers.*-d*.u*s",
     "mnist.layers.1-dense.units mnist.layers.2-dense.units mnist.layers.3-dropout.units"},
    /* tags: all of them, of registries only */
    {"mnist.layers.*<dense>.units", "mnist.layers.1-dense.units mnist.layers.2-dense.units"},
    {"mnist.layers.*<dense,big>.units", "mnist.layers.1-dense.units"},
    {"mnist.layers.*<big,dense>.units", "mnist.layers.1-dense.units"},
    {"mnist.layers.*<dense,dropout>.units", ""},
    {"mnist.layers.2*<dense>.units", "mnist.layers.2-dense.units"},
    {"mnist.layers.*out<dense>.units", ""},
    {"*<trainer>.cost", "mnist.cost iris.cost"},
    {"<trainer>.cost", "mnist.cost iris.cost"},
    {"*<trainer>.*<optimiser>.learning_rate", "mnist.optimiser.learning_rate"},
    {"mnist.*<optimiser>", "mnist.cost mnist.optimiser"},
    {"mnist.optimiser.*<nothing>", "mnist.optimiser.learning_rate mnist.optimiser.name"},
    /* spaces around parts and tags */
    {" mnist . optimiser . name ", "mnist.optimiser.name"},
    {"mnist.layers. *< dense , big > .units", "mnist.layers.1-dense.units"},
    /* what cannot be meant */
    {"", "error: expected an identifier, got nothing"},
    {"mnist..cost", "error: identifier 'mnist..cost': part 2 is empty; '*' stands for any name"},
    {".cost", "error: identifier '.cost': part 1 is empty; '*' stands for any name"},
    {"*<trainer.cost", "error: identifier '*<trainer.cost': tags of part 1 are not between '<' and '>'"},
    {"*>trainer<", "error: identifier '*>trainer<': tags of part 1 are not between '<' and '>'"},
    {"*<a>b", "error: identifier '*<a>b': expected '.' or the end after '>' of part 1"},
    {"mnist<trainer>",
     "error: identifier 'mnist<trainer>': tags need a '*' before them, as in 'mnist*<...>'"},
    {"*<>", "error: identifier '*<>': expected a tag, got nothing"},
    {"*<a,,b>", "error: identifier '*<a,,b>': expected a tag, got nothing"},
    {"*<a*>", "error: identifier '*<a*>': tag 'a*', column 2: expected letters, digits, '_' and '-' only"},
};

TEST(every_rule_of_identifiers)
{
    sgm_registry *root = make_tree();
    for (size_t i = 0; i < ARRAY_COUNT(rules); i++)
        CHECK_STR(resolve(root, rules[i].identifier), rules[i].expected);
    CHECK_ERROR(sgm_registry_resolve(root, NULL, &(sgm_matches){0}), "expected an identifier, got NULL");
    CHECK_ERROR(sgm_registry_resolve(NULL, "*", &(sgm_matches){0}), "expected a registry, got NULL");
    sgm_registry_free(root);
}

TEST(matches_come_with_their_contents)
{
    sgm_registry *root = make_tree();
    sgm_matches matches;
    CHECK_OK(sgm_registry_resolve(root, "mnist.optimiser.*", &matches));
    CHECK_INT(matches.count, 2);
    CHECK_NEAR(matches.items[0].content.as.number, 0.01, 0);
    CHECK_STR(matches.items[1].content.as.text, "adam");
    sgm_matches_free(&matches);
    CHECK_OK(sgm_registry_resolve(root, "mnist", &matches));
    CHECK_INT(matches.items[0].content.kind, SGM_KIND_REGISTRY);
    CHECK_INT(sgm_registry_count(matches.items[0].content.as.registry), 3);
    sgm_matches_free(&matches);
    CHECK_INT(matches.count, 0);
    sgm_registry_free(root);
}

TEST(resolving_one_suggests_what_is_near)
{
    sgm_registry *root = make_tree();
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(root, "*.cost", &content));
    CHECK_NEAR(content.as.number, 0.5, 0);
    CHECK_ERROR(sgm_registry_resolve_one(root, "mnist.optimizer.learning_rate", &content),
                "nothing matches 'mnist.optimizer.learning_rate'; did you mean "
                "'mnist.optimiser.learning_rate'?");
    CHECK_ERROR(sgm_registry_resolve_one(root, "*.optimiser.learningrate", &content),
                "did you mean 'mnist.optimiser.learning_rate'?");
    CHECK_ERROR(sgm_registry_resolve_one(root, "mnits", &content), "did you mean 'mnist'?");
    CHECK_ERROR(sgm_registry_resolve_one(root, "mnist.learning_rate", &content),
                "nothing matches 'mnist.learning_rate'; did you mean 'mnist.optimiser.learning_rate'?");
    CHECK_ERROR(sgm_registry_resolve_one(root, "mnist.2-dense.units", &content),
                "did you mean 'mnist.layers.2-dense.units'?");
    CHECK_ERROR(sgm_registry_resolve_one(root, "2-dense.units", &content),
                "did you mean 'mnist.layers.2-dense.units'?");
    CHECK_ERROR(sgm_registry_resolve_one(root, "something-else", &content),
                "nothing matches 'something-else'");
    CHECK(strstr(sgm_last_error(), "did you mean") == NULL);
    CHECK_INT(content.kind, SGM_KIND_NOTHING);
    sgm_registry_free(root);
}

/* Where the identifier leads furthest, and among those the registry with the most entries, the first of
 * equals; in whatever order they come. */
TEST(the_suggestion_is_of_where_the_identifier_leads_furthest)
{
    static const char *const orders[][2] = {{"near", "far"}, {"far", "near"}};
    sgm_content content;
    for (size_t i = 0; i < 2; i++) {
        sgm_registry *root = sgm_registry_create();
        for (size_t k = 0; k < 2; k++) {
            sgm_registry *child = grow(root, orders[i][k], NULL, NULL);
            if (strcmp(orders[i][k], "near") == 0) {
                CHECK_OK(sgm_registry_set(child, "inmer", sgm_number_content(1))); /* no registry */
                continue;
            }
            sgm_registry *inner = grow(child, "inner", NULL, NULL);
            CHECK_OK(sgm_registry_set(inner, "rate", sgm_number_content(1)));
        }
        CHECK_ERROR(sgm_registry_resolve_one(root, "*.inner.rat", &content),
                    "nothing matches '*.inner.rat'; did you mean 'far.inner.rate'?");
        sgm_registry_free(root);
    }
    sgm_registry *root = sgm_registry_create();
    sgm_registry *few = grow(root, "few", NULL, NULL), *many = grow(root, "many", NULL, NULL),
                 *same = grow(root, "same", NULL, NULL);
    CHECK_OK(sgm_registry_set(few, "rata", sgm_number_content(1)));
    CHECK_OK(sgm_registry_set(many, "rate", sgm_number_content(1)));
    CHECK_OK(sgm_registry_set(many, "momentum", sgm_number_content(1)));
    CHECK_OK(sgm_registry_set(same, "ratt", sgm_number_content(1)));
    CHECK_OK(sgm_registry_set(same, "momentum", sgm_number_content(1)));
    CHECK_ERROR(sgm_registry_resolve_one(root, "*.rat", &content), "did you mean 'many.rate'?");
    sgm_registry_free(root);
}

/* What has the name, but not the tag, is not suggested as if it were another one. */
TEST(the_same_again_is_no_suggestion)
{
    sgm_registry *root = make_tree();
    sgm_content content;
    CHECK_ERROR(sgm_registry_resolve_one(root, "mnist.cost.more", &content),
                "nothing matches 'mnist.cost.more'");
    CHECK(strstr(sgm_last_error(), "did you mean") == NULL);
    sgm_registry_free(root);
}

TEST(a_resolver_is_never_stale)
{
    sgm_registry *root = make_tree();
    sgm_registry *layers = NULL;
    sgm_content content;
    sgm_matches matches;
    CHECK_OK(sgm_registry_resolve_one(root, "mnist.layers", &content));
    layers = content.as.registry;
    sgm_resolver *resolver = sgm_resolver_create(root, "mnist.layers.*<dense>.weights");
    CHECK_OK(resolver);
#define CHECK_RESOLVER(expected)                                                                             \
    do {                                                                                                     \
        CHECK_STR(identifiers_of(sgm_resolver_get(resolver, &matches), &matches), expected);                 \
        sgm_matches_free(&matches);                                                                          \
    } while (0)
    CHECK_RESOLVER("mnist.layers.1-dense.weights mnist.layers.2-dense.weights");
    /* a new value */
    CHECK_OK(
        sgm_registry_resolve_set(root, "mnist.layers.2-dense.weights", sgm_number_content(7), NULL, NULL));
    CHECK_OK(sgm_resolver_get(resolver, &matches));
    CHECK_NEAR(matches.items[1].content.as.number, 7, 0);
    sgm_matches_free(&matches);
    /* a brand-new sibling */
    sgm_registry *fourth = grow(layers, "4-dense", "dense", NULL);
    CHECK_RESOLVER("mnist.layers.1-dense.weights mnist.layers.2-dense.weights");
    CHECK_OK(sgm_registry_set(fourth, "weights", sgm_number_content(4)));
    CHECK_RESOLVER("mnist.layers.1-dense.weights mnist.layers.2-dense.weights mnist.layers.4-dense.weights");
    /* removed, replaced, tagged */
    CHECK_OK(sgm_registry_remove(layers, "1-dense"));
    CHECK_RESOLVER("mnist.layers.2-dense.weights mnist.layers.4-dense.weights");
    grow(layers, "2-dense", "dense", NULL);
    CHECK_RESOLVER("mnist.layers.4-dense.weights");
    CHECK_OK(sgm_registry_resolve_one(root, "mnist.layers.3-dropout", &content));
    CHECK_OK(sgm_registry_add_tag(content.as.registry, "dense"));
    sgm_content_clear(&content);
    CHECK_RESOLVER("mnist.layers.3-dropout.weights mnist.layers.4-dense.weights");
    /* a parent of the whole goes and comes */
    CHECK_OK(sgm_registry_remove(root, "mnist"));
    CHECK_RESOLVER("");
    sgm_registry *mnist = grow(root, "mnist", NULL, NULL);
    CHECK_OK(sgm_registry_put(mnist, "layers", layers));
    CHECK_RESOLVER("mnist.layers.3-dropout.weights mnist.layers.4-dense.weights");
    /* grown in a tree of its own, then put */
    sgm_registry *apart = sgm_registry_create();
    CHECK_OK(sgm_registry_add_tag(apart, "dense"));
    CHECK_OK(sgm_registry_put(layers, "5-dense", apart));
    CHECK_OK(sgm_registry_set(apart, "weights", sgm_number_content(5)));
    CHECK_RESOLVER(
        "mnist.layers.3-dropout.weights mnist.layers.4-dense.weights mnist.layers.5-dense.weights");
    sgm_registry_free(apart);
    sgm_resolver_free(resolver);
    sgm_registry_free(layers);
    sgm_registry_free(root);
}

TEST(a_resolver_below_sees_its_root_move)
{
    sgm_registry *root = sgm_registry_create(), *child = sgm_registry_create();
    sgm_matches matches;
    sgm_resolver *resolver = sgm_resolver_create(child, "*");
    CHECK_RESOLVER("");
    CHECK_OK(sgm_registry_put(root, "child", child));
    CHECK_OK(sgm_registry_set(child, "a", sgm_number_content(1)));
    CHECK_RESOLVER("a");
    CHECK_OK(sgm_registry_remove(root, "child"));
    CHECK_OK(sgm_registry_set(child, "b", sgm_number_content(1)));
    CHECK_RESOLVER("a b");
    sgm_registry_free(child); /* the resolver holds it */
    CHECK_RESOLVER("a b");
    sgm_resolver_free(resolver);
    sgm_registry_free(root);
    /* nothing matches, and where that was is there no more */
    sgm_registry *tree = sgm_registry_create();
    grow(tree, "a", NULL, NULL);
    resolver = sgm_resolver_create(tree, "a.x");
    CHECK_OK(resolver);
    CHECK_RESOLVER("");
    CHECK_OK(sgm_registry_remove(tree, "a"));
    CHECK_OK(sgm_registry_set(grow(tree, "a", NULL, NULL), "y", sgm_number_content(1)));
    CHECK_RESOLVER("");
    sgm_resolver_free(resolver);
    sgm_registry_free(tree);
    CHECK_ERROR(sgm_resolver_create(NULL, "*"), "expected a registry");
    CHECK_ERROR(sgm_resolver_get(NULL, &matches), "expected a resolver");
}

TEST(setting_sets_all_that_match)
{
    sgm_registry *root = make_tree();
    size_t count = 99;
    CHECK_OK(
        sgm_registry_resolve_set(root, "*.optimiser.learning_rate", sgm_number_content(0.5), NULL, &count));
    CHECK_INT(count, 2);
    CHECK_NEAR(number_at(root, "mnist.optimiser.learning_rate"), 0.5, 0);
    CHECK_NEAR(number_at(root, "iris.optimiser.learning_rate"), 0.5, 0);
    /* a star at the end makes no entry of that name */
    CHECK_OK(
        sgm_registry_resolve_set(root, "mnist.layers.*<dense>.w*", sgm_integer_content(3), NULL, &count));
    CHECK_INT(count, 2);
    CHECK_NEAR(number_at(root, "mnist.layers.2-dense.weights"), 3, 0);
    CHECK_STR(resolve(root, "mnist.layers.2-dense.*"),
              "mnist.layers.2-dense.weights mnist.layers.2-dense.units");
    CHECK_ERROR(
        sgm_registry_resolve_set(root, "*.optimizer.learning_rate", sgm_number_content(1), NULL, &count),
        "did you mean 'mnist.optimiser.learning_rate'?");
    CHECK_INT(count, 0);
    CHECK_ERROR(sgm_registry_resolve_set(root, "mnist", sgm_registry_content(root), NULL, NULL),
                "sgm_registry_put");
    sgm_registry_free(root);
}

TEST(setting_is_all_or_nothing)
{
    sgm_registry *root = make_tree();
    /* the third is of another kind: the first two keep what they had */
    CHECK_OK(
        sgm_registry_resolve_set(root, "mnist.layers.3-dropout.units", sgm_integer_content(30), NULL, NULL));
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(root, "mnist.layers.3-dropout", &content));
    CHECK_OK(sgm_registry_remove(content.as.registry, "weights"));
    CHECK_OK(sgm_registry_set(content.as.registry, "weights", sgm_text_content("none")));
    sgm_content_clear(&content);
    CHECK_ERROR(sgm_registry_resolve_set(root, "mnist.layers.*.weights", sgm_number_content(9), NULL, NULL),
                "mnist.layers.3-dropout.weights: expected a text, got number 9");
    CHECK_NEAR(number_at(root, "mnist.layers.1-dense.weights"), 1, 0);
    CHECK_NEAR(number_at(root, "mnist.layers.2-dense.weights"), 2, 0);
    sgm_registry_free(root);
}

TEST(missing_entries_are_added_where_they_are_asked_for)
{
    sgm_registry *root = make_tree();
    sgm_resolve_set_options add = {.struct_size = sizeof add, .add_if_missing = true};
    size_t count;
    CHECK_ERROR(sgm_registry_resolve_set(root, "*.optimiser.momentum", sgm_number_content(0.9), NULL, NULL),
                "nothing matches '*.optimiser.momentum'");
    CHECK_OK(sgm_registry_resolve_set(root, "*.optimiser.momentum", sgm_number_content(0.9), &add, &count));
    CHECK_INT(count, 2);
    CHECK_STR(resolve(root, "*.*.momentum"), "mnist.optimiser.momentum iris.optimiser.momentum");
    /* set where it is, added where it is not */
    CHECK_OK(sgm_registry_resolve_set(root, "*.*.name", sgm_text_content("sgd"), &add, &count));
    CHECK_STR(resolve(root, "*.*.name"), "mnist.optimiser.name mnist.layers.name iris.optimiser.name");
    CHECK_INT(count, 3);
    /* no registries are made on the way */
    CHECK_ERROR(sgm_registry_resolve_set(root, "mnist.data.size", sgm_integer_content(1), &add, NULL),
                "nothing matches 'mnist.data.size'");
    CHECK_ERROR(sgm_registry_resolve_set(root, "mnist.*", sgm_integer_content(1), &add, NULL),
                "an entry to be added needs a name without '*'");
    /* one that refuses: none is added */
    CHECK_ERROR(sgm_registry_resolve_set(root, "mnist.layers.*.units", sgm_text_content("x"), &add, NULL),
                "expected an integer");
    CHECK_ERROR(sgm_registry_resolve_set(root, "*.*.learning_rate", sgm_text_content("x"), &add, NULL),
                "expected a number, got text 'x'");
    CHECK_STR(resolve(root, "mnist.layers.learning_rate"), "");
    sgm_registry_free(root);
}

/* --- bindings in a set of many --- */

typedef struct bound {
    double value;
    bool refuses;
} bound;

static sgm_status bound_get(void *user, sgm_content *content)
{
    *content = sgm_number_content(((bound *)user)->value);
    return SGM_OK;
}

static sgm_status bound_set(void *user, const sgm_content *content)
{
    bound *self = user;
    if (self->refuses)
        return sgm_fail(SGM_ERROR_STATE, "not while it runs");
    self->value = content->as.number;
    return SGM_OK;
}

TEST(a_binding_that_refuses_sets_the_others_back)
{
    static const sgm_option rate = {.name = "rate", .kind = SGM_KIND_NUMBER};
    sgm_registry *root = sgm_registry_create();
    bound bounds[2] = {{1, false}, {2, true}};
    sgm_registry *a = grow(root, "a", NULL, NULL), *b = grow(root, "b", NULL, NULL);
    sgm_registry *c = grow(root, "c", NULL, NULL);
    CHECK_OK(sgm_registry_bind(a, &rate, &(sgm_binding){bound_get, bound_set, NULL, &bounds[0]}));
    CHECK_OK(sgm_registry_set(b, "rate", sgm_number_content(5)));
    CHECK_OK(sgm_registry_bind(c, &rate, &(sgm_binding){bound_get, bound_set, NULL, &bounds[1]}));
    CHECK_ERROR(sgm_registry_resolve_set(root, "*.rate", sgm_number_content(8), NULL, NULL),
                "not while it runs");
    CHECK_NEAR(bounds[0].value, 1, 0);
    CHECK_NEAR(number_at(root, "b.rate"), 5, 0);
    bounds[1].refuses = false;
    CHECK_OK(sgm_registry_resolve_set(root, "*.rate", sgm_integer_content(8), NULL, NULL));
    CHECK_NEAR(number_at(root, "a.rate"), 8, 0);
    CHECK_NEAR(number_at(root, "b.rate"), 8, 0);
    CHECK_NEAR(number_at(root, "c.rate"), 8, 0);
    sgm_registry_free(root);
}

/* --- how much is read --- */

static sgm_status counted_get(void *user, sgm_content *content)
{
    *content = sgm_number_content(++*(int *)user);
    return SGM_OK;
}

static sgm_status missing_get(void *user, sgm_content *content)
{
    (void)content;
    ++*(int *)user;
    return sgm_fail(SGM_ERROR_STATE, "not yet");
}

/* A value may take long to read. */
TEST(of_one_that_is_wanted_no_other_is_read)
{
    static const sgm_option rate = {.name = "rate", .kind = SGM_KIND_NUMBER};
    sgm_registry *root = sgm_registry_create();
    int reads[3] = {0};
    for (int i = 0; i < 3; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        sgm_registry *child = grow(root, name, NULL, NULL);
        CHECK_OK(sgm_registry_bind(child, &rate, &(sgm_binding){counted_get, NULL, NULL, &reads[i]}));
    }
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(root, "*.rate", &content));
    CHECK_NEAR(content.as.number, 1, 0);
    CHECK_INT(reads[0], 1);
    CHECK_INT(reads[1] + reads[2], 0);
    sgm_registry_free(root);
}

/* By a star as by tags alone; one that is asked for by its name says why it has none. */
TEST(values_that_are_missing_are_left_out_of_several)
{
    static const sgm_option rate = {.name = "rate", .kind = SGM_KIND_NUMBER};
    sgm_registry *root = sgm_registry_create();
    sgm_registry *a = grow(root, "a", "layer", NULL), *b = grow(root, "b", "layer", NULL);
    int reads[2] = {0};
    sgm_matches matches;
    CHECK_OK(sgm_registry_bind(a, &rate, &(sgm_binding){missing_get, NULL, NULL, &reads[0]}));
    CHECK_OK(sgm_registry_bind(b, &rate, &(sgm_binding){counted_get, NULL, NULL, &reads[1]}));
    CHECK_STR(resolve(root, "*.rate"), "b.rate");
    CHECK_STR(resolve(root, "<layer>.rate"), "b.rate");
    CHECK_INT(sgm_registry_resolve(root, "a.rate", &matches), SGM_ERROR_STATE);
    CHECK_STR(sgm_last_error(), "a.rate: not yet");
    CHECK_INT(matches.count, 0);
    CHECK_OK(sgm_registry_remove(b, "rate"));
    CHECK_INT(sgm_registry_resolve(root, "*.rate", &matches), SGM_ERROR_STATE);
    sgm_registry_free(root);
}

/* --- options of other versions --- */

TEST(options_of_older_and_newer_callers_are_read_as_far_as_they_go)
{
    struct newer {
        sgm_resolve_set_options known;
        char more[4096];
    } newer;
    sgm_registry *root = make_tree();
    size_t count;
    const sgm_resolve_set_options older = {.struct_size = sizeof older.struct_size, .add_if_missing = true};
    CHECK_ERROR(sgm_registry_resolve_set(root, "mnist.optimiser.second", sgm_number_content(1), &older, NULL),
                "nothing matches 'mnist.optimiser.second'");
    memset(&newer, 0x5a, sizeof newer);
    newer.known = (sgm_resolve_set_options){.struct_size = sizeof newer, .add_if_missing = true};
    CHECK_ERROR(
        sgm_registry_resolve_set(root, "mnist.optimiser.third", sgm_number_content(1), &newer.known, &count),
        "it is older than the headers");
    CHECK_INT(count, 0);
    memset(newer.more, 0, sizeof newer.more); /* it uses none of what is new */
    CHECK_OK(
        sgm_registry_resolve_set(root, "mnist.optimiser.third", sgm_number_content(1), &newer.known, &count));
    CHECK_INT(count, 1);
    sgm_registry_free(root);
}

TEST(what_cannot_be_set_is_named)
{
    sgm_registry *root = make_tree();
    const sgm_resolve_set_options add = {.struct_size = sizeof add, .add_if_missing = true};
    const sgm_content text = {.kind = SGM_KIND_TEXT}, strange = {.kind = (sgm_kind)99};
    char identifier[400] = "mnist.optimiser.";
    CHECK_ERROR(sgm_registry_resolve_set(root, "mnist.optimiser.name", text, NULL, NULL),
                "mnist.optimiser.name: ");
    CHECK_ERROR(sgm_registry_resolve_set(root, "mnist.optimiser.na*", strange, NULL, NULL),
                "mnist.optimiser.na*: ");
    memset(identifier + strlen(identifier), 'x', 300);
    CHECK_ERROR(sgm_registry_resolve_set(root, identifier, sgm_number_content(1), &add, NULL),
                "is longer than");
    CHECK_STR(resolve(root, "mnist.optimiser.*"), "mnist.optimiser.learning_rate mnist.optimiser.name");
    sgm_registry_free(root);
}

TEST(read_only_views_resolve_to_read_only_registries)
{
    sgm_registry *root = make_tree(), *view = sgm_registry_create_read_only(root);
    sgm_content content;
    CHECK_STR(resolve(view, "*.cost"), "mnist.cost iris.cost");
    CHECK_ERROR(sgm_registry_resolve_set(view, "*.cost", sgm_number_content(1), NULL, NULL), "read-only");
    CHECK_OK(sgm_registry_resolve_one(view, "mnist", &content));
    CHECK_ERROR(sgm_registry_set(content.as.registry, "cost", sgm_number_content(1)), "read-only");
    sgm_content_clear(&content);
    sgm_registry_free(view);
    sgm_registry_free(root);
}

TEST(texts_are_filled_in)
{
    static const rule texts[] = {
        {"", ""},
        {"plain", "plain"},
        {"{mnist.optimiser.name}-{*<trainer>.cost}.sgm", "adam-0.5.sgm"},
        {"{{{mnist.layers.2*.units}}}", "{20}"},
        {"{mnist}", "registry of 3"},
        {"a{mnist.cost", "error: 'a{mnist.cost', column 2: '{' without its other brace"},
        {"a}b", "error: 'a}b', column 2: '}' without its other brace"},
        {"{a{b}}", "error: '{a{b}}', column 1: '{' without its other brace"},
        {"{}", "error: expected an identifier, got nothing"},
        {"{mnist.cots}", "error: nothing matches 'mnist.cots'; did you mean 'mnist.cost'?"},
    };
    sgm_registry *root = make_tree();
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        char result[256];
        char *text = sgm_registry_resolve_text(root, texts[i].identifier);
        snprintf(result, sizeof result, "%s%s",
                 text != NULL ? "" : "error: ", text != NULL ? text : sgm_last_error());
        sgm_string_free(text);
        CHECK_STR(result, texts[i].expected);
    }
    CHECK_ERROR(sgm_registry_resolve_text(root, NULL), "got NULL");
    sgm_registry_free(root);
}

/* --- hostile --- */

TEST(random_identifiers_never_crash)
{
    static const char letters[] = "mnistcor.*<>, -1_{}\xff\n";
    uint32_t state = 12345;
    sgm_registry *root = make_tree();
    for (int round = 0; round < 20000; round++) {
        char text[40];
        size_t length = 0;
        do {
            state = state * 1664525u + 1013904223u;
            text[length++] = letters[(state >> 16) % (sizeof letters - 1)];
        } while (length < sizeof text - 1 && (state >> 8) % 24 != 0);
        text[length] = '\0';
        sgm_matches matches;
        if (sgm_registry_resolve(root, text, &matches) != SGM_OK)
            CHECK_INT(matches.count, 0);
        sgm_matches_free(&matches);
        sgm_string_free(sgm_registry_resolve_text(root, text));
        sgm_registry_has(root, text);
        sgm_registry_set(root, text, sgm_integer_content(1));
        sgm_registry_remove(root, text);
        sgm_registry_resolve_set(root, text, sgm_number_content(2), NULL, NULL);
    }
    sgm_registry_free(root);
}

TEST(long_identifiers_are_refused)
{
    sgm_registry *root = sgm_registry_create();
    char text[3000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    CHECK_ERROR(sgm_registry_resolve(root, text, &(sgm_matches){0}), "longer than 1000 bytes");
    CHECK_ERROR(sgm_registry_set(root, text, sgm_number_content(1)), "longer than 200 bytes");
    for (size_t i = 1; i < 200; i += 2)
        text[i] = '.';
    text[199] = '\0';
    CHECK_ERROR(sgm_registry_resolve(root, text, &(sgm_matches){0}), "more than 64 parts");
    sgm_registry_free(root);
}

/* --- memory --- */

static bool use_resolving(void)
{
    sgm_registry *root = make_tree();
    sgm_matches matches = {0};
    sgm_resolve_set_options add = {.struct_size = sizeof add, .add_if_missing = true};
    sgm_content content = {0};
    bool good = root != NULL && sgm_registry_resolve(root, "*<trainer>.*.*", &matches) == SGM_OK &&
                matches.count == 6;
    sgm_matches_free(&matches);
    good = good && sgm_registry_resolve_one(root, "mnist.optimiser.name", &content) == SGM_OK;
    good = good &&
           sgm_registry_resolve_set(root, "*.optimiser.note", sgm_text_content("x"), &add, NULL) == SGM_OK;
    sgm_resolver *resolver = good ? sgm_resolver_create(root, "*.optimiser.*") : NULL;
    good = resolver != NULL && sgm_resolver_get(resolver, &matches) == SGM_OK && matches.count == 5;
    sgm_matches_free(&matches);
    char *text = good ? sgm_registry_resolve_text(root, "{mnist.cost}-{*.*.name}") : NULL;
    good = text != NULL && strcmp(text, "0.5-adam") == 0;
    sgm_string_free(text);
    good = good && sgm_registry_set(root, "new", sgm_text_content("x")) == SGM_OK &&
           sgm_resolver_get(resolver, &matches) == SGM_OK;
    sgm_matches_free(&matches);
    sgm_resolver_free(resolver);
    sgm_content_clear(&content);
    sgm_registry_free(root);
    return good;
}

TEST(every_allocation_may_fail)
{
    CHECK(use_resolving());
    bool good = false;
    for (long n = 1; !good; n++) {
        allocator_start(n);
        good = use_resolving();
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK(n < 5000);
    }
}
