#include "base/allocator.h"
#include "test.h"

#include "registry/registry_test.h"

static const char *const methods[] = {"sgd", "adam", "adagrad", NULL};
static const sgm_option rate = {.name = "learning_rate",
                                .kind = SGM_KIND_NUMBER,
                                .minimum = 0,
                                .maximum = 10,
                                .default_value = 0.01,
                                .live = true,
                                .doc = "size of a step"};
static const sgm_option size_row = {.name = "size",
                                    .kind = SGM_KIND_INTEGER,
                                    .unit = "examples",
                                    .minimum = 1,
                                    .maximum = 1000,
                                    .default_value = 100};
static const sgm_option method = {
    .name = "method", .kind = SGM_KIND_TEXT, .choices = methods, .default_text = "adam"};
static const sgm_option epoch = {.name = "epoch", .kind = SGM_KIND_INTEGER, .read_only = true};
static const sgm_option shuffle = {.name = "shuffle", .kind = SGM_KIND_BOOLEAN, .default_value = 1};
static const sgm_option weights = {.name = "weights", .kind = SGM_KIND_TENSOR};
static const sgm_option child_row = {.name = "child", .kind = SGM_KIND_REGISTRY};

/* --- getting and setting --- */

TEST(entries_get_what_was_set)
{
    sgm_registry *registry = sgm_registry_create();
    sgm_content content;
    char text[] = "first";
    double number;
    int64_t integer;
    CHECK_OK(sgm_registry_set(registry, "name", sgm_text_content(text)));
    text[0] = 'F'; /* it was copied */
    CHECK_STR(described(registry, "name"), "'first'");
    CHECK_OK(sgm_registry_set(registry, "count", sgm_integer_content(7)));
    CHECK_OK(sgm_registry_get_integer(registry, "count", &integer));
    CHECK_OK(sgm_registry_get_number(registry, "count", &number));
    CHECK_INT(integer, 7);
    CHECK_NEAR(number, 7, 0);
    CHECK_ERROR(sgm_registry_get_number(registry, "name", &number),
                "name: expected a number, got text 'first'");
    CHECK_ERROR(sgm_registry_get(registry, "nmae", &content),
                "there is no entry 'nmae'; did you mean 'name'?");
    CHECK_INT(content.kind, SGM_KIND_NOTHING);
    CHECK(sgm_registry_has(registry, "name"));
    CHECK(!sgm_registry_has(registry, "nmae"));
    CHECK_OK(sgm_registry_remove(registry, "name"));
    CHECK(!sgm_registry_has(registry, "name"));
    CHECK_ERROR(sgm_registry_remove(registry, "name"), "there is no entry 'name'");
    /* its kind went with it */
    CHECK_OK(sgm_registry_set(registry, "name", sgm_integer_content(1)));
    sgm_registry_free(registry);
}

TEST(kinds_are_kept)
{
    sgm_registry *root = sgm_registry_create(), *optimiser = grow(root, "optimiser", NULL, NULL);
    CHECK_OK(sgm_registry_set(optimiser, "learning_rate", sgm_number_content(0.1)));
    CHECK_OK(sgm_registry_set(optimiser, "learning_rate", sgm_integer_content(2)));
    CHECK_STR(described(optimiser, "learning_rate"), "2");
    CHECK_ERROR(sgm_registry_set(optimiser, "learning_rate", sgm_text_content("banana")),
                "optimiser.learning_rate: expected a number, got text 'banana'");
    CHECK_INT(sgm_last_status(), SGM_ERROR_TYPE);
    CHECK_ERROR(sgm_registry_set(optimiser, "learning_rate", sgm_boolean_content(true)), "got boolean true");
    CHECK_OK(sgm_registry_set(optimiser, "steps", sgm_integer_content(2)));
    CHECK_ERROR(sgm_registry_set(optimiser, "steps", sgm_number_content(2)),
                "optimiser.steps: expected an integer, got number 2");
    CHECK_ERROR(sgm_registry_set(root, "optimiser", sgm_number_content(2)),
                "optimiser: expected a registry, got number 2");
    CHECK_STR(described(optimiser, "learning_rate"), "2");
    sgm_registry *child = sgm_registry_create();
    CHECK_ERROR(sgm_registry_put(optimiser, "steps", child), "steps: expected an integer, got registry");
    char *path = sgm_registry_path(child); /* it went nowhere */
    CHECK_STR(path, "");
    sgm_string_free(path);
    sgm_registry_free(child);
    sgm_registry_free(root);
}

