package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stream folds events into a state, a second apart, and refuses none.
type stream struct {
	t *testing.T
	State
}

func newStream(t *testing.T, s State) *stream {
	t.Helper()
	if s.Status == "" {
		s.Status, s.RunID, s.Epoch, s.Seq, s.TS = Running, "r", 1, 1, "2026-01-02T03:00:00.000Z"
	}
	return &stream{t, s}
}

func (s *stream) add(kind Kind, phase string, payload any) *stream {
	s.t.Helper()
	raw, err := Payload(payload)
	require.NoError(s.t, err)
	at, err := time.Parse(TimeFormat, s.TS)
	require.NoError(s.t, err)
	e := Event{Seq: s.Seq + 1, TS: Time(at.Add(time.Second)), Kind: kind, Payload: raw}
	if phase != "" {
		e.Phase = &phase
	}
	s.State = Apply(s.State, e)
	require.Empty(s.t, s.InvalidTransition)
	return s
}

func named(name string) *Blob { return &Blob{Digest: name, Size: 1, Raw: "raw " + name} }

// Each settled pass changes the counters that are about it.
func TestCountersOfSettledPasses(t *testing.T) {
	s := newStream(t, State{})
	end := func(number int, outcome Category, modified bool, artifact *Blob, passed bool, warnings ...string) {
		s.add(KindPassEnd, "write", PassEnd{Pass: Pass{Number: number, Step: fmt.Sprint(number), Gives: "artifact"},
			Outcome: outcome, Modified: modified, Artifact: artifact, DurationMS: int64(number),
			Validation: Validation{Passed: passed, Warnings: warnings}})
	}
	end(1, CategoryOK, true, named("a"), true)
	end(2, CategoryAgentExit, false, nil, false, "one", "two")
	end(3, CategoryOutputEmpty, false, nil, true)
	require.Equal(t, PassCount{LastSettled: 3, Invalid: 1, InRow: 2, Warnings: 2}, s.Passes)
	end(4, CategoryOK, false, named("a"), false, "three")
	end(0, CategoryOK, false, nil, false)
	require.Equal(t, PassCount{LastSettled: 4, Invalid: 2, Unmodified: 1, Warnings: 3}, s.Passes)
	require.Equal(t, []int64{1, 2, 3, 4, 0}, s.DurationsMS)
	require.Equal(t, &CheckpointRef{ID: "cp-6", Seq: 6, TS: s.TS, AtPass: 4}, s.Checkpoint)
	for range 9 {
		end(9, CategoryOK, true, nil, true)
	}
	require.Equal(t, slices.Repeat([]int64{9}, keptDurations), s.DurationsMS)
}

// What a pass leaves: values, the set, the review that is due, completed members, the failure that is forgotten.
func TestTracesOfSettledPasses(t *testing.T) {
	failure := &Failure{FailedPass: FailedPass{Step: "1"}, Starts: 1}
	s := newStream(t, State{})
	s.State.Failure, s.Set = failure, "S1"
	pass := func(p PassEnd) *stream { return s.add(KindPassEnd, "work", p) }
	pass(PassEnd{Outcome: CategoryAgentExit, ID: "tests", Call: "c", Pass: Pass{Member: "a"}})
	require.Equal(t, failure, s.State.Failure)
	require.Empty(t, s.Values, "a name without a value")
	require.Equal(t, []string{"a"}, s.Settled)
	given := s.Settled
	pass(PassEnd{Outcome: CategoryOK, ID: "tests", Value: "failed", Pass: Pass{Member: "b"}})
	pass(PassEnd{Outcome: CategoryOK, ID: "tests", Value: "ok", Pass: Pass{Member: "b"}, Review: "S1", Call: "d"})
	require.Nil(t, s.State.Failure)
	require.Equal(t, []Value{{Name: "tests", Text: "ok"}}, s.Values)
	require.Equal(t, []string{"a", "b"}, s.Settled)
	require.Len(t, given, 1)
	require.Equal(t, "S1", s.Review)
	require.Equal(t, "S1", s.Set)
	pass(PassEnd{Outcome: CategoryOK, Value: "lost", Attempted: true})
	require.Len(t, s.Values, 1, "a value without a name")
	require.Equal(t, "S1", s.Review)
	require.Equal(t, []string{"a", "b"}, s.Settled)
	require.Equal(t, "S1", s.Set)
	pass(PassEnd{Outcome: CategoryOK, LastInRound: true, Next: &Place{Stage: 1, Round: 1, Step: 2}})
	require.Empty(t, s.Set)
	require.Empty(t, s.Settled)
	require.Equal(t, Place{Stage: 1, Round: 1, Step: 2}, s.Next)
	s.add(KindStepSkipped, "work", StepSkipped{Step: "x", Next: &Place{Stage: 1, Round: 2}})
	require.Equal(t, Place{Stage: 1, Round: 2}, s.Next)
	require.Equal(t, s.Seq, s.Checkpoint.Seq)
}

