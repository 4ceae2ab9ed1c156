/* A part of a chart by dragging across it; twice clicked, the whole comes back. */
import { h } from '../elements.js';

const minimum = 6; /* pixels: less is a click */

/* map() tells where the chart lies on the canvas, and from where to where it goes; then act([from, to] | null). */
export function dragZoom(canvas, map, act) {
    const shade = h('div', { class: 'runs-drag', hidden: true });
    let start = null;
    canvas.after(shade);
    const at = (event) => {
        const { area } = map();
        return Math.max(area.x, Math.min(area.x + area.w, event.clientX - canvas.getBoundingClientRect().left));
    };
    const valueAt = (x) => {
        const { area, left, right } = map();
        return left + (x - area.x) / area.w * (right - left);
    };
    canvas.addEventListener('pointerdown', (event) => {
        if (event.button !== 0 || !map()) return;
        start = at(event);
        canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
        if (start === null || !map()) return;
        const { area } = map(), now = at(event), { style } = shade;
        shade.hidden = Math.abs(now - start) < minimum;
        style.left = `${Math.min(start, now)}px`;
        style.width = `${Math.abs(now - start)}px`;
        style.top = `${area.y}px`;
        style.height = `${area.h}px`;
    });
    const end = (event, isDone) => {
        const from = start;
        start = null;
        shade.hidden = true;
        if (!isDone || from === null || !map()) return;
        const ends = [from, at(event)].sort((a, b) => a - b);
        if (ends[1] - ends[0] >= minimum) act(ends.map(valueAt));
    };
    canvas.addEventListener('pointerup', (event) => end(event, true));
    canvas.addEventListener('pointercancel', (event) => end(event, false));
    canvas.addEventListener('dblclick', () => act(null));
}
