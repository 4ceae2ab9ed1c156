/* Two pictures of the same examples are compared more easily if they lie the same way: neither projection knows
 * left from right, and t-SNE's may be turned. Points are [x0, y0, x1, y1, ...]. */

/* The axes of `points` mirrored to lie as those of `former`. */
export function mirrored(points, former) {
    const sums = [0, 0];
    points.forEach((value, k) => { sums[k % 2] += value * former[k]; });
    return points.map((value, k) => (sums[k % 2] < 0 ? -value : value));
}

/* `points` turned, or mirrored and turned, to lie nearest to `former` (Procrustes). */
export function turned(points, former) {
    let same = [0, 0], mirror = [0, 0];
    for (let k = 0; k < points.length; k += 2) {
        const [x, y, u, v] = [points[k], points[k + 1], former[k], former[k + 1]];
        same = [same[0] + x * u + y * v, same[1] + x * v - y * u];
        mirror = [mirror[0] + x * u - y * v, mirror[1] + x * v + y * u];
    }
    const flip = Math.hypot(...mirror) > Math.hypot(...same) ? -1 : 1, [a, b] = flip < 0 ? mirror : same;
    const length = Math.hypot(a, b) || 1, c = a / length, s = b / length;
    return points.map((value, k) => (k % 2 === 0 ? c * value - s * flip * points[k + 1]
        : s * points[k - 1] + c * flip * value));
}
