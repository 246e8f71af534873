package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var revertedRun = &shared{make: makeReverted}

// refusal is a command that failed: its output and exit code, and the directory before and after it.
type refusal struct {
	output        string
	code          int
	before, after map[string]string
}

// reverted is what was seen of the run that was reverted to cp-S1.
var reverted struct {
	live             refusal           // a revert of the running run
	unknown, damaged refusal           // reverts to a checkpoint that does not exist or is damaged
	before           object            // state.json during the pause in pass 12
	files            map[string]string // the digests of the directory at that time
	logs             map[string]string // its logs
	after            object            // state.json after the revert, before any call
	artifact         string            // and the artifact and notes at that time
	notes            map[string]string
}

// makeReverted is the small pipeline, paused in pass 12 and reverted to the end of the first set.
func makeReverted(t *testing.T) result {
	starter(t, "server", "start")
	setRowsFaults(t, rowsEnv.held("12", 1))
	r := result{dir: filepath.Join(base, "reverted")}
	from := len(calls(t, 0))
	runTiny(t, r.dir, "--detach")
	begun(t, r, 12)
	reverted.live.output, reverted.live.code = try(t, "revert", "--checkpoint", "cp-S1", "--output-dir", r.dir)
	pause(t, r, 1, "12")
	starter(t, "budget", r.dir, "--usd", "10") // repeated passes are paid twice
	until(t, "the budget is recorded", func() bool {
		return count(r.text(t), `Budget set to \$10\.00`) == 1 && r.settled(t)
	})
	reverted.unknown = refuse(t, r, "revert", "--checkpoint", "cp-S9", "--output-dir", r.dir)
	file := r.path("_orchestrator/checkpoints/cp-S1/artifact.html")
	whole := read(t, file)
	damaged := slices.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	require.NoError(t, os.WriteFile(file, damaged, 0o600))
	reverted.damaged = refuse(t, r, "revert", "--checkpoint", "cp-S1", "--output-dir", r.dir)
	require.NoError(t, os.WriteFile(file, whole, 0o600))
	reverted.before, reverted.files, reverted.logs = r.state(t), tree(t, r.dir), r.logFiles(t)

	setRowsFaults(t, rowsEnv.held("9", 1))
	s := observe(t, r.dir)
	starter(t, "revert", "--checkpoint", "cp-S1", "--output-dir", r.dir)
	begun(t, r, 9)
	reverted.artifact, reverted.notes = string(r.file(t, "artifact.html")), map[string]string{}
	for _, name := range notes {
		reverted.notes[name] = string(r.file(t, "_orchestrator/"+name))
	}
	rowsEnv.release(t, "9")
	r.output = runTiny(t, r.dir)
	r.seen, r.calls = s.end(), calls(t, from)
	at := slices.IndexFunc(r.seen.states, func(o object) bool { return o["lastSeq"] != nil && o["generation"] == 1.0 })
	require.GreaterOrEqual(t, at, 0, "the observer missed the reverted state")
	reverted.after = r.seen.states[at]
	return r
}

var notes = []string{"conviction-layer.md", "discovery-log.md"}

// refuse runs a command that must not change anything.
func refuse(t *testing.T, r result, args ...string) refusal {
	t.Helper()
	f := refusal{before: tree(t, r.dir)}
	f.output, f.code = try(t, args...)
	f.after = tree(t, r.dir)
	return f
}

