package rundir_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/")

// body is a directory to be hurt, as it is written and as it looks to a check before.
type body struct {
	name  string
	write func(t *testing.T) (rundir.Dir, fakeBlobs)
	codes []rundir.Code // of the healthy directory
}

func bodies() []body { return slices.Concat(ownBodies(), foreignBodies()) }

func ownBodies() []body {
	info := []rundir.Code{rundir.ActiveHandoffWithoutDecision}
	return []body{
		{"done", func(t *testing.T) (rundir.Dir, fakeBlobs) { s := whole(t); return written(t, s), s.blobs }, nil},
		{"paused", told(func(s *story) { s.twoPasses(); s.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested}) }), nil},
		{"running", told(func(s *story) { s.twoPasses(); s.begin(about(3), 1) }), nil},
		{"asking", told(func(s *story) { s.asks() }), info},
		{"halted", told(func(s *story) {
			s.asks()
			s.add(run.KindHandoffDecided, run.HandoffDecided{HandoffID: "h-1", Action: "halt", DecidedBy: "somebody"})
			s.add(run.KindRunEnd, run.RunEnd{Status: run.Halted, Reason: "phase_handoff_halt"})
		}), nil},
		{"failed", told(func(s *story) { s.asks(); s.add(run.KindRunEnd, run.RunEnd{Status: run.Failed, Reason: "broken"}) }), info},
		{"with turns", told(func(s *story) { s.worksOn(""); s.turn(1, "ok", "tree 1"); s.turn(2, "ok", "tree 2") }), nil},
		{"interrupted", told(func(s *story) {
			s.asks()
			s.add(run.KindRunInterrupted, run.RunInterrupted{Reason: "gone", At: moment(99)})
		}), []rundir.Code{rundir.InterruptedWithActiveHandoff, rundir.ActiveHandoffWithoutDecision}},
		{"stored", stored(nil), nil},
		{"damaged and stored", stored(func(s *story) run.JournalDamage {
			return run.JournalDamage{File: rundir.EventsFile, Line: 3, Expected: digestOf(s.lines[2]), Found: digestOf(changed(s.lines, 3)[2])}
		}), []rundir.Code{rundir.ChainMismatch, rundir.DamageRecorded}},
		{"reference, done", reference("feature_done"), nil},
		{"reference, asked twice", reference("planning_retry_then_continue"), nil},
		{"reference, asking", madeUp(askedLines, `{"task": "t", "status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-1"}}`), info},
		{"reference, failed", madeUp(askedLines+`{"seq": 3, "ts": "2026-01-02T03:04:07.000", "kind": "run.end", "phase": null, "payload": {"status": "failed"}}`+"\n",
			`{"status": "failed"}`), []rundir.Code{rundir.HandoffEventWithoutMetaHandoff}},
	}
}

const askedLines = `{"seq": 1, "ts": "2026-01-02T03:04:05.000", "kind": "run.start", "phase": null, "payload": {"task": "t"}}
{"seq": 2, "ts": "2026-01-02T03:04:06.000", "kind": "phase.handoff_requested", "phase": null, "payload": {"handoff_id": "h-1", "phase": "plan"}}
`

func (s *story) twoPasses() {
	s.start()
	s.pass(1)
	s.pass(2)
}

func (s *story) asks() {
	s.twoPasses()
	s.add(run.KindHandoffRequested, run.HandoffRequested{HandoffID: "h-1", Phase: "write", HandoffType: run.HandoffFeedbackAlways, Trigger: run.TriggerApproved})
}

func told(tell func(*story)) func(*testing.T) (rundir.Dir, fakeBlobs) {
	return func(t *testing.T) (rundir.Dir, fakeBlobs) {
		s := newStory(t)
		tell(s)
		s.send()
		return written(t, s), s.blobs
	}
}

