package rundir

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// MetaVersion is the version of meta.json.
const MetaVersion = 1

// Meta is meta.json: the folded state with a header (requirement 003 §5, requirement 000). It is written last and
// commits a projection: every derived file is complete up to its seq.
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

	// of a run across projects: the source of each, by alias; and what became of them
	Projects  map[string]string `json:"projects,omitempty"`
	CrossMode string            `json:"cross_mode,omitempty"`
	Phases    *Phases           `json:"phases,omitempty"`
	// of a project's run: its alias, and the run across projects that it belongs to
	ProjectAlias string `json:"project_alias,omitempty"`
	ParentRun    string `json:"parent_run_id,omitempty"`

	PhaseHandoff *PhaseHandoff `json:"phase_handoff,omitempty"`
	run.Markers                // they explain the status; a key is present only if it applies

	Events      EventsMark  `json:"events"`
	SegmentHead string      `json:"segment_head"` // the newest segment in the store; it follows from no event
	State       run.State   `json:"state"`
	History     run.History `json:"history"`
	Summary     Summary     `json:"summary"`
}

// Workspace is the tree that a run works on.
type Workspace struct {
	Kind   run.WorkspaceKind `json:"kind"`
	Source string            `json:"source"` // where it comes from
	Base   string            `json:"base,omitempty"`
	Branch string            `json:"branch,omitempty"`
	Commit string            `json:"commit,omitempty"` // head of the branch
	Start  string            `json:"start"`            // digest of the tree at the start
	Tree   string            `json:"tree"`             // and now

	Snapshots  string   `json:"snapshots,omitempty"`  // full: the tree of each turn is stored too
	Definition []string `json:"definition,omitempty"` // paths in the tree of what the pipeline consists of
	Submodules []string `json:"submodules,omitempty"` // their folders in the tree
}

// Versions is the versions block of RunStore v2.
type Versions struct {
	Capabilities []string `json:"capabilities"`
	Bindings     string   `json:"bindings"`
	RegistryRef  string   `json:"registry_ref"`
}

// EventsMark records how far events.jsonl is folded into meta.json.
type EventsMark struct {
	Seq   int64     `json:"seq"`
	Chain run.Chain `json:"chain"`
	Size  int64     `json:"size"` // bytes
}

// Meta reads meta.json. The error is fs.ErrNotExist if the file is missing and damaged if it cannot be parsed; both are
// repaired by a rebuild from the events. A newer version is read as far as this program knows it.
func (d Dir) Meta() (Meta, error) {
	var m Meta
	err := d.ReadJSON(MetaFile, &m)
	if errors.Is(err, disk.ErrDamaged) {
		if raw, again := d.ReadRaw(MetaFile); again == nil && VersionOf(raw) > MetaVersion {
			return m, d.newer(MetaFile, VersionOf(raw), MetaVersion)
		}
	}
	return m, err
}

// Known returns an error if another release wrote a file of the directory that every write depends on. Files that are
// missing or damaged are not an error here.
func (d Dir) Known() error {
	c, err := d.Claim()
	switch {
	case err != nil && newerOnly(err) != nil:
		return err
	case err == nil && c.Version > run.ClaimVersion:
		return d.newer(ClaimFile, c.Version, run.ClaimVersion)
	}
	m, err := d.Meta()
	switch {
	case err != nil:
		return newerOnly(err)
	case m.Version > MetaVersion:
		return d.newer(MetaFile, m.Version, MetaVersion)
	case m.State.Version != run.StateVersion && m.State.Version != 0: // 0: no event was folded
		return d.newer("the state in "+MetaFile, m.State.Version, run.StateVersion)
	}
	return nil
}

func newerOnly(err error) error {
	if newer := (*NewerError)(nil); errors.As(err, &newer) {
		return err
	}
	return nil
}

func (d Dir) newer(file string, version, known int) error {
	return &NewerError{Op: "use run directory", Object: d.Root, File: file, Version: version, Known: known}
}

// State reads state.json. In long runs it can be older than the events: see LastSeq.
func (d Dir) State() (PipelineState, error) {
	raw, err := d.ReadFile(StateFile)
	if err != nil {
		return PipelineState{}, err
	}
	return d.Parse(raw)
}

func (d Dir) Parse(raw []byte) (PipelineState, error) {
	b := NewState()
	err := json.Unmarshal(raw, &b)
	switch {
	case err != nil:
		err = fmt.Errorf("%s is %w: %v", d.Path(StateFile), disk.ErrDamaged, err)
	case b.SchemaVersion != StateSchema:
		err = fmt.Errorf("%s is %w: it has schema version %d, and this program writes version %d",
			d.Path(StateFile), disk.ErrDamaged, b.SchemaVersion, StateSchema)
	}
	return b, err
}

