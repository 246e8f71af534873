package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// phaseRows are where a run stands, as state.json says.
func phaseRows() rows {
	return rows{
		"ST-13": func(t *testing.T) {
			s := demoRun.get(t).seen
			for _, o := range s.states {
				require.Equal(t, o["currentPhase"] == "complete", o["completedAt"] != nil)
			}
			require.Regexp(t, moment, demoRun.get(t).state(t).text(t, "completedAt"))
			restedRun.get(t)
			require.Nil(t, rest.paused.at(t, "completedAt"))
		},
		"ST-14": func(t *testing.T) {
			phases := demoRun.get(t).seen.values("currentPhase")
			require.Equal(t, []any{"corpus-integration", "pa-hardening", "complete"}, phases)
			restedRun.get(t)
			require.Equal(t, "paused", rest.paused.text(t, "currentPhase"))
		},
		"ST-15": func(t *testing.T) {
			restedRun.get(t)
			budgetRun.get(t)
			require.Equal(t, "user-requested", rest.paused.at(t, "phaseReason"))
			require.Equal(t, "budget-threshold", broke.at(t, "phaseReason"))
			require.Equal(t, "paused", broke.text(t, "currentPhase"))
			require.Equal(t, []any{nil}, demoRun.get(t).seen.values("phaseReason"))
			require.Nil(t, restedRun.get(t).state(t).at(t, "phaseReason"))
		},
		"ST-16": func(t *testing.T) {
			require.Equal(t, []any{56.0}, demoRun.get(t).seen.values("totalCorpusPasses"))
			require.EqualValues(t, 16, againRun.get(t).state(t).number(t, "totalCorpusPasses"))
		},
		"ST-17": func(t *testing.T) {
			done := demoRun.get(t).seen.values("lastCompletedCorpusPass")
			require.EqualValues(t, 0, done[0])
			require.EqualValues(t, 56, done[len(done)-1])
			require.True(t, slices.IsSortedFunc(done, func(a, b any) int { return int(a.(float64) - b.(float64)) }))
			restedRun.get(t)
			require.EqualValues(t, 3, rest.paused.number(t, "lastCompletedCorpusPass"))
			resumed := restedRun.get(t).decisions(t, "execute-pass")
			require.EqualValues(t, 4, resumed[3].number(t, "passNumber"), "the first pass after the pause")
			require.Len(t, where(resumed, "passNumber", 3.0), 1)
		},
		"ST-18": testSubsetInProgress,
		"ST-19": func(t *testing.T) {
			s := demoRun.get(t).state(t)
			require.EqualValues(t, 3, s.number(t, "completedPACycles"))
			require.EqualValues(t, 6, s.number(t, "maxPACycles"))
			require.Equal(t, []any{0.0, 1.0, 2.0, 3.0}, demoRun.get(t).seen.values("completedPACycles"))
		},
		"ST-20": func(t *testing.T) {
			require.Equal(t, []any{nil, 2.5, 3.0, 3.5}, demoRun.get(t).seen.values("lastPAScore"))
		},
		"ST-21": func(t *testing.T) {
			require.Equal(t, []any{3.5}, demoRun.get(t).seen.values("paScoreThreshold"))
		},
	}
}

// testSubsetInProgress wants the sets in their order, and none between them or in the cycles.
func testSubsetInProgress(t *testing.T) {
	var sets []any
	for _, o := range demoRun.get(t).seen.states {
		set, done := o["currentSubsetId"], o["lastCompletedCorpusPass"].(float64)
		if set == nil {
			require.Zero(t, int(done)%8, "no set although %v passes are done", done)
			continue
		}
		require.Equal(t, "corpus-integration", o["currentPhase"])
		sets = append(sets, set)
	}
	require.Equal(t, []any{"S1", "S2", "S3", "S4", "S5", "S6", "S7"}, slices.Compact(sets))
}