// Calls in flight are known by step and member; a call that starts again is one call.
func TestCallsInFlight(t *testing.T) {
	s := newStream(t, State{})
	start := func(step, member, call string) {
		s.add(KindPassStart, "p", PassStart{Pass: Pass{Step: step, Member: member, Role: "r " + member, Set: "S2"},
			Call:    call,
			Attempt: 1})
	}
	flying := func() (all []string) {
		for _, c := range s.InFlight {
			all = append(all, c.Step+c.Member+" "+c.Call)
		}
		return all
	}
	start("1", "a", "c1")
	start("1", "b", "c2")
	start("2", "a", "c3")
	start("1", "a", "c4")
	require.Equal(t, []string{"1b c2", "2a c3", "1a c4"}, flying())
	require.Equal(t, "S2", s.Set)
	require.Equal(t, []string{"c1", "c2", "c3", "c4"}, s.Started)
	s.add(KindPassAttempt, "p", PassAttempt{Pass: Pass{Step: "1", Member: "b"}, Category: CategorySuperseded, Late: 3})
	require.Equal(t, []string{"1b c2", "2a c3", "1a c4"}, flying(), "an answer that came too late ends no call")
	require.Equal(t, 3, s.Late)
	s.add(KindPassAttempt, "p", PassAttempt{Pass: Pass{Step: "1", Member: "b"}, Call: "c2", Category: CategoryLost,
		Late: 0})
	require.Equal(t, []string{"2a c3", "1a c4"}, flying())
	require.Equal(t, 3, s.Late)
	require.Equal(t, []string{"c1", "c2", "c3", "c4"}, s.Started, "the next delivery of a lost call has the same prompt")
	for range 2 {
		s.add(KindPassAttempt, "p", PassAttempt{Pass: Pass{Step: "1", Member: "a"}, Call: "c4", Judged: true, RetryInMS: 1})
	}
	s.add(KindPassAttempt, "p", PassAttempt{Pass: Pass{Step: "2", Member: "b"}, Call: "c1", Judged: true})
	require.Equal(t, []Tries{{"a", 2}, {"b", 1}}, s.Tries)
	require.Equal(t, []int{3, 2, 1}, []int{s.Try("a"), s.Try("b"), s.Try("")})
	require.Equal(t, 2, s.Passes.Retries)
	require.Equal(t, []string{"c2", "c3"}, s.Started)
	s.add(KindPassEnd, "p", PassEnd{Pass: Pass{Step: "2", Member: "a"}, Call: "c3", Outcome: CategoryOK})
	require.Empty(t, s.InFlight)
	require.Equal(t, []string{"c2"}, s.Started)
	s.Again = "h1"
	s.add(KindStepSkipped, "p", StepSkipped{Step: "3", Next: &Place{Step: 4}})
	require.Empty(t, s.Tries, "they are those of the step before")
	require.Empty(t, s.Started)
	require.Empty(t, s.Again)
}

