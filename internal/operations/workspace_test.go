package operations

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// TestFilesLeftOutOfTheTreeAreListed: a link that points outside does not keep it from starting.
func TestFilesLeftOutOfTheTreeAreListed(t *testing.T) {
	for name, row := range map[string]struct {
		workspace pipeline.Workspace
		files     []string
		warnings  []string
	}{
		"a folder": {
			pipeline.Workspace{Dir: "."}, []string{"a.txt"},
			[]string{"left out of the tree: known.key (secret)", "left out of the tree: outside (outside)"},
		},
		"a repository, where one is tracked": {
			pipeline.Workspace{Dir: ".", Git: "worktree", Dirty: "exclude"}, []string{"a.txt", "known.key"},
			[]string{"left out of the tree: outside (outside)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			ctx, s, source := t.Context(), testStore(t), t.TempDir()
			lays(t, source, map[string]string{"a.txt": "a\n", "known.key": "k\n"})
			require.NoError(t, os.Symlink("/etc/hosts", filepath.Join(source, "outside")))
			for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
				{"-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "Begin"}} {
				cmd := exec.CommandContext(ctx, "git", args...)
				cmd.Dir = source
				require.NoError(t, cmd.Run())
			}
			def := Definition{Plan: &pipeline.Plan{Workspace: &row.workspace}, WorkOn: source}
			w, err := prepare(ctx, s, &def, projector.At(filepath.Join(t.TempDir(), "run")), run.Claim{RunID: "r1"})
			require.NoError(t, err)
			require.Equal(t, row.warnings, def.Warnings)
			begun, err := tree.Load(ctx, s, store.Digest(w.Tree.Digest))
			require.NoError(t, err)
			var files []string
			for _, e := range begun.Entries {
				files = append(files, e.Path)
			}
			require.Equal(t, row.files, files)
		})
	}
}
