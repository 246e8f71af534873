package run

// Liveness is what Temporal knows of a run's workflow. It is an axis of its own, beside the status.
type Liveness string

// What Temporal says.
const (
	LiveOpen    Liveness = "open"    // an execution is open; a dead worker changes nothing
	LiveClosed  Liveness = "closed"  // the last execution has ended, however it did
	LiveGone    Liveness = "gone"    // the server that the run was started on does not know it
	LiveUnknown Liveness = "unknown" // the server was not asked, or did not answer
)

// Standing is where a run stands, both axes together: what every tool shows (requirement 000).
type Standing struct {
	Status   Status   `json:"status"`   // what is to be shown
	Recorded Status   `json:"recorded"` // what the events say
	Liveness Liveness `json:"liveness"`
	Live     Status   `json:"live,omitempty"`   // what the open workflow says itself; the directory may lag behind it for a moment, or while its disk is full
	Detail   string   `json:"detail,omitempty"` // for people: terminated, timed out, connection refused, …
	Held     *Held    `json:"held,omitempty"`   // nil: nothing holds the open workflow up, or it is not known

	NoWorker *NoWorker `json:"no_worker,omitempty"` // nil: workers poll the queues of the open workflow, or it is not known
}

// NoWorker says that an open workflow waits for a worker.
type NoWorker struct {
	Queues []string `json:"queues"` // that no worker polls
	Since  string   `json:"since"`  // when one polled last; empty: longer ago than the server remembers, which is five minutes
}

// Held is what an open workflow waits for, although nobody has asked it to: a disk that cannot be written, or a worker that has what it needs.
type Held struct {
	Cause    string `json:"cause"`           // for people: operation, path, error, file system
	Waits    bool   `json:"waits,omitempty"` // for another host, as long as that one has claimed the call
	DiskFull bool   `json:"disk_full"`       // the run is paused until there is space; otherwise what failed is tried again every few seconds
}

// Stands reads a recorded status together with what Temporal says. A run that the events leave open and Temporal has closed or lost is
// interrupted; only the next epoch writes that down. One whose workflow is open and has written nothing is pending.
func Stands(recorded Status, l Liveness, detail string) Standing {
	s := Standing{Status: recorded, Recorded: recorded, Liveness: l, Detail: detail}
	if recorded == "" {
		s.Status, s.Recorded = Unknown, Unknown
	}
	if s.Recorded == Unknown && l == LiveOpen {
		s.Status = Pending
	}
	open := !s.Recorded.Closed() && s.Recorded != Unknown
	if open && (l == LiveClosed || l == LiveGone) {
		s.Status = Interrupted
	}
	return s
}