TEST(wrong_arguments_are_told)
{
    sgm_registry *registry = sgm_registry_create();
    sgm_content content;
    CHECK_ERROR(sgm_registry_set(NULL, "a", sgm_integer_content(1)), "expected a registry, got NULL");
    CHECK_ERROR(sgm_registry_set(registry, NULL, sgm_integer_content(1)), "expected a name, got NULL");
    CHECK_ERROR(sgm_registry_set(registry, "", sgm_integer_content(1)), "expected a name, got nothing");
    CHECK_ERROR(sgm_registry_set(registry, "a.b", sgm_integer_content(1)), "name 'a.b', column 2");
    CHECK_ERROR(sgm_registry_set(registry, "a*", sgm_integer_content(1)), "column 2");
    CHECK_ERROR(sgm_registry_set(registry, "a", sgm_text_content(NULL)), "a: expected a text, got NULL");
    CHECK_ERROR(sgm_registry_set(registry, "a", sgm_tensor_content(NULL)), "a: expected a tensor, got NULL");
    CHECK_ERROR(sgm_registry_set(registry, "a", (sgm_content){0}), "a: expected a content, got nothing");
    CHECK_ERROR(sgm_registry_set(registry, "a", (sgm_content){.kind = (sgm_kind)99}), "got unknown kind");
    CHECK_ERROR(sgm_registry_get(registry, "a", NULL), "got NULL");
    CHECK_ERROR(sgm_registry_get(NULL, "a", &content), "got NULL");
    CHECK_ERROR(sgm_registry_add_tag(registry, "a b"), "tag 'a b', column 2");
    CHECK_ERROR(sgm_registry_put(registry, "a", NULL), "expected a registry to put, got NULL");
    CHECK_ERROR(sgm_registry_define(registry, NULL), "expected an option, got NULL");
    CHECK_ERROR(sgm_registry_create_read_only(NULL), "got NULL");
    CHECK_ERROR(sgm_registry_path(NULL), "got NULL");
    CHECK_INT(sgm_registry_count(registry), 0);
    sgm_registry_free(registry);
    sgm_registry_free(NULL);
}

/* --- rows --- */

TEST(rows_give_defaults_and_bounds)
{
    sgm_registry *registry = sgm_registry_create(), *root = sgm_registry_create();
    const sgm_option *const all[] = {&rate, &size_row, &method, &epoch, &shuffle, &weights, &child_row};
    for (size_t i = 0; i < 7; i++)
        CHECK_OK(sgm_registry_define(registry, all[i]));
    CHECK_OK(sgm_registry_put(root, "a", registry));
    CHECK_STR(described(registry, "learning_rate"), "0.01");
    CHECK_STR(described(registry, "size"), "100");
    CHECK_STR(described(registry, "method"), "'adam'");
    CHECK_STR(described(registry, "shuffle"), "true");
    CHECK_STR(described(registry, "weights"), "nothing");
    CHECK_STR(described(registry, "child"), "nothing");
    CHECK(sgm_registry_option(registry, "size") == &size_row);
    CHECK(sgm_registry_option(registry, "none") == NULL);
    CHECK_OK(sgm_registry_set(registry, "learning_rate", sgm_number_content(10)));
    CHECK_ERROR(sgm_registry_set(registry, "learning_rate", sgm_number_content(10.5)),
                "a.learning_rate: expected a number from 0 to 10, got 10.5");
    CHECK_ERROR(sgm_registry_set(registry, "learning_rate", sgm_number_content(NAN)), "got nan");
    CHECK_ERROR(sgm_registry_set(registry, "size", sgm_integer_content(0)),
                "a.size: expected an integer from 1 to 1000 examples, got 0");
    CHECK_ERROR(sgm_registry_set(registry, "method", sgm_text_content("adan")),
                "a.method: expected one of 'sgd', 'adam', 'adagrad', got 'adan'; did you mean 'adam'?");
    CHECK_ERROR(sgm_registry_set(registry, "epoch", sgm_integer_content(3)), "a.epoch is read-only");
    CHECK_OK(sgm_registry_set_own(registry, "epoch", sgm_integer_content(3)));
    CHECK_STR(described(registry, "epoch"), "3");
    CHECK_ERROR(sgm_registry_resolve_set(root, "*.epoch", sgm_integer_content(4), NULL, NULL),
                "a.epoch is read-only");
    CHECK_ERROR(sgm_registry_set(registry, "weights", sgm_number_content(3)),
                "expected a tensor, got number 3");
    CHECK_ERROR(sgm_registry_define(registry, &rate), "there is an entry 'a.learning_rate' already");
    sgm_registry *child = sgm_registry_create();
    CHECK_OK(sgm_registry_set(registry, "child", sgm_registry_content(child)));
    CHECK_STR(described(registry, "child"), "registry of 0");
    sgm_registry_free(child);
    sgm_registry_free(registry);
    sgm_registry_free(root);
}

