/* Hooks: what is attached, in which order it runs, and for how long. A table for each rule:
 *   ordering by priority, and required hooks before that           order_cases
 *   each scale of time is an event of its own, lifecycle included  scale_cases
 *   equal hooks are attached once                                  equal_cases, shared_cases
 *   required hooks are attached with their dependents, and shared  required_hooks_..., shared_cases
 *   same place, and a step that covers the dependent's             refusal_cases
 *   no circles                                                     circles_are_refused
 *   what others require cannot be detached; a detached dependent
 *   takes what nobody else needs along, also an equal one that
 *   was attached earlier                                           detach_cases
 *   live time: counted per holder, dead hooks are detached         count_cases, each_holder_...
 * The background is in test_hooks_background.c, criteria and state in test_hooks_life.c. */
#include "hooks/hooks_internal.h"
#include "hooks_test.h"

/* --- order --- */

typedef struct order_hook {
    const char *name;
    int32_t priority;
    const char *requires_names; /* of hooks before it in the table, one letter each */
} order_hook;

static const struct order_case {
    order_hook hooks[6];
    const char *order;
} order_cases[] = {
    {{{"a", 0, ""}, {"b", 0, ""}, {"c", 0, ""}}, "a b c"},
    {{{"a", 5, ""}, {"b", -5, ""}, {"c", 0, ""}}, "b c a"},
    {{{"a", 10, ""}, {"b", -10, "a"}}, "a b"},
    /* what is required takes the place of the one that needs it */
    {{{"r", 10, ""}, {"x", 0, ""}, {"d", -5, "r"}}, "r d x"},
    {{{"a", 3, ""}, {"b", 2, "a"}, {"c", 1, "b"}, {"x", 0, ""}}, "x a b c"},
    {{{"a", 2, ""}, {"b", 1, ""}, {"c", 0, "ab"}}, "b a c"},
    {{{"a", 0, ""}, {"b", 1, "a"}, {"c", 2, "a"}, {"d", -1, "bc"}}, "a b c d"},
};

static sgm_hook *find_named(sgm_hook **made, size_t count, char name)
{
    for (size_t i = 0; i < count; i++)
        if (((probe_self *)sgm_hook_self(made[i]))->name[0] == name)
            return sgm_hook_retain(made[i]);
    return NULL;
}

static void check_order(const struct order_case *c)
{
    probe_self probes[6] = {0};
    sgm_hook *made[6];
    size_t count = 0;
    floor_of_test at = open_floor();
    for (; count < 6 && c->hooks[count].name; count++) {
        const order_hook *row = &c->hooks[count];
        probes[count] = (probe_self){.name = row->name, .alike = (int)count};
        made[count] = sgm_hook_create(&probe_type, &probes[count], .priority = row->priority);
        for (const char *name = row->requires_names; *name; name++)
            CHECK_OK(sgm_hook_require(made[count], find_named(made, count, *name)));
    }
    for (size_t i = 0; i < count; i++)
        CHECK_OK(sgm__hooks_attach(at.hooks, made[i], NULL));
    iterate(&at, 1);
    CHECK_STR(seen_runs, c->order);
    for (size_t i = 0; i < count; i++)
        sgm_hook_free(made[i]);
    close_floor(&at);
    for (size_t i = 0; i < count; i++)
        CHECK_INT(probes[i].frees, 1);
}

TEST(hooks_run_by_priority_but_after_what_they_require)
{
    for (size_t i = 0; i < sizeof order_cases / sizeof *order_cases; i++)
        check_order(&order_cases[i]);
}

/* --- scales --- */

