/* The record of a command, and the queue of commands: see commands.h.
 *
 * A queue is a list with a flag, without a lock of its own: its owner (a holder of hooks,
 * src/hooks/hooks_requests.c, or a trainer, src/runs/trainer_commands.c) has one. Queues are short, as
 * they hold what was asked for in one iteration, so appending walks to the end. */
#include "hooks/commands.h"

/* Copies a text, or NULL; false: out of memory. */
static bool copy_text(const char *text, char **copy)
{
    *copy = text != NULL ? sgm__strdup(text) : NULL;
    return text == NULL || *copy != NULL;
}

/* The command owns copies of all texts; `text` is never NULL, so readers need not check. */
sgm__command *sgm__command_create(sgm__command_kind kind, sgm__command_fields fields)
{
    sgm__command *command = sgm__calloc(1, sizeof *command);
    if (command == NULL)
        return NULL;
    command->kind = kind;
    command->undoes = fields.undoes;
    if (copy_text(fields.who, &command->who) &&
        copy_text(fields.text != NULL ? fields.text : "", &command->text) &&
        copy_text(fields.reason, &command->reason) && copy_text(fields.before, &command->before) &&
        copy_text(fields.after, &command->after))
        return command;
    sgm__command_free(command);
    return NULL;
}

void sgm__command_free(sgm__command *command)
{
    if (command == NULL)
        return;
    if (command->release != NULL)
        command->release(command->user);
    sgm_content_clear(&command->content);
    sgm__free(command->who);
    sgm__free(command->text);
    sgm__free(command->reason);
    sgm__free(command->before);
    sgm__free(command->after);
    sgm__free(command->message);
    sgm__free(command);
}

void sgm__commands_append(sgm__command_queue *queue, sgm__command *command)
{
    sgm__command **last = &queue->first;
    while (*last != NULL)
        last = &(*last)->next;
    *last = command;
    command->next = NULL; /* the command may have been in another queue */
    atomic_store(&queue->has_any, true);
}

/* For a command whose asker does not wait any longer; one that was taken already is not found, which is no
 * error. */
void sgm__commands_remove(sgm__command_queue *queue, const sgm__command *command)
{
    sgm__command **at = &queue->first;
    while (*at != NULL && *at != command)
        at = &(*at)->next;
    if (*at != NULL)
        *at = command->next;
    atomic_store(&queue->has_any, queue->first != NULL);
}

sgm__command *sgm__commands_take(sgm__command_queue *queue)
{
    sgm__command *first = queue->first;
    if (first != NULL) {
        sgm__commands_remove(queue, first);
        first->next = NULL;
    }
    return first;
}
