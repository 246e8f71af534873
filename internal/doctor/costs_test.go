package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/costs"
)

func TestBudgetOfTheDay(t *testing.T) {
	state := t.TempDir()
	_, _, err := costs.Open(state, "here", costs.Options{}).Reserve(t.Context(), costs.Call{ID: "r/1", Delivery: 1},
		costs.Terms{})
	require.NoError(t, err)
	checks := func(b config.PerDay) []Check {
		e := examiner{Options: Options{Settings: config.Settings{StateDir: state, PerDay: b}, Program: "starter"}}
		e.costs()
		return e.report.Checks
	}
	require.Empty(t, checks(config.PerDay{}))
	for _, row := range []struct {
		calls  int
		state  State
		detail string
	}{{2, OK, "0 of 2 calls, reserved: by 1 running call"}, {1, Warning, "it is used up, and calls wait until "}} {
		all := checks(config.PerDay{Calls: row.calls})
		require.Len(t, all, 1)
		require.Equal(t, row.state, all[0].State)
		require.Contains(t, all[0].Detail, row.detail)
	}
	files, err := filepath.Glob(filepath.Join(state, "costs", "*.jsonl"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files[0], []byte("hello\n"), 0o600))
	all := checks(config.PerDay{})
	require.Len(t, all, 1)
	require.Contains(t, all[0].Detail, "was damaged: 1 line could not be read")
	require.Equal(t, "starter costs", all[0].Fix)
	require.NoError(t, os.Remove(files[0]))
	require.NoError(t, os.Mkdir(files[0], 0o700))
	require.Equal(t, Problem, checks(config.PerDay{})[0].State)
}
