/* The report of runs: one file of HTML with what they did, and with nothing that leads elsewhere. */
#include "monitors/runs/report.h"
#include "test.h"

static json_t *run_of(const char *name, const char *note, double rate, double last)
{
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:[s], s:i, s:f, s:f, s:{s:f, s:s}, s:{s:i, s:f}, s:{s:f}, s:{s:f}, "
        "s:{s:[i,i,i], s:[i,i,i], s:[f,f,f]}, s:[{s:i, s:i, s:s, s:s}]}",
        "name", name, "state", "finished", "note", note, "starred", 1, "tags", "best", "epochs", 3, "seconds",
        3723.25, "started", 0.0, "configuration", "rate", rate, "kind", "same", "metrics", "epoch", 3, "loss",
        last, "minimum", "loss", last, "maximum", "loss", 2.0, "columns", "epoch", 1, 2, 3, "branch", 0, 0, 0,
        "loss", 2.0, 1.0, last, "interventions", "epoch", 1, "iteration", 600, "who", "ctl", "text",
        "rate was set to <0.5>");
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        TEST_FAIL("the report lacks '%s': %s", part, text);
}

TEST(a_report_says_what_runs_did)
{
    json_t *list = json_pack("[o, o]", run_of("a<b>", "it's \"fast\" & <script>alert(1)</script>", 0.1, 0.5),
                             run_of("second", "", 0.2, 0.25));
    char *html = sgm__report_html("Mine & <yours>", list);
    has(html, "<title>Mine &amp; &lt;yours&gt;</title>");
    has(html, "it&#39;s &quot;fast&quot; &amp; &lt;script&gt;alert(1)&lt;/script&gt;");
    has(html, "a&lt;b&gt; &#9733;</th>");
    has(html, "<span class=\"tag\">best</span>");
    has(html, "<td class=\"n\">1:02:03</td>");
    has(html, "<td class=\"n\">0.25</td><td class=\"n\">0.25</td><td class=\"n\">2</td>");
    has(html, "<td>rate</td><td class=\"m\">0.1</td><td class=\"m other\">0.2</td>");
    has(html, "<td>kind</td><td class=\"m\">same</td></tr>"); /* in common: once */
    has(html, "<td class=\"n\">600</td><td>ctl</td><td class=\"m\">rate was set to &lt;0.5&gt;</td>");
    CHECK(strstr(html, "<script") == NULL && strstr(html, "a<b>") == NULL);

    /* Nothing leads elsewhere, or is loaded. */
    static const char *const leading[] = {"http:", "https:", "//", "src=", "href", "url(", "@import"};
    for (size_t i = 0; i < sizeof leading / sizeof *leading; i++)
        if (strstr(html, leading[i]) != NULL)
            TEST_FAIL("the report has '%s'", leading[i]);
    has(html, "content=\"default-src 'none'; style-src 'unsafe-inline'\"");
    sgm__free(html);
    json_decref(list);
}

/* Whose colours are tested for the colour-blind. */
TEST(a_report_has_the_colours_of_the_page)
{
    char *styles = NULL, *source = sgm__format("%s/web/styles/base.css", getenv("SIGMA_SOURCE_DIR"));
    json_t *list = json_pack("[o]", run_of("a", "", 0.1, 0.5));
    char *html = sgm__report_html("Mine", list);
    size_t length, count = 0;
    CHECK_OK(sgm__file_read(source, 1 << 20, &styles, &length));
    for (const char *at = styles; (at = strstr(at, "--series-")) != NULL && at[10] == ':'; at += 9, count++) {
        char colour[32];
        snprintf(colour, sizeof colour, "--c%d: %.7s;", at[9] - '1', at + 12);
        has(html, colour);
    }
    CHECK_INT(count, 16);
    sgm__free(source);
    sgm__free(styles);
    sgm__free(html);
    json_decref(list);
}

TEST(a_report_of_one_run_has_no_differences)
{
    json_t *list = json_pack("[o]", run_of("a", "", 0.1, 0.5));
    char *html = sgm__report_html("Mine", list);
    CHECK(strstr(html, "Differences of configuration") == NULL);
    has(html, "<td>rate</td><td class=\"m\">0.1</td></tr>");
    sgm__free(html);
    json_decref(list);
}

/* The numbers of a polyline. */
static size_t points_in(const char *svg, double *x, double *y, size_t limit)
{
    const char *at = strstr(svg, "points=\"");
    size_t count = 0;
    int length;
    CHECK(at != NULL);
    for (at += strlen("points=\"");
         count < limit && sscanf(at, "%lf,%lf%n", &x[count], &y[count], &length) == 2; count++)
        at += length + (at[length] == ' ');
    return count;
}

TEST(a_curve_has_its_points_where_they_belong)
{
    json_t *list = json_pack("[o]", run_of("a", "", 0.1, 0.5));
    sgm__text svg = {0};
    double x[8], y[8];
    CHECK(sgm__report_chart(&svg, "loss", list));
    CHECK_INT(points_in(svg.data, x, y, 8), 3);
    CHECK_NEAR(x[1] - x[0], x[2] - x[1], 0.11);         /* epochs 1, 2, 3 */
    CHECK_NEAR((y[1] - y[0]) / (y[2] - y[1]), 2, 0.01); /* 2, 1, 0.5, downwards */
    CHECK(y[1] > y[0]);
    CHECK(!sgm__report_chart(&svg, "accuracy", list));
    sgm__text_free(&svg);
    json_decref(list);
}

/* A restore to epoch 1 leaves the second of the first branch behind. */
TEST(what_a_restore_left_behind_is_not_drawn)
{
    json_t *list = json_pack("[{s:s, s:{s:[i,i,i,i], s:[i,i,i,i], s:[f,f,f,f]}}]", "name", "a", "columns",
                             "epoch", 1, 2, 2, 3, "branch", 0, 0, 1, 1, "loss", 4.0, 3.0, 2.0, 1.0);
    sgm__text svg = {0};
    double x[8], y[8];
    CHECK(sgm__report_chart(&svg, "loss", list));
    CHECK_INT(points_in(svg.data, x, y, 8), 3);
    CHECK_NEAR((y[1] - y[0]) / (y[2] - y[1]), 2, 0.01); /* 4, 2, 1 */
    sgm__text_free(&svg);
    json_decref(list);
}

TEST(no_spike_of_a_long_curve_is_lost)
{
    enum { ROWS = 50000, SPIKE = 31234 };
    json_t *epochs = json_array(), *losses = json_array();
    for (int i = 0; i < ROWS; i++) {
        json_array_append_new(epochs, json_integer(i));
        json_array_append_new(losses, json_real(i == SPIKE ? 9 : 1));
    }
    json_t *list =
        json_pack("[{s:s, s:{s:o, s:o}}]", "name", "a", "columns", "epoch", epochs, "loss", losses);
    sgm__text svg = {0};
    static double x[4000], y[4000];
    CHECK(sgm__report_chart(&svg, "loss", list));
    size_t count = points_in(svg.data, x, y, 4000), highest = 0;
    CHECK(count > 500 && count <= 1204);
    for (size_t i = 0; i < count; i++)
        highest = y[i] < y[highest] ? i : highest;
    CHECK_NEAR((x[highest] - x[0]) / (x[count - 1] - x[0]), (double)SPIKE / ROWS, 0.002);
    CHECK(y[highest] < y[0] - 100);
    sgm__text_free(&svg);
    json_decref(list);
}
