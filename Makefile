# One word for each thing one does with Sluice; `make` alone lists them. Everything may be run again and is quick then.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:  # two apt-get at a time stand in each other's way
.PHONY: help setup run demo wheel test test-long bench lint sbom audit clean java browser clients activemq jms peers

PYTHON := .venv/bin/python
INSTALLED := .venv/.installed
COMPILED := brokerapp/stomp/.compiled
STOMPJS := tests/clients/stompjs/node_modules
STOMP_PY_8 := .venv/stomp.py-8
JOLOKIAJS := tests/monitoring/jolokiajs/node_modules
PROMTOOL := .venv/prometheus/promtool
DEPLOY_CHECKS := .venv/deploy
BUILD := .venv/build
SUPPLY_CHAIN := .venv/supply-chain
CHECK_HTTP := /usr/lib/nagios/plugins/check_http
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
APT := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq
APT_INSTALL = echo "installing with apt-get:" && $(APT) update && $(APT) install -y --no-install-recommends

FOR ?= 120
T ?= tests
# Processes that share the tests. Most tests wait half of their time: so many keep two cores busy.
N ?= 4

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

setup: $(INSTALLED) $(COMPILED) java ## virtual environment in .venv, its packages, and a Java runtime for Spark if there is none
	@$(PYTHON) -m analytics.spark.build_class_archive

run: setup ## start everything on this machine and keep it running until Ctrl-C
	@$(PYTHON) manage.py up

demo: setup ## run a small order business against a running Sluice (FOR=120 seconds)
	@$(PYTHON) manage.py demo --seconds $(FOR)

# What a former build left is removed first: it would be in the wheel, too. pip builds in an environment of its own with what
# pyproject.toml requires, so what Sluice needs to run is not installed for it.
wheel: $(BUILD)/.installed ## the package, as dist/sluice-VERSION-....whl (README: Install as a package)
	@rm -rf build sluice.egg-info dist/sluice-*.whl
	$(BUILD)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	rm -rf build sluice.egg-info brokerapp/stomp/compiled_sends.c
	ls dist/*.whl

test: setup browser clients activemq jms ## tests, or a part of them (T=tests/supervisor), by four processes (N=0: by this one); it says which took longest
	@$(PYTEST)

test-long: setup browser clients activemq jms ## the tests that are marked as long, which `make test` leaves out, and properties with more examples: longer than `make test`
	@$(PYTEST)

test-long: LONG := -m "long or hypothesis" --hypothesis-profile=thorough
# What failed runs again by itself: a deadline missed while others worked is no fault, anything else fails again.
define PYTEST
$(PYTHON) -m pytest $(LONG) -n $(N) --dist loadscope --no-loadscope-reorder --durations=15 $(T) || {
  echo "what failed, again by itself"
  $(PYTHON) -m pytest $(LONG) --last-failed --last-failed-no-failures none $(T)
}
endef

bench: setup peers ## measure against ActiveMQ and RabbitMQ, side by side
	@$(PYTHON) -m benchmarks

lint: setup ## what the linter has to say
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m mypy
	@.venv/bin/djade --check --target-version 5.2 $$(find templates -name '*.html')

sbom: setup $(SUPPLY_CHAIN)/.installed ## bill of materials of all packages (CycloneDX), in dist/sluice.cdx.json
	@$(SUPPLY_CHAIN)/bin/python deploy/supply_chain/bill_of_materials.py .venv dist/sluice.cdx.json

audit: setup $(SUPPLY_CHAIN)/.installed ## known vulnerabilities of all packages (ADVISORIES=URL of a service as OSV has it, else PyPI)
	@$(PYTHON) -m pip list --format freeze --disable-pip-version-check | $(SUPPLY_CHAIN)/bin/python deploy/supply_chain/audit.py $(ADVISORIES)

clean: ## remove what can be made again: .venv, caches (never var/, which holds your data)
	rm -rf .venv dist $(COMPILED) brokerapp/stomp/*.so $(STOMPJS) $(JOLOKIAJS) .pytest_cache .ruff_cache .hypothesis spark-warehouse artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# -- what they need

# Python 3.11 with what makes virtual environments, as the variable `python` of the shell.
define FIND_PYTHON
python=
for candidate in python3.11 python3; do
  if "$$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
    python=$$candidate
    break
  fi
done
if [ -z "$$python" ]; then
  echo "error: Sluice needs Python 3.11, and neither python3.11 nor python3 is that here" >&2
  exit 1
fi
"$$python" -c 'import ensurepip' 2>/dev/null || { $(APT_INSTALL) python3.11-venv; }
endef

# A stamp, so that the second time costs nothing; written last, so that an interrupted attempt is made again.
$(INSTALLED): requirements.txt
	@if ! $(PYTHON) -m pip --version >/dev/null 2>&1; then
	  $(FIND_PYTHON)
	  "$$python" -m venv .venv
	fi
	echo "installing $$(grep -c '^[a-z].*==' requirements.txt) packages and what they need into .venv: some minutes, once"
	$(PYTHON) -m pip install --disable-pip-version-check --progress-bar off -r requirements.txt | sed -un -E \
	  -e 's/^Collecting ([^ ]+).*/  found \1/p' -e 's/^  (Downloading|Using cached) ([^ ]+) (\(.*\))$$/  fetched \2 \3/p' \
	  -e 's/^Installing collected.*/  installing them: the longest step/p'
	touch $@

