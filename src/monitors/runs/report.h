/* A report of runs: one HTML file that needs nothing else, for whoever has neither the runs nor Sigma.
 *
 * report.c writes the file, report_chart.c its curves, as SVG. It has no script and no address, and its own
 * policy forbids both; texts of runs are escaped. Internal. */
#ifndef SGM_MONITORS_RUNS_REPORT_H
#define SGM_MONITORS_RUNS_REPORT_H

#include "base/base.h"
#include "monitors/http/http.h"
#include "monitors/runs/runs.h"
#include <jansson.h>

/* Appends a run to a list for sgm__report_html: the object that GET /api/run/NAME answers, with all lines
 * read, and "interventions", or "journal_error" with the reason why these cannot be read. */
sgm_status sgm__report_add(sgm__runs *runs, const char *name, json_t *list);
/* The same of one run's folder, wherever it is; its name is the folder's. */
sgm_status sgm__report_add_folder(const char *folder, sgm__runs_configuration configuration, json_t *list);
/* The text of the file, freed with sgm__free; NULL: out of memory. */
char *sgm__report_html(const char *title, const json_t *list);

/* GET /api/report?run=NAME&run=NAME...: the file, for saving. `runs`: a sgm__runs. */
sgm_status sgm__runs_report(void *runs, const sgm__http_request *request, sgm__http_answer *answer);

/* --- report_chart.c --- */
/* Appends a text with what HTML would take as markup escaped. */
void sgm__report_text(sgm__text *to, const char *text);
/* Appends one metric of all runs over their epochs as an SVG, with the classes s0 to s7 for their colours.
 * False, and nothing is appended: no run has two values of it. */
bool sgm__report_chart(sgm__text *to, const char *metric, const json_t *list);

#endif
