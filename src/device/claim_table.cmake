set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/claim_table.cpp
  PROPERTIES INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/bpf)
