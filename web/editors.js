/* Editors of values, one for each kind: number (with a slider where the range has ends or the value is above 0),
 * choice, switch, text; what cannot be set is only shown. Each: {element, update(entry), busy()}. */
import { h, select, setText, setToggle, toggle } from './elements.js';
import { number, parse, plain } from './format.js';
import { t } from './language.js';
import { may } from './role.js';

const positions = 1000; /* of a slider */
const endless = 1e8; /* a range that is wider has no use as a whole */
const decades = 3; /* below and above, of a slider without ends */

export function editorOf(entry, set) {
    if (!entry.settable || entry.kind === 'tensor' || !may('steer')) return readOnly(entry);
    if (entry.kind === 'boolean') return switchOf(entry, set);
    if (entry.choices?.length) return choiceOf(entry, set);
    if (entry.kind === 'number' || entry.kind === 'integer') return numberOf(entry, set);
    return textOf(entry, set);
}

function valueText(entry) {
    if (entry.value === null || entry.value === undefined) return entry.text ?? '–';
    if (entry.kind === 'number') return number(entry.value, 6);
    if (entry.kind === 'integer') return number(entry.value);
    if (entry.kind === 'boolean') return t(entry.value ? 'value.true' : 'value.false');
    return typeof entry.value === 'object' ? entry.text ?? JSON.stringify(entry.value) : String(entry.value);
}

function readOnly(entry) {
    const element = h('span', { class: `value is-${entry.kind}` });
    const update = (now) => {
        setText(element, valueText(now));
        element.title = element.textContent.length > 24 ? element.textContent : '';
    };
    update(entry);
    return { element, update, busy: () => false };
}

function switchOf(entry, set) {
    const element = toggle(entry.identifier, entry.value === true, (on) => set(String(on)));
    return { element, update: (now) => setToggle(element, now.value === true), busy: () => false };
}

function choiceOf(entry, set) {
    const choices = entry.choices.includes(entry.value) ? entry.choices : [entry.value ?? '', ...entry.choices];
    const element = select(choices.map((choice) => [choice, choice]), entry.value, set,
        { 'aria-label': entry.identifier });
    return { element, update: (now) => { element.value = now.value ?? ''; },
        busy: () => document.activeElement === element };
}

/* Enter or leaving sends it, once; Escape brings back what it was. */
function commit(input, shown, send) {
    let sent = null;
    const once = () => {
        if (input.value === sent) return;
        sent = input.value;
        send();
    };
    input.addEventListener('input', () => { sent = null; });
    input.addEventListener('keydown', (event) => {
        if (event.key === 'Enter') {
            event.preventDefault();
            once();
        }
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        input.value = shown();
        input.classList.remove('is-bad');
        input.blur();
        sent = null;
        input.dispatchEvent(new CustomEvent('givenup', { bubbles: true }));
    });
    input.addEventListener('change', once);
}

function textOf(entry, set) {
    let { value } = entry;
    const input = h('input', { class: 'input', value: plain(value), 'aria-label': entry.identifier, autocomplete: 'off',
        spellcheck: 'false' });
    commit(input, () => plain(value), () => { if (input.value !== plain(value)) set(input.value); });
    return { element: input, busy: () => document.activeElement === input, update(now) {
        value = now.value;
        input.value = plain(value);
    } };
}

/* The range of the slider; null: none. */
function rangeOf({ minimum, maximum, value, default: preset, kind }) {
    if (value === null || value === undefined) return null; /* the optimiser that runs does not have it */
    const low = minimum ?? -Infinity, high = maximum ?? Infinity;
    if (high - low <= endless) return { low, high, log: kind === 'integer' && high - low > 10000, open: false };
    const middle = value > 0 ? value : preset > 0 ? preset : null;
    if (middle === null || low < 0) return null;
    return { low: Math.max(low || 0, middle / 10 ** decades), high: Math.min(high, middle * 10 ** decades), log: true,
        open: true };
}

function numberOf(entry, set) {
    let now = entry, range = rangeOf(entry);
    const input = h('input', { class: 'input is-number', value: plain(entry.value), inputmode: 'decimal',
        'aria-label': entry.identifier, autocomplete: 'off' });
    const slider = h('input', { class: 'slider', type: 'range', min: 0, max: positions, step: 1,
        'aria-label': t('editor.slider', { name: entry.identifier }) });
    const log = h('button', { type: 'button', class: 'editor-log', title: t('editor.log'),
        'aria-label': t('editor.log'), text: 'log', on: { click: () => {
        range.log = !range.log;
        place();
    } } });
    const element = h('div', { class: 'editor-number' }, slider, log, input);
    const logBase = () => (range.low > 0 ? range.low : Math.min(range.high / 10 ** (2 * decades),
        now.value > 0 ? now.value / 10 : 1));
    const valueAt = (position) => {
        const share = position / positions;
        let value = range.low + share * (range.high - range.low);
        if (range.log) value = share === 0 && range.low === 0 ? 0 : logBase() * (range.high / logBase()) ** share;
        return now.kind === 'integer' ? Math.round(value) : Number(value.toPrecision(3));
    };
    const positionOf = (value) => {
        if (range.log) return value <= 0 ? 0
            : positions * Math.log(value / logBase()) / Math.log(range.high / logBase());
        return positions * (value - range.low) / (range.high - range.low || 1);
    };
    function place() {
        slider.hidden = log.hidden = range === null;
        if (range === null) return;
        log.hidden = range.low < 0;
        log.setAttribute('aria-pressed', String(range.log));
        if (range.open && (now.value > range.high || (now.value > 0 && now.value < range.low))) range = {
            ...rangeOf(now), log: range.log };
        slider.value = Math.max(0, Math.min(positions, positionOf(now.value)));
        slider.style.setProperty('--share', `${slider.value / positions * 100}%`);
        slider.setAttribute('aria-valuetext', plain(now.value));
    }
    function send() {
        const value = parse(input.value);
        const wrong = Number.isNaN(value) || (now.kind === 'integer' && !Number.isInteger(value));
        input.classList.toggle('is-bad', wrong);
        if (wrong) set(input.value); /* the server says what it expected */
        else if (value !== now.value) set(plain(value));
    }
    if (entry.value === null) input.placeholder = t('editor.unused');
    commit(input, () => plain(now.value), send);
    input.addEventListener('keydown', (event) => {
        const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
        if (!by || now.kind !== 'integer' || Number.isNaN(parse(input.value))) return;
        event.preventDefault();
        input.value = plain(parse(input.value) + by);
    });
    slider.addEventListener('input', () => {
        input.value = plain(valueAt(slider.value));
        slider.style.setProperty('--share', `${slider.value / positions * 100}%`);
        slider.setAttribute('aria-valuetext', input.value);
    });
    slider.addEventListener('change', () => set(plain(valueAt(slider.value))));
    place();
    return { element, busy: () => element.contains(document.activeElement) && document.activeElement !== log
        && input.value !== plain(now.value), update(fresh) {
        now = fresh;
        range = fresh.value === null ? null : range ?? rangeOf(fresh);
        input.placeholder = fresh.value === null ? t('editor.unused') : '';
        if (input.value !== plain(fresh.value)) input.value = plain(fresh.value);
        input.classList.remove('is-bad');
        place();
    } };
}
