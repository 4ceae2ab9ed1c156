#include "base/allocator.h"
#include "test.h"

#include "registry/registry_test.h"

typedef struct seen {
    char text[1024];
    int count;
    sgm_registry *root, *target;
    int64_t id;
} seen;

static void write_down(void *user, const char *identifier, const sgm_content *before,
                       const sgm_content *after)
{
    seen *self = user;
    char *from = sgm_content_describe(before), *to = sgm_content_describe(after);
    size_t length = strlen(self->text);
    snprintf(self->text + length, sizeof self->text - length, "%s%s: %s -> %s", length > 0 ? "; " : "",
             identifier, from, to);
    sgm_string_free(from);
    sgm_string_free(to);
    self->count++;
}

TEST(observers_are_told_what_changed)
{
    sgm_registry *root = make_tree();
    seen notes = {0};
    CHECK_OK(sgm_registry_observe(root, "*.optimiser.*", write_down, &notes, &notes.id));
    CHECK_OK(
        sgm_registry_resolve_set(root, "mnist.optimiser.learning_rate", sgm_number_content(0.5), NULL, NULL));
    CHECK_OK(sgm_registry_resolve_set(root, "mnist.optimiser.name", sgm_text_content("sgd"), NULL, NULL));
    CHECK_OK(
        sgm_registry_resolve_set(root, "mnist.cost", sgm_number_content(9), NULL, NULL)); /* not observed */
    CHECK_STR(notes.text,
              "mnist.optimiser.learning_rate: 0.01 -> 0.5; mnist.optimiser.name: 'adam' -> 'sgd'");
    /* the same again is no change */
    CHECK_OK(sgm_registry_resolve_set(root, "mnist.optimiser.*rate", sgm_number_content(0.5), NULL, NULL));
    CHECK_INT(notes.count, 2);
    /* nor is what fails */
    CHECK_ERROR(
        sgm_registry_resolve_set(root, "*.optimiser.learning_rate", sgm_text_content("x"), NULL, NULL),
        "got");
    CHECK_INT(notes.count, 2);
    sgm_registry_unobserve(root, notes.id);
    CHECK_OK(sgm_registry_resolve_set(root, "mnist.optimiser.*rate", sgm_number_content(0.75), NULL, NULL));
    CHECK_INT(notes.count, 2);
    sgm_registry_unobserve(root, notes.id);
    sgm_registry_unobserve(NULL, 1);
    sgm_registry_free(root);
}

TEST(entries_that_come_later_count)
{
    sgm_registry *root = sgm_registry_create();
    seen notes = {0};
    CHECK_OK(sgm_registry_observe(root, "*<trainer>.cost", write_down, &notes, NULL));
    sgm_registry *plain = grow(root, "plain", NULL, NULL), *trainer = grow(root, "late", "trainer", NULL);
    CHECK_OK(sgm_registry_set(plain, "cost", sgm_number_content(1)));
    CHECK_OK(sgm_registry_set(trainer, "cost", sgm_number_content(2)));
    CHECK_OK(sgm_registry_set(trainer, "cost", sgm_number_content(3)));
    CHECK_STR(notes.text, "late.cost: nothing -> 2; late.cost: 2 -> 3");
    sgm_registry_free(root);
}

TEST(observers_at_every_level_see_their_own_identifier)
{
    sgm_registry *root = sgm_registry_create(), *a = grow(root, "a", NULL, NULL),
                 *b = grow(a, "b", NULL, NULL);
    seen from_root = {0}, from_a = {0}, from_b = {0};
    CHECK_OK(sgm_registry_observe(root, "*.*.x", write_down, &from_root, NULL));
    CHECK_OK(sgm_registry_observe(a, "b.x", write_down, &from_a, NULL));
    CHECK_OK(sgm_registry_observe(b, "*", write_down, &from_b, NULL));
    CHECK_OK(sgm_registry_set(b, "x", sgm_integer_content(1)));
    CHECK_STR(from_root.text, "a.b.x: nothing -> 1");
    CHECK_STR(from_a.text, "b.x: nothing -> 1");
    CHECK_STR(from_b.text, "x: nothing -> 1");
    sgm_registry_free(root);
}

TEST(children_that_are_put_are_changes)
{
    sgm_registry *root = sgm_registry_create();
    seen notes = {0}, tagged = {0};
    CHECK_OK(sgm_registry_observe(root, "*", write_down, &notes, NULL));
    CHECK_OK(sgm_registry_observe(root, "*<trainer>", write_down, &tagged, NULL));
    sgm_registry *first = grow(root, "a", NULL, NULL);
    CHECK_OK(sgm_registry_put(root, "a", first)); /* it is there */
    sgm_registry_set(first, "x", sgm_integer_content(1));
    grow(root, "a", "trainer", NULL);
    CHECK_STR(notes.text, "a: nothing -> registry of 0; a: registry of 1 -> registry of 0");
    CHECK_STR(tagged.text, "a: registry of 1 -> registry of 0");
    sgm_registry_free(root);
}

/* --- observers that act --- */

static void set_other(void *user, const char *identifier, const sgm_content *before, const sgm_content *after)
{
    seen *self = user;
    (void)identifier;
    (void)before;
    self->count++;
    sgm_registry_set(self->root, "copy", *after);
}

TEST(an_observer_may_set)
{
    sgm_registry *root = sgm_registry_create();
    seen copier = {.root = root}, notes = {0};
    CHECK_OK(sgm_registry_observe(root, "x", set_other, &copier, NULL));
    CHECK_OK(sgm_registry_observe(root, "copy", write_down, &notes, NULL));
    CHECK_OK(sgm_registry_set(root, "x", sgm_integer_content(5)));
    CHECK_STR(notes.text, "copy: nothing -> 5");
    CHECK_INT(copier.count, 1);
    sgm_registry_free(root);
}

