package operations

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/pipeline"
)

// WellKnown lists the agents that workers look for even if no run needs them. They answer --version at once and for
// free. Other programs are not called: they might take it for a prompt.
var WellKnown = []string{"claude", "codex", "gemini"}

// capabilities lists the programs of a run's agents on this host, with known versions: versions.capabilities of
// RunStore v2. Workers on other hosts may have others. Only the well-known programs are executed, each once and with
// --version, because a run records with which versions it began; a version that cannot be found is left out.
func capabilities(ctx context.Context, agents []pipeline.Agent, build string) []string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var out, asked []string
	for _, a := range agents {
		if len(a.Run) == 0 || slices.Contains(asked, a.Run[0]) {
			continue
		}
		asked = append(asked, a.Run[0])
		name := filepath.Base(a.Run[0])
		switch {
		case a.Run[0] == pipeline.Scripted:
			name += " " + build
		case slices.Contains(WellKnown, name):
			path := environ.Program(a.Run[0], os.Environ())
			if output, err := exec.CommandContext(ctx, path, "--version").Output(); err == nil {
				first, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
				name += " " + strings.TrimPrefix(first, name+" ")
			}
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
