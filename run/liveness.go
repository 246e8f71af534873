package run

// Liveness is the state of a run's workflow in Temporal. It is independent of the status.
type Liveness string

// Values of Liveness.
const (
	LiveOpen    Liveness = "open"    // an execution is open; a dead worker changes nothing
	LiveClosed  Liveness = "closed"  // the last execution has ended
	LiveGone    Liveness = "gone"    // not found on the server on which the run was started
	LiveUnknown Liveness = "unknown" // the server was not asked, or did not answer
)

// EffectiveStatus combines the recorded status of a run with its liveness. Every tool shows it (requirement 000).
type EffectiveStatus struct {
	ShownStatus          // the status to show
	Recorded    Status   `json:"recorded"` // status in the events
	Liveness    Liveness `json:"liveness"`
	// status of the open workflow; the directory may be behind it for a moment, or while its disk is full
	Live   Status `json:"live,omitempty"`
	Detail string `json:"detail,omitempty"` // for display: terminated, timed out, connection refused, …
	Held   *Held  `json:"held,omitempty"`   // nil: the open workflow is not held, or that is unknown

	// nil: workers poll the queues of the open workflow, or that is unknown
	NoWorker *NoWorker `json:"no_worker,omitempty"`
	// Turn is the place of its call in the queue of its host; nil: none waits there, or that is unknown
	Turn *Turn `json:"turn,omitempty"`
	// Pausing describes a pause that was requested and has not begun; empty: none, or that is unknown
	Pausing string `json:"pausing,omitempty"`
}

// Turn is a place in the queue of the calls that wait until fewer calls run at once.
type Turn struct {
	Place int `json:"place"` // from 1
	Of    int `json:"of"`
}

// Held is what an open workflow waits for without a request: a disk that cannot be written, or a worker with the
// required files.
type Held struct {
	Cause string `json:"cause"`           // for display: operation, path, error, file system
	Waits bool   `json:"waits,omitempty"` // waits for another host that has claimed the call
	// the run is paused until there is space; otherwise the failed operation is retried every few seconds
	DiskFull bool `json:"disk_full"`
}

// NewEffectiveStatus combines a recorded status with its liveness. A run that is open in its events and whose workflow
// is closed or gone is interrupted; only the next epoch records that. A run with an open workflow and no events is
// pending.
func NewEffectiveStatus(recorded Status, l Liveness, detail string) EffectiveStatus {
	s := EffectiveStatus{ShownStatus: recorded.Shown(), Recorded: recorded, Liveness: l, Detail: detail}
	if recorded == "" {
		s.ShownStatus, s.Recorded = Unknown.Shown(), Unknown
	}
	if s.Recorded == Unknown && l == LiveOpen {
		s.ShownStatus = Pending.Shown()
	}
	open := !s.Recorded.Closed() && s.Recorded != Unknown
	if open && (l == LiveClosed || l == LiveGone) {
		s.ShownStatus = Interrupted.Shown()
	}
	return s
}