TEST(rows_that_contradict_themselves_are_refused)
{
    sgm_registry *registry = sgm_registry_create();
    sgm_option wrong = rate;
    wrong.default_value = 11;
    CHECK_ERROR(sgm_registry_define(registry, &wrong),
                "learning_rate: expected a number from 0 to 10, got 11");
    wrong = size_row;
    wrong.default_value = 1.5;
    CHECK_ERROR(sgm_registry_define(registry, &wrong), "option 'size': expected an integer as default");
    wrong = method;
    wrong.default_text = "none";
    CHECK_ERROR(sgm_registry_define(registry, &wrong), "expected one of 'sgd'");
    wrong.default_text = NULL; /* the first choice */
    CHECK_OK(sgm_registry_define(registry, &wrong));
    CHECK_STR(described(registry, "method"), "'sgd'");
    wrong = rate;
    wrong.minimum = 20;
    CHECK_ERROR(sgm_registry_define(registry, &wrong), "its minimum is more than its maximum");
    wrong.kind = SGM_KIND_NOTHING;
    CHECK_ERROR(sgm_registry_define(registry, &wrong), "expected a kind of content, got nothing");
    wrong.name = "a b";
    CHECK_ERROR(sgm_registry_define(registry, &wrong), "column 2");
    CHECK_INT(sgm_registry_count(registry), 1);
    sgm_registry_free(registry);
}

/* --- bindings --- */

typedef struct place {
    double value;
    int gets, sets, releases;
    sgm_content gives; /* instead of the value */
    sgm_registry *asked;
} place;

static sgm_status place_get(void *user, sgm_content *content)
{
    place *self = user;
    self->gets++;
    if (self->asked != NULL)
        sgm_registry_has(self->asked, "x"); /* the lock is free */
    *content = self->gives.kind != SGM_KIND_NOTHING ? self->gives : sgm_number_content(self->value);
    return SGM_OK;
}

static sgm_status place_set(void *user, const sgm_content *content)
{
    place *self = user;
    self->sets++;
    if (self->asked != NULL)
        sgm_registry_has(self->asked, "x");
    self->value = content->as.number;
    return SGM_OK;
}

static sgm_status place_fail(void *user, sgm_content *content)
{
    (void)user;
    (void)content;
    return SGM_ERROR_STATE;
}

static void place_release(void *user)
{
    ((place *)user)->releases++;
}

