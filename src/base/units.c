/* Writes quantities for people: durations, rates, clock times, counts, sizes (declared in sigma/base.h), and
 * reads sizes.
 *
 * Used by monitors, the log and the command; text that is read back by machines is written by
 * sgm__number_text (text.c). Decimal points come from integers, so that the locale has no influence. A value
 * changes its unit exactly where its rounded text would reach the next unit: 999.96 us is written as 1.0 ms,
 * not as 1000.0 us; hence limits such as 0.99995 and 59.95. Units of time beyond minutes are fixed: a year is
 * 365 days. Each function fills `buffer` (cut off to `size`) and returns it. */
#include "base/base.h"
#include <sigma/base.h>

#include <math.h>
#include <stdio.h>
#include <strings.h>

typedef struct unit {
    const char *name;
    double seconds;
} unit;

/* One decimal, without the decimal point of the program's locale. */
static void write_tenths(double value, const char *name, char *buffer, size_t size)
{
    long long tenths = llround(value * 10);
    snprintf(buffer, size, "%lld.%lld %s", tenths / 10, tenths % 10, name);
}

/* The largest unit that is reached and the one below it, as in "1 h 2 min"; `seconds` is 60 or more. The
 * smaller unit is rounded down, so that there is never "1 h 60 min"; it is left out when it is 0. */
static void write_two_units(double seconds, char *buffer, size_t size)
{
    static const unit units[] = {{"y", 31536000}, {"w", 604800}, {"d", 86400},
                                 {"h", 3600},     {"min", 60},   {"s", 1}};
    size_t first = 0;
    double rounded = round(seconds);
    while (first < 4 && rounded < units[first].seconds)
        first++;
    double whole = floor(rounded / units[first].seconds);
    double rest = floor((rounded - whole * units[first].seconds) / units[first + 1].seconds);
    if (rest > 0)
        snprintf(buffer, size, "%.0f %s %.0f %s", whole, units[first].name, rest, units[first + 1].name);
    else
        snprintf(buffer, size, "%.0f %s", whole, units[first].name);
}

/* 0 is written in seconds, tiny values in microseconds. */
char *sgm_duration_text(double seconds, char *buffer, size_t size)
{
    static const unit small[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    if (!isfinite(seconds)) {
        snprintf(buffer, size, "unknown");
        return buffer;
    }
    char *rest = buffer;
    if (seconds < 0 && size > 1) {
        *rest++ = '-';
        size--;
        seconds = -seconds;
    }
    size_t i = seconds == 0 ? 2 : 0;
    while (i < 2 && seconds >= small[i + 1].seconds * 0.99995)
        i++;
    if (seconds >= 59.95)
        write_two_units(seconds, rest, size);
    else
        write_tenths(seconds / small[i].seconds, small[i].name, rest, size);
    return buffer;
}

/* Takes the first unit of time in which the rate is at least 1, up to a day: 0.5 per second is 30.0 per
 * minute. */
char *sgm_rate_text(double per_second, const char *what, char *buffer, size_t size)
{
    static const unit units[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    char per[64];
    size_t i = 0;
    if (!isfinite(per_second) || per_second < 0) {
        snprintf(buffer, size, "unknown");
        return buffer;
    }
    while (i < 3 && per_second > 0 && per_second * units[i].seconds < 1)
        i++;
    snprintf(per, sizeof per, "%.40s/%s", what != NULL ? what : "", units[i].name);
    double value = per_second * units[i].seconds;
    if (value >= 1000)
        snprintf(buffer, size, "%.0f %s", value, per);
    else
        write_tenths(value, per, buffer, size);
    return buffer;
}

/* h:mm:ss, or m:ss below an hour, rounded to seconds. Negative and absurd values (12 digits) become 0:00. */
char *sgm_clock_text(double seconds, char *buffer, size_t size)
{
    int64_t whole = seconds >= 0 && seconds < 1e12 ? (int64_t)(seconds + 0.5) : 0;
    int hours = snprintf(buffer, size, "%lld:%02d:%02d", (long long)(whole / 3600), (int)(whole / 60 % 60),
                         (int)(whole % 60));
    if (whole < 3600 && hours > 0)
        snprintf(buffer, size, "%d:%02d", (int)(whole / 60), (int)(whole % 60));
    return buffer;
}

/* Groups of three digits, separated by commas; two bytes of the buffer are kept for a comma and the end. */
char *sgm_count_text(int64_t number, char *buffer, size_t size)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number);
    size_t used = 0;
    if (size == 0)
        return buffer;
    for (int i = 0; i < length && used + 2 < size; i++) {
        buffer[used++] = digits[i];
        if (i + 1 < length && (length - i - 1) % 3 == 0 && digits[i] != '-')
            buffer[used++] = ',';
    }
    buffer[used] = '\0';
    return buffer;
}

/* Decimal units (1 kB is 1000 bytes), as disks and networks are measured. */
char *sgm_bytes_text(double bytes, char *buffer, size_t size)
{
    static const char *const names[] = {"kB", "MB", "GB", "TB"};
    if (!isfinite(bytes) || bytes < 0 || bytes >= 1e18) {
        snprintf(buffer, size, "unknown");
        return buffer;
    }
    if (bytes < 999.5) {
        snprintf(buffer, size, "%.0f bytes", bytes);
        return buffer;
    }
    size_t i = 0;
    double value = bytes / 1000;
    for (; value >= 999.95 && i < 3; i++)
        value /= 1000;
    write_tenths(value, names[i], buffer, size);
    return buffer;
}

bool sgm__parse_bytes(const char *text, double *bytes)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"bytes", 1}, {"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
    char digits[32];
    size_t length = strspn(text, "0123456789.");
    const char *name = text + length + strspn(text + length, " ");
    snprintf(digits, sizeof digits, "%.*s", (int)length, text);
    double number;
    if (length >= sizeof digits || !sgm__parse_double(digits, &number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(name, units[i].name) == 0) {
            *bytes = number * units[i].bytes;
            return true;
        }
    return false;
}
