/* The grid on the page: where panels stand, and moving and sizing them with pointer and keys. */
import { h } from './elements.js';
import { arrange, compact, narrowed } from './grid.js';
import { t } from './language.js';
import { activeTab, livePanels, panelOf, removePanel, save } from './layout.js';
import { announce, dialogue, toast } from './overlays.js';
import { panelKind } from './panel.js';

const rowHeight = 40, gap = 12; /* as in styles/shell.css */
const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
let grid, ghost, large = null;

export function initGrid(element) {
    grid = element;
    ghost = h('div', { class: 'grid-ghost', hidden: true });
    const again = () => { if (!grid.classList.contains('is-moving')) placeAll(); };
    new ResizeObserver(again).observe(grid);
    new MutationObserver((changes) => { if (changes.some(({ target }) => target.parentElement === grid)) again(); })
        .observe(grid, { subtree: true, attributeFilter: ['hidden'] });
    addEventListener('keydown', (event) => {
        if (event.key === 'Escape' && large && !event.defaultPrevented) enlarge(large); });
}

/* 12 columns, 6 on tablets, 1 on telephones. */
function columnCount() {
    const width = grid.clientWidth;
    return width >= 1080 ? 12 : width >= 640 ? 6 : 1;
}

const host = {
    changed: save,
    key: moveByKey,
    drag: startDrag,
    entries: (panel) => [
        { label: t(large === panel ? 'panel.shrink' : 'panel.enlarge'), icon: large === panel ? 'shrink' : 'expand',
            act: () => enlarge(panel) },
        { label: t('panel.rename'), icon: 'pencil', act: () => rename(panel) },
        { label: t('panel.remove'), icon: 'close',
            act: () => remove(panel) },
    ],
};

function remove(panel) {
    if (large === panel) enlarge(panel);
    const name = panel.title, bringBack = removePanel(panel.place);
    toast(t('panel.removed', { name }), 'info', { label: t('action.undo'), act: bringBack });
}

export function showPanels() {
    if (large) enlarge(large);
    const shown = activeTab().panels.map((place) => panelOf(place, host));
    const order = [...shown].sort((a, b) => a.place.y - b.place.y || a.place.x - b.place.x);
    const elements = [...order.map((panel) => panel.element), ghost];
    for (const child of [...grid.children]) if (!elements.includes(child)) child.remove();
    elements.forEach((element, i) => { if (grid.children[i] !== element) grid.insertBefore(element,
        grid.children[i] ?? null); });
    placeAll();
    for (const panel of livePanels()) panel.show(shown.includes(panel));
}

function setPlace(element, place, count) {
    const unit = `(100% + ${gap}px) / ${count}`;
    element.style.left = `calc(${unit} * ${place.x})`;
    element.style.width = `calc(${unit} * ${place.w} - ${gap}px)`;
    element.style.top = `${place.y * rowHeight}px`;
    element.style.height = `${place.h * rowHeight - gap}px`;
}

/* A panel that a network cannot use, and so is not shown, takes no room. */
function shownPlaces() {
    return activeTab().panels.filter((place) => !panelOf(place, host).element.hidden);
}

function placeAll() {
    const panels = shownPlaces(), count = columnCount();
    if (count === 12 && panels.length < activeTab().panels.length) compact(panels);
    const places = count === 12 ? new Map(panels.map((place) => [place, place])) : narrowed(panels, count,
        (place) => panelKind(place.kind)?.heights?.[count] ?? place.h);
    grid.classList.toggle('is-fixed', count !== 12);
    let bottom = 0;
    for (const [place, at] of places) {
        setPlace(panelOf(place, host).element, at, count);
        bottom = Math.max(bottom, at.y + at.h);
    }
    grid.style.height = `${bottom * rowHeight}px`;
}

function arranged() {
    save();
    showPanels();
}

function enlarge(panel) {
    const shown = large === panel ? null : panel;
    large?.element.classList.remove('is-large');
    shown?.element.classList.add('is-large');
    document.body.classList.toggle('has-large', shown !== null);
    large = shown;
}

function rename(panel) {
    const input = h('input', { class: 'input', value: panel.title, maxlength: 60, autofocus: true,
        'aria-label': t('panel.rename') });
    return dialogue({ title: t('panel.rename'), content: input, accept: t('action.save'), act: () => {
        panel.place.title = input.value.trim() || undefined;
        panel.retitle();
        save();
    } });
}

