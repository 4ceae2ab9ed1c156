/* Which program this is, and of which version. */
import { add, h } from './elements.js';
import { t } from './language.js';
import { dialogue } from './overlays.js';
import { state } from './store.js';

export function showAbout() {
    const { session } = state, list = h('dl', { class: 'about' });
    const rows = [['configuration.program', session?.name],
        ['configuration.handler', [session?.handler, session?.precision].filter(Boolean).join(', ')],
        ['configuration.threads', session?.threads]];
    for (const [key, value] of rows) if (value) add(list, [h('dt', { text: t(key) }), h('dd', { text: value })]);
    return dialogue({ title: `Sigma ${session?.version ?? ''}`.trim(), content: h('div', {},
        h('p', { text: t('about.text') }), list) });
}
