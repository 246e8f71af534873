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

// refusal is what a verb of the starter said, and the code that it ended with.
type refusal struct {
	output        string
	code          int
	before, after map[string]string // the directory
}

// back is what was seen of the run that went back to cp-S3, before and after it did.
var back struct {
	live          refusal           // a revert while it runs
	unknown, hurt refusal           // reverts that cannot be
	before        object            // state.json at the pause in pass 32
	files         map[string]string // the directory at that time
	logs          map[string]string // its logs
	there         object            // state.json where the run had gone back, before anything was called
	artifact      string            // as they were then
	notes         map[string]string
}

// makeReverted is the demo once more, paused in pass 32 and taken back to the end of the third set.
func makeReverted(t *testing.T) result {
	starter(t, "server", "start")
	spoil(t, "- {at: 32, do: slow, seconds: 5}")
	r := result{dir: filepath.Join(base, "reverted")}
	from := len(calls(t, 0))
	starter(t, "run", "--config", example("pipeline.yaml"), "--output-dir", r.dir, "--detach")
	begun(t, r, 32)
	back.live.output, back.live.code = try(t, "revert", "--checkpoint", "cp-S3", "--output-dir", r.dir)
	pause(t, r, 1)
	starter(t, "budget", r.dir, "--usd", "10") // what is done twice is paid for twice
	until(t, "the budget is recorded", func() bool {
		return count(r.text(t), `Budget set to \$10\.00`) == 1 &&
			r.settled(t)
	})
	back.unknown = unmoved(t, r, "revert", "--checkpoint", "cp-S9", "--output-dir", r.dir)
	back.hurt = unmovedWhileHurt(t, r)
	back.before, back.files, back.logs = r.state(t), tree(t, r.dir), map[string]string{}
	for _, name := range names(t, r.path(logs)) {
		back.logs[name] = string(r.file(t, logs+name))
	}

	spoil(t, "- {at: 25, do: slow, seconds: 3}")
	s := watch(t, r.dir)
	starter(t, "revert", "--checkpoint", "cp-S3", "--output-dir", r.dir)
	begun(t, r, 25)
	back.artifact, back.notes = string(r.file(t, "artifact.html")), map[string]string{}
	for _, name := range notes {
		back.notes[name] = string(r.file(t, "_orchestrator/"+name))
	}
	r.output = starter(t, "run", "--config", example("pipeline.yaml"), "--output-dir", r.dir)
	r.seen, r.calls = s.end(), calls(t, from)
	at := slices.IndexFunc(r.seen.states, func(o object) bool {
		return o["lastSeq"] != nil &&
			o["generation"] == float64(1)
	})
	require.GreaterOrEqual(t, at, 0, "nobody has seen the run where it had gone back to")
	back.there = r.seen.states[at]
	return r
}

var notes = []string{"conviction-layer.md", "discovery-log.md"}

// unmoved runs a verb that must not change anything.
func unmoved(t *testing.T, r result, args ...string) refusal {
	t.Helper()
	f := refusal{before: tree(t, r.dir)}
	f.output, f.code = try(t, args...)
	f.after = tree(t, r.dir)
	return f
}

// unmovedWhileHurt flips a bit in the artifact of cp-S3, and mends it afterwards.
func unmovedWhileHurt(t *testing.T, r result) refusal {
	t.Helper()
	file := r.path("_orchestrator/checkpoints/cp-S3/artifact.html")
	whole := read(t, file)
	hurt := slices.Clone(whole)
	hurt[len(hurt)/2] ^= 1
	require.NoError(t, os.WriteFile(file, hurt, 0o600))
	f := unmoved(t, r, "revert", "--checkpoint", "cp-S3", "--output-dir", r.dir)
	require.NoError(t, os.WriteFile(file, whole, 0o600))
	return f
}

