/* The rows of command_table.h, in the order in which help and manual show them. */
#include "control/command_table.h"
#include "control/control_internal.h"

#include <math.h>

/* --- fields --- */

#define FIELD(field_name, field_kind, ...)                                                                   \
    {                                                                                                        \
        .name = (field_name), .kind = SGM_KIND_##field_kind, __VA_ARGS__                                     \
    }
#define LARGEST 9007199254740992.0 /* integers up to here are exact in JSON */

static const sgm_option step_fields[] = {
    FIELD("iterations", INTEGER, .minimum = 1, .maximum = LARGEST, .default_value = 1, .required = true,
          .doc = "how many"),
};
static const sgm_option stop_fields[] = {
    FIELD("reason", TEXT, .doc = "why; checkpoint and log keep it"),
};
static const sgm_option save_fields[] = {
    FIELD("name", TEXT, .doc = "of the checkpoint; without one it is iteration-N"),
    FIELD("replace", TEXT, .doc = "'replace' or true: a checkpoint of that name is replaced; by an admin"),
};
static const sgm_option restore_fields[] = {
    FIELD("name", TEXT, .required = true, .doc = "of a checkpoint in the run's folder"),
};
static const sgm_option branch_fields[] = {
    FIELD("name", TEXT, .required = true, .doc = "of the branch"),
    FIELD("set", REGISTRY, .doc = "values that are set in it alone: an object of identifiers and values"),
    FIELD("checkpoint", TEXT,
          .doc = "that it begins with; without one, where the training is, saved under the branch's name"),
    FIELD("paused", BOOLEAN, .doc = "it waits for a command"),
};
static const sgm_option get_fields[] = {
    FIELD("identifier", TEXT, .required = true, .identifier = true, .doc = "what to read, with '*' for any"),
    FIELD("file", TEXT, .doc = "the tensor is written to this .npy file; on the socket, by an admin"),
};
static const sgm_option set_fields[] = {
    FIELD("identifier", TEXT, .required = true, .identifier = true, .doc = "what to set, with '*' for any"),
    FIELD("value", TEXT, .doc = "of the entry's kind; of a tensor a list, [0, 1, 2]"),
    FIELD("file", TEXT, .doc = "a tensor is read from this .npy file; on the socket, by an admin"),
};
static const sgm_option freeze_fields[] = {
    FIELD("pattern", TEXT, .required = true, .doc = "of parameters: \"1-dense.*\", \"*.weights\""),
};
static const sgm_option undo_fields[] = {
    FIELD("number", INTEGER, .minimum = 1, .maximum = LARGEST, .default_value = NAN,
          .doc = "of a change; without one, all that the newest command of a person has set"),
};
static const sgm_option list_fields[] = {
    FIELD("identifier", TEXT, .identifier = true, .doc = "of entries or of a registry; without one, all"),
    FIELD("values", BOOLEAN, .doc = "with their values"),
};
static const sgm_option attach_fields[] = {
    FIELD("hook", TEXT, .required = true, .doc = "'every 2 epochs value_reporter(training.loss)'"),
};
static const sgm_option detach_fields[] = {
    FIELD("name", TEXT, .required = true, .doc = "of a hook, as 'hooks' tells it"),
};
static const sgm_option press_fields[] = {
    FIELD("name", TEXT, .required = true, .doc = "of a button, as 'hooks' tells it"),
};
static const sgm_option approve_fields[] = {
    FIELD("number", INTEGER, .minimum = 1, .maximum = LARGEST, .required = true,
          .doc = "of a request, as 'pending' tells it"),
};
static const sgm_option describe_fields[] = {
    FIELD("identifier", TEXT, .identifier = true, .doc = "of settings; without one, all"),
};

#define FIELDS(table) .fields = (table), .field_count = sizeof(table) / sizeof *(table)
#define WORDS(minimum, maximum) .minimum_words = (minimum), .maximum_words = (maximum)
#define BETWEEN "between two iterations"

/* --- rows --- */

