/* The last and the best checkpoints: which stay, also over a crash, and what they leave alone. */
#include "waves.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static void new_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/sigma-kept-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static const char *path_of(const char *file)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return path;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in the folder that begin with `prefix`, sorted, each with a space behind it. */
static const char *files_like(const char *prefix)
{
    static char text[2048];
    char *names[64];
    int count = 0;
    DIR *dir = opendir(folder);
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && count < 64)
            names[count++] = strdup(entry->d_name);
    closedir(dir);
    qsort(names, (size_t)count, sizeof *names, compare_names);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s ", names[i]);
        free(names[i]);
    }
    return text;
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_INT(system(command), 0);
}

TEST(the_last_ones_stay)
{
    new_folder();
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_last_checkpoints(2, sgm_every(3, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3, .folder = folder)); /* 12 iterations */
    CHECK_STR(files_like("last"),
              "last-epoch2-iteration12.safetensors last-epoch2-iteration9.safetensors last.json ");
    free_wave_trainer(made);

    wave_trainer other = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_load(other.trainer, path_of("last-epoch2-iteration9.safetensors")));
    CHECK_INT(other.trainer->position.iteration, 9);
    free_wave_trainer(other);
    remove_folder();
}

/* Puts values where a measure of validation would be: 5, 1, 4, 1, 3, 2, ... */
static sgm_status pretend(void *self, sgm_hook_call *call)
{
    static const double values[] = {5, 1, 4, 1, 3, NAN, 2, 0.5};
    (void)self;
    return sgm_hook_share(call, "measure", sgm_number_content(values[(call->iteration - 1) % 8]));
}
static const sgm_hook_type pretending = {.api = SGM_HOOK_API, .name = "pretend", .invoke = pretend};

static wave_trainer pretending_trainer(sgm_extremum extremum)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&pretending, NULL, .priority = -1)));
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_best_checkpoints(3, "shared.measure", extremum,
                                                                sgm_every(1, SGM_ITERATION), .name = "b")));
    return made;
}

TEST(the_best_ones_stay_and_of_equal_ones_the_first)
{
    new_folder();
    wave_trainer made = pretending_trainer(SGM_MINIMUM);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 7, .folder = folder));
    CHECK_STR(files_like("b"), "b-epoch0-iteration2-1.safetensors b-epoch0-iteration4-1.safetensors "
                               "b-epoch1-iteration7-2.safetensors b.json ");
    free_wave_trainer(made);
    remove_folder();

    new_folder();
    made = pretending_trainer(SGM_MAXIMUM);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 7, .folder = folder));
    CHECK_STR(files_like("b"), "b-epoch0-iteration1-5.safetensors b-epoch0-iteration3-4.safetensors "
                               "b-epoch1-iteration5-3.safetensors b.json ");
    free_wave_trainer(made);
    remove_folder();
}

static bool die_at(void *user, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == *(int *)user)
        _exit(9);
    return true;
}

/* Dies between the checkpoint of iteration 8 and the end, at several places; the files at the end are those
 * of a run that was left in peace. */
TEST(a_crash_leaves_neither_orphans_nor_gaps)
{
    for (int death = 9; death <= 15; death += 2) {
        new_folder();
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            wave_trainer made = pretending_trainer(SGM_MINIMUM);
            sgm_trainer_add_hook(made.trainer, sgm_last_checkpoints(2, sgm_every(1, SGM_ITERATION)));
            sgm_trainer_on_progress(made.trainer, die_at, &death);
            sgm_trainer_run(made.trainer, .epochs = 6, .checkpoint_every = 2, .folder = folder);
            _exit(1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_INT(WEXITSTATUS(status), 9);
        wave_trainer made = pretending_trainer(SGM_MINIMUM);
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_last_checkpoints(2, sgm_every(1, SGM_ITERATION))));
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 16, .folder = folder, .resume = true));
        CHECK_STR(files_like("b"), "b-epoch0-iteration2-1.safetensors b-epoch1-iteration8-0.5.safetensors "
                                   "b-epoch3-iteration16-0.5.safetensors b.json ");
        CHECK_STR(files_like("last"),
                  "last-epoch3-iteration15.safetensors last-epoch3-iteration16.safetensors last.json ");
        free_wave_trainer(made);
        remove_folder();
    }
}

TEST(what_others_wrote_is_left_alone)
{
    new_folder();
    const char *other = "last-epoch0-iteration2.safetensors";
    FILE *file = fopen(path_of(other), "w");
    CHECK(file != NULL);
    fputs("mine", file);
    fclose(file);
    file = fopen(path_of("last-words.safetensors"), "w");
    CHECK(file != NULL);
    fclose(file);
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_last_checkpoints(1, sgm_every(1, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4, .folder = folder));
    CHECK_STR(files_like("last"), "last-epoch0-iteration2.safetensors last-epoch0-iteration4.safetensors "
                                  "last-words.safetensors last.json ");
    char text[8] = "";
    file = fopen(path_of(other), "r");
    CHECK(file != NULL && fgets(text, sizeof text, file) != NULL);
    fclose(file);
    CHECK_STR(text, "mine");
    free_wave_trainer(made);
    remove_folder();
}

/* A list that was tampered with must not remove anything. */
TEST(a_list_of_other_files_is_refused)
{
    new_folder();
    FILE *file = fopen(path_of("last.json"), "w");
    CHECK(file != NULL);
    fputs("[{\"file\": \"last-/../checkpoint.safetensors\"}, {\"file\": \"checkpoint.safetensors\"}]", file);
    fclose(file);
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_last_checkpoints(1, sgm_every(1, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4, .folder = folder));
    CHECK_STR(files_like("last"), "last.json ");
    CHECK_STR(files_like("check"), "checkpoint.safetensors ");
    free_wave_trainer(made);
    remove_folder();
}

/* A crash while a checkpoint was written: the list has it, the folder a part of it. */
TEST(what_a_crash_cut_off_is_cleared_away)
{
    new_folder();
    FILE *file = fopen(path_of("last.json"), "w");
    CHECK(file != NULL);
    fputs("[{\"file\": \"last-epoch7-iteration70.safetensors\"}]", file);
    fclose(file);
    file = fopen(path_of("last-epoch7-iteration70.safetensors.tmp"), "w");
    CHECK(file != NULL);
    fclose(file);
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_last_checkpoints(2, sgm_every(4, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4, .folder = folder));
    CHECK_STR(files_like("last"), "last-epoch0-iteration4.safetensors last.json ");
    free_wave_trainer(made);
    remove_folder();
}

TEST(wrong_requests_are_refused)
{
    CHECK_ERROR(sgm_last_checkpoints(0, sgm_every(1, SGM_EPOCH)), "1 to 10000");
    CHECK_ERROR(sgm_last_checkpoints(1, sgm_every(1, SGM_EPOCH), .name = "../x"), "../x");
    CHECK_ERROR(sgm_best_checkpoints(1, "", SGM_MINIMUM, sgm_every(1, SGM_EPOCH)), "identifier");
}
