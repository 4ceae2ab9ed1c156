/* Resources: files of runs, by addresses such as sigma://run/letters/digits/log.txt. Only files of this table
 * can be read, and only of runs that the folder has. */
#include "journal/run_lines.h"
#include "mcp/tools.h"
#include "text/web_address.h"

#include <unistd.h>

#define BEGINNING "sigma://run/"
#define PAGE 200                       /* resources in one answer */
#define LONGEST_TEXT ((size_t)1 << 18) /* bytes of a file in one answer, the newest */
#define NOT_FOUND (-32002)             /* in revisions with a handshake */

typedef struct resource_file {
    const char *name, *type, *doc;
} resource_file;
static const resource_file files[] = {
    {"config.yaml", "application/yaml", "the configuration of the run"},
    {SGM__METRICS_FILE, "application/x-ndjson", "a line of metrics for each epoch"},
    {SGM__JOURNAL_FILE, "application/x-ndjson", "what happened to the run: beginnings, checkpoints, changes"},
    {SGM__LOG_FILE, "text/plain", "messages"},
};
#define FILE_COUNT (sizeof files / sizeof *files)

/* --- addresses --- */

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-_.~/", c) != NULL);
}

/* The address of a run's file; sgm__free. */
static char *address_of(const char *run, const char *file)
{
    sgm__text text = {0};
    sgm__text_append(&text, BEGINNING);
    for (const char *c = run; *c != '\0'; c++)
        sgm__text_append(&text, is_unreserved(*c) ? "%c" : "%%%02X", (unsigned char)*c);
    sgm__text_append(&text, "/%s", file);
    return sgm__text_take(&text);
}

/* Takes an address apart; *run: to be freed with sgm__free. NULL: it is none of ours. */
static const resource_file *parts_of(const char *address, char **run)
{
    *run = NULL;
    if (strncmp(address, BEGINNING, strlen(BEGINNING)) != 0)
        return NULL;
    char *name = sgm__strdup(address + strlen(BEGINNING)), *slash = name != NULL ? strrchr(name, '/') : NULL;
    if (slash != NULL && slash != name) {
        *slash = '\0';
        for (size_t i = 0; i < FILE_COUNT; i++)
            if (strcmp(files[i].name, slash + 1) == 0 && sgm__percent_decode(name)) {
                *run = name;
                return &files[i];
            }
    }
    sgm__free(name);
    return NULL;
}

/* --- the list --- */

static json_t *describe(const sgm__run *run, const resource_file *file, off_t size)
{
    char *address = address_of(run->name, file->name), *name = sgm__format("%s/%s", run->name, file->name);
    json_t *item =
        json_pack("{s:o, s:o, s:s, s:s, s:I}", "uri", mcp_json_text(address), "name", mcp_json_text(name),
                  "description", file->doc, "mimeType", file->type, "size", (json_int_t)size);
    sgm__free(address);
    sgm__free(name);
    return item;
}

/* The files of one run, of which those before number `first` are passed over. *number counts all. */
static void add_files(mcp_folder *folder, const char *name, int64_t first, int64_t *number, json_t *list)
{
    mcp_run run;
    bool there = mcp_run_again(folder, name, &run) == SGM_OK;
    for (size_t i = 0; there && i < FILE_COUNT; i++) {
        struct stat info;
        int file = sgm__runs_open_file(run.descriptor, files[i].name, &info);
        if (file < 0)
            continue;
        close(file);
        if ((*number)++ >= first && json_array_size(list) <= PAGE)
            json_array_append_new(list, describe(run.run, &files[i], info.st_size));
    }
    mcp_run_close(&run);
    sgm_clear_error(); /* of a run that has gone */
}

/* A cursor is the number of the first resource of a page. */
json_t *mcp_resources_list(mcp_server *server, mcp_request *request, mcp_failure *failure)
{
    const json_t *cursor = json_object_get(request->params, "cursor");
    int64_t first = 0, number = 0;
    if (cursor != NULL &&
        (!json_is_string(cursor) || !sgm__parse_int64(json_string_value(cursor), &first) || first < 1))
        return mcp_refuse(failure, RPC_INVALID_PARAMETERS, "resources/list: this 'cursor' is none of ours");
    sgm__runs *runs = server->folder.runs;
    if (mcp_folder_look(&server->folder) != SGM_OK)
        return NULL;
    json_t *list = json_array(), *result = json_pack("{s:O}", "resources", list);
    for (size_t i = 0; i < runs->count && json_array_size(list) <= PAGE; i++)
        add_files(&server->folder, runs->runs[i]->name, first, &number, list);
    if (json_array_size(list) > PAGE) {
        char next[24];
        json_array_remove(list, PAGE);
        snprintf(next, sizeof next, "%lld", (long long)(first + PAGE));
        json_object_set_new(result, "nextCursor", json_string(next));
    }
    json_decref(list);
    return result;
}

json_t *mcp_resources_templates(mcp_server *server, mcp_request *request, mcp_failure *failure)
{
    (void)server, (void)request, (void)failure;
    json_t *list = json_array();
    for (size_t i = 0; i < FILE_COUNT; i++) {
        char *address = sgm__format(BEGINNING "{+run}/%s", files[i].name);
        json_array_append_new(list, json_pack("{s:o, s:s, s:s, s:s}", "uriTemplate", mcp_json_text(address),
                                              "name", files[i].name, "description", files[i].doc, "mimeType",
                                              files[i].type));
        sgm__free(address);
    }
    return json_pack("{s:o}", "resourceTemplates", list);
}

/* --- reading --- */

/* The end of the file, from the beginning of a line on if it is cut. */
static sgm_status read_file(mcp_folder *folder, const char *name, const resource_file *file, json_t **text)
{
    mcp_run run;
    char *bytes = NULL;
    size_t length = 0;
    sgm_status status = mcp_run_open(folder, name, &run);
    if (status == SGM_OK)
        status = sgm__runs_read(run.descriptor, file->name, LONGEST_TEXT, &bytes, &length);
    if (status == SGM_OK && bytes == NULL)
        status = sgm_fail(SGM_ERROR_NOT_FOUND, "run '%s' has no file '%s'", name, file->name);
    if (status == SGM_OK) {
        const char *line = length == LONGEST_TEXT ? memchr(bytes, '\n', length) : NULL;
        *text = mcp_json_text(line != NULL ? line + 1 : bytes);
    }
    sgm__free(bytes);
    mcp_run_close(&run);
    return status;
}

json_t *mcp_resources_read(mcp_server *server, mcp_request *request, mcp_failure *failure)
{
    const char *address = json_string_value(json_object_get(request->params, "uri"));
    char *run;
    json_t *text = NULL;
    if (address == NULL)
        return mcp_refuse(failure, RPC_INVALID_PARAMETERS, "resources/read needs the text 'uri'");
    const resource_file *file = parts_of(address, &run);
    if (file == NULL)
        mcp_refuse(failure, 0, "there is no resource '%.300s'; resources/list has all", address);
    bool read = file != NULL && read_file(&server->folder, run, file, &text) == SGM_OK;
    sgm__free(run);
    if (read)
        return json_pack("{s:[{s:s, s:s, s:o}]}", "contents", "uri", address, "mimeType", file->type, "text",
                         text);
    failure->code = request->modern ? RPC_INVALID_PARAMETERS : NOT_FOUND;
    failure->data = json_pack("{s:s}", "uri", address);
    return NULL;
}
