package rundir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestRowsOfAPass compares every row that a builder with a failed attempt adds to the logs.
func TestRowsOfAPass(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.begin(builder(1), "seed")
	failed := attempt(builder(1), run.CategoryOutputEmpty, "nothing")
	cost := spentCalls(2)
	cost.Estimated, cost.Known, cost.Covers = true, run.CostAtLeast, 3
	failed.Spend, failed.Prompt, failed.Output = &cost, &run.Blob{Digest: "p"}, &run.Blob{Digest: "o"}
	failed.Envelope, failed.DurationMS, failed.Call = &run.Blob{Digest: "e"}, 55, "call-1"
	failed.Tools = &run.ToolUses{Count: 1, First: []run.ToolUse{{Name: "Read", Input: "a", Digest: "i", State: "ok"}}}
	j.add(run.KindPassAttempt, failed)
	end := endedPass(builder(1), 1)
	end.Attempts, end.Call, end.Envelope, end.Joined = 2, "call-2", &run.Blob{Digest: "f"}, true
	end.Artifact, end.Modified = &run.Blob{Digest: "page-1", Size: 99, Chars: 90}, true
	end.Notes = []run.Added{{Name: "conviction", File: "one.md"}}
	end.Tools = &run.ToolUses{Count: 1, First: []run.ToolUse{{Name: "Bash", Digest: "j", State: "failed"}}}
	j.add(run.KindPassEnd, end)
	j.add(run.KindArtifactUpdated, run.ArtifactUpdated{Step: "001", Call: "call-2", Artifact: *end.Artifact})

	j.logged(rundir.CostLog,
		`{"ts":"2026-05-01T10:00:04.000Z","pass":1,"role":"builder","subset":"S1","model":"opus","inputTokens":2000,
		"outputTokens":400,"cacheRead":60,"cacheWrite":8,"costUsd":0.5,"cumulativeCostUsd":0.5,"estimated":true,
		"costKnown":"at_least","coversCalls":3,"seq":4}`,
		`{"ts":"2026-05-01T10:00:05.000Z","pass":1,"role":"builder","subset":"S1","model":"opus","inputTokens":1000,
		"outputTokens":200,"cacheRead":30,"cacheWrite":4,"costUsd":0.25,"cumulativeCostUsd":0.75,"seq":5}`)
	j.logged(rundir.PassesLog,
		`{"pass":1,"subset":"S1","subsetPass":11,"rotation":"B","role":"builder","durationMs":7001,"inputTokens":3000,
		"outputTokens":600,"costUsd":0.75,"validationPassed":true,"retries":1,"conviction":true,"discovery":false,
		"artifactSizeChars":90,"ts":"2026-05-01T10:00:05.000Z","seq":5}`)
	j.logged(rundir.QualityLog,
		`{"ts":"2026-05-01T10:00:05.000Z","pass":1,"type":"validation","result":"pass","checks":1,"warnings":0,
		"warningDetails":[],"seq":5}`)
	const dir = "_orchestrator/passes/pass-001/"
	j.logged(rundir.TracesFile,
		`{"seq":4,"ts":"2026-05-01T10:00:04.000Z","call":"call-1","turn":1,"step":"001","role":"builder","prompt_path":
		"`+dir+`prompt-FAILED.md","reply_path":"`+dir+`raw-output-FAILED.txt","agent_path":"`+dir+`agent-FAILED.jsonl",
		"reply":"o","outcome":"output-empty","duration_ms":55}`,
		`{"seq":4,"ts":"2026-05-01T10:00:04.000Z","call":"call-1","turn":1,"step":"001","role":"builder","tool":"Read",
		"input":"a","input_digest":"i","state":"ok"}`,
		`{"seq":5,"ts":"2026-05-01T10:00:05.000Z","call":"call-2","turn":1,"step":"001","role":"builder","prompt_path":
		"`+dir+`prompt.md","reply_path":"`+dir+`raw-output.txt","agent_path":"`+dir+`agent.jsonl","reply":"reply",
		"outcome":"ok","duration_ms":7001,"joined":true}`,
		`{"seq":5,"ts":"2026-05-01T10:00:05.000Z","call":"call-2","turn":1,"step":"001","role":"builder","tool":"Bash",
		"input_digest":"j","state":"failed"}`)
	j.logged(rundir.ProvenanceFile,
		`{"seq":6,"ts":"2026-05-01T10:00:06.000Z","turn":1,"step":"001","call":"call-2","path":"page.html",
		"hash_before":"seed","hash_after":"page-1"}`)
}

