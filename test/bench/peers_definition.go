package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/test/bench/peer"
)

// pipelineFor writes a pipeline that does the work: one pass is one step. Its checkpoints are those that checkpointOf
// names, and a run that waits is paused for a review.
func pipelineFor(folder string, w peer.Work) (operations.Definition, error) {
	const file = "pipeline.yaml"
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return operations.Definition{}, err
	}
	for name, text := range map[string]string{
		file: workPipeline(w), "seed.html": "<!DOCTYPE html>\n<html><body></body></html>\n",
		"prompt.md": "Read the page.\n", "one.md": "One.\n", "two.md": "Two.\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return operations.Definition{}, err
		}
	}
	return operations.Load(os.DirFS(folder), file, filepath.Join(folder, file))
}

// workPipeline has up to three stages: sets of passes, the passes before the pause, and those after it.
func workPipeline(w peer.Work) string {
	sets, rest := w.Steps/perSet, w.Steps%perSet
	last := 0
	if w.Wait > 0 {
		last, rest = min(w.Wait, perSet), w.Steps-w.Wait
		sets = (w.Wait - last) / perSet
	}
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
	if last > 0 {
		b.WriteString("  - name: last\n    pause_after: true\n    steps:\n")
		passes(&b, last, "")
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

// checkpointOf names the checkpoint after which a run continues with a step: the end of a set.
func checkpointOf(step int) (string, error) {
	if step <= perSet || (step-1)%perSet != 0 {
		return "", fmt.Errorf("no set ends before step %d", step)
	}
	return fmt.Sprintf("cp-S%d", (step-1)/perSet), nil
}
