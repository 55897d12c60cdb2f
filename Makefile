# A short front door for people. The work is done by the scripts in tools/ (each has --help) and by CMake's presets.
PREFIX ?= /usr/local

.PHONY: help demo quick test bench check install clean
help:
	@echo 'make demo      set up, build, record a small training, then find out why another one is slow and fix it'
	@echo 'make quick     build, then format, layers, unit tests and a smoke test: after each edit'
	@echo 'make test      set up, build, run all tests but the slow ones'
	@echo 'make bench     what each thing costs, against its peers'
	@echo 'make check     all that CI runs: sanitizers, fuzzing, static analysis, slow tests'
	@echo 'make install   the libraries, headers and the marey command, into PREFIX ($(PREFIX))'
	@echo 'make clean     remove what was built; .venv stays'

demo quick test bench check:
	@tools/$@

install:
	@tools/install '$(PREFIX)'

clean:
	rm -rf build demo.*
