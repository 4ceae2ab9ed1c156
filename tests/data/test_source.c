/* Sources: files, memory, packed files, known datasets, downloads from a server on the loopback. */
#include "base/german.h"
#include "data/read/source.h"
#include "data_test.h"
#include <archive.h>
#include <archive_entry.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <sigma/base.h>
#include <sys/socket.h>
#include <zlib.h>

TEST(file_is_read_and_skipped)
{
    sgm_source *source = sgm_file_source(data_write("plain.txt", "0123456789", 10));
    CHECK(sgm_source_exists(source));
    sgm_stream *stream = sgm_source_open(source);
    CHECK_OK(stream);
    char buffer[16] = {0};
    size_t got;
    CHECK_OK(sgm_stream_skip(stream, 3));
    CHECK_OK(sgm_stream_read(stream, buffer, 4, &got));
    CHECK_INT(got, 4);
    CHECK_STR(buffer, "3456");
    CHECK_ERROR(sgm_stream_skip(stream, 4), "plain.txt");
    CHECK_CONTAINS(sgm_last_error(), "ends at byte 10");
    sgm_source_free(source); /* the stream keeps what it needs */
    CHECK_OK(sgm_stream_read(stream, buffer, 4, &got));
    CHECK_INT(got, 0);
    sgm_stream_close(stream);
}

TEST(missing_file_and_folder_are_named)
{
    sgm_source *source = sgm_file_source("/nowhere/at/all.csv");
    CHECK(!sgm_source_exists(source));
    CHECK_ERROR(sgm_source_open(source), "/nowhere/at/all.csv");
    CHECK_INT(sgm_last_status(), SGM_ERROR_NOT_FOUND);
    sgm_source_free(source);
    source = sgm_file_source("/tmp");
    CHECK(!sgm_source_exists(source));
    CHECK_ERROR(sgm_source_open(source), "folder");
    sgm_source_free(source);
    CHECK_ERROR(sgm_file_source(""), "path");
}

TEST(memory_is_copied)
{
    char bytes[] = "abc";
    sgm_source *source = sgm_memory_source("m", bytes, 3);
    bytes[0] = 'x';
    CHECK_STR(data_text(source), "abc");
    CHECK_STR(data_text(sgm_memory_source("empty", NULL, 0)), "");
    CHECK_ERROR(sgm_memory_source("bad", NULL, 1), "NULL");
}

TEST(skip_past_the_end_of_memory_fails)
{
    sgm_source *source = sgm_memory_source("short", "abc", 3);
    sgm_stream *stream = sgm_source_open(source);
    CHECK_OK(sgm_stream_skip(stream, 3));
    CHECK_ERROR(sgm_stream_skip(stream, UINT64_MAX), "short");
    sgm_stream_close(stream);
    sgm_source_free(source);
}

TEST(first_source_takes_the_first_that_exists)
{
    CHECK_STR(data_text(sgm_first_source(sgm_file_source("/nowhere/a"), sgm_memory_source("b", "B", 1),
                                         sgm_memory_source("c", "C", 1))),
              "B");
    sgm_source *none = sgm_first_source(sgm_file_source("/nowhere/a"), sgm_file_source("/nowhere/b"));
    CHECK(!sgm_source_exists(none));
    CHECK_ERROR(sgm_source_prepare(none), "/nowhere/a or /nowhere/b");
    sgm_source_free(none);
}

TEST(failed_parts_are_passed_on)
{
    CHECK_ERROR(
        sgm_compressed_source(sgm_first_source(sgm_memory_source("b", "B", 1), sgm_file_source(NULL)), NULL),
        "needs a path");
    CHECK_ERROR(sgm_csv_reader_with(sgm_file_source(""), NULL), "needs a path");
}

/* --- packed files --- */

