/* The rules of registries and of resolving, one row each: what is done to the same tree, and what comes of
 * it. */
#include "test.h"

#include "registry/pattern.h"
#include "registry/registry_test.h"

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* "identifier = value" of all that match, with "; " between; "error: ..." when it fails. */
static const char *values_of(sgm_registry *root, const char *identifier)
{
    static char text[1024];
    sgm_matches matches;
    if (sgm_registry_resolve(root, identifier, &matches) != SGM_OK) {
        snprintf(text, sizeof text, "error: %s", sgm_last_error());
        return text;
    }
    text[0] = '\0';
    for (size_t i = 0; i < matches.count; i++) {
        char *value = sgm_content_describe(&matches.items[i].content);
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s = %s", i > 0 ? "; " : "",
                 matches.items[i].identifier, value);
        sgm_string_free(value);
    }
    sgm_matches_free(&matches);
    return text;
}

/* --- getting --- */

typedef struct getting {
    const char *rule, *identifier, *expected; /* an error: its beginning */
} getting;

static const getting gets[] = {
    {"one part for each level", "mnist.optimiser.name", "mnist.optimiser.name = 'adam'"},
    {"from the root, not from anywhere", "optimiser.name", ""},
    {"a part is anchored in front", "nist.cost", ""},
    {"a part is anchored behind", "mnis.cost", ""},
    {"a part is anchored in front of a star", "n*.cost", ""},
    {"a part is anchored behind a star", "*s.cost", "iris.cost = 0.25"},
    {"a star in the middle", "m*t.cost", "mnist.cost = 0.5"},
    {"a star at both ends", "*ri*.cost", "iris.cost = 0.25"},
    {"a star may stand for nothing", "mnist*.cost*", "mnist.cost = 0.5"},
    {"several stars in a part", "m*i*t.cost", "mnist.cost = 0.5"},
    {"a star does not go over a dot", "mnist*name", ""},
    {"a star in each part", "*.*.n*", "mnist.optimiser.name = 'adam'"},
    {"a star alone is any name", "*.cost", "mnist.cost = 0.5; iris.cost = 0.25"},
    {"spaces around a part do not count", "  mnist\t. cost ", "mnist.cost = 0.5"},
    {"spaces in a part are a mistake", "mn ist.cost", "error: identifier 'mn ist.cost'"},
    {"no other character is special", "mni.t.cost", ""},
    {"a regular expression is a mistake", "mn[i]st.cost", "error: identifier 'mn[i]st.cost'"},
    {"a tag", "*<trainer>.cost", "mnist.cost = 0.5; iris.cost = 0.25"},
    {"a tag and part of a name", "i*<trainer>.cost", "iris.cost = 0.25"},
    {"a tag that nothing has", "*<layer>.cost", ""},
    {"all tags are required", "mnist.layers.*<dense,big>.units", "mnist.layers.1-dense.units = 10"},
    {"in any order", "mnist.layers.*<big,dense>.units", "mnist.layers.1-dense.units = 10"},
    {"one of two is not enough", "mnist.layers.*<dropout,big>.units", ""},
    {"spaces around tags do not count", "mnist.layers.*< big , dense >.units",
     "mnist.layers.1-dense.units = 10"},
    {"a part of a tag is no tag", "mnist.layers.*<den>.units", ""},
    {"a tag may stand alone", "<trainer>.cost", "mnist.cost = 0.5; iris.cost = 0.25"},
    {"tags at two levels", "<trainer>.<optimiser>.name", "mnist.optimiser.name = 'adam'"},
    {"tags select registries only: other entries match whatever they say", "iris.*<optimiser>",
     "iris.cost = 0.25"},
    {"and so in the last part", "mnist.optimiser.n*<any>", "mnist.optimiser.name = 'adam'"},
    {"tags need a star before them", "mnist<trainer>.cost",
     "error: identifier 'mnist<trainer>.cost': tags need"},
    {"a missing '>'", "*<trainer.cost", "error: identifier '*<trainer.cost': tags of part 1"},
    {"'>' before '<'", "*>trainer<.cost", "error: identifier '*>trainer<.cost': tags of part 1"},
    {"text after '>' is a mistake", "*<trainer>x.cost", "error: identifier '*<trainer>x.cost': expected '.'"},
    {"no tag between '<' and '>'", "*<>.cost", "error: identifier '*<>.cost': expected a tag"},
    {"an empty identifier", "", "error: expected an identifier, got nothing"},
    {"only spaces", "   ", "error: identifier '   ': part 1 is empty"},
    {"an empty part", "mnist..cost", "error: identifier 'mnist..cost': part 2 is empty"},
    {"a value has nothing below", "mnist.cost.more", ""},
    {"a registry is a match too", "iris", "iris = registry of 2"},
};

