#!/usr/bin/env bash
# Gates of the C interface: header, symbols of the libraries, C tests under sanitizers and valgrind.
# One line for each, then "N passed, N failed, N skipped". Missing tools: see tools.sh.
set -uo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-$PWD/target}"
work="$target/gates"
mkdir -p "$work"
source scripts/gate.sh
source scripts/symbols.sh

strict="-Wall -Wextra -Wpedantic -Werror"
sanitize="-g -fsanitize=address,undefined -fno-sanitize-recover=all"

# header COMPILER STANDARD HEADER: the header is all that a program needs to include.
header() {
    local language=c
    [[ $2 == c++* ]] && language=c++
    echo "#include \"$3\"" | $1 -std="$2" -x $language $strict -Iinclude -fsyntax-only -
}

functions_of_header() {
    grep -oE '^[a-z][a-z0-9_ ]*[ *]kvf_[a-z0-9_]+\(' include/kvfolio.h | grep -oE 'kvf_[a-z0-9_]+\(' | tr -d '(' | sort
}
# What it exports, names with their versions; the version itself is an absolute symbol.
exports() { nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sort; }
needed() { objdump -p "$1" | awk '/NEEDED/ { print $2 }'; }

# program NAME COMPILER FLAGS: builds a program of tests/c and runs it. `run` is put before it, `dialect` is the standard of a C file.
program() {
    local name=$1 compiler=$2 source=tests/c/$1.c
    shift 2
    [ -f "$source" ] || source=tests/c/$name.cpp
    local as=${dialect:-c11}
    [[ $source == *.cpp ]] && as=c++11
    $compiler -std=$as $strict -Iinclude -I"$work" "$@" -o "$work/$name" &&
        ${run:-} "$work/$name"
}

hosted() {
    scripts/tools.sh gcc g++ clang clang++ asan-clang valgrind nm python3 || exit 1

    gate "header and exports are what ffi/src says" cargo run -q -p xtask -- header --check
    for compiler in gcc clang; do
        local plus=${compiler/gcc/g}++
        [ $compiler = clang ] && plus=clang++
        for standard in c99 c11; do
            gate "kvfolio.h alone, $compiler -std=$standard" header $compiler $standard kvfolio.h
        done
        for standard in c++11 c++17; do
            gate "kvfolio.h alone, $plus -std=$standard" header $plus $standard kvfolio.h
            gate "kvfolio.hpp alone, $plus -std=$standard" header $plus $standard kvfolio.hpp
        done
    done

    gate "libraries build" cargo run -q -p xtask -- capi || return
    gate "libraries build with checks" cargo run -q -p xtask -- capi --check || return
    local archive="$target/capi/libkvfolio.a" shared="$target/capi/libkvfolio.so"
    functions_of_header >"$work/functions"
    sed 's/$/@@KVFOLIO_0/' "$work/functions" >"$work/versioned"
    exports "$shared" >"$work/exports"
    defines "$archive" >"$work/defined"
    gate "no panic symbol in the archive" empty panics "$archive"
    gate "no panic symbol in the shared library" empty panics "$shared"
    gate "the archive defines the functions of the header and nothing else" same "$work/functions" "$work/defined"
    gate "the shared library exports the same, each with its version" same "$work/versioned" "$work/exports"
    gate "the archive needs no symbol of others" empty imports "$archive"
    gate "the shared library needs no other" empty needed "$shared"
    gate "no native library to link" cmp -s /dev/null "$target/capi/native-static-libs.txt"

    gate "a hostile call for each function" python3 tests/c/sweep.py include/kvfolio.h
    cp "$work/log" "$work/sweep_cases.h"
    ln -sf "$shared" "$work/libkvfolio.so.0"
    local checked="$target/capi-check/libkvfolio.a" name compiler source
    for source in tests/c/*.c tests/c/*.cpp; do
        name=$(basename "${source%.*}")
        for compiler in gcc clang; do
            [[ $source == *.cpp ]] && { [ $compiler = gcc ] && compiler=g++ || compiler=clang++; }
            gate "$name, $compiler, sanitizers" program "$name" $compiler $sanitize "$source" "$checked"
        done
        compiler=cc
        [[ $source == *.cpp ]] && compiler=c++
        run="valgrind -q --error-exitcode=9 --leak-check=full" \
            gate "$name, valgrind" program "$name" $compiler -g "$source" "$archive"
        gate "$name, shared library" program "$name" $compiler "$source" "$shared" "-Wl,-rpath,$work"
    done
    # Programs that are C99 and C++11 alike.
    for name in evict; do
        dialect=c99 gate "$name, C99, sanitizers" program $name gcc $sanitize tests/c/$name.c "$checked"
        dialect=c++11 gate "$name, C++11, sanitizers" program $name g++ $sanitize -x c++ tests/c/$name.c -x none "$checked"
    done
}

hosted
summary
