/* `sigma generate --texts FILE`: several texts, each a line of a file.
 *
 * A batch of them is read side by side (sgm_generator_generate_all) and printed when all its texts have
 * ended, in the order of the file: with --numbers a line of numbers for each, else one of JSON, as a text may
 * have line ends. */
#include "generate/generate.h"
#include "text/json_text.h"

#include <stdio.h>

#define BATCH 8

/* --- the file --- */

/* Appends a line to g->lines; takes it. */
static sgm_status add_line(generation *g, size_t *room, char *line)
{
    sgm_status status =
        line != NULL ? sgm__reserve(&g->lines, room, g->line_count + 1, sizeof *g->lines) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        g->lines[g->line_count++] = line;
    else
        sgm__free(line);
    return status;
}

static sgm_status read_lines(generation *g, FILE *file)
{
    char *line = NULL;
    size_t size = 0, room = 0;
    sgm_status status = SGM_OK;
    for (ssize_t length; status == SGM_OK && (length = getline(&line, &size, file)) > 0;) {
        if (memchr(line, '\0', (size_t)length) != NULL) {
            status = sgm_fail(SGM_ERROR_FORMAT, "%s, line %zu: expected a text, got a zero byte", g->texts,
                              g->line_count + 1);
            break;
        }
        if (line[length - 1] == '\n')
            line[--length] = '\0';
        if (length > 0 && line[length - 1] == '\r')
            line[length - 1] = '\0';
        status = add_line(g, &room, sgm__strdup(line));
    }
    if (status == SGM_OK && ferror(file))
        status = sgm_fail(SGM_ERROR_FILE, "cannot read '%s'", g->texts);
    free(line);
    return status;
}

sgm_status texts_read(generation *g)
{
    bool standard = strcmp(g->texts, "-") == 0;
    FILE *file = standard ? stdin : sgm__file_open_stream(g->texts);
    if (file == NULL)
        return sgm__last_failure();
    sgm_status status = read_lines(g, file);
    if (!standard)
        fclose(file);
    if (status == SGM_OK && g->line_count == 0)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: expected at least one line", g->texts);
    if (g->batch == 0)
        g->batch = g->how.beams > 1 ? 1 : BATCH;
    if ((size_t)g->batch > g->line_count)
        g->batch = (int64_t)g->line_count;
    return status;
}

void texts_free(generation *g)
{
    for (size_t i = 0; i < g->line_count; i++)
        sgm__free(g->lines[i]);
    sgm__free(g->lines);
}

/* --- what is printed --- */

/* The bytes as a text of JSON; what is no UTF-8, such as a part of a character at the end, becomes U+FFFD. */
static json_t *json_of(const char *bytes, size_t size)
{
    sgm__text waiting = {0}, clean = {0};
    take_characters(&waiting, bytes, size, true, &clean);
    bool failed = waiting.failed || clean.failed;
    json_t *text = !failed ? json_stringn(clean.data != NULL ? clean.data : "", clean.length) : NULL;
    sgm__text_free(&waiting);
    sgm__text_free(&clean);
    return text;
}

/* What is said of a line. */
typedef struct spoken {
    speech speech;
    sgm__text said;
} spoken;

/* A closed output ends all texts. */
static bool collect(void *user, const char *text, size_t size)
{
    spoken *s = user;
    sgm__text_append_bytes(&s->said, text, size);
    return !s->said.failed && ferror(stdout) == 0;
}

static sgm_status print(const generation *g, const char *line, spoken *s)
{
    SGM_TRY(speech_end(&s->speech));
    sgm__text_append_bytes(&s->said, "", 1); /* the zero byte that ends it */
    if (s->said.failed)
        return SGM_ERROR_MEMORY;
    if (g->numbers) {
        printf("%s%s\n", line, s->said.data);
        return SGM_OK;
    }
    json_t *object = json_object();
    bool failed = json_object_set_new(object, "text", json_of(line, strlen(line))) != 0 ||
                  json_object_set_new(object, "continuation", json_of(s->said.data, s->said.length - 1)) != 0;
    char *text = !failed ? sgm__json_text(object) : NULL;
    if (text != NULL)
        puts(text);
    sgm__free(text);
    json_decref(object);
    return text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* --- a batch --- */

/* Texts that are read side by side, from line `first` on. */
typedef struct batch {
    size_t first, count;
    sgm_continuation *texts;
    sgm_tensor **begins; /* their tokens to begin with */
    span *spans;         /* what is read of them */
    spoken *spoken;
} batch;

static sgm_status begin_text(const generation *g, batch *b, size_t index)
{
    const char *line = g->lines[b->first + index];
    b->begins[index] = tokens_of(g, *line != '\0' ? line : NULL);
    if (b->begins[index] == NULL)
        return sgm__fail_within("%s, line %zu", g->texts, b->first + index + 1);
    b->spans[index] = tokens_span(g, b->begins[index], b->first + index + 1);
    b->texts[index] = (sgm_continuation){.begin = b->spans[index].begin,
                                         .begin_count = b->spans[index].begin_count,
                                         .count = b->spans[index].count,
                                         .user = &b->spoken[index].speech};
    b->spoken[index].speech = generate_speech(g, collect, &b->spoken[index]);
    return speech_begin(&b->spoken[index].speech);
}

static sgm_status go_on(const generation *g, batch *b)
{
    sgm_generation_options options = generate_options(g, NULL);
    for (size_t i = 0; i < b->count; i++)
        SGM_TRY(begin_text(g, b, i));
    if (sgm_generator_generate_all(g->generator, b->texts, b->count, &options) != SGM_OK)
        return sgm__fail_within("%s, from line %zu on", g->texts, b->first + 1);
    for (size_t i = 0; i < b->count; i++)
        SGM_TRY(print(g, g->lines[b->first + i], &b->spoken[i]));
    fflush(stdout);
    for (size_t i = 0; i < b->count; i++)
        tokens_tell_end(g, &b->spans[i], &b->spoken[i].speech, b->first + i + 1);
    return SGM_OK;
}

static sgm_status generate_batch(const generation *g, size_t first, size_t count)
{
    batch b = {.first = first,
               .count = count,
               .texts = sgm__calloc(count, sizeof *b.texts),
               .begins = sgm__calloc(count, sizeof(sgm_tensor *)),
               .spans = sgm__calloc(count, sizeof *b.spans),
               .spoken = sgm__calloc(count, sizeof *b.spoken)};
    bool there = b.texts != NULL && b.begins != NULL && b.spans != NULL && b.spoken != NULL;
    sgm_status status = there ? go_on(g, &b) : SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count && there; i++) {
        sgm_tensor_free(b.begins[i]);
        speech_free(&b.spoken[i].speech);
        sgm__text_free(&b.spoken[i].said);
    }
    sgm__free(b.texts);
    sgm__free(b.begins);
    sgm__free(b.spans);
    sgm__free(b.spoken);
    return status;
}

/* An output that was closed ends it: main.c reports that. */
sgm_status texts_generate(const generation *g)
{
    size_t most = (size_t)g->batch;
    for (size_t i = 0; i < g->line_count && ferror(stdout) == 0; i += most)
        SGM_TRY(generate_batch(g, i, g->line_count - i < most ? g->line_count - i : most));
    return SGM_OK;
}
