/* What a person writes about a run: a note, tags, a star, and whether it is put away (archived).
 *
 * It is kept in the run's own folder, in notes.json, so that it goes where the folder goes. Members of that
 * file that this program does not know stay in it. The file is replaced by one whole new one. */
#include "monitors/runs/runs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEMPORARY ".notes.json.new"
/* Bytes of the file, of a note, of a tag; tags of a run. */
#define LONGEST_FILE ((size_t)1 << 20)
#define LONGEST_NOTE 32768
#define LONGEST_TAG 60
#define MAXIMUM_TAGS 32

/* --- what there is --- */

/* The file as an object: an empty one if there is none. NULL, with an error: it is something else. */
static json_t *read_file(int folder, const char *name)
{
    char *text = NULL;
    size_t length = 0;
    if (sgm__runs_read(folder, SGM__RUNS_NOTES_FILE, LONGEST_FILE, &text, &length) != SGM_OK)
        return NULL;
    json_t *file = text != NULL ? json_loadb(text, length, 0, NULL) : json_object();
    sgm__free(text);
    if (json_is_object(file))
        return file;
    json_decref(file);
    sgm_fail(SGM_ERROR_FORMAT,
             SGM__RUNS_NOTES_FILE " of '%.200s' is no JSON object: mend or remove it in the run's folder",
             name);
    return NULL;
}

/* A file that cannot be read says nothing; who writes to it is told. */
bool sgm__run_read_notes(sgm__run *run, int folder)
{
    struct stat info = {0};
    int file = sgm__runs_open_file(folder, SGM__RUNS_NOTES_FILE, &info);
    bool same = sgm__run_is_same(&run->notes_mark, &info);
    if (file >= 0)
        close(file);
    if (same)
        return false;
    json_decref(run->notes);
    run->notes = read_file(folder, run->name);
    return true;
}

static json_t *texts_of(const json_t *list)
{
    json_t *texts = json_array(), *tag;
    size_t i;
    json_array_foreach(list, i, tag)
    {
        if (json_is_string(tag))
            json_array_append(texts, tag);
    }
    return texts;
}

void sgm__run_describe_notes(const sgm__run *run, json_t *object)
{
    const char *note = json_string_value(json_object_get(run->notes, "note"));
    json_object_set_new(object, "note", json_string(note != NULL ? note : ""));
    json_object_set_new(object, "tags", texts_of(json_object_get(run->notes, "tags")));
    json_object_set_new(object, "starred",
                        json_boolean(json_is_true(json_object_get(run->notes, "starred"))));
    json_object_set_new(object, "archived",
                        json_boolean(json_is_true(json_object_get(run->notes, "archived"))));
}

/* --- what is to be there --- */

static sgm_status check_tag(const json_t *tag)
{
    const char *text = json_string_value(tag);
    size_t length = json_string_length(tag);
    bool good = text != NULL && length > 0 && length <= LONGEST_TAG && strlen(text) == length;
    for (const char *c = text; good && *c != '\0'; c++)
        good = (unsigned char)*c > ' ' && *c != 127 && *c != ',';
    return good ? SGM_OK
                : sgm_fail(SGM_ERROR_ARGUMENT,
                           "a tag is a word of 1 to %d bytes without blanks and commas, not '%.80s'",
                           LONGEST_TAG, text != NULL ? text : "");
}

static sgm_status check_tags(const json_t *tags)
{
    size_t i;
    const json_t *tag;
    if (!json_is_array(tags) || json_array_size(tags) > MAXIMUM_TAGS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'tags' is a list of %d texts at most", MAXIMUM_TAGS);
    json_array_foreach(tags, i, tag) SGM_TRY(check_tag(tag));
    return SGM_OK;
}

static sgm_status check_member(const char *key, const json_t *value)
{
    if (strcmp(key, "tags") == 0)
        return check_tags(value);
    if (strcmp(key, "note") == 0)
        return json_is_string(value) && json_string_length(value) <= LONGEST_NOTE
                   ? SGM_OK
                   : sgm_fail(SGM_ERROR_ARGUMENT, "'note' is a text of %d bytes at most", LONGEST_NOTE);
    if (strcmp(key, "starred") == 0 || strcmp(key, "archived") == 0)
        return json_is_boolean(value) ? SGM_OK : sgm_fail(SGM_ERROR_ARGUMENT, "'%s' is true or false", key);
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "a run has no '%.60s' to be noted: it has note, tags, starred and archived", key);
}

/* Writes beside the file, then renames, all within the open folder. */
static sgm_status write_file(int folder, const char *name, const char *text)
{
    unlinkat(folder, TEMPORARY, 0); /* of a program that was killed meanwhile */
    int file = openat(folder, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    bool good = file >= 0 && sgm__write_fully(file, text, strlen(text)) && fsync(file) == 0;
    if (file >= 0)
        good &= close(file) == 0;
    if (good && renameat(folder, TEMPORARY, folder, SGM__RUNS_NOTES_FILE) == 0)
        return SGM_OK;
    int reason = errno;
    if (file >= 0)
        unlinkat(folder, TEMPORARY, 0);
    return sgm_fail(SGM_ERROR_FILE, "the notes of '%.200s' cannot be written: %s", name,
                    sgm__errno_text(reason));
}

/* Sets the members that `wanted` has, all but "name"; what they were goes into `before`. */
static sgm_status set_members(json_t *file, json_t *wanted, json_t *before)
{
    const char *key;
    json_t *value;
    json_object_foreach(wanted, key, value) if (strcmp(key, "name") != 0)
    {
        SGM_TRY(check_member(key, value));
        json_t *was = json_object_get(file, key);
        json_object_set_new(before, key,
                            was != NULL             ? json_incref(was)
                            : json_is_string(value) ? json_string("")
                            : json_is_array(value)  ? json_array()
                                                    : json_false());
        json_object_set(file, key, value);
    }
    return json_object_size(before) > 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "nothing is to be noted: expected note, tags, starred or archived");
}

sgm_status sgm__runs_note(sgm__runs *runs, const char *name, json_t *wanted, json_t *before)
{
    const char *leaf;
    SGM_TRY(sgm__runs_scan(runs));
    if (sgm__runs_find(runs, name) == NULL)
        return sgm__last_failure();
    int parent = sgm__runs_open_parent(runs, name, &leaf);
    int folder = parent >= 0 ? sgm__runs_open_folder(parent, leaf) : -1;
    if (parent >= 0)
        close(parent);
    if (folder < 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "there is no run '%.200s' any more", name);
    json_t *file = read_file(folder, name);
    sgm_status status = file != NULL ? set_members(file, wanted, before) : sgm__last_failure();
    char *text = status == SGM_OK ? json_dumps(file, JSON_INDENT(1)) : NULL;
    if (status == SGM_OK)
        status = text != NULL ? write_file(folder, name, text) : sgm__fail_memory(LONGEST_NOTE);
    free(text);
    json_decref(file);
    close(folder);
    return status;
}
