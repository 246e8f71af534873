package fsck_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite testdata/injuries.md and findings.txt")

// injury is one row: how a directory is hurt, what a check says beside what it said before, what a repair does, what is
// left then.
type injury struct {
	how    string
	body   string
	hurt   func(t *testing.T, d projector.Dir)
	codes  []fsck.Code // all of them
	repair string      // fields that change; "operator": somebody must decide; "": nothing
	after  []fsck.Code // after the repair was applied
}

func injuries() []injury {
	return slices.Concat(ownInjuries(), rowInjuries(), statusInjuries(), moreInjuries(), foreignInjuries())
}

func ownInjuries() []injury {
	type codes = []fsck.Code
	key := func(name, value string) func(*testing.T, projector.Dir) {
		return func(t *testing.T, d projector.Dir) { setKey(t, d, name, value) }
	}
	both := func(a, b func(*testing.T, projector.Dir)) func(*testing.T, projector.Dir) {
		return func(t *testing.T, d projector.Dir) { a(t, d); b(t, d) }
	}
	file := func(name, text string) func(*testing.T, projector.Dir) {
		return func(t *testing.T, d projector.Dir) {
			require.NoError(t, os.MkdirAll(filepath.Dir(d.Path(name)), 0o755))
			write(t, d, name, text)
		}
	}
	gone := func(name string) func(*testing.T, projector.Dir) {
		return func(t *testing.T, d projector.Dir) { require.NoError(t, os.RemoveAll(d.Path(name))) }
	}
	lines := func(change func([]string) []string) func(*testing.T, projector.Dir) {
		return func(t *testing.T, d projector.Dir) {
			raw, err := os.ReadFile(d.Path(layout.EventsFile))
			require.NoError(t, err)
			write(t, d, layout.EventsFile, strings.Join(change(strings.SplitAfter(string(raw), "\n")), ""))
		}
	}
	halt := file("phase_handoff_decisions/h-1.json",
		`{"run_id":"r","handoff_id":"h-1","phase":"plan","action":"halt","decided_at":"2026-01-02T04:00:00+00:00"}`)
	goOn := file("phase_handoff_decisions/h-1.json",
		`{"handoff_id":"h-1","action":"continue","decided_at":"2026-01-02T04:00:00+00:00"}`)
	open := `{"id":"h-1","phase":"write"}`
	return []injury{
		// meta.json against the events
		{"meta.json is missing", "done", gone(layout.MetaFile), codes{fsck.MetaMissing}, "meta.json", nil},
		{"meta.json is half a file", "paused", file(layout.MetaFile, `{"version":1,"run_`), codes{fsck.MetaUnreadable},
			"meta.json", nil},
		{"meta.json is of another shape", "done", key("events", "7"), codes{fsck.MetaUnreadable}, "meta.json", nil},
		{"meta.json of another program is missing", "reference, done", gone(layout.MetaFile), codes{fsck.MetaMissing},
			"", codes{fsck.MetaMissing}},
		{"meta.json of another program is half a file", "reference, done", file(layout.MetaFile, `{"sta`),
			codes{fsck.MetaUnreadable}, "", codes{fsck.MetaUnreadable}},
		{"a word too many in meta.json's status", "paused", key("status", `"running"`), codes{fsck.StatusMismatch},
			"status", nil},
		{"the end is in the events only", "done", key("status", `"running"`),
			codes{fsck.TerminalEventWithoutTerminalMeta}, "status", nil},
		{"the end is in meta.json only", "paused", key("status", `"done"`),
			codes{fsck.TerminalMetaWithoutTerminalEvent}, "status", nil},
		{"the end is in another program's events only", "reference, done", key("status", `"running"`),
			codes{fsck.TerminalEventWithoutTerminalMeta}, "status", nil},
		{"the same, and a hand-off is left over", "reference, asked twice",
			both(key("status", `"running"`), key("phase_handoff", `{"id":"validate_plan:plan_round:2"}`)),
			codes{fsck.TerminalEventWithoutTerminalMeta}, "status phase_handoff", nil},
		{"the end is in another program's meta.json only", "reference, asking", key("status", `"done"`),
			codes{fsck.TerminalMetaWithoutTerminalEvent, fsck.TerminalWithStaleHandoff,
				fsck.ActiveHandoffWithoutDecision}, "operator",
			codes{fsck.TerminalMetaWithoutTerminalEvent, fsck.TerminalWithStaleHandoff,
				fsck.ActiveHandoffWithoutDecision}},
		{"the state in meta.json was changed", "paused", key("task", `"another"`), codes{fsck.DerivedFileBehind},
			"task", nil},
		{"the interruption is in the events only", "interrupted", both(key("status", `"awaiting_phase_handoff"`), goOn),
			codes{fsck.InterruptedEventWithoutInterruptedMeta, fsck.InterruptedWithActiveHandoff}, "status",
			codes{fsck.InterruptedWithActiveHandoff}},

		// hand-offs
		{"interrupted, and undecided", "interrupted", func(*testing.T, projector.Dir) {},
			codes{fsck.InterruptedWithActiveHandoff, fsck.ActiveHandoffWithoutDecision}, "operator",
			codes{fsck.InterruptedWithActiveHandoff, fsck.ActiveHandoffWithoutDecision}},
		{"done, with a hand-off left over", "done", key("phase_handoff", open),
			codes{fsck.TerminalWithStaleHandoff, fsck.MetaHandoffWithoutEvent, fsck.ActiveHandoffWithoutDecision},
			"phase_handoff", nil},
		{"halted, with a hand-off left over", "halted", key("phase_handoff", open),
			codes{fsck.TerminalWithStaleHandoff}, "phase_handoff", nil},
		{"another program's: done, with a hand-off left over", "reference, asked twice",
			key("phase_handoff", `{"id":"validate_plan:plan_round:2"}`),
			codes{fsck.TerminalWithStaleHandoff}, "phase_handoff", nil},
		{"the hand-off is asked for in the events only", "asking", key("phase_handoff", "null"),
			codes{fsck.AwaitingWithoutActiveHandoff, fsck.HandoffEventWithoutMetaHandoff}, "phase_handoff",
			codes{fsck.ActiveHandoffWithoutDecision}},
		{"the hand-off of a failed run is lost", "failed", key("phase_handoff", "null"),
			codes{fsck.HandoffEventWithoutMetaHandoff}, "phase_handoff",
			codes{fsck.ActiveHandoffWithoutDecision}},
		{"the hand-off was never asked for", "paused", key("phase_handoff", open),
			codes{fsck.MetaHandoffWithoutEvent, fsck.ActiveHandoffWithoutDecision}, "phase_handoff", nil},
		{"another hand-off than the one asked for", "asking", key("phase_handoff", `{"id":"h-0"}`),
			codes{fsck.HandoffEventWithoutMetaHandoff, fsck.MetaHandoffWithoutEvent, fsck.ActiveHandoffWithoutDecision},
			"phase_handoff",
			codes{fsck.ActiveHandoffWithoutDecision}},
		{"a halt was decided, and meta.json waits on", "reference, asking", halt,
			codes{fsck.HaltDecisionWithoutHaltedMeta}, "status halt_reason halted_at phase_handoff", nil},
		{"a halt was decided, and the run has failed", "reference, failed", halt,
			codes{fsck.HaltDecisionWithoutHaltedMeta}, "operator", codes{fsck.HaltDecisionWithoutHaltedMeta}},
		{"a halt was decided, and meta.json has running", "halted", both(key("status", `"running"`), halt),
			codes{fsck.HaltDecisionWithoutHaltedMeta, fsck.TerminalEventWithoutTerminalMeta}, "status", nil},
		{"a halt was decided, and ours has failed", "failed", halt, codes{fsck.HaltDecisionWithoutHaltedMeta},
			"operator", codes{fsck.HaltDecisionWithoutHaltedMeta}},
		{"a decision cannot be read", "reference, asking",
			file("phase_handoff_decisions/h-1.json", `{"handoff_id":"h-`), codes{fsck.ActiveHandoffWithoutDecision}, "",
			codes{fsck.ActiveHandoffWithoutDecision}},
		{"decided, and not acted on yet", "reference, asking", goOn, nil, "", nil},

		// events.jsonl
		{"a byte of a line was changed", "paused",
			lines(func(l []string) []string { l[3] = strings.Replace(l[3], "03:04", "03:05", 1); return l }),
			codes{fsck.ChainMismatch}, "", codes{fsck.ChainMismatch}},
		{"a line is not JSON", "paused", lines(func(l []string) []string {
			l[3] = strings.Replace(l[3], "{", "[",
				1)
			return l
		}),
			codes{fsck.ChainMismatch, fsck.StreamLineUnreadable}, "",
			codes{fsck.ChainMismatch, fsck.StreamLineUnreadable}},
		{"a line is missing", "paused", lines(func(l []string) []string { return slices.Delete(l, 3, 4) }),
			codes{fsck.ChainMismatch, fsck.StreamSeqGap}, "", codes{fsck.ChainMismatch, fsck.StreamSeqGap}},
		{"a line is there twice", "paused", lines(func(l []string) []string { return slices.Insert(l, 3, l[2]) }),
			codes{fsck.ChainMismatch, fsck.StreamSeqDuplicate, fsck.StatusMismatch, fsck.DerivedFileBehind}, "",
			codes{fsck.ChainMismatch, fsck.StreamSeqDuplicate, fsck.StatusMismatch, fsck.DerivedFileBehind}},
		{"the last lines are lost", "done", lines(func(l []string) []string { return l[:len(l)-3] }),
			codes{fsck.ChainMismatch, fsck.TerminalMetaWithoutTerminalEvent}, "",
			codes{fsck.ChainMismatch, fsck.TerminalMetaWithoutTerminalEvent}},
		{"events.jsonl is missing", "paused", gone(layout.EventsFile), codes{fsck.ChainMismatch, fsck.StatusMismatch},
			"", codes{fsck.ChainMismatch, fsck.StatusMismatch}},
		{"a byte of a line was changed that the store has", "stored",
			lines(func(l []string) []string { return changed(l, 3) }),
			codes{fsck.ChainMismatch}, layout.EventsFile, nil},
		{"a line is missing that the store has", "stored", lines(func(l []string) []string { return slices.Delete(l, 3, 4) }),
			codes{fsck.ChainMismatch, fsck.StreamSeqGap}, layout.EventsFile, nil},
		{"the damage that the journal names", "damaged and stored", func(*testing.T, projector.Dir) {},
			codes{fsck.ChainMismatch, fsck.DamageRecorded}, layout.EventsFile, codes{fsck.DamageRecorded}},
		{"another program's: a line is not JSON", "reference, done",
			lines(func(l []string) []string { l[2] = "plan.parsed\n"; return l }),
			codes{fsck.StreamLineUnreadable}, "", codes{fsck.StreamLineUnreadable}},
		{"another program's: a line is missing", "reference, done",
			lines(func(l []string) []string { return slices.Delete(l, 2, 3) }),
			codes{fsck.StreamSeqGap}, "", codes{fsck.StreamSeqGap}},
		{"half a line at the end", "paused", lines(func(l []string) []string { return append(l, `{"seq":99,"ts"`) }),
			codes{fsck.StreamTornTail}, "events.jsonl", nil},
		{"half a line at the end of another program's", "reference, done",
			lines(func(l []string) []string { return append(l, `{"seq":99`) }),
			codes{fsck.StreamTornTail}, "", codes{fsck.StreamTornTail}},

		// what follows from the events
		{"lines that meta.json has not seen", "done", older(layout.MetaFile), codes{fsck.DerivedFileBehind},
			"meta.json _orchestrator/state.json", nil},
		{"state.json is missing", "paused", gone(layout.StateFile), codes{fsck.DerivedFileBehind},
			"_orchestrator/state.json", nil},
		{"state.json is half a file", "done", file(layout.StateFile, `{"schemaVersion":3`), codes{fsck.DerivedFileBehind},
			"_orchestrator/state.json", nil},
		{"state.json is older", "done", older(layout.StateFile), codes{fsck.DerivedFileBehind},
			"_orchestrator/state.json", nil},
		{"a log is shorter", "done", file(layout.CostLog, ""), codes{fsck.DerivedFileBehind}, layout.CostLog, nil},
		{"the artifact is missing", "done", gone("artifact.html"), codes{fsck.ArtifactHashMismatch}, "artifact.html", nil},
		{"the artifact was edited", "paused", file("artifact.html", "<html>mine</html>"), codes{fsck.ArtifactHashMismatch},
			"", codes{fsck.ArtifactHashMismatch}},
		{"the artifact was edited, and state.json is missing", "paused",
			both(file("artifact.html", "<html>mine</html>"), gone(layout.StateFile)),
			codes{fsck.DerivedFileBehind, fsck.ArtifactHashMismatch}, "_orchestrator/state.json",
			codes{fsck.ArtifactHashMismatch}},
		{"a checkpoint is missing", "done", gone("_orchestrator/checkpoints/cp-S1"), codes{fsck.CheckpointDamaged},
			"_orchestrator/checkpoints/cp-S1", nil},
		{"a checkpoint's artifact was changed", "done", file("_orchestrator/checkpoints/cp-S1/artifact.html", "x"),
			codes{fsck.CheckpointDamaged}, "_orchestrator/checkpoints/cp-S1", nil},
		{"a checkpoint's state was changed", "done", file("_orchestrator/checkpoints/cp-S1/state-snapshot.json", "{}"),
			codes{fsck.CheckpointDamaged}, "_orchestrator/checkpoints/cp-S1", nil},
		{"the manifest of a turn is missing", "with turns", gone("snapshots/turn-1"), codes{fsck.SnapshotDamaged},
			"snapshots/turn-1/manifest.json", nil},
		{"the manifest of a turn is of another tree", "with turns",
			file("snapshots/turn-2/manifest.json", `{"version":1,"tree":"x","entries":[]}`),
			codes{fsck.SnapshotDamaged}, "snapshots/turn-2/manifest.json", nil},
		{"the manifest of a turn is half a file", "with turns", cutInHalf("snapshots/turn-2/manifest.json"),
			codes{fsck.SnapshotDamaged}, "snapshots/turn-2/manifest.json", nil},
		{"a reply is missing", "done", gone("_orchestrator/passes/pass-002/raw-output.txt"), codes{fsck.EvidenceDamaged},
			"_orchestrator/passes/pass-002/raw-output.txt", nil},
		{"a prompt was changed", "done", file("_orchestrator/passes/pass-002/prompt.md", "x"), codes{fsck.EvidenceDamaged},
			"_orchestrator/passes/pass-002/prompt.md", nil},
		{"what an agent reported is missing", "done", gone("_orchestrator/screenshots/cycle-1/weaver-agent.jsonl"),
			codes{fsck.EvidenceDamaged},
			"_orchestrator/screenshots/cycle-1/weaver-agent.jsonl", nil},
		{"what a failed attempt left is missing", "done", gone("_orchestrator/passes/pass-003/raw-output-FAILED.txt"),
			codes{fsck.EvidenceDamaged},
			"_orchestrator/passes/pass-003/raw-output-FAILED.txt", nil},
		{"two rows of one call", "paused", rowTwice(layout.TracesFile), codes{fsck.CallIDDuplicate, fsck.DerivedFileDamaged},
			layout.TracesFile, nil},
		{"the row of a call is that of another", "paused", rowOfAnother, codes{fsck.CallIDDuplicate, fsck.DerivedFileDamaged,
			fsck.EvidenceDamaged}, layout.TracesFile, nil},
		{"one byte of a log was changed", "done", oneByte(layout.CostLog), codes{fsck.DerivedFileDamaged},
			layout.CostLog, nil},
		{"rows behind those of the run", "paused", rowTwice(layout.CostLog), codes{fsck.DerivedFileDamaged},
			layout.CostLog, nil},
		{"half a row behind those of the run", "paused", func(t *testing.T, d projector.Dir) {
			appendTo(t, d, layout.QualityLog, `{"ts":"2`)
		},
			codes{fsck.LogRowUnreadable}, layout.QualityLog, nil},
		{"one byte of state.json was changed", "done", oneByte(layout.StateFile), codes{fsck.DerivedFileDamaged},
			"_orchestrator/state.json", nil},
		{"the plan was changed", "done", oneByte(layout.PlanFile), codes{fsck.DerivedFileDamaged}, layout.PlanFile, nil},
		{"a key of meta.json outside the events was changed", "done", key("summary", "{}"), codes{fsck.DerivedFileDamaged},
			layout.MetaFile, nil},
		{"one byte of run.json was changed", "done", oneByte(layout.ClaimFile), codes{fsck.ClaimDamaged}, "",
			codes{fsck.ClaimDamaged}},
		{"events.jsonl and meta.json are missing", "done", both(gone(layout.EventsFile), gone(layout.MetaFile)),
			codes{fsck.StreamMissing}, "", codes{fsck.StreamMissing}},
		{"leftovers of a crash", "done", file(layout.MetaFile+".tmp.abc", "{"), nil, "", nil},
	}
}