TEST(what_an_identifier_finds)
{
    sgm_registry *root = make_tree();
    for (size_t i = 0; i < ARRAY_COUNT(gets); i++) {
        const char *got = values_of(root, gets[i].identifier);
        bool is_error = strncmp(gets[i].expected, "error", 5) == 0;
        if (is_error ? strncmp(got, gets[i].expected, strlen(gets[i].expected)) != 0
                     : strcmp(got, gets[i].expected) != 0)
            printf("rule '%s': %s gives %s\n", gets[i].rule, gets[i].identifier, got);
        if (!is_error)
            CHECK_STR(got, gets[i].expected);
        CHECK(!is_error || strncmp(got, gets[i].expected, strlen(gets[i].expected)) == 0);
    }
    sgm_registry_free(root);
}

TEST(the_first_of_several_is_the_one)
{
    sgm_registry *root = make_tree();
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(root, "*.cost", &content));
    CHECK_NEAR(content.as.number, 0.5, 0);
    CHECK_ERROR(sgm_registry_resolve_one(root, "*.costs", &content), "nothing matches '*.costs'");
    CHECK_INT(sgm_last_status(), SGM_ERROR_NOT_FOUND);
    CHECK_INT(content.kind, SGM_KIND_NOTHING);
    sgm_registry_free(root);
}

/* --- setting --- */

typedef struct setting {
    const char *rule, *identifier;
    sgm_content content;
    bool add;
    const char *error; /* its beginning; NULL: it is set */
    size_t count;
    const char *look, *expected; /* afterwards */
} setting;

