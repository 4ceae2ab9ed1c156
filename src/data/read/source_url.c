/* Files from the web (libcurl), kept in a file of their own.
 *
 * sgm_source_prepare downloads the file unless it is there already; streams read the file. The bytes go to
 * PATH.download, which is locked, so that several processes that want the same file download it once. Only
 * after the SHA-256 checksum is right does the file get its name, so a file that is there is whole. With a
 * checksum a download that broke off is kept and goes on from where it was, since the checksum tells if the
 * file has changed meanwhile. Failures that may pass, such as timeouts and busy servers, are tried again with
 * growing pauses. A download is a task that monitors show and users can cancel. Only http and https are
 * allowed, also after redirects. */
#include "data/read/source.h"
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <sigma/base.h>
#include <stdio.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_RETRIES 2
/* Seconds to connect, and seconds without a single byte after which a transfer is given up. There is no
 * bound on the whole. */
#define DEFAULT_TIMEOUT 16 /* seconds */
#define FIRST_WAIT 0.5     /* seconds before the first retry, then twice as long each time ... */
#define LONGEST_WAIT 8.0   /* ... up to this */
#define MAXIMUM_REDIRECTS 8L
#define CHECKSUM_MARK "#sha256=" /* behind an address */
#define DIGEST_TEXT_SIZE (2 * SHA256_DIGEST_SIZE + 1)

/* `path` is where the file is kept; `progress` is the caller's function with its argument `user`, or NULL. */
typedef struct url_source {
    sgm_source base; /* its name is the URL */
    char *path, *download_path, *task, *sha256, *proxy;
    int retries, timeout;
    sgm_progress progress;
    void *user;
} url_source;

/* A download with all its attempts; libcurl's callbacks get it as their argument. */
typedef struct download {
    const url_source *source;
    sgm_task task;
    int descriptor;
    int64_t begin;   /* bytes that were there before this attempt */
    int write_error; /* errno of a failed write */
    bool cancelled;
    struct sha256_ctx digest;
    char message[CURL_ERROR_SIZE];
} download;

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

/* Must run once before any thread uses libcurl. */
static void start_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

void sgm__curl_begin(void)
{
    pthread_once(&curl_once, start_curl);
}

/* Tells the caller's function and the task how far the download is; false if either wants to cancel it. */
static bool report(const url_source *self, sgm_task task, uint64_t done, uint64_t total)
{
    bool wanted = self->progress == NULL || self->progress(self->user, self->task, done, total);
    return sgm_task_set_progress(task, done, total) && wanted;
}

/* Writes what came and adds it to the checksum. Returning fewer bytes than came makes libcurl stop. */
static size_t on_bytes(char *bytes, size_t size, size_t count, void *user)
{
    download *transfer = user;
    size_t length = size * count;
    for (size_t written = 0; written < length;) {
        ssize_t part = write(transfer->descriptor, bytes + written, length - written);
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0) {
            transfer->write_error = errno;
            return 0;
        }
        written += (size_t)part;
    }
    sha256_update(&transfer->digest, length, (const uint8_t *)bytes);
    return length;
}

/* libcurl calls this at least about once a second, also while nothing comes; a result other than 0 stops the
 * transfer. */
static int on_progress(void *user, curl_off_t total, curl_off_t done, curl_off_t up_total, curl_off_t up_done)
{
    (void)up_total, (void)up_done;
    download *transfer = user;
    uint64_t begin = (uint64_t)transfer->begin;
    transfer->cancelled = !report(transfer->source, transfer->task, begin + (done > 0 ? (uint64_t)done : 0),
                                  total > 0 ? begin + (uint64_t)total : 0);
    return transfer->cancelled;
}

/* A handle with everything but what is done with the bytes. NOSIGNAL, because signals are no good in a
 * library with threads; the limit of 1 byte/s over `timeout` seconds ends transfers that hang. */
static CURL *create_handle(const url_source *self)
{
    sgm__curl_begin();
    CURL *curl = curl_easy_init();
    if (curl == NULL) {
        sgm_fail(SGM_ERROR_NETWORK, "%s: libcurl cannot be started; check its installation", self->base.name);
        return NULL;
    }
    curl_easy_setopt(curl, CURLOPT_URL, self->base.name);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, MAXIMUM_REDIRECTS);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "sigma");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)self->timeout);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)self->timeout);
    if (self->proxy != NULL)
        curl_easy_setopt(curl, CURLOPT_PROXY, self->proxy);
    return curl;
}

