#include "tokenizer/tokenizer.h"
#include "gguf/gguf.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LARGEST_FILE ((size_t)512 << 20)

void sgm_pretrained_tokenizer_free(sgm_pretrained_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    sgm__added_free(&tokenizer->added);
    sgm__normalizers_free(&tokenizer->normalizers);
    sgm__splitters_free(&tokenizer->splitters);
    sgm__model_free(&tokenizer->model);
    sgm__decoders_free(&tokenizer->decoders);
    free(tokenizer->single.parts);
    free(tokenizer->pair.parts);
    free(tokenizer->chat.begin);
    free(tokenizer->chat.end);
    free(tokenizer->chat.template);
    free(tokenizer);
}

sgm_status sgm__read_file(const char *path, sgm__buffer *out)
{
    FILE *file = fopen(path, "rb");
    size_t count = 1;
    sgm_status status = SGM_OK;

    if (!file)
        return sgm_fail(SGM_ERROR_FILE, "%s cannot be opened: %s", path, strerror(errno));
    while (status == SGM_OK && count > 0) {
        status = out->size > LARGEST_FILE
                     ? sgm_fail(SGM_ERROR_LIMIT, "%s has over %zu bytes, more than any tokenizer", path,
                                LARGEST_FILE)
                     : sgm__buffer_reserve(out, 1 << 16);
        if (status == SGM_OK)
            out->size += count = fread(out->data + out->size, 1, (1 << 16) - 1, file);
    }
    if (status == SGM_OK && ferror(file))
        status = sgm_fail(SGM_ERROR_FILE, "%s cannot be read: %s", path, strerror(errno));
    fclose(file);
    if (status == SGM_OK)
        out->data[out->size] = 0;
    return status;
}

/* --- steps --- */
sgm__normalizer *sgm__new_normalizer(sgm__normalizers *normalizers, sgm__normalizer_kind kind)
{
    void *steps = normalizers->steps;
    if (sgm__array_reserve(&steps, &normalizers->room, normalizers->count + 1, sizeof *normalizers->steps) !=
        SGM_OK)
        return NULL;
    normalizers->steps = steps;
    normalizers->steps[normalizers->count] = (sgm__normalizer){.kind = kind};
    return &normalizers->steps[normalizers->count++];
}

sgm__splitter *sgm__new_splitter(sgm__splitters *splitters, sgm__splitter_kind kind)
{
    void *steps = splitters->steps;
    if (sgm__array_reserve(&steps, &splitters->room, splitters->count + 1, sizeof *splitters->steps) !=
        SGM_OK)
        return NULL;
    splitters->steps = steps;
    splitters->steps[splitters->count] = (sgm__splitter){.kind = kind};
    return &splitters->steps[splitters->count++];
}

sgm__decoder *sgm__new_decoder(sgm__decoders *decoders, sgm__decoder_kind kind)
{
    void *steps = decoders->steps;
    if (sgm__array_reserve(&steps, &decoders->room, decoders->count + 1, sizeof *decoders->steps) != SGM_OK)
        return NULL;
    decoders->steps = steps;
    decoders->steps[decoders->count] = (sgm__decoder){.kind = kind};
    return &decoders->steps[decoders->count++];
}

