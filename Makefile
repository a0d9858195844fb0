# The targets of crawlbatch. `make` alone lists them.
#
# Build, demo and test need only Go, git and make; test-race needs a C compiler. The slower suites
# install what they need under .cache.

GO      ?= go
VERSION ?= $(shell git describe --always --dirty 2>/dev/null || echo dev)
CACHE   := $(CURDIR)/.cache
BIN     := $(CURDIR)/bin

# Tests, checks and the binary are compiled alike, so that each finds in Go's cache what the others compiled.
export CGO_ENABLED = 0
export GOFLAGS    := -trimpath $(GOFLAGS)

.DEFAULT_GOAL := help
.PHONY: help build image release demo test test-race test-crawl test-install test-s3 test-hostile test-limits test-chaos test-network test-takedown test-damage test-k8s model test-duckdb test-sql test-readers test-browser test-warc test-extractors test-realsite test-monitoring lint vuln fuzz bench scale scale-takedown count clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

COMPILE = CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)"

build: ## build bin/crawlbatch
	@$(COMPILE) -o $(BIN)/crawlbatch ./cmd/crawlbatch

ARCH  ?= $(shell $(GO) env GOHOSTARCH)
IMAGE ?= crawlbatch:$(VERSION)

image: ## build the container image bin/crawlbatch-image.tar, no Docker needed (ARCH=arm64 IMAGE=name:tag)
	@GOOS=linux GOARCH=$(ARCH) $(COMPILE) -o $(BIN)/linux-$(ARCH)/crawlbatch ./cmd/crawlbatch
	@$(GO) run ./k8s/image -binary $(BIN)/linux-$(ARCH)/crawlbatch -arch $(ARCH) -tag $(IMAGE) -o $(BIN)/crawlbatch-image.tar

RELEASE := $(BIN)/release

release: $(CACHE)/bin/cyclonedx-gomod ## static binaries, images, man pages, completions, SBOM and checksums in bin/release
	@rm -rf $(RELEASE) && mkdir -p $(RELEASE)/man $(RELEASE)/completions
	@for arch in amd64 arm64; do \
		$(MAKE) --no-print-directory image ARCH=$$arch IMAGE=$(IMAGE) && mv $(BIN)/crawlbatch-image.tar $(RELEASE)/crawlbatch-image-linux-$$arch.tar && \
		cp $(BIN)/linux-$$arch/crawlbatch $(RELEASE)/crawlbatch-linux-$$arch && \
		$(CACHE)/bin/cyclonedx-gomod bin -json -std -noserial -notimestamp -version $(VERSION) -output $(RELEASE)/crawlbatch-linux-$$arch.cdx.json $(RELEASE)/crawlbatch-linux-$$arch 2>$(CACHE)/sbom.log || { cat $(CACHE)/sbom.log; exit 1; }; \
	done
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/linux-$(shell $(GO) env GOHOSTARCH)/crawlbatch man $(RELEASE)/man
	@for shell in bash zsh fish; do $(BIN)/linux-$(shell $(GO) env GOHOSTARCH)/crawlbatch completion $$shell >$(RELEASE)/completions/crawlbatch.$$shell || exit 1; done
	@cd $(RELEASE) && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
	@ls $(RELEASE)

demo: build ## crawl two rounds of the built-in synthetic web into ./crawl-data
	@$(BIN)/crawlbatch demo

# LAB runs tests of the built program that take minutes to hours, or need other programs.
LAB := $(GO) test -tags lab -count=1

# tested runs go test with the given flags, then lists the skipped tests with the reasons. Tests write into memory if they
# can; what is compiled goes to the disk.
define tested
@mkdir -p $(CACHE)
@$(GO) tool gotestsum --format standard-quiet --hide-summary=skipped --jsonfile $(CACHE)/test.json -- -exec "env TMPDIR=$$(testdata/memory/dir)" $(1); \
	status=$$?; testdata/skipped/list $(CACHE)/test.json; exit $$status
endef

# At its usual goal, the collector takes a third of the tests' time.
test: export GOGC = 400
test: ## run the unit tests in minutes, list the skipped tests with the reasons
	$(call tested,-short -vet=off -timeout 10m ./...)

test-race: export CGO_ENABLED = 1
test-race: ## run the unit tests of the packages with goroutines, with the race detector
	$(call tested,-race -short -vet=off -timeout 20m $$(testdata/race/packages))

