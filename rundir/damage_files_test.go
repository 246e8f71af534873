package rundir_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
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
	return func(t *testing.T, d rundir.Dir) {
		disk, err := rundir.ReadStream(d, rundir.EventsFile, 0)
		require.NoError(t, err)
		size := len(strings.Join(disk.Lines, "\n")) + 1
		setKey(t, d, "events", fmt.Sprintf(`{"seq":%d,"chain":%q,"size":%d}`, len(disk.Lines)+further,
			run.Chain("").Over(disk.Lines), size))
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
	const events = rundir.EventsFile
	oneChanged := withLines(func(l []string) []string { return changed(l, 4) })
	oneMissing := withLines(func(l []string) []string { return slices.Delete(l, 3, 4) })
	return []damage{
		{"a byte of a line was changed", "paused", oneChanged},
		{"a line is not JSON", "paused", withLines(func(l []string) []string { l[3] = strings.Replace(l[3], "{", "[", 1); return l })},
		{"a line is missing", "paused", oneMissing},
		{"a line is there twice", "paused", withLines(func(l []string) []string { return slices.Insert(l, 3, l[2]) })},
		{"a line is longer", "paused", swapped(events, `"seq":3,`, `"seq":3, `)},
		{"the last lines are lost", "done", withLines(func(l []string) []string { return l[:len(l)-3] })},
		{"events.jsonl is missing", "paused", without(events)},
		{"a line is cut in its middle", "paused", edited(events, func(text string) string {
			return text[:len(text)-20]
		})},
		{"meta.json counts an event too many", "paused", seen(1)},
		{"half a line is left of events.jsonl, and meta.json is missing", "done", together(withFile(events, `{"seq":1`), without(rundir.MetaFile))},
		{"the last number is missing, and so is a reply", "paused", together(renumbered(+1), without(replyFile))},
		{"the last number is there twice, and a reply is missing", "paused", together(renumbered(-1), without(replyFile))},
		{"a line in meta.json is not JSON, and a reply is missing", "paused", together(with(events, "x\n"), seen(0), without(replyFile))},
		{"half a line at the end", "paused", with(events, `{"seq":99,"ts"`)},
		{"a line after those in meta.json is not an event", "paused", with(events, "x\n")},
		{"a byte of a line was changed that the store has", "stored", oneChanged},
		{"a line is missing that the store has", "stored", oneMissing},
		{"a byte of a line was changed that the store has, and a reply is missing", "stored", together(swapped(events, "03:04", "03:05"), without(replyFile))},
		{"the damage that the journal records", "damaged and stored", nothing},
	}
}

// rowTwice adds the first row of a file once more after the last.
func rowTwice(name string) change {
	return edited(name, func(text string) string {
		first, _, _ := strings.Cut(text, "\n")
		return text + first + "\n"
	})
}

// promoted adds a row of promotions.jsonl.
func promoted(seq int64, result string) change {
	return func(t *testing.T, d rundir.Dir) {
		payload, err := run.Payload(run.DeliveryCompleted{ID: "p-1", Action: "promote", Target: "t", Result: result})
		require.NoError(t, err)
		phase := "delivery"
		line, err := run.Event{Seq: seq, TS: moment(50), Kind: run.KindDeliveryCompleted, Phase: &phase,
			Payload: payload}.Line()
		require.NoError(t, err)
		write(t, d, rundir.PromotionsFile, line+"\n")
	}
}

