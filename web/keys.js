/* Keys of the whole page, and the page that lists them. */
import { h } from './elements.js';
import { t } from './language.js';
import { layout, showTab } from './layout.js';
import { dialogue } from './overlays.js';
import { switchTheme } from './theme.js';
import { playOrPause, step } from './transport.js';

const acts = {
    ' ': playOrPause,
    s: () => step(1),
    '?': showHelp,
    t: switchTheme,
    '/': focusSearch,
};

const listed = [
    ['keys.space', 'keys.play'], ['s', 'keys.step'], ['1 – 9', 'keys.tab'], ['/', 'keys.search'], ['t', 'keys.theme'],
        ['?', 'keys.help'],
    null,
    ['keys.arrows', 'keys.move'], ['keys.shift_arrows', 'keys.size'], ['Esc', 'keys.escape'],
    null,
    ['+  −  0', 'keys.zoom'], ['←  →', 'keys.pan'],
];

/* What has the focus because it was clicked does not take the space key: it is the page's again. */
let byKeys = false;
const movers = new Set(['Tab', 'ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End']);

/* Not where keys have a meaning of their own. */
function isTaken(event) {
    const { target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector('dialog[open]')) return true;
    if (target.closest('input, select, textarea, [contenteditable], [role="menu"], [role="slider"]')) return true;
    if (event.key !== ' ' || !byKeys) return false;
    return target.matches('.scroll') /* it scrolls */
        || target.closest('button, a, summary, [role="tab"], [role="switch"]') !== null;
}

export function initKeys() {
    let taken = false;
    addEventListener('pointerdown', () => { byKeys = false; }, true);
    addEventListener('keydown', (event) => { if (movers.has(event.key)) byKeys = true; }, true);
    addEventListener('keyup', (event) => { /* else it would press the button that has the focus */
        if (event.key === ' ' && taken) event.preventDefault();
        taken = false;
    }, true);
    addEventListener('keydown', (event) => {
        if (event.defaultPrevented || isTaken(event)) return;
        const act = /^[1-9]$/.test(event.key) ? () => showTab(Math.min(Number(event.key), layout.tabs.length) - 1)
            : acts[event.key];
        if (!act) return;
        event.preventDefault();
        taken = event.key === ' ';
        if (!event.repeat || event.key === 's') act();
    });
}

function focusSearch() {
    [...document.querySelectorAll('main input[type="search"]')].find((input) => input.offsetParent !== null)?.focus();
}

export function showHelp() {
    const name = (text) => (text.startsWith('keys.') ? t(text) : text);
    const rows = listed.map((row) => (row === null ? h('hr') : h('div', { class: 'keys-row' },
        h('kbd', { text: name(row[0]) }), h('span', { text: t(row[1]) }))));
    return dialogue({ title: t('keys.title'), content: h('div', { class: 'keys' }, rows,
        h('p', { class: 'dim', text: t('keys.panels') })) });
}