static const struct scale_case {
    sgm_time_step when;
    const char *runs; /* in three rounds of one event of each scale, in the order of the enumeration */
} scale_cases[] = {
    {{SGM_ITERATION, 1, 0}, "a a a"}, {{SGM_EPOCH, 1, 0}, "a a a"}, {{SGM_START, 1, 0}, "a a a"},
    {{SGM_STOP, 1, 0}, "a a a"},      {{SGM_PAUSE, 1, 0}, "a a a"}, {{SGM_RESUME, 1, 0}, "a a a"},
    {{SGM_RESET, 1, 0}, "a a a"},     {{SGM_EPOCH, 2, 0}, "a"},     {{SGM_PAUSE, 3, 0}, "a"},
    {{SGM_STOP, 1, 2}, "a a"},        {{SGM_RESET, 4, 0}, ""},
};

static sgm_status note_scale(probe_self *self, sgm_hook_call *call)
{
    CHECK_INT(call->scale, *(const sgm_time_scale *)self->user);
    CHECK_INT(call->epoch, 2);
    CHECK_INT(call->iteration, 5);
    return SGM_OK;
}

TEST(hooks_hear_of_events_of_their_scale_only)
{
    for (size_t i = 0; i < sizeof scale_cases / sizeof *scale_cases; i++) {
        sgm_time_scale scale = scale_cases[i].when.scale;
        probe_self probe = {.name = "a", .act = note_scale, .user = &scale};
        floor_of_test at = open_floor();
        attach(&at, sgm_hook_create(&probe_type, &probe, .when = scale_cases[i].when));
        for (int round = 0; round < 3; round++)
            for (int event = 0; event < SGM_TIME_SCALE_COUNT; event++)
                CHECK_OK(sgm__hooks_event(at.hooks, (sgm_time_scale)event, 2, 5));
        CHECK_STR(seen_runs, scale_cases[i].runs);
        CHECK_STR(seen_log, "");
        close_floor(&at);
    }
}

/* --- equal hooks --- */

static const char *const one_read[] = {"a.b", NULL}, *const two_reads[] = {"a.b", "c", NULL};

static const struct equal_case {
    const char *what;
    sgm_hook_options options;
    int alike;
    bool is_new;
} equal_cases[] = {
    {"all the same", {.struct_size = sizeof(sgm_hook_options), .reads = one_read}, 1, false},
    {"interval 1 said",
     {.struct_size = sizeof(sgm_hook_options),
      .reads = one_read,
      .when = {.scale = SGM_ITERATION, .interval = 1}},
     1,
     false},
    {"another self", {.struct_size = sizeof(sgm_hook_options), .reads = one_read}, 2, true},
    {"time step",
     {.struct_size = sizeof(sgm_hook_options), .reads = one_read, .when = {.interval = 2}},
     1,
     true},
    {"scale",
     {.struct_size = sizeof(sgm_hook_options), .reads = one_read, .when = {SGM_EPOCH, 1, 0}},
     1,
     true},
    {"life", {.struct_size = sizeof(sgm_hook_options), .reads = one_read, .when = {.live = 7}}, 1, true},
    {"reads", {.struct_size = sizeof(sgm_hook_options), .reads = two_reads}, 1, true},
    {"no reads", {.struct_size = sizeof(sgm_hook_options)}, 1, true},
    {"priority", {.struct_size = sizeof(sgm_hook_options), .reads = one_read, .priority = 1}, 1, true},
    {"place", {.struct_size = sizeof(sgm_hook_options), .reads = one_read, .background = true}, 1, true},
    {"limit", {.struct_size = sizeof(sgm_hook_options), .reads = one_read, .time_limit = 3}, 1, true},
    {"failure",
     {.struct_size = sizeof(sgm_hook_options), .reads = one_read, .failure = SGM_HOOK_STOP},
     1,
     true},
};

TEST(of_equal_hooks_one_is_attached)
{
    for (size_t i = 0; i < sizeof equal_cases / sizeof *equal_cases; i++) {
        const struct equal_case *c = &equal_cases[i];
        probe_self first = {.name = "a", .alike = 1}, second = {.name = "b", .alike = c->alike};
        floor_of_test at = open_floor();
        CHECK(attach(&at, sgm_hook_create(&probe_type, &first, .reads = one_read)));
        bool is_new = attach(&at, sgm_hook_create_with(&probe_type, &second, &c->options));
        if (is_new != c->is_new)
            TEST_FAIL("%s: attached is %d", c->what, is_new);
        CHECK_INT(sgm__hooks_count(at.hooks), c->is_new ? 2 : 1);
        CHECK_INT(second.frees, c->is_new ? 0 : 1);
        close_floor(&at);
        CHECK_INT(first.frees, 1);
        CHECK_INT(second.frees, 1);
    }
}

