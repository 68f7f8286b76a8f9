# cmake -Dsource=DIR -Dwork=DIR -Dgenerator=NAME -Dcompiler=PATH -P packages_in_part.cmake: hypertune is configured where
# packages that it can do without are installed in part only.
file(REMOVE_RECURSE ${work})
set(prefix ${work}/prefix)

# Debian's openmpi-bin without libopenmpi-dev, as `apt-get install lammps` or gromacs brings it: the wrapper answers, and
# names folders that do not exist.
file(WRITE ${prefix}/bin/mpicc "#!/bin/sh
case \"$1\" in
  -showme:compile) echo -I${prefix}/openmpi/include -I${prefix}/openmpi/include/openmpi ;;
  -showme:link) echo -L${prefix}/openmpi/lib -lmpi ;;
  -showme:incdirs) echo ${prefix}/openmpi/include ${prefix}/openmpi/include/openmpi ;;
  -showme:libdirs) echo ${prefix}/openmpi/lib ;;
  -showme:version) echo 'mpicc: Open MPI 4.1.4 (Language: C)' ;;
  *) exit 1 ;;
esac
")
file(CHMOD ${prefix}/bin/mpicc PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
file(WRITE ${prefix}/openmpi/lib/libmpi.so "")

# A package whose library was removed: what install(EXPORT) writes then ends the configuration.
file(WRITE ${work}/broken/lib/cmake/Gloo/GlooConfig.cmake
  "add_library(gloo SHARED IMPORTED)\nmessage(FATAL_ERROR \"The imported target 'gloo' references a file that does not exist\")\n")
# A package that is found, and has not the target that it should have.
file(WRITE ${work}/broken/lib/cmake/Eigen3/Eigen3Config.cmake "set(Eigen3_VERSION 3.4.0)\n")
file(WRITE ${work}/broken/lib/cmake/Eigen3/Eigen3ConfigVersion.cmake
  "set(PACKAGE_VERSION 3.4.0)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")

set(ENV{PATH} "${prefix}/bin:$ENV{PATH}")
function(configure output)
  file(REMOVE_RECURSE ${work}/build)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${source} -B ${work}/build -G ${generator} -DCMAKE_CXX_COMPILER=${compiler}
      -DHYPERTUNE_CUDA=OFF ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "a package that is not whole ends the configuration:\n${said}")
  endif()
  set(${output} "${said}" PARENT_SCOPE)
endfunction()
function(expect output words)
  if(NOT output MATCHES "${words}")
    message(FATAL_ERROR "nothing says '${words}':\n${output}")
  endif()
endfunction()

configure(output -DCMAKE_PREFIX_PATH=${work}/broken)
expect("${output}" "hypertune: Gloo is installed in part only")
expect("${output}" "the digits example needs Eigen")

configure(output -DHYPERTUNE_BENCHMARKS=ON -DMPI_C_COMPILER=${prefix}/bin/mpicc -DCMAKE_LIBRARY_PATH=${prefix}/openmpi/lib)
if(NOT output MATCHES "there is no benchmark_train")   # which needs Gloo: then MPI is not looked for
  expect("${output}" "hypertune: MPI is installed in part only")
endif()
file(REMOVE_RECURSE ${work})
