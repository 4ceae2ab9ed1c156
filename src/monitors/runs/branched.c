/* The values that a branch began with. Its config.yaml is that of the run that it came from, so that what was
 * set differently stands in the first line of its journal alone (src/runs/origin.h). */
#include "monitors/runs/runs_internal.h"

#include "journal/run_lines.h"

#include <unistd.h>

#define LONGEST_LINE ((size_t)1 << 20)

/* The first line of the journal; NULL: there is none yet, or it is no JSON object. */
static json_t *read_line(int file)
{
    char *text = sgm__calloc(1, LONGEST_LINE);
    size_t length = 0;
    ssize_t count = 0;
    const char *end = NULL;
    while (text != NULL && end == NULL && length < LONGEST_LINE &&
           (count = pread(file, text + length, LONGEST_LINE - length, (off_t)length)) > 0) {
        end = memchr(text + length, '\n', (size_t)count);
        length += (size_t)count;
    }
    json_t *line = end != NULL ? json_loadb(text, (size_t)(end - text), 0, NULL) : NULL;
    sgm__free(text);
    return line;
}

bool sgm__run_read_branched(sgm__run *run, int folder)
{
    struct stat info;
    int file = run->began ? -1 : sgm__runs_open_file(folder, SGM__JOURNAL_FILE, &info);
    if (file < 0)
        return false;
    json_t *line = read_line(file), *set = json_object_get(json_object_get(line, "branched"), "set");
    close(file);
    run->began = line != NULL;
    run->set = json_is_object(set) ? json_incref(set) : NULL;
    json_decref(line);
    return run->set != NULL;
}

/* Values are texts in the journal; those of a configuration have their types. */
static json_t *value_of(const json_t *set)
{
    const char *text = json_string_value(set);
    int64_t whole;
    double number;
    if (text != NULL && sgm__parse_int64(text, &whole))
        return json_integer(whole);
    if (text != NULL && sgm__parse_double(text, &number) && number - number == 0)
        return json_real(number);
    return json_string(text != NULL ? text : "");
}

json_t *sgm__run_configuration(const sgm__run *run)
{
    const char *key;
    json_t *value, *shown = run->configuration != NULL ? json_copy(run->configuration) : json_object();
    json_object_foreach(run->set, key, value)
    {
        json_object_set_new(shown, key, value_of(value));
    }
    return shown;
}
