/* A locked list with one record for each trainer that a monitor follows.
 *
 * Each monitor that keeps state per trainer (json_lines.c, tensorboard.c, web/web.c) embeds one
 * sgm__followers. Its `attach` enters a record, its `detach` takes the record out and frees it, its `free`
 * takes out the records that are left. The lock guards the list alone; what is in a record is guarded by
 * the rules of the monitor. Internal. */
#ifndef SGM_MONITORS_FOLLOWERS_H
#define SGM_MONITORS_FOLLOWERS_H

#include "base/base.h"
#include <sigma/training.h>

/* The first member of the monitor's own record of a trainer. The monitor allocates the record and frees it
 * with sgm__free after sgm__followers_leave or sgm__followers_end has returned it. */
typedef struct sgm__follower {
    const sgm_trainer *trainer;
} sgm__follower;

/* The records in no particular order, as pointers: a record never moves, so that observers may keep its
 * address. */
typedef struct sgm__followers {
    pthread_mutex_t lock;
    sgm__follower **items;
    size_t count, capacity;
} sgm__followers;

static inline void sgm__followers_init(sgm__followers *all)
{
    *all = (sgm__followers){0};
    pthread_mutex_init(&all->lock, NULL);
}

/* On failure the record is freed. */
static inline sgm_status sgm__followers_enter(sgm__followers *all, sgm__follower *own)
{
    pthread_mutex_lock(&all->lock);
    sgm_status status = sgm__reserve(&all->items, &all->capacity, all->count + 1, sizeof *all->items);
    if (status == SGM_OK)
        all->items[all->count++] = own;
    pthread_mutex_unlock(&all->lock);
    if (status != SGM_OK)
        sgm__free(own);
    return status;
}

/* Takes the record of `trainer` out of the list and returns it; the caller frees it. NULL: the trainer has
 * no record. */
static inline void *sgm__followers_leave(sgm__followers *all, const sgm_trainer *trainer)
{
    sgm__follower *own = NULL;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->count && own == NULL; i++)
        if (all->items[i]->trainer == trainer) {
            own = all->items[i];
            all->items[i] = all->items[--all->count];
        }
    pthread_mutex_unlock(&all->lock);
    return own;
}

/* Takes out any one record; NULL when none is left, in which case the list itself has been freed. Called
 * in a loop when the monitor is freed: no observer is called any more, so no lock is taken. */
static inline void *sgm__followers_end(sgm__followers *all)
{
    if (all->count > 0)
        return all->items[--all->count];
    sgm__free(all->items);
    pthread_mutex_destroy(&all->lock);
    return NULL;
}

#endif
