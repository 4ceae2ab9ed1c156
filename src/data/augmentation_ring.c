/* A ring of minibatches that threads augment while an older one is in use.
 *
 * The iterator's thread (iterator_batches.c) copies examples into a free slot and submits it; a thread of the
 * ring applies the chain of augmentation (augment.c); the iterator's thread takes the slots in the order in
 * which it submitted them. The order of examples is thus decided on one thread, and only the changes of
 * pictures run side by side. A slot goes through
 *   FREE -> WANTED (submitted) -> BUSY (a thread augments) -> READY (may be taken) -> FREE (released)
 * If the slot to be taken was not begun by any thread, the taking thread augments it by itself; so a ring
 * without threads works, too, and nobody waits while there is work to do. Reading blocks ahead is something
 * else: prefetch.c. */
#include "data/augment.h"

#define MAXIMUM_THREADS 64

typedef enum { FREE, WANTED, BUSY, READY } stage;

/* Slots first to first + count - 1, modulo slot_count, are not free: the oldest of them is at `first`. */
struct sgm__ahead {
    sgm__augmentation *chain; /* owned; never changes */
    /* Guards everything below except the contents of slots: these belong to the iterator's thread while FREE
     * or taken, and to the thread that augments while BUSY. */
    pthread_mutex_t mutex;
    /* `work`: a slot was submitted, or the threads are to end. `done`: a slot became READY. */
    pthread_cond_t work, done;
    /* `taken`: the slot at `first` is given out, and is released at the next take. */
    bool leaving, taken;
    size_t first, count;
    size_t slot_count, thread_count;
    sgm__ahead_slot slots[MAXIMUM_THREADS + 1];
    pthread_t threads[MAXIMUM_THREADS];
};

/* The slot at a place in the ring, from the oldest one at 0. */
static sgm__ahead_slot *slot_at(sgm__ahead *ahead, size_t place)
{
    return &ahead->slots[(ahead->first + place) % ahead->slot_count];
}

/* Augments a WANTED slot on the calling thread. Holds the mutex before and after, but not while it works. */
static void augment(sgm__ahead *ahead, sgm__ahead_slot *slot)
{
    slot->stage = BUSY;
    pthread_mutex_unlock(&ahead->mutex);
    sgm__augmentation_apply(ahead->chain, slot->full, slot->count, slot->seed, slot->first, slot->scratch);
    pthread_mutex_lock(&ahead->mutex);
    slot->stage = READY;
    pthread_cond_broadcast(&ahead->done);
}

static sgm__ahead_slot *oldest_wanted(sgm__ahead *ahead)
{
    for (size_t i = 0; i < ahead->count; i++)
        if (slot_at(ahead, i)->stage == WANTED)
            return slot_at(ahead, i);
    return NULL;
}

/* The function of the ring's threads: the oldest slot comes first, since it is needed first. */
static void *work(void *user)
{
    sgm__ahead *ahead = user;
    pthread_mutex_lock(&ahead->mutex);
    while (!ahead->leaving) {
        sgm__ahead_slot *slot = oldest_wanted(ahead);
        if (slot != NULL)
            augment(ahead, slot);
        else
            pthread_cond_wait(&ahead->work, &ahead->mutex);
    }
    pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

/* It is no failure if fewer threads can be started than wanted: the number of slots stays the same, and the
 * thread that takes a slot does the work. */
sgm__ahead *sgm__ahead_create(sgm__augmentation *chain, int64_t threads)
{
    sgm__ahead *made = chain != NULL ? sgm__calloc(1, sizeof *made) : NULL;
    if (made == NULL) {
        sgm__augmentation_free(chain);
        return NULL;
    }
    made->chain = chain;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->done, NULL);
    size_t wanted = threads < MAXIMUM_THREADS ? (size_t)threads : MAXIMUM_THREADS;
    made->slot_count = wanted + 1;
    while (made->thread_count < wanted &&
           pthread_create(&made->threads[made->thread_count], NULL, work, made) == 0)
        made->thread_count++;
    return made;
}