// Replies are kept by step and member; the first pass of a round forgets those of the rounds before it.
func TestKeptReplies(t *testing.T) {
	s := newStream(t, State{})
	reply := func(phase string, p Pass, verdict string, outcome Category) {
		s.add(KindPassEnd, phase, PassEnd{Pass: p, Outcome: outcome, Reply: named(p.Step + verdict), Verdict: verdict})
	}
	kept := func() (all []string) {
		for _, r := range s.Replies {
			all = append(all, fmt.Sprintf("%s %s%s %s %t", r.Phase, r.Step, r.Member, r.Reply.Digest, r.Judges))
		}
		return all
	}
	reply("plan", Pass{Step: "p"}, "", CategoryOK)
	reply("work", Pass{Step: "1", Number: 1, InRound: 1}, "", CategoryOK)
	reply("work", Pass{Step: "2", Number: 2, InRound: 2}, "approved", CategoryOK)
	reply("work", Pass{Step: "2", Number: 2, InRound: 2, Member: "a"}, "", CategoryOK)
	reply("work", Pass{Step: "2", Number: 2, InRound: 2, Member: "a"}, "x", CategoryAgentExit)
	require.Equal(t, []string{"plan p p false", "work 1 1 false", "work 2 2approved true", "work 2a 2 false"}, kept())
	reply("work", Pass{Step: "2", Number: 2, InRound: 2, Role: "a"}, "no", CategoryOK)
	require.Equal(t, []string{"plan p p false", "work 1 1 false", "work 2a 2 false", "work 2 2no true"}, kept())
	reply("audit", Pass{Step: "x", InRound: 1}, "", CategoryOK)
	reply("work", Pass{Step: "3", Number: 3, InRound: 1}, "", CategoryOK)
	require.Equal(t, []string{"plan p p false", "audit x x false", "work 3 3 false"}, kept())
	yes, score := true, 2.0
	s.add(KindPassEnd, "audit", PassEnd{Pass: Pass{Step: "y"}, Outcome: CategoryOK, Reply: named("y"), Approved: &yes})
	s.add(KindPassEnd, "audit", PassEnd{Pass: Pass{Step: "z"}, Outcome: CategoryOK, Reply: named("z"), Score: &score})
	require.Equal(t, []string{"audit y y true", "audit z z true"}, kept()[3:])
	for i := range 40 {
		reply("audit", Pass{Step: fmt.Sprint("s", i), InRound: 2}, "", CategoryOK)
	}
	require.Len(t, s.Replies, 32)
	require.Equal(t, "s8", s.Replies[0].Step)
}

// A loop ends with its condition, without it, or because an operator accepts the work.
func TestEndsOfLoops(t *testing.T) {
	end := PhaseEnd{Key: "work", Round: 3, Repeats: true, Unmet: "score >= 3", Next: &Place{Stage: 2, Round: 1}}
	decided := &Decided{Phase: "work", Round: 3, Action: "continue"}
	for name, row := range map[string]struct {
		wording Wording
		decided *Decided
		change  func(*PhaseEnd)
		unmet   string
		rounds  int
	}{
		"unmet":                   {WordingStages, nil, nil, "score >= 3", 3},
		"met":                     {WordingStages, nil, func(p *PhaseEnd) { p.Unmet = "" }, "", 3},
		"accepted":                {WordingStages, decided, nil, "", 3},
		"accepted another round":  {WordingStages, &Decided{Phase: "work", Round: 2}, nil, "score >= 3", 3},
		"accepted another phase":  {WordingStages, &Decided{Phase: "plan", Round: 3, Action: "work"}, nil, "score >= 3", 3},
		"a run of corpus wording": {WordingCorpus, nil, nil, "before", 3},
		"no loop":                 {WordingStages, nil, func(p *PhaseEnd) { p.Repeats = false }, "before", 0},
	} {
		s := newStream(t, State{})
		s.Wording, s.Decided, s.Unmet, s.Phase, s.Next = row.wording, row.decided, "before", "work", Place{Stage: 1, Round: 3}
		s.PhaseOpen, s.Feedback, s.About = true, "shorter", &About{}
		p := end
		if row.change != nil {
			row.change(&p)
		}
		s.add(KindPhaseEnd, "work", p)
		require.Equal(t, row.unmet, s.Unmet, name)
		require.Equal(t, row.rounds, s.Rounds, name)
		require.False(t, s.PhaseOpen)
		require.Empty(t, s.Feedback)
		require.Nil(t, s.About)
	}
	s := newStream(t, State{})
	s.Next, s.Feedback = Place{Stage: 1, Round: 3}, "shorter"
	s.add(KindPhaseEnd, "work", PhaseEnd{Key: "work", Round: 3, Repeats: true, Next: &Place{Stage: 1, Round: 4}})
	require.Equal(t, "shorter", s.Feedback, "the next round of the stage needs it")
	s.add(KindPhaseStart, "work", PhaseStart{Key: "work", Title: "Work", Round: 4})
	require.Equal(t, State{Phase: "work", Round: 4, PhaseOpen: true}, pick(s.State, "Phase", "Round", "PhaseOpen"))
}

