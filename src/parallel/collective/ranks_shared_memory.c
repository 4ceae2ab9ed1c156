/* What ranks of one node share in memory: their gradients, and the values of parameters whose updates they
 * divide.
 *
 * The arenas of all workers lie in memory that the processes share, and each rank's update reads the
 * gradients of all workers where they lie. Each rank has a block of notes: its counts, its part of the
 * numbers that all learn, and for each worker where in its arena each gradient begins. Behind a first meeting
 * all notes are written, behind a second one nobody reads any more. Numbers and gradients are added in the
 * order of the ranks, so all ranks have the same bits. */
#include "graph/graph_internal.h"
#include "handlers/session.h"
#include "ops/ops.h"
#include "parallel/collective/ranks.h"

#define NOTES 0 /* the block with what each rank tells; then the workers' arenas, and values */
#define MAXIMUM_PARTS 16
_Static_assert(NOTES + 1 + SGM__MAXIMUM_WORKERS == SGM__VALUE_BLOCK, "each worker has a block");

/* Notes are words of 8 bytes. FIRST words are counts: of the numbers that are summed, of names, of workers,
 * and VALUES, the number of the block that has the values of trained parameters. Then come the numbers that
 * are summed (doubles), then for each worker its number of examples and, for each name, where in the worker's
 * arena the gradient begins. */
enum { SUMMED, NAMES, WORKERS, VALUES, FIRST };

/* --- values: updates that ranks of one node divide ---
 *
 * Each parameter has an owner, which alone updates it; the other ranks copy the new value from the owner's
 * memory. For that, trained parameters lie in a block that all ranks see. Updates are divided in this way
 * only for optimisers without states: states would have to be copied, too, which costs more than the update,
 * or would have to stay with their owner, which is what operator.sharded does (ranks_shard.c). */

/* --- whether the update is divided --- */

/* Whether a recorded update has optimiser states or moving averages. */
static bool remembers(const sgm_graph *graph)
{
    static const char *const prefixes[] = {SGM__SLOT_PREFIX, SGM__AVERAGE_PREFIX};
    for (size_t i = 0; i < graph->count; i++) {
        const char *name = sgm__graph_string(graph, graph->instructions[i].name);
        for (int k = 0; k < 2 && graph->instructions[i].op == &sgm__op_state; k++)
            if (sgm__begins_with(name, prefixes[k]))
                return true;
    }
    return false;
}

/* Whether the update treats each parameter by itself, and remembers nothing that its owner would have to tell
 * the other ranks. */
static bool is_divisible(const sgm_trainer *trainer)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const sgm_optimiser *optimiser = learner->optimiser;
    return optimiser->type->prepare == NULL && optimiser->options.clip_norm == 0 &&
           !sgm_network_is_dynamic(learner->network) && !remembers(learner->graph);
}

bool sgm__ranks_divide(sgm_trainer *trainer)
{
    sgm__trainer_kept *kept = sgm__kept_of(trainer);
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks == NULL)
        return false;
    bool sharded = sgm__ranks_sharded(ranks); /* then it was recorded so already */
    bool looked_at = kept->gradients_until > 0 || kept->updates_until > 0; /* those of all, here */
    ranks->divides = ranks->node != NULL && ranks->count > 1 && (sharded || is_divisible(trainer));
    return ranks->divides && !sharded && !looked_at;
}

sgm_status sgm__ranks_mark_placed(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    SGM_TRY(sgm__ranks_find_places(ranks));
    for (size_t i = 0; i < learner->trained_count; i++)
        learner->trained[i].elsewhere = ranks->places[i].owner != ranks->rank;
    return SGM_OK;
}

/* --- new values in shared memory --- */

/* After a state of the trainer has moved from `before`: workers that read the state there read it at its new
 * place. */
static void follow(const sgm_trainer *trainer, const char *name, const void *before)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    void *now = sgm__session_state_memory(sgm__learner_of(trainer)->session, name);
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm_session *session = sgm__learner_of(parallel->workers[i].replica)->session;
        if (sgm__session_state_memory(session, name) == before)
            sgm__session_place_state(session, name, now);
    }
}

