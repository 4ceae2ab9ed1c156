/* Monitors of programs: what they are told and when, and what is refused. */
#include "base/base.h"
#include "base/folder.h"
#include "environment_test.h"

#include <sigma/monitor.h>

static sgm__text notes;
static bool refuses_start, wants_end;

static sgm_status note_join(void *self, sgm_env *env)
{
    sgm__text_append(&notes, "%s joins %s;", (const char *)self, sgm_env_name(env));
    return SGM_OK;
}

static sgm_status note_attach(void *self, sgm_trainer *trainer)
{
    (void)self;
    sgm__text_append(&notes, " +%s", sgm_trainer_name(trainer));
    return SGM_OK;
}

static void note_detach(void *self, sgm_trainer *trainer)
{
    (void)self;
    sgm__text_append(&notes, " -%s", sgm_trainer_name(trainer));
}

static sgm_status note_start(void *self)
{
    (void)self;
    sgm__text_append(&notes, " start");
    return refuses_start ? sgm_fail(SGM_ERROR_FILE, "its file cannot be opened") : SGM_OK;
}

static bool note_progress(void *self, const sgm_training_progress *progress)
{
    (void)self;
    if (progress->kind == SGM_PROGRESS_EPOCH)
        sgm__text_append(&notes, " %s%lld", progress->trainer, (long long)progress->epoch);
    return !wants_end;
}

static void note_finish(void *self)
{
    (void)self;
    sgm__text_append(&notes, " finish");
}

static void note_free(void *self)
{
    sgm__text_append(&notes, " free");
    sgm__free(self);
}

static void *open_noting(const char *argument)
{
    if (strcmp(argument, "bad") == 0) {
        sgm_fail(SGM_ERROR_ARGUMENT, "expected another argument");
        return NULL;
    }
    return sgm__strdup(argument[0] != '\0' ? argument : "nobody");
}

static const sgm_monitor_type noting = {.api = SGM_MONITOR_API,
                                        .name = "noting",
                                        .doc = "notes what it is told",
                                        .open = open_noting,
                                        .join = note_join,
                                        .attach = note_attach,
                                        .detach = note_detach,
                                        .start = note_start,
                                        .progress = note_progress,
                                        .finish = note_finish,
                                        .free = note_free};

static void begin(void)
{
    sgm__text_free(&notes);
    refuses_start = wants_end = false;
}

TEST(it_is_told_of_all_in_order)
{
    begin();
    sgm_env *env = sgm_env_create("home", .handler = "reference");
    line_trainer(env, "first");
    CHECK_OK(sgm_env_add_monitor(env, sgm_monitor_create(&noting, sgm__strdup("mine"))));
    sgm_trainer *second = line_trainer(env, "second");
    CHECK_OK(sgm_env_remove_trainer(env, second));
    CHECK_OK(sgm_env_run(env, .epochs = 2));
    CHECK_OK(sgm_env_run(env, .epochs = 3));
    sgm_env_free(env);
    CHECK_STR(notes.data,
              "mine joins home; +first +second -second start first1 first2 first3 finish -first free");
}

/* Functions that are left out are not called. */
TEST(a_table_may_have_one_function)
{
    begin();
    const sgm_monitor_type little = {.api = SGM_MONITOR_API, .name = "little", .progress = note_progress};
    sgm_env *env = sgm_env_create("home", .handler = "reference");
    line_trainer(env, "first");
    CHECK_OK(sgm_env_add_monitor(env, sgm_monitor_create(&little, NULL)));
    CHECK_OK(sgm_env_run(env, .epochs = 2));
    sgm_env_free(env);
    CHECK_STR(notes.data, " first1 first2");
}

TEST(it_may_end_a_run_and_refuse_one)
{
    begin();
    wants_end = true;
    sgm_env *env = sgm_env_create("home", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "first");
    CHECK_OK(sgm_env_add_monitor(env, sgm_monitor_create(&noting, sgm__strdup("mine"))));
    CHECK_ERROR(sgm_env_run(env, .epochs = 5), "training was stopped after iteration");
    int64_t epochs;
    CHECK_OK(sgm_registry_get_integer(sgm_trainer_registry(trainer), "epoch", &epochs));
    CHECK(epochs < 5);
    sgm_env_free(env);

    begin();
    refuses_start = true;
    env = sgm_env_create("home", .handler = "reference");
    line_trainer(env, "first");
    CHECK_OK(sgm_env_add_monitor(env, sgm_monitor_create(&noting, sgm__strdup("mine"))));
    CHECK_ERROR(sgm_env_run(env, .epochs = 5), "its file cannot be opened");
    sgm_env_free(env);
    CHECK_STR(notes.data, "mine joins home; +first start finish -first free");
}

