package tree

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
)

// countedTimes is how often the limit of files is counted before counting stops.
const countedTimes = 2

// LimitError means that a folder has more than a tree may have. Nothing of it was stored.
type LimitError struct {
	Limits  pipeline.TreeLimits
	Size    int64
	Files   int
	Partial bool    // counting stopped: there is more
	Largest []Entry // the first are the largest
}

func (e *LimitError) Error() string {
	least, names := "", make([]string, len(e.Largest))
	if e.Partial {
		least = "at least "
	}
	for i, l := range e.Largest {
		names[i] = fmt.Sprintf("%s (%s)", l.Path, pipeline.Bytes(l.Size))
	}
	return fmt.Sprintf("the files are %s%s in %d entries, more than limits.tree allows (%s in %d); the largest: %s; "+
		"remove them, exclude them with workspace.ignore, or raise the limit", least, pipeline.Bytes(e.Size), e.Files,
		e.Limits.Size, e.Limits.Files, strings.Join(names, ", "))
}

// meter measures a folder while it is listed.
type meter struct {
	limits  pipeline.TreeLimits
	size    int64
	files   int
	largest []Entry
}

// add counts an entry.
func (m *meter) add(path string, info fs.FileInfo) {
	m.files++
	if !info.Mode().IsRegular() {
		return
	}
	const most = 3
	m.size += info.Size()
	m.largest = append(m.largest, Entry{Path: path, Size: info.Size()})
	slices.SortStableFunc(m.largest, func(a, b Entry) int { return int(min(1, max(-1, b.Size-a.Size))) })
	m.largest = m.largest[:min(len(m.largest), most)]
}

// exceeded reports whether a limit is exceeded.
func (m *meter) exceeded() bool {
	return m.limits.Files > 0 && m.files > m.limits.Files || m.limits.Size > 0 && m.size > int64(m.limits.Size)
}

// left returns how many further entries are counted before it takes too long; negative: all.
func (m *meter) left() int {
	if m.limits.Files == 0 {
		return -1
	}
	return max(0, countedTimes*m.limits.Files-m.files)
}

func (m *meter) err(partial bool) error {
	return &LimitError{Limits: m.limits, Size: m.size, Files: m.files, Partial: partial, Largest: m.largest}
}

// list returns the content of a folder by name, unless it is too much.
func (sv *saver) list(dir string) ([]fs.FileInfo, error) {
	left := sv.meter.left()
	inside, err := readDir(sv.root, dir, left+1)
	if err != nil || left < 0 || len(inside) <= left {
		return inside, err
	}
	for _, info := range inside {
		sv.meter.add(join(dir, info.Name()), info)
	}
	return nil, sv.meter.err(true)
}
