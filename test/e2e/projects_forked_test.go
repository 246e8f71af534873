package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// forked is a fork of a run across projects.
func (s shop) forked(name string, args ...string) shop {
	s.t.Helper()
	tr := *s.trial
	tr.dir = filepath.Join(s.folder, name)
	output, code := s.try(append([]string{"fork", s.dir, "--output-dir", tr.dir, "--detach"}, args...)...)
	require.Zero(s.t, code, output)
	return shop{&tr}
}

// afterLibrary is the checkpoint at which the library was done and the service had not begun.
func (s shop) afterLibrary() string {
	s.t.Helper()
	for _, e := range eventsOf(s.t, s.dir) {
		if e.Kind == run.KindProjectEnded {
			return run.UnnamedID(e.Seq)
		}
	}
	s.t.Fatal("no project has ended")
	return ""
}

// testProjectsForked: a fork has copies of the runs of its projects, as they were at the checkpoint. What they had
// answered is not asked again, and the source does not change.
func testProjectsForked(t *testing.T, h *environment) {
	s := h.shop(t)
	s.steerAgents("asks", "")
	s.begin()
	s.asked(run.QuestionHandoff)
	before := read(t, filepath.Join(s.dir, "events.jsonl"))

	require.NoError(t, os.RemoveAll(s.project("service")), "it has not begun: the store has its input")
	working := s.forked("working", "--request", "one")
	q := working.asked(run.QuestionHandoff)
	require.Equal(t, run.TriggerProject, q.Trigger)
	require.Equal(t, "library", q.Project.Alias)
	require.Equal(t, "library", s.calls(), "the copy of the library continues at its check")
	id := metaOf(t, working.dir).RunID
	s.forked("working", "--request", "one")
	require.Equal(t, id, metaOf(t, working.dir).RunID, "repeated, the request starts no second run")
	s.untell("asks")
	working.decide("retry")
	q = working.asked(run.QuestionHandoff, q)
	require.Equal(t, run.TriggerAcceptance, q.Trigger)
	s.once()
	require.Equal(t, string(before), string(read(t, filepath.Join(s.dir, "events.jsonl"))))

	require.NoError(t, os.RemoveAll(working.project("library")), "the store has its checkpoints")
	again := working.forked("again", "--from", working.afterLibrary(), "--task", "Otherwise, steer="+s.steer)
	again.asked(run.QuestionHandoff)
	require.Equal(t, "library service service", s.calls(), "only the service begins again")
	again.decide("continue")
	again.over(run.Done)
	require.Equal(t, []string{"library", "service"}, s.delivered())
	for _, name := range []string{"library", "service"} {
		clean(t, again.project(name))
		start := of[run.RunStart](eventsOf(t, again.project(name)), run.KindRunStart)[0]
		require.Equal(t, metaOf(t, again.dir).RunID, start.MemberOf.RunID)
		require.Equal(t, name, start.MemberOf.Alias)
		require.Equal(t, "Otherwise, steer="+s.steer, start.Task)
		require.Equal(t, name == "library", start.Source != nil, "the copy names its source")
	}

	output, code := s.try("fork", again.dir)
	require.Equal(t, 2, code, output)
	for _, place := range []string{"from project library: ", "from project service: ", "from stage contract: "} {
		require.Contains(t, output, place)
	}

	s.defined(", needs: [library]", "")
	output, code = s.try("fork", again.dir, "--from", "cp-1", "--config", s.config())
	require.Equal(t, 1, code, output)
	require.Contains(t, output, "the other pipeline must have the same projects, with the same sources and needs")
	s.defined("source: ../service", "source: ../library")
	output, code = s.try("fork", again.dir, "--from", "cp-1", "--config", s.config())
	require.Equal(t, 1, code, output)
	require.Contains(t, output, "project service: the other pipeline works on "+filepath.Join(s.folder, "library"))
}

func (s shop) config() string { return filepath.Join(s.folder, "definition", "shop.yaml") }

// defined writes the definition with another text.
func (s shop) defined(old, text string) {
	s.t.Helper()
	path := filepath.Join(project, "test", "e2e", "testdata", "projects", "shop.yaml")
	raw := strings.ReplaceAll(string(read(s.t, path)), "STEER", s.steer)
	require.Contains(s.t, raw, old)
	require.NoError(s.t, os.WriteFile(s.config(), []byte(strings.Replace(raw, old, text, 1)), 0o600))
}
