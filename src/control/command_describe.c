/* The command `describe`: what a program or an agent needs to know to steer this training.
 *
 * The answer has the table of commands (command_table.h) with the fields of each, the fields that every
 * request may have, the role of the asker, and the settings of this run: each entry that can be set, with its
 * kind, unit, bounds, words, default, meaning and the moment at which a change counts; and what of all this
 * waits for approval unless an administrator asks. */
#include "control/control_internal.h"
#include "trainer/trainer.h"

#define PROTOCOL 1 /* grows when a request that was right is so no more */

static json_t *fields_json(const sgm_option *fields, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_object();
        json_object_set_new(item, "name", json_string(fields[i].name));
        json_object_set_new(item, "kind", json_string(sgm_kind_name(fields[i].kind)));
        json_object_set_new(item, "required", json_boolean(fields[i].required));
        sgm__answer_option(item, &fields[i], !fields[i].required);
        json_array_append_new(list, item);
    }
    return list;
}

/* "allowed": whether the asker's role does for it. */
static json_t *command_json(const sgm__control_request *c, const sgm__command_row *row)
{
    json_t *item = json_object();
    json_object_set_new(item, "name", json_string(row->name));
    json_object_set_new(item, "doc", json_string(row->doc));
    json_object_set_new(item, "role", json_string(sgm__role_name(row->role)));
    json_object_set_new(item, "allowed", json_boolean(c->call->role >= row->role));
    json_object_set_new(item, "changes", json_boolean(row->when != NULL));
    if (row->when != NULL)
        json_object_set_new(item, "effect", json_string(row->when));
    json_object_set_new(item, "dry_run", json_boolean(row->try != NULL));
    json_object_set_new(item, "shared", json_boolean(row->shared));
    json_object_set_new(item, "fields", fields_json(row->fields, row->field_count));
    return item;
}

sgm_status sgm__control_describe(sgm__control_request *c)
{
    json_t *commands = json_array();
    const sgm__command_row *row;
    json_object_set_new(c->answer, "protocol", json_integer(PROTOCOL));
    json_object_set_new(c->answer, "trainer", sgm__answer_text(sgm_trainer_name(c->call->trainer)));
    json_object_set_new(c->answer, "role", json_string(sgm__role_name(c->call->role)));
    for (size_t i = 0; (row = sgm__command_at(i)) != NULL; i++)
        json_array_append_new(commands, command_json(c, row));
    json_object_set_new(c->answer, "commands", commands);
    json_object_set_new(c->answer, "terms", fields_json(sgm__request_terms, sgm__request_term_count));
    const json_t *approve = sgm__control_of(c->call->trainer)->approve;
    json_object_set_new(c->answer, "approve", approve != NULL ? json_deep_copy(approve) : json_array());
    return sgm__control_list_settings(c);
}
