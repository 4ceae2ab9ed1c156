/* Draw an input, and see what the network takes it for, while it learns. */
import { get, post } from '../api.js';
import { centre } from '../centre.js';
import { button, fill, h, toggle } from '../elements.js';
import { integer, percent } from '../format.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';
import { flatten, imageShape, paint } from '../pixels.js';
import { state } from '../store.js';

const soft = 0.45; /* what a stroke adds beside itself; its square at the corners */
const shown = 5; /* of the ranks */
const minimumCentred = 20; /* rows of an image: smaller ones are filled by what they show */

definePanel('draw', {
    icon: 'pencil',
    default: [{ tab: 'play', order: 1, options: { onlyWhereItFits: true } }],
    fits: (about) => about.classifies && imageShape(about.input) !== null,
    size: { w: 6, h: 11 }, minimum: { w: 4, h: 7 }, heights: { 6: 11, 1: 15 },
    create,
});

function create(panel) {
    let image = null, names = null, values = null, cursor = null, wanted = false, busy = false;
    const canvas = h('canvas', { class: 'draw-canvas', tabindex: '0', role: 'img', 'aria-label': t('draw.canvas') });
    const ranking = h('ol', { class: 'draw-prediction', 'aria-live': 'polite', 'aria-label': t('draw.prediction') });
    const rows = Array.from({ length: shown }, () => {
        const name = h('b'), bar = h('span', { class: 'draw-bar' }), share = h('span', { class: 'dim' });
        return { element: h('li', {}, name, h('span', { class: 'draw-track' }, bar), share), name, bar, share };
    });
    fill(ranking, rows.map((row) => row.element));
    const clear = button(t('draw.clear'), () => { values?.fill(0); show(); });
    let centred = true;
    const choice = h('div', { class: 'draw-choice', title: t('draw.centreHint') },
        toggle(t('draw.centre'), centred, (on) => { centred = on; predict(); }), h('span', { text: t('draw.centre') }));
    panel.body.append(h('div', { class: 'draw' }, canvas, h('div', { class: 'draw-side' }, ranking,
        h('p', { class: 'dim draw-hint', text: t('draw.hint') }), choice, clear)));

    function show() {
        if (!image) return;
        paint(canvas, flatten(values, image), image, 0, 1);
        if (document.activeElement === canvas && cursor) {
            const context = canvas.getContext('2d');
            context.fillStyle = 'rgb(44 196 171 / .55)';
            context.fillRect(cursor.column, cursor.row, 1, 1);
        }
        predict();
    }

    /* One prediction at a time, and always one for the newest picture. */
    async function predict() {
        if (!values) return;
        ranking.hidden = values.every((value) => value < 1e-6); /* of nothing there is nothing to say */
        if (ranking.hidden) {
            panel.setNote('');
            return;
        }
        wanted = true;
        if (busy) return;
        busy = true;
        while (wanted) {
            wanted = false;
            try {
                const inputs = centred && !choice.hidden ? centre(values, image) : values;
                const response = await post('predict', { trainer: panel.trainer(), inputs: Array.from(inputs) });
                tell(response);
                panel.clearError();
            } catch (error) {
                panel.fail(error, show);
                break;
            }
        }
        busy = false;
    }

    function tell(response) {
        const ranks = response.ranked?.[0] ?? [];
        panel.setNote(t('draw.iteration', { n: integer(response.iteration) }));
        rows.forEach((row, i) => {
            row.element.hidden = i >= ranks.length;
            if (i >= ranks.length) return;
            row.name.textContent = names?.[ranks[i].class] ?? String(ranks[i].class);
            row.bar.style.transform = `scaleX(${Math.max(0, Math.min(1, ranks[i].share ?? 0))})`;
            row.share.textContent = percent(ranks[i].share);
        });
    }

    function add(row, column, amount) {
        if (row < 0 || column < 0 || row >= image.rows || column >= image.columns) return;
        const place = row * image.columns + column, places = image.rows * image.columns;
        for (let c = 0; c < image.channels; c++) {
            const at = image.first ? c * places + place : place * image.channels + c;
            values[at] = Math.min(1, Math.max(0, values[at] + amount));
        }
    }

    function dab(row, column, erase) {
        const sharper = image.rows < 12 ? 1 : 0;
        for (let y = -1; y <= 1; y++)
            for (let x = -1; x <= 1; x++) {
                const distance = Math.abs(x) + Math.abs(y);
                add(row + y, column + x, (erase ? -1 : 1) * (distance === 0 ? 1 : soft ** (distance + sharper)));
            }
    }

    function at(event) {
        const box = canvas.getBoundingClientRect();
        return { row: Math.floor((event.clientY - box.top) / box.height * image.rows),
            column: Math.floor((event.clientX - box.left) / box.width * image.columns) };
    }

    /* A fast pointer leaves places out: they are joined. */
    let last = null;
    function stroke(event) {
        if (!image || event.buttons === 0) return;
        const place = at(event), from = last ?? place, erase = (event.buttons & 2) !== 0;
        const steps = Math.max(Math.abs(place.row - from.row), Math.abs(place.column - from.column));
        if (last && steps === 0) return;
        for (let i = last ? 1 : 0; i <= steps; i++) {
            const share = steps === 0 ? 0 : i / steps;
            dab(Math.round(from.row + share * (place.row - from.row)),
                Math.round(from.column + share * (place.column - from.column)), erase);
        }
        last = place;
        show();
    }

    canvas.addEventListener('pointerdown', (event) => {
        event.preventDefault();
        canvas.focus();
        canvas.setPointerCapture(event.pointerId);
        last = cursor = null;
        stroke(event);
    });
    canvas.addEventListener('pointermove', stroke);
    canvas.addEventListener('contextmenu', (event) => event.preventDefault());
    canvas.addEventListener('keydown', (event) => {
        const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
        if (!image || (!(event.key in moves) && ![' ', 'Delete', 'Backspace'].includes(event.key))) return;
        event.preventDefault();
        event.stopPropagation();
        cursor ??= { row: image.rows >> 1, column: image.columns >> 1 };
        if (event.key in moves) {
            cursor.row = Math.min(image.rows - 1, Math.max(0, cursor.row + moves[event.key][0]));
            cursor.column = Math.min(image.columns - 1, Math.max(0, cursor.column + moves[event.key][1]));
            show();
        } else {
            dab(cursor.row, cursor.column, event.key !== ' ');
            show();
        }
    });

    const reload = () => panel.load(async (signal) => {
        const play = await get('play', { trainer: panel.trainer() }, { signal });
        image = panel.kind.fits(play) ? imageShape(play.input) : null;
        names = play.names;
        panel.suit(image !== null, t('draw.none'));
        canvas.parentElement.hidden = image === null;
        if (!image) return;
        choice.hidden = Math.min(image.rows, image.columns) < minimumCentred;
        canvas.style.aspectRatio = `${image.columns} / ${image.rows}`;
        values = new Float32Array(image.rows * image.columns * image.channels);
        show();
    });
    panel.on('trainer', reload);
    panel.on('reconnected', reload);
    panel.on('theme', show);
    panel.every(500, () => { if (state.trainers.get(panel.trainer())?.state === 'running') predict(); });
    reload();
}
