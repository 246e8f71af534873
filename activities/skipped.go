package activities

import (
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// skippedWarnings warns about files that are not part of the tree. Ignored files are listed only if nothing else
// changed: they may be all that the agent did.
func (j evaluation) skippedWarnings(changed bool) []string {
	return workspace.Describe(j.ans.Skipped, j.ans.SkippedCount, !changed)
}

// treeFailure returns the failure of an attempt whose files could not be stored, or nil.
func (j evaluation) treeFailure() *agent.Failure {
	if j.ans.TreeError == "" {
		return nil
	}
	message := "store the agent's files: " + shortened(j.ans.TreeError)
	return agent.NewFailure(run.CategoryFileIO, message, j.ans.Exit.Code)
}

// shortened keeps both ends of a text, whose middle is often a long path.
func shortened(text string) string {
	const ends = 200 // characters
	r := []rune(text)
	if len(r) <= 2*ends {
		return text
	}
	return string(r[:ends]) + "…" + string(r[len(r)-ends:])
}