// TestQualityRows are those of checks, of counts, of an unchanged artifact and of scores.
func TestQualityRows(t *testing.T) {
	j := newJournal(t)
	j.start()
	end := endedPass(builder(1), 1)
	end.Validation = run.Validation{Checks: []run.Check{{Name: "a"}, {Name: "b"}}, Warnings: []string{"w1", "w2", "w3"}}
	end.Artifact = &run.Blob{Digest: "seed"}
	end.Tally = []run.Count{{Name: "claims", Count: pointer(4)}, {Name: "gaps"}}
	j.add(run.KindPassEnd, end)
	j.add(run.KindPassEnd, endedPass(inCycle(1, "", "weaver", "report"), 1)) // without a number
	j.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "score", Round: 2, Score: pointer(3.5), Auditors: 4,
		Threshold: pointer(3.0), Met: true})
	one := endedPass(verifier(2), 2)
	one.Tally = []run.Count{{Name: "gaps", Count: pointer(0)}}
	j.add(run.KindPassEnd, one)
	j.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "score", Round: 3, Why: "no number", Threshold: pointer(3.0)})
	j.logged(rundir.QualityLog,
		`{"ts":"2026-05-01T10:00:03.000Z","pass":1,"type":"validation","result":"fail","checks":2,"warnings":3,
		"warningDetails":["w1","w2","w3"],"seq":3}`,
		`{"ts":"2026-05-01T10:00:03.000Z","pass":1,"type":"verifier-depth","claims":4,"gaps":null,"seq":3}`,
		`{"ts":"2026-05-01T10:00:03.000Z","pass":1,"type":"no-modification","subset":"S1","rotation":"B","seq":3}`,
		`{"ts":"2026-05-01T10:00:05.000Z","paCycle":2,"type":"pa-score","score":3.5,"threshold":3,"auditorCount":4,
		"metThreshold":true,"seq":5}`,
		`{"ts":"2026-05-01T10:00:06.000Z","pass":2,"type":"validation","result":"pass","checks":1,"warnings":0,
		"warningDetails":[],"seq":6}`,
		`{"ts":"2026-05-01T10:00:06.000Z","pass":2,"type":"verifier-depth","gaps":0,"seq":6}`,
		`{"ts":"2026-05-01T10:00:07.000Z","paCycle":3,"type":"pa-score","score":null,"threshold":3,"auditorCount":0,
		"why":"no number","seq":7}`)
	passes := j.rows(rundir.PassesLog)
	require.Len(t, passes, 2)
	for _, row := range passes {
		require.InDelta(t, 0, row["artifactSizeChars"], 0)
	}
}

// TestCostRowsOfACycle have the number of the cycle in place of that of a pass.
func TestCostRowsOfACycle(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.openCycle(2)
	j.add(run.KindPassEnd, endedPass(inCycle(2, "auditor-A", "auditor", "report"), 1))
	j.add(run.KindPassAttempt, attempt(inCycle(2, "", "weaver", "report"), run.CategoryLost, "")) // it cost nothing
	j.logged(rundir.CostLog,
		`{"ts":"2026-05-01T10:00:04.000Z","paCycle":2,"role":"auditor","model":"opus","inputTokens":1000,
		"outputTokens":200,"cacheRead":30,"cacheWrite":4,"costUsd":0.25,"cumulativeCostUsd":0.25,"seq":4}`)
}

// TestTracesOfAttempts number the failed outputs of each call, and name those that came too late.
func TestTracesOfAttempts(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.openCycle(1)
	a := attempt(inCycle(1, "", "weaver", "report"), run.CategoryOutputEmpty, "m")
	a.Prompt, a.Output, a.DurationMS = &run.Blob{Digest: "p"}, &run.Blob{Digest: "o"}, 5
	j.add(run.KindPassAttempt, a)
	j.add(run.KindPassAttempt, a)
	a.Prompt = nil
	j.add(run.KindPassAttempt, a) // nothing was asked
	end := endedPass(inCycle(1, "", "weaver", "report"), 1)
	end.Attempted, end.Outcome = true, run.CategoryOutputEmpty
	j.add(run.KindPassEnd, end) // its attempt has the row
	late := attempt(builder(1), run.CategorySuperseded, "m")
	late.Prompt, late.Output, late.Late = &run.Blob{Digest: "p"}, &run.Blob{Digest: "o"}, 2
	j.add(run.KindPassAttempt, late)
	none := endedPass(builder(1), 1)
	none.Reply, none.Reused = nil, true
	j.add(run.KindPassEnd, none)
	const dir = "_orchestrator/screenshots/cycle-1/weaver-"
	j.logged(rundir.TracesFile,
		`{"seq":4,"ts":"2026-05-01T10:00:04.000Z","call":"call","turn":0,"step":"weaver","role":"weaver","prompt_path":
		"`+dir+`prompt-FAILED.md","reply_path":"`+dir+`output-FAILED.txt","reply":"o","outcome":"output-empty",
		"duration_ms":5}`,
		`{"seq":5,"ts":"2026-05-01T10:00:05.000Z","call":"call","turn":0,"step":"weaver","role":"weaver","prompt_path":
		"`+dir+`prompt-FAILED-2.md","reply_path":"`+dir+`output-FAILED-2.txt","reply":"o","outcome":"output-empty",
		"duration_ms":5}`,
		`{"seq":8,"ts":"2026-05-01T10:00:08.000Z","call":"call~2","turn":0,"step":"001","role":"builder","prompt_path":
		"_orchestrator/passes/pass-001/prompt-SUPERSEDED-2.md","reply_path":
		"_orchestrator/passes/pass-001/raw-output-SUPERSEDED-2.txt","reply":"o","outcome":"superseded","duration_ms":0}`,
		`{"seq":9,"ts":"2026-05-01T10:00:09.000Z","call":"call","turn":1,"step":"001","role":"builder","prompt_path":
		"_orchestrator/passes/pass-001/prompt.md","outcome":"ok","duration_ms":7001,"reused":true}`)
}

