/* Changes as text: of values, and of hooks that came and went. */
import { number } from './format.js';
import { t } from './language.js';

const people = new Set(['monitor', 'ctl', 'terminal', 'program', 'mcp']);
const hook = 'hook ', button = 'button ', none = 'none';

export function whoText(who) {
    const at = who.indexOf(':'), kind = at < 0 ? who : who.slice(0, at), name = at < 0 ? '' : who.slice(at);
    return people.has(kind) ? t(`who.${kind}`) + name.replace(':', ': ') : who;
}

function valueText(value) {
    if (value === null || value === undefined) return '–';
    if (typeof value === 'number') return number(value, 5);
    return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/* {name, before, after}: what is null is not there; `act`: what happened that is no value's change. */
export function partsOf(change) {
    const before = valueText(change.before), after = valueText(change.after);
    if (change.identifier === 'position') return { name: '', act: t('changes.went_back'), before: null, after };
    if (change.identifier.startsWith(button))
        return { name: change.identifier.slice(button.length), act: t('changes.pressed'), before: null, after: null };
    if (!change.identifier.startsWith(hook)) return { name: change.identifier, act: null, before, after };
    const attached = before === none;
    return { name: change.identifier.slice(hook.length), act: t(attached ? 'changes.attached' : 'changes.detached'),
        before: attached ? null : before, after: after === none ? null : after };
}

export function changeLine(change) {
    const { name, act, before, after } = partsOf(change);
    const what = after ?? before;
    if (!act) return `${name}: ${before} → ${after}`;
    return what === null ? `${act} ${name}` : `${act} ${name}: ${what}`;
}