static size_t gzip(const void *bytes, size_t length, unsigned char *out, size_t size)
{
    z_stream deflater = {0};
    deflateInit2(&deflater, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
    deflater.next_in = (z_const Bytef *)(uintptr_t)bytes;
    deflater.avail_in = (uInt)length;
    deflater.next_out = out;
    deflater.avail_out = (uInt)size;
    deflate(&deflater, Z_FINISH);
    deflateEnd(&deflater);
    return deflater.total_out;
}

/* An archive of a folder and two files, "a/first.txt" with "one" and "second.txt" with 100,000 times "x". */
static const char *write_archive(const char *name, int format, int filter)
{
    const char *path = data_path(name);
    struct archive *archive = archive_write_new();
    archive_write_set_format(archive, format);
    archive_write_add_filter(archive, filter);
    archive_write_open_filename(archive, path);
    static char big[100000];
    memset(big, 'x', sizeof big);
    const char *names[] = {"a", "a/first.txt", "second.txt"};
    const size_t sizes[] = {0, 3, sizeof big};
    for (int i = 0; i < 3; i++) {
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, names[i]);
        archive_entry_set_filetype(entry, i == 0 ? AE_IFDIR : AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, (la_int64_t)sizes[i]);
        archive_write_header(archive, entry);
        if (i > 0)
            archive_write_data(archive, i == 1 ? "one" : big, sizes[i]);
        archive_entry_free(entry);
    }
    archive_write_close(archive);
    archive_write_free(archive);
    return path;
}

static sgm_source *packed(const char *path, const char *member)
{
    return sgm_compressed_source(sgm_file_source(path), member);
}

TEST(gzip_in_several_parts)
{
    unsigned char bytes[256];
    size_t length = gzip("Hello ", 6, bytes, sizeof bytes);
    length += gzip("world", 5, bytes + length, sizeof bytes - length);
    CHECK_STR(data_text(sgm_compressed_source(sgm_memory_source("h.gz", bytes, length), NULL)),
              "Hello world");
    CHECK_STR(data_text(sgm_compressed_source(sgm_memory_source("plain", "as it is", 8), NULL)), "as it is");
    CHECK_STR(data_text(sgm_compressed_source(sgm_memory_source("empty", "", 0), NULL)), "");
}

TEST(gzip_part_border_may_lie_anywhere)
{
    static unsigned char bytes[300000];
    static char noise[70000];
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)((state = state * 1664525 + 1013904223) >> 24);
    for (size_t first = 65480; first < 65520; first++) { /* stored: about 20 bytes more */
        size_t length = gzip(noise, first, bytes, sizeof bytes);
        length += gzip("tail", 4, bytes + length, sizeof bytes - length);
        sgm_source *source = sgm_compressed_source(sgm_memory_source("n.gz", bytes, length), NULL);
        sgm_stream *stream = sgm_source_open(source);
        char tail[5] = {0};
        size_t got;
        CHECK_OK(sgm_stream_skip(stream, first));
        CHECK_OK(sgm_stream_read(stream, tail, 5, &got));
        CHECK_INT(got, 4);
        CHECK_STR(tail, "tail");
        sgm_stream_close(stream);
        sgm_source_free(source);
    }
}

TEST(damaged_gzip_is_an_error)
{
    unsigned char bytes[256];
    size_t length = gzip("The quick brown fox jumps over the lazy dog", 43, bytes, sizeof bytes);
    for (size_t cut = 2; cut < length; cut++) {
        CHECK_STR(data_text(sgm_compressed_source(sgm_memory_source("cut.gz", bytes, cut), NULL)), "ERROR");
        CHECK_CONTAINS(sgm_last_error(), "cut.gz");
    }
    bytes[length - 8] ^= 1; /* the checksum */
    CHECK_STR(data_text(sgm_compressed_source(sgm_memory_source("sum.gz", bytes, length), NULL)), "ERROR");
    CHECK_CONTAINS(sgm_last_error(), "incorrect data check");
}

