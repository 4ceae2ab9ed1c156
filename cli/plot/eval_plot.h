/* What `sigma eval --plot` draws: see plot.h for what it draws with. */
#ifndef SGM_CLI_PLOT_EVAL_PLOT_H
#define SGM_CLI_PLOT_EVAL_PLOT_H

#include "config/saved.h"

/* A confusion matrix of counts (classes, classes), a row for each true class, as a heat map of the shares of
 * each row. `classes`: names; NULL: they have numbers only. */
sgm_status plot_confusion(const sgm_tensor *confusion, const char *const *classes, const char *path);
/* Predictions of numbers against what is true, a panel for each target, in the units of the table where a
 * pipeline knows them. The iterator stands at its beginning, and is read to its end. */
sgm_status plot_regression(const saved *s, sgm_iterator *iterator, const char *path);

#endif
