package fsck_test

import (
	"fmt"
	"os"
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

// edited changes the text of a file.
func edited(name string, change func(string) string) func(*testing.T, projector.Dir) {
	return func(t *testing.T, d projector.Dir) {
		t.Helper()
		raw, err := os.ReadFile(d.Path(name))
		require.NoError(t, err)
		text := change(string(raw))
		require.NotEqual(t, string(raw), text)
		write(t, d, name, text)
	}
}

// swapped replaces the first match of a pattern in a file.
func swapped(name, pattern, with string) func(*testing.T, projector.Dir) {
	return edited(name, func(text string) string {
		at := regexp.MustCompile(pattern).FindStringIndex(text)
		return text[:at[0]] + with + text[at[1]:]
	})
}

// lastLine changes the last line of a file, which keeps its line feed.
func lastLine(change func(string) string) func(string) string {
	return func(text string) string {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		lines[len(lines)-1] = change(lines[len(lines)-1])
		return strings.Join(lines, "\n") + "\n"
	}
}

// seen makes meta.json that of events.jsonl as it is, with a number of further events.
func seen(t *testing.T, d projector.Dir, further int) {
	t.Helper()
	disk, err := journal.ReadStream(d, layout.EventsFile, 0)
	require.NoError(t, err)
	size := len(strings.Join(disk.Lines, "\n")) + 1
	setKey(t, d, "events", fmt.Sprintf(`{"seq":%d,"chain":%q,"size":%d}`, len(disk.Lines)+further,
		run.Chain("").Over(disk.Lines), size))
	setKey(t, d, "digest", `""`)
}

// unmarked takes the chain of each log out of meta.json, as earlier releases wrote it, and the digest of meta.json.
func unmarked(t *testing.T, d projector.Dir) {
	t.Helper()
	edited(layout.MetaFile, func(text string) string {
		_, derived, _ := strings.Cut(text, `"derived":`)
		derived, _, _ = strings.Cut(derived, "]")
		bare := regexp.MustCompile(`,\s*"chain": *"[0-9a-f]*"`).ReplaceAllString(derived, "")
		return strings.Replace(text, derived, bare, 1)
	})(t, d)
	setKey(t, d, "digest", `""`)
}

// fileInjuries are rows of the files that follow from the events.
func fileInjuries() []injury {
	type codes = []fsck.Code
	type hurt = func(*testing.T, projector.Dir)
	gone := func(name string) hurt {
		return func(t *testing.T, d projector.Dir) { require.NoError(t, os.RemoveAll(d.Path(name))) }
	}
	all := func(each ...hurt) hurt {
		return func(t *testing.T, d projector.Dir) {
			for _, h := range each {
				h(t, d)
			}
		}
	}
	file := func(name, text string) hurt { return func(t *testing.T, d projector.Dir) { place(t, d, name, text) } }
	// row replaces the second row of the log of costs by a text of its size.
	row := func(text string) hurt {
		return edited(layout.CostLog, func(log string) string {
			lines := strings.Split(log, "\n")
			lines[1] = text + strings.Repeat(" ", len(lines[1])-len(text))
			return strings.Join(lines, "\n")
		})
	}
	start := records.StartRow{TS: moment(99), Seq: 99, LogDecision: run.LogDecision{Decision: run.FoundPaused}}
	const s1, s2 = "_orchestrator/checkpoints/cp-S1", "_orchestrator/checkpoints/cp-S2"
	const manifest, reply = s1 + "/manifest.json", "_orchestrator/passes/pass-002/raw-output.txt"
	damaged, behind, checkpoint := codes{fsck.DerivedFileDamaged}, codes{fsck.DerivedFileBehind},
		codes{fsck.CheckpointDamaged}
	return []injury{
		{"the rows of all calls are lost", "done", file(layout.TracesFile, ""), behind, layout.TracesFile, nil},
		{"the row of a call is that of another, and state.json is missing", "paused",
			all(rowOfAnother, gone(layout.StateFile)),
			append(codes{fsck.CallIDDuplicate, fsck.EvidenceDamaged, fsck.DerivedFileBehind}, damaged...),
			"_orchestrator/state.json traces.jsonl", nil},
		{"the row of a call is that of another, and a row of provenance was changed", "paused",
			all(rowOfAnother, oneByte(layout.ProvenanceFile)), append(codes{fsck.CallIDDuplicate, fsck.EvidenceDamaged},
				damaged...), "traces.jsonl provenance.jsonl traces.jsonl", nil},
		{"a log has no line where meta.json has its end", "done",
			edited(layout.CostLog, func(log string) string { return strings.TrimSuffix(log, "\n") + " \n" }), behind,
			layout.CostLog, nil},
		{"a row is not JSON", "done", row("x"), damaged, layout.CostLog, nil},
		{"a row is not an object", "done", row("7"), damaged, layout.CostLog, nil},
		{"a row of an earlier release is not an object", "done", all(unmarked, row("7")),
			codes{fsck.LogRowUnreadable}, layout.CostLog, nil},
		{"the row of a start is in another log", "paused", func(t *testing.T, d projector.Dir) {
			appendTo(t, d, layout.CostLog, start.Line()+"\n")
		}, damaged, layout.CostLog, nil},
		{"two rows behind those of the run", "paused", all(rowTwice(layout.CostLog), rowTwice(layout.CostLog)), damaged,
			layout.CostLog, nil},
		{"an empty log is missing", "paused", gone(layout.ErrorsLog), damaged, layout.ErrorsLog, nil},

		{"a checkpoint has the manifest of another", "done", func(t *testing.T, d projector.Dir) {
			write(t, d, manifest, look(t, d)[s2+"/manifest.json"])
		}, checkpoint, s1, nil},
		{"the manifest of a checkpoint has another id", "done", swapped(manifest, `"cp-S1"`, `"cp-S9"`), checkpoint, s1,
			nil},
		{"the manifest of a checkpoint has another artifact", "done",
			swapped(manifest, `"artifactHash": "....`, `"artifactHash": "0000`), checkpoint, s1, nil},
		{"the manifest of a checkpoint has another state", "done",
			swapped(manifest, `"stateHash": "....`, `"stateHash": "0000`), checkpoint, s1, nil},
		{"the manifest of a checkpoint has another time", "done",
			swapped(manifest, `"createdAt": "2026`, `"createdAt": "2027`), checkpoint, s1, nil},
		{"a note of a checkpoint was changed", "done", file(s1+"/conviction-layer.md", "x"), checkpoint, s1, nil},

		{"a byte of a line was changed that the store has, and a reply is missing", "stored",
			all(swapped(layout.EventsFile, "03:04", "03:05"), gone(reply)), codes{fsck.ChainMismatch}, layout.EventsFile, nil},
		{"a line is cut in its middle", "paused", edited(layout.EventsFile, func(text string) string {
			return text[:len(text)-20]
		}), codes{fsck.ChainMismatch, fsck.StatusMismatch, fsck.StreamTornTail}, "",
			codes{fsck.ChainMismatch, fsck.StatusMismatch, fsck.StreamTornTail}},
		{"a line is longer", "paused", swapped(layout.EventsFile, `"seq":3,`, `"seq":3, `),
			append(codes{fsck.ChainMismatch, fsck.StatusMismatch}, behind...), "",
			append(codes{fsck.ChainMismatch, fsck.StatusMismatch}, behind...)},
		{"meta.json counts an event too many", "paused", func(t *testing.T, d projector.Dir) { seen(t, d, 1) },
			append(codes{fsck.ChainMismatch}, behind...), "", append(codes{fsck.ChainMismatch}, behind...)},
		{"half a line is left of events.jsonl, and meta.json is missing", "done",
			all(file(layout.EventsFile, `{"seq":1`), gone(layout.MetaFile)),
			codes{fsck.StreamMissing, fsck.StreamTornTail}, "", codes{fsck.StreamMissing, fsck.StreamTornTail}},
		{"the last number is missing, and so is a reply", "paused", all(renumbered(+1), gone(reply)),
			codes{fsck.StreamSeqGap}, "", codes{fsck.StreamSeqGap}},
		{"the last number is there twice, and a reply is missing", "paused", all(renumbered(-1), gone(reply)),
			codes{fsck.StreamSeqDuplicate}, "", codes{fsck.StreamSeqDuplicate}},
		{"a line in meta.json is not JSON, and a reply is missing", "paused",
			all(edited(layout.EventsFile, func(text string) string { return text + "x\n" }),
				func(t *testing.T, d projector.Dir) { seen(t, d, 0) }, gone(reply)),
			append(codes{fsck.StreamLineUnreadable}, behind...), "",
			append(codes{fsck.StreamLineUnreadable}, behind...)},
	}
}

// renumbered gives the last event another number, and meta.json the mark of it.
func renumbered(by int) func(*testing.T, projector.Dir) {
	return func(t *testing.T, d projector.Dir) {
		edited(layout.EventsFile, lastLine(func(line string) string {
			var n int
			_, err := fmt.Sscanf(line, `{"seq":%d,`, &n)
			require.NoError(t, err)
			return strings.Replace(line, fmt.Sprintf(`{"seq":%d,`, n), fmt.Sprintf(`{"seq":%d,`, n+by), 1)
		}))(t, d)
		seen(t, d, 0)
	}
}

// projectBodies are runs of Passbook across projects.
func projectBodies() []body {
	return []body{{"own projects", func(t *testing.T) (projector.Dir, fakeBlobs) {
		s := newStory(t)
		s.add(run.KindRunStart, run.RunStart{Task: "t", RunKind: "cross_project", Pipeline: "page", RunID: "run-1",
			ThreadID: "thread-1", Epoch: 1, CreatedAt: moment(0), Projects: []run.ProjectRef{
				{Alias: "api", RunID: "run-api", Source: "/api"}, {Alias: "web", RunID: "run-web", Source: "/web"}}})
		s.add(run.KindProjectStarted, run.ProjectStart{Alias: "api", RunID: "run-api"})
		s.send()
		d := written(t, s)
		place(t, d, "api/meta.json", `{"status": "running", "project_alias": "api"}`)
		return d, s.blobs
	}, nil}}
}

func projectInjuries() []injury {
	type codes = []fsck.Code
	cross := func(code run.CrossCode) fsck.Code { return fsck.Code("cross_parent_" + string(code)) }
	return []injury{
		{"cross_checkpoint.json of ours is half a file", "own projects", cutInHalf(layout.CrossFile),
			codes{fsck.CrossCheckpointUnreadable, fsck.DerivedFileDamaged}, layout.CrossFile, nil},
		{"cross_checkpoint.json of ours is ahead of the project", "own projects",
			swapped(layout.CrossFile, `"api": "running"`, `"api": "done"`),
			codes{cross(run.CheckpointSubStatusContradiction), fsck.DerivedFileDamaged}, layout.CrossFile, nil},
		{"a project asks, and the run has not forwarded it yet", "own projects", func(t *testing.T, d projector.Dir) {
			place(t, d, "api/meta.json", `{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-9"}}`)
		}, nil, "", nil},
	}
}

// moreInjuries are all of these rows.
func moreInjuries() []injury { return slices.Concat(fileInjuries(), projectInjuries()) }