// Changes of the work: the verdict on it is outdated, and an approval of it counts no more.
func TestVerdictsOnChangedWork(t *testing.T) {
	yes, no := true, false
	for name, row := range map[string]struct {
		word     string
		approved *bool
		change   PassEnd
		outdated bool
		kept     string
	}{
		"an approval, the tree changes":     {"ok", &yes, PassEnd{Tree: named("t")}, true, ""},
		"an approval, the artifact changes": {"ok", &yes, PassEnd{Artifact: named("a"), Modified: true}, true, ""},
		"an approval, nothing changes":      {"ok", &yes, PassEnd{Artifact: named("a"), Reused: true}, false, "ok"},
		"modified, without an artifact":     {"ok", &yes, PassEnd{Modified: true}, false, "ok"},
		"a rejection, the tree changes":     {"no", &no, PassEnd{Tree: named("t")}, true, "no"},
	} {
		s := newStream(t, State{}).add(KindPassEnd, "p", PassEnd{Outcome: CategoryOK, Verdict: row.word,
			Approved: row.approved,
			Pass:     Pass{Role: "reviewer"}})
		s.Next = Place{Stage: 3, Round: 1, Step: 2}
		s.add(KindPassEnd, "p", row.change)
		require.Equal(t, row.outdated, s.Judged.Outdated, name)
		require.Equal(t, row.kept, s.Verdict, name)
		require.Equal(t, row.kept == "", s.Approved == nil, name)
		if row.outdated {
			require.Equal(t, &Place{Stage: 3, Round: 1, Step: 2}, s.Changed, name)
			require.Nil(t, s.CurrentVerdict())
		} else {
			require.Nil(t, s.Changed, name)
		}
	}
	for cause, outdated := range map[string]bool{CauseEdited: true, "reverted": false} {
		for kind, p := range map[Kind]any{KindWorkspaceUpdated: WorkspaceUpdated{Cause: cause, Tree: *named("t")},
			KindArtifactUpdated: ArtifactUpdated{Cause: cause, Artifact: *named("a")}} {
			s := newStream(t, State{}).add(KindPassEnd, "p", PassEnd{Outcome: CategoryOK, Verdict: "ok", Approved: &yes})
			s.add(kind, "p", p)
			require.Equal(t, outdated, s.Judged.Outdated, "%s %s", kind, cause)
			require.Equal(t, outdated, s.Approved == nil, "%s %s", kind, cause)
			require.Nil(t, s.Changed)
		}
	}
	given := State{Settled: []string{"a"}, Approved: &yes, Verdict: "ok", Lanes: &Lanes{}}
	s := newStream(t, given).add(KindWorkspaceUpdated, "p", WorkspaceUpdated{Cause: CauseEdited, Tree: *named("t")})
	require.Equal(t, &no, s.Approved, "a member of the group has judged the work before")
	require.True(t, s.Lanes.Doubted)
	require.False(t, given.Lanes.Doubted)

	score := 2.5
	s = newStream(t, State{}).add(KindPassEnd, "p", PassEnd{Score: &score, Pass: Pass{Role: "r", Round: 2},
		Reply: named("x"), Outcome: CategoryOK})
	require.Equal(t, &Judged{Score: &score, Role: "r", Phase: "p", Round: 2, Reply: "x"}, s.Judged)
	s.add(KindPassEnd, "p", PassEnd{Approved: &no, Pass: Pass{Role: "s"}})
	require.Equal(t, &Judged{Approved: &no, Role: "s", Phase: "p"}, s.Judged)
	s.add(KindPassEnd, "p", PassEnd{Pass: Pass{Role: "t"}})
	require.Equal(t, "s", s.Judged.Role)
}

