# The component `c`: both libraries, the headers, and the two ways to find them, pkg-config and find_package(kymo).
# Nothing in it knows its prefix, so that the folder may be moved after `cmake --install --prefix`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
foreach(dir BIN LIB INCLUDE DATA)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}DIR}")
    message(FATAL_ERROR "kymo: CMAKE_INSTALL_${dir}DIR is ${CMAKE_INSTALL_${dir}DIR}; give it relative to the prefix, "
      "so that the files find one another wherever the prefix is")
  endif()
endforeach()

set_target_properties(kymo_tools PROPERTIES EXPORT_NAME tools)
install(TARGETS kymo kymo_tools EXPORT kymo-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c NAMELINK_COMPONENT c
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kymo
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT c FILES_MATCHING PATTERN "*.h")

set(KYMO_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/kymo)
install(EXPORT kymo-targets NAMESPACE kymo:: DESTINATION ${KYMO_CMAKE_DIR} COMPONENT c)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kymoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/kymoConfig.cmake ${PROJECT_BINARY_DIR}/kymoConfigVersion.cmake
  DESTINATION ${KYMO_CMAKE_DIR} COMPONENT c)

# From the folder of the .pc files back to the prefix: one step up for `pkgconfig`, one for each part of the libdir.
file(RELATIVE_PATH KYMO_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(name kymo kymo-tools)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT c)
endforeach()

# `kymo run` enters a Python program by this folder, whichever interpreter it is.
install(FILES ${PROJECT_SOURCE_DIR}/python/boot/sitecustomize.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/kymo/boot COMPONENT c)
