package adapter

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// resumeClaude continues a session. A command that chooses its session itself stays as it is.
func resumeClaude(argv []string, session string) ([]string, bool) {
	if session == "" || !isClaude(argv) || hasOption(argv, "--resume", "-r", "--continue", "-c", "--session-id",
		"--no-session-persistence") {
		return nil, false
	}
	// the session stays as it is for another try
	return append(slices.Clone(argv), "--resume", session, "--fork-session"), true
}

// budgetClaude has claude stop at an amount. It compares after each request, so that it may spend a little more.
func budgetClaude(argv []string, usd float64) ([]string, bool) {
	if !isClaude(argv) || hasOption(argv, "--max-budget-usd") || !hasOption(argv, "-p", "--print") {
		return nil, false
	}
	amount := strconv.FormatFloat(max(usd, minClaudeBudget), 'f', 4, 64)
	return append(slices.Clone(argv), "--max-budget-usd", amount), true
}

// minClaudeBudget is the smallest amount that is written with four decimals.
const minClaudeBudget = 0.0001

func isClaude(argv []string) bool { return len(argv) > 0 && path.Base(argv[0]) == "claude" }

// hasOption reports whether a command has one of these options.
func hasOption(argv []string, names ...string) bool {
	return slices.ContainsFunc(argv, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(names, name)
	})
}
