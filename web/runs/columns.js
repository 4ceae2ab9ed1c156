/* What the runs have in common: the columns of their table, its order, and the filter. A column's key is
 * "name", "state", ..., or "PART:KEY" with a part of a run: configuration, metrics, minimum, maximum. */
import { duration, integer, moment, none, number } from '../format.js';
import { t } from '../language.js';

const fixed = ['name', 'state', 'epochs', 'seconds', 'started'], noted = ['tags', 'note'];
const parts = ['configuration', 'metrics', 'minimum', 'maximum'];
const counted = new Set(['epoch', 'iteration', 'seconds', 'branch']); /* of metrics: no column of their own */

function split(key) {
    const at = key.indexOf(':');
    return at < 0 ? [null, key] : [key.slice(0, at), key.slice(at + 1)];
}

export function valueOf(run, key) {
    const [part, name] = split(key);
    const value = (part ? run[part][name] : run[name]) ?? null;
    return noted.includes(key) && value.length === 0 ? null : value; /* what is empty comes last */
}

export function labelOf(key) {
    const [part, name] = split(key);
    if (part === null) return t(`runs.${name}`);
    return part === 'minimum' || part === 'maximum' ? t(`runs.of_${part}`, { name }) : name;
}

export function isNumeric(key, runs) {
    if (key === 'started') return false;
    return runs.some((run) => typeof valueOf(run, key) === 'number');
}

export function textOf(run, key) {
    const value = valueOf(run, key);
    if (value === null) return none;
    if (key === 'state') return t(`runs.state.${value}`);
    if (key === 'started') return moment(value);
    if (key === 'seconds') return duration(value);
    if (key === 'epochs') return integer(value);
    if (key === 'tags') return value.join(' ');
    return typeof value === 'number' ? number(value, 4) : String(value);
}

/* All columns, in groups: {heading, keys}. */
export function groupsOf(runs) {
    const groups = [{ heading: t('runs.group.run'), keys: [...fixed, ...noted] }];
    for (const part of parts) {
        const keys = new Set(runs.flatMap((run) => Object.keys(run[part])));
        const wanted = [...keys].filter((key) => part === 'configuration' || !counted.has(key)).sort();
        if (wanted.length > 0) groups.push({ heading: t(`runs.group.${part}`),
            keys: wanted.map((key) => `${part}:${key}`) });
    }
    return groups;
}

export function metricsOf(runs) {
    const keys = new Set(runs.flatMap((run) => Object.keys(run.metrics)));
    return [...keys].filter((key) => !counted.has(key)).sort();
}

/* Those of the configuration in which runs differ; those that have none tell nothing. */
export function differing(runs) {
    const known = runs.filter((run) => Object.keys(run.configuration).length > 0);
    const keys = new Set(known.flatMap((run) => Object.keys(run.configuration)));
    const of = (run, key) => run.configuration[key];
    return [...keys].filter((key) => known.some((run) => of(run, key) !== of(known[0], key))).sort();
}

/* Columns of settings that differ, what tells most first, without the run's name. */
export function settingsOf(runs) {
    return tellingApart(runs).map((key) => `configuration:${key}`);
}

/* What people vary and look for first; a number of the place in which it comes. */
const telling = [/(^|\.)learning_rate$/, /(^|\.)type$/, /^network$/, /^data\.training(\.dataset)?$/, /^data\.batch$/,
    /^optimiser\./, /^costs?\b/, /^regularis/, /^seed$/];

function rank(key) {
    const at = telling.findIndex((shape) => shape.test(key));
    return at < 0 ? telling.length : at;
}

/* That say something else in one run than in another that says it, too. */
function tellingApart(runs) {
    return differing(runs).filter((key) => {
        const values = runs.map((run) => run.configuration[key]).filter((value) => value !== undefined);
        return !['name', 'epochs'].includes(key) && new Set(values.map(String)).size > 1;
    }).sort((a, b) => rank(a) - rank(b));
}

