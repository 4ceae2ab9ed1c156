/* How a language model goes on with texts while it is trained: what the hook `sample` has said, newest first. The
 * server tells the newest of each prompt; older ones are those that came while the page was open. */
import { get } from '../api.js';
import { fill, h } from '../elements.js';
import { integer } from '../format.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';

const most = 200; /* that are shown */

definePanel('samples', {
    icon: 'pencil',
    default: [{ tab: 'play', order: 5, options: { onlyWhereItFits: true } }],
    fits: (about) => about.samples === true,
    size: { w: 6, h: 9 }, minimum: { w: 3, h: 5 }, heights: { 6: 9, 1: 12 },
    create,
});

function create(panel) {
    let said = [], fits = false;
    const list = h('ol', { class: 'samples', 'aria-label': t('panel.samples'), 'aria-live': 'polite' });
    const holder = h('div', { class: 'scroll', tabindex: '0' }, list);
    panel.body.append(holder);

    function row(one) {
        return h('li', {}, h('div', { class: 'dim', text: t('samples.at', { epoch: integer(one.epoch),
            iteration: integer(one.iteration) }) }),
        h('p', { class: 'written' }, h('b', { text: one.prompt }), one.text));
    }

    function show() {
        panel.setNote(said.length > 0 ? t('samples.epoch', { n: integer(said[0].epoch) }) : '');
        panel.suit(fits, t('samples.none'));
        fill(list, said.map(row));
    }

    const read = async (trainer, signal) => (await get('samples', { trainer }, { signal })).samples;

    const same = (a, b) => a.iteration === b.iteration && a.prompt === b.prompt;

    const renew = () => panel.load(async (signal) => {
        const trainer = panel.present();
        if (trainer === null || !fits) return;
        const newest = await read(trainer, signal);
        if (trainer !== panel.present()) return;
        const added = newest.filter((one) => !said.some((other) => same(one, other)));
        if (added.length === 0) return;
        said = [...added, ...said].sort((a, b) => b.iteration - a.iteration).slice(0, most);
        show();
    });

    const reload = () => panel.load(async (signal) => {
        said = [];
        const trainer = panel.present();
        const about = trainer === null ? {} : await get('play', { trainer }, { signal });
        fits = panel.kind.fits(about);
        if (fits) said = await read(trainer, signal);
        show();
    });
    panel.on('trainer', reload);
    panel.on('reconnected', reload);
    panel.every(2000, renew);
    reload();
}
