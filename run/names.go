package run

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Reserved are the names of files and folders in a run directory that no artifact can have.
var Reserved = []string{
	"run.json", "run.lock", "events.jsonl", "meta.json", "traces.jsonl", "provenance.jsonl", "spend.jsonl", "state.json",
	"pipeline.yaml", "plan.json", "delivery.patch", "result.json", "promotions.jsonl", "_orchestrator", "workspace",
	"snapshots", "phase_handoff_decisions", "run_state_repairs",
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
	if usual(name) {
		return true
	}
	clean := path.Clean(name)
	return fs.ValidPath(clean) && clean != "." && !strings.ContainsFunc(name, control)
}

// usual reports quickly that a name is local; other names can be local too.
func usual[T string | []byte](name T) bool {
	word := false // the last byte is that of a word
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c == '-', c == '_':
			word = true
		case word && (c == '.' || c == '/'):
			word = false
		default:
			return false
		}
	}
	return word
}

// SingleName reports whether a name can be that of a file or folder directly in another.
func SingleName(name string) bool { return strings.IndexByte(name, '/') < 0 && LocalName(name) }

func control(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// checkNames checks the names in an event that become paths in a run directory.
func (e *Event) checkNames() error {
	if e.usualPass() {
		return nil
	}
	switch e.Kind {
	case KindPassStart:
		p := passOf[PassStart](e, func(p *PassStart) *Pass { return &p.Pass })
		return p.checkNames()
	case KindPassAttempt:
		p := passOf[PassAttempt](e, func(p *PassAttempt) *Pass { return &p.Pass })
		return p.checkNames()
	case KindPassEnd:
		p := passOf[PassEnd](e, func(p *PassEnd) *Pass { return &p.Pass })
		return p.checkNames()
	case KindRunStart:
		return decoded[RunStart](e).checkNames()
	case KindRunResumed:
		return decoded[RunResumed](e).State.checkNames()
	case KindRunReverted:
		return decoded[RunReverted](e).State.checkNames()
	case KindNoteAppended:
		return local("file", decoded[NoteAppended](e).File)
	case KindScreenshots:
		return local("dir", decoded[Screenshots](e).Dir)
	case KindCheckpointCreated:
		return local("id", decoded[CheckpointCreated](e).ID)
	}
	return nil
}

// passOf returns the pass in a payload, without a copy of one that is decoded already.
func passOf[P any](e *Event, in func(*P) *Pass) *Pass {
	if p, ok := e.decoded.(*P); ok {
		return in(p)
	}
	p := decoded[P](e)
	return in(&p)
}

// usualPass reports quickly that the names of an event's pass are valid, without decoding its payload; other names can
// be valid too.
func (e *Event) usualPass() bool {
	switch e.Kind {
	case KindPassStart, KindPassAttempt, KindPassEnd:
		return e.decoded == nil && usualMembers(e.Payload)
	}
	return false
}

// usualMembers finds the members that [Pass.checkNames] checks without decoding the others.
func usualMembers(payload []byte) bool {
	i := skipSpace(payload, 0)
	if i >= len(payload) || payload[i] != '{' {
		return false
	}
	for more := true; more; {
		s := scanMember(payload, i+1, 1)
		if s.end < 0 || !usualMember(payload[s.key:s.keyEnd], payload[s.value:s.end]) {
			return false
		}
		if i = skipSpace(payload, s.end); i >= len(payload) {
			return false
		}
		more = payload[i] == ','
	}
	return true
}

// usualMember is false for every key that encoding/json may take for one of those names.
func usualMember(key, value []byte) bool {
	switch string(key) {
	case "dir", "step":
		name, ok := plain(value)
		return ok && usual(name)
	case "member", "role":
		name, ok := plain(value)
		return ok && usual(name) && !slices.Contains(name, '/')
	}
	return !foldable(key)
}

func (p *Pass) checkNames() error {
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
	return nil
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