// A verdict of another stage is about other work if a role has replied in this stage since.
func TestVerdictsOfOtherStages(t *testing.T) {
	for name, row := range map[string]struct {
		judgedIn, now string
		replies       []Reply
		want          bool
	}{
		"of this stage":          {"a", "a", []Reply{{Role: "w", Phase: "a"}}, true},
		"nothing since":          {"a", "b", []Reply{{Role: "w", Phase: "a"}}, true},
		"no reply":               {"a", "b", nil, true},
		"a role worked":          {"a", "b", []Reply{{Role: "w", Phase: "b"}}, false},
		"another verdict":        {"a", "b", []Reply{{Role: "w", Phase: "b", Judges: true}}, true},
		"a command ran":          {"a", "b", []Reply{{Role: commandRole, Phase: "b"}}, true},
		"a role, then a command": {"a", "b", []Reply{{Role: "w", Phase: "b"}, {Role: commandRole, Phase: "b"}}, false},
		"a role, then a verdict": {"a", "b", []Reply{{Role: "w", Phase: "b"}, {Role: "r", Phase: "b", Judges: true}},
			true},
		"a role of a step so named": {"a", "b", []Reply{{Role: "w", Phase: "a", Step: "b"}}, true},
	} {
		s := State{Phase: row.now, Set: "a", Replies: row.replies, Judged: &Judged{Phase: row.judgedIn, Role: "r"}}
		require.Equal(t, row.want, s.CurrentVerdict() != nil, name)
	}
	require.Nil(t, State{Judged: &Judged{Outdated: true}}.CurrentVerdict())
	require.Nil(t, State{}.CurrentVerdict())
}

// What a question is about: the last work, not the last reply.
func TestSubjectIsTheLastWork(t *testing.T) {
	s := State{Replies: []Reply{{Role: "old", Reply: *named("o")}, {Role: "writer", Reply: *named("w")},
		{Role: "reviewer", Reply: *named("r"), Judges: true}, {Role: commandRole, Reply: *named("c")}},
		Tree: named("t"), Pictures: named("p"), Artifact: named("a"), MoreFiles: true, Spent: Totals{USD: 1, Unknown: 2},
		Decisions: []PastDecision{{ID: "d1", Note: "n"}, {ID: "d2"}}, Values: []Value{{"tests", "ok"}},
		Found: &Found{Count: 1}, Tampered: &Tampered{Count: 2}}
	about := s.Subject()
	require.Equal(t, Subject{Work: &Output{Role: "writer", Digest: "w"},
		Change:   &Change{Tree: "t", Files: []string{}, More: true},
		Pictures: "p", USD: 1, Unknown: 2, Earlier: []string{"d1", "d2"}, Checks: s.Values, Found: s.Found,
		Tampered: s.Tampered}, about)
	about.Checks[0].Text = "changed"
	require.Equal(t, "ok", s.Values[0].Text)
	require.Nil(t, State{PhaseOpen: true}.Subject().Change)
	require.Equal(t, "none", Change{More: true}.Text())
	require.Equal(t, "a, b, …", Change{Files: []string{"a", "b"}, More: true}.Text())

	score := 2.5
	for want, j := range map[string]Judged{
		"no by r":                      {Word: "no", Role: "r", Score: &score},
		"score 2.5 by r":               {Score: &score, Role: "r", Reply: "x"},
		"none by r, 2 blockers, 1 gap": {Role: "r", Findings: &Findings{Blockers: 2, Gaps: 1}},
		"none by r":                    {Role: "r", Findings: &Findings{}},
		"ok by r, 1 blocker, 3 findings, 2 gaps": {Word: "ok", Role: "r",
			Findings: &Findings{Blockers: 1, Findings: 3, Gaps: 2}},
	} {
		require.Equal(t, want, j.Text())
	}
	for want, q := range map[string]Question{
		"no":        {Verdict: "no", LastOutput: "x"},
		"maybe":     {Verdict: "no", Subject: Subject{Judged: &Judged{Word: "maybe", Role: "r", Reply: "d", Score: &score}}},
		"score 2.5": {Verdict: "no", Subject: Subject{Judged: &Judged{Role: "r", Reply: "d", Score: &score}}},
		"":          {Verdict: "no", Subject: Subject{Judged: &Judged{Role: "r", Reply: "d"}}},
		"none yet":  {Verdict: "none yet", Subject: Subject{Judged: &Judged{Role: "r", Word: "w", Score: &score}}},
	} {
		q.Text, q.Work = "Good?", &Output{Role: "w"}
		a := q.about()
		require.Equal(t, want, a.Verdict)
		require.Equal(t, "Good?", a.Question)
		require.Equal(t, q.Work, a.Work)
		require.Equal(t, q.Judged != nil && q.Judged.Reply != "", a.Review != nil)
		if a.Review != nil {
			require.Equal(t, &Output{Role: "r", Digest: "d"}, a.Review)
		}
	}
}

