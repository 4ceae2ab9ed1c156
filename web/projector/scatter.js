/* Points on a canvas: the wheel and + and - zoom, dragging and the arrows move, 0 and a double click show all. */
import { h } from '../elements.js';
import { context2d } from '../pixels.js';
import { colour, seriesColour } from '../theme.js';

const margin = 14;
const near = 14; /* pixels from the pointer to a point that it is on */

/* Eight colours are told apart by everybody; with rings beside discs sixteen classes are. null: there are none. */
export function lookOf(number) {
    if (number === null) return { ink: colour('accent'), hollow: false };
    return { ink: seriesColour(number < 16 ? number % 8 + 1 : number + 1), hollow: Math.floor(number / 8) % 2 === 1 };
}

export class Scatter {
    /* `pointed(i)`: the pointer is on point i. */
    constructor(pointed) {
        this.pointed = pointed;
        this.points = new Float64Array(0);
        this.classes = [];
        this.wrong = [];
        this.only = null; /* the class that is brought forward */
        this.chosen = -1;
        this.reset();
        this.canvas = h('canvas', { class: 'projector-canvas', tabindex: '0', role: 'img', on: {
            keydown: (event) => this.key(event),
            dblclick: () => this.reset(),
            pointerdown: (event) => this.grip(event),
            pointermove: (event) => this.pointer(event),
            pointerup: () => { this.held = null; },
            pointercancel: () => { this.held = null; },
        } });
        this.canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    }

    reset() {
        this.view = { zoom: 1, x: 0, y: 0 }; /* pixels that the middle is moved by */
        this.draw();
    }

    /* `classes` and `wrong`: of each point its class (null: none), and whether the network takes it for another. */
    set(points, classes, wrong) {
        if (classes.length !== this.classes.length) this.chosen = -1;
        Object.assign(this, { points, classes, wrong });
        this.draw();
    }

    choose(i) {
        this.chosen = i;
        this.draw();
    }

    /* --- places --- */

    /* As large as fits, with one scale for both axes. */
    fit(width, height) {
        const from = [Infinity, Infinity], to = [-Infinity, -Infinity];
        this.points.forEach((value, k) => {
            from[k % 2] = Math.min(from[k % 2], value);
            to[k % 2] = Math.max(to[k % 2], value);
        });
        const room = (size, k) => Math.max(1, size - 2 * margin) / (to[k] - from[k] || 1e-9);
        const scale = Math.min(room(width, 0), room(height, 1)) * this.view.zoom;
        return { scale, x: width / 2 + this.view.x - scale * (from[0] + to[0]) / 2,
            y: height / 2 + this.view.y + scale * (from[1] + to[1]) / 2 };
    }

    at(i, place) {
        return [place.x + place.scale * this.points[2 * i], place.y - place.scale * this.points[2 * i + 1]];
    }

    /* --- moving --- */

    zoom(factor, x, y) {
        const { clientWidth: width, clientHeight: height } = this.canvas, before = this.view.zoom;
        const zoom = Math.min(200, Math.max(0.5, before * factor)), real = zoom / before;
        const [fromX, fromY] = [x - width / 2, y - height / 2];
        this.view = { zoom, x: fromX - (fromX - this.view.x) * real, y: fromY - (fromY - this.view.y) * real };
        this.draw();
    }

    move(x, y) {
        this.view = { ...this.view, x: this.view.x + x, y: this.view.y + y };
        this.draw();
    }

    key(event) {
        const { clientWidth: width, clientHeight: height } = this.canvas;
        const act = { '+': () => this.zoom(1.5, width / 2, height / 2), '-': () => this.zoom(1 / 1.5, width / 2,
            height / 2), 0: () => this.reset(), ArrowLeft: () => this.move(40, 0), ArrowRight: () => this.move(-40, 0),
        ArrowUp: () => this.move(0, 40), ArrowDown: () => this.move(0, -40) }[event.key];
        if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        act();
    }

    /* Not without the focus: else a page that is scrolled would stop there. */
    wheel(event) {
        if (document.activeElement !== this.canvas && !event.ctrlKey) return;
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY);
    }

    grip(event) {
        this.held = [event.clientX, event.clientY];
        this.canvas.focus({ preventScroll: true });
        this.canvas.setPointerCapture(event.pointerId);
        this.look(event);
    }

    pointer(event) {
        if (!this.held) { this.look(event); return; }
        const [x, y] = this.held;
        this.held = [event.clientX, event.clientY];
        this.move(event.clientX - x, event.clientY - y);
    }

    /* Which point the pointer is on. */
    look(event) {
        const place = this.fit(this.canvas.clientWidth, this.canvas.clientHeight);
        let best = -1, least = near;
        for (let i = 0; i < this.classes.length; i++) {
            const [x, y] = this.at(i, place), distance = Math.hypot(x - event.offsetX, y - event.offsetY);
            if (distance < least && (this.only === null || this.classes[i] === this.only))
                [best, least] = [i, distance];
        }
        if (best < 0 || best === this.chosen) return;
        this.choose(best);
        this.pointed(best);
    }

    /* --- drawing --- */

    draw() {
        if (this.asked || !this.canvas) return;
        this.asked = true;
        requestAnimationFrame(() => {
            this.asked = false;
            this.drawNow();
        });
    }

    drawNow() {
        const found = context2d(this.canvas);
        if (!found) return;
        const { context, width, height } = found, place = this.fit(width, height);
        const looks = new Map([...new Set(this.classes)].map((number) => [number, lookOf(number)]));
        for (let i = 0; i < this.classes.length; i++) {
            const [x, y] = this.at(i, place);
            if (x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
            context.globalAlpha = this.only === null || this.classes[i] === this.only ? 0.9 : 0.12;
            this.mark(context, x, y, looks.get(this.classes[i]), this.wrong[i]);
        }
        context.globalAlpha = 1;
        if (this.chosen < 0 || this.chosen >= this.classes.length) return;
        context.strokeStyle = colour('ink');
        context.beginPath();
        context.arc(...this.at(this.chosen, place), 8, 0, 2 * Math.PI);
        context.stroke();
    }

    /* A cross for what is mistaken. */
    mark(context, x, y, { ink, hollow }, wrong) {
        context.fillStyle = context.strokeStyle = ink;
        context.lineWidth = wrong ? 2 : 1.8;
        context.beginPath();
        if (wrong) for (const side of [-5, 5]) {
            context.moveTo(x - 5, y - side);
            context.lineTo(x + 5, y + side);
        } else context.arc(x, y, hollow ? 3 : 3.2, 0, 2 * Math.PI);
        if (wrong || hollow) context.stroke();
        else context.fill();
    }
}
