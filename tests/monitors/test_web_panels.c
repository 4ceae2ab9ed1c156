/* Panels that a program adds to the page: what is refused, and how they look in a browser. */
#include "base/folder.h"
#include "page_training.h"

#define MODULE(name, body)                                                                                   \
    "import { h } from '../../elements.js';\n"                                                               \
    "import { definePanel } from '../../panel.js';\n"                                                        \
    "definePanel('" name "', { title: 'Own panel', icon: 'eye', tab: 'play', order: 0,\n"                    \
    "    create(panel) { " body " } });\n"

static const sgm_panel_type counted = {
    .api = SGM_PANEL_API,
    .name = "counted",
    .module =
        MODULE("counted", "panel.body.append(h('p', { class: 'own', text: `of ${panel.trainer()}` }));")};
static const sgm_panel_type broken = {
    .api = SGM_PANEL_API, .name = "broken", .module = "import './none.js';"};

TEST(panels_that_cannot_be_are_refused)
{
    sgm_panel_type wrong = counted;
    wrong.api = SGM_PANEL_API + 1;
    CHECK_ERROR(sgm_register_panel(&wrong),
                "panel 'counted' has the API number 2, this library wants 1: compile it again");
    wrong = counted;
    wrong.module = NULL;
    CHECK_ERROR(sgm_register_panel(&wrong), "sgm_register_panel wants a .name and a .module");
    CHECK_ERROR(sgm_register_panel(NULL), "sgm_register_panel wants a .name and a .module");
    static const char *const names[] = {"",    "Chart", "../chart",
                                        "a b", "1st",   "a23456789012345678901234567890123456789012"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        wrong = counted;
        wrong.name = names[i];
        CHECK_ERROR(sgm_register_panel(&wrong), "a panel cannot be called '");
    }
    wrong.name = "chart";
    CHECK_ERROR(sgm_register_panel(&wrong), "there is a panel 'chart' already; choose another name");

    CHECK_OK(sgm_register_panel(&counted));
    CHECK_OK(sgm_register_panel(&counted));
    wrong.name = "counted";
    CHECK_ERROR(sgm_register_panel(&wrong), "there is a panel 'counted' already; choose another name");
}

static void write_file(const char *name, const char *text, size_t length)
{
    CHECK_OK(sgm__file_write_atomic(in_folder(name), text, length));
}

/* Modules that are files of the user's. */
TEST(a_folder_has_panels)
{
    char path[160];
    open_folder();
    snprintf(path, sizeof path, "%s/none", folder);
    CHECK_ERROR(sgm_register_panels(path), "cannot read the folder");
    CHECK_ERROR(sgm_register_panels(folder), "has no panels: expected files NAME.js");
    write_file("notes.txt", "no module", 9);
    write_file(".hidden.js", "no module", 9);
    CHECK_ERROR(sgm_register_panels(folder), "has no panels: expected files NAME.js");
    static const char module[] =
        MODULE("ours", "panel.body.append(h('p', { class: 'ours', text: 'from a file' }));");
    write_file("ours.js", module, sizeof module - 1);
    CHECK_OK(sgm_register_panels(folder));
    CHECK_ERROR(sgm_register_panels(folder), "/ours.js': there is a panel 'ours' already");
    CHECK_INT(unlink(in_folder("ours.js")), 0);
    write_file("Capital.js", module, sizeof module - 1);
    CHECK_ERROR(sgm_register_panels(folder), "/Capital.js': a panel cannot be called 'Capital'");
    CHECK_INT(unlink(in_folder("Capital.js")), 0);
    write_file("zero.js", "a\0b", 3);
    CHECK_ERROR(sgm_register_panels(folder), "/zero.js': there is a byte 0 in it, so it is no text");
    close_folder();

    training *t = begin_training();
    open_tab_called(&t->browser, "Play");
    browser_await(&t->browser, "document.querySelector('.panel-ours .ours')?.textContent === 'from a file'");
    end_training(t);
}

TEST(the_page_has_the_programs_panels)
{
    CHECK_OK(sgm_register_panel(&counted));
    CHECK_OK(sgm_register_panel(&broken));
    training *t = begin_training();
    browser *b = &t->browser;
    /* One that cannot be loaded is told of, and the others are there. */
    browser_await(b, "[...document.querySelectorAll('.toast')].some((toast) => toast.textContent.includes("
                     "'The panel “broken” of the program cannot be loaded'))");
    open_tab_called(b, "Play");
    browser_await(b, "document.querySelector('.panel-counted .own')?.textContent === 'of digits'");
    CHECK(browser_is(
        b, "document.querySelector('.panel-counted .panel-title-text').textContent === 'Own panel'"));
    /* It stands among the kinds that can be added, too. */
    browser_click(b, ".tabs-add");
    browser_await(b,
                  "[...document.querySelectorAll('[role=menuitem]')].some((item) => item.textContent.trim() "
                  "=== 'Own panel')");
    end_training(t);
}
