/* What lies above the page: menus, popovers, dialogues, short messages. */
import { add, button, fill, freshId, h, icon, iconButton } from './elements.js';
import { t } from './language.js';

export function errorText(error) {
    return error.code === 0 ? t('error.connection') : error.message;
}

/* --- popovers and menus: one at a time --- */

let open = null;

export function closePopover(focusBack = false) {
    if (!open) return;
    const { element, anchor, end } = open;
    open = null;
    element.remove();
    anchor.setAttribute('aria-expanded', 'false');
    end.abort();
    if (focusBack) anchor.focus();
}

/* Below the anchor, or above where there is more room; never outside of the window. */
function position(element, anchor) {
    const from = anchor.getBoundingClientRect(), gap = 6, edge = 8;
    element.style.maxHeight = '';
    const { offsetWidth: width, offsetHeight: height } = element;
    const below = innerHeight - from.bottom - gap - edge, above = from.top - gap - edge;
    const up = below < Math.min(height, 220) && above > below;
    element.style.left = `${Math.max(edge, Math.min(from.right - width, innerWidth - width - edge))}px`;
    element.style.maxHeight = `${Math.max(80, up ? above : below)}px`;
    element.style.top = up ? `${Math.max(edge, from.top - gap - Math.min(height, above))}px` : `${from.bottom + gap}px`;
}

function raise(element, anchor) {
    const same = open?.anchor === anchor;
    closePopover();
    if (same) return false;
    const end = new AbortController();
    open = { element, anchor, end };
    (anchor.closest('dialog') ?? document.body).append(element);
    anchor.setAttribute('aria-expanded', 'true');
    position(element, anchor);
    const { signal } = end;
    document.addEventListener('pointerdown', (event) => {
        if (!element.contains(event.target) && !anchor.contains(event.target)) closePopover();
    }, { signal, capture: true });
    element.addEventListener('keydown', (event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        event.preventDefault();
        closePopover(true);
    }, { signal });
    element.addEventListener('focusout', (event) => {
        if (event.relatedTarget && !element.contains(event.relatedTarget)) closePopover();
    }, { signal });
    addEventListener('resize', () => closePopover(), { signal });
    return true;
}

export function popover(anchor, content, label) {
    const element = h('div', { class: 'popover', role: 'dialog', 'aria-label': label, tabindex: '-1' }, content);
    if (raise(element, anchor)) (element.querySelector('input,select,button,[tabindex="0"]') ?? element).focus();
    return element;
}

/* Entries: {label, icon?, act, id?, checked?, disabled?, danger?, keys?, tip?}, '-' for a line, or {heading}. */
export function menu(anchor, entries) {
    const element = h('div', { class: 'popover menu', role: 'menu' }, entries.map((entry) => menuEntry(entry)));
    if (!raise(element, anchor)) return;
    const items = [...element.querySelectorAll('button:not(:disabled)')];
    items[0]?.focus();
    element.addEventListener('keydown', (event) => {
        const steps = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        const at = items.indexOf(document.activeElement);
        if (steps) items[(at + steps + items.length) % items.length].focus();
        else if (event.key === 'Home') items[0].focus();
        else if (event.key === 'End') items.at(-1).focus();
        else if (event.key === 'Tab') closePopover(true);
        else return;
        event.preventDefault();
    });
}

function menuEntry(entry) {
    if (entry === '-') return h('hr', { role: 'separator' });
    if (entry.heading) return h('div', { class: 'menu-heading', text: entry.heading });
    const checkable = entry.checked !== undefined;
    return h('button', { type: 'button', class: entry.danger ? 'menu-entry is-danger' : 'menu-entry',
        disabled: entry.disabled, title: entry.tip,
        data: entry.id ? { entry: entry.id } : null,
        role: checkable ? 'menuitemcheckbox' : 'menuitem', 'aria-checked': checkable ? String(entry.checked) : null,
        on: { click: () => { closePopover(true); entry.act(); } } },
    entry.icon || checkable ? icon(checkable ? (entry.checked ? 'check' : 'none') : entry.icon)
        : h('span', { class: 'icon' }),
    h('span', { text: entry.label }), entry.keys ? h('kbd', { text: entry.keys }) : null);
}

/* --- dialogues --- */

/* `act` may be asynchronous: the dialogue waits for it, and shows what fails. Resolves to true when it was done. */
export function dialogue({ title, content, accept, act, danger = false, wide = false }) {
    closePopover();
    return new Promise((resolve) => {
        const heading = freshId('title'), problem = h('p', { class: 'form-error', role: 'alert', hidden: true });
        const go = accept ? button(accept, null, { class: danger ? 'button is-danger' : 'button is-primary',
            type: 'submit' }) : null;
        const form = h('form', { class: 'dialogue-form', on: { submit } },
            h('div', { class: 'dialogue-head' }, h('h2', { id: heading, text: title }),
                iconButton('close', t('action.close'), () => element.close())),
            h('div', { class: 'dialogue-body' }, content, problem),
            accept ? h('div', { class: 'dialogue-foot' }, button(t('action.cancel'), () => element.close()), go)
                : null);
        const element = h('dialog', { class: wide ? 'dialogue is-wide' : 'dialogue', 'aria-labelledby': heading },
            form);
        let done = false;
        async function submit(event) {
            event.preventDefault();
            if (!go || go.disabled) return;
            go.disabled = true;
            try {
                await act?.();
                done = true;
                element.close();
            } catch (error) {
                problem.textContent = errorText(error);
                problem.hidden = false;
            }
            go.disabled = false;
        }
        element.addEventListener('close', () => { element.remove(); resolve(done); });
        const typed = () => [...form.querySelectorAll('input, textarea')].map((input) => input.value).join('\n');
        const begun = typed();
        element.addEventListener('click', (event) => { /* beside it: unless something would be lost */
            if (event.target === element && typed() === begun) element.close();
        });
        document.body.append(element);
        element.showModal();
        (element.querySelector('[autofocus], .dialogue-body input, .dialogue-body select') ?? go)?.focus();
    });
}

export function confirm({ title, text, accept, act, danger = true }) {
    return dialogue({ title, content: h('p', { text }), accept, act, danger });
}

/* --- short messages --- */

const longestMessages = 4;

export function toast(text, kind = 'info', action = null) {
    const place = document.getElementById('toasts');
    const element = h('div', { class: `toast is-${kind}` }, icon(kind === 'error' ? 'warning' : 'check'),
        h('span', { text }));
    if (action) add(element, [h('button', { type: 'button', class: 'link', text: action.label,
        on: { click: () => { element.remove(); action.act(); } } })]);
    add(element, [iconButton('close', t('action.close'), () => element.remove())]);
    place.append(element);
    while (place.children.length > longestMessages) place.firstChild.remove();
    setTimeout(() => element.remove(), kind === 'error' || action ? 9000 : 4500);
}

export function toastError(error) {
    toast(errorText(error), 'error');
}

/* For screen readers only. */
export function announce(text) {
    fill(document.getElementById('announcer'), text);
}
