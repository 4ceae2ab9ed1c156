/* Which files the examples are that `sigma eval` measures, so that its worst mistakes can be looked at.
 *
 * The list of files is opened once more; its order is that of the examples, of which a part of a split leaves
 * some out. */
#include "config/files.h"
#include "data/table/pipeline.h"
#include "eval/eval.h"

#include <math.h>

/* The examples are in the order of the files, and all of them. */
static bool keeps_order(const data_config *data)
{
    return !data->shuffled && isnan(data->begin) && isnan(data->share);
}

const data_config *eval_data_of(const saved *s, const char *name)
{
    const data_config *parts[] = {&s->c.data.training, &s->c.data.validation, &s->c.data.test};
    static const char *const names[] = {"training", "validation", "test"};
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0)
            return parts[i];
    return NULL;
}

sgm_status eval_names_open(eval_names *n, const saved *s, const char *name, const char *path)
{
    const data_group *group = &s->c.data;
    *n = (eval_names){.files = NULL};
    if (group->pipeline == NULL || strcmp(sgm_pipeline_kind(group->pipeline), "table") == 0 ||
        group->pipeline->kind->target_shape != NULL)
        return SGM_OK;
    data_config given;
    const data_config *data = eval_data_of(s, name);
    if (path != NULL) {
        given = data_config_of_files(group->pipeline, path);
        given.begin = given.share = NAN;
        data = &given;
    } else if (data != NULL && group->parts != NULL &&
               (data == &group->training || data_config_is_empty(data))) {
        n->split = group->parts;
        split_part_of(group, data, &n->part, &n->others);
        data = &group->training;
    }
    if (data == NULL || data_config_files(data) == NULL || !keeps_order(data))
        return SGM_OK;
    n->files = data_config_open_files(data);
    return n->files != NULL ? SGM_OK : sgm__last_failure();
}

const char *eval_name_of(const eval_names *n, int64_t example)
{
    int64_t count = n->files != NULL ? sgm_files_count(n->files) : 0;
    for (int64_t file = 0; file < count; file++) {
        bool is_measured = n->split == NULL || (sgm_split_part_of(n->split, file) == n->part) != n->others;
        if (is_measured && example-- == 0)
            return sgm_files_path(n->files, file);
    }
    return NULL;
}

void eval_names_close(eval_names *n)
{
    sgm_files_free(n->files);
}
