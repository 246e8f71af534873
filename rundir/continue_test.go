package rundir_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// stamps returns the time of the last change of every file and folder.
func stamps(t *testing.T, d rundir.Dir) map[string]time.Time {
	t.Helper()
	all := map[string]time.Time{}
	require.NoError(t, filepath.Walk(d.Root, func(path string, fi os.FileInfo, err error) error {
		if err == nil {
			all[path] = fi.ModTime()
		}
		return err
	}))
	return all
}

// TestContinue: what the next epoch of a run that has closed begins with, however its journal is damaged. Reading it
// changes nothing, and a refill leaves the journal as it was written.
func TestContinue(t *testing.T) {
	cut := func(lines []string) string { return strings.Join(lines[:len(lines)-1], "\n") + "\n" }
	torn := func(lines []string) string { return cut(lines) + lines[len(lines)-1][:9] }
	third := func(lines []string) string { return strings.Join(changed(lines, 3), "\n") + "\n" }
	last := func(lines []string) string { return strings.Join(changed(lines, len(lines)), "\n") + "\n" }
	rows := []struct {
		name     string
		end      run.Status
		unsealed int                         // lines that no segment has
		hurt     func(lines []string) string // events.jsonl
		gone     []string                    // files that are missing
		files    map[string]string           // other texts of files
		history  bool
		refused  rundir.Code
		why      string // in the error
		broken   int64  // line that is restored; 0: none; -1: the last
	}{
		{name: "nothing is wrong", end: run.Failed},
		{name: "a sealed line was changed", end: run.Failed, unsealed: 2, hurt: third, broken: 3},
		{name: "a line was changed that no segment has", end: run.Failed, unsealed: 1, hurt: last,
			refused: rundir.JournalDamaged, why: "events.jsonl has other bytes there: a line was changed; nothing was " +
				"changed. starter check DIR lists every finding; restore events.jsonl from a copy, or write the run into " +
				"another directory (starter rebuild run-1 --output-dir OTHER)"},
		{name: "a line was changed that the history has", end: run.Failed, unsealed: 1, hurt: last, history: true,
			broken: -1},
		{name: "the last line was cut, and a segment has it", end: run.Failed, hurt: cut, broken: -1},
		{name: "the last line was cut in its middle", end: run.Failed, hurt: torn, broken: -1},
		{name: "the last line was cut, and no segment has it", end: run.Failed, unsealed: 1, hurt: cut,
			refused: rundir.JournalDamaged},
		{name: "the last line was cut, and the history has it", end: run.Failed, unsealed: 1, hurt: cut, history: true,
			broken: -1},
		{name: "the events are missing, and the segments have them", end: run.Failed, gone: []string{rundir.EventsFile},
			broken: 1},
		{name: "meta.json is missing", end: run.Failed, gone: []string{rundir.MetaFile}},
		{name: "meta.json is missing, and the last line was cut", end: run.Failed, hurt: cut,
			gone: []string{rundir.MetaFile}, refused: rundir.FileDiffers},
		{name: "done, and the last line was cut", end: run.Done, unsealed: 1, hurt: cut, refused: rundir.JournalDamaged},
		{name: "done, the last line was cut, and a segment has it", end: run.Done, hurt: cut, broken: -1},
		{name: "done, by result.json", end: run.Done, hurt: cut, gone: []string{rundir.MetaFile, rundir.StateFile},
			refused: rundir.JournalDamaged},
		{name: "no line is an event", end: run.Failed, hurt: func([]string) string { return "x\ny\n" },
			gone: []string{rundir.MetaFile}, refused: rundir.JournalDamaged,
			why: "not a JSON object: line 1, 2 of events.jsonl"},
		{name: "done, by meta.json", end: run.Failed, files: map[string]string{rundir.MetaFile: `"status": "done"`},
			refused: rundir.FileDiffers,
			why: "the run is done according to meta.json, but not according to the events; nothing was changed. " +
				"starter check DIR lists every finding; starter repair-state DIR --apply repairs what follows from the events"},
		{name: "a line after those in meta.json is no event", end: run.Failed,
			hurt: func(lines []string) string { return strings.Join(lines, "\n") + "\nx\n" }, broken: 12},
		{name: "meta.json is missing, and the history has every line", end: run.Failed, history: true,
			gone: []string{rundir.MetaFile}},
		{name: "another run was done, by result.json", end: run.Failed,
			files: map[string]string{rundir.ResultFile: `{"version":1,"run_id":"run-9","seq":3}`}},
		{name: "the same, meta.json is missing, and the last line was cut", end: run.Failed, hurt: cut,
			gone:    []string{rundir.MetaFile},
			files:   map[string]string{rundir.ResultFile: `{"version":1,"run_id":"run-9","seq":3}`},
			refused: rundir.FileDiffers},
		{name: "result.json names no event", end: run.Failed,
			files: map[string]string{rundir.ResultFile: `{"version":1,"run_id":"run-1"}`}},
		{name: "result.json is of this run, and it has failed", end: run.Failed,
			files:   map[string]string{rundir.ResultFile: `{"version":1,"run_id":"run-1","seq":1}`},
			refused: rundir.JournalDamaged, why: "result.json records that the run was done at event 1, but the events do not"},
		{name: "result.json is half a file", end: run.Failed, files: map[string]string{rundir.ResultFile: `{"ver`}},
		{name: "meta.json and state.json are missing", end: run.Failed,
			gone: []string{rundir.MetaFile, rundir.StateFile}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s, d := ended(t, r.end, r.unsealed)
			if r.hurt != nil {
				write(t, d, rundir.EventsFile, r.hurt(s.lines))
			}
			for _, name := range r.gone {
				remove(t, d, name)
			}
			for name, text := range r.files {
				if name == rundir.MetaFile {
					text = regexp.MustCompile(`"status": "\w+"`).ReplaceAllString(read(t, d, name), text)
				}
				write(t, d, name, text)
			}
			before, times := look(t, d), stamps(t, d)
			var known []string
			if r.history {
				known = s.lines
			}
			c, err := rundir.Continue(t.Context(), d, s.blobs, known)
			require.Equal(t, before, look(t, d))
			require.Equal(t, times, stamps(t, d))
			if r.refused != "" {
				var damaged *rundir.DamagedError
				require.ErrorAs(t, err, &damaged)
				require.Equal(t, r.refused, damaged.Code)
				require.Equal(t, d.Root, damaged.Dir)
				require.Contains(t, strings.ReplaceAll(err.Error(), d.Root, "DIR"), r.why)
				return
			}
			require.NoError(t, err)
			require.Equal(t, s.state, c.State)
			require.Equal(t, tailOf(s.lines), c.Tail)
			require.Equal(t, "run-1", c.Start.RunID)
			require.NoError(t, rundir.Refill(t.Context(), d, s.blobs, c))
			if r.broken == 0 {
				require.Empty(t, c.Broken)
				require.Equal(t, times, stamps(t, d), "a whole directory is not changed")
				return
			}
			if r.broken < 0 {
				r.broken = int64(len(s.lines))
			}
			require.Len(t, c.Broken, 1)
			require.Equal(t, r.broken, c.Broken[0].Line)
			require.True(t, c.Broken[0].Repaired)
			require.Empty(t, codesOf(check(t, d)))
			require.Equal(t, strings.Join(s.lines, "\n")+"\n", read(t, d, rundir.EventsFile))
			times = stamps(t, d)
			require.NoError(t, rundir.Refill(t.Context(), d, s.blobs, c),
				"a second one finds it done")
			times[d.Path(rundir.LockFile)] = stamps(t, d)[d.Path(rundir.LockFile)]
			require.Equal(t, times, stamps(t, d))
		})
	}
}