/* As an empty tar archive begins. */
TEST(leading_zeros_are_data)
{
    static char text[2000 + 5];
    unsigned char bytes[256];
    char got[sizeof text + 1];
    memcpy(text + 2000, "data", 5);
    size_t length = gzip(text, sizeof text, bytes, sizeof bytes), count = 0, part = 1;
    sgm_source *source = sgm_compressed_source(sgm_memory_source("zeros.gz", bytes, length), NULL);
    sgm_stream *stream = sgm_source_open(source);
    CHECK_OK(stream);
    for (; stream != NULL && part > 0; count += part)
        CHECK_OK(sgm_stream_read(stream, got + count, sizeof got - count, &part));
    CHECK_INT(count, sizeof text);
    CHECK_INT(memcmp(got, text, sizeof text), 0);
    sgm_stream_close(stream);
    sgm_source_free(source);
}

TEST(archives_by_content)
{
    const struct {
        const char *name;
        int format, filter;
    } kinds[] = {
        {"zip", ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE},
        {"tar", ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_NONE},
        {"tar-gz", ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_GZIP},
        {"tar-xz", ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_XZ},
        {"tar-bz2", ARCHIVE_FORMAT_TAR_PAX_RESTRICTED, ARCHIVE_FILTER_BZIP2},
        {"tar-zst", ARCHIVE_FORMAT_TAR_GNUTAR, ARCHIVE_FILTER_ZSTD},
        {"tar-compress", ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_COMPRESS},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char path[256];
        strcpy(path, write_archive(kinds[i].name, kinds[i].format, kinds[i].filter));
        CHECK_STR(data_text(packed(path, NULL)), "one");
        CHECK_STR(data_text(packed(path, "a/first.txt")), "one");
        sgm_source *second = packed(path, "second.txt");
        sgm_stream *stream = sgm_source_open(second);
        CHECK_OK(sgm_stream_skip(stream, 100000));
        CHECK_ERROR(sgm_stream_skip(stream, 1), kinds[i].name);
        sgm_stream_close(stream);
        sgm_source_free(second);
        sgm_source *third = packed(path, "third.txt");
        CHECK_ERROR(sgm_source_open(third), "third.txt; it has: a/first.txt, second.txt");
        CHECK_INT(sgm_last_status(), SGM_ERROR_NOT_FOUND);
        sgm_source_free(third);
    }
}

/* An archive with the file "ä.txt", as others write them: zip says that the name is UTF-8, tar does not. */
static size_t put_archive(int format, char *bytes, size_t size)
{
    size_t length = 0;
    struct archive *archive = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_write_set_format(archive, format);
    archive_write_set_options(archive, format == ARCHIVE_FORMAT_ZIP ? "zip:hdrcharset=UTF-8" : "");
    archive_write_open_memory(archive, bytes, size, &length);
    if (format == ARCHIVE_FORMAT_ZIP)
        archive_entry_set_pathname_utf8(entry, "\xc3\xa4.txt");
    else
        archive_entry_set_pathname(entry, "\xc3\xa4.txt");
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, 3);
    archive_write_header(archive, entry);
    archive_write_data(archive, "one", 3);
    archive_entry_free(entry);
    archive_write_close(archive);
    archive_write_free(archive);
    return length;
}

TEST(members_are_found_whatever_the_locale)
{
    const int formats[] = {ARCHIVE_FORMAT_ZIP, ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE};
    for (int german = 0; german < 2; german++)
        for (int i = 0; i < 3; i++) {
            char bytes[16384];
            size_t length = put_archive(formats[i], bytes, sizeof bytes);
            sgm_source *source = sgm_memory_source("archive", bytes, length);
            if (german && !speak_german())
                SKIP("no locale can be made here");
            const char *text = data_text(sgm_compressed_source(source, "\xc3\xa4.txt"));
            speak_c();
            if (strcmp(text, "one") != 0)
                TEST_FAIL("format %d, german %d: %s", i, german, sgm_last_error());
        }
}

TEST(member_of_a_single_file_is_refused)
{
    sgm_source *source = sgm_compressed_source(sgm_memory_source("single", "text", 4), "x");
    CHECK_ERROR(sgm_source_open(source), "not an archive");
    sgm_source_free(source);
}

