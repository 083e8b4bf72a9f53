# The developer's commands; `make` alone lists them.
# Tools come from tools/go.mod and are built once into .bin/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run run-postgres tour accept drill sim test test-matrix check prove bench bench-quick bench-check release release-check fuzz fmt clean lint tidy generated vulnerabilities

FUZZTIME ?= 20s
DATA ?=
ONLY ?=
IDS ?=
GENERATED := '*.pb.go' '*.connect.go' '*_gen.go'
TOOLS := .bin/tools-$(shell go env GOVERSION)

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## Run the gateway on SQLite files under ./loomgate-data
	@go run ./cmd/gateway serve

run-postgres: ## Run the gateway over three throw-away Postgres servers
	@go run ./cmd/gateway/internal/runpostgres

tour: ## Take one execution through its life, with the library alone
	@go run ./examples/tour

accept: ## Prove the gateway as a whole, on the logs in DATA or on made ones
	@go run ./cmd/gateway/internal/accept -data "$(DATA)" -only "$(ONLY)"

drill: ## Kill shards, gateways and connections under load for two minutes; nothing may be lost
	@go run ./cmd/gateway/internal/drill

sim: ## Simulate the runtime: every interleaving of two resumers, 10,000 seeds of five nodes
	@go run ./internal/sim/cmd/sim -seeds 10000

# The compositions of layers run the kit some hundred times, and go without the race
# detector: each layer has been through it alone. Checking the pointers of C code that was translated to Go takes a third of its tests' time.
test: ## Run every test under the race detector
	@go test -race -timeout 20m -gcflags='modernc.org/...=-d=checkptr=0' $$(go list ./... | grep -v '/decorators$$')
	@go test -timeout 20m ./decorators
	@cd decorators/crypto/vault && go test -race ./...
	@cd bench && go test ./...
	@cd deploy && go test ./...

check: lint tidy generated vulnerabilities ## Check format, lint, modules, generated code, vulnerabilities

test-matrix: ## Run the Postgres tests on 15, 16, 17 and 18
	@for version in 15 16 17 18; do \
		LOOMGATE_PGVERSION=$$version go test -race ./internal/pgtest ./backends/postgres/...; \
	done

prove: ## Show that the conformance kit catches what it should
	@go run ./conformance/prove

bench: ## Compare with what a user would pick instead (an hour); writes bench/RESULTS.md
	@go run -C bench . -write . -ids "$(if $(IDS),$(abspath $(IDS)))"

bench-quick: ## Compare, with a short look (five minutes)
	@go run -C bench . -quick -ids "$(if $(IDS),$(abspath $(IDS)))"

bench-check: ## List the targets that the last make bench missed
	@go run -C bench . -check .

release: ## Build the gateway as it is released, and the list of what is in it
	@deploy/build .bin/gateway
	@go -C tools tool cyclonedx-gomod bin -json -output ../.bin/gateway.cdx.json ../.bin/gateway

release-check: ## Show that two builds of the gateway are the same bytes
	@deploy/reproduce

fuzz: ## Run every fuzz target for FUZZTIME (20s)
	@go test -list '^Fuzz' ./... | \
	awk '/^Fuzz/ {name[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, name[i]; n = 0}' | \
	while read -r package target; do \
		echo "$$package $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" </dev/null; \
	done

fmt: $(TOOLS) ## Format the code
	@.bin/golangci-lint fmt
	@cd tools && ../.bin/golangci-lint fmt

clean: ## Remove what these targets built
	@rm -rf .bin

# The parts of check.

lint: $(TOOLS)
	@.bin/golangci-lint run ./...
	@cd decorators/crypto/vault && ../../../.bin/golangci-lint run ./...
	@cd bench && ../.bin/golangci-lint run ./...
	@cd tools && ../.bin/golangci-lint run ./... && go test ./...

tidy:
	@go mod tidy -diff
	@go mod tidy -C tools -diff
	@go mod tidy -C decorators/crypto/vault -diff
	@go mod tidy -C bench -diff
	@go mod tidy -C deploy -diff

generated:
	@go generate ./...
	@git diff --exit-code -- $(GENERATED)

vulnerabilities: $(TOOLS)
	@.bin/vulncheck ./...

# The file's name holds the Go version: a linter built by an older Go cannot read newer code.
$(TOOLS): tools/go.mod tools/go.sum $(wildcard tools/*/*.go)
	@echo "Building the developer tools (a few minutes the first time)"
	@go build -C tools -o ../.bin/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint ./vulncheck
	@touch $@
