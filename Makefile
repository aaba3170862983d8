# stet: one non-recursive makefile.
#
#   make              programs and libraries in build/
#   make demo         installs what is missing, builds, shows what stet does
#   make test         installs what is missing, builds, runs every test
#   make help         the other targets

BUILD    ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
CC       ?= gcc
CXX      ?= g++
OPT      ?= -O2 -g
WARN     := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wundef -Wpointer-arith -Wwrite-strings
WERROR   ?=
PKGS     := sqlite3 libcrypto libuv libzstd libutf8proc yaml-0.1
VERSION  := $(shell sed -n 's/^.define STET_VERSION *"\(.*\)"/\1/p' include/stet.h)

# SANITIZE=address or SANITIZE=thread builds the same tree with that sanitizer; use another BUILD directory for it.
SANITIZE ?=
ifeq ($(SANITIZE),address)
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifeq ($(SANITIZE),thread)
SANFLAGS := -fsanitize=thread -fno-omit-frame-pointer
endif
empty :=
space := $(empty) $(empty)
# V=1 shows the commands whole.
V ?=
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' '$(1)' '$(2)')

# Hardening, as distributions build their programs. A sanitizer does the same work and more.
HARDEN   := $(if $(SANFLAGS),,-fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
HARDENLD := $(if $(SANFLAGS),,-Wl,-z,relro,-z,now)

COVERAGE ?=
ifneq ($(COVERAGE),)
SANFLAGS += --coverage
endif

# `override` keeps these flags when a user gives CFLAGS= on the command line; the user's flags come last and win.
override CPPFLAGS := -Iinclude -Isrc -D_GNU_SOURCE -DSTET_PREFIX='"$(PREFIX)"' $(CPPFLAGS)
override CFLAGS   := -std=c11 $(OPT) $(WARN) $(WERROR) -fPIC -fvisibility=hidden -fno-math-errno -pthread $(HARDEN) $(SANFLAGS) $(CFLAGS)
override LDFLAGS  := $(HARDENLD) $(SANFLAGS) $(LDFLAGS)
# SQLite, libuv, zstd, utf8proc, libyaml and libcrypto are linked statically into the program, so that it starts without loading and relocating them;
# libstet.so uses the shared ones. CPU time of `stet --version`, process start included (bench/start.c; /bin/true: 0.69 ms): all static 0.92;
# libcrypto shared 1.80; all shared 2.14. Without PIE it would be 0.85: not worth a program whose addresses are known.
STATIC   := -l:libsqlite3.a -l:libuv_a.a -l:libzstd.a -l:libutf8proc.a -l:libyaml.a -l:libcrypto.a -lm -ldl -lpthread
SHARED   := -lsqlite3 -luv -lzstd -lutf8proc -lyaml -lcrypto -lm -ldl -lpthread

# The command line and the MCP server are programs over the library, not part of it.
SURFACES := cli mcp
SRC      := $(sort $(filter-out $(SURFACES:%=src/%/%),$(wildcard src/*/*.c)))
OBJ      := $(SRC:%.c=$(BUILD)/obj/%.o)
SURFACE_SRC := $(sort $(wildcard $(SURFACES:%=src/%/*.c)))
SURFACE  := $(BUILD)/libsurface.a
MAIN     := $(BUILD)/obj/src/main.o
# A plug-in is a folder of plugins/; its packages stand in plugins/NAME/packages for pkg-config.
PLUGINS  := $(patsubst plugins/%/,%,$(wildcard plugins/*/))
PLUGIN_SO := $(PLUGINS:%=$(BUILD)/lib/stet/%.so)
ADAPTERS := $(patsubst adapters/%.c,$(BUILD)/%,$(wildcard adapters/*.c))
# The Python package: an extension module of the limited API, and classes over it. PYTHONPATH=$(BUILD)/python uses it from here. It is
# installed where Debian's python3 looks: dist-packages below /usr and /usr/local, site-packages in a home directory (PREFIX=~/.local) or a venv.
PYTHON   ?= /usr/bin/python3
PYSRC    := $(sort $(wildcard python/*.c))
PYFILES  := $(sort $(wildcard python/stet/*.py python/stet/*.pyi)) python/stet/py.typed
PYMODULE := $(BUILD)/python/stet/_stet.abi3.so
PYTHONLIB := $(if $(filter /usr,$(PREFIX)),python3,$(shell $(PYTHON) -c 'import sys; print("python%d.%d" % sys.version_info[:2])'))
PYTHONDIR ?= $(PREFIX)/lib/$(PYTHONLIB)/$(if $(filter /usr /usr/local,$(PREFIX)),dist,site)-packages

TESTKINDS := unit fault crash property
TESTSRC  := $(sort $(wildcard $(TESTKINDS:%=test/%/*.c)))
TESTBIN  := $(TESTSRC:%.c=$(BUILD)/%)
TESTOBJ  := $(BUILD)/obj/test/faults.o
FUZZSRC  := $(sort $(wildcard test/fuzz/*.c))
FUZZBIN  := $(FUZZSRC:test/fuzz/%.c=$(BUILD)/fuzz/%)
BENCHSRC := $(sort $(wildcard bench/*.c))
BENCHBIN := $(BENCHSRC:%.c=$(BUILD)/%)

.PHONY: all objects programs python fuzz-programs bench-programs demo test test-programs sanitize sanitize-threads lint lint-scripts cppcheck tidy warnings format format-check fuzz bench soak model coverage test-cluster deps-graph install uninstall wheel clean help docs setup setup-test setup-dev
.SECONDARY:

all: programs python

objects: $(OBJ)

programs: $(BUILD)/stet $(BUILD)/libstet.a $(BUILD)/libstet.so $(PLUGIN_SO) $(ADAPTERS)

python: $(PYMODULE) $(PYFILES:python/%=$(BUILD)/python/%)

setup:
	@tools/setup build
setup-test:
	@tools/setup build test
setup-dev:
	@tools/setup build test dev

demo: setup
	@$(MAKE) --no-print-directory -j$$(nproc) programs
	@examples/demo.sh $(abspath $(BUILD))

# JOBS test programs at a time. FILTER=regular expression picks some. AGAIN=N: see test/run. The sub-make sees the packages that setup just installed.
JOBS ?= 2
FILTER ?=
AGAIN ?= 0
test: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) programs python test-programs
	@$(MAKE) --no-print-directory deps-graph >/dev/null
	@test/run --build $(abspath $(BUILD)) --jobs $(JOBS) --filter '$(FILTER)' --again $(AGAIN) unit fault crash property scenario

test-programs: $(TESTBIN) $(BUILD)/test/stet

# The sanitizers over unit, fault and short property tests.
sanitize: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD)/sanitize SANITIZE=address OPT='-O1 -g' programs test-programs
	@STET_TEST_SHORT=1 test/run --build $(abspath $(BUILD))/sanitize --jobs $(JOBS) --filter '$(FILTER)' unit fault property

# The thread sanitizer over what has threads: the MCP server's pool, persist, the registry of runs, watching, contexts that are cancelled.
THREADTESTS := files_watch fleet_ops fleet_queue fleet_registry invoke mcp persist_threads pool
sanitize-threads: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD)/sanitize-threads SANITIZE=thread OPT='-O1 -g' programs $(THREADTESTS:%=$(BUILD)/sanitize-threads/test/unit/%)
	@test/run --build $(abspath $(BUILD))/sanitize-threads --jobs $(JOBS) --filter '^(unit/($(subst $(space),|,$(THREADTESTS)))|scenario/704-mcp-threads)$$' unit scenario

# clang-tidy needs some seconds for each file: a stamp for each, so that a second run looks only at what has changed. The stamp hangs on
# the object, which make already rebuilds when one of the file's headers has changed. cppcheck keeps its own notes in its directory.
# TIDYCHECKS=-clang-analyzer-* leaves out the analyzer, which takes nine tenths of the time: that is what .ci/run does.
TIDYSRC := $(SRC) $(SURFACE_SRC) src/main.c $(wildcard adapters/*.c)
TIDYCHECKS ?=
TIDYDIR  := $(BUILD)/lint/$(if $(TIDYCHECKS),some,all)
lint: setup-dev
	@$(MAKE) --no-print-directory lint-scripts cppcheck
	@$(MAKE) --no-print-directory -k -j$(JOBS) tidy
cppcheck:
	@mkdir -p $(BUILD)/lint/cppcheck
	@cppcheck --quiet --error-exitcode=1 -j$(JOBS) --cppcheck-build-dir=$(BUILD)/lint/cppcheck --enable=warning,performance,portability --inline-suppr \
	  --suppressions-list=tools/cppcheck-suppressions -Iinclude -Isrc src adapters plugins
# Python with flake8 (.flake8) and autopep8, JavaScript with eslint (.eslintrc.json). eslint finds its own modules by
# NODE_PATH if Node.js is not Debian's.
pyfiles = $$(git ls-files -co --exclude-standard '*.py'; git grep -lE '^\#!/usr/bin/env python3' -- ':!*.py' ':!*.sh')
jsfiles = $$(git ls-files -co --exclude-standard '*.js' '*.mjs')
AUTOPEP8 := autopep8 --select=E101,E11,E2,E30,W1,W2,W3
ESLINT   := NODE_PATH=/usr/share/nodejs eslint --format unix
lint-scripts:
	@flake8 $(pyfiles)
	@$(ESLINT) $(jsfiles)
# clang's warnings over everything that is compiled, tests and benches included, without leaving objects behind.
warnings: setup-dev
	@clang $(CPPFLAGS) -std=c11 $(WARN) -Werror -pthread $$(cat $(wildcard plugins/*/packages) /dev/null | xargs -r pkg-config --cflags) -fsyntax-only \
	  -I$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))') \
	  $(TIDYSRC) $(TESTSRC) test/faults.c $(FUZZSRC) $(BENCHSRC) $(wildcard plugins/*/*.c) $(PYSRC)
	@! clang++ -fsyntax-only -Wall -Werror -Iinclude test/lint/dangling.cc 2>/dev/null || { echo 'clang++ takes a string that outlives its value (test/lint/dangling.cc)' >&2; exit 1; }
