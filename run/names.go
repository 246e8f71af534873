package run

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Reserved are the names of files and folders in a run directory that no artifact can have.
var Reserved = []string{
	"run.json", "run.lock", "events.jsonl", "meta.json", "traces.jsonl", "provenance.jsonl", "spend.jsonl", "state.json",
	"pipeline.yaml", "plan.json", "delivery.patch", "result.json", "promotions.jsonl", "_orchestrator", "workspace",
	"snapshots", "phase_handoff_decisions", LanesDir, "cross_checkpoint.json", "owner.json",
}

// NameError reports a name in an event that is not one of a file in a run directory.
type NameError struct {
	What string // the field
	Name string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("%s %q is not a name of a file in a run directory", e.What, e.Name)
}

// LocalName reports whether a name can be that of a file or folder below another: it does not lead out of it, and has
// no control characters.
func LocalName(name string) bool {
	clean := path.Clean(name)
	return fs.ValidPath(clean) && clean != "." && !strings.ContainsFunc(name, control)
}

// SingleName reports whether a name can be that of a file or folder directly in another.
func SingleName(name string) bool { return strings.IndexByte(name, '/') < 0 && LocalName(name) }

func control(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// checkNames checks the names in an event that become paths in a run directory.
func (e *Event) checkNames() error {
	switch e.Kind {
	case KindPassStart:
		return decoded[PassStart](e).Pass.checkNames()
	case KindPassAttempt:
		return decoded[PassAttempt](e).Pass.checkNames()
	case KindPassEnd:
		return decoded[PassEnd](e).Pass.checkNames()
	case KindRunStart:
		return decoded[RunStart](e).checkNames()
	case KindRunResumed:
		return decoded[RunResumed](e).State.checkNames()
	case KindRunReverted:
		return decoded[RunReverted](e).State.checkNames()
	case KindChildStarted:
		return decoded[ChildStart](e).checkNames()
	case KindChildEnded:
		return decoded[ChildEnd](e).checkNames()
	case KindNoteAppended:
		return local("file", decoded[NoteAppended](e).File)
	case KindScreenshots:
		return local("dir", decoded[Screenshots](e).Dir)
	case KindCheckpointCreated:
		return local("id", decoded[CheckpointCreated](e).ID)
	}
	return nil
}

func (p Pass) checkNames() error {
	if err := local("dir", p.Dir); err != nil {
		return err
	}
	if err := single("member", p.Member); err != nil {
		return err
	}
	if err := single("role", p.Role); err != nil {
		return err
	}
	return local("step", p.Step)
}

func (p RunStart) checkNames() error {
	if err := single("run_id", p.RunID); err != nil {
		return err
	}
	if p.Artifact != nil {
		name := p.Artifact.File
		top, _, _ := strings.Cut(name, "/")
		for _, r := range Reserved {
			if strings.EqualFold(top, r) {
				return &NameError{"artifact", name}
			}
		}
		if err := local("artifact", name); err != nil {
			return err
		}
	}
	for _, n := range p.Notes {
		if err := local("notes", n.File); err != nil {
			return err
		}
	}
	return p.State.checkNames()
}

func (s *State) checkNames() error {
	if s == nil {
		return nil
	}
	for _, n := range s.Notes {
		if err := local("notes", n.File); err != nil {
			return err
		}
	}
	if s.Lanes != nil {
		for _, rows := range [][]Lane{s.Lanes.Active, s.Lanes.Asked, s.Lanes.Again} {
			for _, l := range rows {
				if err := l.checkNames(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p LanePlace) checkNames() error {
	if err := single("lane", p.Key); err != nil {
		return err
	}
	return single("suffix", p.Suffix)
}

func local(what, name string) error {
	if name == "" || LocalName(name) {
		return nil
	}
	return &NameError{what, name}
}

func single(what, name string) error {
	if name == "" || SingleName(name) {
		return nil
	}
	return &NameError{what, name}
}
