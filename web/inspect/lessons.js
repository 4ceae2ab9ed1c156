/* What changed between two answers of GET /api/losses, lists of [index, target, prediction, loss]: the `most` examples
 * whose loss rose most, and those whose loss fell most. What hardly moved is in neither. */
const least = 1e-3;

export function lessons(before, now, most) {
    const former = new Map(before.map(([index, , , loss]) => [index, loss]));
    const moved = now.map(([index, , prediction, to]) => ({ index, prediction, from: former.get(index) ?? null, to }))
        .filter(({ from, to }) => from !== null && to !== null && Math.abs(to - from) >= least)
        .sort((a, b) => (b.to - b.from) - (a.to - a.from));
    return { worse: moved.filter(({ from, to }) => to > from).slice(0, most),
        better: moved.filter(({ from, to }) => to < from).reverse().slice(0, most) };
}
