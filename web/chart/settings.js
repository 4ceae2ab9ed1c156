/* The popover with how a chart is drawn. Options of the panel, with the names of View's fields. */
import { h, labelled, select, toggle } from '../elements.js';
import { integer, percent } from '../format.js';
import { t } from '../language.js';

const follows = { iteration: [100, 1000, 10000, 100000], epoch: [1, 5, 10, 50], seconds: [60, 600, 3600, 86400] };

export function chartSettings(options, change) {
    const row = (name) => labelled(t(`chart.${name}`), toggle(t(`chart.${name}`), Boolean(options[name]),
        (on) => change(name, on)), { class: 'field is-switch' });
    const axis = h('div', { class: 'segments', role: 'group', 'aria-label': t('chart.axis') },
        ['iteration', 'epoch', 'seconds'].map((name) =>
        h('button', { type: 'button', class: 'segment', 'aria-pressed': String(options.axis === name),
            text: t(`axis.${name}`), on: { click: (event) => {
            for (const other of event.target.parentElement.children) other.setAttribute('aria-pressed',
                String(other === event.target));
            change('axis', name);
            change('follow', 0);
            window.replaceChildren(...windowChoice(name).children);
        } } })));
    const windowChoice = (name) => select([[0, t('chart.follow_all')],
        ...follows[name].map((n) => [n, t(`chart.follow_${name}`, { n: integer(n) })])],
        options.follow, (value) => change('follow', Number(value)), { 'aria-label': t('chart.follow') });
    const window = windowChoice(options.axis);
    const strength = h('output', { class: 'dim', text: percent(options.smoothing, 0) });
    const slider = h('input', { class: 'slider', type: 'range', min: 0, max: 1, step: 0.01, value: options.smoothing,
        'aria-label': t('chart.smoothing'), on: { input: () => {
        slider.style.setProperty('--share', `${slider.value * 100}%`);
        strength.textContent = percent(Number(slider.value), 0);
        change('smoothing', Number(slider.value));
    } } });
    slider.style.setProperty('--share', `${options.smoothing * 100}%`);
    return h('div', { class: 'fields chart-settings' }, axis, labelled(t('chart.follow'), window),
        labelled(t('chart.smoothing'), h('span', { class: 'chart-smoothing' }, slider, strength)),
        row('yLog'), row('xLog'), row('fromZero'), row('robust'), row('bands'), row('marks'));
}
