package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Stories of a run: as long as the library works, and when it is done and the service can start.
var (
	startOfLibrary = []string{"project.started library"}
	afterLibrary   = []string{
		"project.started service", "project.ended service done", "phase.handoff_requested acceptance",
		"phase_handoff.decided continue", "project.delivered library", "project.delivered service",
	}
)

// asks is a project with a question.
var asks = contract.ChildFound{Found: run.Present, Status: run.AwaitingGateDecision, Question: &run.Question{
	Kind: run.QuestionGate, ID: "gate-1", Text: "make test failed. Continue?", Actions: []string{"retry", "halt"},
}}

// projectRow is what a library leaves after an hour, and what the run does.
type projectRow struct {
	leaves contract.ChildFound
	story  []string // after the start of the library
	asks   string   // the text of the question
	after  []string // when the library is done after all, before the service starts
}

// blockedRow is a row with a library that blocks the run.
func blockedRow(leaves contract.ChildFound, outcome run.ProjectOutcome) projectRow {
	ended, text := string(outcome), string(outcome)
	if leaves.Reason != "" {
		ended, text = ended+" "+leaves.Reason, text+" ("+leaves.Reason+")"
	}
	return projectRow{
		leaves: leaves,
		story: []string{"project.ended library " + ended, "project.skipped service needs library",
			"gate.requested project_blocked"},
		asks:  "These projects are not done:\n- library " + text + "\n- service skipped (needs library)",
		after: []string{"project.ended library done", "gate.decided retry project"},
	}
}

// projectRows has a row for each outcome of run.ProjectRules.
var projectRows = map[run.ProjectOutcome]projectRow{
	run.ProjectDone: {leaves: doneProject("library"), story: []string{"project.ended library done"}},
	run.ProjectRunning: {leaves: contract.ChildFound{Found: run.Present, Status: run.Running},
		after: []string{"project.ended library done"}},
	run.ProjectPaused: {leaves: contract.ChildFound{Found: run.Present, Status: run.Paused, Reason: run.UserRequested},
		after: []string{"project.ended library done"}},
	run.ProjectAsks: {leaves: asks, story: []string{"phase.handoff_requested project"},
		asks:  "Project library: make test failed. Continue?",
		after: []string{"phase_handoff.decided continue project library", "project.ended library done"}},
	run.ProjectRejected:    blockedRow(endedProject(run.Halted, run.ReasonRejected), run.ProjectRejected),
	run.ProjectHalted:      blockedRow(endedProject(run.Halted, "gate_halt"), run.ProjectHalted),
	run.ProjectFailed:      blockedRow(endedProject(run.Failed, "no agent here"), run.ProjectFailed),
	run.ProjectCancelled:   blockedRow(endedProject(run.Cancelled, ""), run.ProjectCancelled),
	run.ProjectInterrupted: blockedRow(endedProject(run.Running, ""), run.ProjectInterrupted),
	run.ProjectMissing:     blockedRow(contract.ChildFound{Closed: true}, run.ProjectMissing),
	run.ProjectUnreadable: blockedRow(contract.ChildFound{Found: run.Malformed, Closed: true},
		run.ProjectUnreadable),
}

// TestRunAcrossProjectsByOutcome has a row for each outcome of a project: what the run journals, its status, its
// question, and that it is delivered as soon as the project is done after all.
func TestRunAcrossProjectsByOutcome(t *testing.T) {
	for _, rule := range run.ProjectRules() {
		row, found := projectRows[rule.Outcome]
		if rule.Outcome == run.ProjectPending || rule.Outcome == run.ProjectSkipped {
			continue // of the service, in the rows of the library
		}
		require.True(t, found, rule.Outcome)
		t.Run(string(rule.Outcome), func(t *testing.T) {
			w := acrossProjects(t, twoProjects)
			w.projects.leaves["library"] = row.leaves
			w.accepts()
			w.at(90*time.Minute, func() { w.wantsRow(row, rule) })
			if rule.Outcome != run.ProjectDone {
				w.at(5*time.Hour, func() { w.becomes("library", doneProject("library")) })
			}
			w.done()
			require.Equal(t, slices.Concat(startOfLibrary, row.story, row.after, afterLibrary), w.projectStory())
			require.Equal(t, []string{"library", "service"}, w.projects.started, "each is started once")
			require.Equal(t, []string{"library prepared", "service prepared", "library delivered", "service delivered"},
				w.projects.delivers)
			require.Equal(t, []contract.ProjectTree{{Alias: "library", Tree: run.Blob{Digest: "tree of library"}},
				{Alias: "service", Tree: run.Blob{Digest: "tree of service"}}}, w.projects.joined)
		})
	}
}