// TestContinueKeepsOtherHistories: a directory that the history contradicts is not changed.
func TestContinueKeepsOtherHistories(t *testing.T) {
	s, d := ended(t, run.Failed, 0)
	var other *rundir.OtherEventsError
	_, err := rundir.Continue(t.Context(), d, s.blobs, changed(s.lines, 2))
	require.ErrorAs(t, err, &other)
	require.EqualValues(t, 2, other.Seq)
	c, err := rundir.Continue(t.Context(), d, s.blobs, s.lines[:4])
	require.NoError(t, err, "history never shortens a longer directory")
	require.Equal(t, s.state, c.State)
}

// TestContinueBehindMeta: a worker died between the journal and meta.json. The lines that meta.json has not seen count.
func TestContinueBehindMeta(t *testing.T) {
	s := newStory(t)
	s.twoPasses()
	d := written(t, s)
	s.pause()
	writeJournal(t, d, s.lines)
	c, err := rundir.Continue(t.Context(), d, s.blobs, nil)
	require.NoError(t, err)
	require.Equal(t, tailOf(s.lines), c.Tail)
	require.Equal(t, run.Paused, c.State.Status)
	require.EqualValues(t, 1, c.Lag)
}

// TestContinueReadsTheHistory: its lines count if the directory has the beginning of them, they are events in order,
// and meta.json has seen no more.
func TestContinueReadsTheHistory(t *testing.T) {
	s, d := ended(t, run.Failed, 0)
	writeJournal(t, d, s.lines[:3])
	c, err := rundir.Continue(t.Context(), d, s.blobs, s.lines[:5])
	require.NoError(t, err, "the segments have more lines than the history")
	require.Equal(t, s.state, c.State)
	_, err = rundir.Continue(t.Context(), d, nil, s.lines[:5])
	var damaged *rundir.DamagedError
	require.ErrorAs(t, err, &damaged, "without them, lines are lost")
	require.Equal(t, rundir.JournalDamaged, damaged.Code)

	remove(t, d, rundir.MetaFile)
	remove(t, d, rundir.StateFile)
	for name, last := range map[string]string{"another number": s.lines[2], "no event": "x"} {
		_, err = rundir.Continue(t.Context(), d, s.blobs, append(s.lines[:3:3], last))
		require.ErrorAs(t, err, &damaged, name)
		require.Equal(t, rundir.JournalDamaged, damaged.Code, name)
		require.Equal(t, "line 4 of events.jsonl is not event 4", damaged.Why, name)
	}
}

