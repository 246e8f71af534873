package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachCheckpoint calls a function with the record of each checkpoint of the demo.
func eachCheckpoint(t *testing.T, check func(r result, c object)) {
	t.Helper()
	r := demoRun.get(t)
	for _, c := range r.state(t).objects(t, "checkpoints") {
		check(r, c)
	}
}

// checkpointRows are the checkpoints of a run.
func checkpointRows() rows {
	return rows{
		"CK-01 CK-02 ST-31": func(t *testing.T) {
			type place struct {
				ID          string
				Pass, Cycle float64
			}
			var want, got []place
			last := ""
			for n := 1.0; n <= 7; n++ {
				want = append(want, place{fmt.Sprintf("cp-S%v", n), 8 * n, 0})
			}
			for n := 1.0; n <= 3; n++ {
				want = append(want, place{fmt.Sprintf("cp-PA-%v", n), 56, n})
			}
			eachCheckpoint(t, func(_ result, c object) {
				require.GreaterOrEqual(t, c.text(t, "createdAt"), last)
				last = c.text(t, "createdAt")
				got = append(got, place{c.text(t, "id"), c.number(t, "atPassNumber"), c.number(t, "atPACycle")})
			})
			require.Equal(t, want, got)
		},
		"CK-03": func(t *testing.T) {
			r := pausedRun.get(t)
			list := atPause.state.objects(t, "checkpoints")
			require.Len(t, list, 1)
			require.Regexp(t, `^cp-PAUSE-\d{8}T\d{6}Z$`, list[0].text(t, "id"))
			require.FileExists(t, r.path(list[0].text(t, "checkpointDir")+"/manifest.json"))
		},
		"CK-05": func(t *testing.T) {
			r := claudeRun.get(t)
			require.ElementsMatch(t, []string{"manifest.json", "state-snapshot.json"},
				names(t, r.path("_orchestrator/checkpoints/cp-asked")))
		},
		"CK-04 CK-06 CK-07": func(t *testing.T) {
			eachCheckpoint(t, func(r result, c object) {
				dir := "_orchestrator/checkpoints/" + c.text(t, "id")
				require.Equal(t, dir, c.text(t, "checkpointDir"))
				require.ElementsMatch(t, []string{"artifact.html", "conviction-layer.md", "discovery-log.md",
					"manifest.json", "state-snapshot.json"}, names(t, r.path(dir)))
				require.ElementsMatch(t, []string{
					"id", "createdAt", "atPassNumber", "atPACycle", "checkpointDir", "artifactHash", "stateHash",
					"costAtCheckpoint", "qualitySnapshot",
				}, c.keys())
				require.ElementsMatch(t, []string{"lastPAScore", "validationFailureCount", "convictionEntries",
					"discoveryEntries"}, c.in(t, "qualitySnapshot").keys())
				require.Equal(t, c, parse(t, r.file(t, dir+"/manifest.json")))
				require.Equal(t, digest(r.file(t, dir+"/artifact.html")), c.text(t, "artifactHash"))
				require.Equal(t, digest(r.file(t, dir+"/state-snapshot.json")), c.text(t, "stateHash"))
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

// testCheckpointList compares the list of the command with the state.
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

// names returns the names in a folder.
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