// Summary contains the figures of a run that are needed most often. It is part of meta.json, so reading them takes the
// same time for every number of records.
type Summary struct {
	CurrentPhase    string       `json:"currentPhase"`
	PhaseReason     *string      `json:"phaseReason"`
	Threshold       *float64     `json:"paScoreThreshold"`
	MaxCycles       int          `json:"maxPACycles"`
	LastPasses      []PassRecord `json:"lastPasses"`
	Checkpoints     int          `json:"checkpoints"`
	FirstCheckpoint *string      `json:"firstCheckpoint"`
	LastCheckpoint  *string      `json:"lastCheckpoint"`
	Recovered       int          `json:"recovered"` // errors
	Unrecovered     int          `json:"unrecovered"`
}

// PhaseHandoff is the key phase_handoff of meta.json: the open hand-off, or the undecided one of a failed run
// (requirement 000).
type PhaseHandoff struct {
	ID            string         `json:"id"`
	Phase         string         `json:"phase"`
	Question      string         `json:"question,omitempty"` // for people
	Type          string         `json:"type"`
	Trigger       string         `json:"trigger"`
	Verdict       string         `json:"verdict"`
	Approved      *bool          `json:"approved"` // nil: not judged
	Round         int            `json:"round"`
	LoopMaxRounds int            `json:"loop_max_rounds"`
	Actions       []string       `json:"available_actions"`
	Artifacts     []run.Attached `json:"artifacts"`
	LastOutput    string         `json:"last_output"` // digest
	Digest        string         `json:"digest,omitempty"`
	RequestedAt   string         `json:"requested_at"`
	run.Deadlines
	Reminded int `json:"reminded,omitempty"` // how often

	// of a run across projects: cfa or project; the project and its hand-off
	Kind  string `json:"kind,omitempty"`
	Alias string `json:"project_alias,omitempty"`
	Child string `json:"child_handoff_id,omitempty"`
}

// Phases are what requirement 001 reads of a run across projects, and of a project's run.
type Phases struct {
	Projects        map[string]EmbeddedProject `json:"projects,omitempty"` // those that are done, by alias
	CrossDelivery   *CrossDelivery             `json:"cross_delivery,omitempty"`
	FinalAcceptance *FinalAcceptance           `json:"final_acceptance,omitempty"` // of a project's run
}

// EmbeddedProject is a copy of the record of a project that is done, and therefore never changes.
type EmbeddedProject struct {
	Status string  `json:"status"`
	RunID  string  `json:"run_id"`
	Tree   string  `json:"tree,omitempty"`
	Commit string  `json:"commit,omitempty"`
	USD    float64 `json:"usd"`
}

// CrossDelivery is what became of the changes of all projects.
type CrossDelivery struct {
	Status   string                    `json:"status"` // ok, partial or failed
	Projects map[string]*run.Delivered `json:"projects"`
}

// FinalAcceptance is the last verdict on the work of a project.
type FinalAcceptance struct {
	Verdict   string `json:"verdict"` // APPROVED or REJECTED
	ShipReady bool   `json:"ship_ready"`
}

// CrossCheckpoint is cross_checkpoint.json: what a run across projects waits for (requirement 001).
type CrossCheckpoint struct {
	Pending     bool              `json:"phase_handoff_pending"`
	Kind        string            `json:"phase_handoff_kind,omitempty"` // project or cfa
	ID          string            `json:"phase_handoff_id,omitempty"`
	Alias       string            `json:"phase_handoff_project_alias,omitempty"`
	Child       string            `json:"phase_handoff_child_id,omitempty"`
	CFAPaused   *CFAPaused        `json:"cfa_paused_state,omitempty"`
	SubStatus   map[string]string `json:"sub_status"`
	PendingGate *PendingGate      `json:"pending_gate,omitempty"`
}

// CFAPaused is the state in which the acceptance of all projects waits.
type CFAPaused struct {
	Verdict string `json:"verdict"`
	Tree    string `json:"tree"` // digest of all trees
}

// PendingGate is a gate that waits for a decision.
type PendingGate struct {
	Name      string   `json:"name"`
	RunPolicy string   `json:"run_policy"`
	Choices   []string `json:"choices"`
	OnSkip    string   `json:"on_skip"`
}
