/* The functions of C that read the cells of a row in an exported network, as data/table/cell.c reads them.
 * `$` stands for the prefix of names (sgm__source_write_template). See table_export.h. */
#include "infer/export/table_export.h"

static const char equal_words[] = "static int $_is_equal(const char *a, const char *b)\n"
                                  "{\n"
                                  "    for (; *a != '\\0' && *a == *b; a++)\n"
                                  "        b++;\n"
                                  "    return *a == *b;\n"
                                  "}\n\n";

/* What stands between the list of marks and the search for texts. */
static const char missing_words[] = "};\n"
                                    "    if (text == 0 || *text == '\\0')\n"
                                    "        return 1;\n"
                                    "    for (unsigned i = 0; i < sizeof marks / sizeof *marks; i++)\n"
                                    "        if ($_is_equal(text, marks[i]))\n"
                                    "            return 1;\n"
                                    "    return 0;\n"
                                    "}\n\n";

static const char find_words[] = "/* The place of a text in a list; -1: it is not there. */\n"
                                 "static long $_find(const char *text, const char *const *list, long count)\n"
                                 "{\n"
                                 "    for (long i = 0; i < count; i++)\n"
                                 "        if ($_is_equal(text, list[i]))\n"
                                 "            return i;\n"
                                 "    return -1;\n"
                                 "}\n\n";

/* With at most 15 digits and a power of ten up to 22 both factors are exact, so that the result is the
 * nearest number; equal texts of numbers give equal numbers in any case. */
static const char number_words[] =
    "/* Reads a number that is all of the text; 0: it is none. */\n"
    "static int $_read_number(const char *text, double *number)\n"
    "{\n"
    "    double digits = 0, power = 1;\n"
    "    long exponent = 0, shift = 0, count = 0;\n"
    "    int negative = *text == '-', behind = 0, down;\n"
    "    if (*text == '-' || *text == '+')\n"
    "        text++;\n"
    "    for (; (*text >= '0' && *text <= '9') || (*text == ~_POINT && !behind); text++)\n"
    "        if (*text == ~_POINT) {\n"
    "            behind = 1;\n"
    "        } else {\n"
    "            digits = digits * 10 + (*text - '0');\n"
    "            shift -= behind;\n"
    "            count++;\n"
    "        }\n"
    "    if (count == 0)\n"
    "        return 0;\n"
    "    if (*text == 'e' || *text == 'E') {\n"
    "        down = text[1] == '-';\n"
    "        text += text[1] == '-' || text[1] == '+' ? 2 : 1;\n"
    "        if (*text < '0' || *text > '9')\n"
    "            return 0;\n"
    "        for (; *text >= '0' && *text <= '9' && exponent < 1000; text++)\n"
    "            exponent = exponent * 10 + (*text - '0');\n"
    "        shift += down ? -exponent : exponent;\n"
    "    }\n"
    "    for (long i = shift < 0 ? -shift : shift; i > 0 && power < 1e300; i--)\n"
    "        power *= 10;\n"
    "    *number = (negative ? -digits : digits);\n"
    "    *number = shift < 0 ? *number / power : *number * power;\n"
    "    return *text == '\\0';\n"
    "}\n\n"
    "/* The place of the number that a text holds; -1: it is none, or not there. */\n"
    "static long $_find_number(const char *text, const double *list, long count)\n"
    "{\n"
    "    double number;\n"
    "    if (!$_read_number(text, &number))\n"
    "        return -1;\n"
    "    for (long i = 0; i < count; i++)\n"
    "        if (number == list[i])\n"
    "            return i;\n"
    "    return -1;\n"
    "}\n\n";