// rowTwice writes the first row of a file once more behind the last.
func rowTwice(name string) func(*testing.T, projector.Dir) {
	return func(t *testing.T, d projector.Dir) {
		raw, err := os.ReadFile(d.Path(name))
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(raw), "\n")
		write(t, d, name, string(raw)+first+"\n")
	}
}

// oneByte changes one letter or digit of a file.
func oneByte(name string) func(*testing.T, projector.Dir) {
	return func(t *testing.T, d projector.Dir) {
		raw, err := os.ReadFile(d.Path(name))
		require.NoError(t, err)
		write(t, d, name, string(changedByte(raw, 2)))
	}
}

// rowOfAnother gives the second row of traces.jsonl the call of the first.
func rowOfAnother(t *testing.T, d projector.Dir) {
	raw, err := os.ReadFile(d.Path(layout.TracesFile))
	require.NoError(t, err)
	write(t, d, layout.TracesFile, strings.Replace(string(raw), "g0.002.1.", "g0.001.1.", 1))
}

func cutInHalf(name string) func(*testing.T, projector.Dir) {
	return func(t *testing.T, d projector.Dir) {
		raw, err := os.ReadFile(d.Path(name))
		require.NoError(t, err)
		write(t, d, name, string(raw[:len(raw)/2]))
	}
}

