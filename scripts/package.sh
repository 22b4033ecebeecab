#!/usr/bin/env bash
# Gates of what users get: the installed C library, programs built against it, and the Rust packages.
set -uo pipefail # no -e: it would not hold inside a gate
cd "$(dirname "$0")/.."
scripts/tools.sh cc g++ make nm cmake pkg-config || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source scripts/gate.sh

consumers="$PWD/examples/consumers"
programs="c-shared c-static cpp-shared cpp-static"
prefix="$work/moved"
soname=libkvfolio.so.0
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

# Staged below DESTDIR and moved afterwards: nothing in the tree may know where it was installed.
stage() {
    make -s install DESTDIR="$work/stage" PREFIX=/opt/kvfolio &&
        mv "$work/stage/opt/kvfolio" "$prefix"
}
installed() { (cd "$prefix" && find . ! -type d | sed 's|^\./||'); }
listed() { installed >"$work/installed" && scripts/install.sh list >"$work/list" && same "$work/list" "$work/installed"; }
nowhere() { ! grep -rlE "$work|$PWD|/opt/kvfolio" "$prefix" --include='*.pc' --include='*.cmake' --include='*.h*'; }
has_soname() { [ "$(objdump -p "$prefix/lib/$soname" | awk '/SONAME/ { print $2 }')" = $soname ]; }

# program NAME: runs, and takes the shared library from the prefix if and only if its name says so.
program() {
    local libraries
    "$1" && libraries=$(ldd "$1") || return
    case $1 in
        *-shared) grep -q "$soname => $prefix/lib/$soname" <<<"$libraries" ;;
        *-static) ! grep kvfolio <<<"$libraries" ;;
    esac
}
by_make() {
    make -s -C "$consumers" OUT="$work" PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LDFLAGS="-Wl,-rpath,$prefix/lib"
}
by_cmake() { cmake -S "$consumers" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$work/cmake"; }
# Another minor version promises nothing before 1.0.
other_version() {
    mkdir -p "$work/other" || return
    printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(other C)' "find_package(kvfolio $1 REQUIRED)" \
        >"$work/other/CMakeLists.txt"
    cmake -S "$work/other" -B "$work/other/build" -DCMAKE_PREFIX_PATH="$prefix"
}
# Cargo keeps what it unpacked and built of a version, and would take it again although the version has changed since.
packages() {
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/kvfolio{,-ffi,-kernels}-"$version"
    CARGO_TARGET_DIR="$work/packages" cargo package -q --allow-dirty -p kvfolio -p kvfolio-ffi -p kvfolio-kernels
}
carries() {
    cargo package -q --allow-dirty --list -p "$1" >"$work/contents" &&
        [ "$(grep -cxE 'README.md|LICENSE-(MIT|APACHE)' "$work/contents")" -eq 3 ]
}
# Distributions put libraries one folder deeper.
deeper() {
    local deep=$work/deep
    PREFIX="$deep" LIBDIR=lib/deeper scripts/install.sh install && mkdir "$deep/out" &&
        make -s -C "$consumers" OUT="$deep/out" PKG_CONFIG_PATH="$deep/lib/deeper/pkgconfig" "$deep/out/c-static" &&
        "$deep/out/c-static" &&
        cmake -S "$consumers" -B "$deep/cmake" -Dkvfolio_DIR="$deep/lib/deeper/cmake/kvfolio" &&
        cmake --build "$deep/cmake" --target cpp-static && "$deep/cmake/cpp-static"
}
gone() { PREFIX="$prefix" scripts/install.sh uninstall && [ -z "$(installed)" ]; }

gate "make install" stage || { summary; exit 1; }
gate "all that is installed is listed" listed
gate "no file names the folder it came from" nowhere
gate "the shared library's name is $soname" has_soname
gate "pkg-config says the version" pkg-config --exact-version="$version" "$prefix/lib/pkgconfig/kvfolio.pc"
gate "programs build by make and pkg-config" by_make
for name in $programs; do gate "$name, by make, runs" program "$work/$name"; done
gate "programs build by CMake" by_cmake
for name in $programs; do gate "$name, by CMake, runs" program "$work/cmake/$name"; done
gate "CMake takes version $version" other_version "$version"
for other in 0.9 1.0 "$version.1"; do gate "CMake refuses version $other" fails other_version "$other"; done
gate "LIBDIR may be a folder below" deeper
gate "make uninstall leaves nothing" gone
gate "Rust packages build from what they contain" packages
for package in kvfolio kvfolio-ffi kvfolio-kernels; do gate "$package carries README and licences" carries $package; done
summary
