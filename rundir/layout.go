package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/run"
)

// Modes of what a run directory contains: prompts and replies are for its owner only.
const (
	FilePerm = 0o600
	DirPerm  = 0o700
)

// Names of the files of a run directory, relative to it.
const (
	ClaimFile      = "run.json"
	EventsFile     = "events.jsonl"
	MetaFile       = "meta.json"
	LockFile       = "run.lock"
	CrossFile      = "cross_checkpoint.json" // what a run across projects waits for
	Orchestrator   = "_orchestrator"
	StateFile      = Orchestrator + "/state.json"
	DefinitionFile = Orchestrator + "/pipeline.yaml"
	PlanFile       = Orchestrator + "/plan.json"
	InputsFile     = Orchestrator + "/inputs.json"
	ParentFile     = Orchestrator + "/parent.md" // the brief of the run that this one follows up
	PolicyFile     = Orchestrator + "/policy.json"
	WorkspaceDir   = "workspace"      // the run's own checkout
	DeliveryPatch  = "delivery.patch" // what was, or was not, delivered
	InputsDir      = Orchestrator + "/inputs"
	PassesDir      = Orchestrator + "/passes"
	CheckpointsDir = Orchestrator + "/checkpoints"
	TornDir        = Orchestrator + "/torn"
	ShotsFile      = "manifest.json" // in the folder of a round with pictures
)

// evidenceDir returns the folder with the evidence of a pass: passes/pass-035, or the folder of the round in a repeated
// stage. A pass that is repeated has a separate folder, passes/pass-035-redo-1.
func evidenceDir(p run.Pass) string {
	if p.Dir != "" {
		return join(Orchestrator, p.Dir+Redone(p.Redo))
	}
	if p.Number > 0 {
		return join(PassesDir, fmt.Sprintf("pass-%03d", p.Number)+Redone(p.Redo))
	}
	return join(Orchestrator, "steps/"+strings.ReplaceAll(p.Step, "/", "-")+"-round-"+strconv.Itoa(p.Round)+
		Redone(p.Redo))
}

// AmendedDir returns the folder with what an amendment has put in force: the files of the start, under the same names.
func AmendedDir(seq int64) string { return Orchestrator + "/amended-" + strconv.FormatInt(seq, 10) }

// InForce returns a file of the start, or of the amendment with that number.
func InForceFile(seq int64, name string) string {
	if seq == 0 {
		return name
	}
	return AmendedDir(seq) + strings.TrimPrefix(name, Orchestrator)
}

// ShotsDir returns the folder with the screenshots of a round.
func ShotsDir(s run.Screenshots) string { return path.Join(Orchestrator, s.Dir+Redone(s.Redo)) }

// join is path.Join for a clean folder. It is fast for a clean name: a check lists the files of 100,000 events.
func join(dir, name string) string {
	if fs.ValidPath(name) {
		return dir + "/" + name
	}
	return path.Join(dir, name)
}

func Redone(times int) string {
	if times == 0 {
		return ""
	}
	return "-redo-" + strconv.Itoa(times)
}

func Member(p run.Pass) string {
	if p.Member != "" {
		return p.Member
	}
	return p.Role
}

// ofCall returns the path of a file of the evidence: prompt.md of a numbered pass, critic-prompt.md of others.
func ofCall(p run.Pass, name string) string {
	if p.Number == 0 {
		name = Member(p) + "-" + name
	}
	return join(evidenceDir(p), name)
}

func PromptFile(p run.Pass) string { return ofCall(p, "prompt.md") }

// EnvelopeFile contains what the agent reported beside its reply, one JSON object per line.
func EnvelopeFile(p run.Pass) string { return ofCall(p, "agent.jsonl") }

// ReplyFile is raw-output.txt, or the report's name in a repeated stage (requirement 002 §6.2).
func ReplyFile(p run.Pass) string {
	dir := evidenceDir(p)
	switch {
	case p.Number > 0:
		return join(dir, "raw-output.txt")
	case p.Gives == "artifact":
		return join(dir, Member(p)+"-output.txt")
	case p.Member == "" && p.Gives == "report":
		return join(dir, Member(p)+"-synthesis.md")
	default:
		return join(dir, Member(p)+"-report.md")
	}
}

// FoundFile is what was found out about the changes of a pass, findings.json.
func FoundFile(p run.Pass) string { return ofCall(p, "findings.json") }

// VerdictFile is the structured verdict of a reply, verdict.json.
func VerdictFile(p run.Pass) string { return ofCall(p, "verdict.json") }

// FailedFile returns raw-output-FAILED.txt. Later ones are numbered and none is overwritten. nth is a result of
// [AttemptNumber].
func FailedFile(p run.Pass, nth int) string {
	name := "raw-output"
	if p.Number == 0 {
		name = "output"
	}
	return ofCall(p, name+failedAttempt(nth)+".txt")
}

