package fsck_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
)

// replyFile and promptFile are evidence of the second pass.
const (
	replyFile  = "_orchestrator/passes/pass-002/raw-output.txt"
	promptFile = "_orchestrator/passes/pass-002/prompt.md"
	cpS1, cpS2 = "_orchestrator/checkpoints/cp-S1", "_orchestrator/checkpoints/cp-S2"
	cpPA2      = "_orchestrator/checkpoints/cp-PA-2"
)

// seen makes the mark in meta.json that of events.jsonl as it is, with a number of further events.
func seen(further int) change {
	return func(t *testing.T, d projector.Dir) {
		disk, err := journal.ReadStream(d, layout.EventsFile, 0)
		require.NoError(t, err)
		size := len(strings.Join(disk.Lines, "\n")) + 1
		setKey(t, d, "events", fmt.Sprintf(`{"seq":%d,"chain":%q,"size":%d}`, len(disk.Lines)+further,
			run.Chain("").Over(disk.Lines), size))
		setKey(t, d, "digest", `""`)
	}
}

// renumbered changes the number of the last event, and the mark in meta.json with it.
func renumbered(by int) change {
	return together(withLines(func(lines []string) []string {
		last := &lines[len(lines)-2]
		var n int
		if _, err := fmt.Sscanf(*last, `{"seq":%d,`, &n); err == nil {
			*last = strings.Replace(*last, fmt.Sprintf(`{"seq":%d,`, n), fmt.Sprintf(`{"seq":%d,`, n+by), 1)
		}
		return lines
	}), seen(0))
}

// journalDamages are rows of events.jsonl.
func journalDamages() []damage {
	const events = layout.EventsFile
	chain, gap, twice := fsck.ChainMismatch, fsck.StreamSeqGap, fsck.StreamSeqDuplicate
	unreadable, status, behind := fsck.StreamLineUnreadable, fsck.StatusMismatch, fsck.DerivedFileBehind
	oneChanged := withLines(func(l []string) []string { return changed(l, 4) })
	oneMissing := withLines(func(l []string) []string { return slices.Delete(l, 3, 4) })
	return []damage{
		stays("a byte of a line was changed", "paused", oneChanged, chain),
		stays("a line is not JSON", "paused",
			withLines(func(l []string) []string { l[3] = strings.Replace(l[3], "{", "[", 1); return l }), chain, unreadable),
		stays("a line is missing", "paused", oneMissing, chain, gap),
		stays("a line is there twice", "paused", withLines(func(l []string) []string { return slices.Insert(l, 3, l[2]) }),
			chain, twice, status, behind),
		stays("a line is longer", "paused", swapped(events, `"seq":3,`, `"seq":3, `), chain, status, behind),
		stays("the last lines are lost", "done", withLines(func(l []string) []string { return l[:len(l)-3] }), chain,
			fsck.TerminalMetaWithoutTerminalEvent),
		stays("events.jsonl is missing", "paused", without(events), chain, status),
		stays("a line is cut in its middle", "paused", edited(events, func(text string) string {
			return text[:len(text)-20]
		}), chain, status, fsck.StreamTornTail),
		stays("meta.json counts an event too many", "paused", seen(1), chain, behind),
		stays("half a line is left of events.jsonl, and meta.json is missing", "done",
			together(withFile(events, `{"seq":1`), without(layout.MetaFile)), fsck.StreamMissing, fsck.StreamTornTail),
		stays("the last number is missing, and so is a reply", "paused", together(renumbered(+1), without(replyFile)), gap),
		stays("the last number is there twice, and a reply is missing", "paused",
			together(renumbered(-1), without(replyFile)), twice),
		stays("a line in meta.json is not JSON, and a reply is missing", "paused",
			together(with(events, "x\n"), seen(0), without(replyFile)), unreadable, behind),
		repaired("half a line at the end", "paused", with(events, `{"seq":99,"ts"`), events, fsck.StreamTornTail),
		repaired("a line after those in meta.json is not an event", "paused", with(events, "x\n"), events, unreadable,
			behind),
		repaired("a byte of a line was changed that the store has", "stored", oneChanged, events, chain),
		repaired("a line is missing that the store has", "stored", oneMissing, events, chain, gap),
		repaired("a byte of a line was changed that the store has, and a reply is missing", "stored",
			together(swapped(events, "03:04", "03:05"), without(replyFile)), events, chain),
		repaired("the damage that the journal records", "damaged and stored", nothing, events, chain,
			fsck.DamageRecorded).leaves(fsck.DamageRecorded),
	}
}