TEST(bindings_live_elsewhere)
{
    sgm_registry *root = sgm_registry_create(), *registry = grow(root, "a", NULL, NULL);
    place at = {.value = 3, .asked = registry};
    sgm_binding binding = {place_get, place_set, place_release, &at};
    double number;
    CHECK_OK(sgm_registry_bind(registry, &rate, &binding));
    CHECK_OK(sgm_registry_get_number(registry, "learning_rate", &number));
    CHECK_NEAR(number, 3, 0);
    CHECK_OK(sgm_registry_set(registry, "learning_rate", sgm_integer_content(4)));
    CHECK_NEAR(at.value, 4, 0);
    CHECK_INT(at.sets, 1);
    CHECK_ERROR(sgm_registry_set(registry, "learning_rate", sgm_number_content(-1)), "from 0 to 10, got -1");
    CHECK_ERROR(sgm_registry_set(registry, "learning_rate", sgm_text_content("x")), "got text 'x'");
    CHECK_INT(at.sets, 1);
    CHECK_NEAR(number_at(root, "*.learning_rate"), 4, 0);
    /* what it gives is checked too */
    at.gives = sgm_boolean_content(true);
    CHECK_ERROR(sgm_registry_get_number(registry, "learning_rate", &number),
                "learning_rate: expected a number, got boolean true");
    at.gives = sgm_integer_content(2);
    CHECK_NEAR(number_at(root, "a.learning_rate"), 2, 0);
    CHECK_INT(at.releases, 0);
    CHECK_OK(sgm_registry_remove(registry, "learning_rate"));
    CHECK_INT(at.releases, 1);
    CHECK_OK(sgm_registry_bind(registry, &rate, &binding));
    sgm_registry_free(root);
    CHECK_INT(at.releases, 2);
}

TEST(bindings_that_fail_are_released_once)
{
    sgm_registry *registry = sgm_registry_create();
    place at = {.value = 3};
    sgm_binding binding = {place_get, NULL, place_release, &at};
    sgm_content content;
    CHECK_ERROR(sgm_registry_bind(NULL, &rate, &binding), "expected a registry");
    CHECK_ERROR(sgm_registry_bind(registry, NULL, &binding), "expected an option");
    CHECK_ERROR(sgm_registry_bind(registry, &child_row, &binding), "a registry is put, not bound");
    CHECK_INT(at.releases, 3);
    CHECK_OK(sgm_registry_bind(registry, &rate, &binding));
    CHECK_ERROR(sgm_registry_bind(registry, &rate, &binding), "already");
    CHECK_INT(at.releases, 4);
    CHECK_ERROR(sgm_registry_set_own(registry, "learning_rate", sgm_number_content(1)), "is read-only");
    CHECK_ERROR(sgm_registry_bind(registry, &size_row, &(sgm_binding){NULL, NULL, place_release, &at}),
                "expected a binding with a get");
    CHECK_ERROR(sgm_registry_bind(registry, &size_row, NULL), "expected a binding with a get");
    binding.get = place_fail;
    CHECK_OK(sgm_registry_bind(registry, &size_row, &binding));
    CHECK_ERROR(sgm_registry_get(registry, "size", &content), "size: not possible in the current state");
    CHECK_ERROR(sgm_registry_resolve(registry, "size", &(sgm_matches){0}), "size: ");
    /* no value just now: of several it is left out, and a copy does without it */
    sgm_matches matches;
    CHECK_OK(sgm_registry_resolve(registry, "*", &matches));
    CHECK_INT(matches.count, 1);
    CHECK_STR(matches.items[0].identifier, "learning_rate");
    sgm_matches_free(&matches);
    CHECK_ERROR(sgm_registry_resolve(registry, "s*e", &matches), "size: not possible in the current state");
    CHECK_ERROR(sgm_registry_resolve_one(registry, "siz*", &content),
                "size: not possible in the current state");
    sgm_registry *copy = sgm_registry_copy(registry);
    CHECK_OK(copy);
    CHECK(sgm_registry_has(copy, "learning_rate") && !sgm_registry_has(copy, "size"));
    sgm_registry_free(copy);
    sgm_registry_free(registry);
    CHECK_INT(at.releases, 7);
}

/* --- trees --- */

TEST(a_tree_has_no_circles_and_one_parent)
{
    sgm_registry *root = sgm_registry_create(), *a = grow(root, "a", NULL, NULL),
                 *b = grow(a, "b", NULL, NULL);
    char *path = sgm_registry_path(b);
    CHECK_STR(path, "a.b");
    sgm_string_free(path);
    CHECK_ERROR(sgm_registry_put(b, "c", root), "a.b.c: a registry cannot be put into itself");
    CHECK_ERROR(sgm_registry_put(root, "self", root), "self: a registry cannot be put into itself");
    CHECK_ERROR(sgm_registry_put(root, "b", b), "b: expected a registry without a parent, got 'a.b'");
    CHECK_OK(sgm_registry_put(a, "b", b)); /* it is there */
    sgm_registry_retain(b);
    CHECK_OK(sgm_registry_remove(a, "b"));
    path = sgm_registry_path(b);
    CHECK_STR(path, "");
    sgm_string_free(path);
    CHECK_OK(sgm_registry_put(root, "b", b));
    /* replaced by another */
    grow(root, "b", "new", NULL);
    CHECK_OK(sgm_registry_put(a, "back", b));
    sgm_registry_retain(a);
    sgm_registry_free(root);
    path = sgm_registry_path(b);
    CHECK_STR(path, "back");
    sgm_string_free(path);
    sgm_registry_free(a);
    CHECK_OK(sgm_registry_set(b, "lives", sgm_boolean_content(true)));
    sgm_registry_free(b);
}

