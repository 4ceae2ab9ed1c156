/* The plot of a chart. Dygraphs has the axes, their ticks, the grid and zooming with the mouse; the curves are drawn by
 * draw.js, with minimum and maximum of each piece, into dygraphs' canvas. */
import { accentOf } from '../accents.js';
import { h } from '../elements.js';
import { tick, tickPercent, timeText } from '../format.js';
import { colour, paletteSize, seriesColour } from '../theme.js';
import { drawChanges, drawCurves, extent, geometry } from './draw.js';
import { Hover } from './hover.js';
import { CanvasPen } from './pens.js';
import { logarithmicTicks, timeTicks } from './ticks.js';

const { Dygraph } = window;
/* No legend, no titles: theirs are markup with style attributes, which the page's policy forbids. */
const { Axes, Grid } = Dygraph.Plugins;
Dygraph.PLUGINS.splice(0, Dygraph.PLUGINS.length, Axes, Grid);

const minimumInterval = 250; /* milliseconds between two pictures of what comes in */
const labelSize = 11;
const minimumSpan = 0.02; /* of the values: what hardly changes looks so */

export class View {
    /* `onWindow(from, to)`: the user zoomed; both null: all is to be seen again. */
    constructor(parent, settings, onWindow) {
        Object.assign(this, { curves: [], changes: [], axis: 'iteration', xLog: false, yLog: false, bands: true,
            marks: true, robust: false,
            fromZero: false, percent: false, smoothing: 0, follow: 0, raised: null, zoom: null, yZoom: null,
                tell: onWindow }, settings);
        this.xRange = [0, 1];
        this.yRange = [0, 1];
        this.element = h('div', { class: 'plot', tabindex: '0', role: 'img', 'aria-roledescription': 'chart', on: {
            keydown: (event) => this.key(event), dblclick: () => this.reset() } });
        this.frame = h('div', { class: 'plot-frame', 'aria-hidden': 'true' });
        this.element.append(this.frame);
        parent.append(this.element);
        this.hover = new Hover(this);
        this.observer = new ResizeObserver(() => {
            if (this.element.clientHeight > 0) this.resize(this.element.clientWidth, this.element.clientHeight); });
        this.observer.observe(this.element);
        this.lastDraw = 0;
        this.cost = 4;
        this.recolour();
    }

    recolour() {
        this.colours = { ink: colour('ink'), dim: colour('ink-3'), grid: colour('grid-line'),
            surface: colour('surface'), mark: colour('warn'), accent: colour('accent'),
            series: Array.from({ length: paletteSize }, (_, i) => seriesColour(i + 1)) };
        this.graph?.updateOptions({ gridLineColor: this.colours.grid, axisLineColor: this.colours.grid }, true);
        this.draw();
    }

    /* Of several trainers each has its colour, and its values differ by their strokes; else each value has its own. */
    colourOf(curve) {
        return curve.byTrainer ? accentOf(curve.trainer) : this.colours.series[curve.colour - 1]
            ?? seriesColour(curve.colour);
    }

    axisOptions(which, apart, width) {
        const text = (value) => this.tickText(value, which), isLog = () => (which === 'x' ? this.xLog : this.yLog);
        return {
            axisLabelFormatter: text, axisLabelFontSize: labelSize, axisLabelWidth: width, axisTickSize: 4,
            pixelsPerLabel: apart,
            ticker: (from, to, pixels, options, graph) => {
                if (isLog()) return logarithmicTicks(from, to, pixels, apart, text);
                const isTime = which === 'x' && this.axis === 'seconds';
                return (isTime && timeTicks(from, to, pixels, apart, text))
                    || Dygraph.numericTicks(from, to, pixels, options, graph);
            },
        };
    }

    build() {
        const mousedown = (event, graph, context) => {
            this.hover.hide();
            Dygraph.defaultInteractionModel.mousedown(event, graph, context);
        };
        this.graph = new Dygraph(this.frame, [[0, 0], [1, 1]], {
            labels: ['x', 'y'], width: this.width, height: this.height,
            dateWindow: this.xRange, valueRange: this.yRange, rightGap: 26, highlightCircleSize: 0,
            gridLineColor: this.colours.grid, axisLineColor: this.colours.grid, axisLineWidth: 1, gridLineWidth: 1,
            plotter: (event) => this.paint(event.dygraph, event.drawingContext, event.plotArea),
            zoomCallback: (from, to, [y]) => this.zoomed(from, to, y),
            interactionModel: { mousedown, willDestroyContextMyself: true },
            axes: { x: this.axisOptions('x', 60, 52), y: this.axisOptions('y', 30, 58) },
        });
        this.hover.attach();
    }

    /* Dygraphs writes it as markup: numbers only. */
    tickText(value, which) {
        if (which === 'x') return this.axis === 'seconds' ? timeText(value) : tick(value);
        return this.percent ? tickPercent(value) : tick(value, this.yRange[1] - this.yRange[0]);
    }

    resize(width, height) {
        this.width = Math.max(80, Math.floor(width));
        this.height = Math.max(60, Math.floor(height));
        this.graph?.resize(this.width, this.height);
        this.draw();
    }

    /* --- what is seen --- */

    extremes() {
        let low = Infinity, high = -Infinity;
        for (const { visible, whole: { x } } of this.curves) {
            if (!visible || x.length === 0) continue;
            low = Math.min(low, this.xLog ? x.find((value) => value > 0) ?? Infinity : x[0]);
            high = Math.max(high, x.at(-1));
        }
        if (low > high) return this.xLog ? [1, 10] : [0, 1];
        if (low === high) return this.xLog ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
        return [low, high];
    }