// rowTwice adds the first row of a file once more after the last.
func rowTwice(name string) change {
	return edited(name, func(text string) string {
		first, _, _ := strings.Cut(text, "\n")
		return text + first + "\n"
	})
}

// unmarked removes the chain of each log from meta.json, as earlier releases wrote it, and the digest of meta.json.
func unmarked(t *testing.T, d projector.Dir) {
	edited(layout.MetaFile, func(text string) string {
		_, derived, _ := strings.Cut(text, `"derived":`)
		derived, _, _ = strings.Cut(derived, "]")
		bare := regexp.MustCompile(`,\s*"chain": *"[0-9a-f]*"`).ReplaceAllString(derived, "")
		return strings.Replace(text, derived, bare, 1)
	})(t, d)
	setKey(t, d, "digest", `""`)
}

// promoted adds a row of promotions.jsonl.
func promoted(seq int64, result string) change {
	return func(t *testing.T, d projector.Dir) {
		payload, err := run.Payload(run.DeliveryCompleted{ID: "p-1", Action: "promote", Target: "t", Result: result})
		require.NoError(t, err)
		phase := "delivery"
		line, err := run.Event{Seq: seq, TS: moment(50), Kind: run.KindDeliveryCompleted, Phase: &phase,
			Payload: payload}.Line()
		require.NoError(t, err)
		write(t, d, layout.PromotionsFile, line+"\n")
	}
}