sgm_status sgm__add_byte_splitters(sgm__splitters *splitters, bool space_before, bool by_words)
{
    static const char words[] =
        "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    if (space_before && !sgm__new_splitter(splitters, SGM__SPACE_BEFORE))
        return SGM_ERROR_MEMORY;
    if (by_words) {
        sgm__splitter *step = sgm__new_splitter(splitters, SGM__SPLIT_PATTERN);
        if (!step)
            return SGM_ERROR_MEMORY;
        step->behavior = SGM__ISOLATED;
        SGM__PASS(sgm__pattern_open_regex(&step->pattern, words, sizeof words - 1));
    }
    return sgm__new_splitter(splitters, SGM__BYTES) ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status add_character_splitter(sgm__splitters *splitters, bool (*is_border)(uint32_t),
                                         sgm__behavior behavior)
{
    sgm__splitter *step = sgm__new_splitter(splitters, SGM__SPLIT_CHARACTERS);
    if (!step)
        return SGM_ERROR_MEMORY;
    step->is_border = is_border;
    step->behavior = behavior;
    return SGM_OK;
}

sgm_status sgm__add_bert_splitters(sgm__splitters *splitters)
{
    SGM__PASS(add_character_splitter(splitters, sgm__unicode_is_space, SGM__REMOVED));
    return add_character_splitter(splitters, sgm__unicode_is_punctuation, SGM__ISOLATED);
}

sgm_status sgm__add_bert_normalizers(sgm__normalizers *normalizers, bool clean, bool ideographs, bool accents,
                                     bool lowercase)
{
    sgm__normalizer *step;
    if ((clean && !sgm__new_normalizer(normalizers, SGM__CLEAN)) ||
        (ideographs && !sgm__new_normalizer(normalizers, SGM__SPACE_IDEOGRAPHS)))
        return SGM_ERROR_MEMORY;
    if (accents) {
        if (!(step = sgm__new_normalizer(normalizers, SGM__NORMAL_FORM)) ||
            !(step->form = sgm__normal_form_open("NFD")) ||
            !sgm__new_normalizer(normalizers, SGM__STRIP_NONSPACING))
            return sgm_last_status();
    }
    return lowercase && !sgm__new_normalizer(normalizers, SGM__LOWERCASE) ? SGM_ERROR_MEMORY : SGM_OK;
}

/* --- tokens --- */
const char *sgm__tokenizer_text(const sgm_pretrained_tokenizer *tokenizer, int64_t id, size_t *size)
{
    const char *text;
    if (id < 0 || id >= SGM__MOST_TOKENS)
        return NULL;
    text = sgm__vocabulary_token(&tokenizer->added.names, (uint32_t)id, size);
    return text ? text : sgm__vocabulary_token(&tokenizer->model.vocabulary, (uint32_t)id, size);
}

sgm_status sgm__tokenizer_add_token(sgm_pretrained_tokenizer *tokenizer, const sgm__added_token *token)
{
    sgm__added *added = &tokenizer->added;
    void *tokens = added->tokens;
    sgm__added_token copy = *token;

    SGM__PASS(sgm__array_reserve(&tokens, &added->room, added->count + 1, sizeof *added->tokens));
    added->tokens = tokens;
    SGM__PASS(sgm__vocabulary_add(&added->names, token->content, token->size, token->id));
    if (!(copy.content = sgm__copy_text(token->content, token->size)))
        return SGM_ERROR_MEMORY;
    added->tokens[added->count++] = copy;
    return SGM_OK;
}

sgm_status sgm__tokenizer_complete(sgm_pretrained_tokenizer *tokenizer)
{
    sgm__added *added = &tokenizer->added;
    sgm__matcher matcher = {0};
    sgm__buffer normal[2] = {{0}};
    sgm_status status = sgm__model_prepare(&tokenizer->model);

    for (size_t i = 0; i < added->count && status == SGM_OK; i++) {
        const sgm__added_token *token = &added->tokens[i];
        if (!token->normalized) {
            status = sgm__added_look_for(added, i, token->content, token->size);
            continue;
        }
        status = sgm__normalize(&tokenizer->normalizers, &matcher, token->content, token->size, normal, NULL);
        if (status == SGM_OK)
            status = sgm__added_look_for(added, i, normal[0].data, normal[0].size);
    }
    sgm__matcher_free(&matcher);
    sgm__buffer_free(&normal[0]);
    sgm__buffer_free(&normal[1]);
    tokenizer->count = tokenizer->model.vocabulary.count;
    if (added->names.count > tokenizer->count)
        tokenizer->count = added->names.count;
    return status;
}

const char *sgm_pretrained_tokenizer_kind(const sgm_pretrained_tokenizer *tokenizer)
{
    static const char *const kinds[] = {"byte pairs", "WordPiece", "unigram"};
    return kinds[tokenizer->model.kind];
}

int64_t sgm_pretrained_tokenizer_count(const sgm_pretrained_tokenizer *tokenizer)
{
    return (int64_t)tokenizer->count;
}

int64_t sgm_pretrained_tokenizer_id(const sgm_pretrained_tokenizer *tokenizer, const char *token)
{
    uint32_t id = sgm__vocabulary_find(&tokenizer->added.names, token, strlen(token));
    if (id == SGM__NONE)
        id = sgm__vocabulary_find(&tokenizer->model.vocabulary, token, strlen(token));
    return id == SGM__NONE ? -1 : (int64_t)id;
}

int64_t sgm_pretrained_tokenizer_end(const sgm_pretrained_tokenizer *tokenizer)
{
    return tokenizer->ends.count > 0 ? tokenizer->ends.ids[0] : -1;
}

const int64_t *sgm_pretrained_tokenizer_ends(const sgm_pretrained_tokenizer *tokenizer, size_t *count)
{
    *count = tokenizer->ends.count;
    return tokenizer->ends.ids;
}

const char *sgm_pretrained_tokenizer_token(const sgm_pretrained_tokenizer *tokenizer, int64_t id)
{
    size_t size;
    return sgm__tokenizer_text(tokenizer, id, &size);
}

/* --- opening --- */
static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The file `name` in the folder of a file. NULL: out of memory. */
static char *beside(const char *folder, size_t folder_size, const char *name)
{
    char *path = sgm__allocate_zero(folder_size + strlen(name) + 2, 1);
    if (path && folder_size > 0)
        snprintf(path, folder_size + strlen(name) + 2, "%.*s/%s", (int)folder_size, folder, name);
    else if (path)
        memcpy(path, name, strlen(name));
    return path;
}

static sgm_status read_one(sgm_pretrained_tokenizer *tokenizer, const char *path, size_t folder_size,
                           const char *config)
{
    char *merges = NULL;
    sgm_status status = SGM_ERROR_MEMORY;

    if (sgm__has_ending(path, "tokenizer.model"))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: a model of SentencePiece is not read; AutoTokenizer.from_pretrained(FOLDER)"
                        ".save_pretrained(FOLDER) of transformers writes tokenizer.json from it",
                        path);
    if (sgm__has_ending(path, "vocab.txt"))
        return sgm__read_bert_file(tokenizer, path, config);
    if (!sgm__has_ending(path, "vocab.json"))
        return sgm__read_tokenizer_json(tokenizer, path);
    if ((merges = beside(path, folder_size, "merges.txt")))
        status = sgm__read_gpt2_files(tokenizer, path, merges);
    free(merges);
    return status;
}

