# Ranks on several machines, where an MPI is installed (Debian: libopenmpi-dev): the plug-in libsigma-mpi.so.
find_package(MPI QUIET COMPONENTS C)
if(MPI_C_FOUND)
    sigma_plugin(mpi SOURCES plugins/mpi/mpi.c LIBRARIES MPI::MPI_C)
else()
    message(STATUS "The plug-in mpi is left out: no MPI was found")
endif()
