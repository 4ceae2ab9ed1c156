/* Text as a language model would go on with it. */
import { get, post } from '../api.js';
import { button, fill, h, labelled } from '../elements.js';
import { fixed, integer } from '../format.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';

definePanel('text', {
    icon: 'pencil',
    default: [{ tab: 'play', order: 4, options: { onlyWhereItFits: true } }],
    fits: (about) => about.output.at(-1) === 256,
    size: { w: 6, h: 9 }, minimum: { w: 3, h: 6 }, heights: { 6: 9, 1: 12 },
    options: { begin: 'The ', temperature: 0.7, length: 200 },
    create,
});

function create(panel) {
    const begin = h('input', { class: 'input', value: panel.options.begin, 'aria-label': t('text.begin'),
        maxlength: 500, on: { change: () => panel.setOption('begin', begin.value) } });
    const warmth = h('output', { class: 'dim', text: fixed(panel.options.temperature, 2) });
    const temperature = h('input', { type: 'range', min: 0, max: 2, step: 0.05, value: panel.options.temperature,
        on: { input: () => { warmth.textContent = fixed(Number(temperature.value), 2); },
            change: () => panel.setOption('temperature', Number(temperature.value)) } });
    const written = h('p', { class: 'written', 'aria-live': 'polite' });
    const go = button(t('text.go'), null, { type: 'submit' });
    const form = h('form', { class: 'toolbar', on: { submit: (event) => { event.preventDefault(); sample(); } } },
        begin, go);
    const holder = h('div', { class: 'text-holder', hidden: true }, form,
        h('div', { class: 'toolbar' }, labelled(t('text.temperature'), temperature), warmth),
        h('div', { class: 'scroll', tabindex: '0' }, written));
    panel.body.append(holder);

    async function sample() {
        go.disabled = true;
        await panel.load(async () => {
            const { length } = panel.options;
            const answer = await post('sample', { trainer: panel.trainer(), text: begin.value, length,
                temperature: panel.options.temperature });
            panel.setNote(t('draw.iteration', { n: integer(answer.iteration) }));
            fill(written, h('b', { text: begin.value }), answer.text.slice(begin.value.length));
        });
        go.disabled = false;
    }

    const reload = () => panel.load(async (signal) => {
        const about = await get('play', { trainer: panel.trainer() }, { signal });
        const fits = panel.kind.fits(about);
        holder.hidden = !fits;
        panel.suit(fits, t('text.none'));
        written.textContent = '';
        panel.setNote('');
    });
    panel.on('trainer', reload);
    reload();
}
