# The pages of findings as a C table: cmake -DPAGES=docs/findings -DINTO=x.c -P findings.cmake
#
# The first line of a page is "# ID: BRIEF", and ID is the name of its file.
file(GLOB pages ${PAGES}/*.md)
set(texts "")
set(rows "")
foreach(page ${pages})
  get_filename_component(id ${page} NAME_WE)
  file(READ ${page} text)
  if(NOT text MATCHES "^# ${id}: ([^\n]+)\n")
    message(FATAL_ERROR "marey: the first line of ${page} is not '# ${id}: ...'")
  endif()
  set(brief ${CMAKE_MATCH_1})
  string(MAKE_C_IDENTIFIER ${id} name)
  file(READ ${page} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND texts "static const char ${name}[] = {${bytes}0};\n")
  string(REGEX REPLACE "([\\\\\"])" "\\\\\\1" brief "${brief}")
  string(APPEND rows "    {\"${id}\", \"${brief}\", ${name}},\n")
endforeach()
file(WRITE ${INTO} "/* docs/findings, made by cmake/findings.cmake. */\n#include <marey/report.h>\n\n${texts}
extern const struct marey_finding_page marey__finding_pages[];
const struct marey_finding_page marey__finding_pages[] = {\n${rows}    {0},\n};\n")
