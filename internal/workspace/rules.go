// Package workspace keeps the folders in which calls work: what belongs to their trees, what is left out, and what
// Passbook has left in them.
package workspace

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// RulesOf returns the rules of a plan: which files of the workspace belong to its tree.
func RulesOf(plan *pipeline.Plan) tree.Rules {
	w := plan.Workspace
	if w == nil {
		return tree.Rules{}
	}
	return tree.Rules{Ignore: w.Ignore, IncludeSecrets: w.Secrets == "keep", SkipOutside: true, Portable: true}
}

// FirstRules are the rules of the first tree of a run. It may not exceed the limits of the trees that passes leave. Names
// in the source are as they are.
func FirstRules(plan *pipeline.Plan) tree.Rules {
	rules := RulesOf(plan)
	rules.Portable = false
	rules.Limits = plan.TreeLimits()
	return rules
}

// WithGit adds what git knows of the files of a workspace at its accepted tree: what is ignored is decided by the files
// of that tree, whatever an agent has written, and by the files of the operator. A file of the tree is neither ignored
// nor a secret. On a host without the repository only the rules of the tree count.
func (f *Folders) WithGit(ctx context.Context, s *store.Store, rules tree.Rules, of run.Workspace) (tree.Rules, error) {
	if of.Tree.Digest == "" {
		return rules, nil
	}
	known, err := f.load(ctx, s, of.Tree.Digest)
	if err != nil {
		return rules, err
	}
	for _, e := range known.Entries {
		if e.Mode != tree.ModeFolder {
			rules.Tracked = append(rules.Tracked, e.Path)
		}
	}
	if of.Kind != run.WorkspaceGit {
		return rules, nil
	}
	others, err := excludes(ctx, of.Source)
	if err != nil {
		return rules, err
	}
	rules.Git, err = tree.ReadIgnores(ctx, s, known, others...)
	return rules, err
}

// excludes returns the ignore rules of the operator for a repository, the least important file first.
func excludes(ctx context.Context, source string) ([]string, error) {
	r, err := git.Open(ctx, source)
	if git.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.Excludes(ctx)
}

// Current returns the workspace at its present tree and commit.
func Current(t contract.Tree) run.Workspace {
	of := t.Workspace
	of.Tree = t.Tree
	if t.Commit != "" {
		of.Commit = t.Commit
	}
	return of
}

// Blob returns a tree as events record it: its digest, and the size of all its files.
func Blob(saved tree.Saved) run.Blob {
	b := run.Blob{Digest: string(saved.Digest)}
	for _, e := range saved.Tree.Entries {
		b.Size += e.Size
	}
	return b
}

// inlineSkipped is the maximum number of skipped paths in an event.
const inlineSkipped = 20

// Skipped returns the first paths that were left out of a tree, and the count of all. Those with names that are
// refused are first, ignored ones are last.
func Skipped(saved tree.Saved) (first []run.LeftOut, count int) {
	for _, s := range saved.Skipped {
		if s.Reason == tree.ReasonGit {
			continue
		}
		path := strings.ToValidUTF8(s.Path, "�")
		if strings.ContainsFunc(path, unicode.IsControl) {
			quoted := strconv.Quote(path)
			path = quoted[1 : len(quoted)-1]
		}
		if s.Folder {
			path += "/"
		}
		first = append(first, run.LeftOut{Path: path, Reason: string(s.Reason)})
	}
	slices.SortStableFunc(first, func(a, b run.LeftOut) int { return rank(a) - rank(b) })
	return first[:min(len(first), inlineSkipped)], len(first)
}

func rank(l run.LeftOut) int {
	switch l.Reason {
	case string(tree.ReasonName):
		return 0
	case string(tree.ReasonIgnored):
		return 2
	}
	return 1
}

// LeftOut describes what was left out of a tree although no rule of the user ignores it: secrets, symlinks that point
// out of it, sockets and pipes.
func LeftOut(saved tree.Saved) []string {
	first, count := Skipped(saved)
	return Describe(first, count, false)
}

// Describe describes what was left out of a tree; ignored adds what the user's rules ignore.
func Describe(first []run.LeftOut, count int, ignored bool) []string {
	var lines []string
	for _, l := range first {
		if ignored || l.Reason != string(tree.ReasonIgnored) {
			lines = append(lines, fmt.Sprintf("left out of the tree: %s (%s)", l.Path, l.Reason))
		}
	}
	if more := count - len(first); more > 0 && len(lines) == len(first) {
		lines = append(lines, fmt.Sprintf("left out of the tree: %d more", more))
	}
	return lines
}