TEST(without_a_way_to_compare_the_same_self_is_equal)
{
    sgm_hook_type type = probe_type;
    type.equal = NULL;
    probe_self one = {.name = "a"}, other = {.name = "b"};
    floor_of_test at = open_floor();
    CHECK(attach(&at, sgm_hook_create(&type, &one)));
    CHECK(!attach(&at, sgm_hook_create(&type, &one)));
    CHECK(attach(&at, sgm_hook_create(&type, &other)));
    close_floor(&at);
}

TEST(hooks_that_require_different_hooks_differ)
{
    probe_self probes[4] = {PROBE("r", 1), PROBE("s", 2), PROBE("d", 3), PROBE("d", 3)};
    floor_of_test at = open_floor();
    CHECK(attach(&at, sgm_hook_create(&probe_type, &probes[2],
                                      .requires_hooks = {sgm_hook_create(&probe_type, &probes[0])})));
    CHECK(attach(&at, sgm_hook_create(&probe_type, &probes[3],
                                      .requires_hooks = {sgm_hook_create(&probe_type, &probes[1])})));
    iterate(&at, 1);
    CHECK_STR(seen_runs, "r d s d");
    close_floor(&at);
}

/* --- required hooks --- */

static const char *const other_read[] = {"c", NULL};

/* Two dependents, each with a required hook of its own: when are the two one? */
static const struct shared_case {
    const char *what;
    sgm_hook_options first, second;
    const char *first_if, *second_if; /* criteria; NULL: none */
    int alike;                        /* of the second; the first is 1 */
    bool shared;
} shared_cases[] = {
    {"all the same", {.reads = one_read}, {.reads = one_read}, NULL, NULL, 1, true},
    {"another self", {.reads = one_read}, {.reads = one_read}, NULL, NULL, 2, false},
    {"other values", {.reads = one_read}, {.reads = other_read}, NULL, NULL, 1, false},
    {"priority", {.priority = 0}, {.priority = 1}, NULL, NULL, 1, false},
    {"life", {.when = {SGM_ITERATION, 1, 0}}, {.when = {SGM_ITERATION, 0, 0}}, NULL, NULL, 1, true},
    {"equal criteria", {.priority = 0}, {.priority = 0}, "a.b > 1", "a.b > 1", 1, true},
    {"one has criteria", {.priority = 0}, {.priority = 0}, "a.b > 1", NULL, 1, false},
    {"other number", {.priority = 0}, {.priority = 0}, "a.b > 1", "a.b > 2", 1, false},
    {"other kind", {.priority = 0}, {.priority = 0}, "a.b > 1", "a.b becomes > 1", 1, false},
};

static sgm_hook *make_required(probe_self *probe, sgm_hook_options options, const char *only_if)
{
    options.struct_size = sizeof options;
    options.only_if = only_if ? sgm_criteria_parse(only_if, NULL) : NULL;
    return sgm_hook_create_with(&probe_type, probe, &options);
}

TEST(equal_required_hooks_are_one)
{
    for (size_t i = 0; i < sizeof shared_cases / sizeof *shared_cases; i++) {
        const struct shared_case *c = &shared_cases[i];
        probe_self probes[4] = {PROBE("r", 1), PROBE("s", c->alike), PROBE("d", 3), PROBE("e", 4)};
        floor_of_test at = open_floor();
        attach(&at, sgm_hook_create(&probe_type, &probes[2],
                                    .requires_hooks = {make_required(&probes[0], c->first, c->first_if)}));
        attach(&at, sgm_hook_create(&probe_type, &probes[3],
                                    .requires_hooks = {make_required(&probes[1], c->second, c->second_if)}));
        if (sgm__hooks_count(at.hooks) != (c->shared ? 3 : 4))
            TEST_FAIL("%s: %zu hooks", c->what, sgm__hooks_count(at.hooks));
        close_floor(&at);
    }
}