TEST(nesting_is_bounded)
{
    sgm_registry *root = sgm_registry_create(), *deepest = root;
    int levels = 0;
    for (sgm_registry *child; (child = grow(deepest, "deep", NULL, NULL)) != NULL; levels++)
        deepest = child;
    CHECK_INT(levels, 63);
    CHECK(strstr(sgm_last_error(), "64 levels") != NULL);
    /* also when the depth is in the child */
    sgm_registry *above = sgm_registry_create();
    CHECK_ERROR(sgm_registry_put(above, "a", root), "64 levels");
    CHECK_OK(sgm_registry_set(deepest, "a", sgm_number_content(1)));
    CHECK_ERROR(sgm_registry_set(deepest, "a", sgm_text_content("x")), "deep.a: expected a number");
    sgm_registry_free(above);
    sgm_registry_free(root);
}

TEST(long_paths_are_cut_off_in_messages)
{
    sgm_registry *root = sgm_registry_create(), *deepest = root;
    char name[150];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 10; i++)
        deepest = grow(deepest, name, NULL, NULL);
    CHECK_OK(sgm_registry_set(deepest, "a", sgm_number_content(1)));
    CHECK_ERROR(sgm_registry_set(deepest, "a", sgm_text_content("x")),
                "nnn.a: expected a number, got text 'x'");
    CHECK(strncmp(sgm_last_error(), "...nnn", 6) == 0);
    char *path = sgm_registry_path(deepest);
    CHECK_INT(strlen(path), 10 * 149 + 9);
    sgm_string_free(path);
    sgm_registry_free(root);
}

TEST(tags_and_names)
{
    sgm_registry *registry = sgm_registry_create();
    char **names;
    size_t count;
    CHECK_OK(sgm_registry_add_tag(registry, "dense"));
    CHECK_OK(sgm_registry_add_tag(registry, "dense"));
    CHECK(sgm_registry_has_tag(registry, "dense"));
    CHECK(!sgm_registry_has_tag(registry, "dens"));
    CHECK_OK(sgm_registry_set(registry, "z", sgm_integer_content(1)));
    CHECK_OK(sgm_registry_set(registry, "a", sgm_integer_content(2)));
    CHECK_OK(sgm_registry_set(registry, "m", sgm_integer_content(3)));
    CHECK_OK(sgm_registry_remove(registry, "a"));
    CHECK_OK(sgm_registry_names(registry, &names, &count));
    CHECK_INT(count, 2);
    CHECK_STR(names[0], "z");
    CHECK_STR(names[1], "m");
    sgm_names_free(names, count);
    CHECK_INT(sgm_registry_count(registry), 2);
    sgm_registry_free(registry);
}

TEST(views_follow_and_refuse)
{
    sgm_registry *root = sgm_registry_create(), *view = sgm_registry_create_read_only(root);
    sgm_registry *child = grow(root, "child", "tagged", NULL);
    sgm_content content;
    CHECK_OK(sgm_registry_set(child, "a", sgm_integer_content(1)));
    CHECK_INT(sgm_registry_count(view), 1);
    CHECK_OK(sgm_registry_get(view, "child", &content));
    CHECK_STR(described(content.as.registry, "a"), "1");
    CHECK(sgm_registry_has_tag(content.as.registry, "tagged"));
    CHECK_ERROR(sgm_registry_set(content.as.registry, "a", sgm_integer_content(2)), "read-only view");
    CHECK_ERROR(sgm_registry_set_own(view, "b", sgm_integer_content(2)), "read-only view");
    CHECK_ERROR(sgm_registry_remove(view, "child"), "read-only view");
    CHECK_ERROR(sgm_registry_add_tag(view, "x"), "read-only view");
    CHECK_ERROR(sgm_registry_define(view, &rate), "read-only view");
    CHECK_ERROR(sgm_registry_put(view, "x", child), "read-only view");
    CHECK_ERROR(sgm_registry_put(root, "x", content.as.registry), "got a read-only view of one");
    sgm_content_clear(&content);
    sgm_registry_free(root);
    CHECK_OK(sgm_registry_get(view, "child", &content)); /* the view keeps all */
    sgm_content_clear(&content);
    sgm_registry_free(view);
}

