# find_package(kymo) gives kymo::kymo, which a measured program links, and kymo::tools, which reads recordings.
include(${CMAKE_CURRENT_LIST_DIR}/kymo-targets.cmake)