TEST(required_hooks_are_attached_and_shared)
{
    probe_self probes[4] = {PROBE("r", 1), PROBE("d", 2), PROBE("r", 1), PROBE("e", 3)};
    floor_of_test at = open_floor();
    CHECK(attach(&at, sgm_hook_create(&probe_type, &probes[1],
                                      .requires_hooks = {sgm_hook_create(&probe_type, &probes[0])})));
    CHECK(attach(&at, sgm_hook_create(&probe_type, &probes[3],
                                      .requires_hooks = {sgm_hook_create(&probe_type, &probes[2])})));
    CHECK_INT(sgm__hooks_count(at.hooks), 3);
    CHECK_INT(probes[2].frees, 0); /* the second dependent still names it */
    iterate(&at, 1);
    CHECK_STR(seen_runs, "r d e");
    CHECK_INT(probes[2].runs, 0);
    close_floor(&at);
    for (int i = 0; i < 4; i++)
        CHECK_INT(probes[i].frees, 1);
}

static const struct refusal_case {
    sgm_hook_options required, dependent;
    const char *message; /* NULL: allowed */
} refusal_cases[] = {
    {{.background = true}, {.background = false}, "let both run in the same place"},
    {{.background = false},
     {.background = true},
     "runs in the background, but 'probe', which it requires, in"},
    {{.background = true}, {.background = true}, NULL},
    {{.when = {SGM_ITERATION, 2, 0}}, {.when = {SGM_ITERATION, 4, 0}}, NULL},
    {{.when = {SGM_ITERATION, 2, 0}}, {.when = {SGM_ITERATION, 3, 0}}, "which is not due each time"},
    {{.when = {SGM_ITERATION, 4, 0}},
     {.when = {SGM_ITERATION, 2, 0}},
     "requires 'probe' (every 4 iterations)"},
    {{.when = {SGM_ITERATION, 1, 0}}, {.when = {SGM_EPOCH, 1, 0}}, NULL},
    {{.when = {SGM_EPOCH, 1, 0}}, {.when = {SGM_ITERATION, 1, 0}}, "which is not due each time"},
    {{.when = {SGM_START, 1, 0}}, {.when = {SGM_EPOCH, 1, 0}}, "which is not due each time"},
    {{.when = {SGM_STOP, 1, 0}}, {.when = {SGM_STOP, 1, 0}}, NULL},
    {{.when = {SGM_ITERATION, 1, 3}}, {.when = {SGM_ITERATION, 1, 0}}, "which is not due each time"},
};

TEST(what_cannot_be_required_is_refused)
{
    for (size_t i = 0; i < sizeof refusal_cases / sizeof *refusal_cases; i++) {
        const struct refusal_case *c = &refusal_cases[i];
        probe_self probes[2] = {PROBE("r", 1), PROBE("d", 2)};
        sgm_hook_options options = c->required;
        options.struct_size = sizeof options;
        sgm_hook *required = sgm_hook_create_with(&probe_type, &probes[0], &options);
        options = c->dependent;
        options.struct_size = sizeof options;
        options.requires_hooks[0] = required;
        sgm_hook *hook = sgm_hook_create_with(&probe_type, &probes[1], &options);
        floor_of_test at = open_floor();
        if (c->message)
            CHECK_ERROR(sgm__hooks_attach(at.hooks, hook, NULL), c->message);
        else
            CHECK_OK(sgm__hooks_attach(at.hooks, hook, NULL));
        CHECK_INT(sgm__hooks_count(at.hooks), c->message ? 0 : 2);
        sgm_hook_free(hook);
        close_floor(&at);
        CHECK_INT(probes[0].frees, 1);
        CHECK_INT(probes[1].frees, 1);
    }
}

