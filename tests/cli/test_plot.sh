#!/bin/bash
# sigma eval --plot: a confusion matrix, or predicted against true numbers, as SVG and as PNG; and --json names classes
# and targets.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

awk 'BEGIN {
    srand(7); split("cat|<dog & co>|rabbit", species, "|")
    print "id,weight,species,price,rent"
    for (i = 1; i <= 300; i++) {
        k = int(rand() * 3) + 1; weight = k == 1 ? 4 + 3 * rand() : k == 2 ? 6 + 10 * rand() : 1 + 4 * rand()
        printf "%d,%.2f,%s,%.2f,%.3f\n", i, weight, species[k], 100 * weight + 50 * rand(), weight / 3
    }
}' >pets.csv
echo 'data: {training: {csv: pets.csv, target: species, drop: [id, price, rent]}, split: 0.8}' >pets.yaml
echo 'data: {training: {csv: pets.csv, target: [price, rent], drop: [id, species]}, split: [0.6, 0.2]}' >price.yaml
run 0 train pets.yaml --folder pets --quiet epochs=8 seed=1
run 0 train price.yaml --folder price --quiet epochs=8 seed=1

# --- classes: each count of the table stands in the picture, names are escaped ---
run 0 eval pets --plot pets.svg
has out '^plot: pets\.svg$'
has pets.svg '^<svg xmlns="http://www\.w3\.org/2000/svg" width="[0-9]+" height="[0-9]+"'
has pets.svg '>0 &lt;dog &amp; co&gt;</text>' # the longest name is wider than a column, so columns have numbers
has pets.svg '>predicted</text>'
run 0 eval pets --json --plot pets.svg
has out '"classes": \["<dog & co>", "cat", "rabbit"\], "confusion": \[\['
same '--json prints one line' "$(wc -l <out)" 1
sed -E 's/.*"confusion": \[(\[.*\])\], "worst.*/\1/; s/[^0-9]+/\n/g' out | grep -vx -e 0 -e '' | sort -n >counts
grep -A1 '<rect x=' pets.svg | grep -oE '"middle" fill="#(ffffff|222222)">[0-9]+<' | grep -oE '>[0-9]+' | tr -d '>' | sort -n >drawn
same 'all counts are drawn' "$(cat drawn)" "$(cat counts)"
if command -v xmllint >/dev/null; then
    xmllint --noout pets.svg
    verdict 'the picture is XML' $?
fi

# --- numbers: a panel for each target, a point for each row; the diagonal ---
run 0 eval price pets.csv --plot price.svg
same 'a point for each row and target' "$(grep -c '<circle' price.svg)" 600
has price.svg '>price: R squared 0\.[0-9]{4} \(300\)</text>'
has price.svg '>rent: R squared 0\.[0-9]{4} \(300\)</text>'
run 0 eval price pets.csv --json
has out '"targets": \["price", "rent"\], "mean_absolute_error"'
has out '"mean_absolute_error_per_target": \[[0-9.]+, [0-9.]+\].*"r_squared_per_target": \[0\.[0-9]+, 0\.[0-9]+\]'
run 0 eval price pets.csv
has out '^  price: mean_absolute_error [0-9.]+, root_mean_squared_error [0-9.]+, r_squared 0\.[0-9]{4}$'
awk '/^  price/ { price = $3 } /^  rent/ { rent = $3 } END { exit !(price + 0 > 100 * rent && rent + 0 > 0) }' out
verdict 'errors of each target are in its units' $? out

# --- PNG: Sigma reads it, and it is twice as many pixels as the SVG has units ---
mkdir -p pictures/a pictures/b
run 0 eval pets --plot pictures/a/pets.png
run 0 eval price pets.csv --plot pictures/b/price.png
run 0 data pictures
has out 'a: 1, 700 x 560 pixels$'
has out 'b: 1, 1680 x 840 pixels$'

# --- what cannot be drawn ---
run 2 eval pets --plot pets.gif
has err "\-\-plot: expected FILE\.svg or FILE\.png, got 'pets\.gif'"
run 2 eval price --plot price.svg
has err '\-\-plot draws one of validation and test data: say which with --data NAME'
run 0 eval price --data test --plot price.svg
run 1 eval pets --plot nowhere/pets.svg
has err 'nowhere/pets\.svg'
finish
