/* Commands about values: reading them, and setting all that match or none. */
#include "control/control_internal.h"
#include "control/control_tensor.h"
#include "journal/change_record.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"

/* All that match; none is an error, which names the nearest. */
sgm_status sgm__control_find(const sgm__control_request *c, const char *identifier, sgm_matches *matches)
{
    sgm_registry *root = sgm__registry_of(c->call->trainer);
    SGM_TRY(sgm_resolve(root, identifier, matches));
    if (matches->count > 0)
        return SGM_OK;
    sgm_matches_free(matches); /* of none, too */
    sgm_content none = {0};
    sgm_status status = sgm_resolve_one(root, identifier, &none);
    if (status != SGM_OK && strcmp(identifier, "data.batch") == 0) /* as it is called in a file */
        return sgm_fail(status, "'data.batch' of a file is iterator.minibatch_size of a run");
    SGM_TRY(status);
    sgm_content_clear(&none);
    return SGM_OK;
}

/* For get with a file: the tensor of a single match. */
static sgm_status save_tensor(const sgm__control_request *c, const sgm_matches *matches)
{
    const char *file = sgm__control_field(c, "file");
    if (matches->count != 1 || matches->items[0].content.kind != SGM_KIND_TENSOR)
        return sgm_fail(SGM_ERROR_TYPE, "a file takes one tensor, but '%.100s' is %s",
                        sgm__control_field(c, "identifier"),
                        matches->count == 1 ? sgm_kind_name(matches->items[0].content.kind)
                                            : "several values");
    return sgm_npy_save(file, matches->items[0].content.as.tensor);
}

/* What is there now. */
static sgm_status add_values(sgm__control_request *c, const sgm_matches *matches)
{
    json_t *list = json_array();
    for (size_t i = 0; i < matches->count; i++)
        sgm__answer_add(list, matches->items[i].identifier, &matches->items[i].content);
    return json_object_set_new(c->answer, "values", list) == 0 ? SGM_OK : sgm__fail_memory(64);
}

sgm_status sgm__control_get(sgm__control_request *c)
{
    sgm_matches matches = {0};
    SGM_TRY(sgm__control_find(c, sgm__control_field(c, "identifier"), &matches));
    sgm_status status = add_values(c, &matches);
    if (status == SGM_OK && sgm__control_field(c, "file") != NULL)
        status = save_tensor(c, &matches);
    sgm_matches_free(&matches);
    return status;
}

/* The text is read as the first match's kind; a match of another kind is the registry's to refuse. */
static sgm_status parse_value(const sgm__control_request *c, sgm_content *content)
{
    const char *identifier = sgm__control_field(c, "identifier");
    sgm_matches matches = {0};
    SGM_TRY(sgm__control_find(c, identifier, &matches));
    sgm_status status = SGM_OK;
    if (matches.count > 0) {
        status = sgm_content_parse(sgm__control_field(c, "value"), matches.items[0].content.kind, content);
        if (status != SGM_OK)
            sgm__fail_within("%s", matches.items[0].identifier);
    }
    sgm_matches_free(&matches);
    return status;
}

static sgm_status set_plain(sgm__control_request *c)
{
    sgm_content content = {0};
    if (sgm__control_field(c, "file") != NULL)
        return sgm_fail(SGM_ERROR_TYPE, "'%.100s' is no tensor: a file is for tensors",
                        sgm__control_field(c, "identifier"));
    SGM_TRY(parse_value(c, &content));
    sgm_status status = sgm_resolve_set(sgm__registry_of(c->call->trainer),
                                        sgm__control_field(c, "identifier"), content, NULL, NULL);
    sgm_content_clear(&content);
    return status;
}

/* Puts the new values in the place of the old ones. */
static sgm_status read_tensors(const sgm__control_request *c, sgm_matches *matches)
{
    const char *file = sgm__control_field(c, "file"), *text = sgm__control_field(c, "value");
    for (size_t i = 0; i < matches->count; i++) {
        sgm_content *content = &matches->items[i].content;
        sgm_tensor *made = NULL;
        if (content->kind != SGM_KIND_TENSOR)
            return sgm_fail(SGM_ERROR_TYPE, "%s is no tensor", matches->items[i].identifier);
        sgm_status status = file != NULL ? sgm__tensor_load(file, content->as.tensor, &made)
                                         : sgm__tensor_parse(text, content->as.tensor, &made);
        if (status != SGM_OK)
            return sgm__fail_within("%s", matches->items[i].identifier);
        sgm_tensor_free(content->as.tensor);
        content->as.tensor = made;
    }
    return SGM_OK;
}

/* All are read before the first is set. */
static sgm_status set_tensors(const sgm__control_request *c, sgm_matches *matches)
{
    SGM_TRY(read_tensors(c, matches));
    for (size_t i = 0; i < matches->count; i++)
        SGM_TRY(sgm_resolve_set(sgm__registry_of(c->call->trainer), matches->items[i].identifier,
                                matches->items[i].content, NULL, NULL));
    return SGM_OK;
}

/* The values as they are now, and from when on they count. */
static sgm_status answer_set(sgm__control_request *c)
{
    sgm_registry *root = sgm__registry_of(c->call->trainer);
    sgm_matches matches = {0};
    size_t i;
    json_t *item;
    SGM_TRY(sgm__control_find(c, sgm__control_field(c, "identifier"), &matches));
    sgm_status status = add_values(c, &matches);
    sgm_matches_free(&matches);
    json_array_foreach(json_object_get(c->answer, "values"), i, item)
    {
        const char *identifier = json_string_value(json_object_get(item, "identifier"));
        const sgm_option *option = identifier != NULL ? sgm__control_option(root, identifier) : NULL;
        json_object_set_new(item, "effect", sgm__answer_text(sgm__option_effect(option)));
    }
    return status;
}

sgm_status sgm__control_set(sgm__control_request *c)
{
    sgm_trainer *trainer = c->call->trainer;
    const char *before = sgm__journal_of(trainer)->changed_by;
    sgm_matches matches = {0};
    if (sgm__control_field(c, "value") == NULL && sgm__control_field(c, "file") == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "set needs a value%s", c->call->files ? " or a file" : "");
    SGM_TRY(sgm__control_find(c, sgm__control_field(c, "identifier"), &matches));
    bool tensors = matches.count > 0 && matches.items[0].content.kind == SGM_KIND_TENSOR;
    sgm__journal_of(trainer)->changed_by = c->call->who;
    sgm__changes_begin(trainer);
    sgm_status status = tensors ? set_tensors(c, &matches) : set_plain(c);
    sgm__changes_end(trainer);
    sgm__journal_of(trainer)->changed_by = before;
    sgm_matches_free(&matches);
    return status == SGM_OK ? answer_set(c) : status;
}
