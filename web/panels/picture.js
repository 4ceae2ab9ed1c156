/* Parameters as pictures: what goes into a unit as an image of the input, filters, matrices. One colour for what is
 * below zero and one for what is above, strong where it is far from it. */
import { get } from '../api.js';
import { button, fill, h, setText } from '../elements.js';
import { integer, number } from '../format.js';
import { TensorChoice, tensorOf } from '../inspect/tensors.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';
import { state } from '../store.js';
import { colour } from '../theme.js';

definePanel('picture', {
    icon: 'eye',
    tab: 'inspect', order: 4,
    size: { w: 12, h: 11 }, least: { w: 3, h: 5 }, heights: { 6: 11, 1: 12 },
    options: { tensor: '' },
    create,
});

const page = 64;

function rgb(name) {
    const context = document.createElement('canvas').getContext('2d');
    context.fillStyle = colour(name);
    context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data;
}

function paintSigned(canvas, values, rows, columns, peak, inks) {
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext('2d'), data = context.createImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) {
        const share = Math.sqrt(Math.min(1, Math.abs(values[i] ?? 0) / peak)), ink = values[i] < 0 ? inks.below
            : inks.above;
        for (let c = 0; c < 3; c++) data.data[4 * i + c] = inks.ground[c] + share * (ink[c] - inks.ground[c]);
        data.data[4 * i + 3] = 255;
    }
    context.putImageData(data, 0, 0);
}

function create(panel) {
    let found = null, index = 0;
    const pictures = h('div', { class: 'tensor-pictures' }), scale = h('span', { class: 'dim' });
    const choice = new TensorChoice(t('histogram.tensor'), (name) => turn(name));
    const before = button('‹', () => go(-page), { class: 'button', 'aria-label': t('picture.before') }),
        after = button('›', () => go(page), { class: 'button', 'aria-label': t('picture.after') });
    panel.body.append(h('div', { class: 'toolbar' }, choice.element, before, after, scale),
        h('div', { class: 'scroll' }, pictures));

    function draw() {
        if (!found) return;
        const { rows, columns, count, values } = found, each = rows * columns;
        const inks = { ground: rgb('raised'), above: rgb('series-1'), below: rgb('series-3') };
        const peak = Math.max(Math.abs(found.least), Math.abs(found.most)) || 1;
        while (pictures.children.length > count) pictures.lastChild.remove();
        while (pictures.children.length < count) pictures.append(h('canvas', { class: 'tensor-picture', role: 'img' }));
        pictures.classList.toggle('is-one', found.pictures === 1);
        pictures.style.setProperty('--side', `${Math.max(28, Math.min(96, columns * 8))}px`);
        [...pictures.children].forEach((canvas, i) => {
            paintSigned(canvas, values.slice(i * each, (i + 1) * each), rows, columns, peak, inks);
            canvas.title = `${choice.element.value} ${integer(found.index + i)}`;
            canvas.setAttribute('aria-label', canvas.title);
        });
        setText(scale, t('picture.range', { least: number(found.least, 3), most: number(found.most, 3) }));
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
        if (found && state.trainers.get(panel.trainer())?.iteration !== found.iteration) panel.load(look);
    });
    panel.on('trainer', () => { index = 0; begin(); });
    panel.on('reconnected', begin);
    panel.on('theme', draw);
    panel.on('look', ({ trainer, identifier }) => {
        if (trainer === panel.trainer() && choice.has(tensorOf(identifier))) turn(tensorOf(identifier));
    });
    begin();
}