// stored is a paused run whose journal is in the store up to a few lines before its end. With damage it goes on with a line that was changed, and ends.
func stored(damage func(*story) run.JournalDamage) func(*testing.T) (rundir.Dir, fakeBlobs) {
	return func(t *testing.T) (rundir.Dir, fakeBlobs) {
		s := newStory(t)
		s.twoPasses()
		s.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
		s.send()
		d := written(t, s)
		n := len(s.lines) - 2
		_, err := d.Seal(t.Context(), s.blobs, rundir.Sealing{RunID: "run-1", First: 1, Tail: tailAt(s.lines, n)})
		require.NoError(t, err)
		if damage == nil {
			return d, s.blobs
		}
		hurt := changed(s.lines, 3)
		s.add(run.KindJournalDamaged, damage(s))
		s.add(run.KindRunEnd, run.RunEnd{Status: run.Cancelled})
		onDisk(t, d, hurt)
		b := batch(s.lines, len(hurt)+1, len(s.lines))
		b.Verified = true
		p, err := d.Project(t.Context(), s.blobs, b)
		require.NoError(t, err)
		require.Equal(t, rundir.Written, p.Outcome)
		return d, s.blobs
	}
}

func digestOf(line string) string {
	sum := sha256.Sum256([]byte(line))
	return hex.EncodeToString(sum[:])
}

func reference(name string) func(*testing.T) (rundir.Dir, fakeBlobs) {
	return func(t *testing.T) (rundir.Dir, fakeBlobs) {
		dir := filepath.Join(t.TempDir(), "run")
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "reference", name))))
		return rundir.At(dir), nil
	}
}

// madeUp is a directory in the reference's format with these files: events.jsonl, meta.json, and further names and texts.
func madeUp(events, meta string, more ...string) func(*testing.T) (rundir.Dir, fakeBlobs) {
	return func(t *testing.T) (rundir.Dir, fakeBlobs) {
		d := rundir.At(t.TempDir())
		write(t, d, rundir.EventsFile, events)
		write(t, d, rundir.MetaFile, meta)
		for i := 0; i < len(more); i += 2 {
			write(t, d, more[i], more[i+1])
		}
		return d, nil
	}
}

// injury is one row: how a directory is hurt, what a check says beside what it said before, what a repair does, what is left then.
type injury struct {
	how    string
	body   string
	hurt   func(t *testing.T, d rundir.Dir)
	codes  []rundir.Code // all of them
	repair string        // fields that change; "operator": somebody must decide; "": nothing
	after  []rundir.Code // after the repair was applied
}

func injuries() []injury { return slices.Concat(ownInjuries(), foreignInjuries()) }

