/* Checkpoints and folders of runs. */
#include "cli.h"

#include <sys/stat.h>

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* The configuration lies beside the checkpoint; a checkpoint alone knows its network. */
static sgm_status find_config(saved *s, const char *path)
{
    const char *slash = strrchr(s->checkpoint, '/');
    char *folder = slash != NULL ? sgm__strndup(s->checkpoint, (size_t)(slash - s->checkpoint)) : NULL;
    char *file = sgm__format("%s%sconfig.yaml", folder != NULL ? folder : "", folder != NULL ? "/" : "");
    sgm__free(folder);
    if (file == NULL)
        return sgm_last_status();
    sgm_status status = SGM_OK;
    if (sgm__file_exists(file)) {
        status = config_load(&s->c, file, NULL, 0);
        s->has_config = status == SGM_OK;
    } else {
        char *line = sgm__format("network=%s", s->network);
        const char *overrides[] = {line};
        status = line != NULL ? config_parse(&s->c, path, "{}", 2, overrides, 1) : sgm_last_status();
        sgm__free(line);
    }
    sgm__free(file);
    return status;
}

static sgm_status open_all(saved *s, const char *path)
{
    s->checkpoint = is_folder(path) ? sgm__format("%s/checkpoint.safetensors", path) : sgm__strdup(path);
    if (s->checkpoint == NULL)
        return sgm_last_status();
    s->network = sgm_checkpoint_network(s->checkpoint);
    if (s->network == NULL)
        return sgm_last_status();
    SGM_TRY(find_config(s, path));
    s->env = experiment_env(&s->c);
    s->trainer = s->env != NULL ? experiment_trainer(s->env, &s->c) : NULL;
    if (s->trainer == NULL)
        return sgm_last_status();
    return sgm_trainer_load(s->trainer, s->checkpoint);
}

sgm_status saved_open(saved *s, const char *path)
{
    memset(s, 0, sizeof *s);
    sgm_status status = open_all(s, path);
    if (status != SGM_OK)
        saved_close(s);
    return status;
}

void saved_close(saved *s)
{
    sgm_env_free(s->env);
    config_free(&s->c);
    sgm_string_free(s->network);
    sgm__free(s->checkpoint);
    memset(s, 0, sizeof *s);
}

sgm_dataset *saved_dataset(const saved *s, const char *name)
{
    if (s->has_config) {
        if (strcmp(name, "training") == 0)
            return experiment_dataset(&s->c.data.training, name);
        if (strcmp(name, "validation") == 0)
            return experiment_dataset(&s->c.data.validation, name);
        if (strcmp(name, "test") == 0)
            return experiment_dataset(&s->c.data.test, name);
    }
    return sgm_dataset_open(name);
}
