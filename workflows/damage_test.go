package workflows_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

var changedLine = run.JournalDamage{File: "events.jsonl", Line: 3, Expected: "a", Found: "b"}

func TestDamageIsJournaledBeforeTheEnd(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.damage = []run.JournalDamage{changedLine}
	w.done()
	require.Equal(t, w.dir.damage, payloads[run.JournalDamage](w, run.KindJournalDamaged))
	events := w.dir.events(t)
	require.Equal(t, run.KindJournalDamaged, events[len(events)-2].Kind)
	require.Equal(t, run.KindRunEnd, events[len(events)-1].Kind)
	require.Equal(t, w.dir.damage, w.dir.state(t).Damage)
	require.Equal(t, run.Done, w.dir.state(t).Status)
}

func TestDamageIsJournaledOnResume(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() { w.dir.damage = []run.JournalDamage{changedLine}; w.signal("resume", nil) })
	w.done()
	require.Len(t, payloads[run.JournalDamage](w, run.KindJournalDamaged), 1)
	story := w.story(run.KindRunResumed, run.KindJournalDamaged, run.KindRunEnd)
	require.Len(t, story, 3)
}

func TestRebuildRepairsDamage(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){2: w.dir.lose}
	w.dir.missing = []run.JournalDamage{{File: "events.jsonl", Line: 2, Expected: "a", Found: "b", Repaired: true}}
	w.done()
	require.Equal(t, w.dir.missing, payloads[run.JournalDamage](w, run.KindJournalDamaged))
	require.Empty(t, payloads[run.ErrorNoted](w, run.KindErrorNoted))
}

func TestDamageBeyondStateLimit(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.in.Options.ContinueAfter = 1
	for line := range int64(6) {
		w.dir.unkept = append(w.dir.unkept, run.JournalDamage{
			File: "events.jsonl", Line: line + 1, Expected: "a", Found: "b",
		})
	}
	executions := w.chain(func(workflows.Input) {})
	require.Equal(t, run.Done, w.dir.state(t).Status)
	require.LessOrEqual(t, len(payloads[run.JournalDamage](w, run.KindJournalDamaged)), 6*executions)
}

func TestUnarchivableLinesAreJournaled(t *testing.T) {
	for name, after := range map[string]int{"one execution": 0, "several": 1} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.in.Options.ContinueAfter = after
			w.dir.unkept = []run.JournalDamage{changedLine}
			executions := w.chain(func(workflows.Input) {})
			require.Equal(t, run.Done, w.dir.state(t).Status)
			sealed := slices.DeleteFunc(slices.Clone(w.trace),
				func(s string) bool { return !strings.HasPrefix(s, "Seal") })
			require.LessOrEqual(t, len(sealed), 2*executions)
			if after > 0 {
				require.Equal(t, w.dir.unkept, payloads[run.JournalDamage](w, run.KindJournalDamaged),
					"at the end of the first execution, and once")
			}
		})
	}
}
