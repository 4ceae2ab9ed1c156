/* Monitors of programs and plug-ins: a public table of functions (include/sigma/monitor.h) behind the one
 * that environments call (monitor.h), and the list of those that are known by name. */
#include "monitors/monitor.h"

#include <pthread.h>
#include <sigma/monitor.h>

#define MAXIMUM_KINDS 64
#define LONGEST_NAME 40

typedef struct own_monitor {
    sgm_monitor base; /* first, so that a sgm_monitor is an own_monitor */
    const sgm_monitor_type *type;
    void *self;
} own_monitor;

static own_monitor *own_of(sgm_monitor *monitor)
{
    return (own_monitor *)monitor;
}

static sgm_status join(sgm_monitor *monitor, const sgm__monitor_host *host)
{
    return own_of(monitor)->type->join(own_of(monitor)->self, host->env);
}

static sgm_status attach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    return own_of(monitor)->type->attach(own_of(monitor)->self, trainer);
}

static void detach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    own_of(monitor)->type->detach(own_of(monitor)->self, trainer);
}

static sgm_status start(sgm_monitor *monitor)
{
    return own_of(monitor)->type->start(own_of(monitor)->self);
}

static bool progress(sgm_monitor *monitor, const sgm_training_progress *told)
{
    return own_of(monitor)->type->progress(own_of(monitor)->self, told);
}

static void finish(sgm_monitor *monitor)
{
    own_of(monitor)->type->finish(own_of(monitor)->self);
}

static void free_self(const sgm_monitor_type *type, void *self)
{
    if (type != NULL && type->api == SGM_MONITOR_API && type->free != NULL && self != NULL)
        type->free(self);
}

static void release(sgm_monitor *monitor)
{
    free_self(own_of(monitor)->type, own_of(monitor)->self);
    sgm__free(monitor);
}

/* --- making one --- */

/* A name stands in files, in front of a colon. */
static bool is_name(const char *name)
{
    size_t length = strlen(name);
    bool letter = (name[0] | 0x20) >= 'a' && (name[0] | 0x20) <= 'z';
    return letter && length <= LONGEST_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == length;
}

static sgm_status check(const sgm_monitor_type *type, const char *what)
{
    if (type == NULL || type->name == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s wants a table with a name", what);
    if (type->api != SGM_MONITOR_API)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "monitor '%s' has the API number %u, this library wants %d: compile it again",
                        type->name, (unsigned)type->api, SGM_MONITOR_API);
    if (!is_name(type->name))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "a monitor cannot be called '%.100s': expected at most %d letters, digits, '-' and "
                        "'_', a letter first",
                        type->name, LONGEST_NAME);
    return SGM_OK;
}

sgm_monitor *sgm_monitor_create(const sgm_monitor_type *type, void *self)
{
    own_monitor *made = check(type, "sgm_monitor_create") == SGM_OK ? sgm__calloc(1, sizeof *made) : NULL;
    if (made == NULL) {
        free_self(type, self);
        return NULL;
    }
    *made = (own_monitor){.base = {.join = type->join != NULL ? join : NULL,
                                   .attach = type->attach != NULL ? attach : NULL,
                                   .detach = type->detach != NULL ? detach : NULL,
                                   .start = type->start != NULL ? start : NULL,
                                   .progress = type->progress != NULL ? progress : NULL,
                                   .finish = type->finish != NULL ? finish : NULL,
                                   .free = release},
                          .type = type,
                          .self = self};
    return &made->base;
}

/* --- kinds by name --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const sgm_monitor_type *kinds[MAXIMUM_KINDS]; /* only added to */
static size_t kind_count;

/* With the lock. NULL: there is none. */
static const sgm_monitor_type *find(const char *name, size_t length)
{
    for (size_t i = 0; i < kind_count; i++)
        if (strlen(kinds[i]->name) == length && strncmp(kinds[i]->name, name, length) == 0)
            return kinds[i];
    return NULL;
}

/* With the lock. */
static sgm_status add(const sgm_monitor_type *type)
{
    const sgm_monitor_type *known = find(type->name, strlen(type->name));
    if (known == type)
        return SGM_OK;
    if (known != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "there is a monitor '%s' already; choose another name",
                        type->name);
    if (kind_count == MAXIMUM_KINDS)
        return sgm_fail(SGM_ERROR_STATE, "%d monitors are registered, which is all there is room for",
                        MAXIMUM_KINDS);
    kinds[kind_count++] = type;
    return SGM_OK;
}

sgm_status sgm_register_monitor(const sgm_monitor_type *type)
{
    SGM_TRY(check(type, "sgm_register_monitor"));
    if (type->open == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "monitor '%s' has no open(), by which it is made of a text",
                        type->name);
    pthread_mutex_lock(&lock);
    sgm_status status = add(type);
    pthread_mutex_unlock(&lock);
    return status;
}

const sgm_monitor_type *sgm_monitor_type_at(size_t index)
{
    pthread_mutex_lock(&lock);
    const sgm_monitor_type *type = index < kind_count ? kinds[index] : NULL;
    pthread_mutex_unlock(&lock);
    return type;
}

static void fail_name(const char *text, size_t length)
{
    sgm__text names = {0};
    const sgm_monitor_type *type;
    for (size_t i = 0; (type = sgm_monitor_type_at(i)) != NULL; i++)
        sgm__text_append(&names, "%s%s", i > 0 ? ", " : "", type->name);
    sgm_fail(SGM_ERROR_NOT_FOUND, "there is no monitor '%.*s'; %s%s", (int)(length < 100 ? length : 100),
             text, names.length > 0 ? "there are: " : "plug-ins bring them, and none is loaded that does",
             names.length > 0 ? names.data : "");
    sgm__text_free(&names);
}

sgm_monitor *sgm_monitor_by_name(const char *text)
{
    if (text == NULL) {
        sgm__fail_null("sgm_monitor_by_name: expected a text, got NULL");
        return NULL;
    }
    size_t length = strcspn(text, ":");
    pthread_mutex_lock(&lock);
    const sgm_monitor_type *type = find(text, length);
    pthread_mutex_unlock(&lock);
    if (type == NULL) {
        fail_name(text, length);
        return NULL;
    }
    void *self = type->open(text[length] == ':' ? text + length + 1 : "");
    if (self != NULL)
        return sgm_monitor_create(type, self);
    sgm__fail_within("monitor '%s'", type->name);
    return NULL;
}
