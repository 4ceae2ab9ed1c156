/* Sends messages for rules (libcurl): each by a thread of its own, so that the training goes on.
 *
 * Only addresses that the program or the file has named are ever asked: redirections, which would lead to
 * others, are not followed. Logs name the host alone, as the rest of an address is often a password. Nothing
 * of the training depends on what is answered. */
#include "runs/rules/rule_webhook.h"
#include "base/clock.h"
#include "base/turn_lock.h"
#include "data/read/source.h"
#include "registry/registry_internal.h"
#include "text/json_text.h"
#include "train/trainer_hooks.h"
#include "trainer/trainer.h"

#include <curl/curl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MAXIMUM_RUNNING 8 /* messages of one trainer at a time */
#define CONNECT_SECONDS 5L
#define WHOLE_SECONDS 15L
#define SHOWN "webhook %s" /* how the log names one */

/* A message on its way; all texts are its own. */
typedef struct sgm__rule_webhook {
    char *source, *address, *host, *body; /* the trainer's name; ... ; JSON */
    pthread_t thread;
    atomic_bool over;
    struct sgm__rule_webhook *next;
} rule_webhook;

static void free_webhook(rule_webhook *one)
{
    sgm__free(one->source);
    sgm__free(one->address);
    sgm__free(one->host);
    sgm__free(one->body);
    sgm__free(one);
}

/* --- sending --- */

/* What is answered is not wanted. */
static size_t drop(char *bytes, size_t size, size_t count, void *user)
{
    (void)bytes, (void)user;
    return size * count;
}

static void set_up(CURL *curl, const rule_webhook *one, struct curl_slist *headers)
{
    curl_easy_setopt(curl, CURLOPT_URL, one->address);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "sigma");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, WHOLE_SECONDS);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, one->body);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
}

static void tell(const rule_webhook *one, CURLcode result, long code)
{
    if (result != CURLE_OK)
        sgm__log(SGM_LOG_WARNING, one->source, SHOWN " failed: %s", one->host, curl_easy_strerror(result));
    else if (code >= 300 && code < 400)
        sgm__log(SGM_LOG_WARNING, one->source,
                 SHOWN " answered %ld: redirections are not followed; name the address that it leads to",
                 one->host, code);
    else if (code >= 400)
        sgm__log(SGM_LOG_WARNING, one->source, SHOWN " refused the message: it answered %ld", one->host,
                 code);
    else
        sgm__log(SGM_LOG_INFO, one->source, SHOWN " has the message", one->host);
}

/* The thread of a message. */
static void *deliver(void *argument)
{
    rule_webhook *one = argument;
    long code = 0;
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json; charset=utf-8");
    CURLcode result = CURLE_OUT_OF_MEMORY;
    if (curl != NULL && headers != NULL) {
        set_up(curl, one, headers);
        result = curl_easy_perform(curl);
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    }
    tell(one, result, code);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    atomic_store(&one->over, true);
    return NULL;
}

/* --- what is sent --- */

/* null where there is no loss yet, or none that JSON can have. */
static json_t *loss_of(const sgm_trainer *trainer)
{
    sgm_content content = {0};
    bool known = sgm_registry_resolve_one(sgm__registry_of(trainer), "training.loss", &content) == SGM_OK &&
                 content.kind == SGM_KIND_NUMBER;
    json_t *loss = known ? json_real(content.as.number) : NULL;
    sgm_content_clear(&content);
    return loss != NULL ? loss : json_null();
}

/* "digits: epoch 3, iteration 282" */
static char *moment_of(const sgm_trainer *trainer)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    return sgm__format("%s: epoch %lld, iteration %lld", sgm_trainer_name(trainer),
                       (long long)position->epoch, (long long)position->iteration);
}

static char *body_of(const sgm_trainer *trainer, const char *text)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    const char *folder = sgm__journal_of(trainer)->folder;
    char *moment = text == NULL ? moment_of(trainer) : NULL;
    json_t *message =
        json_pack("{s:s, s:s, s:s?, s:I, s:I, s:o}", "text", text != NULL ? text : moment, "trainer",
                  sgm_trainer_name(trainer), "folder", folder, "epoch", (json_int_t)position->epoch,
                  "iteration", (json_int_t)position->iteration, "loss", loss_of(trainer));
    char *body = sgm__json_text(message);
    json_decref(message);
    sgm__free(moment);
    return body;
}

/* "hooks.example.org" of "https://me:password@hooks.example.org/services/secret". */
static char *host_of(const char *address)
{
    const char *start = strstr(address, "://") + 3;
    size_t length = strcspn(start, "/?#");
    const char *at = memrchr(start, '@', length);
    length -= at != NULL ? (size_t)(at + 1 - start) : 0;
    return sgm__strndup(at != NULL ? at + 1 : start, length);
}

/* --- those on their way --- */

/* Frees those that are over; returns how many are still on their way. */
static size_t clear_over(sgm_trainer *trainer, bool all)
{
    size_t running = 0;
    rule_webhook **at = &sgm__webhooks_of(trainer)->sent;
    while (*at != NULL) {
        rule_webhook *one = *at;
        if (!all && !atomic_load(&one->over)) {
            running++;
            at = &one->next;
            continue;
        }
        pthread_join(one->thread, NULL);
        *at = one->next;
        free_webhook(one);
    }
    return running;
}

static sgm_status start(sgm_trainer *trainer, rule_webhook *one)
{
    if (one->source == NULL || one->address == NULL || one->host == NULL || one->body == NULL)
        return SGM_ERROR_MEMORY;
    sgm__curl_begin();
    if (pthread_create(&one->thread, NULL, deliver, one) != 0)
        return sgm_fail(SGM_ERROR_MEMORY, SHOWN ": the system refused a thread", one->host);
    one->next = sgm__webhooks_of(trainer)->sent;
    sgm__webhooks_of(trainer)->sent = one;
    return SGM_OK;
}

sgm_status sgm__rule_webhook_send(sgm_trainer *trainer, const char *address, const char *text)
{
    if (sgm__journal_of(trainer)->replay != NULL) {
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer), "a webhook is left out: this is a replay");
        return SGM_OK;
    }
    if (!sgm__trainer_allows_webhook(trainer, address)) /* a hook that came another way than attached */
        return sgm_fail(SGM_ERROR_STATE, "this training does not allow the webhook '%.200s'", address);
    if (clear_over(trainer, false) >= MAXIMUM_RUNNING)
        return sgm_fail(SGM_ERROR_STATE, "a webhook is left out: %d are on their way", MAXIMUM_RUNNING);
    rule_webhook *one = sgm__calloc(1, sizeof *one);
    if (one == NULL)
        return SGM_ERROR_MEMORY;
    one->source = sgm__strdup(sgm_trainer_name(trainer));
    one->address = sgm__strdup(address);
    one->host = host_of(address);
    one->body = body_of(trainer, text);
    sgm_status status = start(trainer, one);
    if (status != SGM_OK)
        free_webhook(one);
    return status;
}

void sgm__rule_webhooks_end(sgm_trainer *trainer)
{
    if (sgm__webhooks_of(trainer)->sent == NULL)
        return;
    sgm__give_way_begin();
    clear_over(trainer, true);
    sgm__give_way_end();
}