/* --- copies --- */

TEST(copies_are_apart)
{
    sgm_registry *root = make_tree();
    place at = {.value = 3};
    double ones[] = {1, 1};
    sgm_shape pair = sgm_shape_of(2);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT64, &pair, ones);
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(root, "mnist", &content));
    sgm_registry *mnist = content.as.registry;
    CHECK_OK(sgm_registry_bind(mnist, &rate, &(sgm_binding){place_get, place_set, place_release, &at}));
    CHECK_OK(sgm_registry_set(mnist, "tensor", sgm_tensor_content(tensor)));
    CHECK_OK(sgm_registry_define(mnist, &weights));
    sgm_registry *copy = sgm_registry_copy(mnist);
    CHECK_OK(copy);
    /* what changes here does not change there */
    sgm_tensor_set(tensor, (int64_t[]){0}, 5);
    at.value = 4;
    CHECK_OK(sgm_registry_resolve_set(mnist, "layers.*.units", sgm_integer_content(1), NULL, NULL));
    CHECK_OK(sgm_registry_resolve_set(copy, "optimiser.name", sgm_text_content("sgd"), NULL, NULL));
    CHECK_STR(resolve(copy, "*<optimiser>.*"), "optimiser.learning_rate optimiser.name");
    CHECK_STR(resolve(copy, "layers.*<big>.units"), "layers.1-dense.units");
    CHECK_STR(described(copy, "learning_rate"), "3");
    CHECK_STR(described(copy, "weights"), "nothing");
    CHECK(sgm_registry_option(copy, "learning_rate") == &rate);
    CHECK_OK(sgm_registry_set(copy, "learning_rate", sgm_number_content(7)));
    CHECK_NEAR(at.value, 4, 0);
    CHECK_OK(sgm_registry_resolve_one(copy, "layers.2-dense.units", &content));
    CHECK_INT(content.as.integer, 20);
    CHECK_OK(sgm_registry_get(copy, "tensor", &content));
    CHECK_NEAR(sgm_tensor_get(content.as.tensor, (int64_t[]){0}), 1, 0);
    sgm_content_clear(&content);
    CHECK_OK(sgm_registry_resolve_one(root, "mnist.optimiser.name", &content));
    CHECK_STR(content.as.text, "adam");
    sgm_content_clear(&content);
    sgm_tensor_free(tensor);
    sgm_registry_free(mnist);
    sgm_registry_free(root);
    CHECK_INT(at.releases, 1);
    char *path = sgm_registry_path(copy);
    CHECK_STR(path, "");
    sgm_string_free(path);
    sgm_registry_free(copy);
    CHECK_ERROR(sgm_registry_copy(NULL), "expected a registry to copy");
}

/* --- memory --- */

