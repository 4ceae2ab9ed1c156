#!/bin/bash
# The operators that docs/onnx.md lists are those of the table, and it says which of them are written; and the
# manual lists the nodes that become layers.
set -u
cd "$SIGMA_SOURCE_DIR" || exit 1
passed=0 failed=0

# verdict NAME: what the two files differ in is a failure.
verdict()
{
    if difference=$(diff "$table" "$document"); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1 (<: the table, >: the document):"
        echo "$difference"
    fi
}

# listed MARK FILE: the words of the paragraph behind a mark of a document.
listed()
{
    sed -n "/<!-- $1 -->/,/^\$/p" "$2" | tail -n +2 | tr -s ' ,\n' '\n' | sed 's/\.$//' | grep . | sort -u
}

table=$(mktemp) document=$(mktemp)
trap 'rm -f "$table" "$document"' EXIT
rows=$(grep -oE '(READ|RECORDED|BOTH)\("[A-Za-z0-9.]+"' src/onnx/nodes/operators.h)
cut -d'"' -f2 <<<"$rows" | sort -u >"$table"
listed "operators read" docs/onnx.md >"$document"
verdict "operators that are read"
grep BOTH <<<"$rows" | cut -d'"' -f2 | sort -u >"$table"
listed "operators written" docs/onnx.md >"$document"
verdict "operators that are written"
sed -n '/^static const sgm__translation_layer layers/,$p' models/onnx/layers.c | grep -oE '^    \{"[A-Za-z]+"' |
    cut -d'"' -f2 | grep -v '^Div$' | sort -u >"$table" # which only begins gelu
listed "nodes that are layers" docs/manual/29-models.md >"$document"
verdict "nodes that are layers"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