func ownInjuries() []injury {
	type codes = []rundir.Code
	key := func(name, value string) func(*testing.T, rundir.Dir) {
		return func(t *testing.T, d rundir.Dir) { setKey(t, d, name, value) }
	}
	both := func(a, b func(*testing.T, rundir.Dir)) func(*testing.T, rundir.Dir) {
		return func(t *testing.T, d rundir.Dir) { a(t, d); b(t, d) }
	}
	file := func(name, text string) func(*testing.T, rundir.Dir) {
		return func(t *testing.T, d rundir.Dir) {
			require.NoError(t, os.MkdirAll(filepath.Dir(d.Path(name)), 0o755))
			write(t, d, name, text)
		}
	}
	gone := func(name string) func(*testing.T, rundir.Dir) {
		return func(t *testing.T, d rundir.Dir) { require.NoError(t, os.RemoveAll(d.Path(name))) }
	}
	lines := func(change func([]string) []string) func(*testing.T, rundir.Dir) {
		return func(t *testing.T, d rundir.Dir) {
			raw, err := os.ReadFile(d.Path(rundir.EventsFile))
			require.NoError(t, err)
			write(t, d, rundir.EventsFile, strings.Join(change(strings.SplitAfter(string(raw), "\n")), ""))
		}
	}
	halt := file("phase_handoff_decisions/h-1.json", `{"run_id":"r","handoff_id":"h-1","phase":"plan","action":"halt","decided_at":"2026-01-02T04:00:00+00:00"}`)
	goOn := file("phase_handoff_decisions/h-1.json", `{"handoff_id":"h-1","action":"continue","decided_at":"2026-01-02T04:00:00+00:00"}`)
	open := `{"id":"h-1","phase":"write"}`
	return []injury{
		// meta.json against the events
		{"meta.json is missing", "done", gone(rundir.MetaFile), codes{rundir.MetaMissing}, "meta.json", nil},
		{"meta.json is half a file", "paused", file(rundir.MetaFile, `{"version":1,"run_`), codes{rundir.MetaUnreadable}, "meta.json", nil},
		{"meta.json is of another shape", "done", key("events", "7"), codes{rundir.MetaUnreadable}, "meta.json", nil},
		{"meta.json of another program is missing", "reference, done", gone(rundir.MetaFile), codes{rundir.MetaMissing}, "", codes{rundir.MetaMissing}},
		{"meta.json of another program is half a file", "reference, done", file(rundir.MetaFile, `{"sta`), codes{rundir.MetaUnreadable}, "", codes{rundir.MetaUnreadable}},
		{"a word too many in meta.json's status", "paused", key("status", `"running"`), codes{rundir.StatusMismatch}, "status", nil},
		{"the end is in the events only", "done", key("status", `"running"`), codes{rundir.TerminalEventWithoutTerminalMeta}, "status", nil},
		{"the end is in meta.json only", "paused", key("status", `"done"`), codes{rundir.TerminalMetaWithoutTerminalEvent}, "status", nil},
		{"the end is in another program's events only", "reference, done", key("status", `"running"`), codes{rundir.TerminalEventWithoutTerminalMeta}, "status", nil},
		{"the same, and a hand-off is left over", "reference, asked twice", both(key("status", `"running"`), key("phase_handoff", `{"id":"validate_plan:plan_round:2"}`)),
			codes{rundir.TerminalEventWithoutTerminalMeta}, "status phase_handoff", nil},
		{"the end is in another program's meta.json only", "reference, asking", key("status", `"done"`),
			codes{rundir.TerminalMetaWithoutTerminalEvent, rundir.TerminalWithStaleHandoff, rundir.ActiveHandoffWithoutDecision}, "operator",
			codes{rundir.TerminalMetaWithoutTerminalEvent, rundir.TerminalWithStaleHandoff, rundir.ActiveHandoffWithoutDecision}},
		{"the state in meta.json was changed", "paused", key("task", `"another"`), codes{rundir.DerivedFileBehind}, "task", nil},
		{"the interruption is in the events only", "interrupted", both(key("status", `"awaiting_phase_handoff"`), goOn),
			codes{rundir.InterruptedEventWithoutInterruptedMeta, rundir.InterruptedWithActiveHandoff}, "status", codes{rundir.InterruptedWithActiveHandoff}},

		// hand-offs
		{"interrupted, and nobody has decided", "interrupted", func(*testing.T, rundir.Dir) {},
			codes{rundir.InterruptedWithActiveHandoff, rundir.ActiveHandoffWithoutDecision}, "operator",
			codes{rundir.InterruptedWithActiveHandoff, rundir.ActiveHandoffWithoutDecision}},
		{"done, with a hand-off left over", "done", key("phase_handoff", open),
			codes{rundir.TerminalWithStaleHandoff, rundir.MetaHandoffWithoutEvent, rundir.ActiveHandoffWithoutDecision}, "phase_handoff", nil},
		{"halted, with a hand-off left over", "halted", key("phase_handoff", open), codes{rundir.TerminalWithStaleHandoff}, "phase_handoff", nil},
		{"another program's: done, with a hand-off left over", "reference, asked twice", key("phase_handoff", `{"id":"validate_plan:plan_round:2"}`),
			codes{rundir.TerminalWithStaleHandoff}, "phase_handoff", nil},
		{"the hand-off is asked for in the events only", "asking", key("phase_handoff", "null"),
			codes{rundir.AwaitingWithoutActiveHandoff, rundir.HandoffEventWithoutMetaHandoff}, "phase_handoff", codes{rundir.ActiveHandoffWithoutDecision}},
		{"the hand-off of a failed run is lost", "failed", key("phase_handoff", "null"), codes{rundir.HandoffEventWithoutMetaHandoff}, "phase_handoff",
			codes{rundir.ActiveHandoffWithoutDecision}},
		{"the hand-off was never asked for", "paused", key("phase_handoff", open), codes{rundir.MetaHandoffWithoutEvent, rundir.ActiveHandoffWithoutDecision}, "phase_handoff", nil},
		{"another hand-off than the one asked for", "asking", key("phase_handoff", `{"id":"h-0"}`),
			codes{rundir.HandoffEventWithoutMetaHandoff, rundir.MetaHandoffWithoutEvent, rundir.ActiveHandoffWithoutDecision}, "phase_handoff",
			codes{rundir.ActiveHandoffWithoutDecision}},
		{"a halt was decided, and meta.json waits on", "reference, asking", halt, codes{rundir.HaltDecisionWithoutHaltedMeta}, "status halt_reason halted_at phase_handoff", nil},
		{"a halt was decided, and the run has failed", "reference, failed", halt, codes{rundir.HaltDecisionWithoutHaltedMeta}, "operator", codes{rundir.HaltDecisionWithoutHaltedMeta}},
		{"a halt was decided, and meta.json says running", "halted", both(key("status", `"running"`), halt),
			codes{rundir.HaltDecisionWithoutHaltedMeta, rundir.TerminalEventWithoutTerminalMeta}, "status", nil},
		{"a halt was decided, and ours has failed", "failed", halt, codes{rundir.HaltDecisionWithoutHaltedMeta}, "operator", codes{rundir.HaltDecisionWithoutHaltedMeta}},
		{"a decision cannot be read", "reference, asking", file("phase_handoff_decisions/h-1.json", `{"handoff_id":"h-`), codes{rundir.ActiveHandoffWithoutDecision}, "",
			codes{rundir.ActiveHandoffWithoutDecision}},
		{"decided, and not acted on yet", "reference, asking", goOn, nil, "", nil},

		// events.jsonl
		{"a byte of a line was changed", "paused", lines(func(l []string) []string { l[3] = strings.Replace(l[3], "03:04", "03:05", 1); return l }),
			codes{rundir.ChainMismatch}, "", codes{rundir.ChainMismatch}},
		{"a line is no JSON", "paused", lines(func(l []string) []string { l[3] = strings.Replace(l[3], "{", "[", 1); return l }),
			codes{rundir.ChainMismatch, rundir.StreamLineUnreadable}, "", codes{rundir.ChainMismatch, rundir.StreamLineUnreadable}},
		{"a line is missing", "paused", lines(func(l []string) []string { return slices.Delete(l, 3, 4) }),
			codes{rundir.ChainMismatch, rundir.StreamSeqGap}, "", codes{rundir.ChainMismatch, rundir.StreamSeqGap}},
		{"a line is there twice", "paused", lines(func(l []string) []string { return slices.Insert(l, 3, l[2]) }),
			codes{rundir.ChainMismatch, rundir.StreamSeqDuplicate, rundir.StatusMismatch, rundir.DerivedFileBehind}, "",
			codes{rundir.ChainMismatch, rundir.StreamSeqDuplicate, rundir.StatusMismatch, rundir.DerivedFileBehind}},
		{"the last lines are lost", "done", lines(func(l []string) []string { return l[:len(l)-3] }),
			codes{rundir.ChainMismatch, rundir.TerminalMetaWithoutTerminalEvent}, "", codes{rundir.ChainMismatch, rundir.TerminalMetaWithoutTerminalEvent}},
		{"events.jsonl is missing", "paused", gone(rundir.EventsFile), codes{rundir.ChainMismatch, rundir.StatusMismatch}, "", codes{rundir.ChainMismatch, rundir.StatusMismatch}},
		{"a byte of a line was changed that the store has", "stored", lines(func(l []string) []string { return changed(l, 3) }),
			codes{rundir.ChainMismatch}, rundir.EventsFile, nil},
		{"a line is missing that the store has", "stored", lines(func(l []string) []string { return slices.Delete(l, 3, 4) }),
			codes{rundir.ChainMismatch, rundir.StreamSeqGap}, rundir.EventsFile, nil},
		{"the damage that the journal names", "damaged and stored", func(*testing.T, rundir.Dir) {},
			codes{rundir.ChainMismatch, rundir.DamageRecorded}, rundir.EventsFile, codes{rundir.DamageRecorded}},
		{"another program's: a line is no JSON", "reference, done", lines(func(l []string) []string { l[2] = "plan.parsed\n"; return l }),
			codes{rundir.StreamLineUnreadable}, "", codes{rundir.StreamLineUnreadable}},
		{"another program's: a line is missing", "reference, done", lines(func(l []string) []string { return slices.Delete(l, 2, 3) }),
			codes{rundir.StreamSeqGap}, "", codes{rundir.StreamSeqGap}},
		{"half a line at the end", "paused", lines(func(l []string) []string { return append(l, `{"seq":99,"ts"`) }), codes{rundir.StreamTornTail}, "events.jsonl", nil},
		{"half a line at the end of another program's", "reference, done", lines(func(l []string) []string { return append(l, `{"seq":99`) }),
			codes{rundir.StreamTornTail}, "", codes{rundir.StreamTornTail}},

		// what follows from the events
		{"lines that meta.json has not seen", "done", older(rundir.MetaFile), codes{rundir.DerivedFileBehind}, "meta.json _orchestrator/state.json", nil},
		{"state.json is missing", "paused", gone(rundir.StateFile), codes{rundir.DerivedFileBehind}, "_orchestrator/state.json", nil},
		{"state.json is half a file", "done", file(rundir.StateFile, `{"schemaVersion":3`), codes{rundir.DerivedFileBehind}, "_orchestrator/state.json", nil},
		{"state.json is older", "done", older(rundir.StateFile), codes{rundir.DerivedFileBehind}, "_orchestrator/state.json", nil},
		{"a log is shorter", "done", file(rundir.CostLog, ""), codes{rundir.DerivedFileBehind}, rundir.CostLog, nil},
		{"the artifact is missing", "done", gone("artifact.html"), codes{rundir.ArtifactHashMismatch}, "artifact.html", nil},
		{"the artifact was edited", "paused", file("artifact.html", "<html>mine</html>"), codes{rundir.ArtifactHashMismatch}, "", codes{rundir.ArtifactHashMismatch}},
		{"the artifact was edited, and state.json is missing", "paused", both(file("artifact.html", "<html>mine</html>"), gone(rundir.StateFile)),
			codes{rundir.DerivedFileBehind, rundir.ArtifactHashMismatch}, "_orchestrator/state.json", codes{rundir.ArtifactHashMismatch}},
		{"a checkpoint is missing", "done", gone("_orchestrator/checkpoints/cp-S1"), codes{rundir.CheckpointDamaged}, "_orchestrator/checkpoints/cp-S1", nil},
		{"a checkpoint's artifact was changed", "done", file("_orchestrator/checkpoints/cp-S1/artifact.html", "x"), codes{rundir.CheckpointDamaged}, "_orchestrator/checkpoints/cp-S1", nil},
		{"a checkpoint's state was changed", "done", file("_orchestrator/checkpoints/cp-S1/state-snapshot.json", "{}"), codes{rundir.CheckpointDamaged}, "_orchestrator/checkpoints/cp-S1", nil},
		{"the manifest of a turn is missing", "with turns", gone("snapshots/turn-1"), codes{rundir.SnapshotDamaged}, "snapshots/turn-1/manifest.json", nil},
		{"the manifest of a turn is of another tree", "with turns", file("snapshots/turn-2/manifest.json", `{"version":1,"tree":"x","entries":[]}`),
			codes{rundir.SnapshotDamaged}, "snapshots/turn-2/manifest.json", nil},
		{"the manifest of a turn is half a file", "with turns", cutInHalf("snapshots/turn-2/manifest.json"),
			codes{rundir.SnapshotDamaged}, "snapshots/turn-2/manifest.json", nil},
		{"a reply is missing", "done", gone("_orchestrator/passes/pass-002/raw-output.txt"), codes{rundir.EvidenceDamaged}, "_orchestrator/passes/pass-002/raw-output.txt", nil},
		{"a prompt was changed", "done", file("_orchestrator/passes/pass-002/prompt.md", "x"), codes{rundir.EvidenceDamaged}, "_orchestrator/passes/pass-002/prompt.md", nil},
		{"what an agent reported is missing", "done", gone("_orchestrator/screenshots/cycle-1/weaver-agent.jsonl"), codes{rundir.EvidenceDamaged},
			"_orchestrator/screenshots/cycle-1/weaver-agent.jsonl", nil},
		{"what a failed attempt left is missing", "done", gone("_orchestrator/passes/pass-003/raw-output-FAILED.txt"), codes{rundir.EvidenceDamaged},
			"_orchestrator/passes/pass-003/raw-output-FAILED.txt", nil},
		{"two rows of one call", "paused", rowTwice(rundir.TracesFile), codes{rundir.CallIDDuplicate, rundir.DerivedFileDamaged}, rundir.TracesFile, nil},
		{"the row of a call is that of another", "paused", rowOfAnother, codes{rundir.CallIDDuplicate, rundir.DerivedFileDamaged, rundir.EvidenceDamaged}, rundir.TracesFile, nil},
		{"one byte of a log was changed", "done", oneByte(rundir.CostLog), codes{rundir.DerivedFileDamaged}, rundir.CostLog, nil},
		{"rows behind those of the run", "paused", rowTwice(rundir.CostLog), codes{rundir.DerivedFileDamaged}, rundir.CostLog, nil},
		{"half a row behind those of the run", "paused", func(t *testing.T, d rundir.Dir) { appendTo(t, d, rundir.QualityLog, `{"ts":"2`) },
			codes{rundir.LogRowUnreadable}, rundir.QualityLog, nil},
		{"one byte of state.json was changed", "done", oneByte(rundir.StateFile), codes{rundir.DerivedFileDamaged}, "_orchestrator/state.json", nil},
		{"the plan was changed", "done", oneByte(rundir.PlanFile), codes{rundir.DerivedFileDamaged}, rundir.PlanFile, nil},
		{"a key of meta.json that no event gives was changed", "done", key("summary", "{}"), codes{rundir.DerivedFileDamaged}, rundir.MetaFile, nil},
		{"one byte of run.json was changed", "done", oneByte(rundir.ClaimFile), codes{rundir.ClaimDamaged}, "", codes{rundir.ClaimDamaged}},
		{"events.jsonl and meta.json are missing", "done", both(gone(rundir.EventsFile), gone(rundir.MetaFile)), codes{rundir.StreamMissing}, "", codes{rundir.StreamMissing}},
		{"leftovers of a crash", "done", file(rundir.MetaFile+".tmp.abc", "{"), nil, "", nil},
	}
}

