/* What the run was started with: the file, and what it came to. */
import { get } from '../api.js';
import { fill, h, iconButton } from '../elements.js';
import { integer } from '../format.js';
import { has, t } from '../language.js';
import { toast } from '../overlays.js';
import { definePanel } from '../panel.js';
import { state } from '../store.js';

definePanel('configuration', {
    icon: 'table',
    tab: 'checkpoints', order: 2,
    size: { w: 4, h: 19 }, minimum: { w: 3, h: 4 }, heights: { 6: 13, 1: 15 },
    create,
});

const shown = ['name', 'handler', 'precision', 'threads', 'version']; /* of the session */

/* As in the files of experiments. */
function asYaml(value, indent = '') {
    if (value === null || typeof value !== 'object') return typeof value === 'string'
        && (value === '' || /[:#\n"]|^[\s\-[{*&!|>%@]/.test(value)) ? JSON.stringify(value) : String(value);
    const entries = Object.entries(value);
    if (entries.length === 0) return Array.isArray(value) ? '[]' : '{}';
    return entries.map(([key, inner]) => {
        const head = Array.isArray(value) ? `${indent}-` : `${indent}${key}:`;
        const nested = inner !== null && typeof inner === 'object' && Object.keys(inner).length > 0;
        return nested ? `${head}\n${asYaml(inner, `${indent}  `)}` : `${head} ${asYaml(inner)}`;
    }).join('\n');
}

function create(panel) {
    const facts = h('dl', { class: 'facts' }), text = h('pre', { class: 'configuration-text', tabindex: '0' });
    const copy = iconButton('copy', t('configuration.copy'), async () => {
        await navigator.clipboard.writeText(text.textContent).then(() => toast(t('configuration.copied')),
            () => getSelection().selectAllChildren(text));
    });
    panel.tools.append(copy);
    panel.body.append(h('div', { class: 'scroll configuration' }, facts, text));

    function show(found) {
        const { session } = state, trainer = state.trainers.get(panel.trainer());
        const rows = [['configuration.program', session.name],
            ['configuration.version', session.version && `Sigma ${session.version}`],
            ['configuration.handler', [session.handler, session.precision].filter(Boolean).join(', ')],
            ['configuration.threads', session.threads && integer(session.threads)],
                ['configuration.network', trainer?.network], ['configuration.parameters', trainer?.parameters
                && integer(trainer.parameters)]];
        const { text: file, ...rest } = found ?? {};
        for (const key of shown) delete rest[key];
        if (Array.isArray(rest.command)) rest.command = rest.command.map((word, i) => (i === 0 ? word.split('/').at(-1)
            : /\s/.test(word) ? `'${word}'` : word)).join(' ');
        for (const [key, value] of Object.entries(rest)) if (typeof value !== 'object'
            || value === null) rows.push([has(`configuration.${key}`) ? `configuration.${key}` : key, value]);
        const nested = Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value === 'object'
            && value !== null));
        fill(facts, rows.filter(([, value]) => value !== null && value !== undefined && value !== '')
            .map(([key, value]) => h('div', {}, h('dt', { text: has(key) ? t(key) : key }),
            h('dd', { text: String(value) }))));
        text.textContent = file ?? (Object.keys(nested).length > 0 ? asYaml(nested) : '');
        text.hidden = copy.hidden = text.textContent === '';
    }

    const reload = () => panel.load(async (signal) => show(await get('configuration', { trainer: panel.trainer() },
        { signal })));
    panel.on('trainer', reload);
    panel.on('reconnected', reload);
    reload();
}
