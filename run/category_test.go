package run_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestEveryCategoryHasAWholeRow(t *testing.T) {
	named := map[string]bool{}
	for _, row := range run.Categories() {
		t.Run(string(row.Name), func(t *testing.T) {
			require.False(t, named[string(row.Name)], "two rows")
			named[string(row.Name)] = true
			require.Equal(t, row, row.Name.Info())
			require.Contains(t, []run.Nature{run.NoError, run.Transient, run.Permanent}, row.Nature)
			retries := []run.RetryClass{run.RetryNever, run.RetryAttempts, run.RetryLimit, run.RetryDelivery}
			require.Contains(t, retries, row.Retry)
			require.Contains(t, []run.RetryClass{"", run.RetryAttempts, run.RetryStructural}, row.Unusable)
			require.True(t, strings.HasSuffix(row.Meaning, "."), "the meaning is a sentence")
			require.LessOrEqual(t, len(strings.Fields(row.Meaning)), 15)
			require.NotEmpty(t, row.Advice)
			require.False(t, strings.HasSuffix(row.Advice, "."), "the advice is part of a sentence")
			require.LessOrEqual(t, len(strings.Fields(row.Advice)), 15)
			if row.Nature == run.NoError {
				require.Zero(t, row.Exit, "no run pauses for it")
			}
			if row.Unusable != "" || row.Retry == run.RetryAttempts || row.Retry == run.RetryLimit {
				require.NotZero(t, row.Exit, "after the last attempt the run pauses")
			}
		})
	}
	require.ElementsMatch(t, categoryConstants(t), keys(named), "one row for each constant of type Category")
}

// categoryConstants are the words of the constants, from the source.
func categoryConstants(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "category.go", nil, 0)
	require.NoError(t, err)
	var words []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Category" {
			for _, v := range spec.Values {
				words = append(words, strings.Trim(v.(*ast.BasicLit).Value, `"`))
			}
		}
		return true
	})
	require.NotEmpty(t, words)
	return words
}

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func TestUnknownCategoryKeepsItsName(t *testing.T) {
	row := run.Category("of-another-release").Info()
	require.Equal(t, run.Category("of-another-release"), row.Name)
	row.Name = run.CategoryUnknown
	require.Equal(t, run.CategoryUnknown.Info(), row)
	require.True(t, run.Category("of-another-release").IsError())
}

func TestAdviceNamesWhatClearsTheCause(t *testing.T) {
	failed := &run.Failure{FailedPass: run.FailedPass{Category: run.CategoryRateLimit}}
	noted := &run.Problem{Category: run.CategoryScreenshotFailed}
	for name, row := range map[string]struct {
		state run.State
		cause run.Category
		want  string
	}{
		"a pass that failed": {
			run.State{Status: run.Paused, Reason: run.PassFailed, Failure: failed, Problem: noted},
			run.CategoryRateLimit,
			"Wait until the provider accepts calls again, then resume it; or revert it, or cancel it.",
		},
		"no pass to blame": {
			run.State{Status: run.Paused, Reason: run.PassFailed, Problem: noted}, run.CategoryScreenshotFailed,
			"Check the browser with starter doctor, then resume it; or revert it, or cancel it.",
		},
		"nothing recorded": {
			run.State{Status: run.Paused, Reason: run.ConsecutiveFailures}, "",
			"Check why the passes failed, then resume it; or revert it, or cancel it.",
		},
		"the budget": {
			run.State{Status: run.Paused, Reason: run.BudgetThreshold, Problem: noted}, run.CategoryBudgetExceeded,
			"Raise the budget, then resume it; or revert it, or cancel it.",
		},
		"a full disk": {
			run.State{Status: run.Paused, Reason: run.DiskFull}, run.CategoryFileIO,
			"Free space on the disk, or fix the file in the message, then resume it; or revert it, or cancel it.",
		},
		"an operator": {
			run.State{Status: run.Paused, Reason: run.UserRequested, Failure: failed, Problem: noted}, "",
			"When you are ready, resume it; or revert it, or cancel it.",
		},
		"at work again": {
			run.State{Status: run.Running, Failure: failed, Problem: noted}, "",
			"Watch it, pause it or cancel it; there is nothing to decide.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.cause, row.state.StoppedBy())
			require.Equal(t, row.want, row.state.Advice())
		})
	}
}
