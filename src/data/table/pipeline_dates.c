/* Dates as numbers: days, ages, or years with what goes round in them. See pipeline.h.
 *
 * A month is as far from the next one in December as in June, which one number cannot say: a place on a
 * circle can, as sine and cosine. */
#include "data/table/pipeline.h"

#include <math.h>

#define MONTHS 12
#define WEEKDAYS 7
#define HOURS 24
/* Days of the years 0 to 9999, which are all that a cell can hold (cell.c). */
#define FIRST_DAY (-719528.0)
#define LAST_DAY 2932897.0
/* Days from a Monday before the first day to 1970-01-01. */
#define FIRST_MONDAY 719533
/* In hours: times are fractions of days, whose rounding must not make 12:59 of 13:00. */
#define ROUNDING 1e-7

bool sgm__date_can_split(double days)
{
    return days >= FIRST_DAY && days < LAST_DAY;
}

/* The reverse of what cell.c counts, with years that begin in March: an era is of 400 years, whose leap days
 * are taken out before the year is found. */
sgm__date_parts sgm__date_split(double value)
{
    int64_t days = (int64_t)floor(value), shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097, of_era = shifted - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    int hour = (int)((value - (double)days) * HOURS + ROUNDING);
    return (sgm__date_parts){.year = (double)(era * 400 + year + (month >= 10)),
                             .month = (int)((month + 2) % MONTHS),
                             .weekday = (int)((days + FIRST_MONDAY) % WEEKDAYS),
                             .hour = hour < HOURS ? hour : HOURS - 1};
}

void sgm__date_turn(int step, int steps, float *sine_and_cosine)
{
    double angle = 2 * 3.14159265358979323846 * step / steps;
    sine_and_cosine[0] = (float)sin(angle);
    sine_and_cosine[1] = (float)cos(angle);
}

double sgm__pipeline_number(const sgm__pipeline_part *part, double value)
{
    if (part->form == SGM_DATE_AGE)
        return part->reference - value;
    return part->form == SGM_DATE_PARTS ? sgm__date_split(value).year : value;
}

int32_t sgm__pipeline_date_width(const sgm__pipeline_part *part)
{
    return part->form == SGM_DATE_PARTS ? 5 + 2 * part->has_time : 1;
}

void sgm__pipeline_write_date(const sgm__pipeline_part *part, double days, float *numbers)
{
    if (part->form != SGM_DATE_PARTS)
        return;
    sgm__date_parts date = sgm__date_split(days);
    sgm__date_turn(date.month, MONTHS, numbers);
    sgm__date_turn(date.weekday, WEEKDAYS, numbers + 2);
    if (part->has_time)
        sgm__date_turn(date.hour, HOURS, numbers + 4);
}
