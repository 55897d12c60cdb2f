# NVTX's headers, from a CUDA toolkit or the Python package nvidia-nvtx. Without them marey is built without NVTX.
# Sets MAREY_NVTX_INCLUDE_DIR ("" when there are none) and MAREY_NVTX_VERSION.
option(MAREY_NVTX "Send ranges to NVTX tools as well (needs NVTX's headers)" ON)

# Where the Python that builds or uses marey keeps the package's headers.
set(candidates)
if(MAREY_NVTX)
  find_package(Python COMPONENTS Interpreter QUIET)
  if(Python_Interpreter_FOUND)
    execute_process(
      COMMAND ${Python_EXECUTABLE} -c
        "import sys, glob; print(';'.join(d for p in sys.path for d in sorted(glob.glob(p + '/nvidia/*/include'))))"
      OUTPUT_VARIABLE candidates OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  find_path(MAREY_NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h
    HINTS ${candidates} $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include /opt/cuda/include
    DOC "The directory that has nvtx3/nvToolsExt.h")
endif()

if(MAREY_NVTX AND MAREY_NVTX_INCLUDE_DIR)
  file(STRINGS ${MAREY_NVTX_INCLUDE_DIR}/nvtx3/nvToolsExt.h line REGEX "define NVTX_VERSION +[0-9]+")
  string(REGEX REPLACE ".*NVTX_VERSION +([0-9]+).*" "\\1" MAREY_NVTX_VERSION "${line}")
  message(STATUS "NVTX ${MAREY_NVTX_VERSION}: ${MAREY_NVTX_INCLUDE_DIR}")
else()
  set(MAREY_NVTX_INCLUDE_DIR "")
  message(STATUS "NVTX: no headers (nvtx3/nvToolsExt.h of a CUDA toolkit or the Python package nvidia-nvtx); "
    "ranges will go to recordings only")
endif()
