/* gzip (RFC 1952), inflated as a stream with zlib; other content passes through unchanged.
 *
 * It lies below libarchive (source_archive.c), whose own gzip filter does not compare the checksum and the
 * length at the end of each part. A file may consist of several parts, one behind the other, whose contents
 * are joined. */
#include "data/read/source.h"
#include <zlib.h>

#define BLOCK_SIZE 65536

/* It owns `inner`. `block` holds packed bytes, of which the inflater's next_in and avail_in say what was not
 * used yet, also for other content. */
typedef struct gzip_stream {
    sgm_stream base;
    sgm_stream *inner;
    z_stream inflater;
    bool is_gzip, has_inflater, ended;
    unsigned char block[BLOCK_SIZE];
} gzip_stream;

/* The error with the place in the packed file. */
static sgm_status gzip_fail(const gzip_stream *self, const char *what)
{
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: cannot be unpacked at byte %llu of the packed file: %s; it is damaged or incomplete: get it "
        "again",
        self->base.name, (unsigned long long)(self->inner->position - self->inflater.avail_in), what);
}

static sgm_status refill(gzip_stream *self)
{
    size_t got;
    SGM_TRY(sgm_stream_read(self->inner, self->block, sizeof self->block, &got));
    self->inflater.next_in = self->block;
    self->inflater.avail_in = (uInt)got;
    return SGM_OK;
}

/* Behind a part another one may follow; anything else, such as padding, ends the data, as for gzip itself.
 * The two bytes that begin a part may lie across two blocks. */
static sgm_status next_part(gzip_stream *self)
{
    if (self->inflater.avail_in < 2) { /* the magic may lie across two blocks */
        unsigned char *first = self->block;
        size_t left = self->inflater.avail_in, got;
        if (left > 0)
            first[0] = *self->inflater.next_in;
        SGM_TRY(sgm_stream_read(self->inner, first + left, sizeof self->block - left, &got));
        self->inflater.next_in = first;
        self->inflater.avail_in = (uInt)(left + got);
    }
    const unsigned char *magic = self->inflater.next_in;
    self->ended = self->inflater.avail_in < 2 || magic[0] != 0x1f || magic[1] != 0x8b;
    if (!self->ended && inflateReset(&self->inflater) != Z_OK)
        return gzip_fail(self, "the unpacker cannot be restarted");
    return SGM_OK;
}

/* Inflates until at least one byte came or the data have ended. zlib counts in 32 bits, so a call gives 2^30
 * bytes at most. zlib itself compares checksum and length. */
static sgm_status gzip_read(sgm_stream *stream, void *buffer, size_t size, size_t *got)
{
    gzip_stream *self = (gzip_stream *)stream;
    z_stream *inflater = &self->inflater;
    if (!self->is_gzip) { /* first what was read to look at the magic, then straight through */
        if (inflater->avail_in == 0)
            return sgm_stream_read(self->inner, buffer, size, got);
        *got = size < inflater->avail_in ? size : inflater->avail_in;
        memcpy(buffer, inflater->next_in, *got);
        inflater->next_in += *got;
        inflater->avail_in -= (uInt)*got;
        return SGM_OK;
    }
    inflater->next_out = buffer;
    uInt room = size < (1u << 30) ? (uInt)size : 1u << 30;
    inflater->avail_out = room;
    while (inflater->avail_out == room && !self->ended) {
        if (inflater->avail_in == 0)
            SGM_TRY(refill(self));
        if (inflater->avail_in == 0)
            return gzip_fail(self, "the file ends in the middle of the data");
        int result = inflate(inflater, Z_NO_FLUSH);
        if (result == Z_STREAM_END)
            SGM_TRY(next_part(self));
        else if (result != Z_OK)
            return gzip_fail(self, inflater->msg != NULL ? inflater->msg : "a dictionary is missing");
    }
    *got = room - inflater->avail_out;
    return SGM_OK;
}

static void gzip_close(sgm_stream *stream)
{
    gzip_stream *self = (gzip_stream *)stream;
    if (self->has_inflater)
        inflateEnd(&self->inflater);
    sgm_stream_close(self->inner);
}

/* Looks at the first two bytes, 1f 8b for gzip. */
static sgm_status gzip_begin(gzip_stream *self)
{
    SGM_TRY(refill(self));
    self->is_gzip = self->inflater.avail_in >= 2 && self->block[0] == 0x1f && self->block[1] == 0x8b;
    if (!self->is_gzip)
        return SGM_OK;
    if (inflateInit2(&self->inflater, 16 + MAX_WBITS) != Z_OK) /* 16: with the gzip header and trailer */
        return sgm__fail_memory(sizeof self->inflater);
    self->has_inflater = true;
    return SGM_OK;
}

sgm_stream *sgm__gzip_open(sgm_stream *inner)
{
    static const sgm__stream_type type = {gzip_read, NULL, gzip_close};
    gzip_stream *self = sgm__stream_create(sizeof *self, &type, NULL, inner->name);
    if (self == NULL) {
        sgm_stream_close(inner);
        return NULL;
    }
    self->inner = inner;
    if (gzip_begin(self) != SGM_OK) {
        sgm_stream_close(&self->base);
        return NULL;
    }
    return &self->base;
}
