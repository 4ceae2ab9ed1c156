/* A panel of the grid: title, menu, states of loading and error; and the list of kinds.
 *
 * How to add a kind of panel: one file web/panels/NAME.js (the build imports all of them), and its texts,
 * at least "panel.NAME", in languages/*.json (all languages have the same keys; a test looks). A program adds kinds by
 * sgm_register_panel; these import from '../../panel.js' and have `title: 'Boundary'` in place of texts.
 *
 *     import { h } from '../elements.js';
 *     import { get } from '../api.js';
 *     import { definePanel } from '../panel.js';
 *
 *     definePanel('confusion', {
 *         icon: 'table',                        // a name of elements.js
 *         tab: 'inspect', order: 20,            // where it stands if the program presets no tabs ("tab.inspect" is a
 *                                               // text, too); without: only on "Add panel"
 *         size: { w: 6, h: 9 },                 // columns of 12, rows of 40 pixels
 *         minimum: { w: 3, h: 4 },
 *         heights: { 6: 8, 1: 12 },             // optional: rows where the page is so narrow that it has 6 columns,
 *                                               // or 1
 *         options: { top: 3 },                  // kept with the layout, preset by programs; numbers, texts, lists
 *         default: [{ tab: 'training', order: 2, w: 8, h: 9 }],     // optional: where several stand at first, in the
 *                                               // place of tab and order; with a size and options of each
 *         fits(about) { return true; },         // optional: of an answer of GET play, whether a network is one for
 *                                               // this kind. A tab of panels with the option onlyWhereItFits that
 *                                               // fit none is not shown; see suit()
 *         settings(panel) { return element; },  // optional: content of the settings' popover
 *         create(panel) {
 *             const list = h('div', { class: 'scroll' });
 *             panel.body.append(list);
 *             const show = () => panel.load(async (signal) => {      // loading and error states, with "try again"
 *                 const answer = await get('confusion', { trainer: panel.present() }, { signal });
 *                 list.replaceChildren(...);                         // data only by textContent: never innerHTML
 *             });
 *             panel.on('trainer', show);        // topics of store.js, for as long as the panel lives
 *             panel.on('reconnected', show);
 *             panel.every(2000, show);          // only while it can be seen
 *             show();
 *             return { resize(width, height) {}, shown() {}, hidden() {}, menu: () => [], destroy() {} };   // optional
 *         },
 *     });
 *
 * What a kind finds in `panel`:
 *     body, tools       elements: the content, and the place right of the title for small controls
 *     trainer()         the name of the trainer it shows: options.trainer, or that of the page; null if there is none
 *     present()         the same, but null if that trainer is gone: only its curves are left then
 *     options           of this panel; setOption(name, value) also saves it
 *     setTitle(text), setNote(text)   small text beside the title
 *     load(act)         runs act(signal); a new load aborts the older one; renew(act) leaves the older one to end
 *     fail(error), clearError(), empty(text | null), suit(fits, text)
 *     on(topic, act), every(milliseconds, act), visible
 * Gradients and updates are kept from the first time that somebody watches one: POST histogram-watch with its name, of
 * at most 16 tensors (panels/histogram.js). Until then a request for them is refused with 409, which browsers log.
 * The Content-Security-Policy forbids style attributes in markup and inline scripts; element.style.x = ... is allowed.
 */
import { add, fill, h, icon, iconButton, setText } from './elements.js';
import { has, t } from './language.js';
import { errorText, menu, popover } from './overlays.js';
import { isPresent, on, state } from './store.js';

const kinds = new Map();

export function definePanel(kind, definition) {
    kinds.set(kind, { kind, icon: 'chart', order: 100, size: { w: 6, h: 8 }, minimum: { w: 3, h: 3 }, options: {},
        ...definition });
}

export function panelKind(kind) {
    return kinds.get(kind);
}

/* What a kind is called: a text of the page's, or of those that a program adds, their own. */
export function kindTitle(kind) {
    const key = `panel.${kind}`;
    return has(key) ? t(key) : kinds.get(kind)?.title ?? kind;
}

export function panelKinds() {
    return [...kinds.values()].sort((a, b) => a.order - b.order);
}

export class Panel {
    /* `place`: {kind, x, y, w, h, title?, options}; `host`: what the grid offers (changed, key, drag, entries). */
    constructor(place, host) {
        this.place = place;
        this.host = host;
        this.kind = kinds.get(place.kind);
        this.options = { ...structuredClone(this.kind?.options ?? {}), ...place.options };
        this.visible = false;
        this.ends = [];
        this.timers = [];
        this.build();
        this.element.hidden = this.options.onlyWhereItFits === true; /* until suit() knows */
        this.observer = new ResizeObserver(() => this.measure());
        this.observer.observe(this.body);
        try {
            this.parts = this.kind ? this.kind.create(this) ?? {} : this.unknown();
        } catch (error) {
            this.parts = {};
            this.fail(error);
            console.error(error);
        }
        this.retitle();
    }

