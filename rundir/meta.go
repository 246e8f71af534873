package rundir

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/passbook-run/passbook/run"
)

// MetaVersion is the version of meta.json.
const MetaVersion = 1

// Meta is meta.json: a pure materialisation of the fold with a header (requirement 003 §5, requirement 000). It is written last, so it is
// also the commit: every derived file is complete up to its seq.
type Meta struct {
	Version                int      `json:"version"`
	RunID                  string   `json:"run_id"`
	ThreadID               string   `json:"thread_id"`
	SkillID                string   `json:"skill_id"`
	SkillVersion           string   `json:"skill_version"`
	Status                 string   `json:"status"`
	RFCStatus              string   `json:"rfc_status"`
	Reason                 string   `json:"reason"`
	CreatedAt              string   `json:"created_at"`
	StartedAt              string   `json:"started_at"`
	FinishedAt             *string  `json:"finished_at"`
	CurrentStepID          *string  `json:"current_step_id"`
	CheckpointHead         *string  `json:"checkpoint_head"`
	ResumeFromCheckpointID *string  `json:"resume_from_checkpoint_id"`
	TraceID                string   `json:"trace_id"`
	TenantID               string   `json:"tenant_id"`
	Environment            string   `json:"environment"`
	Versions               Versions `json:"versions"`
	PolicySnapshotID       string   `json:"policy_snapshot_id"`
	Result                 *string  `json:"result"`
	Error                  *string  `json:"error"`
	Task                   string   `json:"task"`
	RunKind                string   `json:"run_kind"`
	Project                string   `json:"project"`
	Profile                string   `json:"profile"`
	Epoch                  int      `json:"epoch"`

	Workspace *Workspace  `json:"workspace,omitempty"`
	Parent    *run.Parent `json:"parent,omitempty"` // the run that this one follows up

	Source *run.Source `json:"source,omitempty"` // of a replay or a fork: where it comes from

	PhaseHandoff *run.Handoff `json:"phase_handoff,omitempty"`
	run.Markers               // how the run came to stand where it stands; each key only where it holds

	Events      EventsMark    `json:"events"`
	SegmentHead string        `json:"segment_head"`
	Derived     []DerivedMark `json:"derived"`
	State       run.State     `json:"state"`
	History     run.History   `json:"history"`
	Summary     Summary       `json:"summary"`
	Records     *BookMark     `json:"records"`          // state.json as it was written last
	Behind      *Behind       `json:"behind,omitempty"` // only in a run of many passes: where state.json stands

	Digests map[string]string `json:"digests,omitempty"` // sha-256 of the files that no event describes: run.json and owner.json
	Digest  string            `json:"digest,omitempty"`  // sha-256 of this file without this key, which is the last

	recorder *run.Recorder // of History, while events are folded
}

// Workspace is the tree that a run works on, as it stands.
type Workspace struct {
	Kind   string `json:"kind"`   // git or dir
	Source string `json:"source"` // where it comes from
	Base   string `json:"base,omitempty"`
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"` // what the branch has come to
	Start  string `json:"start"`            // digest of the tree at the start
	Tree   string `json:"tree"`             // and now

	Snapshots string `json:"snapshots,omitempty"` // full: each turn's tree is laid down too
}

// Versions is the versions block of RunStore v2.
type Versions struct {
	Capabilities []string `json:"capabilities"`
	Bindings     string   `json:"bindings"`
	RegistryRef  string   `json:"registry_ref"`
}

// EventsMark is how far events.jsonl is folded into this file.
type EventsMark struct {
	Seq   int64     `json:"seq"`
	Chain run.Chain `json:"chain"`
	Size  int64     `json:"size"` // bytes
}

// DerivedMark is how far one growing file is written.
type DerivedMark struct {
	File  string    `json:"file"`
	Size  int64     `json:"size"`
	Seq   int64     `json:"seq"`
	Chain run.Chain `json:"chain,omitempty"` // over its lines up to Size, as over those of events.jsonl; empty: nothing is written, or an earlier release wrote it
}

// ErrDamaged marks a file of the directory that cannot be read as what it should be.
var ErrDamaged = errors.New("damaged")

// Meta reads meta.json. A missing one is fs.ErrNotExist, an unreadable one ErrDamaged; both are written again from the events.
func (d Dir) Meta() (Meta, error) {
	var m Meta
	return m, d.readJSON(MetaFile, &m)
}

// State reads the records as of meta.json: state.json, and what came since it was written.
func (d Dir) State() (PipelineState, error) {
	b, err := d.written()
	if err != nil {
		return b, err
	}
	m, err := d.Meta()
	if err != nil || m.Behind == nil || m.Behind.Seq != b.LastSeq {
		return b, nil //nolint:nilerr // meta.json is of another moment, or is to be made again: state.json counts
	}
	return d.goneOn(b, m)
}

// written reads state.json.
func (d Dir) written() (PipelineState, error) {
	raw, err := os.ReadFile(d.Path(StateFile))
	if err != nil {
		return PipelineState{}, err
	}
	return d.parse(raw)
}

