/* Several threads at one tree, and at trees that become one: to be run with the thread sanitizer too. */
#include "test.h"

#include <pthread.h>

#include "registry/registry_test.h"

#define MAXIMUM_THREADS 8

typedef struct shared {
    sgm_registry *root;
    int rounds;
    atomic_int next, errors, calls, releases, values;
    atomic_bool stop;
} shared;

static void run_threads(shared *all, int count, void *(*const work[])(void *))
{
    pthread_t threads[MAXIMUM_THREADS];
    for (int i = 0; i < count; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, work[i], all), 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(atomic_load(&all->errors), 0);
}

static void expect(shared *all, bool condition)
{
    if (!condition)
        atomic_fetch_add(&all->errors, 1);
}

/* --- one tree, everything at once --- */

/* Sets both entries together: no one may see them differ. */
static void *set_both(void *user)
{
    shared *all = user;
    for (int i = 0; i < all->rounds; i++)
        expect(all,
               sgm_registry_resolve_set(all->root, "pair.*", sgm_number_content(i), NULL, NULL) == SGM_OK);
    return NULL;
}

static void *get_both(void *user)
{
    shared *all = user;
    sgm_matches matches;
    sgm_resolver *resolver = sgm_resolver_create(all->root, "pair.*");
    for (int i = 0; i < all->rounds; i++) {
        expect(all, sgm_resolver_get(resolver, &matches) == SGM_OK && matches.count == 2 &&
                        matches.items[0].content.as.number == matches.items[1].content.as.number);
        sgm_matches_free(&matches);
    }
    sgm_resolver_free(resolver);
    return NULL;
}

static void *put_and_remove(void *user)
{
    shared *all = user;
    char name[32];
    snprintf(name, sizeof name, "child-%d", atomic_fetch_add(&all->next, 1));
    for (int i = 0; i < all->rounds; i++) {
        sgm_registry *child = sgm_registry_create();
        grow(child, "below", "tag", NULL);
        expect(all, sgm_registry_put(all->root, name, child) == SGM_OK);
        expect(all, sgm_registry_set(child, "value", sgm_text_content(name)) == SGM_OK);
        expect(all, sgm_registry_add_tag(child, "late") == SGM_OK);
        if (i % 3 != 0)
            expect(all, sgm_registry_remove(all->root, name) == SGM_OK);
        sgm_registry_free(child);
    }
    return NULL;
}

static void *resolve_children(void *user)
{
    shared *all = user;
    sgm_matches matches;
    sgm_resolver *resolver = sgm_resolver_create(all->root, "child-*<late>.*");
    for (int i = 0; i < all->rounds; i++) {
        expect(all, sgm_resolver_get(resolver, &matches) == SGM_OK);
        sgm_registry *copy = i % 8 == 0 ? sgm_registry_copy(all->root) : NULL;
        expect(all, copy == NULL || number_at(copy, "pair.a") == number_at(copy, "pair.b"));
        sgm_registry_free(copy);
        for (size_t j = 0; j < matches.count; j++)
            if (matches.items[j].content.kind == SGM_KIND_REGISTRY) {
                char *path = sgm_registry_path(matches.items[j].content.as.registry);
                expect(all, path != NULL);
                sgm_string_free(path);
            }
        sgm_matches_free(&matches);
    }
    sgm_resolver_free(resolver);
    return NULL;
}

static void count_call(void *user, const char *identifier, const sgm_content *before,
                       const sgm_content *after)
{
    shared *all = user;
    (void)identifier;
    (void)before;
    (void)after;
    atomic_fetch_add(&all->calls, 1);
}

typedef struct short_lived {
    shared *all;
    int alive; /* not atomic: unobserve promises that no call runs any more */
} short_lived;

static void touch(void *user, const char *identifier, const sgm_content *before, const sgm_content *after)
{
    short_lived *self = user;
    (void)identifier;
    (void)before;
    (void)after;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* several setters may call at once */
    pthread_mutex_lock(&mutex);
    self->alive++;
    pthread_mutex_unlock(&mutex);
}

static void *observe_shortly(void *user)
{
    shared *all = user;
    for (int i = 0; i < all->rounds; i++) {
        short_lived *self = malloc(sizeof *self);
        *self = (short_lived){all, 0};
        int64_t id = 0;
        expect(all, sgm_registry_observe(all->root, "pair.*", touch, self, &id) == SGM_OK);
        sgm_registry_unobserve(all->root, id);
        self->alive = -1;
        free(self);
    }
    return NULL;
}

TEST(everything_at_once)
{
    static void *(*const work[])(void *) = {set_both,       set_both,         get_both,        put_and_remove,
                                            put_and_remove, resolve_children, observe_shortly, get_both};
    shared all = {.root = sgm_registry_create(), .rounds = 400};
    sgm_registry *pair = grow(all.root, "pair", NULL, NULL);
    CHECK_OK(sgm_registry_set(pair, "a", sgm_number_content(-1)));
    CHECK_OK(sgm_registry_set(pair, "b", sgm_number_content(-1)));
    CHECK_OK(sgm_registry_observe(all.root, "pair.a", count_call, &all, NULL));
    run_threads(&all, 8, work);
    CHECK(atomic_load(&all.calls) >= all.rounds);
    CHECK_NEAR(number_at(all.root, "pair.a"), number_at(all.root, "pair.b"), 0);
    sgm_registry_free(all.root);
}

