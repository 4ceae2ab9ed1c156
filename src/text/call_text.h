/* Reads texts that look like calls, "name(value, key=value)". Internal.
 *
 * Hooks, metrics, initialisers, modifiers, reducers and augmentations are all written this way in
 * configurations, and this is the one reader of them. What a call takes is a table of rows (sgm_option), in
 * the order in which the arguments may stand without their names. The reader fills in values and defaults,
 * checks kinds, bounds and choices, and sees that nothing required is missing; its errors name the column and
 * the argument. A text that is one call, and nothing else:
 *
 *     static const sgm_option rows[] = {
 *         {"minimum", SGM_KIND_NUMBER, .required = true, .doc = "smaller numbers become this one"},
 *         {"maximum", SGM_KIND_NUMBER, .required = true, .doc = "larger numbers become this one"}};
 *     sgm__phrase phrase;
 *     char name[SGM__CALL_NAME];
 *     SGM_TRY(sgm__call_begin(&phrase, text, name));
 *     sgm__call call = {.name = "clip", .rows = rows, .row_count = 2};
 *     sgm_status status = sgm__call_finish(&phrase, &call);
 *     double minimum = sgm__call_number(&call, "minimum"); // if status is SGM_OK
 *     sgm__call_free(&call);
 *
 * Networks have a notation of their own, whose arguments nest (src/network/notation.c). */
#ifndef SGM_TEXT_CALL_TEXT_H
#define SGM_TEXT_CALL_TEXT_H

#include "text/phrase.h"
#include <sigma/registry.h>

#define SGM__CALL_ROWS 12 /* of one call, at most */
#define SGM__CALL_NAME 64 /* bytes of a name, with the 0 at its end */
/* The kind and the bounds of a row that counts something. */
#define SGM__KIND_COUNT SGM_KIND_INTEGER, .minimum = 1, .maximum = (double)SGM__PHRASE_MAXIMUM_COUNT

/* What an argument has got. */
typedef struct sgm__call_value {
    bool given;      /* by the text; a default does not count */
    bool known;      /* given, or it has a default */
    size_t at;       /* its first byte in the text; that of the call's name if it was not given */
    char *text;      /* a text; identifiers of a list have spaces between them */
    double number;   /* a number, an integer, a flag as 0 or 1, the place of a choice */
    double *numbers; /* a list of numbers or integers */
    size_t count, capacity;
} sgm__call_value;

/* A call: the caller sets the first three members, and zeroes the rest. */
typedef struct sgm__call {
    const char *name; /* for messages */
    const sgm_option *rows;
    size_t row_count; /* at most SGM__CALL_ROWS */
    size_t at;        /* the name's first byte in the text */
    const sgm__phrase *phrase;
    sgm__call_value values[SGM__CALL_ROWS];
} sgm__call;

/* Begins a text that is one call: copies the name, and goes on to what follows it. */
sgm_status sgm__call_begin(sgm__phrase *phrase, const char *text, char name[SGM__CALL_NAME]);
/* Copies the name, the current word, and goes on to what follows it. */
sgm_status sgm__call_read_name(sgm__phrase *phrase, char name[SGM__CALL_NAME]);
/* Reads what is in parentheses behind the name, if anything, and fills in defaults. A comma may follow the
 * last argument. The phrase must live as long as the call. */
sgm_status sgm__call_read(sgm__phrase *phrase, sgm__call *call);
/* The same, where the text must end behind the call. */
sgm_status sgm__call_finish(sgm__phrase *phrase, sgm__call *call);
/* Also after a failure. */
void sgm__call_free(sgm__call *call);

/* What was read, by the argument's name. */
bool sgm__call_has(const sgm__call *call, const char *name);         /* given, or it has a default */
const char *sgm__call_text(const sgm__call *call, const char *name); /* NULL: none; belongs to the call */
double sgm__call_number(const sgm__call *call, const char *name);    /* NaN: none */
const double *sgm__call_numbers(const sgm__call *call, const char *name, size_t *count);
int64_t sgm__call_integer(const sgm__call *call, const char *name); /* 0: none */
bool sgm__call_flag(const sgm__call *call, const char *name);
size_t sgm__call_choice(const sgm__call *call, const char *name); /* SIZE_MAX: none */
/* Fails with "column 21: early_stopper: patience: " and the message, at the argument's value; `name` NULL:
 * with "column 9: early_stopper: ", at the call's name, as no argument is to blame. */
sgm_status sgm__call_fail(const sgm__call *call, const char *name, const char *format, ...) SGM_PRINTF(3, 4);

/* Whether an argument that is not given has a value: the row's default, if it is within the row's bounds. */
bool sgm__option_has_default(const sgm_option *row);

#endif
