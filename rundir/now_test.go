package rundir_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// journalFile writes events, each a kind and its payload as JSON.
func journalFile(t *testing.T, rows ...[2]string) string {
	t.Helper()
	var b strings.Builder
	for i, row := range rows {
		e := run.Event{Seq: int64(i + 1), TS: fmt.Sprintf("2026-01-02T03:04:%02d.000Z", i+1), Kind: run.Kind(row[0]),
			Payload: json.RawMessage(row[1])}
		line, err := e.Line()
		require.NoError(t, err)
		b.WriteString(line + "\n")
	}
	return b.String()
}

// metaOf writes the meta.json that has seen the first lines of a stream.
func metaOf(t *testing.T, events string, seen int, change func(*rundir.Meta)) string {
	t.Helper()
	fold := run.NewFold(run.State{}, run.History{})
	var m rundir.Meta
	for line := range strings.Lines(events) {
		if m.Events.Seq == int64(seen) {
			break
		}
		e, err := run.ParseLine(strings.TrimSuffix(line, "\n"))
		require.NoError(t, err)
		fold.Apply(e)
		m.Events.Seq++
		m.Events.Size += int64(len(line))
		m.Events.Chain = m.Events.Chain.Then(strings.TrimSuffix(line, "\n"))
	}
	m.State, m.History = fold.State(), fold.History()
	if change != nil {
		change(&m)
	}
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	return string(raw)
}

func threeEvents(t *testing.T) string {
	return journalFile(t, [2]string{"run.start", `{"run_id":"r","task":"fix"}`},
		[2]string{"phase.start", `{"phase_key":"build","round":1}`}, [2]string{"run.paused", `{"reason":"operator"}`})
}

// TestNowJoinsMetaAndNewerLines: the state is that of all lines, wherever meta.json ends.
func TestNowJoinsMetaAndNewerLines(t *testing.T) {
	events := threeEvents(t)
	whole, err := put(t, map[string]string{rundir.ClaimFile: "{}", rundir.EventsFile: events}).Now()
	require.NoError(t, err)
	require.Equal(t, run.Paused, whole.State.Status)
	require.Equal(t, "operator", whole.State.Reason)
	require.Equal(t, "r", whole.State.RunID)
	require.Equal(t, int64(3), whole.Lag)
	require.Equal(t, int64(3), whole.Tail.Seq)
	require.ErrorIs(t, whole.Why, fs.ErrNotExist, "meta.json is missing")
	require.Equal(t, []string{"build"}, whole.Snapshot.SeenPhases)
	for seen := 1; seen <= 3; seen++ {
		now, err := put(t, map[string]string{rundir.ClaimFile: "{}", rundir.EventsFile: events,
			rundir.MetaFile: metaOf(t, events, seen, nil)}).Now()
		require.NoError(t, err)
		require.Equal(t, whole.State, now.State, "meta.json has %d lines", seen)
		require.Equal(t, whole.Snapshot, now.Snapshot)
		require.Equal(t, whole.Tail, now.Tail)
		require.Equal(t, int64(3-seen), now.Lag)
		require.Equal(t, int64(seen), now.Meta.Events.Seq)
		require.NoError(t, now.Why)
		require.Empty(t, now.Damage)
	}
	empty, err := put(t, map[string]string{rundir.ClaimFile: "{}"}).Now()
	require.NoError(t, err)
	require.NoError(t, empty.Why, "a run before its first event lacks nothing")
	require.Zero(t, empty.Tail)
	require.Zero(t, empty.Lag)
	require.Zero(t, empty.Meta)

	damaged, err := put(t, map[string]string{rundir.ClaimFile: "{}", rundir.EventsFile: events,
		rundir.MetaFile: "{"}).Now()
	require.NoError(t, err)
	require.ErrorIs(t, damaged.Why, disk.ErrDamaged)
	require.Equal(t, whole.State, damaged.State)
	require.Equal(t, int64(3), damaged.Lag)
}

// TestFirstSaveIsNoDamage: the events of a run are written before its first meta.json, under the lock.
func TestFirstSaveIsNoDamage(t *testing.T) {
	d := put(t, map[string]string{rundir.ClaimFile: "{}", rundir.EventsFile: threeEvents(t)})
	lock, err := (disk.Disk{}).TryLock(d.Path(rundir.LockFile), disk.Self("project", time.Now()))
	require.NoError(t, err)
	now, err := d.Now()
	require.NoError(t, err)
	require.NoError(t, now.Why)
	require.Equal(t, run.Paused, now.State.Status)
	require.Equal(t, int64(3), now.Lag)
	require.NoError(t, lock.Unlock())
	now, err = d.Now()
	require.NoError(t, err)
	require.ErrorIs(t, now.Why, fs.ErrNotExist)
}

// TestNowOfAnotherStream: a meta.json that has seen another stream does not count, and Why has the reason.
func TestNowOfAnotherStream(t *testing.T) {
	events := threeEvents(t)
	for name, change := range map[string]func(*rundir.Meta){
		"a longer stream":      func(m *rundir.Meta) { m.Events.Size += 100; m.Events.Seq = 9 },
		"within a line":        func(m *rundir.Meta) { m.Events.Size--; m.Events.Seq = 9 },
		"one byte longer":      func(m *rundir.Meta) { m.Events.Size++; m.Events.Seq = 9 },
		"a stream that is one": func(m *rundir.Meta) { m.Events.Size = 1; m.Events.Seq = 9 },
	} {
		d := put(t, map[string]string{rundir.ClaimFile: "{}", rundir.EventsFile: events,
			rundir.MetaFile: metaOf(t, events, 2, change)})
		now, err := d.Now()
		require.NoError(t, err)
		meta, err := d.Meta()
		require.NoError(t, err)
		require.EqualError(t, now.Why, fmt.Sprintf("%s is not the file that meta.json has seen (9 events, %d bytes): "+
			"starter check lists what is wrong", d.Path(rundir.EventsFile), meta.Events.Size), name)
		require.Zero(t, now.Meta, name)
		require.Zero(t, now.Lag, name)
		require.Equal(t, run.Paused, now.State.Status, name)
		require.Equal(t, int64(3), now.Tail.Seq, name)
	}
	gone, err := put(t, map[string]string{rundir.ClaimFile: "{}", rundir.MetaFile: metaOf(t, events, 2, nil)}).Now()
	require.NoError(t, err)
	require.ErrorContains(t, gone.Why, "is not the file that meta.json has seen (2 events")
	require.Empty(t, gone.State.Status)
}