/* Until somebody chooses: what tells runs apart, and how well they did. */
export function defaultColumns(runs) {
    const told = tellingApart(runs).slice(0, 4);
    const metrics = metricsOf(runs), validated = metrics.filter((key) => /\.(loss|accuracy)$/.test(key));
    const shown = validated.length > 0 ? validated : metrics.filter((key) => key !== 'learning_rate');
    const written = noted.filter((key) => runs.some((run) => run[key].length > 0));
    return [...fixed, ...written, ...told.map((key) => `configuration:${key}`),
        ...shown.slice(0, 4).map((key) => `metrics:${key}`)];
}

const order = new Intl.Collator(undefined, { numeric: true });

export function sorted(runs, key, down) {
    const sign = down ? -1 : 1;
    return [...runs].sort((a, b) => {
        const x = valueOf(a, key), y = valueOf(b, key);
        if (x === null || y === null) return (x === null) - (y === null); /* what has none comes last */
        if (typeof x === 'number' && typeof y === 'number') return sign * (x - y);
        return sign * order.compare(String(x), String(y));
    });
}

const comparisons = { '<': (a, b) => a < b, '>': (a, b) => a > b, '<=': (a, b) => a <= b, '>=': (a, b) => a >= b };

/* Of a run, by its whole name or by the end of it: learning_rate is optimiser.learning_rate, and only where nothing
 * is configured so that of the metrics. */
function valuesNamed(run, name) {
    const { epochs, seconds, state, note, starred, archived } = run;
    if (name === 'tag') return run.tags;
    const own = { name: run.name, epochs, seconds, state, note, starred, archived };
    const shapes = [(key) => key.toLowerCase() === name, (key) => key.toLowerCase().endsWith(`.${name}`)];
    for (const part of [own, run.configuration, run.metrics])
        for (const shape of shapes) {
            const keys = Object.keys(part).filter(shape);
            if (keys.length > 0) return keys.map((key) => part[key]).filter((value) => value !== null);
        }
    return [];
}

/* "adam", "optimiser.type=adam", "validation.loss<0.2": all words must fit. */
function fits(run, word) {
    const [, name, sign, bound] = /^([^<>=]+)(<=|>=|<|>|=)(.+)$/.exec(word) ?? [];
    if (sign === undefined) return haystack(run).includes(word);
    return valuesNamed(run, name).some((value) => {
        const isNumber = typeof value === 'number';
        if (sign !== '=') return isNumber && comparisons[sign](value, Number(bound));
        return String(value).toLowerCase() === bound || (isNumber && value === Number(bound));
    });
}

function haystack(run) {
    const values = Object.entries(run.configuration).map(([key, value]) => `${key}=${value}`);
    return [run.name, t(`runs.state.${run.state}`), run.note, ...run.tags, ...values].join('\n').toLowerCase();
}

/* An archived run is there if `withArchived`, a run without a star unless `onlyStarred`. */
export function filtered(runs, text, { withArchived, onlyStarred }) {
    const words = text.toLowerCase().replace(/\s*([<>]=?|=)\s*/g, '$1').split(/\s+/).filter(Boolean);
    return runs.filter((run) => (withArchived || !run.archived) && (run.starred || !onlyStarred)
        && words.every((word) => fits(run, word)));
}

function quoted(value) {
    const text = value === null ? '' : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/* The columns that are shown, then all others. */
export function csvOf(runs, shown) {
    const keys = [...new Set([...shown, ...groupsOf(runs).flatMap((group) => group.keys)])];
    const lines = [keys.map((key) => quoted(key.replace(':', '.'))).join(',')];
    for (const run of runs) lines.push(keys.map((key) => quoted(key === 'started' && run.started > 0
        ? new Date(run.started * 1000).toISOString() : valueOf(run, key))).join(','));
    return `${lines.join('\n')}\n`;
}
