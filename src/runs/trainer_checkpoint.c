/* Saves a trainer into a file and loads it, as a whole or in parts (network, parameters, optimiser, position,
 * random numbers, hooks, metrics, settings).
 *
 * A checkpoint is a bundle (src/persistence): the session's states as tensors, the network's notation and a
 * JSON text (state.c) as texts. Loading goes in three steps, so that a refusal leaves everything as it was:
 * read the file, compare it with the trainer (parts_fit.c), then take it over (take_over.c). The strategy
 * adds and takes what belongs to workers. With PyTorch's names the bundle's tensors are renamed on the way
 * (torch_values.c).
 *
 * Reading and writing files happens without the trainer's lock; making a bundle and taking it over with
 * it, between two steps. Any thread may call the public functions here. */
#include "journal/run_lines.h"
#include "network/rerecord.h"
#include "persistence/bundle.h"
#include "registry/pattern.h"
#include "runs/checkpoints.h"
#include "runs/parts/parts.h"
#include "runs/parts/setup.h"
#include "runs/parts/torch_names.h"
#include "show/show.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"

#include <stdio.h>

/* --- what a caller asks for --- */

/* Reads patterns with spaces between them; parts_free frees them, also on failure. */
static sgm_status read_patterns(sgm__parts *wanted, const char *states)
{
    wanted->patterns = sgm__words(states, &wanted->pattern_count);
    if (wanted->patterns == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < wanted->pattern_count; i++)
        SGM_TRY(sgm__pattern_check(wanted->patterns[i]));
    return wanted->pattern_count > 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, ".states has no pattern; expected one such as \"*.weights\"");
}

/* Reads what a caller asked for; `what` is the function's name for messages. *left is the caller's place
 * for the text of what did not fit, which begins as NULL. Names of PyTorch are names of parameters, so no
 * other part can be asked for with them. */
static sgm_status parts_read(const sgm_part_options *given, const char *what, sgm__parts *wanted,
                             char ***left)
{
    sgm_part_options options;
    *wanted = (sgm__parts){0};
    *left = NULL;
    SGM_TRY(sgm__options_read(&options, sizeof options, given, what));
    if ((options.parts & ~(unsigned)SGM_PART_EVERYTHING) != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: .parts is %#x, expected a sum of SGM_PART_...", what,
                        options.parts);
    wanted->parts = options.parts;
    wanted->skip_mismatch = options.skip_mismatch;
    wanted->trained = options.trained;
    wanted->names = options.names;
    *left = options.left;
    if (*left != NULL)
        **left = NULL;
    if (options.names != NULL) {
        SGM_TRY(sgm__torch_names_check(options.names));
        if ((options.parts & ~(unsigned)SGM_PART_PARAMETERS) != 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s: .names are of parameters; leave other .parts out", what);
        wanted->parts = SGM_PART_PARAMETERS;
    }
    return options.states != NULL ? read_patterns(wanted, options.states) : SGM_OK;
}

static void parts_free(sgm__parts *wanted)
{
    sgm__free(wanted->patterns);
}

/* --- saving --- */

/* Whether a state is a parameter that adapters freeze. */
static bool is_frozen(const sgm_trainer *trainer, const char *state)
{
    const sgm_parameter *parameter = sgm__network_parameter(sgm__learner_of(trainer)->network, state);
    return parameter != NULL && parameter->frozen;
}

static sgm_status add_state(const sgm_trainer *trainer, const char *name, sgm_bundle *bundle)
{
    sgm_tensor *value = sgm_session_get(sgm__learner_of(trainer)->session, name);
    sgm_status status = value != NULL ? sgm_bundle_add(bundle, name, value) : sgm_last_status();
    sgm_tensor_free(value);
    return status;
}

/* Adds the session's states that belong to the wanted parts and are in this process; with ranks that divide
 * the optimiser's states, the strategy adds the others. */
static sgm_status add_states(sgm_trainer *trainer, const sgm__parts *wanted, sgm_bundle *bundle)
{
    size_t count, matches = 0;
    const char **states = sgm__state_order(trainer, &count);
    sgm_status status = states != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        const char *name = states[i];
        if (!sgm__parts_have(wanted, name) || !sgm__trainer_has_state(trainer, name) ||
            (wanted->trained && is_frozen(trainer, name)))
            continue;
        matches += sgm__part_of_state(name) != SGM_PART_RANDOM;
        status = add_state(trainer, name, bundle);
    }
    sgm__free(states);
    SGM_TRY(status);
    if (wanted->pattern_count > 0 && matches == 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "no state of the trainer matches '%s'; one is '%s'",
                        wanted->patterns[0], sgm_session_state_at(sgm__learner_of(trainer)->session, 0));
    return SGM_OK;
}