// revertRows are a run that was reverted to a checkpoint.
func revertRows() rows {
	return rows{
		"CK-11": func(t *testing.T) {
			r := revertedRun.get(t)
			c := reverted.before.objects(t, "checkpoints")[0]
			require.Equal(t, "cp-S1", c.text(t, "id"))
			require.Equal(t, c.text(t, "artifactHash"), digest([]byte(reverted.artifact)))
			require.NotEqual(t, reverted.files["artifact.html"], digest([]byte(reverted.artifact)))
			for _, name := range notes {
				require.Equal(t, string(r.file(t, "_orchestrator/checkpoints/cp-S1/"+name)), reverted.notes[name])
				require.NotEqual(t, reverted.files["_orchestrator/"+name], digest([]byte(reverted.notes[name])))
			}
			require.EqualValues(t, 8, reverted.after.number(t, "lastCompletedCorpusPass"))
			require.Len(t, reverted.after.in(t, "passRecords"), 8)
			for at, want := range map[string]int{"008": 1, "009": 2, "012": 2, "013": 1} {
				require.Equal(t, want, started(r.calls, at), at)
			}
		},
		"CK-12 CK-18 CL-10": func(t *testing.T) {
			r := revertedRun.get(t)
			require.Equal(t, 5, reverted.live.code, "of a running run")
			require.Len(t, where(lines(t, r.file(t, "events.jsonl")), "kind", "run.reverted"), 1)
			require.Equal(t, 1, reverted.damaged.code)
			require.Contains(t, reverted.damaged.output, "artifact integrity check failed")
			require.Equal(t, reverted.damaged.before, reverted.damaged.after)
			require.Equal(t, 2, reverted.unknown.code)
			require.Contains(t, reverted.unknown.output, "has no checkpoint cp-S9: there are cp-S1, ")
			require.Equal(t, reverted.unknown.before, reverted.unknown.after)
		},
		"CK-13": func(t *testing.T) {
			revertedRun.get(t)
			require.Equal(t, "paused", reverted.before.text(t, "currentPhase"))
			// the first pass after the revert may have begun in the same write
			if next := reverted.after.at(t, "inFlightPass"); next != nil {
				require.EqualValues(t, 9, next.(map[string]any)["globalPassNumber"])
			}
			require.Equal(t, "corpus-integration", reverted.after.text(t, "currentPhase"))
			require.Nil(t, reverted.after.at(t, "phaseReason"))
			require.EqualValues(t, 0, reverted.after.number(t, "completedPACycles"))
		},
		"CK-14": func(t *testing.T) {
			r := revertedRun.get(t)
			found := where(r.state(t).objects(t, "errorHistory"), "context", "revert-to-cp-S1")
			require.Len(t, found, 1)
			require.Equal(t, "Pipeline reverted to checkpoint cp-S1 (pass 8, PA cycle 0)", found[0].text(t, "message"))
			require.Equal(t, true, found[0].at(t, "recovered"))
			require.Equal(t, fmt.Sprintf("Previous cost: $%.2f", reverted.before.number(t, "cost.totalEstimatedCostUsd")),
				found[0].text(t, "diagnostics"))
			require.Equal(t, found, where(reverted.after.objects(t, "errorHistory"), "context", "revert-to-cp-S1"))
		},
		"CK-15": testWorkIsKept,
		"CK-16": func(t *testing.T) {
			r := revertedRun.get(t)
			require.Equal(t, digest(tinyRun.get(t).file(t, "artifact.html")), digest(r.file(t, "artifact.html")))
			for _, name := range notes {
				require.Equal(t, string(tinyRun.get(t).file(t, "_orchestrator/"+name)),
					string(r.file(t, "_orchestrator/"+name)))
			}
			require.Len(t, r.state(t).in(t, "passRecords"), 16)
		},
	}
}

// testWorkIsKept: logs only grow, and the files of the abandoned passes are kept beside those of their repetitions.
func testWorkIsKept(t *testing.T) {
	r := revertedRun.get(t)
	for name, was := range reverted.logs {
		require.True(t, strings.HasPrefix(string(r.file(t, logs+name)), was), name)
	}
	for n := 9; n <= 12; n++ {
		dir := strings.TrimSuffix(passDir(n), "/")
		for _, file := range names(t, r.path(dir+"~1")) {
			require.Equal(t, reverted.files[dir+"/"+file], digest(r.file(t, dir+"~1/"+file)), "%s of pass %d", file, n)
		}
		require.ElementsMatch(t, names(t, r.path(dir)), names(t, r.path(dir+"~1")))
	}
	require.NoDirExists(t, r.path(strings.TrimSuffix(passDir(8), "/")+"~1"))
	paused := reverted.before.objects(t, "checkpoints")[1].text(t, "checkpointDir")
	require.Equal(t, reverted.files[paused+"/manifest.json"], digest(r.file(t, paused+"/manifest.json")))
	kept := reverted.after.objects(t, "checkpoints")[0].number(t, "costAtCheckpoint")
	require.InDelta(t, reverted.before.number(t, "cost.totalEstimatedCostUsd")-kept, r.state(t).number(t, "sunkCostUsd"),
		1e-6)
}
