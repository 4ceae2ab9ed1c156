#!/bin/bash
# Plug-ins of the command: examples/plugin is built as its Makefile says and run, the rule for folders of runs, refusals.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"
export SIGMA_STATE_DIR=$folder/state

# A pkg-config that knows Sigma, as if it were installed.
mkdir bin
cat >bin/pkg-config <<SH
#!/bin/sh
[ "\$*" = "--cflags sigma" ] && echo "-I$SIGMA_SOURCE_DIR/include"
SH
chmod +x bin/pkg-config
cp -r "$examples/plugin" work
(PATH=$folder/bin:$PATH make -C work CFLAGS='-O2 -Wall -Wextra -Werror' CC=cc) >out 2>err
verdict 'the example is built' $?
plugin=$(realpath work/spirals.so)

# --- a file that is named loads its plug-ins; paths begin at its folder ---
run 0 train work/spirals.yaml --folder run --quiet
has out '^validation: loss 0\.0[0-9]+, accuracy (9[5-9]|100)\.[0-9]+ % \(400 examples\)$'
has out '^epoch 60: scaled loss [0-9]+\.[0-9]{3}$'
has run/config.yaml "^plugins: \[$plugin\]$"
has run/metrics.jsonl '"validation.brier": ?0\.'
same 'what is remembered' "$(cat state/plugins)" "$plugin"

# --- a monitor of the plug-in ---
run 0 train work/spirals.yaml --folder told --quiet epochs=3 hooks=[] 'monitors=["losses:told.txt"]'
same 'a line for each epoch' "$(grep -cE '^spirals [123] [0-9]+\.[0-9]{4}$' told.txt)" 3
run 0 train told --resume --quiet epochs=4
same 'the run tells its monitor, too' "$(cat told.txt)" "$(grep '^spirals 4' told.txt)"
run 1 train work/spirals.yaml --folder none --quiet epochs=1 hooks=[] 'monitors=[gains]'
has err "monitors: there is no monitor 'gains'; there are: losses"
run 1 train work/spirals.yaml --folder none --quiet epochs=1 hooks=[] 'monitors=[losses]'
has err "monitor 'losses': cannot write '': expected losses:FILE"
[ ! -e none/checkpoint.safetensors ]
verdict 'nothing is trained without its monitor' $?

# --- its run needs no option ---
run 0 predict run --data validation
same 'a line for each example' "$(wc -l <out)" 400
run 0 predict run --data validation --json
cp out answers
run 0 eval run --data validation --metrics brier --json
cp out scores
# The Brier score by its definition, from the probabilities that predict prints; the classes take turns.
python3 - >expected 2>err <<'PY'
import json
rows = [json.loads(line) for line in open("answers")]
rows = [row if isinstance(row, list) else next(v for v in row.values() if isinstance(v, list)) for row in rows]
score = sum((p - (k == i % 2)) ** 2 for i, row in enumerate(rows) for k, p in enumerate(row)) / len(rows)
text = open("scores").read()
print("close" if abs(json.loads(text)["brier"] - score) < 1e-6 else (text, score))
PY
same 'the Brier score' "$(cat expected)" close
run 0 inspect run
has out 'gain +2?[0-9]* parameters'
run 0 export --onnx run.onnx run
run 0 train run --resume --quiet epochs=61
same 'no change is warned of' "$(cat err)" ''

# --- --plugin, for every command ---
run 0 info --plugin "$plugin"
has out ' gain$'
has out ' signum$'
has out '^  spirals '
has out '^  losses +a line with the loss of each epoch into a file$'
run 0 info --hooks --plugin "$plugin"
has out '^\[every epoch\] brier\(data=validation'
has out 'scaled_loss\(factor=100\)'
run 0 data spirals:2 --plugin "$plugin" --count 1
has out '400 examples'
sed '/^plugins/d' work/spirals.yaml >bare.yaml
run 2 train bare.yaml --quiet
run 0 train bare.yaml --plugin work/spirals.so --folder bare --quiet epochs=1 hooks=[]
has bare/config.yaml "^plugins: \[$plugin\]$"
run 0 train work/spirals.yaml --plugin work/spirals.so --folder twice --quiet epochs=1 hooks=[]
has twice/config.yaml "^plugins: \[$plugin\]$"
run 0 train bare.yaml "plugins=[work/spirals.so]" --folder given --quiet epochs=1 hooks=[]

