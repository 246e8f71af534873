package operate

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/pipeline"
)

// WellKnown are the agents that workers look for although no run needs them yet. They answer --version at once and for nothing. No other is called: it
// might take that for a question.
var WellKnown = []string{"claude", "codex", "gemini"}

// capabilities names the programs that a run's agents are, with versions where they are known: versions.capabilities of RunStore v2. It is what this
// host has; a worker elsewhere may have another.
func capabilities(ctx context.Context, agents []pipeline.Agent, build string) []string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var out []string
	for _, a := range agents {
		if len(a.Run) == 0 {
			continue
		}
		name := filepath.Base(a.Run[0])
		switch {
		case a.Run[0] == pipeline.Scripted:
			name += " " + build
		case slices.Contains(WellKnown, name):
			if said, err := exec.CommandContext(ctx, a.Run[0], "--version").Output(); err == nil {
				first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
				name += " " + strings.TrimPrefix(first, name+" ")
			}
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