// FailedPrompt returns the prompt of a failed attempt, prompt-FAILED.md.
func FailedPrompt(p run.Pass, nth int) string { return ofCall(p, "prompt"+failedAttempt(nth)+".md") }

// FailedEnvelope returns the report of the agent in a failed attempt, agent-FAILED.jsonl.
func FailedEnvelope(p run.Pass, nth int) string {
	return ofCall(p, "agent"+failedAttempt(nth)+".jsonl")
}

// AttemptNumber distinguishes the files of attempts. Failed attempts count from 1, after the number before. An answer
// that arrived too late has its number in the run, below zero.
func AttemptNumber(a run.PassAttempt, before int) int {
	if a.Late > 0 {
		return -a.Late
	}
	return before + 1
}

func failedAttempt(nth int) string {
	switch {
	case nth < 0:
		return "-SUPERSEDED-" + strconv.Itoa(-nth)
	case nth > 1:
		return "-FAILED-" + strconv.Itoa(nth)
	}
	return "-FAILED"
}

// AttemptCall returns the id of the call of an attempt. A call that was answered again, too late, has two answers.
func AttemptCall(a run.PassAttempt) string {
	if a.Late > 0 {
		return a.Call + "~" + strconv.Itoa(a.Late)
	}
	return a.Call
}

// BackupFile is the copy of the artifact before a pass. artifact is the name of the artifact.
func BackupFile(p run.Pass, artifact string) string {
	name := "artifact-backup"
	if p.Number == 0 {
		name = "artifact-before-" + Member(p)
	}
	return join(evidenceDir(p), name+path.Ext(artifact))
}

// EditsDir contains artifacts from before an edit of an operator, and edits that the run replaced.
const EditsDir = Orchestrator + "/edits"

// BeforeEdit returns the path of the artifact before the edit that event seq records.
func BeforeEdit(seq int64, artifact string) string {
	return path.Join(EditsDir, fmt.Sprintf("before-%d%s", seq, path.Ext(artifact)))
}

// KeptEdit returns the path of the copy of an edit with this digest.
func KeptEdit(digest, artifact string) string {
	return path.Join(EditsDir, fmt.Sprintf("edit-%.8s%s", digest, path.Ext(artifact)))
}

func NoteFile(file string) string { return join(Orchestrator, file) }

func CheckpointDir(id string) string { return path.Join(CheckpointsDir, id) }

const ArchivesDir = Orchestrator + "/archives"

const DecisionsDir = "phase_handoff_decisions"

// StateSnapshot is the state in the folder of a checkpoint.
const StateSnapshot = "state-snapshot.json"

// OwnerFile records the execution that writes the directory since the run continued in a new epoch.
const OwnerFile = Orchestrator + "/owner.json"

// HiddenFromGit is the .gitignore of a run directory that lies in a checkout.
const HiddenFromGit = "*\n"

// ReportFile is the page that `starter report` writes.
const ReportFile = Orchestrator + "/report.html"

// ResultFile names the result of a completed run.
const ResultFile = "result.json"

// PromotionsFile records the places that the result of a completed run was copied to: one delivery.completed event per
// place with separate numbers. It is not part of the journal, because a completed run is final.
const PromotionsFile = "promotions.jsonl"

func ArtifactFile(s run.RunStart) string {
	if s.Artifact == nil {
		return ""
	}
	return s.Artifact.File
}

// Growing files, all derived: the six logs of requirement 002 §2, and the rows of requirement 004 beside events.jsonl.
const (
	LogsDir        = Orchestrator + "/logs"
	TextLog        = LogsDir + "/orchestrator.log"
	DecisionsLog   = LogsDir + "/decisions.jsonl"
	ErrorsLog      = LogsDir + "/errors.jsonl"
	CostLog        = LogsDir + "/cost.jsonl"
	QualityLog     = LogsDir + "/quality.jsonl"
	PassesLog      = LogsDir + "/passes.jsonl"
	TracesFile     = "traces.jsonl"
	ProvenanceFile = "provenance.jsonl"
	SpendFile      = "spend.jsonl" // a link to the cost log
)

const SnapshotsDir = "snapshots"

// SnapshotManifest lists the whole tree at the end of turn n; turn 0 is the start of the run.
func SnapshotManifest(n int) string { return path.Join(SnapshotDir(n), "manifest.json") }

// SnapshotTree is the tree itself, if the definition asks for it.
func SnapshotTree(n int) string { return path.Join(SnapshotDir(n), "tree") }

func SnapshotDir(n int) string { return fmt.Sprintf("%s/turn-%d", SnapshotsDir, n) }

var unsafeInName = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// DecisionFile returns the path of the decision of a hand-off. A digest distinguishes ids that have the same file name.
func DecisionFile(id string) string {
	sum := sha256.Sum256([]byte(id))
	name := unsafeInName.ReplaceAllString(id, "_")
	return path.Join(DecisionsDir, name[:min(len(name), 80)]+"_"+hex.EncodeToString(sum[:5])+".json")
}
