package rundir

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
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
}

// Halts reports whether the decision halts the run.
func (d Decision) Halts() bool { return strings.EqualFold(strings.TrimSpace(d.Action), "halt") }

// At returns the time of the decision; the zero time if it cannot be parsed.
func (d Decision) At() time.Time {
	t, err := time.Parse(time.RFC3339Nano, d.DecidedAt)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Decisions reads the decision files of hand-offs in the order of their names. It skips files that cannot be parsed.
func (d Dir) Decisions() ([]Decision, error) {
	entries, err := d.ReadDir(DecisionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Decision
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".json" {
			continue
		}
		var one Decision
		err := d.ReadJSON(path.Join(DecisionsDir, e.Name()), &one)
		if err != nil && !disk.Missing(err) {
			return nil, err
		}
		if err == nil {
			all = append(all, one)
		}
	}
	return all, nil
}
