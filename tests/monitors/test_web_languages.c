/* The page's texts: each language has the same keys with the same {names}, and what the page asks for is
 * there. */
#include "../test.h"
#include "base/base.h"

#include <ftw.h>
#include <jansson.h>

static const char *const languages[] = {"en", "de"};
#define LANGUAGE_COUNT (sizeof languages / sizeof *languages)

static json_t *texts_of(const char *language)
{
    char path[64];
    json_error_t error;
    snprintf(path, sizeof path, "web/languages/%s.json", language);
    json_t *texts = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (texts == NULL)
        TEST_FAIL("%s:%d: %s", path, error.line, error.text);
    CHECK(json_is_object(texts));
    return texts;
}

/* Are all {names} of one text in the other? */
static bool has_names(const char *text, const char *other)
{
    for (const char *open = strchr(text, '{'); open != NULL; open = strchr(open + 1, '{')) {
        char name[64];
        const char *close = strchr(open, '}');
        if (close == NULL || (size_t)(close - open) + 2 > sizeof name)
            return false;
        snprintf(name, sizeof name, "%.*s", (int)(close - open + 1), open);
        if (strstr(other, name) == NULL)
            return false;
    }
    return true;
}

TEST(languages_have_the_same_keys)
{
    json_t *first = texts_of(languages[0]);
    CHECK(json_object_size(first) > 100);
    for (size_t i = 1; i < LANGUAGE_COUNT; i++) {
        json_t *other = texts_of(languages[i]), *value;
        const char *key;
        json_object_foreach(first, key, value)
        {
            const char *text = json_string_value(value),
                       *same = json_string_value(json_object_get(other, key));
            if (text == NULL || same == NULL || *text == '\0' || *same == '\0')
                TEST_FAIL("'%s' has no text in both %s and %s", key, languages[0], languages[i]);
            if (!has_names(text, same) || !has_names(same, text))
                TEST_FAIL("'%s' has other {names} in %s than in %s", key, languages[i], languages[0]);
        }
        json_object_foreach(other, key, value) if (json_object_get(first, key) == NULL)
            TEST_FAIL("'%s' is in %s, but not in %s", key, languages[i], languages[0]);
        json_decref(other);
    }
    json_decref(first);
}

/* --- what the scripts ask for --- */

static json_t *known;
static int asked;

/* Each PREFIX'KEY' of a script, with what stands before the key in the file of texts. */
static void check_keys(const char *file, const char *source, const char *prefix, const char *before)
{
    size_t length = strlen(prefix);
    for (const char *at = strstr(source, prefix); at != NULL; at = strstr(at + 1, prefix)) {
        const char *key = at + length, *end = strchr(key, '\'');
        bool is_word = at == source || strchr(" (,[!?{.=`:", at[-1]) != NULL;
        if (end == NULL || !is_word)
            continue;
        char name[128];
        snprintf(name, sizeof name, "%s%.*s", before, (int)(end - key), key);
        asked++;
        if (json_object_get(known, name) == NULL)
            TEST_FAIL("%s asks for the text '%s', which is not in languages/%s.json", file, name,
                      languages[0]);
    }
}

static int check_file(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)place;
    size_t length = strlen(path);
    if (kind != FTW_F || length < 3 || strcmp(path + length - 3, ".js") != 0)
        return 0;
    char *source = calloc(1, (size_t)info->st_size + 1);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && source != NULL);
    CHECK_INT(fread(source, 1, (size_t)info->st_size, file), info->st_size);
    fclose(file);
    check_keys(path, source, "t('", "");
    if (strcmp(path, "web/panel.js") != 0) { /* its example is one in a comment */
        check_keys(path, source, "definePanel('", "panel.");
        check_keys(path, source, "tab: '", "tab.");
    }
    free(source);
    return 0;
}

/* --- what nobody asks for --- */

static sgm__text scripts;

static int gather_file(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)place, (void)info;
    size_t length = strlen(path);
    char *source;
    if (kind != FTW_F || length < 3 || strcmp(path + length - 3, ".js") != 0)
        return 0;
    CHECK_OK(sgm__file_read(path, SIZE_MAX, &source, &length));
    sgm__text_append_bytes(&scripts, source, length);
    sgm__free(source);
    return 0;
}

/* As it is, as the kind of a panel or the name of a tab, or with a part that is put in: `chart.${name}`. */
static bool is_asked_for(const char *key)
{
    char text[128];
    const char *dot = strrchr(key, '.');
    snprintf(text, sizeof text, "'%s'", key);
    if (strstr(scripts.data, text) != NULL)
        return true;
    snprintf(text, sizeof text, "%s('%s'", strncmp(key, "panel.", 6) == 0 ? "definePanel" : "?", dot + 1);
    if (strstr(scripts.data, text) != NULL)
        return true;
    for (const char *end = strchr(dot + 1, '_');; end = strchr(end + 1, '_')) {
        int length = (int)((end != NULL ? end : dot) - key) + 1;
        snprintf(text, sizeof text, "`%.*s${", length, key);
        if (strstr(scripts.data, text) != NULL)
            return true;
        if (end == NULL)
            return false;
    }
}

TEST(no_text_is_left_over)
{
    const char *key;
    json_t *texts = texts_of(languages[0]), *value;
    CHECK_INT(nftw("web", gather_file, 8, FTW_PHYS), 0);
    json_object_foreach(texts, key, value)
    {
        if (!is_asked_for(key))
            TEST_FAIL("no script asks for the text '%s'", key);
    }
    json_decref(texts);
    sgm__text_free(&scripts);
}

TEST(the_page_asks_for_texts_that_are_there)
{
    known = texts_of(languages[0]);
    CHECK_INT(nftw("web", check_file, 8, FTW_PHYS), 0);
    CHECK(asked > 50);
    json_decref(known);
}
