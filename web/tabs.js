/* The row of tabs, with what can be done to them. */
import { showPanels } from './arrange.js';
import { fill, h, iconButton } from './elements.js';
import { t } from './language.js';
import { activeTab, addPanel, addressedTab, addTab, layout, moveTab, removeTab, renameTab, resetLayout, showTab,
    tabTitle } from './layout.js';
import { confirm, dialogue, menu, toast } from './overlays.js';
import { kindTitle, panelKinds } from './panel.js';
import { on } from './store.js';

export function initTabs(bar) {
    addEventListener('hashchange', () => showTab(addressedTab()));
    on('layout', (change) => {
        buildTabs(bar);
        showPanels();
        if (change?.added) reveal(change.added);
    });
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
    const to = { ArrowLeft: layout.active - 1, ArrowRight: layout.active + 1, Home: 0,
        End: layout.tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    showTab((to + layout.tabs.length) % layout.tabs.length);
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
