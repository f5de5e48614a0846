# The bulk lane: libbpf for its tc programs, libmnl for what becomes of the interface.
list(APPEND device_sources
  ${CMAKE_CURRENT_LIST_DIR}/bulk.cpp
  ${CMAKE_CURRENT_LIST_DIR}/link_watch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/own_tap.cpp
  ${CMAKE_CURRENT_LIST_DIR}/program.cpp
  ${CMAKE_CURRENT_LIST_DIR}/vnet_header.cpp)
list(APPEND device_libs PkgConfig::LIBBPF PkgConfig::LIBMNL)
list(APPEND device_bpf bpf/redirect.bpf.c)