// older takes a file back to what it was one batch before the end.
func older(name string) func(*testing.T, projector.Dir) {
	return func(t *testing.T, d projector.Dir) {
		s := whole(t)
		before := projector.At(filepath.Join(t.TempDir(), "before"))
		require.NoError(t, before.Take(claim()))
		project(t, before, s, s.batches[:len(s.batches)-1]...)
		raw, err := os.ReadFile(before.Path(name))
		require.NoError(t, err)
		write(t, d, name, string(raw))
	}
}

func setKey(t *testing.T, d projector.Dir, key, value string) {
	t.Helper()
	raw, err := os.ReadFile(d.Path(layout.MetaFile))
	require.NoError(t, err)
	var meta map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &meta))
	meta[key] = json.RawMessage(value)
	raw, err = json.Marshal(meta)
	require.NoError(t, err)
	write(t, d, layout.MetaFile, string(raw))
}

var noon = time.Date(2026, 1, 3, 12, 0, 0, 0, time.UTC)

func codesOf(r fsck.Report) []fsck.Code {
	var out []fsck.Code
	for _, i := range r.Issues {
		out = append(out, i.Code)
	}
	return slices.Compact(out)
}

func check(t *testing.T, d projector.Dir) fsck.Report {
	t.Helper()
	r, err := fsck.Check(context.Background(), d.Dir, fsck.CheckOptions{})
	require.NoError(t, err)
	return r
}

