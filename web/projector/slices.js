/* Work in slices: the page answers its user between them, and the browser draws. */

const slice = 10; /* milliseconds of work at once */

/* Runs a generator to its end, and gives what it returns. `signal` ends it early with an AbortError; `shown(value)`
 * gets the newest value that it yielded, once a slice. */
export async function inSlices(work, signal, shown = () => {}) {
    for (;;) {
        const end = performance.now() + slice;
        let step, newest;
        do {
            step = work.next();
            if (step.done) return step.value;
            newest = step.value ?? newest;
        } while (performance.now() < end);
        if (newest !== undefined) shown(newest);
        await new Promise((resolve) => { setTimeout(resolve, 0); });
        signal?.throwIfAborted();
    }
}