/* With the lock. Preparing defines the states, so that a trainer that has never run can be saved. */
static sgm_status fill_bundle(sgm_trainer *trainer, const sgm__parts *wanted, sgm_bundle *bundle)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    SGM_TRY(sgm__trainer_prepare(trainer));
    if ((wanted->parts & SGM_PART_NETWORK) != 0) {
        char *network = sgm_network_text(sgm__learner_of(trainer)->network);
        sgm_status status =
            network != NULL ? sgm_bundle_set_text(bundle, SGM__NETWORK_KEY, network) : sgm_last_status();
        sgm_string_free(network);
        SGM_TRY(status);
    }
    SGM_TRY(sgm__trainer_collect(trainer));
    SGM_TRY(sgm__state_add(trainer, wanted->parts, bundle));
    SGM_TRY(add_states(trainer, wanted, bundle));
    return strategy != NULL ? strategy->add_states(trainer, wanted, bundle) : SGM_OK;
}

/* Takes the lock, and where hooks' states are saved or loaded, the turns of hooks as well. Leave with
 * sgm__trainer_leave_with_hooks. */
static sgm_status enter(sgm_trainer *trainer, unsigned parts, sgm__held_hooks *held)
{
    *held = (sgm__held_hooks){0};
    return (parts & SGM_PART_HOOKS) != 0 ? sgm__trainer_enter_with_hooks(trainer, held)
                                         : sgm__trainer_enter(trainer);
}

/* With names of PyTorch, replaces the bundle by one with the other program's names and layouts; with the
 * trainer's lock, for its network. */
static sgm_status rename_states(const sgm_trainer *trainer, const sgm__parts *wanted, bool saving,
                                sgm_bundle **bundle)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    if (wanted->names == NULL)
        return SGM_OK;
    sgm_bundle *renamed =
        saving ? sgm__torch_export(learner->network, wanted->names, *bundle, sgm_trainer_name(trainer))
               : sgm__torch_import(learner->network, wanted->names, *bundle, wanted->skip_mismatch);
    if (renamed == NULL)
        return sgm_last_status();
    sgm_bundle_free(*bundle);
    *bundle = renamed;
    return SGM_OK;
}

/* Copies what is wanted of a trainer into a bundle; NULL with an error. */
static sgm_bundle *make_bundle(sgm_trainer *trainer, const sgm__parts *wanted)
{
    sgm__held_hooks held;
    sgm_bundle *bundle = sgm_bundle_create();
    if (bundle == NULL)
        return NULL;
    sgm_status status = enter(trainer, wanted->parts, &held);
    if (status == SGM_OK) {
        status = fill_bundle(trainer, wanted, bundle);
        if (status == SGM_OK)
            status = rename_states(trainer, wanted, true, &bundle);
        sgm__trainer_leave_with_hooks(trainer, &held);
    }
    if (status == SGM_OK)
        return bundle;
    sgm_bundle_free(bundle);
    return NULL;
}

/* The bundle is made with the lock; writing it to the file needs none, so training goes on meanwhile. */
static sgm_status save(sgm_trainer *trainer, const char *path, const sgm__parts *wanted,
                       sgm__before_rename_function before_rename, void *user)
{
    sgm_task task = sgm_task_begin(SGM_TASK_SAVE, path, NULL);
    sgm_bundle *bundle = make_bundle(trainer, wanted);
    sgm_status status = bundle == NULL ? sgm_last_status()
                        : before_rename != NULL
                            ? sgm__bundle_save_with_callback(bundle, path, before_rename, user)
                            : sgm_bundle_save(bundle, path);
    sgm_task_end(task, status);
    if (status == SGM_OK)
        sgm__log(SGM_LOG_DEBUG, sgm_trainer_name(trainer), "saved '%s'", path);
    sgm_bundle_free(bundle);
    return status;
}

sgm_status sgm__trainer_save_with_callback(sgm_trainer *trainer, const char *path,
                                           sgm__before_rename_function before_rename, void *user)
{
    SGM_TRY(sgm_trainer_status(trainer));
    return save(trainer, path, &(sgm__parts){.parts = SGM_PART_EVERYTHING}, before_rename, user);
}