TEST(circles_are_refused)
{
    probe_self probes[3] = {PROBE("a", 1), PROBE("b", 2), PROBE("c", 3)};
    sgm_hook *a = sgm_hook_create(&probe_type, &probes[0]);
    sgm_hook *b = sgm_hook_create(&probe_type, &probes[1], .requires_hooks = {sgm_hook_retain(a)});
    sgm_hook *c = sgm_hook_create(&probe_type, &probes[2], .requires_hooks = {sgm_hook_retain(b)});
    CHECK_ERROR(sgm_hook_require(a, sgm_hook_retain(c)), "break the circle");
    CHECK_ERROR(sgm_hook_require(a, sgm_hook_retain(a)), "break the circle");
    CHECK_ERROR(sgm_hook_require(a, NULL), "is NULL");
    floor_of_test at = open_floor();
    CHECK_OK(sgm__hooks_attach(at.hooks, c, NULL));
    CHECK_ERROR(sgm_hook_require(b, sgm_hook_retain(a)), "attached already");
    close_floor(&at);
    sgm_hook_free(a);
    sgm_hook_free(b);
    sgm_hook_free(c);
    for (int i = 0; i < 3; i++)
        CHECK_INT(probes[i].frees, 1);
}

TEST(a_required_hook_runs_whenever_its_dependents_are_due)
{
    probe_self probes[3] = {PROBE("r", 1), PROBE("d", 2), PROBE("r", 1)};
    sgm_time_step three = sgm_every(3, SGM_ITERATION);
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probes[0], .when = three));
    iterate(&at, 1); /* the dependent counts from here, one after the required one */
    attach(&at, sgm_hook_create(&probe_type, &probes[1], .when = three,
                                .requires_hooks = {sgm_hook_create(&probe_type, &probes[2], .when = three)}));
    iterate(&at, 2);
    CHECK_STR(seen_runs, "r");
    iterate(&at, 1);
    CHECK_STR(seen_runs, "r r d");
    CHECK_INT(probes[2].runs, 0);
    close_floor(&at);
}

/* --- detaching --- */

TEST(detaching_takes_off_what_nobody_needs)
{
    probe_self probes[3] = {PROBE("r", 1), PROBE("d", 2), PROBE("e", 3)};
    sgm_hook *r = sgm_hook_create(&probe_type, &probes[0]);
    sgm_hook *d = sgm_hook_create(&probe_type, &probes[1], .requires_hooks = {sgm_hook_retain(r)});
    sgm_hook *e = sgm_hook_create(&probe_type, &probes[2], .requires_hooks = {sgm_hook_retain(r)});
    floor_of_test at = open_floor();
    CHECK_OK(sgm__hooks_attach(at.hooks, d, NULL));
    CHECK_OK(sgm__hooks_attach(at.hooks, e, NULL));
    CHECK_ERROR(sgm__hooks_detach(at.hooks, r), "is required by 'probe'");
    CHECK_OK(sgm__hooks_detach(at.hooks, d));
    CHECK_INT(sgm__hooks_count(at.hooks), 2);
    CHECK_ERROR(sgm__hooks_detach(at.hooks, d), "not attached to trainer 'mnist'");
    CHECK_OK(sgm__hooks_detach(at.hooks, e));
    CHECK_INT(sgm__hooks_count(at.hooks), 0);
    iterate(&at, 1);
    CHECK_STR(seen_runs, "");
    sgm_hook_free(r);
    sgm_hook_free(d);
    sgm_hook_free(e);
    close_floor(&at);
}

/* Hooks are letters; those of the same letter are equal, and each is followed by what it requires, so that
 * "da" is a new d that requires a new a, which is the program's a if that was attached. */