TEST(what_a_set_does)
{
    const setting sets[] = {
        {"one", "mnist.cost", sgm_number_content(2), false, NULL, 1, "*.cost",
         "mnist.cost = 2; iris.cost = 0.25"},
        {"all that match", "*.cost", sgm_number_content(2), false, NULL, 2, "*.cost",
         "mnist.cost = 2; iris.cost = 2"},
        {"by tags", "mnist.layers.*<dense>.units", sgm_integer_content(5), false, NULL, 2,
         "mnist.layers.*.units",
         "mnist.layers.1-dense.units = 5; mnist.layers.2-dense.units = 5; mnist.layers.3-dropout.units = 30"},
        {"a star at the end makes no entry of that name", "mnist.optimiser.lear*", sgm_number_content(2),
         false, NULL, 1, "mnist.optimiser.*",
         "mnist.optimiser.learning_rate = 2; mnist.optimiser.name = 'adam'"},
        {"also not where nothing matches", "mnist.optimiser.x*", sgm_number_content(2), false,
         "nothing matches", 0, "mnist.optimiser.*",
         "mnist.optimiser.learning_rate = 0.01; mnist.optimiser.name = 'adam'"},
        {"each entry keeps its own kind, not the first one's", "mnist.layers.2-dense.*",
         sgm_integer_content(7), false, NULL, 2, "mnist.layers.2-dense.*",
         "mnist.layers.2-dense.weights = 7; mnist.layers.2-dense.units = 7"},
        {"one that does not fit: none is set", "mnist.layers.2-dense.*", sgm_number_content(7.5), false,
         "mnist.layers.2-dense.units: expected an integer, got number 7.5", 0, "mnist.layers.2-dense.*",
         "mnist.layers.2-dense.weights = 2; mnist.layers.2-dense.units = 20"},
        {"a text is no number", "*.cost", sgm_text_content("banana"), false,
         "mnist.cost: expected a number, got text 'banana'", 0, "*.cost",
         "mnist.cost = 0.5; iris.cost = 0.25"},
        {"what is not there is an error", "*.costs", sgm_number_content(2), false,
         "nothing matches '*.costs'", 0, "*.c*", "mnist.cost = 0.5; iris.cost = 0.25"},
        {"unless it may be added: in all that were reached", "*.costs", sgm_number_content(2), true, NULL, 2,
         "*.c*", "mnist.cost = 0.5; mnist.costs = 2; iris.cost = 0.25; iris.costs = 2"},
        {"added only where it is missing", "*.optimiser.name", sgm_text_content("new"), true, NULL, 2,
         "*.optimiser.name", "mnist.optimiser.name = 'new'; iris.optimiser.name = 'new'"},
        {"registries on the way are not made", "mnist.data.size", sgm_integer_content(2), true,
         "nothing matches 'mnist.data.size'", 0, "mnist.d*", ""},
        {"nothing is added under a star", "mnist.*", sgm_integer_content(2), true,
         "mnist.*: an entry to be added needs a name without '*'", 0, "mnist.c*", "mnist.cost = 0.5"},
        {"an empty identifier", "", sgm_number_content(2), false, "expected an identifier", 0, "*.cost",
         "mnist.cost = 0.5; iris.cost = 0.25"},
        {"a registry is no value", "mnist", sgm_number_content(2), false,
         "mnist: expected a registry, got number 2", 0, "mnist.cost", "mnist.cost = 0.5"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(sets); i++) {
        const setting *row = &sets[i];
        sgm_registry *root = make_tree();
        sgm_resolve_set_options options = {.struct_size = sizeof options, .add_if_missing = row->add};
        size_t count = 99;
        sgm_status status = sgm_registry_resolve_set(root, row->identifier, row->content, &options, &count);
        if ((status != SGM_OK) != (row->error != NULL))
            printf("rule '%s': %s\n", row->rule, sgm_last_error());
        CHECK_INT(status == SGM_OK, row->error == NULL);
        if (row->error != NULL)
            CHECK_INT(strncmp(sgm_last_error(), row->error, strlen(row->error)), 0);
        CHECK_INT(count, row->count);
        CHECK_STR(values_of(root, row->look), row->expected);
        sgm_registry_free(root);
    }
}

/* --- the cache --- */

typedef struct step {
    const char *rule;
    void (*change)(sgm_registry *layers);
    const char *expected;
} step;

static sgm_registry *layer(sgm_registry *layers, const char *name)
{
    sgm_content content;
    CHECK_OK(sgm_registry_get(layers, name, &content));
    sgm_registry *found = content.as.registry;
    sgm_content_clear(&content);
    return found;
}

static void add_sibling(sgm_registry *layers)
{
    CHECK_OK(sgm_registry_set(grow(layers, "4-dense", "dense", NULL), "weights", sgm_number_content(4)));
}

static void replace_first(sgm_registry *layers)
{
    CHECK_OK(sgm_registry_set(grow(layers, "1-dense", "dense", NULL), "weights", sgm_number_content(11)));
}

static void untagged_sibling(sgm_registry *layers)
{
    CHECK_OK(sgm_registry_set(grow(layers, "5-dense", NULL, NULL), "weights", sgm_number_content(5)));
}

static void tag_it(sgm_registry *layers)
{
    CHECK_OK(sgm_registry_add_tag(layer(layers, "5-dense"), "dense"));
}

static void remove_second(sgm_registry *layers)
{
    CHECK_OK(sgm_registry_remove(layers, "2-dense"));
}

static void remove_entry(sgm_registry *layers)
{
    CHECK_OK(sgm_registry_remove(layer(layers, "4-dense"), "weights"));
}

static void add_entry(sgm_registry *layers)
{
    CHECK_OK(sgm_registry_set(layer(layers, "4-dense"), "weights", sgm_number_content(44)));
}

static void set_value(sgm_registry *layers)
{
    CHECK_OK(sgm_registry_set(layer(layers, "1-dense"), "weights", sgm_number_content(12)));
}

TEST(a_resolver_sees_each_change)
{
    static const step steps[] = {
        {"nothing has changed", NULL, "1 2"},
        {"a new sibling", add_sibling, "1 2 4"},
        {"a registry that is replaced", replace_first, "11 2 4"},
        {"a sibling without the tag", untagged_sibling, "11 2 4"},
        {"a tag that comes later", tag_it, "11 2 4 5"},
        {"a registry that goes", remove_second, "11 4 5"},
        {"an entry that goes", remove_entry, "11 5"},
        {"an entry that comes back", add_entry, "11 44 5"},
        {"a value", set_value, "12 44 5"},
    };
    sgm_registry *root = make_tree(), *layers = layer(layer(root, "mnist"), "layers");
    sgm_resolver *resolver = sgm_resolver_create(root, "mnist.layers.*<dense>.weights");
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        char got[64] = "";
        sgm_matches matches;
        if (steps[i].change != NULL)
            steps[i].change(layers);
        for (int again = 0; again < 2; again++) { /* from the tree, then from what is remembered */
            got[0] = '\0';
            CHECK_OK(sgm_resolver_get(resolver, &matches));
            for (size_t k = 0; k < matches.count; k++)
                snprintf(got + strlen(got), sizeof got - strlen(got), "%s%g", k > 0 ? " " : "",
                         matches.items[k].content.as.number);
            sgm_matches_free(&matches);
            CHECK_STR(got, steps[i].expected);
        }
    }
    sgm_resolver_free(resolver);
    sgm_registry_free(root);
}

