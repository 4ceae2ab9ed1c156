/* What a monitor keeps of each trainer that it follows. Internal. */
#ifndef SGM_MONITORS_FOLLOWERS_H
#define SGM_MONITORS_FOLLOWERS_H

#include "base/base.h"
#include <sigma/training.h>

/* The first member of a larger struct, from sgm__alloc and its like. */
typedef struct sgm__follower {
    const sgm_trainer *trainer;
} sgm__follower;

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

static inline sgm_status sgm__followers_enter(sgm__followers *all, sgm__follower *own)
{
    pthread_mutex_lock(&all->lock);
    sgm_status status = sgm__reserve(&all->items, &all->capacity, all->count + 1, sizeof *all->items);
    if (status == SGM_OK)
        all->items[all->count++] = own;
    pthread_mutex_unlock(&all->lock);
    return status;
}

/* The trainer's, which is not in the list any more; NULL: it has none. */
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

/* At the end, when nothing is told any more: any that is left; NULL: none is, and the list is freed. */
static inline void *sgm__followers_end(sgm__followers *all)
{
    if (all->count > 0)
        return all->items[--all->count];
    sgm__free(all->items);
    pthread_mutex_destroy(&all->lock);
    return NULL;
}

#endif