static const struct detach_case {
    const char *attached[5]; /* by the program, in this order */
    const char *detached;    /* letters, one after the other; '!' in front: that is refused */
    const char *left;        /* what runs then */
} detach_cases[] = {
    {{"a", "b"}, "a", "b"},
    {{"da"}, "d", ""},
    {{"da"}, "!a", "a d"},
    {{"da"}, "!ad", ""},
    {{"da", "ea"}, "d", "a e"},
    {{"da", "ea"}, "d!ae", ""},
    {{"a", "da"}, "d", "a"},
    {{"da", "a"}, "d", "a"},
    {{"a", "da"}, "!a", "a d"},
    {{"a", "da", "ea"}, "dea", ""},
    {{"dba"}, "d", ""}, /* a and b, side by side */
    {{"dba", "eb"}, "d", "b e"},
    {{"dba", "b"}, "d", "b"},
    {{"dba", "eb", "fa"}, "ef", "b a d"},
};

static sgm_hook *probe_of(probe_self *probes, size_t *count, const char *letter)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    probe_self *probe = &probes[(*count)++];
    *probe = (probe_self){.name = names[*letter - 'a'], .alike = *letter};
    return sgm_hook_create(&probe_type, probe);
}

static void attach_row(floor_of_test *at, probe_self *probes, size_t *count, const char *row)
{
    sgm_hook *hook = probe_of(probes, count, row);
    for (const char *required = row + 1; *required; required++)
        CHECK_OK(sgm_hook_require(hook, probe_of(probes, count, required)));
    attach(at, hook);
}

static void detach_letters(floor_of_test *at, const char *letters)
{
    for (; *letters; letters++) {
        bool refused = *letters == '!';
        probe_self probe = {.alike = *(letters += refused)};
        sgm_hook *equal = sgm_hook_create(&probe_type, &probe);
        for (size_t i = 0; i < at->hooks->count; i++)
            if (((probe_self *)sgm_hook_self(at->hooks->entries[i]->hook))->alike == *letters) {
                sgm_hook_free(equal);
                equal = sgm_hook_retain(at->hooks->entries[i]->hook);
                break;
            }
        if (refused)
            CHECK_ERROR(sgm__hooks_detach(at->hooks, equal), "detach that one first");
        else
            CHECK_OK(sgm__hooks_detach(at->hooks, equal));
        sgm_hook_free(equal);
    }
}

TEST(detaching_takes_along_what_nobody_else_needs)
{
    for (size_t i = 0; i < sizeof detach_cases / sizeof *detach_cases; i++) {
        const struct detach_case *c = &detach_cases[i];
        probe_self probes[16];
        size_t count = 0;
        floor_of_test at = open_floor();
        for (size_t j = 0; j < 5 && c->attached[j]; j++)
            attach_row(&at, probes, &count, c->attached[j]);
        detach_letters(&at, c->detached);
        iterate(&at, 1);
        if (strcmp(seen_runs, c->left) != 0)
            TEST_FAIL("case %zu, of %s: left is \"%s\", expected \"%s\"", i, c->attached[0], seen_runs,
                      c->left);
        close_floor(&at);
        for (size_t j = 0; j < count; j++)
            CHECK_INT(probes[j].frees, 1);
    }
}

TEST(what_the_program_attached_stays_when_dependents_go)
{
    probe_self probes[3] = {PROBE("r", 1), PROBE("r", 1), PROBE("d", 2)};
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probes[0]));
    sgm_hook *d = sgm_hook_create(&probe_type, &probes[2],
                                  .requires_hooks = {sgm_hook_create(&probe_type, &probes[1])});
    CHECK_OK(sgm__hooks_attach(at.hooks, d, NULL));
    CHECK_INT(sgm__hooks_count(at.hooks), 2);
    CHECK_OK(sgm__hooks_detach(at.hooks, d));
    CHECK_INT(sgm__hooks_count(at.hooks), 1);
    sgm_hook_free(d);
    close_floor(&at);
}

