# Every dependency, each a Debian 12 package that ./dev installs.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)             # libfmt-dev
find_package(nlohmann_json REQUIRED)   # nlohmann-json3-dev
find_package(CLI11 REQUIRED)           # libcli11-dev
find_package(tl-expected REQUIRED)     # libexpected-dev
pkg_check_modules(LIBBPF REQUIRED IMPORTED_TARGET libbpf)
pkg_check_modules(LIBXDP REQUIRED IMPORTED_TARGET libxdp)
pkg_check_modules(LIBMNL REQUIRED IMPORTED_TARGET libmnl)
pkg_check_modules(LIBPCAP REQUIRED IMPORTED_TARGET libpcap)
pkg_check_modules(LIBSODIUM REQUIRED IMPORTED_TARGET libsodium)
if(NETCHANNEL_TESTS)
  find_package(GTest REQUIRED)         # libgtest-dev
endif()
if(NETCHANNEL_BENCHMARKS)
  find_package(benchmark REQUIRED)     # libbenchmark-dev
endif()