/* Whoever watches changes nothing: the checkpoints are the same, byte for byte. */
TEST(a_watched_run_is_the_same)
{
    char first[160];
    begin();
    open_folder();
    for (int watched = 0; watched < 2; watched++) {
        sgm_env *env = sgm_env_create("home", .handler = "reference", .seed = 3);
        line_trainer(env, "first");
        if (watched)
            CHECK_OK(sgm_env_add_monitor(env, sgm_monitor_create(&noting, sgm__strdup("mine"))));
        CHECK_OK(sgm_env_run(env, .epochs = 2, .folder = in_folder(watched ? "b" : "a")));
        sgm_env_free(env);
    }
    snprintf(first, sizeof first, "%s", in_folder("a/checkpoint.safetensors"));
    char *one = NULL, *other = NULL;
    size_t size, same;
    CHECK_OK(sgm__file_read(first, 1 << 20, &one, &size));
    CHECK_OK(sgm__file_read(in_folder("b/checkpoint.safetensors"), 1 << 20, &other, &same));
    CHECK_INT(size, same);
    CHECK_INT(memcmp(one, other, size), 0);
    sgm__free(one);
    sgm__free(other);
    close_folder();
}

TEST(kinds_are_found_by_name)
{
    begin();
    CHECK(sgm_monitor_by_name("noting") == NULL);
    CHECK_STR(sgm_last_error(),
              "there is no monitor 'noting'; plug-ins bring them, and none is loaded that does");
    CHECK_OK(sgm_register_monitor(&noting));
    CHECK_OK(sgm_register_monitor(&noting));
    CHECK(sgm_monitor_type_at(0) == &noting);
    CHECK(sgm_monitor_type_at(1) == NULL);
    CHECK(sgm_monitor_by_name("noting2:x") == NULL);
    CHECK_STR(sgm_last_error(), "there is no monitor 'noting2'; there are: noting");
    CHECK(sgm_monitor_by_name("noting:bad") == NULL);
    CHECK_STR(sgm_last_error(), "monitor 'noting': expected another argument");
    sgm_env *env = sgm_env_create("home", .handler = "reference");
    CHECK_OK(sgm_env_add_monitor(env, sgm_monitor_by_name("noting:a:b")));
    CHECK_OK(sgm_env_add_monitor(env, sgm_monitor_by_name("noting")));
    sgm_env_free(env);
    CHECK_STR(notes.data, "a:b joins home;nobody joins home; finish finish free free");
}

TEST(tables_that_are_wrong_are_refused)
{
    begin();
    sgm_monitor_type wrong = noting;
    wrong.api = 7;
    CHECK_ERROR(sgm_register_monitor(&wrong),
                "monitor 'noting' has the API number 7, this library wants 1: compile it again");
    wrong = noting;
    wrong.name = "a b";
    CHECK_ERROR(sgm_register_monitor(&wrong),
                "a monitor cannot be called 'a b': expected at most 40 letters");
    CHECK(sgm_monitor_create(&wrong, sgm__strdup("self")) == NULL);
    CHECK_STR(notes.data, " free"); /* what was its own is let go */
    wrong.name = "closed";
    wrong.open = NULL;
    CHECK_ERROR(sgm_register_monitor(&wrong),
                "monitor 'closed' has no open(), by which it is made of a text");
    CHECK_ERROR(sgm_register_monitor(NULL), "sgm_register_monitor wants a table with a name");
    wrong = noting;
    wrong.doc = "another table";
    CHECK_OK(sgm_register_monitor(&noting));
    CHECK_ERROR(sgm_register_monitor(&wrong), "there is a monitor 'noting' already; choose another name");
    sgm_monitor *alone = sgm_monitor_create(&noting, sgm__strdup("alone"));
    sgm_monitor_free(alone);
    CHECK_STR(notes.data, " free free");
}
