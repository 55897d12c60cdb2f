# How everything is compiled: C11, hidden symbols, the warnings we keep clean, sanitizers on request.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

add_library(marey_flags INTERFACE)
target_compile_definitions(marey_flags INTERFACE _GNU_SOURCE)
target_compile_options(marey_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings
  -Wvla -Wundef -Wno-missing-field-initializers $<$<BOOL:${MAREY_WERROR}>:-Werror>
  -fno-strict-aliasing
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=) # __FILE__ tells where in the tree, not where on the machine that built it
if(MAREY_SANITIZE)
  target_compile_options(marey_flags INTERFACE -fsanitize=${MAREY_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(marey_flags INTERFACE -fsanitize=${MAREY_SANITIZE})
else()
  # A sanitizer's runtime is not linked into shared libraries, so only plain builds can insist.
  set(MAREY_NO_UNDEFINED -Wl,--no-undefined)
endif()
