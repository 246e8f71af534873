package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/operations"
)

// work is what a workflow does: steps one after another, each of which starts the agent, if there is one.
type work struct {
	Steps int
	Agent []string
}

// perSet is the number of passes of a set, as in examples/corpus.
const perSet = 8

// pipelineFor writes a pipeline that does the work: one pass is one step. It has the shape of examples/corpus with
// minimal texts: sets of a few files with a named checkpoint each, a builder and a verifier in turn.
func pipelineFor(folder string, w work) (operations.Definition, error) {
	const file = "pipeline.yaml"
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return operations.Definition{}, err
	}
	for name, text := range map[string]string{
		file: pipelineText(w), "seed.html": "<!DOCTYPE html>\n<html><body></body></html>\n",
		"prompt.md": "Read the page.\n", "one.md": "One.\n", "two.md": "Two.\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return operations.Definition{}, err
		}
	}
	return operations.Load(os.DirFS(folder), file, filepath.Join(folder, file))
}

// pipelineText has a stage with sets of passes, and one with the rest.
func pipelineText(w work) string {
	sets, rest := w.Steps/perSet, w.Steps%perSet
	var b strings.Builder
	quoted := make([]string, len(w.Agent))
	for i, word := range w.Agent {
		quoted[i] = fmt.Sprintf("%q", word)
	}
	fmt.Fprintf(&b, `pipeline: bench
agent: {run: [%s], reply: claude-json}
artifact: {file: page.html, seed: seed.html}
roles:
  builder: {prompt: prompt.md, gives: artifact}
  verifier: {prompt: prompt.md, gives: report}
corpus:
`, strings.Join(quoted, ", "))
	for i := range max(1, sets) {
		fmt.Fprintf(&b, "  S%d: {theme: Bench, files: [{One: one.md}, {Two: two.md}]}\n", i+1)
	}
	b.WriteString("stages:\n")
	if sets > 0 {
		b.WriteString("  - name: sets\n    for_each: corpus\n    orders: {A: 0}\n    checkpoint: cp-{set}\n    passes:\n")
		passes(&b, perSet, ", order: A")
	}
	if rest > 0 {
		b.WriteString("  - name: rest\n    steps:\n")
		passes(&b, rest, "")
	}
	return b.String()
}

// passes are a builder and a verifier in turn.
func passes(b *strings.Builder, n int, more string) {
	for i := range n {
		role := "builder"
		if i%2 == 1 {
			role = "verifier"
		}
		fmt.Fprintf(b, "      - {role: %s%s}\n", role, more)
	}
}
