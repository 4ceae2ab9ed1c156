# The monitor's page becomes part of the library: writes web_assets.h, the list that src/monitors/http/assets.c
# reads, with each file of web/ and the chart library from Debian's package libjs-dygraphs.
file(GLOB_RECURSE web_files CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}/web" web/*.html web/*.css web/*.js
    web/*.json web/*.svg web/*.png web/*.ico web/*.webmanifest)
set(web_list "")
set(web_sources "")
set(web_number 0)

macro(web_asset path file)
    string(APPEND web_list "SGM__ASSET(${web_number}, \"/${path}\", \"${file}\")\n")
    list(APPEND web_sources "${file}")
    math(EXPR web_number "${web_number} + 1")
endmacro()

foreach(file IN LISTS web_files)
    web_asset("${file}" "${CMAKE_SOURCE_DIR}/web/${file}")
endforeach()
foreach(file dygraph.min.js dygraph.min.css)
    string(MAKE_C_IDENTIFIER "SIGMA_${file}" variable)
    find_file(${variable} ${file} PATHS /usr/share/javascript/dygraphs /usr/share/nodejs/dygraphs/dist
        DOC "Of the chart library dygraphs (Debian: libjs-dygraphs)")
    if(NOT ${variable})
        message(FATAL_ERROR "${file} was not found: install dygraphs (Debian's package libjs-dygraphs), "
            "or say where it is by -D${variable}=/path/to/${file}")
    endif()
    web_asset("${file}" "${${variable}}")
endforeach()
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/web_assets.h" CONTENT "${web_list}" @ONLY)
# The compiler does not say which files the assembler read.
set_source_files_properties(src/monitors/http/assets.c PROPERTIES
    OBJECT_DEPENDS "${web_sources}" INCLUDE_DIRECTORIES "${CMAKE_BINARY_DIR}/generated")
