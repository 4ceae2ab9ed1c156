/* Boots the page: texts, session, layout, then what is pushed. */
import { connect, refresh } from './api.js';
import { initApprovals } from './approvals.js';
import { initGrid } from './arrange.js';
import { initBar } from './bar.js';
import { h } from './elements.js';
import { initKeys } from './keys.js';
import { loadLanguage, preferredLanguage, t } from './language.js';
import { destroyPanels, loadLayout } from './layout.js';
import { notify } from './notify.js';
import { errorText, toast } from './overlays.js';
import './panels/index.js';
import { emit, on, setConnection, state } from './store.js';
import { initTabs } from './tabs.js';
import { initTheme } from './theme.js';

function fixedTexts() {
    document.getElementById('skip').textContent = t('page.skip');
    let keys = document.getElementById('panel-keys');
    if (!keys) document.body.append(keys = h('p', { id: 'panel-keys', hidden: true }));
    keys.textContent = t('panel.keys');
}

/* Kinds of panels that the program brings. One that cannot be loaded is told of, and the page goes on without it. */
async function addKinds() {
    for (const name of state.session.panels)
        await import(`./panels/added/${name}.js`).catch((error) => {
            console.error(error);
            toast(t('panel.broken', { kind: name, error: error.message }), 'error');
        });
}

async function boot() {
    initTheme();
    const session = refresh().then(() => null, (error) => error);
    await loadLanguage(preferredLanguage(null));
    const failure = await session;
    const wanted = preferredLanguage(state.session?.language);
    if (wanted !== document.documentElement.lang) await loadLanguage(wanted);
    fixedTexts();
    initBar(document.getElementById('bar'), document.getElementById('notice'));
    initKeys();
    if (failure) {
        setConnection(failure.code === 401 || failure.code === 403 ? 'refused' : 'lost');
        if (failure.code) document.getElementById('panels')
            .append(h('p', { class: 'boot-error', text: errorText(failure) }));
        if (failure.code === 0) setTimeout(() => location.reload(), 3000);
        return;
    }
    await addKinds();
    emit('session', state.session);
    initGrid(document.getElementById('panels'));
    initTabs(document.getElementById('tabs'));
    loadLayout();
    on('log', ({ level, source, message }) => { /* what a rule tells by `notify` */
        const told = level === 'warning' ? /^notify: (.*)$/s.exec(message)?.[1] : undefined;
        if (told !== undefined) notify(source, told);
    });
    on('log', ({ level, source, message }) => { /* whatever tab is looked at */
        if (level === 'error') toast(source ? `${source}: ${message}` : message, 'error');
    });
    initApprovals(document.getElementById('approvals'));
    connect();
    on('language', () => {
        fixedTexts();
        destroyPanels();
        emit('layout');
    });
}

boot();
