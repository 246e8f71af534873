package conformance

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// archived is a run that was moved aside.
type archived struct {
	result
	name string // relative to the run directory
}

// archive is the only archive of a run directory.
func archive(t *testing.T, r result) archived {
	t.Helper()
	found := names(t, r.path("_orchestrator/archives"))
	require.Len(t, found, 1)
	name := path.Join("_orchestrator/archives", found[0])
	return archived{result{dir: r.path(name)}, name}
}

// injuryRows are what happens to a directory that was used, hurt or edited.
func injuryRows() rows {
	return rows{
		"AV-01": func(t *testing.T) {
			old := archive(t, archivedRun.get(t))
			state := parse(t, old.file(t, "state.json"))
			started := strings.NewReplacer(":", "-", ".", "-").Replace(state.text(t, "startedAt"))
			require.Equal(t, "run-"+state.text(t, "runId")+"-"+started, filepath.Base(old.dir))
			require.Regexp(t, `^run-[0-9a-f-]{36}-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$`, filepath.Base(old.dir))
		},
		"AV-02": func(t *testing.T) {
			old := archive(t, archivedRun.get(t))
			require.Subset(t, names(t, old.dir), []string{
				"state.json", "logs", "conviction-layer.md", "discovery-log.md", "passes", "screenshots", "checkpoints",
				"artifact.html", "events.jsonl", "meta.json",
			})
			for name, was := range before {
				moved := strings.TrimPrefix(filepath.ToSlash(name), "_orchestrator/")
				require.Equal(t, was, digest(old.file(t, moved)), "%s is lost, or another one", name)
			}
		},
		"AV-03": func(t *testing.T) {
			r := archivedRun.get(t)
			old := archive(t, r)
			require.Contains(t, r.output, "Archived old state. Starting fresh.")
			require.NotEqual(t, parse(t, old.file(t, "state.json")).text(t, "runId"), r.state(t).text(t, "runId"))
			require.NotEqual(t, string(old.file(t, "passes/pass-001/prompt.md")), r.prompt(t, 1),
				"the other configuration asks otherwise")
			require.Contains(t, string(old.file(t, "passes/pass-001/prompt.md")), "[4/5] R4")
			require.Len(t, r.log(t, "passes.jsonl"), 16, "the fresh log has lines of the fresh run only")
			require.Regexp(t,
				regexp.MustCompile(`\[WARN\]  Config changed \(old: [0-9a-f]{16}, new: [0-9a-f]{16}\)\. `+
					`Archived old state\. Starting fresh\.`), r.text(t))
		},
		"AT-01": func(t *testing.T) {
			kernel := demoRun.get(t).seen.kernel
			if !kernel.works {
				t.Skip("only Linux tells which files came and went")
			}
			require.Equal(t, kernel.renamed, kernel.replaced,
				"state.json was replaced by something that was not a state.json.tmp.* beside it")
			require.GreaterOrEqual(t, kernel.whole, 56+7+3+2, "too few were followed from beginning to end")
			require.Empty(t, kernel.unread, "a temporary file was not read before it was renamed")
		},
		"AT-02": func(t *testing.T) {
			r := fullRun.get(t)
			require.Equal(t, ordeal.full.before["artifact.html"], ordeal.full.after["artifact.html"])
			require.EqualValues(t, 3, parse(t, []byte(ordeal.full.state)).number(t, "schemaVersion"),
				"state.json is whole while the disk is full")
			require.Empty(t, ordeal.full.temps, "temporary files are left on the full disk")
			require.Contains(t, ordeal.full.output, "no space left on device")
			require.Equal(t, againRun.get(t).state(t).text(t, "currentArtifactHash"),
				r.state(t).text(t, "currentArtifactHash"), "the run goes on where it stood")
			require.Len(t, r.costs(t), 25)
		},
		"AT-03": testSyncs,
		"AT-04": func(t *testing.T) {
			r := restedRun.get(t)
			require.NoFileExists(t, r.path("_orchestrator/state.json.tmp.1"))
			require.Equal(t, "complete", r.state(t).text(t, "currentPhase"))
		},
		"IN-01": func(t *testing.T) {
			r := restedRun.get(t)
			accepted := r.decisions(t, "accept-edit")
			require.Len(t, accepted, 1)
			require.Equal(t, rest.edited, accepted[0].text(t, "artifactHash"), "the hash is that of the bytes on disk")
			require.Equal(t, 1, count(r.text(t), `\[WARN\]  Artifact modified outside orchestrator\. Updating hash\.$`))
			require.Contains(t, string(r.file(t, "artifact.html")), edit, "the edit is in the page at the end")
			restored := r.decisions(t, "restore-artifact")
			require.Len(t, restored, 1, "the file was removed in the second pause")
			require.Equal(t, rest.removed, restored[0].text(t, "artifactHash"))
			require.Empty(t, againRun.get(t).decisions(t, "accept-edit"))
		},
		"RX-26": func(t *testing.T) {
			fullRun.get(t)
			require.NotZero(t, ordeal.refused.code)
			require.Contains(t, ordeal.refused.output, "read-only")
			require.NotContains(t, ordeal.refused.output, "panic")
			require.Equal(t, ordeal.refused.calls, 0, "an agent was asked")
			require.Contains(t, ordeal.locked.output, "read-only file system")
			require.EqualValues(t, 3, parse(t, []byte(ordeal.locked.state)).number(t, "schemaVersion"))
		},
	}
}
