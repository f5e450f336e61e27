# Finds protobuf-c: the imported target ProtobufC::ProtobufC and the compiler in PROTOC_C.
find_package(PkgConfig REQUIRED)
pkg_check_modules(PROTOBUFC IMPORTED_TARGET libprotobuf-c)
find_program(PROTOC_C NAMES protoc-c)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ProtobufC REQUIRED_VARS PROTOC_C PROTOBUFC_LINK_LIBRARIES VERSION_VAR PROTOBUFC_VERSION)
if(ProtobufC_FOUND AND NOT TARGET ProtobufC::ProtobufC)
  add_library(ProtobufC::ProtobufC ALIAS PkgConfig::PROTOBUFC)
endif()