// TestTracesOfReports have the names that reports have: that of the judge, and those of members.
func TestTracesOfReports(t *testing.T) {
	start := corpus()
	start.Wording = run.WordingStages
	j := newJournal(t)
	j.add(run.KindRunStart, start)
	j.phase = "harden"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "harden", Title: "Harden", Round: 1})
	for _, p := range []run.Pass{inCycle(1, "auditor-A", "auditor", "report"), inCycle(1, "", "weaver", "report"),
		inCycle(1, "", "refine", "artifact")} {
		end := endedPass(p, 1)
		end.Outcome = run.CategoryAgentExit
		if p.Role == "weaver" {
			end.Envelope = &run.Blob{Digest: "e"}
		}
		j.add(run.KindPassEnd, end)
	}
	const dir = "_orchestrator/screenshots/cycle-1/"
	rows := j.rows(rundir.TracesFile)
	require.Len(t, rows, 3)
	for i, want := range []struct{ role, reply string }{{"auditor-A", "auditor-A-report.md"},
		{"weaver", "weaver-synthesis.md"}, {"refine", "refine-output.txt"}} {
		require.Equal(t, want.role, rows[i]["role"])
		require.Equal(t, dir+want.reply, rows[i]["reply_path"])
		require.Equal(t, "agent-exit-nonzero", rows[i]["outcome"])
	}
	require.Equal(t, dir+"weaver-agent.jsonl", j.rows(rundir.TracesFile)[1]["agent_path"])
	a := attempt(inCycle(1, "", "weaver", "report"), run.CategoryAgentTimeout, "m")
	a.Prompt = &run.Blob{Digest: "p"}
	j.add(run.KindPassAttempt, a)
	require.Equal(t, "agent-timeout", j.rows(rundir.TracesFile)[3]["outcome"])
}

// TestProvenanceOfATree has a row for each file. A long list is in the store.
func TestProvenanceOfATree(t *testing.T) {
	j := newJournal(t)
	j.start()
	changes := run.Pass{Step: "fix", Role: "worker", Gives: "changes", Round: 1}
	j.add(run.KindPassEnd, endedPass(changes, 1))
	j.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "fix", Call: "call-1", Tree: run.Blob{Digest: "t"},
		Files: []run.FileChange{{Path: "new.go", Old: "old.go", Kind: "renamed", Before: "a", After: "b"}}})
	j.add(run.KindPassEnd, endedPass(changes, 2))
	j.lists["list"] = `[{"path":"x.go","kind":"added","hash_after":"c"},
		{"path":"y.go","kind":"removed","hash_before":"d"}]`
	j.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "fix", Call: "call-2", Tree: run.Blob{Digest: "u"},
		Files: []run.FileChange{{Path: "x.go", Kind: "added", After: "c"}}, List: &run.Blob{Digest: "list"}})
	j.logged(rundir.ProvenanceFile,
		`{"seq":4,"ts":"2026-05-01T10:00:04.000Z","turn":1,"step":"fix","call":"call-1","path":"new.go",
		"old_path":"old.go","kind":"renamed","hash_before":"a","hash_after":"b"}`,
		`{"seq":6,"ts":"2026-05-01T10:00:06.000Z","turn":2,"step":"fix","call":"call-2","path":"x.go","kind":"added",
		"hash_before":"","hash_after":"c"}`,
		`{"seq":6,"ts":"2026-05-01T10:00:06.000Z","turn":2,"step":"fix","call":"call-2","path":"y.go","kind":"removed",
		"hash_before":"d","hash_after":""}`)

	j.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "fix", List: &run.Blob{Digest: "lost"}})
	require.EqualError(t, j.err, "list of changed files lost: no such blob")
	j.err, j.lists["torn"] = nil, "["
	j.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "fix", List: &run.Blob{Digest: "torn"}})
	require.ErrorContains(t, j.err, "list of changed files torn: ")
}