// TestInjuriesAreNamed hurts a directory of each kind, and looks what a check says, what a repair changes, and what a
// check says then.
func TestInjuriesAreNamed(t *testing.T) {
	ctx := context.Background()
	texts := readFindings(t)
	for _, b := range bodies() {
		master, blobs := b.write(t)
		require.Equal(t, b.codes, codesOf(check(t, master)), "the healthy directory: %s %+v", b.name, check(t, master).Issues)
		for _, r := range injuries() {
			if r.body != b.name {
				continue
			}
			t.Run(b.name+"/"+r.how, func(t *testing.T) {
				t.Parallel()
				d := projector.At(filepath.Join(t.TempDir(), "run"))
				require.NoError(t, os.CopyFS(d.Root, os.DirFS(master.Root)))
				r.hurt(t, d)
				hurt := look(t, d)
				report := check(t, d)
				require.ElementsMatch(t, r.codes, codesOf(report))

				o := fsck.RepairOptions{Blobs: blobs, Now: noon, By: "tests"}
				dry, err := fsck.Repair(ctx, d, o)
				require.NoError(t, err)
				texts.compare(t, b.name+": "+r.how, findings(d, report, dry))
				require.Equal(t, r.repair, planned(dry))
				require.Equal(t, append([]fsck.Code{}, codesOf(report)...), dry.IssueCodes)
				require.False(t, dry.Applied)
				require.Equal(t, hurt, look(t, d), "check and dry run only read")

				o.Apply = true
				done, err := fsck.Repair(ctx, d, o)
				require.NoError(t, err)
				require.Equal(t, dry.Changes, done.Changes)
				require.Equal(t, len(dry.Changes) > 0, done.Applied)
				require.ElementsMatch(t, r.after, codesOf(check(t, d)))
				if done.Applied {
					kept(t, d, hurt, done)
				}
				repaired := look(t, d)
				again, err := fsck.Repair(ctx, d, o)
				require.NoError(t, err)
				require.False(t, again.Applied)
				require.Equal(t, repaired, look(t, d), "a second repair writes nothing")
			})
		}
	}
}