// TestContinueOfARunThatWentBack: the first start counts, and an interruption is an end until the run continues.
func TestContinueOfARunThatWentBack(t *testing.T) {
	s := newStory(t)
	s.twoPasses()
	then := s.state
	s.add(run.KindRunInterrupted, run.RunInterrupted{Reason: "gone", At: moment(99)})
	d := written(t, s)
	c, err := rundir.Continue(t.Context(), d, s.blobs, nil)
	require.NoError(t, err)
	require.True(t, c.Ended)

	sent := len(s.batches)
	s.revert(then)
	s.send()
	project(t, d, s, s.batches[sent:]...)
	c, err = rundir.Continue(t.Context(), d, s.blobs, nil)
	require.NoError(t, err)
	require.False(t, c.Ended)

	sent = len(s.batches)
	s.revert(run.State{})
	s.add(run.KindRunStart, run.RunStart{Task: "another", RunID: "run-1", Epoch: 1, CreatedAt: moment(0)})
	s.send()
	project(t, d, s, s.batches[sent:]...)
	c, err = rundir.Continue(t.Context(), d, s.blobs, nil)
	require.NoError(t, err)
	require.Equal(t, "page", c.Start.Task)
}

// TestContinueReportsTheEnd of the last epoch, which epoch is next, and the checkpoints of the journal.
func TestContinueReportsTheEnd(t *testing.T) {
	s, d := ended(t, run.Failed, 0)
	c, err := rundir.Continue(t.Context(), d, s.blobs, nil)
	require.NoError(t, err)
	require.True(t, c.Ended)
	require.Equal(t, 2, c.Epoch, "its owner was epoch 1")
	names, err := c.Checkpoints()
	require.NoError(t, err)
	_, err = rundir.LoadCheckpoint(t.Context(), names, "run-1", "cp-S1")
	require.NoError(t, err)

	n := len(s.lines)
	s.add(run.KindRunResumed, run.RunResumed{Epoch: 4, From: run.Failed})
	project(t, d, s, batch(s.lines, n+1, n+1))
	c, err = rundir.Continue(t.Context(), d, s.blobs, nil)
	require.NoError(t, err)
	require.False(t, c.Ended, "the next epoch has begun")
	require.Equal(t, 5, c.Epoch)

	require.NoError(t, os.Remove(d.Path(rundir.EventsFile)))
	c, err = rundir.Continue(t.Context(), d, s.blobs, s.lines)
	require.NoError(t, err)
	require.Empty(t, c.Broken, "a lost file has no damaged line")
	require.Equal(t, s.state, c.State)
}

// TestContinueNamesDamagedMeta: without meta.json and the end of the journal, state.json shows that lines are lost.
func TestContinueNamesDamagedMeta(t *testing.T) {
	for _, meta := range []string{"", "{"} {
		s, d := ended(t, run.Failed, 1)
		writeJournal(t, d, s.lines[:len(s.lines)-1])
		if write(t, d, rundir.MetaFile, meta); meta == "" {
			remove(t, d, rundir.MetaFile)
		}
		_, err := rundir.Continue(t.Context(), d, s.blobs, nil)
		var damaged *rundir.DamagedError
		require.ErrorAs(t, err, &damaged)
		require.Equal(t, rundir.FileDiffers, damaged.Code)
		require.Contains(t, damaged.Why, "and no readable meta.json records what was written")
		require.Equal(t, "starter check "+d.Root+" lists every finding; starter repair-state "+d.Root+
			" --apply repairs what follows from the events", damaged.Next)
	}
}
