# shellcheck shell=bash
# Models of tests/onnx/stored_cases.bin as files.

# store NAME FILE: the model of this name of tests/onnx/stored_cases.py: its name and its length are before it.
cases=$SIGMA_SOURCE_DIR/tests/onnx/stored_cases.bin
store()
{
    local at length
    at=$(($(LC_ALL=C grep -abo "$1"'[^ ]' "$cases" | head -n 1 | cut -d: -f1) + ${#1}))
    length=$(od -An -tu4 -j $at -N 4 "$cases" | tr -d ' ')
    tail -c +$((at + 5)) "$cases" | head -c "$length" >"$2"
}
