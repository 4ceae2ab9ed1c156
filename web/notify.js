/* Notifications of the browser: what rules tell, and runs that end, also while another window is in front. */
import { h, setToggle, toggle } from './elements.js';
import { t } from './language.js';
import { toast } from './overlays.js';

const stored = 'sigma.notify';

function isWanted() {
    try {
        return localStorage.getItem(stored) === 'on';
    } catch {
        return false;
    }
}

/* A browser without notifications has none to switch on; one that refuses says so. */
async function want(on, element) {
    const permitted = on && 'Notification' in window ? await Notification.requestPermission() : 'denied';
    const is = on && permitted === 'granted';
    setToggle(element, is);
    localStorage.setItem(stored, is ? 'on' : 'off');
    if (on && !is) toast(t('notify.refused'), 'error');
}

export function notifySwitch() {
    const element = toggle(t('notify.label'), isWanted(), (on) => want(on, element), { data: { notify: '' } });
    return h('label', { class: 'field is-switch', title: t('notify.tip') }, h('span', { class: 'field-label',
        text: t('notify.label') }), element);
}

/* Always in the page, and as a notification of the browser where the person wants it. */
export function notify(title, text, kind = 'info') {
    toast(`${title}: ${text}`, kind);
    if (!isWanted() || !('Notification' in window) || Notification.permission !== 'granted') return;
    const shown = new Notification(title, { body: text, tag: `${title} ${text}` });
    shown.addEventListener('click', () => { window.focus(); shown.close(); });
}
