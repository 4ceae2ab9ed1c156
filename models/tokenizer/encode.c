/* A text becomes tokens. */
#include "options.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* What one call works with. */
typedef struct encoding {
    const sgm_pretrained_tokenizer *tokenizer;
    sgm__matcher matcher;
    sgm__scratch scratch;
    sgm__buffer valid, normal[2];
    sgm__pieces pieces[2];
    sgm__parts parts, normal_parts;
    sgm__ids texts[2]; /* the tokens of both texts */
} encoding;

static void free_work(encoding *work)
{
    sgm__matcher_free(&work->matcher);
    sgm__scratch_free(&work->scratch);
    sgm__buffer_free(&work->valid);
    for (int i = 0; i < 2; i++) {
        sgm__buffer_free(&work->normal[i]);
        sgm__pieces_free(&work->pieces[i]);
        free(work->texts[i].list);
    }
    free(work->parts.list);
    free(work->normal_parts.list);
}

static sgm_status encode_normal(encoding *work, const char *text, size_t size, bool first, sgm__ids *out)
{
    const sgm_pretrained_tokenizer *tokenizer = work->tokenizer;
    SGM__PASS(sgm__split(&tokenizer->splitters, &work->matcher, text, size, first, work->pieces));
    for (size_t i = 0; i < work->pieces[0].count; i++) {
        const sgm__piece *piece = &work->pieces[0].list[i];
        SGM__PASS(sgm__model_encode(&tokenizer->model, &work->scratch, work->pieces[0].text.data + piece->at,
                                    piece->size, out));
    }
    return SGM_OK;
}

/* What lies between two tokens that are looked for in the text as it is. */
static sgm_status encode_raw(encoding *work, const char *text, size_t size, bool first, sgm__ids *out)
{
    const sgm_pretrained_tokenizer *tokenizer = work->tokenizer;
    bool is_cut = false;
    SGM__PASS(sgm__normalize(&tokenizer->normalizers, &work->matcher, text, size, work->normal, &is_cut));
    first &= !is_cut; /* a beginning is where the text began before it was normalised */
    text = work->normal[0].data;
    SGM__PASS(sgm__added_cut(&tokenizer->added, true, text, work->normal[0].size, &work->normal_parts));
    for (size_t i = 0; i < work->normal_parts.count; i++) {
        const sgm__part *part = &work->normal_parts.list[i];
        SGM__PASS(part->token ? sgm__ids_add(out, part->token->id)
                              : encode_normal(work, text + part->start, part->end - part->start,
                                              first && part->start == 0, out));
    }
    return SGM_OK;
}

static sgm_status encode_text(encoding *work, const char *text, size_t size, sgm__ids *out)
{
    if (!sgm__utf8_is_valid(text, size)) {
        work->valid.size = 0;
        SGM__PASS(sgm__buffer_reserve(&work->valid, sgm__utf8_clean(text, size, NULL)));
        size = sgm__utf8_clean(text, size, work->valid.data);
        text = work->valid.data;
    }
    SGM__PASS(sgm__added_cut(&work->tokenizer->added, false, text, size, &work->parts));
    for (size_t i = 0; i < work->parts.count; i++) {
        const sgm__part *part = &work->parts.list[i];
        SGM__PASS(part->token
                      ? sgm__ids_add(out, part->token->id)
                      : encode_raw(work, text + part->start, part->end - part->start, part->start == 0, out));
    }
    return SGM_OK;
}

sgm_status sgm__template_add(sgm__template *template, sgm__template_part part)
{
    void *parts = template->parts;
    SGM__PASS(sgm__array_reserve(&parts, &template->room, template->count + 1, sizeof part));
    template->parts = parts;
    template->parts[template->count++] = part;
    return SGM_OK;
}

/* How many tokens stand around the texts. */
static size_t count_special(const sgm__template *template, bool no_special)
{
    size_t count = 0;
    for (size_t i = 0; i < template->count && !no_special; i++)
        count += template->parts[i].kind == SGM__SPECIAL;
    return count;
}