/* One attempt, from `begin` on. */
static CURLcode run_transfer(CURL *curl, download *transfer)
{
    transfer->message[0] = '\0';
    curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)transfer->begin);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->message);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
    return curl_easy_perform(curl);
}

/* Whether another attempt may help: the network or the server failed, and the request itself was not
 * refused. */
static bool is_passing(CURLcode result, long http_status)
{
    switch (result) {
    case CURLE_HTTP_RETURNED_ERROR:
        return http_status >= 500 || http_status == 408 || http_status == 429;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

/* The error of an attempt: cancelled, disk full, refused by the server, or network, each with its remedy. */
static sgm_status fail_transfer(const download *transfer, CURLcode result, long http_status, int attempts)
{
    const char *url = transfer->source->base.name;
    if (transfer->cancelled)
        return sgm_fail(SGM_ERROR_INTERRUPTED, "%s: the download was cancelled", url);
    if (transfer->write_error != 0)
        return sgm_fail(SGM_ERROR_FILE, "%s: cannot be written: %s; make room, or give another path",
                        transfer->source->download_path, sgm__errno_text(transfer->write_error));
    if (result == CURLE_HTTP_RETURNED_ERROR && !is_passing(result, http_status))
        return sgm_fail(
            http_status == 404 || http_status == 410 ? SGM_ERROR_NOT_FOUND : SGM_ERROR_NETWORK,
            "%s: the server answered with status %ld; check the address, or put the file at %s yourself", url,
            http_status, transfer->source->path);
    return sgm_fail(
        SGM_ERROR_NETWORK,
        "%s: cannot be downloaded (%d %s): %s; check the connection and the proxy settings, or put the "
        "file at %s yourself",
        url, attempts, attempts == 1 ? "attempt" : "attempts",
        transfer->message[0] != '\0' ? transfer->message : curl_easy_strerror(result),
        transfer->source->path);
}

/* Waits in steps of 50 ms, so that cancelling takes effect at once; false if it was cancelled meanwhile. */
static bool wait_for(const url_source *self, sgm_task task, double seconds)
{
    for (double end = sgm__now() + seconds; sgm__now() < end;) {
        if (!report(self, task, 0, 0))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return true;
}

/* The attempt starts from the first byte. */
static sgm_status begin_anew(const url_source *self, download *transfer)
{
    transfer->begin = 0;
    sha256_init(&transfer->digest);
    if (ftruncate(transfer->descriptor, 0) == 0 && lseek(transfer->descriptor, 0, SEEK_SET) == 0)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_FILE, "%s: cannot be emptied: %s", self->download_path, sgm__errno_text(errno));
}

/* The attempt goes on behind the bytes that are there, which the checksum needs. */
static sgm_status go_on(const url_source *self, download *transfer)
{
    uint8_t bytes[65536];
    ssize_t got = 0;
    transfer->begin = 0;
    sha256_init(&transfer->digest);
    if (lseek(transfer->descriptor, 0, SEEK_SET) != 0)
        return begin_anew(self, transfer);
    while ((got = read(transfer->descriptor, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)) {
        if (got < 0)
            continue;
        sha256_update(&transfer->digest, (size_t)got, bytes);
        transfer->begin += got;
    }
    return got == 0 ? SGM_OK : begin_anew(self, transfer);
}

/* Whether the server refused the rest of a file: it cannot send parts, or the file is shorter now. */
static bool is_refused_rest(const download *transfer, CURLcode result, long http_status)
{
    return transfer->begin > 0 &&
           (result == CURLE_RANGE_ERROR || result == CURLE_HTTP_RANGE_ERROR || http_status == 416);
}

/* Attempts until one succeeds, the retries are used up, or trying again cannot help. Pauses double from
 * FIRST_WAIT to LONGEST_WAIT. */
static sgm_status try_all(const url_source *self, CURL *curl, download *transfer)
{
    double wait = FIRST_WAIT;
    bool goes_on = self->sha256 != NULL;
    for (int attempt = 1;; attempt++) {
        SGM_TRY(goes_on ? go_on(self, transfer) : begin_anew(self, transfer));
        CURLcode result = run_transfer(curl, transfer);
        if (result == CURLE_OK)
            return SGM_OK;
        long http_status = 0;
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http_status);
        if (is_refused_rest(transfer, result, http_status)) {
            goes_on = false;
            attempt--;
            continue;
        }
        sgm_status status = fail_transfer(transfer, result, http_status, attempt);
        if (attempt > self->retries || transfer->cancelled || !is_passing(result, http_status))
            return status;
        sgm__log(SGM_LOG_WARNING, "data", "%s; trying again", sgm_last_error());
        if (!wait_for(self, transfer->task, wait)) {
            transfer->cancelled = true;
            return fail_transfer(transfer, result, 0, attempt);
        }
        wait = wait * 2 < LONGEST_WAIT ? wait * 2 : LONGEST_WAIT;
    }
}

/* Compares the checksum if the caller gave one. */
static sgm_status check_digest(const url_source *self, download *transfer)
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    char text[DIGEST_TEXT_SIZE];
    if (self->sha256 == NULL)
        return SGM_OK;
    sha256_digest(&transfer->digest, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)digest[i]);
    if (strcasecmp(text, self->sha256) == 0)
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: the SHA-256 checksum is %s, expected was %s; the file on the server has changed or was damaged "
        "on the way: nothing was kept",
        self->base.name, text, self->sha256);
}