/* The same arithmetic as that of cell.c, which says where it comes from. */
static const char date_words[] =
    "/* Reads digits; what follows them is returned, 0 if others come. */\n"
    "static const char *$_digits(const char *text, int digits, int *value)\n"
    "{\n"
    "    for (*value = 0; text != 0 && digits > 0; digits--, text++) {\n"
    "        if (*text < '0' || *text > '9')\n"
    "            return 0;\n"
    "        *value = *value * 10 + (*text - '0');\n"
    "    }\n"
    "    return text;\n"
    "}\n\n"
    "/* The text behind this sign, 0 if another one comes. */\n"
    "static const char *$_behind(const char *text, char sign)\n"
    "{\n"
    "    return text != 0 && *text == sign ? text + 1 : 0;\n"
    "}\n\n"
    "/* Days from 1970-01-01 to a day of the Gregorian calendar; 0: there is no such day. */\n"
    "static int $_days(int year, int month, int day, double *days)\n"
    "{\n"
    "    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};\n"
    "    int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);\n"
    "    long shifted = (long)year - (month <= 2), era, of_era, of_year;\n"
    "    if (month < 1 || month > 12 || day < 1 || day > lengths[month - 1] + (month == 2 && leap))\n"
    "        return 0;\n"
    "    era = (shifted >= 0 ? shifted : shifted - 399) / 400;\n"
    "    of_era = shifted - era * 400;\n"
    "    of_year = (153L * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;\n"
    "    *days = (double)(era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468);\n"
    "    return 1;\n"
    "}\n\n"
    "/* 12:30, 12:30:05 or 12:30:05.25, as a part of the day; what follows is returned, 0: it is no time. "
    "*/\n"
    "static const char *$_time(const char *text, double *part)\n"
    "{\n"
    "    int hour, minute, second = 0;\n"
    "    double fraction = 0, unit = 0.1;\n"
    "    const char *rest = $_digits($_behind($_digits(text, 2, &hour), ':'), 2, &minute);\n"
    "    if (rest != 0 && *rest == ':')\n"
    "        rest = $_digits(rest + 1, 2, &second);\n"
    "    if (rest == 0 || hour > 23 || minute > 59 || second > 59)\n"
    "        return 0;\n"
    "    if (*rest == '.')\n"
    "        for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)\n"
    "            fraction += unit * (*rest - '0');\n"
    "    *part = (hour * 3600 + minute * 60 + second + fraction) / 86400;\n"
    "    return rest;\n"
    "}\n\n"
    "/* Reads 2026-11-23, 2026/11/23 or 23.11.2026, perhaps with a time, as days since 1970-01-01; 0: it is "
    "no\n"
    " * date. */\n"
    "static int $_read_date(const char *text, double *value)\n"
    "{\n"
    "    int year, month, day;\n"
    "    double part = 0;\n"
    "    const char *rest = $_digits(text, 4, &year);\n"
    "    if (rest != 0 && (*rest == '-' || *rest == '/'))\n"
    "        rest = $_digits($_behind($_digits(rest + 1, 2, &month), *rest), 2, &day);\n"
    "    else\n"
    "        rest = $_digits($_behind($_digits($_behind($_digits(text, 2, &day), '.'), 2, &month), '.'), 4, "
    "&year);\n"
    "    if (rest == 0 || !$_days(year, month, day, value))\n"
    "        return 0;\n"
    "    if (*rest == ' ' || *rest == 'T')\n"
    "        rest = $_time(rest + 1, &part);\n"
    "    if (rest != 0 && *rest == 'Z')\n"
    "        rest++;\n"
    "    *value += part;\n"
    "    return rest != 0 && *rest == '\\0';\n"
    "}\n\n";

/* The same arithmetic as that of data/table/pipeline_dates.c. */
static const char parts_words[] =
    "/* The year of days since 1970-01-01, and the month, the day of the week from Monday on, and the hour, "
    "each\n"
    " * from 0. */\n"
    "static double $_split_date(double value, int *month, int *weekday, int *hour)\n"
    "{\n"
    "    long days = (long)value, shifted, era, of_era, year, of_year, march;\n"
    "    if ((double)days > value)\n"
    "        days--;\n"
    "    shifted = days + 719468;\n"
    "    era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;\n"
    "    of_era = shifted - era * 146097;\n"
    "    year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;\n"
    "    of_year = of_era - (365 * year + year / 4 - year / 100);\n"
    "    march = (5 * of_year + 2) / 153;\n"
    "    *month = (int)((march + 2) % 12);\n"
    "    *weekday = (int)((days + 719533) % 7);\n"
    "    *hour = (int)((value - (double)days) * 24 + 1e-7);\n"
    "    if (*hour > 23)\n"
    "        *hour = 23;\n"
    "    return (double)(era * 400 + year + (march >= 10));\n"
    "}\n\n";

