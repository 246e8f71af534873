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

// evidenceDir is where the evidence of a pass lies: passes/pass-035, or the folder of the round in a repeated stage.
func evidenceDir(p run.Pass) string {
	if p.Dir != "" {
		return path.Join(orchestrator, p.Dir)
	}
	if p.Number > 0 {
		return path.Join(passesDir, fmt.Sprintf("pass-%03d", p.Number))
	}
	return path.Join(orchestrator, "steps", strings.ReplaceAll(p.Step, "/", "-")+"-round-"+strconv.Itoa(p.Round))
}

func member(p run.Pass) string {
	if p.Member != "" {
		return p.Member
	}
	return p.Role
}

func promptFile(p run.Pass) string {
	if p.Number > 0 {
		return path.Join(evidenceDir(p), "prompt.md")
	}
	return path.Join(evidenceDir(p), member(p)+"-prompt.md")
}

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

// failedFile is raw-output-FAILED.txt; further ones are numbered, none is overwritten.
func failedFile(p run.Pass, nth int) string {
	name := "raw-output-FAILED"
	if p.Number == 0 {
		name = member(p) + "-output-FAILED"
	}
	if nth > 1 {
		name += "-" + strconv.Itoa(nth)
	}
	return path.Join(evidenceDir(p), name+".txt")
}

func backupFile(p run.Pass, artifact string) string {
	name := "artifact-backup"
	if p.Number == 0 {
		name = "artifact-before-" + member(p)
	}
	return path.Join(evidenceDir(p), name+path.Ext(artifact))
}

func noteFile(file string) string { return path.Join(orchestrator, file) }

func checkpointDir(id string) string { return path.Join(checkpointsDir, id) }
