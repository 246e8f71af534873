package sessions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
)

// OpenIn returns a process in which a conversation is open; nil: there is none. codex keeps the file open. claude
// describes each of its processes in a file, with the conversation that is open in it.
func (p Program) OpenIn(c Conversation) (by *process.Identity, err error) {
	root, err := p.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	found, err := p.holders(root, c)
	if err != nil {
		return nil, fmt.Errorf("find the process of session %s of %s: %w", c.ID, p.Name, err)
	}
	for _, one := range found {
		if one.PID != os.Getpid() && one.Alive() {
			return &one, nil
		}
	}
	return nil, nil
}

func (p Program) holders(root *os.Root, c Conversation) (found []process.Identity, err error) {
	if p.Name == "claude" {
		return described(root, c.ID)
	}
	name, err := p.find(root, c.ID)
	if err != nil {
		return nil, err
	}
	open, err := process.WithFile(filepath.Join(root.Name(), filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	terminals := slices.DeleteFunc(slices.Clone(open), isServer)
	if len(terminals) > 0 || len(open) == 0 {
		return terminals, nil
	}
	// The server of codex keeps the file open for its terminals, and when they are gone, too.
	if c.Ended == run.EndedEarly || c.Ended == run.EndedInTool {
		return open, nil
	}
	terminals, err = process.InFolder(p.Name, c.Folder)
	return slices.DeleteFunc(terminals, isServer), err
}

// isServer reports whether a process of codex works for others.
func isServer(id process.Identity) bool {
	return slices.Contains(process.Arguments(id.PID), "app-server")
}

// described returns the processes that claude describes with a conversation. A pid may be that of another process by
// now: then its start time differs.
func described(root *os.Root, id string) (found []process.Identity, err error) {
	names, err := fs.Glob(root.FS(), "sessions/*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := read(root, name)
		if err != nil {
			continue // removed meanwhile
		}
		var of struct {
			PID     int
			Session string `json:"sessionId"`
			Start   string `json:"procStart"`
		}
		if !decodes(data, &of) || of.Session != id || of.PID <= 0 {
			continue
		}
		one, err := process.Of(of.PID)
		if errors.Is(err, process.ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if process.SameStart(one, of.Start) {
			found = append(found, one)
		}
	}
	return found, nil
}
