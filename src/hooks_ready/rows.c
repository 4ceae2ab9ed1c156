/* The list of all ready-made hooks that can be written as text.
 *
 * Each row is exported by the hook's own file, those of metrics by metric_rows.c. The reader,
 * src/hooks/hook_text.c, stands on a lower floor and knows no hook: it finds the rows through
 * sgm__hook_rows, and rules through sgm__hook_read_rule. To add a hook, name its row in ROWS; metrics come
 * from SGM__METRICS by themselves. The order is that of `sigma info --hooks`. */
#include "hooks/hook_text.h"
#include "metrics/metrics.h"

/* Reporting, computing, acting, diagnostics, then metrics and their reporters. */
#define ROWS(X)                                                                                              \
    X(sgm__value_reporter_row)                                                                               \
    X(sgm__accumulator_row)                                                                                  \
    X(sgm__running_time_row)                                                                                 \
    X(sgm__stop_row)                                                                                         \
    X(sgm__early_stopper_row)                                                                                \
    X(sgm__save_row)                                                                                         \
    X(sgm__last_checkpoints_row)                                                                             \
    X(sgm__best_checkpoints_row)                                                                             \
    X(sgm__nan_watch_row)                                                                                    \
    X(sgm__statistics_row)                                                                                   \
    X(sgm__throughput_row)                                                                                   \
    X(sgm__time_series_row)                                                                                  \
    X(sgm__progress_reporter_row)                                                                            \
    X(sgm__running_time_reporter_row)                                                                        \
    X(sgm__mean_reporter_row)                                                                                \
    X(sgm__modifier_row)                                                                                     \
    X(sgm__averages_saver_row)                                                                               \
    X(sgm__target_maximiser_row)                                                                             \
    X(sgm__art_reporter_row)                                                                                 \
    X(sgm__accuracy_reporter_row)                                                                            \
    X(sgm__binary_accuracy_reporter_row)                                                                     \
    X(sgm__confusion_reporter_row)                                                                           \
    X(sgm__metric_processor_row)

/* The rows are defined in their own files, and only named here. */
#define DECLARE(row) extern const sgm__hook_row row;
#define DECLARE_METRIC(id, takes, words) DECLARE(sgm__##id##_row)
ROWS(DECLARE)
SGM__METRICS(DECLARE_METRIC)

const sgm__hook_row *const sgm__hook_rows[] = {
#define ADDRESS(row) &row,
#define METRIC_ADDRESS(id, takes, words) ADDRESS(sgm__##id##_row)
    ROWS(ADDRESS) SGM__METRICS(METRIC_ADDRESS)};
const size_t sgm__hook_row_count = sizeof sgm__hook_rows / sizeof *sgm__hook_rows;

/* A text that begins with `if`, or has an action behind its step, is a rule: no row could describe it. */
sgm_hook *(*const sgm__hook_read_rule)(const char *text) = sgm_rule_hook;
