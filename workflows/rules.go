package workflows

import (
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// before reports whether a place comes before another one.
func before(a, b run.Place) bool {
	return slices.Compare([]int{a.Stage, a.Round, a.Step}, []int{b.Stage, b.Round, b.Step}) < 0
}

func approves(verdict string) bool { return strings.EqualFold(strings.TrimSpace(verdict), "approved") }

func oneLine(s string) string {
	line := []rune(s)
	if i := slices.Index(line, '\n'); i >= 0 {
		line = append(line[:i:i], '…')
	}
	return string(line)
}

// changes reports whether a step changes the work: the workspace or the artifact.
func changes(s contract.Step) bool {
	return slices.ContainsFunc(s.Roles, func(r contract.Role) bool {
		return r.Gives == pipeline.GivesChanges || r.Gives == pipeline.GivesArtifact
	})
}

// writes reports whether a step asks a role for work and not for a judgement.
func writes(s contract.Step) bool {
	judges := func(r contract.Role) bool { return r.HasVerdict || r.Score != "" }
	return changes(s) || len(s.Roles) > 0 && s.Kind != pipeline.KindRun && !slices.ContainsFunc(s.Roles, judges)
}

// asksRole reports whether a step asks a role.
func asksRole(s contract.Step) bool {
	return s.Kind == pipeline.KindRole || s.Kind == pipeline.KindTogether
}

// lastStep returns the index of the last step for which one of the tests holds, in the order of the tests; -1: none.
func lastStep(steps []contract.Step, tests ...func(contract.Step) bool) int {
	for _, test := range tests {
		for i := len(steps) - 1; i >= 0; i-- {
			if test(steps[i]) {
				return i
			}
		}
	}
	return -1
}

// unjudgedChange returns the last step of a loop that changes the work if the condition of the loop is about values
// that earlier steps return; -1: the loop judges its last change within the round.
func unjudgedChange(r contract.Round) int {
	change := lastStep(r.Steps, changes)
	if r.Repeat == nil || change < 0 {
		return -1
	}
	for _, need := range r.Needs {
		if i := lastStep(r.Steps, func(s contract.Step) bool { return returns(s, need) }); i >= 0 && i < change {
			return change
		}
	}
	return -1
}

// returns reports whether a step returns what a condition needs.
func returns(s contract.Step, need string) bool {
	return slices.ContainsFunc(s.Roles, func(r contract.Role) bool {
		return r.ID == need || need == "verdict" && r.HasVerdict || need == "score" && r.Score != ""
	})
}