func TestFactsOfQuestions(t *testing.T) {
	gate := QuestionGate.Spec().Name
	s := State{Decisions: []PastDecision{
		{Kind: QuestionGate, Action: "retry", Feedback: "short\ner", Note: "n", By: "ann", Phase: "p", Round: 2, At: "now"},
		{Kind: QuestionGate, Action: "halt", Round: 1},
	}}
	q := Question{Verdict: "no", Subject: Subject{
		Checks: []Value{{"verdict", "v"}, {"tests", "ok"}, {"score", "1"}, {"lint", "failed"}},
		Change: &Change{Files: []string{"a.go"}}, USD: 1.5, Unknown: 1,
		Tampered: &Tampered{Role: "w", Step: "s", Count: 3, First: []FileChange{{Path: "t.sh", Kind: "changed"}}},
		Found:    &Found{Count: 1, Outside: []string{"x"}},
	}}
	require.Equal(t, []Fact{
		{"Verdict", "no"}, {"Checks", "tests ok, lint failed"}, {"Tampered", "by w, restored: t.sh (changed), and 2 more"},
		{"Out of scope", "x"}, {"Changed", "a.go"}, {"Cost", "≥ $1.50 (1 call not fully known)"},
		{"Earlier", "retry of " + gate + ` p 2 by ann: short\ner: n`}, {"Earlier", "halt of " + gate},
	}, s.Facts(q))
	q.Judged = &Judged{Word: "yes", Role: "r"}
	require.Equal(t, Fact{"Verdict", "yes by r"}, s.Facts(q)[0])
	for text, subject := range map[string]Subject{"unknown": {Unknown: 1}, "$0.50": {USD: 0.5}} {
		require.Contains(t, State{}.Facts(Question{Subject: subject}), Fact{"Cost", text})
	}
	require.Equal(t, []Fact{{"Verdict", "none on the work as it is"}}, State{}.Facts(Question{LastOutput: "x", Round: 3}))
}

// Kept names of files and decisions are bounded, and the state records that there are more.
func TestKeptFilesAndDecisions(t *testing.T) {
	f := folder{}
	change := func(paths ...string) {
		var files []FileChange
		for _, p := range paths {
			files = append(files, FileChange{Path: p})
		}
		f.touch(files, len(paths))
	}
	change("a", "b")
	given := f.Files
	change("b", "c", "a")
	require.Equal(t, []string{"a", "b", "c"}, f.Files)
	require.Equal(t, []string{"a", "b"}, given)
	require.False(t, f.MoreFiles)
	long := strings.Repeat("é", 201)
	f.touch([]FileChange{{Path: long}, {Path: long[:400]}}, 2)
	require.Equal(t, []string{strings.Repeat("é", 200) + " …", strings.Repeat("é", 200)}, f.Files[3:])
	for i := range keptFiles - 5 {
		change(fmt.Sprint(i))
	}
	require.Len(t, f.Files, keptFiles)
	require.False(t, f.MoreFiles)
	change("a")
	require.False(t, f.MoreFiles)
	change("one more")
	require.Len(t, f.Files, keptFiles)
	require.True(t, f.MoreFiles)
	f = folder{}
	f.touch([]FileChange{{Path: "a"}}, 2)
	require.True(t, f.MoreFiles, "the event lists the first of them only")
	change("b")
	require.True(t, f.MoreFiles)

	f = folder{State: State{Decided: &Decided{ID: "q"}}}
	asked := Question{Trigger: TriggerRejected, Phase: "p", Round: 2, Type: "t", LoopMaxRounds: 9}
	for i := range keptDecisions + 1 {
		f.past(QuestionDecided{Kind: QuestionGate, Action: " Halt ", Feedback: long, Note: long, DecidedBy: "ann",
			DecidedAt: fmt.Sprint(i), Redo: RedoStep}, asked)
	}
	require.Len(t, f.Decisions, keptDecisions)
	require.Equal(t, PastDecision{Kind: QuestionGate, ID: "q", Trigger: TriggerRejected, Phase: "p", Round: 2,
		Action:   "halt",
		Feedback: long, Note: strings.Repeat("é", 200) + " …", By: "ann", At: "1"}, f.Decisions[0])
}
