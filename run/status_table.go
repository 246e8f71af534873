package run

// statusRow is all that the program knows of one status. TestEveryStatusHasARow names what is missing.
type statusRow struct {
	status  Status
	class   Class
	rfc     string // the status in the words of RFC-0002 (requirement 003 §2)
	words   string // the status in plain words, as people read it
	color   Color
	means   string // a sentence; of a paused run its reason follows
	advice  string // what may be done, in a sentence
	becomes []Status
	allows  allowed
}

// allowed are the operations that a status allows (requirements 001 and 003), besides those that every status does.
type allowed struct {
	always    []Operation
	forced    []Operation // with force and a reason
	undecided []Operation // where a question is open, or was left undecided when the run ended
	decided   []Operation // only where none is: a question is decided first, and that opens the epoch
}

// Color is the emphasis of a status where it is shown: a terminal color, a sign or a CSS class.
type Color string

// The colors of statuses.
const (
	ColorNone   Color = ""       // nothing is known
	ColorLive   Color = "live"   // the run works
	ColorPaused Color = "paused" // it is paused
	ColorAsks   Color = "asks"   // it waits for a decision
	ColorDone   Color = "done"
	ColorBad    Color = "bad" // it ended, and is not done
)

// anyStatus are the operations that every status allows, also one that is not a word of the table.
func anyStatus() []Operation { return []Operation{Observe, Diagnose} }

var (
	work   = allowed{always: []Operation{Pause, Cancel, Replay, Fork}, undecided: []Operation{Decide}}
	asking = statusRow{
		class: OperatorPause, rfc: "waiting_for_human", words: "waiting for you", color: ColorAsks,
		advice: "Decide, and the run continues; or cancel it.",
		allows: allowed{always: []Operation{Decide, Cancel, Replay, Fork, Repair}},
	}
)

// statuses is the table, in the order in which statuses are listed. It never changes.
var statuses = []statusRow{
	{
		status: Unknown, class: Diagnostic, rfc: "pending", words: "unknown", color: ColorNone,
		means:   "No event records the status of the run yet.",
		advice:  "Diagnose it.",
		becomes: []Status{Pending, Running},
		allows:  allowed{always: []Operation{Repair, Remove}},
	},
	{
		status: Pending, class: Live, rfc: "pending", words: "not started", color: ColorLive,
		means:   "The run is claimed and has not begun.",
		advice:  "Watch it, or cancel it.",
		becomes: []Status{Running, Cancelled},
		allows:  allowed{always: []Operation{Cancel}},
	},
	{
		status: Running, class: Live, rfc: "running", words: "running", color: ColorLive,
		means:  "The pipeline works, or waits for a worker to continue from the last settled pass.",
		advice: "Watch it, pause it or cancel it; there is nothing to decide.",
		becomes: []Status{
			Paused, WaitingLimit, AwaitingPhaseHandoff, AwaitingGateDecision, AwaitingHumanReview, Replaying, Done, Halted,
			Cancelled, Failed, Interrupted,
		},
		allows: work,
	},
	{
		status: Replaying, class: Live, rfc: "replaying", words: "replaying", color: ColorLive,
		means:   "The run repeats the recorded part of another run, then it continues with new calls.",
		advice:  "Watch it, pause it or cancel it; there is nothing to decide.",
		becomes: []Status{Running, Paused, Failed, Cancelled, Interrupted},
		allows:  work,
	},
	{
		status: Paused, class: OperatorPause, rfc: "waiting_for_signal", words: "paused", color: ColorPaused,
		means:   "The run is paused: ",
		advice:  "resume it; or revert it, or cancel it.",
		becomes: []Status{Running, Halted, Cancelled, Failed, Interrupted},
		allows: allowed{
			always: []Operation{Resume, Cancel, Revert, Replay, Fork, Repair}, undecided: []Operation{Decide},
		},
	},
	{
		status: WaitingLimit, class: OperatorPause, rfc: "waiting_for_signal", words: "waiting for a limit", color: ColorPaused,
		means:   "The run waits until its provider answers again.",
		advice:  "It continues then; resume it to try at once, pause it, revert it or cancel it.",
		becomes: []Status{Running, Paused, Halted, Cancelled, Failed, Interrupted},
		allows: allowed{
			always:    []Operation{Pause, Resume, Cancel, Revert, Replay, Fork, Repair},
			undecided: []Operation{Decide},
		},
	},
	asking.of(AwaitingPhaseHandoff, "A phase is finished and waits for your decision.",
		Running, Halted, Cancelled, Failed, Interrupted),
	asking.of(AwaitingGateDecision, "A check or the delivery waits for your decision.",
		Running, Halted, Cancelled, Failed, Interrupted),
	asking.of(AwaitingHumanReview, "The result waits for your review.",
		Running, Done, Halted, Cancelled, Failed, Interrupted),
	{
		status: Done, class: SettledTerminal, rfc: "completed", words: "done", color: ColorDone,
		means:  "The run is completed.",
		advice: "Read the results; follow it up, fork it, replay it or promote it again. It is never resumed.",
		allows: allowed{always: []Operation{Replay, Fork, FollowUp, Promote, Repair, Remove}},
	},
	{
		status: Halted, class: SettledTerminal, rfc: "canceled", words: "stopped", color: ColorBad,
		means:   "An operator or a policy ended the run.",
		advice:  "Inspect it, then follow it up; it is resumed or reverted only by force and with a reason.",
		becomes: []Status{Running}, // only forced, with a new epoch
		allows: allowed{
			always: []Operation{Replay, Fork, FollowUp, Repair, Remove}, forced: []Operation{Resume, Revert},
		},
	},
	{
		status: Cancelled, class: SettledTerminal, rfc: "canceled", words: "cancelled by you", color: ColorBad,
		means:   "The run was cancelled.",
		advice:  "Follow it up or fork it; or resume it in a new epoch.",
		becomes: []Status{Running}, // only through run.resumed with a new epoch
		allows:  allowed{always: []Operation{Resume, Revert, Replay, Fork, FollowUp, Repair, Remove}},
	},
	{
		status: Failed, class: Terminal, rfc: "failed", words: "failed", color: ColorBad,
		means: "The run failed. An undecided question stays open.",
		advice: "Inspect it and decide what is undecided; then resume it by force and with a reason, revert it or " +
			"follow it up.",
		becomes: []Status{Running}, // only through run.resumed with a new epoch
		allows: allowed{
			always: []Operation{Revert, Replay, Fork, FollowUp, Repair, Remove},
			forced: []Operation{Resume}, undecided: []Operation{Decide},
		},
	},
	{
		status: Interrupted, class: Torn, rfc: "failed", words: "interrupted", color: ColorBad,
		means:   "The workflow ended without an end of the run. An undecided question stays open.",
		advice:  "Decide what is undecided and repair what a check finds; then resume it in a new epoch, or cancel it.",
		becomes: []Status{Running}, // only through run.resumed with a new epoch
		allows: allowed{
			always:  []Operation{Cancel, Revert, Replay, Fork, Repair, Remove},
			decided: []Operation{Resume}, undecided: []Operation{Decide},
		},
	},
}

// of is the row of a status in which a run waits for a decision.
func (r statusRow) of(s Status, means string, becomes ...Status) statusRow {
	r.status, r.means, r.becomes = s, means, becomes
	return r
}

// noStatus is the row of a word that is not in the table.
var noStatus = statusRow{
	class: Diagnostic, rfc: "pending", means: statuses[0].means, advice: statuses[0].advice,
	allows: allowed{always: []Operation{Repair}},
}

// row finds the row of a status.
func (s Status) row() *statusRow {
	for i := range statuses {
		if statuses[i].status == s {
			return &statuses[i]
		}
	}
	return &noStatus
}
