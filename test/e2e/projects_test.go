package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestProjects takes a run across two projects through what can become of it. All runs share one environment.
func TestProjects(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_IDLE=1h")
	h.starter("server", "start")
	for name, test := range map[string]func(*testing.T, *environment){
		"together": testProjectsTogether, "a cancelled project": testProjectCancelled, "contract": testContractAborted,
		"all or none": testDeliveredToAllOrNone, "cancelled": testProjectsCancelled,
		"forked": testProjectsForked,
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
	root, err := filepath.EvalSymlinks(h.root)
	require.NoError(t, err)
	folder := filepath.Join(root, strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	tr := &trial{environment: h, t: t, folder: folder, steer: filepath.Join(folder, "steer"),
		dir: filepath.Join(folder, "run")}
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
	s := shop{tr}
	for _, name := range []string{"library", "service"} {
		s.at(name)
		require.NoError(t, os.Mkdir(tr.source, 0o700))
		tr.write("name.txt", name)
		tr.write("work.txt", "line 1\n")
		tr.git("init", "-q", "-b", "main")
		tr.git("add", "-A")
		tr.git("commit", "-q", "-m", "Begin")
	}
	return s
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
	require.NoError(s.t, json.Unmarshal(read(s.t, filepath.Join(s.dir, layout.CrossFile)), &c))
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
// accepts all of the work. Each record is valid at every stop, and each planted contradiction is found.
func testProjectsTogether(t *testing.T, h *environment) {
	s := h.shop(t)
	s.steerAgents("asks", "")
	s.begin()
	q := s.asked(run.QuestionHandoff)
	require.Equal(t, &run.AskedBy{Alias: "library", ID: q.Project.ID, Kind: run.QuestionGate}, q.Project)
	clean(t, s.dir)
	at := s.checkpoint()
	require.Equal(t, []any{true, "project", q.ID, "library", q.Project.ID, map[string]string{"library": "running",
		"service": "pending"}}, []any{at.Pending, at.Kind, at.ID, at.Alias, at.Child, at.SubStatus})
	require.True(t, strings.HasPrefix(q.ID, "project:library:"), q.ID)
	s.untell("asks")
	s.decide("retry")

	q = s.asked(run.QuestionHandoff, q)
	require.Equal(t, run.TriggerAcceptance, q.Trigger)
	require.Empty(t, s.delivered(), "nothing is delivered before all of it is accepted")
	clean(t, s.dir)
	at = s.checkpoint()
	require.Equal(t, []any{true, "cfa", q.ID, q.Digest}, []any{at.Pending, at.Kind, at.ID, at.CFAPaused.Tree})
	require.True(t, strings.HasPrefix(q.ID, "cfa:"), q.ID)
	s.decide("continue")

	s.over(run.Done)
	s.once()
	require.Equal(t, []string{"library", "service"}, s.delivered())
	s.shown()
	meta := metaOf(t, s.dir)
	require.Equal(t, "ok", meta.Phases.CrossDelivery.Status)
	require.Equal(t, map[string]string{"library": filepath.Join(s.folder, "library"),
		"service": filepath.Join(s.folder, "service")}, meta.Projects)
	for name, record := range meta.Phases.Projects {
		clean(t, s.project(name))
		child := metaOf(t, s.project(name))
		require.Equal(t, []any{child.Status, child.RunID, name, meta.RunID},
			[]any{record.Status, record.RunID, child.ProjectAlias, child.ParentRun})
	}
	s.damages()
}

// shown wants every view of the run to have its projects.
func (s shop) shown() {
	s.t.Helper()
	service := metaOf(s.t, s.project("service")).RunID
	for name, text := range map[string]string{
		"status": s.starter("status", s.dir), "evidence": s.starter("evidence", s.dir),
		"list": s.starter("list", "--tree"),
	} {
		for _, part := range map[string][]string{
			"status":   {"Projects:    2 of 2 done", "  service:   done, cost unknown, delivered to branch result"},
			"evidence": {"| service | " + service + " | library | done, cost unknown, delivered to branch result |"},
			"list":     {"\n  " + service[:8] + " "},
		}[name] {
			require.Contains(s.t, text, part)
		}
	}
	of := metaOf(s.t, s.dir).RunID + "/"
	for _, row := range []struct {
		want string
		args []string
	}{
		{"name one of them: " + of, []string{"diff", s.dir}},
		{"name one of them: " + of, []string{"blame", s.dir}},
		{"replay refused: the run has projects, which are delivered too: fork it, or replay the run of a " +
			"project (RUN/PROJECT)", []string{"replay", s.dir}},
		{"follow-up refused: the run has projects, and each has its own result: follow up the run of a project " +
			"(RUN/PROJECT)", []string{"run", "--follow-up", s.dir, "--task", "More"}},
	} {
		output, code := s.try(row.args...)
		require.Equal(s.t, 2, code, output)
		require.Contains(s.t, output, row.want)
	}
}

// damages plants contradictions into a copy of the records.
func (s shop) damages() {
	for name, row := range map[string]struct {
		file, old, new string
		want           fsck.Code
	}{
		"the project failed after all": {"service/meta.json", `"status": "done"`, `"status": "failed"`,
			"cross_parent_embedded_physical_status_conflict"},
		"the project is gone": {"library/meta.json", "", "", "cross_parent_embedded_without_physical"},
		"the project is torn": {"library/meta.json", "{", "", "cross_parent_physical_child_malformed"},
		"a decision is open": {layout.CrossFile, `"phase_handoff_pending": false`, `"phase_handoff_pending": true`,
			"checkpoint_pending_without_active_handoff"},
		"the checkpoint is torn": {layout.CrossFile, "{", "", "cross_checkpoint_unreadable"},
		"another cursor":         {layout.CrossFile, `"library": "done"`, `"library": "failed"`, fsck.DerivedFileDamaged},
		"the copy differs": {"meta.json", `"cross_mode": "project_runs"`, `"cross_mode": "mono"`,
			fsck.DerivedFileBehind},
		"the folder moved": {"service/meta.json", `"project_alias": "service"`, `"project_alias": "other"`,
			"cross_parent_undeclared_child"},
	} {
		s.t.Run(name, func(t *testing.T) {
			path := filepath.Join(s.dir, row.file)
			was := read(t, path)
			t.Cleanup(func() { require.NoError(t, os.WriteFile(path, was, 0o600)) })
			if row.old == "" {
				require.NoError(t, os.Remove(path))
			} else {
				require.Contains(t, string(was), row.old)
				require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(was), row.old, row.new, 1)), 0o600))
			}
			report, err := fsck.Check(t.Context(), rundir.At(s.dir), fsck.CheckOptions{})
			require.NoError(t, err)
			require.True(t, report.Has(row.want), "%v", report.Issues)
		})
	}
	clean(s.t, s.dir)
}