const sgm__augmentation *sgm__ahead_chain(const sgm__ahead *ahead)
{
    return ahead->chain;
}

sgm__ahead_slot *sgm__ahead_room(sgm__ahead *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    sgm__ahead_slot *slot = ahead->count < ahead->slot_count ? slot_at(ahead, ahead->count) : NULL;
    pthread_mutex_unlock(&ahead->mutex);
    return slot;
}

void sgm__ahead_submit(sgm__ahead *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    slot_at(ahead, ahead->count)->stage = WANTED;
    ahead->count++;
    pthread_cond_signal(&ahead->work);
    pthread_mutex_unlock(&ahead->mutex);
}

/* Under the mutex. */
static void release(sgm__ahead *ahead)
{
    if (!ahead->taken)
        return;
    slot_at(ahead, 0)->stage = FREE;
    ahead->first = (ahead->first + 1) % ahead->slot_count;
    ahead->count--;
    ahead->taken = false;
}

void sgm__ahead_release(sgm__ahead *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    release(ahead);
    pthread_mutex_unlock(&ahead->mutex);
}

/* A slot that is still WANTED is augmented here, on the iterator's thread, instead of waiting for a thread
 * that is busy with a later one. */
sgm__ahead_slot *sgm__ahead_take(sgm__ahead *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    release(ahead);
    sgm__ahead_slot *slot = ahead->count > 0 ? slot_at(ahead, 0) : NULL;
    if (slot != NULL && slot->stage == WANTED)
        augment(ahead, slot);
    while (slot != NULL && slot->stage != READY)
        pthread_cond_wait(&ahead->done, &ahead->mutex);
    ahead->taken = slot != NULL;
    pthread_mutex_unlock(&ahead->mutex);
    return slot;
}

bool sgm__ahead_is_ready(sgm__ahead *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    size_t place = ahead->taken ? 1 : 0;
    bool ready = place < ahead->count && slot_at(ahead, place)->stage == READY;
    pthread_mutex_unlock(&ahead->mutex);
    return ready;
}

bool sgm__ahead_is_empty(sgm__ahead *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    bool empty = ahead->count == (ahead->taken ? 1 : 0);
    pthread_mutex_unlock(&ahead->mutex);
    return empty;
}

static void free_blocks(sgm__ahead_slot *slot)
{
    sgm_block_free(slot->rest);
    sgm_block_free(slot->full);
    sgm__free(slot->scratch);
    *slot = (sgm__ahead_slot){0};
}

/* Slots that no thread has begun are freed at once. While this waits for a BUSY slot, a thread may begin a
 * later WANTED one, which is then waited for when its turn comes. */
void sgm__ahead_drop(sgm__ahead *ahead, bool blocks)
{
    pthread_mutex_lock(&ahead->mutex);
    for (size_t i = 0; i < ahead->count; i++) {
        sgm__ahead_slot *slot = slot_at(ahead, i);
        if (slot->stage == WANTED)
            slot->stage = FREE;
        while (slot->stage == BUSY)
            pthread_cond_wait(&ahead->done, &ahead->mutex);
        slot->stage = FREE;
    }
    ahead->count = 0;
    ahead->taken = false;
    for (size_t i = 0; i < ahead->slot_count && blocks; i++)
        free_blocks(&ahead->slots[i]);
    pthread_mutex_unlock(&ahead->mutex);
}

void sgm__ahead_free(sgm__ahead *ahead)
{
    if (ahead == NULL)
        return;
    sgm__ahead_drop(ahead, true);
    pthread_mutex_lock(&ahead->mutex);
    ahead->leaving = true;
    pthread_cond_broadcast(&ahead->work);
    pthread_mutex_unlock(&ahead->mutex);
    for (size_t i = 0; i < ahead->thread_count; i++)
        pthread_join(ahead->threads[i], NULL);
    pthread_cond_destroy(&ahead->done);
    pthread_cond_destroy(&ahead->work);
    pthread_mutex_destroy(&ahead->mutex);
    sgm__augmentation_free(ahead->chain);
    sgm__free(ahead);
}
