#!/bin/bash
# Installs to a temporary folder and uses the installation as a stranger would: from C11 and C++17, through pkg-config
# and through CMake.
set -u
passed=0 failed=0

finish()
{
    echo "$passed passed, $failed failed, $1 skipped"
    [ "$failed" -eq 0 ] || exit 1
    exit "$2"
}

if grep -q '^SIGMA_SANITIZE:STRING=.' "$SIGMA_BUILD_DIR/CMakeCache.txt"; then
    echo "test_install.sh: skipped: the library was built with sanitizers"
    finish 1 77
fi

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# check "name" command...: one test; its output is shown when it fails.
check()
{
    local name=$1
    shift
    if "$@" >"$folder/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "test_install.sh: FAILED: $name"
        tail -n 20 "$folder/log"
    fi
}

# The installation is moved after it was made: nothing in it may hold on to where it was meant to be.
install_tree()
{
    DESTDIR=$folder/dest cmake --install "$SIGMA_BUILD_DIR" --prefix /opt/somewhere &&
        mv "$folder/dest/opt/somewhere" "$folder/sigma"
}
check "cmake --install" install_tree
root=$folder/sigma
pc=$(find "$root" -name sigma.pc | head -n 1)
library=$(find "$root" -name libsigma.so | head -n 1)
export PKG_CONFIG_PATH=${pc%/*}
export LD_LIBRARY_PATH=${library%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# What the core and the library of models export.
exported_symbols()
{
    nm -D --defined-only "$library" "${library%/*}/libsigma_models.so" | awk 'NF > 1 { print $NF }'
}

only_public_symbols()
{
    local names
    names=$(exported_symbols) || return 1
    echo "$names" | grep -q '^sgm_version$' || { echo "sgm_version is not exported"; return 1; }
    echo "not public:"
    ! echo "$names" | grep -vE '^sgm_[^_]'
}
check "exports only sgm_ symbols" only_public_symbols

check "SONAME is libsigma.so.0" \
    bash -c 'readelf -d "$1" | grep -q "SONAME.*\[libsigma\.so\.0\]"' - "$library"
check "libsigma.so.0 is there" test -e "${library%/*}/libsigma.so.0"

# What the headers promise is there, and nothing is there that they do not speak of.
headers_keep_their_promises()
{
    cat "$root"/include/sigma/*.h | cc -E -P -I"$root/include" -x c - | grep -oE '\bsgm_[a-z0-9_]+\(' |
        tr -d '(' | sort -u >"$folder/declared"
    exported_symbols | sort -u >"$folder/exported"
    echo "declared, or exported, alone:"
    [ -s "$folder/declared" ] && ! comm -3 "$folder/declared" "$folder/exported" | grep .
}
check "exports what the headers declare" headers_keep_their_promises

headers_stand_alone()
{
    local header
    for header in "$root"/include/sigma/*.h; do
        echo "#include <sigma/${header##*/}>" >"$folder/one.c"
        cc -std=c11 -Wall -Wextra -Werror -pedantic -I"$root/include" -fsyntax-only "$folder/one.c" || return 1
        cp "$folder/one.c" "$folder/one.cpp"
        c++ -std=c++17 -Wall -Wextra -Werror -pedantic -I"$root/include" -fsyntax-only "$folder/one.cpp" || return 1
    done
}
check "each public header stands alone, in C11 and C++17" headers_stand_alone

# Every macro that takes options is given numbers without names, and each is an error.
options_have_names()
{
    local value=$1 macro takers refused all=-fmax-errors=0
    ! cc --version | grep -q clang || all=-ferror-limit=0
    cat "$root"/include/sigma/*.h >"$folder/all.h"
    sed -nE 's/^#define ([A-Za-z0-9_]+)\(.*\.\.\.\).*/\1/p' "$folder/all.h" >"$folder/macros"
    {
        echo '#include "all.h"'
        while read -r macro; do
            echo "void give_$macro(void) { $macro($value, $value, $value, $value, $value, $value, $value); }"
        done <"$folder/macros"
    } >"$folder/one.c"
    takers=$(cc -E -P -I"$root/include" "$folder/one.c" | grep 'void give_' | grep -c 'struct_size =')
    cc -std=c17 -w $all -fsyntax-only -I"$root/include" "$folder/one.c" 2>"$folder/said"
    refused=$(grep -c 'error: static.*options have names' "$folder/said")
    echo "$refused of $takers macros refuse numbers"
    [ "$takers" -gt 100 ] && [ "$refused" = "$takers" ]
}
check "options without a name do not compile" options_have_names 1
check "nor do they where they begin with a dot" options_have_names .5

# The function beneath a macro has its name and _with, but where one function makes all of a kind.
beneath_macros()
{
    cc -E -P -I"$root/include" "$folder/one.c" |
        sed -nE 's/^void give_(sgm_[a-z0-9_]+)\(void\) \{ (sgm_[a-z0-9_]+)\(.*struct_size.*/\1 \2/p' >"$folder/pairs"
    awk '$2 != $1 "_with" && $2 !~ /^sgm_(initialiser|layer|metric|optimiser)_create$/' "$folder/pairs" >"$folder/others"
    echo "other names:" && cat "$folder/others"
    [ "$(wc -l <"$folder/pairs")" -gt 100 ] && [ ! -s "$folder/others" ]
}
check "the function beneath a macro is called like it" beneath_macros

