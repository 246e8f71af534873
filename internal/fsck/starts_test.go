package fsck_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
)

// TestStartsStayInTheDecisionLog: what a start found is recorded once, and later events and a rebuild keep it in its
// place.
func TestStartsStayInTheDecisionLog(t *testing.T) {
	s := newStory(t)
	s.start()
	s.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	s.send()
	d, sent := written(t, s), len(s.batches)
	row := records.StartRow{TS: moment(9), Seq: s.state.Seq,
		LogDecision: run.LogDecision{Decision: run.FoundPaused, Reason: "the run is paused: user-requested"}}
	for range 2 {
		require.NoError(t, d.RecordStart(t.Context(), row))
	}
	require.Empty(t, check(t, d).Issues)
	log := func() string {
		raw, err := os.ReadFile(d.Path(layout.DecisionsLog))
		require.NoError(t, err)
		return string(raw)
	}
	require.Equal(t, 1, strings.Count(log(), `"decision":"paused"`))
	require.True(t, strings.HasSuffix(log(), row.Line()+"\n"))

	s.add(run.KindRunResumed, run.RunResumed{Epoch: 1, From: run.Paused})
	s.pass(1)
	s.send()
	project(t, d, s, s.batches[sent:]...)
	require.Empty(t, check(t, d).Issues)
	require.Regexp(t, `"pause-pipeline".*\n`+`.*"decision":"paused".*\n.*"decision":"resume"`, log())
	require.NoError(t, d.RecordStart(t.Context(), row), "a later event makes it late")
	require.Equal(t, 1, strings.Count(log(), `"decision":"paused"`))

	whole := log()
	require.NoError(t, os.Remove(d.Path(layout.StateFile)))
	require.NoError(t, os.Remove(d.Path(layout.MetaFile)))
	project(t, d, s, s.batches[len(s.batches)-1])
	require.Equal(t, whole, log(), "a rebuild keeps it")
	require.Empty(t, check(t, d).Issues)
	require.NoDirExists(t, d.Path(layout.TornDir))

	require.NoError(t, os.WriteFile(d.Path(layout.DecisionsLog), []byte(whole+"{}\n"), 0o644))
	require.NotEmpty(t, check(t, d).Issues, "another row is damage")
}