/* Moves a parameter into the block, without changing its value. */
static void move(const sgm_trainer *trainer, const sgm__rank_place *place, unsigned char *block)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const void *before = sgm__session_state_memory(learner->session, place->name);
    memcpy(block + place->first, before, place->bytes);
    sgm__session_place_state(learner->session, place->name, block + place->first);
    follow(trainer, place->name, before);
}

/* Moves states that still lie in the previous block back into memory of the session: parameters that are not
 * trained any more. The block's memory is released by the next one that takes its number. */
static sgm_status bring_home(const sgm_trainer *trainer, const unsigned char *block, size_t bytes)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(learner->session, i)) != NULL; i++) {
        const unsigned char *memory = sgm__session_state_memory(learner->session, name);
        if (block == NULL || memory < block || memory >= block + bytes)
            continue;
        SGM_TRY(sgm__session_bring_home(learner->session, name));
        follow(trainer, name, memory);
    }
    return SGM_OK;
}

/* Moves all trained parameters into a block that the other ranks see; done again when the parameters are
 * others. Two blocks take turns, as the values come from the block that was used before. */
static sgm_status place_values(sgm__ranks *ranks)
{
    unsigned char *before = ranks->value_memory;
    size_t bytes_before = ranks->value_bytes;
    if (ranks->placed)
        return SGM_OK;
    SGM_TRY(sgm__ranks_find_places(ranks));
    ranks->value_block = ranks->value_block == SGM__VALUE_BLOCK ? SGM__VALUE_BLOCK + 1 : SGM__VALUE_BLOCK;
    ranks->value_memory = sgm__intra_node_block(ranks->node, ranks->value_block, ranks->place_bytes);
    if (ranks->value_memory == NULL)
        return sgm__last_failure();
    for (size_t i = 0; i < ranks->place_count; i++)
        move(ranks->trainer, &ranks->places[i], ranks->value_memory);
    ranks->placed = true;
    ranks->value_bytes = ranks->place_bytes;
    return bring_home(ranks->trainer, before, bytes_before);
}

/* Copies the parameters that `owner` updates from its block into this rank's. */
static void take_values(const sgm__ranks *ranks, int32_t owner, const unsigned char *values)
{
    for (size_t i = 0; i < ranks->place_count; i++) {
        const sgm__rank_place *place = &ranks->places[i];
        if (place->owner == owner)
            memcpy(ranks->value_memory + place->first, values + place->first, place->bytes);
    }
}

/* Finds the block of values of a rank, by the number that the rank noted before the newest meeting. */
static sgm_status look_at_values(sgm__ranks *ranks, int32_t rank, const unsigned char **values)
{
    const void *memory;
    SGM_TRY(sgm__intra_node_look(ranks->node, rank, NOTES, &memory));
    SGM_TRY(sgm__intra_node_look(ranks->node, rank, (int32_t)((const uint64_t *)memory)[VALUES], &memory));
    *values = memory;
    return SGM_OK;
}

/* Each rank begins with its neighbour, so that not all ranks read the memory of one at the same time. */
sgm_status sgm__ranks_exchange_values(sgm__ranks *ranks)
{
    SGM_TRY(sgm__intra_node_meet(ranks->node, "the new values"));
    for (int32_t i = 1; i < ranks->count; i++) {
        int32_t owner = (ranks->rank + i) % ranks->count;
        const unsigned char *values;
        SGM_TRY(look_at_values(ranks, owner, &values));
        take_values(ranks, owner, values);
    }
    return SGM_OK;
}

/* --- gradients --- */

/* The gradients of a worker that had examples. */
typedef struct sgm__shared_part {
    const uint64_t *places; /* bytes from the arena's begin, in the order of the operator's names */
    const unsigned char *arena;
} sgm__shared_part;

/* --- whether gradients are shared --- */

/* Whether this rank can: handlers of the computer's memory, gradients merged, and few workers in all. Each
 * rank reads the gradients of all, so from some number on sums in a ring move less. */
