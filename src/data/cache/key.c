/* Hashes of what blocks depend on; see key.h. */
#include "data/cache/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The clock of file times, which ticks with the kernel's timer: 100 times a second at least. */
#define TICK_NANOSECONDS 10000000
/* Of file systems that keep whole seconds, or every second one. */
#define COARSE_TICK_SECONDS 2

void sgm__key_add_bytes(sgm__key *key, const void *bytes, size_t length)
{
    for (uint64_t i = 0; i < 2; i++)
        key->halves[i] = sgm__hash(bytes, length, key->halves[i] + i);
}

void sgm__key_add_text(sgm__key *key, const char *text)
{
    sgm__key_add_number(key, text != NULL);
    if (text != NULL)
        sgm__key_add_bytes(key, text, strlen(text));
}

void sgm__key_add_texts(sgm__key *key, const char *const *texts)
{
    for (; texts != NULL && *texts != NULL; texts++)
        sgm__key_add_text(key, *texts);
    sgm__key_add_text(key, NULL);
}

void sgm__key_add_number(sgm__key *key, double number)
{
    sgm__key_add_bytes(key, &number, sizeof number);
}

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

void sgm__key_add_file(sgm__key *key, const char *path)
{
    struct stat s;
    char *whole = realpath(path, NULL); /* of the C library */
    if (whole == NULL || stat(whole, &s) != 0 || !S_ISREG(s.st_mode)) {
        sgm__key_refuse(key, path);
    } else {
        const int64_t known[] = {s.st_size,         (int64_t)s.st_dev, (int64_t)s.st_ino, s.st_mtim.tv_sec,
                                 s.st_mtim.tv_nsec, s.st_ctim.tv_sec,  s.st_ctim.tv_nsec};
        sgm__key_add_text(key, whole);
        sgm__key_add_bytes(key, known, sizeof known);
        key->files = sgm__hash(known, sizeof known, key->files);
        if (is_later(s.st_ctim, key->newest))
            key->newest = s.st_ctim;
    }
    free(whole);
}

void sgm__key_refuse(sgm__key *key, const char *what)
{
    if (key->refused[0] == '\0')
        snprintf(key->refused, sizeof key->refused, "%s", what[0] != '\0' ? what : "a part without a name");
}

bool sgm__key_is_settled(const sgm__key *key)
{
    struct timespec now, tick = {.tv_nsec = TICK_NANOSECONDS};
    clock_gettime(CLOCK_REALTIME, &now);
    double age =
        (double)(now.tv_sec - key->newest.tv_sec) + (double)(now.tv_nsec - key->newest.tv_nsec) / 1e9;
    if (age > COARSE_TICK_SECONDS)
        return true;
    if (key->newest.tv_nsec == 0 || age < 0)
        return false;
    if (age * 1e9 <= TICK_NANOSECONDS)
        nanosleep(&tick, NULL);
    return true;
}
