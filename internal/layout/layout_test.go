package layout_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
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
		"passes/pass-007/prompt.md":                          layout.PromptFile(numbered),
		"passes/pass-007/agent.jsonl":                        layout.EnvelopeFile(numbered),
		"passes/pass-007/raw-output.txt":                     layout.ReplyFile(numbered),
		"passes/pass-007/findings.json":                      layout.FoundFile(numbered),
		"passes/pass-007/verdict.json":                       layout.VerdictFile(numbered),
		"passes/pass-007/raw-output-FAILED.txt":              layout.FailedFile(numbered, 1),
		"passes/pass-007/raw-output-FAILED-2.txt":            layout.FailedFile(numbered, 2),
		"passes/pass-007/raw-output-SUPERSEDED-3.txt":        layout.FailedFile(numbered, -3),
		"passes/pass-007/prompt-FAILED-2.md":                 layout.FailedPrompt(numbered, 2),
		"passes/pass-007/agent-FAILED.jsonl":                 layout.FailedEnvelope(numbered, 1),
		"passes/pass-007/artifact-backup.html":               layout.BackupFile(numbered, "out/page.html"),
		"passes/pass-007-redo-2/prompt.md":                   layout.PromptFile(redone),
		"audit/cycle-3/b-prompt.md":                          layout.PromptFile(placed),
		"audit/cycle-3/b-report.md":                          layout.ReplyFile(placed),
		"audit/cycle-3/b-output-FAILED.txt":                  layout.FailedFile(placed, 1),
		"audit/cycle-3-redo-1/weaver-synthesis.md":           layout.ReplyFile(weaver),
		"steps/build-fix-round-2/coder-output.txt":           layout.ReplyFile(step),
		"steps/build-fix-round-2/artifact-before-coder.html": layout.BackupFile(step, "page.html"),
		"screenshots/cycle-1-redo-1":                         layout.ShotsDir(shots),
		"edits/before-9.html":                                layout.BeforeEdit(9, "page.html"),
		"amended-4":                                          layout.AmendedDir(4),
		"amended-4/plan.json":                                layout.InForce(4, layout.PlanFile),
		"plan.json":                                          layout.InForce(0, layout.PlanFile),
		"checkpoints/c":                                      layout.CheckpointDir("c"),
		"n.md":                                               layout.NoteFile("n.md"),
	} {
		require.Equal(t, "_orchestrator/"+want, got)
	}
	of := run.RunStart{Artifact: &run.ArtifactRef{File: "out.html"}}
	for want, got := range map[string]string{
		"snapshots/turn-3":               layout.SnapshotDir(3),
		"snapshots/turn-3/tree":          layout.SnapshotTree(3),
		"snapshots/turn-3/manifest.json": layout.SnapshotManifest(3),
		"_orchestrator/x":                layout.NoteFile("a/../x"),
		"b":                              layout.Member(placed),
		"coder":                          layout.Member(step),
		"":                               layout.Redone(0),
		"-redo-1":                        layout.Redone(1),
		"out.html":                       layout.ArtifactFile(of),
		"c~2":                            layout.AttemptCall(run.PassAttempt{Call: "c", Late: 2}),
		"c":                              layout.AttemptCall(run.PassAttempt{Call: "c"}),
	} {
		require.Equal(t, want, got)
	}
	require.Empty(t, layout.ArtifactFile(run.RunStart{}))
	require.Equal(t, 4, layout.AttemptNumber(run.PassAttempt{}, 3))
	require.Equal(t, -2, layout.AttemptNumber(run.PassAttempt{Late: 2}, 3))
	require.Regexp(t, `^phase_handoff_decisions/plan_round_1_[0-9a-f]{10}\.json$`, layout.DecisionFile("plan:round:1"))
	long := layout.DecisionFile(fmt.Sprintf("%0200d", 1))
	require.Len(t, long, len("phase_handoff_decisions/")+80+len("_0123456789.json"))
	require.NotEqual(t, layout.DecisionFile("a:b"), layout.DecisionFile("a_b"))
}