test-crawl: ## run all tests, whole crawls and long tests too (LONG=1: only what make test leaves out)
	$(call tested,-timeout 20m $(if $(LONG),$$(testdata/skipped/long),./...))

test-install: ## install the commit with go install from a module proxy in a folder, and run its demo
	@GO=$(GO) testdata/install/run

test-s3: $(CACHE)/bin/versitygw ## run the store's contract and a whole crawl against a real S3 server
	CRAWLBATCH_VERSITYGW=$(CACHE)/bin/versitygw $(GO) test -count=1 -timeout 20m -run 'S3' ./formats/store/... ./planner/source ./jobs/verify ./cmd/crawlbatch

test-hostile: ## crawl a table of hostile servers, names and documents with the real binary
	$(LAB) -timeout 5m -run 'Hostile' ./cmd/lab

test-limits: ## crawl with few open files, and large pages in little memory (as root: in cgroups)
	$(LAB) -v -timeout 15m -run 'Limits' ./cmd/lab

RUNS ?= 1
SEED ?=

test-chaos: $(CACHE)/bin/versitygw ## kill, pause, starve, rob and mislead crawls (KILLS=100 RUNS=1 SEED=n; as root also fill disks)
	CRAWLBATCH_VERSITYGW=$(CACHE)/bin/versitygw CRAWLBATCH_CHAOS_KILLS=$(or $(KILLS),100) CRAWLBATCH_CHAOS_SEED=$(SEED) \
		$(LAB) -count=$(RUNS) -v -timeout $$((25 * $(RUNS)))m -parallel 9 -run 'TestChaos|TwoRunsKeepTheirPace' ./cmd/lab

test-network: ## take networks, hosts, name servers, proxies, ports and files away from crawls, as root (SEED=n RUNS=1 SCENARIO=regex KEEP=dir)
	CRAWLBATCH_CHAOS_SEED=$(SEED) CRAWLBATCH_NETWORK_KEEP=$(abspath $(KEEP)) \
		$(LAB) -count=$(RUNS) -v -timeout $$((8 * $(RUNS)))m -parallel 50 -run 'TestNetwork$(if $(SCENARIO),/(^undisturbed|$(SCENARIO)))' ./cmd/lab

model: ## search the models of the protocol for an order of events that breaks a promise (minutes, 3 GiB)
	CRAWLBATCH_MODEL=1 GOMEMLIMIT=3GiB $(GO) test -count=1 -v -timeout 60m ./jobs/model

test-takedown: $(CACHE)/bin/versitygw ## take down a domain and a URL, killed at 50 random instants each, on both stores; likewise compact (KILLS=50 SEED=n)
	CRAWLBATCH_VERSITYGW=$(CACHE)/bin/versitygw CRAWLBATCH_CHAOS_KILLS=$(or $(KILLS),50) CRAWLBATCH_CHAOS_SEED=$(SEED) \
		$(LAB) -v -timeout 30m -run 'TakenDown|CompactIsKilled' ./cmd/lab

test-damage: $(CACHE)/bin/versitygw ## damage every kind of object in every way, on both stores (SHORT=1: a few cells; UPDATE=1 rewrites the table)
	CRAWLBATCH_VERSITYGW=$(CACHE)/bin/versitygw $(LAB) -v -timeout 120m $(if $(SHORT),-short) -run TestDamage ./cmd/lab $(if $(UPDATE),-update)

test-duckdb: $(CACHE)/node/.installed $(CACHE)/duckdb/.installed $(CACHE)/bin/versitygw ## open every dataset of a crawl in DuckDB, run the cookbook and Common Crawl's queries
	PATH="$(CACHE)/duckdb/bin:$$PATH" CRAWLBATCH_DUCKDB=$(CACHE)/node CRAWLBATCH_VERSITYGW=$(CACHE)/bin/versitygw $(LAB) -timeout 20m -run 'DuckDB|LinksAreNewAndMissing' ./formats/catalog ./planner/source ./cmd/report ./cmd/lab

SQL_ROWS ?= 200000

