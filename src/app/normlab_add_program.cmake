# normlab_add_program(NAME SOURCE...): the program NAME, and beside it NAME_f64 from the same sources with real = double, which NAME starts
# when it is asked to gradcheck. The sources have a main that calls normlab::main_program.
function(normlab_add_program name)
  foreach(suffix "" _f64)
    add_executable(${name}${suffix} ${ARGN})
    target_link_libraries(${name}${suffix} PRIVATE normlab::normlab${suffix})
  endforeach()
endfunction()
