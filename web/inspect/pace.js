/* When a panel looks again by itself at what costs the program a pass over data: not before `interval` milliseconds,
 * and so that its looks take a twenty-first of the time at most. */
const pause = 20; /* times as long as the last look took */

export class Pace {
    constructor(interval) {
        this.interval = interval;
        this.ended = this.took = 0;
    }

    /* A look, which may fail. */
    async during(look) {
        const start = performance.now();
        try {
            return await look();
        } finally {
            this.ended = performance.now();
            this.took = this.ended - start;
        }
    }

    get due() {
        return performance.now() - this.ended > Math.max(this.interval, pause * this.took);
    }
}
