package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestApproves(t *testing.T) {
	for _, c := range []struct {
		words    []string
		verdicts string
		want     bool
	}{
		{Role{}.Approval(), "approved|APPROVED| Approved ", true},
		{Role{}.Approval(), "|good|rejected|not approved", false},
		{Role{Verdict: &Verdict{}}.Approval(), "approved", true},
		{Role{Verdict: &Verdict{Approves: Commands{"good", "ship it"}}}.Approval(), "good|GOOD|ship it", true},
		{[]string{"good"}, "|approved|goods|rejected", false},
		{[]string{"rejected"}, "rejected|Rejected", false},
	} {
		for _, verdict := range strings.Split(c.verdicts, "|") {
			require.Equal(t, c.want, Approves(c.words, verdict), "%s: %q", c.words, verdict)
		}
	}
}

func TestJudgedFrom(t *testing.T) {
	step := func(role string, members ...string) PlanStage {
		return PlanStage{Rounds: []PlanRound{{Steps: []PlanStep{{Role: role, Members: members}}}}}
	}
	p := &Plan{Roles: []Role{{Name: "writer"}, {Name: "reviewer", Schema: SchemaReview}, {Name: "judge", Verdict: &Verdict{}}},
		Stages: []PlanStage{step("writer"), step("", "writer", "judge"), step("reviewer"), step("writer")}}
	for stage, want := range map[int]bool{0: true, 1: true, 2: true, 3: false, 4: false, -1: true} {
		require.Equal(t, want, p.JudgedFrom(stage), stage)
	}
}
