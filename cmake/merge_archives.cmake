# One archive OUT of the members of all ARCHIVES.
set(script "create ${OUT}\n")
foreach(archive ${ARCHIVES})
  string(APPEND script "addlib ${archive}\n")
endforeach()
string(APPEND script "save\nend\n")
file(WRITE ${OUT}.mri "${script}")
execute_process(COMMAND ${AR} -M INPUT_FILE ${OUT}.mri COMMAND_ERROR_IS_FATAL ANY)