tidy: $(TIDYSRC:%.c=$(TIDYDIR)/%.tidy) $(PLUGINS:%=$(TIDYDIR)/plugins/%.tidy)

format: setup-dev
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i
	@$(AUTOPEP8) --in-place $(pyfiles)
	@$(ESLINT) --fix $(jsfiles)
format-check: setup-dev
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format --dry-run -Werror
	@$(AUTOPEP8) --diff --exit-code $(pyfiles)

# Each fuzzer for FUZZ_SECONDS; a finding fails the target.
FUZZ_SECONDS ?= 30
fuzz: setup-dev
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD)/fuzzing CC=clang SANITIZE=address OPT='-O1 -g' SANFLAGS='-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined' fuzz-programs
	@test/run-fuzz $(abspath $(BUILD))/fuzzing $(FUZZ_SECONDS)
fuzz-programs: $(FUZZBIN)

bench: setup-dev
	@$(MAKE) --no-print-directory programs python bench-programs
	@bench/run $(abspath $(BUILD)) '$(FILTER)'
bench-programs: $(BENCHBIN)

# Long property and crash tests: the same programs with STET_TEST_LONG=1.
soak: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) programs test-programs
	@STET_TEST_LONG=1 test/run --build $(abspath $(BUILD)) --jobs $(JOBS) --timeout 36000 --filter '$(FILTER)' crash property

