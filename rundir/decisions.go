package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path"
	"regexp"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// Decision is one file of phase_handoff_decisions: what was decided, by whom, and in which words (requirement 000).
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

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// decisionFile is where the decision of a hand-off lies. Ids that look alike in a file name stay apart by their digest.
func decisionFile(id string) string {
	sum := sha256.Sum256([]byte(id))
	name := unsafeInName.ReplaceAllString(id, "_")
	return path.Join(decisionsDir, name[:min(len(name), 80)]+"_"+hex.EncodeToString(sum[:5])+".json")
}

// decision queues the file of a decision that counted.
func (p *projector) decision(w *batchWriter, e run.Event) error {
	d := p.meta.State.Decided
	if p.meta.State.Illegal != "" || d == nil {
		return nil
	}
	var a struct { // of a hand-off or of another question
		DecidedAt string `json:"decided_at"`
		DecidedBy string `json:"decided_by"`
	}
	e.Decode(&a)
	raw, err := marshal(Decision{
		RunID: p.meta.RunID, HandoffID: d.ID, Phase: d.Phase, Action: d.Action, Feedback: d.Feedback, Note: d.Note, DecidedAt: a.DecidedAt, DecidedBy: a.DecidedBy,
	})
	if err != nil {
		return err
	}
	w.add(wholeFile{path: p.dir.Path(decisionFile(d.ID)), data: raw})
	return nil
}

// FileOf gives where the newest reply, or else the artifact or the diff of that digest lies, relative to the directory; empty: nowhere.
func (d Dir) FileOf(want string) (string, error) {
	file, err := d.FileOfReply(want)
	if err != nil || file != "" || want == "" {
		return file, err
	}
	book, err := d.State()
	if err != nil {
		return "", err
	}
	for _, name := range []string{book.CurrentArtifactPath, DeliveryPatch} {
		raw, err := os.ReadFile(d.Path(name))
		if name != "" && err == nil && digest(raw) == want {
			return name, nil
		}
	}
	return "", nil
}

// FileOfReply gives where the newest reply of that digest lies, relative to the directory; empty: no pass gave it.
func (d Dir) FileOfReply(digest string) (string, error) {
	events, _, err := d.Events()
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(events) {
		if e.Kind != run.KindPassEnd {
			continue
		}
		var p run.PassEnd
		if e.Decode(&p); p.Reply != nil && p.Reply.Digest == digest {
			return replyFile(p.Pass, scored(p)), nil
		}
	}
	return "", nil
}
