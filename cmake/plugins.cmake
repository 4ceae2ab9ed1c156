# Plug-ins: sigma_plugin(NAME SOURCES file... LIBRARIES target...) makes libsigma-NAME.so, which src/base/plugin.c
# loads. Its sources are in plugins/NAME; they include headers of src/ that stand alone, and link nothing of ours.
set(SIGMA_PLUGIN_DIR ${CMAKE_INSTALL_LIBDIR}/sigma)
file(RELATIVE_PATH plugins_from_programs
    "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}/sigma")
set_source_files_properties(src/base/plugin.c PROPERTIES COMPILE_DEFINITIONS
    "SIGMA_INSTALLED_PLUGIN_DIR=\"${CMAKE_INSTALL_FULL_LIBDIR}/sigma\";SIGMA_PLUGINS_FROM_PROGRAMS=\"${plugins_from_programs}\"")
add_custom_target(sigma_plugins)

function(sigma_plugin_module target name folder)
    add_library(${target} MODULE ${ARGN})
    set_target_properties(${target} PROPERTIES PREFIX lib OUTPUT_NAME sigma-${name} C_VISIBILITY_PRESET hidden
        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/${folder}")
    target_include_directories(${target} PRIVATE src)
    target_link_libraries(${target} PRIVATE sigma_flags)
endfunction()

function(sigma_plugin name)
    cmake_parse_arguments(PARSE_ARGV 1 plugin "" "" "SOURCES;LIBRARIES")
    sigma_plugin_module(sigma_plugin_${name} ${name} plugins ${plugin_SOURCES})
    target_link_libraries(sigma_plugin_${name} PRIVATE ${plugin_LIBRARIES})
    add_dependencies(sigma_plugins sigma_plugin_${name})
    install(TARGETS sigma_plugin_${name} LIBRARY DESTINATION ${SIGMA_PLUGIN_DIR})
endfunction()
