# The viewer, viewer/, bundled into two templates that libmarey-tools carries, of the report page and of memory timelines:
# MAREY_PAGE_TEMPLATE is a C file with both. Its packages go into the build folder. Without Node.js and npm, or if npm cannot
# install the packages, the templates are empty and this build cannot write pages.
set(MAREY_PAGE_TEMPLATE ${CMAKE_BINARY_DIR}/viewer/page_template.c)
set(viewer ${PROJECT_SOURCE_DIR}/viewer)
set(why_not "")
if(NOT MAREY_VIEWER)
  set(why_not "MAREY_VIEWER is off")
else()
  find_program(MAREY_NODE NAMES node nodejs)
  find_program(MAREY_NPM npm)
  if(NOT MAREY_NODE OR NOT MAREY_NPM)
    set(why_not "node or npm is missing")
  endif()
endif()

if(NOT why_not)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${viewer}/package-lock.json)
  file(SHA256 ${viewer}/package-lock.json wanted)
  set(stamp ${CMAKE_BINARY_DIR}/viewer/installed)
  set(installed "")
  if(EXISTS ${stamp})
    file(READ ${stamp} installed)
  endif()
  if(NOT installed STREQUAL wanted)
    file(COPY ${viewer}/package.json ${viewer}/package-lock.json DESTINATION ${CMAKE_BINARY_DIR}/viewer)
    execute_process(
      COMMAND ${MAREY_NPM} ci --omit=dev --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error
      WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/viewer RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said
      TIMEOUT 300)
    if(failed)
      set(why_not "npm could not install the packages of viewer/package.json")
      message(VERBOSE "${said}")
    else()
      file(WRITE ${stamp} ${wanted})
    endif()
  endif()
endif()

if(why_not)
  message(STATUS "This build cannot write HTML pages: ${why_not}. Wheels of marey contain them; to build them, install nodejs and npm (Debian: apt install nodejs npm) and configure again")
  file(WRITE ${MAREY_PAGE_TEMPLATE}
    "extern const char marey__page_template[], marey__memory_template[];\nconst char marey__page_template[] = \"\", marey__memory_template[] = \"\";\n")
else()
  file(GLOB_RECURSE viewer_sources CONFIGURE_DEPENDS ${viewer}/src/*.ts ${viewer}/src/*.css ${viewer}/src/*.html)
  add_custom_command(OUTPUT ${MAREY_PAGE_TEMPLATE}
    COMMAND ${MAREY_NODE} ${viewer}/build.mjs ${CMAKE_BINARY_DIR}/viewer/node_modules ${MAREY_PAGE_TEMPLATE}
    DEPENDS ${viewer_sources} ${viewer}/build.mjs ${viewer}/package.json VERBATIM)
endif()
