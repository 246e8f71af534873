package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
)

const decisionsDir = "phase_handoff_decisions"

// answer is one decision of an operator, as its file says.
type answer struct {
	HandoffID string `json:"handoff_id"`
	Action    string `json:"action"`
	DecidedAt string `json:"decided_at"`
}

func (d answer) halts() bool { return strings.EqualFold(strings.TrimSpace(d.Action), "halt") }

// at is when it was made; the zero time if that cannot be read.
func (d answer) at() time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, d.DecidedAt); err == nil {
			return t
		}
	}
	return time.Time{}
}

func (d Dir) readAnswers() ([]answer, error) { return readEach[answer](d, decisionsDir) }

// Decisions reads the decisions on hand-offs that have a file each, by the names of the files. A file that cannot be read does not count.
func (d Dir) Decisions() ([]Decision, error) { return readEach[Decision](d, decisionsDir) }

// readEach reads the JSON files of a folder that can be read as T, by their names.
func readEach[T any](d Dir, folder string) ([]T, error) {
	entries, err := os.ReadDir(d.Path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []T
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".json" {
			continue
		}
		var one T
		err := d.readJSON(path.Join(folder, e.Name()), &one)
		if err != nil && !missing(err) {
			return nil, err
		}
		if err == nil {
			all = append(all, one)
		}
	}
	return all, nil
}

// answer on a hand-off; nil: none.
func (x *examined) answer(id string) *answer {
	for i := range x.answers {
		if x.answers[i].HandoffID == id {
			return &x.answers[i]
		}
	}
	return nil
}

// lastHalt is the newest decision to halt; nil: none.
func (x *examined) lastHalt() *answer {
	var last *answer
	for i, d := range x.answers {
		if d.halts() && (last == nil || d.at().After(last.at())) {
			last = &x.answers[i]
		}
	}
	return last
}

// haltWasDecided says that a decision to halt counts. In Passbook's own stream a run may have been resumed after one.
func (x *examined) haltWasDecided() bool {
	last := x.lastHalt()
	if last == nil {
		return false
	}
	h := x.stream.state().Handoff
	return !x.own || x.folded() == run.Halted || h != nil && h.ID == last.HandoffID
}

// endedOtherwise says that the events settle the run, and not as halted: no decision to halt changes that.
func (x *examined) endedOtherwise() bool {
	f := x.folded()
	return f.Closed() && f != run.Halted && f != run.Interrupted
}