// rowTwice writes the first row of a file once more behind the last.
func rowTwice(name string) func(*testing.T, rundir.Dir) {
	return func(t *testing.T, d rundir.Dir) {
		raw, err := os.ReadFile(d.Path(name))
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(raw), "\n")
		write(t, d, name, string(raw)+first+"\n")
	}
}

// oneByte changes one letter or digit of a file.
func oneByte(name string) func(*testing.T, rundir.Dir) {
	return func(t *testing.T, d rundir.Dir) {
		raw, err := os.ReadFile(d.Path(name))
		require.NoError(t, err)
		write(t, d, name, string(changedByte(raw, 2)))
	}
}

// rowOfAnother gives the second row of traces.jsonl the call of the first.
func rowOfAnother(t *testing.T, d rundir.Dir) {
	raw, err := os.ReadFile(d.Path(rundir.TracesFile))
	require.NoError(t, err)
	write(t, d, rundir.TracesFile, strings.Replace(string(raw), "g0.002.1.", "g0.001.1.", 1))
}

func cutInHalf(name string) func(*testing.T, rundir.Dir) {
	return func(t *testing.T, d rundir.Dir) {
		raw, err := os.ReadFile(d.Path(name))
		require.NoError(t, err)
		write(t, d, name, string(raw[:len(raw)/2]))
	}
}

