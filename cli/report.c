/* `sigma report`: runs as one HTML file, for whoever has neither them nor this command.
 *
 * The file is written by src/monitors/runs/report.c, which the page of `sigma monitor` uses, too; this file
 * reads the arguments and lends it the reader of configurations. */
#include "monitors/runs/report.h"
#include "cli.h"
#include "runs/flat.h"

#include <stdio.h>

static const char usage_text[] =
    "Usage: sigma report RUN [RUN ...] [--out FILE] [--title TEXT]\n\n"
    "Writes what the folders of these runs say into one HTML file: how they ended and how well they did,\n"
    "their curves, in what their configurations differ, what was done to them while they trained, and the\n"
    "notes about them. The file needs no other file and no network, and has no script.\n\n"
    "  --out FILE     where it is written (default report.html)\n"
    "  --title TEXT   its heading (default \"Report of runs\")\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage.\n";

static int write_report(const arguments *a, const char *out, const char *title)
{
    json_t *list = json_array();
    sgm_status status = list != NULL ? SGM_OK : sgm__fail_memory(64);
    for (size_t i = 0; status == SGM_OK && i < a->word_count; i++)
        status = sgm__report_add_folder(a->words[i], flat_configuration, list);
    char *html = status == SGM_OK ? sgm__report_html(title, list) : NULL;
    if (status == SGM_OK && html == NULL)
        status = sgm__fail_memory(1 << 16);
    if (status == SGM_OK)
        status = sgm__file_write_atomic(out, html, strlen(html));
    sgm__free(html);
    json_decref(list);
    if (status != SGM_OK)
        return report_error("report", CLI_FAILED);
    printf("report: %s\n", out);
    return CLI_OK;
}

int report_run(int argc, char **argv)
{
    const char *out = "report.html", *title = "Report of runs";
    const argument_rule rules[] = {{"--out", ARGUMENT_TEXT, &out}, {"--title", ARGUMENT_TEXT, &title}};
    arguments a = {.rules = rules, .rule_count = 2, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code))
        code = a.word_count > 0 ? write_report(&a, out, title)
                                : usage_error("report", "expected the folders of one run or more");
    arguments_free(&a);
    return code;
}