/* Makes the rename itself last; what cannot be synced (some network file systems) is no reason to fail. */
static void sync_folder(const char *path)
{
    char *folder = sgm__strdup(path);
    if (folder == NULL)
        return;
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder] = '\0';
    int descriptor = open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
    sgm__free(folder);
}

/* Downloads into the locked file, checks it, and gives it its name: synced before the rename, so that a
 * crash leaves no file with a name and without its bytes. */
static sgm_status download_to(const url_source *self, sgm_task task, int descriptor)
{
    CURL *curl = create_handle(self);
    if (curl == NULL)
        return SGM_ERROR_NETWORK;
    download transfer = {.source = self, .task = task, .descriptor = descriptor};
    sgm_status status = try_all(self, curl, &transfer);
    if (status == SGM_OK)
        status = check_digest(self, &transfer);
    if (status == SGM_ERROR_FORMAT && transfer.begin > 0) { /* the beginning may be of another file */
        status = begin_anew(self, &transfer);
        if (status == SGM_OK)
            status = try_all(self, curl, &transfer);
        if (status == SGM_OK)
            status = check_digest(self, &transfer);
    }
    curl_easy_cleanup(curl);
    SGM_TRY(status);
    if (fsync(descriptor) != 0 || rename(self->download_path, self->path) != 0)
        return sgm_fail(SGM_ERROR_FILE, "%s: cannot be put in place: %s; make room, or give another path",
                        self->path, sgm__errno_text(errno));
    sync_folder(self->path);
    return SGM_OK;
}

