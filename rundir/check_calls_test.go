package rundir_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// again is a pass as it is done once more.
func again(p run.Pass, times int) run.Pass {
	p.Redo = times
	return p
}

// fourTimes is a pass that an operator has sent back three times; the second time its first attempt could not be used.
func (s *story) fourTimes() {
	s.start()
	for n := range 4 {
		p, attempt := again(about(1), n), 1
		if n == 1 {
			s.begin(p, 1)
			s.fail(p, 1)
			attempt = 2
		}
		s.begin(p, attempt)
		s.end(p, "ok", attempt)
	}
	s.send()
}

// TestEveryCallKeepsItsEvidence: four answered calls of one pass and a failed one leave five prompts, replies and
// envelopes, and five rows.
func TestEveryCallKeepsItsEvidence(t *testing.T) {
	s := newStory(t)
	s.fourTimes()
	d := written(t, s)
	files := look(t, d)
	rows, skipped, err := rundir.Rows[rundir.TraceRow](d, rundir.TracesFile)
	require.NoError(t, err)
	require.Zero(t, skipped)
	require.Len(t, rows, 5)
	ids, paths := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		ids[r.Call] = true
		for _, name := range []string{r.PromptPath, r.ReplyPath, r.AgentPath} {
			require.Contains(t, files, name)
			paths[name] = true
		}
		require.Equal(t, r.Reply, digestOf(files[r.ReplyPath]))
		require.True(t, json.Valid([]byte(files[r.AgentPath])))
	}
	require.Len(t, ids, 5)
	require.Len(t, paths, 15)
	require.Equal(t, "reply of 0011, redo 0", files["_orchestrator/passes/pass-001/raw-output.txt"],
		"what came first was not overwritten")
	require.Equal(t, "reply of 0011, redo 3", files["_orchestrator/passes/pass-001-redo-3/raw-output.txt"])
	require.Contains(t, files["_orchestrator/passes/pass-001-redo-1/raw-output-FAILED.txt"], "half of 001")
	require.Equal(t, "prompt of 0011, redo 1", files["_orchestrator/passes/pass-001-redo-1/prompt-FAILED.md"])
	require.Contains(t, files["_orchestrator/passes/pass-001-redo-1/agent-FAILED.jsonl"], "num_turns")
	require.Contains(t, files, "_orchestrator/passes/pass-001-redo-1/artifact-backup.html")
	require.Empty(t, check(t, d).Issues)

	same(t, files, look(t, rebuilt(t, s)), "rebuilt")
}

// TestRevertedCallsKeepTheirEvidence: it is found where a revert has set it aside, and missed when it is lost there.
func TestRevertedCallsKeepTheirEvidence(t *testing.T) {
	s := newStory(t)
	s.twoPasses()
	to := s.state
	s.begin(about(3), 1)
	s.fail(about(3), 1)
	s.begin(about(3), 2)
	s.fail(about(3), 2)
	s.begin(about(3), 3)
	s.end(about(3), "ok", 3)
	s.send()
	s.revert(to)
	s.begin(about(3), 1)
	s.fail(about(3), 1)
	s.begin(about(3), 2)
	s.end(about(3), "ok", 2)
	d := written(t, s)
	require.Empty(t, check(t, d).Issues)
	const passes = "_orchestrator/passes/"
	for _, name := range []string{"prompt.md", "raw-output.txt", "artifact-backup.html", "agent.jsonl",
		"prompt-FAILED.md", "raw-output-FAILED.txt", "agent-FAILED.jsonl", "prompt-FAILED-2.md", "raw-output-FAILED-2.txt",
		"agent-FAILED-2.jsonl"} {
		aside := d.Path(passes + "pass-003~1/" + name)
		raw, err := os.ReadFile(aside)
		require.NoError(t, err)
		require.NoError(t, os.Remove(aside))
		require.Equal(t, []rundir.Code{rundir.FileDiffers}, codesOf(check(t, d)), name)
		require.NoError(t, os.WriteFile(aside, raw, 0o600))
	}
	require.Empty(t, check(t, d).Issues)
}

