/* Tabs, and the panels of the tab that is shown. What the user arranges is kept in the browser, by the run's name.
 *
 * A program presets tabs in /api/session.tabs:
 *     [{"title": "Mine", "panels": [{"kind": "chart", "w": 8, "h": 9, "title": "Loss",
 *                                    "options": {"series": ["training.loss"]}}]}]
 * w and h may be left out (the kind's own), x and y too (the first free place). */
import { firstFree } from './grid.js';
import { t } from './language.js';
import { Panel, panelKind, panelKinds } from './panel.js';
import { emit, state } from './store.js';

const defaultTabs = ['training', 'settings', 'checkpoints', 'inspect', 'play', 'log'];
const version = 1;

export const layout = { tabs: [], active: 0, preset: false };
const live = new Map(); /* place -> Panel */
let key = 'sigma.layout', presetText = '';

/* --- from where the tabs come --- */

function checkedPlace(place, others) {
    const kind = panelKind(place?.kind);
    if (typeof place?.kind !== 'string') return null;
    const whole = (value, low, high) => (Number.isFinite(value) ? Math.max(low, Math.min(high, Math.round(value)))
        : undefined);
    const w = whole(place.w, 1, 12) ?? kind?.size.w ?? 6, height = whole(place.h, 2, 60) ?? kind?.size.h ?? 8;
    const free = firstFree(others, w, height);
    return { kind: place.kind, x: Math.min(whole(place.x, 0, 11) ?? free.x, 12 - w),
        y: whole(place.y, 0, 1000) ?? free.y, w, h: height,
        title: typeof place.title === 'string' ? place.title : undefined,
        options: place.options && typeof place.options === 'object' ? place.options : {} };
}

function checkedTab(tab) {
    const panels = [];
    for (const place of Array.isArray(tab?.panels) ? tab.panels : []) {
        const checked = checkedPlace(place, panels);
        if (checked) panels.push(checked);
    }
    return { name: typeof tab?.name === 'string' ? tab.name : undefined, title: typeof tab?.title === 'string'
        ? tab.title : undefined, panels };
}

function defaults() {
    const tabs = new Map(defaultTabs.map((name) => [name, []]));
    for (const kind of panelKinds())
        for (const place of kind.default ?? (kind.tab ? [{ tab: kind.tab, order: kind.order }] : [])) {
            if (!tabs.has(place.tab)) tabs.set(place.tab, []);
            tabs.get(place.tab).push({ kind: kind.kind, ...place });
        }
    return [...tabs].filter(([, panels]) => panels.length > 0)
        .map(([name, panels]) => checkedTab({ name,
            panels: panels.sort((a, b) => (a.order ?? 100) - (b.order ?? 100)) }));
}

function preset() {
    const tabs = state.session?.tabs;
    return Array.isArray(tabs) && tabs.length > 0 ? tabs.map(checkedTab) : defaults();
}

/* A kept arrangement counts as long as the program presets the same. */
function kept() {
    try {
        const found = JSON.parse(localStorage.getItem(key));
        if (found?.version !== version || found.preset !== presetText || !Array.isArray(found.tabs)
            || found.tabs.length === 0) return null;
        return { tabs: found.tabs.map(checkedTab), active: Number(found.active) || 0 };
    } catch {
        return null;
    }
}

export function loadLayout() {
    key = `sigma.layout.${state.session?.name ?? ''}`;
    presetText = JSON.stringify(state.session?.tabs ?? null) + panelKinds().map((kind) => kind.kind).join();
    const found = kept();
    layout.tabs = found?.tabs ?? preset();
    layout.active = Math.min(found?.active ?? 0, layout.tabs.length - 1);
    if (addressedTab() >= 0) layout.active = addressedTab();
    history.replaceState(null, '', addressOf(activeTab()));
    emit('layout');
}

export function save() {
    try {
        localStorage.setItem(key, JSON.stringify({ version, preset: presetText, tabs: layout.tabs,
            active: layout.active }));
    } catch {
        /* private windows have no storage: the arrangement lasts as long as the page */
    }
}

export function resetLayout() {
    destroyPanels();
    localStorage.removeItem(key);
    layout.tabs = preset();
    layout.active = Math.min(layout.active, layout.tabs.length - 1);
    emit('layout');
}

/* --- tabs --- */

export function activeTab() {
    return layout.tabs[layout.active];
}

export function tabTitle(tab) {
    return tab.title ?? t(`tab.${tab.name}`);
}

const addressOf = (tab) => `#${encodeURIComponent(tab.name ?? tab.title ?? '')}`;

/* The tab that the page's address names; -1: none. */
export function addressedTab() {
    return layout.tabs.findIndex((tab) => addressOf(tab) === location.hash);
}

function activate(index) {
    layout.active = index;
    history.replaceState(null, '', addressOf(activeTab()));
    save();
    emit('layout');
}

export function showTab(index) {
    if (index < 0 || index >= layout.tabs.length || index === layout.active) return;
    activate(index);
}

export function addTab(title) {
    layout.tabs.push({ title, panels: [] });
    activate(layout.tabs.length - 1);
}

export function renameTab(tab, title) {
    tab.title = title;
    save();
    emit('layout');
}

export function moveTab(by) {
    const to = layout.active + by;
    if (to < 0 || to >= layout.tabs.length) return;
    layout.tabs.splice(to, 0, ...layout.tabs.splice(layout.active, 1));
    layout.active = to;
    save();
    emit('layout');
}

/* Gives what brings it back. */
export function removeTab(tab) {
    const index = layout.tabs.indexOf(tab);
    for (const place of tab.panels) dropPanel(place);
    layout.tabs.splice(index, 1);
    activate(Math.max(0, Math.min(layout.active, layout.tabs.length - 1)));
    return () => {
        layout.tabs.splice(index, 0, tab);
        activate(layout.tabs.indexOf(tab));
    };
}

/* --- panels --- */

export function panelOf(place, host) {
    if (!live.has(place)) live.set(place, new Panel(place, host));
    return live.get(place);
}

export function livePanels() {
    return live.values();
}

export function addPanel(kind, options = {}) {
    const tab = activeTab(), { size } = panelKind(kind);
    const place = { kind, ...firstFree(tab.panels, size.w, size.h), options };
    tab.panels.push(place);
    save();
    emit('layout', { added: place });
    return place;
}

function dropPanel(place) {
    live.get(place)?.destroy();
    live.delete(place);
}

/* Gives what brings it back. */
export function removePanel(place) {
    const { panels } = activeTab(), tab = activeTab();
    dropPanel(place);
    panels.splice(panels.indexOf(place), 1);
    save();
    emit('layout');
    return () => {
        panels.push(place);
        if (layout.tabs.includes(tab)) activate(layout.tabs.indexOf(tab));
    };
}

/* For other texts: all are built again. */
export function destroyPanels() {
    for (const place of [...live.keys()]) dropPanel(place);
}
