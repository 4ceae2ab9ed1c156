/* The same strokes on a canvas and in an SVG. Points are [x, y, x, y, ...] in pixels. */

/* Dashes and gaps of lines that a colour does not tell apart. */
export const strokes = [[], [6, 4], [2, 3], [9, 3, 2, 3]];

export class CanvasPen {
    constructor(context) {
        this.context = context;
    }

    path(points) {
        const { context } = this;
        context.beginPath();
        context.moveTo(points[0], points[1]);
        for (let i = 2; i < points.length; i += 2) context.lineTo(points[i], points[i + 1]);
    }

    line(points, colour, width, alpha = 1, dash = []) {
        const { context } = this;
        context.globalAlpha = alpha;
        context.setLineDash(dash);
        context.strokeStyle = colour;
        context.lineWidth = width;
        context.lineJoin = 'round';
        this.path(points);
        context.stroke();
        context.setLineDash([]);
        context.globalAlpha = 1;
    }

    area(points, colour, alpha) {
        const { context } = this;
        context.globalAlpha = alpha;
        context.fillStyle = colour;
        this.path(points);
        context.fill();
        context.globalAlpha = 1;
    }

    dashed(x0, y0, x1, y1, colour) {
        this.line([Math.round(x0) + 0.5, y0, Math.round(x1) + 0.5, y1], colour, 1, 0.5, [3, 3]);
    }

    dot(x, y, radius, colour) {
        const { context } = this;
        context.fillStyle = colour;
        context.beginPath();
        context.arc(x, y, radius, 0, 2 * Math.PI);
        context.fill();
    }

    rectangle(x, y, w, h, colour) {
        this.context.fillStyle = colour;
        this.context.fillRect(x, y, w, h);
    }

    text(text, x, y, colour, { size = 11, align = 'start', bold = false } = {}) {
        const { context } = this;
        context.fillStyle = colour;
        context.font = `${bold ? '600 ' : ''}${size}px system-ui, sans-serif`;
        context.textAlign = align;
        context.fillText(text, x, y);
    }

    width(text, size = 11) {
        this.context.font = `${size}px system-ui, sans-serif`;
        return this.context.measureText(text).width;
    }

    clip({ x, y, w, h }, draw) {
        const { context } = this;
        context.save();
        context.beginPath();
        context.rect(x, y, w, h);
        context.clip();
        draw();
        context.restore();
    }

    cross(x, y, colour) {
        this.line([x - 3, y - 3, x + 3, y + 3], colour, 1.5);
        this.line([x - 3, y + 3, x + 3, y - 3], colour, 1.5);
    }

    triangle(x, y, way, colour) {
        this.area([x, y, x + 3.5, y + 6 * way, x - 3.5, y + 6 * way], colour, 1);
    }

    flag(x, y, colour) {
        this.area([x, y, x + 7, y, x + 7, y + 5, x + 3.5, y + 7.5, x, y + 5], colour, 1);
    }
}

const space = 'http://www.w3.org/2000/svg';

export class SvgPen extends CanvasPen {
    constructor(width, height) {
        super(document.createElement('canvas').getContext('2d')); /* measures texts */
        this.root = document.createElementNS(space, 'svg');
        this.put(null, { width, height, viewBox: `0 0 ${width} ${height}`, 'font-family': 'system-ui, sans-serif' },
            this.root);
        this.place = this.root;
        this.clips = 0;
    }

    put(tag, attributes, element = document.createElementNS(space, tag)) {
        for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, typeof value === 'number'
            ? Number(value.toFixed(2)) : value);
        if (element !== this.root) this.place.append(element);
        return element;
    }

    data(points) {
        let text = 'M';
        for (let i = 0; i < points.length; i += 2)
            text += `${i > 0 ? 'L' : ''}${points[i].toFixed(1)} ${points[i + 1].toFixed(1)}`;
        return text;
    }

    line(points, colour, width, alpha = 1, dash = []) {
        this.put('path', { d: this.data(points), fill: 'none', stroke: colour, 'stroke-width': width,
            'stroke-opacity': alpha, 'stroke-linejoin': 'round', ...(dash.length > 0
                && { 'stroke-dasharray': dash.join(' ') }) });
    }

    area(points, colour, alpha) {
        this.put('path', { d: `${this.data(points)}Z`, fill: colour, 'fill-opacity': alpha });
    }

    dashed(x0, y0, x1, y1, colour) {
        this.put('path', { d: this.data([x0, y0, x1, y1]), fill: 'none', stroke: colour, 'stroke-opacity': 0.5,
            'stroke-dasharray': '3 3' });
    }

    dot(x, y, radius, colour) {
        this.put('circle', { cx: x, cy: y, r: radius, fill: colour });
    }

    rectangle(x, y, w, h, colour) {
        this.put('rect', { x, y, width: w, height: h, fill: colour });
    }

    text(text, x, y, colour, { size = 11, align = 'start', bold = false } = {}) {
        const anchor = { start: 'start', center: 'middle', end: 'end' }[align];
        this.put('text', { x, y, fill: colour, 'font-size': size, 'text-anchor': anchor, 'font-weight': bold ? 600
            : 400 }).textContent = text;
    }

    clip({ x, y, w, h }, draw) {
        const id = `clip-${++this.clips}`, outside = this.place;
        const path = this.put('clipPath', { id });
        this.place = path;
        this.put('rect', { x, y, width: w, height: h });
        this.place = outside;
        this.place = this.put('g', { 'clip-path': `url(#${id})` });
        draw();
        this.place = outside;
    }
}