sgm_status sgm_trainer_save_parts_with(sgm_trainer *trainer, const char *path,
                                       const sgm_part_options *options)
{
    sgm__parts wanted;
    char **left;
    SGM_TRY(sgm_trainer_status(trainer));
    sgm_status status = parts_read(options, "sgm_trainer_save_parts", &wanted, &left);
    if (status == SGM_OK && path == NULL)
        status = sgm_fail(SGM_ERROR_ARGUMENT, "sgm_trainer_save_parts: expected a path, got NULL");
    if (wanted.parts == 0)
        wanted.parts = SGM_PART_EVERYTHING;
    if (status == SGM_OK)
        status = save(trainer, path, &wanted, NULL, NULL);
    parts_free(&wanted);
    return status;
}

sgm_status sgm_trainer_save(sgm_trainer *trainer, const char *path)
{
    return sgm_trainer_save_parts_with(trainer, path, NULL);
}

/* --- loading: everything is read and checked before anything changes --- */

/* Decides which parts are taken: the parts that were asked for, or all that the file has. A part that was
 * asked for and is missing is an error, unless mismatches are skipped. */
static sgm_status choose_parts(const sgm__saved_state *state, const char *source, sgm__parts *wanted)
{
    unsigned missing = wanted->parts & ~state->parts;
    if (missing == 0 || wanted->skip_mismatch) {
        wanted->parts = wanted->parts != 0 ? wanted->parts & state->parts : state->parts;
        return SGM_OK;
    }
    char *there = sgm__parts_text(state->parts), *lacks = sgm__parts_text(missing);
    sgm_status status = sgm_fail(SGM_ERROR_NOT_FOUND, "'%s' was saved without %s; it has %s", source,
                                 lacks != NULL ? lacks : "", there != NULL ? there : "");
    sgm__free(there);
    sgm__free(lacks);
    return status;
}

/* Another type of optimiser is a difference when only its state is loaded, since that would be put into the
 * wrong optimiser. With the position it is allowed: the training continues with another optimiser. */
static void compare_optimisers(const sgm_trainer *trainer, const sgm__saved_state *state, sgm__fit *fit)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const char *old = state->optimiser, *own = learner->optimiser ? learner->optimiser->type->name : NULL;
    if ((fit->wanted->parts & SGM_PART_OPTIMISER) == 0 || old == NULL || own == NULL || strcmp(old, own) == 0)
        return;
    if ((fit->wanted->parts & SGM_PART_POSITION) == 0)
        sgm__fit_differs(fit, "it was trained with the optimiser %s, the trainer has %s", old, own);
    else if (sgm__trainer_can_train(trainer))
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer),
                 "the checkpoint was trained with the optimiser %s, training goes on with %s", old, own);
}

static void tell_conversions(const sgm_trainer *trainer, const sgm__fit *fit)
{
    if (fit->conversions > 0)
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer),
                 "'%s' is of another precision: %zu of its tensors were converted, %s%s", fit->source,
                 fit->conversions, fit->conversions > 1 ? "such as " : "",
                 fit->first_conversion.data != NULL ? fit->first_conversion.data : "");
}

/* Tells the log, and the caller's *left (free with sgm_string_free), what did not fit. */
static void tell_what_was_left(const sgm_trainer *trainer, const sgm__fit *fit, char **left)
{
    if (fit->difference_count == 0)
        return;
    sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer), "'%s' was loaded as far as it fits: %.600s",
             fit->source, fit->differences.data);
    if (left != NULL)
        *left = sgm__strdup(fit->differences.data);
}

/* Lists the differences between the bundle and the trainer; call sgm__fit_close also after a failure. */
static sgm_status compare(sgm__fit *fit, const sgm_trainer *trainer, const sgm_bundle *bundle,
                          const sgm__parts *wanted, const char *source)
{
    SGM_TRY(sgm__fit_open(fit, trainer, bundle, wanted, source));
    sgm__fit_compare_network(fit);
    return sgm__fit_compare_states(fit);
}

/* Compares, decides, converts and takes over; with the trainer's lock. Up to sgm__take_over nothing of the
 * trainer changes. */
