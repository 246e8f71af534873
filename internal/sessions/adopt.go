package sessions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/passbook-run/passbook/internal/disk"
)

// Adoption is the copy of a conversation that a run continues.
type Adoption struct {
	Conversation
	File   string // below the folder of kept sessions
	Digest string // of the original, as it was copied
	Raw    int64  // bytes of the original
}

// Adopt stores a copy of a conversation for a run. It changes nothing of the program's files. Of claude, the copy has
// only what belongs to the conversation: no settings, permissions or worktrees of its terminal. Damaged lines are left
// out.
func (p Program) Adopt(state, runID, id string) (a Adoption, err error) {
	dir, err := Dir(state, runID)
	if err != nil {
		return a, err
	}
	root, err := p.open()
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	data, err := p.read(root, id)
	if err != nil {
		return a, err
	}
	a.Conversation = Conversation{Program: p.Name, ID: id}
	text := p.adopted(&a.Conversation, data)
	if a.Folder == "" || len(text) == 0 {
		return a, fmt.Errorf("adopt session %s of %s: %w", id, p.Name, ErrDamaged)
	}
	file := disk.File{Path: filepath.Join(dir, id), Data: text, Perm: 0o600, DirPerm: 0o700}
	if err := (disk.Disk{}).WriteAll([]disk.File{file}); err != nil {
		return a, fmt.Errorf("adopt session %s of %s: %w", id, p.Name, err)
	}
	a.File, a.Digest, a.Raw = filepath.Join(runID, id), disk.Digest(data), int64(len(data))
	return a, nil
}

// Unchanged reports whether the original is still as it was copied.
func (p Program) Unchanged(a Adoption) (same bool, err error) {
	root, err := p.open()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	data, err := p.read(root, a.ID)
	return err == nil && disk.Digest(data) == a.Digest, err
}

// adopted returns the lines of a conversation that its copy has.
func (p Program) adopted(c *Conversation, data []byte) []byte {
	e := p.entries(c)
	out := make([]byte, 0, len(data))
	chain := chain{seen: map[string]bool{}}
	for line := range bytes.Lines(data) {
		before := c.Damaged
		taken := c.take(e, line)
		if c.Damaged > before {
			chain.broken = true
		}
		if !taken || len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if p.Name == "claude" {
			if line = chain.link(line); line == nil {
				continue
			}
		}
		out = append(append(out, bytes.TrimRight(line, "\r\n")...), '\n')
	}
	e.end()
	return out
}

// chain links the messages of claude, each of which names the one before it.
type chain struct {
	seen   map[string]bool
	last   string
	broken bool // lines are left out
}

// link returns an entry that belongs to the conversation; nil: it does not. One whose predecessor is damaged follows the
// last one that is not.
func (c *chain) link(line []byte) []byte {
	var row struct {
		Type   string
		ID     string `json:"uuid"`
		Parent string `json:"parentUuid"`
	}
	if !decodes(line, &row) {
		return nil
	}
	if row.ID == "" {
		if row.Type == "summary" || row.Type == "content-replacement" {
			return line
		}
		return nil
	}
	if c.broken && row.Parent != "" && !c.seen[row.Parent] && c.last != "" {
		line = relinked(line, c.last)
	}
	c.seen[row.ID], c.last = true, row.ID
	return line
}

// relinked returns an entry that follows another one. Its other values stay as they are written.
func relinked(line []byte, parent string) []byte {
	var row map[string]json.RawMessage
	if json.Unmarshal(line, &row) != nil {
		return line
	}
	quoted, err := json.Marshal(parent)
	if err != nil {
		return line
	}
	row["parentUuid"] = quoted
	if changed, err := json.Marshal(row); err == nil {
		return changed
	}
	return line
}