/* --- kinds --- */

TEST(an_entry_takes_its_own_kind_and_integers_as_numbers)
{
    float values[] = {1, 2};
    sgm_shape pair = sgm_shape_of(2);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &pair, values);
    const sgm_content contents[] = {sgm_boolean_content(true), sgm_integer_content(3),
                                    sgm_number_content(2.5), sgm_text_content("a"),
                                    sgm_tensor_content(tensor)};
    static const bool fits[5][5] = {/* old kind, new kind */
                                    {true, false, false, false, false},
                                    {false, true, false, false, false},
                                    {false, true, true, false, false},
                                    {false, false, false, true, false},
                                    {false, false, false, false, true}};
    sgm_registry *root = sgm_registry_create();
    for (size_t old = 0; old < 5; old++)
        for (size_t new = 0; new < 5; new ++) {
            CHECK_OK(sgm_registry_set(root, "entry", contents[old]));
            sgm_status status = sgm_registry_set(root, "entry", contents[new]);
            CHECK_INT(status == SGM_OK, fits[old][new]);
            if (status != SGM_OK) {
                CHECK_INT(status, SGM_ERROR_TYPE);
                CHECK(strstr(sgm_last_error(), "entry: expected ") != NULL);
                CHECK(strstr(sgm_last_error(), sgm_kind_name(contents[new].kind)) != NULL);
            }
            CHECK_OK(sgm_registry_remove(root, "entry")); /* the kind goes with the entry */
        }
    sgm_registry_free(root);
    sgm_tensor_free(tensor);
}

typedef struct typed_get {
    const char *name;
    sgm_status number, integer;
} typed_get;

TEST(typed_gets_say_what_is_missing_or_wrong)
{
    static const typed_get gets_of[] = {
        {"number", SGM_OK, SGM_ERROR_TYPE},        {"integer", SGM_OK, SGM_OK},
        {"text", SGM_ERROR_TYPE, SGM_ERROR_TYPE},  {"boolean", SGM_ERROR_TYPE, SGM_ERROR_TYPE},
        {"child", SGM_ERROR_TYPE, SGM_ERROR_TYPE}, {"absent", SGM_ERROR_NOT_FOUND, SGM_ERROR_NOT_FOUND},
    };
    sgm_registry *root = sgm_registry_create();
    CHECK_OK(sgm_registry_set(root, "number", sgm_number_content(2.5)));
    CHECK_OK(sgm_registry_set(root, "integer", sgm_integer_content(3)));
    CHECK_OK(sgm_registry_set(root, "text", sgm_text_content("3")));
    CHECK_OK(sgm_registry_set(root, "boolean", sgm_boolean_content(true)));
    grow(root, "child", NULL, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(gets_of); i++) {
        double number;
        int64_t integer;
        CHECK_INT(sgm_registry_get_number(root, gets_of[i].name, &number), gets_of[i].number);
        CHECK_INT(sgm_registry_get_integer(root, gets_of[i].name, &integer), gets_of[i].integer);
    }
    sgm_registry_free(root);
}

/* --- views and copies --- */

static const sgm_option row = {.name = "row", .kind = SGM_KIND_NUMBER, .maximum = 9, .default_value = 1};

static sgm_status get_nothing(void *user, sgm_content *content)
{
    (void)user;
    *content = sgm_number_content(0);
    return SGM_OK;
}