/* --- trees that join each other from both sides --- */

static sgm_registry *trees[4];

/* Puts trees into each other in every order; of a put and the opposite put at most one works. */
static void *join_and_part(void *user)
{
    shared *all = user;
    uint32_t state = (uint32_t)atomic_fetch_add(&all->next, 1) * 7919u + 1;
    for (int i = 0; i < all->rounds; i++) {
        state = state * 1664525u + 1013904223u;
        sgm_registry *parent = trees[(state >> 16) % 4], *child = trees[(state >> 20) % 4];
        char name[2] = {(char)('a' + (state >> 24) % 3), '\0'};
        if ((state >> 28) % 2 == 0)
            (void)sgm_registry_put(parent, name, child);
        else
            (void)sgm_registry_remove(parent, name);
        expect(all, sgm_registry_set(child, "value", sgm_integer_content(i)) == SGM_OK);
        sgm_matches matches;
        expect(all, sgm_registry_resolve(parent, "*.value", &matches) == SGM_OK);
        sgm_matches_free(&matches);
    }
    return NULL;
}

TEST(trees_join_and_part_without_a_deadlock)
{
    static void *(*const work[])(void *) = {join_and_part, join_and_part, join_and_part, join_and_part};
    shared all = {.rounds = 2000};
    for (int i = 0; i < 4; i++)
        trees[i] = sgm_registry_create();
    run_threads(&all, 4, work);
    for (int i = 0; i < 4; i++)
        sgm_registry_free(trees[i]);
}

/* --- bound entries that go while they are read --- */

typedef struct value {
    shared *all;
    atomic_int number;
} value;

static sgm_status value_get(void *user, sgm_content *content)
{
    *content = sgm_integer_content(atomic_load(&((value *)user)->number));
    return SGM_OK;
}

static sgm_status value_set(void *user, const sgm_content *content)
{
    atomic_store(&((value *)user)->number, (int)content->as.integer);
    return SGM_OK;
}

static void value_release(void *user)
{
    value *self = user;
    atomic_fetch_add(&self->all->releases, 1);
    free(self);
}

static void *bind_and_remove(void *user)
{
    static const sgm_option row = {.name = "bound", .kind = SGM_KIND_INTEGER};
    shared *all = user;
    for (int i = 0; i < all->rounds; i++) {
        value *bound = malloc(sizeof *bound);
        bound->all = all;
        atomic_init(&bound->number, i);
        atomic_fetch_add(&all->values, 1);
        expect(all, sgm_registry_bind(all->root, &row,
                                      &(sgm_binding){value_get, value_set, value_release, bound}) == SGM_OK);
        expect(all, sgm_registry_remove(all->root, "bound") == SGM_OK);
    }
    atomic_store(&all->stop, true);
    return NULL;
}

static void *use_bound(void *user)
{
    shared *all = user;
    for (int i = 0; !atomic_load(&all->stop); i++) {
        int64_t number;
        sgm_status status = sgm_registry_get_integer(all->root, "bound", &number);
        expect(all, status == SGM_OK || status == SGM_ERROR_NOT_FOUND);
        status = sgm_registry_resolve_set(all->root, "bound", sgm_integer_content(i), NULL, NULL);
        expect(all, status == SGM_OK || status == SGM_ERROR_NOT_FOUND);
    }
    return NULL;
}

TEST(bindings_outlive_their_removal)
{
    static void *(*const work[])(void *) = {bind_and_remove, use_bound, use_bound};
    shared all = {.root = sgm_registry_create(), .rounds = 1000};
    run_threads(&all, 3, work);
    CHECK_INT(atomic_load(&all.releases), atomic_load(&all.values));
    sgm_registry_free(all.root);
}

/* --- parents that go while their children are used --- */

static void *use_orphan(void *user)
{
    shared *all = user;
    for (int i = 0; !atomic_load(&all->stop); i++) {
        expect(all, sgm_registry_set(all->root, "value", sgm_integer_content(i)) == SGM_OK);
        char *path = sgm_registry_path(all->root);
        expect(all, path != NULL && (path[0] == '\0' || strcmp(path, "child") == 0));
        sgm_string_free(path);
    }
    return NULL;
}

static void *free_parents(void *user)
{
    shared *all = user;
    for (int i = 0; i < all->rounds; i++) {
        sgm_registry *parent = sgm_registry_create();
        expect(all, sgm_registry_observe(parent, "*.value", count_call, all, NULL) == SGM_OK);
        expect(all, sgm_registry_put(parent, "child", all->root) == SGM_OK);
        sgm_registry_free(parent);
    }
    atomic_store(&all->stop, true);
    return NULL;
}

TEST(parents_go_while_children_are_used)
{
    static void *(*const work[])(void *) = {free_parents, use_orphan, use_orphan};
    shared all = {.root = sgm_registry_create(), .rounds = 1000};
    run_threads(&all, 3, work);
    sgm_registry_free(all.root);
}
