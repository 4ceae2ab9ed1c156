#!/bin/bash
# `sigma completion`: what is offered for the words of a command line, and the scripts in the shells themselves.
. "${0%/*}/check.sh"

# offers WORDS... -- WANTED: the last of the words is completed to a line that matches.
offers()
{
    local -a words=()
    while [ "$1" != -- ]; do
        words+=("$1")
        shift
    done
    "$sigma" completion candidates "${words[@]}" >out 2>err
    has out "$2"
}
offers "" -- $'^train\ttrain what a file describes$'
offers pre -- '^predict'
same "other commands" "$(grep -cv '^predict' out)" 0
offers help ex -- '^export'
offers train "" -- $'^:files\t\tyaml'
offers train --fol -- $'^--folder\twhere the run is kept'
offers train --log-level "" -- '^warning'
offers train a.yaml data.training. -- $'^data\\.training\\.csv=\ta table'
offers train a.yaml data.training.csv=pe -- $'^:files\tdata\\.training\\.csv='
offers train a.yaml optimiser.type=ada -- '^optimiser\.type=adagrad'
offers train --folder run a.yaml data.shu -- '^data\.shuffle='
offers train a.yaml data.shuffle=f -- '^data\.shuffle=false'
offers train a.yaml data.training.dataset=ir -- '^data\.training\.dataset=iris'
offers train a.yaml optimiser.schedule.kind=cos -- '^optimiser\.schedule\.kind=cosine'
offers predict run --data va -- '^validation'
offers eval run --metrics per -- '^perplexity'
offers ctl run st -- '^status'
offers mcp runs --role st -- '^steer'
offers ctl run attach early -- '^early_stopper'
offers info soft -- '^softmax_cross_entropy'
offers data ir -- '^iris'
offers completion z -- '^zsh'
"$sigma" completion candidates nothing "" >out 2>err
same "offers of no command" "$(cat out)" ""
# Every command has an answer for its options.
for command in train search find-rate ctl replay monitor mcp eval predict export serve generate tokenize inspect data info; do
    offers $command --he -- '^--help'
    offers $command --plug -- '^--plugin'
done
run 2 completion tcsh
has err "there is no script for 'tcsh'; there are bash, zsh and fish"
run 2 completion
has err "expected bash, zsh or fish"

# The shells, with files and a blank in a name.
mkdir bin && ln -s "$sigma" bin/sigma
export PATH=$PWD/bin:$PATH
touch pets.csv "my pets.csv" pets.yaml other.txt
mkdir runs
cat >shell.bash <<'END'
source <(sigma completion bash)
COMP_LINE=$1 COMP_POINT=${#1}
read -ra COMP_WORDS <<<"$1"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_sigma
printf '%s\n' "${COMPREPLY[@]}"
END
in_bash()
{
    bash shell.bash "$1" >out 2>err
    has out "$2"
    same "errors of bash" "$(cat err)" ""
}
in_bash "sigma tra" '^train$'
in_bash "sigma train p" '^pets\.yaml$'
same "files of other kinds" "$(grep -c 'txt$' out)" 0
in_bash "sigma train r" '^runs$'
in_bash "sigma train pets.yaml epo" '^epochs=$'
# bash has cut the word at '=', and replaces what is behind.
in_bash "sigma train pets.yaml optimiser.type=adagr" '^adagrad$'
in_bash "sigma train pets.yaml data.training.csv=my" '^my pets\.csv$'
in_bash "sigma predict run --da" '^--data$'

if command -v zsh >/dev/null; then
    mkdir functions && sigma completion zsh >functions/_sigma
    cat >shell.zsh <<'END'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; TERM=dumb; cd $PWD; path=($PWD/bin \$path); fpath=($PWD/functions \$fpath)"
zpty -w shell "autoload -Uz compinit; compinit -u -D"
sleep 1
for typed in "sigma find-r" "sigma train pets.y" "sigma train pets.yaml optimiser.type=adagr"; do
    zpty -n -w shell "$typed"$'\t'
    sleep 1
    zpty -n -w shell $'\x01: \x05\n' # the line becomes a comment, and is ended
    sleep 0.3
done
while zpty -r -t shell chunk; do print -rn -- "$chunk"; done
END
    timeout 60 zsh -f shell.zsh 2>err | tr '\r' '\n' >out
    has out 'sigma find-rate'
    has out 'sigma train pets\.yaml'
    has out 'optimiser\.type=adagrad'
fi
if command -v fish >/dev/null; then
    export HOME=$PWD
    mkdir -p .config/fish/completions && sigma completion fish >.config/fish/completions/sigma.fish
    in_fish()
    {
        fish -c "complete -C '$1'" >out 2>err
        has out "$2"
    }
    in_fish "sigma tra" $'^train\ttrain what a file describes$'
    in_fish "sigma train pets.yaml epo" '^epochs='
    in_fish "sigma train pets.yaml optimiser.type=adagr" '^optimiser.type=adagrad'
    in_fish "sigma train pe" '^pets\.yaml'
    same "files of other kinds in fish" "$(grep -c 'csv$' <(fish -c "complete -C 'sigma train p'" | grep txt))" 0
    in_fish "sigma train pets.yaml data.training.csv=pe" '^data.training.csv=pets\.csv'
fi
finish
