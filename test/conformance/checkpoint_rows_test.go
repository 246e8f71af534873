package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachCheckpoint looks at the records of the demo's checkpoints.
func eachCheckpoint(t *testing.T, look func(r result, c object)) {
	t.Helper()
	r := demoRun.get(t)
	list := r.state(t).objects(t, "checkpoints")
	require.Len(t, list, 10)
	for _, c := range list {
		look(r, c)
	}
}

// checkpointRows are named places in a run.
func checkpointRows() rows {
	return rows{
		"CK-01": func(t *testing.T) {
			list := demoRun.get(t).state(t).objects(t, "checkpoints")
			for n := 1; n <= 7; n++ {
				require.Equal(t, fmt.Sprintf("cp-S%d", n), list[n-1].text(t, "id"))
				require.EqualValues(t, 8*n, list[n-1].number(t, "atPassNumber"))
				require.DirExists(t, demoRun.get(t).path(fmt.Sprintf("_orchestrator/checkpoints/cp-S%d", n)))
			}
		},
		"CK-02": func(t *testing.T) {
			list := demoRun.get(t).state(t).objects(t, "checkpoints")
			for n := 1; n <= 3; n++ {
				require.Equal(t, fmt.Sprintf("cp-PA-%d", n), list[6+n].text(t, "id"))
				require.EqualValues(t, n, list[6+n].number(t, "atPACycle"))
			}
		},
		"CK-03": func(t *testing.T) {
			r := restedRun.get(t)
			list := rest.paused.objects(t, "checkpoints")
			require.Len(t, list, 1)
			require.Regexp(t, `^cp-PAUSE-\d{8}T\d{6}Z$`, list[0].text(t, "id"))
			require.FileExists(t, r.path(list[0].text(t, "checkpointDir")+"/manifest.json"))
		},
		"CK-04": func(t *testing.T) {
			eachCheckpoint(t, func(r result, c object) {
				require.Equal(t, "_orchestrator/checkpoints/"+c.text(t, "id"), c.text(t, "checkpointDir"))
				require.ElementsMatch(t, []string{"artifact.html", "conviction-layer.md", "discovery-log.md",
					"manifest.json", "state-snapshot.json"},
					names(t, r.path(c.text(t, "checkpointDir"))))
			})
		},
		"CK-05": func(t *testing.T) {
			r := claudeRun.get(t)
			require.ElementsMatch(t, []string{"manifest.json", "state-snapshot.json"},
				names(t, r.path("_orchestrator/checkpoints/cp-asked")))
		},
		"CK-06": func(t *testing.T) {
			eachCheckpoint(t, func(r result, c object) {
				require.ElementsMatch(t, []string{
					"id", "createdAt", "atPassNumber", "atPACycle", "checkpointDir", "artifactHash", "stateHash",
					"costAtCheckpoint", "qualitySnapshot",
				}, c.keys())
				require.ElementsMatch(t, []string{"lastPAScore", "validationFailureCount", "convictionEntries",
					"discoveryEntries"}, c.in(t, "qualitySnapshot").keys())
				require.Equal(t, c, parse(t, r.file(t, c.text(t, "checkpointDir")+"/manifest.json")))
				require.Equal(t, strings.HasPrefix(c.text(t, "id"), "cp-S"), c.number(t, "atPACycle") == 0)
			})
		},
		"CK-07": func(t *testing.T) {
			eachCheckpoint(t, func(r result, c object) {
				require.Equal(t, digest(r.file(t, c.text(t, "checkpointDir")+"/artifact.html")),
					c.text(t, "artifactHash"))
				require.Equal(t, digest(r.file(t, c.text(t, "checkpointDir")+"/state-snapshot.json")),
					c.text(t, "stateHash"))
			})
		},
		"CK-08": func(t *testing.T) {
			eachCheckpoint(t, func(r result, c object) {
				snapshot := parse(t, r.file(t, c.text(t, "checkpointDir")+"/state-snapshot.json"))
				require.Subset(t, snapshot.keys(), topKeys)
				require.Equal(t, c["atPassNumber"], snapshot.at(t, "lastCompletedCorpusPass"))
				require.Len(t, snapshot.in(t, "passRecords"), int(c.number(t, "atPassNumber")))
				require.Equal(t, c["artifactHash"], snapshot.at(t, "currentArtifactHash"))
				require.InDelta(t, c.number(t, "costAtCheckpoint"), snapshot.number(t, "cost.totalEstimatedCostUsd"),
					1e-6)
			})
		},
		"CK-17": testCheckpointList,
	}
}

// testCheckpointList compares what the verb lists with what the state holds.
func testCheckpointList(t *testing.T) {
	var listed []object
	require.NoError(t, json.Unmarshal([]byte(starter(t, "checkpoints", "--json", demoRun.get(t).dir)), &listed))
	require.Len(t, listed, 10)
	output := starter(t, "checkpoints", "--output-dir", demoRun.get(t).dir)
	i := 0
	eachCheckpoint(t, func(_ result, c object) {
		require.Equal(t, object{
			"id": c["id"], "createdAt": c["createdAt"], "atPass": c["atPassNumber"], "atPACycle": c["atPACycle"],
			"cost":               c["costAtCheckpoint"],
			"paScore":            c.at(t, "qualitySnapshot.lastPAScore"),
			"validationFailures": c.at(t, "qualitySnapshot.validationFailureCount"),
			"artifactHash":       c["artifactHash"], "generation": 0.0, "inForce": true, "seq": listed[i]["seq"],
			"unknownCalls": 0.0,
		}, listed[i])
		require.Positive(t, listed[i].number(t, "seq"))
		require.Regexp(t, fmt.Sprintf(`(?m)^%s +\S.* UTC +%v +%v +\$%.2f `, c["id"], c["atPassNumber"], c["atPACycle"],
			c["costAtCheckpoint"]), output)
		i++
	})
}

// names lists a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