static bool is_willing(const sgm__ranks *ranks)
{
    const sgm_trainer *trainer = ranks->trainer;
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    bool host = (sgm__settings_of(trainer)->handler->type->flags & SGM__HANDLER_HOST) != 0;
    for (int32_t i = 0; i < parallel->count; i++)
        host &= (parallel->workers[i].handler->type->flags & SGM__HANDLER_HOST) != 0;
    return host && parallel->merges_gradients && !ranks->options.narrow && !ranks->options.messages &&
           parallel->count * ranks->count <= MAXIMUM_PARTS;
}

sgm_status sgm__ranks_look_intra_node(sgm__ranks *ranks)
{
    if (ranks->looked)
        return SGM_OK;
    ranks->looked = true;
    return sgm__intra_node_open(ranks, is_willing(ranks), &ranks->node);
}

/* --- what this rank shares --- */

/* Gives a worker's session memory for its arena, from the block of the worker's number, which other ranks can
 * read. */
static void *grow_arena(void *user, size_t bytes)
{
    const sgm__worker *worker = user;
    return sgm__intra_node_block(worker->parallel->ranks->node, NOTES + 1 + worker->number, bytes);
}

/* A single rank keeps arenas in memory of its own. */
sgm_status sgm__ranks_prepare_sharing(sgm__ranks *ranks)
{
    sgm_operator *parallel = sgm__sharing_of(ranks->trainer)->parallel;
    for (int32_t i = 0; i < parallel->count && ranks->count > 1; i++) {
        const sgm__arena_source source = {grow_arena, &parallel->workers[i]};
        SGM_TRY(
            sgm__session_take_arena_from(sgm__learner_of(parallel->workers[i].replica)->session, &source));
    }
    return SGM_OK;
}

/* Makes room for notes: twice what is needed, as other ranks map a block anew whenever it grows. */
static sgm_status reserve_notes(sgm__ranks *ranks, size_t words)
{
    if (words <= ranks->note_words)
        return SGM_OK;
    ranks->notes = sgm__intra_node_block(ranks->node, NOTES, 2 * words * sizeof *ranks->notes);
    ranks->note_words = ranks->notes != NULL ? 2 * words : 0;
    return ranks->notes != NULL ? SGM_OK : sgm__last_failure();
}

/* Writes where in the worker's arena each gradient begins, in bytes. */
static sgm_status note_places(sgm__worker *worker, uint64_t *places)
{
    const unsigned char *arena = sgm__learner_of(worker->replica)->session->arena;
    for (size_t i = 0; i < worker->parallel->name_count; i++) {
        const void *memory;
        sgm_tensor *none = NULL;
        SGM_TRY(sgm__worker_gradient(worker, i, &memory, &none));
        places[i] = (uint64_t)((const unsigned char *)memory - arena);
    }
    return SGM_OK;
}

/* Writes this rank's notes for the coming meeting. For a worker without examples there are no places. */
static sgm_status write_notes(sgm__ranks *ranks)
{
    const sgm_operator *parallel = sgm__sharing_of(ranks->trainer)->parallel;
    size_t names = parallel->name_count, summed = ranks->shared_count;
    SGM_TRY(reserve_notes(ranks, FIRST + summed + (size_t)parallel->count * (1 + names)));
    uint64_t *notes = ranks->notes, *own = notes + FIRST + summed;
    notes[SUMMED] = summed;
    notes[NAMES] = names;
    notes[WORKERS] = (uint64_t)parallel->count;
    memcpy(notes + FIRST, ranks->shared, summed * sizeof *ranks->shared);
    for (int32_t i = 0; i < parallel->count; i++, own += 1 + names) {
        own[0] = (uint64_t)parallel->workers[i].examples;
        if (own[0] > 0)
            SGM_TRY(note_places(&parallel->workers[i], own + 1));
    }
    return SGM_OK;
}

/* --- what all ranks share --- */

/* Where the arena of a worker of any rank lies in this process. */
static sgm_status look_at_arena(sgm__ranks *ranks, int32_t rank, int32_t worker, const unsigned char **arena)
{
    const void *memory = NULL;
    if (rank == ranks->rank)
        memory = sgm__learner_of(sgm__sharing_of(ranks->trainer)->parallel->workers[worker].replica)
                     ->session->arena;
    else
        SGM_TRY(sgm__intra_node_look(ranks->node, rank, NOTES + 1 + worker, &memory));
    *arena = memory;
    return SGM_OK;
}