// wantsRow compares a run with the row of what its library left.
func (w *harness) wantsRow(row projectRow, rule run.ProjectRule) {
	w.t.Helper()
	s, story, started := w.status(), slices.Concat(startOfLibrary, row.story), []string{"library"}
	if rule.Outcome == run.ProjectDone {
		story, started = append(story, "project.started service"), append(started, "service")
	}
	require.Equal(w.t, story, w.projectStory())
	require.Equal(w.t, rule.Parent, s.Status)
	require.LessOrEqual(w.t, w.projects.reads["library"], 2, "who started it reads its record when it reports, and ends")
	q, open := s.Asks()
	require.Equal(w.t, row.asks, q.Words())
	require.Equal(w.t, row.asks != "", open)
	if rule.Blocks {
		require.Equal(w.t, []string{"retry", "halt"}, q.Actions)
		service, _ := s.Project("service")
		require.Equal(w.t, run.ProjectSkipped, service.Outcome)
	}
	require.Equal(w.t, started, w.projects.started)
	require.Empty(w.t, w.projects.delivers)
}

// TestBlockedRunIsHalted: a project that needs none of the failed ones still runs, after them, before the run asks. A
// retry without a change asks again, a waiver is refused, and a halt ends the run. No part of the work is delivered.
func TestBlockedRunIsHalted(t *testing.T) {
	w := acrossProjects(t, strings.Replace(twoProjects, ", needs: [library]", "", 1))
	w.projects.leaves["library"] = endedProject(run.Failed, "")
	w.answering(func(n int, _ run.Question) {
		w.signal("decide", message{"action": "continue_with_waiver", "feedback": "ship it"})
		w.signal("decide", message{"action": []string{"retry", "halt"}[n-1]})
	})
	w.executeHalted()
	require.Equal(t, "gate_halt", w.dir.state(t).Reason)
	require.Equal(t, []string{"project.started library", "project.ended library failed", "project.started service",
		"project.ended service done", "gate.requested project_blocked", "gate.decided retry",
		"gate.requested project_blocked", "gate.decided halt"}, w.projectStory())
	require.Len(t, payloads[run.DecisionRefused](w, run.KindDecisionRefused), 2)
	require.Empty(t, w.projects.delivers)
}

// TestUnreportedEndIsRead: an execution that did not start the project, and gets no report, reads its record when it
// begins.
func TestUnreportedEndIsRead(t *testing.T) {
	w := acrossProjects(t, twoProjects)
	w.in.Options.ContinueAfter = 1
	w.projects.onRead = func(alias string, _ int) { w.projects.records[alias] = doneProject(alias) }
	w.projects.silent = true
	w.accepts()
	executions := w.chain(func(contract.Input) { w.start = w.env.Now() })
	require.Greater(t, executions, 1)
	require.Equal(t, slices.Concat(startOfLibrary, []string{"project.ended library done"}, afterLibrary), w.projectStory())
}

// TestCostOfLostProjectIsKept: a project whose record is lost has cost what its record said before.
func TestCostOfLostProjectIsKept(t *testing.T) {
	w := acrossProjects(t, twoProjects)
	w.projects.leaves["library"] = contract.ChildFound{Found: run.Present, Status: run.Failed, Closed: true, USD: 2,
		Unknown: 1}
	w.at(2*time.Hour, func() { w.becomes("library", contract.ChildFound{Closed: true}) })
	w.at(3*time.Hour, func() { w.becomes("library", doneProject("library")) })
	w.at(150*time.Minute, func() {
		s := w.status()
		require.Equal(t, 2.0, s.Total())
		require.Equal(t, 1, s.UnknownCalls())
		p, _ := s.Project("library")
		require.Equal(t, run.ProjectMissing, p.Outcome)
	})
	w.accepts()
	w.done()
}

// TestQuestionAboutBlockedProjectsExpires: it is reminded of, and decided at its expiry, as others are.
func TestQuestionAboutBlockedProjectsExpires(t *testing.T) {
	w := acrossProjects(t, twoProjects+"questions: {remind: 1h, expires: 150m, on_expiry: halt}\n")
	w.projects.leaves["library"] = endedProject(run.Failed, "")
	w.executeHalted()
	require.Len(t, payloads[run.QuestionReminded](w, run.KindQuestionReminded), 3, "two reminders and the expiry")
	decided := payloads[run.QuestionDecided](w, run.KindGateDecided)
	require.Len(t, decided, 1)
	require.Equal(t, "expiry", decided[0].DecidedBy)
}