    measure() {
        const all = this.extremes();
        if (this.zoom) this.xRange = this.zoom;
        else if (this.follow > 0) this.xRange = [Math.max(all[0], all[1] - this.follow), all[1]];
        else this.xRange = all;
        if (this.yZoom) {
            this.yRange = this.yZoom;
            return;
        }
        let { low, high, minimum } = extent(this);
        if (low > high) [low, high, minimum] = [0, 1, 0.1];
        if (this.yLog) {
            low = low > 0 ? low : minimum === Infinity ? high / 1000 : minimum;
            high = Math.max(high, low * 1.5);
            const pad = (high / low) ** 0.04;
            this.yRange = high > 0 ? [low / pad, high * pad] : [0.1, 1];
            return;
        }
        if (this.fromZero) [low, high] = [Math.min(0, low), Math.max(0, high)];
        const floor = minimumSpan * Math.max(Math.abs(low), Math.abs(high)), lacks = floor - (high - low);
        if (lacks > 0) [low, high] = [low - lacks / 2, high + lacks / 2];
        const span = high - low || 1, room = 0.06 * span;
        this.yRange = [low >= 0 && low - room < 0 ? 0 - 0.01 * span : low - room, this.percent && high <= 1
            && high + room > 1 ? 1 + 0.012 * span : high + room];
    }

    setWindow(from, to, quiet = false) {
        const all = this.extremes();
        if (from === null || (!this.xLog && from <= all[0] && to >= all[1])) this.zoom = null;
        else if (to > from) this.zoom = [this.xLog ? Math.max(from, 1e-9) : from, to];
        this.draw();
        if (!quiet) this.tell(...(this.zoom ?? [null, null]));
    }

    reset() {
        this.yZoom = null;
        this.setWindow(null, null);
    }

    isZoomed() {
        return this.zoom !== null || this.yZoom !== null;
    }

    zoomed(from, to, y) {
        const near = (a, b, span) => Math.abs(a - b) < 1e-9 * span;
        const [low, high] = this.yRange, span = high - low;
        if (!near(y[0], low, span) || !near(y[1], high, span)) {
            this.yZoom = [y[0], y[1]];
            this.draw();
            this.tell(...(this.zoom ?? [null, null]));
        } else this.setWindow(from, to);
    }

    /* By a factor around the middle, or by a share of the window. */
    move(factor, share) {
        const f = this.xLog ? Math.log10 : (v) => v, back = this.xLog ? (v) => 10 ** v : (v) => v;
        const from = f(this.xRange[0]), to = f(this.xRange[1]), all = this.extremes().map(f);
        const half = Math.min((to - from) * factor, all[1] - all[0]) / 2;
        let middle = (from + to) / 2 + share * (to - from);
        middle = Math.max(all[0] + half, Math.min(all[1] - half, middle));
        this.setWindow(back(middle - half), back(middle + half));
    }

    key(event) {
        const act = { '+': () => this.move(0.5, 0), '-': () => this.move(2, 0), 0: () => this.reset(),
            ArrowLeft: () => this.move(1, -0.2), ArrowRight: () => this.move(1, 0.2) }[event.key];
        if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        act();
    }

    /* --- drawing: as often as there is time for --- */

    draw() {
        if (this.asked || !this.shown) return;
        this.asked = true;
        requestAnimationFrame(() => {
            this.asked = false;
            this.drawNow();
        });
    }

    /* For points that come in: a chart that takes long draws seldom. */
    drawSoon() {
        if (this.later) return;
        this.later = setTimeout(() => {
            this.later = 0;
            this.draw();
        }, Math.max(0, Math.max(minimumInterval, 10 * this.cost) - (performance.now() - this.lastDraw)));
    }

    drawNow() {
        if (!this.shown || !this.width) return;
        const begin = performance.now();
        this.measure();
        if (!this.graph) this.build();
        const [from, to] = this.xRange, y = this.yRange[1];
        this.graph.updateOptions({ file: [[from, y], [to, y]], dateWindow: [from, to], valueRange: [...this.yRange],
            axes: { x: { logscale: this.xLog }, y: { logscale: this.yLog } } });
        this.lastDraw = performance.now();
        if (!this.marked && this.curves.some((curve) => curve.whole.x.length > 0)) {
            this.marked = true; /* how long the first picture took can be seen in the browser's tools, and by tests */
            performance.mark('sigma.chart');
        }
        setTimeout(() => { this.cost = 0.7 * this.cost + 0.3 * Math.min(200,
            performance.now() - begin); }); /* after it was painted */
        this.hover.redraw();
    }

    paint(graph, context, area) {
        this.area = area;
        this.map = geometry({ ...this, xRange: graph.xAxisRange(), yRange: graph.yAxisRange() }, area);
        const pen = new CanvasPen(context);
        context.save();
        drawChanges(pen, this, this.map);
        drawCurves(pen, this, this.map);
        context.restore();
    }

    ticks() {
        const { layout_: layout } = this.graph;
        const labelled = (list) => (list ?? []).filter((tick) => tick.label || tick.has_tick)
            .map((tick) => ({ at: tick.pos, label: tick.label ?? '' }));
        return { x: labelled(layout.xticks), y: labelled(layout.yticks) };
    }

    destroy() {
        clearTimeout(this.later);
        this.shown = false;
        this.observer.disconnect();
        this.hover.destroy();
        this.graph?.destroy();
    }
}