TEST(damaged_archives_do_not_crash)
{
    static unsigned char bytes[200000];
    const int formats[] = {ARCHIVE_FORMAT_ZIP, ARCHIVE_FORMAT_TAR_USTAR};
    for (int format = 0; format < 2; format++) {
        FILE *file = fopen(write_archive("damage", formats[format], ARCHIVE_FILTER_NONE), "rb");
        size_t length = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        uint32_t state = 7;
        for (int i = 0; i < 500; i++) {
            state = state * 1664525 + 1013904223;
            size_t place = (state >> 8) % (length < 2048 ? length : 2048);
            unsigned char old = bytes[place];
            bytes[place] ^= (unsigned char)(1u << (state & 7u));
            sgm_clear_error();
            const char *text =
                data_text(sgm_compressed_source(sgm_memory_source("hurt", bytes, length), NULL));
            if (strcmp(text, "ERROR") == 0)
                CHECK_CONTAINS(sgm_last_error(), "hurt");
            bytes[place] = old;
        }
    }
}

/* --- known datasets --- */

TEST(known_source_looks_in_the_data_folders)
{
    unsigned char bytes[128];
    size_t length = gzip("zipped", 6, bytes, sizeof bytes);
    data_path("");
    mkdir(data_path("d"), 0755);
    mkdir(data_path("d/one"), 0755);
    mkdir(data_path("d/one/two"), 0755);
    data_write("d/one/two/deep.csv", "deep", 4);
    data_write("d/one/packed.csv.gz", bytes, length);
    setenv("SIGMA_DATA_DIR", data_path("d"), 1);
    unsetenv("SIGMA_CACHE_DIR");
    setenv("XDG_CACHE_HOME", data_path("cache"), 1);
    CHECK_STR(data_text(sgm_known_source("deep.csv", NULL, NULL)), "deep");
    CHECK_STR(data_text(sgm_known_source("packed.csv", NULL, NULL)), "zipped");
    CHECK_STR(data_text(sgm_known_source("packed.csv.gz", NULL, NULL)), "zipped");

    sgm_source *missing = sgm_known_source("no-such-thing.csv", NULL, NULL);
    CHECK(!sgm_source_exists(missing));
    CHECK_ERROR(sgm_source_prepare(missing), "no-such-thing.csv: not found");
    CHECK_CONTAINS(sgm_last_error(), data_path("d"));
    CHECK_CONTAINS(sgm_last_error(), data_path("cache/sigma"));
    CHECK_CONTAINS(sgm_last_error(), "set SIGMA_DATA_DIR");
    sgm_source_free(missing);

    mkdir(data_path("cache"), 0755);
    mkdir(data_path("cache/sigma"), 0755);
    data_write("cache/sigma/cached.csv", "cached", 6);
    CHECK_STR(data_text(sgm_known_source("cached.csv", NULL, NULL)), "cached");
    CHECK_ERROR(sgm_known_source("../secret", NULL, NULL), "sgm_file_source");
    unsetenv("SIGMA_DATA_DIR");

    mkdir(data_path("home"), 0755);
    mkdir(data_path("home/sigma"), 0755);
    data_write("home/sigma/own.csv", "own", 3);
    setenv("XDG_DATA_HOME", data_path("home"), 1);
    CHECK_STR(data_text(sgm_known_source("own.csv", NULL, NULL)), "own");
    unsetenv("XDG_DATA_HOME");
    setenv("SIGMA_CACHE_DIR", data_path("home/sigma"), 1);
    CHECK_STR(data_text(sgm_known_source("own.csv", NULL, NULL)), "own");
    unsetenv("SIGMA_CACHE_DIR");
}

TEST(known_source_takes_the_first_folder_whatever_the_locale)
{
    data_path("");
    mkdir(data_path("order"), 0755);
    mkdir(data_path("order/B"), 0755);
    mkdir(data_path("order/a"), 0755);
    data_write("order/B/twice.csv", "B", 1);
    data_write("order/a/twice.csv", "a", 1);
    setenv("SIGMA_DATA_DIR", data_path("order"), 1);
    CHECK_STR(data_text(sgm_known_source("twice.csv", NULL, NULL)), "B");
    if (!speak_german())
        SKIP("no locale can be made here");
    char text[8];
    snprintf(text, sizeof text, "%s", data_text(sgm_known_source("twice.csv", NULL, NULL)));
    speak_c();
    unsetenv("SIGMA_DATA_DIR");
    CHECK_STR(text, "B");
}

