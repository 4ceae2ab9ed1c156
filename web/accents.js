/* The colour of each trainer: one that a person chose on this page, else the program's, else the page's own, by
 * the trainer's place. A colour is a number of the palette (styles/base.css), which follows light and dark, or
 * "#rrggbb". */
import { fill, h, iconButton } from './elements.js';
import { t } from './language.js';
import { popover } from './overlays.js';
import { emit, state } from './store.js';
import { paletteSize, seriesColour } from './theme.js';

const key = () => `sigma.colours.${state.session?.name ?? ''}`;

function chosen() {
    try {
        return JSON.parse(localStorage.getItem(key())) ?? {};
    } catch {
        return {};
    }
}

/* Null: back to the one that it had. */
export function chooseAccent(trainer, value) {
    const all = chosen();
    if (value === null) delete all[trainer];
    else all[trainer] = value;
    try {
        localStorage.setItem(key(), JSON.stringify(all));
    } catch {
        /* private windows have no storage */
    }
    emit('colours');
}

export function accentChoice(trainer) {
    const place = [...state.trainers.keys()].indexOf(trainer);
    const given = chosen()[trainer] ?? state.session?.colours?.[trainer];
    return given ?? Math.max(0, place) + 1;
}

export function accentOf(trainer) {
    const choice = accentChoice(trainer);
    return typeof choice === 'number' ? seriesColour(choice) : choice;
}

export function accentDot(trainer) {
    const dot = h('span', { class: 'accent-dot' });
    dot.style.background = accentOf(trainer);
    return dot;
}

/* Written as browsers' own choosers want it. */
const hex = (text) => (/^#[0-9a-f]{6}$/i.test(text) ? text : '#808080');

function accentRow(trainer, changed) {
    const choice = accentChoice(trainer);
    const choose = (value) => { chooseAccent(trainer, value); changed(); };
    const numbers = Array.from({ length: paletteSize }, (_, i) => i + 1);
    const own = h('input', { type: 'color', class: 'accent-own', value: hex(accentOf(trainer)), title: t('colours.own'),
        'aria-label': t('colours.own_of', { trainer }),
        on: { change: (event) => choose(event.target.value) } });
    return h('div', { class: 'accent-row', role: 'group', 'aria-label': trainer }, accentDot(trainer),
        h('span', { class: 'accent-name', text: trainer }),
        h('span', { class: 'accent-choices' }, numbers.map((number) => {
            const element = h('button', { type: 'button', class: 'accent-choice', data: { number },
                title: t('colours.number', { number }),
                'aria-label': t('colours.number_of', { number, trainer }),
                'aria-pressed': String(choice === number), on: { click: () => choose(number) } });
            element.style.background = seriesColour(number);
            return element;
        }), own, iconButton('reset', t('colours.reset_of', { trainer }), () => choose(null))));
}

/* All trainers with their colours, to be changed. */
export function showAccents(anchor) {
    const list = h('div', { class: 'accent-list' });
    const build = () => {
        const { activeElement } = document, label = activeElement?.getAttribute('aria-label');
        fill(list, [...state.trainers.keys()].map((trainer) => accentRow(trainer, build)));
        [...list.querySelectorAll('[aria-label]')].find((element) => element.getAttribute('aria-label') === label)
            ?.focus(); /* keys go on where they were */
    };
    build();
    popover(anchor, h('div', {}, h('p', { class: 'menu-heading', text: t('colours.title') }), list),
        t('colours.title'));
}
