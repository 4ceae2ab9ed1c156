#!/bin/bash
# sigma report: runs as one HTML file.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# --- usage ---
run 2 report
has err 'expected the folders of one run or more'
run 1 report nothing
has err "there is no folder 'nothing'"
mkdir empty
run 1 report empty
has err "'empty' is no folder of a run"
[ ! -e report.html ]
verdict "a report that fails leaves no file" $?

# --- of a run that was steered, and of another one ---
"$sigma" train "$examples/digits.yaml" epochs=2 --folder steered --paused >train.out 2>train.err </dev/null &
process=$!
for _ in $(seq 400); do
    "$sigma" ctl steered status >out 2>err && grep -qE '^state +paused$' out && break
    sleep 0.05
done
run 0 ctl steered set optimiser.learning_rate 0.0125
run 0 ctl steered resume
wait "$process"
process=
run 0 train "$examples/digits.yaml" epochs=2 seed=7 --folder other --quiet
echo '{"note": "as <before>", "tags": ["baseline"]}' >other/notes.json
run 0 report steered other/ --out both.html --title 'Two & more'
has out 'report: both.html'
has both.html '<h1>Two &amp; more</h1>'
has both.html 'optimiser.learning_rate was set to 0.0125'
has both.html 'as &lt;before&gt;'
has both.html '<span class="tag">baseline</span>'
has both.html '<td class="m other">7</td>'
has both.html '<polyline class="s1"'
verdict "it leads nowhere and has no script" "$(grep -cE 'https?:|//|src=|<script' both.html)"
finish