/* --- downloads: a server with one thread; each path has its behaviour --- */

static int server_socket = -1, server_port;
static pthread_t server_thread;
static atomic_int server_requests;
static char server_last[1024]; /* first line and headers of the last request */

#define BODY "These are the bytes of the file."
#define BODY_SHA256 "b466c06704a60442abff847e6df92e70ad27ce2f6e76c79c8c47945ab77bca40"

static void answer(int client, const char *status, const char *headers, const char *body, size_t declared)
{
    char text[1024];
    int length =
        snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n%s",
                 status, declared, headers, body);
    send(client, text, (size_t)length, MSG_NOSIGNAL);
}

static void serve(int client)
{
    ssize_t length = recv(client, server_last, sizeof server_last - 1, 0);
    server_last[length > 0 ? length : 0] = '\0';
    int request = atomic_fetch_add(&server_requests, 1);
    if (strstr(server_last, "/good"))
        answer(client, "200 OK", "", strncmp(server_last, "HEAD", 4) == 0 ? "" : BODY, sizeof BODY - 1);
    else if (strstr(server_last, "/moved"))
        answer(client, "302 Found", "Location: /good.txt\r\n", "", 0);
    else if (strstr(server_last, "/to-file"))
        answer(client, "302 Found", "Location: file:///etc/passwd\r\n", "", 0);
    else if (strstr(server_last, "/flaky") && request == 0)
        answer(client, "200 OK", "", "These are", sizeof BODY - 1); /* and the connection ends */
    else if (strstr(server_last, "/flaky") && request == 1)
        answer(client, "503 Busy", "", "", 0);
    else if (strstr(server_last, "/flaky"))
        answer(client, "200 OK", "", BODY, sizeof BODY - 1);
    else if (strstr(server_last, "/parts") && strstr(server_last, "Range: bytes=9-"))
        answer(client, "206 Partial Content", "Content-Range: bytes 9-31/32\r\n", &BODY[9], sizeof BODY - 10);
    else if (strstr(server_last, "/parts") || strstr(server_last, "/whole"))
        answer(client, "200 OK", "", request == 0 ? "These are" : BODY, sizeof BODY - 1);
    else if (strstr(server_last, "/silent"))
        sleep(3);
    else
        answer(client, "404 Not Found", "", "nothing here", 12);
}

static void *run_server(void *user)
{
    (void)user;
    for (;;) {
        int client = accept(server_socket, NULL, NULL);
        if (client < 0)
            return NULL;
        serve(client);
        shutdown(client, SHUT_RDWR);
        close(client);
    }
}

static void stop_server(void)
{
    shutdown(server_socket, SHUT_RDWR);
    pthread_join(server_thread, NULL);
    close(server_socket);
}

static const char *url(const char *path)
{
    static char text[2][256];
    static int next;
    if (server_socket < 0) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof address;
        server_socket = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(server_socket, (struct sockaddr *)&address, sizeof address) != 0 ||
            listen(server_socket, 8) != 0)
            exit(1);
        getsockname(server_socket, (struct sockaddr *)&address, &size);
        server_port = ntohs(address.sin_port);
        pthread_create(&server_thread, NULL, run_server, NULL);
        atexit(stop_server);
        setenv("no_proxy", "127.0.0.1", 1);
    }
    atomic_store(&server_requests, 0);
    next = !next;
    snprintf(text[next], sizeof text[next], "http://127.0.0.1:%d%s", server_port, path);
    return text[next];
}

