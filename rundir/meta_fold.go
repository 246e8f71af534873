package rundir

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"github.com/passbook-run/passbook/run"
)

// Header is meta.json while events are folded over it.
type Header struct {
	Meta
	folded *run.Fold // of State and History
}

// Fold takes one event into the header. State and History are then the ones after it, valid until the next event; of
// the fields that follow from them, [Header.Derive] sets those that follow from them alone.
func (m *Header) Fold(e run.Event) {
	if m.folded == nil {
		m.folded = run.NewFold(m.State, m.History)
	}
	epoch, head := m.State.Epoch, m.State.Checkpoint
	m.folded.Apply(e)
	m.State, m.History = *m.folded.Current(), m.folded.History()
	switch e.Kind {
	case run.KindRunStart:
		m.head(e)
	case run.KindRunAmended:
		var a run.RunAmended
		e.Decode(&a)
		m.PolicySnapshotID = a.New.Policy
	case run.KindRunResumed:
		if m.State.Epoch != epoch {
			m.ResumeFromCheckpointID = nil
			if head != nil { // of the epoch before
				m.ResumeFromCheckpointID = text(head.ID)
			}
		}
	case run.KindRunReverted:
		var r run.RunReverted
		e.Decode(&r)
		m.ResumeFromCheckpointID = text(cmp.Or(r.Checkpoint, run.UnnamedID(r.To)))
	}
	m.Epoch = m.State.Epoch
}

// Derive sets the fields that follow from the state.
func (m *Header) Derive() {
	s := &m.State
	m.Status, m.RFCStatus, m.Reason = string(s.Status), s.Status.RFC(), s.Reason
	m.StartedAt, m.FinishedAt, m.PhaseHandoff, m.Markers = s.StartedAt, text(s.FinishedAt), phaseHandoff(*s), s.Markers
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
	m.cross(s)
}

// cross sets what requirement 001 reads of a run across projects and of a project's run.
func (m *Header) cross(s *run.State) {
	m.Projects, m.CrossMode, m.Phases, m.ProjectAlias, m.ParentRun = nil, "", phasesOf(s), "", ""
	if of := s.MemberOf; of != nil {
		m.ProjectAlias, m.ParentRun = of.Alias, of.RunID
	}
	if len(s.Projects) > 0 {
		m.CrossMode, m.Projects = crossMode, projectsOf(s)
	}
}

func (m *Header) outcome(s *run.State) {
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

func (m *Header) head(e run.Event) {
	var p run.RunStart
	e.Decode(&p)
	m.Version, m.RunID, m.ThreadID = MetaVersion, p.RunID, p.ThreadID
	m.SkillID, m.SkillVersion, m.PolicySnapshotID = p.Pipeline, p.Definition, p.Policy
	m.CreatedAt, m.TenantID, m.Environment = p.CreatedAt, p.Tenant, p.Environment
	m.Task, m.RunKind, m.Parent = p.Task, p.RunKind, p.Parent
	if w := p.Workspace; w != nil {
		m.Workspace = &Workspace{Kind: w.Kind, Source: w.Source, Base: w.Base, Branch: w.Branch,
			Start: w.Tree.Digest, Snapshots: p.Snapshots, Definition: w.Definition,
			Submodules: w.Submodules}
	}
	if p.Wording != "" { // otherwise an earlier version started it, and wrote neither
		m.Project, m.Profile = p.Project, cmp.Or(p.Kind, "work")
	}
	m.Source, m.ResumeFromCheckpointID = p.Source, nil
	if p.Source != nil {
		m.ResumeFromCheckpointID = text(p.Source.Checkpoint)
	}
	m.Versions = Versions{Capabilities: list(p.Agents), Bindings: p.Build, RegistryRef: p.Definition}
	m.TraceID = TraceID(p.RunID)
}

// TraceID derives a 16-byte trace id from the run's id, so that every tool computes the same one.
func TraceID(runID string) string {
	sum := sha256.Sum256([]byte("passbook trace " + runID))
	return hex.EncodeToString(sum[:16])
}