static sgm_status load_state(sgm_trainer *trainer, const sgm_bundle *bundle, sgm__parts *wanted,
                             const char *source, const sgm__saved_state *state, char **left)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    sgm__fit fit = {0};
    SGM_TRY(choose_parts(state, source, wanted));
    sgm_status status = compare(&fit, trainer, bundle, wanted, source);
    if (status == SGM_OK) {
        compare_optimisers(trainer, state, &fit);
        status = sgm__fit_decide(&fit);
    }
    if (status == SGM_OK && sgm__parts_are_all(wanted) && strategy != NULL)
        status = strategy->check_states(trainer, bundle, state->json, source);
    if (status == SGM_OK)
        status = sgm__fit_convert(&fit);
    if (status == SGM_OK && (status = sgm__take_over(trainer, &fit, state)) != SGM_OK)
        sgm__fail_within("'%s'", source);
    if (status == SGM_OK) {
        tell_conversions(trainer, &fit);
        tell_what_was_left(trainer, &fit, left);
    }
    sgm__fit_close(&fit);
    return status;
}

/* The comparison alone: whether a restore would succeed. The trainer does not change. */
sgm_status sgm__checkpoint_fits(sgm_trainer *trainer, const sgm_bundle *bundle, const sgm__saved_state *state,
                                const char *source)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    const sgm__parts wanted = {.parts = state->parts};
    sgm__fit fit = {0};
    sgm_status status = compare(&fit, trainer, bundle, &wanted, source);
    if (status == SGM_OK)
        status = sgm__fit_decide(&fit);
    if (status == SGM_OK && sgm__parts_are_all(&wanted) && strategy != NULL)
        status = strategy->check_states(trainer, bundle, state->json, source);
    sgm__fit_close(&fit);
    return status;
}

/* Gives a trainer that has no optimiser the one of the file, and its hooks, before the rest is loaded. After
 * a failure it has neither. */
static sgm_status load_with_setup(sgm_trainer *trainer, const sgm_bundle *bundle, sgm__parts *wanted,
                                  const char *source, const sgm__saved_state *state, char **left)
{
    sgm__set_up_hooks made = {0};
    sgm_status status = sgm__setup_take_optimiser(trainer, state);
    if (status != SGM_OK)
        return sgm__fail_within("'%s'", source);
    status = sgm__setup_take_hooks(trainer, state, &made);
    status = status == SGM_OK ? load_state(trainer, bundle, wanted, source, state, left)
                              : sgm__fail_within("'%s'", source);
    sgm__setup_end_hooks(trainer, &made, status);
    if (status != SGM_OK)
        sgm__setup_give_back_optimiser(trainer);
    return status;
}

/* Reads the state, takes the lock and loads. Afterwards the trainer has other parameters, so results of
 * earlier passes over data are dropped. */
static sgm_status load_bundle(sgm_trainer *trainer, const sgm_bundle *bundle, sgm__parts *wanted,
                              const char *source, char **left)
{
    sgm__saved_state state;
    sgm__held_hooks held;
    sgm_status status = sgm__state_open(&state, bundle, source);
    if (status == SGM_OK)
        status = enter(trainer, wanted->parts != 0 ? wanted->parts & state.parts : state.parts, &held);
    if (status == SGM_OK) {
        status = sgm__setup_is_wanted(trainer, &state, wanted)
                     ? load_with_setup(trainer, bundle, wanted, source, &state, left)
                     : load_state(trainer, bundle, wanted, source, &state, left);
        sgm__trainer_parameters_changed(trainer);
        sgm__trainer_leave_with_hooks(trainer, &held);
    }
    sgm__state_close(&state);
    return status;
}

/* Warns of one of our own files without checksums: another program has rewritten it, and damage would not
 * be noticed. */
static void note_missing_checksums(const sgm_trainer *trainer, const sgm_bundle *bundle, const char *path)
{
    if (bundle != NULL && !bundle->verified && sgm__bundle_has_text(bundle, SGM__NETWORK_KEY))
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer),
                 "'%s' has no checksums, so damage to it would not be noticed; what is saved from now on has "
                 "them",
                 path);
}

/* Renames with the lock, as another thread may set the trainer's network. */
static sgm_status name_again(sgm_trainer *trainer, const sgm__parts *wanted, const char *source,
                             sgm_bundle **bundle)
{
    if (wanted->names == NULL)
        return SGM_OK;
    SGM_TRY(sgm__trainer_enter(trainer)); /* names of PyTorch are of parameters alone */
    sgm_status status = rename_states(trainer, wanted, false, bundle);
    sgm__trainer_unlock(trainer);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("'%s'", source);
}

