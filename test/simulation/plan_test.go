package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// plan is what a seed decides before a run begins: the pipeline, and how much disturbs it.
type plan struct {
	tree          bool     // agents change a working tree instead of a page
	review        bool     // the result is a plan, which an operator approves
	budget        string   // of the definition
	stages        []string // of the definition
	passes        int      // at least, without repetitions that an operator asks for
	asks          bool
	agentFaults   bool
	most          map[disturbance]int // of each disturbance
	calm          int                 // a disturbance is possible at one of this number of steps
	turns         bool                // calls write the events before them
	continueAfter int                 // steps of an execution; 0: one execution has the whole epoch

	crashAt   int                      // the step of a worker at which it crashes; 0: chance decides
	planned   func(*world) (done bool) // what happens at a step, or at the first one after it at which it can
	plannedAt int

	only []string // the disturbances that happen, as they are recorded; nil: chance decides
}

// disturbance is what may disturb a run before a step.
type disturbance string

const (
	crash      disturbance = "crash"       // of the worker whose step it is, in the middle of a write, too
	loss       disturbance = "loss"        // a delivery times out on the server, and the worker continues it
	kill       disturbance = "kill"        // of a supervisor and its agent
	note       disturbance = "message"     // to the workflow
	fullDisk   disturbance = "full disk"   // for some steps
	awayStore  disturbance = "away store"  // for some steps
	unreadable disturbance = "unreadable"  // the store, at some reads
	terminated disturbance = "termination" // of the workflow; an operator opens the next epoch
	reset      disturbance = "reset"       // of the workflow to the begin of one of its executions
	restored   disturbance = "restore"     // of Temporal's database: to the begin of an execution, of an earlier epoch, too
)

// disturbances are those of a step, in the order in which chance decides.
var disturbances = []disturbance{crash, loss, kill, note, fullDisk, awayStore, terminated, reset, unreadable, restored}

// undisturbed is the plan without all that must not change the result; false: something else may change it too.
func (p plan) undisturbed() (plan, bool) {
	comparable := !p.agentFaults && p.most[note] == 0 && !p.asks
	p.most, p.only = map[disturbance]int{}, nil
	return p, comparable
}

// definition is the text of the pipeline.
func (p plan) definition() string {
	file := "artifact: {file: page.html, seed: seed.html}"
	builder := "gives: artifact, checks: [{name: non-empty}, {name: html-complete}]"
	if p.tree {
		file, builder = "workspace: {dir: src, protect: [tests/]}", "gives: changes"
	}
	kind := ""
	if p.review {
		kind = "kind: planning\n"
	}
	return kind + fmt.Sprintf(head, p.budget, file, builder) + strings.Join(p.stages, "")
}

const head = `pipeline: simulated
agent: {run: [/bin/true], reply: claude-json, account: shared}
limits:
  timeout: 1m
  attempts: 3
  output: 64KB
  backoff: {first: 1s, factor: 2, max: 10s, jitter: 0}
  max_wait: 3h
budget: %s
%s
notes: {log: {file: log.md, marker: LOG}}
roles:
  builder: {prompt: builder.md, %s}
  writer: {prompt: writer.md, gives: report, notes: [log], checks: [{name: report, any: [report]}]}
  critic: {prompt: critic.md, gives: report}
  judge: {prompt: judge.md, gives: report, score: {name: S, find: 'S\W*([0-4])\s*/\s*4', take: last, range: [0, 4]}}
  reviewer: {prompt: reviewer.md, gives: report, verdict: {find: 'VERDICT: (\w+)'}}
stages:
`

