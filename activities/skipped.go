package activities

import (
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store/tree"
)

// inlineSkipped is how many paths that were left out of a tree are named.
const inlineSkipped = 20

// skippedOf names what was left out of a tree, and counts it; what git ignores, such as a build's leftovers, comes last.
func skippedOf(saved tree.Saved) (first []run.LeftOut, count int) {
	for _, s := range saved.Skipped {
		if s.Reason == tree.ReasonGit {
			continue
		}
		path := strings.ToValidUTF8(s.Path, "�")
		if s.Folder {
			path += "/"
		}
		first = append(first, run.LeftOut{Path: path, Reason: string(s.Reason)})
	}
	slices.SortStableFunc(first, func(a, b run.LeftOut) int { return rank(a) - rank(b) })
	return first[:min(len(first), inlineSkipped)], len(first)
}

func rank(l run.LeftOut) int {
	if l.Reason == string(tree.ReasonIgnored) {
		return 1
	}
	return 0
}

// LeftOut says for people what was left out of a tree without anybody's wish: secrets, symlinks that point out of it, sockets and pipes.
func LeftOut(saved tree.Saved) []string {
	first, count := skippedOf(saved)
	return leftOut(first, count, false)
}

// leftOut says what was left out, with what is ignored only if asked for.
func leftOut(first []run.LeftOut, count int, ignored bool) []string {
	var said []string
	for _, l := range first {
		if ignored || rank(l) == 0 {
			said = append(said, fmt.Sprintf("left out of the tree: %s (%s)", l.Path, l.Reason))
		}
	}
	if more := count - len(first); more > 0 && len(said) == len(first) {
		said = append(said, fmt.Sprintf("left out of the tree: %d more", more))
	}
	return said
}

// leftOut warns of what the agent left that is no part of the tree. Of what is ignored it does so only if nothing else was changed: then it may be all
// that the agent has done.
func (j judge) leftOut(changed bool) []string {
	return leftOut(j.ans.Skipped, j.ans.SkippedCount, !changed)
}

// noTree is the failure of an attempt whose files cannot be stored; nil: they could.
func (j judge) noTree() *agent.Failure {
	if j.ans.TreeError == "" {
		return nil
	}
	return &agent.Failure{Category: agent.FileIO, Message: "what the agent left cannot be stored: " + shortened(j.ans.TreeError), ExitCode: j.ans.Exit.Code}
}

// shortened keeps both ends of a text whose middle is a long path.
func shortened(text string) string {
	const ends = 200 // characters of each
	r := []rune(text)
	if len(r) <= 2*ends {
		return text
	}
	return string(r[:ends]) + "…" + string(r[len(r)-ends:])
}
