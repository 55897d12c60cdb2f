# A text file as a C string, and the SHA-256 of it: cmake -DNAME=marey__x -DFROM=x.js -DINTO=x.c -P embed.cmake
file(READ ${FROM} bytes HEX)
file(SHA256 ${FROM} sum)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," sum "${sum}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
get_filename_component(file ${FROM} NAME)
file(WRITE ${INTO} "/* ${file}, made by cmake/embed.cmake. */\nextern const char ${NAME}[];\nconst char ${NAME}[] = {${bytes}0};\n"
  "extern const unsigned char ${NAME}_sha256[32];\nconst unsigned char ${NAME}_sha256[32] = {${sum}};\n")