// kept says that what was replaced is in the backup, and that the audit file tells of it.
func kept(t *testing.T, d projector.Dir, hurt map[string]string, done fsck.RepairResult) {
	t.Helper()
	now := look(t, d)
	if old, there := hurt[layout.MetaFile]; there {
		require.Equal(t, old, now[done.BackupPath])
	}
	for name, text := range hurt {
		whole := now[name] == text || strings.HasPrefix(now[name], text)
		folder := filepath.Dir(done.BackupPath) + "/"
		inBackup := slices.Contains([]string{now[folder+filepath.Base(name)], now[folder+name]}, text)
		damaged := strings.HasPrefix(name, "_orchestrator/checkpoints/") ||
			strings.HasPrefix(name, "_orchestrator/passes/") || strings.HasPrefix(name, "snapshots/") ||
			name == layout.EventsFile || name == layout.SpendFile || name == "run.lock" ||
			strings.HasSuffix(name, "/repair.lock")
		require.True(t, whole || inBackup || damaged, "%s is lost", name)
	}
	var audit struct {
		Version int           `json:"version"`
		RunID   string        `json:"run_id"`
		By      string        `json:"by"`
		At      string        `json:"at"`
		Changes []fsck.Change `json:"changes"`
		Codes   []fsck.Code   `json:"issue_codes"`
		Backups []string      `json:"backups"`
	}
	require.NoError(t, json.Unmarshal([]byte(now[done.AuditPath]), &audit))
	require.Equal(t, 1, audit.Version)
	require.Contains(t, []string{"run-1", "run"}, audit.RunID)
	require.Equal(t, "tests", audit.By)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(audit.Backups))), len(audit.Backups), "each once")
	for _, name := range audit.Backups {
		require.True(t, strings.HasPrefix(name, filepath.Dir(done.AuditPath)+"/"))
		require.Contains(t, now, name)
	}
	require.Equal(t, "2026-01-03T12:00:00Z", audit.At)
	require.Equal(t, done.IssueCodes, audit.Codes)
	require.Len(t, audit.Changes, len(done.Changes))
}