TEST(an_equal_hook_that_was_attached_for_others_goes_with_them)
{
    probe_self probes[4] = {PROBE("r", 1), PROBE("d", 2), PROBE("r", 1), PROBE("e", 3)};
    sgm_hook *d = sgm_hook_create(&probe_type, &probes[1],
                                  .requires_hooks = {sgm_hook_create(&probe_type, &probes[0])});
    sgm_hook *e = sgm_hook_create(&probe_type, &probes[3],
                                  .requires_hooks = {sgm_hook_create(&probe_type, &probes[2])});
    floor_of_test at = open_floor();
    CHECK_OK(sgm__hooks_attach(at.hooks, d, NULL));
    CHECK_OK(sgm__hooks_attach(at.hooks, e, NULL));
    CHECK_OK(sgm__hooks_detach(at.hooks, d));
    CHECK_OK(sgm__hooks_detach(at.hooks, e));
    CHECK_INT(sgm__hooks_count(at.hooks), 0);
    sgm_hook_free(d);
    sgm_hook_free(e);
    close_floor(&at);
}

/* --- counting --- */

static const struct count_case {
    sgm_time_step when;
    const char *iterations; /* of 1 to 9, at which it runs */
    size_t left;            /* hooks at the end */
} count_cases[] = {
    {{SGM_ITERATION, 0, 0}, "1 2 3 4 5 6 7 8 9", 1},
    {{SGM_ITERATION, 3, 0}, "3 6 9", 1},
    {{SGM_ITERATION, 4, 1}, "4", 0},
    {{SGM_ITERATION, 2, 3}, "2 4 6", 0},
    {{SGM_EPOCH, 1, 0}, "", 1},
};

static sgm_status note_iteration(probe_self *self, sgm_hook_call *call)
{
    char text[16];
    (void)self;
    CHECK_STR(call->trainer, "mnist");
    CHECK_INT(call->scale, SGM_ITERATION);
    CHECK(!call->background);
    snprintf(text, sizeof text, "%d", (int)call->iteration);
    seen_append(seen_log, sizeof seen_log, text);
    return SGM_OK;
}

TEST(hooks_are_counted_and_dead_ones_taken_off)
{
    for (size_t i = 0; i < sizeof count_cases / sizeof *count_cases; i++) {
        probe_self probe = {.name = "a", .act = note_iteration};
        floor_of_test at = open_floor();
        attach(&at, sgm_hook_create(&probe_type, &probe, .when = count_cases[i].when));
        iterate(&at, 9);
        CHECK_STR(seen_log, count_cases[i].iterations);
        CHECK_INT(sgm__hooks_count(at.hooks), count_cases[i].left);
        CHECK_INT(probe.frees, 0); /* a reset would bring it back */
        close_floor(&at);
        CHECK_INT(probe.frees, 1);
    }
}

TEST(each_holder_counts_for_itself)
{
    probe_self probe = {.name = "a"};
    sgm_hook *hook = sgm_hook_create(&probe_type, &probe, .when = sgm_after(3, SGM_ITERATION));
    floor_of_test first = open_floor(), second = open_floor();
    CHECK_OK(sgm__hooks_attach(first.hooks, hook, NULL));
    CHECK_OK(sgm__hooks_attach(second.hooks, hook, NULL));
    sgm_hook_free(hook);
    iterate(&first, 2);
    iterate(&second, 2);
    CHECK_INT(probe.runs, 0);
    iterate(&first, 1);
    CHECK_INT(probe.runs, 1);
    CHECK_INT(sgm__hooks_count(second.hooks), 1);
    iterate(&second, 1);
    CHECK_INT(probe.runs, 2);
    close_floor(&first);
    CHECK_INT(probe.frees, 0);
    close_floor(&second);
    CHECK_INT(probe.frees, 1);
}

TEST(what_died_with_its_dependents_is_gone)
{
    probe_self probes[2] = {PROBE("r", 1), PROBE("d", 2)};
    sgm_time_step once = sgm_after(2, SGM_ITERATION);
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probes[1], .when = once,
                                .requires_hooks = {sgm_hook_create(&probe_type, &probes[0], .when = once)}));
    iterate(&at, 3);
    CHECK_STR(seen_runs, "r d");
    CHECK_INT(sgm__hooks_count(at.hooks), 0);
    close_floor(&at);
}