test-sql: ## plan from real MariaDB and PostgreSQL servers and give outcomes back (SQL_ROWS=200000; says what to install)
	CRAWLBATCH_SQL=1 CRAWLBATCH_SQL_ROWS=$(SQL_ROWS) $(GO) test -count=1 -v -timeout 30m -run . ./planner/source/sqldb
	CRAWLBATCH_SQL=1 CRAWLBATCH_SQL_ROWS=$(SQL_ROWS) $(LAB) -v -timeout 30m -run SQL ./cmd/lab

test-readers: ## read every column with pyarrow, polars, fastparquet and DuckDB (SPARK=1 TRINO=1: with those too)
	SPARK=$(SPARK) TRINO=$(TRINO) testdata/readers/run $(CACHE)/readers $(LAB) -timeout 60m -run Readers ./cmd/lab ./jobs/compact

test-browser: $(CACHE)/node/.installed ## open the report in Chromium, with axe-core (SCREENSHOTS=dir; says what to install)
	@command -v chromium >/dev/null || { echo "as root: apt-get install chromium"; exit 1; }
	CRAWLBATCH_BROWSER=$(CACHE)/node CRAWLBATCH_SCREENSHOTS=$(SCREENSHOTS) $(GO) test -count=1 -v -timeout 10m -run 'Browser' ./cmd/report

test-warc: $(CACHE)/node/.installed $(CACHE)/pywb/.installed ## read every WARC file of a crawl with warcio, check its indexes, replay a pruned year with pywb
	CRAWLBATCH_WARCIO=$(CACHE)/node/node_modules CRAWLBATCH_PYWB=$(CACHE)/pywb/bin/python $(LAB) -run 'Warcio|Pywb' ./formats/warc ./cmd/lab

test-extractors: ## compare the main content of pages with go-trafilatura's, in a module of its own
	cd testdata/extractors && $(GO) test -count=1 -v ./...

test-realsite: ## crawl Debian's HTML documentation, served by nginx (as root on Debian: installs both)
	testdata/realsite/install
	PATH="$$PATH:/usr/sbin" $(LAB) -v -run RealSite ./cmd/lab

test-monitoring: ## test rules and alerts with promtool, and dashboards on a Prometheus that scrapes a crawl (says what to install)
	$(LAB) -v -timeout 10m -run 'Monitoring|TheProbes' ./cmd/lab

CLUSTER ?= ../shared/cluster
BLOWS   ?= 20
# The Prometheus operator's module holds its CustomResourceDefinitions. It is no module of this project.
OPERATOR = github.com/prometheus-operator/prometheus-operator@v0.88.0

$(CACHE)/crds/.installed:
	mkdir -p $(@D) && cd $(@D) && dir=$$(GOFLAGS=-mod=mod $(GO) mod download -json $(OPERATOR) | sed -n 's/^\t"Dir": "\(.*\)",$$/\1/p') && \
		cp "$$dir"/example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml "$$dir"/example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml . && touch .installed || \
		echo "$(OPERATOR) cannot be downloaded: the scenario of the component monitoring will fail"

test-k8s: build image $(CACHE)/bin/versitygw $(CACHE)/crds/.installed ## crawl on a real Kubernetes, undisturbed and disturbed (CLUSTER=dir of its commands, BLOWS=20)
	$(CLUSTER)/up
	# A bridge without an address of its own takes a new one whenever a pod comes or
	# goes, and all connections of the other pods stall for seconds.
	$(CLUSTER)/exec ip link set cni0 address 0a:58:0a:55:00:01
	$(CLUSTER)/load $(BIN)/crawlbatch-image.tar
	$(GO) test -tags lab -c -o $(BIN)/k8s.test ./cmd/lab
	cd cmd/lab && CRAWLBATCH_CLUSTER=10.85.0.1 CRAWLBATCH_IMAGE=$(IMAGE) CRAWLBATCH_BINARY=$(BIN)/crawlbatch \
		CRAWLBATCH_VERSITYGW=$(CACHE)/bin/versitygw CRAWLBATCH_BLOWS=$(BLOWS) CRAWLBATCH_CHAOS_SEED=$(SEED) CRAWLBATCH_CRDS=$(CACHE)/crds \
		$(abspath $(CLUSTER))/exec $(BIN)/k8s.test -test.v -test.timeout 60m -test.parallel 3 -test.run 'TestKubernetes$(if $(SCENARIO),/$(SCENARIO))'

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet -tags lab ./...
	$(GO) tool staticcheck -tags lab ./...

