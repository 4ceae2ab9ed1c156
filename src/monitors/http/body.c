/* The body of a request: in memory or, for routes with `in_file`, in an unnamed temporary file, since an
 * upload may be larger than free memory.
 *
 * request.c calls sgm__http_body_open when the headers are accepted, sgm__http_body_append for each part,
 * and sgm__http_body_finish at the end, all on the loop's thread. So a slow disk delays events and other
 * answers, but no training. The limits of length are checked in request.c. */
#include "monitors/http/http_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* The file is unlinked at once: it disappears when its descriptor is closed, also after a crash. */
static int make_file_in(const char *folder)
{
    char *path = sgm__format("%s/sigma-upload-XXXXXX", folder);
    int file = path != NULL ? mkostemp(path, O_CLOEXEC) : -1;
    if (file >= 0)
        unlink(path);
    sgm__free(path);
    return file;
}

/* TMPDIR if it is set. /var/tmp comes before /tmp, which is memory on many systems. */
static int make_file(void)
{
    const char *own = getenv("TMPDIR");
    if (own != NULL && *own != '\0')
        return make_file_in(own);
    int file = make_file_in("/var/tmp");
    return file >= 0 ? file : make_file_in("/tmp");
}

static void refuse_storage(sgm__http_exchange *exchange)
{
    sgm__http_refuse(exchange, MHD_HTTP_INSUFFICIENT_STORAGE,
                     "the upload cannot be kept in the folder for temporary files (TMPDIR): %s",
                     sgm__errno_text(errno));
}

/* Reserves the space, so that a full disk is reported before the client sends the body. File systems that
 * cannot reserve report a full disk while the body is written. */
void sgm__http_body_open(sgm__http_exchange *exchange, size_t length)
{
    if (exchange->request.route == NULL || !exchange->request.route->in_file)
        return;
    exchange->request.file = make_file();
    if (exchange->request.file < 0 ||
        (fallocate(exchange->request.file, FALLOC_FL_KEEP_SIZE, 0, (off_t)length) != 0 && errno == ENOSPC))
        refuse_storage(exchange);
}

void sgm__http_body_append(sgm__http_exchange *exchange, const char *bytes, size_t length)
{
    if (exchange->request.file < 0) {
        sgm__text_append_bytes(&exchange->body, bytes, length);
        return;
    }
    while (length > 0) {
        ssize_t written = write(exchange->request.file, bytes, length);
        if (written < 0 && errno != EINTR) {
            refuse_storage(exchange);
            return;
        }
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
            exchange->request.length += (size_t)written;
        }
    }
}

/* The body is complete: rewinds the file, or hands the text to the request. The text stays the exchange's. */
void sgm__http_body_finish(sgm__http_exchange *exchange)
{
    if (exchange->body.failed)
        sgm__http_refuse(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
    if (exchange->request.file >= 0) {
        lseek(exchange->request.file, 0, SEEK_SET);
        return;
    }
    exchange->request.body = exchange->body.data != NULL ? exchange->body.data : "";
    exchange->request.length = exchange->body.length;
}

void sgm__http_body_free(sgm__http_exchange *exchange)
{
    sgm__text_free(&exchange->body);
    if (exchange->request.file >= 0)
        close(exchange->request.file);
}