// TestRevertToAFailedAttemptKeepsThePromptAfterIt: the next attempt was asked something else after the revert. The
// prompt of the failed attempt is in its own file, so prompt.md was that of the reverted one.
func TestRevertToAFailedAttemptKeepsThePromptAfterIt(t *testing.T) {
	s := newStory(t)
	s.start()
	s.begin(about(1), 1)
	s.fail(about(1), 1)
	s.send()
	to := s.state
	s.begin(about(1), 2)
	s.end(about(1), "ok", 2)
	s.send()
	s.revert(to)
	s.salt = "edited: "
	s.begin(about(1), 2)
	s.end(about(1), "ok", 2)
	d := written(t, s)
	files := look(t, d)
	require.Equal(t, "edited: prompt of 0011, redo 0", files["_orchestrator/passes/pass-001/prompt.md"])
	require.Equal(t, "prompt of 0011, redo 0", files["_orchestrator/passes/pass-001~1/prompt.md"])
	require.Equal(t, "prompt of 0011, redo 0", files["_orchestrator/passes/pass-001/prompt-FAILED.md"])
	require.Contains(t, files, "_orchestrator/passes/pass-001~1/artifact-backup.html")
	require.Contains(t, files, "_orchestrator/passes/pass-001/artifact-backup.html")
	require.Empty(t, check(t, d).Issues)

	same(t, files, look(t, rebuilt(t, s)), "rebuilt")
}

// TestLateAnswersKeepTheirEvidence: what came after the answer that counts lies beside the pass that met it, and is no
// second answer.
func TestLateAnswersKeepTheirEvidence(t *testing.T) {
	s := newStory(t)
	s.start()
	s.pass(1)
	s.begin(about(2), 1)
	for n := range 2 {
		cost, asked, out := spend(), s.prompt(about(1)), s.blobs.keep("too late "+s.state.TS)
		s.add(run.KindPassAttempt, run.PassAttempt{
			Pass: about(2), Call: s.call(about(1), 1), Category: "superseded", Message: "it came later", Prompt: &asked,
			Output: &out, Envelope: s.envelope(about(1), 1),
			Spend: &cost, Late: n + 1,
		})
	}
	s.fail(about(2), 1)
	s.begin(about(2), 2)
	s.end(about(2), "ok", 2)
	d := written(t, s)
	require.Empty(t, check(t, d).Issues)
	files := look(t, d)
	for _, name := range []string{
		"raw-output-SUPERSEDED-1.txt", "prompt-SUPERSEDED-2.md", "agent-SUPERSEDED-2.jsonl",
		"raw-output-SUPERSEDED-2.txt", "raw-output-FAILED.txt", "raw-output.txt",
	} {
		require.Contains(t, files, "_orchestrator/passes/pass-002/"+name)
	}
	require.Contains(t, files[rundir.TracesFile], s.call(about(1), 1)+"~2")
	require.NoError(t, os.Remove(d.Path("_orchestrator/passes/pass-002/raw-output-SUPERSEDED-2.txt")))
	require.Equal(t, []rundir.Code{rundir.FileDiffers}, codesOf(check(t, d)))
}

// TestDirectoriesOfEarlierReleases have neither envelopes nor prompts of failed attempts, and a row for each pass only.
func TestDirectoriesOfEarlierReleases(t *testing.T) {
	d := inEarlierRelease(t, whole(t))
	require.Empty(t, check(t, d).Issues)
	for name := range look(t, d) {
		require.False(t, strings.HasSuffix(name, "agent.jsonl"), name)
	}
	rows, _, err := rundir.Rows[rundir.TraceRow](d, rundir.TracesFile)
	require.NoError(t, err)
	require.Len(t, rows, 11)

	s := newStory(t)
	s.twoPasses()
	to := s.state
	s.begin(about(4), 1)
	s.fail(about(4), 1)
	s.end(about(4), "output-truncated", 1)
	s.revert(to)
	s.begin(about(4), 1)
	s.end(about(4), "ok", 1)
	s.send()
	d = inEarlierRelease(t, s)
	require.Empty(t, check(t, d).Issues)
	lost := "_orchestrator/passes/pass-004~1/raw-output-FAILED.txt"
	remove(t, d, lost)
	require.Equal(t, []rundir.Code{rundir.FileDiffers}, codesOf(check(t, d)))
}

// inEarlierRelease is a directory of a story that names no envelopes, no prompts of failed attempts, and no row of one.
func inEarlierRelease(t *testing.T, s *story) rundir.Dir {
	t.Helper()
	for i, line := range s.lines {
		e, err := run.ParseEvent([]byte(line))
		require.NoError(t, err)
		var payload map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(e.Payload, &payload))
		delete(payload, "envelope")
		delete(payload, "attempted")
		if e.Kind == run.KindPassAttempt {
			delete(payload, "prompt")
		}
		e.Payload, err = run.Payload(payload)
		require.NoError(t, err)
		s.lines[i], err = e.Line()
		require.NoError(t, err)
	}
	d := claimed(t)
	project(t, d, s, batch(s.lines, 1, len(s.lines)))
	return d
}

