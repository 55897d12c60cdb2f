# Let the command write its own manual pages and completion scripts:
#
#   cmake -DMAREY=<program> -DINTO=<folder> -P pages.cmake
#
# The folder is laid out as PREFIX/share is. Which pages there are, the command says; none is named here.
function(write file)
  execute_process(COMMAND ${MAREY} ${ARGN} OUTPUT_FILE ${file} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    file(REMOVE_RECURSE ${INTO})
    message(FATAL_ERROR "marey: '${MAREY} ${ARGN}' ended with ${status}, so there is no ${file}")
  endif()
endfunction()

set(man ${INTO}/man/man1)
set(bash ${INTO}/bash-completion/completions)
set(zsh ${INTO}/zsh/site-functions)
set(fish ${INTO}/fish/vendor_completions.d)
file(REMOVE_RECURSE ${INTO}) # a command that is gone leaves no page behind
file(MAKE_DIRECTORY ${man} ${bash} ${zsh} ${fish})

execute_process(COMMAND ${MAREY} help --names OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" names "${names}")
write(${man}/marey.1 help --man)
foreach(name ${names})
  write(${man}/marey-${name}.1 help --man ${name})
endforeach()
write(${bash}/marey completion bash)
write(${zsh}/_marey completion zsh)
write(${fish}/marey.fish completion fish)
