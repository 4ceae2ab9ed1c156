/* Prints numbers and texts, for people and as JSON. Declared in arguments.h.
 *
 * Used by the subcommands that print results (eval, predict, train). JSON is printed piece by piece
 * without building a tree, since results may be long. */
#include "config/arguments.h"
#include "config/experiment.h"
#include "monitors/http/http.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

/* Without an accuracy (NaN) only the loss is printed. NaN is printed without its sign. */
void print_metrics(const char *name, const sgm_metrics *metrics)
{
    char examples[64];
    printf("%s: loss %.4f", name, isnan(metrics->loss) ? NAN : metrics->loss); /* without a sign */
    if (!isnan(metrics->accuracy))
        printf(", accuracy %.2f %%", 100 * metrics->accuracy);
    printf(" (%s examples)\n", sgm_count_text(metrics->examples, examples, sizeof examples));
}

void print_json_number(double value)
{
    if (isfinite(value))
        printf("%.9g", value);
    else
        printf("null");
}

/* float32 numbers printed with the digits of a double would end in noise: 0.1 as 0.10000000149. */
void print_json_element(double value, bool wide)
{
    char text[64];
    fputs(!isfinite(value) ? "null"
          : wide           ? sgm__number_text(value, text, sizeof text)
                           : sgm__float_text((float)value, text, sizeof text),
          stdout);
}

/* Bytes from 0x80 on are UTF-8 and stay as they are. */
void print_json_text(const char *text)
{
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if (*c < 0x20)
            printf("\\u%04x", *c);
        else
            putchar(*c);
    }
    putchar('"');
}

bool unknown_is_ignored(const char *command, const char *value, bool *ignored, int *code)
{
    *ignored = value != NULL && strcmp(value, "ignore") == 0;
    if (value == NULL || *ignored || strcmp(value, "refuse") == 0)
        return true;
    *code = usage_error(command, "--unknown: expected ignore or refuse, got '%s'", value);
    return false;
}

bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool is_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return a != NULL && b != NULL && stat(a, &first) == 0 && stat(b, &second) == 0 &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

int64_t largest_of(const double *numbers, int64_t count)
{
    int64_t largest = 0;
    for (int64_t i = 1; i < count; i++)
        largest = numbers[i] > numbers[largest] ? i : largest;
    return largest;
}

void print_name(const char *name)
{
    for (const char *c = name; *c != '\0'; c++)
        putchar((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
}

#define LONGEST_TOKENS 65536

char *read_tokens(const char *path)
{
    char *text;
    size_t length;
    struct stat about;
    if (stat(path, &about) == 0 && (about.st_mode & (S_IRGRP | S_IROTH | S_IWGRP | S_IWOTH)) != 0) {
        sgm_fail(SGM_ERROR_FILE,
                 "others may read or change the tokens in '%s': 'chmod 600 %s' keeps them from it", path,
                 path);
        return NULL;
    }
    if (sgm__file_read(path, LONGEST_TOKENS, &text, &length) != SGM_OK)
        return NULL;
    if (sgm__http_tokens_check(text) == SGM_OK)
        return text;
    sgm__fail_within("'%s'", path);
    sgm__free(text);
    return NULL;
}
