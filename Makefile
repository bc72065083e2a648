# make build   bin/ddb, bin/ddb-admin, bin/haggar; without Node.js, with the page if make web built it
# make web     the page, into internal/api/httpapi/page; needs Node.js 20.19 or later
# make demo    the main job on a fresh store, checked number by number
# make demo-cluster  the same on five nodes, one of which is killed and brought back
# make test    all tests; of the longest fewer rounds than in check
# make test-web  the page, in a browser beside a real node; needs Node.js and Chromium, for the page of ducks also what check-ducks needs
# make test-senders  what Prometheus, telegraf and others send arrives unchanged, part of check; fetches and builds them
# make check-ducks  the check of ducks (ducks/Makefile), part of check; needs root, tgt, btrfs, xfs and zfs-fuse
# make check   what must be green before a change lands
# make simulate  4,000 seeds of the protocol between nodes under faults, 1,000 of these schedules of operators, part of check: SEEDS=5000 of each profile
# make torture-quick  attacks on the binary, at most 4 minutes, part of check
# make torture        the same for an hour: TORTURE='-time 8h -attack rot'
# make soak    hours of the models, of every fuzz target and of the race detector: SOAK=2 is shorter
# make bench   the table of bench/results
# make guard   figures that a change must not make worse, part of check
# make bench-steps    load in steps beyond what the store takes and back, its table and charts
# make bench-profile  profiles of a node under load, into bench/profile
# make bench-cluster  clusters beside one node; CLUSTER=-quick takes less than two minutes
# make bench-compare  the same points and questions to the stores others use
# make generate  the assembly of internal/codec/kernel, after changes in its gen
# make vulnerabilities  known ones in what the programs call, part of check
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  = -s -w -X dalmatiner/internal/host/config.version=$(VERSION)

.PHONY: build web demo demo-cluster test test-senders check-ducks test-web purego check format vet lint modules generated vulnerabilities race fuzz simulate guard torture torture-quick soak bench bench-steps bench-profile bench-compare bench-cluster generate clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

web:
	@command -v npm >/dev/null || { echo "make web needs Node.js 20.19 or later with npm; make build does without, and leaves out the page" >&2; exit 1; }
	cd web && npm ci && npm run build

demo: build
	$(GO) run ./test/demo -bin bin

demo-cluster: build
	$(GO) run ./test/demo -bin bin -nodes 5

# go test starts packages in the order of its arguments: the longest come first, so that
# no processor is idle at the end.
LONGEST = ./internal/store ./test

# check runs the rounds, too, that -short leaves out, and vet by itself.
SHORT = -short
test: purego
	$(GO) test -vet=off $(SHORT) -timeout 11m $(LONGEST) ./...

# What other processors run in place of the assembly.
purego:
	$(GO) test -vet=off -tags purego -timeout 5m ./internal/codec/kernel ./internal/codec/chunk ./internal/write/head

# Programs that others wrote, of these versions, with no more parts than the tests use.
SENDERS = $(CURDIR)/bin/senders
PROMETHEUS = github.com/prometheus/prometheus/cmd/prometheus@v0.316.0
TELEGRAF = github.com/influxdata/telegraf/cmd/telegraf@v1.37.2
TELEGRAF_PARTS = custom,inputs.cpu,inputs.mem,inputs.net,inputs.disk,inputs.system,inputs.mock,outputs.file,outputs.influxdb,outputs.influxdb_v2,outputs.graphite,outputs.opentelemetry,serializers.influx
test-senders: build
	GOBIN=$(SENDERS) $(GO) install -tags remove_all_sd $(PROMETHEUS)
	GOBIN=$(SENDERS) $(GO) install -tags '$(TELEGRAF_PARTS)' $(TELEGRAF)
	DDB_SENDERS=$(SENDERS) DDB_BIN=$(CURDIR)/bin $(GO) test ./test -count 1 -v -run 'TestPrometheusSends|TestTelegrafSends'

# It needs root and programs of the system: without these it is left out elsewhere, in
# continuous integration that is a failure.
check-ducks:
	@if [ "$$(id -u)" -ne 0 ] && [ -z "$(CI)" ]; then \
		echo "SKIPPED: the check of ducks needs root" >&2; \
	else $(MAKE) -C ducks check; fi

test-web: web
	$(MAKE) build
	$(MAKE) -C ducks build
	cd web && npm run unit && $(if $(CI),DUCKS_NO_SKIP=1) npm run browser

check: SHORT =
check: format vet lint modules generated vulnerabilities test race fuzz simulate guard torture-quick test-senders check-ducks test-web

format:
	@files=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$files" ]; then echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; fi

