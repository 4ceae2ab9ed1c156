#!/bin/bash
# The API reference: every public name is documented in its header, and scripts/reference.awk, which says so, knows every
# name. Where Doxygen is installed, it makes the reference without a warning.
set -u
passed=0 failed=0 skipped=0
cd "$SIGMA_SOURCE_DIR" || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
headers=(include/sigma/*.h)

verdict() # NAME STATUS: what it had to say lies in $folder/log
{
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "test_reference.sh: FAILED: $1"
        head -n 20 "$folder/log"
    fi
}

skip()
{
    skipped=$((skipped + 1))
    echo "test_reference.sh: skipped: $1"
}

reference() # WHAT HEADER...
{
    awk -v list="$1" -f scripts/reference.awk "${@:2}"
}

reference undocumented "${headers[@]}" >"$folder/log"
verdict "every public name is documented" $?

# --- it finds what is not ---

cat >"$folder/mine.h" <<'EOH'
/* A header. */
/* Documented. */
typedef struct sgm_thing sgm_thing;
typedef struct sgm_pair {
    int first; /* documented */
    int second, third;
} sgm_pair;
/* Documented. */
typedef enum sgm_colour {
    SGM_RED, /* documented */
    SGM_GREEN
} sgm_colour;
typedef struct sgm_thing_options {
    size_t struct_size;
    double rate; /* documented */
} SGM_BY_NAME sgm_thing_options;
/* Documented. */
#define sgm_thing_create(...) SGM_WITH_OPTIONS(sgm_thing_create_with, sgm_thing_options, __VA_ARGS__)
SGM_API sgm_thing *sgm_thing_create_with(const char *name, const sgm_thing_options *options);
SGM_API void sgm_thing_free(sgm_thing *thing);
SGM_API int sgm_thing_size(const sgm_thing *thing); /* documented,
                                                     * on two lines */
SGM_API int sgm_thing_weight(const sgm_thing *thing,
                             int unit);

typedef void (*sgm_thing_function)(void *user);
#define SGM_LIMIT 4
/* name, text */
#define SGM_KINDS(X) \
    X(SMALL, "not large") \
    X(LARGE, "not small")
#define SGM_KIND(name, text) SGM_##name,
/* Documented. */
typedef enum sgm_size {
    SGM_KINDS(SGM_KIND)
#undef SGM_KIND
    SGM_SIZES
} sgm_size;
EOH
reference undocumented "$folder/mine.h" | sed 's/.*: //' >"$folder/log"
diff - "$folder/log" >"$folder/difference" <<'EOL'
sgm_pair
sgm_pair.second
sgm_pair.third
SGM_GREEN
sgm_thing_weight
sgm_thing_function
SGM_LIMIT
SGM_SIZES
EOL
status=$?
cp "$folder/difference" "$folder/log"
verdict "a name that is not documented is found" $status

# --- it knows all names ---

reference names "${headers[@]}" | sort -u >"$folder/names"
nm -D --defined-only "$SIGMA_BUILD_DIR/libsigma.so" 2>/dev/null | sed -n 's/.* [TDRB] \(sgm_[a-z]\)/\1/p' | sort >"$folder/exported"
if [ -s "$folder/exported" ]; then
    comm -23 "$folder/exported" "$folder/names" >"$folder/log"
    [ ! -s "$folder/log" ]
    verdict "every function of the library is among the names" $?
else
    skip "names of functions: there is no libsigma.so"
fi

echo '#include <sigma/sigma.h>' | cc -Iinclude -E -dM -xc - | sed -nE 's/^#define ((sgm|SGM)_[A-Za-z0-9_]*).*/\1/p' |
    grep -v '_BEHIND' | sort | comm -23 - "$folder/names" >"$folder/log"
[ ! -s "$folder/log" ]
verdict "every macro is among the names" $?

# Types and constants of enums, which neither of these lists has, are in the compiler's debug information.
if echo '#include <sigma/sigma.h>' | cc -Iinclude -fno-eliminate-unused-debug-types -g -c -xc -o "$folder/debug.o" - 2>/dev/null &&
    readelf --debug-dump=info "$folder/debug.o" 2>/dev/null | grep -oE ': (SGM|sgm)_[A-Za-z0-9_]+$' | sed 's/^: //' | sort -u >"$folder/types" &&
    [ -s "$folder/types" ]; then
    comm -23 "$folder/types" "$folder/names" >"$folder/log"
    [ ! -s "$folder/log" ]
    verdict "every type and constant is among the names" $?
else
    skip "names of types: the compiler or readelf tells of none"
fi

# --- what sigma/sigma.h says of all functions ..._free ---

freeing_nothing()
{
    echo '#include <sigma/sigma.h>'
    echo 'int main(void) {'
    grep -E '_free$' "$folder/names" | while read -r name; do
        case $name in
        sgm_attached_hooks_free | sgm_names_free | sgm_interventions_free) echo "$name(NULL, 0);" ;;
        *) echo "$name(NULL);" ;;
        esac
    done
    echo 'return 0; }'
}
if grep -q '^SIGMA_SANITIZE:STRING=.' "$SIGMA_BUILD_DIR/CMakeCache.txt" || [ ! -e "$SIGMA_BUILD_DIR/libsigma.so" ]; then
    skip "NULL can be freed: there is no libsigma.so without sanitizers"
else
    freeing_nothing >"$folder/free.c"
    cc -std=c11 -Iinclude "$folder/free.c" -L"$SIGMA_BUILD_DIR" -lsigma -o "$folder/free" >"$folder/log" 2>&1 &&
        LD_LIBRARY_PATH=$SIGMA_BUILD_DIR "$folder/free" >>"$folder/log" 2>&1
    verdict "NULL can be freed" $?
fi

# --- Doxygen ---

if command -v doxygen >/dev/null; then
    REFERENCE=$folder doxygen docs/Doxyfile >"$folder/log" 2>&1 && [ ! -s "$folder/log" ] &&
        grep -q 'sgm_minibatches' "$folder"/html/group__data__iterators.html
    verdict "Doxygen makes the reference without a warning" $?
else
    skip "there is no doxygen"
fi

echo "$passed passed, $failed failed, $skipped skipped"
exit "$((failed > 0))"
