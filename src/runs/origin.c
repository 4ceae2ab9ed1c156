/* Where a run begins that goes on from another training: see origin.h. */
#include "runs/origin.h"
#include "persistence/bundle.h"
#include "runs/checkpoints.h"
#include "trainer/trainer.h"

#include <sigma/training.h>

static char *path_in(const char *folder)
{
    return sgm__format("%s/" SGM__ORIGIN_NAME ".safetensors", folder);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

json_t *sgm__branch_values(const sgm__branch_request *request)
{
    json_t *set = json_object();
    for (size_t i = 0; i < request->count; i++)
        json_object_set_new(set, request->identifiers[i], json_string(request->values[i]));
    return set;
}

sgm_status sgm__origin_note(sgm_trainer *trainer, const sgm_trainer *from, const sgm__branch_request *request)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    json_decref(journal->branched);
    journal->branched = json_pack("{s:s, s:s*, s:s, s:s, s:o}", "who", request->who, "reason",
                                  request->reason, "from", sgm_trainer_name(from), "checkpoint",
                                  file_name(request->checkpoint), "set", sgm__branch_values(request));
    return journal->branched != NULL ? SGM_OK : sgm__fail_memory(128);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "?";
}

char *sgm__origin_told(const json_t *branched)
{
    sgm__text told = {0};
    const char *identifier, *before = ", with ";
    json_t *value;
    sgm__text_append(&told, "began as a branch of %s, from %s", text_of(branched, "from"),
                     text_of(branched, "checkpoint"));
    json_object_foreach(json_object_get(branched, "set"), identifier, value)
    {
        sgm__text_append(&told, "%s%s = %s", before, identifier,
                         json_is_string(value) ? json_string_value(value) : "?");
        before = ", ";
    }
    return sgm__text_take(&told);
}

/* A training that begins at its beginning is made again from its description. */
bool sgm__origin_is_elsewhere(const sgm_trainer *trainer)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    return position->epoch > 0 || position->iteration > 0 || sgm__journal_of(trainer)->branched != NULL;
}

/* Saves the file, and reads its checksum. */
static sgm_status save(sgm_trainer *trainer, const char *path, char checksum[SGM__CHECKSUM_DIGITS + 1])
{
    SGM_TRY(sgm_trainer_save(trainer, path));
    return sgm__checksum_of_file(path, checksum) ? SGM_OK
                                                 : sgm_fail(SGM_ERROR_FILE, "cannot read '%s' again", path);
}

sgm_status sgm__origin_keep(sgm_trainer *trainer, json_t *line)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    char checksum[SGM__CHECKSUM_DIGITS + 1] = "";
    if (!sgm__origin_is_elsewhere(trainer))
        return SGM_OK;
    char *path = path_in(journal->folder);
    sgm_status status = path != NULL ? save(trainer, path, checksum) : SGM_ERROR_MEMORY;
    sgm__free(path);
    SGM_TRY(status);
    json_object_set_new(line, "name", json_string(SGM__ORIGIN_NAME));
    json_object_set_new(line, "of", json_string(checksum));
    if (journal->branched != NULL)
        json_object_set(line, "branched", journal->branched);
    return SGM_OK;
}

/* Compares the file with the line before anything of the trainer changes. */
static sgm_status check(const char *path, const char *folder, const sgm__journal_entry *first)
{
    char checksum[SGM__CHECKSUM_DIGITS + 1] = "";
    if (strcmp(first->text, SGM__ORIGIN_NAME) != 0)
        return sgm_fail(
            SGM_ERROR_STATE,
            "'%s' went on from another training after %lld iterations, and does not keep the state "
            "that it began with; replay the run that it came from",
            folder, (long long)first->iteration);
    if (sgm__checksum_of_file(path, checksum) && strcmp(checksum, first->checksum) == 0)
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_STATE,
        "'%s', the state that the run began with, is gone, or another one by now; put it back, or "
        "replay the run that it came from",
        path);
}

sgm_status sgm__origin_load(sgm_trainer *trainer, const char *folder, const sgm__journal_entry *first)
{
    if (first->epoch == 0 && first->iteration == 0 && strcmp(first->text, SGM__ORIGIN_NAME) != 0)
        return SGM_OK;
    char *path = path_in(folder);
    sgm_status status = path != NULL ? check(path, folder, first) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm_trainer_load_parts(trainer, path, .parts = SGM_PART_EVERYTHING);
    sgm__free(path);
    return status;
}
