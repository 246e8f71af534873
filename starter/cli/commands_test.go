package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestMessagesNameTheProgramAsItWasCalled(t *testing.T) {
	verbs := (&app{}).root().Commands()
	for text, want := range map[string]string{
		"it is over (see `starter status x`)":    "it is over (see `bin/starter status x`)",
		"starter resume x":                       "bin/starter resume x",
		"type bin/starter resume x":              "type bin/starter resume x",
		"the starter is not there":               "the starter is not there",
		"pause it first (starter pause x), then": "pause it first (bin/starter pause x), then",
	} {
		require.Equal(t, want, asCalled(text, "bin/starter", verbs))
	}
}

// What follows is typed, in whatever directory the run and the program are.
func TestCommandsToTypeAreQuoted(t *testing.T) {
	home := filepath.Join(t.TempDir(), "my runs")
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{filepath.Join(home, "bin", "starter")}
	d := rundir.At(filepath.Join(home, "one's"))
	typed := "'" + home + "/bin/starter' resume '" + home + `/one'\''s'`
	var out strings.Builder
	a := &app{out: &out, err: &outlet{to: io.Discard}}
	require.NoError(t, a.goodbye(d, run.State{Status: run.Paused, Reason: run.UserRequested}, 1))
	require.Contains(t, out.String(), "Resume with: "+typed+"\n")

	s := sight{dir: d, claim: run.Claim{RunID: "run-1"}}
	s.now.State = run.State{Status: run.Paused, Reason: run.UserRequested}
	s.stands.Status = run.Paused
	require.Equal(t, []string{typed}, nextOf(s))
	require.ErrorContains(t, &operate.CopyError{Dir: "x", RunID: "run-1", Home: d.Root}, "starter resume '"+home)
}

func TestABudgetIsANumberThatCanBeSpent(t *testing.T) {
	for _, value := range []string{"0", "-1", "1e308", "NaN", "Inf"} {
		var out strings.Builder
		require.Equal(t, exitUsage, Main([]string{"budget", "run-1", "--usd=" + value}, nil, &out, &out), out.String())
		require.Contains(t, out.String(), "say the new cap, a number above 0 and at most 1000000000: --usd 500")
	}
}