/* Cuts both texts so that together they have `room` tokens; the longer one is cut to the length of the other
 * first, then both by halves. */
static void cut(sgm__ids texts[2], size_t room)
{
    sgm__ids *shorter = texts[0].count <= texts[1].count ? &texts[0] : &texts[1];
    sgm__ids *longer = shorter == &texts[0] ? &texts[1] : &texts[0];
    size_t few = shorter->count, many = few > room || room - few < few ? few : room - few;
    if (texts[0].count + texts[1].count <= room)
        return;
    if (few + many > room) {
        few = room / 2;
        many = few + room % 2;
    }
    shorter->count = few;
    longer->count = many;
}

static sgm_tensor *new_ids(size_t count)
{
    const sgm_shape shape = {.rank = 1, .dims = {(int64_t)count}};
    return sgm_tensor_create(SGM_INT64, &shape);
}

/* The texts as the template has them: each once. */
static void fill(const sgm__template *template, bool no_special, const sgm__ids texts[2], int64_t *ids,
                 int64_t *segments)
{
    for (size_t i = 0; i < template->count; i++) {
        const sgm__template_part *part = &template->parts[i];
        const sgm__ids special = {.list = (uint32_t[]){part->id}, .count = !no_special};
        const sgm__ids *from = part->kind == SGM__SPECIAL ? &special : &texts[part->kind == SGM__TEXT_B];
        for (size_t k = 0; k < from->count; k++) {
            *ids++ = from->list[k];
            if (segments)
                *segments++ = part->segment;
        }
    }
}

static sgm_tensor *assemble(const sgm__template *template, sgm__ids texts[2],
                            const sgm_pretrained_encode_options *options)
{
    const size_t special = count_special(template, options->no_special);
    sgm_tensor *ids, *segments = NULL;
    size_t count;

    if (options->longest > 0 && (size_t)options->longest < special) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "longest is %lld, but the model's template alone has %zu tokens; give at least "
                 "as many, or .no_special",
                 (long long)options->longest, special);
        return NULL;
    }
    if (options->longest > 0)
        cut(texts, (size_t)options->longest - special);
    count = texts[0].count + texts[1].count + special;
    ids = new_ids(count);
    if (options->segments)
        segments = new_ids(count);
    if (!ids || (options->segments && !segments)) {
        sgm_tensor_free(ids);
        return NULL;
    }
    fill(template, options->no_special, texts, sgm_tensor_data(ids),
         segments ? sgm_tensor_data(segments) : NULL);
    if (options->segments)
        *options->segments = segments;
    return ids;
}

sgm_tensor *sgm_pretrained_tokenizer_encode_with(const sgm_pretrained_tokenizer *tokenizer, const void *text,
                                                 size_t size, const sgm_pretrained_encode_options *options)
{
    static sgm__template_part both[] = {{.kind = SGM__TEXT_A}, {.kind = SGM__TEXT_B, .segment = 1}};
    static const sgm__template texts_alone[] = {{both, 1, 0}, {both, 2, 0}};
    sgm_pretrained_encode_options given;
    const sgm__template *template = NULL;
    encoding work = {.tokenizer = tokenizer};
    sgm_tensor *ids = NULL;

    if (sgm__take_options(&given, sizeof given, options) != SGM_OK)
        return NULL;
    if (!tokenizer || (!text && size > 0) || (!given.pair && given.pair_size > 0) || given.longest < 0) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "encoding needs a tokenizer, a text where its size is over 0, and a longest "
                 "count of 0 or more");
        return NULL;
    }
    template = given.pair ? &tokenizer->pair : &tokenizer->single;
    if (template->count == 0)
        template = &texts_alone[given.pair != NULL];
    if (encode_text(&work, text, size, &work.texts[0]) == SGM_OK &&
        (!given.pair || encode_text(&work, given.pair, given.pair_size, &work.texts[1]) == SGM_OK))
        ids = assemble(template, work.texts, &given);
    free_work(&work);
    return ids;
}
