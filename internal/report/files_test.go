package report_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/run"
)

// workspaceStory is the start of a run of an ordinary pipeline that works on a folder.
func workspaceStory(t testing.TB) *story {
	s := newStory(t)
	s.add(run.KindRunStart, run.RunStart{
		Task: "Fix it", RunKind: "pipeline", Pipeline: "fix", RunID: "run-1", ThreadID: "run-1", Epoch: 1,
		CreatedAt: moment(0), ConfigHash: "0123456789abcdef", Wording: run.WordingStages,
		Definition: s.blobs.keep([]byte("stages: []\n")).Digest, Plan: s.blobs.keep([]byte("{}")).Digest,
		Inputs: s.blobs.keep([]byte(`{"version":1}`)).Digest, Stages: []run.StageRef{{Name: "fix", Kind: "repeat"},
			{Name: "review", Kind: "each"}},
		Workspace: &run.Workspace{Kind: "folder", Source: "/src", Tree: s.blobs.keep([]byte("tree 0"))},
	})
	s.phase = "fix"
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "fix", Title: "Fix", Round: 1})
	return s
}

// change is a file before and after a pass; nil: it is missing.
type change struct {
	kind, old, path string
	before, after   []byte
}

// changes completes a pass that changes files; the journal lists the first of them.
func (s *story) changes(i, more int, all ...change) {
	s.settleFiles(i, more, s.files(all...))
}

func (s *story) files(all ...change) (files []run.FileChange) {
	for _, c := range all {
		f := run.FileChange{Path: c.path, Old: c.old, Kind: c.kind}
		if c.before != nil {
			f.Before = s.blobs.keep(c.before).Digest
		}
		if c.after != nil {
			f.After = s.blobs.keep(c.after).Digest
		}
		files = append(files, f)
	}
	return files
}

func (s *story) settleFiles(i, more int, files []run.FileChange) {
	s.t.Helper()
	p := run.Pass{Step: fmt.Sprintf("fixer-%d", i), Role: "fixer", Gives: "changes", Round: 1, Title: "Fixer",
		Description: "fixes", Dir: fmt.Sprintf("steps/fixer-%d", i)}
	end := s.settle(p, 1, 0.25, 1000)
	tree := s.blobs.keep(fmt.Appendf(nil, "tree %d", i))
	end.Tree = &tree
	s.add(run.KindPassEnd, end)
	s.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: p.Step, Call: p.Step, Tree: tree,
		Changed: len(files) + more, Files: files})
}

// lines returns numbered lines.
func lines(n int, of string) []byte {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%s %d\n", of, i)
	}
	return []byte(text.String())
}

// filesStory changes files in every way.
func filesStory(t testing.TB) *story {
	s := workspaceStory(t)
	s.changes(1, 0,
		change{kind: "added", path: "new.txt", after: []byte("one\n")},
		change{kind: "changed", path: "sum.sh", before: []byte("a\nold " + evil + "\nz\n"),
			after: []byte("a\nnew " + evil + "\nz\n")},
		change{kind: "removed", path: "gone.txt", before: []byte("x\ny\n")},
		change{kind: "renamed", old: "from.txt", path: "to.txt", before: []byte("same"), after: []byte("same")},
		change{kind: "changed", path: "logo.png", before: []byte("\x89PNG\x00"), after: []byte("\x89PNG\x00\x01")},
		change{kind: "mode", path: "run.sh", before: []byte("run"), after: []byte("run")},
		change{kind: "added", path: "lib"}, // a folder
	)
	s.changes(2, 3, change{kind: "changed", path: "sum.sh", before: []byte("b\n"), after: []byte("c\n")})
	return s
}

func TestPageNamesDifferencesItLacks(t *testing.T) {
	big := lines(100_000, "line")
	for _, row := range []struct {
		name   string
		of     change
		with   func(o *report.Options, s *story)
		passes string
		left   string
	}{
		{"a long difference", change{kind: "added", path: "long", after: lines(1000, "n")},
			func(*report.Options, *story) {}, "601 more lines are left out.", ""},
		{"a large file", change{kind: "changed", path: "big", before: big, after: lines(100_000, "other")},
			func(*report.Options, *story) {}, "Not compared: it is larger than 512 KB.", ""},
		{"no space", change{kind: "added", path: "second", after: []byte("x\n")},
			func(o *report.Options, _ *story) { o.Diffs = 1 }, "Left out for the size of the page.",
			"the differences of 1 file (starter snapshot diff shows them)"},
		{"no store", change{kind: "added", path: "unread", after: []byte("x\n")},
			func(o *report.Options, _ *story) { o.Contents = nil }, "Its content cannot be read.",
			"the differences of 2 files, whose contents cannot be read: the run's store cannot be read"},
		{"a lost blob", change{kind: "added", path: "lost", after: []byte("lost\n")},
			func(o *report.Options, s *story) {
				o.Contents = func(digest string, to io.Writer) error {
					if string(s.blobs.of(digest)) == "lost\n" {
						return errors.New("blob is missing")
					}
					return s.blobs.copy(digest, to)
				}
			}, "lost added Its content cannot be read.",
			"the differences of 1 file, whose contents cannot be read: blob is missing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := workspaceStory(t)
			s.changes(1, 0, change{kind: "added", path: "first", after: []byte("first\n")}, row.of)
			o := report.Options{Contents: s.blobs.copy}
			row.with(&o, s)
			page := write(t, s.dir(), o)
			require.Contains(t, section(t, page, "passes"), row.passes)
			require.Contains(t, section(t, page, "summary"), row.left)
		})
	}
}

// TestPageOfManyChangesIsBounded reads and shows a part of what 300 passes changed: 20 large files each.
func TestPageOfManyChangesIsBounded(t *testing.T) {
	s := workspaceStory(t)
	a, b, large := lines(20_000, "a line"), lines(20_000, "another line"), lines(50_000, "a line")
	all := []change{{kind: "changed", path: "large", before: a, after: large}}
	for n := range 19 {
		all = append(all, change{kind: "changed", path: fmt.Sprintf("file-%d", n), before: a, after: b})
	}
	files := s.files(all...)
	for i := range 300 {
		s.settleFiles(i+1, 0, files)
	}
	read := 0
	page := write(t, s.dir(), report.Options{
		Contents: func(digest string, to io.Writer) error {
			read += len(s.blobs.of(digest))
			return s.blobs.copy(digest, to)
		},
	})
	require.Less(t, read, 80<<20)
	require.Less(t, len(page), 10<<20)
	require.Regexp(t, `the differences of 59\d\d files \(starter snapshot diff`, section(t, page, "summary"))
}
