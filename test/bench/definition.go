package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/operations"
)

// perSet is the number of passes of a set, as in examples/corpus.
const perSet = 8

// define writes a pipeline with that many passes into a folder, and reads it. It has the shape of examples/corpus with
// minimal texts: sets of a few files, a builder and a verifier in turn, and, if named, a checkpoint after each set.
func define(folder, agent string, passes int, named bool) (operations.Definition, error) {
	const file = "pipeline.yaml"
	texts := map[string]string{
		file: pipelineOf(agent, passes/perSet, named), "seed.html": "<!DOCTYPE html>\n<html><body></body></html>\n",
		"prompt.md": "Read the page.\n", "one.md": "One.\n", "two.md": "Two.\n",
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return operations.Definition{}, err
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return operations.Definition{}, err
		}
	}
	return operations.Load(os.DirFS(folder), file, filepath.Join(folder, file))
}

func pipelineOf(agent string, sets int, named bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, `pipeline: bench
agent: {run: [%q], reply: claude-json}
artifact: {file: page.html, seed: seed.html}
roles:
  builder: {prompt: prompt.md, gives: artifact}
  verifier: {prompt: prompt.md, gives: report}
corpus:
`, agent)
	for i := range sets {
		fmt.Fprintf(&b, "  S%d: {theme: Bench, files: [{One: one.md}, {Two: two.md}]}\n", i+1)
	}
	b.WriteString("stages:\n  - name: bench\n    for_each: corpus\n    orders: {A: 0}\n")
	if named {
		b.WriteString("    checkpoint: cp-{set}\n")
	}
	b.WriteString("    passes:\n")
	for range perSet / 2 {
		b.WriteString("      - {role: builder, order: A}\n      - {role: verifier, order: A}\n")
	}
	return b.String()
}