// TestArtifactWithoutASeed has no digest before it.
func TestArtifactWithoutASeed(t *testing.T) {
	start := corpus()
	start.Artifact = nil
	j := newJournal(t)
	j.add(run.KindRunStart, start)
	require.Empty(t, j.state.CurrentArtifactPath)
	require.Empty(t, j.state.CurrentArtifactHash)
	j.add(run.KindArtifactUpdated, run.ArtifactUpdated{Step: "001", Artifact: run.Blob{Digest: "page"}})
	j.logged(rundir.ProvenanceFile, `{"seq":2,"ts":"2026-05-01T10:00:02.000Z","turn":0,"step":"001","call":"","path":"",
		"hash_before":"","hash_after":"page"}`)
}

// TestReasonOfFreshStart is what was found in the directory, whatever else the start warns of.
func TestReasonOfFreshStart(t *testing.T) {
	for want, found := range map[string][]string{
		"no run was here":                     {"calls run without a sandbox on this host"},
		"Archived old state. Starting fresh.": {"no price of model x", "Archived old state. Starting fresh.", "It is in old"},
		"Config changed (old: a, new: b). Archived old state. Starting fresh.": {
			"Config changed (old: a, new: b). Archived old state. Starting fresh.", "It is in old"},
	} {
		start := corpus()
		start.Warnings = found
		j := newJournal(t)
		j.add(run.KindRunStart, start)
		j.logged(rundir.DecisionsLog,
			`{"ts":"2026-05-01T10:00:01.000Z","decision":"fresh-start","reason":"`+want+`","seq":1}`)
		for _, w := range found {
			require.Contains(t, j.text(), "[WARN]  "+w+"\n")
		}
	}
}

// TestPassesBeforeACrashAreSkipped: the decisions after a crash name the pass that is repeated, and those that are not.
func TestPassesBeforeACrashAreSkipped(t *testing.T) {
	j := newJournal(t)
	j.start()
	for n := 1; n <= 2; n++ {
		j.begin(builder(n), "seed")
		j.add(run.KindPassEnd, run.PassEnd{Pass: builder(n), Outcome: run.CategoryOK})
	}
	j.begin(builder(3), "seed")
	j.logs[rundir.DecisionsLog] = ""
	j.add(run.KindPassAttempt, attempt(builder(3), run.CategoryLost, "its worker ended"))
	j.logged(rundir.DecisionsLog,
		`{"ts":"2026-05-01T10:00:08.000Z","decision":"resume","reason":"its worker ended","passNumber":3,"seq":8}`,
		`{"ts":"2026-05-01T10:00:08.000Z","decision":"skip-pass","reason":"pass already completed","passNumber":1,"seq":8}`,
		`{"ts":"2026-05-01T10:00:08.000Z","decision":"skip-pass","reason":"pass already completed","passNumber":2,"seq":8}`)
}

// TestLinesForPeople have a time, a level in eight columns, and a text in one line.
func TestLinesForPeople(t *testing.T) {
	start := corpus()
	start.Warnings = []string{"two\nlines"}
	j := newJournal(t)
	j.add(run.KindRunStart, start)
	require.Equal(t, "[2026-05-01T10:00:01.000Z] [INFO]  Pipeline started. Run ID: run-1\n"+
		"[2026-05-01T10:00:01.000Z] [INFO]  Config hash: 0123456789abcdef\n"+
		"[2026-05-01T10:00:01.000Z] [WARN]  two\\nlines\n", j.text())
	j.logged(rundir.DecisionsLog,
		`{"ts":"2026-05-01T10:00:01.000Z","decision":"fresh-start","reason":"no run was here","seq":1}`)
	j.phase = "harden"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "harden", Title: "Harden", Round: 2, Dir: "screenshots/cycle-2"})
	require.Contains(t, j.text(), "STAGE Harden, cycle 2/6\n", "of the maximum of the run")
	j.begin(inCycle(2, "", "refine", "artifact"), "seed")
	require.Contains(t, j.text(),
		"Artifact backed up to _orchestrator/screenshots/cycle-2/artifact-before-refine.html\n")
	j.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "score", Score: pointer(2.0)})
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	require.Contains(t, j.text(), "Score threshold not met (2.0 of 3.5)\n")
}

// TestGrowingFiles are written in this order: a reader of the costs of a pass finds its lines for people.
func TestGrowingFiles(t *testing.T) {
	const logs = "_orchestrator/logs/"
	require.Equal(t, []string{logs + "orchestrator.log", logs + "decisions.jsonl", logs + "errors.jsonl",
		logs + "cost.jsonl", logs + "quality.jsonl", logs + "passes.jsonl", "traces.jsonl", "provenance.jsonl"},
		rundir.Growing())
}
