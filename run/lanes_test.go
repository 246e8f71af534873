package run

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// laneStream folds events about lanes as a run makes them.
type laneStream struct {
	*stream
	began map[int]LanePlace // of the last run of each lane
}

func inLanes(t *testing.T, count int) laneStream {
	t.Helper()
	s := newStream(t, State{})
	s.Wording, s.Phase, s.Next, s.Tree = WordingStages, "work", Place{Stage: 1, Round: 1}, named("base")
	s.add(KindChildrenListed, "work", ChildrenListed{Stage: "work", Count: count, Digest: "list"})
	return laneStream{s, map[int]LanePlace{}}
}

// play folds what happens: "start" is the start of the next lane, and "done:1" is about the second one.
func (s laneStream) play(script string) laneStream {
	s.t.Helper()
	for word := range strings.FieldsSeq(script) {
		what, number, _ := strings.Cut(word, ":")
		i, err := strconv.Atoi(number)
		require.Equal(s.t, number == "", err != nil)
		s.happens(what, i)
	}
	return s
}

func (s laneStream) happens(what string, i int) {
	s.t.Helper()
	end := ChildEnd{LanePlace: s.began[i], Outcome: ChildOutcome(what)}
	switch end.Index = i; what {
	case "start":
		s.starts(s.NextLane(fmt.Sprint("k", s.Lanes.Begun), "name"))
	case "again":
		l, _ := s.Lanes.row(i)
		s.starts(s.LaneAgain(l))
	case "begin":
		s.starts(LanePlace{Index: i})
	case "skip":
		s.add(KindChildSkipped, "work", ChildSkip{Index: i})
	case "lost":
		s.Lanes = s.Lanes.Redo(s.began[i])
	case "merge":
		s.add(KindChildMerged, "work", ChildMerged{Index: i, Tree: *named(fmt.Sprint("with ", i))})
	case "revert":
		s.State = Checkpoint{State: s.State}.Reverted(s.State)
	case "copy":
		c := Checkpoint{State: s.State}.Branched()
		c.RunID, c.Status, c.TS = "copy", Running, s.TS
		s.State = c
	default: // done, unchanged, failed, conflict or stopped
		if what == "unchanged" {
			end.Outcome = ChildDone
		} else if what == "done" {
			end.Tree = named(fmt.Sprint("tree ", i))
		}
		s.add(KindChildEnded, "work", end)
	}
}

func (s laneStream) starts(p LanePlace) {
	s.t.Helper()
	s.began[p.Index] = p
	s.add(KindChildStarted, "work", ChildStart{LanePlace: p})
}

// shown lists the lanes with a row, with the ends of their names, and the one that is merged next.
func (s laneStream) shown() string {
	l := s.Lanes
	text := l.Text() + ", " + l.MergedText()
	for i, rows := range [][]Lane{l.Active, l.Asked, l.Again} {
		for j, r := range rows {
			if j == 0 {
				text += []string{"; active", "; asked", "; again"}[i]
			}
			text += fmt.Sprintf(" %d%s", r.Index, r.Suffix)
		}
	}
	if next, ended := l.Next(); ended {
		text += fmt.Sprintf("; next %d%s", next.Index, next.Suffix)
	}
	return text
}

func TestNamesOfLanes(t *testing.T) {
	for _, row := range []struct {
		script, want string // run of the last lane at work, with what it begins with
		redo         int
		base         *Blob
	}{
		{"start start", "r.2.k1", 0, nil},
		{"start failed:0 again:0", "r.2.k0~2", 1, nil},
		{"start failed:0 again:0 failed:0 again:0", "r.2.k0~3", 2, nil},
		{"start start done:1 done:0 merge:0 conflict:1 again:1", "r.2.k1~2", 1, named("with 0")},
		{"start start done:1 done:0 merge:0 conflict:1 again:1 failed:1 again:1", "r.2.k1~3", 2, named("with 0")},
		{"start stopped:0 start", "r.2.k0~2", 0, nil},
		{"start failed:0 again:0 stopped:0 start", "r.2.k0~3", 1, nil},
		{"start stopped:0 start revert start", "r.2.k0~g1", 0, nil},
		{"start revert start failed:0 again:0", "r.2.k0~g1~2", 1, nil},
		{"start failed:0 revert again:0", "r.2.k0~g1~2", 1, nil},
		{"start revert revert start start", "r.2.k1~g2", 0, nil},
		{"start revert start copy start start", "copy.2.k1", 0, nil},
		{"start failed:0 copy again:0", "copy.2.k0~2", 1, nil},
	} {
		t.Run(row.script, func(t *testing.T) {
			s := inLanes(t, 3).play(row.script)
			last := s.Lanes.Active[len(s.Lanes.Active)-1]
			require.Equal(t, row.want, last.ChildRunID(s.RunID, s.Lanes.Stage))
			require.Equal(t, "lanes/work/"+strings.SplitN(row.want, ".", 3)[2], last.Dir("work"))
			require.Equal(t, row.redo, last.Redo)
			require.Equal(t, row.base, last.Base)
			require.Equal(t, s.RunID, OfLane(row.want))
			require.Equal(t, s.RunID, RootOf(row.want))
		})
	}
	for _, id := range []string{"", "run-1", ".1.k"} {
		require.Empty(t, OfLane(id))
		require.Equal(t, id, RootOf(id))
	}
	// Lanes that have ended keep their names over a revert and in a copy.
	s := inLanes(t, 9).play("start start start done:1 failed:2 again:2 done:2 revert start done:0 start start stopped:3 " +
		"copy start done:3 start done:4 start done:5")
	all := []LaneName{{0, "~g1"}, {1, ""}, {2, "~2"}, {3, ""}, {4, ""}, {5, ""}}
	for i, name := range all {
		require.Equal(t, all[i:], s.Lanes.Unmerged())
		next, ended := s.Lanes.Next()
		require.True(t, ended)
		require.Equal(t, name, next)
		s.play(fmt.Sprint("merge:", i))
	}
	require.Equal(t, 1, inLanes(t, 9).play("start start start done:1").NextLane("k", "n").Slot)
}

