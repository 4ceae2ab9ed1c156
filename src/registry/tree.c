/* Implements the locks of trees: finds out which lock a registry has, and moves registries from tree to tree.
 *
 * A core points to its tree, and a put moves it to another one, so "the lock of this registry" can change
 * while a thread waits for it. sgm__tree_lock therefore retains the tree, locks it, and looks whether it is
 * still the core's; if not, it begins anew. Once the lock is held the pointer is stable, because a move needs
 * both trees' locks. Generations come from one counter of the process: a resolver that has seen generation n
 * will never meet n again in another tree, or in another state of the same one. */
#include "registry/registry_internal.h"

/* Guards the step from a core to its tree: between reading the pointer and retaining the tree another thread
 * could release the tree's last reference. No other lock is taken while it is held. */
static pthread_mutex_t ways = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t newest_generation;

sgm__tree *sgm__tree_create(void)
{
    sgm__tree *tree = sgm__calloc(1, sizeof *tree);
    if (tree == NULL)
        return NULL;
    pthread_mutex_init(&tree->mutex, NULL);
    atomic_init(&tree->references, 1);
    sgm__tree_changed(tree);
    return tree;
}

void sgm__tree_release(sgm__tree *tree)
{
    if (tree == NULL || atomic_fetch_sub(&tree->references, 1) != 1)
        return;
    pthread_mutex_destroy(&tree->mutex);
    sgm__free(tree);
}

static sgm__tree *retain_tree_of(sgm__core *core)
{
    pthread_mutex_lock(&ways);
    sgm__tree *tree = atomic_load(&core->tree);
    atomic_fetch_add(&tree->references, 1);
    pthread_mutex_unlock(&ways);
    return tree;
}

sgm__tree *sgm__tree_lock(sgm__core *core)
{
    for (;;) {
        sgm__tree *tree = retain_tree_of(core);
        pthread_mutex_lock(&tree->mutex);
        /* The core may have been moved to another tree while this thread waited; it cannot be from here on.
         */
        if (atomic_load(&core->tree) == tree)
            return tree;
        sgm__tree_unlock(tree);
    }
}

void sgm__tree_unlock(sgm__tree *tree)
{
    pthread_mutex_unlock(&tree->mutex);
    sgm__tree_release(tree);
}

/* Locks in the order of the addresses, so that two puts in opposite directions do not wait for each other. */
void sgm__tree_lock_two(sgm__core *a, sgm__core *b, sgm__tree **tree_a, sgm__tree **tree_b)
{
    for (;;) {
        *tree_a = retain_tree_of(a);
        *tree_b = retain_tree_of(b);
        bool a_first = (uintptr_t)*tree_a < (uintptr_t)*tree_b;
        pthread_mutex_lock(a_first ? &(*tree_a)->mutex : &(*tree_b)->mutex);
        if (*tree_a != *tree_b)
            pthread_mutex_lock(a_first ? &(*tree_b)->mutex : &(*tree_a)->mutex);
        if (atomic_load(&a->tree) == *tree_a && atomic_load(&b->tree) == *tree_b)
            return;
        sgm__tree_unlock_two(*tree_a, *tree_b);
    }
}

void sgm__tree_unlock_two(sgm__tree *a, sgm__tree *b)
{
    if (a != b)
        pthread_mutex_unlock(&b->mutex);
    pthread_mutex_unlock(&a->mutex);
    sgm__tree_release(b);
    sgm__tree_release(a);
}

void sgm__tree_changed(sgm__tree *tree)
{
    tree->generation = atomic_fetch_add(&newest_generation, 1) + 1;
}

/* Moves the core and, recursively, its children. References go from the old tree to the new one. The old
 * tree's last reference goes here only if no thread has locked that tree: the tree of a new copy (copy.c). */
static void move(sgm__tree *tree, sgm__core *core)
{
    sgm__tree *old = atomic_exchange(&core->tree, tree);
    atomic_fetch_add(&tree->references, 1);
    sgm__tree_release(old);
    for (size_t i = 0; i < core->entry_count; i++) {
        sgm__core *child = sgm__entry_child(core->entries[i]);
        if (child != NULL)
            move(tree, child);
    }
}

void sgm__tree_move(sgm__tree *tree, sgm__core *core)
{
    pthread_mutex_lock(&ways);
    move(tree, core);
    pthread_mutex_unlock(&ways);
}
