#!/bin/sh
# Installs the C library under a prefix, or takes it away again: `make install` and `make uninstall` call this.
#
#   PREFIX=/usr/local  where programs will find it
#   LIBDIR=lib         folder of the libraries below PREFIX, such as lib/x86_64-linux-gnu
#   DESTDIR=           put before PREFIX, for packagers
#
# The libraries are those that `make lib` built. Everything installed is found relative to itself: the tree may be moved.
set -eu
cd "$(dirname "$0")/.."

libdir=${LIBDIR:-lib}
root=${DESTDIR:-}${PREFIX:-/usr/local}
built=${CARGO_TARGET_DIR:-target}/capi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
soname=libkvfolio.so.${version%%.*}
shared=libkvfolio.so.$version
docs=share/doc/kvfolio

# Each installed file: its path under the prefix.
files() {
    printf '%s\n' include/kvfolio.h include/kvfolio.hpp \
        "$libdir/libkvfolio.a" "$libdir/$shared" "$libdir/$soname" "$libdir/libkvfolio.so" \
        "$libdir/pkgconfig/kvfolio.pc" \
        "$libdir/cmake/kvfolio/kvfolioConfig.cmake" "$libdir/cmake/kvfolio/kvfolioConfigVersion.cmake" \
        "$docs/ABI.md" "$docs/LICENSE-APACHE" "$docs/LICENSE-MIT"
}

# fill TEMPLATE TARGET: `up` leads from the folder of the target to the prefix.
fill() {
    up=$(dirname "$2" | sed 's|[^/][^/]*|..|g')
    pointer=$(getconf LONG_BIT)
    sed -e "s|@version@|$version|g" -e "s|@minor@|${version%.*}|g" -e "s|@soname@|$soname|g" \
        -e "s|@shared@|$shared|g" -e "s|@libdir@|$libdir|g" -e "s|@up@|$up|g" \
        -e "s|@private@|$(cat "$built/native-static-libs.txt")|g" -e "s|@pointer@|$((pointer / 8))|g" \
        "packaging/$1.in" >"$root/$2"
    chmod 644 "$root/$2"
}

install_all() {
    files | while read -r file; do mkdir -p "$root/$(dirname "$file")"; done
    install -m 644 include/kvfolio.h include/kvfolio.hpp "$root/include/"
    install -m 644 "$built/libkvfolio.a" "$root/$libdir/"
    install -m 755 "$built/libkvfolio.so" "$root/$libdir/$shared"
    ln -sf "$shared" "$root/$libdir/$soname"
    ln -sf "$soname" "$root/$libdir/libkvfolio.so"
    fill kvfolio.pc "$libdir/pkgconfig/kvfolio.pc"
    fill kvfolioConfig.cmake "$libdir/cmake/kvfolio/kvfolioConfig.cmake"
    fill kvfolioConfigVersion.cmake "$libdir/cmake/kvfolio/kvfolioConfigVersion.cmake"
    install -m 644 include/ABI.md LICENSE-APACHE LICENSE-MIT "$root/$docs/"
}

# Folders of our own go too; those that others may use stay.
uninstall_all() {
    files | while read -r file; do rm -f "$root/$file"; done
    for folder in "$libdir/cmake/kvfolio" "$docs"; do
        [ ! -d "$root/$folder" ] || rmdir "$root/$folder"
    done
}

case "${1:-}" in
    install) install_all ;;
    uninstall) uninstall_all ;;
    list) files ;;
    *) echo "usage: install.sh install | uninstall | list" >&2 && exit 2 ;;
esac