func (d Dir) parse(raw []byte) (PipelineState, error) {
	b := newState()
	err := json.Unmarshal(raw, &b)
	switch {
	case err != nil:
		err = fmt.Errorf("%s is %w: %v", d.Path(StateFile), ErrDamaged, err)
	case b.SchemaVersion != StateSchema:
		err = fmt.Errorf("%s is %w: it has schema version %d, and this program writes version %d", d.Path(StateFile), ErrDamaged, b.SchemaVersion, StateSchema)
	case !b.sound():
		err = fmt.Errorf("%s is %w: parts of it are missing", d.Path(StateFile), ErrDamaged)
	}
	return b, err
}

// sound says that events can be folded over the records.
func (b *PipelineState) sound() bool {
	maps := b.PassRecords != nil && b.PACycleRecords != nil && b.FailedOutputs != nil && b.Aside != nil && b.Cost.ByRole != nil && b.Cost.BySubset != nil &&
		b.Cost.ByPACycle != nil
	cycle := b.OpenCycle == nil || b.InFlightPACycle != nil && b.InFlightPACycle.Done != nil
	return b.SchemaVersion == StateSchema && maps && cycle
}

func (d Dir) readJSON(name string, v any) error {
	raw, err := os.ReadFile(d.Path(name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s is %w: %v", d.Path(name), ErrDamaged, err)
	}
	return nil
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) }

// fold takes one event into the header.
func (m *Meta) fold(e run.Event) {
	m.State = run.Apply(m.State, e)
	if m.recorder == nil {
		m.recorder = run.NewRecorder(m.History)
	}
	m.recorder.Apply(e)
	m.History = m.recorder.History()
	s := m.State
	switch e.Kind {
	case run.KindRunStart:
		m.head(e)
	case run.KindRunResumed:
		if s.Epoch != m.Epoch {
			m.ResumeFromCheckpointID = m.CheckpointHead // of the epoch before
		}
	case run.KindRunReverted:
		var r run.RunReverted
		e.Decode(&r)
		m.ResumeFromCheckpointID = text(cmp.Or(r.Checkpoint, run.UnnamedID(r.To)))
	}
	m.Status, m.RFCStatus, m.Reason, m.Epoch = string(s.Status), s.Status.RFC(), s.Reason, s.Epoch
	m.StartedAt, m.FinishedAt, m.PhaseHandoff, m.Markers = s.StartedAt, text(s.FinishedAt), s.Handoff, s.Markers
	m.CurrentStepID, m.CheckpointHead = nil, nil
	if len(s.InFlight) > 0 {
		m.CurrentStepID = text(s.InFlight[0].Step)
	}
	if s.Checkpoint != nil {
		m.CheckpointHead = text(s.Checkpoint.ID)
	}
	if w := m.Workspace; w != nil && s.Tree != nil {
		next := *w
		next.Commit, next.Tree = s.Commit, s.Tree.Digest
		m.Workspace = &next
	}
	m.outcome(s)
}

func (m *Meta) outcome(s run.State) {
	m.Result, m.Error = nil, nil
	switch {
	case s.Status == run.Done && s.Artifact != nil:
		m.Result = text(s.Artifact.Digest)
	case s.Status == run.Done && s.Tree != nil:
		m.Result = text(s.Tree.Digest)
	case s.Status == run.Failed:
		m.Error = text(s.Reason)
	}
}

func (m *Meta) head(e run.Event) {
	var p run.RunStart
	e.Decode(&p)
	m.Version, m.RunID, m.ThreadID = MetaVersion, p.RunID, p.ThreadID
	m.SkillID, m.SkillVersion, m.PolicySnapshotID = p.Pipeline, p.Definition, p.Policy
	m.CreatedAt, m.TenantID, m.Environment = p.CreatedAt, p.Tenant, p.Environment
	m.Task, m.RunKind, m.Parent = p.Task, p.RunKind, p.Parent
	if w := p.Workspace; w != nil {
		m.Workspace = &Workspace{Kind: w.Kind, Source: w.Source, Base: w.Base, Branch: w.Branch, Start: w.Tree.Digest, Snapshots: p.Snapshots}
	}
	m.Source, m.ResumeFromCheckpointID = p.Source, nil
	if p.Source != nil {
		m.ResumeFromCheckpointID = text(p.Source.Checkpoint)
	}
	m.Versions = Versions{Capabilities: list(p.Agents), Bindings: p.Build, RegistryRef: p.Definition}
	m.TraceID = traceID(p.RunID)
	if m.Derived == nil { // a run that starts again after a reset adds to the files that are there
		m.Derived = []DerivedMark{}
	}
}

// traceID derives a 16-byte trace id from the run's id, so that every tool finds the same without being told.
func traceID(runID string) string {
	sum := sha256.Sum256([]byte("passbook trace " + runID))
	return hex.EncodeToString(sum[:16])
}