// fileDamages are rows of the files that follow from the events, and of promotions.
func fileDamages() []damage {
	const state = "_orchestrator/state.json"
	const manifest1, manifest2 = "snapshots/turn-1/manifest.json", "snapshots/turn-2/manifest.json"
	damaged, behind, evidence := fsck.DerivedFileDamaged, fsck.DerivedFileBehind, fsck.EvidenceDamaged
	checkpoint, duplicate, snapshot := fsck.CheckpointDamaged, fsck.CallIDDuplicate, fsck.SnapshotDamaged
	unreadable, artifact := fsck.LogRowUnreadable, fsck.ArtifactHashMismatch
	// row replaces the second row of the log of costs by a text of its size.
	row := func(text string) change {
		return edited(layout.CostLog, func(log string) string {
			lines := strings.Split(log, "\n")
			lines[1] = text + strings.Repeat(" ", len(lines[1])-len(text))
			return strings.Join(lines, "\n")
		})
	}
	rowOfAnother := swapped(layout.TracesFile, `g0\.002\.1\.`, "g0.001.1.")
	start := records.StartRow{TS: moment(99), Seq: 99, LogDecision: run.LogDecision{Decision: run.FoundPaused}}
	copyManifest := func(t *testing.T, d projector.Dir) {
		write(t, d, cpS1+"/manifest.json", read(t, d, cpS2+"/manifest.json"))
	}
	inManifest := func(pattern, with string) change { return swapped(cpS1+"/manifest.json", pattern, with) }
	return []damage{
		repaired("state.json is missing", "paused", without(layout.StateFile), state, behind),
		repaired("state.json is half a file", "done", withFile(layout.StateFile, `{"schemaVersion":3`), state, behind),
		repaired("state.json is older", "done", older(layout.StateFile), state, behind),
		repaired("one byte of state.json was changed", "done", oneByte(layout.StateFile), state, damaged),
		repaired("the plan was changed", "done", oneByte(layout.PlanFile), layout.PlanFile, damaged),

		repaired("the artifact is missing", "done", without("artifact.html"), "artifact.html", artifact),
		stays("the artifact was edited", "paused", withFile("artifact.html", "<html>mine</html>"), artifact),
		repaired("the artifact was edited, and state.json is missing", "paused",
			together(withFile("artifact.html", "<html>mine</html>"), without(layout.StateFile)), state, behind,
			artifact).leaves(artifact),

		repaired("a log is shorter", "done", withFile(layout.CostLog, ""), layout.CostLog, behind),
		repaired("an empty log is missing", "paused", without(layout.ErrorsLog), layout.ErrorsLog, damaged),
		repaired("one byte of a log was changed", "done", oneByte(layout.CostLog), layout.CostLog, damaged),
		repaired("a log has no line where meta.json has its end", "done", edited(layout.CostLog, func(log string) string {
			return strings.TrimSuffix(log, "\n") + " \n"
		}), layout.CostLog, behind),
		repaired("rows after those of the run", "paused", rowTwice(layout.CostLog), layout.CostLog, damaged),
		repaired("two rows after those of the run", "paused",
			together(rowTwice(layout.CostLog), rowTwice(layout.CostLog)), layout.CostLog, damaged),
		repaired("half a row after those of the run", "paused", with(layout.QualityLog, `{"ts":"2`), layout.QualityLog,
			unreadable),
		repaired("a row is not JSON", "done", row("x"), layout.CostLog, damaged),
		repaired("a row is not an object", "done", row("7"), layout.CostLog, damaged),
		repaired("a row of an earlier release is not an object", "done", together(unmarked, row("7")), layout.CostLog,
			unreadable),
		repaired("the row of a start is in another log", "paused", with(layout.CostLog, start.Line()+"\n"),
			layout.CostLog, damaged),
		repaired("the rows of all calls are lost", "done", withFile(layout.TracesFile, ""), layout.TracesFile, behind),
		repaired("two rows of one call", "paused", rowTwice(layout.TracesFile), layout.TracesFile, duplicate, damaged),
		repaired("the row of a call is that of another", "paused", rowOfAnother, layout.TracesFile, duplicate, damaged,
			evidence),
		repaired("the row of a call is that of another, and state.json is missing", "paused",
			together(rowOfAnother, without(layout.StateFile)), state+" traces.jsonl", duplicate, evidence, behind, damaged),
		repaired("the row of a call is that of another, and a row of provenance was changed", "paused",
			together(rowOfAnother, oneByte(layout.ProvenanceFile)), "traces.jsonl provenance.jsonl traces.jsonl", duplicate,
			evidence, damaged),

		repaired("a reply is missing", "done", without(replyFile), replyFile, evidence),
		repaired("a prompt was changed", "done", withFile(promptFile, "x"), promptFile, evidence),
		repaired("the envelope of a call is missing", "done",
			without("_orchestrator/screenshots/cycle-1/weaver-agent.jsonl"),
			"_orchestrator/screenshots/cycle-1/weaver-agent.jsonl", evidence),
		repaired("the output of a failed attempt is missing", "done",
			without("_orchestrator/passes/pass-003/raw-output-FAILED.txt"),
			"_orchestrator/passes/pass-003/raw-output-FAILED.txt", evidence),
		repaired("the manifest of a turn is missing", "with turns", without("snapshots/turn-1"), manifest1, snapshot),
		repaired("the manifest of a turn is of another tree", "with turns",
			withFile(manifest2, `{"version":1,"tree":"x","entries":[]}`), manifest2, snapshot),
		repaired("the manifest of a turn is half a file", "with turns", cutInHalf(manifest2), manifest2, snapshot),

		repaired("a checkpoint is missing", "done", without(cpS1), cpS1, checkpoint),
		repaired("the artifact of a checkpoint was changed", "done", withFile(cpS1+"/artifact.html", "x"), cpS1,
			checkpoint),
		repaired("the state of a checkpoint was changed", "done", withFile(cpS1+"/state-snapshot.json", "{}"), cpS1,
			checkpoint),
		repaired("a note of a checkpoint was changed", "done", withFile(cpS1+"/conviction-layer.md", "x"), cpS1,
			checkpoint),
		repaired("a checkpoint has the manifest of another", "done", copyManifest, cpS1, checkpoint),
		repaired("the manifest of a checkpoint has another id", "done", inManifest(`"cp-S1"`, `"cp-S9"`), cpS1, checkpoint),
		repaired("the manifest of a checkpoint has another artifact", "done",
			inManifest(`"artifactHash": "....`, `"artifactHash": "0000`), cpS1, checkpoint),
		repaired("the manifest of a checkpoint has another state", "done",
			inManifest(`"stateHash": "....`, `"stateHash": "0000`), cpS1, checkpoint),
		repaired("the manifest of a checkpoint has another time", "done",
			inManifest(`"createdAt": "2026`, `"createdAt": "2027`), cpS1, checkpoint),

		stays("a promotion is not a row", "done", withFile(layout.PromotionsFile, "x\n"), unreadable),
		stays("a promotion is another event", "done",
			withFile(layout.PromotionsFile, `{"seq": 1, "kind": "run.end", "payload": {}}`+"\n"), unreadable),
		stays("a promotion has another number", "done", promoted(2, ""), unreadable),
		stays("a promotion is of another result", "done", promoted(1, "another"), unreadable),
		stays("a promotion was cut", "done", withFile(layout.PromotionsFile, `{"seq`), unreadable),
		stays("a start found the run", "paused", func(t *testing.T, d projector.Dir) {
			tail, err := d.Tail()
			require.NoError(t, err)
			start.Seq = tail.Seq
			require.NoError(t, d.RecordStart(t.Context(), start))
		}),
		stays("a promotion of the result", "done", promoted(1, digestOf("<html>refine1</html>"))),
	}
}
