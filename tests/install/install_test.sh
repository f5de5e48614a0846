#!/usr/bin/env bash
# Installs the built tree into a folder of its own and uses it as a stranger would: compiles the examples by
# pkg-config (shared and static) and by find_package, runs them, looks at the completion, at the list of exported
# symbols and at the Debian package, and removes everything again.
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
server=
finish() {
  [ -n "$server" ] && kill "$server" 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT
root=$work/root
lib=$(sed -n 's/^CMAKE_INSTALL_LIBDIR:PATH=//p' "$build/CMakeCache.txt")

step() { echo "== $*"; }
fail() { echo "FAILED: $*"; exit 1; }

step "install"
DESTDIR=$root cmake --install "$build" --prefix /usr >"$work/install.log"
for file in bin/netchannel include/netchannel/host.hpp "$lib/libnetchannel.so" "$lib/libnetchannel.a" \
    "$lib/pkgconfig/netchannel.pc" "$lib/cmake/netchannel/netchannelConfig.cmake" share/doc/netchannel/LICENSE \
    share/bash-completion/completions/netchannel; do
  [ -e "$root/usr/$file" ] || fail "$file was not installed"
done
"$root/usr/bin/netchannel" --version | grep -q '^netchannel [0-9]' || fail "the program does not run"
for command in $("$root/usr/bin/netchannel" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p'); do
  page=$root/usr/share/man/man1/netchannel-$command.1
  [ -s "$page" ] || fail "the command $command has no manual page"
  grep -q '^\.B .*help' "$page" && grep -q '^\.SH EXAMPLE' "$page" || fail "the manual page of $command lacks options or an example"
done

step "exported symbols"
nm -D --defined-only "$root/usr/$lib/libnetchannel.so" | awk '$2 == "T" {sub(/@.*/, "", $3); print $3}' | c++filt |
  sort -u >"$work/symbols.txt"
diff "$source/packaging/symbols.txt" "$work/symbols.txt" ||
  fail "the library shows other symbols than packaging/symbols.txt; if that is meant, see packaging/exports.map"

# The .pc file says where the tree would stand without DESTDIR.
export PKG_CONFIG_PATH=$root/usr/$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
use_pc() { pkg-config --define-variable=prefix=/usr "$@" netchannel; }

talk() { # FOLDER: its echo_server answers its tcp_request, over the loopback
  LD_LIBRARY_PATH=$root/usr/$lib "$1/echo_server" kernel lo 127.0.0.1:0 >"$work/said" 2>/dev/null &
  server=$!
  for _ in $(seq 100); do grep -q serving "$work/said" && break; sleep 0.05; done
  local port
  port=$(sed -n 's/^serving .*:\([0-9]*\)$/\1/p' "$work/said")
  [ "$(LD_LIBRARY_PATH=$root/usr/$lib "$1/tcp_request" kernel lo "127.0.0.1:$port" hello 5000 2>/dev/null)" = hello ] ||
    fail "the programs of $1 do not understand each other"
  kill "$server"
  wait "$server" || true
  server=
}

examples=(echo_server tcp_request)
step "pkg-config, shared"
mkdir "$work/shared" "$work/static"
for name in "${examples[@]}"; do
  # shellcheck disable=SC2046
  g++ -std=c++20 -O1 "$root/usr/share/doc/netchannel/examples/$name.cpp" -o "$work/shared/$name" $(use_pc --cflags --libs)
  readelf -d "$work/shared/$name" | grep -q 'NEEDED.*libnetchannel.so.0' || fail "$name is not linked to libnetchannel.so.0"
done
talk "$work/shared"

step "pkg-config, static"
for name in "${examples[@]}"; do
  # shellcheck disable=SC2046
  g++ -std=c++20 -O1 "$root/usr/share/doc/netchannel/examples/$name.cpp" -o "$work/static/$name" $(use_pc --cflags) \
    "$root/usr/$lib/libnetchannel.a" -lxdp -lbpf -lmnl -lpcap -lsodium -pthread
  readelf -d "$work/static/$name" | grep -q 'libnetchannel' && fail "$name is linked to the shared library"
done
talk "$work/static"

step "find_package"
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(stranger CXX)
find_package(netchannel 0.1 REQUIRED)
foreach(name echo_server tcp_request)
  add_executable(\${name} $root/usr/share/doc/netchannel/examples/\${name}.cpp)
  target_link_libraries(\${name} PRIVATE netchannel::netchannel)
endforeach()
END
cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$root/usr" >"$work/cmake.log" ||
  { cat "$work/cmake.log"; fail "find_package"; }
cmake --build "$work/project/build" >"$work/cmake.log" || { cat "$work/cmake.log"; fail "building with find_package"; }
talk "$work/project/build"

step "completion"
complete_words() {
  PATH=$root/usr/bin:$PATH bash -c 'source "$0"; COMP_WORDS=(netchannel "$@"); COMP_CWORD=$#; _netchannel; echo "${COMPREPLY[*]}"' \
    "$root/usr/share/bash-completion/completions/netchannel" "$@"
}
[ "$(complete_words com)" = compare ] || fail "\"netchannel com\" is completed to: $(complete_words com)"
[ "$(complete_words bench --dur)" = --duration ] || fail "\"bench --dur\" is completed to: $(complete_words bench --dur)"

step "Debian package"
(cd "$work" && cpack --config "$build/CPackConfig.cmake" -B "$work/deb" >"$work/cpack.log" 2>&1) ||
  { tail -20 "$work/cpack.log"; fail "cpack"; }
deb=$(ls "$work"/deb/netchannel_*.deb)
dpkg-deb -f "$deb" Depends | grep -q libxdp || fail "the package does not say that it needs libxdp"
dpkg-deb -x "$deb" "$work/unpacked"
"$work/unpacked/usr/bin/netchannel" --version >/dev/null || fail "the package's program does not run"
dpkg-deb -c "$deb" | awk '{print $2}' | sort -u | grep -qv '^root/root$' && fail "the package has files that are not root's"

step "uninstall"
DESTDIR=$root cmake --build "$build" --target uninstall >/dev/null
left=$(find "$root" -type f -o -type l)
[ -z "$left" ] || fail "uninstall left: $left"
echo "install: all steps passed"