# Hubs against real servers, at length: the server is killed 50 times under load.
test-cluster: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) programs $(BUILD)/test/property/hub
	@STET_TEST_LONG=1 test/run --build $(abspath $(BUILD)) --jobs $(JOBS) --timeout 3600 --filter '^(property/hub|scenario/15[45])' property scenario

# The protocol of claims and leases, checked by Spin; LONG=1 searches further.
model: setup-test
	@LONG='$(LONG)' model/check

# Line coverage: a summary, the files with the least, and pages in html/. A few scenarios can't hold here, those that look at which files the
# program opens or that link the library themselves: gcov is in the way of both. The runner names them, and the figures come all the same.
coverage: setup-dev
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD)/coverage COVERAGE=1 OPT='-O0 -g' programs test-programs
	@find $(BUILD)/coverage -name '*.gcda' -delete
	@test/run --build $(abspath $(BUILD))/coverage --jobs $(JOBS) --filter '$(FILTER)' unit fault scenario || echo 'coverage: some tests failed, see above'
	@lcov --quiet --capture --directory $(BUILD)/coverage/obj/src --output-file $(BUILD)/coverage/all.info
	@genhtml --quiet --output-directory $(BUILD)/coverage/html $(BUILD)/coverage/all.info
	@lcov --summary $(BUILD)/coverage/all.info
	@lcov --list $(BUILD)/coverage/all.info | awk -F'|' '$$2 ~ /%/ && $$1 !~ /Total/ { sub(".*/src/", "src/", $$1); print $$2, $$1 }' | sort -n | head -20

# Prints the real include graph between folders; fails on an upward edge.
deps-graph:
	@python3 tools/deps-graph

# What is rendered from the operation table and kept in the repository.
docs: programs
	@$(BUILD)/stet help --reference > docs/reference.md
	@$(BUILD)/stet help --man > man/stet.1

