package rundir_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// directory is a healthy directory that rows of the table damage.
type directory struct {
	name  string
	write func(t *testing.T) (rundir.Dir, fakeBlobs)
	codes []rundir.Code // what check finds in it
}

// directoryOf writes the directory of this name.
func directoryOf(t *testing.T, name string) (rundir.Dir, fakeBlobs) {
	t.Helper()
	all := directories()
	i := slices.IndexFunc(all, func(d directory) bool { return d.name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return all[i].write(t)
}

func directories() []directory {
	undecided := rundir.ActiveHandoffWithoutDecision
	return []directory{
		{"done", func(t *testing.T) (rundir.Dir, fakeBlobs) { s := whole(t); return written(t, s), s.blobs }, nil},
		{"paused", ranWith(func(s *story) { s.twoPasses(); s.pause() }), nil},
		{"running", ranWith(func(s *story) { s.twoPasses(); s.begin(about(3), 1) }), nil},
		{"asking", ranWith((*story).asks), []rundir.Code{undecided}},
		{"awaiting its review", ranWith(func(s *story) {
			s.twoPasses()
			s.add(run.KindReviewRequested, run.QuestionRequested{Kind: run.QuestionReview, ID: "r-1",
				Actions: []string{"approve", "halt"}})
		}), []rundir.Code{undecided}},
		{"halted", ranWith(func(s *story) {
			s.asks()
			s.add(run.KindHandoffDecided, run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h-1", Action: "halt",
				DecidedBy: "an operator"})
			s.add(run.KindRunEnd, run.RunEnd{Status: run.Halted, Reason: "phase_handoff_halt"})
		}), nil},
		{"failed", ranWith(func(s *story) {
			s.asks()
			s.add(run.KindRunEnd, run.RunEnd{Status: run.Failed, Reason: "broken"})
		}), []rundir.Code{undecided}},
		{"with turns", ranWith(func(s *story) { s.worksOn(""); s.turn(1, "ok", "tree 1"); s.turn(2, "ok", "tree 2") }),
			nil},
		{"interrupted", ranWith(func(s *story) {
			s.asks()
			s.add(run.KindRunInterrupted, run.RunInterrupted{Reason: "gone", At: moment(99)})
		}), []rundir.Code{rundir.InterruptedWithActiveHandoff, undecided}},
		{"stored", stored, nil},
		{"damaged and stored", damagedAndStored, []rundir.Code{rundir.JournalDamaged, rundir.DamageRecorded}},
		{"projects, at work", acrossProjects(func(*story) {}, `{"status": "running", "project_alias": "api"}`, ""), nil},
		{"projects, asking", acrossProjects(func(s *story) {
			s.add(run.KindProjectEnded, run.ProjectEnd{Alias: "web", Outcome: run.ProjectDone, Status: run.Done})
			s.add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "project:api:h-1",
				Phase: "plan", Actions: []string{"continue", "halt"},
				Project: &run.AskedBy{Alias: "api", ID: "h-1", Kind: run.QuestionHandoff}})
		}, `{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-1"}}`, projectDone), []rundir.Code{undecided}},
		{"projects, done", acrossProjects(func(s *story) {
			for _, alias := range []string{"api", "web"} {
				s.add(run.KindProjectEnded, run.ProjectEnd{Alias: alias, Outcome: run.ProjectDone, Status: run.Done})
			}
			s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
		}, projectDone, projectDone), nil},
	}
}

const projectDone = `{"status": "done"}`

// acrossProjects is a run of the projects api and web, both started, with their records; empty: missing.
func acrossProjects(send func(*story), api, web string) func(*testing.T) (rundir.Dir, fakeBlobs) {
	return func(t *testing.T) (rundir.Dir, fakeBlobs) {
		s := newStory(t)
		s.add(run.KindRunStart, run.RunStart{Task: "t", RunKind: "cross_project", Pipeline: "page", RunID: "run-1",
			ThreadID: "thread-1", Epoch: 1, CreatedAt: moment(0), Projects: []run.ProjectRef{
				{Alias: "api", RunID: "run-api", Source: "/api"}, {Alias: "web", RunID: "run-web", Source: "/web"}}})
		s.add(run.KindProjectStarted, run.ProjectStart{Alias: "api", RunID: "run-api"})
		send(s)
		d := written(t, s)
		for alias, record := range map[string]string{"api": api, "web": web} {
			if record != "" {
				write(t, d, alias+"/meta.json", record)
			}
		}
		return d, s.blobs
	}
}

func ranWith(send func(*story)) func(*testing.T) (rundir.Dir, fakeBlobs) {
	return func(t *testing.T) (rundir.Dir, fakeBlobs) {
		s := newStory(t)
		send(s)
		return written(t, s), s.blobs
	}
}

// stored is a paused run whose journal is in the store up to two lines before its end.
func stored(t *testing.T) (rundir.Dir, fakeBlobs) {
	s := newStory(t)
	s.twoPasses()
	s.pause()
	d := written(t, s)
	seal(t, s, d, len(s.lines)-2)
	return d, s.blobs
}

// damagedAndStored continues such a run after its third line was changed. Its journal records the damage.
func damagedAndStored(t *testing.T) (rundir.Dir, fakeBlobs) {
	s := newStory(t)
	s.twoPasses()
	s.pause()
	d := written(t, s)
	seal(t, s, d, len(s.lines)-2)
	hurt := changed(s.lines, 3)
	s.add(run.KindJournalDamaged, run.JournalDamage{File: rundir.EventsFile, Line: 3, Expected: digestOf(s.lines[2]),
		Found: digestOf(hurt[2])})
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Cancelled})
	writeJournal(t, d, hurt)
	b := batch(s.lines, len(hurt)+1, len(s.lines))
	b.Verified = true
	project(t, d, s, b)
	return d, s.blobs
}

// ended is a run with two passes and this end, in the store up to some lines before its end.
func ended(t *testing.T, end run.Status, unsealed int) (*story, rundir.Dir) {
	t.Helper()
	s := newStory(t)
	s.twoPasses()
	s.add(run.KindRunEnd, run.RunEnd{Status: end})
	d := written(t, s)
	seal(t, s, d, len(s.lines)-unsealed)
	return s, d
}