// The state keeps its size at any number of lanes.
func TestStateWithLanesIsBounded(t *testing.T) {
	for name, row := range map[string][2]string{ // of each lane, and more of each fifth
		"ended out of order":   {"start done:%[1]d"},
		"done again":           {"start", " failed:%[1]d again:%[1]d done:%[1]d"},
		"done again, merged":   {"start failed:%[1]d again:%[1]d done:%[1]d merge:%[1]d"},
		"conflicts, merged":    {"start done:%[1]d conflict:%[1]d again:%[1]d done:%[1]d merge:%[1]d"},
		"left out":             {"start failed:%[1]d skip:%[1]d"},
		"failed, not answered": {"start failed:%[1]d"},
	} {
		t.Run(name, func(t *testing.T) {
			s, first := inLanes(t, 10_000), 0
			if !strings.Contains(row[0], "merge") {
				s.play("start") // it works on
				first = 1
			}
			for i := first; i < 5000 && s.Lanes.Begun == i; i++ {
				script := fmt.Sprintf(row[0], i)
				if row[1] != "" && i%5 == 0 {
					script = fmt.Sprintf(row[0]+row[1], i)
				}
				if s.play(script); i%500 == 499 {
					require.Less(t, size(t, s.State), 64<<10, "after %d lanes", i+1)
				}
			}
		})
	}
}

func size(t *testing.T, v any) int {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return len(raw)
}

// A lane shows the step that it is at, or why it waits.
func TestLaneNow(t *testing.T) {
	s := State{RunID: "r", Lanes: &Lanes{Stage: 1}}
	calls := []InFlightCall{{Member: "one", Attempt: 1, StartedAt: "2"}, {Role: "two", Attempt: 3, StartedAt: "1"}}
	asks := []Question{{Kind: QuestionGate, Text: "two\nlines"}}
	second := Place{Stage: 1, Step: 1}
	for want, row := range map[string]struct {
		outcome ChildOutcome
		live    *State
		steps   int
		since   string
		waits   bool
	}{
		"starts":                            {"", nil, 2, "", false},
		"step 2 of 2, one, two, attempt 3":  {"", &State{Status: Running, Next: second, InFlight: calls}, 2, "1", false},
		"step 2":                            {"", &State{Status: Running, Next: second}, 0, "", false},
		"ends":                              {"", &State{Status: Running, Next: second}, 1, "", false},
		"step 2 of 2, waits for a limit":    {"", &State{Status: WaitingLimit, Next: second}, 2, "", false},
		`waits for an operator: two\nlines`: {"", &State{Status: AwaitingGateDecision, Questions: asks}, 2, "", true},
		"paused":                            {"", &State{Status: Paused, Reason: UserRequested}, 2, "", false},
		"waits for more of the budget":      {"", &State{Status: Paused, Reason: BudgetThreshold}, 2, "", false},
		"paused: " + PassFailed:             {"", &State{Status: Paused, Reason: PassFailed}, 2, "", true},
		`waits for an operator: it\nfailed`: {ChildFailed, &State{Status: Failed}, 2, "", true},
	} {
		l := Lane{LanePlace{Index: 4, Key: "k", Name: "a\nb", Suffix: "~2"}, row.outcome, "it\nfailed"}
		want := ActiveLane{Number: 5, Name: `a\nb`, RunID: "r.2.k~2", Does: want, Since: row.since, Waiting: row.waits}
		require.Equal(t, want, s.LaneNow(l, row.live, row.steps))
	}
	require.Equal(t, "ends", s.LaneNow(Lane{}, &State{Status: Done}, 0).Does)
}

// A lane begins with what its run has. The calls of one that is done again have other ids.
func TestGivenToLanes(t *testing.T) {
	s, fields := numbered(1), []string{"Generation", "Artifact", "Notes", "Replies", "Means", "Scope", "Waivers"}
	given := s.Given(4)
	require.Equal(t, pick(s, fields...), pick(given, fields...))
	lane := newStream(t, State{Status: Unknown, TS: "2026-01-02T03:00:00.000Z"})
	lane.add(KindRunStart, "", RunStart{Epoch: 1, State: &given, Lane: &LaneOf{RunID: "r", LanePlace: LanePlace{Redo: 2}}})
	require.Equal(t, Place{Stage: 4, Round: 1}, lane.Next)
	require.Equal(t, "r", lane.LaneOf.RunID)
	require.Equal(t, 2, lane.Redo())
}
