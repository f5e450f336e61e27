# How every target of this project is compiled: strict warnings, no contraction of a*b+c (the numbers must be the same on every
# machine; fused operations are written out), includes rooted at the repository.
# Sanitizers are in tandem_warnings alone.
add_library(tandem_plain INTERFACE)
target_compile_options(tandem_plain INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wconversion;-Wshadow;-Wno-sign-conversion;-ffp-contract=off;-fno-math-errno>
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>)
target_compile_options(tandem_plain INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Xcompiler=-Wall,-Wextra;--threads=0>)
target_include_directories(tandem_plain INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(tandem_plain INTERFACE _GNU_SOURCE)
if(TANDEM_WERROR)
  target_compile_options(tandem_plain INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
add_library(tandem_warnings INTERFACE)
target_link_libraries(tandem_warnings INTERFACE tandem_plain)
if(TANDEM_SANITIZE)
  target_compile_options(tandem_warnings INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${TANDEM_SANITIZE};-fno-omit-frame-pointer>)
  target_link_options(tandem_warnings INTERFACE -fsanitize=${TANDEM_SANITIZE})
  if(TANDEM_SANITIZE MATCHES "undefined")
    target_compile_options(tandem_warnings INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=undefined>)
  endif()
endif()

# tandem_library(NAME SOURCES... LINKS targets...): one static library of one folder; its public links are the folders it may include.
function(tandem_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC tandem_warnings ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
endfunction()