/* Opens and locks PATH.download, waiting for other processes that download the same file. */
static sgm_status lock_download(const url_source *self, sgm_task task, int *descriptor)
{
    for (;;) {
        *descriptor = open(self->download_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (*descriptor < 0)
            return sgm_fail(SGM_ERROR_FILE, "%s: cannot be written: %s; give another path",
                            self->download_path, sgm__errno_text(errno));
        while (flock(*descriptor, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
            if (wait_for(self, task, 0.1))
                continue;
            close(*descriptor);
            return sgm_fail(SGM_ERROR_INTERRUPTED, "%s: the download was cancelled", self->base.name);
        }
        /* The one before may have renamed or deleted the file that was opened; then the lock is of no use. */
        struct stat opened, named;
        if (sgm__file_exists(self->path) ||
            (fstat(*descriptor, &opened) == 0 && stat(self->download_path, &named) == 0 &&
             opened.st_ino == named.st_ino && opened.st_dev == named.st_dev))
            return SGM_OK;
        close(*descriptor);
    }
}

/* Creates the folder of the file, which may be the first in a new cache. */
static sgm_status make_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return SGM_OK;
    char *folder = sgm__strndup(path, (size_t)(slash - path));
    sgm_status status = folder != NULL ? sgm__make_folders(folder) : SGM_ERROR_MEMORY;
    sgm__free(folder);
    return status;
}

static sgm_status download_once(const url_source *self, sgm_task task)
{
    int descriptor;
    SGM_TRY(make_parent(self->path));
    SGM_TRY(lock_download(self, task, &descriptor));
    sgm_status status = sgm__file_exists(self->path) ? SGM_OK : download_to(self, task, descriptor);
    bool is_kept = self->sha256 != NULL && (status == SGM_ERROR_NETWORK || status == SGM_ERROR_INTERRUPTED);
    if (!is_kept) /* what a failure left, or this call made after another one had renamed its own */
        unlink(self->download_path);
    close(descriptor);
    return status;
}

/* Does nothing if the file is there. Otherwise a task "download" shows the progress. */
static sgm_status url_prepare(sgm_source *source)
{
    const url_source *self = (const url_source *)source;
    if (sgm__file_exists(self->path))
        return SGM_OK;
    const char *slash = strrchr(self->path, '/');
    char took[64];
    double began = sgm__now();
    sgm__log(SGM_LOG_INFO, "data", "downloading %s to %s", source->name, self->path);
    sgm_task task = sgm_task_begin(SGM_TASK_DOWNLOAD, slash != NULL ? slash + 1 : self->path, "bytes");
    sgm_task_allow_cancel(task);
    sgm_status status = download_once(self, task);
    sgm_task_end(task, status);
    if (status == SGM_OK)
        sgm__log(SGM_LOG_INFO, "data", "%s is there after %s", self->path,
                 sgm_duration_text(sgm__now() - began, took, sizeof took));
    return status;
}

static size_t discard(char *bytes, size_t size, size_t count, void *user)
{
    (void)bytes, (void)user;
    return size * count;
}

/* Asks the server without fetching the file. A server that does not answer such questions (405, 501) may
 * still have the file. */
static bool url_exists(sgm_source *source)
{
    const url_source *self = (const url_source *)source;
    if (sgm__file_exists(self->path))
        return true;
    CURL *curl = create_handle(self);
    if (curl == NULL)
        return false;
    long http_status = 0;
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
    CURLcode result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http_status);
    curl_easy_cleanup(curl);
    return result == CURLE_OK && (http_status < 400 || http_status == 405 || http_status == 501);
}

static sgm_stream *url_open(sgm_source *source)
{
    sgm_source *file = sgm_file_source(((const url_source *)source)->path);
    sgm_stream *stream = sgm_source_open(file);
    sgm_source_free(file); /* the stream holds it */
    return stream;
}

static void url_free(sgm_source *source)
{
    url_source *self = (url_source *)source;
    sgm__free(self->path);
    sgm__free(self->download_path);
    sgm__free(self->task);
    sgm__free(self->sha256);
    sgm__free(self->proxy);
}

/* The last part of the path of a URL, without query and fragment; the caller owns it. */
static char *name_in_url(const char *url)
{
    const char *rest = strstr(url, "://") + 3;
    size_t length = strcspn(rest, "?#");
    size_t start = length;
    while (start > 0 && rest[start - 1] != '/')
        start--;
    if (start == 0 || start == length) {
        sgm_fail(SGM_ERROR_ARGUMENT, "%s: has no file name at its end; give .path, where the file is kept",
                 url);
        return NULL;
    }
    return sgm__strndup(rest + start, length - start);
}

/* The file of that name in the cache folder. */
static char *default_path(const char *url)
{
    char *name = name_in_url(url);
    char *folder = name != NULL ? sgm_folder_path(SGM_FOLDER_CACHE) : NULL;
    char *path = folder != NULL ? sgm__format("%s/%s", folder, name) : NULL;
    sgm__free(folder);
    sgm__free(name);
    return path;
}

