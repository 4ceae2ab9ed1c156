/* One run as a whole: how it ended and why, its curve with what was changed, its configuration, its log. */
import { get } from '../api.js';
import { button, fill, h } from '../elements.js';
import { duration, integer, moment, number } from '../format.js';
import { t } from '../language.js';
import { dialogue, errorText } from '../overlays.js';
import { metricsOf } from './columns.js';
import { createRunChart } from './run_chart.js';
import { createTimeline } from './timeline.js';

const maximumRows = 200;

function section(title, ...content) {
    return h('section', { class: 'run-section' }, h('h3', { text: title }), ...content);
}

function facts(run) {
    const bests = metricsOf([run]).filter((key) => /(^|\.)(loss|accuracy)$/.test(key)).map((key) => [key,
        t(key.endsWith('loss') ? 'runs.minimum_was' : 'runs.maximum_was', { newest: number(run.metrics[key]),
            value: number(run[key.endsWith('loss') ? 'minimum' : 'maximum'][key]) })]);
    const rows = [[t('runs.state'), t(`runs.state.${run.state}`)], [t('runs.epochs'), integer(run.epochs)],
        [t('axis.iteration'), integer(run.iteration)], [t('runs.seconds'), duration(run.seconds)],
        [t('runs.started'), moment(run.started)], ...bests];
    return h('dl', { class: 'run-facts' }, rows.map(([name, value]) => h('div', {}, h('dt', { text: name }),
        h('dd', { text: value }))));
}

function notesOf({ note, tags }) {
    if (note === '' && tags.length === 0) return null;
    return section(t('runs.note'), tags.length > 0 ? h('p', { class: 'runs-tags' }, tags.map((tag) =>
        h('span', { class: 'badge', text: tag }))) : null, h('p', { class: 'run-note', text: note }));
}

const shownValue = (value) => (typeof value === 'number' ? number(value) : typeof value === 'string' ? value
    : JSON.stringify(value));

function changesOf({ changes }) {
    if (changes.length === 0) return null;
    const rows = changes.slice(-maximumRows).reverse().map((change) => h('tr', {},
        h('td', { class: 'is-number', text: integer(change.iteration) }), h('td', { text: change.who ?? '' }),
        h('td', {}, h('div', { class: 'mono', text: change.what ?? '' }),
            change.reason ? h('div', { class: 'dim', text: change.reason }) : null),
        h('td', { class: 'mono', text: `${shownValue(change.old)} → ${shownValue(change.new)}` })));
    const head = ['axis.iteration', 'runs.who', 'runs.what', 'runs.value'].map((key, i) =>
        h('th', { scope: 'col', class: i === 0 ? 'is-number' : null, text: t(key) }));
    return section(t('runs.changes'), h('div', { class: 'run-box scroll', tabindex: '0' },
        h('table', { class: 'table' }, h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows))));
}

function configurationOf({ configuration, configuration_error: error }) {
    const keys = Object.keys(configuration);
    if (keys.length === 0) return section(t('runs.group.configuration'),
        h('p', { class: 'dim', text: error ?? t('runs.no_configuration') }));
    return section(t('runs.group.configuration'), h('div', { class: 'run-box scroll', tabindex: '0' },
        h('table', { class: 'table' }, h('tbody', {}, keys.map((key) => h('tr', {},
            h('th', { scope: 'row', class: 'mono', text: key }),
            h('td', { class: 'mono', text: String(configuration[key]) })))))));
}

/* The newest at the end, and in sight. */
function logOf({ lines, cut }) {
    const box = h('pre', { class: 'run-log scroll', tabindex: '0', 'aria-label': t('runs.log_title') },
        cut ? h('span', { class: 'dim', text: `${t('runs.log_cut')}\n` }) : null, lines.map((line) => {
            const level = / (error|warning) /.exec(line.slice(0, 60))?.[1];
            return h('span', { class: level ? `is-${level}` : null, text: `${line}\n` });
        }));
    requestAnimationFrame(() => { box.scrollTop = box.scrollHeight; });
    return section(t('runs.log_title'), lines.length > 0 ? box : h('p', { class: 'dim', text: t('runs.no_log') }));
}

export function openRun(run) {
    const content = h('div', { class: 'run-detail' }, h('p', { class: 'dim', text: t('runs.loading') }));
    const load = async () => {
        const name = encodeURIComponent(run.name);
        try {
            const [whole, log] = await Promise.all([get(`run/${name}`), get(`run-log/${name}`)]);
            const chart = createRunChart(whole);
            fill(content, whole.reason ? h('p', { class: `run-reason is-${whole.state}`, text: whole.reason }) : null,
                facts(whole), notesOf(whole), chart.element, createTimeline(whole, chart), changesOf(whole),
                configurationOf(whole), logOf(log));
        } catch (error) {
            fill(content, h('p', { class: 'form-error', text: errorText(error) }),
                button(t('panel.again'), load));
        }
    };
    const closed = dialogue({ title: run.name, content, wide: true });
    content.closest('dialog').classList.add('run-dialogue');
    load();
    return closed;
}
