package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestApproval(t *testing.T) {
	stage := func(until, gate string, steps ...PlanStep) PlanStage {
		s := PlanStage{Gate: gate, Rounds: []PlanRound{{Steps: steps}}}
		if until != "" {
			s.Repeat = &Repeat{Max: 3, Until: until}
		}
		return s
	}
	reviewer, named := PlanStep{Role: "reviewer"}, PlanStep{Role: "reviewer", As: "review"}
	scorer := PlanStep{Role: "scorer", As: "points"}
	for name, c := range map[string]struct {
		stages []PlanStage
		at     int
		step   PlanStep
		want   string
	}{
		"no loop":        {[]PlanStage{stage("", "", reviewer)}, 0, reviewer, ""},
		"a loop without": {[]PlanStage{stage("tests == ok", "", reviewer)}, 0, reviewer, ""},
		"a loop":         {[]PlanStage{stage("verdict == good", "", reviewer)}, 0, reviewer, "verdict == good"},
		"among others": {[]PlanStage{stage("verdict == good and tests == ok or score >= 3", "", reviewer)}, 0,
			reviewer, "verdict == good"},
		"either": {[]PlanStage{stage("verdict == good or verdict == fine and tests == ok", "",
			reviewer)}, 0, reviewer, "verdict == good or verdict == fine"},
		"by its name": {[]PlanStage{stage("review == good", "", named)}, 0, named, "verdict == good"},
		"by another's name": {[]PlanStage{stage("review == good", "", reviewer, named)}, 0, reviewer,
			"verdict == good"},
		"a score by its name": {[]PlanStage{stage("points >= 3", "", scorer)}, 0, scorer, ""},
		"words in quotes": {[]PlanStage{stage(`verdict == "ship it"`, "", reviewer)}, 0, reviewer,
			`verdict == "ship it"`},
		"quotes in quotes": {[]PlanStage{stage(`verdict == 'say "yes"'`, "", reviewer)}, 0, reviewer,
			`verdict == 'say "yes"'`},
		"a quality gate": {[]PlanStage{stage("", "verdict == good", reviewer)}, 0, reviewer, "verdict == good"},
		"the loop before it": {[]PlanStage{stage("", "verdict == fine", reviewer),
			stage("verdict == good", "", reviewer), stage("", "", reviewer)}, 2, reviewer, "verdict == good"},
		"the loop behind it": {[]PlanStage{stage("", "", reviewer), stage("verdict == good", "", reviewer)}, 0,
			reviewer, "verdict == good"},
		"a loop of another one": {[]PlanStage{stage("verdict == good", "", scorer), stage("", "", reviewer)}, 1,
			reviewer, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Stages: c.stages, Roles: []Role{{Name: "reviewer", Verdict: &Verdict{}},
				{Name: "scorer", Score: &Score{}, Verdict: &Verdict{}}}}
			got := p.Approval(c.at, c.step, c.step.Role)
			require.Equal(t, c.want, got)
			if got != "" {
				_, err := ParseUntil(got)
				require.NoError(t, err)
			}
			require.True(t, p.JudgedFrom(0))
			require.False(t, p.JudgedFrom(len(c.stages)))
		})
	}
}

func TestApproves(t *testing.T) {
	for _, c := range []struct {
		condition, verdicts string
		want                bool
	}{
		{"", "approved|APPROVED| Approved ", true},
		{"", "|good|rejected|not approved", false},
		{"verdict == good", "good", true},
		{"verdict == good", "|approved|GOOD|rejected", false},
		{"verdict == good or verdict == fine", "good|fine", true},
		{"verdict == good or verdict == fine", "bad", false},
		{"verdict != bad", "good|approved", true},
		{"verdict != bad", "bad|BAD||rejected|Rejected", false},
		{"verdict != bad and verdict != worse", "good", true},
		{"verdict != bad and verdict != worse", "bad|worse", false},
		{`verdict == "ship it"`, "ship it", true},
		{"verdict >= 3", "3|4.5", true},
		{"verdict >= 3", "2|many", false},
		{"verdict == rejected", "rejected", false},
	} {
		for _, verdict := range strings.Split(c.verdicts, "|") {
			require.Equal(t, c.want, Approves(c.condition, verdict), "%s: %q", c.condition, verdict)
		}
	}
}
