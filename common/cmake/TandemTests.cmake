# Every test has a deadline in seconds, five times as long with sanitizers; labels; and COST, about how many seconds it takes, where they are many:
# the long ones begin first. `launch/tandem test` runs two for each core and one more, for whole jobs wait as much as they compute.
# add_cmocka_test(NAME SOURCES ... LINKS ... ARGUMENTS ...): one test program of tests/.
# add_test_again(NAME PROGRAM ARGUMENTS ...): one more test of a program that there is.
# add_mpi_test(NAME SOURCES ... LINKS ... RANKS n): the first under mpirun.
# add_script_test(NAME SCRIPT ARGUMENTS ...): a script of the folder, started in that of the sources; ENVIRONMENT: further variables.
# add_job_test(NAME SCRIPT PROGRAMS folder ARGUMENTS ...): a script about whole jobs, which gets the folder of the two programs (default: those of the
# build) before its other arguments. Its labels are mpi, its folder's name, and LABELS.
# tandem_amount, an argument of many scripts: how much they do. `small` is for builds with sanitizers, in which programs are many times slower.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
set(TANDEM_MPIRUN ${MPIEXEC_EXECUTABLE} -q --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl vader,self)
set(tandem_test_values TIMEOUT COST)
set(tandem_test_lists LABELS ENVIRONMENT)
set(tandem_amount default)
if(TANDEM_SANITIZE)
  set(tandem_amount small)
endif()

# The properties of a test, from the values above, which its caller has parsed into ARG_.
macro(tandem_test_properties name)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(TANDEM_SANITIZE)
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
    if("mpi" IN_LIST ARG_LABELS) # what MPI keeps to the end of the process is not ours to free
      list(APPEND ARG_ENVIRONMENT ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0) # some preload a library of their own
    endif()
  endif()
  list(APPEND ARG_ENVIRONMENT XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/tests/cache) # what jobs keep of their times is not the user's
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" ENVIRONMENT "${ARG_ENVIRONMENT}"
    SKIP_RETURN_CODE 77)
  if(ARG_COST)
    set_tests_properties(${name} PROPERTIES COST ${ARG_COST})
  endif()
endmacro()

macro(tandem_test_program name)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} tandem_warnings PkgConfig::CMOCKA m)
  target_compile_definitions(${name} PRIVATE TANDEM_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TANDEM_BINARY_DIR="${CMAKE_BINARY_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endmacro()

function(add_cmocka_test name)
  cmake_parse_arguments(ARG "" "${tandem_test_values}" "${tandem_test_lists};SOURCES;LINKS;ARGUMENTS" ${ARGN})
  tandem_test_program(${name})
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGUMENTS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  tandem_test_properties(${name})
endfunction()

function(add_test_again name program)
  cmake_parse_arguments(ARG "" "${tandem_test_values}" "${tandem_test_lists};ARGUMENTS" ${ARGN})
  add_test(NAME ${name} COMMAND ${program} ${ARG_ARGUMENTS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  tandem_test_properties(${name})
endfunction()

function(add_mpi_test name)
  cmake_parse_arguments(ARG "" "${tandem_test_values};RANKS" "${tandem_test_lists};SOURCES;LINKS" ${ARGN})
  list(APPEND ARG_LINKS MPI::MPI_C)
  list(PREPEND ARG_LABELS mpi)
  tandem_test_program(${name})
  add_test(NAME ${name} COMMAND ${TANDEM_MPIRUN} -np ${ARG_RANKS} $<TARGET_FILE:${name}> WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  tandem_test_properties(${name})
endfunction()

function(add_script_test name script)
  cmake_parse_arguments(ARG "" "${tandem_test_values}" "${tandem_test_lists};ARGUMENTS" ${ARGN})
  add_test(NAME ${name} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARG_ARGUMENTS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  tandem_test_properties(${name})
endfunction()

function(add_job_test name script)
  cmake_parse_arguments(ARG "" "PROGRAMS" "ARGUMENTS;LABELS" ${ARGN})
  if(NOT ARG_PROGRAMS)
    set(ARG_PROGRAMS $<TARGET_FILE_DIR:tandem-verifier>)
  endif()
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  add_script_test(${name} ${script} ARGUMENTS ${ARG_PROGRAMS} ${ARG_ARGUMENTS} LABELS mpi ${folder} ${ARG_LABELS} ${ARG_UNPARSED_ARGUMENTS})
endfunction()
