# The library as others use it (shared with a list of what it shows, and static), the program, the headers, and what
# finds them: find_package(netchannel) and pkg-config. `cmake --build build --target uninstall` takes them away again.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(library_rooms api control kernel stack proto driver device channel ring buf wire stats base)
set(archives)
foreach(room ${library_rooms} proto_tcp)
  if(TARGET netchannel_${room})
    get_target_property(type netchannel_${room} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND archives netchannel_${room})
    endif()
  endif()
endforeach()
list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archive_files)

set(static_library ${CMAKE_CURRENT_BINARY_DIR}/libnetchannel.a)
add_custom_command(
  OUTPUT ${static_library}
  COMMAND ${CMAKE_COMMAND} -DOUT=${static_library} "-DARCHIVES=${archive_files}" -DAR=${CMAKE_AR}
          -P ${PROJECT_SOURCE_DIR}/cmake/merge_archives.cmake
  DEPENDS ${archives} VERBATIM)
add_custom_target(netchannel_static ALL DEPENDS ${static_library})

set(exports ${PROJECT_SOURCE_DIR}/packaging/exports.map)
add_library(netchannel_shared SHARED packaging/empty.cpp)
add_dependencies(netchannel_shared netchannel_static)
set_target_properties(netchannel_shared PROPERTIES
  OUTPUT_NAME netchannel VERSION ${PROJECT_VERSION} SOVERSION 0 EXPORT_NAME netchannel
  LINK_DEPENDS "${exports};${static_library}")
target_include_directories(netchannel_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(netchannel_shared INTERFACE cxx_std_20)
target_link_options(netchannel_shared PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)
target_link_libraries(netchannel_shared PRIVATE
  -Wl,--whole-archive ${static_library} -Wl,--no-whole-archive
  PkgConfig::LIBXDP PkgConfig::LIBBPF PkgConfig::LIBMNL PkgConfig::LIBPCAP PkgConfig::LIBSODIUM Threads::Threads)

set(man_pages ${CMAKE_CURRENT_BINARY_DIR}/man)
add_custom_command(
  OUTPUT ${man_pages}/netchannel.1
  COMMAND ${PROJECT_SOURCE_DIR}/packaging/man_pages.sh $<TARGET_FILE:netchannel> ${man_pages}
  DEPENDS netchannel packaging/man_pages.sh VERBATIM)
add_custom_target(netchannel_man ALL DEPENDS ${man_pages}/netchannel.1)

configure_file(packaging/netchannel.pc.in netchannel.pc @ONLY)
configure_package_config_file(packaging/netchannelConfig.cmake.in netchannelConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/netchannel)
write_basic_package_version_file(netchannelConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS netchannel RUNTIME)
install(TARGETS netchannel_shared EXPORT netchannelTargets LIBRARY NAMELINK_COMPONENT Development)
install(FILES ${static_library} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/netchannel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT netchannelTargets NAMESPACE netchannel:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/netchannel)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/netchannelConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/netchannelConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/netchannel)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/netchannel.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN design EXCLUDE)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples PATTERN CMakeLists.txt EXCLUDE)
install(DIRECTORY ${man_pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES packaging/netchannel.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME netchannel)
install(FILES packaging/netchannel.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _netchannel)

add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME netchannel)
set(CPACK_PACKAGE_CONTACT "the netchannel developers <netchannel@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "iproute2, ethtool")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libexpected-dev")
include(CPack)
