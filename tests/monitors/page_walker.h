/* Whether everybody can use a page: those who see little, who use a screen reader, who have no mouse. For
 * tests. */
#ifndef SIGMA_PAGE_WALKER_H
#define SIGMA_PAGE_WALKER_H

#include "browser.h"

#define WALKER "tests/monitors/page_walker.js"

static inline json_t *walker_cdp(browser *b, const char *command, json_t *parameters)
{
    return browser_ask(b, "POST", "/goog/cdp/execute",
                       json_pack("{s:s, s:o}", "cmd", command, "params", parameters), NULL);
}

/* --- contrasts, and what refers to what --- */

static inline void check_contrasts(browser *b, const char *what)
{
    char *script;
    size_t length;
    CHECK_OK(sgm__file_read(WALKER, 1 << 20, &script, &length));
    char *text = sgm__format("%.*s", (int)length, script);
    json_t *wrong = browser_run(b, text);
    if (strcmp(json_string_value(wrong), "") != 0)
        TEST_FAIL("%s: %s", what, json_string_value(wrong));
    json_decref(wrong);
    sgm__free(text);
    sgm__free(script);
}

/* --- names, as a screen reader has them --- */

static inline bool walker_needs_name(const char *role)
{
    static const char *const roles[] = {"button",
                                        "link",
                                        "textbox",
                                        "searchbox",
                                        "combobox",
                                        "ComboBoxMenuSelect",
                                        "PopUpButton",
                                        "listbox",
                                        "checkbox",
                                        "radio",
                                        "switch",
                                        "slider",
                                        "spinbutton",
                                        "tab",
                                        "tabpanel",
                                        "menuitem",
                                        "img",
                                        "image",
                                        "dialog",
                                        "progressbar",
                                        "ColorWell",
                                        "option",
                                        "tablist",
                                        "navigation",
                                        "menuitemcheckbox",
                                        "DisclosureTriangle",
                                        "Canvas",
                                        "alertdialog"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0)
            return true;
    return false;
}

/* What of the document an entry of the tree is, for messages; new. */
static inline char *walker_element(browser *b, const json_t *node)
{
    json_t *told = walker_cdp(b, "DOM.describeNode",
                              json_pack("{s:O}", "backendNodeId", json_object_get(node, "backendDOMNodeId")));
    char *text = json_dumps(json_object_get(json_object_get(told, "node"), "attributes"), JSON_COMPACT);
    json_decref(told);
    return text;
}

static inline const char *walker_value(const json_t *node, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(node, key), "value"));
    return text != NULL ? text : "";
}

static inline void check_names(browser *b, const char *what)
{
    sgm__text wrong = {0};
    size_t i, named = 0;
    json_t *node, *tree = walker_cdp(b, "Accessibility.getFullAXTree", json_object());
    json_array_foreach(json_object_get(tree, "nodes"), i, node)
    {
        const char *role = walker_value(node, "role");
        if (json_is_true(json_object_get(node, "ignored")) || !walker_needs_name(role))
            continue;
        named++;
        if (walker_value(node, "name")[strspn(walker_value(node, "name"), " ")] != '\0')
            continue;
        char *element = walker_element(b, node);
        sgm__text_append(&wrong, "%s %s; ", role, element);
        free(element);
    }
    if (wrong.data != NULL)
        TEST_FAIL("%s: without a name: %s", what, wrong.data);
    if (named == 0)
        TEST_FAIL("%s: no control was found", what);
    json_decref(tree);
}

/* --- the keyboard --- */

#define WALKER_PRESSES 40 /* in one request */
#define WALKER_MOST 20    /* requests */

static inline void press_tab(browser *b)
{
    json_t *presses = json_array();
    for (int i = 0; i < WALKER_PRESSES; i++) {
        json_array_append_new(presses, json_pack("{s:s, s:s}", "type", "keyDown", "value", "\xee\x80\x84"));
        json_array_append_new(presses, json_pack("{s:s, s:s}", "type", "keyUp", "value", "\xee\x80\x84"));
    }
    json_t *actions =
        json_pack("{s:[{s:s, s:s, s:o}]}", "actions", "type", "key", "id", "keys", "actions", presses);
    json_decref(browser_ask(b, "POST", "/actions", actions, NULL));
}

/* Controls that the key did not come to. Of tabs and menus it comes to one; arrows go on from there. */
#define WALKER_MISSED                                                                                        \
    "[...document.querySelectorAll('a[href], button, input, select, textarea, summary, "                     \
    "[tabindex]')].filter("                                                                                  \
    "(e) => e.checkVisibility({ visibilityProperty: true }) && !e.matches(':disabled') && "                  \
    "!window.walked.has(e) && !(e.tabIndex < 0 && (e.matches('[role=tab], [role^=menuitem], main, "          \
    "[role=tabpanel], dialog') || !e.matches('a, button, input, select, textarea, summary'))) && "           \
    "!(e.type === 'radio' && !e.checked) && !e.closest('[inert]')).map((e) => e.outerHTML.slice(0, 120))"

static inline void check_keyboard(browser *b, const char *what)
{
    browser_do(b, "document.activeElement?.blur(); scrollTo(0, 0);"
                  "if (!window.walked) addEventListener('focusin', (e) => window.walked.add(e.target), true);"
                  "window.walked = new Set();");
    for (int i = 0; i < WALKER_MOST && !browser_is(b, WALKER_MISSED ".length === 0"); i++)
        press_tab(b);
    json_t *missed = browser_run(b, "return " WALKER_MISSED ".join('\\n')");
    if (strcmp(json_string_value(missed), "") != 0)
        TEST_FAIL("%s: the Tab key does not come to: %s", what, json_string_value(missed));
    json_decref(missed);
}

/* All of it, in the light and in the dark. */
static inline void check_for_everybody(browser *b, const char *what)
{
    static const char *const themes[] = {"light", "dark"};
    browser_do(b, "window.themed = document.documentElement.dataset.theme");
    for (int i = 0; i < 2; i++) {
        char *text = sgm__format("%s, %s", what, themes[i]);
        char *script = sgm__format("document.documentElement.dataset.theme = '%s'", themes[i]);
        browser_do(b, script);
        usleep(250000); /* colours pass over */
        check_contrasts(b, text);
        sgm__free(script);
        sgm__free(text);
    }
    browser_do(b, "document.documentElement.dataset.theme = window.themed");
    check_names(b, what);
}

#endif
