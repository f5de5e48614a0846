# netchannel_bpf(TARGET bpf/steer.bpf.c): compiles with clang-19 and makes build/bpf/steer.skel.h with bpftool.
find_program(BPF_CLANG NAMES clang-19 REQUIRED)
find_program(BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin REQUIRED)

function(netchannel_bpf target source)
  get_filename_component(name ${source} NAME)
  string(REPLACE ".bpf.c" "" name ${name})
  set(out ${PROJECT_BINARY_DIR}/bpf)
  file(MAKE_DIRECTORY ${out})
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bpf/*.h)
  add_custom_command(
    OUTPUT ${out}/${name}.bpf.o
    COMMAND ${BPF_CLANG} -target bpf -O2 -g -Wall -Wextra -Werror -I${PROJECT_SOURCE_DIR}/bpf
            -I/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
            -c ${PROJECT_SOURCE_DIR}/${source} -o ${out}/${name}.bpf.o
    DEPENDS ${PROJECT_SOURCE_DIR}/${source} ${headers}
    VERBATIM)
  add_custom_command(
    OUTPUT ${out}/${name}.skel.h
    COMMAND sh -c "{ echo '// NOLINTBEGIN'; '${BPFTOOL}' gen skeleton '${out}/${name}.bpf.o' name ${name}; echo '// NOLINTEND'; } > '${out}/${name}.skel.h.tmp' && mv '${out}/${name}.skel.h.tmp' '${out}/${name}.skel.h'"
    DEPENDS ${out}/${name}.bpf.o
    VERBATIM)
  add_custom_target(bpf_${name} DEPENDS ${out}/${name}.skel.h)
  add_dependencies(${target} bpf_${name})
  target_include_directories(${target} SYSTEM PRIVATE ${out})
endfunction()
