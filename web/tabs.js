/* The row of tabs, with what can be done to them. */
import { get } from './api.js';
import { showPanels } from './arrange.js';
import { fill, h, iconButton } from './elements.js';
import { t } from './language.js';
import { activeTab, addPanel, addressedTab, addTab, layout, moveTab, removeTab, renameTab, resetLayout, showTab,
    tabTitle } from './layout.js';
import { confirm, dialogue, menu, toast } from './overlays.js';
import { kindTitle, panelKind, panelKinds } from './panel.js';
import { isPresent, on, state } from './store.js';

/* A tab whose panels are all of no use to the page's network is not shown, unless it is the one that is open. */
async function hideUnfit(bar) {
    const only = layout.tabs.map((tab) => tab.panels.length > 0 && tab.panels.every(({ kind, options }) =>
        options?.onlyWhereItFits && panelKind(kind)?.fits));
    const trainer = state.current;
    if (!only.includes(true) || !isPresent(trainer)) return;
    const about = await get('play', { trainer }).catch(() => null);
    if (about === null || trainer !== state.current) return;
    bar.querySelectorAll('[role="tab"]').forEach((element, i) => {
        element.hidden = only[i] && i !== layout.active
            && !layout.tabs[i]?.panels.some(({ kind }) => panelKind(kind).fits(about));
    });
}

export function initTabs(bar) {
    addEventListener('hashchange', () => showTab(addressedTab()));
    on('layout', (change) => {
        buildTabs(bar);
        hideUnfit(bar);
        showPanels();
        if (change?.added) reveal(change.added);
    });
    on('trainer', () => hideUnfit(bar));
}

function reveal(place) {
    const top = document.getElementById('panels').offsetTop + place.y * 40 - 60;
    window.scrollTo({ top, behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
}

function buildTabs(bar) {
    const tabs = layout.tabs.map((tab, i) => h('button', { type: 'button', class: 'tab', role: 'tab', id: `tab-${i}`,
        'aria-selected': String(i === layout.active),
        'aria-controls': 'panels', tabindex: i === layout.active ? '0' : '-1', text: tabTitle(tab),
        on: { click: () => showTab(i), dblclick: () => rename(tab), keydown: (event) => arrows(event, bar) } }));
    const more = iconButton('more', t('tabs.menu'), () => menu(more, entries()), { 'aria-haspopup': 'menu' });
    const plus = h('button', { type: 'button', class: 'button is-quiet tabs-add', 'aria-haspopup': 'menu',
        on: { click: () => menu(plus, kinds()) } },
        h('span', { 'aria-hidden': 'true', text: '+' }), h('span', { text: t('tabs.add_panel') }));
    const hadFocus = bar.contains(document.activeElement) && document.activeElement.getAttribute('role') === 'tab';
    bar.setAttribute('aria-label', t('tabs.label'));
    fill(bar, h('div', { class: 'tabs-list', role: 'tablist', 'aria-label': t('tabs.label') }, tabs),
        h('div', { class: 'tabs-end' }, plus, more));
    document.getElementById('panels').setAttribute('role', 'tabpanel');
    document.getElementById('panels').setAttribute('aria-labelledby', `tab-${layout.active}`);
    if (hadFocus) tabs[layout.active].focus();
    const list = bar.firstChild, at = tabs[layout.active];
    if (at.offsetLeft < list.scrollLeft
        || at.offsetLeft + at.offsetWidth > list.scrollLeft + list.clientWidth) list.scrollLeft = at.offsetLeft - 24;
}

function arrows(event, bar) {
    const shown = [...bar.querySelectorAll('[role="tab"]')].flatMap((element, i) => (element.hidden ? [] : [i]));
    const at = shown.indexOf(layout.active);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: shown.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    showTab(shown[(to + shown.length) % shown.length]);
    bar.querySelector('[aria-selected="true"]').focus();
}

function remove(tab) {
    const name = tabTitle(tab), bringBack = removeTab(tab);
    toast(t('tabs.removed', { name }), 'info', { label: t('action.undo'), act: bringBack });
}

function kinds() {
    return panelKinds().map((kind) => ({ label: kindTitle(kind.kind), icon: kind.icon,
        act: () => addPanel(kind.kind) }));
}

function entries() {
    const tab = activeTab();
    return [
        { label: t('tabs.new'), icon: 'plus', act: newTab },
        { label: t('tabs.rename'), icon: 'pencil', act: () => rename(tab) },
        { label: t('tabs.left'), disabled: layout.active === 0, act: () => moveTab(-1) },
        { label: t('tabs.right'), disabled: layout.active === layout.tabs.length - 1, act: () => moveTab(1) },
        { label: t('tabs.remove'), icon: 'close', disabled: layout.tabs.length === 1, act: () => remove(tab) },
        '-',
        { label: t('tabs.reset'), icon: 'reset',
            act: () => confirm({ title: t('tabs.reset'), text: t('tabs.reset_text'), accept: t('tabs.reset'),
            act: resetLayout }) },
    ];
}

function askName(title, value, act) {
    const input = h('input', { class: 'input', value, maxlength: 40, required: true, autofocus: true,
        'aria-label': title });
    return dialogue({ title, content: input, accept: t('action.save'), act: () => act(input.value.trim()) });
}

function newTab() {
    return askName(t('tabs.new'), '', (name) => addTab(name));
}

function rename(tab) {
    return askName(t('tabs.rename'), tabTitle(tab), (name) => renameTab(tab, name));
}