TEST(download_is_kept_and_used_again)
{
    const char *path = data_path("new/folder/good.txt");
    CHECK_STR(data_text(sgm_url_source(url("/good.txt"), .path = path)), BODY);
    CHECK_STR(data_text(sgm_file_source(path)), BODY);
    CHECK_INT(atomic_load(&server_requests), 1);
    CHECK_STR(data_text(sgm_url_source(url("/good.txt"), .path = path)), BODY);
    CHECK_INT(atomic_load(&server_requests), 0);
    CHECK(access(data_path("new/folder/good.txt.download"), F_OK) != 0);
}

TEST(download_checks_the_checksum)
{
    const char *path = data_path("sum.txt");
    const char *wrong = "00000000000000000000000000000000000000000000000000000000000000ff";
    sgm_source *source = sgm_url_source(url("/good.txt"), .path = path, .sha256 = wrong);
    CHECK_ERROR(sgm_source_open(source), wrong);
    CHECK_CONTAINS(sgm_last_error(), BODY_SHA256);
    CHECK(access(path, F_OK) != 0);
    CHECK(access(data_path("sum.txt.download"), F_OK) != 0);
    sgm_source_free(source);
    CHECK_STR(data_text(sgm_url_source(url("/good.txt"), .path = path, .sha256 = BODY_SHA256)), BODY);
    CHECK_ERROR(sgm_url_source(url("/good.txt"), .sha256 = "abc"), "64 hexadecimal digits");
}

TEST(download_follows_redirects_to_the_web_only)
{
    CHECK_STR(data_text(sgm_url_source(url("/moved"), .path = data_path("moved.txt"))), BODY);
    sgm_source *source = sgm_url_source(url("/to-file"), .path = data_path("to-file.txt"));
    CHECK_ERROR(sgm_source_open(source), "/to-file");
    CHECK(access(data_path("to-file.txt"), F_OK) != 0);
    sgm_source_free(source);
    CHECK_ERROR(sgm_url_source_with("ftp://example.org/x", NULL), "http://");
    CHECK_ERROR(sgm_url_source_with("file:///etc/passwd", NULL), "http://");
}

TEST(download_not_found_is_not_tried_again)
{
    sgm_source *source = sgm_url_source(url("/nothing.txt"), .path = data_path("nothing.txt"));
    CHECK(!sgm_source_exists(source));
    atomic_store(&server_requests, 0);
    CHECK_ERROR(sgm_source_prepare(source), "404");
    CHECK_CONTAINS(sgm_last_error(), "/nothing.txt");
    CHECK_INT(sgm_last_status(), SGM_ERROR_NOT_FOUND);
    CHECK_INT(atomic_load(&server_requests), 1);
    CHECK(access(data_path("nothing.txt.download"), F_OK) != 0);
    sgm_source_free(source);
}

/* What broke off goes on where it was, also in a later call; only what a checksum can tell to be whole. */
TEST(a_download_goes_on)
{
    const char *path = data_path("parts.txt");
    sgm_source *source =
        sgm_url_source(url("/parts.txt"), .path = path, .sha256 = BODY_SHA256, .retries = -1);
    CHECK_ERROR(sgm_source_prepare(source), "/parts.txt");
    sgm_source_free(source);
    CHECK(sgm__file_exists(data_path("parts.txt.download")));
    source = sgm_url_source(url("/parts.txt"), .path = data_path("parts.txt"), .sha256 = BODY_SHA256,
                            .retries = -1);
    CHECK_OK(sgm_source_prepare(source));
    sgm_source_free(source);
    CHECK_CONTAINS(server_last, "Range: bytes=9-");
    CHECK_STR(data_text(sgm_file_source(data_path("parts.txt"))), BODY);
    CHECK(!sgm__file_exists(data_path("parts.txt.download")));

    /* A server that sends all of it again. */
    CHECK_STR(
        data_text(sgm_url_source(url("/whole.txt"), .path = data_path("whole.txt"), .sha256 = BODY_SHA256)),
        BODY);

    /* The beginning is of another file. */
    data_write("other.txt.download", "those are", 9);
    source = sgm_url_source(url("/parts.txt"), .path = data_path("other.txt"), .sha256 = BODY_SHA256);
    atomic_store(&server_requests, 1);
    CHECK_OK(sgm_source_prepare(source));
    sgm_source_free(source);
    CHECK_STR(data_text(sgm_file_source(data_path("other.txt"))), BODY);

    /* Without a checksum nothing is kept. */
    source = sgm_url_source(url("/parts.txt"), .path = data_path("none.txt"), .retries = -1);
    CHECK_ERROR(sgm_source_prepare(source), "/parts.txt");
    sgm_source_free(source);
    CHECK(!sgm__file_exists(data_path("none.txt.download")));
}

