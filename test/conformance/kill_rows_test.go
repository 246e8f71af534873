package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireUndisturbed requires the end of a run without faults.
func requireUndisturbed(t *testing.T, r result) {
	t.Helper()
	want, got := tinyRun.get(t).state(t), r.state(t)
	require.Equal(t, want.text(t, "currentArtifactHash"), digest(r.file(t, "artifact.html")))
	require.Equal(t, "complete", got.text(t, "currentPhase"))
	require.InDelta(t, want.number(t, "cost.totalEstimatedCostUsd"), got.number(t, "cost.totalEstimatedCostUsd"), 1e-6)
}

// requireInFlight requires the mark of a pass in the state of a run whose worker was killed.
func requireInFlight(t *testing.T, n int, role string) {
	t.Helper()
	state := killedAt[padded(n)].state
	require.EqualValues(t, n, state.number(t, "inFlightPass.globalPassNumber"))
	require.Equal(t, role, state.text(t, "inFlightPass.agentRole"))
	require.EqualValues(t, n-1, state.number(t, "lastCompletedCorpusPass"))
}

// killRows are runs whose worker was killed, or whose server was lost.
func killRows() rows {
	return rows{
		"ST-04": func(t *testing.T) {
			r := lostRun.get(t)
			require.Contains(t, lost.refused, "--force", "an operator decides whether the old server still runs")
			for n := 1; n <= 16; n++ {
				want := 1
				if n == 6 {
					want = 2 // it was in flight when the server was lost
				}
				require.Equal(t, want, started(r.calls, padded(n)), "pass %d", n)
			}
			requireUndisturbed(t, r)
		},
		"LG-08": func(t *testing.T) {
			text := killedRun.get(t).text(t)
			for _, n := range []string{"5", "6", "9", "12"} {
				require.Equal(t, 1, count(text, `\[INFO\]  Resuming from pass `+n+`/16 \(previous run crashed at pass `+
					n+`\)$`))
			}
			require.Equal(t, 1, count(lostRun.get(t).text(t), `\[INFO\]  Resuming from pass 6/16 `))
		},
		"RS-04": func(t *testing.T) {
			r := killedRun.get(t)
			requireInFlight(t, 5, "verifier")
			requireInFlight(t, 6, "builder")
			require.Equal(t, killedAt["005"].artifact, killedAt["006"].artifact, "a verifier changes no page")
			requireUndisturbed(t, r)
		},
		"RS-06 RS-07": func(t *testing.T) {
			r := killedRun.get(t)
			requireInFlight(t, 9, "builder")
			require.Equal(t, digest([]byte(killedAt["009"].artifact)), killedAt["012"].files[passDir(9)+"artifact-backup.html"],
				"the newest backup, which was overwritten too, was made again")
			require.Equal(t, digest([]byte(garbage)), killedAt["012"].files["_orchestrator/torn/"+
				strings.ReplaceAll(passDir(9), "/", "-")+"artifact-backup-damaged-"+digest([]byte(garbage))[:8]+".html"])
			require.Equal(t, killedAt["009"].artifact, repeatedPage, "restored before the pass is repeated")
			require.Contains(t, r.prompt(t, 9), strings.TrimSpace(killedAt["009"].artifact))
			require.Empty(t, r.decisions(t, "accept-edit"), "a page with a call in flight is not edited")
		},
		"RS-08": func(t *testing.T) {
			lostRun.get(t)
			require.Equal(t, 1, lost.wreck.code)
			require.Zero(t, lost.asked, "an agent was asked")
			require.Equal(t, lost.wreckBefore, lost.wreckAfter, "nothing changes")
			require.Contains(t, lost.wreck.output, "no event of run "+lost.before.text(t, "runId")+
				" can be read from its events.jsonl")
			require.Regexp(t, `(?m)^Damage: +.+ is damaged: no event of run `, lost.wreck.status)
			require.NotContains(t, lost.wreck.status, "run --config", "no fresh start is suggested")
			require.Contains(t, lost.wreck.output,
				"manual recovery is needed: restore events.jsonl from a copy, then resume; no checkpoint holds "+
					"an undamaged artifact")
		},
		"RS-09": func(t *testing.T) {
			lostRun.get(t)
			before, during := lost.before.in(t, "inFlightPass"), lost.during.in(t, "inFlightPass")
			require.EqualValues(t, 6, before.number(t, "globalPassNumber"))
			require.EqualValues(t, 6, during.number(t, "globalPassNumber"))
			require.Positive(t, elapsed(t, before.text(t, "startedAt"), during.text(t, "startedAt")),
				"the mark is of the repetition")
		},
		"RS-14 RS-10": func(t *testing.T) {
			r := killedRun.get(t)
			require.Equal(t, 1, count(r.text(t), `\[WARN\]  Detected in-flight pa-cycle-2-weaver -- .+ during execution\.$`))
			require.EqualValues(t, 1, killedAt["weaver-2"].state.number(t, "completedPACycles"))
			for _, at := range []string{"auditor-A-1", "auditor-B-2", "auditor-C-2", "weaver-1", "refine-1"} {
				require.Equal(t, 1, started(r.calls, at), at)
			}
			require.Equal(t, 2, started(r.calls, "weaver-2"))
			require.Equal(t, 1, answered(r.calls, "weaver-2"))
			require.EqualValues(t, 2, r.state(t).number(t, "completedPACycles"))
			require.Len(t, r.cycle(t, 2).list(t, "auditors"), 3)
		},
		"RS-18": func(t *testing.T) {
			for _, d := range killedRun.get(t).decisions(t, "resume") {
				require.Contains(t, []string{"the worker has ended", "the worker sent no more heartbeats"},
					d.text(t, "reason"))
			}
			require.Len(t, killedRun.get(t).decisions(t, "fresh-start"), 1)
			require.Contains(t, lostRun.get(t).decisions(t, "resume")[0].text(t, "reason"), "interrupted")
		},
		"RS-22": func(t *testing.T) {
			for _, name := range notes {
				undisturbed := string(tinyRun.get(t).file(t, "_orchestrator/"+name))
				require.Equal(t, 1, strings.Count(undisturbed, "## Pass 16 ("))
				require.Equal(t, undisturbed, string(killedRun.get(t).file(t, "_orchestrator/"+name)))
				require.Equal(t, undisturbed, string(lostRun.get(t).file(t, "_orchestrator/"+name)))
			}
		},
		"RX-24": func(t *testing.T) {
			r := killedRun.get(t) // state.json was overwritten when call 12 had killed the worker
			require.EqualValues(t, 11, killedAt["012"].state.number(t, "lastCompletedCorpusPass"))
			require.EqualValues(t, 16, r.state(t).number(t, "lastCompletedCorpusPass"))
			require.Len(t, r.state(t).in(t, "passRecords"), 16)
			require.Equal(t, killedAt["012"].state.at(t, "passRecords.3"), r.state(t).at(t, "passRecords.3"))
			require.Equal(t, killedAt["012"].state.text(t, "runId"), r.state(t).text(t, "runId"), "no fresh start")
			require.Equal(t, killedAt["009"].artifact, string(r.file(t, passDir(9)+"artifact-backup.html")),
				"derived files are rebuilt, a backup too")
			for n := 1; n <= 16; n++ {
				require.Equal(t, 1, answered(r.calls, padded(n)), "pass %d", n)
			}
			require.Equal(t, 1, started(r.calls, "012"), "its answer was stored")
		},
		"LC-02": func(t *testing.T) {
			killedRun.get(t)
			for _, n := range []int{5, 6, 9, 12} {
				require.Contains(t, killedAt[padded(n)].files, passDir(n)+"prompt.md")
				require.NotContains(t, killedAt[padded(n)].files, passDir(n)+"raw-output.txt")
			}
			require.Contains(t, killedAt["weaver-2"].files, "_orchestrator/screenshots/cycle-2/weaver-prompt.md")
		},
	}
}