static void count_up(void *user, const char *identifier, const sgm_content *before, const sgm_content *after)
{
    seen *self = user;
    (void)before;
    self->count++;
    sgm_registry_set(self->root, identifier, sgm_integer_content(after->as.integer + 1));
}

TEST(observers_that_set_each_other_come_to_an_end)
{
    sgm_registry *root = sgm_registry_create();
    seen counter = {.root = root};
    CHECK_OK(sgm_registry_observe(root, "x", count_up, &counter, NULL));
    CHECK_OK(sgm_registry_set(root, "x", sgm_integer_content(0)));
    CHECK_INT(counter.count, 32);
    int64_t value;
    CHECK_OK(sgm_registry_get_integer(root, "x", &value));
    CHECK_INT(value, 32);
    sgm_registry_free(root);
}

static void once(void *user, const char *identifier, const sgm_content *before, const sgm_content *after)
{
    seen *self = user;
    write_down(user, identifier, before, after);
    sgm_registry_unobserve(self->root, self->id);
}

static void end_target(void *user, const char *identifier, const sgm_content *before,
                       const sgm_content *after)
{
    seen *self = user;
    write_down(user, identifier, before, after);
    sgm_registry_remove(self->root, "child");
}

TEST(an_observer_may_unobserve_itself_and_remove)
{
    sgm_registry *root = sgm_registry_create(), *child = grow(root, "child", NULL, NULL);
    seen notes = {.root = root}, remover = {.root = root};
    CHECK_OK(sgm_registry_observe(root, "x", once, &notes, &notes.id));
    CHECK_OK(sgm_registry_set(root, "x", sgm_integer_content(1)));
    CHECK_OK(sgm_registry_set(root, "x", sgm_integer_content(2)));
    CHECK_STR(notes.text, "x: nothing -> 1");
    /* the registry that is being set goes, with its observers */
    CHECK_OK(sgm_registry_observe(child, "*", end_target, &remover, NULL));
    CHECK_OK(sgm_registry_set(child, "y", sgm_integer_content(1)));
    CHECK_STR(remover.text, "y: nothing -> 1");
    CHECK(!sgm_registry_has(root, "child"));
    sgm_registry_free(root);
}

/* --- bindings --- */

static sgm_status clamped_get(void *user, sgm_content *content)
{
    *content = sgm_number_content(*(double *)user);
    return SGM_OK;
}

static sgm_status clamped_set(void *user, const sgm_content *content)
{
    *(double *)user = content->as.number > 1 ? 1 : content->as.number;
    return SGM_OK;
}

TEST(bound_entries_are_observed)
{
    static const sgm_option row = {.name = "x", .kind = SGM_KIND_NUMBER};
    sgm_registry *root = sgm_registry_create();
    double value = 0.5;
    seen notes = {0};
    CHECK_OK(sgm_registry_bind(root, &row, &(sgm_binding){clamped_get, clamped_set, NULL, &value}));
    CHECK_OK(sgm_registry_observe(root, "x", write_down, &notes, NULL));
    CHECK_OK(sgm_registry_set(root, "x", sgm_number_content(7)));
    CHECK_OK(sgm_registry_set(root, "x", sgm_number_content(8)));
    CHECK_STR(notes.text, "x: 0.5 -> 1"); /* what came of it */
    sgm_registry_free(root);
}

static void try_to_set(void *user, const char *identifier, const sgm_content *before,
                       const sgm_content *after)
{
    seen *self = user;
    (void)identifier;
    (void)before;
    self->count += sgm_registry_set(after->as.registry, "x", sgm_integer_content(1)) == SGM_ERROR_STATE;
}

TEST(observers_of_a_view_cannot_set_through_it)
{
    sgm_registry *root = sgm_registry_create(), *view = sgm_registry_create_read_only(root);
    seen notes = {0};
    CHECK_OK(sgm_registry_observe(view, "*", try_to_set, &notes, &notes.id));
    grow(root, "child", NULL, NULL);
    CHECK_INT(notes.count, 1);
    sgm_registry_unobserve(view, notes.id);
    sgm_registry_free(view);
    sgm_registry_free(root);
}

TEST(wrong_observers_are_refused)
{
    sgm_registry *root = sgm_registry_create();
    CHECK_ERROR(sgm_registry_observe(NULL, "*", write_down, NULL, NULL), "got NULL");
    CHECK_ERROR(sgm_registry_observe(root, "*", NULL, NULL, NULL), "got NULL");
    CHECK_ERROR(sgm_registry_observe(root, "a..b", write_down, NULL, NULL), "part 2 is empty");
    sgm_registry_free(root);
}

static bool use_observers(void)
{
    seen notes = {0};
    sgm_registry *root = sgm_registry_create(), *child = grow(root, "child", NULL, NULL);
    bool good = child != NULL &&
                sgm_registry_observe(root, "*.x", set_other, &(seen){.root = root}, NULL) == SGM_OK &&
                sgm_registry_observe(root, "*.x", write_down, &notes, &notes.id) == SGM_OK;
    bool is_set = good && sgm_registry_set(child, "x", sgm_text_content("text")) == SGM_OK;
    if (good && is_set != sgm_registry_has(child, "x"))
        abort(); /* a set that fails sets nothing */
    if (is_set != (notes.count == 1))
        abort(); /* and tells nobody */
    bool complete = is_set && sgm_registry_has(root, "copy") && strlen(notes.text) == 25;
    sgm_registry_free(root);
    return complete;
}

TEST(every_allocation_may_fail)
{
    bool good = false;
    for (long n = 1; !good; n++) {
        allocator_start(n);
        good = use_observers();
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK(n < 500);
    }
}
