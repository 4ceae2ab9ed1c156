/* The one way out for messages. */
#include "base/base.h"

#include <stdatomic.h>
#include <stdio.h>

#define MESSAGE_SIZE 2048

static void log_to_stderr(void *user, sgm_log_level level, const char *component, const char *message)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};
    (void)user;
    fprintf(stderr, "sigma: %s: %s: %s\n", names[level], component, message);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sgm_log_function logger = log_to_stderr;
static void *logger_user;
static atomic_int least_level = SGM_LOG_WARNING;
/* Set while this thread's logger runs: what it makes the library log is dropped instead of locking up. */
static _Thread_local bool logging;

void sgm_set_logger(sgm_log_function log, void *user, sgm_log_level least)
{
    if (!logging)
        pthread_mutex_lock(&mutex);
    logger = log ? log : log_to_stderr;
    logger_user = user;
    atomic_store(&least_level, (int)least);
    if (!logging)
        pthread_mutex_unlock(&mutex);
}

void sgm__vlog(sgm_log_level level, const char *component, const char *format, va_list arguments)
{
    if (logging || level < SGM_LOG_DEBUG || level >= SGM_LOG_NONE || (int)level < atomic_load(&least_level))
        return;
    char message[MESSAGE_SIZE];
    int length = vsnprintf(message, sizeof message, format, arguments);
    if (length < 0)
        return;
    if ((size_t)length >= sizeof message)
        memcpy(message + sizeof message - 4, "...", 4);
    pthread_mutex_lock(&mutex);
    logging = true;
    logger(logger_user, level, component ? component : "", message);
    logging = false;
    pthread_mutex_unlock(&mutex);
}

void sgm__log(sgm_log_level level, const char *component, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sgm__vlog(level, component, format, arguments);
    va_end(arguments);
}
