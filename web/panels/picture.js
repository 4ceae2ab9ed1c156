/* Parameters as pictures: what goes into a unit as an image of the input, filters, matrices. */
import { get } from '../api.js';
import { button, fill, h, setText } from '../elements.js';
import { integer, number } from '../format.js';
import { TensorChoice, tensorOf } from '../inspect/tensors.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';
import { paintSigned } from '../pixels.js';
import { state } from '../store.js';

definePanel('picture', {
    icon: 'eye',
    tab: 'inspect', order: 4,
    size: { w: 12, h: 11 }, minimum: { w: 3, h: 5 }, heights: { 6: 11, 1: 12 },
    options: { tensor: '' },
    create,
});

const page = 64;
const gap = 8; /* pixels between two pictures, as in the style */

/* How wide pictures are, in pixels, so that as many as there are fill the room: small filters are seen, too. */
function sideFor(count, { rows, columns }, { width, height }) {
    const least = Math.max(28, Math.min(96, columns * 8)), most = Math.max(least, Math.min(160, columns * 32));
    const fits = (side) => Math.floor((width + gap) / (side + gap))
        * Math.floor((height + gap) / (side * rows / columns + gap)) >= count;
    let side = most;
    while (side > least && !fits(side)) side -= 4;
    return Math.max(least, side);
}

function create(panel) {
    let found = null, index = 0;
    const pictures = h('div', { class: 'tensor-pictures' }), room = h('div', { class: 'scroll' }, pictures);
    const scale = h('span', { class: 'dim' });
    const choice = new TensorChoice(t('histogram.tensor'), (name) => turn(name));
    const before = button('‹', () => go(-page), { class: 'button', 'aria-label': t('picture.before') }),
        after = button('›', () => go(page), { class: 'button', 'aria-label': t('picture.after') });
    panel.body.append(h('div', { class: 'toolbar' }, choice.element, before, after, scale), room);

    function fit() {
        const size = { width: room.clientWidth, height: room.clientHeight };
        if (found && size.width > 0) pictures.style.setProperty('--side', `${sideFor(found.count, found, size)}px`);
    }

    function draw() {
        if (!found) return;
        const { rows, columns, count, values } = found, each = rows * columns;
        const peak = Math.max(Math.abs(found.minimum), Math.abs(found.maximum)) || 1;
        while (pictures.children.length > count) pictures.lastChild.remove();
        while (pictures.children.length < count) pictures.append(h('canvas', { class: 'tensor-picture', role: 'img' }));
        pictures.classList.toggle('is-one', found.pictures === 1);
        fit();
        [...pictures.children].forEach((canvas, i) => {
            paintSigned(canvas, values.slice(i * each, (i + 1) * each), found, peak);
            canvas.title = `${choice.element.value} ${integer(found.index + i)}`;
            canvas.setAttribute('aria-label', canvas.title);
        });
        setText(scale, t('picture.range', { minimum: number(found.minimum, 3), maximum: number(found.maximum, 3) }));
        before.hidden = after.hidden = found.pictures <= page;
        before.disabled = found.index === 0;
        after.disabled = found.index + count >= found.pictures;
        panel.setNote(found.pictures > 1 ? t('picture.count', { first: integer(found.index), last: integer(found.index
            + count - 1), n: integer(found.pictures), rows, columns }) : `${rows} × ${columns}`);
    }

    async function look(signal) {
        const name = choice.element.value;
        const answer = await get('picture', { trainer: panel.trainer(), id: `network.layers.${name}`, index,
            count: page }, { signal });
        if (name !== choice.element.value) return;
        found = answer;
        draw();
    }

    function turn(name) {
        panel.setOption('tensor', name);
        choice.element.value = name;
        index = 0;
        panel.load(look);
    }

    function go(step) {
        index = Math.max(0, index + step);
        panel.load(look);
    }

    const begin = () => panel.load(async (signal) => {
        if (panel.trainer() === null) return;
        const name = await choice.load(panel.trainer(), panel.options.tensor, signal);
        panel.empty(name === null ? t('histogram.no_parameters') : null);
        if (name !== null) await look(signal);
        else fill(pictures);
    });

    panel.every(2000, () => {
        if (found && state.trainers.get(panel.trainer())?.iteration !== found.iteration) panel.renew(look);
    });
    panel.on('trainer', () => { index = 0; begin(); });
    panel.on('reconnected', begin);
    panel.on('theme', draw);
    panel.on('look', ({ trainer, identifier }) => {
        if (trainer === panel.trainer() && choice.has(tensorOf(identifier))) turn(tensorOf(identifier));
    });
    begin();
    return { resize: fit, shown: fit };
}
