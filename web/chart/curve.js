/* One series of one trainer: (x, minimum, maximum, last) of each piece, null where a value was none (NaN, infinite).
 * Points that are pushed are appended; pieces are joined so that there are never more than twice `limit`. */

const indexOf = { iteration: 0, epoch: 1, seconds: 2 };

export class Pieces {
    constructor(limit) {
        this.limit = limit;
        this.clear();
    }

    clear() {
        this.x = [];
        this.min = [];
        this.max = [];
        this.last = [];
        this.bad = new Set(); /* x of pieces in which a value was none */
        this.reduced = false; /* some piece is more than one point */
    }

    /* As /api/series has it. */
    set(found) {
        this.x = found.x;
        this.min = found.min;
        this.max = found.max;
        this.last = found.last;
        this.bad = new Set(found.x.filter((x, i) => (found.bad ? found.bad[i] > 0 : found.last[i] === null)));
        this.reduced = found.min.some((value, i) => value !== found.max[i]);
    }

    append(x, value) {
        this.x.push(x);
        this.min.push(value);
        this.max.push(value);
        this.last.push(value);
        if (value === null) this.bad.add(x);
        if (this.x.length > 2 * this.limit) this.join();
    }

    /* Pieces of the same width, so old and new parts are as fine as each other. */
    join() {
        const { x, min, max, last } = this, count = x.length;
        const first = x[0], width = (x[count - 1] - first) / this.limit || 1;
        let to = 0;
        const moved = [...this.bad];
        for (let from = 1; from < count; from++) {
            if (Math.floor((x[from] - first) / width) === Math.floor((x[to] - first) / width)) {
                if (min[from] !== null && (min[to] === null || min[from] < min[to])) min[to] = min[from];
                if (max[from] !== null && (max[to] === null || max[from] > max[to])) max[to] = max[from];
            } else {
                to++;
                min[to] = min[from];
                max[to] = max[from];
            }
            x[to] = x[from];
            last[to] = last[from];
        }
        for (const list of [x, min, max, last]) list.length = to + 1;
        this.bad = new Set(moved.map((old) => x[Math.min(to, lowerBound(x, old))]));
        this.reduced = true;
    }
}

export class Curve {
    constructor(trainer, id, axis, limit) {
        this.trainer = trainer;
        this.id = id;
        this.axis = axis;
        this.key = `${trainer}\n${id}`;
        this.whole = new Pieces(limit);
        this.detail = null; /* {from, to, pieces}: a part of it, finer */
        this.loaded = false;
        this.count = 0;
        this.iteration = -Infinity; /* of the newest point that was pushed */
        this.waiting = []; /* points that came before the answer did */
        this.visible = true;
        this.colour = 1;
    }

    set(found) {
        this.whole.set(found);
        this.count = found.count ?? found.x.length;
        this.loaded = true;
        this.iteration = -Infinity;
        const newest = this.whole.x.at(-1) ?? -Infinity, early = this.waiting;
        this.waiting = [];
        for (const point of early) if (point[indexOf[this.axis]] > newest) this.append([point]);
    }

    /* False if the run went back: what is known is no longer what happened. */
    append(points) {
        if (!this.loaded) {
            if (this.waiting.length < 5000) this.waiting.push(...points);
            return true;
        }
        const at = indexOf[this.axis];
        for (const point of points) {
            const x = point[at], newest = this.whole.x.at(-1);
            if (point[0] < this.iteration) return false;
            this.iteration = point[0];
            if (newest !== undefined && x <= newest) continue;
            this.count++;
            this.whole.append(x, point[3]);
            if (this.detail && x >= this.detail.from && x <= this.detail.to) this.detail.pieces.append(x, point[3]);
        }
        return true;
    }

    /* The finest that covers the window. */
    pieces(from, to) {
        const { detail } = this;
        return detail && detail.from <= from && (detail.to >= to || detail.to >= (this.whole.x.at(-1) ?? to))
            ? detail.pieces : this.whole;
    }

    newest() {
        return this.whole.last.at(-1) ?? null;
    }
}

/* Where x is or would be. */
export function lowerBound(list, x) {
    let low = 0, high = list.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (list[middle] < x) low = middle + 1;
        else high = middle;
    }
    return low;
}

export function nearest(list, x) {
    const at = lowerBound(list, x);
    if (at === 0) return list.length > 0 ? 0 : -1;
    if (at === list.length) return at - 1;
    return x - list[at - 1] <= list[at] - x ? at - 1 : at;
}

/* Around each point the line that fits best, near points counting most (by e to the power of minus their distance, in
 * shares of the window): it lags behind neither side, nor does it bend away at the ends. `strength` is 0 to 1; `way`
 * and `span` are of the picture: what is logarithmic there is smoothed so, {x, y: (value) => ..., back: y's inverse}.
 * (A local linear regression, Cleveland 1979, with sums that are carried from point to point.) */
export function smooth(pieces, strength, span, way = plainWay) {
    const { x, last } = pieces, width = strength ** 2 * 0.25 * span, result = new Array(x.length).fill(null);
    const at = [];
    for (let i = 0; i < x.length; i++) if (last[i] !== null && Number.isFinite(way.y(last[i]))) at.push(i);
    const sums = at.map(() => [0, 0, 0, 0, 0]); /* of weights, distances, their squares, values, values * distances */
    for (const step of [1, -1]) {
        let [n, d, dd, v, vd] = [0, 0, 0, 0, 0], before = null;
        for (let k = step > 0 ? 0 : at.length - 1; k >= 0 && k < at.length; k += step) {
            const i = at[k], place = way.x(x[i]);
            if (before !== null) { /* the sums lie around this point from now on */
                const by = before - place, keep = width > 0 ? Math.exp(-Math.abs(by) / width) : 0;
                [n, d, dd, v, vd] = [keep * n, keep * (d + by * n), keep * (dd + 2 * by * d + by * by * n), keep * v,
                    keep * (vd + by * v)];
            }
            const own = way.y(last[i]), sum = sums[k];
            [n, d, dd, v, vd].forEach((part, p) => { sum[p] += part; });
            n += 1;
            v += own;
            if (step > 0) {
                sum[0] += 1;
                sum[3] += own;
            }
            before = place;
        }
    }
    at.forEach((i, k) => {
        const [n, d, dd, v, vd] = sums[k], spread = n * dd - d * d;
        result[i] = way.back(spread > 1e-9 * n * n * width * width ? (dd * v - d * vd) / spread : v / n);
    });
    return result;
}

const plainWay = { x: (value) => value, y: (value) => value, back: (value) => value };
