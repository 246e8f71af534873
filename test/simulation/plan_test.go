package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// plan is what a seed decides before a run begins: the pipeline, and how much disturbs it.
type plan struct {
	definition    string
	passes        int // at least, without repetitions that an operator asks for
	agentFaults   bool
	crashes       int
	losses        int
	kills         int
	messages      int
	calm          int // a disturbance is possible at one of so many steps
	continueAfter int // steps of an execution; 0: one execution has the whole epoch
	asks          bool
}

// undisturbed is the plan without all that must not change the result; false: something else may change it too.
func (p plan) undisturbed() (plan, bool) {
	comparable := !p.agentFaults && p.messages == 0 && !p.asks
	p.crashes, p.losses, p.kills = 0, 0, 0
	return p, comparable
}

const head = `pipeline: simulated
agent: {run: [/bin/true], reply: claude-json}
limits: {timeout: 1m, attempts: 3, backoff: {first: 1s, factor: 2, max: 10s, jitter: 0}}
budget: {usd: %s}
artifact: {file: page.html, seed: seed.html}
roles:
  builder: {prompt: builder.md, gives: artifact, checks: [{name: non-empty}, {name: html-complete}]}
  writer: {prompt: writer.md, gives: report}
  critic: {prompt: critic.md, gives: report}
  judge: {prompt: judge.md, gives: report, score: {name: S, find: 'S\W*([0-4])\s*/\s*4', take: last, range: [0, 4]}}
stages:
`

// draw draws the plan of a seed, of 3 to 12 passes.
func draw(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plan{calm: 20 + r.IntN(200), agentFaults: r.IntN(3) > 0, continueAfter: r.IntN(4)}
	if r.IntN(4) > 0 {
		p.crashes, p.losses, p.kills, p.messages = r.IntN(5), r.IntN(4), r.IntN(3), r.IntN(5)
	}
	var b strings.Builder
	usd := "9"
	if r.IntN(5) == 0 {
		usd = "0.06"
	}
	fmt.Fprintf(&b, head, usd)
	for n := 1; p.passes < 3 || p.passes < 10 && r.IntN(3) > 0; n++ {
		if r.IntN(3) == 0 && p.passes+4 <= 12 {
			p.passes += 4
			fmt.Fprintf(&b, "  - name: loop-%d\n    repeat: {max: 2, until: score >= 3}\n    checkpoint: loop-%d-{n}\n"+
				"    steps:\n      - together: [critic, writer]\n      - {role: judge, see: last}\n"+
				"      - {role: builder, see: last}\n", n, n)
			continue
		}
		steps := 1 + r.IntN(3)
		p.passes += steps
		fmt.Fprintf(&b, "  - name: stage-%d\n    checkpoint: stage-%d\n    steps:\n", n, n)
		for range steps {
			fmt.Fprintf(&b, "      - role: %s\n", []string{"builder", "writer"}[r.IntN(2)])
		}
		if r.IntN(4) == 0 {
			p.asks = true
			b.WriteString("      - ask: Is it good?\n")
		}
	}
	p.definition = b.String()
	return p
}

// sources are the files of every definition.
var sources = map[string]string{
	"builder.md": "ROLE builder. Build the page.\n", "writer.md": "ROLE writer. Write about it.\n",
	"critic.md": "ROLE critic. Criticise it.\n", "judge.md": "ROLE judge. Judge it.\n",
	"seed.html": "<!DOCTYPE html>\n<html><body>seed</body></html>\n",
}