// TestVerdictOfAPassIsEvidence: a lost or changed verdict.json is found as the reply would be.
func TestVerdictOfAPassIsEvidence(t *testing.T) {
	s := newStory(t)
	s.start()
	s.begin(about(2), 1)
	end := run.PassEnd{Pass: about(2), Call: s.call(about(2), 1), Outcome: run.CategoryOK, StartedAt: s.state.TS,
		CompletedAt: s.state.TS, Attempts: 1, Spend: spend(), Verdict: "ready",
		Findings: &run.Findings{Digest: s.blobs.keep(`{"ship_ready":true}`).Digest}, Next: &run.Place{Round: 1, Step: 2}}
	s.add(run.KindPassEnd, end)
	d := written(t, s)
	require.Empty(t, check(t, d).Issues)
	name := rundir.VerdictFile(about(2))
	for message, hurt := range map[string]func() error{
		fmt.Sprintf("%s is not what the run recorded: its sha-256 is %.12s, not %.12s", name, digestOf("{}"),
			end.Findings.Digest): func() error { return os.WriteFile(d.Path(name), []byte("{}"), 0o644) },
		name + " is missing": func() error { return os.Remove(d.Path(name)) },
	} {
		require.NoError(t, hurt())
		found := check(t, d).Issues
		require.Len(t, found, 1)
		require.Equal(t, rundir.FileDiffers, found[0].Code)
		require.Equal(t, message, found[0].Message)
	}
}

// TestCallsWithoutEvidence: attempts without an answer that counts, an end without an attempt, and calls of the first
// releases, which had no ids.
func TestCallsWithoutEvidence(t *testing.T) {
	s := newStory(t)
	s.start()
	s.begin(about(1), 1)
	s.add(run.KindPassAttempt, run.PassAttempt{Pass: about(1), Call: about(1).Step, Attempt: 1,
		Category: "claude-p-timeout", Message: "no answer", Judged: true})
	asked := s.prompt(about(1))
	s.add(run.KindPassAttempt, run.PassAttempt{Pass: about(1), Call: "lost", Attempt: 2, Category: "lost",
		Prompt: &asked})
	s.fail(about(1), 3)
	s.fail(about(1), 4)
	s.end(about(1), "ok", 5)
	s.begin(about(2), 1)
	s.change = func(end *run.PassEnd) {
		end.Attempted, end.Tools = false, &run.ToolUses{Count: 2, First: []run.ToolUse{{Name: "Read"}, {Name: "Read"}}}
	}
	s.end(about(2), "output-empty", 1)
	s.begin(about(3), 1)
	s.end(about(3), "ok", 1)
	s.change = func(end *run.PassEnd) { end.Call = "" }
	for _, i := range []int{4, 5} {
		s.begin(about(i), 1)
		s.end(about(i), "ok", 1)
	}
	d := written(t, s)
	require.Empty(t, check(t, d).Issues)

	const second = "_orchestrator/passes/pass-001/raw-output-FAILED-2.txt"
	text := look(t, d)[second]
	remove(t, d, second)
	found := check(t, d).Issues
	require.Len(t, found, 1)
	require.Equal(t, second+" is missing", found[0].Message)
	write(t, d, second, text)

	row := regexp.MustCompile(`(?m)^.*"call":"` + regexp.QuoteMeta(s.call(about(2), 1)) + `".*"outcome".*\n`)
	edited(rundir.TracesFile, func(rows string) string { return row.ReplaceAllString(rows, "") })(t, d)
	require.Equal(t, []rundir.Code{rundir.FileDiffers}, codesOf(check(t, d)))
}

// TestCheckpointWithoutArtifact has the notes and the state.
func TestCheckpointWithoutArtifact(t *testing.T) {
	s := newStory(t)
	s.worksOn("")
	s.turn(1, "ok", "tree 1")
	s.checkpoint("cp-S1", 1)
	d := written(t, s)
	require.Empty(t, check(t, d).Issues)
	write(t, d, rundir.CheckpointDir("cp-S1")+"/"+rundir.StateSnapshot, "{}")
	require.Equal(t, []rundir.Code{rundir.FileDiffers}, codesOf(check(t, d)))
}