# Reads SENDs faster; without a C compiler the same is done in Python. A stamp, as the file's name depends on the Python.
$(COMPILED): brokerapp/stomp/compiled_sends.pyx $(INSTALLED)
	@if ! command -v gcc >/dev/null || [ ! -e "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ]; then
	  echo "no C compiler with Python's headers (Debian: gcc libc6-dev python3.11-dev): SENDs are read in Python" >&2
	elif ! log=$$(.venv/bin/cythonize -i -q $< 2>&1); then
	  echo "$$log" >&2
	  echo "$< was not compiled, see above: SENDs are read in Python" >&2
	fi
	rm -rf $(<:.pyx=.c) build/lib.*
	rmdir build 2>/dev/null || true
	touch $@

# Spark needs Java 17 or later. Debian 12 calls it openjdk-17, its successors have later ones as their default.
java:
	@if ! java -version 2>&1 | awk -F'["._-]' '/version/ { new = $$2 >= 17 } END { exit !new }'; then
	  $(APT_INSTALL) openjdk-17-jre-headless || $(APT) install -y --no-install-recommends default-jre-headless
	fi

browser:
	@command -v chromium-headless-shell >/dev/null || { $(APT_INSTALL) chromium-headless-shell fonts-liberation; } || command -v chromium >/dev/null
	@command -v chromium >/dev/null || { $(APT_INSTALL) chromium; } ||  # the one without windows has no page cache
	  echo "Chromium with windows is not to be had here: Back out of the page cache is not tested" >&2

# Clients of other makers, which the tests run: JavaScript's, an older stomp.py in a folder of its own, and those of
# Ruby, Perl and PHP, each of which may be missing where Debian has no such package: its tests are skipped.
clients: $(STOMPJS)/.installed $(STOMP_PY_8)/.installed $(JOLOKIAJS)/.installed $(PROMTOOL) $(DEPLOY_CHECKS)/.installed $(SUPPLY_CHAIN)/.installed
	@[ -x $(CHECK_HTTP) ] || { $(APT_INSTALL) monitoring-plugins-basic; }
	missing=()
	ruby -e 'require "stomp"' 2>/dev/null || missing+=("ruby-stomp")
	perl -MNet::Stomp -MJSON::PP -e 1 2>/dev/null || missing+=("libnet-stomp-perl perl")
	php -r 'exit(extension_loaded("stomp") ? 0 : 1);' 2>/dev/null || missing+=("php-stomp php-cli")
	for packages in "$${missing[@]}"; do
	  { $(APT_INSTALL) $$packages; } || echo "$${packages%% *} is not to be had here: its tests are skipped" >&2
	done

$(STOMPJS)/.installed: tests/clients/stompjs/package-lock.json
	@missing=
	command -v node >/dev/null || missing=nodejs
	command -v npm >/dev/null || missing="$$missing npm"  # nodejs of another maker brings its own
	[ -z "$$missing" ] || { $(APT_INSTALL) $$missing; }
	npm ci --prefix tests/clients/stompjs --omit=optional --no-audit --no-fund --loglevel=error
	touch $@

$(JOLOKIAJS)/.installed: tests/monitoring/jolokiajs/package-lock.json | $(STOMPJS)/.installed
	@npm ci --prefix tests/monitoring/jolokiajs --no-audit --no-fund --loglevel=error
	touch $@

# Out of Debian's package, which would start a server when it is installed: the checker, and the server for the tests.
$(PROMTOOL): | $(INSTALLED)
	@mkdir -p $(@D)
	cd $(@D)
	apt-get -qq download prometheus || { $(APT) update && apt-get -qq download prometheus; }
	dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 ./usr/bin/promtool ./usr/bin/prometheus
	rm prometheus_*.deb

$(STOMP_PY_8)/.installed: tests/clients/stomp.py-8.txt $(INSTALLED)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(@D) -r $<
	touch $@

# Linters of the files in deploy/, and Helm as a library.
$(DEPLOY_CHECKS)/.installed: tests/deploy/requirements.txt $(INSTALLED)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade --target $(@D) -r $<
	touch $@

# pip alone; what builds the wheel pip installs for the time of the build.
$(BUILD)/.installed:
	@$(FIND_PYTHON)
	"$$python" -m venv $(@D)
	touch $@

# An environment of its own, so that its packages are not among those that it lists.
$(SUPPLY_CHAIN)/.installed: deploy/supply_chain/requirements.txt $(INSTALLED)
	@$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# What JMS clients are tested with: a compiler, and ActiveMQ's client with what it needs.
jms: activemq
	@missing=()
	command -v javac >/dev/null || missing+=(default-jdk-headless)
	[ -e /usr/share/java/activemq-client.jar ] || missing+=(libactivemq-java)
	[ -e /usr/share/java/geronimo-jta-1.2-spec.jar ] || missing+=(libgeronimo-jta-1.2-spec-java)
	[ -e /usr/share/java/slf4j-nop.jar ] || missing+=(libslf4j-java)
	[ -z "$${missing[*]}" ] || { $(APT_INSTALL) $${missing[*]}; } ||
	  echo "The JDK or ActiveMQ's client is not to be had here: what is tested with them is skipped" >&2

# What the bridge to it is tested with, and the benchmark compares with: instances of their own on free ports,
# whatever the package starts. Where there is no such package the tests that need it are skipped, and say so.
activemq:
	@[ -e /usr/share/activemq/bin/activemq.jar -a -e /usr/share/java/xstream.jar -a -e /usr/share/java/jettison.jar ] ||
	  { $(APT_INSTALL) activemq libxstream-java libjettison-java; } ||  # its STOMP needs what it only recommends
	  echo "ActiveMQ is not to be had here: what is tested with it is skipped" >&2

peers: activemq
	@[ -e /usr/lib/rabbitmq/bin/rabbitmq-server ] || { $(APT_INSTALL) rabbitmq-server; }

.ONESHELL:
