package fsck_test

import (
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
)

// statusInjuries are rows of statuses, hand-offs and decisions.
func statusInjuries() []injury {
	type codes = []fsck.Code
	type hurt = func(*testing.T, projector.Dir)
	key := func(name, value string) hurt {
		return func(t *testing.T, d projector.Dir) { setKey(t, d, name, value) }
	}
	all := func(each ...hurt) hurt {
		return func(t *testing.T, d projector.Dir) {
			for _, h := range each {
				h(t, d)
			}
		}
	}
	file := func(name, text string) hurt { return func(t *testing.T, d projector.Dir) { place(t, d, name, text) } }
	decided := func(id, action string) hurt {
		return file("phase_handoff_decisions/"+id+".json",
			`{"handoff_id":"`+id+`","action":"`+action+`","decided_at":"2026-01-02T04:00:00+00:00"}`)
	}
	foreign := func(meta string, events ...string) hurt {
		return all(file(layout.EventsFile, linesOf(events...)), file(layout.MetaFile, meta))
	}
	const asks, gone = "reference, asking", `run.interrupted {"reason": "gone"}`
	const waits = `{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-1"}}`
	halted := codes{fsck.HaltDecisionWithoutHaltedMeta}
	info := codes{fsck.ActiveHandoffWithoutDecision}
	return []injury{
		{"a halt was decided, ours waits on, and a key was changed", "asking",
			all(decided("h-1", "halt"), key("task", `"another"`)), halted, "operator", halted},
		{"a halt of another hand-off was decided", "asking", decided("h-0", "halt"), info, "", info},
		{"a halt was decided, and the run was interrupted", asks,
			all(foreign(`{"status": "interrupted", "phase_handoff": {"id": "h-1"}}`, evStart, evAsk, gone),
				decided("h-1", "halt")), append(halted, fsck.InterruptedWithActiveHandoff),
			"status halt_reason halted_at phase_handoff", nil},
		{"the hand-off of an interrupted run is lost", "interrupted", key("phase_handoff", "null"),
			codes{fsck.HandoffEventWithoutMetaHandoff}, "phase_handoff",
			codes{fsck.InterruptedWithActiveHandoff, fsck.ActiveHandoffWithoutDecision}},
		{"the hand-off is missing, and decided", "asking", all(key("phase_handoff", "null"), decided("h-1", "continue")),
			codes{fsck.AwaitingWithoutActiveHandoff}, "phase_handoff", nil},
		{"the status of another program is a number", "reference, failed",
			file(layout.MetaFile, `{"status": 7, "phase_handoff": {"id": "h-1"}}`),
			append(info, fsck.TerminalEventWithoutTerminalMeta), "status", info},
		{"the hand-off has another phase", "asking", key("phase_handoff", `{"id":"h-1","phase":"another"}`),
			append(info, fsck.DerivedFileBehind), "phase_handoff", info},
		{"the hand-off has the name of its id in decisions", asks, key("phase_handoff", `{"handoff_id": "h-1"}`), info, "",
			info},
		{"the hand-off is a text", asks, key("phase_handoff", `"h-1"`),
			codes{fsck.AwaitingWithoutActiveHandoff, fsck.HandoffEventWithoutMetaHandoff}, "",
			codes{fsck.AwaitingWithoutActiveHandoff, fsck.HandoffEventWithoutMetaHandoff}},
		{"the failure is in another program's events only, and a hand-off is undecided", "reference, failed",
			file(layout.MetaFile, waits), append(info, fsck.TerminalEventWithoutTerminalMeta), "status", info},
		{"another program's meta.json is missing after one event", asks, func(t *testing.T, d projector.Dir) {
			write(t, d, layout.EventsFile, linesOf(evStart))
			remove(t, d, layout.MetaFile)
		}, codes{fsck.MetaMissing}, "", codes{fsck.MetaMissing}},
		{"another program's events.jsonl is empty", asks, foreign(`{"status": "running"}`), codes{fsck.StatusMismatch}, "",
			codes{fsck.StatusMismatch}},
		{"another program's interruption was decided on, and is in the events only", asks,
			all(foreign(waits, evStart, evAsk, gone), decided("h-1", "continue")),
			codes{fsck.InterruptedEventWithoutInterruptedMeta, fsck.InterruptedWithActiveHandoff},
			"status interrupted_at", codes{fsck.InterruptedWithActiveHandoff}},
	}
}
