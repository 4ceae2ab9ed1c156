/* Orders: what other threads want done between two iterations, and how they learn of its outcome.
 *
 * Nobody waits who could be waited for: a thread that runs hooks or observers, or holds a trainer's lock,
 * leaves its order and goes on. So there is no circle of threads that wait for each other. */
#include "base/clock.h"
#include "runs/orders.h"
#include "trainer/trainer_lock.h"

#include <stdio.h>

size_t sgm__orders_count(sgm__control *control)
{
    size_t count = 0;
    if (!atomic_load_explicit(&control->has_order, memory_order_relaxed))
        return 0;
    pthread_mutex_lock(&control->lock);
    for (const sgm__order *order = control->orders; order != NULL; order = order->next)
        count++;
    pthread_mutex_unlock(&control->lock);
    return count;
}

static bool copy_text(const char *text, char **copy)
{
    *copy = text != NULL ? sgm__strdup(text) : NULL;
    return text == NULL || *copy != NULL;
}

static sgm__order *create_order(sgm__order_kind kind, const sgm__order_texts *texts)
{
    sgm__order *order = sgm__calloc(1, sizeof *order);
    if (order == NULL)
        return NULL;
    order->kind = kind;
    order->undoes = texts->undoes;
    if (copy_text(texts->who, &order->who) && copy_text(texts->what, &order->what) &&
        copy_text(texts->before, &order->before) && copy_text(texts->after, &order->after))
        return order;
    sgm__order_free(order);
    return NULL;
}

/* With the control's lock. */
static void append(sgm__control *control, sgm__order *order)
{
    sgm__order **last = &control->orders;
    while (*last != NULL)
        last = &(*last)->next;
    *last = order;
    order->next = NULL; /* it may have been in the list before */
    atomic_store(&control->has_order, true);
    pthread_cond_broadcast(&control->changed);
}

static void unlink_order(sgm__control *control, const sgm__order *order)
{
    sgm__order **at = &control->orders;
    while (*at != NULL && *at != order)
        at = &(*at)->next;
    if (*at != NULL)
        *at = order->next;
    atomic_store(&control->has_order, control->orders != NULL);
}

/* --- the training's thread --- */

sgm__order *sgm__order_take(sgm__control *control)
{
    if (!atomic_load_explicit(&control->has_order, memory_order_relaxed))
        return NULL;
    pthread_mutex_lock(&control->lock);
    sgm__order *order = control->orders;
    if (order != NULL) {
        unlink_order(control, order);
        order->taken = true;
    }
    pthread_mutex_unlock(&control->lock);
    return order;
}

void sgm__order_done(sgm_trainer *trainer, sgm__order *order, sgm_status status)
{
    sgm__control *control = &trainer->control;
    if (!order->waited) {
        if (status != SGM_OK)
            sgm__log(SGM_LOG_ERROR, trainer->name, "%s: %s", order->who, sgm_last_error());
        sgm__order_free(order);
        return;
    }
    pthread_mutex_lock(&control->lock);
    order->status = status;
    snprintf(order->message, sizeof order->message, "%s", status != SGM_OK ? sgm_last_error() : "");
    order->done = true;
    pthread_cond_broadcast(&control->changed);
    pthread_mutex_unlock(&control->lock);
}

/* --- who asks --- */

/* With the control's lock. */
static void wait_a_little(sgm__control *control)
{
    struct timespec until = sgm__time_in(0.02);
    pthread_cond_timedwait(&control->changed, &control->lock, &until);
}

typedef enum outcome {
    LEFT_TO_RUN, /* the order belongs to the run's thread */
    DONE,
    NOBODY_RUNS,
    GIVEN_UP /* the thread's error says why */
} outcome;

/* With the control's lock; DONE: not yet. A note tells of what has happened already, so it stays. */
static outcome look_after(sgm_trainer *trainer, sgm__order *order)
{
    sgm__control *control = &trainer->control;
    if (order->taken)
        return DONE;
    if (control->state == SGM_TRAINER_IDLE) {
        unlink_order(control, order);
        return NOBODY_RUNS;
    }
    if (sgm__patience_check(trainer) == SGM_OK)
        return DONE;
    if (order->kind == SGM__ORDER_NOTE) {
        order->waited = false;
        return LEFT_TO_RUN;
    }
    unlink_order(control, order);
    return GIVEN_UP;
}

static outcome leave_to_run(sgm_trainer *trainer, sgm__order *order)
{
    sgm__control *control = &trainer->control;
    pthread_mutex_lock(&control->lock);
    bool runs = control->state != SGM_TRAINER_IDLE;
    outcome so_far = !runs ? NOBODY_RUNS : order->waited ? DONE : LEFT_TO_RUN;
    if (runs)
        append(control, order);
    while (so_far == DONE && !order->done && (so_far = look_after(trainer, order)) == DONE)
        wait_a_little(control);
    pthread_mutex_unlock(&control->lock);
    return so_far;
}

/* True if the trainer was idle, and no run begins before the order is done. */
static bool do_idle(sgm_trainer *trainer, const sgm__order *order, sgm_status *status)
{
    if (order->kind != SGM__ORDER_NOTE && (*status = sgm__trainer_check_thread(trainer)) != SGM_OK)
        return true;
    bool busy = sgm__is_busy();
    if (busy && !sgm__turn_lock_try(&trainer->lock)) {
        *status = sgm_fail(SGM_ERROR_STATE, "trainer '%s' is being changed by another thread", trainer->name);
        return true;
    }
    if (!busy && (*status = sgm__trainer_enter(trainer)) != SGM_OK)
        return true;
    bool idle = sgm_trainer_state_of(trainer) == SGM_TRAINER_IDLE;
    if (idle) {
        bool moved = false, broken = false;
        *status = sgm__trainer_obey(trainer, order, &moved, &broken);
        if (*status == SGM_OK && moved)
            *status = sgm__hooks_event(trainer->hooks, SGM_RESET, trainer->position.epoch,
                                       trainer->position.iteration);
        if (broken)
            sgm__trainer_keep(trainer, *status);
    }
    sgm__trainer_unlock(trainer);
    return idle;
}

sgm_status sgm__trainer_order(sgm_trainer *trainer, sgm__order_kind kind, sgm__order_texts texts)
{
    sgm_status status = SGM_OK;
    sgm__order *order = create_order(kind, &texts);
    if (order == NULL)
        return SGM_ERROR_MEMORY;
    order->waited = !sgm__is_busy();
    outcome so_far;
    while ((so_far = leave_to_run(trainer, order)) == NOBODY_RUNS && !do_idle(trainer, order, &status))
        continue;
    if (so_far == LEFT_TO_RUN)
        return SGM_OK; /* it may be gone already */
    if (so_far == GIVEN_UP)
        status = sgm_last_status();
    else if (so_far == DONE && order->status != SGM_OK)
        status = sgm_fail(order->status, "%s", order->message);
    sgm__order_free(order);
    return status;
}