// older takes a file back to what it was one batch before the end.
func older(name string) func(*testing.T, rundir.Dir) {
	return func(t *testing.T, d rundir.Dir) {
		s := whole(t)
		before := rundir.At(filepath.Join(t.TempDir(), "before"))
		require.NoError(t, before.Take(claim()))
		project(t, before, s, s.batches[:len(s.batches)-1]...)
		raw, err := os.ReadFile(before.Path(name))
		require.NoError(t, err)
		write(t, d, name, string(raw))
	}
}

func setKey(t *testing.T, d rundir.Dir, key, value string) {
	t.Helper()
	raw, err := os.ReadFile(d.Path(rundir.MetaFile))
	require.NoError(t, err)
	var meta map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &meta))
	meta[key] = json.RawMessage(value)
	raw, err = json.Marshal(meta)
	require.NoError(t, err)
	write(t, d, rundir.MetaFile, string(raw))
}

var noon = time.Date(2026, 1, 3, 12, 0, 0, 0, time.UTC)

func codesOf(r rundir.Report) []rundir.Code {
	var out []rundir.Code
	for _, i := range r.Issues {
		out = append(out, i.Code)
	}
	return slices.Compact(out)
}

func check(t *testing.T, d rundir.Dir) rundir.Report {
	t.Helper()
	r, err := d.Check(context.Background(), rundir.CheckOptions{})
	require.NoError(t, err)
	return r
}

