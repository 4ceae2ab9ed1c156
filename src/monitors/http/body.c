/* The body of a request: in memory or, for routes that ask for it, in a file without a name, since an upload
 * may be larger than the memory that is free. */
#include "monitors/http/http_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* The file has no name once it is open: it goes when its descriptor is closed. */
static int make_file_in(const char *folder)
{
    char *path = sgm__format("%s/sigma-upload-XXXXXX", folder);
    int file = path != NULL ? mkostemp(path, O_CLOEXEC) : -1;
    if (file >= 0)
        unlink(path);
    sgm__free(path);
    return file;
}

/* On many systems /tmp is memory, which /var/tmp never is. */
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

/* The space is taken at once: a full disk is told before the bytes are sent. File systems that cannot do so
 * tell it when they are written. */
void sgm__http_body_open(sgm__http_exchange *exchange, size_t length)
{
    if (exchange->route == NULL || !exchange->route->in_file)
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

/* All of it has come. */
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