// planned is what a repair would do, as a row says it.
func planned(r fsck.RepairResult) string {
	if r.NeedsOperatorDecision {
		return "operator"
	}
	var fields []string
	for _, c := range r.Changes {
		fields = append(fields, c.Field)
	}
	return strings.Join(slices.Compact(fields), " ")
}

// TestInjuriesAreListed keeps testdata/injuries.md in step: go test ./internal/fsck -run TestInjuriesAreListed -update.
func TestInjuriesAreListed(t *testing.T) {
	table := "| injury | directory | findings | repair changes | findings after it |\n|---|---|---|---|---|\n"
	for _, r := range injuries() {
		repair := "nothing"
		switch r.repair {
		case "operator":
			repair = "nothing: an operator must decide"
		case "":
		default:
			repair = "`" + strings.ReplaceAll(r.repair, " ", "`, `") + "`"
		}
		table += "| " + strings.Join([]string{r.how, r.body, list(r.codes), repair, list(r.after)}, " | ") + " |\n"
	}
	const file = "testdata/injuries.md"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(table), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, table, string(have))
}

func list(codes []fsck.Code) string {
	if len(codes) == 0 {
		return "nothing"
	}
	words := make([]string, len(codes))
	for i, c := range codes {
		words[i] = "`" + string(c) + "`"
	}
	return strings.Join(words, ", ")
}

