package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestProjects takes runs across two projects through their outcomes.
func TestProjects(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	for name, test := range map[string]func(*testing.T, *environment){
		"together": testProjectsTogether, "all or none": testDeliveredToAllOrNone, "cancelled": testProjectsCancelled,
		"forked": testProjectsForked, "moved": testProjectsMoved, "blocked": testProjectsBlocked,
		"ended paused": testPausedProjectsContinue,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h.within(t))
		})
	}
}

// shop is a run across a library and a service that needs it. It is steered as a trial is.
type shop struct{ *trial }

func (h *environment) shop(t *testing.T) shop {
	t.Helper()
	tr := h.folders(t)
	folder := tr.folder
	testdata := filepath.Join(project, "test", "e2e", "testdata", "projects")
	require.NoError(t, os.CopyFS(filepath.Join(folder, "definition"), os.DirFS(testdata)))
	for _, name := range []string{"shop.yaml", "project.yaml"} {
		path := filepath.Join(folder, "definition", name)
		text := strings.NewReplacer("AGENT", filepath.Join(testdata, "agent.sh"), "STEER", tr.steer).Replace(string(read(t,
			path)))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.NoError(t, os.Mkdir(tr.steer, 0o700))
	tr.steerAgents("fits", "")
	for _, name := range []string{"library", "service"} {
		h.repository(filepath.Join(folder, name), "line 1\n", "name.txt", name)
	}
	return shop{tr}
}

// at makes the repository of a project the source.
func (s shop) at(name string) shop {
	s.source = filepath.Join(s.folder, name)
	return s
}

func (s shop) begin() {
	s.t.Helper()
	output, code := s.try("run", "--config", filepath.Join(s.folder, "definition", "shop.yaml"), "--output-dir", s.dir,
		"--task", s.task(), "--detach")
	require.Zero(s.t, code, output)
}

func (s shop) project(name string) string { return filepath.Join(s.dir, name) }

func (s shop) checkpoint() (c rundir.CrossCheckpoint) {
	s.t.Helper()
	c.SubStatus = map[string]string{}
	require.NoError(s.t, json.Unmarshal(read(s.t, filepath.Join(s.dir, rundir.CrossFile)), &c))
	return c
}

// delivered are the repositories with a result.
func (s shop) delivered() (names []string) {
	s.t.Helper()
	for _, name := range []string{"library", "service"} {
		if s.at(name).git("branch", "--list", "result") != "" {
			require.Equal(s.t, "line 1\nline 2 of "+name, s.git("show", "result:work.txt"))
			names = append(names, name)
		}
	}
	return names
}

// once wants one call for each project, whatever happened.
func (s shop) once() {
	s.t.Helper()
	require.Equal(s.t, "library service", s.calls())
}

// testProjectsTogether: the question of a project is asked in the run, its answer goes to the project, and an operator
// accepts all of the work. Each record is valid whenever the run waits.
func testProjectsTogether(t *testing.T, h *environment) {
	s := h.shop(t)
	s.steerAgents("asks", "")
	s.begin()
	q := s.asked(run.QuestionHandoff)
	require.Equal(t, &run.AskedBy{Alias: "library", ID: q.Project.ID, Kind: run.QuestionGate}, q.Project)
	clean(t, s.dir)
	at := s.checkpoint()
	require.True(t, at.Pending)
	require.Equal(t, "project", at.Kind)
	require.Equal(t, q.ID, at.ID)
	require.Equal(t, "library", at.Alias)
	require.Equal(t, q.Project.ID, at.Child)
	require.Equal(t, map[string]string{"library": "running", "service": "pending"}, at.SubStatus)
	require.True(t, strings.HasPrefix(q.ID, "project:library:"), q.ID)
	s.untell("asks")
	s.decide("retry")

	q = s.asked(run.QuestionHandoff, q)
	require.Equal(t, run.TriggerAcceptance, q.Trigger)
	require.Empty(t, s.delivered(), "nothing is delivered before all of it is accepted")
	clean(t, s.dir)
	at = s.checkpoint()
	require.True(t, at.Pending)
	require.Equal(t, "cfa", at.Kind)
	require.Equal(t, q.ID, at.ID)
	require.Equal(t, q.Digest, at.CFAPaused.Tree)
	require.True(t, strings.HasPrefix(q.ID, "cfa:"), q.ID)
	s.decide("continue")

	s.over(run.Done)
	s.once()
	require.Equal(t, []string{"library", "service"}, s.delivered())
	meta := metaOf(t, s.dir)
	require.Equal(t, "ok", meta.Phases.CrossDelivery.Status)
	require.Equal(t, map[string]string{"library": filepath.Join(s.folder, "library"),
		"service": filepath.Join(s.folder, "service")}, meta.Projects)
	for name, record := range meta.Phases.Projects {
		clean(t, s.project(name))
		child := metaOf(t, s.project(name))
		require.Equal(t, child.Status, record.Status)
		require.Equal(t, child.RunID, record.RunID)
		require.Equal(t, name, child.ProjectAlias)
		require.Equal(t, meta.RunID, child.ParentRun)
	}
}

// testDeliveredToAllOrNone: a project that cannot take its changes keeps the others from theirs, by its name.
func testDeliveredToAllOrNone(t *testing.T, h *environment) {
	s := h.shop(t)
	s.begin()
	first := s.asked(run.QuestionHandoff)
	s.at("service").git("checkout", "-q", "-b", "result")
	s.write("work.txt", "another line\n")
	s.git("commit", "-qam", "Another line")
	s.git("checkout", "-q", "main")
	s.decide("continue")
	q := s.asked(run.QuestionDelivery, first)
	require.Contains(t, q.Text, "project service: ")
	require.Contains(t, q.Text, "work.txt")
	require.NotContains(t, q.Text, "project library")
	require.Empty(t, s.at("library").git("branch", "--list", "result"))
	clean(t, s.dir)
	s.at("service").git("branch", "-q", "-D", "result")
	s.decide("retry")
	s.over(run.Done)
	s.once()
	require.Equal(t, []string{"library", "service"}, s.delivered())
}

// testProjectsCancelled: with the run its projects are cancelled.
func testProjectsCancelled(t *testing.T, h *environment) {
	s := h.shop(t)
	s.steerAgents("asks", "")
	s.begin()
	s.asked(run.QuestionHandoff)
	h.starter("cancel", s.dir)
	s.over(run.Cancelled)
	require.Equal(t, string(run.Cancelled), metaOf(t, s.project("library")).Status)
	clean(t, s.project("library"))
	require.Empty(t, s.delivered())
	p, _ := metaOf(t, s.dir).State.Project("library")
	require.Equal(t, run.ProjectCancelled, p.Outcome)
	_, err := rundir.At(s.project("service")).Meta()
	require.ErrorIs(t, err, os.ErrNotExist, "the service was not started")
}

// testProjectsBlocked: a project that was halted keeps the one that needs it from starting, and the run asks.
func testProjectsBlocked(t *testing.T, h *environment) {
	s := h.shop(t)
	s.steerAgents("asks", "")
	s.begin()
	s.asked(run.QuestionHandoff)
	s.decide("halt")
	q := s.asked(run.QuestionGate)
	require.Equal(t, run.TriggerBlocked, q.Trigger)
	p, _ := metaOf(t, s.dir).State.Project("service")
	require.Equal(t, run.ProjectSkipped, p.Outcome)
	clean(t, s.dir)
	h.starter("cancel", s.dir)
	s.over(run.Cancelled)
	require.Empty(t, s.delivered())
}

// testProjectsMoved: the directories of projects are in that of their run, and continue with it at another place.
func testProjectsMoved(t *testing.T, h *environment) {
	s := h.shop(t)
	s.steerAgents("asks", "")
	s.begin()
	s.asked(run.QuestionHandoff)
	moved := s.dir + "-moved"
	require.NoError(t, os.Rename(s.dir, moved))
	s.dir = moved
	require.NotContains(t, h.starter("resume", s.dir), "Warning")
	s.untell("asks")
	until(t, "the project asks at its new place", func() bool {
		meta, err := rundir.At(s.project("library")).Meta()
		if err != nil {
			return false
		}
		_, open := meta.State.Asks()
		return open && meta.Epoch == 2 && metaOf(t, s.dir).State.Status == run.AwaitingPhaseHandoff
	})
	s.decide("retry")
	for q := s.asked(run.QuestionHandoff); q.Trigger != run.TriggerAcceptance; {
		q = s.asked(run.QuestionHandoff, q)
	}
	s.decide("continue")
	s.over(run.Done)
	s.once()
	require.Equal(t, []string{"library", "service"}, s.delivered())
	clean(t, s.dir)
}

// testPausedProjectsContinue: a project that was paused with its run continues with the next epoch of the run.
func testPausedProjectsContinue(t *testing.T, h *environment) {
	s := h.shop(t)
	s.steerAgents("hold-library", "")
	s.begin()
	until(t, "the library works", func() bool {
		_, err := os.Stat(filepath.Join(s.steer, "calls"))
		return err == nil
	})
	h.starter("pause", s.dir)
	s.untell("hold-library")
	until(t, "both are paused", func() bool {
		return metaOf(t, s.dir).State.Status == run.Paused && metaOf(t, s.project("library")).State.Status == run.Paused
	})
	require.NoError(t, h.dial().TerminateWorkflow(t.Context(), metaOf(t, s.dir).RunID, "", "test"))
	require.NotContains(t, h.starter("resume", s.dir), "Warning")
	require.Equal(t, run.TriggerAcceptance, s.asked(run.QuestionHandoff).Trigger)
	s.once()
	s.decide("continue")
	s.over(run.Done)
	clean(t, s.dir)
}
