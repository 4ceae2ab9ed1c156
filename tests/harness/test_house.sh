#!/bin/bash
# The check of the house must fail on what it forbids: a violation of each rule is planted in a copy of the sources.
set -u
cd "$SIGMA_SOURCE_DIR" || exit 1
if ! command -v python3 >/dev/null; then
    echo "test_house.sh: skipped: there is no python3, by which the house is checked"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi
passed=0 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/scripts" && cp scripts/house.py "$folder/scripts/" && cp -r src cli models include "$folder/" || exit 1

# check MESSAGE: the house says it
check()
{
    if [[ "$said" == *"$1"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'test_house.sh: FAILED: expected "%s", got "%s"\n' "$1" "$said"
    fi
}

# plant FILE LINE: adds the line at the end of a file of the copy
plant()
{
    printf '%s\n' "$2" >>"$folder/src/$1"
}

said=$(python3 "$folder/scripts/house.py" 2>&1 >/dev/null; echo "ended with $?")
check "ended with 0"

plant base/text.c '#include "graph/passes.h"'
plant base/error.c '  #include <graph/passes.h>'
plant base/units.c '#include "../graph/passes.h"'
plant base/memory.c '#include <sigma/graph.h>'
plant network/network.c '#include <sigma/data.h>'
plant ../include/sigma/graph.h '#include "sigma/handler.h"'
plant infer/signature.c '#include "runs/run_folder.h"'
plant monitors/terminal.c '#include "trainer/trainer.h"'
plant runs/run_folder.c '#include "trainer/trainer_struct.h"'
plant runs/trainer_attach.c 'void *f(sgm_trainer *t) { return sgm__sharing_of(t)->parallel; }'
plant monitors/json_lines.c '#include "parallel/operator.h"'
plant ../models/tokenizer/utf8.c '#include "base/base.h"'
for number in $(seq 25); do
    plant "hooks/many_$number.c" 'extern int none;'
done
for number in $(seq 0 6); do
    plant "text/circle_$number.c" "$(printf 'void sgm__circle_%d(void)\n{\n    sgm__circle_%d();\n}' "$number" $(((number + 1) % 7)))"
done
said=$(python3 "$folder/scripts/house.py" 2>&1 >/dev/null; echo "ended with $?")
check "ended with 1"
for file in text error units; do
    check "src/base/$file.c includes src/graph/passes.h of a higher floor"
done
check "src/base/memory.c includes sigma/graph.h of a higher floor"
check "src/network/network.c includes sigma/data.h, which stands beside it"
check "models/tokenizer/utf8.c includes src/base/base.h; the companion stands on public headers alone"
check "include/sigma/graph.h includes sigma/handler.h of a higher floor"
check "src/infer/signature.c includes src/runs/run_folder.h, which stands beside it"
check "src/monitors/terminal.c sees src/trainer/trainer.h; src/trainer/view.h is for it"
check "src/runs/run_folder.c sees src/trainer/trainer_struct.h; groups of it are in src/trainer/trainer.h"
check "src/runs/trainer_attach.c looks at a trainer's operator; strategy.h is for it"
check "src/monitors/json_lines.c looks at a trainer's operator; strategy.h is for it"
check "at most 25 and 6000 may be in one folder"
check "src/text: 7 files call each other in a circle, at most 6 may"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
