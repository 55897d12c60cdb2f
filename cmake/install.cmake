# The component `c`: both libraries, the headers, and the two ways to find them, pkg-config and find_package(marey).
# Nothing in it knows its prefix, so that the folder may be moved after `cmake --install --prefix`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
foreach(dir BIN LIB INCLUDE DATA)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}DIR}")
    message(FATAL_ERROR "marey: CMAKE_INSTALL_${dir}DIR is ${CMAKE_INSTALL_${dir}DIR}; give it relative to the prefix, "
      "so that the files find one another wherever the prefix is")
  endif()
endforeach()

set_target_properties(marey_tools PROPERTIES EXPORT_NAME tools)
install(TARGETS marey marey_tools EXPORT marey-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c NAMELINK_COMPONENT c
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/marey
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT c FILES_MATCHING PATTERN "*.h")

set(MAREY_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/marey)
install(EXPORT marey-targets NAMESPACE marey:: DESTINATION ${MAREY_CMAKE_DIR} COMPONENT c)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mareyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/mareyConfig.cmake ${PROJECT_BINARY_DIR}/mareyConfigVersion.cmake
  DESTINATION ${MAREY_CMAKE_DIR} COMPONENT c)

# From the folder of the .pc files back to the prefix: one step up for `pkgconfig`, one for each part of the libdir.
file(RELATIVE_PATH MAREY_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(name marey marey-tools)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT c)
endforeach()

# `marey run` enters a Python program by this folder, whichever interpreter it is.
install(FILES ${PROJECT_SOURCE_DIR}/python/boot/sitecustomize.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/marey/boot COMPONENT c)