/* --- keys: arrows move, with shift they size --- */

function moveByKey(panel, event) {
    const step = steps[event.key];
    if (!step || columnCount() !== 12 || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const { place } = panel, panels = shownPlaces();
    const minimum = panel.kind?.minimum ?? { w: 2, h: 3 };
    if (event.shiftKey) arrange(panels, place, { w: Math.max(minimum.w, place.w + step[0]),
        h: Math.max(minimum.h, place.h + step[1]) });
    else arrange(panels, place, { x: place.x + step[0], y: step[1] > 0 ? belowNext(panels, place)
        : place.y + step[1] });
    arranged();
    panel.grip.focus();
    panel.element.scrollIntoView({ block: 'nearest' });
    announce(t(event.shiftKey ? 'panel.sized' : 'panel.moved', { x: place.x + 1, y: place.y + 1, w: place.w,
        h: place.h }));
}

/* A step of one row would be undone when all go up again: it goes past the next panel. */
function belowNext(panels, place) {
    const next = panels.filter((other) => other !== place && other.y >= place.y + place.h
        && other.x < place.x + place.w && place.x < other.x + other.w)
        .sort((a, b) => a.y - b.y)[0];
    return next ? next.y + next.h - place.h + 1 : place.y;
}

/* --- pointer --- */

function startDrag(panel, event, what) {
    if (event.button !== 0 || columnCount() !== 12 || large || (event.target.closest('button, input, select, a, label')
        && !event.target.closest('.panel-grip'))) return;
    const start = { x: event.clientX, y: event.clientY, scroll: scrollY }, before = { ...panel.place };
    const places = shownPlaces(), others = new Map(places.map((place) => [place, { ...place }]));
    const end = new AbortController(), unit = (grid.clientWidth + gap) / 12;
    let moving = false, at = '';
    const move = (now) => {
        const dx = now.clientX - start.x, dy = now.clientY - start.y + scrollY - start.scroll;
        if (!moving && Math.hypot(dx, dy) < 5) return;
        if (!moving) begin();
        const by = { x: Math.round(dx / unit), y: Math.round(dy / rowHeight) };
        follow(dx, dy);
        if (now.clientY > innerHeight - 40) scrollBy(0, 12);
        if (now.clientY < 60) scrollBy(0, -12);
        if (at === `${by.x} ${by.y}`) return;
        at = `${by.x} ${by.y}`;
        for (const [place, old] of others) Object.assign(place, old);
        const minimum = panel.kind?.minimum ?? { w: 2, h: 3 };
        arrange(places, panel.place, what === 'move' ? { x: before.x + by.x, y: before.y + by.y }
            : { w: Math.max(minimum.w, Math.min(12 - before.x, before.w + by.x)),
                h: Math.max(minimum.h, before.h + by.y) });
        for (const place of places) if (place !== panel.place) setPlace(panelOf(place, host).element, place, 12);
        setPlace(ghost, panel.place, 12);
        grid.style.height = `${Math.max(...places.map((place) => place.y + place.h)) * rowHeight}px`;
    };
    const begin = () => {
        moving = true;
        grid.classList.add('is-moving');
        panel.element.classList.add('is-dragged');
        ghost.hidden = false;
    };
    const follow = (dx, dy) => {
        const { style } = panel.element;
        if (what === 'move') style.transform = `translate(${dx}px, ${dy}px)`;
        else {
            style.width = `${Math.max(80, before.w * unit - gap + dx)}px`;
            style.height = `${Math.max(80, before.h * rowHeight - gap + dy)}px`;
        }
    };
    const finish = (cancelled) => {
        end.abort();
        if (!moving) return;
        ghost.hidden = true;
        grid.classList.remove('is-moving');
        panel.element.classList.remove('is-dragged');
        panel.element.style.transform = '';
        if (cancelled) for (const [place, old] of others) Object.assign(place, old);
        compact(places);
        arranged();
        addEventListener('click', (click) => { click.stopPropagation(); click.preventDefault(); },
            { capture: true, once: true, signal: AbortSignal.timeout(50) });
    };
    addEventListener('pointermove', move, { signal: end.signal });
    addEventListener('pointerup', () => finish(false), { signal: end.signal });
    addEventListener('pointercancel', () => finish(true), { signal: end.signal });
    addEventListener('keydown', (key) => { if (key.key === 'Escape') finish(true); },
        { signal: end.signal, capture: true });
    if (what === 'size') event.preventDefault();
}