/* Sine and cosine of each step of what goes round. */
static void write_turns(const sgm__source_request *request, const char *name, int steps, sgm__text *text)
{
    char digits[2][64];
    sgm__text_append(text, "static const float %s_%s[%d][2] = {\n", request->name, name, steps);
    for (int i = 0; i < steps; i++) {
        float turn[2];
        sgm__date_turn(i, steps, turn);
        sgm__text_append(text, "    {(float)%s, (float)%s},\n",
                         sgm__float_text(turn[0], digits[0], sizeof digits[0]),
                         sgm__float_text(turn[1], digits[1], sizeof digits[1]));
    }
    sgm__text_append(text, "};\n\n");
}

static void write_parts(const sgm__source_request *request, unsigned needed, sgm__text *text)
{
    sgm__source_write_template(request, parts_words, text);
    write_turns(request, "months", 12, text);
    write_turns(request, "weekdays", 7, text);
    if ((needed & SGM__TABLE_HOURS) != 0)
        write_turns(request, "hours", 24, text);
}

void sgm__table_quote(const char *string, sgm__text *text)
{
    sgm__text_append(text, "\"");
    for (const unsigned char *c = (const unsigned char *)string; *c != '\0'; c++)
        if (*c == '"' || *c == '\\' || *c == '?') /* two question marks may begin a trigraph */
            sgm__text_append(text, "\\%c", *c);
        else if (*c < ' ' || *c > '~')
            sgm__text_append(text, "\\%03o", *c);
        else
            sgm__text_append_bytes(text, (const char *)c, 1);
    sgm__text_append(text, "\"");
}

static void write_missing(const sgm__source_request *request, const sgm__cell_format *format, sgm__text *text)
{
    sgm__source_write_template(request,
                               "/* Whether a text means that there is no value. */\n"
                               "static int $_is_missing(const char *text)\n"
                               "{\n"
                               "    static const char *const marks[] = {",
                               text);
    for (size_t i = 0; sgm__cell_missing_marks[i] != NULL; i++) {
        sgm__text_append(text, i > 0 ? ", " : "");
        sgm__table_quote(sgm__cell_missing_marks[i], text);
    }
    if (format->missing != NULL) {
        sgm__text_append(text, ", ");
        sgm__table_quote(format->missing, text);
    }
    sgm__source_write_template(request, missing_words, text);
}

void sgm__table_write_functions(const sgm__source_request *request, const sgm_pipeline *pipeline,
                                unsigned needed, sgm__text *text)
{
    const sgm__cell_format *format = &pipeline->format;
    if (needed != 0) {
        sgm__source_write_template(request, equal_words, text);
        write_missing(request, format, text);
    }
    if ((needed & SGM__TABLE_TEXTS) != 0)
        sgm__source_write_template(request, find_words, text);
    if ((needed & SGM__TABLE_NUMBERS) != 0) {
        sgm__source_write_template(request, "#define ~_POINT ", text);
        sgm__text_append(text, "'%c' /* in numbers */\n\n", format->decimal);
        sgm__source_write_template(request, number_words, text);
    }
    if ((needed & SGM__TABLE_DATES) != 0)
        sgm__source_write_template(request, date_words, text);
    if ((needed & SGM__TABLE_PARTS) != 0)
        write_parts(request, needed, text);
    if ((needed & SGM__TABLE_TOKENS) != 0)
        sgm__table_write_tokens(request, pipeline->tokenizer, text);
}
