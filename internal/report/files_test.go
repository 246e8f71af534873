package report_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/run"
)

// trees is a store whose trees have empty manifests.
type trees struct {
	projector.Trees
	fakeBlobs
}

func (trees) Manifest(context.Context, string) ([]byte, error) { return []byte("{}\n"), nil }

// copy returns the content of a file to a page.
func (f fakeBlobs) copy(digest string, to io.Writer) error {
	data, err := f.Get(context.Background(), digest)
	if err == nil {
		_, err = to.Write(data)
	}
	return err
}

// workspaceStory is the start of a run of an ordinary pipeline that works on a folder.
func workspaceStory(t testing.TB) *story {
	s := newStory(t)
	inputs := s.blobs.keep([]byte(`{"version":1}`))
	s.add(run.KindRunStart, run.RunStart{
		Task: "Fix it", RunKind: "pipeline", Pipeline: "fix", RunID: "run-1", ThreadID: "run-1", Epoch: 1,
		CreatedAt: moment(0), ConfigHash: "0123456789abcdef", Wording: run.WordingStages,
		Definition: s.blobs.keep([]byte("stages: []\n")).Digest, Plan: s.blobs.keep([]byte("{}")).Digest,
		Inputs: inputs.Digest, Stages: []run.StageRef{{Name: "fix", Kind: "repeat"}},
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
	s.t.Helper()
	p := run.Pass{Step: fmt.Sprintf("fixer-%d", i), Role: "fixer", Gives: "changes", Round: 1, Title: "Fixer",
		Description: "fixes", Dir: fmt.Sprintf("steps/fixer-%d", i)}
	end := s.settle(p, 1, 0.25, 1000)
	tree := s.blobs.keep(fmt.Appendf(nil, "tree %d", i))
	end.Tree = &tree
	s.add(run.KindPassEnd, end)
	u := run.WorkspaceUpdated{Step: p.Step, Call: p.Step, Tree: tree, Changed: len(all) + more}
	for _, c := range all {
		f := run.FileChange{Path: c.path, Old: c.old, Kind: c.kind}
		if c.before != nil {
			f.Before = s.blobs.keep(c.before).Digest
		}
		if c.after != nil {
			f.After = s.blobs.keep(c.after).Digest
		}
		u.Files = append(u.Files, f)
	}
	s.add(run.KindWorkspaceUpdated, u)
}

// lines returns numbered lines.
func lines(n int, of string) []byte {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%s %d\n", of, i)
	}
	return []byte(text.String())
}

func TestPageShowsFileDifferencesOfEachPass(t *testing.T) {
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
	page := write(t, s.workspaceDir().Dir, report.Options{Contents: s.blobs.copy})
	output := section(t, page, "passes")
	for _, want := range []string{
		"new.txt added +1 −0 @@ -0,0 +1,1 @@ +one",
		"sum.sh changed +1 −1 @@ -1,3 +1,3 @@ a -old </pre></title><script>alert(1)</script>",
		"gone.txt removed +0 −2",
		"from.txt → to.txt renamed",
		"logo.png changed, binary, 5 → 6 bytes",
		"run.sh mode",
		"lib added",
		"sum.sh changed +1 −1 @@ -1,1 +1,1 @@ -b +c",
		"3 more files: starter snapshot diff run-1 2",
	} {
		require.Contains(t, output, want)
	}
	require.NotContains(t, page, "<script>alert")
	require.NotContains(t, output, "\x00")
	require.NotContains(t, section(t, page, "summary"), "not on this page")
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
					if string(s.blobs[digest]) == "lost\n" {
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
			page := write(t, s.workspaceDir().Dir, o)
			require.Contains(t, section(t, page, "passes"), row.passes)
			require.Contains(t, section(t, page, "summary"), row.left)
		})
	}
}

// TestPageOfManyChangesIsBounded reads and shows a part of what 300 passes changed: 20 large files each.
func TestPageOfManyChangesIsBounded(t *testing.T) {
	s := workspaceStory(t)
	a, b, large := lines(20_000, "a line"), lines(20_000, "another line"), lines(50_000, "a line")
	for i := range 300 {
		all := []change{{kind: "changed", path: "large", before: a, after: large}}
		for n := range 19 {
			all = append(all, change{kind: "changed", path: fmt.Sprintf("file-%d", n), before: a, after: b})
		}
		s.changes(i+1, 0, all...)
	}
	read := 0
	page := write(t, s.workspaceDir().Dir, report.Options{
		Contents: func(digest string, to io.Writer) error {
			read += len(s.blobs[digest])
			return s.blobs.copy(digest, to)
		},
	})
	require.Less(t, read, 80<<20)
	require.Less(t, len(page), 10<<20)
	require.Regexp(t, `the differences of 59\d\d files \(starter snapshot diff`, section(t, page, "summary"))
}

// workspaceDir returns the run directory of the journal, with snapshots.
func (s *story) workspaceDir() projector.Dir {
	d := s.project(trees{fakeBlobs: s.blobs})
	require.NoError(s.t, d.Take(run.Claim{Version: 1, RunID: "run-1", ThreadID: "run-1"}))
	return d
}