// fileDamages are rows of the files that follow from the events, and of promotions.
func fileDamages() []damage {
	const manifest1, manifest2 = "snapshots/turn-1/manifest.json", "snapshots/turn-2/manifest.json"
	// row replaces the second row of the log of costs by a text of its size.
	row := func(text string) change {
		return edited(rundir.CostLog, func(log string) string {
			lines := strings.Split(log, "\n")
			lines[1] = text + strings.Repeat(" ", len(lines[1])-len(text))
			return strings.Join(lines, "\n")
		})
	}
	rowOfAnother := swapped(rundir.TracesFile, `g0\.002\.1\.`, "g0.001.1.")
	copyManifest := func(t *testing.T, d rundir.Dir) {
		write(t, d, cpS1+"/manifest.json", read(t, d, cpS2+"/manifest.json"))
	}
	inManifest := func(pattern, with string) change { return swapped(cpS1+"/manifest.json", pattern, with) }
	return []damage{
		{"state.json is missing", "paused", without(rundir.StateFile)},
		{"state.json is half a file", "done", withFile(rundir.StateFile, `{"schemaVersion":3`)},
		{"state.json is older", "done", older(rundir.StateFile)},
		{"one byte of state.json was changed", "done", oneByte(rundir.StateFile)},
		{"the plan was changed", "done", oneByte(rundir.PlanFile)},

		{"the artifact is missing", "done", without("artifact.html")},
		{"the artifact was edited", "paused", withFile("artifact.html", "<html>mine</html>")},
		{"the artifact was edited, and state.json is missing", "paused", together(withFile("artifact.html", "<html>mine</html>"), without(rundir.StateFile))},

		{"a log is shorter", "done", withFile(rundir.CostLog, "")},
		{"an empty log is missing", "paused", without(rundir.ErrorsLog)},
		{"one byte of a log was changed", "done", oneByte(rundir.CostLog)},
		{"a log has no line where meta.json has its end", "done", edited(rundir.CostLog, func(log string) string {
			return strings.TrimSuffix(log, "\n") + " \n"
		})},
		{"rows after those of the run", "paused", rowTwice(rundir.CostLog)},
		{"two rows after those of the run", "paused", together(rowTwice(rundir.CostLog), rowTwice(rundir.CostLog))},
		{"half a row after those of the run", "paused", with(rundir.QualityLog, `{"ts":"2`)},
		{"a row is not JSON", "done", row("x")},
		{"a row is not an object", "done", row("7")},
		{"the rows of all calls are lost", "done", withFile(rundir.TracesFile, "")},
		{"two rows of one call", "paused", rowTwice(rundir.TracesFile)},
		{"the row of a call is that of another", "paused", rowOfAnother},
		{"the row of a call is that of another, and state.json is missing", "paused", together(rowOfAnother, without(rundir.StateFile))},
		{"the row of a call is that of another, and a row of provenance was changed", "paused", together(rowOfAnother, oneByte(rundir.ProvenanceFile))},

		{"a reply is missing", "done", without(replyFile)},
		{"a prompt was changed", "done", withFile(promptFile, "x")},
		{"the envelope of a call is missing", "done", without("_orchestrator/screenshots/cycle-1/weaver-agent.jsonl")},
		{"the output of a failed attempt is missing", "done", without("_orchestrator/passes/pass-003/raw-output-FAILED.txt")},
		{"the manifest of a turn is missing", "with turns", without("snapshots/turn-1")},
		{"the manifest of a turn is of another tree", "with turns", withFile(manifest2, `{"version":1,"tree":"x","entries":[]}`)},
		{"the manifest of a turn is half a file", "with turns", cutInHalf(manifest2)},

		{"a checkpoint is missing", "done", without(cpS1)},
		{"the artifact of a checkpoint was changed", "done", withFile(cpS1+"/artifact.html", "x")},
		{"the state of a checkpoint was changed", "done", withFile(cpS1+"/state-snapshot.json", "{}")},
		{"a note of a checkpoint was changed", "done", withFile(cpS1+"/conviction-layer.md", "x")},
		{"a checkpoint has the manifest of another", "done", copyManifest},
		{"the manifest of a checkpoint has another id", "done", inManifest(`"cp-S1"`, `"cp-S9"`)},
		{"the manifest of a checkpoint has another artifact", "done", inManifest(`"artifactHash": "....`, `"artifactHash": "0000`)},
		{"the manifest of a checkpoint has another state", "done", inManifest(`"stateHash": "....`, `"stateHash": "0000`)},
		{"the manifest of a checkpoint has another time", "done", inManifest(`"createdAt": "2026`, `"createdAt": "2027`)},

		{"a promotion is not a row", "done", withFile(rundir.PromotionsFile, "x\n")},
		{"a promotion is another event", "done", withFile(rundir.PromotionsFile, `{"seq": 1, "kind": "run.end", "payload": {}}`+"\n")},
		{"a promotion has another number", "done", promoted(2, "")},
		{"a promotion is of another result", "done", promoted(1, "another")},
		{"a promotion was cut", "done", withFile(rundir.PromotionsFile, `{"seq`)},
		{"a promotion of the result", "done", promoted(1, digestOf("<html>refine1</html>"))},
	}
}
