package fsck_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// directory is a healthy directory that rows of the table damage.
type directory struct {
	name  string
	write func(t *testing.T) (projector.Dir, fakeBlobs)
	codes []fsck.Code // what check finds in it
}

func directories() []directory { return slices.Concat(ownDirectories(), foreignDirectories()) }

// directoryOf writes the directory of this name.
func directoryOf(t *testing.T, name string) (projector.Dir, fakeBlobs) {
	t.Helper()
	all := directories()
	i := slices.IndexFunc(all, func(d directory) bool { return d.name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return all[i].write(t)
}

func ownDirectories() []directory {
	undecided := fsck.ActiveHandoffWithoutDecision
	return []directory{
		{"done", func(t *testing.T) (projector.Dir, fakeBlobs) { s := whole(t); return written(t, s), s.blobs }, nil},
		{"paused", ranWith(func(s *story) { s.twoPasses(); s.pause() }), nil},
		{"running", ranWith(func(s *story) { s.twoPasses(); s.begin(about(3), 1) }), nil},
		{"asking", ranWith((*story).asks), []fsck.Code{undecided}},
		{"halted", ranWith(func(s *story) {
			s.asks()
			s.add(run.KindHandoffDecided, run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h-1", Action: "halt",
				DecidedBy: "an operator"})
			s.add(run.KindRunEnd, run.RunEnd{Status: run.Halted, Reason: "phase_handoff_halt"})
		}), nil},
		{"failed", ranWith(func(s *story) {
			s.asks()
			s.add(run.KindRunEnd, run.RunEnd{Status: run.Failed, Reason: "broken"})
		}), []fsck.Code{undecided}},
		{"with turns", ranWith(func(s *story) { s.worksOn(""); s.turn(1, "ok", "tree 1"); s.turn(2, "ok", "tree 2") }),
			nil},
		{"interrupted", ranWith(func(s *story) {
			s.asks()
			s.add(run.KindRunInterrupted, run.RunInterrupted{Reason: "gone", At: moment(99)})
		}), []fsck.Code{fsck.InterruptedWithActiveHandoff, undecided}},
		{"stored", stored, nil},
		{"damaged and stored", damagedAndStored, []fsck.Code{fsck.ChainMismatch, fsck.DamageRecorded}},
		{"own projects", func(t *testing.T) (projector.Dir, fakeBlobs) {
			s := newStory(t)
			s.add(run.KindRunStart, run.RunStart{Task: "t", RunKind: "cross_project", Pipeline: "page", RunID: "run-1",
				ThreadID: "thread-1", Epoch: 1, CreatedAt: moment(0), Projects: []run.ProjectRef{
					{Alias: "api", RunID: "run-api", Source: "/api"}, {Alias: "web", RunID: "run-web", Source: "/web"}}})
			s.add(run.KindProjectStarted, run.ProjectStart{Alias: "api", RunID: "run-api"})
			d := written(t, s)
			write(t, d, "api/meta.json", `{"status": "running", "project_alias": "api"}`)
			return d, s.blobs
		}, nil},
	}
}

func ranWith(send func(*story)) func(*testing.T) (projector.Dir, fakeBlobs) {
	return func(t *testing.T) (projector.Dir, fakeBlobs) {
		s := newStory(t)
		send(s)
		return written(t, s), s.blobs
	}
}

// stored is a paused run whose journal is in the store up to two lines before its end.
func stored(t *testing.T) (projector.Dir, fakeBlobs) {
	s := newStory(t)
	s.twoPasses()
	s.pause()
	d := written(t, s)
	seal(t, s, d, len(s.lines)-2)
	return d, s.blobs
}

// damagedAndStored continues such a run after its third line was changed. Its journal records the damage.
func damagedAndStored(t *testing.T) (projector.Dir, fakeBlobs) {
	s := newStory(t)
	s.twoPasses()
	s.pause()
	d := written(t, s)
	seal(t, s, d, len(s.lines)-2)
	hurt := changed(s.lines, 3)
	s.add(run.KindJournalDamaged, run.JournalDamage{File: layout.EventsFile, Line: 3, Expected: digestOf(s.lines[2]),
		Found: digestOf(hurt[2])})
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Cancelled})
	writeJournal(t, d, hurt)
	b := batch(s.lines, len(hurt)+1, len(s.lines))
	b.Verified = true
	project(t, d, s, b)
	return d, s.blobs
}

// ended is a run with two passes and this end, in the store up to some lines before its end.
func ended(t *testing.T, end run.Status, unsealed int) (*story, projector.Dir) {
	t.Helper()
	s := newStory(t)
	s.twoPasses()
	s.add(run.KindRunEnd, run.RunEnd{Status: end})
	d := written(t, s)
	seal(t, s, d, len(s.lines)-unsealed)
	return s, d
}

// reference is a directory that another program has written.
func reference(name string) func(*testing.T) (projector.Dir, fakeBlobs) {
	return func(t *testing.T) (projector.Dir, fakeBlobs) {
		dir := filepath.Join(t.TempDir(), "run")
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "rundir", "testdata", "reference", name))))
		return projector.At(dir), nil
	}
}
