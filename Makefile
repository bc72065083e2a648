# make build   bin/ddb, bin/ddb-admin, bin/haggar; without Node.js, with the page if make web built it
# make web     the page, into internal/httpapi/page; needs Node.js 20.19 or later
# make demo    the main job on a fresh store, checked number by number
# make test    all tests
# make check   what must be green before a change lands
# make bench   the table of bench/results
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  = -s -w -X dalmatiner/internal/config.version=$(VERSION)

.PHONY: build web demo test check format vet lint race fuzz bench clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

web:
	cd web && npm ci && npm run build

demo: build
	$(GO) run ./test/demo -bin bin

test:
	$(GO) test -timeout 11m ./...

check: format vet lint test race fuzz

format:
	@files=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$files" ]; then echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; fi

vet:
	$(GO) vet ./...

lint:
	$(GO) tool staticcheck ./...

# The whole-binary tests run real processes: the detector sees only the test's
# own side there, so they run without it.
race:
	$(GO) test -race -short -timeout 15m $$($(GO) list ./... | grep -v /test)

# A few seconds of every fuzz target; their seeds run in make test.
fuzz:
	./test/fuzz.sh 5s

bench: build
	$(GO) run ./bench -bin bin

clean:
	rm -rf bin internal/httpapi/page/built/app