vuln: ## find known vulnerabilities in the code that the binary calls (needs vuln.go.dev, or VULNDB=file:///dir)
	$(GO) tool govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...

FUZZTIME ?= 15s

fuzz: ## run every fuzz target for a while (FUZZTIME=15s)
	@for dir in $$(grep -rl '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir || exit 1; done; done

bench: ## print the figures that matter, each with its floor if it has one
	$(GO) test -run '^$$' -skip one_template -bench 'Map|PageRank|Checkpoint|Resume|Parse|Makespan|Pairs|Plan|Dedup|Canonical|Do$$|Write|Hasher|Verify' ./...

STATE ?= scale-data
PAGES ?= 100000 1000000
ROWS  ?= 10000000 100000000
DOCUMENTS ?= 1000000000 10000000000
PAIRS ?= 1000000
KNOWN ?= 50000000

scale: ## crawl and reduce at several sizes, for hours; a later call continues (PAGES="100000 1000000" ROWS=10000000 KNOWN=50000000 STATE=dir)
	@mkdir -p $(STATE)
	CRAWLBATCH_SCALE=$(abspath $(STATE)) CRAWLBATCH_SCALE_PAGES="$(PAGES)" CRAWLBATCH_SCALE_ROWS="$(ROWS)" CRAWLBATCH_SCALE_DOCUMENTS="$(DOCUMENTS)" CRAWLBATCH_CHAOS_SEED=$(SEED) \
		$(LAB) -v -timeout 0 -run 'TestScale' ./cmd/lab
	$(if $(PAIRS),CRAWLBATCH_PAIRS=$(PAIRS) $(GO) test -count=1 -v -timeout 0 -run 'PlantedPairs' ./formats/simhash)
	$(if $(KNOWN),CRAWLBATCH_SCALE=$(abspath $(STATE)) CRAWLBATCH_SCALE_KNOWN=$(KNOWN) $(GO) test -count=1 -v -timeout 0 -run 'TestScaleHistory' ./planner)

scale-takedown: $(CACHE)/bin/versitygw ## take a domain out of a store of `make scale`, killed at 50 random instants, on both stores; takes hours (PAGES=1000000 STATE=dir SEED=n DOMAIN=name)
	CRAWLBATCH_SCALE_TAKEDOWN=$(abspath $(STATE))/pages-$(lastword $(PAGES)) CRAWLBATCH_SCALE_DOMAIN=$(DOMAIN) CRAWLBATCH_VERSITYGW=$(CACHE)/bin/versitygw CRAWLBATCH_CHAOS_KILLS=$(or $(KILLS),50) CRAWLBATCH_CHAOS_SEED=$(SEED) \
		$(LAB) -v -timeout 0 -run TestScaleTakedown ./cmd/lab

count: ## print what somebody has to carry on: lines, packages, exported names, words
	@$(GO) run ./testdata/count

clean: ## remove what was built; keep the crawl's data
	rm -rf $(BIN) $(CACHE)

$(CACHE)/bin/versitygw:
	@mkdir -p $(CACHE)/bin
	GOBIN=$(CACHE)/bin GOFLAGS= $(GO) install github.com/versity/versitygw/cmd/versitygw@v1.8.0

$(CACHE)/bin/cyclonedx-gomod:
	@mkdir -p $(CACHE)/bin
	GOBIN=$(CACHE)/bin GOFLAGS= $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

$(CACHE)/duckdb/.installed: testdata/duckdb/requirements.txt
	python3 -m venv $(CACHE)/duckdb
	$(CACHE)/duckdb/bin/pip install --quiet --disable-pip-version-check -r testdata/duckdb/requirements.txt
	touch $@

$(CACHE)/pywb/.installed: testdata/pywb/requirements.txt
	python3 -m venv $(CACHE)/pywb
	$(CACHE)/pywb/bin/pip install --quiet --disable-pip-version-check -r testdata/pywb/requirements.txt
	touch $@

$(CACHE)/node/.installed: testdata/node/package.json testdata/node/package-lock.json
	@mkdir -p $(CACHE)/node
	cp testdata/node/package.json testdata/node/package-lock.json $(CACHE)/node/
	cd $(CACHE)/node && npm ci --no-audit --no-fund --silent
	touch $@