// TestInjuriesAreNamed hurts a directory of each kind, and looks what a check says, what a repair changes, and what a check says then.
func TestInjuriesAreNamed(t *testing.T) {
	ctx := context.Background()
	for _, b := range bodies() {
		master, blobs := b.write(t)
		require.Equal(t, b.codes, codesOf(check(t, master)), "the healthy directory: %s %+v", b.name, check(t, master).Issues)
		for _, r := range injuries() {
			if r.body != b.name {
				continue
			}
			t.Run(b.name+"/"+r.how, func(t *testing.T) {
				t.Parallel()
				d := rundir.At(filepath.Join(t.TempDir(), "run"))
				require.NoError(t, os.CopyFS(d.Root, os.DirFS(master.Root)))
				r.hurt(t, d)
				hurt := look(t, d)
				report := check(t, d)
				require.ElementsMatch(t, r.codes, codesOf(report))

				o := rundir.RepairOptions{Blobs: blobs, Now: noon, By: "tests"}
				dry, err := d.Repair(ctx, o)
				require.NoError(t, err)
				require.Equal(t, r.repair, planned(dry))
				require.False(t, dry.Applied)
				require.Equal(t, hurt, look(t, d), "check and dry run only read")

				o.Apply = true
				done, err := d.Repair(ctx, o)
				require.NoError(t, err)
				require.Equal(t, dry.Changes, done.Changes)
				require.Equal(t, len(dry.Changes) > 0, done.Applied)
				require.ElementsMatch(t, r.after, codesOf(check(t, d)))
				if done.Applied {
					kept(t, d, hurt, done)
				}
				repaired := look(t, d)
				again, err := d.Repair(ctx, o)
				require.NoError(t, err)
				require.False(t, again.Applied)
				require.Equal(t, repaired, look(t, d), "a second repair writes nothing")
			})
		}
	}
}

