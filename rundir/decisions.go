package rundir

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/layout"
)

// Decision is a file of phase_handoff_decisions: one decision of an operator on a hand-off (requirement 000).
type Decision struct {
	RunID     string `json:"run_id"`
	HandoffID string `json:"handoff_id"`
	Phase     string `json:"phase"`
	Action    string `json:"action"`
	Feedback  string `json:"feedback"`
	Note      string `json:"note"`
	DecidedAt string `json:"decided_at"`
	DecidedBy string `json:"decided_by"`
	Auth      string `json:"auth,omitempty"` // who signed it: "key NAME" or "none"; only in the journal
}

// Answer is a decision of an operator as its file records it.
type Answer struct {
	HandoffID string `json:"handoff_id"`
	Action    string `json:"action"`
	DecidedAt string `json:"decided_at"`
}

func (d Answer) Halts() bool { return strings.EqualFold(strings.TrimSpace(d.Action), "halt") }

// At returns the time of the decision; the zero time if it cannot be parsed.
func (d Answer) At() time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, d.DecidedAt); err == nil {
			return t
		}
	}
	return time.Time{}
}

func (d Dir) ReadAnswers() ([]Answer, error) { return readEach[Answer](d, layout.DecisionsDir) }

// Decisions reads the decision files of hand-offs in the order of their names. It skips files that cannot be parsed.
func (d Dir) Decisions() ([]Decision, error) { return readEach[Decision](d, layout.DecisionsDir) }

// readEach reads the JSON files of a folder as T in the order of their names. It skips files that cannot be parsed.
func readEach[T any](d Dir, folder string) ([]T, error) {
	entries, err := d.ReadDir(folder)
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
		err := d.ReadJSON(path.Join(folder, e.Name()), &one)
		if err != nil && !layout.Missing(err) {
			return nil, err
		}
		if err == nil {
			all = append(all, one)
		}
	}
	return all, nil
}