static sgm_status load_file(sgm_trainer *trainer, const char *path, const sgm_part_options *options)
{
    sgm__parts wanted;
    char **left;
    sgm_status status = parts_read(options, "sgm_trainer_load_parts", &wanted, &left);
    sgm_task task = sgm_task_begin(SGM_TASK_LOAD, path, NULL);
    sgm_bundle *bundle = status == SGM_OK ? sgm_bundle_load(path) : NULL;
    note_missing_checksums(trainer, bundle, path);
    if (status == SGM_OK)
        status = bundle != NULL ? name_again(trainer, &wanted, path, &bundle) : sgm_last_status();
    if (status == SGM_OK)
        status = load_bundle(trainer, bundle, &wanted, path, left);
    sgm_task_end(task, status);
    if (status == SGM_OK)
        sgm__log(SGM_LOG_DEBUG, sgm_trainer_name(trainer), "loaded '%s'", path);
    sgm_bundle_free(bundle);
    parts_free(&wanted);
    return status;
}

/* Of a folder, the newest checkpoint. */
sgm_status sgm_trainer_load_parts_with(sgm_trainer *trainer, const char *path,
                                       const sgm_part_options *options)
{
    SGM_TRY(sgm_trainer_status(trainer));
    if (path == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_trainer_load_parts: expected a path, got NULL");
    if (!sgm__is_folder(path))
        return load_file(trainer, path, options);
    char *file = sgm__format("%s/" SGM__CHECKPOINT_FILE, path);
    sgm_status status = file != NULL ? load_file(trainer, file, options) : SGM_ERROR_MEMORY;
    sgm__free(file);
    return status;
}

sgm_status sgm_trainer_load(sgm_trainer *trainer, const char *path)
{
    return sgm_trainer_load_parts_with(trainer, path, NULL);
}

/* --- from trainer to trainer --- */

/* Copies through a bundle in memory: with the same checks as a file, and without holding two trainers'
 * locks at once. */
sgm_status sgm_trainer_copy_parts_with(sgm_trainer *to, sgm_trainer *from, const sgm_part_options *options)
{
    sgm__parts wanted;
    char **left;
    SGM_TRY(sgm_trainer_status(to));
    SGM_TRY(sgm_trainer_status(from));
    if (to == from)
        return SGM_OK;
    sgm_status status = parts_read(options, "sgm_trainer_copy_parts", &wanted, &left);
    sgm__parts all = wanted;
    if (all.parts == 0)
        all.parts = SGM_PART_EVERYTHING;
    sgm_bundle *bundle = status == SGM_OK ? make_bundle(from, &all) : NULL;
    if (status == SGM_OK)
        status = bundle != NULL ? load_bundle(to, bundle, &wanted, sgm_trainer_name(from), left)
                                : sgm_last_status();
    sgm_bundle_free(bundle);
    parts_free(&wanted);
    return status;
}

/* A trainer that has no network takes that too. */
sgm_status sgm_trainer_copy_parameters(sgm_trainer *to, sgm_trainer *from)
{
    SGM_TRY(sgm_trainer_status(to));
    bool needs_network = sgm__learner_of(to)->network == NULL;
    return sgm_trainer_copy_parts(to, from,
                                  .parts = SGM_PART_PARAMETERS | (needs_network ? SGM_PART_NETWORK : 0u));
}

/* --- what a file has --- */

/* Reads the header alone; tensors are not read. */
char *sgm_checkpoint_network(const char *path)
{
    sgm_bundle *bundle = sgm__bundle_load_texts(path);
    if (bundle == NULL)
        return NULL;
    const char *notation = sgm_bundle_get_text(bundle, SGM__NETWORK_KEY);
    char *copy = NULL;
    sgm__saved_state state;
    if (notation == NULL)
        sgm_fail(SGM_ERROR_FORMAT, "'%s' is no checkpoint: it has tensors, but no network", path);
    else if (sgm__state_open(&state, bundle, path) == SGM_OK)
        copy = sgm__strdup(notation);
    if (notation != NULL)
        sgm__state_close(&state);
    sgm_bundle_free(bundle);
    return copy;
}

/* Reads the header alone. */
sgm_status sgm_checkpoint_parts(const char *path, unsigned *parts)
{
    sgm__saved_state state;
    sgm_bundle *bundle = sgm__bundle_load_texts(path);
    if (bundle == NULL)
        return sgm_last_status();
    sgm_status status = sgm__state_open(&state, bundle, path);
    *parts = state.parts;
    sgm__state_close(&state);
    sgm_bundle_free(bundle);
    return status;
}