vet:
	$(GO) vet ./...

# deadcode names functions that no program and no test reaches.
lint:
	$(GO) tool staticcheck ./...
	@dead=$$($(GO) tool deadcode -test ./...) || exit 1; \
	if [ -n "$$dead" ]; then echo "not used (remove it):"; echo "$$dead"; exit 1; fi

modules:
	$(GO) mod tidy -diff
	cd internal/codec/kernel/gen && $(GO) mod tidy -diff

# The generator runs in a copy of its directory, because it writes its own command
# line into the first line of the file.
generated:
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && cp -r internal/codec/kernel/gen "$$dir/gen" && \
	(cd "$$dir/gen" && $(GO) run . -out ../kernel_amd64.s -stubs ../stubs_amd64.go -pkg kernel && gofmt -w ../stubs_amd64.go) && \
	for f in kernel_amd64.s stubs_amd64.go; do \
		cmp "$$dir/$$f" internal/codec/kernel/$$f || { echo "internal/codec/kernel/$$f is not what its generator writes: run make generate" >&2; exit 1; }; \
	done

# Known vulnerabilities in what the programs call. The list comes from vuln.go.dev;
# a machine that cannot reach it says so and checks nothing.
vulnerabilities:
	@if curl -sSf -m 20 -o /dev/null https://vuln.go.dev/index/modules.json.gz; then \
		$(GO) tool govulncheck ./...; \
	else \
		echo "SKIPPED: vuln.go.dev cannot be reached, known vulnerabilities were not looked for" >&2; \
	fi

# The whole-binary tests run real processes: the detector sees only the test's
# own side there, so they run without it.
race:
	$(GO) test -race -short -timeout 15m $$($(GO) list $(LONGEST) ./... | grep -v /test)

# Seconds of every fuzz target; their seeds run in make test.
fuzz:
	./test/fuzz.sh 15000x

# SEEDS of each profile; internal/cluster/sim/DESIGN.md says how to replay one.
SEEDS ?= 500
simulate:
	$(GO) test ./internal/cluster/sim -timeout 24h -run 'TestChaos|TestSchedules' -seeds $(SEEDS)

# Bytes, allocations and instructions are the same on a busy machine; processor
# time has room for one.
guard: build
	$(GO) run ./bench guard -bin bin

# Kills, power cuts, failing I/O, a full disk, bit rot, unfinished input, judged
# by an oracle of its own: docs/reliability.md.
torture-quick: build
	$(GO) run ./test/torture -bin bin -quick $(TORTURE)

torture: build
	$(GO) run ./test/torture -bin bin $(TORTURE)

# What takes too long for check: every model with SOAK times its draws (100 each in make
# test), every fuzz target with SOAK times its inputs, SOAK schedules of the members of a
# cluster, and under the race detector what -short leaves out there.
SOAK ?= 20
soak:
	$(GO) test -timeout 24h $$($(GO) list -f '{{join .TestImports " "}} {{join .XTestImports " "}} {{.ImportPath}}' ./... | awk '/pgregory.net.rapid/ {print $$NF}') -rapid.checks=$$((100 * $(SOAK)))
	./test/fuzz.sh $$((15000 * $(SOAK)))x
	$(GO) test ./test -timeout 24h -run TestRingSchedules -schedules $(SOAK)
	for run in $$(seq $(SOAK)); do $(MAKE) demo-cluster || exit 1; done
	$(GO) test -race -timeout 24h $$($(GO) list ./... | grep -v /test)

# ROWS chooses rows and how often they are measured, as in
# make bench ROWS='-only ingest-200k -count 10'.
bench: build
	$(GO) run ./bench rows -bin bin $(ROWS)

# STEPS=-quick takes two minutes and leaves its table and charts in bench/trial.
bench-steps: build
	$(GO) run ./bench steps -bin bin $(STEPS)

bench-profile: build
	$(GO) run ./bench profile -bin bin

# A row of the table, so its results go to bench/trial unless CLUSTER names bench/results.
bench-cluster: build
	$(GO) run ./bench rows -bin bin -only '^cluster$$' $(CLUSTER)

# COMPARE chooses by name, as in make bench-compare COMPARE='-only Prometheus'.
bench-compare: build
	$(GO) run ./bench compare -bin bin $(COMPARE)

# The generator is a module of its own, so that the product does not depend on
# what it is written with.
generate:
	cd internal/codec/kernel/gen && $(GO) run . -out ../kernel_amd64.s -stubs ../stubs_amd64.go -pkg kernel
	gofmt -w internal/codec/kernel/stubs_amd64.go

clean:
	rm -rf bin internal/api/httpapi/page/built/app