static bool use_registry(void)
{
    place at = {.value = 1};
    sgm_registry *root = sgm_registry_create(), *child = sgm_registry_create();
    sgm_content content = {0};
    char **names = NULL;
    size_t count = 0;
    int binds = 0;
    bool good = root != NULL && child != NULL && sgm_registry_define(child, &method) == SGM_OK &&
                sgm_registry_add_tag(child, "tag") == SGM_OK &&
                sgm_registry_put(root, "child", child) == SGM_OK;
    if (good) {
        sgm_binding binding = {place_get, place_set, place_release, &at};
        binds = 1;
        good = sgm_registry_bind(child, &rate, &binding) == SGM_OK &&
               sgm_registry_set(child, "learning_rate", sgm_number_content(2)) == SGM_OK;
    }
    good = good && sgm_registry_set(child, "method", sgm_text_content("sgd")) == SGM_OK &&
           sgm_registry_set(child, "text", sgm_text_content("x")) == SGM_OK &&
           sgm_registry_get(child, "method", &content) == SGM_OK &&
           sgm_registry_names(child, &names, &count) == SGM_OK;
    sgm_registry *copy = good ? sgm_registry_copy(root) : NULL;
    good = good && copy != NULL && number_at(copy, "child.learning_rate") == 2;
    sgm_registry_free(copy);
    if (sgm_registry_set(child, "method", sgm_text_content("none")) == SGM_OK)
        abort(); /* never set, with or without memory for the message */
    sgm_names_free(names, count);
    sgm_content_clear(&content);
    sgm_registry_free(child);
    sgm_registry_free(root);
    return good && at.releases == binds;
}

TEST(every_allocation_may_fail)
{
    CHECK(use_registry());
    bool good = false;
    for (long n = 1; !good; n++) {
        allocator_start(n);
        good = use_registry();
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK(n < 1000);
    }
}

TEST(setting_numbers_takes_no_memory)
{
    sgm_registry *root = sgm_registry_create(), *child = grow(root, "child", NULL, NULL);
    double number = 0;
    CHECK_OK(sgm_registry_set(child, "cost", sgm_number_content(1)));
    allocator_start(1);
    sgm_status set = sgm_registry_set(child, "cost", sgm_number_content(2));
    sgm_status get = sgm_registry_get_number(child, "cost", &number);
    allocator_stop();
    CHECK_INT(set, SGM_OK);
    CHECK_INT(get, SGM_OK);
    CHECK_NEAR(number, 2, 0);
    sgm_registry_free(root);
}

/* Entries and tags that are missing come, others get their values, and what is there alone stays. */
TEST(a_registry_is_copied_into_another_one)
{
    static const sgm_option share_row = {.name = "rate",
                                         .kind = SGM_KIND_NUMBER,
                                         .minimum = 0,
                                         .maximum = 1,
                                         .default_value = 0.5,
                                         .doc = "a share"};
    sgm_registry *from = sgm_registry_create(), *child = sgm_registry_create(), *to = sgm_registry_create(),
                 *there = sgm_registry_create();
    double number;
    CHECK_OK(sgm_registry_define(from, &share_row));
    CHECK_OK(sgm_registry_set(from, "rate", sgm_number_content(0.25)));
    CHECK_OK(sgm_registry_set(child, "size", sgm_integer_content(7)));
    CHECK_OK(sgm_registry_add_tag(child, "layer"));
    CHECK_OK(sgm_registry_put(from, "dense", child));
    CHECK_OK(sgm_registry_set(there, "own", sgm_integer_content(1)));
    CHECK_OK(sgm_registry_set(there, "size", sgm_integer_content(2)));
    CHECK_OK(sgm_registry_put(to, "dense", there));
    CHECK_OK(sgm_registry_copy_into(from, to));
    CHECK_OK(sgm_registry_get_number(to, "rate", &number));
    CHECK_NEAR(number, 0.25, 0);
    CHECK(sgm_registry_option(to, "rate") == &share_row);
    CHECK_OK(sgm_registry_get_number(there, "size", &number));
    CHECK_NEAR(number, 7, 0);
    CHECK_OK(sgm_registry_get_number(there, "own", &number));
    CHECK_NEAR(number, 1, 0);
    CHECK(sgm_registry_has_tag(there, "layer"));
    CHECK_OK(sgm_registry_set(from, "rate", sgm_number_content(0.75)));
    CHECK_OK(sgm_registry_get_number(to, "rate", &number));
    CHECK_NEAR(number, 0.25, 0);
    sgm_registry *other = sgm_registry_create();
    CHECK_OK(sgm_registry_set(other, "dense", sgm_integer_content(1)));
    CHECK_ERROR(sgm_registry_copy_into(from, other), "'dense' is a registry, and a");
    CHECK_ERROR(sgm_registry_copy_into(from, NULL), "expected a registry to copy into, got NULL");
    sgm_registry *all[] = {from, child, to, there, other};
    for (size_t i = 0; i < 5; i++)
        sgm_registry_free(all[i]);
}
