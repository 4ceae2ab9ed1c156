# ONNX, where protobuf-c is installed and ONNX's proto file (Debian: libprotobuf-c-dev, protobuf-c-compiler,
# libonnx-dev): the readers and writers of its messages are made from that file. Without, src/onnx/absent.c says so.
pkg_check_modules(libprotobuf_c IMPORTED_TARGET libprotobuf-c)
find_program(SIGMA_PROTOC_C protoc-c DOC "Makes C from a proto file (Debian: protobuf-c-compiler)")
find_file(SIGMA_ONNX_PROTO onnx.proto PATH_SUFFIXES onnx PATHS /usr/include DOC "ONNX's messages (Debian: libonnx-dev)")

set(onnx_generated "${CMAKE_BINARY_DIR}/generated/onnx")
if(libprotobuf_c_FOUND AND SIGMA_PROTOC_C AND SIGMA_ONNX_PROTO)
    set(SIGMA_ONNX ON)
    list(APPEND SIGMA_PKG_MODULES libprotobuf-c)
    list(APPEND SIGMA_DEPENDENCIES PkgConfig::libprotobuf_c)
    get_filename_component(onnx_folder "${SIGMA_ONNX_PROTO}" DIRECTORY)
    file(MAKE_DIRECTORY "${onnx_generated}")
    add_custom_command(OUTPUT "${onnx_generated}/onnx.pb-c.c" "${onnx_generated}/onnx.pb-c.h"
        COMMAND "${SIGMA_PROTOC_C}" "--c_out=${onnx_generated}" "--proto_path=${onnx_folder}" "${SIGMA_ONNX_PROTO}"
        DEPENDS "${SIGMA_ONNX_PROTO}" COMMENT "Making C from ${SIGMA_ONNX_PROTO}" VERBATIM)
    set_source_files_properties("${onnx_generated}/onnx.pb-c.c" PROPERTIES COMPILE_OPTIONS "-w")
else()
    set(SIGMA_ONNX OFF)
    message(STATUS "ONNX is left out: protobuf-c, protoc-c or onnx.proto was not found")
    set_source_files_properties("${CMAKE_SOURCE_DIR}/src/onnx/absent.c" PROPERTIES COMPILE_OPTIONS "-Wno-unused-parameter")
endif()

# Takes out of a list of sources what is not built, and adds what is made.
macro(sigma_onnx_sources list)
    if(SIGMA_ONNX)
        list(FILTER ${list} EXCLUDE REGEX "/src/onnx/absent\\.c$")
        list(APPEND ${list} "${onnx_generated}/onnx.pb-c.c" "${onnx_generated}/onnx.pb-c.h")
    else()
        list(FILTER ${list} EXCLUDE REGEX "/src/onnx/(wire/.*|nodes/.*|spatial/.*|ml/.*|[^a/]|a[^b/])[^/]*\\.c$")
    endif()
endmacro()