/* How chats are written, and what ends a text, from the files beside. */
static sgm_status read_settings(sgm_pretrained_tokenizer *tokenizer, const char *path, size_t folder_size,
                                const char *config)
{
    char *template = beside(path, folder_size, "chat_template.jinja");
    char *generation = beside(path, folder_size, "generation_config.json");
    char *model = beside(path, folder_size, "config.json");
    sgm_status status = template && generation && model ? SGM_OK : SGM_ERROR_MEMORY;

    if (status == SGM_OK)
        status = sgm__read_chat(tokenizer, config, template);
    if (status == SGM_OK)
        status = sgm__read_ends(tokenizer, generation, model);
    free(template);
    free(generation);
    free(model);
    return status;
}

/* Reads a file, and what lies beside it. */
static sgm_status read_all(sgm_pretrained_tokenizer *tokenizer, const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t folder_size = slash ? (size_t)(slash - path) : 0;
    char *config = beside(path, folder_size, "tokenizer_config.json");
    const bool gguf = sgm__is_gguf(path);
    sgm_status status = config ? SGM_OK : SGM_ERROR_MEMORY;

    if (status == SGM_OK)
        status = gguf ? sgm__read_gguf(tokenizer, path) : read_one(tokenizer, path, folder_size, config);
    if (status == SGM_OK)
        status = sgm__tokenizer_complete(tokenizer);
    if (status == SGM_OK && gguf)
        sgm__take_end(tokenizer);
    else if (status == SGM_OK)
        status = read_settings(tokenizer, path, folder_size, config);
    free(config);
    return status;
}

static bool has_file(const char *folder, const char *name)
{
    struct stat info;
    char *path = beside(folder, strlen(folder), name);
    const bool is_there = path && stat(path, &info) == 0;
    free(path);
    return is_there;
}

/* Reads the first file of a tokenizer in the folder; *found: there is one. */
static sgm_status read_first(sgm_pretrained_tokenizer *tokenizer, const char *folder, bool *found)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "vocab.txt", SGM__GGUF_KEPT};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat info;
        char *path = beside(folder, strlen(folder), names[i]);
        sgm_status status = path ? SGM_OK : SGM_ERROR_MEMORY;
        const bool is_there = path && stat(path, &info) == 0;
        if (is_there)
            status = read_all(tokenizer, path);
        free(path);
        *found = is_there;
        if (is_there || status != SGM_OK)
            return status;
    }
    return SGM_OK;
}

/* A run that began with a model keeps its files in the folder model. */
static sgm_status read_folder(sgm_pretrained_tokenizer *tokenizer, const char *folder)
{
    bool found = false;
    char *model = beside(folder, strlen(folder), "model");
    sgm_status status = model ? read_first(tokenizer, folder, &found) : SGM_ERROR_MEMORY;
    if (status == SGM_OK && !found && has_file(model, "tensors.json"))
        status = read_first(tokenizer, model, &found);
    free(model);
    if (status != SGM_OK || found)
        return status;
    return sgm_fail(SGM_ERROR_NOT_FOUND,
                    "%s has no tokenizer.json, vocab.json or vocab.txt; a folder of a model has "
                    "one of them",
                    folder);
}

sgm_pretrained_tokenizer *sgm_pretrained_tokenizer_open(const char *path)
{
    sgm_pretrained_tokenizer *tokenizer;
    sgm_status status;

    if (!path || !*path) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a tokenizer needs the path of its folder or file");
        return NULL;
    }
    if (!(tokenizer = sgm__allocate_zero(1, sizeof *tokenizer)))
        return NULL;
    tokenizer->model.unknown = SGM__NONE;
    status = is_folder(path) ? read_folder(tokenizer, path) : read_all(tokenizer, path);
    if (status == SGM_OK)
        return tokenizer;
    sgm_pretrained_tokenizer_free(tokenizer);
    return NULL;
}
