# find_package(marey) gives marey::marey, which a measured program links, and marey::tools, which reads recordings.
include(${CMAKE_CURRENT_LIST_DIR}/marey-targets.cmake)
