package rundir_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestNamesOfEvidence: the names of files are a promise to programs that read a run directory.
func TestNamesOfEvidence(t *testing.T) {
	numbered := run.Pass{Step: "001", Number: 7, Role: "writer"}
	redone := numbered
	redone.Redo = 2
	placed := run.Pass{Step: "audit", Dir: "audit/cycle-3", Round: 3, Role: "auditor", Member: "b", Gives: "report"}
	step := run.Pass{Step: "build/fix", Round: 2, Role: "coder", Gives: "artifact"}
	weaver := run.Pass{Step: "audit", Dir: "audit/cycle-3", Redo: 1, Role: "weaver", Gives: "report"}
	shots := run.Screenshots{Dir: "screenshots/cycle-1", Redo: 1}
	for want, got := range map[string]string{
		"passes/pass-007/prompt.md":                          rundir.PromptFile(numbered),
		"passes/pass-007/agent.jsonl":                        rundir.EnvelopeFile(numbered),
		"passes/pass-007/raw-output.txt":                     rundir.ReplyFile(numbered),
		"passes/pass-007/findings.json":                      rundir.FoundFile(numbered),
		"passes/pass-007/verdict.json":                       rundir.VerdictFile(numbered),
		"passes/pass-007/raw-output-FAILED.txt":              rundir.FailedFile(numbered, 1),
		"passes/pass-007/raw-output-FAILED-2.txt":            rundir.FailedFile(numbered, 2),
		"passes/pass-007/raw-output-SUPERSEDED-3.txt":        rundir.FailedFile(numbered, -3),
		"passes/pass-007/prompt-FAILED-2.md":                 rundir.FailedPrompt(numbered, 2),
		"passes/pass-007/agent-FAILED.jsonl":                 rundir.FailedEnvelope(numbered, 1),
		"passes/pass-007/artifact-backup.html":               rundir.BackupFile(numbered, "out/page.html"),
		"passes/pass-007-redo-2/prompt.md":                   rundir.PromptFile(redone),
		"audit/cycle-3/b-prompt.md":                          rundir.PromptFile(placed),
		"audit/cycle-3/b-report.md":                          rundir.ReplyFile(placed),
		"audit/cycle-3/b-output-FAILED.txt":                  rundir.FailedFile(placed, 1),
		"audit/cycle-3-redo-1/weaver-synthesis.md":           rundir.ReplyFile(weaver),
		"steps/build-fix-round-2/coder-output.txt":           rundir.ReplyFile(step),
		"steps/build-fix-round-2/artifact-before-coder.html": rundir.BackupFile(step, "page.html"),
		"screenshots/cycle-1-redo-1":                         rundir.ShotsDir(shots),
		"edits/before-9.html":                                rundir.BeforeEdit(9, "page.html"),
		"amended-4":                                          rundir.AmendedDir(4),
		"amended-4/plan.json":                                rundir.InForceFile(4, rundir.PlanFile),
		"plan.json":                                          rundir.InForceFile(0, rundir.PlanFile),
		"checkpoints/c":                                      rundir.CheckpointDir("c"),
		"n.md":                                               rundir.NoteFile("n.md"),
	} {
		require.Equal(t, "_orchestrator/"+want, got)
	}
	of := run.RunStart{Artifact: &run.ArtifactRef{File: "out.html"}}
	for want, got := range map[string]string{
		"snapshots/turn-3":               rundir.SnapshotDir(3),
		"snapshots/turn-3/tree":          rundir.SnapshotTree(3),
		"snapshots/turn-3/manifest.json": rundir.SnapshotManifest(3),
		"_orchestrator/x":                rundir.NoteFile("a/../x"),
		"b":                              rundir.Member(placed),
		"coder":                          rundir.Member(step),
		"":                               rundir.Redone(0),
		"-redo-1":                        rundir.Redone(1),
		"out.html":                       rundir.ArtifactFile(of),
		"c~2":                            rundir.AttemptCall(run.PassAttempt{Call: "c", Late: 2}),
		"c":                              rundir.AttemptCall(run.PassAttempt{Call: "c"}),
	} {
		require.Equal(t, want, got)
	}
	require.Empty(t, rundir.ArtifactFile(run.RunStart{}))
	require.Equal(t, 4, rundir.AttemptNumber(run.PassAttempt{}, 3))
	require.Equal(t, -2, rundir.AttemptNumber(run.PassAttempt{Late: 2}, 3))
	require.Regexp(t, `^phase_handoff_decisions/plan_round_1_[0-9a-f]{10}\.json$`, rundir.DecisionFile("plan:round:1"))
	long := rundir.DecisionFile(fmt.Sprintf("%0200d", 1))
	require.Len(t, long, len("phase_handoff_decisions/")+80+len("_0123456789.json"))
	require.NotEqual(t, rundir.DecisionFile("a:b"), rundir.DecisionFile("a_b"))
}