// stage kinds: each has a text, with the number of the stage, and a number of passes.
var loops = []struct {
	passes int
	asks   bool
	text   string
}{
	{8, false, "  - name: loop-%[1]d\n    repeat: {max: 2, until: score >= 3}\n    checkpoint: loop-%[1]d-{n}\n" +
		"    steps:\n      - together: [critic, writer]\n      - {role: judge, see: last}\n" +
		"      - {role: builder, see: last}\n"},
	{4, true, "  - name: loop-%[1]d\n    repeat: {max: 2, until: score >= 3, otherwise: ask}\n    steps:\n" +
		"      - {role: builder}\n      - {role: judge, see: last}\n"},
	{3, true, "  - name: review-%[1]d\n    checkpoint: review-%[1]d\n    steps:\n      - role: builder\n" +
		"      - {role: reviewer, see: last}\n      - ask: {question: \"Good?\", type: human_feedback_on_reject, " +
		"remind: 2h, expires: 9h, on_expiry: continue}\n"},
	{3, false, "  - name: review-%[1]d\n    repeat: {max: 2, until: approved}\n    pause_after: true\n" +
		"    steps:\n      - role: builder\n      - {role: reviewer, see: last}\n"},
	{4, false, "  - name: group-%[1]d\n    checkpoint: group-%[1]d\n    steps:\n" +
		"      - together: [critic, writer, reviewer]\n      - {role: builder, see: last}\n"},
}

// draw draws the plan of a seed, of 3 to 12 passes.
func draw(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plan{calm: 20 + r.IntN(200), agentFaults: r.IntN(3) > 0, continueAfter: r.IntN(4), tree: r.IntN(4) == 0,
		most: map[disturbance]int{}, budget: "{usd: 9}"}
	if r.IntN(4) > 0 {
		for _, k := range disturbances[:len(disturbances)-1] { // restored is drawn last: seeds keep their meaning
			p.most[k] = r.IntN(4) * r.IntN(2) // half of them never happen
		}
	}
	if r.IntN(5) == 0 {
		p.budget = []string{"{usd: 0.06}", "{usd: 9, calls: 4}", "{usd: 9, tokens: 500, per_pass: {tokens: 200}}",
			"{usd: 9, hours: 1}"}[r.IntN(4)]
	}
	for n := 1; p.passes < 3 || p.passes < 9 && r.IntN(3) > 0; n++ {
		if s := loops[r.IntN(len(loops))]; r.IntN(3) == 0 && p.passes+s.passes <= 12 {
			p.passes, p.asks = p.passes+s.passes, p.asks || s.asks
			p.stages = append(p.stages, fmt.Sprintf(s.text, n))
			continue
		}
		p.plainStage(r, n)
	}
	if r.IntN(6) == 0 && !p.tree {
		p.review, p.asks = true, true
	}
	p.turns = r.IntN(4) > 0
	if len(p.most) > 0 {
		p.most[restored] = r.IntN(4) * r.IntN(2)
	}
	return p
}

// plainStage adds a stage of one to three calls, and perhaps a command or a question.
func (p *plan) plainStage(r *rand.Rand, n int) {
	var b strings.Builder
	steps := 1 + r.IntN(3)
	p.passes += steps
	fmt.Fprintf(&b, "  - name: stage-%d\n    checkpoint: stage-%d\n    steps:\n", n, n)
	for range steps {
		fmt.Fprintf(&b, "      - role: %s\n", []string{"builder", "writer"}[r.IntN(2)])
	}
	switch r.IntN(6) {
	case 0:
		p.asks = true
		b.WriteString("      - ask: Is it good?\n")
	case 1:
		if p.tree {
			fmt.Fprintf(&b, "      - {run: make test, id: tests%d, if_failing: ask}\n", n)
		}
	}
	p.stages = append(p.stages, b.String())
}

// sources are the files of every definition.
var sources = map[string]string{
	"builder.md": "ROLE builder. Build the page.\n", "writer.md": "ROLE writer. Write about it.\n",
	"critic.md": "ROLE critic. Criticise it.\n", "judge.md": "ROLE judge. Judge it.\n",
	"reviewer.md": "ROLE reviewer. Review it.\n",
	"seed.html":   "<!DOCTYPE html>\n<html><body>seed</body></html>\n",
}

// sourceFiles is the content of the source of a working tree.
var sourceFiles = map[string]string{"main.txt": "one\n", "docs/page.md": "two\n", "tests/main_test.txt": "three\n"}