    build() {
        this.titleText = h('span', { class: 'panel-title-text' });
        this.note = h('span', { class: 'panel-note' });
        this.grip = h('button', { type: 'button', class: 'panel-grip', 'aria-describedby': 'panel-keys',
            on: { keydown: (event) => this.host.key(this, event) } }, this.titleText);
        this.tools = h('div', { class: 'panel-tools' });
        this.menuButton = iconButton('more', t('panel.menu'), () => this.showMenu(), { 'aria-haspopup': 'menu' });
        this.head = h('header', { class: 'panel-head',
            on: { pointerdown: (event) => this.host.drag(this, event, 'move') } },
            h('h2', {}, this.grip), this.note, this.tools, this.kind?.settings ? this.settingsButton() : null,
                this.menuButton);
        this.bar = h('div', { class: 'panel-loading', hidden: true });
        this.body = h('div', { class: 'panel-body' });
        this.message = h('div', { class: 'panel-message', hidden: true });
        this.element = h('section', { class: `panel panel-${this.place.kind}` }, this.head, this.bar, this.body,
            this.message,
            h('div', { class: 'panel-resize', 'aria-hidden': 'true',
                on: { pointerdown: (event) => this.host.drag(this, event, 'size') } }));
    }

    settingsButton() {
        const button = iconButton('sliders', t('panel.options'), () =>
            popover(button, this.kind.settings(this), t('panel.options')), { 'aria-haspopup': 'dialog' });
        this.settingsAnchor = button;
        return button;
    }

    unknown() {
        this.empty(t('panel.unknown', { kind: this.place.kind }));
        return {};
    }

    showMenu() {
        menu(this.menuButton, [...(this.parts.menu?.() ?? []), ...this.host.entries(this)]);
    }

    /* --- what kinds use --- */

    trainer() {
        return this.options.trainer ?? state.current;
    }

    /* The same if it is still there: only then there is something to ask it. */
    present() {
        return isPresent(this.trainer()) ? this.trainer() : null;
    }

    setOption(name, value) {
        this.options[name] = value;
        this.place.options = { ...this.place.options, [name]: value };
        this.host.changed();
    }

    /* Whether the network is one for this kind. A panel that stands there by itself is not to be seen else; one that
     * a person has added says what it is for. */
    suit(fits, text) {
        this.element.hidden = !fits && this.options.onlyWhereItFits === true;
        this.empty(fits ? null : text);
    }

    setTitle(text) {
        this.ownTitle = text;
        this.retitle();
    }

    setNote(text) {
        setText(this.note, text ?? '');
    }

    retitle() {
        const title = this.place.title ?? this.ownTitle ?? kindTitle(this.place.kind);
        setText(this.titleText, title);
        this.grip.title = title;
        this.element.setAttribute('aria-label', title);
        this.title = title;
    }

    on(topic, act) {
        this.ends.push(on(topic, act));
    }

    every(milliseconds, act) {
        this.timers.push(setInterval(() => { if (this.visible && !document.hidden
            && state.connection === 'open') act(); }, milliseconds));
    }

    /* For what is looked at again and again: not before the last one has come. */
    renew(act) {
        return this.loading ? Promise.resolve() : this.load(act);
    }

    async load(act) {
        this.abort?.abort();
        const abort = this.abort = new AbortController();
        this.loading = true;
        const late = setTimeout(() => { this.bar.hidden = false; }, 250); /* no flicker if it is quick */
        try {
            await act(abort.signal);
            if (abort === this.abort) this.clearError();
        } catch (error) {
            if (error.name !== 'AbortError' && abort === this.abort) this.fail(error, () => this.load(act));
        }
        clearTimeout(late);
        if (abort !== this.abort) return;
        this.loading = false;
        this.bar.hidden = true;
    }

    fail(error, again) {
        if (this.options.onlyWhereItFits) this.element.hidden = false;
        if (!error.code && error.code !== 0) console.warn(error);
        fill(this.message, icon('warning'), h('p', { text: errorText(error) }));
        if (again) add(this.message, [h('button', { type: 'button', class: 'button', text: t('panel.again'),
            on: { click: again } })]);
        this.message.classList.add('is-error');
        this.message.hidden = false;
        this.failed = true;
    }

    clearError() {
        if (!this.failed) return;
        this.failed = false;
        this.message.hidden = true;
    }

    empty(text) {
        if (this.failed) return;
        this.message.hidden = text === null;
        if (text === null) return;
        this.message.classList.remove('is-error');
        fill(this.message, h('p', { text }));
    }

    /* --- what the grid uses --- */

    show(visible) {
        if (this.visible === visible) return;
        this.visible = visible;
        if (visible) this.parts.shown?.();
        else this.parts.hidden?.();
    }

    measure() {
        const { clientWidth: width, clientHeight: height } = this.body;
        if (width === 0 || height === 0 || (width === this.width && height === this.height)) return;
        this.width = width;
        this.height = height;
        this.parts?.resize?.(width, height);
    }

    destroy() {
        this.abort?.abort();
        this.observer.disconnect();
        for (const end of this.ends) end();
        for (const timer of this.timers) clearInterval(timer);
        this.parts.destroy?.();
        this.element.remove();
    }
}