install: programs python
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/lib/stet $(DESTDIR)$(PREFIX)/share/man/man1 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 755 $(BUILD)/stet $(ADAPTERS) $(DESTDIR)$(PREFIX)/bin/
	install -m 644 include/stet.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 $(BUILD)/libstet.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(BUILD)/libstet.so $(DESTDIR)$(PREFIX)/lib/libstet.so.$(VERSION)
	ln -sf libstet.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libstet.so.0
	ln -sf libstet.so.0 $(DESTDIR)$(PREFIX)/lib/libstet.so
	$(if $(PLUGIN_SO),install -m 755 $(PLUGIN_SO) $(DESTDIR)$(PREFIX)/lib/stet/)
	install -m 644 man/stet.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -d $(DESTDIR)$(PYTHONDIR)/stet $(DESTDIR)$(PYTHONDIR)/stet-$(VERSION).dist-info
	install -m 644 $(PYFILES) $(PYMODULE) $(DESTDIR)$(PYTHONDIR)/stet/
	sed -e 's|@VERSION@|$(VERSION)|g' python/METADATA.in > $(DESTDIR)$(PYTHONDIR)/stet-$(VERSION).dist-info/METADATA
	install -m 644 python/entry_points.txt $(DESTDIR)$(PYTHONDIR)/stet-$(VERSION).dist-info/
	sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@VERSION@|$(VERSION)|g' tools/stet.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/stet.pc
	$(BUILD)/stet help --completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/stet
	$(BUILD)/stet help --completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_stet
	$(BUILD)/stet help --completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/stet.fish

# What pip builds from this tree: a wheel and an sdist, without the network.
wheel: python
	@mkdir -p $(BUILD)/dist
	@cd python && BUILD=$(BUILD) $(PYTHON) -c 'import os, sys, backend; d = os.path.abspath(os.path.join("..", os.environ["BUILD"], "dist")); print(backend.build_wheel(d)); print(backend.build_sdist(d))'

# Removes what install puts there, and the directories that are stet's own.
uninstall:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,stet $(notdir $(ADAPTERS))) $(DESTDIR)$(PREFIX)/include/stet.h
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/lib/,libstet.a libstet.so libstet.so.0 libstet.so.$(VERSION) pkgconfig/stet.pc)
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1/stet.1 bash-completion/completions/stet zsh/site-functions/_stet fish/vendor_completions.d/stet.fish)
	rm -rf $(DESTDIR)$(PREFIX)/lib/stet $(DESTDIR)$(PYTHONDIR)/stet $(DESTDIR)$(PYTHONDIR)/stet-$(VERSION).dist-info

clean:
	rm -rf $(BUILD)

help:
	@echo 'make [all]        programs and libraries in build/'
	@echo 'make python       the Python package in build/python/'
	@echo 'make wheel        a wheel and an sdist of it in build/dist/ (pip install . builds the same)'
	@echo 'make demo         what stet does, on an embedded project'
	@echo 'make test         every test; FILTER=REGEX some of them'
	@echo 'make sanitize     unit, fault and short property tests with ASan and UBSan'
	@echo 'make sanitize-threads   tests of what has threads, with the thread sanitizer'
	@echo 'make lint         flake8, eslint, cppcheck and clang-tidy, the last two over what has changed since they last passed'
	@echo 'make format       C, Python and JavaScript; make format-check only looks'
	@echo 'make warnings     clang -Werror over every source, tests and benches included'
	@echo 'make fuzz         every fuzzer, FUZZ_SECONDS=30 each'
	@echo 'make bench        measurements against peers; FILTER=REGEX some of them'
	@echo 'make soak         long property and crash tests'
	@echo 'make test-cluster long tests of hubs against a PostgreSQL server that the tests start'
	@echo 'make model        check the model of claims and leases'
	@echo 'make coverage     line coverage in build/coverage/html'
	@echo 'make deps-graph   the include graph between folders; fails on an upward edge'
	@echo 'make docs         docs/reference.md and man/stet.1 from the operation table'
	@echo 'make install      DESTDIR= PREFIX=/usr/local PYTHONDIR=PREFIX/lib/python3.N/{dist,site}-packages'
	@echo 'make uninstall    removes what install put there; give it the same DESTDIR, PREFIX and PYTHONDIR'

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# The program of a process of Python is part of the library, as text.
$(BUILD)/obj/src/module/python_process.o: src/module/python_child.py

$(BUILD)/libstet.a: $(OBJ)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)ar rcs $@ $(OBJ)

$(SURFACE): $(SURFACE_SRC:%.c=$(BUILD)/obj/%.o)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)ar rcs $@ $^

