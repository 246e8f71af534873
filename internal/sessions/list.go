package sessions

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
)

// AdoptablePrograms are those whose conversations can be adopted.
var AdoptablePrograms = []string{"claude", "codex"}

const (
	maxListed = 20      // conversations of a list
	maxFiles  = 2000    // files whose folder is read for it, the newest first
	headSize  = 1 << 20 // read at the beginning and at the end of a file for a list
)

// List returns the newest conversations of folders that are wanted, the newest first. Of large files it reads the
// beginning and the end. A home without conversations has none.
func (p Program) List(wanted func(folder string) bool) (all []Conversation, err error) {
	root, err := p.open()
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	files, err := p.conversations(root)
	if err != nil {
		return nil, err
	}
	for _, f := range files[:min(len(files), maxFiles)] {
		c, err := p.peek(root, f)
		if err != nil || c.Folder == "" || !wanted(c.Folder) {
			continue // not a conversation, or one that is being removed
		}
		if all = append(all, c); len(all) == maxListed {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b Conversation) int { return b.At.Compare(a.At) })
	return all, nil
}

// storedFile is a file with a conversation.
type storedFile struct {
	name, id string
	size     int64
	changed  time.Time
}

// conversations lists the files of conversations outside of runs, the newest first.
func (p Program) conversations(root *os.Root) (all []storedFile, err error) {
	pattern := map[string]string{"claude": "projects/*/*.jsonl", "codex": "sessions/*/*/*/rollout-*.jsonl"}[p.Name]
	names, err := fs.Glob(root.FS(), pattern)
	if err != nil {
		return nil, fmt.Errorf("list the conversations of %s: %w", p.Name, err)
	}
	for _, name := range names {
		id := strings.TrimSuffix(path.Base(name), ".jsonl")
		if p.Name == "codex" {
			id = codexID(id)
		}
		info, err := root.Lstat(name)
		if err == nil && info.Mode().IsRegular() && Valid(id) {
			all = append(all, storedFile{name, id, info.Size(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b storedFile) int {
		return cmp.Or(b.changed.Compare(a.changed), cmp.Compare(a.name, b.name))
	})
	return all, nil
}

// codexID returns the id in the name of a file, after rollout and a time.
func codexID(name string) string {
	const before = len("rollout-2006-01-02T15-04-05-")
	if len(name) <= before {
		return ""
	}
	return name[before:]
}

// peek reads the beginning and the end of a file.
func (p Program) peek(root *os.Root, file storedFile) (c Conversation, err error) {
	f, err := disk.OpenIn(root, file.name)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(io.LimitReader(f, 2*headSize))
	if err != nil || file.size <= 2*headSize {
		return p.readConversation(file.id, data), err
	}
	head := data[:bytes.LastIndexByte(data[:headSize], '\n')+1]
	tail := make([]byte, headSize)
	n, err := f.ReadAt(tail, max(0, file.size-headSize))
	if err != nil && !errors.Is(err, io.EOF) {
		return c, err
	}
	tail = tail[:n]
	tail = tail[bytes.IndexByte(tail, '\n')+1:] // the first line is cut
	return p.readConversation(file.id, slices.Concat(head, tail)), nil
}

// Find returns the conversation of a session, from its whole file.
func (p Program) Find(id string) (c Conversation, err error) {
	root, err := p.open()
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	data, err := p.read(root, id)
	if err != nil {
		return c, err
	}
	if c = p.readConversation(id, data); c.Entries == 0 || c.Folder == "" {
		return c, fmt.Errorf("read session %s of %s: %w", id, p.Name, ErrDamaged)
	}
	return c, nil
}

// ErrDamaged means that the file of a session contains no conversation.
var ErrDamaged = errors.New("its file is damaged: it does not record in which folder the conversation was held")
