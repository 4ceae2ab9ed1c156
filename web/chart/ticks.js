/* Ticks of axes: powers of ten, with 2 and 5 between them where there is room; times that people use. */
import { tick } from '../format.js';

const between = [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]];

/* As dygraphs' tickers: from, to, pixels; `text` makes a label. */
export function logarithmicTicks(from, to, pixels, apart, text = tick) {
    const decades = Math.log10(to / from), room = pixels / apart;
    if (!(from > 0) || !(decades > 0)) return [];
    const finer = between.findLast((list) => decades * list.length <= room) ?? between[0];
    const stride = Math.max(1, Math.ceil(decades / Math.max(1, room)));
    const ticks = [];
    for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power++)
        for (const factor of power % stride === 0 ? finer : []) {
            const v = Number(`${factor}e${power}`);
            if (v >= from && v <= to) ticks.push({ v, label: text(v) });
        }
    return ticks;
}

const times = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/* Of seconds; null: they are so few, or so short, that other ticks do. */
export function timeTicks(from, to, pixels, apart, text) {
    const wanted = (to - from) / Math.max(1, pixels / apart), days = 86400;
    if (to < 60 || wanted < 1) return null;
    const step = times.find((one) => one >= wanted) ?? days * Math.ceil(wanted / days);
    const ticks = [];
    for (let v = Math.ceil(from / step) * step; v <= to; v += step) ticks.push({ v, label: text(v) });
    return ticks;
}