TEST(nothing_can_be_done_through_a_view)
{
    sgm_registry *root = make_tree(), *view = sgm_registry_create_read_only(root),
                 *child = sgm_registry_create();
    sgm_resolve_set_options add = {.struct_size = sizeof add, .add_if_missing = true};
    const sgm_binding binding = {.get = get_nothing};
    CHECK_ERROR(sgm_registry_set(view, "new", sgm_number_content(1)), "read-only");
    CHECK_ERROR(sgm_registry_set_own(view, "new", sgm_number_content(1)), "read-only");
    CHECK_ERROR(sgm_registry_put(view, "new", child), "read-only");
    CHECK_ERROR(sgm_registry_remove(view, "mnist"), "read-only");
    CHECK_ERROR(sgm_registry_add_tag(view, "new"), "read-only");
    CHECK_ERROR(sgm_registry_define(view, &row), "read-only");
    CHECK_ERROR(sgm_registry_bind(view, &row, &binding), "read-only");
    CHECK_ERROR(sgm_registry_resolve_set(view, "*.cost", sgm_number_content(1), NULL, NULL), "read-only");
    CHECK_ERROR(sgm_registry_resolve_set(view, "*.new", sgm_number_content(1), &add, NULL), "read-only");
    CHECK_STR(values_of(root, "*"), "mnist = registry of 3; iris = registry of 2");
    /* it follows */
    CHECK_OK(sgm_registry_resolve_set(root, "*.new", sgm_number_content(1), &add, NULL));
    CHECK_STR(values_of(view, "*.new"), "mnist.new = 1; iris.new = 1");
    sgm_registry_free(child);
    sgm_registry_free(view);
    sgm_registry_free(root);
}

TEST(a_copy_and_its_original_are_apart)
{
    float values[] = {1, 2};
    sgm_shape pair = sgm_shape_of(2);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &pair, values);
    sgm_registry *root = make_tree(), *mnist = layer(root, "mnist");
    CHECK_OK(sgm_registry_define(mnist, &row));
    CHECK_OK(sgm_registry_set(mnist, "tensor", sgm_tensor_content(tensor)));
    sgm_registry *copy = sgm_registry_copy(root);
    CHECK_OK(copy);
    sgm_tensor_set(tensor, (int64_t[]){0}, 9);
    CHECK_OK(sgm_registry_resolve_set(root, "*.cost", sgm_number_content(9), NULL, NULL));
    CHECK_OK(sgm_registry_resolve_set(root, "mnist.optimiser.name", sgm_text_content("new"), NULL, NULL));
    CHECK_OK(sgm_registry_remove(root, "iris"));
    CHECK_OK(sgm_registry_add_tag(mnist, "late"));
    CHECK_STR(values_of(copy, "*.cost"), "mnist.cost = 0.5; iris.cost = 0.25");
    CHECK_STR(values_of(copy, "*.*.name"), "mnist.optimiser.name = 'adam'");
    CHECK_STR(values_of(copy, "*<late>.cost"), "");
    CHECK_STR(values_of(copy, "*<trainer>.row"), "mnist.row = 1");
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(copy, "mnist.tensor", &content));
    CHECK_NEAR(sgm_tensor_get(content.as.tensor, (int64_t[]){0}), 1, 0);
    sgm_content_clear(&content);
    /* its rows still check */
    CHECK_ERROR(sgm_registry_resolve_set(copy, "mnist.row", sgm_number_content(10), NULL, NULL),
                "mnist.row: expected a number from 0 to 9, got 10");
    CHECK_OK(sgm_registry_resolve_set(copy, "mnist.row", sgm_number_content(3), NULL, NULL));
    CHECK_STR(values_of(root, "mnist.row"), "mnist.row = 1");
    sgm_registry_free(copy);
    sgm_registry_free(root);
    sgm_tensor_free(tensor);
}

/* --- how specific --- */

TEST(more_parts_then_more_characters_are_more_specific)
{
    static const struct {
        const char *rule, *less, *more;
    } orders[] = {
        {"more parts", "a_very_long_name", "*.*"},
        {"more parts, whatever is in them", "weights.of_dense", "*.*.*"},
        {"as many parts: more characters", "*.w*", "*.weights"},
        {"characters of all parts count", "*.weights", "1*.weights"},
        {"stars do not count", "**.w*", "*.we*"},
        {"as many characters: the first part that differs", "a*.bc*", "ab*.c*"},
        {"without a star it is the most specific of its length", "1-dense-with-more*.weights", "1-d.w"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(orders); i++) {
        if (sgm__pattern_compare(orders[i].less, orders[i].more) >= 0)
            printf("rule '%s'\n", orders[i].rule);
        CHECK(sgm__pattern_compare(orders[i].less, orders[i].more) < 0);
        CHECK(sgm__pattern_compare(orders[i].more, orders[i].less) > 0);
        CHECK_INT(sgm__pattern_compare(orders[i].more, orders[i].more), 0);
    }
}
