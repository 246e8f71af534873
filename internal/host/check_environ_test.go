package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// bound writes the directory of a run of this machine whose agent is claude, and hands an environment over to it.
func bound(t *testing.T, o host.DoctorOptions, id string, variables ...string) rundir.Dir {
	t.Helper()
	d := wrote(t, o, id)
	hostID, err := host.HostID(o.Settings.StateDir)
	require.NoError(t, err)
	for name, v := range map[string]any{
		rundir.ClaimFile: run.Claim{Version: 1, RunID: id, Pipeline: "small", CreatedAt: "2026-01-02T03:04:05.000Z",
			Store: o.Settings.Store, Host: hostID},
		rundir.PlanFile: pipeline.Plan{Version: pipeline.PlanVersion,
			Agents: []pipeline.Agent{{Run: []string{"claude", "-p"}}}},
	} {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(d.Path(name)), 0o700))
		require.NoError(t, os.WriteFile(d.Path(name), raw, 0o600))
	}
	if variables != nil {
		_, err = environ.Save(o.Settings.StateDir,
			environ.Environment{RunID: id, By: "start", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
				Variables: variables})
		require.NoError(t, err)
	}
	return d
}

func TestExamineOfTheEnvironmentOfCalls(t *testing.T) {
	const answers = "case \"$1\" in --version) echo 1.0; exit;; --help) echo auth; exit;; esac\n[ -n " +
		"\"$ANTHROPIC_BASE_URL\" ] || exit 1\n"
	var all string
	for _, row := range []struct {
		name   string
		mine   bool     // this terminal finds claude
		theirs bool     // the calls of the run do
		values []string // that were handed over to the run; nil: the worker's count
	}{
		{"the same", true, false, []string{"PATH=MINE"}},
		{"logged in there only", true, false, []string{"PATH=MINE", "ANTHROPIC_BASE_URL=x"}},
		{"installed since", true, false, []string{"PATH=THEIRS"}},
		{"nowhere", false, false, []string{"PATH=THEIRS"}},
		{"only the run has it", false, true, []string{"PATH=THEIRS"}},
		{"none handed over", true, false, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := doctorOptions(t)
			o.Agents = nil
			at(t, nil)
			mine, theirs := os.Getenv("PATH"), t.TempDir()
			if row.theirs {
				t.Setenv("PATH", theirs)
				program(t, "claude", answers)
			}
			t.Setenv("PATH", theirs)
			require.NoError(t, host.AnnounceReady(o.Settings.StateDir, "key", time.Now()))
			t.Setenv("PATH", mine)
			if row.mine {
				program(t, "claude", answers)
			}
			for i := range row.values {
				row.values[i] = strings.NewReplacer("MINE", mine, "THEIRS", theirs).Replace(row.values[i])
			}
			d := bound(t, o, "alone", row.values...)
			o.Run = &d
			r := host.Examine(t.Context(), o)
			c := find(t, r, "env alone")
			all += text(row.name, c, d.Root, "RUN", mine, "MINE", theirs, "THEIRS")
			if row.values != nil {
				all += "  claude " + string(find(t, r, "claude").State) + "\n"
			}
		})
	}
	testenv.Golden(t, *update, "environment", all)
}

func TestExamineNamesAnUnusedEnvironment(t *testing.T) {
	var all string
	for _, row := range []struct {
		name  string
		spoil func(file string) error
	}{
		{"others may read it", func(file string) error { return os.Chmod(file, 0o644) }},
		{"it cannot be read", func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) }},
	} {
		o := doctorOptions(t)
		at(t, nil)
		program(t, "claude", "echo 1.0\n")
		require.NoError(t, host.AnnounceReady(o.Settings.StateDir, "key", time.Now()))
		d := bound(t, o, "alone", "PATH="+os.Getenv("PATH"))
		require.NoError(t, row.spoil(filepath.Join(o.Settings.StateDir, "environ", "alone.json")))
		o.Agents, o.Run = nil, &d
		all += text(row.name, find(t, host.Examine(t.Context(), o), "env alone"), d.Root, "RUN", os.Getenv("PATH"), "PATH",
			o.Settings.StateDir, "STATE")
	}
	testenv.Golden(t, *update, "unused-environment", all)
}