// TestDocsListEveryCode: docs/run-state.md lists each code once, in the order and with the severity that the program
// gives it.
func TestDocsListEveryCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/run-state.md")
	require.NoError(t, err)
	_, section, there := strings.Cut(string(page), "\n## Check and repair\n")
	require.True(t, there)
	var found, known []string
	severity := ""
	row := regexp.MustCompile("^- `([a-z_]+)`: .+$")
	for line := range strings.Lines(section) {
		line = strings.TrimSuffix(line, "\n")
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			severity = map[string]string{"Errors": "error", "Warnings": "warning", "Information": "info"}[heading]
		} else if m := row.FindStringSubmatch(line); m != nil {
			found = append(found, m[1]+" "+severity)
		}
	}
	for _, c := range fsck.Codes() {
		known = append(known, string(c.Code)+" "+string(c.Severity))
		require.NotEmpty(t, c.Hint)
	}
	require.Equal(t, known, found)
}

// TestEveryCodeHasAnInjury: no code without a row that shows it. A live workflow that is away, and damage in the store,
// are not in the directory.
func TestEveryCodeHasAnInjury(t *testing.T) {
	shown := map[fsck.Code]bool{fsck.RunningWithoutLiveWorkflow: true, fsck.StoreDamaged: true} // TestCheckDeep
	for _, r := range injuries() {
		for _, c := range r.codes {
			shown[c] = true
		}
	}
	for _, c := range fsck.Codes() {
		require.True(t, shown[c.Code], "no injury shows %s", c.Code)
	}
}
