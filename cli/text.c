/* Numbers for people and for programs. */
#include "cli.h"

#include <math.h>
#include <stdio.h>

char *count_text(int64_t number, char *buffer, size_t size)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number);
    size_t used = 0;
    for (int i = 0; i < length && used + 2 < size; i++) {
        buffer[used++] = digits[i];
        if (i + 1 < length && (length - i - 1) % 3 == 0 && digits[i] != '-')
            buffer[used++] = ',';
    }
    buffer[used] = '\0';
    return buffer;
}

char *bytes_text(int64_t bytes, char *buffer, size_t size)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1000 && unit < 4; unit++)
        value /= 1000;
    snprintf(buffer, size, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return buffer;
}

void print_metrics(const char *name, const sgm_metrics *metrics)
{
    char records[64];
    printf("%s: loss %.4f", name, isnan(metrics->loss) ? NAN : metrics->loss); /* without a sign */
    if (!isnan(metrics->accuracy))
        printf(", accuracy %.2f %%", 100 * metrics->accuracy);
    printf(" (%s records)\n", count_text(metrics->records, records, sizeof records));
}

void print_json_number(double value)
{
    if (isfinite(value))
        printf("%.9g", value);
    else
        printf("null");
}

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

bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}
