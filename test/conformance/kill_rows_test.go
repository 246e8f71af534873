package conformance

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// asBefore wants the end of a run to be that of one to which nothing happened.
func asBefore(t *testing.T, r result) {
	t.Helper()
	require.Equal(t, againRun.get(t).state(t).text(t, "currentArtifactHash"), digest(r.file(t, "artifact.html")))
	require.Equal(t, "complete", r.state(t).text(t, "currentPhase"))
	require.InDelta(t, againRun.get(t).state(t).number(t, "cost.totalEstimatedCostUsd"),
		r.state(t).number(t, "cost.totalEstimatedCostUsd"), 1e-6)
}

// flying wants the mark of that pass in the state of a run whose worker was killed.
func flying(t *testing.T, n int, role string) {
	t.Helper()
	mark := fell[padded(n)].state.in(t, "inFlightPass")
	require.EqualValues(t, n, mark.number(t, "globalPassNumber"))
	require.Equal(t, role, mark.text(t, "agentRole"))
	require.EqualValues(t, n-1, fell[padded(n)].state.number(t, "lastCompletedCorpusPass"))
}

// killRows are runs that lost their worker, or everything.
func killRows() rows {
	return rows{
		"ST-04": func(t *testing.T) {
			r := lostRun.get(t)
			require.Contains(t, lost.refused, "--force", "whether the old server lives is for a person to say")
			for n := 1; n <= 16; n++ {
				want := 1
				if n == 6 {
					want = 2 // it was out when everything was lost
				}
				require.Equal(t, want, started(r.calls, padded(n)), "pass %d", n)
			}
			asBefore(t, r)
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
			flying(t, 5, "verifier")
			require.Equal(t, fell["005"].state.text(t, "currentArtifactHash"),
				fell["006"].state.text(t, "currentArtifactHash"))
			require.Equal(t, fell["005"].artifact, fell["006"].artifact, "the page was touched")
			require.Equal(t, []int{2, 1}, []int{started(r.calls, "005"), answered(r.calls, "005")})
		},
		"RS-05": func(t *testing.T) {
			r := killedRun.get(t)
			flying(t, 6, "builder")
			require.Equal(t, fell["006"].artifact, string(r.file(t, passDir(6)+"artifact-backup.html")))
			require.Equal(t, []int{2, 1}, []int{started(r.calls, "006"), answered(r.calls, "006")})
			asBefore(t, r)
		},
		"RS-06": func(t *testing.T) {
			killedRun.get(t)
			require.Equal(t, fell["009"].artifact, redone,
				"the page that was overwritten is restored before the pass is done again")
		},
		"RS-07": func(t *testing.T) {
			r := killedRun.get(t)
			flying(t, 9, "builder")
			require.Equal(t, digest([]byte(garbage)), fell["012"].files[passDir(9)+"artifact-backup.html"],
				"the newest backup was overwritten too")
			require.Contains(t, r.prompt(t, 9), strings.TrimSpace(fell["009"].artifact),
				"the agent is given the page as it was")
			require.Empty(t, r.decisions(t, "accept-edit"), "nobody edits a page on which somebody works")
			asBefore(t, r)
		},
		"RS-08": func(t *testing.T) {
			lostRun.get(t)
			require.Equal(t, 1, lost.wreck.code)
			require.Zero(t, lost.asked, "an agent was asked")
			require.Equal(t, lost.wreckBefore, lost.wreckAfter, "what is left was touched")
			require.Contains(t, lost.wreck.output, "no event of run "+lost.before.text(t, "runId")+
				" can be read from its events.jsonl")
			require.Regexp(t, `(?m)^Damage: +.+ is damaged: no event of run `, lost.wreck.status)
			require.NotContains(t, lost.wreck.status, "run --config", "it is not to be begun afresh")
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
				"the mark is another one")
		},
		"RS-10": func(t *testing.T) {
			text := killedRun.get(t).text(t)
			for _, line := range []string{`pass 5 \(verifier\)`, `pass 6 \(builder\)`, `pass 9 \(builder\)`,
				`pass 12 \(builder\)`, `pa-cycle-2-weaver`} {
				require.Equal(t, 1, count(text, `\[WARN\]  Detected in-flight `+line+` -- .+ during execution\.$`),
					line)
			}
		},
		"RS-14": func(t *testing.T) {
			r := killedRun.get(t)
			require.EqualValues(t, 1, fell["weaver-2"].state.number(t, "completedPACycles"))
			for _, at := range []string{"auditor-A-1", "auditor-B-2", "auditor-C-2", "weaver-1", "refine-1"} {
				require.Equal(t, 1, started(r.calls, at), at)
			}
			require.Equal(t, []int{2, 1}, []int{started(r.calls, "weaver-2"), answered(r.calls, "weaver-2")})
			require.EqualValues(t, 2, r.state(t).number(t, "completedPACycles"))
			require.Len(t, r.cycle(t, 2).list(t, "auditors"), 3)
		},
		"RS-18": func(t *testing.T) {
			for _, r := range []result{killedRun.get(t), lostRun.get(t), restedRun.get(t), againRun.get(t)} {
				require.Equal(t, "fresh-start", r.log(t, "decisions.jsonl")[0].text(t, "decision"))
				require.Len(t, r.decisions(t, "fresh-start"), 1)
				require.Empty(t, r.decisions(t, "paused"), "nothing was started while it was paused")
			}
			require.NotEmpty(t, killedRun.get(t).decisions(t, "resume"))
			for _, d := range killedRun.get(t).decisions(t, "resume") {
				require.Equal(t, "the worker sent no more heartbeats", d.text(t, "reason"))
			}
			require.Contains(t, lostRun.get(t).decisions(t, "resume")[0].text(t, "reason"), "interrupted")
			require.Equal(t, "resumed after paused (user-requested)",
				restedRun.get(t).decisions(t, "resume")[0].text(t, "reason"))
		},
		"RS-22": func(t *testing.T) {
			for _, r := range []result{killedRun.get(t), lostRun.get(t)} {
				for _, name := range []string{"conviction-layer.md", "discovery-log.md"} {
					text := string(r.file(t, "_orchestrator/"+name))
					for n := 1; n <= 16; n++ {
						require.Equal(t, 1, strings.Count(text, "## Pass "+strconv.Itoa(n)+" ("), "%s: pass %d", name,
							n)
					}
					require.Equal(t, string(againRun.get(t).file(t, "_orchestrator/"+name)), text)
				}
			}
		},
		"RX-24": func(t *testing.T) {
			r := killedRun.get(t) // state.json was overwritten when call 12 had killed the worker
			require.EqualValues(t, 11, fell["012"].state.number(t, "lastCompletedCorpusPass"))
			require.EqualValues(t, 16, r.state(t).number(t, "lastCompletedCorpusPass"))
			require.Len(t, r.state(t).in(t, "passRecords"), 16)
			require.Equal(t, fell["012"].state.at(t, "passRecords.3"), r.state(t).at(t, "passRecords.3"))
			require.Equal(t, fell["012"].state.text(t, "runId"), r.state(t).text(t, "runId"), "no fresh start")
			require.Equal(t, fell["009"].artifact, string(r.file(t, passDir(9)+"artifact-backup.html")),
				"what can be derived is made again, a backup too")
			for n := 1; n <= 16; n++ {
				require.Equal(t, 1, answered(r.calls, padded(n)), "pass %d", n)
			}
			require.Equal(t, 1, started(r.calls, "012"), "its answer had been given")
		},
		"LC-02": func(t *testing.T) {
			killedRun.get(t)
			for _, n := range []int{5, 6, 9, 12} {
				require.Contains(t, fell[padded(n)].files, passDir(n)+"prompt.md")
				require.NotContains(t, fell[padded(n)].files, passDir(n)+"raw-output.txt")
			}
			require.Contains(t, fell["weaver-2"].files, "_orchestrator/screenshots/cycle-2/weaver-prompt.md")
		},
	}
}
