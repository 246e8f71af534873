package projector

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
)

func startRow(seq int64, decision, reason string) records.StartRow {
	return records.StartRow{TS: "2026-01-02T04:00:00.000Z", Seq: seq,
		LogDecision: run.LogDecision{Decision: decision, Reason: reason}}
}

// TestRowsOfStarts: a start that found the run as it is adds one row for each state of the run, and a later batch and a
// rebuild keep them in their places.
func TestRowsOfStarts(t *testing.T) {
	w := working(t)
	w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	w.add(run.KindRunResumed, run.RunResumed{Epoch: 1})
	w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	d := w.projected(11)
	decisions := func() string { return contents(t, d)[layout.DecisionsLog] }
	before := decisions()
	one, two := startRow(11, run.FoundPaused, "one"), startRow(11, run.FoundComplete, "two")
	for _, row := range []records.StartRow{startRow(10, run.FoundPaused, "earlier"), one,
		startRow(11, run.FoundPaused, "the same"), startRow(12, run.FoundPaused, "later"), two,
		startRow(11, run.FoundComplete, "again")} {
		require.NoError(t, d.RecordStart(t.Context(), row))
	}
	rows := one.Line() + "\n" + two.Line() + "\n"
	require.Equal(t, before+rows, decisions())
	w.project(d, 12)
	after, is := strings.CutPrefix(decisions(), before+rows)
	require.True(t, is)
	require.NotEmpty(t, after)
	three := startRow(12, run.FoundComplete, "three")
	require.NoError(t, d.RecordStart(t.Context(), three))
	require.Equal(t, before+rows+after+three.Line()+"\n", decisions())
	w.project(d, 13)
	committed := decisions()
	require.NoError(t, os.Remove(d.Path(layout.StateFile)))
	require.NoError(t, d.RecordStart(t.Context(), startRow(13, run.FoundPaused, "at the end")))
	atEnd := decisions()
	require.NotEqual(t, committed, atEnd)
	w.project(d, 13)
	require.Equal(t, atEnd, decisions(), "a rebuild without a new event")
	whole := decisions()
	require.True(t, strings.HasPrefix(whole, before+rows+after+three.Line()+"\n"))
	four := startRow(13, run.FoundComplete, "four")
	require.NoError(t, d.RecordStart(t.Context(), four))

	later := startRow(50, run.FoundPaused, "of an event that is lost")
	lost := claimed(t)
	write(t, lost, layout.DecisionsLog, later.Line()+"\n")
	w.project(lost, 13)
	require.NotContains(t, contents(t, lost)[layout.DecisionsLog], later.Line())
	for _, name := range []string{layout.StateFile, layout.MetaFile} {
		require.NoError(t, os.Remove(d.Path(name)))
		w.add(run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown, Recovered: true})
		w.project(d, w.last())
		require.True(t, strings.HasPrefix(decisions(), whole+four.Line()+"\n"), "%s is missing", name)
		require.Equal(t, 1, strings.Count(decisions(), four.Line()))
		require.NoDirExists(t, d.Path(layout.TornDir))
	}
}

// TestStartsAreNotRecordedInDamagedLogs: nothing is written while a projection has not committed the log, or the log is
// damaged.
func TestStartsAreNotRecordedInDamagedLogs(t *testing.T) {
	w := working(t)
	w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	one, row := startRow(11, run.FoundComplete, "one"), startRow(11, run.FoundPaused, "found")
	whole := contents(t, w.projected(11))
	log := whole[layout.DecisionsLog]
	for name, hurt := range map[string]map[string]string{
		"another row":          {layout.DecisionsLog: log + "{}\n"},
		"a row, then another":  {layout.DecisionsLog: log + one.Line() + "\n{}\n"},
		"half of a row":        {layout.DecisionsLog: log + one.Line()},
		"the log is shorter":   {layout.DecisionsLog: log[:9]},
		"no line ends there":   {layout.DecisionsLog: strings.TrimSuffix(log, "\n") + "x\n"},
		"meta.json is damaged": {layout.MetaFile: "{"},
		"nothing is committed": {layout.MetaFile: `{"version":1,"run_id":"r","events":{"seq":11}}`},
	} {
		d := w.projected(11)
		for file, text := range hurt {
			write(t, d, file, text)
		}
		before := contents(t, d)
		require.NoError(t, d.RecordStart(t.Context(), row), name)
		require.Equal(t, before, contents(t, d), name)
	}
}
