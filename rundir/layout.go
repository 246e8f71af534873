// Package rundir is the run directory: what lies where, how it is written and read. It is the only code that knows its file names.
//
// The projector appends event lines and writes everything else as a pure function of events and store, so a crash at any point is healed by
// doing it again. Nothing is ever cut, nor deleted but by Remove. Readers need no server.
package rundir

import (
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/run"
)

const (
	filePerm = 0o644
	dirPerm  = 0o755
)

// Names of the files of a run directory, relative to it.
const (
	ClaimFile      = "run.json"
	EventsFile     = "events.jsonl"
	MetaFile       = "meta.json"
	LockFile       = "run.lock"
	orchestrator   = "_orchestrator"
	StateFile      = orchestrator + "/state.json"
	DefinitionFile = orchestrator + "/pipeline.yaml"
	PlanFile       = orchestrator + "/plan.json"
	InputsFile     = orchestrator + "/inputs.json"
	PolicyFile     = orchestrator + "/policy.json"
	WorkspaceDir   = "workspace"      // the run's own checkout
	DeliveryPatch  = "delivery.patch" // what was, or was not, delivered
	InputsDir      = orchestrator + "/inputs"
	passesDir      = orchestrator + "/passes"
	checkpointsDir = orchestrator + "/checkpoints"
	tornDir        = orchestrator + "/torn"
	shotsFile      = "manifest.json" // in the folder of a round with pictures
)

// Dir is a run directory on this host.
type Dir struct {
	Root string
	Disk durable.Disk // its zero value is the real one

	FullRecords int // up to how many records state.json is written after every batch; 0: a thousand
}

// At is the run directory at a path.
func At(root string) Dir { return Dir{Root: root} }

// Path gives the place of a file of the directory, named with slashes.
func (d Dir) Path(name string) string { return filepath.Join(d.Root, filepath.FromSlash(name)) }

// evidenceDir is where the evidence of a pass lies: passes/pass-035, or the folder of the round in a repeated stage. A pass that is done again has a
// folder of its own, passes/pass-035-redo-1.
func evidenceDir(p run.Pass) string {
	if p.Dir != "" {
		return path.Join(orchestrator, p.Dir+redone(p.Redo))
	}
	if p.Number > 0 {
		return path.Join(passesDir, fmt.Sprintf("pass-%03d", p.Number)+redone(p.Redo))
	}
	return path.Join(orchestrator, "steps", strings.ReplaceAll(p.Step, "/", "-")+"-round-"+strconv.Itoa(p.Round)+redone(p.Redo))
}

// shotsDir is where the pictures of a round lie.
func shotsDir(s run.Screenshots) string { return path.Join(orchestrator, s.Dir+redone(s.Redo)) }

func redone(times int) string {
	if times == 0 {
		return ""
	}
	return "-redo-" + strconv.Itoa(times)
}

func member(p run.Pass) string {
	if p.Member != "" {
		return p.Member
	}
	return p.Role
}

// ofCall is a file of the evidence: prompt.md of a numbered pass, critic-prompt.md beside those of others.
func ofCall(p run.Pass, name string) string {
	if p.Number == 0 {
		name = member(p) + "-" + name
	}
	return path.Join(evidenceDir(p), name)
}

func promptFile(p run.Pass) string { return ofCall(p, "prompt.md") }

// envelopeFile is what the agent reported beside its reply, one JSON object a line.
func envelopeFile(p run.Pass) string { return ofCall(p, "agent.jsonl") }

// replyFile is raw-output.txt, or the report's name in a repeated stage (requirement 002 §6.2).
func replyFile(p run.Pass, scored bool) string {
	dir := evidenceDir(p)
	switch {
	case p.Number > 0:
		return path.Join(dir, "raw-output.txt")
	case p.Gives == "artifact":
		return path.Join(dir, member(p)+"-output.txt")
	case scored && p.Member == "":
		return path.Join(dir, member(p)+"-synthesis.md")
	default:
		return path.Join(dir, member(p)+"-report.md")
	}
}

// failedFile is raw-output-FAILED.txt; further ones are numbered, none is overwritten. nth is as attemptNumber gives it.
func failedFile(p run.Pass, nth int) string {
	name := "raw-output"
	if p.Number == 0 {
		name = "output"
	}
	return ofCall(p, name+failed(nth)+".txt")
}

// failedPrompt is what was asked in a failed attempt, prompt-FAILED.md.
func failedPrompt(p run.Pass, nth int) string { return ofCall(p, "prompt"+failed(nth)+".md") }

// failedEnvelope is what the agent reported in a failed attempt, agent-FAILED.jsonl.
func failedEnvelope(p run.Pass, nth int) string { return ofCall(p, "agent"+failed(nth)+".jsonl") }

// attemptNumber tells the files of an attempt apart: failed ones count from 1, before is how many there were; of an answer that came too late it is its
// number in the run, below zero.
func attemptNumber(a run.PassAttempt, before int) int {
	if a.Late > 0 {
		return -a.Late
	}
	return before + 1
}

func failed(nth int) string {
	switch {
	case nth < 0:
		return "-SUPERSEDED-" + strconv.Itoa(-nth)
	case nth > 1:
		return "-FAILED-" + strconv.Itoa(nth)
	}
	return "-FAILED"
}

// attemptCall is the id of an attempt's call. One that was answered once more, too late, has two answers.
func attemptCall(a run.PassAttempt) string {
	if a.Late > 0 {
		return a.Call + "~" + strconv.Itoa(a.Late)
	}
	return a.Call
}

func backupFile(p run.Pass, artifact string) string {
	name := "artifact-backup"
	if p.Number == 0 {
		name = "artifact-before-" + member(p)
	}
	return path.Join(evidenceDir(p), name+path.Ext(artifact))
}

// editsDir holds artifacts as they were before an operator's edit.
const editsDir = orchestrator + "/edits"

// beforeEdit is the artifact as it was before an operator's edit, which event seq records.
func beforeEdit(seq int64, artifact string) string {
	return path.Join(editsDir, fmt.Sprintf("before-%d%s", seq, path.Ext(artifact)))
}

func noteFile(file string) string { return path.Join(orchestrator, file) }

func checkpointDir(id string) string { return path.Join(checkpointsDir, id) }