// kept says that what was replaced is in the backup, and that the audit file tells of it.
func kept(t *testing.T, d rundir.Dir, hurt map[string]string, done rundir.RepairResult) {
	t.Helper()
	now := look(t, d)
	if old, there := hurt[rundir.MetaFile]; there {
		require.Equal(t, old, now[done.BackupPath])
	}
	for name, text := range hurt {
		whole := now[name] == text || strings.HasPrefix(now[name], text)
		folder := filepath.Dir(done.BackupPath) + "/"
		inBackup := slices.Contains([]string{now[folder+filepath.Base(name)], now[folder+name]}, text)
		damaged := strings.HasPrefix(name, "_orchestrator/checkpoints/") || strings.HasPrefix(name, "_orchestrator/passes/") || strings.HasPrefix(name, "snapshots/") || name == rundir.EventsFile || name == rundir.SpendFile || name == "run.lock" || strings.HasSuffix(name, "/repair.lock")
		require.True(t, whole || inBackup || damaged, "%s is lost", name)
	}
	var audit struct {
		By      string          `json:"by"`
		At      string          `json:"at"`
		Changes []rundir.Change `json:"changes"`
		Codes   []rundir.Code   `json:"issue_codes"`
	}
	require.NoError(t, json.Unmarshal([]byte(now[done.AuditPath]), &audit))
	require.Equal(t, "tests", audit.By)
	require.Equal(t, "2026-01-03T12:00:00Z", audit.At)
	require.Equal(t, done.IssueCodes, audit.Codes)
	require.Len(t, audit.Changes, len(done.Changes))
}