/* Adds a part for each worker of a rank that had examples. */
static sgm_status read_parts(sgm__ranks *ranks, int32_t rank, const uint64_t *notes)
{
    const uint64_t *at = notes + FIRST + notes[SUMMED];
    SGM_TRY(sgm__reserve(&ranks->parts, &ranks->part_capacity, ranks->part_count + (size_t)notes[WORKERS],
                         sizeof *ranks->parts));
    for (uint64_t i = 0; i < notes[WORKERS]; i++, at += 1 + notes[NAMES]) {
        sgm__shared_part *part = &ranks->parts[ranks->part_count];
        if (at[0] == 0)
            continue;
        *part = (sgm__shared_part){.places = at + 1};
        SGM_TRY(look_at_arena(ranks, rank, (int32_t)i, &part->arena));
        ranks->part_count++;
    }
    return SGM_OK;
}

/* Adds the numbers of a rank to the sum; those of rank 0 begin it. */
static void add_numbers(sgm__ranks *ranks, int32_t rank, const uint64_t *notes)
{
    for (size_t i = 0; i < ranks->shared_count; i++) {
        double number;
        memcpy(&number, &notes[FIRST + i], sizeof number);
        ranks->shared[i] = rank > 0 ? ranks->shared[i] + number : number;
    }
}

/* Writes this rank's notes, meets the others, and reads all notes in the order of the ranks, so that sums
 * have the same bits on every rank. Afterwards ranks->shared has the summed numbers, and ranks->parts the
 * gradients of all workers that had examples. */
sgm_status sgm__ranks_share_gradients(sgm__ranks *ranks)
{
    SGM_TRY(write_notes(ranks));
    SGM_TRY(sgm__intra_node_meet(ranks->node, "the gradients"));
    ranks->part_count = 0;
    for (int32_t i = 0; i < ranks->count; i++) {
        const void *memory;
        SGM_TRY(sgm__intra_node_look(ranks->node, i, NOTES, &memory));
        const uint64_t *notes = memory;
        if (notes[SUMMED] != ranks->shared_count ||
            notes[NAMES] != sgm__sharing_of(ranks->trainer)->parallel->name_count)
            return sgm_fail(SGM_ERROR_STATE,
                            "rank %d (%s) trains %llu parameters, this one %zu: all want the same", i,
                            ranks->table->place(ranks->self, i), (unsigned long long)notes[NAMES],
                            sgm__sharing_of(ranks->trainer)->parallel->name_count);
        add_numbers(ranks, i, notes);
        SGM_TRY(read_parts(ranks, i, notes));
    }
    return SGM_OK;
}

/* Points the inputs of the update to the gradients of all parts, where they lie; nothing is copied. Where the
 * update is divided, parameters are moved into the shared block first, and the block's number is noted for
 * the meeting behind the update. */
sgm_status sgm__ranks_pass_shared(sgm__ranks *ranks, sgm_program *apply)
{
    sgm_operator *parallel = sgm__sharing_of(ranks->trainer)->parallel;
    if (ranks->divides)
        SGM_TRY(place_values(ranks));
    ranks->notes[VALUES] = (uint64_t)ranks->value_block;
    for (size_t i = 0; i < ranks->part_count; i++) {
        const sgm__shared_part *part = &ranks->parts[i];
        for (size_t k = 0; k < parallel->name_count; k++)
            SGM_TRY(sgm__feed_part(parallel, i, apply, k, part->arena + part->places[k], NULL));
    }
    return SGM_OK;
}

size_t sgm__ranks_count_parts(const sgm__ranks *ranks)
{
    return ranks->node != NULL ? ranks->part_count : 1;
}

/* Behind this meeting every rank may write its gradients anew. */
sgm_status sgm__ranks_give_back(sgm__ranks *ranks)
{
    return ranks->node != NULL ? sgm__intra_node_meet(ranks->node, "the end of the update") : SGM_OK;
}
