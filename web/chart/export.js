/* A chart as CSV with all points, as PNG and SVG as it is seen, and as a table. */
import { get } from '../api.js';
import { h } from '../elements.js';
import { integer, number } from '../format.js';
import { t } from '../language.js';
import { colour } from '../theme.js';
import { drawChanges, drawCurves, geometry } from './draw.js';
import { label } from './legend.js';
import { CanvasPen, strokes, SvgPen } from './pens.js';

const maximumPoints = 10000; /* of an answer */
const tableRows = 200;

export function download(blob, name) {
    const address = URL.createObjectURL(blob);
    h('a', { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function fileName(title, ending) {
    return `${title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '') || 'chart'}.${ending}`;
}

function quoted(text) {
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/* All points of a series: in parts, since an answer has so many pieces at most. */
async function allPieces(curve, axis, from, to) {
    const ask = async (begin, end) => (await get('series', { trainer: curve.trainer, id: curve.id, axis, from: begin,
        to: end, points: maximumPoints })).series[0];
    const rows = [], first = await ask(from, to), { x } = first;
    const whole = first.min.every((value, i) => value === first.max[i]);
    const parts = whole ? 1 : Math.ceil(2 * first.count / maximumPoints);
    const begin = from ?? 0, end = to ?? x.at(-1);
    for (let i = 0; i < parts; i++) {
        const low = begin + (end - begin) * i / parts, high = begin + (end - begin) * (i + 1) / parts;
        const part = parts === 1 ? first : await ask(low, high);
        part.x.forEach((at, k) => {
            const isInside = (parts === 1 && from === null)
                || (at >= low && (at < high || (i === parts - 1 && at === high)));
            if (isInside) rows.push([at, part.last[k] ?? 'nan', part.min[k] ?? 'nan', part.max[k] ?? 'nan']);
        });
    }
    return rows;
}

/* One line a point. Where the server no longer has each, a line has minimum and maximum of several. */
export async function exportCsv(view, title) {
    const lines = [`trainer,identifier,${view.axis},value,minimum,maximum`], [from, to] = view.zoom ?? [null, null];
    for (const curve of view.curves.filter((one) => one.visible)) {
        const head = `${quoted(curve.trainer)},${quoted(curve.id)}`;
        for (const row of await allPieces(curve, view.axis, from, to)) lines.push(`${head},${row.join(',')}`);
    }
    download(new Blob([`${lines.join('\n')}\n`], { type: 'text/csv' }), fileName(title, 'csv'));
}

/* Ground, title and legend, whose entries are [name, colour]; the height that they take. */
export function paintHead(pen, title, entries, width, height) {
    const ink = colour('ink');
    pen.rectangle(0, 0, width, height, colour('surface'));
    pen.text(title, 16, 26, ink, { size: 14, bold: true });
    let x = 16, y = 48;
    for (const [name, stroke, dash = []] of entries) {
        const space = pen.width(name) + 34;
        if (x + space > width && x > 16) {
            x = 16;
            y += 17;
        }
        if (dash.length === 0) pen.rectangle(x, y - 7, 12, 3, stroke);
        else pen.line([x, y - 5.5, x + 12, y - 5.5], stroke, 3, 1, dash.map((length) => length / 2));
        pen.text(name, x + 17, y, ink);
        x += space;
    }
    return y;
}

/* Title, legend, axes and curves with a pen. */
function paint(pen, view, title, width, height) {
    const { colours } = view, margin = { left: 56, right: 16, bottom: 44 };
    const y = paintHead(pen, title, view.curves.filter((one) => one.visible)
        .map((curve) => [label(curve, view.curves), view.colourOf(curve), strokes[curve.stroke ?? 0]]), width, height);
    const area = { x: margin.left, y: y + 16, w: width - margin.left - margin.right,
        h: height - y - 16 - margin.bottom };
    const ticks = view.ticks(), map = geometry(view, area);
    for (const tick of ticks.y) {
        const at = Math.round(area.y + tick.at * area.h) + 0.5;
        pen.line([area.x, at, area.x + area.w, at], colours.grid, 1);
        pen.text(tick.label, area.x - 8, at + 4, colours.dim, { align: 'end' });
    }
    for (const tick of ticks.x) {
        const at = Math.round(area.x + tick.at * area.w) + 0.5;
        pen.line([at, area.y, at, area.y + area.h], colours.grid, 1);
        pen.text(tick.label, at, area.y + area.h + 16, colours.dim, { align: 'center' });
    }
    pen.text(t(`axis.${view.axis}`), area.x + area.w / 2, height - 10, colours.dim, { align: 'center' });
    pen.clip(area, () => {
        drawChanges(pen, view, map);
        drawCurves(pen, view, map);
    });
}

/* What `draw(pen, width, height)` draws, as a file. */
export function savePng(title, width, height, draw) {
    const scale = 2, canvas = h('canvas', { width: width * scale, height: height * scale });
    const context = canvas.getContext('2d');
    context.scale(scale, scale);
    draw(new CanvasPen(context), width, height);
    canvas.toBlob((blob) => download(blob, fileName(title, 'png')));
}

export function saveSvg(title, width, height, draw) {
    const pen = new SvgPen(width, height);
    draw(pen, width, height);
    download(new Blob([new XMLSerializer().serializeToString(pen.root)], { type: 'image/svg+xml' }),
        fileName(title, 'svg'));
}

const exported = (save) => (view, title) => save(title, Math.max(720, view.width), Math.max(420, view.height + 90),
    (pen, width, height) => paint(pen, view, title, width, height));
export const exportPng = exported(savePng), exportSvg = exported(saveSvg);

/* Places of the newest rows, newest first: all at which a curve of few points has one, and of the others as many as
 * there is room for. */
export function tablePlaces(lists, maximum = tableRows) {
    const isFew = (list) => list.length <= maximum / 2, few = new Set(lists.filter(isFew).flat());
    const rest = [...new Set(lists.filter((list) => !isFew(list)).flat())].filter((x) => !few.has(x))
        .sort((a, b) => b - a);
    const stride = Math.max(1, Math.ceil(rest.length / Math.max(1, maximum - few.size)));
    return [...few, ...rest.filter((_, i) => i % stride === 0)].sort((a, b) => b - a);
}

/* What is seen, for reading: a row for each place, a column for each curve. */
export function tableOf(view) {
    const [from, to] = view.xRange, curves = view.curves.filter((one) => one.visible);
    const found = curves.map((curve) => {
        const { x, last } = curve.pieces(from, to), inside = x.filter((at) => at >= from && at <= to);
        return { x, last, inside: [...inside], values: new Map(Array.from(x, (at, i) => [at, last[i]])) };
    });
    const cell = ({ values }, x) => (values.has(x) ? number(values.get(x), 6) : '');
    const rows = tablePlaces(found.map((one) => one.inside)).map((x) => h('tr', {},
        h('th', { scope: 'row', class: 'is-number', text: view.axis === 'iteration' ? integer(x) : number(x, 6) }),
        found.map((one) => h('td', { class: 'is-number', text: cell(one, x) }))));
    return h('table', { class: 'table' }, h('thead', {}, h('tr', {},
        h('th', { scope: 'col', class: 'is-number', text: t(`axis.${view.axis}`) }),
        curves.map((curve) => h('th', { scope: 'col', class: 'is-number', text: label(curve, view.curves) })))),
    h('tbody', {}, rows));
}
