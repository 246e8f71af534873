# Passbook's commands; `make` alone lists them. What a target needs and does not find, it installs or builds, and says so.

export GOFLAGS := $(shell . scripts/goflags && echo "$$GOFLAGS")
export CGO_ENABLED := $(or $(CGO_ENABLED),0)

.DEFAULT_GOAL := help
.PHONY: help demo demo-review demo-projects demo-migrate demo-turns build server chromium bubblewrap agents test test-all soak soak-turns mutants bench compare lint check release-dry release-try clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: ## run the whole example pipeline here and now, offline and free; the run stays in the state directory
	@scripts/setup
	@bin/starter demo

demo-review: ## plan, implement and review a small repository, offline and free; everything stays in runs/demo-review-<time>
	@scripts/setup --no-browser
	@sh examples/review/demo.sh "runs/demo-review-$$(date +%Y%m%d-%H%M%S)"

demo-projects: ## change a library and two services together, offline and free; everything stays in runs/demo-projects-<time>
	@scripts/setup --no-browser
	@sh examples/projects/demo.sh "runs/demo-projects-$$(date +%Y%m%d-%H%M%S)"

demo-migrate: ## migrate 200 files in lanes, offline and free; everything stays in runs/demo-migrate-<time>
	@scripts/setup --no-browser
	@sh examples/migrate/demo.sh "runs/demo-migrate-$$(date +%Y%m%d-%H%M%S)"

demo-turns: ## build a small program in eight turns, offline and free; the run stays in runs/
	@scripts/setup --no-browser
	@bin/starter run --config examples/turns/pipeline.yaml --output-dir "runs/demo-turns-$$(date +%Y%m%d-%H%M%S)"

build: ## build passbook into bin/, with links starter and worker
	@echo "Building bin/starter and bin/worker (the first time, two minutes of downloading and compiling)"
	@scripts/programs bin

server: build ## build the embedded Temporal server into the user's cache (first time only, a few minutes)
	@bin/starter server build

chromium: ## install Chromium for the screenshots, unless there is a browser
	@scripts/chromium

bubblewrap: ## install bubblewrap for the sandboxes of agents, unless it is there
	@scripts/bubblewrap || echo "Tests of sandboxes are skipped."

agents: ## install claude, codex, gemini and the MCP inspector at the tested versions into the user's cache with npm (1.1 GB), unless they are there
	@go run ./test/realcli/install || echo "Tests of the missing programs are skipped."

recordings: agents ## record what the agents' programs print for each known refusal of their providers (10 minutes)
	go test -count 1 -timeout 30m -run '^TestRecordedRefusals$$' ./test/realcli -record

test: bubblewrap server ## run the tests of all packages and of the programs: eight minutes; SUITES="unit conformance" runs only these (test/README.md)
	@scripts/test $(SUITES)

test-all: chromium bubblewrap agents server ## run all tests in their exhaustive form, every kill point, race detector, mutants; takes over an hour
	@scripts/test --all $(SUITES)

soak: server ## kill, stop and upgrade workers at random moments of many runs; RUNS=200 INTERRUPTIONS=600 CONTROL=20 SEED=11
	@go test -v -timeout 0 -run '^TestSoak$$|^TestSoakDetects' -parallel 1 ./test/e2e -soak.runs=$(or $(RUNS),200) \
		-soak.interruptions=$(or $(INTERRUPTIONS),600) -soak.control=$(or $(CONTROL),20) -soak.seed=$(or $(SEED),11)

soak-turns: server ## kill workers at random moments of runs that work on a tree; RUNS=200 KILLS=5 SEED=11
	@go test -v -timeout 0 -run '^TestSoakTurns$$' ./test/e2e -soak.turns=$(or $(RUNS),200) -soak.kills=$(or $(KILLS),5) -soak.seed=$(or $(SEED),11)

mutants: server ## plant faults and count those that the tests detect; N=600 SEED=1 PACKAGES=run,workflows (test/README.md)
	@go -C tools run ./mutate -n $(or $(N),600) -seed $(or $(SEED),1) -packages "$(PACKAGES)"

bench: server ## measure what the engine adds to a pass (test/bench/README.md); SIZES=1x56,16x56 REPS=3, and TEMPORAL_ADDRESS for a cluster
	@go run ./test/bench $(if $(SIZES),-sizes $(SIZES)) $(if $(REPS),-reps $(REPS))

compare: build server agents ## compare with a shell loop and ralphy-cli where runs go wrong, and measure costs (docs/costs-and-comparison.md); 15 minutes
	@go run ./test/compare
	@test/compare/costs.sh

release-dry: ## build the archives and packages of a release into dist/, and try them (docs/releases.md); takes about half an hour
	@scripts/release dry

release-try: ## the same for this system alone
	@scripts/release fast

lint: ## format, vet, dropped errors, layers, unused code, texts, deterministic workflows, GitHub workflows, tidy modules
	@scripts/lint

check: chromium bubblewrap agents server ## all that CI runs: lint, the tests, kills, real agents, browsers, race detector for changed packages
	@scripts/test --ci

clean: ## remove what was built; runs/ and the user's cache stay
	rm -rf bin dist .cache