TEST(a_path_may_be_an_address)
{
    setenv("SIGMA_CACHE_DIR", data_path("fetched"), 1);
    char address[256];
    snprintf(address, sizeof address, "%s#sha256=%s", url("/good.txt"), BODY_SHA256);
    CHECK_STR(data_text(sgm__unpacked_path_source(address)), BODY);
    int requests = server_requests;
    CHECK_STR(data_text(sgm__unpacked_path_source(address)), BODY);
    CHECK_INT(server_requests, requests); /* from the cache */
    char other[256];                      /* of the same name elsewhere: another file */
    snprintf(other, sizeof other, "%s", url("/elsewhere/good.txt"));
    CHECK_STR(data_text(sgm__path_source(other)), BODY);
    CHECK_INT(server_requests, 1);
    snprintf(address, sizeof address, "%s#sha256=%064d", url("/good.txt"), 7);
    sgm_source *source = sgm__path_source(address);
    CHECK_ERROR(sgm_source_prepare(source), "the SHA-256 checksum is " BODY_SHA256);
    sgm_source_free(source);
    CHECK_ERROR(sgm__path_source("https://127.0.0.1/"), "has no file name at its end");
    CHECK_STR(sgm_source_name(source = sgm__path_source("/a/b.csv")), "/a/b.csv");
    sgm_source_free(source);
    unsetenv("SIGMA_CACHE_DIR");
}

TEST(download_is_tried_again)
{
    CHECK_STR(data_text(sgm_url_source(url("/flaky.txt"), .path = data_path("flaky.txt"))), BODY);
    CHECK_INT(atomic_load(&server_requests), 3);
    sgm_source *source = sgm_url_source(url("/flaky.txt"), .path = data_path("flaky2.txt"), .retries = -1);
    CHECK_ERROR(sgm_source_prepare(source), "1 attempt");
    CHECK(access(data_path("flaky2.txt"), F_OK) != 0);
    CHECK_INT(atomic_load(&server_requests), 1);
    sgm_source_free(source);
}

TEST(download_gives_up_on_a_silent_server)
{
    sgm_source *source =
        sgm_url_source(url("/silent"), .path = data_path("silent.txt"), .retries = -1, .timeout = 1);
    CHECK_ERROR(sgm_source_prepare(source), "/silent");
    CHECK_INT(sgm_last_status(), SGM_ERROR_NETWORK);
    sgm_source_free(source);
}

static bool count_or_cancel(void *user, const char *task, uint64_t done, uint64_t total)
{
    (void)total;
    int *calls = user;
    if (strstr(task, "http://") == NULL)
        return false;
    if (*calls < 0)
        return false;
    *calls += done == sizeof BODY - 1;
    return true;
}

TEST(download_reports_progress_and_can_be_cancelled)
{
    int calls = 0;
    CHECK_STR(data_text(sgm_url_source(url("/good.txt"), .path = data_path("progress.txt"),
                                       .progress = count_or_cancel, .user = &calls)),
              BODY);
    CHECK(calls > 0);
    calls = -1;
    sgm_source *source = sgm_url_source(url("/good.txt"), .path = data_path("cancel.txt"),
                                        .progress = count_or_cancel, .user = &calls);
    CHECK_ERROR(sgm_source_prepare(source), "cancelled");
    CHECK_INT(sgm_last_status(), SGM_ERROR_INTERRUPTED);
    CHECK(access(data_path("cancel.txt"), F_OK) != 0);
    CHECK(access(data_path("cancel.txt.download"), F_OK) != 0);
    sgm_source_free(source);
}

typedef struct watched {
    int begun;
    sgm_task_info newest;
} watched;