# Behind a name, too: gcc knows it of every struct of options.
options_are_marked()
{
    local members marked
    members=$(grep -c '^    size_t struct_size;' "$folder/all.h")
    marked=$(grep -c '^} SGM_BY_NAME sgm_' "$folder/all.h")
    echo "$marked of $members structs are marked"
    [ "$members" -gt 40 ] && [ "$members" = "$marked" ] || return 1
    gcc --version >/dev/null 2>&1 || return 0
    echo '#include <sigma/data.h>
        sgm_iterator *give(sgm_dataset *data) { return sgm_minibatches(data, .size = 64, 1); }' >"$folder/one.c"
    gcc -std=c17 -fsyntax-only -I"$root/include" "$folder/one.c" 2>&1 | grep 'warning: positional initialization'
}
check "gcc warns of options without a name behind others" options_are_marked

cat >"$folder/user.c" <<'END'
#include <sigma/tensor.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const int64_t dims[] = {2, 3};
    const sgm_shape shape = sgm_shape_create(2, dims);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    const int64_t last[] = {1, 2};
    char text[128];

    if (!tensor) {
        fprintf(stderr, "%s\n", sgm_last_error());
        return 1;
    }
    sgm_tensor_set(tensor, last, 2.5);
    printf("%s %s %g\n", sgm_version(), sgm_shape_text(sgm_tensor_shape(tensor), text, sizeof text),
           sgm_tensor_get(tensor, last));
    sgm_tensor_free(tensor);
    return 0;
}
END
cp "$folder/user.c" "$folder/user.cpp"
expected="0.1.0 (2, 3) 2.5"

prints_expected()
{
    local output
    output=$("$1") || return 1
    echo "printed '$output', expected '$expected'"
    [ "$output" = "$expected" ]
}

with_pkg_config()
{
    local compiler=$1 standard=$2 source=$3
    shift 3
    # shellcheck disable=SC2046 # flags are words
    $compiler -std="$standard" -Wall -Wextra -Werror -pedantic "$folder/$source" -o "$folder/user" \
        $(pkg-config --cflags sigma) "$@" && prints_expected "$folder/user"
}
# shellcheck disable=SC2046
{
    check "C11 with pkg-config" with_pkg_config cc c11 user.c $(pkg-config --libs sigma)
    check "C++17 with pkg-config" with_pkg_config c++ c++17 user.cpp $(pkg-config --libs sigma)
}
needs_the_shared_sigma()
{
    readelf -d "$folder/user" | grep 'NEEDED.*libsigma\.so'
}
check "without --static the shared library is linked" needs_the_shared_sigma
# shellcheck disable=SC2046
check "C11 with pkg-config --static" with_pkg_config cc c11 user.c $(pkg-config --static --libs sigma)
needs_no_shared_sigma()
{
    readelf -d "$folder/user" >"$folder/needed" && grep -q 'NEEDED.*libc\.so' "$folder/needed" &&
        ! grep 'NEEDED.*libsigma' "$folder/needed"
}
check "--static links the static library, though the shared one lies beside it" needs_no_shared_sigma
without_shared_library()
{
    mkdir "$folder/aside" && mv "${library%/*}"/libsigma.so* "$folder/aside" || return 1
    # shellcheck disable=SC2046
    with_pkg_config cc c11 user.c $(pkg-config --static --libs sigma)
    local result=$?
    mv "$folder"/aside/libsigma.so* "${library%/*}" && return "$result"
}
check "pkg-config --static, where there is only the static library" without_shared_library
check "pkg-config asks for one include folder" test "$(pkg-config --cflags sigma | wc -w)" = 1
check "pkg-config knows the version" test "$(pkg-config --modversion sigma)" = "0.1.0"

cat >"$folder/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(user C CXX)
find_package(sigma 0.1 REQUIRED COMPONENTS static)
set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 17)
add_compile_options(-Wall -Wextra -Werror -pedantic)
add_executable(user_c user.c)
target_link_libraries(user_c sigma::sigma)
add_executable(user_cpp user.cpp)
target_link_libraries(user_cpp sigma::sigma)
add_executable(user_static user.c)
target_link_libraries(user_static sigma::static)
END
with_cmake()
{
    cmake -G Ninja -S "$folder" -B "$folder/build" -DCMAKE_PREFIX_PATH="$root" && cmake --build "$folder/build"
}
check "find_package(sigma)" with_cmake
for program in user_c user_cpp user_static; do
    check "$program, built with CMake" prints_expected "$folder/build/$program"
done

if [ -x "$SIGMA_BUILD_DIR/sigma" ]; then
    check "the sigma command is installed" test -x "$root/bin/sigma"
    for place in bash-completion/completions/sigma zsh/site-functions/_sigma fish/vendor_completions.d/sigma.fish; do
        check "completion in share/$place" grep -q 'completion candidates' "$root/share/$place"
    done
fi
finish 0 0
