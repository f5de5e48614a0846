# AF_XDP: libxdp's ring helpers, libbpf for our own program.
list(APPEND device_sources
  ${CMAKE_CURRENT_LIST_DIR}/af_xdp.cpp
  ${CMAKE_CURRENT_LIST_DIR}/probe.cpp
  ${CMAKE_CURRENT_LIST_DIR}/program.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rx_chain.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sockets.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tx_path.cpp)
list(APPEND device_libs PkgConfig::LIBBPF PkgConfig::LIBXDP)
list(APPEND device_bpf bpf/steer.bpf.c)
