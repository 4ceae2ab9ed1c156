/* Requests that wait for an administrator: who asks for what, and why; who may decides here. */
import { command } from './api.js';
import { button, fill, h, icon } from './elements.js';
import { whoText } from './change.js';
import { t } from './language.js';
import { toast, toastError } from './overlays.js';
import { on, state } from './store.js';

const told = ['identifier', 'value', 'name', 'hook', 'iterations', 'number'];
const waiting = new Map(); /* trainer -> its requests */

export function initApprovals(place) {
    on('approvals', ({ trainer }) => load(place, trainer));
    on('session', () => loadAll(place));
    on('language', () => show(place));
    on('reconnected', () => loadAll(place));
    loadAll(place);
}

function loadAll(place) {
    for (const [name, trainer] of state.trainers)
        if (!trainer.gone && !waiting.has(name)) load(place, name);
}

async function load(place, trainer) {
    const { requests } = await command(trainer, 'pending').catch(() => ({ requests: [] }));
    waiting.set(trainer, requests.filter((one) => one.state === 'pending'));
    show(place);
    /* One that nobody decides leaves by itself. */
    const first = Math.min(...waiting.get(trainer).map((one) => one.expires));
    if (Number.isFinite(first)) setTimeout(() => load(place, trainer),
        Math.max(1, first - Date.now() / 1000 + 1) * 1000);
}

async function decide(trainer, one, what) {
    try {
        await command(trainer, what, { number: one.number });
        toast(t(`approval.done_${what}`));
    } catch (error) {
        toastError(error);
    }
}

function row(trainer, one) {
    const words = [one.command, ...told.map((key) => one.request[key]).filter((value) => value !== undefined),
        ...Object.entries(one.request.set ?? {}).map(([name, value]) => `${name} = ${value}`)];
    return h('div', { class: 'notice approval' }, icon('help'),
        h('div', { class: 'approval-text' }, h('span', {}, `${t('approval.asks', { who: whoText(one.who) })} `,
            h('b', { class: 'mono', text: words.join(' ') }),
            state.trainers.size > 1 ? h('span', { class: 'dim', text: ` ${trainer}` }) : null),
        one.reason ? h('span', { class: 'dim', text: one.reason }) : null),
        h('div', { class: 'approval-buttons', 'data-needs': 'admin' },
            button(t('approval.approve'), () => decide(trainer, one, 'approve'), { class: 'button is-primary' }),
            button(t('approval.deny'), () => decide(trainer, one, 'deny'))));
}

function show(place) {
    fill(place, [...waiting].flatMap(([trainer, list]) => list.map((one) => row(trainer, one))));
}