static void watch_download(void *user, const sgm_task_info *info)
{
    watched *self = user;
    self->begun += info->status == SGM_TASK_RUNNING && info->done == 0;
    self->newest = *info;
}

static void *cancel_the_task(void *user)
{
    sgm_task_info info;
    (void)user;
    while (sgm_task_list(&info, 1) == 0 || sgm_task_cancel(info.task) != SGM_OK)
        usleep(1000);
    return NULL;
}

TEST(download_is_a_task_that_can_be_cancelled)
{
    watched self = {0};
    pthread_t canceller;
    CHECK_OK(sgm_task_watch(watch_download, &self));
    CHECK_STR(data_text(sgm_url_source(url("/good.txt"), .path = data_path("task.txt"))), BODY);
    CHECK_INT(self.begun, 1);
    CHECK_INT(self.newest.kind, SGM_TASK_DOWNLOAD);
    CHECK_INT(self.newest.status, SGM_TASK_ENDED);
    CHECK_STR(self.newest.description, "task.txt");
    CHECK_INT(self.newest.done, sizeof BODY - 1);
    CHECK_NEAR(self.newest.progress, 1, 0);
    sgm_task_unwatch(watch_download, &self);
    CHECK_INT(pthread_create(&canceller, NULL, cancel_the_task, NULL), 0);
    sgm_source *source = sgm_url_source(url("/silent"), .path = data_path("task2.txt"));
    CHECK_ERROR(sgm_source_prepare(source), "the download was cancelled");
    pthread_join(canceller, NULL);
    CHECK_INT(sgm_last_status(), SGM_ERROR_INTERRUPTED);
    CHECK_INT(sgm_task_list(NULL, 0), 0);
    sgm_source_free(source);
}

TEST(download_through_a_proxy)
{
    char proxy[256];
    strcpy(proxy, url(""));
    CHECK_STR(data_text(sgm_url_source("http://files.invalid/good.txt", .path = data_path("proxied.txt"),
                                       .proxy = proxy)),
              BODY);
    CHECK_CONTAINS(server_last, "GET http://files.invalid/good.txt");
    setenv("http_proxy", proxy, 1);
    CHECK_STR(data_text(sgm_url_source("http://files.invalid/good2.txt", .path = data_path("proxied2.txt"))),
              BODY);
    unsetenv("http_proxy");
}

static void *prepare_source(void *source)
{
    return sgm_source_prepare(source) == SGM_OK ? source : NULL;
}

TEST(several_threads_download_once)
{
    sgm_source *sources[4];
    pthread_t threads[4];
    void *result[4];
    const char *address = url("/good.txt"), *path = data_path("shared.txt");
    for (int i = 0; i < 4; i++)
        sources[i] = sgm_url_source(address, .path = path, .sha256 = BODY_SHA256);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, prepare_source, sources[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], &result[i]);
    for (int i = 0; i < 4; i++) {
        CHECK(result[i] == sources[i]);
        sgm_source_free(sources[i]);
    }
    CHECK_INT(atomic_load(&server_requests), 1);
    CHECK_STR(data_text(sgm_file_source(path)), BODY);
    CHECK(access(data_path("shared.txt.download"), F_OK) != 0);
}

TEST(known_source_is_fetched_into_the_cache)
{
    unsetenv("SIGMA_CACHE_DIR");
    setenv("XDG_CACHE_HOME", data_path("cache2"), 1);
    CHECK_STR(data_text(sgm_known_source("fetched.txt", url("/good.txt"), BODY_SHA256)), BODY);
    CHECK(access(data_path("cache2/sigma/fetched.txt"), F_OK) == 0);
    CHECK_STR(data_text(sgm_known_source("fetched.txt", NULL, NULL)), BODY);
    sgm_source *never = sgm_known_source("never.txt", url("/never"), NULL);
    CHECK_ERROR(sgm_source_prepare(never), "SIGMA_DATA_DIR");
    CHECK_CONTAINS(sgm_last_error(), "404");
    sgm_source_free(never);
}
