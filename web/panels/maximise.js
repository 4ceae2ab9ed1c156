/* What the network takes for each class: inputs found by descent from noise. */
import { get, post } from '../api.js';
import { button, fill, h } from '../elements.js';
import { number } from '../format.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';
import { flatten, imageShape, paint } from '../pixels.js';

const maximumClasses = 100;

definePanel('maximise', {
    icon: 'eye',
    default: [{ tab: 'play', order: 2, options: { onlyWhereItFits: true } }],
    fits: (about) => about.classifies && imageShape(about.input) !== null,
    size: { w: 6, h: 11 }, minimum: { w: 3, h: 5 }, heights: { 6: 11, 1: 11 },
    options: { steps: 256 },
    create,
});

function create(panel) {
    let found = [], image = null, run = 0;
    const pictures = h('div', { class: 'pictures' });
    const start = button(t('maximise.start'), () => search());
    panel.tools.append(start);
    panel.body.append(h('div', { class: 'scroll' }, pictures));

    function show() {
        found.forEach(({ canvas, values }) => {
            if (!values) return;
            const flat = flatten(values, image), sorted = [...flat].sort((a, b) => a - b);
            paint(canvas, flat, image, sorted[0], sorted.at(-1));
        });
    }

    async function search() {
        const mine = ++run;
        start.disabled = true;
        await panel.load(async (signal) => {
            for (let i = 0; i < found.length && mine === run; i++) {
                found[i].element.classList.add('is-searching');
                const { steps } = panel.options;
                const answer = await post('maximise', { trainer: panel.trainer(), class: i, steps });
                if (signal.aborted) return;
                found[i].values = answer.values;
                found[i].note.textContent = t('maximise.cost', { cost: number(answer.cost, 2) });
                found[i].element.classList.remove('is-searching');
                show();
            }
        });
        start.disabled = false;
    }

    const reload = () => panel.load(async (signal) => {
        const play = await get('play', { trainer: panel.trainer() }, { signal });
        image = panel.kind.fits(play) ? imageShape(play.input) : null;
        start.hidden = image === null;
        panel.suit(image !== null, t('draw.none'));
        run++;
        found = image === null ? [] : Array.from({ length: Math.min(maximumClasses, play.output[0]) }, (_, i) => {
            const name = play.names?.[i] ?? String(i);
            const canvas = h('canvas', { width: image.columns, height: image.rows, role: 'img',
                'aria-label': t('maximise.picture', { name }) });
            const note = h('span', { class: 'dim' });
            const element = h('figure', { class: 'picture' }, canvas,
                h('figcaption', {}, h('b', { text: name }), note));
            return { canvas, note, values: null, element };
        });
        fill(pictures, found.map((one) => one.element));
    });
    panel.on('trainer', reload);
    panel.on('theme', show);
    reload();
}