// planned is what a repair would do, as a row says it.
func planned(r rundir.RepairResult) string {
	if r.NeedsOperatorDecision {
		return "operator"
	}
	var fields []string
	for _, c := range r.Changes {
		fields = append(fields, c.Field)
	}
	return strings.Join(slices.Compact(fields), " ")
}

// TestDocsShowTheInjuries keeps the table of docs/run-directory.md in step: go test ./rundir -run TestDocs -update.
func TestDocsShowTheInjuries(t *testing.T) {
	table := "| injury | directory | check says | repair changes | check says then |\n|---|---|---|---|---|\n"
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
	const page, from, to = "../docs/run-directory.md", "<!-- injuries: written by go test ./rundir -run TestDocs -update -->\n", "<!-- end of injuries -->\n"
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, begins := strings.Cut(string(raw), from)
	have, tail, ends := strings.Cut(rest, to)
	require.True(t, begins && ends, "the marks of the table are gone from %s", page)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(head+from+table+to+tail), 0o644))
		return
	}
	require.Equal(t, table, have)
}

func list(codes []rundir.Code) string {
	if len(codes) == 0 {
		return "nothing"
	}
	words := make([]string, len(codes))
	for i, c := range codes {
		words[i] = "`" + string(c) + "`"
	}
	return strings.Join(words, ", ")
}

// TestDocsTellEveryCode: docs/run-state.md lists each code once, in the order and with the severity that the program gives it.
func TestDocsTellEveryCode(t *testing.T) {
	page, err := os.ReadFile("../docs/run-state.md")
	require.NoError(t, err)
	_, section, there := strings.Cut(string(page), "\n## Check and repair\n")
	require.True(t, there)
	var told, known []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (error|warning|info) \\| .+ \\| .+ \\|$").FindAllStringSubmatch(section, -1) {
		told = append(told, m[1]+" "+m[2])
	}
	for _, c := range rundir.Codes() {
		known = append(known, string(c.Code)+" "+string(c.Severity))
		require.NotEmpty(t, c.Hint)
	}
	require.Equal(t, known, told)
}

// TestEveryCodeHasAnInjury: no code without a row that shows it. A live workflow that is away, and damage in the store, are not in the directory.
func TestEveryCodeHasAnInjury(t *testing.T) {
	shown := map[rundir.Code]bool{rundir.RunningWithoutLiveWorkflow: true, rundir.StoreDamaged: true} // TestCheckDeep
	for _, r := range injuries() {
		for _, c := range r.codes {
			shown[c] = true
		}
	}
	for _, c := range rundir.Codes() {
		require.True(t, shown[c.Code], "no injury shows %s", c.Code)
	}
}
