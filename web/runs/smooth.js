/* A running mean of a curve, as TensorBoard shows it: exponential, with the bias of its beginning taken out. */

/* m = weight m + (1 - weight) y, begun with 0, divided by 1 - weight^n (Kingma and Ba, "Adam", 2015, section 3): the
 * first points are means of what there is, not drawn towards 0. Points are {x, y, ...}; weight 0: as they are. */
export function smoothed(points, weight) {
    if (!(weight > 0)) return points;
    let mean = 0, power = 1;
    return points.map((point) => {
        mean = weight * mean + (1 - weight) * point.y;
        power *= weight;
        return { ...point, y: mean / (1 - power) };
    });
}
