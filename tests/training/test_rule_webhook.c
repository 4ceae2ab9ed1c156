/* Messages that rules send: only to addresses that were named, as JSON, without keeping the training. */
#include "by_name.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static char seen_log[16000];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_log(void *user, sgm_log_level level, const char *source, const char *message)
{
    (void)user, (void)source;
    pthread_mutex_lock(&log_lock);
    size_t length = strlen(seen_log);
    snprintf(seen_log + length, sizeof seen_log - length, "%d %s\n", (int)level, message);
    pthread_mutex_unlock(&log_lock);
}

/* --- who listens --- */

/* A server that takes requests one after the other and answers each with the same head. */
typedef struct listener {
    int socket, port;
    pthread_t thread;
    const char *answer;  /* the head, with its empty line; NULL: none ever comes */
    char requests[8000]; /* what came, one behind the other */
    atomic_int count;
} listener;

static size_t body_length(const char *text)
{
    const char *length = strcasestr(text, "content-length:");
    return length != NULL ? (size_t)atol(length + 15) : 0;
}

/* One whole request. */
static void take_request(listener *self, int connection)
{
    char text[4000] = "";
    size_t length = 0;
    for (ssize_t part; (part = read(connection, text + length, sizeof text - 1 - length)) > 0;) {
        length += (size_t)part;
        text[length] = '\0';
        const char *end = strstr(text, "\r\n\r\n");
        if (end != NULL && length >= (size_t)(end + 4 - text) + body_length(text))
            break;
    }
    size_t known = strlen(self->requests);
    snprintf(self->requests + known, sizeof self->requests - known, "%s\n", text);
    atomic_fetch_add(&self->count, 1);
    if (self->answer != NULL && write(connection, self->answer, strlen(self->answer)) < 0)
        perror("write");
}

static void *listen_thread(void *argument)
{
    listener *self = argument;
    for (int connection; (connection = accept(self->socket, NULL, NULL)) >= 0;) {
        take_request(self, connection);
        close(connection);
    }
    return NULL;
}

static void begin_listening(listener *self, const char *answer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    *self = (listener){.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .answer = answer};
    CHECK_INT(bind(self->socket, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_INT(listen(self->socket, 8), 0);
    CHECK_INT(getsockname(self->socket, (struct sockaddr *)&address, &size), 0);
    self->port = ntohs(address.sin_port);
    CHECK_INT(pthread_create(&self->thread, NULL, listen_thread, self), 0);
}

static void end_listening(listener *self)
{
    shutdown(self->socket, SHUT_RDWR);
    pthread_join(self->thread, NULL);
    close(self->socket);
}

/* --- a training with a rule --- */

static const char *address_of(const listener *self)
{
    static char address[100];
    snprintf(address, sizeof address, "http://me:secret@127.0.0.1:%d/hooks/secret", self->port);
    return address;
}

static wave_trainer make_sending(const listener *self, const char *step, const char *text)
{
    char rule[300];
    wave_trainer made = make_wave_trainer((wave_options){.seed = 5});
    unsetenv("http_proxy");
    seen_log[0] = '\0';
    sgm_set_logger(keep_log, NULL, SGM_LOG_INFO);
    CHECK_OK(sgm_trainer_allow_webhook(made.trainer, address_of(self)));
    snprintf(rule, sizeof rule, "%s webhook \"%s\"%s", step, address_of(self), text);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(rule)));
    return made;
}

static void end_sending(wave_trainer made)
{
    free_wave_trainer(made);
    sgm_set_logger(NULL, NULL, SGM_LOG_INFO);
}

static void check_logged(const char *words)
{
    if (strstr(seen_log, words) == NULL)
        TEST_FAIL("the log lacks '%s': %s", words, seen_log);
}

TEST(a_message_is_sent_as_json)
{
    listener hook;
    begin_listening(&hook, "HTTP/1.1 204 No Content\r\n\r\n");
    wave_trainer made = make_sending(&hook, "after 2 epochs", " \"epoch {epoch} \\\"over\\\"\"");
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    end_listening(&hook); /* the end of the run has waited for it */
    CHECK_INT(atomic_load(&hook.count), 1);
    CHECK(strncmp(hook.requests, "POST /hooks/secret HTTP/1.1\r\n", 29) == 0);
    CHECK(strstr(hook.requests, "Content-Type: application/json; charset=utf-8\r\n") != NULL);
    json_t *body = json_loads(strstr(hook.requests, "\r\n\r\n") + 4, JSON_DISABLE_EOF_CHECK, NULL);
    CHECK_STR(json_string_value(json_object_get(body, "text")), "epoch 2 \"over\"");
    CHECK_STR(json_string_value(json_object_get(body, "trainer")), sgm_trainer_name(made.trainer));
    CHECK_INT(json_integer_value(json_object_get(body, "epoch")), 2);
    CHECK_INT(json_integer_value(json_object_get(body, "iteration")), 8);
    CHECK(json_number_value(json_object_get(body, "loss")) > 0);
    CHECK(json_is_null(json_object_get(body, "folder")));
    json_decref(body);

    char words[100];
    snprintf(words, sizeof words, "webhook 127.0.0.1:%d has the message", hook.port);
    check_logged(words);
    CHECK(strstr(seen_log, "secret") == NULL); /* an address is often a password */
    end_sending(made);
}

