/* What was done to a run, in order. Each deed can be switched off: a replay is the run without it. */
import { get, post } from '../api.js';
import { button, fill, h } from '../elements.js';
import { integer } from '../format.js';
import { t } from '../language.js';
import { announce, errorText } from '../overlays.js';

const seconds = 2;

/* chart: see run_chart.js. The section looks at replays that train as long as it is on the page. */
export function createTimeline(run, chart) {
    const name = encodeURIComponent(run.name), off = new Set();
    const list = h('div', { class: 'run-deeds scroll', tabindex: '0' }), states = h('ul', { class: 'run-replays' });
    const problem = h('p', { class: 'form-error', role: 'alert', hidden: true });
    const go = button('', () => begin(false), { class: 'button is-primary', 'data-needs': 'admin' });
    const hint = h('p', { class: 'dim' });
    const element = h('section', { class: 'run-section', hidden: true },
        h('h3', { text: t('runs.interventions') }), hint, list, h('div', { class: 'run-replay' }, go), problem, states);
    let answer = { interventions: [], replays: [], can_replay: false }, timer = 0;

    function fail(error) {
        problem.textContent = error === null ? '' : errorText(error);
        problem.hidden = error === null;
    }

    async function begin(inexact) {
        go.disabled = true;
        fail(null);
        try {
            const { into } = await post('run-replay', { name: run.name, without: [...off], inexact });
            announce(t('runs.replay_running', { name: into }));
            await look();
        } catch (error) {
            fail(error);
        }
        go.disabled = false;
    }

    function tell() {
        go.textContent = off.size > 0 ? t('runs.replay_without', { n: integer(off.size) }) : t('runs.replay');
        chart.show({ interventions: answer.interventions, off });
    }

    function switchOf(one) {
        const change = () => {
            if (box.checked) off.delete(one.number);
            else off.add(one.number);
            box.closest('tr').classList.toggle('is-off', !box.checked);
            tell();
        };
        const box = h('input', { type: 'checkbox', 'aria-label': t('runs.keep_in', { what: one.text }),
            on: { change } });
        box.checked = true;
        return box;
    }

    function showList() {
        const can = answer.can_replay;
        const head = [...(can ? ['runs.kept'] : []), 'axis.iteration', 'runs.who', 'runs.what'];
        const rows = answer.interventions.map((one) => h('tr', {},
            can ? h('td', {}, one.removable ? switchOf(one) : null) : null,
            h('td', { class: 'is-number', text: integer(one.iteration) }), h('td', { class: 'is-who', text: one.who }),
            h('td', {}, h('div', { class: 'mono', text: one.text }),
                one.reason ? h('div', { class: 'dim', text: one.reason }) : null)));
        fill(list, h('table', { class: 'table' }, h('thead', {}, h('tr', {}, head.map((key) =>
            h('th', { scope: 'col', class: key === 'axis.iteration' ? 'is-number' : null, text: t(key) })))),
        h('tbody', {}, rows)));
        list.hidden = rows.length === 0;
        hint.textContent = t(rows.length === 0 ? 'runs.nothing_done' : 'runs.interventions_hint');
        hint.hidden = !can;
        go.hidden = !can;
        element.hidden = rows.length === 0 && !can;
    }

    /* A replay that cannot have the same bits is refused with its reasons, and a person may want it all the same. */
    function stateOf({ into, state, message }) {
        const refused = state === 'failed' && /cannot give the same bits/.test(message);
        return h('li', { class: `is-${state}` }, h('span', { text: t(`runs.replay_${state}`, { name: into }) }),
            message ? h('pre', { class: 'run-refusal scroll', tabindex: '0', text: message }) : null,
            refused ? button(t('runs.replay_inexact'), () => begin(true), { class: 'button is-quiet' }) : null);
    }

    async function showReplays() {
        const known = answer.replays.filter((replay) => replay.begun);
        const runs = await Promise.all(known.map(({ into }) =>
            get(`run/${encodeURIComponent(into)}`).catch(() => null)));
        fill(states, answer.replays.map(stateOf));
        chart.show({ replays: runs.filter((one) => one && Object.keys(one.metrics).length > 0) });
    }

    async function look() {
        clearTimeout(timer);
        answer = await get(`run-interventions/${name}`);
        await showReplays();
        if (answer.replays.some((replay) => replay.state === 'running'))
            timer = setTimeout(() => { if (element.isConnected) look().catch(fail); }, seconds * 1000);
    }

    async function load() {
        try {
            await look();
            showList();
            tell();
        } catch (error) { /* such as a journal that is damaged */
            element.hidden = false;
            go.hidden = hint.hidden = list.hidden = true;
            fail(error);
        }
    }

    load();
    return element;
}