// revertRows are a run that was taken back to a checkpoint.
func revertRows() rows {
	return rows{
		"CK-11": func(t *testing.T) {
			r := revertedRun.get(t)
			c := back.before.objects(t, "checkpoints")[2]
			require.Equal(t, "cp-S3", c.text(t, "id"))
			require.Equal(t, c.text(t, "artifactHash"), digest([]byte(back.artifact)))
			require.NotEqual(t, back.files["artifact.html"], digest([]byte(back.artifact)),
				"it was another page before")
			for _, name := range notes {
				require.Equal(t, string(r.file(t, "_orchestrator/checkpoints/cp-S3/"+name)), back.notes[name])
				require.NotEqual(t, back.files["_orchestrator/"+name], digest([]byte(back.notes[name])))
			}
			require.EqualValues(t, 24, back.there.number(t, "lastCompletedCorpusPass"))
			require.Len(t, back.there.in(t, "passRecords"), 24)
			require.Equal(t, []int{2, 2}, []int{started(r.calls, "025"), started(r.calls, "032")},
				"the next pass is 25")
			require.Equal(t, 1, started(r.calls, "024"))
		},
		"CK-12": func(t *testing.T) {
			revertedRun.get(t)
			require.Equal(t, 1, back.hurt.code, back.hurt.output)
			require.Contains(t, back.hurt.output, "artifact integrity check failed")
			require.Equal(t, back.hurt.before, back.hurt.after, "something was changed")
		},
		"CK-13": func(t *testing.T) {
			revertedRun.get(t)
			require.Equal(t, "paused", back.before.text(t, "currentPhase"))
			// the first pass after the revert may have begun in the same write
			if next := back.there.at(t, "inFlightPass"); next != nil {
				require.EqualValues(t, 25, next.(map[string]any)["globalPassNumber"])
			}
			require.Equal(t, "corpus-integration", back.there.text(t, "currentPhase"))
			require.Nil(t, back.there.at(t, "phaseReason"))
			require.EqualValues(t, 0, back.there.number(t, "completedPACycles"))
		},
		"CK-14": func(t *testing.T) {
			r := revertedRun.get(t)
			found := where(r.state(t).objects(t, "errorHistory"), "context", "revert-to-cp-S3")
			require.Len(t, found, 1)
			require.Equal(t, "Pipeline reverted to checkpoint cp-S3 (pass 24, PA cycle 0)", found[0].text(t, "message"))
			require.Equal(t, true, found[0].at(t, "recovered"))
			require.Equal(t, fmt.Sprintf("Previous cost: $%.2f", back.before.number(t, "cost.totalEstimatedCostUsd")),
				found[0].text(t, "diagnostics"))
			require.Equal(t, found, where(back.there.objects(t, "errorHistory"), "context", "revert-to-cp-S3"))
		},
		"CK-15": testNothingIsLost,
		"CK-16": func(t *testing.T) {
			r := revertedRun.get(t)
			require.Equal(t, digest(demoRun.get(t).file(t, "artifact.html")), digest(r.file(t, "artifact.html")))
			require.Equal(t, demoRun.get(t).state(t).text(t, "currentArtifactHash"),
				r.state(t).text(t, "currentArtifactHash"))
			for _, name := range notes {
				require.Equal(t, string(demoRun.get(t).file(t, "_orchestrator/"+name)),
					string(r.file(t, "_orchestrator/"+name)))
			}
			require.Len(t, r.state(t).in(t, "passRecords"), 56)
		},
		"CK-18": func(t *testing.T) {
			revertedRun.get(t)
			require.Equal(t, 2, back.unknown.code, back.unknown.output)
			require.Contains(t, back.unknown.output, "has no checkpoint cp-S9: there are cp-S1, cp-S2, cp-S3")
			require.Equal(t, back.unknown.before, back.unknown.after, "something was changed")
		},
		"CL-10": func(t *testing.T) {
			r := revertedRun.get(t)
			require.Equal(t, 5, back.live.code, back.live.output)
			require.Contains(t, back.live.output, "cannot revert a run that is running")
			require.Len(t, where(lines(t, r.file(t, "events.jsonl")), "kind", "run.reverted"), 1)
		},
	}
}

// testNothingIsLost: logs only grow, and what the passes behind the checkpoint left lies beside what they leave when
// they are done again.
func testNothingIsLost(t *testing.T) {
	r := revertedRun.get(t)
	for name, was := range back.logs {
		require.True(t, strings.HasPrefix(string(r.file(t, logs+name)), was), "%s does not begin as it was", name)
	}
	for n := 25; n <= 32; n++ {
		dir := strings.TrimSuffix(passDir(n), "/")
		for _, file := range names(t, r.path(dir+"~1")) {
			require.Equal(t, back.files[dir+"/"+file], digest(r.file(t, dir+"~1/"+file)), "%s of pass %d", file, n)
		}
		require.ElementsMatch(t, names(t, r.path(dir)), names(t, r.path(dir+"~1")))
	}
	require.NoDirExists(t, r.path(strings.TrimSuffix(passDir(24), "/")+"~1"))
	require.Equal(t, back.files["_orchestrator/checkpoints/cp-S4/manifest.json"],
		digest(r.file(t, "_orchestrator/checkpoints/cp-S4~1/manifest.json")))
	require.InDelta(t, back.before.number(t, "cost.totalEstimatedCostUsd")-back.there.objects(t,
		"checkpoints")[2].number(t, "costAtCheckpoint"),
		r.state(t).number(t, "sunkCostUsd"), 1e-6)
}