TEST(without_a_text_the_moment_is_told)
{
    listener hook;
    begin_listening(&hook, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    wave_trainer made = make_sending(&hook, "at epoch 1", "");
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    end_listening(&hook);
    CHECK(strstr(hook.requests, "\"text\":\"waves: epoch 1, iteration 4\"") != NULL);
    end_sending(made);
}

TEST(nothing_is_sent_to_an_address_that_nobody_named)
{
    listener other, hook;
    char answer[200], rule[300];
    begin_listening(&other, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    /* Not by a redirection ... */
    snprintf(answer, sizeof answer,
             "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n", other.port);
    begin_listening(&hook, answer);
    wave_trainer made = make_sending(&hook, "at epoch 1", "");
    /* ... and not by a rule, whoever attaches it. */
    snprintf(rule, sizeof rule, "every epoch webhook \"http://127.0.0.1:%d/\"", other.port);
    CHECK_INT(sgm_trainer_attach_hook(made.trainer, sgm_rule_hook(rule), NULL), SGM_ERROR_STATE);
    CHECK(strstr(sgm_last_error(), "does not allow: name the address in webhooks: [...] in its file") !=
          NULL);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    end_listening(&hook);
    end_listening(&other);
    CHECK_INT(atomic_load(&hook.count), 1);
    CHECK_INT(atomic_load(&other.count), 0);
    check_logged("answered 307: redirections are not followed");
    end_sending(made);
}

TEST(a_refusal_is_in_the_log_and_the_training_goes_on)
{
    listener hook;
    begin_listening(&hook, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    wave_trainer made = make_sending(&hook, "every epoch", "");
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    end_listening(&hook);
    check_logged("refused the message: it answered 404");
    end_sending(made);

    wave_trainer lonely = make_sending(&hook, "at epoch 1", ""); /* nobody listens there any more */
    CHECK_OK(sgm_trainer_run(lonely.trainer, .epochs = 1));
    check_logged(" failed: ");
    end_sending(lonely);
}

/* The listener answers after the training's epochs are over: it waits for what is set behind them. */
static atomic_bool epochs_over;

static bool note_end(void *user, const sgm_training_progress *progress)
{
    (void)user;
    if (progress->kind == SGM_PROGRESS_EPOCH && progress->epoch == 3)
        atomic_store(&epochs_over, true);
    return true;
}

static void *answer_late(void *argument)
{
    listener *self = argument;
    int connection = accept(self->socket, NULL, NULL);
    while (connection >= 0 && !atomic_load(&epochs_over))
        usleep(1000);
    if (connection < 0)
        return NULL;
    take_request(self, connection);
    close(connection);
    return NULL;
}

TEST(a_slow_answer_keeps_no_iteration)
{
    listener hook;
    begin_listening(&hook, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    end_listening(&hook);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)hook.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;
    hook.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(setsockopt(hook.socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    CHECK_INT(bind(hook.socket, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_INT(listen(hook.socket, 8), 0);
    struct timeval patience = {.tv_sec = 20}; /* so that a message that never comes fails the test */
    CHECK_INT(setsockopt(hook.socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    CHECK_INT(pthread_create(&hook.thread, NULL, answer_late, &hook), 0);
    wave_trainer made = make_sending(&hook, "at epoch 1", "");
    CHECK_OK(sgm_trainer_on_progress(made.trainer, note_end, NULL));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    pthread_join(hook.thread, NULL);
    close(hook.socket);
    CHECK_INT(atomic_load(&hook.count), 1);
    check_logged(" has the message");
    end_sending(made);
}

TEST(addresses_are_checked)
{
    static const char *const wrong[] = {
        "",           "ftp://a.example/", "http://",           "https:///path", "//a.example/",
        "http://a b", "http://ü.de/",     "file:///etc/passwd"};
    wave_trainer made = make_wave_trainer((wave_options){.seed = 5});
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_INT(sgm_trainer_allow_webhook(made.trainer, wrong[i]), SGM_ERROR_ARGUMENT);
        CHECK(strstr(sgm_last_error(), "is no address of a webhook: it begins with http:// or https://") !=
              NULL);
    }
    CHECK(sgm_rule_parse("at stop webhook \"ftp://a.example/\"") == NULL);
    CHECK(strstr(sgm_last_error(), "column 17: 'ftp://a.example/' is no address") != NULL);
    CHECK(sgm_rule_parse("at stop webhook \"http://a.example/\" \"\"") == NULL);
    CHECK(strstr(sgm_last_error(), "nothing is told") != NULL);
    free_wave_trainer(made);
}