$(BUILD)/libstet.so: $(OBJ) tools/libstet.map
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-soname,libstet.so.0 -Wl,--version-script=tools/libstet.map -Wl,--no-undefined $(LDFLAGS) -o $@ $(OBJ) $(SHARED)

$(BUILD)/stet: $(MAIN) $(SURFACE) $(BUILD)/libstet.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -Wl,--gc-sections -o $@ $(MAIN) $(SURFACE) $(BUILD)/libstet.a $(STATIC)

# The program as the tests use it where they inject faults: the same objects, and the hook of os/sys.h set from STET_FAULT.
$(BUILD)/test/stet: $(MAIN) $(TESTOBJ) $(SURFACE) $(BUILD)/libstet.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(MAIN) $(TESTOBJ) $(SURFACE) $(BUILD)/libstet.a $(STATIC)

$(BUILD)/test/%: $(BUILD)/obj/test/%.o $(TESTOBJ) $(SURFACE) $(BUILD)/libstet.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $< $(TESTOBJ) $(SURFACE) $(BUILD)/libstet.a -lcmocka -ljansson $(STATIC)

$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(BUILD)/libstet.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $< $(BUILD)/libstet.a -ljansson $(STATIC)

$(BUILD)/fuzz/%: $(BUILD)/obj/test/fuzz/%.o $(SURFACE) $(BUILD)/libstet.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $< $(SURFACE) $(BUILD)/libstet.a $(STATIC)

# A plug-in contains its own code alone: it is given a table of the library's functions when it is loaded (src/module/library.h, src/repo/hub_library.h). A function that
# is not in the table does not link.
define PLUGIN_RULE
$(BUILD)/lib/stet/$(1).so: $(wildcard plugins/$(1)/* src/base/*.h src/os/*.h src/repo/*.h) $(addprefix src/,module/javascript.h module/library.h module/library_calls.h scheduler/module.h) include/stet.h Makefile
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$$$(pkg-config --cflags $$$$(cat plugins/$(1)/packages)) -shared $$(if $$(SANFLAGS),,-Wl,--no-undefined) $$(LDFLAGS) \
	  -o $$@ plugins/$(1)/*.c $$$$(pkg-config --libs $$$$(cat plugins/$(1)/packages)) -lm -ldl -lpthread
endef
$(foreach plugin,$(PLUGINS),$(eval $(call PLUGIN_RULE,$(plugin))))

# The shared SQLite, and not a copy of it: the locks that SQLite keeps on a file are those of the process, and Python's own sqlite3 is in it.
$(PYMODULE): $(PYSRC) $(wildcard python/*.h) $(BUILD)/libstet.a Makefile
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -Iinclude -D_GNU_SOURCE -I$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))') $(CFLAGS) -shared -Wl,--exclude-libs,ALL $(LDFLAGS) \
	  -o $@ $(PYSRC) $(BUILD)/libstet.a $(SHARED)
$(filter-out $(PYMODULE),$(PYFILES:python/%=$(BUILD)/python/%)): $(BUILD)/python/%: python/%
	@mkdir -p $(@D)
	@cp $< $@

$(BUILD)/%: adapters/%.c $(BUILD)/libstet.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/libstet.a $(STATIC)

$(TIDYDIR)/%.tidy: $(BUILD)/obj/%.o .clang-tidy
	@mkdir -p $(@D)
	$(call say,TIDY,$*.c)
	$(Q)clang-tidy --quiet --checks='$(TIDYCHECKS)' $*.c -- $(CPPFLAGS) -std=c11 2>$@.log || { cat $@.log >&2; exit 1; }
	@touch $@

$(TIDYDIR)/plugins/%.tidy: $(BUILD)/lib/stet/%.so .clang-tidy
	@mkdir -p $(@D)
	$(call say,TIDY,plugins/$*)
	$(Q)clang-tidy --quiet --checks='$(TIDYCHECKS)' plugins/$*/*.c -- $(CPPFLAGS) -std=c11 $$(pkg-config --cflags $$(cat plugins/$*/packages)) 2>$@.log || { cat $@.log >&2; exit 1; }
	@touch $@

-include $(OBJ:.o=.d) $(SURFACE_SRC:%.c=$(BUILD)/obj/%.d) $(MAIN:.o=.d) $(TESTSRC:%.c=$(BUILD)/obj/%.d) $(BENCHSRC:%.c=$(BUILD)/obj/%.d) $(FUZZSRC:%.c=$(BUILD)/obj/%.d) $(TESTOBJ:.o=.d)