static sgm_status check_arguments(const char *url, const sgm_url_options *options)
{
    if (url == NULL || (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "an address that begins with http:// or https:// was expected, '%s' came",
                        url != NULL ? url : "NULL");
    const char *sha256 = options->sha256;
    if (sha256 != NULL && (strlen(sha256) != DIGEST_TEXT_SIZE - 1 ||
                           strspn(sha256, "0123456789abcdefABCDEF") != DIGEST_TEXT_SIZE - 1))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: a SHA-256 checksum has 64 hexadecimal digits, '%s' came",
                        url, sha256);
    if (options->retries < -1 || options->timeout < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: retries of at least -1 and a timeout of at least 0 were expected, %d and "
                        "%d came",
                        url, options->retries, options->timeout);
    return SGM_OK;
}

/* Options that are 0 get their defaults; retries of -1 mean none. */
static sgm_status set_options(url_source *self, const sgm_url_options *options)
{
    const char *url = self->base.name;
    self->retries = options->retries == 0 ? DEFAULT_RETRIES : options->retries == -1 ? 0 : options->retries;
    self->timeout = options->timeout == 0 ? DEFAULT_TIMEOUT : options->timeout;
    self->progress = options->progress;
    self->user = options->user;
    self->path = options->path != NULL ? sgm__strdup(options->path) : default_path(url);
    if (self->path == NULL)
        return sgm_last_status();
    self->download_path = sgm__format("%s.download", self->path);
    self->task = sgm__format("download %s", url);
    self->sha256 = sgm__strdup(options->sha256);
    self->proxy = sgm__strdup(options->proxy);
    if (self->download_path == NULL || self->task == NULL ||
        (options->sha256 != NULL && self->sha256 == NULL) || (options->proxy != NULL && self->proxy == NULL))
        return SGM_ERROR_MEMORY;
    return SGM_OK;
}

/* The file that it was fetched to. */
static void url_describe(const sgm_source *source, sgm__key *key)
{
    sgm__key_add_file(key, ((const url_source *)source)->path);
}

/* --- paths --- */

bool sgm__is_url(const char *path)
{
    return strncasecmp(path, "http://", 7) == 0 || strncasecmp(path, "https://", 8) == 0;
}

/* CACHE/downloads/HASH-NAME: two addresses with the same last part are two files. */
static char *path_of_url(const char *url)
{
    uint64_t hash = 14695981039346656037U; /* FNV-1a */
    for (const char *c = url; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211U;
    char *name = name_in_url(url);
    char *folder = name != NULL ? sgm_folder_path(SGM_FOLDER_CACHE) : NULL;
    char *path = folder != NULL
                     ? sgm__format("%s/downloads/%016llx-%s", folder, (unsigned long long)hash, name)
                     : NULL;
    sgm__free(folder);
    sgm__free(name);
    return path;
}

/* The checksum is part of what the file is called: another one is another file. */
static sgm_source *fetched_source(const char *text)
{
    const char *mark = strstr(text, CHECKSUM_MARK);
    char *url = mark != NULL ? sgm__strndup(text, (size_t)(mark - text)) : sgm__strdup(text);
    char *path = url != NULL ? path_of_url(text) : NULL;
    sgm_source *source =
        path != NULL
            ? sgm_url_source(url, .path = path, .sha256 = mark != NULL ? mark + strlen(CHECKSUM_MARK) : NULL)
            : NULL;
    sgm__free(path);
    sgm__free(url);
    return source;
}

sgm_source *sgm__path_source(const char *path)
{
    return sgm__is_url(path) ? fetched_source(path) : sgm_file_source(path);
}

sgm_source *sgm__unpacked_path_source(const char *path)
{
    char *name = sgm__is_url(path) ? name_in_url(path) : sgm__strdup(path);
    sgm_source *source = name != NULL ? sgm__unpacked_source(sgm__path_source(path), name) : NULL;
    sgm__free(name);
    return source;
}

sgm_source *sgm_url_source_with(const char *url, const sgm_url_options *options)
{
    static const sgm__source_type type = {url_exists, url_prepare, url_open, url_free, url_describe};
    sgm_url_options copy;
    if (sgm__options_read(&copy, sizeof copy, options, "sgm_url_source") != SGM_OK ||
        check_arguments(url, &copy) != SGM_OK)
        return NULL;
    url_source *self = sgm__source_create(sizeof *self, &type, url);
    if (self == NULL)
        return NULL;
    if (set_options(self, &copy) != SGM_OK) {
        sgm_source_free(&self->base);
        return NULL;
    }
    return &self->base;
}