# --- the folder of a run runs no code that the user has not run ---
cat >mark.c <<'C'
#include <sigma/sigma.h>
#include <stdio.h>
static sgm_status init(void)
{
    fclose(fopen("ran", "w"));
    return SGM_OK;
}
SGM_API const sgm_plugin sigma_plugin = {.api = SGM_PLUGIN_API, .name = "mark", .init = init};
C
library() # library NAME.c: compiles NAME.so
{
    cc -std=c11 -I"$SIGMA_SOURCE_DIR/include" -shared -fPIC -o "${1%.c}.so" "$1" >out 2>err
    verdict "compiling $1" $?
}
library mark.c
cp -r run stranger
sed -i "s|^plugins: .*|plugins: [../mark.so]|" stranger/config.yaml
for command in 'predict stranger --data xor' 'eval stranger' 'export --c a.c stranger' \
    'serve stranger' 'train stranger --resume' 'find-rate stranger' 'data stranger/config.yaml'; do
    # shellcheck disable=SC2086 # words
    "$sigma" $command >out 2>err </dev/null
    [ $? -ne 0 ]
    verdict "sigma $command is refused" $?
    has err "plugins: '.*/mark.so' is code that you have not loaded before.*add --plugin '.*mark.so'$"
done
run 0 inspect stranger # which shows the parameters without any layer
[ ! -e ran ]
verdict 'nothing of it ran' $?
run 0 info --plugin mark.so
[ -e ran ]
verdict 'asked for, it ran' $?
SIGMA_STATE_DIR=$folder/other run 1 predict run --data validation
has err 'is code that you have not loaded before'

# --- moved and gone ---
mkdir moved
mv work/spirals.so moved
run 1 predict run --data validation
has err "run/config.yaml: plugins: there is no '$plugin'; build it, or say where it is now with --plugin FILE"
run 0 predict run --data validation --plugin moved/spirals.so

# --- refusals ---
run 2 info --plugin nowhere.so
has err "there is no plug-in 'nowhere.so': No such file or directory"
echo 'no library' >text.so
run 2 info --plugin text.so
has err "'.*/text.so' is no shared library; build one with cc -shared -fPIC"
head -c $(($(stat -c %s mark.so) / 2)) mark.so >half.so
run 2 info --plugin half.so
has err "'.*/half.so' has [0-9]+ bytes, which is not all of it; build or copy it again"
echo 'int nothing;' >empty.c
library empty.c
run 2 info --plugin empty.so
has err "'.*/empty.so' is no plug-in: it has no symbol sigma_plugin; define"
sed 's/SGM_PLUGIN_API/SGM_PLUGIN_API + 1/' mark.c >newer.c
library newer.c
rm -f ran
run 2 info --plugin newer.so
has err "newer.so' has the API number 2, this library wants 1: compile it again"
[ ! -e ran ]
verdict 'another API number is not begun' $?
sed 's/"mark"/NULL/' mark.c >nameless.c
library nameless.c
run 2 info --plugin nameless.so
has err "wants a .name and an .init"
cp mark.so second.so
run 2 info --plugin mark.so --plugin second.so
has err "the plug-in 'mark' of '.*second.so' is loaded already, from '.*mark.so'; leave one of them out"
run 0 info --plugin mark.so --plugin ./mark.so
sed 's/return SGM_OK/return sgm_fail(SGM_ERROR_FILE, "the table of stars is missing")/' mark.c >failing.c
library failing.c
run 2 info --plugin failing.so
has err "the plug-in 'mark' of '.*failing.so' could not begin: the table of stars is missing"
for each in one other; do # which load each other
    sed "s/\"mark\"/\"$each\"/; s/return SGM_OK/return sgm_plugin_load(\"$([ $each = one ] && echo other || echo one).so\")/" mark.c >$each.c
    library $each.c
done
run 0 info --plugin one.so
same 'both are loaded' "$(tail -n 1 state/plugins)" "$(realpath one.so)"
echo 'void sgm_unheard(void); void call(void); void call(void) { sgm_unheard(); }' >newer_call.c
library newer_call.c
run 2 info --plugin newer_call.so
has err 'cannot be loaded: .*sgm_unheard'
sed 's|^plugins.*|plugins: [./nowhere.so]|' work/spirals.yaml >work/wrong.yaml
run 2 train work/wrong.yaml
has err "work/wrong.yaml: plugins: there is no '.*/work/./nowhere.so'; build it"

# --- a program in C ---
if ! grep -q '^SIGMA_SANITIZE:STRING=.' "$SIGMA_BUILD_DIR/CMakeCache.txt"; then
    cat >program.c <<'C'
#include <sigma/sigma.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    const char *path = NULL;
    if (argc != 2 || sgm_plugin_load(argv[1]) != SGM_OK || sgm_plugin_load(argv[1]) != SGM_OK)
        return fprintf(stderr, "%s\n", sgm_last_error()), 1;
    sgm_dataset *dataset = sgm_dataset_open("spirals");
    printf("%s %d %d\n", sgm_plugin_at(0, &path)->name, sgm_plugin_at(1, NULL) == NULL, dataset != NULL);
    sgm_dataset_free(dataset);
    return path == NULL;
}
C
    cc -std=c11 -I"$SIGMA_SOURCE_DIR/include" -o program program.c -L"$SIGMA_BUILD_DIR" -lsigma \
        -Wl,-rpath,"$SIGMA_BUILD_DIR" >out 2>err && ./program moved/spirals.so >out 2>err
    verdict 'a program loads it' $?
    has out '^spirals 1 1$'
fi
finish
