package conformance

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// archiveOf returns the only archive of a run directory.
func archiveOf(t *testing.T, r result) result {
	t.Helper()
	found := names(t, r.path("_orchestrator/archives"))
	require.Len(t, found, 1)
	return result{dir: r.path("_orchestrator/archives/" + found[0])}
}

// archiveRows are archives, writing and integrity.
func archiveRows() rows {
	return rows{
		"AV-01 AV-02": func(t *testing.T) {
			old := archiveOf(t, archivedRun.get(t))
			state := parse(t, old.file(t, "state.json"))
			started := strings.NewReplacer(":", "-", ".", "-").Replace(state.text(t, "startedAt"))
			require.Equal(t, "run-"+state.text(t, "runId")+"-"+started, filepath.Base(old.dir))
			require.Regexp(t, `^run-[0-9a-f-]{36}-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$`, filepath.Base(old.dir))
			for name, was := range beforeArchive {
				moved := strings.TrimPrefix(filepath.ToSlash(name), "_orchestrator/")
				require.Equal(t, was, digest(old.file(t, moved)), name)
			}
		},
		"AV-03 LG-25": func(t *testing.T) {
			r := archivedRun.get(t)
			old := archiveOf(t, r)
			require.NotEqual(t, parse(t, old.file(t, "state.json")).text(t, "runId"), r.state(t).text(t, "runId"))
			require.NotEqual(t, string(old.file(t, "passes/pass-001/prompt.md")), r.prompt(t, 1),
				"the other configuration has other prompts")
			require.Len(t, r.log(t, "passes.jsonl"), 16, "the new log has lines of the new run only")
			require.Contains(t, strings.SplitN(r.text(t), "\n", 2)[0],
				"Pipeline started. Run ID: "+r.state(t).text(t, "runId"))
		},
		"AT-04": func(t *testing.T) {
			r := pausedRun.get(t)
			require.NoFileExists(t, r.path("_orchestrator/state.json.tmp.1"))
			require.Equal(t, "complete", r.state(t).text(t, "currentPhase"))
		},
		"IN-01": func(t *testing.T) {
			r := pausedRun.get(t)
			accepted := r.decisions(t, "accept-edit")
			require.Len(t, accepted, 1)
			require.Equal(t, atPause.edited, accepted[0].text(t, "artifactHash"))
			require.Equal(t, 1, count(r.text(t), `\[WARN\]  Artifact modified outside orchestrator\. Updating hash\.$`))
			require.Contains(t, string(r.file(t, "artifact.html")), edit)
			restored := r.decisions(t, "restore-artifact")
			require.Len(t, restored, 1)
			require.Equal(t, atPause.removed, restored[0].text(t, "artifactHash"))
			require.Empty(t, tinyRun.get(t).decisions(t, "accept-edit"))
		},
	}
}
