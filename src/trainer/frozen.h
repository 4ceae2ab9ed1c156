/* Which parameters are frozen: patterns in an order. Internal.
 *
 * The last pattern that matches a parameter decides; one with '!' in front has it trained. So "*.*,
 * !3-dense.*" trains layer 3 alone. With the trainer's lock. */
#ifndef SGM_TRAINER_FROZEN_H
#define SGM_TRAINER_FROZEN_H

#include "trainer/trainer.h"

#define SGM__TRAINED_MARK '!'

/* Whether the patterns freeze a parameter of this name. */
bool sgm__frozen_has(const sgm__frozen *frozen, const char *parameter);
/* Frees the patterns, and leaves an empty list. */
void sgm__frozen_clear(sgm__frozen *frozen);
/* Reads patterns with commas between them into an empty list; a blank text leaves it empty. Free with
 * sgm__frozen_clear, also after a failure. */
sgm_status sgm__frozen_read(const char *text, sgm__frozen *frozen);
/* The text that sgm__frozen_read reads; sgm__free. NULL: out of memory. */
char *sgm__frozen_text(const sgm__frozen *frozen);
/* Appends copies of all patterns. */
sgm_status sgm__frozen_copy(const sgm__frozen *from, sgm__frozen *to);
/* Whether both have the same patterns in the same order. */
bool sgm__frozen_equal(const sgm__frozen *a, const sgm__frozen *b);
/* The trainer's list with one more pattern that is frozen (`freeze`), or trained again, into the empty list
 * `changed`; free it as after sgm__frozen_read. */
sgm_status sgm__frozen_put(const sgm_trainer *trainer, const char *pattern, bool freeze,
                           sgm__frozen *changed);
/* As sgm__frozen_put, but fails where sgm__trainer_check_freeze does, and gives the list as it is where no
 * parameter of the network changes by it. */
sgm_status sgm__frozen_change(const sgm_trainer *trainer, const char *pattern, bool freeze,
                              sgm__frozen *changed);
/* Fails if the trainer cannot train with these patterns: one matches no parameter, or nothing would be left
 * to train. Without a recording there are no parameters to compare with. */
sgm_status sgm__frozen_check(const sgm_trainer *trainer, const sgm__frozen *frozen);
/* The first half of that: whether each pattern matches a parameter. */
sgm_status sgm__frozen_check_items(const sgm_trainer *trainer, const sgm__frozen *frozen);
/* Fails: no parameter is left to train. The last pattern that freezes is named, if there is one. */
sgm_status sgm__frozen_fail(const sgm__frozen *frozen);

#endif
