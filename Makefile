# make help lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
TOOL := go tool -modfile=tools.mod
FUZZTIME ?= 30s
DURATION ?= 3m
SESSIONS ?= 20
SEEDS ?= 0-1999

.PHONY: build demo check test race lint fmt tidy generate generate-check interop interop-sdk kill simulate powerloss bench soak fuzz vuln dist clean help

build: ## build bin/roost
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/roost ./cmd/roost

demo: build ## build roost and let the embedded demo model look around in this directory
	./bin/roost run --data "$$(mktemp -d)" "What is in this directory?"

check: tidy generate-check lint race simulate interop ## everything that CI runs

test: ## the tests, quickly
	go test ./...

race: ## the tests with the race detector, in random order
	go test -race -shuffle=on -timeout 15m ./...

lint: ## gofumpt, golangci-lint
	$(TOOL) golangci-lint run

fmt: ## format the code
	$(TOOL) golangci-lint fmt

tidy: ## go.mod and go.sum say what is used
	go mod tidy -diff
	go mod verify

generate: ## protobuf code, from proto/
	scripts/generate

generate-check: ## the generated code is what proto/ gives
	scripts/generate
	git diff --exit-code -- proto

interop: build ## the published clients against this build
	interop/pi/run
	interop/cursor/run

interop-sdk: build ## Cursor's own SDK, installed in SDK, against this build
	SDK='$(SDK)' interop/cursor-sdk/run

simulate: ## run the simulation for SEEDS, the same way each time
	go run ./simulate -seeds $(SEEDS)

kill: ## 500 ends of a server under the load of 50 sessions
	ROOST_KILLS=500 ROOST_CLIENTS=50 go test ./internal/server -run TestKillStorm -count=1 -timeout 60m -v

powerloss: ## 20,000 losses of power in the event log's tests
	ROOST_POWERLOSS=20000 go test ./internal/eventlog/sqlitelog/powerloss -timeout 60m -v

bench: build ## measure; see docs/performance.md
	go run ./bench -roost bin/roost

soak: build ## put load on a server for DURATION, with SESSIONS sessions, and see whether it stays as it is
	go run ./bench -roost bin/roost -soak $(DURATION) -sessions $(SESSIONS)

fuzz: ## every fuzz target for FUZZTIME
	scripts/fuzz $(FUZZTIME)

vuln: ## known vulnerabilities, from the module that holds the database
	scripts/vuln

dist: ## binaries for the supported systems, with checksums, in dist/
	scripts/dist '$(LDFLAGS)'

clean: ## remove what was built
	rm -rf bin dist

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | sort | column -t -s "$$(printf '\t')"