// testProjectCancelled: a project that is not done blocks the run. Once it works again, the run continues.
func testProjectCancelled(t *testing.T, h *environment) {
	s := h.shop(t)
	s.steerAgents("asks", "")
	s.begin()
	first := s.asked(run.QuestionHandoff)
	h.starter("cancel", s.project("library"))
	q := s.asked(run.QuestionGate, first)
	require.Equal(t, []any{run.TriggerBlocked, []string{"retry", "halt"}}, []any{q.Trigger, q.Actions})
	require.Equal(t, "These projects are not done:\n- library cancelled\n- service skipped (needs library)", q.Text)
	clean(t, s.dir)
	parent, err := fsck.CrossParent(t.Context(), rundir.At(s.dir))
	require.NoError(t, err)
	require.Equal(t, run.ParentBlocked, parent.Class)
	s.untell("asks")
	h.starter("resume", s.project("library"))
	again := s.asked(run.QuestionHandoff, first, q)
	require.Equal(t, []any{run.TriggerProject, "library"}, []any{again.Trigger, again.Project.Alias})
	s.decide("retry")
	q = s.asked(run.QuestionHandoff, again)
	require.Equal(t, run.TriggerAcceptance, q.Trigger)
	s.decide("continue")
	s.over(run.Done)
	s.once()
	require.Equal(t, []string{"library", "service"}, s.delivered())
	require.Less(t, lastEvent(t, s.dir, run.KindProjectEnded).Sub(lastEvent(t, s.project("library"), run.KindRunEnd)),
		30*time.Second, "the project reports its end, also in its second epoch")
}

// lastEvent is the time of the last event of a kind.
func lastEvent(t *testing.T, dir string, kind run.Kind) (at time.Time) {
	t.Helper()
	for _, e := range eventsOf(t, dir) {
		if e.Kind == kind {
			var err error
			at, err = time.Parse(run.TimeFormat, e.TS)
			require.NoError(t, err)
		}
	}
	require.False(t, at.IsZero(), kind)
	return at
}

// testContractAborted: a contract check that fails ends the run as requirement 001 wants. A revert makes the check
// again, and no project's run.
func testContractAborted(t *testing.T, h *environment) {
	s := h.shop(t)
	s.untell("fits")
	s.begin()
	q := s.asked(run.QuestionGate)
	require.Equal(t, run.TriggerCheckFailed, q.Trigger)
	require.Equal(t, "contract_check", s.checkpoint().PendingGate.Name)
	clean(t, s.dir)
	s.decide("halt")
	s.over(run.Cancelled)
	require.Equal(t, run.ReasonContractAborted, metaOf(t, s.dir).Reason)
	require.Empty(t, s.delivered())
	ended := of[run.ProjectEnd](eventsOf(t, s.dir), run.KindProjectEnded)
	require.Len(t, ended, 2)

	s.steerAgents("fits", "")
	var to string
	for _, e := range eventsOf(t, s.dir) {
		if e.Kind == run.KindProjectEnded && to == "" {
			to = run.UnnamedID(e.Seq) // after the library, before the service
		}
	}
	h.starter("revert", s.dir, "--to", to)
	q = s.asked(run.QuestionHandoff, q)
	require.Equal(t, run.TriggerAcceptance, q.Trigger)
	s.decide("continue")
	s.over(run.Done)
	s.once()
	require.Equal(t, []string{"library", "service"}, s.delivered())
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
	_, err := projector.At(s.project("service")).Meta()
	require.ErrorIs(t, err, os.ErrNotExist, "the service was not started")
}