// TestDamageThatTheJournalRecords: a line counts as repaired when it has its first bytes again.
func TestDamageThatTheJournalRecords(t *testing.T) {
	first := journalFile(t, [2]string{"run.start", `{"run_id":"r"}`}, [2]string{"phase.start", `{"phase_key":"a"}`})
	lines := strings.Split(first, "\n")
	digest := func(i int) string { return disk.Digest([]byte(lines[i])) }
	damage := func(file string, line int64, expected, found string) run.JournalDamage {
		return run.JournalDamage{File: file, Line: line, Expected: expected, Found: found}
	}
	d := put(t, map[string]string{rundir.ClaimFile: "{}", rundir.EventsFile: first})
	for name, row := range map[string]struct {
		damage   run.JournalDamage
		repaired bool
	}{
		"the first line is as it was":  {damage(rundir.EventsFile, 1, digest(0), "x"), true},
		"the second line is as it was": {damage(rundir.EventsFile, 2, digest(1), "x"), true},
		"the line is still another":    {damage(rundir.EventsFile, 2, "x", digest(1)), false},
		"another line has the bytes":   {damage(rundir.EventsFile, 2, digest(0), "x"), false},
		"the line is missing":          {damage(rundir.EventsFile, 7, "x", "y"), false},
		"a segment":                    {damage("segment "+digest(0), 1, digest(0), "x"), false},
		"no line is known":             {damage(rundir.EventsFile, 0, digest(0), "x"), false},
	} {
		got, err := d.Damage(run.State{Damage: []run.JournalDamage{row.damage}})
		require.NoError(t, err)
		row.damage.Repaired = row.repaired
		require.Equal(t, []run.JournalDamage{row.damage}, got, name)
	}
	none, err := d.Damage(run.State{})
	require.NoError(t, err)
	require.Empty(t, none)
	unreadable := put(t, map[string]string{rundir.EventsFile + "/x": ""})
	_, err = unreadable.Damage(run.State{Damage: []run.JournalDamage{{}}})
	require.Error(t, err)

	raw, err := json.Marshal(damage(rundir.EventsFile, 1, digest(0), "x"))
	require.NoError(t, err)
	events := journalFile(t, [2]string{"run.start", `{"run_id":"r"}`}, [2]string{"phase.start", `{"phase_key":"a"}`},
		[2]string{string(run.KindJournalDamaged), string(raw)})
	now, err := put(t, map[string]string{rundir.ClaimFile: "{}", rundir.EventsFile: events}).Now()
	require.NoError(t, err)
	require.Len(t, now.Damage, 1)
	require.True(t, now.Damage[0].Repaired)
}

func TestPlanInForce(t *testing.T) {
	plan := func(version int, name string) string {
		return fmt.Sprintf(`{"version":%d,"pipeline":%q}`, version, name)
	}
	amended := func(seq int64) string {
		raw, err := json.Marshal(rundir.Meta{State: run.State{Plan: &run.CurrentPlan{Seq: seq}}})
		require.NoError(t, err)
		return string(raw)
	}
	version := pipeline.PlanVersion
	old, newer := rundir.PlanFile, rundir.InForceFile(7, rundir.PlanFile)
	for name, row := range map[string]struct {
		files map[string]string
		at    string
		want  string
	}{
		"no meta.json":   {map[string]string{old: plan(version, "one")}, old, ""},
		"an earlier run": {map[string]string{rundir.MetaFile: "{}", old: plan(version, "one")}, old, ""},
		"a damaged meta": {map[string]string{rundir.MetaFile: "{", old: plan(version, "one")}, old, ""},
		"not amended":    {map[string]string{rundir.MetaFile: amended(0), old: plan(version, "one")}, old, ""},
		"amended":        {map[string]string{rundir.MetaFile: amended(7), newer: plan(version, "two")}, newer, ""},
		"missing": {map[string]string{rundir.MetaFile: amended(7), old: plan(version, "one")}, newer,
			"no such file"},
		"a version to come": {map[string]string{old: plan(99, "one")}, old, "has version 99, and this program reads version"},
	} {
		d := put(t, row.files)
		at, err := d.InForce(rundir.PlanFile)
		require.NoError(t, err, name)
		require.Equal(t, row.at, at, name)
		p, err := d.Plan()
		if row.want != "" {
			require.ErrorContains(t, err, row.want, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, version, p.Version, name)
	}
	unreadable := put(t, map[string]string{rundir.MetaFile + "/x": ""})
	_, err := unreadable.Plan()
	require.Error(t, err)
}

func TestTerminalStatuses(t *testing.T) {
	for _, s := range []run.Status{run.Done, run.Halted, run.Cancelled, run.Failed} {
		require.True(t, rundir.Terminal(s), s)
	}
	for _, s := range []run.Status{run.Running, run.Paused, run.Interrupted, run.Pending} {
		require.False(t, rundir.Terminal(s), s)
	}
}