static const sgm__command_row rows[] = {
    {"status", "", "tells what the training does, and where it stands", NULL, SGM__ROLE_LOOK,
     .act = sgm__control_status, .lock = SGM__EITHER, .quick = true},
    {"pause", "", "stops the clock and waits", "after the iteration that is running", SGM__ROLE_STEER,
     .act = sgm__control_pause, .try = sgm__control_try_pause, .quick = true, .told = true},
    {"resume", "", "goes on", "at once", SGM__ROLE_STEER, .act = sgm__control_resume,
     .try = sgm__control_try_resume, .quick = true, .told = true},
    {"step", "[N]", "trains N iterations (default 1), then pauses", "at once", SGM__ROLE_STEER,
     FIELDS(step_fields), WORDS(0, 1), .act = sgm__control_step, .try = sgm__control_try_step, .quick = true,
     .told = true},
    {"stop", "[REASON]", "ends the run, with a checkpoint", "after the iteration that is running",
     SGM__ROLE_STEER, FIELDS(stop_fields), WORDS(0, 1), .act = sgm__control_stop,
     .try = sgm__control_try_stop, .quick = true, .told = true},
    {"reset", "", "goes back to before the first iteration; what is left becomes a branch", BETWEEN,
     SGM__ROLE_STEER, .act = sgm__control_reset, .try = sgm__control_try_reset, .told = true},
    {"save", "[NAME [replace]]",
     "writes NAME.safetensors into the folder (default iteration-N); one that is there stays, unless it is "
     "to be replaced",
     BETWEEN, SGM__ROLE_STEER, FIELDS(save_fields), WORDS(0, 2), .act = sgm__control_save,
     .try = sgm__control_try_save, .lock = SGM__LOCKED, .told = true},
    {"restore", "NAME", "goes back to NAME.safetensors; what is left becomes a branch (journal.jsonl)",
     BETWEEN, SGM__ROLE_STEER, FIELDS(restore_fields), WORDS(1, 1), .act = sgm__control_restore,
     .try = sgm__control_try_restore, .told = true},
    {"branch", "NAME [VALUES [CHECKPOINT]]",
     "begins a training beside this one, from here or from a checkpoint, with other values: "
     "'{\"optimiser.learning_rate\": 0.001}'",
     BETWEEN, SGM__ROLE_STEER, FIELDS(branch_fields), WORDS(1, 3), .act = sgm__control_branch,
     .try = sgm__control_try_branch, .told = true},
    {"get", "IDENTIFIER [FILE.npy]",
     "tells values: optimiser.learning_rate, 'network.layers.*.weights'; with a file, a tensor is written to "
     "it",
     NULL, SGM__ROLE_LOOK, FIELDS(get_fields), WORDS(1, 2), .act = sgm__control_get, .lock = SGM__EITHER},
    {"set", "IDENTIFIER VALUE|FILE.npy",
     "changes values; journal.jsonl tells of it. Tensors are lists, '[0, 1, 2]', or come from a file",
     BETWEEN, SGM__ROLE_STEER, FIELDS(set_fields), WORDS(2, 2), .act = sgm__control_set,
     .try = sgm__control_try_set, .lock = SGM__LOCKED, .told = true, .shared = true},
    {"freeze", "PATTERN", "parameters whose names match stay as they are from then on: '1-dense.*'", BETWEEN,
     SGM__ROLE_STEER, FIELDS(freeze_fields), WORDS(1, 1), .act = sgm__control_freeze,
     .try = sgm__control_try_freeze, .lock = SGM__LOCKED, .told = true, .shared = true},
    {"unfreeze", "PATTERN", "trains them again, also a part of what a wider pattern froze", BETWEEN,
     SGM__ROLE_STEER, FIELDS(freeze_fields), WORDS(1, 1), .act = sgm__control_unfreeze,
     .try = sgm__control_try_unfreeze, .lock = SGM__LOCKED, .told = true, .shared = true},
    {"undo", "[NUMBER]", "takes back what a person set last, or that change; not what rules set", BETWEEN,
     SGM__ROLE_STEER, FIELDS(undo_fields), WORDS(0, 1), .act = sgm__control_undo,
     .try = sgm__control_try_undo, .lock = SGM__LOCKED, .told = true, .shared = true},
    {"changes", "", "tells what was changed since the program began, by whom and why", NULL, SGM__ROLE_LOOK,
     .act = sgm__control_changes, .quick = true},
    {"list", "[IDENTIFIER]", "tells what may be read and set", NULL, SGM__ROLE_LOOK, FIELDS(list_fields),
     WORDS(0, 1), .act = sgm__control_list},
    {"attach", "HOOK",
     "runs a hook, 'every 2 epochs value_reporter(training.loss)'; see 'sigma info --hooks'", BETWEEN,
     SGM__ROLE_STEER, FIELDS(attach_fields), WORDS(1, 1), .act = sgm__control_attach,
     .try = sgm__control_try_attach, .lock = SGM__LOCKED, .told = true, .shared = true},
    {"detach", "NAME", "takes a hook off, by the name that hooks tells", BETWEEN, SGM__ROLE_STEER,
     FIELDS(detach_fields), WORDS(1, 1), .act = sgm__control_detach, .try = sgm__control_try_detach,
     .lock = SGM__LOCKED, .told = true, .shared = true},
    {"press", "NAME", "presses a button: rules with 'external \"NAME\"' see it at their next check", BETWEEN,
     SGM__ROLE_STEER, FIELDS(press_fields), WORDS(1, 1), .act = sgm__control_press,
     .try = sgm__control_try_press, .lock = SGM__LOCKED, .told = true, .shared = true},
    {"hooks", "",
     "tells what is attached: name, how often it ran and how long that took on average, when, condition",
     NULL, SGM__ROLE_LOOK, .act = sgm__control_hooks, .quick = true},
    {"pending", "", "tells which requests wait for approval, and how others were decided", NULL,
     SGM__ROLE_LOOK, .act = sgm__control_pending, .quick = true},
    {"approve", "NUMBER", "carries out a request that waits for approval", BETWEEN, SGM__ROLE_ADMIN,
     FIELDS(approve_fields), WORDS(1, 1), .act = sgm__control_approve, .try = sgm__control_try_approve,
     .told = true},
    {"deny", "NUMBER", "denies a request that waits for approval", "at once", SGM__ROLE_ADMIN,
     FIELDS(approve_fields), WORDS(1, 1), .act = sgm__control_deny, .try = sgm__control_try_deny,
     .quick = true, .told = true},
    {"describe", "[IDENTIFIER]",
     "tells all commands with their fields, and what can be set with its kind, unit, bounds and moment", NULL,
     SGM__ROLE_LOOK, FIELDS(describe_fields), WORDS(0, 1), .act = sgm__control_describe},
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

const sgm__command_row *sgm__command_at(size_t index)
{
    return index < ROW_COUNT ? &rows[index] : NULL;
}

sgm_status sgm__command_find(const char *name, const sgm__command_row **row)
{
    const char *names[ROW_COUNT];
    if (name == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "expected {\"command\": ...}, there is no command in it");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        names[i] = rows[i].name;
        *row = &rows[i];
        if (strcmp(name, names[i]) == 0)
            return SGM_OK;
    }
    const char *near = sgm__nearest(name, names, ROW_COUNT);
    return sgm_fail(SGM_ERROR_NOT_FOUND, "unknown command '%.100s'%s%s%s", name,
                    near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                    near != NULL ? "'?)" : "");
}
